from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_approvals.journal.descriptions import EventDescriber
from pytest_approvals.journal.events import (
    EVENTS,
    AgentKilled,
    AgentLost,
    AgentStart,
    AgentStopped,
    AgentWoken,
    CallerHungUp,
    CallerStuck,
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
    PolicyAsked,
    RunEnd,
    SignalSent,
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
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation


def describe(events: Sequence[Event]) -> list[str]:
    sentences = EventDescriber(read_history(events))
    return [f"{event.n:>2} {line}" for event in events for line in sentences.of(event)]


ALONE: dict[str, tuple[Event, str]] = {
    "header": (Header(scenario="basics/pay", agent="reference"), "run     basics/pay on reference"),
    "built": (AgentStart(tools=["pay"]), "agent   is built"),
    "another session": (AgentStart(tools=["pay"], how="session"), "agent   opens another session"),
    "copied": (AgentStart(tools=["pay"], how="copied"), "agent   is built anew"),
    "fresh": (AgentStart(tools=["pay"], how="fresh"), "agent   starts in a fresh process"),
    "cold": (AgentStart(tools=["pay"], how="cold"), "agent   starts in a fresh process, cold"),
    "lost": (AgentLost(what="it exited with 1"), "agent   is lost: it exited with 1"),
    "unclosed": (
        CloseTimeout(what="its close() did not return within 8 s"),
        "agent   its close() did not return within 8 s",
    ),
    "end": (RunEnd(), "run     ends"),
    "left": (RunEnd(how="left"), "run     ends, as the caller leaves"),
    "timeout": (RunEnd(how="timeout"), "run     ends, out of time"),
    "pending": (
        RunEnd(pending=[{"q": "q1", "id": "c1", "tool": "pay", "arguments": {"amount": 5}, "label": "c1"}]),
        "run     ends with c1 pending",
    ),
    "message": (TurnStart(turn=1, text="Pay \u201c5\u201d"), 'caller  sends "Pay \u201c5\u201d"'),
    "empty turn": (TurnStart(turn=1), "caller  goes on without an answer"),
    "decisions": (TurnStart(turn=1, decisions=[3]), "caller  hands in what is decided"),
    "pause": (
        TurnEnd(turn=1, outcome="paused", requests=[{"q": "q1", "id": "x", "tool": "pay", "arguments": {"amount": 5}}]),
        "agent   pauses for an unknown call pay(amount=5)",
    ),
    "output": (
        TurnEnd(turn=1, outcome="finished", output={"b": 1, "a": None}),
        'agent   finishes with {"a": null, "b": 1}',
    ),
    "no output": (TurnEnd(turn=1, outcome="finished"), "agent   finishes"),
    "failure": (TurnEnd(turn=1, outcome="failed", error=["x.y.OSError", "no"]), "agent   fails with OSError"),
    "slow turn": (TurnEnd(turn=1, outcome="timeout", error=["TimeoutError", ""]), "agent   takes too long"),
    "approve": (DecisionMade(verdict="approve", q="q1", label="c1"), "caller  approves c1"),
    "reject": (DecisionMade(verdict="reject", q="q1", label="c1", reason="keep b"), "caller  rejects c1: keep b"),
    "edit": (
        DecisionMade(verdict="edit", q="q1", label="c1", arguments={"path": "b", "mode": 1}),
        'caller  approves c1 with mode=1, path="b"',
    ),
    "edit to nothing": (
        DecisionMade(verdict="edit", q="q1", label="c1", arguments={}),
        "caller  approves c1 with no arguments",
    ),
    "edit of the tool": (
        DecisionMade(verdict="edit", q="q1", label="c1", tool="move", arguments={"path": "b"}),
        'caller  approves c1 as move(path="b")',
    ),
    "always": (DecisionMade(verdict="always", q="q1", label="c1"), "caller  always approves c1"),
    "never": (DecisionMade(verdict="never", q="q1", label="c1", reason="no"), "caller  always rejects c1: no"),
    "raw": (DecisionMade(verdict="raw", q="q1", label="c1", raw={"verdict": "yes"}), 'caller  answers c1 with "yes"'),
    "raw address": (
        DecisionMade(verdict="raw", raw={"address": [1]}),
        'caller  answers no request with {"address": [1]}',
    ),
    "no answer": (
        DecisionMade(verdict="reject", q="q1", label="c1", missing=True, reason="none"),
        "caller  rejects c1, for want of an answer",
    ),
    "tampered": (
        DecisionMade(verdict="approve", q="q1", label="c1", shows={"tool": "pay", "arguments": {"amount": 1}}),
        "caller  approves c1 as if it were pay(amount=1)",
    ),
    "never asked": (
        DecisionMade(verdict="approve", id="x", label="c1"),
        "caller  approves c1, which was not asked about",
    ),
    "unknown id": (DecisionMade(verdict="approve", id="x"), 'caller  approves an unknown request "x"'),
    "unknown verdict": (DecisionMade(verdict="wave", q="q1", label="c1"), "caller  wave c1"),
    "staged": (DecisionsStaged(decisions=[1]), "caller  puts the decision into the state"),
    "staging fails": (
        DecisionsStaged(decisions=[1], error=["KeyError", "x"]),
        "caller  puts the decision into the state, which fails with KeyError",
    ),
    "cancelled": (PendingCancelled(), "caller  gives up what is pending"),
    "hung up in a call": (CallerHungUp(turn=1, place="started c1"), "caller  hangs up while c1 runs"),
    "killed before a call": (AgentKilled(turn=1, place="before c1"), "agent   is killed before c1 runs"),
    "killed in a call": (AgentKilled(turn=1, place="started c1"), "agent   is killed while c1 runs"),
    "killed after a call": (AgentKilled(turn=1, place="ended c1"), "agent   is killed when c1 has run"),
    "killed at the model": (AgentKilled(turn=1, place="model"), "agent   is killed while the model is asked"),
    "killed in a stream": (AgentKilled(turn=1, place="shown"), "agent   is killed while the stream is shown"),
    "full disk": (DiskFull(turn=1, place="write"), "agent   can store nothing: the disk is full"),
    "full disk after a call": (
        DiskFull(turn=1, place="write c1"),
        "agent   can store nothing after c1: the disk is full",
    ),
    "failed write": (DiskFull(turn=1, place="write", once=True), "agent   can store nothing: a write fails"),
    "lost turn": (StoreRolledBack(turn=2, how="lost"), "store   has lost what turn 2 has stored"),
    "stale read": (StoreRolledBack(turn=2, how="stale"), "store   shows what was stored before turn 2"),
    "stopped": (AgentStopped(turn=1, place="before c1"), "agent   is stopped before c1 runs"),
    "woken": (AgentWoken(turn=1), "agent   goes on where it was stopped"),
    "killed in a write": (AgentKilled(turn=1, place="write"), "agent   is killed while it stores something"),
    "killed in a write after a call": (
        AgentKilled(turn=1, place="write c1"),
        "agent   is killed while it stores something after c1",
    ),
    "killed at the end": (
        AgentKilled(turn=1, place="outcome"),
        "agent   is killed before the caller learns how the turn ended",
    ),
    "hung up at the model": (CallerHungUp(turn=1, place="model"), "caller  hangs up while the model is asked"),
    "nobody waits for the model": (
        ModelFailure(m=1, conversation="main", status=0, how="hung_up"),
        "model   is not waited for",
    ),
    "shown text": (StreamShown(turn=1, what="text", text="Hi"), 'caller  is shown text "Hi"'),
    "shown call": (StreamShown(turn=1, what="call", id="c1", tool="pay"), "caller  is shown a call of pay"),
    "shown request": (StreamShown(turn=1, what="request", id="c1"), "caller  is shown a request"),
    "shown end": (StreamShown(turn=1, what="end"), "caller  is shown the end"),
    "skipped": (
        StepSkipped(step="decide", label="c1", why="nothing surfaced"),
        "caller  skips decide about c1: nothing surfaced",
    ),
    "stuck": (
        CallerStuck(rounds=3, requests=["q2", "q1"]),
        "caller  gives up on q1, q2: nothing moves after 3 answers",
    ),
    "signal": (SignalSent(name="go"), "caller  gives the signal go"),
    "nested question": (
        ModelRequest(m=1, conversation="o1/helper", agent="helper", items=[{"kind": "user", "text": "Hi"}]),
        'model   o1/helper is asked "Hi"',
    ),
    "question without news": (ModelRequest(m=1, conversation="main", agent="main", items=[]), "model   is asked"),
    "unknown call in the input": (
        ModelRequest(
            m=1, conversation="main", agent="main", items=[{"kind": "call", "id": "x", "tool": "pay", "arguments": "{"}]
        ),
        'model   is told that it made a call: pay("{")',
    ),
    "result of nothing": (
        ModelRequest(m=1, conversation="main", agent="main", items=[{"kind": "result", "id": "x", "text": "5"}]),
        'model   is told of an unknown call: "5"',
    ),
    "other item": (
        ModelRequest(m=1, conversation="main", agent="main", items=[{"kind": "other", "text": "a picture"}]),
        'model   is told "a picture"',
    ),
    "approval on the wire": (
        ModelRequest(
            m=1, conversation="main", agent="main", items=[{"kind": "approval_response", "id": "r1", "approved": False}]
        ),
        'model   is told that the caller rejects "r1"',
    ),
    "empty answer": (ModelAnswer(m=1, conversation="main"), "model   says nothing"),
    "hosted result": (
        ModelAnswer(m=1, conversation="main", hosted=[{"label": "h1", "output": "ok"}]),
        'model   reports h1: "ok"',
    ),
    "hosted error": (
        ModelAnswer(m=1, conversation="main", hosted=[{"label": "h1", "error": "down"}]),
        'model   reports h1: error "down"',
    ),
    "model fails": (ModelFailure(m=1, conversation="main", status=429), "model   fails with status 429"),
    "fails in an unknown way": (ModelFailure(m=1, conversation="main", status=0, how="melts"), "model   fails: melts"),
    "asks for endless patience": (
        ModelFailure(m=1, conversation="main", status=429, retry_after=10**400),
        f"model   fails with status 429, to be asked again after {10**400} s",
    ),
    "connection breaks": (ModelFailure(m=1, conversation="main", status=0, shown=3), "model   breaks off"),
    "refusal": (
        ModelRefusal(m=1, conversation="main", broken=[{"rule": "lone-call"}, {"rule": "lone-call"}]),
        "model   refuses its input: lone-call",
    ),
    "exhausted": (ModelExhausted(m=1, conversation="main"), "model   has no further reply"),
    "limit": (ModelExhausted(m=1, conversation="main", limit=50), "model   is asked more than 50 times"),
    "policy": (
        PolicyAsked(tool="pay", arguments={"amount": 5}, call_id="c1", answer=True),
        "tool    pay(amount=5): the policy wants approval",
    ),
    "policy lets run": (
        PolicyAsked(tool="pay", arguments={"amount": 5}, call_id="c1", answer=False),
        "tool    pay(amount=5): the policy lets it run",
    ),
    "policy fails": (
        PolicyAsked(tool="pay", arguments={"amount": 5}, call_id="c1", raised="no"),
        "tool    pay(amount=5): the policy fails",
    ),
    "execution of nothing": (ToolStart(x=1, tool="pay", arguments={"amount": 5}), "tool    pay(amount=5) starts"),
    "provider": (
        ToolStart(x=1, tool="pay", arguments={}, by="provider"),
        "tool    pay() starts at the provider",
    ),
    "end of nothing": (ToolEnd(x=7, result=5), "tool    an unknown call returns 5"),
    "raised": (ToolEnd(x=7, how="raised", error=["ToolRaised", "no"]), "tool    an unknown call raises ToolRaised"),
    "asks again": (ToolEnd(x=7, how="asked"), "tool    an unknown call asks again"),
    "tool is cancelled": (ToolEnd(x=7, how="cancelled"), "tool    an unknown call is cancelled"),
    "elicits": (
        ElicitationAsked(x=7, message="Why?", url="https://a.invalid"),
        'tool    an unknown call asks the caller "Why?" at https://a.invalid',
    ),
    "elicitation is shown": (
        ElicitationShown(x=7, message="Why?", action="accept", content={"why": "so"}),
        'caller  is asked "Why?" by an unknown call, and accepts with {"why": "so"}',
    ),
    "elicitation of nobody": (
        ElicitationShown(message="Why?", action="cancel"),
        'caller  is asked "Why?" by nobody, and cancels',
    ),
    "elicited": (
        ElicitationAnswered(x=7, action="decline"),
        "tool    an unknown call gets the answer: the caller declines",
    ),
    "elicited nothing": (
        ElicitationAnswered(x=7, action="refuse", error="Elicitation not supported"),
        "tool    an unknown call gets no answer: Elicitation not supported",
    ),
    "saved": (StateSaved(name="save-1", mode="json"), "store   saved as json"),
    "not saved": (
        StateSaved(name="save-1", mode="json", error=["TypeError", "no"]),
        "store   saved as json, which fails with TypeError",
    ),
    "restored": (StateRestored(name="save-1", mode="json"), "store   restored from json"),
    "rewritten": (
        StateRewritten(name="save-1", old="a", new="b", where="shown", places=2),
        'store   what was saved says "b" in place of "a", where it is shown',
    ),
    "rewritten nowhere": (
        StateRewritten(name="save-1", old="a", new="b", where="hidden", places=0),
        'store   nothing that was saved says "a", where it is not shown',
    ),
    "rewritten everywhere": (
        StateRewritten(name="save-1", old="a", new="b", where="every", places=2),
        'store   what was saved says "b" in place of "a"',
    ),
    "trimmed": (HistoryTrimmed(keep=1), "store   trimmed to the last 1 message"),
}


class TestEventsAlone:
    @pytest.mark.parametrize(("event", "line"), ALONE.values(), ids=ALONE)
    def test_an_event_is_one_sentence(self, numbered: Callable[..., list[Event]], event: Event, line: str) -> None:
        """Every event can be described alone, in an otherwise empty journal."""
        events = numbered(event)

        assert [line] == EventDescriber(read_history(events)).of(event)

    def test_every_kind_of_event_is_said(self) -> None:
        """No event is without words."""
        assert {*EVENTS.values()} == {type(event) for event, _ in ALONE.values()}


class TestEventsTogether:
    def test_calls_are_said_by_their_labels(self) -> None:
        """What requests, executions and results are about is recognised, and said by the label of the call."""
        events = parse_notation("""
            tool delete(path: string) always
            send Delete both
            model I will.; c1 delete(path=a); c2 delete(path=b)
            pause c1, c2
            save
            restore
            approve c1
            reject c2 keep b
            go
            run c1 -> deleted a
            tell c2 rejected: keep b
            model Done.
            finish Done.
        """)

        assert [
            "run     example on example",
            'caller  sends "Delete both"',
            'model   is asked "Delete both"',
            'model   says "I will."',
            'model   calls c1 delete(path="a")',
            'model   calls c2 delete(path="b")',
            "agent   pauses for c1, c2",
            "store   saved as json",
            "store   restored from json",
            "caller  approves c1",
            "caller  rejects c2: keep b",
            "caller  hands in what is decided",
            'tool    c1 delete(path="a") starts',
            'tool    c1 returns "deleted a"',
            'model   is told c1: "deleted a"',
            'model   is told c2: "rejected: keep b"',
            'model   says "Done."',
            'agent   finishes with "Done."',
            "run     ends",
        ] == [line[3:] for line in describe(events) if "is built" not in line]

    def test_results_are_said_in_the_order_of_their_calls(self) -> None:
        """Which of two tools was faster makes no difference to what the model is told."""
        events = parse_notation("""
            tool read(path: string) never
            send Read
            model c1 read(path=a); c2 read(path=b)
            run c2 -> B
            run c1 -> A
            model Done.
            finish Done.
        """)

        assert ['model   is told c1: "A"', 'model   is told c2: "B"'] == [
            line[3:] for line in describe(events) if "is told" in line
        ]

    def test_a_rewritten_history_is_said(self) -> None:
        """An input that does not repeat the previous one is told from the first difference on."""
        events = parse_notation("""
            tool read(path: string) never
            send Read
            model c1 read(path=a)
            run c1 -> A
            model Done.
            finish Done.
            forget c1
            say I read it.
            send More
            model Bye.
            finish Bye.
        """)

        assert [
            "model   is asked with another history than before",
            'model   is told that it said "Done."',
            'model   is told that it said "I read it."',
            'model   is asked "More"',
        ] == [line[3:] for line in describe(events) if line.startswith(f"{last_question(events)} ")]

    def test_a_refused_turn_is_no_failed_one(self) -> None:
        """A turn that failed before it reached a model or a tool was refused."""
        events = parse_notation("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5)
            pause c1
            approve ?x
            go
            fail LookupError: x
        """)

        assert "agent   refuses with LookupError" in [line[3:] for line in describe(events)]

    def test_going_back_is_said(self) -> None:
        """Taking up a save after which a turn ended is a rewind; taking up the latest is not."""
        events = parse_notation("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5)
            pause c1
            save before
            restore before
            reject c1
            go
            tell c1 no
            model Fine.
            finish Fine.
            restore before
            approve c1
            go
            run c1 -> paid
            model Done.
            finish Done.
        """)

        stored = [line[3:] for line in describe(events) if "store" in line]

        assert ["store   saved as json", "store   restored from json", "store   rewound to 'before'"] == stored

    def test_policies_are_said_about_their_call(self) -> None:
        """A question to the policy is told with the label of its call."""
        events = parse_notation("""
            tool pay(amount: integer) when amount > 10
            send Pay
            model c1 pay(amount=5)
            gate c1 no
            run c1 -> paid
            model Done.
            finish Done.
        """)

        assert "tool    c1 pay(amount=5): the policy lets it run" in [line[3:] for line in describe(events)]


class TestFates:
    @pytest.mark.parametrize(
        ("story", "fate"),
        [
            pytest.param("approve c1\ngo\nrun c1 -> paid", 'asked → approved → ran → told "paid"', id="approved"),
            pytest.param("reject c1 no\ngo\ntell c1 no", 'asked → rejected: no → not run → told "no"', id="rejected"),
            pytest.param("go", "asked → undecided → not run → not told", id="undecided"),
            pytest.param(
                "approve c1\ngo\nrun c1 !! broke\ntell c1 error",
                'asked → approved → ran, raised ToolRaised → told "error"',
                id="raised",
            ),
            pytest.param(
                "edit c1 (amount=1)\ngo\nrun c1 pay(amount=1) -> paid",
                'asked → approved with amount=1 → ran, as pay(amount=1) → told "paid"',
                id="edited",
            ),
            pytest.param(
                "approve c1\ngo\nrun c1 -> paid\nrun c1 -> paid again",
                'asked → approved → ran twice → told "paid" and then "paid again"',
                id="twice",
            ),
            pytest.param(
                "reject c1\nalways c1\ngo\ntell c1 no",
                'asked → rejected and then always approved → not run → told "no"',
                id="contradicted",
            ),
        ],
    )
    def test_what_became_of_a_call(self, story: str, fate: str) -> None:
        """The history of a call, from its request to the delivery of its result, is one line."""
        opening = "tool pay(amount: integer) always\nsend Pay\nmodel c1 pay(amount=5)\npause c1\n"

        assert fate == fate_of("c1", parse_notation(f"{opening}{story}\nmodel Done.\nfinish Done."))

    def test_a_standing_decision(self) -> None:
        """A call that an earlier decision covers was decided before."""
        events = parse_notation("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5)
            pause c1
            always c1
            go
            run c1 -> paid
            model c2 pay(amount=6)
            run c2 -> paid
            model Done.
            finish Done.
        """)

        assert 'not asked → always approved before → ran → told "paid"' == fate_of("c2", events)

    def test_an_ungated_call(self) -> None:
        """A call that needs no approval was not gated; one that the agent forgot to ask about was not asked."""
        story = "send Pay\nmodel c1 pay(amount=5)\nrun c1 -> paid\nmodel Done.\nfinish Done."

        fates = [
            fate_of("c1", parse_notation(f"tool pay(amount: integer) {gate}\n{story}")) for gate in ("never", "always")
        ]

        assert ['not gated → ran → told "paid"', 'not asked → ran → told "paid"'] == fates


def last_question(events: Sequence[Event]) -> int:
    return max(event.n for event in events if isinstance(event, ModelRequest))


def fate_of(label: str, events: Sequence[Event]) -> str:
    from pytest_approvals.journal.formatting import format_call_lifecycle

    call: Any = read_history(events).find_call(label)
    return format_call_lifecycle(call)
