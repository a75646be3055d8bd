"""Text of a scenario file: the document of a scenario, and documents as people write them.

The keys are in the usual order, and what is there by default is left out. A line holds what is small, a block what is
not. Text is written without quotes only if every reader of YAML takes it for text; otherwise in double quotes, with
control characters escaped. No tags, anchors or aliases are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, ElicitationAnswer, Limits, Parameter
from pytest_approvals.agent_side.contract.types import Approval
from pytest_approvals.scenario.model import (
    BY_ANNOTATIONS,
    DEFAULT_PROMPT,
    Call,
    CancelStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedElicitation,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
)
from pytest_approvals.scenario.vocabulary import TURN_KEYS

OTHERWISE = "otherwise"


def format_scenario(scenario: Scenario, *, comment: Sequence[str] = ()) -> str:
    """Return the text of the file of a scenario.

    Args:
        scenario: The scenario, labelled.
        comment: Lines that stand above it as comments.
    """
    lines = [f"# {escape_unprintable(line)}".rstrip() + "\n" for text in comment for line in text.split("\n")]
    return "".join(lines) + format_yaml(build_document(scenario))


def build_document(scenario: Scenario) -> dict[str, Any]:
    """Return the document of a labelled scenario: what a file says that is loaded as this scenario."""
    document: dict[str, Any] = {
        "title": scenario.title,
        "about": " ".join(scenario.about.split()),
        "sources": list(scenario.sources),
        "requires": sorted(scenario.requires),
        "options": scenario.options,
        "equal_arguments": scenario.equal_arguments,
        "held_back": list(scenario.held_back),
        "servers": scenario.servers,
        "limits": _limits(scenario.limits),
        "answer": _parameters(scenario.answer),
        "tools": {tool.key: _tool(tool) for tool in scenario.tools},
        "agents": {name: {"model": _script(script)} for name, script in scenario.agents.items() if name != MAIN},
        "model": _script(scenario.agents[MAIN]),
        "caller": [_step(step) for step in scenario.caller or ()],
        "prompt": scenario.prompt if scenario.caller is None and scenario.prompt != DEFAULT_PROMPT else "",
        "only": {name: values[0] if len(values) == 1 else list(values) for name, values in scenario.only.items()},
        "vary": sorted(scenario.vary),
        "oracles": list(scenario.oracles),
        "reaches": scenario.reaches,
        "expect": _present(
            runs=None if scenario.expect.runs is None else list(scenario.expect.runs), output=scenario.expect.output
        ),
    }
    return {key: value for key, value in document.items() if value or key == "model"}


def _present(**keys: Any) -> dict[str, Any]:
    """Return the keys that have a value; False and empty values count as none."""
    return {key: value for key, value in keys.items() if value is not None and value is not False}


def _limits(limits: Limits) -> dict[str, Any]:
    return _present(model_replies=limits.model_replies, tool_calls=limits.tool_calls)


# --- tools ------------------------------------------------------------------------------------------------------------


def _tool(tool: Tool) -> dict[str, Any]:
    parameters = {} if tool.runs and tool.parameters == {"input": Parameter()} else tool.parameters
    document: dict[str, Any] = {}
    if tool.by_annotations:
        document["approval"] = BY_ANNOTATIONS
    elif tool.approval != "never":
        document["approval"] = _approval(tool.approval)
    if parameters:
        document["parameters"] = _parameters(parameters)
    document |= _present(
        description=tool.description or None,
        called=tool.called,
        kind=None if tool.kind == "function" else tool.kind,
        server=tool.server,
        annotations=dict(tool.annotations) or None,
        structured_only=tool.structured_only or None,
        misfits_are_errors=tool.misfits_are_errors or None,
        runs=tool.runs,
        hands_over_to=tool.hands_over_to,
    )
    document |= _behaviours(tool.behaviours)
    if tool.per_call:
        document["calls"] = {label: _call_behaviours(each) for label, each in tool.per_call.items()}
    return document


def _approval(approval: Approval) -> Any:
    if approval == "always" or approval == "never":
        return approval
    document = _present(
        argument=approval.argument,
        greater_than=approval.greater_than,
        less_than=approval.less_than,
        starts_with=approval.starts_with,
        one_of=list(approval.one_of) or None,
        answers=list(approval.answers) or None,
        raises=approval.raises,
    )
    if document.keys() <= {"argument"}:
        document["equals"] = approval.equals
    return document | _present(waits_for=approval.waits_for)


def _parameters(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: _parameter(parameter) for name, parameter in parameters.items()}


def _parameter(parameter: Parameter) -> Any:
    if parameter.default is None:
        return parameter.type if parameter.required else f"{parameter.type}?"
    document = {"type": parameter.type, "default": parameter.default}
    return document | {"required": True} if parameter.required else document


def _behaviours(behaviours: Sequence[ToolBehaviour]) -> dict[str, Any]:
    """Return the keys of a tool, or of one of its calls, that say what it does."""
    if len(behaviours) == 1 and behaviours[0].asks_again is None:
        return _behaviour(behaviours[0])
    if len(behaviours) == 2 and behaviours[0].asks_again is not None and _only_ends(behaviours[1]):
        # Both keys stay, since a question alone would be followed by nothing.
        return _behaviour(behaviours[0]) | (_behaviour(behaviours[1]) or {"returns": "ok"})
    return {"does": [_behaviour(each) or {"returns": "ok"} for each in behaviours]}


def _call_behaviours(behaviours: Sequence[ToolBehaviour]) -> Any:
    document = _behaviours(behaviours)
    return document.get("does", document or {"returns": "ok"})


def _only_ends(behaviour: ToolBehaviour) -> bool:
    return behaviour.waits_for is None and behaviour.asks_again is None


def _behaviour(behaviour: ToolBehaviour) -> dict[str, Any]:
    document = _present(
        waits_for=behaviour.waits_for,
        asks_again=behaviour.asks_again,
        elicits=None if behaviour.elicits is None else _elicitation(behaviour.elicits),
        raises=behaviour.raises,
    )
    if behaviour.raises is None and behaviour.asks_again is None and behaviour.returns != "ok":
        document["returns"] = behaviour.returns
    return document


def _elicitation(elicitation: ScriptedElicitation) -> dict[str, Any]:
    asked = _present(form=_parameters(elicitation.form) or None, url=elicitation.url)
    return {"message": elicitation.message, **asked}


# --- the model --------------------------------------------------------------------------------------------------------


def _script(script: Script) -> Any:
    if not script.by_prompt:
        return _replies(script.replies)
    document = {prompt: _replies(replies) for prompt, replies in script.by_prompt.items()}
    return document | ({OTHERWISE: _replies(script.replies)} if script.replies else {})


def _replies(replies: Sequence[ScriptedReply]) -> list[dict[str, Any]]:
    labels = _DefaultLabels()
    return [_reply(reply, labels) for reply in replies]


class _DefaultLabels:
    """The labels that calls have which name none."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()

    def next(self, call: Call) -> str:
        """Return the label that the next call of a script has by default."""
        if call.id is None:
            return ""
        self._uses[call.id] += 1
        return call.id if self._uses[call.id] == 1 else f"{call.id}#{self._uses[call.id]}"


def _reply(reply: ScriptedReply, labels: _DefaultLabels) -> dict[str, Any]:
    document = _present(
        thinks=reply.thinks,
        redacted=reply.redacted,
        say=reply.say,
        calls=[_call(call, labels.next(call)) for call in reply.calls] or None,
        answer=reply.answer,
        invalid=reply.invalid,
    )
    failure = reply.failure
    if failure is not None:
        if failure.status or failure.how != "disconnect" or failure.after_chunks is None:
            document["fails"] = failure.status or failure.how
        document |= _present(breaks_after=failure.after_chunks, retry_after=failure.retry_after)
    return document | _present(takes=reply.takes or None)


def _call(call: Call, default_label: str) -> dict[str, Any]:
    document: dict[str, Any] = _present(thinks=call.thinks) | {"id": call.id, "tool": call.tool}
    if call.arguments or isinstance(call.arguments, str):
        document["arguments"] = call.arguments
    return document | _present(
        label=call.label if call.label != default_label else None,
        repeats=call.repeats,
        unknown_tool=call.unknown_tool,
        invalid=call.invalid,
    )


# --- the caller -------------------------------------------------------------------------------------------------------


def _step(step: Step) -> dict[str, Any]:
    document = _step_keys(step)
    session = getattr(step, "session", "")
    return document | ({"session": session} if session else {})


def _step_keys(step: Step) -> dict[str, Any]:
    match step:
        case TurnStep():
            return _turn(step)
        case LetOracleStep():
            return {"oracle": True if step.rounds is None else step.rounds}
        case StageStep():
            return {"stage": _decisions(step.answers)}
        case SaveStep():
            return {"save": step.name}
        case RestoreStep():
            return {"restore": step.name}
        case RestartStep():
            return {"restart": _restart(step) or True}
        case CancelStep():
            return {"cancel": True}
        case TrimStep():
            return {"trim": step.keep}
        case RewriteStep():
            where = {} if step.where == "every" else {"where": step.where}
            return {"rewrite": {"old": step.old, "new": step.new, **where}}
        case SignalStep():
            return {"signal": step.name}
        case TogetherStep():
            return {"together": [_step(part) for part in step.steps]}
    return {"leave": True}


def _turn(step: TurnStep) -> dict[str, Any]:
    document = _present(send=step.text, decide=_decisions(step.answers) if step.answers else None) or {"go_on": True}
    elicitations = {label: _elicitation_answer(answer) for label, answer in step.elicitations.items()} or None
    return document | _present(**{key: getattr(step, key) for key in TURN_KEYS}, elicitations=elicitations)


def _elicitation_answer(answer: ElicitationAnswer) -> Any:
    return answer.action if answer.content is None else {answer.action: dict(answer.content)}


def _restart(step: RestartStep) -> dict[str, Any]:
    document: dict[str, Any] = {
        "fresh": step.fresh,
        "without": list(step.without),
        "with": list(step.with_tools),
        "parameters": {tool: _parameters(parameters) for tool, parameters in step.parameters.items()},
        "renamed": dict(step.renamed),
        "annotations": {tool: dict(said) for tool, said in step.annotations.items()},
    }
    return {key: value for key, value in document.items() if value}


def _decisions(decisions: Sequence[ScriptedDecision]) -> Any:
    labels = [decision.label for decision in decisions]
    if None not in labels and len({*labels}) == len(labels):
        return {decision.label: _decision(decision) for decision in decisions}
    return [_decision_entry(decision) for decision in decisions]


def _decision_entry(decision: ScriptedDecision) -> dict[str, Any]:
    if decision.label is not None:
        return {decision.label: _decision(decision)}
    stray = {"malformed": decision.address} if decision.malformed_address else {"unknown": decision.unknown_id}
    written = _decision(decision)
    return {**stray, **({"verdict": written} if isinstance(written, str) else written)}


def _decision(decision: ScriptedDecision) -> Any:
    rest = _present(
        tool=decision.tool,
        shows=decision.shows,
        shows_tool=decision.shows_tool,
        source=decision.source,
        invalid=decision.invalid,
        unknown_tool=decision.unknown_tool,
    )
    match decision.verdict:
        case "edit":
            return {"edit": decision.arguments or {}, **rest}
        case "raw":
            return {"raw": decision.raw, **rest}
        case "reject" | "never" if decision.reason is not None:
            return {decision.verdict: decision.reason, **rest}
    return {"verdict": decision.verdict, **rest} if rest else decision.verdict


# --- documents as text ------------------------------------------------------------------------------------------------

WIDTH = 118
"""Width of the lines of a file, within the 120 characters of a line of code."""

_PLAIN_TEXT = re.compile(r"[A-Za-z_](?:[A-Za-z0-9 _./'!?()+;$@-]|,(?= ))*(?<! )")
# Without `?`, which PyYAML without libyaml takes for a key inside of `{}` and `[]`.
_PLAIN_INLINE_TEXT = re.compile(r"[A-Za-z_](?:[A-Za-z0-9 _./'!()+;$@-])*(?<! )")
# YAML 1.1 reads these words as booleans or null.
_RESERVED_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off"))
_BLOCK_KEYS = {"model", "caller", "tools", "agents"}


def format_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML."""
    lines: list[str] = []
    for key, value in document.items():
        if key == "about":
            lines += ["about: >", *(f"  {line}" for line in _wrap_prose(value))]
        elif isinstance(value, Mapping) and key in _BLOCK_KEYS:
            lines += [f"{key}:", *(f"  {line}" for line in _format_mapping(value))]
        elif isinstance(value, list) and key in _BLOCK_KEYS:
            lines += [f"{key}:", *(f"  {line}" for element in value for line in _format_element(element))]
        else:
            lines.append(
                f"{key}: {_format_inline(value) if isinstance(value, Mapping | list) else _format_scalar(value)}"
            )
    return "\n".join(lines) + "\n"


def _wrap_prose(text: str) -> list[str]:
    """Wrap prose into lines, none of which looks like anything but prose."""
    return wrap(" ".join(escape_unprintable(text).split()), WIDTH - 2, break_long_words=False, break_on_hyphens=False)


def _format_mapping(value: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, inner in value.items():
        name = _format_scalar(str(key), in_line=True)
        line = (
            f"{name}: {_format_inline(inner)}"
            if isinstance(inner, Mapping | list)
            else f"{name}: {_format_scalar(inner)}"
        )
        if len(line) <= WIDTH or not inner or not isinstance(inner, Mapping | list):
            lines.append(line)
        elif isinstance(inner, Mapping):
            lines += [f"{name}:", *(f"  {inner_line}" for inner_line in _format_mapping(inner))]
        else:
            lines += [f"{name}:", *(f"  {inner_line}" for element in inner for inner_line in _format_element(element))]
    return lines


def _format_element(value: Any) -> list[str]:
    """Return an element of a list: `- ` and the lines of a mapping, or one line."""
    if not isinstance(value, Mapping) or not value:
        return [f"- {_format_inline(value)}"]
    lines = _format_mapping(value)
    if "tool" in value and len(_format_inline(value)) <= WIDTH:
        return [f"- {_format_inline(value)}"]
    return [f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines)]


def _format_inline(value: Any) -> str:
    match value:
        case Mapping():
            pairs = (
                f"{_format_scalar(str(key), in_line=True)}: {_format_inline(inner)}" for key, inner in value.items()
            )
            return f"{{{', '.join(pairs)}}}"
        case str():
            return _format_scalar(value, in_line=True)
        case Sequence():
            return f"[{', '.join(map(_format_inline, value))}]"
        case _:
            return _format_scalar(value)


def _format_scalar(value: Any, *, in_line: bool = False) -> str:
    match value:
        case str():
            plain = _PLAIN_INLINE_TEXT if in_line else _PLAIN_TEXT
            return value if plain.fullmatch(value) and value.lower() not in _RESERVED_WORDS else _quote(value)
        case float():
            # Without an exponent, which not every reader of YAML takes for a number.
            digits = format(Decimal(repr(value)), "f")
            return digits if "." in digits else f"{digits}.0"
        case _:
            return json.dumps(value)


def _quote(text: str) -> str:
    return '"' + escape_unprintable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def escape_unprintable(text: str) -> str:
    r"""Return a text with unprintable characters escaped, as in double quotes of YAML and JSON.

    >>> print(escape_unprintable("a\x1b[2J"))
    a\u001b[2J
    """
    return "".join(letter if letter.isprintable() else _escape_letter(letter) for letter in text)


def _escape_letter(letter: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter)
    return short or (f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}")
