"""
A draft as the document of a scenario file: the keys in the order in which people write them, calls named c1, c2, ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pytest_approvals.histories.tools import json_type
from pytest_approvals.protocols.text import json_text

from .draft import Answer, Call, Draft, Result, Turn

_PAST = {"approve": "approved", "reject": "rejected", "edit": "approved with other arguments", "always": "approved",
         "never": "rejected", "raw": "answered with something else"}  # fmt: skip
_NUMBERS = ("no", "one", "two", "three", "four", "five")


def document_of(draft: Draft, *, about: str = "", reaches: Mapping[str, int] | None = None) -> dict[str, Any]:
    """
    Gives the document.

    Arguments:
        about: What stands below the title.
        reaches: What must happen in every run.
    """
    names = _Names(draft)
    calls = list(draft.calls())
    document: dict[str, Any] = {"title": title_of(draft)}
    if about:
        document["about"] = about
    if _some_are_equal(draft):
        document["equal_arguments"] = True
    if calls:
        document["tools"] = {name: _tool(draft, name, names) for name in dict.fromkeys(call.tool for call in calls)}
    document["model"] = [_reply(reply.say, reply.calls, draft, names) for reply in draft.replies()] or [
        {"say": "Done."}
    ]
    document["caller"] = [_step(turn, names) for turn in draft.turns]
    if draft.vary:
        document["vary"] = list(draft.vary)
    if reaches:
        document["reaches"] = dict(reaches)
    return document


def title_of(draft: Draft) -> str:
    """Gives a sentence about what happens."""
    steps = list(_told(draft))
    if not steps:
        return "A message is sent"
    text = ", ".join(steps)
    return text[0].upper() + text[1:]


def _told(draft: Draft) -> Iterator[str]:
    tools = {call.key: call.tool for call in draft.calls()}
    said = [part for turn in draft.turns[1:] for part in _told_turn(turn, tools)]
    for (one, many), alike in groupby(said):
        count = len(list(alike))
        yield one if count == 1 else many.format(_NUMBERS[count] if count < len(_NUMBERS) else count)


def _told_turn(turn: Turn, tools: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Gives what happens, as it is said of one thing and of many."""
    for answer in turn.answers:
        done = _PAST[answer.verdict]
        if answer.call is None:
            yield f"what was never asked is {done}", f"what was never asked is {done}, {{}} times"
        else:
            yield f"a call of {tools[answer.call]} is {done}", f"{{}} calls of {tools[answer.call]} are {done}"
    if turn.oracle:
        yield "what is pending is answered", "what is pending is answered"
    if turn.send is not None:
        yield "a message follows", "{} messages follow"


class _Names:
    """The ids and labels of the calls."""

    def __init__(self, draft: Draft) -> None:
        self.labels: dict[str, str] = {}
        self.ids: dict[str, str | None] = {}
        self.repeated: set[str] = set()
        known: dict[str, str] = {}
        uses: dict[str, int] = {}
        for call in draft.calls():
            fresh = f"c{len(known) + sum(each is None for each in self.ids.values()) + 1}"
            if call.id is None:
                self.labels[call.key], self.ids[call.key] = fresh, None
                continue
            if call.id in known:
                self.repeated.add(call.key)
            name = known.setdefault(call.id, fresh)
            uses[name] = uses.get(name, 0) + 1
            self.ids[call.key] = name
            self.labels[call.key] = name if uses[name] == 1 else f"{name}#{uses[name]}"


def _reply(say: str | None, calls: Sequence[Call], draft: Draft, names: _Names) -> dict[str, Any]:
    reply: dict[str, Any] = {} if say is None else {"say": say}
    return reply | ({"calls": [_call(call, draft, names) for call in calls]} if calls else {})


def _call(call: Call, draft: Draft, names: _Names) -> dict[str, Any]:
    written: dict[str, Any] = {"id": names.ids[call.key]}
    if names.ids[call.key] is None:
        written["label"] = names.labels[call.key]
    written["tool"] = call.tool
    if call.arguments:
        written["arguments"] = _fitting(call, draft)
    return written | ({"repeats": True} if call.key in names.repeated else {})


def _step(turn: Turn, names: _Names) -> dict[str, Any]:
    step: dict[str, Any] = {}
    if turn.oracle:
        return {"oracle": True}
    if turn.send is not None:
        step["send"] = turn.send
    if turn.answers:
        step["decide"] = _decisions(turn.answers, names)
    return step


def _decisions(answers: Sequence[Answer], names: _Names) -> Any:
    keys = [answer.call for answer in answers]
    if None in keys or len(set(keys)) < len(keys):
        return [_entry(answer, names) for answer in answers]
    return {label: decision for answer in answers for label, decision in _entry(answer, names).items()}


def _entry(answer: Answer, names: _Names) -> dict[str, Any]:
    if answer.call is None:
        verdict = answer.verdict if answer.verdict in ("approve", "reject") else "approve"
        return {"unknown": answer.unknown, "verdict": verdict}
    return {names.labels[answer.call]: _decision(answer)}


def _decision(answer: Answer) -> Any:
    if answer.verdict in ("edit", "raw"):
        return {answer.verdict: answer.arguments}
    if answer.verdict in ("reject", "never") and answer.text:
        return {answer.verdict: answer.text}
    return answer.verdict


# --- tools ------------------------------------------------------------------------------------------------------------


def _tool(draft: Draft, name: str, names: _Names) -> dict[str, Any]:
    tool = draft.tools[name]
    calls = [call for call in draft.calls() if call.tool == name]
    written: dict[str, Any] = {"kind": tool.kind, "server": tool.server or "server"} if tool.kind != "function" else {}
    if tool.gated:
        written["approval"] = "always"
    if parameters := _parameters(draft, name):
        written["parameters"] = parameters
    return written | _behaviour(calls, names)


def _parameters(draft: Draft, name: str) -> dict[str, str]:
    given = [call.arguments for call in draft.calls() if call.tool == name and isinstance(call.arguments, Mapping)]
    edits = [each.arguments for turn in draft.turns for each in turn.answers if _edits(each, draft, name)]
    found = dict.fromkeys(parameter for arguments in (*given, *edits) for parameter in arguments)
    return {
        parameter: _type(draft, name, parameter) + ("" if all(parameter in each for each in given) else "?")
        for parameter in found
    }


def _edits(answer: Answer, draft: Draft, name: str) -> bool:
    tools = {call.key: call.tool for call in draft.calls()}
    return answer.verdict == "edit" and answer.call is not None and tools[answer.call] == name


def _type(draft: Draft, name: str, parameter: str) -> str:
    """Gives the type of a parameter; where calls differ, it is text, but a number where all are numbers."""
    given = [call.arguments for call in draft.calls() if call.tool == name and isinstance(call.arguments, Mapping)]
    edits = [each.arguments for turn in draft.turns for each in turn.answers if _edits(each, draft, name)]
    types = {json_type(arguments[parameter]) for arguments in (*given, *edits) if parameter in arguments}
    if len(types) == 1:
        return types.pop()
    return "number" if types == {"integer", "number"} else "string"


def _fitting(call: Call, draft: Draft) -> Mapping[str, Any] | str:
    if isinstance(call.arguments, str):
        return call.arguments
    types = {name: _type(draft, call.tool, name) for name in call.arguments}
    return {name: _as_type(value, types[name]) for name, value in call.arguments.items()}


def _as_type(value: Any, kind: str) -> Any:
    return json_text(value) if kind == "string" and not isinstance(value, str) else value


def _behaviour(calls: Sequence[Call], names: _Names) -> dict[str, Any]:
    """Gives what the tool does: one thing for all calls where they agree, otherwise what each call does."""
    told = {call.key: _does(call, call.result) for call in calls if call.result is not None}
    if not told:
        return {}
    if len({json.dumps(each, sort_keys=True, default=str) for each in told.values()}) == 1:
        return next(iter(told.values()))
    return {"calls": {names.labels[key]: each for key, each in told.items()}}


def _does(call: Call, result: Result) -> dict[str, Any]:
    if result.raised:
        return {"raises": str(result.value)}
    return {"returns": _template(result.value, call.arguments)}


def _template(value: Any, arguments: Mapping[str, Any] | str) -> Any:
    """Gives a result with `{parameter}` where it repeats an argument."""
    if isinstance(value, Mapping):
        return {_without_braces(str(name)): _template(inner, arguments) for name, inner in value.items()}
    if isinstance(value, list):
        return [_template(inner, arguments) for inner in value]
    if not isinstance(value, str):
        return value
    text = _without_braces(value)
    given = arguments if isinstance(arguments, Mapping) else {}
    for name, argument in sorted(given.items(), key=lambda item: -len(str(item[1]))):
        if isinstance(argument, str | int) and not isinstance(argument, bool) and str(argument):
            text = re.sub(rf"(?<![\w{{]){re.escape(str(argument))}(?![\w}}])", f"{{{name}}}", text)
    return text


def _without_braces(text: str) -> str:
    return text.replace("{", "(").replace("}", ")")


def _some_are_equal(draft: Draft) -> bool:
    seen = [(call.tool, json.dumps(_fitting(call, draft), sort_keys=True)) for call in draft.calls()]
    return len(set(seen)) < len(seen)
