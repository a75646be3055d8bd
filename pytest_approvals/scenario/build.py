"""Builders of scenarios in Python: the parts of a scenario file as calls.

>>> from pytest_approvals.scenario.build_steps import reject
>>> story = scenario(
...     title="A refund is rejected",
...     tools=[tool("refund", returns("refunded"), parameters={"order": "integer"}, approval="always")],
...     model=[calls("refund", order=42), say("Not refunded.")],
...     caller=["Refund order 42", reject("c1", "over the limit")],
... )
>>> [decision.verdict for decision in story.caller[1].answers]
['reject']

Built scenarios go through the same validation as loaded ones. Calls without an id get `c1`, `c2`, ... in the order of
the script. Made-up values are requested as in a file: `fake("file_name")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from typing import Any, Literal, TypedDict, Unpack, overload

from pytest_approvals.agent_side.contract import MAIN, Kind, Parameter
from pytest_approvals.agent_side.contract.types import Approval, Condition, Limits
from pytest_approvals.errors import ApprovalsError, UsageError, suggest_name
from pytest_approvals.scenario.build_steps import build_parameters, to_steps
from pytest_approvals.scenario.faker_values import fill_fake_values
from pytest_approvals.scenario.model import (
    DEFAULT_PROMPT,
    Call,
    Expect,
    Scenario,
    Script,
    ScriptedElicitation,
    ScriptedFailure,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    build_behaviours,
    decide_by,
)
from pytest_approvals.scenario.validation import finalize
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup, build_scenario_error

__tracebackhide__ = methodcaller("errisinstance", ApprovalsError)
"""pytest leaves the lines of this module out of a traceback that ends in a mistake of the test."""

# --- the model --------------------------------------------------------------------------------------------------------


def call(
    tool: str,
    values: Mapping[str, Any] | str | None = None,
    /,
    *,
    id: str | None = "",  # noqa: A002 - the word of the file
    label: str = "",
    thinks: str | None = None,
    repeats: bool = False,
    unknown_tool: bool = False,
    invalid: bool = False,
    **arguments: Any,
) -> Call:
    """Build one call of the model.

    Args:
        tool: Name of the tool.
        values: The arguments as one value: an object, or text to send in place of one. Needed if an argument has the
            name of a keyword of this function.
        id: The call id; None for a call without one, which needs a label. Default: the next free one of `c1`, `c2`.
        label: Name in scenario and reports.
        thinks: The model's reasoning between the call before it and this one.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the tool, on purpose.
        **arguments: The arguments by name.
    """
    if values is not None and arguments:
        raise UsageError(f"call({tool!r}) has arguments twice: as one value, and by name ({', '.join(arguments)})")
    value = values if isinstance(values, str) else dict(values if values is not None else arguments)
    return Call(
        label=label,
        id=id,
        tool=tool,
        arguments=value,
        thinks=thinks,
        repeats=repeats,
        unknown_tool=unknown_tool,
        invalid=invalid,
    )


@overload
def calls(tool: str, values: Mapping[str, Any] | str | None = None, /, **arguments: Any) -> ScriptedReply: ...


@overload
def calls(
    *parts: Call,
    say: str | None = None,
    thinks: str | None = None,
    redacted: bool = False,
    breaks_after: int | None = None,
) -> ScriptedReply: ...


def calls(*parts: Any, **named: Any) -> ScriptedReply:
    """Build a reply that calls tools.

    `calls("refund", order=42)` for one call, `calls(call(...), call(...))` for several.

    Args:
        *parts: Name of the tool, perhaps with its arguments as one value; or several calls.
        **named: Arguments of the one call; or, with several, the text that accompanies them (`say`), the reasoning
            before them (`thinks`), whether only its encrypted form is shown (`redacted`), and the number of pieces
            after which the stream breaks (`breaks_after`).
    """
    if parts and isinstance(parts[0], str):
        return ScriptedReply(calls=(_single_call(*parts, arguments=named),))
    unknown = set(named) - {"say", "thinks", "redacted", "breaks_after"}
    if unknown or not parts or not all(isinstance(argument, Call) for argument in parts):
        raise UsageError(
            "calls() takes a tool with its arguments, or several call(...), perhaps with say=, thinks=, redacted= or "
            "breaks_after="
        )
    return ScriptedReply(
        thinks=named.get("thinks"),
        redacted=named.get("redacted", False),
        say=named.get("say"),
        calls=parts,
        failure=_build_break(named.get("breaks_after")),
    )


def _single_call(name: str, values: Mapping[str, Any] | str | None = None, *, arguments: Mapping[str, Any]) -> Call:
    return call(name, values) if values is not None and not arguments else call(name, dict(arguments))


def say(
    text: str,
    *,
    thinks: str | None = None,
    redacted: bool = False,
    breaks_after: int | None = None,
    takes: float = 0.0,
) -> ScriptedReply:
    """Build a reply of text.

    Args:
        text: The text.
        thinks: The model's reasoning before it.
        redacted: The provider shows nothing of the reasoning but its encrypted form.
        breaks_after: Number of pieces after which its stream breaks.
        takes: Seconds until its first piece.
    """
    return ScriptedReply(thinks=thinks, redacted=redacted, say=text, failure=_build_break(breaks_after), takes=takes)


FailureKind = Literal[429, 500, 503, 529, "disconnect", "timeout", "truncated", "garbled"]
"""A status; or no connection, no answer in time, a truncated answer, a garbled answer."""


def fails(how: FailureKind = 500, *, retry_after: float | None = None) -> ScriptedReply:
    """Build a failure of the model in place of a reply.

    Args:
        how: Status, or kind of failure.
        retry_after: With a status: seconds until the provider asks to be called again.
    """
    if isinstance(how, str):
        return ScriptedReply(failure=ScriptedFailure(status=0, how=how, retry_after=retry_after))
    return ScriptedReply(failure=ScriptedFailure(status=how, retry_after=retry_after))


def _build_break(after: int | None) -> ScriptedFailure | None:
    return None if after is None else ScriptedFailure(status=0, after_chunks=after)


# --- tools ------------------------------------------------------------------------------------------------------------


def returns(
    value: Any = "ok", *, waits_for: str | None = None, elicits: ScriptedElicitation | None = None
) -> ToolBehaviour:
    """Build a behaviour that returns *value*, any JSON value; in text, `{parameter}` is that argument.

    With *elicits*, its MCP server asks the caller first, and `{field}` is that field of the caller's answer.
    """
    return ToolBehaviour(returns=value, waits_for=waits_for, elicits=elicits)


def raises(text: str, *, waits_for: str | None = None, elicits: ScriptedElicitation | None = None) -> ToolBehaviour:
    """Build a behaviour that raises an error with *text*, after what its MCP server *elicits*."""
    return ToolBehaviour(raises=text, waits_for=waits_for, elicits=elicits)


def elicits(
    message: str, *, form: Mapping[str, str | Parameter] | None = None, url: str | None = None
) -> ScriptedElicitation:
    """Build a question that an MCP server asks the caller in the middle of a call.

    Args:
        message: The question; `{parameter}` is that argument of the call.
        form: The fields to fill in, with the type of each.
        url: The address to open, in place of a form.
    """
    return ScriptedElicitation(message=message, form=build_parameters(form or {}), url=url)


def asks_again(question: str, *, waits_for: str | None = None) -> ToolBehaviour:
    """Build a behaviour that asks for a second approval; the next behaviour follows it."""
    return ToolBehaviour(asks_again=question, waits_for=waits_for)


class Comparison(TypedDict, total=False):
    """What `when` takes by name; see `Condition`."""

    greater_than: float
    less_than: float
    equals: Any
    starts_with: str
    one_of: Iterable[Any]
    answers: Iterable[bool]
    raises: str
    waits_for: str


def when(argument: str | None = None, /, **condition: Unpack[Comparison]) -> Condition:
    """Build an approval condition.

    `when("amount", greater_than=100)`, `when(answers=(True, False))` or `when(raises="policy is down")`.
    """
    known: dict[str, Any] = {**condition}
    # Conditions are frozen values, so their lists are tuples.
    known |= {name: tuple(known[name]) for name in ("one_of", "answers") if name in known}
    try:
        return Condition(argument=argument, **known)
    except TypeError:
        valid = ", ".join(name for name in Condition.__slots__ if name != "argument")
        raise UsageError(f"Unknown argument of when(): {', '.join(condition)}; valid: {valid}") from None


def tool(
    name: str,
    *does: ToolBehaviour,
    parameters: Mapping[str, str | Parameter] | None = None,
    approval: Approval | Literal["by_annotations"] = "never",
    description: str = "",
    kind: Kind = "function",
    server: str | None = None,
    called: str | None = None,
    agent: str = MAIN,
    runs: str | None = None,
    hands_over_to: str | None = None,
    per_call: Mapping[str, ToolBehaviour | Sequence[ToolBehaviour]] | None = None,
    annotations: Mapping[str, bool] | None = None,
    structured_only: bool = False,
    misfits_are_errors: bool = False,
) -> Tool:
    """Build a tool.

    Args:
        name: Its name.
        *does: Behaviours of successive executions of one call; the last one repeats. Default: return `ok`.
        parameters: Type of each parameter, with `?` if the model may omit it: `{"path": "string"}`.
        approval: `always`, `never`, a condition made by `when`, or `by_annotations`: what the application decides from
            the *annotations*.
        description: Description for the model.
        kind: `function`, `mcp` or `hosted_mcp`.
        server: MCP server that offers it, for the kinds `mcp` and `hosted_mcp`.
        called: Name for the model if it differs from *name*.
        agent: Agent that has it.
        runs: Agent that a call runs.
        hands_over_to: Agent that a call hands the conversation over to.
        per_call: Behaviours of single calls in place of *does*, by label.
        annotations: What an MCP server says about it: `readOnlyHint`, `destructiveHint`, `idempotentHint`,
            `openWorldHint`.
        structured_only: Its MCP server sends an object as structured content, and not as text beside it.
        misfits_are_errors: Its MCP server answers arguments that do not fit with an error of the protocol.

    Raises:
        UsageError: What it does is no behaviour.
    """
    return Tool(
        name=name,
        called=called,
        description=description,
        parameters=build_parameters(parameters or {}),
        approval=decide_by(annotations or {}) if approval == "by_annotations" else approval,
        by_annotations=approval == "by_annotations",
        kind=kind,
        server=server,
        agent=agent,
        runs=runs,
        hands_over_to=hands_over_to,
        behaviours=_to_behaviours(name, does) or build_behaviours(),
        per_call={label: _to_behaviours(name, behaviours) for label, behaviours in (per_call or {}).items()},
        annotations=dict(annotations or {}),
        structured_only=structured_only,
        misfits_are_errors=misfits_are_errors,
    )


def _to_behaviours(tool: str, behaviours: ToolBehaviour | Sequence[ToolBehaviour]) -> tuple[ToolBehaviour, ...]:
    found = behaviours if isinstance(behaviours, tuple | list) else (behaviours,)
    for behaviour in found:
        if not isinstance(behaviour, ToolBehaviour):
            message = "expected one made by returns(), raises() or asks_again()"
            raise UsageError(f"Invalid behaviour {behaviour!r} of the tool {tool!r}: {message}")
    return tuple(found)


def fake(name: str, *, named: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Request a value from Faker, as in a file.

    Args:
        name: A provider (`fake("file_name")`), or the name of an earlier value to repeat (`fake("doc")`).
        named: Name for the value.
        **arguments: Arguments for the provider.
    """
    return {"fake": name, **({"as": named} if named else {}), **({"with": arguments} if arguments else {})}


__all__ = [
    "ScenarioOptions",
    "asks_again",
    "call",
    "calls",
    "elicits",
    "fails",
    "fake",
    "raises",
    "returns",
    "say",
    "scenario",
    "tool",
    "when",
]

Replies = Sequence[ScriptedReply]
Model = Replies | Mapping[str, Replies]


class ScenarioOptions(TypedDict, total=False):
    """Further attributes of a scenario; see `Scenario`."""

    about: str
    sources: Sequence[str]
    requires: Iterable[str]
    reaches: Mapping[str, int]
    expect: Expect
    limits: Limits
    only: Mapping[str, Any]
    vary: Iterable[str]
    oracles: Sequence[str]
    held_back: Sequence[str]
    servers: Mapping[str, str]
    options: Mapping[str, Any]
    equal_arguments: bool


def scenario(
    *,
    title: str,
    model: Model,
    tools: Iterable[Tool] = (),
    agents: Mapping[str, Model] | None = None,
    caller: Iterable[Any] | None = None,
    prompt: str = DEFAULT_PROMPT,
    id: str = "",  # noqa: A002 - the word of the file
    attached: bool = False,
    **more: Unpack[ScenarioOptions],
) -> Scenario:
    """Build a scenario.

    Args:
        title: What happens, in one sentence.
        model: Replies of the main agent's model; a mapping has them by first user message, and under `otherwise`.
        tools: The tools.
        agents: Replies of the agents that tools run, by agent.
        caller: Steps made by the functions in `build_steps`; a text is sent, a decision or list of decisions decides.
            Default: send the prompt and let the oracle answer until the end.
        prompt: First message, for a scenario without a caller.
        id: Default: derived from the title.
        attached: A user agent plays it, with tools that the scenario does not know.
        **more: Further attributes of `Scenario`.

    Raises:
        ScenarioError: The scenario is invalid.
        UsageError: An argument has the wrong type.
    """
    built = Scenario(
        id=id or f"built/{_slugify(title)}",
        title=title,
        tools=tuple(tools),
        agents={agent: _build_script(replies) for agent, replies in {MAIN: model, **(agents or {})}.items()},
        caller=None if caller is None else to_steps(caller),
        prompt=prompt,
        **_convert_options(more),
    )
    return _finalize_built(built, attached=attached)


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


_OPTION_TYPES: dict[str, tuple[type, ...]] = {
    "about": (str,),
    "sources": (tuple, list),
    "requires": (tuple, list, set, frozenset),
    "reaches": (Mapping,),
    "expect": (Expect,),
    "limits": (Limits,),
    "only": (Mapping,),
    "vary": (tuple, list, set, frozenset),
    "oracles": (tuple, list),
    "held_back": (tuple, list),
    "servers": (Mapping,),
    "options": (Mapping,),
    "equal_arguments": (bool,),
}

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "sources": tuple,
    "requires": frozenset,
    "only": lambda only: {dimension: _to_tuple(values) for dimension, values in only.items()},
    "vary": frozenset,
    "oracles": tuple,
    "held_back": tuple,
}


def _convert_options(more: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in more.items():
        if key not in _OPTION_TYPES:
            raise UsageError(f"Unknown argument {key!r} of scenario(){suggest_name(key, _OPTION_TYPES)}")
        if not isinstance(value, _OPTION_TYPES[key]):
            raise UsageError(f"Invalid value {value!r} of scenario({key}=...)")
    return {key: _CONVERSIONS.get(key, _keep_value)(value) for key, value in more.items()}


def _keep_value(value: Any) -> Any:
    return value


def _finalize_built(built: Scenario, *, attached: bool) -> Scenario:
    try:
        filled, fakes = fill_fake_values(built, built.id)
        return finalize(replace(filled, fakes=fakes), attached=attached)
    except Diagnostic as diagnostic:
        raise build_scenario_error(built.id, [diagnostic], {}) from None
    except DiagnosticGroup as group:
        raise build_scenario_error(built.id, group.diagnostics, {}) from None


def _build_script(model: Model) -> Script:
    if isinstance(model, Mapping):
        by_prompt = {prompt: _check_replies(replies) for prompt, replies in model.items() if prompt != "otherwise"}
        return Script(replies=_check_replies(model.get("otherwise", ())), by_prompt=by_prompt)
    return Script(replies=_check_replies(model))


def _check_replies(replies: Replies) -> tuple[ScriptedReply, ...]:
    for reply in replies:
        if not isinstance(reply, ScriptedReply):
            raise UsageError(f"Invalid reply {reply!r}: expected a result of calls(), say() or fails()")
    return tuple(replies)


def _slugify(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"
