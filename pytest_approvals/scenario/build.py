"""Parts of a scenario in Python: what the model replies, what the tools are and do.

Scenarios in Python: the same parts that a scenario file has, made by calls that read like it.

>>> from pytest_approvals.scenario.build_steps import reject
>>> story = scenario(
...     title="A refund is rejected",
...     tools=[tool("refund", returns("refunded"), parameters={"order": "integer"}, approval="always")],
...     model=[calls("refund", order=42), say("Not refunded.")],
...     caller=["Refund order 42", reject("c1", "over the limit")],
... )
>>> [answer.verdict for answer in story.caller[1].answers]
['reject']

What is built goes through the same validation as what is loaded. Calls get the ids `c1`, `c2`, ... in the order of the
script where they have none of their own. Made-up values are asked for as in a file: `fake("file_name")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack, overload

from pytest_approvals.agent_side.contract import MAIN, Kind, Parameter
from pytest_approvals.agent_side.contract.types import Approval, Condition, Limits
from pytest_approvals.errors import UsageError, suggest_name
from pytest_approvals.scenario.build_steps import build_parameters, to_steps
from pytest_approvals.scenario.faker_values import fill_fake_values
from pytest_approvals.scenario.model import (
    DEFAULT_PROMPT,
    Call,
    Expect,
    Scenario,
    Script,
    ScriptedFailure,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    build_behaviours,
)
from pytest_approvals.scenario.validation import finalize
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup, build_scenario_error

# --- the model --------------------------------------------------------------------------------------------------------


def call(
    tool: str,
    given: Mapping[str, Any] | str | None = None,
    /,
    *,
    id: str | None = "",  # noqa: A002 - the word of the file
    label: str = "",
    repeats: bool = False,
    unknown_tool: bool = False,
    invalid: bool = False,
    **arguments: Any,
) -> Call:
    """
    Makes one call of the model.

    Arguments:
        given: The arguments as one value: an object, or text that is sent in place of one; needed where an argument has
            the name of a keyword of this function.
        id: The call id; None for a call without one, which needs a label. Left out: the next free one of `c1`, `c2`.
        label: What scenario and reports call it.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the tool, on purpose.
    """
    if given is not None and arguments:
        raise UsageError(f"call({tool!r}) has arguments twice: as one value, and by name ({', '.join(arguments)})")
    value = given if isinstance(given, str) else dict(given if given is not None else arguments)
    return Call(
        label=label, id=id, tool=tool, arguments=value, repeats=repeats, unknown_tool=unknown_tool, invalid=invalid
    )


@overload
def calls(tool: str, given: Mapping[str, Any] | str | None = None, /, **arguments: Any) -> ScriptedReply: ...


@overload
def calls(*made: Call, say: str | None = None, breaks_after: int | None = None) -> ScriptedReply: ...


def calls(*made: Any, **named: Any) -> ScriptedReply:
    """
    Makes a reply that calls tools: `calls("refund", order=42)` for one call, `calls(call(...), call(...))` for several.

    Arguments:
        named: The arguments of the one call; or, beside several, the text that comes with them (`say`) and after how
            many pieces the stream breaks (`breaks_after`).
    """
    if made and isinstance(made[0], str):
        return ScriptedReply(calls=(_single_call(*made, arguments=named),))
    unknown = set(named) - {"say", "breaks_after"}
    if unknown or not made or not all(isinstance(one, Call) for one in made):
        raise UsageError(
            "calls() takes a tool with its arguments, or several call(...), perhaps with say= or breaks_after="
        )
    return ScriptedReply(say=named.get("say"), calls=made, failure=_build_break(named.get("breaks_after")))


def _single_call(name: str, given: Mapping[str, Any] | str | None = None, *, arguments: Mapping[str, Any]) -> Call:
    return call(name, given) if given is not None and not arguments else call(name, dict(arguments))


def say(text: str, *, breaks_after: int | None = None, takes: float = 0.0) -> ScriptedReply:
    """
    Makes a reply of text.

    Arguments:
        breaks_after: Its stream breaks after so many pieces.
        takes: The seconds that pass before its first piece comes.
    """
    return ScriptedReply(say=text, failure=_build_break(breaks_after), takes=takes)


FailureKind = Literal[429, 500, 503, 529, "disconnect", "timeout", "truncated", "garbled"]
"""How a model fails: with a status; no connection, no answer in time, an answer cut off, an answer that is none."""


def fails(how: FailureKind = 500, *, retry_after: float | None = None) -> ScriptedReply:
    """
    Makes the model fail instead of answering.

    Arguments:
        retry_after: Beside a status: the seconds after which the provider wants to be asked again.
    """
    if isinstance(how, str):
        return ScriptedReply(failure=ScriptedFailure(status=0, how=how, retry_after=retry_after))
    return ScriptedReply(failure=ScriptedFailure(status=how, retry_after=retry_after))


def _build_break(after: int | None) -> ScriptedFailure | None:
    return None if after is None else ScriptedFailure(status=0, after_chunks=after)


# --- tools ------------------------------------------------------------------------------------------------------------


def returns(value: Any = "ok", *, waits_for: str | None = None) -> ToolBehaviour:
    """Lets an execution return *value*, any JSON value; in text, `{parameter}` stands for that argument."""
    return ToolBehaviour(returns=value, waits_for=waits_for)


def raises(text: str, *, waits_for: str | None = None) -> ToolBehaviour:
    """Lets an execution fail with *text*."""
    return ToolBehaviour(raises=text, waits_for=waits_for)


def asks_again(question: str, *, waits_for: str | None = None) -> ToolBehaviour:
    """Lets an execution ask for a second approval; what follows it is the next behaviour."""
    return ToolBehaviour(asks_again=question, waits_for=waits_for)


def when(argument: str | None = None, /, **condition: Any) -> Condition:
    """
    Makes an approval condition: `when("amount", greater_than=100)`, `when(answers=(True, False))`,
    `when(raises="policy is down")`.
    """
    known: dict[str, Any] = {
        name: tuple(value) if name in ("one_of", "answers") else value for name, value in condition.items()
    }
    try:
        return Condition(argument=argument, **known)
    except TypeError:
        valid = ", ".join(name for name in Condition.__slots__ if name != "argument")
        raise UsageError(f"when() does not know {', '.join(condition)}; valid: {valid}") from None


def tool(
    name: str,
    *does: ToolBehaviour,
    parameters: Mapping[str, str | Parameter] | None = None,
    approval: Approval = "never",
    description: str = "",
    kind: Kind = "function",
    server: str | None = None,
    called: str | None = None,
    agent: str = MAIN,
    runs: str | None = None,
    hands_over_to: str | None = None,
    per_call: Mapping[str, ToolBehaviour | Sequence[ToolBehaviour]] | None = None,
) -> Tool:
    """
    Makes a tool.

    Arguments:
        does: What successive executions of one call do, the last one for ever; by default they return `ok`.
        called: What the model calls it, where that is not *name*.
        parameters: The type of each, with `?` where the model may leave it out: `{"path": "string"}`.
        per_call: What single calls do instead, by label.
    """
    return Tool(
        name=name,
        called=called,
        description=description,
        parameters=build_parameters(parameters or {}),
        approval=approval,
        kind=kind,
        server=server,
        agent=agent,
        runs=runs,
        hands_over_to=hands_over_to,
        behaviours=does or build_behaviours(),
        per_call={label: _to_behaviours(one) for label, one in (per_call or {}).items()},
    )


def _to_behaviours(given: ToolBehaviour | Sequence[ToolBehaviour]) -> tuple[ToolBehaviour, ...]:
    return (given,) if isinstance(given, ToolBehaviour) else tuple(given)


def fake(name: str, *, named: str | None = None, **arguments: Any) -> dict[str, Any]:
    """
    Asks for a value made up by Faker: by a provider (`fake("file_name")`), or the *named* one again (`fake("doc")`).

    Arguments:
        arguments: For the provider.
    """
    return {"fake": name, **({"as": named} if named else {}), **({"with": arguments} if arguments else {})}


__all__ = [
    "ScenarioOptions",
    "asks_again",
    "call",
    "calls",
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
    """What else a scenario can have; see `Scenario`."""

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
    """
    Makes a scenario.

    Arguments:
        model: The replies of the main agent's model; as a mapping, by first user message, and under `otherwise`.
        agents: Likewise for the agents that tools run.
        caller: The steps, as `build_caller` makes them; a text is sent, an answer or a list of answers decides. Left
            out: the prompt is sent, and the oracle answers until the end.
        id: By default made of the title.
        attached: A person's own agent plays it, with tools that the scenario does not know.

    Errors:
        ScenarioError: It has a mistake.
        UsageError: Something is given that cannot be a part of it.
    """
    built = Scenario(
        id=id or f"built/{_slugify(title)}",
        title=title,
        tools=tuple(tools),
        agents={agent: _build_script(given) for agent, given in {MAIN: model, **(agents or {})}.items()},
        caller=None if caller is None else to_steps(caller),
        prompt=prompt,
        **_convert_options(more),
    )
    return _finalize_built(built, attached=attached)


def _to_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


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
    "only": lambda given: {dimension: _to_tuple(values) for dimension, values in given.items()},
    "vary": frozenset,
    "oracles": tuple,
    "held_back": tuple,
}


def _convert_options(more: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in more.items():
        if key not in _OPTION_TYPES:
            raise UsageError(f"scenario() has no argument {key!r}{suggest_name(key, _OPTION_TYPES)}")
        if not isinstance(value, _OPTION_TYPES[key]):
            raise UsageError(f"scenario({key}=...) cannot be {value!r}")
    return {key: _CONVERSIONS.get(key, _keep_value)(value) for key, value in more.items()}


def _keep_value(given: Any) -> Any:
    return given


def _finalize_built(built: Scenario, *, attached: bool) -> Scenario:
    try:
        filled, fakes = fill_fake_values(built, built.id)
        return finalize(replace(filled, fakes=fakes), attached=attached)
    except Diagnostic as mistake:
        raise build_scenario_error(built.id, [mistake], {}) from None
    except DiagnosticGroup as mistakes:
        raise build_scenario_error(built.id, mistakes.found, {}) from None


def _build_script(given: Model) -> Script:
    if isinstance(given, Mapping):
        by_prompt = {prompt: _check_replies(replies) for prompt, replies in given.items() if prompt != "otherwise"}
        return Script(replies=_check_replies(given.get("otherwise", ())), by_prompt=by_prompt)
    return Script(replies=_check_replies(given))


def _check_replies(given: Replies) -> tuple[ScriptedReply, ...]:
    for reply in given:
        if not isinstance(reply, ScriptedReply):
            raise UsageError(f"a reply of the model is made by calls(), say() or fails(), and is not {reply!r}")
    return tuple(given)


def _slugify(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"
