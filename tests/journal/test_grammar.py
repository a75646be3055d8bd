from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.journal.events import (
    AgentStart,
    DecisionMade,
    DecisionsStaged,
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    Event,
    Header,
    ModelAnswer,
    ModelFailure,
    ModelRequest,
    PolicyAsked,
    RunEnd,
    StateRestored,
    StateRewritten,
    StateSaved,
    StepSkipped,
    StreamShown,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.journal.validation import find_violations

Edit = Callable[[list[Event]], None]


def drop(*positions: int) -> Edit:
    """Remove events, close the gap, and renumber references to the moved events."""

    def edit(events: list[Event]) -> None:
        for position in sorted(positions, reverse=True):
            del events[position - 1]
        renumber(events)

    return edit


def double(position: int) -> Edit:
    def edit(events: list[Event]) -> None:
        events.insert(position, copy.deepcopy(events[position - 1]))
        renumber(events)

    return edit


def insert(after: int, event: Event) -> Edit:
    def edit(events: list[Event]) -> None:
        events.insert(after, copy.deepcopy(event))
        renumber(events)

    return edit


def change(position: int, **values: Any) -> Edit:
    def edit(events: list[Event]) -> None:
        for name, value in values.items():
            setattr(events[position - 1], name, value)

    return edit


def request_of(position: int, index: int, **values: Any) -> Edit:
    """Changes one request of a turn end or a restore."""

    def edit(events: list[Event]) -> None:
        event: Any = events[position - 1]
        (event.requests if isinstance(event, TurnEnd) else event.pending)[index].update(values)

    return edit


def several(*edits: Edit) -> Edit:
    def edit(events: list[Event]) -> None:
        for each in edits:
            each(events)

    return edit


def renumber(events: list[Event]) -> None:
    moved = {event.n: position for position, event in enumerate(events, 1)}
    for position, event in enumerate(events, 1):
        event.n = position
        if isinstance(event, (TurnStart, DecisionsStaged)):
            event.decisions = [moved[old] for old in event.decisions if old in moved]


LOST = AgentStart(tools=[], how="restored")
IN_A_TURN = "a session is saved while one of its turns runs"
ORACLE: dict[str, Any] = {"oracle": "approve_all()"}

BROKEN: dict[str, tuple[Edit, str, tuple[int, ...]]] = {
    "no header": (drop(1), "the journal does not begin with a header", (1,)),
    "second header": (insert(2, Header(scenario="a/b", agent="x")), "a second header", (1, 3)),
    "wrong number": (change(4, n=7), "event 4 has the number 7", (4,)),
    "no end": (drop(19), "the run has no end: the journal was cut off", (18,)),
    "two ends": (double(19), "the run ends twice", (19, 20)),
    "unknown end": (
        change(19, how="fine"),
        "run.end says 'fine'; valid: completed, left, timeout, interrupted, broken",
        (19,),
    ),
    "no agent": (drop(2), "turn.start in a session that has no agent", (2,)),
    "agent of unknown kind": (
        change(2, how="made"),
        "agent.start says 'made'; valid: built, session, copied, restored, fresh, cold",
        (2,),
    ),
    "two agents": (double(2), "a session begins twice", (2, 3)),
    "new agent before the first": (
        change(2, how="fresh"),
        "an agent is rebuilt in a session that has not begun",
        (2,),
    ),
    "new agent without state": (drop(9), "a session continues although its rebuilt agent restored no save", (8, 11)),
    "new agent that failed to take it up": (
        change(9, error=["ValueError", "no"], pending=[]),
        "a session continues although its rebuilt agent restored no save",
        (9, 10),
    ),
    "state without new agent": (drop(8), "a save is restored, but no agent was rebuilt for it", (8,)),
    "unknown save": (drop(7), "'turn 1' is restored, but was not saved in this session", (8,)),
    "failed save": (
        change(7, error=["OSError", "full"]),
        "'turn 1' is restored, but was not saved in this session",
        (9,),
    ),
    "unknown save changed": (
        insert(7, StateRewritten(name="turn 0", old="a", new="b", where="every", places=1)),
        "'turn 0' is changed, but was not saved in this session",
        (8,),
    ),
    "other mode": (change(9, mode="copy"), "what was saved as json is restored as copy", (7, 9)),
    "turn numbers": (change(12, turn=3), "turn 3 begins where turn 2 is next", (12,)),
    "turn ends twice": (double(6), "turn 1 ends, but was not running in this session", (7,)),
    "turn of another session": (
        change(6, session="b"),
        "turn 1 ends, but was not running in this session",
        (6,),
    ),
    "open turn": (drop(17), "turn 2 does not end", (12,)),
    "unknown outcome": (
        change(17, outcome="done"),
        "turn.end says 'done'; valid: paused, finished, failed, timeout",
        (17,),
    ),
    "requests without a pause": (change(6, outcome="finished"), "a turn has requests, but does not pause", (6,)),
    "failure without error": (
        change(17, outcome="failed"),
        "a turn fails without an error, or has an error and does not fail",
        (17,),
    ),
    "shown outside": (insert(6, StreamShown(turn=1, what="end")), "turn 1 shows something, but is not running", (7,)),
    "question numbers": (change(15, m=5), "question 5 begins where question 2 is next", (15,)),
    "answered twice": (double(5), "question 1 is answered, but was not open", (6,)),
    "failed after its answer": (
        insert(5, ModelFailure(m=1, conversation="main", status=500)),
        "question 1 is answered, but was not open",
        (6,),
    ),
    "open question": (drop(16), "question 2 has no answer", (15,)),
    "other conversation": (
        change(16, conversation="o1/helper"),
        "question 2 is answered in another conversation",
        (15, 16),
    ),
    "other agent": (
        change(15, agent="helper"),
        "the model of 'helper' is asked in the conversation of 'main'",
        (15,),
    ),
    "nested in nothing": (
        several(change(15, conversation="o1/main"), change(16, conversation="o1/main")),
        "a conversation begins in call o1, which no model made",
        (15,),
    ),
    "calls share a label": (
        lambda events: events[4].calls[1].update(label="c1"),  # type: ignore[attr-defined]
        "calls of one answer have no label, or share it",
        (5,),
    ),
    "request about nothing": (
        several(request_of(6, 1, label="c9"), request_of(9, 1, label="c9"), change(11, label="c9")),
        "a request is about call c9, which no model made",
        (6,),
    ),
    "execution numbers": (change(13, x=2), "execution 2 begins where execution 1 is next", (13,)),
    "elicits when it has ended": (
        insert(14, ElicitationAsked(x=1, message="Why?")),
        "execution 1 elicits, but is not running in this session",
        (15,),
    ),
    "answered unasked": (
        insert(13, ElicitationAnswered(x=1, action="decline")),
        "execution 1 gets an answer that it did not ask for",
        (14,),
    ),
    "elicits twice": (
        several(insert(13, ElicitationAsked(x=1, message="Why?")), insert(14, ElicitationAsked(x=1, message="When?"))),
        "execution 1 asks again before it has an answer",
        (15,),
    ),
    "unknown answer to a server": (
        several(
            insert(13, ElicitationAsked(x=1, message="Why?")), insert(14, ElicitationAnswered(x=1, action="perhaps"))
        ),
        "tool.elicited says 'perhaps'; valid: accept, decline, cancel, refuse",
        (15,),
    ),
    "shown before it runs": (
        insert(13, ElicitationShown(x=2, message="Why?", action="cancel")),
        "a question of execution 2 is shown, which has not begun",
        (14,),
    ),
    "unknown answer of a caller": (
        insert(13, ElicitationShown(x=1, message="Why?", action="refuse")),
        "caller.elicited says 'refuse'; valid: accept, decline, cancel",
        (14,),
    ),
    "ended twice": (double(14), "execution 1 ends, but was not running in this session", (15,)),
    "open execution": (drop(14), "execution 1 does not end", (13,)),
    "unknown end of a tool": (
        change(14, how="ok"),
        "tool.end says 'ok'; valid: returned, raised, asked, cancelled",
        (14,),
    ),
    "returned an error": (change(14, error=["OSError", "gone"]), "an execution returns, but has an error", (14,)),
    "raised nothing": (
        change(14, how="raised", result=None),
        "an execution raises without an error",
        (14,),
    ),
    "cancelled with a result": (
        change(14, how="cancelled"),
        "an execution does not return, but has a result",
        (14,),
    ),
    "two agents built anew": (double(8), "an agent is rebuilt twice", (8, 9)),
    "decided before the restore": (
        several(drop(9), insert(9, StateRestored(name="turn 1", mode="json"))),
        "a session continues although its rebuilt agent restored no save",
        (8, 9),
    ),
    "saved in a turn": (several(drop(7), insert(5, StateSaved(name="turn 1", mode="json"))), IN_A_TURN, (6,)),
    "saved twice": (double(7), "'turn 1' is saved twice", (8,)),
    "saved and not restored": (drop(8, 9), "a session continues without its save", (7, 10)),
    "restored twice": (
        several(double(9), insert(9, LOST)),
        "a save is restored twice, and nothing happens in between",
        (9, 11),
    ),
    "changed after it was restored": (
        insert(10, StateRewritten(name="turn 1", old="5", new="7", where="every", places=1)),
        "a session continues without its save",
        (11, 13),
    ),
    "not saved": (drop(18), "a turn ended, and its session was not saved", (18,)),
    "finished and not saved by an agent that holds its requests": (
        several(drop(18), change(1, holds_requests=True)),
        "a turn ended, and its session was not saved",
        (18,),
    ),
    "asked outside": (
        several(drop(4), insert(2, ModelRequest(m=1, conversation="main", agent="main", items=[]))),
        "model.request while no turn of its session runs",
        (3,),
    ),
    "entered outside": (
        insert(7, ToolStart(x=1, tool="delete_file", arguments={})),
        "tool.start while no turn of its session runs",
        (8,),
    ),
    "offered what is not there": (
        change(2, tools=[]),
        "the model is offered the tool delete_file, which its agent does not have",
        (4,),
    ),
    "a call listed twice": (request_of(9, 1, label="c1"), "a request is listed twice at once", (9,)),
    "decided in a turn that ended": (
        several(
            insert(5, DecisionMade(verdict="approve", q="q1", id="c1", label="c1")),
            change(13, decisions=[6, 11, 12]),
        ),
        "a decision was made in a turn that ended before it is handed in",
        (6, 13),
    ),
    "listed twice": (request_of(9, 1, q="q1", label="c1"), "a request is listed twice at once", (9,)),
    "request numbers": (
        several(request_of(6, 1, q="q3"), request_of(9, 1, q="q3"), change(11, q="q3")),
        "request q3 surfaces where q2 is next",
        (6,),
    ),
    "request about another call": (
        request_of(9, 0, label="c2"),
        "request q1 changed its call or its session after it surfaced",
        (9,),
    ),
    "unknown verdict": (
        change(10, verdict="yes"),
        "caller.decide says 'yes'; valid: approve, reject, edit, always, never, raw",
        (10,),
    ),
    "unknown source": (
        change(10, source="wire"),
        "caller.decide says 'wire'; valid: held, restored, rebuilt",
        (10,),
    ),
    "approval with arguments": (
        change(10, arguments={"path": "c.txt"}),
        "a decision to approve has arguments or a tool of its own",
        (10,),
    ),
    "unknown request": (
        change(10, q="q7"),
        "a decision is about request q7, which has not surfaced in its session",
        (10,),
    ),
    "other id": (
        change(10, id="c2"),
        "a decision about request q1 has the id or the label of another one",
        (10,),
    ),
    "other label": (
        change(10, label="c2"),
        "a decision about request q1 has the id or the label of another one",
        (10,),
    ),
    "no request": (
        change(10, q=None),
        "a decision about call c1 does not name the request about it",
        (10,),
    ),
    "oracle decides what is settled": (
        several(
            insert(18, DecisionMade(verdict="approve", q="q1", id="c1", label="c1", **ORACLE)), change(20, how="broken")
        ),
        "the oracle decides about request q1, which is not pending",
        (19,),
    ),
    "oracle decides twice": (
        several(
            change(10, **ORACLE),
            insert(11, DecisionMade(verdict="reject", q="q1", id="c1", label="c1", **ORACLE)),
            change(13, decisions=[10, 11, 12]),
        ),
        "the oracle decides twice at once",
        (10, 12),
    ),
    "handed in nothing": (
        change(12, decisions=[10, 11, 9]),
        "what is handed in at 9 is not a decision of this session, or was handed in before",
        (9, 12),
    ),
    "handed in twice": (
        change(12, decisions=[10, 11, 10]),
        "what is handed in at 10 is not a decision of this session, or was handed in before",
        (10, 12),
    ),
    "never handed in": (change(12, decisions=[10]), "a decision is never handed in", (11,)),
}


class TestBrokenGrammar:
    @pytest.mark.parametrize(("edit", "text", "witness"), BROKEN.values(), ids=BROKEN)
    def test_a_broken_rule_is_named_with_its_events(
        self, two_calls: list[Event], edit: Edit, text: str, witness: tuple[int, ...]
    ) -> None:
        """Each violation is one sentence, with the events that show it."""
        edit(two_calls)

        found = [(broken.text, broken.witness) for broken in find_violations(two_calls)]

        assert (text, witness) in found

    def test_an_empty_journal_has_no_header(self) -> None:
        """No event at all is broken, too."""
        assert ["the journal does not begin with a header"] == [broken.text for broken in find_violations([])]

    def test_places_come_in_their_order(self, two_calls: list[Event]) -> None:
        """Several broken places are named from first to last."""
        several(change(17, outcome="done"), change(10, verdict="yes"), change(2, how="made"))(two_calls)

        assert [2, 10, 17] == [broken.witness[0] for broken in find_violations(two_calls)]


class TestGoodGrammar:
    def test_a_clean_run(self, two_calls: list[Event]) -> None:
        """Nothing is found in what the harness records of a good run."""
        assert [] == find_violations(two_calls)

    def test_a_run_that_was_ended_may_leave_things_open(self, two_calls: list[Event]) -> None:
        """After a time-out a question may have no answer, a tool no end, and a decision no turn."""
        del two_calls[15:18]
        two_calls.insert(15, ToolStart(x=2, tool="read_file", arguments={}))
        two_calls.insert(16, DecisionMade(verdict="approve", q="q1", id="c1", label="c1"))
        change(18, how="timeout")(two_calls)
        renumber(two_calls)

        assert [] == find_violations(two_calls)

    def test_turns_may_overlap(self, numbered: Callable[..., list[Event]]) -> None:
        """Two turns of one session at the same time, each on a copy of its state, are legal."""
        events = numbered(
            Header(scenario="a/b", agent="x"),
            AgentStart(tools=[]),
            StateSaved(name="s", mode="json"),
            TurnStart(turn=1, text="one"),
            AgentStart(tools=[], how="restored"),
            StateRestored(name="s", mode="json"),
            TurnStart(turn=2, text="two"),
            TurnEnd(turn=1, outcome="finished"),
            TurnEnd(turn=2, outcome="finished"),
            RunEnd(),
        )

        assert [] == find_violations(events)

    def test_a_save_may_be_taken_up_again_after_a_skipped_step(self, two_calls: list[Event]) -> None:
        """A copy of the state whose step cannot be played is left, and the next one is restored."""
        two_calls[9:9] = [StepSkipped(step="decide", why="no request"), *copy.deepcopy(two_calls[7:9])]
        renumber(two_calls)

        assert [] == find_violations(two_calls)

    def test_conversations_may_nest(self, numbered: Callable[..., list[Event]]) -> None:
        """A conversation inside a call that a model made is legal, and so are tools of another agent."""
        outer = {"label": "o1", "id": "o1", "tool": "ask", "arguments": {"input": "x"}}
        inner = {"label": "o1/c1", "id": "c1", "tool": "pay", "arguments": {}}
        events = numbered(
            Header(scenario="a/b", agent="x"),
            AgentStart(tools=[]),
            TurnStart(turn=1, text="one"),
            ModelRequest(m=1, conversation="main", agent="main", items=[]),
            ModelAnswer(m=1, conversation="main", calls=[outer]),
            ModelRequest(m=2, conversation="o1/helper", agent="helper", items=[]),
            ModelAnswer(m=2, conversation="o1/helper", calls=[inner]),
            PolicyAsked(tool="pay", arguments={}, call_id="c1", agent="helper", answer=False),
            ToolStart(x=1, tool="pay", arguments={}, call_id="c1", agent="helper"),
            ToolEnd(x=1, how="raised", error=["ToolRaised", "no"]),
            TurnEnd(turn=1, outcome="failed", error=["ToolRaised", "no"]),
            RunEnd(),
        )

        assert [] == find_violations(events)

    def test_the_script_may_contradict_and_repeat_itself(self, two_calls: list[Event]) -> None:
        """Decisions that the scenario wrote may be about one request twice, and about settled ones."""
        insert(11, DecisionMade(verdict="reject", q="q1", id="c1", label="c1"))(two_calls)
        change(13, decisions=[10, 11, 12])(two_calls)
        later = [
            AgentStart(tools=["delete_file"], how="restored"),
            StateRestored(name="turn 2", mode="json"),
            DecisionMade(verdict="approve", q="q1", id="c1", label="c1"),
            TurnStart(turn=3, decisions=[22]),
            TurnEnd(turn=3, outcome="failed", error=["LookupError", "settled"]),
            StateSaved(name="turn 3", mode="json"),
        ]
        for event in reversed(later):
            event.n = 0
            two_calls.insert(19, event)
        for position, event in enumerate(two_calls, 1):
            event.n = position

        assert [] == find_violations(two_calls)

    def test_the_oracle_answers_what_a_failed_turn_left_open(self, numbered: Callable[..., list[Event]]) -> None:
        """A turn that fails shows nobody anything, so what was pending before it can be answered after it."""
        call = {"label": "c1", "id": "c1", "tool": "pay", "arguments": {"amount": 5}}
        request = {"q": "q1", "label": "c1", "id": "c1", "call_id": "c1", "tool": "pay", "arguments": {"amount": 5}}
        answer = {"q": "q1", "id": "c1", "label": "c1"}
        events = numbered(
            Header(scenario="a/b", agent="x"),
            AgentStart(tools=["pay"]),
            TurnStart(turn=1, text="Pay 5"),
            ModelRequest(m=1, conversation="main", agent="main", items=[]),
            ModelAnswer(m=1, conversation="main", calls=[call]),
            TurnEnd(turn=1, outcome="paused", requests=[request]),
            DecisionMade(verdict="raw", raw={"verdict": "yes"}, **answer),
            TurnStart(turn=2, decisions=[7]),
            TurnEnd(turn=2, outcome="failed", error=["MalformedDecision", "yes"]),
            DecisionMade(verdict="reject", **answer, **ORACLE),
            TurnStart(turn=3, decisions=[10]),
            ModelRequest(m=2, conversation="main", agent="main", items=[]),
            ModelAnswer(m=2, conversation="main", say="Not paid.", calls=[]),
            TurnEnd(turn=3, outcome="finished", output="Not paid."),
            RunEnd(),
        )

        assert [] == find_violations(events)

    @pytest.mark.parametrize(
        ("outcome", "named", "texts"),
        [
            ("failed", "c1.2", []),
            ("failed", "c2", ["a decision about request q1 has the id or the label of another one"]),
            ("paused", "c1.2", ["a decision about request q1 has the id or the label of another one"]),
        ],
        ids=["new id", "id of another request", "no failure"],
    )
    def test_a_request_may_have_another_id_after_a_failed_turn(
        self, numbered: Callable[..., list[Event]], outcome: str, named: str, texts: list[str]
    ) -> None:
        """The caller asks then what is still open, and no event says so; but the id is of no other request."""
        calls = [{"label": one, "id": one, "tool": "pay", "arguments": {"amount": 5}} for one in ("c1", "c2")]
        requests = [{"q": f"q{n}", "call_id": call["id"], **call} for n, call in enumerate(calls, 1)]
        failed = outcome == "failed"
        events = numbered(
            Header(scenario="a/b", agent="x"),
            AgentStart(tools=["pay"]),
            TurnStart(turn=1, text="Pay 5 twice"),
            ModelRequest(m=1, conversation="main", agent="main", items=[]),
            ModelAnswer(m=1, conversation="main", calls=calls),
            TurnEnd(turn=1, outcome="paused", requests=requests),
            TurnStart(turn=2, decisions=[]),
            TurnEnd(
                turn=2,
                outcome=outcome,
                requests=[] if failed else requests,
                error=["Refused", "nothing to decide"] if failed else None,
            ),
            DecisionMade(verdict="reject", q="q1", id=named, label="c1", **ORACLE),
            TurnStart(turn=3, decisions=[9]),
            TurnEnd(turn=3, outcome="paused", requests=requests[1:]),
            RunEnd(pending=requests[1:]),
        )

        assert texts == [violation.text for violation in find_violations(events)]
