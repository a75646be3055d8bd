"""Validation of journals: what must hold of any journal before a check can judge it.

The harness keeps these rules for every agent. So a journal that breaks one was recorded wrongly, was cut off,
or was changed by hand, and its verdicts mean nothing. Turns may overlap and conversations may nest; no rule forbids
what an agent can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.journal.events import (
    AgentKilled,
    AgentStart,
    CallerHungUp,
    CloseTimeout,
    DecisionMade,
    DecisionsStaged,
    DiskFull,
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    Event,
    Header,
    HistoryTrimmed,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PendingCancelled,
    RunEnd,
    StateRestored,
    StateRewritten,
    StateSaved,
    StepSkipped,
    StoreRolledBack,
    StreamShown,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)

Listener = Callable[[Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalViolation:
    """A place where a journal breaks a rule.

    Attributes:
        text: What is wrong, in one sentence.
        witness: The positions of the events that show it.
    """

    text: str
    witness: tuple[int, ...]


class _ValidationRule:
    """Rules about one topic.

    Attributes:
        violations: The violations so far, those of other topics included.
        cut: The run did not come to its own end, so what was open may stay open.
    """

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        self.violations = violations
        self.cut = cut

    def listeners(self) -> Mapping[type[Event], Listener]:
        """Return, by event class, the method that takes its events."""
        raise NotImplementedError

    def end(self) -> None:
        """Handle the end of the journal."""

    def report(self, text: str, *witness: int) -> None:
        self.violations.append(JournalViolation(text=text, witness=witness))

    def check_word(self, event: Event, value: str, valid: Iterable[str]) -> None:
        if value not in valid:
            self.report(f"{event.kind} says {value!r}; valid: {', '.join(valid)}", event.n)

    def check_number(self, event: Event, name: str, number: int, count: int) -> None:
        if number != count:
            self.report(f"{name} {number} begins where {name} {count} is next", event.n)


_TURN_OUTCOMES = ("paused", "finished", "failed", "timeout")
_RUN_ENDS = ("completed", "left", "timeout", "interrupted", "broken")


class _FrameRule(_ValidationRule):
    """The header comes first and the end last, each once."""

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.header = 0
        self.ended = 0

    def listeners(self) -> Mapping[type[Event], Listener]:
        return {Header: self.begins, RunEnd: self.ends}

    def begins(self, event: Header) -> None:
        if self.header:
            self.report("a second header", self.header, event.n)
        self.header = event.n

    def ends(self, event: RunEnd) -> None:
        if self.ended:
            self.report("the run ends twice", self.ended, event.n)
        self.ended = event.n
        self.check_word(event, event.how, _RUN_ENDS)


class _TurnRule(_ValidationRule):
    """Turns are numbered as they begin; each ends once, in its session, in one of the valid ways, and is cut off once.

    Models are asked and tools are entered in turns only. If two turns share one live object, a stream cannot be
    attributed to one of them; so what is shown only needs some turn that runs. A recorder that sits at the model alone
    sees no turns.
    """

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.count = 0
        self.open: dict[int, TurnStart] = {}
        self.running: dict[str, int] = {}
        self.cut_off: dict[int, int] = {}
        self.seen = True

    def listeners(self) -> Mapping[type[Event], Listener]:
        inside: dict[type[Event], Listener] = dict.fromkeys((ModelRequest, ModelAnswer, ToolStart), self.happens)
        cut: dict[type[Event], Listener] = dict.fromkeys((CallerHungUp, AgentKilled), self.is_cut_off)
        ends: dict[type[Event], Listener] = {TurnStart: self.starts, TurnEnd: self.ends}
        return {Header: self.begins, StreamShown: self.shows, **ends, **inside, **cut}

    def begins(self, event: Header) -> None:
        self.seen = event.can_observe(TurnStart)

    def starts(self, event: TurnStart) -> None:
        self.count += 1
        self.check_number(event, "turn", event.turn, self.count)
        self.open[event.turn] = event
        self.running[event.session] = self.running.get(event.session, 0) + 1

    def ends(self, event: TurnEnd) -> None:
        start = self.open.pop(event.turn, None)
        if start is not None:
            self.running[start.session] -= 1
        if start is None or start.session != event.session:
            self.report(f"turn {event.turn} ends, but was not running in this session", event.n)
        self.check_word(event, event.outcome, _TURN_OUTCOMES)
        if event.requests and event.outcome != "paused":
            self.report("a turn has requests, but does not pause", event.n)
        if (event.outcome in ("failed", "timeout")) != (event.error is not None):
            self.report("a turn fails without an error, or has an error and does not fail", event.n)

    def is_cut_off(self, event: CallerHungUp | AgentKilled) -> None:
        if event.turn in self.cut_off:
            self.report(f"turn {event.turn} is cut off twice", self.cut_off[event.turn], event.n)
        self.cut_off[event.turn] = event.n

    def shows(self, event: StreamShown) -> None:
        if not 0 < event.turn <= self.count or not self.running.get(event.session):
            self.report(f"turn {event.turn} shows something, but is not running", event.n)

    def happens(self, event: Event) -> None:
        if self.seen and not self.running.get(event.session):
            self.report(f"{event.kind} while no turn of its session runs", event.n)

    def end(self) -> None:
        for start in self.open.values():
            if not self.cut:
                self.report(f"turn {start.turn} does not end", start.n)


_RESTORING_STARTS = ("copied", "restored", "fresh", "cold")
_BUILDING_STARTS = ("built", "session")
_HARNESS_VARIANT_KEYS = {"serialize", "resume", "history"}
"""Keys of the variant in the header of a journal that the harness made; only there each turn must be saved."""


class _AgentRule(_ValidationRule):
    """An agent is built before a session begins; one that is rebuilt restores a save of that session."""

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.built: dict[str, int] = {}
        self.empty: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.killed: dict[str, int] = {}
        self.saves: dict[tuple[str, str], StateSaved] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        kinds = (TurnStart, DecisionsStaged, PendingCancelled, HistoryTrimmed, DecisionMade)
        needing: dict[type[Event], Listener] = dict.fromkeys(kinds, self.goes_on)
        stored: dict[type[Event], Listener] = {
            StateSaved: self.saved,
            StateRewritten: self.rewritten,
            StateRestored: self.restored,
            StoreRolledBack: self.dies,
        }
        return {AgentStart: self.starts, AgentKilled: self.dies, **stored, **needing}

    def starts(self, event: AgentStart) -> None:
        self.check_word(event, event.how, (*_BUILDING_STARTS, *_RESTORING_STARTS))
        before = self.built.get(event.session)
        if event.how in _RESTORING_STARTS:
            if before is None:
                self.report("an agent is rebuilt in a session that has not begun", event.n)
            if event.session in self.empty:
                self.report("an agent is rebuilt twice", self.empty[event.session], event.n)
            self.empty[event.session] = event.n
        # An agent that is killed before anything was saved leaves nothing to restore.
        elif before is not None and (event.session not in self.killed or self._has_save(event.session)):
            self.report("a session begins twice", before, event.n)
        self.built[event.session] = event.n
        self.killed.pop(event.session, None)

    def dies(self, event: AgentKilled | StoreRolledBack) -> None:
        # The process of a session that was killed can have its store rolled back.
        if event.session not in self.killed or isinstance(event, AgentKilled):
            self.happens(event)
        self.killed[event.session] = event.n

    def _has_save(self, session: str) -> bool:
        return any(of == session for of, _ in self.saves)

    def goes_on(self, event: Event) -> None:
        self.happens(event)
        if event.session in self.lost:
            self.report(
                "a session continues although its rebuilt agent restored no save", self.lost[event.session], event.n
            )

    def happens(self, event: Event) -> None:
        if event.session not in self.built:
            self.report(f"{event.kind} in a session that has no agent", event.n)
        if event.session in self.killed:
            self.report("a session continues although its agent was killed", self.killed[event.session], event.n)
        if event.session in self.empty:
            self.report(
                "a session continues although its rebuilt agent restored no save", self.empty[event.session], event.n
            )

    def saved(self, event: StateSaved) -> None:
        self.happens(event)
        if event.error is None:
            self.saves[event.session, event.name] = event

    def rewritten(self, event: StateRewritten) -> None:
        # What was saved lies there without an agent, too.
        killed = self.killed.pop(event.session, None)
        self.happens(event)
        if killed is not None:
            self.killed[event.session] = killed
        if (event.session, event.name) not in self.saves:
            self.report(f"{event.name!r} is changed, but was not saved in this session", event.n)

    def restored(self, event: StateRestored) -> None:
        if self.empty.pop(event.session, None) is None:
            self.report("a save is restored, but no agent was rebuilt for it", event.n)
        self.lost.pop(event.session, None)
        if event.error is not None:
            self.lost[event.session] = event.n
        save = self.saves.get((event.session, event.name))
        if save is None:
            self.report(f"{event.name!r} is restored, but was not saved in this session", event.n)
        elif save.mode != event.mode:
            self.report(f"what was saved as {save.mode} is restored as {event.mode}", save.n, event.n)


class _SaveRule(_ValidationRule):
    """A session is saved between its turns, each time under another name.

    If its state is not kept alive, it is saved after each turn, and resumes from what was saved; of an agent that holds
    its requests, after each turn that finishes.
    """

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.lives_on = True
        self.known = False
        self.holds_requests = False
        self.running: dict[str, int] = {}
        self.unsaved: dict[str, int] = {}
        self.saved_at: dict[str, int] = {}
        self.taken_at: dict[str, int] = {}
        self.skipped: set[str] = set()
        self.built: set[str] = set()
        self.killed: set[str] = set()
        self.failing_once: set[str] = set()
        self.names: set[tuple[str, str]] = set()

    def listeners(self) -> Mapping[type[Event], Listener]:
        changing: dict[type[Event], Listener] = dict.fromkeys(
            (DecisionsStaged, PendingCancelled, HistoryTrimmed), self.changes
        )
        turns: dict[type[Event], Listener] = {TurnStart: self.turn_starts, TurnEnd: self.turn_ends}
        stored: dict[type[Event], Listener] = {
            StateSaved: self.saved,
            StateRestored: self.restored,
            StateRewritten: self.rewritten,
            StepSkipped: self.skips,
            AgentStart: self.builds,
            AgentKilled: self.dies,
            DiskFull: self.dies,
            StoreRolledBack: self.rolls_back,
        }
        return {Header: self.begins, RunEnd: self.ends, **stored, **turns, **changing}

    def begins(self, event: Header) -> None:
        self.known = event.variant.keys() >= _HARNESS_VARIANT_KEYS
        self.lives_on = not self.known or event.variant["serialize"] == "none"
        self.holds_requests = event.holds_requests

    def turn_starts(self, event: TurnStart) -> None:
        if not self.running.get(event.session) and event.session not in self.taken_at:
            self._is_saved(event.session, event.n)
        self.changes(event)
        self.running[event.session] = self.running.get(event.session, 0) + 1

    def turn_ends(self, event: TurnEnd) -> None:
        self.running[event.session] = self.running.get(event.session, 1) - 1
        if event.session in self.failing_once and event.outcome == "failed":
            self.killed.add(event.session)
        self.failing_once.discard(event.session)
        # What a process has not stored that was killed, or found the disk full, is gone.
        if event.session not in self.killed and not (self.holds_requests and event.outcome != "finished"):
            self.unsaved[event.session] = self.unsaved.get(event.session, 0) + 1

    def dies(self, event: AgentKilled | DiskFull) -> None:
        if isinstance(event, DiskFull) and event.once:
            self.failing_once.add(event.session)
        else:
            self.killed.add(event.session)

    def rolls_back(self, event: StoreRolledBack) -> None:
        """Note that the store holds an earlier save, which the session has to restore."""
        self.check_word(event, event.how, ("lost", "stale"))
        self.unsaved[event.session] = 0
        self.saved_at[event.session] = event.n
        self.taken_at.pop(event.session, None)

    def changes(self, event: Event) -> None:
        if self.known and event.session in self.saved_at:
            self.report("a session continues without its save", self.saved_at[event.session], event.n)
        self.taken_at.pop(event.session, None)

    def saved(self, event: StateSaved) -> None:
        if self.running.get(event.session):
            self.report("a session is saved while one of its turns runs", event.n)
        if (event.session, event.name) in self.names:
            self.report(f"{event.name!r} is saved twice", event.n)
        if event.error is None:
            self.names.add((event.session, event.name))
            self.saved_at[event.session] = event.n
        self.unsaved[event.session] = self.unsaved.get(event.session, 1) - 1
        self.taken_at.pop(event.session, None)

    def restored(self, event: StateRestored) -> None:
        self.saved_at.pop(event.session, None)
        # Two restarts in a row restore the same save.
        if event.session in self.taken_at and event.session not in self.skipped | self.built:
            self.report(
                "a save is restored twice, and nothing happens in between", self.taken_at[event.session], event.n
            )
        self.taken_at[event.session] = event.n
        self.skipped.discard(event.session)
        self.built.discard(event.session)

    def rewritten(self, event: StateRewritten) -> None:
        """Note that a save was changed: an agent that has done nothing since it restored it is restored anew."""
        if self.taken_at.pop(event.session, None) is not None:
            self.saved_at[event.session] = event.n

    def skips(self, event: StepSkipped) -> None:
        """Note that the save was restored for a step that cannot be played."""
        self.skipped.add(event.session)

    def builds(self, event: AgentStart) -> None:
        """Note that a caller has the save restored once more, or that a killed agent has a successor."""
        self.killed.discard(event.session)
        if event.again:
            self.built.add(event.session)

    def ends(self, event: RunEnd) -> None:
        for session in self.unsaved if not self.cut else ():
            self._is_saved(session, event.n)

    def _is_saved(self, session: str, n: int) -> None:
        if not self.lives_on and self.unsaved.get(session, 0) > 0:
            self.report("a turn ended, and its session was not saved", n)


_ELICITATION_ACTIONS = ("accept", "decline", "cancel")
_EXECUTION_ENDS = ("returned", "raised", "asked", "cancelled")
_VERDICTS = ("approve", "reject", "edit", "always", "never", "raw")
_SOURCES = ("held", "restored", "rebuilt")


class _ModelRule(_ValidationRule):
    """Each model request has exactly one answer, in its conversation; a nested conversation names a call.

    A model is offered no declared tool that its agent does not have.
    """

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.count = 0
        self.open: dict[int, ModelRequest] = {}
        self.labels: set[tuple[str, str]] = set()
        self.declared: set[str] = set()
        self.heirs: set[str] = set()
        self.tools: dict[str, set[str]] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        closing: dict[type[Event], Listener] = dict.fromkeys((ModelFailure, ModelRefusal, ModelExhausted), self.closes)
        frame: dict[type[Event], Listener] = {Header: self.declares, AgentStart: self.starts}
        return {**frame, ModelRequest: self.asks, ModelAnswer: self.answers, TurnEnd: self.lists, **closing}

    def declares(self, event: Header) -> None:
        self.declared = {name.rpartition("/")[2] for name in event.tools}
        self.heirs = {written["hands_over_to"] for written in event.tools.values() if written.get("hands_over_to")}

    def starts(self, event: AgentStart) -> None:
        self.tools[event.session] = {*event.tools}

    def asks(self, event: ModelRequest) -> None:
        self.count += 1
        self.check_number(event, "question", event.m, self.count)
        self.open[event.m] = event
        caller, _, agent = event.conversation.rpartition("/")
        if agent != event.agent and self.declared and not self.heirs & {event.agent, "*"}:
            self.report(f"the model of {event.agent!r} is asked in the conversation of {agent!r}", event.n)
        if caller and (event.session, caller) not in self.labels:
            self.report(f"a conversation begins in call {caller}, which no model made", event.n)
        missing = (self.declared & {*event.tools}) - self.tools.get(event.session, self.declared)
        if missing:
            self.report(f"the model is offered the tool {min(missing)}, which its agent does not have", event.n)

    def answers(self, event: ModelAnswer) -> None:
        self.closes(event)
        labels = [call["label"] for call in event.calls if call.get("label")]
        if len(labels) != len(event.calls) or len({*labels}) != len(labels):
            self.report("calls of one answer have no label, or share it", event.n)
        self.labels.update((event.session, label) for label in labels)

    def closes(self, event: ModelAnswer | ModelFailure | ModelRefusal | ModelExhausted) -> None:
        request = self.open.pop(event.m, None)
        if request is None:
            self.report(f"question {event.m} is answered, but was not open", event.n)
        elif (request.session, request.conversation) != (event.session, event.conversation):
            self.report(f"question {event.m} is answered in another conversation", request.n, event.n)

    def lists(self, event: TurnEnd) -> None:
        for request in event.requests:
            label = request.get("label")
            if label and (event.session, label) not in self.labels:
                self.report(f"a request is about call {label}, which no model made", event.n)

    def end(self) -> None:
        for request in self.open.values():
            if not self.cut:
                self.report(f"question {request.m} has no answer", request.n)


class _ToolRule(_ValidationRule):
    """Executions are numbered as they begin; each ends once, in its session."""

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.count = 0
        self.open: dict[int, ToolStart] = {}
        self.asking: set[int] = set()

    def listeners(self) -> Mapping[type[Event], Listener]:
        elicits: dict[type[Event], Listener] = dict.fromkeys((ElicitationAsked, ElicitationAnswered), self.elicits)
        return {ToolStart: self.starts, ToolEnd: self.ends, **elicits, ElicitationShown: self.is_shown}

    def elicits(self, event: ElicitationAsked | ElicitationAnswered) -> None:
        start = self.open.get(event.x)
        if start is None or start.session != event.session:
            self.report(f"execution {event.x} elicits, but is not running in this session", event.n)
        elif isinstance(event, ElicitationAsked):
            if event.x in self.asking:
                self.report(f"execution {event.x} asks again before it has an answer", event.n)
            self.asking.add(event.x)
        elif event.x in self.asking:
            self.asking.discard(event.x)
            self.check_word(event, event.action, (*_ELICITATION_ACTIONS, "refuse"))
        else:
            self.report(f"execution {event.x} gets an answer that it did not ask for", event.n)

    def is_shown(self, event: ElicitationShown) -> None:
        if event.x is not None and event.x > self.count:
            self.report(f"a question of execution {event.x} is shown, which has not begun", event.n)
        self.check_word(event, event.action, _ELICITATION_ACTIONS)

    def starts(self, event: ToolStart) -> None:
        self.count += 1
        self.check_number(event, "execution", event.x, self.count)
        self.open[event.x] = event

    def ends(self, event: ToolEnd) -> None:
        start = self.open.pop(event.x, None)
        self.asking.discard(event.x)
        if start is None or start.session != event.session:
            self.report(f"execution {event.x} ends, but was not running in this session", event.n)
        self.check_word(event, event.how, _EXECUTION_ENDS)
        if event.how == "returned" and event.error is not None:
            self.report("an execution returns, but has an error", event.n)
        if event.how != "returned" and event.result is not None:
            self.report("an execution does not return, but has a result", event.n)
        if event.how == "raised" and event.error is None:
            self.report("an execution raises without an error", event.n)

    def end(self) -> None:
        for start in self.open.values():
            if not self.cut:
                self.report(f"execution {start.x} does not end", start.n)


class _DecisionRule(_ValidationRule):
    """Requests are numbered as they surface.

    A decision is about one that surfaced in its session, as it surfaced, and is handed in once.
    """

    def __init__(self, violations: list[JournalViolation], *, cut: bool) -> None:
        super().__init__(violations, cut=cut)
        self.labels: dict[str, tuple[str, str | None]] = {}
        self.ids: dict[str, set[str]] = {}
        self.listed: dict[str, list[str]] = {}
        self.failed: set[str] = set()
        self.waiting: dict[int, DecisionMade] = {}
        self.running: dict[str, set[int]] = {}
        self.made_in: dict[int, frozenset[int]] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        listing: dict[type[Event], Listener] = {
            TurnEnd: self.turn_ends,
            StateRestored: self.restored,
            RunEnd: self.run_ends,
        }
        return {DecisionMade: self.decides, TurnStart: self.turn_starts, DecisionsStaged: self.handed_in, **listing}

    def turn_starts(self, event: TurnStart) -> None:
        self.handed_in(event)
        self.running.setdefault(event.session, set()).add(event.turn)

    def turn_ends(self, event: TurnEnd) -> None:
        self.running.get(event.session, set()).discard(event.turn)
        # A turn that failed shows nobody anything: what was pending before it may still be.
        if event.outcome != "failed":
            self.lists(event, event.requests)
        else:
            self.failed.add(event.session)

    def restored(self, event: StateRestored) -> None:
        self.lists(event, event.pending)

    def run_ends(self, event: RunEnd) -> None:
        for request in event.pending:
            self.surfaces(event, request, session=None)

    def lists(self, event: Event, requests: Sequence[Mapping[str, Any]]) -> None:
        numbers = [request["q"] for request in requests]
        labels = [request["label"] for request in requests if request.get("label")]
        if len({*numbers}) != len(numbers) or len({*labels}) != len(labels):
            self.report("a request is listed twice at once", event.n)
        self.listed[event.session] = numbers
        self.failed.discard(event.session)
        for request in requests:
            self.surfaces(event, request, session=event.session)

    def surfaces(self, event: Event, request: Mapping[str, Any], *, session: str | None) -> None:
        q, label = request["q"], request.get("label")
        known = self.labels.get(q)
        if known is None:
            if q != f"q{len(self.labels) + 1}":
                self.report(f"request {q} surfaces where q{len(self.labels) + 1} is next", event.n)
            self.labels[q] = (session or "", label)
        elif known[1] != label or session not in (None, known[0]):
            self.report(f"request {q} changed its call or its session after it surfaced", event.n)
        self.ids.setdefault(q, set()).add(request["id"])

    def decides(self, event: DecisionMade) -> None:
        self.waiting[event.n] = event
        self.made_in[event.n] = frozenset(self.running.get(event.session, ()))
        self.check_word(event, event.verdict, _VERDICTS)
        self.check_word(event, event.source, _SOURCES)
        if event.verdict != "edit" and (event.arguments is not None or event.tool is not None):
            self.report(f"a decision to {event.verdict} has arguments or a tool of its own", event.n)
        if event.q is not None:
            self.addresses(event, event.q)
        elif event.label is not None and (event.session, event.label) in self.labels.values():
            self.report(f"a decision about call {event.label} does not name the request about it", event.n)

    def addresses(self, event: DecisionMade, q: str) -> None:
        session, label = self.labels.get(q, (None, None))
        if session != event.session:
            self.report(f"a decision is about request {q}, which has not surfaced in its session", event.n)
        elif event.label != label or not self.may_have_id(event, q):
            self.report(f"a decision about request {q} has the id or the label of another one", event.n)
        elif event.oracle != "script" and q not in self.listed.get(event.session, ()):
            self.report(f"the oracle decides about request {q}, which is not pending", event.n)

    def may_have_id(self, event: DecisionMade, q: str) -> bool:
        """Return whether a request may be named by the id of a decision.

        After a turn that failed the caller asks the agent what is still open, which no event says: the agent may give
        a request another id then, though not that of another request.
        """
        if event.id in self.ids[q]:
            return True
        others = set().union(*(ids for other, ids in self.ids.items() if other != q))
        return event.session in self.failed and event.id is not None and event.id not in others

    def handed_in(self, event: TurnStart | DecisionsStaged) -> None:
        deciders: dict[str, DecisionMade] = {}
        for position in event.decisions:
            decision = self.waiting.pop(position, None)
            if decision is None or decision.session != event.session:
                text = f"what is handed in at {position} is not a decision of this session, or was handed in before"
                self.report(text, position, event.n)
            elif not self.made_in[position] <= self.running.get(event.session, set()):
                self.report("a decision was made in a turn that ended before it is handed in", position, event.n)
            elif decision.q is not None and decision.oracle != "script":
                if decision.q in deciders:
                    self.report("the oracle decides twice at once", deciders[decision.q].n, position)
                deciders[decision.q] = decision

    def end(self) -> None:
        for decision in self.waiting.values():
            if not self.cut:
                self.report("a decision is never handed in", decision.n)


__all__ = ["JournalViolation", "find_violations"]

_RULES: tuple[type[_ValidationRule], ...] = (
    _FrameRule,
    _AgentRule,
    _SaveRule,
    _TurnRule,
    _ModelRule,
    _ToolRule,
    _DecisionRule,
)


def find_violations(events: Sequence[Event]) -> list[JournalViolation]:
    """Return all places where a journal breaks a rule, in the order of their first witness."""
    violations: list[JournalViolation] = []
    cut = _was_cut_off(events)
    topics = [topic(violations, cut=cut) for topic in _RULES]
    for event in events:
        for place, listener in _LISTENERS.get(type(event), ()):
            listener(topics[place], event)
    for topic in topics:
        topic.end()
    _check_numbering(events, violations)
    return sorted(violations, key=lambda broken: broken.witness[:1])


def _collect_listeners() -> dict[type[Event], list[tuple[int, Callable[[_ValidationRule, Any], None]]]]:
    """Return, by event class, the rules that listen to it (by index), with their methods."""
    listeners: dict[type[Event], list[tuple[int, Callable[[_ValidationRule, Any], None]]]] = {}
    for place, topic in enumerate(_RULES):
        for cls, listener in topic([], cut=False).listeners().items():
            # Unbound, because each journal is validated by new rules.
            listeners.setdefault(cls, []).append((place, listener.__func__))  # type: ignore[attr-defined]  # a bound method
    return listeners


_LISTENERS = _collect_listeners()
"""The listeners of all rules; collected once, because a journal is validated in microseconds."""


def _was_cut_off(events: Sequence[Event]) -> bool:
    last = _last_event_of_run(events)
    return not isinstance(last, RunEnd) or last.how not in ("completed", "left")


def _last_event_of_run(events: Sequence[Event]) -> Event | None:
    """Return the last event but for those of agents that do not close, which come after the run."""
    return next((event for event in reversed(events) if not isinstance(event, CloseTimeout)), None)


def _check_numbering(events: Sequence[Event], violations: list[JournalViolation]) -> None:
    if not events or type(events[0]) is not Header:
        violations.append(
            JournalViolation(text="the journal does not begin with a header", witness=(1,) if events else ())
        )
    ends = not events or not isinstance(events[0], Header) or events[0].can_observe(RunEnd)
    if events and ends and type(_last_event_of_run(events)) is not RunEnd:
        violations.append(JournalViolation(text="the run has no end: the journal was cut off", witness=(len(events),)))
    for position, event in enumerate(events, 1):
        if event.n != position:
            violations.append(JournalViolation(text=f"event {position} has the number {event.n}", witness=(position,)))
