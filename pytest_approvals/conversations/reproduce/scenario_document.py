"""Scenario file of a draft: its document and its text, as people write them.

The keys are in the usual order, calls are named c1, c2, ... A line holds what is small, a block what is not. Text is
written without quotes only if every reader of YAML takes it for text; otherwise in double quotes, with control
characters escaped. No tags, anchors or aliases are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.conversations.histories.journal import schema_type
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftResult,
    DraftTool,
    DraftTurn,
    ScenarioDraft,
)
from pytest_approvals.protocols.text import to_json

_PAST = {"approve": "approved", "reject": "rejected", "edit": "approved with other arguments", "always": "approved",
         "never": "rejected", "raw": "answered with something else"}  # fmt: skip
_NUMBERS = ("no", "one", "two", "three", "four", "five")


def build_document(
    draft: ScenarioDraft, *, about: str = "", reaches: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Build the document of a draft.

    Args:
        draft: The draft.
        about: The text below the title.
        reaches: What every run must reach.
    """
    names = _CallNames(draft)
    tools = _collect_tool_uses(draft)
    document: dict[str, Any] = {"title": build_title(draft)}
    if about:
        document["about"] = about
    if _has_equal_calls(draft, tools):
        document["equal_arguments"] = True
    if tools:
        document["tools"] = {name: _build_tool(draft.tools[name], use, names) for name, use in tools.items()}
    if agents := _build_agents(draft, tools, names):
        document["agents"] = agents
    document["model"] = [_build_reply(reply, tools, names) for reply in draft.replies()] or [{"say": "Done."}]
    document["caller"] = [_build_step(turn, names) for turn in draft.turns]
    if draft.vary:
        document["vary"] = list(draft.vary)
    if reaches:
        document["reaches"] = dict(reaches)
    return document


def build_title(draft: ScenarioDraft) -> str:
    """Return a sentence about what happens."""
    steps = list(_describe_steps(draft))
    if not steps:
        return "A message is sent"
    text = ", ".join(steps)
    return text[0].upper() + text[1:]


def _describe_steps(draft: ScenarioDraft) -> Iterator[str]:
    tools = {call.key: call.tool for call in draft.calls()}
    # The first message goes without saying.
    turns = (replace(turn, send=turn.send if place else None) for place, turn in enumerate(draft.turns))
    phrases = [part for turn in turns for part in _describe_turn(turn, tools)]
    for (singular, plural), alike in groupby(phrases):
        count = len(list(alike))
        yield singular if count == 1 else plural.format(_NUMBERS[count] if count < len(_NUMBERS) else count)


def _describe_turn(turn: DraftTurn, tools: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what happens, in the singular and the plural."""
    for decision in turn.decisions:
        done = _PAST[decision.verdict]
        if decision.call is None:
            yield f"what was never asked is {done}", f"what was never asked is {done}, {{}} times"
        else:
            changed = "changed " if decision.shows is not None or decision.shows_tool is not None else ""
            of = f"of {tools[decision.call]}"
            yield f"a {changed}call {of} is {done}", f"{{}} {changed}calls {of} are {done}"
    if turn.oracle:
        yield "what is pending is answered", "what is pending is answered"
    if turn.goes_on:
        yield "the agent goes on without an answer", "the agent goes on without an answer, {} times"
    if turn.send is not None:
        yield "a message follows", "{} messages follow"


def _build_agents(draft: ScenarioDraft, tools: Mapping[str, _ToolUse], names: _CallNames) -> dict[str, Any]:
    """Return the scripts of the agents that called tools run."""
    run = {draft.tools[name].runs for name in tools}
    return {
        name: {"model": [_build_reply(reply, tools, names, name) for reply in replies]}
        for name, replies in draft.agents.items()
        if name in run
    }


_OBJECT_PROPERTIES = frozenset(
    ("__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
     "toString", "valueOf")
)  # fmt: skip
"""Names that every object of JavaScript has: a call with such an id may be taken for one, so the id is kept."""


class _CallNames:
    """The ids and labels of the calls.

    The label of a call that another agent makes begins with that of the call that runs it.
    """

    def __init__(self, draft: ScenarioDraft) -> None:
        self._name_calls(draft)
        outer = {draft.tools[call.tool].runs: self.labels[call.key] for call in reversed(list(draft.calls()))}
        self.paths = dict(self.labels)
        for name, replies in draft.agents.items():
            for call in (call for reply in replies for call in reply.calls if name in outer):
                self.paths[call.key] = f"{outer[name]}/{self.labels[call.key]}"

    def _name_calls(self, draft: ScenarioDraft) -> None:
        self.labels: dict[str, str] = {}
        self.ids: dict[str, str | None] = {}
        self.repeated: set[str] = set()
        known: dict[str, str] = {}
        uses: dict[str, int] = {}
        without_id = 0
        stored = {call.id for call in draft.calls()} if draft.keeps_ids else frozenset()
        for call in draft.calls():
            fresh = f"c{len(known) + without_id + 1}"
            while fresh in stored:
                without_id += 1
                fresh = f"c{len(known) + without_id + 1}"
            if call.id is None:
                without_id += 1
                self.labels[call.key], self.ids[call.key] = fresh, None
                continue
            if call.id in known:
                self.repeated.add(call.key)
            name = known.setdefault(call.id, call.id if draft.keeps_ids else fresh)
            uses[name] = uses.get(name, 0) + 1
            self.ids[call.key] = call.id if call.id in _OBJECT_PROPERTIES else name
            self.labels[call.key] = name if uses[name] == 1 else f"{name}#{uses[name]}"


class _ToolUse:
    """The calls of one tool, and the edits of their arguments.

    Attributes:
        calls: The calls, in order.
        types: The types of the parameters that occur; if calls differ, `number` for numbers and else `string`.
        needed: The parameters that all calls have.
    """

    def __init__(self, calls: Sequence[DraftCall], edits: Sequence[Mapping[str, Any]]) -> None:
        self.calls = calls
        given = [call.arguments for call in calls if isinstance(call.arguments, Mapping)]
        found: dict[str, set[str]] = {}
        for arguments in (*given, *edits):
            for name, value in arguments.items():
                found.setdefault(name, set()).add(schema_type(value))
        self.types = {name: _merge_types(types) for name, types in found.items()}
        counts = Counter(name for arguments in given for name in arguments)
        self.needed = {name for name in found if counts[name] == len(given)}


def _merge_types(types: set[str]) -> str:
    if len(types) == 1:
        return next(iter(types))
    return "number" if types == {"integer", "number"} else "string"


def _collect_tool_uses(draft: ScenarioDraft) -> dict[str, _ToolUse]:
    """Return the uses of all tools by name, in the order of their first calls."""
    calls: dict[str, list[DraftCall]] = {}
    tools: dict[str, str] = {}
    for call in draft.calls():
        calls.setdefault(call.tool, []).append(call)
        tools[call.key] = call.tool
    edits: dict[str, list[Mapping[str, Any]]] = {name: [] for name in calls}
    for turn in draft.turns:
        for decision in turn.decisions:
            if decision.verdict == "edit" and decision.call in tools:
                edits[tools[decision.call]].append(decision.arguments)
    return {name: _ToolUse(calls[name], edits[name]) for name in calls}


def _build_reply(
    reply: DraftReply, tools: Mapping[str, _ToolUse], names: _CallNames, agent: str = MAIN
) -> dict[str, Any]:
    written: dict[str, Any] = {} if reply.thinks is None else {"thinks": reply.thinks}
    written |= {"redacted": True} if reply.redacted else {}
    written |= {} if reply.say is None else {"say": reply.say}
    calls = [_build_call(call, tools, names, agent) for call in reply.calls]
    return written | ({"calls": calls} if calls else {})


def _build_call(call: DraftCall, tools: Mapping[str, _ToolUse], names: _CallNames, agent: str) -> dict[str, Any]:
    written: dict[str, Any] = {} if call.thinks is None else {"thinks": call.thinks}
    written["id"] = names.ids[call.key]
    if names.ids[call.key] is None or names.ids[call.key] in _OBJECT_PROPERTIES:
        written["label"] = names.labels[call.key]
    written["tool"] = call.tool.removeprefix(f"{agent}/")
    if call.arguments:
        written["arguments"] = _coerce_arguments(call, tools)
    return written | ({"repeats": True} if call.key in names.repeated else {})


def _build_step(turn: DraftTurn, names: _CallNames) -> dict[str, Any]:
    step: dict[str, Any] = {}
    if turn.oracle:
        return {"oracle": True}
    if turn.goes_on:
        return {"go_on": True}
    if turn.send is not None:
        step["send"] = turn.send
    if turn.decisions:
        step["decide"] = _build_decisions(turn.decisions, names)
    return step


def _build_decisions(decisions: Sequence[DraftDecision], names: _CallNames) -> Any:
    keys = [decision.call for decision in decisions]
    entries = [_build_decision_entry(decision, names) for decision in decisions]
    # A mapping has no place for a decision without a call, nor for two about the same one.
    if None in keys or len(set(keys)) < len(keys):
        return entries
    return {label: verdict for entry in entries for label, verdict in entry.items()}


def _build_decision_entry(decision: DraftDecision, names: _CallNames) -> dict[str, Any]:
    if decision.call is None:
        verdict = decision.verdict if decision.verdict in ("approve", "reject") else "approve"
        return {"unknown": decision.unknown, "verdict": verdict} | _build_shown(decision)
    return {names.paths[decision.call]: _build_decision(decision)}


def _build_decision(decision: DraftDecision) -> Any:
    written, shown = _build_verdict(decision), _build_shown(decision)
    if not shown:
        return written
    return (written if isinstance(written, dict) else {"verdict": written}) | shown


def _build_shown(decision: DraftDecision) -> dict[str, Any]:
    shown = {"shows": decision.shows, "shows_tool": decision.shows_tool}
    return {name: value for name, value in shown.items() if value is not None}


def _build_verdict(decision: DraftDecision) -> Any:
    if decision.verdict in ("edit", "raw"):
        return {decision.verdict: decision.arguments}
    if decision.verdict in ("reject", "never") and decision.text:
        return {decision.verdict: decision.text}
    return decision.verdict


# --- tools ------------------------------------------------------------------------------------------------------------


def _build_tool(tool: DraftTool, use: _ToolUse, names: _CallNames) -> dict[str, Any]:
    if tool.hands_over_to is not None:
        return {"hands_over_to": tool.hands_over_to}
    if tool.runs is not None:
        return {"parameters": {"input": "string"}, "runs": tool.runs}
    written: dict[str, Any] = {"kind": tool.kind, "server": tool.server or "server"} if tool.kind != "function" else {}
    if tool.gated:
        written["approval"] = "always"
    if parameters := {name: kind + ("" if name in use.needed else "?") for name, kind in use.types.items()}:
        written["parameters"] = parameters
    return written | _build_behaviour(use.calls, names)


def _coerce_arguments(call: DraftCall, tools: Mapping[str, _ToolUse]) -> Mapping[str, Any] | str:
    if isinstance(call.arguments, str):
        return call.arguments
    types = tools[call.tool].types
    return {name: _coerce_value(value, types[name]) for name, value in call.arguments.items()}


def _coerce_value(value: Any, kind: str) -> Any:
    return to_json(value) if kind == "string" and not isinstance(value, str) else value


def _build_behaviour(calls: Sequence[DraftCall], names: _CallNames) -> dict[str, Any]:
    """Return the behaviour of a tool: one for all calls if they agree, else one per call."""
    results = {call.key: _build_result(call, call.result) for call in calls if call.result is not None}
    if not results:
        return {}
    if len({json.dumps(result, sort_keys=True, default=str) for result in results.values()}) == 1:
        return next(iter(results.values()))
    return {"calls": {names.labels[key]: result for key, result in results.items()}}


def _build_result(call: DraftCall, result: DraftResult) -> dict[str, Any]:
    if result.is_error:
        return {"raises": str(result.value)}
    return {"returns": _build_template(result.value, call.arguments)}


def _build_template(value: Any, arguments: Mapping[str, Any] | str) -> Any:
    """Return a result with `{parameter}` in place of repeated arguments."""
    if isinstance(value, Mapping):
        return {_replace_braces(str(name)): _build_template(inner, arguments) for name, inner in value.items()}
    if isinstance(value, list):
        return [_build_template(inner, arguments) for inner in value]
    if not isinstance(value, str):
        return value
    # A brace of the result itself would be read as a parameter.
    text = _replace_braces(value)
    arguments_of_calls = arguments if isinstance(arguments, Mapping) else {}
    # The longest first, because one argument may contain another.
    for name, argument in sorted(arguments_of_calls.items(), key=lambda item: -len(str(item[1]))):
        if isinstance(argument, str | int) and not isinstance(argument, bool) and str(argument):
            text = re.sub(rf"(?<![\w{{]){re.escape(str(argument))}(?![\w}}])", f"{{{name}}}", text)
    return text


def _replace_braces(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")


def _has_equal_calls(draft: ScenarioDraft, tools: Mapping[str, _ToolUse]) -> bool:
    seen = [(call.tool, json.dumps(_coerce_arguments(call, tools), sort_keys=True)) for call in draft.calls()]
    return len(set(seen)) < len(seen)
