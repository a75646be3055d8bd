"""Table of the rules of `lint` and the formats in which they are seen: a healthy specimen of each, and a broken one.

A healthy specimen is what a framework has stored. A broken one is the same document with one edit: an entry is taken
out, is there twice, comes last, has another id, other arguments, value or answer. What bad releases of frameworks
have broken themselves is in the corpus, and is named where it shows a rule.

Run from the root of a checkout: `python -m pytest_approvals.devtools.pages.lint_specimens > docs/lint-specimens.md`.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    ExecutionEntry,
    JsonPath,
    RequestEntry,
    ResultEntry,
    StoredConversation,
)
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector
from pytest_approvals.conversations.lint import RULES, lint_conversation
from pytest_approvals.devtools.corpus import load_cases
from pytest_approvals.errors import HistoryError

SPECIMENS = (
    Path("pytest_approvals/devtools/fuzz/specimens"),
    Path("tests/conversations/histories/stored"),
    Path("tests/conversations/histories/traces/stored"),
)
"""Where healthy specimens are: in folders `history.FORMAT`, and in files of any format."""

SESSIONS = Path("tests/conversations/histories/stores/stored")
"""Where the file sessions of Strands are, a folder for each."""

_KINDS: Mapping[type[ConversationEntry], str] = {
    CallEntry: "call",
    RequestEntry: "request",
    DecisionEntry: "decision",
    ResultEntry: "result",
    ExecutionEntry: "execution",
}

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "approval-before-execution": ("request", "decision"),
    "approved-runs": ("decision", "denied result"),
    "rejected-never-runs": ("decision", "result of a run"),
    "runs-at-most-once": ("execution",),
    "arguments-as-approved": ("request", "decided arguments"),
    "request-shows-the-call": ("request apart",),
    "request-ids-unique": ("request apart", "request with an id"),
    "call-ids-unique": ("call with an id of its own",),
    "pending-survives": ("request",),
    "nothing-left-pending": ("request",),
    "invalid-decision-refused": ("decision apart", "decision with a request id"),
    "contradiction-not-executed": ("decision apart",),
    "settled-stays-settled": ("decision apart", "decision with a request id"),
    "result-matches-its-call": ("result apart",),
    "time-order": ("execution",),
}
"""By rule: what a conversation has to show for it; see `_iter_facts`."""

_ONLY: Mapping[str, tuple[str, ...]] = {
    "flags-agree": ("meai",),
    "history-not-rewritten": ("agent_framework", "openai_agents", "langgraph", "strands"),
    "pending-survives": ("agent_framework", "openai_agents", "langgraph", "strands", "agno", "google_adk"),
}
"""By rule: the formats whose documents hold flags, or lists besides their messages, that can disagree."""

_OF_LINES = ("claude_code", "acp")
"""Formats whose documents are the lines of a file."""

_BY_ID = ("acp",)
"""Formats that update a call by its id, so that a second one of that id is the same."""

_BY_CALL = ("openai_agents", "langgraph")
"""Formats that keep one decision for each call or each action, and not the id of a request with it."""

_BY_CONTENT = ("langgraph", "strands")
"""Formats whose requests are found by what they show, or show nothing but the id of their call: it cannot differ."""

_BY_RESULT = ("claude_code",)
"""Formats that keep a decision with the result of its call, and name requests after their calls."""

_FLAGS = (("true", "false"), ("false", "true"))

_OTHER_ID = "some-other-id"


@dataclass(slots=True)
class Broken:
    """What breaks a rule in a format.

    Attributes:
        specimen: The name of the healthy file.
        edit: What was changed in it.
    """

    specimen: str
    edit: str


@dataclass(slots=True)
class FormatSpecimens:
    """The specimens of one format.

    Attributes:
        healthy: The names of the files in which no rule is broken.
        shown: What they show: kinds of entries, and what `_iter_facts` finds.
        broken: By rule: the first edit that breaks it.
        stored: By rule: a case of the corpus, which a bad release has broken.
    """

    healthy: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    broken: dict[str, Broken] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)


def collect() -> dict[str, FormatSpecimens]:
    """Return the specimens by format."""
    found = {name: FormatSpecimens() for name in FORMATS}
    for name, document in _iter_documents():
        conversation = _read(document)
        if conversation is None or _broken_rules(conversation):
            continue
        specimens = found[conversation.format]
        specimens.healthy.append(name)
        specimens.shown.update(_iter_facts(conversation))
        for edit, edited in _iter_edits(document, conversation):
            read = _read(edited)
            for rule in _broken_rules(read) if read is not None and read.format == conversation.format else ():
                specimens.broken.setdefault(rule, Broken(name, edit))
    for case in load_cases().values():
        for rule in case.findings if case.format else ():
            found[case.format].stored.setdefault(rule, case.name)
    return found


def _iter_facts(conversation: StoredConversation) -> Iterator[str]:
    """Yield what a conversation shows that a rule can be judged by.

    A request or a decision is apart if it has a place of its own in the document, and not that of what it is about, so
    that the two can differ. Formats that keep decisions by call have no id of a request in them, and no two of them.
    """
    places: dict[str | None, JsonPath] = {}
    for entry in conversation.entries:
        kind = _KINDS.get(type(entry))
        if kind is not None:
            yield kind
        path = conversation.path(entry)
        if isinstance(entry, CallEntry):
            places[entry.id] = path
            if conversation.format not in _BY_ID:
                yield "call with an id of its own"
        elif isinstance(entry, RequestEntry):
            if entry.replaces_call:
                yield "decided arguments"
            if path != places.get(entry.call_id, path) and conversation.format not in _BY_CONTENT:
                yield "request apart"
            if conversation.format not in _BY_RESULT:
                yield "request with an id"
            places[f"request {entry.id}"] = path
        elif isinstance(entry, DecisionEntry):
            if entry.arguments is not None:
                yield "decided arguments"
            if path != places.get(f"request {entry.id}") and conversation.format not in _BY_RESULT:
                yield "decision apart"
                if conversation.format not in _BY_CALL:
                    yield "decision with a request id"
        elif isinstance(entry, ExecutionEntry):
            yield "decided arguments"
        elif isinstance(entry, ResultEntry):
            yield {"denied": "denied result", "returned": "result of a run"}.get(entry.outcome, "result")
            if path != places.get(entry.call_id):
                yield "result apart"


def _iter_documents() -> Iterator[tuple[str, Any]]:
    """Yield each document with its name, those of fuzzing first, which are small."""
    names: set[str] = set()
    for folder in SPECIMENS:
        for path in sorted(folder.rglob("*.json*")):
            is_history = path.parent.name.startswith("history.") or "stored" in path.parts
            group = "traces" if "traces" in path.parts else path.parent.name.removeprefix("history.")
            name = f"{group}/{path.name}"
            if not is_history or name in names or path.suffix not in (".json", ".jsonl"):
                continue
            names.add(name)
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".jsonl":
                lines = [json.loads(line) for line in text.splitlines() if line.strip()]
                yield name, lines if group in ("stored", *_OF_LINES) else {"spans": lines}
            else:
                yield name, json.loads(text)
    for path in sorted(SESSIONS.glob("strands_*/session_*/agents/*/agent.json")):
        messages = sorted(path.parent.glob("messages/*.json"), key=lambda each: int(each.stem.rpartition("_")[2]))
        session = {"agent": json.loads(path.read_text(encoding="utf-8"))}
        session["messages"] = [json.loads(each.read_text(encoding="utf-8")) for each in messages]
        yield f"stores/{path.parents[3].name}", session


def _read(document: Any) -> StoredConversation | None:
    with suppress(HistoryError):
        return FormatDetector().read(document)
    return None


def _broken_rules(conversation: StoredConversation) -> list[str]:
    return [finding.rule for finding in lint_conversation(conversation) if finding.is_mistake]


# --- edits ------------------------------------------------------------------------------------------------------------


def _iter_edits(document: Any, conversation: StoredConversation) -> Iterator[tuple[str, Any]]:
    """Yield the document with one edit each, and what it is in words."""
    places = dict(_find_spans(document)) if conversation.format == "spans" else {}
    seen: set[tuple[str, str]] = set()
    for entry in conversation.entries:
        kind = _KINDS.get(type(entry))
        path = conversation.path(entry)
        path = places.get(str(path[0]), ()) if places else path
        if kind is None or not path:
            continue
        for what, change in _EDITS.items():
            edited = copy.deepcopy(document)
            key = (what, f"{kind} {path}")
            with suppress(LookupError, TypeError):
                if key not in seen and change(edited, path, entry):
                    seen.add(key)
                    yield f"{what} {kind}", edited
    executions = [entry for entry in conversation.entries if isinstance(entry, ExecutionEntry)]
    for before, after in pairwise(executions):
        edited = copy.deepcopy(document)
        spans = [places.get(str(conversation.path(entry)[0]), ()) for entry in (before, after)]
        if _exchange_values(edited, (spans[0], spans[1]), before, after):
            yield "the value of the other one in two executions", edited


def _exchange_values(
    document: Any, paths: tuple[JsonPath, JsonPath], before: ExecutionEntry, after: ExecutionEntry
) -> bool:
    """Let each of two executions return what the other one did, and the model be told the same as before."""
    texts = (before.value, after.value)
    if not all(paths) or not all(isinstance(text, str) and text for text in texts) or texts[0] == texts[1]:
        return False
    for path, (old, new) in zip(paths, (texts, texts[::-1]), strict=True):
        span = json.dumps(_parent(document, path)[path[-1]])
        _parent(document, path)[path[-1]] = json.loads(span.replace(old, new))
    return True


def _find_spans(value: Any, path: JsonPath = ()) -> Iterator[tuple[str, JsonPath]]:
    """Yield the paths of all spans, by their ids."""
    if isinstance(value, dict):
        span_id = value.get("spanId") or value.get("span_id") or value.get("id")
        context = value.get("context")
        span_id = context.get("span_id") if isinstance(context, dict) and "span_id" in context else span_id
        if isinstance(span_id, str) and path and isinstance(path[-1], int):
            yield span_id.removeprefix("0x"), path
        for name, inner in value.items():
            yield from _find_spans(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _find_spans(inner, (*path, place))


def _parent(document: Any, path: JsonPath) -> Any:
    for step in path[:-1]:
        document = document[step]
    return document


def _take_out(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    del _parent(document, path)[path[-1]]
    return True


def _double(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    parent = _parent(document, path)
    if not isinstance(parent, list):
        return False
    again = copy.deepcopy(parent[int(path[-1])])
    if isinstance(again, dict):
        # A span that is exported twice is read once; another execution has an id of its own.
        for name in ("spanId", "span_id", "id"):
            if name in again and ("trace_id" in again or "traceId" in again):
                again[name] = f"{again[name]}f"
    parent.insert(int(path[-1]) + 1, again)
    return True


def _put_last(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    parent = _parent(document, path)
    if not isinstance(parent, list) or path[-1] == len(parent) - 1:
        return False
    parent.append(parent.pop(int(path[-1])))
    return True


def _rename(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    old = getattr(entry, "call_id", None) or getattr(entry, "id", None)
    return old is not None and _replace_id(document, path, old)


def _rename_request(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    old = getattr(entry, "id", None)
    if isinstance(entry, RequestEntry) and old is not None and old.isdecimal():
        # The number of a message of JSON-RPC.
        return _replace_text(document, path, f'"id": {old},', '"id": 99,')
    return old is not None and _replace_id(document, path, old)


def _replace_id(document: Any, path: JsonPath, old: str) -> bool:
    """Replace an id, which a span may hold within a JSON text."""
    quotes = ('"', '\\"')
    return any(_replace_text(document, path, f"{mark}{old}{mark}", f"{mark}{_OTHER_ID}{mark}") for mark in quotes)


def _other_arguments(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    return any(
        _replace_text(document, path, old, new)
        for old, new in (('"amount": 5', '"amount": 95'), ('\\"amount\\": 5', '\\"amount\\": 95'),
                         ('\\"amount\\":5', '\\"amount\\":95'), ('"order": 7', '"order": 71'))
    )  # fmt: skip


def _told_decision(document: Any, path: JsonPath) -> dict[str, Any] | None:
    """Return what a line of a transcript of Claude Code says about the decision."""
    entry = _parent(document, path)[path[-1]]
    told = entry.get("permissionDecision") if isinstance(entry, dict) else None
    return told if isinstance(told, dict) else None


def _swapped(one: str, other: str) -> tuple[tuple[str, str], ...]:
    return (f'"{one}"', f'"{other}"'), (f'"{other}"', f'"{one}"')


def _opposite(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    answers = [(f'"{name}": {old}', f'"{name}": {new}') for name in ("approved", "confirmed") for old, new in _FLAGS]
    pairs = (*answers, *_FLAGS, *_swapped("approve", "reject"))
    if not isinstance(entry, DecisionEntry):
        return False
    told = _told_decision(document, path)
    if told is not None:
        told["decision"] = "reject" if told["decision"] == "accept" else "accept"
        return True
    chosen = re.search(r'"optionId": "(once|allow-once|reject)"', json.dumps(_parent(document, path)[path[-1]]))
    if chosen is not None and '"options"' not in chosen.string:
        # OpenCode and Claude Code call the options of a question differently.
        other = "reject" if chosen[1] != "reject" else "once" if '"once"' in json.dumps(document) else "allow-once"
        return _replace_text(document, path, chosen[0], f'"optionId": "{other}"')
    if "approved" in path:
        # A map of approvals keeps the ids of the calls under the answer.
        held = _parent(document, path[: path.index("approved") + 1])
        held["approved"], held["rejected"] = held.get("rejected", []), held["approved"]
        return True
    return _swap_answers(document, path) or any(_replace_text(document, path, old, new) for old, new in pairs)


def _reflag(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    flags = [(f'"informationalOnly": {old}', f'"informationalOnly": {new}') for old, new in _FLAGS]
    return isinstance(entry, DecisionEntry) and any(_replace_text(document, path, *each) for each in flags)


def _contradict(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    if "approved" in path and isinstance(entry, DecisionEntry):
        held = _parent(document, path[: path.index("approved") + 1])
        held["rejected"] = [*(held.get("rejected") or []), *held["approved"]]
        return True
    return isinstance(entry, DecisionEntry) and _double(document, path, entry) and _opposite(document, path, entry)


def _contradict_later(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    """Repeat the span of a decision at the end of the trace, with the opposite answer."""
    spans = _parent(document, path)
    if not (isinstance(entry, DecisionEntry) and isinstance(spans, list) and isinstance(spans[int(path[-1])], dict)):
        return False
    again = copy.deepcopy(spans[int(path[-1])])
    if "startTimeUnixNano" not in again:
        return False
    again["spanId"] = f"{int(again['spanId'], 16) ^ 1:016x}"
    again["startTimeUnixNano"] = str(max(int(span["endTimeUnixNano"]) for span in spans) + 1_000_000)
    spans.append(again)
    return _swap_answers(document, (*path[:-1], len(spans) - 1))


def _swap_answers(document: Any, path: JsonPath) -> bool:
    """Turn all answers in a span, which holds its messages as a text."""
    parent = _parent(document, path)
    text = json.dumps(parent[path[-1]])
    swapped = re.sub(r'(\\+"approved\\+": )(true|false)', lambda found: found[1] + dict(_FLAGS)[found[2]], text)
    parent[path[-1]] = json.loads(swapped)
    return swapped != text


def _share_id(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    """Give a request in a list the id of the one before it."""
    step = next((at for at, each in enumerate(path) if each == "requirements"), None)
    place = path[step + 1] if step is not None else 0
    if step is None or not isinstance(place, int) or place < 1 or not isinstance(entry, RequestEntry):
        return False
    requirements = _parent(document, path[: step + 2])
    requirements[place]["id"] = requirements[place - 1]["id"]
    return True


def _tell_rejected(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    """Put what OpenAI Agents tells of a rejected call in the place of what a call returned."""
    told = '"Tool execution was not approved."'
    return isinstance(entry, ResultEntry) and _replace_text(document, path, '"paid 5"', told)


def _begin_early(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    span = _parent(document, path)[path[-1]]
    if not isinstance(span, dict):
        return False
    for name in ("startTimeUnixNano", "start_time", "startTime", "started_at", "start_timestamp"):
        if name in span:
            span[name] = "1000000000" if name == "startTimeUnixNano" else "2001-01-01T00:00:00Z"
            return True
    return False


def _unanswer(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    if not isinstance(entry, DecisionEntry):
        return False
    if "approved" in path or "rejected" in path:
        return _take_out(document, path, entry)
    if _told_decision(document, path) is not None:
        del _parent(document, path)[path[-1]]["permissionDecision"]
        return True
    answers = ('"confirmed": true', '"confirmed": false', '"confirmation": true', '"confirmation": false',
               '"approved": true', '"approved": false')  # fmt: skip
    names = {answer: f"{answer.partition(':')[0]}: null" for answer in answers}
    done = [
        _replace_text(document, path[:-1] if path[-1] == "tool_execution" else path, *each) for each in names.items()
    ]
    return any(done)


def _unfinish(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    """Let a call run on whose part of a message says that it is done."""
    part = _parent(document, path)[path[-1]]
    state = part.get("state") if isinstance(part, dict) and isinstance(entry, ResultEntry) else None
    if not isinstance(state, dict) or "output" not in state:
        return False
    part["state"] = {"status": "running", "input": state.get("input")}
    return True


def _say_more(document: Any, path: JsonPath, entry: ConversationEntry) -> bool:
    """Let the user say once more, at the end, what they said first."""
    messages = next((inner for inner in _iter_lists(document) if _is_user(inner[0])), None)
    if messages is None or not isinstance(entry, RequestEntry):
        return False
    messages.append(copy.deepcopy(messages[0]))
    return True


def _is_user(message: Any) -> bool:
    held = message.get("message", message) if isinstance(message, dict) else None
    return isinstance(held, dict) and held.get("role") == "user"


def _iter_lists(value: Any) -> Iterator[list[Any]]:
    """Yield the lists in a document that are not empty, from the outside in."""
    if isinstance(value, list) and value:
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _iter_lists(inner)


def _replace_text(document: Any, path: JsonPath, old: str, new: str) -> bool:
    """Replace a text in the JSON of the value at a path; return whether it was there."""
    parent = _parent(document, path)
    text = json.dumps(parent[path[-1]])
    if old not in text:
        return False
    parent[path[-1]] = json.loads(text.replace(old, new))
    return True


_EDITS = {
    "without the": _take_out,
    "twice the": _double,
    "last comes the": _put_last,
    "another call id in the": _rename,
    "another id of the": _rename_request,
    "other arguments in the": _other_arguments,
    "the opposite in the": _opposite,
    "another flag in the": _reflag,
    "a contradiction of the": _contradict,
    "later comes the opposite of the": _contradict_later,
    "years earlier begins the": _begin_early,
    "no answer in the": _unanswer,
    "still running without the": _unfinish,
    "the words of a rejection in the": _tell_rejected,
    "the id of the one before in the": _share_id,
    "a message of the user after the": _say_more,
}


# --- the page ---------------------------------------------------------------------------------------------------------


def format_page(found: Mapping[str, FormatSpecimens]) -> str:
    """Return the text of the page."""
    names = list(found)
    lines = [
        "# Rules of lint and their specimens",
        "",
        "Which [rule](stored-conversations.md#rules) is shown in which format. A healthy specimen is what a framework",
        "has stored, and nothing is found in it. A broken one is the same document with one edit, and the rule is",
        "found. C is a conversation that a bad release of the framework has broken itself ([corpus](corpus.md)), E an",
        "edit. A dot stands for a format that shows nothing by which the rule could be judged: no requests, decisions,",
        "executions or lists, no arguments beside those of the call, no result that says whether the call was refused,",
        "or one place for what could differ. A ? stands for a rule that none of these edits breaks.",
        "",
        "Made by `python -m pytest_approvals.devtools.pages.lint_specimens > docs/lint-specimens.md`.",
        "",
        f"| rule | {' | '.join(f'`{name}`' for name in names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for rule in RULES:
        cells = [_format_cell(name, found[name], rule) for name in names]
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    lines += ["", "## Healthy specimens", "", "| format | files |", "|---|---|"]
    lines += [f"| `{name}` | {', '.join(f'`{file}`' for file in found[name].healthy) or 'none'} |" for name in names]
    head = "| rule | format | broken by | stored by a bad release |"
    lines += ["", "## Broken specimens", "", head, "|---|---|---|---|"]
    for rule in RULES:
        for name in names:
            broken, stored = found[name].broken.get(rule), found[name].stored.get(rule)
            if broken is None and stored is None:
                continue
            edit = "" if broken is None else f"`{broken.specimen}`, {broken.edit}"
            lines.append(f"| `{rule}` | `{name}` | {edit} | {f'`{stored}`' if stored else ''} |")
    return "\n".join(lines) + "\n"


def _format_cell(name: str, specimens: FormatSpecimens, rule: str) -> str:
    marks = [mark for mark, held in (("C", specimens.stored), ("E", specimens.broken)) if rule in held]
    if marks:
        return " ".join(marks)
    is_shown = all(fact in specimens.shown for fact in _NEEDS.get(rule, ())) and name in _ONLY.get(rule, (name,))
    return "?" if is_shown else "·"


if __name__ == "__main__":
    sys.stdout.write(format_page(collect()))
