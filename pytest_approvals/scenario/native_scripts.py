"""Native scripts: a scenario as a program that uses a framework's public API only.

Such a script shows what happens without this package: it has the framework's own scripted model, the tools, and the
caller's turns. It prints what ran, what was asked and what the model was told, and ends with `OK`, or with `BUG` and
exit code 1.

The parts of a script that are the same for all scenarios are in `native.toml` in the folder of the framework's adapter.
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from pytest_approvals import agent_side
from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.pins import get_pin, get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.model import (
    Call,
    LeaveStep,
    LetOracleStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
    all_replies,
)

_LINE_LENGTH = 100
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""Python's types of the types of parameters."""


class _Inexpressible(Exception):
    """A feature of a scenario that no native script has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """A turn of the caller with a decision about every open request, by the id of the call."""

    decisions: Mapping[str, ScriptedDecision]
    text: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A turn of the caller with a text, when no request is open."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _GoOn:
    """A turn of the caller without a text and without a decision, while requests are open."""


_Turn: TypeAlias = _Answers | _Message | _GoOn


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What a script does, and what has to come of it.

    Attributes:
        turns: The caller's turns.
        replies: The model's replies that are reached.
        ran: Calls that have to run, with their arguments.
        asked: Ids of calls that have to be asked about, in the order of the script; again after a turn that answers
            nothing.
        told: By id of a settled call, words that have to be in what the model is told about it; about the last one with
            this id.
    """

    turns: list[_Turn] = field(default_factory=list)
    replies: list[ScriptedReply] = field(default_factory=list)
    ran: list[tuple[Call, Mapping[str, Any]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)


def write_native_script(scenario: Scenario, spec: AgentSpec) -> str:
    """Return the source of a script that plays *scenario* on the framework of *spec*.

    Args:
        scenario: The scenario.
        spec: The agent; without a version, the script is for the pinned release.

    Raises:
        UsageError: No script can be written for the agent, or for what the scenario has.
    """
    adapter = get_adapter(spec)
    known = list_native_agents()
    if spec.flavour or spec.checkout or spec.name not in known or adapter.framework is None:
        if not spec.flavour and not spec.checkout and spec.name not in known:
            raise UnknownName("agent", spec.name, known, "native")
        raise UsageError(f"{spec}: native scripts are for the default flavours of releases: --agent NAME[==VERSION]")
    release = spec.version or get_pinned_release(adapter.framework) or ""
    parts = _read_parts(spec.name)
    parts = {**parts, **parts["streamed" if scenario.only.get("stream") == (True,) else "plain"]}
    try:
        plan = _plan(scenario, parts.get("rejection"))
        body = "\n".join(_write_from_parts(parts, scenario, plan))
    except _Inexpressible as feature:
        raise UsageError(f"{scenario.id}: a native script of {spec.name} cannot express {feature}") from None
    requirements = _list_requirements(adapter.framework, release, parts.get("needs", []))
    head = [
        "# /// script",
        '# requires-python = ">=3.10"',
        f"# dependencies = [{', '.join(_quote(text) for text in requirements)}]",
        "# ///",
        f'"""{_escape(scenario.title)} ({scenario.id})."""',
    ]
    return "\n".join(head) + "\n" + body + "\n"


def list_native_agents() -> tuple[str, ...]:
    """Return the names of the agents that scripts can be written for."""
    return tuple(sorted(path.parent.name for path in _ADAPTERS.glob("*/native.toml")))


def _list_requirements(framework: str, release: str, needed: Sequence[str]) -> list[str]:
    """Return a release and what its scripts need of what its pin names, without extras."""
    first, *others = (re.sub(r"\[.*?\]", "", text) for text in get_pin(framework).requirements(release))
    return [first, *(text for text in others if re.split(r"[<>=!~]", text)[0] in needed)]


# --- what happens -----------------------------------------------------------------------------------------------------


def _plan(scenario: Scenario, rejection: str | None = None) -> _Plan:
    """Play a scenario without an agent.

    Args:
        scenario: The scenario.
        rejection: What a framework tells the model of every rejected call; None if it tells the reason.

    Raises:
        _Inexpressible: The scenario has something that scripts do not.
    """
    _refuse_features(scenario)
    tools = {tool.name: tool for tool in scenario.tools}
    plan = _Plan()
    waiting = list(scenario.agents["main"].replies)
    pending: list[Call] = []

    def play_replies() -> None:
        while waiting and not pending:
            reply = waiting.pop(0)
            plan.replies.append(reply)
            for call in reply.calls:
                if tools[call.tool].approval == "always":
                    pending.append(call)
                    plan.asked.append(str(call.id))
                else:
                    _run(plan, tools[call.tool], call, call.arguments)
            if not reply.calls:
                return
        if not pending:
            raise _Inexpressible("a model that has nothing more to say")

    def answer(decisions: Mapping[str, ScriptedDecision]) -> None:
        if set(decisions) != {call.label for call in pending}:
            raise _Inexpressible("an answer to some of the open requests")
        if len({call.id for call in pending}) < len(pending):
            raise _Inexpressible("two open requests about calls with one id")
        ids = {call.label: str(call.id) for call in pending}
        plan.turns.append(_Answers(decisions={ids[label]: decision for label, decision in decisions.items()}))
        for call in pending:
            _settle(plan, tools[call.tool], call, decisions[call.label], rejection)
        pending.clear()
        play_replies()

    def approve(rounds: int | None) -> None:
        while pending and rounds != 0:
            answer({call.label: ScriptedDecision(label=call.label) for call in pending})
            rounds = None if rounds is None else rounds - 1

    steps = scenario.caller if scenario.caller is not None else (TurnStep(text=scenario.prompt),)
    for step in steps:
        if isinstance(step, LeaveStep):
            return plan
        if isinstance(step, LetOracleStep) and not step.session:
            approve(step.rounds)
        elif isinstance(step, TurnStep) and not step.session and step.is_plain:
            if step.text is not None and (step.answers or pending):
                raise _Inexpressible("a message while a request is open")
            if step.text is not None:
                plan.turns.append(_Message(text=step.text))
                play_replies()
            elif not step.answers:
                if not pending:
                    raise _Inexpressible("a turn without a message when no request is open")
                plan.turns.append(_GoOn())
                plan.asked += [str(call.id) for call in pending]
            else:
                decisions = {str(decision.label): decision for decision in step.answers}
                if len(decisions) < len(step.answers):
                    raise _Inexpressible("two decisions about one call in one answer")
                answer(decisions)
        else:
            raise _Inexpressible(_describe_step(step))
    approve(None)
    return plan


def _describe_step(step: Any) -> str:
    if getattr(step, "session", ""):
        return "a second session"
    if getattr(step, "hangs_up", None) is not None:
        return "a caller that disconnects"
    if getattr(step, "crashes", None) is not None:
        return "a process that is killed"
    if getattr(step, "disk_full", None) is not None:
        return "a disk that is full"
    if any(getattr(step, key, None) is not None for key in ("fails_once", "loses", "reads")):
        return "a store that fails"
    return f"the step {type(step).__name__.removesuffix('Step').lower()!r}"


def _settle(plan: _Plan, tool: Tool, call: Call, decision: ScriptedDecision, rejection: str | None) -> None:
    if decision.verdict == "reject":
        plan.told[str(call.id)] = (decision.reason or "") if rejection is None else rejection
    elif decision.verdict in ("approve", "edit"):
        _run(plan, tool, call, decision.arguments if decision.verdict == "edit" else call.arguments)


def _run(plan: _Plan, tool: Tool, call: Call, given: Any) -> None:
    defaults = {name: parameter.default for name, parameter in tool.parameters.items() if not parameter.required}
    # In the order of the parameters, in which a function notes them.
    arguments = {name: {**defaults, **given}[name] for name in tool.parameters if name in {**defaults, **given}}
    plan.ran.append((call, arguments))
    returns = str(tool.behaviours[0].returns)
    for name, value in arguments.items():
        returns = returns.replace(f"{{{name}}}", str(value))
    plan.told[str(call.id)] = returns


def _refuse_features(scenario: Scenario) -> None:
    """Refuse what native scripts do not have.

    Raises:
        _Inexpressible: It is named.
    """
    script = scenario.agents["main"]
    for name, value in (
        ("a structured answer", scenario.answer),
        ("several agents", set(scenario.agents) - {"main"}),
        ("replies for each first message", script.by_prompt),
        ("limits", (scenario.limits.model_replies, scenario.limits.tool_calls) != (None, None)),
        ("tools that are held back", scenario.held_back),
        ("options of an adapter", scenario.options),
        ("an oracle that does more than approve", set(scenario.oracles) - {"approve_all"}),
        ("made-up values", scenario.fakes),
        ("a state that is saved", "none" not in scenario.only.get("serialize", ("none",))),
    ):
        if value:
            raise _Inexpressible(name)
    for tool in scenario.tools:
        _refuse_tool(tool)
    known = {tool.name for tool in scenario.tools}
    for _, reply in all_replies(scenario):
        if reply.has_reasoning:
            raise _Inexpressible("reasoning of the model")
        if reply.failure is not None or reply.answer is not None or reply.takes:
            raise _Inexpressible("a model that fails, takes its time, or gives a structured answer")
        for call in reply.calls:
            if call.id is None or call.unknown_tool or call.invalid or isinstance(call.arguments, str):
                raise _Inexpressible(f"the call {call.label}: an id, a known tool and valid arguments only")
            if call.tool not in known:
                raise _Inexpressible(f"the tool {call.tool!r}")
    for step in scenario.caller or ():
        for decision in getattr(step, "answers", ()):
            _refuse_decision(decision)


def _does_more(behaviour: ToolBehaviour) -> bool:
    """Return whether an execution does something before it returns, or raises."""
    return any((behaviour.waits_for, behaviour.raises, behaviour.elicits))


def _refuse_tool(tool: Tool) -> None:
    behaviour = tool.behaviours[0]
    for name, value in (
        (f"the tool {tool.name!r} of kind {tool.kind}", tool.kind != "function"),
        (f"the tool {tool.name!r}, which is an agent or hands over to one", tool.runs or tool.hands_over_to),
        (f"a condition on the tool {tool.name!r}", not isinstance(tool.approval, str)),
        (f"the tool {tool.name!r}, which does something else each time", tool.per_call or len(tool.behaviours) > 1),
        (f"the tool {tool.name!r}, which waits, asks or raises", _does_more(behaviour)),
        (f"the tool {tool.name!r}, whose result is not text", not isinstance(behaviour.returns, str)),
        (f"the name {tool.name!r} of a tool", not _is_plain_name(tool.visible_name) or tool.called is not None),
        (f"a parameter of {tool.name!r} with this name", not all(map(_is_plain_name, tool.parameters))),
    ):
        if value:
            raise _Inexpressible(name)


def _refuse_decision(decision: ScriptedDecision) -> None:
    plain = ScriptedDecision(
        label=decision.label, verdict=decision.verdict, reason=decision.reason, arguments=decision.arguments
    )
    if decision != plain or decision.label is None or decision.verdict not in ("approve", "reject", "edit"):
        raise _Inexpressible(f"a decision other than approve, reject or edit of arguments on {decision.label}")


def _is_plain_name(name: str) -> bool:
    """Return whether Python takes a name, and the scripts have no other use for it."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN and name.isascii()


_TAKEN = frozenset(
    {
        "agent",
        "answers",
        "asked",
        "asyncio",
        "call",
        "ctx",
        "json",
        "main",
        "model",
        "problems",
        "ran",
        "replies",
        "result",
        "results",
        "say",
        "state",
        "sys",
        "told",
    }
)
"""The names that the scripts have a use for."""


# --- how it is written ------------------------------------------------------------------------------------------------

_Lines = Iterator[str]


def _quote(text: str) -> str:
    return '"' + _escape(text) + '"'


def _escape(text: str) -> str:
    """Return text as it stands between double quotes."""
    return "".join(
        {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(letter, letter)
        if letter.isprintable() or letter in "\n\t"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _write_value(value: Any) -> str:
    """Return the source of a JSON value."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(key)}: {_write_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    return repr(value)


def _write_list(name: str, items: Sequence[str], brackets: str = "[]", indent: str = "") -> _Lines:
    """Yield an assignment: in one line if it fits, else with a line for each item."""
    line = f"{indent}{name} = {brackets[0]}{', '.join(items)}{brackets[1]}"
    if len(line) <= _LINE_LENGTH:
        yield line
        return
    yield f"{indent}{name} = {brackets[0]}"
    yield from (f"{indent}    {item}," for item in items)
    yield f"{indent}{brackets[1]}"


def _write_tool(tool: Tool, decorator: str, context: str, call: str) -> _Lines:
    """Yield a function that notes that it ran.

    Args:
        tool: The tool.
        decorator: The line above the function; none if it is empty.
        context: Its first parameter, with which the framework tells the id of the call; none if it is empty.
        call: How the function names its call.
    """
    ordered = sorted(tool.parameters.items(), key=lambda item: not item[1].required)
    parameters = [
        f"{name}: {_TYPES.get(parameter.type, 'object')}"
        if parameter.required
        else f"{name}: {_TYPES.get(parameter.type, 'object')} | None = {_write_value(parameter.default)}"
        for name, parameter in ordered
    ]
    names = list(tool.parameters)
    arguments = "{" + ", ".join(f'"{name}": {name}' for name in names) + "}"
    text = str(tool.behaviours[0].returns)
    filled = [name for name in names if f"{{{name}}}" in text]
    yield ""
    yield ""
    if decorator:
        yield decorator
    yield f"def {tool.name}({', '.join([context, *parameters] if context else parameters)}) -> str:"
    if tool.description:
        yield f'    """{_escape(tool.description)}"""'
    yield f"    ran.append(({call}, {arguments}))"
    yield f"    return {_write_template(text, filled)}"


def _write_template(text: str, filled: Sequence[str]) -> str:
    if not filled:
        return _quote(text)
    parts = re.split("(" + "|".join(re.escape(f"{{{name}}}") for name in filled) + ")", text)
    return 'f"' + "".join(part if part[1:-1] in filled and part else _double(part) for part in parts) + '"'


def _double(text: str) -> str:
    return _escape(text).replace("{", "{{").replace("}", "}}")


def _write_end(plan: _Plan, main: str, *, by_name: bool = False) -> _Lines:
    """Yield the call of *main*, and the comparison of what happened with what has to happen.

    Args:
        plan: What has to happen.
        main: The call.
        by_name: A function names its call by its tool, not by the id.
    """
    runs = [
        f"({_quote(call.tool if by_name else str(call.id))}, {_write_value(arguments)})" for call, arguments in plan.ran
    ]
    words = [f"{_quote(call_id)}: {_quote(text)}" for call_id, text in plan.told.items()]
    yield from ("", "", "problems = []", "try:", f"    {main}", "except Exception as error:")
    yield '    problems.append(f"the run failed: {error!r}")'
    yield from ('print("ran:", ran)', 'print("asked:", asked)', 'print("told:", told)')
    yield from _write_list("must_run", runs)
    yield from _write_list("must_ask", [_quote(call_id) for call_id in plan.asked])
    yield from _write_list("must_tell", words, "{}")
    yield "if sorted(ran, key=str) != sorted(must_run, key=str):"
    yield '    problems.append(f"ran {ran}, expected {must_run}")'
    yield "if sorted(asked) != sorted(must_ask):"
    yield '    problems.append(f"asked {asked}, expected {must_ask}")'
    yield "if any(text not in str(told.get(call)) for call, text in must_tell.items()):"
    yield '    problems.append(f"told {told}, expected {must_tell}")'
    yield 'print("BUG: " + "; ".join(problems) if problems else "OK: asked, run and told as it should be")'
    yield "sys.exit(bool(problems))"


# --- the parts of a framework -----------------------------------------------------------------------------------------

_ADAPTERS = Path(agent_side.__file__).parent / "adapters"

_Parts = Mapping[str, Any]
"""Parts of the scripts of a framework: source with `$name` where something of the scenario is put.

* `script`: the whole, with `$replies`, `$tools`, `$names` and `$gated` (names of functions and of those that need
  approval) and `$turns` in it; `main` is the call that runs it.
* `text` and `call`: parts of a reply, from `$text`, or from `$id`, `$tool` and `$arguments`; `reply` is made of
  `$parts`, or of `$text` and `$calls`, and `reply_without_calls` of `$text`.
* `plain` and `streamed`: parts of scripts that stream nothing, and of those that stream; `script` has them, too.
* `message` and `answer`: turns of the caller, with `$text`, or with `$answers` by call id; `go_on` is one without
  either, while requests are open, if the framework has that.
* `approve`, `edit`, `reject` and `reject_without_reason`: answers, with `$tool`, `$arguments` and `$reason`.
* `answers_first`: the answers to all requests of a run come before the message that begins it, which waits for them.
* `function`: of a tool, `free` and `gated` (decorators; `free_loose` and `gated_loose` if it takes objects or arrays),
  `context` (a parameter) and `call` (how it names its call: by `$name` if it is not told the id).
* `rejection`: words that the model is told of every rejected call, if the framework does not tell the reason.
* `needs`: distributions that its pin names and scripts use, too.
* `inexpressible`: for each kind of decision that the framework does not have, the reason.
"""


def _read_parts(name: str) -> _Parts:
    return tomllib.loads((_ADAPTERS / name / "native.toml").read_text(encoding="utf-8"))


def _write_from_parts(parts: _Parts, scenario: Scenario, plan: _Plan) -> _Lines:
    function = parts["function"]
    by_name = "$name" in function["call"]
    tools = [
        line
        for tool in scenario.tools
        for line in _write_tool(
            replace(tool, description=tool.description or tool.name),
            _choose_decorator(function, tool),
            function["context"],
            Template(function["call"]).substitute(name=_quote(tool.name)),
        )
    ]
    words = set(re.findall(r"\w+", parts["script"]))
    if taken := next((tool.name for tool in scenario.tools if tool.name in words), None):
        raise _Inexpressible(f"the name {taken!r} of a tool")
    if "go_on" not in parts and any(isinstance(turn, _GoOn) for turn in plan.turns):
        raise _Inexpressible("an answer to none of the open requests")
    order = _put_answers_first(plan) if parts.get("answers_first") else plan.turns
    turns = [line for turn in order for line in _write_turn(parts, turn, plan)]
    text = Template(parts["script"]).substitute(
        {name: value.strip("\n") for name, value in parts.items() if isinstance(value, str)},
        replies="\n".join(_write_list("replies", [_write_reply(parts, reply) for reply in plan.replies])),
        tools="\n".join(tools).strip("\n"),
        names=", ".join(tool.name for tool in scenario.tools),
        gated=", ".join(_quote(tool.name) for tool in scenario.tools if tool.approval == "always"),
        turns="\n".join(turns).lstrip(),
    )
    end = "\n".join(_write_end(plan, parts["main"], by_name=by_name))
    yield from _drop_unused_imports(re.sub(r"\n{4,}", "\n\n\n", text).strip("\n") + "\n" + end)


def _choose_decorator(function: Mapping[str, str], tool: Tool) -> str:
    kind = "gated" if tool.approval == "always" else "free"
    is_loose = any(parameter.type in ("object", "array") for parameter in tool.parameters.values())
    return function.get(f"{kind}_loose", function[kind]) if is_loose else function[kind]


def _write_reply(parts: _Parts, reply: ScriptedReply) -> str:
    text = "" if reply.say is None else Template(parts["text"]).substitute(text=_quote(reply.say))
    calls = [
        Template(parts["call"]).substitute(
            id=_quote(str(call.id)), tool=_quote(call.tool), arguments=_write_value(call.arguments)
        )
        for call in reply.calls
    ]
    pieces = [text, *calls] if text else calls
    form = Template(parts["reply" if reply.calls or "reply_without_calls" not in parts else "reply_without_calls"])
    line = form.substitute(text=text or '""', calls=", ".join(calls), parts=", ".join(pieces))
    if len(line) + 5 <= _LINE_LENGTH:
        return line
    return form.substitute(text=text or '""', calls=_split(calls), parts=_split(pieces))


def _split(items: Sequence[str]) -> str:
    """Return the items of a list, each in a line of its own."""
    return "".join(f"\n        {item}," for item in items) + "\n    "


def _write_turn(parts: _Parts, turn: _Turn, plan: _Plan) -> _Lines:
    if isinstance(turn, _GoOn):
        lines = parts["go_on"]
    elif isinstance(turn, _Message):
        lines = Template(parts["message"]).substitute(text=_quote(turn.text))
    else:
        tools = {call.label: call.tool for reply in plan.replies for call in reply.calls}
        items = [
            f"{_quote(call_id)}: {_write_answer(parts, decision, tools[str(decision.label)])}"
            for call_id, decision in turn.decisions.items()
        ]
        yield from _write_list("answers", items, "{}", indent="    ")
        lines = parts["answer"]
    yield from (f"    {line}" for line in lines.strip("\n").split("\n"))


def _put_answers_first(plan: _Plan) -> list[_Turn]:
    """Return the turns with the answers to all requests of a run before the message that begins it.

    Raises:
        _Inexpressible: A request is left open, or two have one id.
    """
    ordered: list[_Turn] = []
    decisions: dict[str, ScriptedDecision] = {}
    answered = 0
    for turn in reversed(plan.turns):
        if isinstance(turn, _Answers):
            if set(decisions) & set(turn.decisions):
                raise _Inexpressible("two requests of a run about calls with one id")
            decisions = {**turn.decisions, **decisions}
            answered += len(turn.decisions)
        else:
            ordered = [*([_Answers(decisions=decisions)] if decisions else []), turn, *ordered]
            decisions = {}
    if answered < len(plan.asked):
        raise _Inexpressible("a request that nobody answers: the run waits for the answer")
    return ordered


def _write_answer(parts: _Parts, decision: ScriptedDecision, tool: str) -> str:
    kind: str = decision.verdict
    if kind in parts.get("inexpressible", {}):
        raise _Inexpressible(f"{_ARTICLES[kind]} {kind}: {parts['inexpressible'][kind]}")
    if kind == "reject" and decision.reason is None:
        kind = "reject_without_reason"
    return Template(parts[kind]).substitute(
        tool=_quote(decision.tool or tool),
        arguments=_write_value(decision.arguments),
        reason=_quote(decision.reason or ""),
    )


_ARTICLES = {"approve": "an", "edit": "an", "reject": "a"}


def _drop_unused_imports(source: str) -> Iterator[str]:
    """Yield the lines of a script without the names that it imports and does not use."""
    lines = source.split("\n")
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    rest = "\n".join(line for line in lines if line not in imports)
    for line in lines:
        if line not in imports:
            yield line
            continue
        head, _, names = line.rpartition("import ")
        used = [name for name in names.split(", ") if re.search(rf"\b{name}\b", rest)]
        if used:
            yield f"{head}import {', '.join(used)}"
