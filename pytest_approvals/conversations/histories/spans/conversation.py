"""Conversations of steps: the messages of all model inputs and outputs in order, each once, with what ran between.

An input repeats the messages before it. So a part of an input is new if the input has more of its kind than were known,
and everything in an output is new. An agent that runs inside of a tool has a conversation of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    DocumentNote,
    ExecutionEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import is_interruption, read_outcome
from pytest_approvals.conversations.histories.spans.parts import (
    CallPart,
    DecisionPart,
    Part,
    RequestPart,
    ResultPart,
    TextPart,
    plain_result,
)
from pytest_approvals.conversations.histories.spans.steps import SpanStep
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.journal.arguments import arguments_key, arguments_match

NAME = "spans"

TIME_ORDER = "time-order"
"""The rule that causes come before their effects."""

_SHOWS_DECISIONS = "agent_framework"
"""The source whose agents' inputs have the decisions."""

_START, _MODEL, _TOOL, _END = range(4)
"""The order of what begins at the same time."""

_MAX_DEPTH = 200


def build_conversations(
    steps: Sequence[SpanStep], *, says_missing_content: bool = True
) -> Iterator[StoredConversation]:
    """Yield the conversations of steps that belong together: one, and one for each agent that ran inside of a tool.

    Args:
        steps: The steps, in any order.
        says_missing_content: Whether the first one that lacks content gets a notice about that.
    """
    tree = _StepTree(steps)
    threads: dict[str, list[SpanStep]] = {}
    for step in sorted(steps, key=lambda step: (step.start, step.trace_id, step.span_id)):
        if step.kind != "other" and not tree.is_repeated(step):
            threads.setdefault(tree.thread_of(step), []).append(step)
    inside = {
        part.id
        for name, of_thread in threads.items()
        for step in (of_thread if name else ())
        for part in (*step.inputs, *step.outputs)
        if isinstance(part, RequestPart)
    }
    # The outermost agent's comes first.
    for name, of_thread in sorted(threads.items(), key=lambda thread: thread[0] != ""):
        conversation = _ThreadBuilder(of_thread, tree.ends, set() if name else inside).build()
        if not conversation.entries:
            continue
        conversation.name = name
        if conversation.lacks_content and says_missing_content:
            says_missing_content = False
            text = "texts, arguments and results were not captured, here or in others; ids and order are judged"
            conversation.notes.append(DocumentNote((), text))
        yield conversation


class _StepTree:
    """The steps of some traces with their ancestors.

    Attributes:
        ends: When the last step inside of each step began, by trace and span.
    """

    def __init__(self, steps: Sequence[SpanStep]) -> None:
        self._steps = {(step.trace_id, step.span_id): step for step in steps}
        # An execution that was stopped by a request inside of it may be traced without the id of its call.
        self._ids = {_called(step): step.call_id for step in steps if step.kind == "tool" and step.call_id is not None}
        self.ends: dict[tuple[str, str], int] = {}
        for step in steps:
            for outer in (step, *self._ancestors(step)):
                key = (outer.trace_id, outer.span_id)
                self.ends[key] = max(self.ends.get(key, 0), step.start)
        # Models that have a model inside of them that says as much.
        self._wrappers: set[tuple[str, str]] = set()
        for step in steps:
            model = self._find_outer(step) if step.kind == "model" and (step.outputs or step.inputs) else None
            if model is not None and model.kind == "model":
                self._wrappers.add((model.trace_id, model.span_id))

    def _ancestors(self, step: SpanStep) -> Iterator[SpanStep]:
        found: SpanStep | None = step
        for _ in range(_MAX_DEPTH):
            found = self._steps.get((step.trace_id, found.parent_id)) if found is not None else None
            if found is None or found is step:
                return
            yield found

    def _find_outer(self, step: SpanStep) -> SpanStep | None:
        return next((each for each in self._ancestors(step) if each.kind != "other"), None)

    def is_repeated(self, step: SpanStep) -> bool:
        """Return whether another instrumentation has a span of the same request or execution."""
        if (step.trace_id, step.span_id) in self._wrappers:
            return True
        outer = self._find_outer(step)
        if outer is None or outer.kind != step.kind:
            return False
        if step.kind == "model":
            return (outer.trace_id, outer.span_id) not in self._wrappers
        return step.kind == "tool" and (outer.tool == step.tool or (step.call_id or "") == outer.call_id)

    def thread_of(self, step: SpanStep) -> str:
        """Return the call, or the tool, in which a step ran; an empty text if in none."""
        outer = next((each for each in self._ancestors(step) if each.kind == "tool"), None)
        return "" if outer is None else f"in {outer.call_id or self._ids.get(_called(outer)) or outer.tool}"


def _called(step: SpanStep) -> Hashable:
    return step.tool, arguments_key(step.arguments)


@dataclass(slots=True, eq=False)
class _KnownCall:
    entry: CallEntry
    step: SpanStep
    request: RequestEntry | None = None
    ran: int | None = None
    has_result: bool = False


@dataclass(slots=True)
class _ThreadBuilder:
    """Builder of the conversation of one thread."""

    steps: Sequence[SpanStep]
    ends: Mapping[tuple[str, str], int]
    inside: AbstractSet[str] = frozenset()
    """The ids of the requests of agents inside of tools, which the outer one may show, too."""
    conversation: StoredConversation = field(default_factory=lambda: StoredConversation(format=NAME))
    calls: dict[str | None, list[_KnownCall]] = field(default_factory=dict)
    requests: dict[str, _KnownCall] = field(default_factory=dict)
    known: Counter[Hashable] = field(default_factory=Counter)
    deferred: dict[str, list[tuple[int, SpanStep]]] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    untold: dict[str, int] = field(default_factory=dict)
    """The places of results whose values their executions do not show, by call."""
    returned: dict[str, str] = field(default_factory=dict)
    """What executions returned, by call."""
    returners: dict[str, str] = field(default_factory=dict)
    """The first call whose execution returned a text, by text."""
    mistold: set[str] = field(default_factory=set)
    """The calls of which a model was told what another one returned."""

    def build(self) -> StoredConversation:
        conversation = self.conversation
        conversation.shows_executions = any(step.kind == "tool" for step in self.steps)
        telling = [step for step in self.steps if step.has_content]
        conversation.lacks_content = not telling
        conversation.shows_decisions = any(step.source == _SHOWS_DECISIONS and step.kind == "agent" for step in telling)
        with_model = {step.trace_id for step in telling if step.kind == "model" and (step.inputs or step.outputs)}
        self.promised = {
            part.id
            for step in self.steps
            for part in step.outputs
            if step.kind == "model" and isinstance(part, CallPart) and part.id is not None
        }
        models = [step for step in self.steps if step.kind == "model"]
        conversation.is_continuation = not models or _has_history(models[0])
        events: list[tuple[int, int, int]] = []
        for number, step in enumerate(self.steps):
            label = f"span {step.span_id} ({shorten(step.name)})" if step.name else f"span {step.span_id}"
            conversation.places[number] = ((step.span_id,), label)
            if step.problem:
                conversation.notes.append(DocumentNote((step.span_id,), step.problem, where=label))
            if step.kind == "agent":
                events += ((step.start, _START, number), (self.ends[step.trace_id, step.span_id], _END, number))
            else:
                events.append((step.start, _MODEL if step.kind == "model" else _TOOL, number))
        for _, kind, number in sorted(events):
            step = self.steps[number]
            is_only_source = step.trace_id not in with_model
            if kind == _MODEL:
                self._read_input(step.inputs, number, step)
                self._read_output(step.outputs, number, step)
            elif kind == _TOOL:
                self._read_tool(number, step)
            else:
                parts = step.inputs if kind == _START else step.outputs
                approvals = [part for part in parts if isinstance(part, RequestPart | DecisionPart)]
                # A run that ends with a pause has said nothing.
                said = [part for part in parts if not (isinstance(part, TextPart) and part.text == "")]
                self._read_input(said if is_only_source else approvals, number, step)
        conversation.length = len(self.steps)
        return conversation

    def _note(self, number: int, text: str, rule: str = "") -> None:
        path, where = self.conversation.places[number]
        self.conversation.notes.append(DocumentNote(path, text, rule, where))

    # --- messages ---

    def _read_input(self, parts: Sequence[Part], number: int, step: SpanStep) -> None:
        """Read messages of which most are known."""
        seen: Counter[Hashable] = Counter()
        called: list[_KnownCall] = []
        answered: set[str | None] = set()
        for part in parts:
            key = _key_of(part)
            seen[key] += 1
            if isinstance(part, ResultPart):
                answered.add(part.id)
            is_new = seen[key] > self.known[key]
            if is_new:
                self._add(part, number, step)
            elif isinstance(part, ResultPart) and part.value is not None and part.id in self.untold:
                place = self.untold.pop(part.id)
                told = self.conversation.entries[place]
                assert isinstance(told, ResultEntry)
                self.conversation.entries[place] = msgspec.structs.replace(told, value=plain_result(part.value))
            if isinstance(part, ResultPart) and step.kind == "model":
                self._compare_result(part, number)
            if isinstance(part, CallPart) and self.calls.get(part.id):
                called.append(self.calls[part.id][-1])
                if not is_new:
                    self._compare(part, called[-1], number)
        if step.kind == "model":
            for call in called:
                is_told = call.entry.id in answered or call.entry.id is None
                if not is_told and call.ran is not None and call.entry.message < number and step.start > call.ran:
                    text = f"call {quote(call.entry.id or '')} ran, and the model is shown the call without its result"
                    self._note(number, text, "result-delivered-once")

    def _read_output(self, parts: Sequence[Part], number: int, step: SpanStep) -> None:
        for part in parts:
            self._add(part, number, step)

    def _add(self, part: Part, number: int, step: SpanStep) -> None:
        self.known[_key_of(part)] += 1
        match part:
            case TextPart():
                self.conversation.entries.append(TextEntry(number, -1, part.role, part.text or ""))
            case CallPart():
                self._add_call(CallEntry(number, -1, part.id, part.tool, part.arguments), step)
            case ResultPart():
                self._add_result(part, number)
            case RequestPart():
                self._add_request(part, number, step)
            case DecisionPart():
                verdict = verdict_from_flag(part.approved)
                self.conversation.entries.append(
                    DecisionEntry(number, -1, part.id, verdict, None, part.call_id, part.tool, part.arguments)
                )

    def _compare(self, part: CallPart, call: _KnownCall, number: int) -> None:
        entry = call.entry
        if None not in (part.arguments, entry.arguments) and not arguments_match(part.arguments, entry.arguments):
            self._note(number, f"call {quote(part.id or '')} is shown with other arguments than the model sent")

    def _compare_result(self, part: ResultPart, number: int) -> None:
        """Note a result that another call returned: its own one may be told in other words, but not in those."""
        call_id = part.id
        if call_id is None or call_id not in self.returned or call_id in self.mistold or len(self.calls[call_id]) > 1:
            return
        told = _text_of_result(part.value)
        other = self.returners.get(told)
        # An empty text may stand for a result that was cleared.
        if told and told != self.returned[call_id] and other not in (None, call_id):
            self.mistold.add(call_id)
            text = f"the model is told of call {quote(call_id)} what call {quote(other or '')} returned"
            self._note(number, text, "result-matches-its-call")

    # --- calls ---

    def _imply_call(self, number: int, step: SpanStep) -> _KnownCall:
        """Add the call of an execution, since the span of the model that made it is missing or says nothing."""
        entry = CallEntry(number, -1, step.call_id, step.tool or "", step.arguments)
        self.known[_key_of(CallPart(entry.id, entry.tool, entry.arguments))] += 1
        return self._add_call(entry, step)

    def _add_call(self, entry: CallEntry, step: SpanStep) -> _KnownCall:
        call = _KnownCall(entry, step)
        self.calls.setdefault(entry.id, []).append(call)
        self.conversation.entries.append(entry)
        for number, tool in self.deferred.pop(entry.id or "", ()):
            self._run(call, number, tool)
        return call

    def _add_result(self, part: ResultPart, number: int) -> None:
        # A call of which nothing else is known is not judged by a result in a history that was cut.
        for call in self.calls.get(part.id, ())[-1:]:
            call.has_result = True
        outcome = part.outcome
        if self.conversation.shows_decisions and read_outcome(part.value) == "denied":
            outcome = "denied"
        value = plain_result(part.value)
        if outcome != "denied" and is_interruption(value):
            outcome = "interrupted"
        self.conversation.entries.append(ResultEntry(number, -1, part.id, part.tool, value, outcome))

    def _add_request(self, part: RequestPart, number: int, step: SpanStep) -> None:
        known = self.requests.get(part.id)
        if known is not None and not known.has_result:
            return
        call = self._find_requested(part)
        is_of_inner = part.id in self.inside and not self.conversation.shows_decisions
        if call is None and (part.tool is None or is_of_inner):
            return
        if call is not None and call.request is not None and call.entry.id in (call.request.id, part.id):
            # The execution that it has stopped and the run that it has ended show the same request.
            self.requests[part.id] = call
            return
        tool = part.tool or (call.entry.tool if call is not None else "")
        arguments = part.arguments if part.arguments is not None else call.entry.arguments if call is not None else None
        call_id = part.call_id or (call.entry.id if call is not None else None)
        request = RequestEntry(number, -1, part.id, call_id, tool, arguments, replaces_call=call is None)
        if call is not None:
            call.request = request
            self.requests[part.id] = call
        self.conversation.entries.append(request)

    def _find_requested(self, part: RequestPart) -> _KnownCall | None:
        if part.call_id is not None:
            return next(iter(self.calls.get(part.call_id, ())[-1:]), None)
        waiting = (call for calls in self.calls.values() for call in calls if call.request is None)
        shown = [call for call in waiting if call.entry.tool == part.tool and not call.has_result]
        same = (call for call in shown if arguments_match(call.entry.arguments, part.arguments))
        return next(same, None)

    # --- executions ---

    def _read_tool(self, number: int, step: SpanStep) -> None:
        for part in step.outputs:
            if isinstance(part, RequestPart):
                self._ask_within(part, number, step)
                continue
            if not self.calls.get(step.call_id):
                self._imply_call(number, step)
            self._add(part, number, step)
        if step.outcome is None:
            return
        call = self._find_called(step)
        if call is not None:
            self._run(call, number, step)
        elif step.call_id in self.promised:
            assert step.call_id is not None
            self.deferred.setdefault(step.call_id, []).append((number, step))
        else:
            self._run(self._imply_call(number, step), number, step)

    def _ask_within(self, part: RequestPart, number: int, step: SpanStep) -> None:
        """Add the request by which an execution was stopped, unless it is known: a call may be asked about again."""
        call = next(iter(self.calls.get(part.call_id, ())[-1:]), None) if part.call_id is not None else None
        call = call or self._find_called(step) or self._imply_call(number, step)
        if call.request is None and not call.has_result:
            entry = call.entry
            request_id = entry.id or part.id
            shown = part.arguments if part.arguments is not None else entry.arguments
            call.request = RequestEntry(number, -1, request_id, entry.id, part.tool or entry.tool, shown)
            self.requests[request_id] = call
            self.conversation.entries.append(call.request)

    def _find_called(self, step: SpanStep) -> _KnownCall | None:
        if step.call_id is not None:
            return next(iter(self.calls.get(step.call_id, ())[-1:]), None)
        of_tool = [call for calls in self.calls.values() for call in calls if call.entry.tool == step.tool]
        if step.arguments is not None:
            key = arguments_key(step.arguments)
            of_tool = [call for call in of_tool if arguments_key(call.entry.arguments) == key]
        waiting = [call for call in of_tool if call.ran is None]
        # A call that ran before runs again only if its turn had no newer one.
        return next(iter(waiting or of_tool[-1:]), None)

    def _run(self, call: _KnownCall, number: int, step: SpanStep) -> None:
        assert step.outcome is not None
        call_id = call.entry.id
        if step.start < call.step.start and call.step.kind == "model":
            self._check_clocks(call, number, step)
        if step.outcome != "denied":
            call.ran = step.start
            self.conversation.entries.append(
                ExecutionEntry(number, -1, call_id, step.tool or "", step.arguments, step.outcome, step.result)
            )
        outcome: ResultOutcome = step.outcome
        if call_id is not None and outcome == "returned" and step.result is not None:
            self.returned[call_id] = _text_of_result(step.result)
            self.returners.setdefault(self.returned[call_id], call_id)
        if not call.has_result:
            call.has_result = True
            self.known["result", call_id] += 1
            if step.result is None and call_id is not None:
                self.untold[call_id] = len(self.conversation.entries)
            self.conversation.entries.append(ResultEntry(number, -1, call_id, step.tool, step.result, outcome))

    def _check_clocks(self, call: _KnownCall, number: int, step: SpanStep) -> None:
        milliseconds = (call.step.start - step.start) / 1_000_000
        what = f"{shorten(call.entry.tool)} ran {milliseconds:.1f} ms before the model was asked for the call"
        if step.process == call.step.process:
            self._note(number, what, TIME_ORDER)
        else:
            self._note(number, f"{what}, in another process, so the clocks may disagree")


def _text_of_result(value: Any) -> str:
    plain = plain_result(value)
    return plain if isinstance(plain, str) else json.dumps(plain, sort_keys=True)


def _has_history(step: SpanStep) -> bool:
    """Return whether the first input holds calls or results of requests that are not in the trace."""
    return any(isinstance(part, CallPart | ResultPart) for part in step.inputs)


def _key_of(part: Part) -> Hashable:
    match part:
        case TextPart():
            return "text", part.role, part.text
        case CallPart():
            shown = ("call", part.tool, arguments_key(part.arguments))
            return shown if part.id is None else ("call", part.id)
        case ResultPart():
            return "result", part.id
        case RequestPart():
            return "request", part.id
        case DecisionPart():
            return "decision", part.id, part.approved
