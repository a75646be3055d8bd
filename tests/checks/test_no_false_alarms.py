"""Ways in which good agents differ, and journals that wrongly failed a check: none of them is a finding."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import SHOWN_STATUSES, judge
from pytest_approvals.journal.events import event_from_dict
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.validation import find_violations

NO_FINDING = {
    "a tool raises, the turn fails, and the person decides again": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 !! no connection
        fail ToolRaised: no connection
        approve c1
        go
        run c1 -> paid 5
        done
    """,
    "a tool raises and the model is told": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 !! no connection
        tell c1 no connection
        done
    """,
    "the tool of an approved call is gone after a restart and the model is told": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        without pay
        restore
        approve c1
        go
        tell c1 there is no tool pay
        done
    """,
    "the tool of an approved call is gone after a restart and the turn fails": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        without pay
        restore
        approve c1
        go
        fail ModelBehaviorError: no tool pay
        end left: c1
    """,
    "the tool of an approved call needs more after a restart and the model is told": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        takes pay(amount: integer, to: string)
        restore
        approve c1
        go
        tell c1 to is missing
        done
    """,
    "the tool of an approved call can take more after a restart and gets a default": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        takes pay(amount: integer, note: string = none)
        restore
        approve c1
        go
        run c1 pay(amount=5, note=none) -> paid 5
        done
    """,
    "unfitting arguments of a gated call are answered to the model": """
        send Pay
        model c1 pay(amount=much)
        tell c1 amount must be an integer
        done
    """,
    "unfitting arguments of an ungated call are answered to the model": """
        send Read
        model c1 read(file=a)
        tell c1 path is missing
        done
    """,
    "raw text as arguments of a gated call is asked about": """
        send Pay
        model c1 pay({broken)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
    """,
    "a call of a tool that does not exist is answered": """
        send Fly
        model c1 fly(to=moon)
        tell c1 there is no tool fly
        done
    """,
    "a turn is refused because two calls have one id": """
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=6)
        fail ModelBehaviorError: two calls with one id
    """,
    "the second of two calls with one id gets another one": """
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=6)
        rename c1#2 c1-2
        pause c1, c1#2
        approve c1
        reject c1#2
        go
        run c1 -> paid 5
        tell c1#2 rejected
        done
    """,
    "a call without an id gets one": """
        send Pay
        model c1@- pay(amount=5)
        rename c1 made-up
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
    """,
    "a raising policy lets the turn fail": """
        tool pay(amount: integer) raises
        send Pay 5
        model c1 pay(amount=5)
        gate c1 raises
        fail ConditionRaised: no
    """,
    "a raising policy is answered to the model": """
        tool pay(amount: integer) raises
        send Pay 5
        model c1 pay(amount=5)
        gate c1 raises
        tell c1 the policy failed
        done
    """,
    "a policy that says no": """
        tool pay(amount: integer) when amount > 100
        send Pay 5
        model c1 pay(amount=5)
        gate c1 no
        run c1 -> paid 5
        done
    """,
    "a policy that changes its mind before the call runs": """
        tool pay(amount: integer) when amount > 100
        send Pay 500
        model c1 pay(amount=500)
        gate c1 yes
        pause c1
        approve c1
        go
        gate c1 no
        run c1 -> paid 500
        done
    """,
    "a refused decision leaves the request where it was": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        fail UserError: c2 is not answered
        save
        restore
        approve c1
        reject c2
        go
        run c1 -> paid 5
        tell c2 rejected
        done
    """,
    "text where a number is declared": """
        send Pay 5
        model c1 pay(amount="5")
        pause c1
        approve c1
        go
        run c1 pay(amount=5) -> paid 5
        done
    """,
    "defaults are filled in": """
        tool pay(amount: integer, currency: string = "EUR") always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 pay(amount=5, currency=EUR) -> paid 5
        done
    """,
    "a value that is not declared is left out": """
        send Pay 5
        model c1 pay(amount=5, note=hi)
        pause c1
        approve c1
        go
        run c1 pay(amount=5) -> paid 5
        done
    """,
    "an edit to another tool": """
        tool pay(amount: integer) always
        tool quote(amount: integer) always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 quote(amount=5)
        go
        run c1 quote(amount=5) -> 5 it is
        done
    """,
    "two nested agents use one call id": """
        tool ask(input) never runs helper
        tool other(input) never runs friend
        tool pay(amount: integer) always of helper
        tool send(amount: integer) always of friend
        send Go
        model o1 ask(input=first); o2 other(input=second)
        model @o1/helper o1/c1 pay(amount=5)
        model @o2/friend o2/c1 send(amount=6)
        pause o1/c1, o2/c1
        reject o1/c1
        approve o2/c1
        go
        tell o1/c1 rejected
        run o2/c1 -> sent 6
        model @o1/helper No.
        model @o2/friend Yes.
        tell o1 No.
        tell o2 Yes.
        done
    """,
    "a gated call that runs an agent": """
        tool ask(input) always runs helper
        tool read(path) never of helper
        send Go
        model o1 ask(input=first)
        pause o1
        approve o1
        go
        model @o1/helper o1/c1 read(path=a)
        run o1/c1 -> text
        model @o1/helper Read.
        tell o1 Read.
        done
    """,
    "a new message closes the request, and a late approval is refused": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 superseded
        send Never mind
        done
        approve c1
        go
        fail UserError: nothing is pending
    """,
    "a new message is refused while a request is pending": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        fail UserError: a request is pending
        drop user Never mind
        reject c1
        go
        tell c1 rejected
        done
    """,
    "a new message leaves the request pending": """
        rules none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send And hurry
        pause c1
        reject c1
        go
        tell c1 rejected
        done
    """,
    "an ungated sibling waits for the answer": """
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        pause c1
        reject c1
        go
        tell c1 rejected
        run c2 -> text
        done
    """,
    "an ungated sibling is dropped with the reply when the caller writes something else": """
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        pause c1
        tell c1 superseded
        tell c2 superseded
        send Never mind
        done
    """,
    "an approved call waits for its sibling's answer": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        pause c2
        reject c2
        go
        run c1 -> paid 5
        tell c2 rejected
        done
    """,
    "requests of one reply surface one by one": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        pause c2
        reject c2
        go
        tell c2 rejected
        done
    """,
    "a standing approval covers a sibling that is pending": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        always c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done
    """,
    "a standing approval that does not last": """
        send Pay
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        done
        send Again
        model c2 pay(amount=6)
        pause c2
        reject c2
        go
        tell c2 rejected
        done
    """,
    "a standing rejection": """
        send Pay
        model c1 pay(amount=5)
        pause c1
        never c1 no money
        go
        tell c1 no money
        model c2 pay(amount=6)
        tell c2 no money
        done
    """,
    "an explicit rejection despite a standing approval": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1
        always c2
        go
        tell c1 rejected
        run c2 -> paid 6
        done
    """,
    "a tool asks again in its middle and the second answer is no": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 ??
        pause c1
        reject c1 over the limit
        go
        tell c1 over the limit
        done
    """,
    "a turn fails before the call is taken over into the history": """
        send Read a
        model c1 read(path=a)
        run c1 -> text
        down 500
        fail ModelDown: status 500
        forget c1
        drop user Read a
        send Hello
        done
    """,
    "the model fails after an approved call and the turn is tried again": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        down 500
        fail ModelDown: status 500
        approve c1
        go
        done
    """,
    "results that come after a message, where the provider takes that": """
        rules responses
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        send Hurry
        run c1 -> paid 5
        done
    """,
    "what is pending is cancelled": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        cancel
        tell c1 cancelled
        send Hello
        done
    """,
    "what was saved is changed while a request is pending": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        digest abc
        rewrite 5 1
        restore save-1: c1 pay(amount=1)
        again abd
        approve c1
        go
        change c1 amount=1
        run c1 pay(amount=1) -> paid 1
        done
    """,
    "the history is trimmed while a request is pending": """
        send Hello
        done
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        trim 2
        approve c1
        go
        run c1 -> paid 5
        done
    """,
    "a rewind after a rejection": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        reject c1
        go
        tell c1 rejected
        done
        save
        restore a
        approve c1
        go
        run c1 -> paid 5
        done
    """,
    "a rewind of a durable store, which knows that the call is settled": """
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        save
        restore a:
        end left
    """,
    "a double click on one live session, the second one refused": """
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        approve c1
        go
        3: fail UserError: it runs already
        returns c1 paid 5
        done
    """,
    "a decision that was put into the state and saved": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        stage
        save
        restore
        go
        tell c1 rejected
        done
    """,
    "a decision that was put into the state and replaced there": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        reject c1
        stage
        go
        tell c1 rejected
        done
    """,
    "two sessions of one agent with the same ids": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 6
        done
        session
        reject c1
        go
        tell c1 rejected
        done
    """,
    "a hosted call is approved and the provider runs it": """
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        approve c1
        go
        respond c1 yes
        hosted c1 -> nine cats
        done
    """,
    "a hosted call is rejected": """
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        reject c1 no cats
        go
        respond c1 no no cats
        done
    """,
    "a stream in pieces, with text before the call": """
        streaming
        send Pay 5
        model Letme; c1 pay(amount=5)
        show text Let
        show text me
        show call c1
        show request c1
        show end
        pause c1
        approve c1
        go
        run c1 -> paid 5
        show result c1
        model Done.
        show text Done.
        show end
        finish Done.
    """,
    "a tool that returns no text": """
        send Go
        model c1 read(path=a)
        start c1
        gives c1 {"size": 5, "lines": ["a", null, true]}
        tell c1 {"size":5,"lines":["a",null,true]}
        done
    """,
    "the state refuses a contradiction, and the person thinks again": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        reject c1
        stage UserError: two answers
        approve c1
        go
        run c1 -> paid 5
        done
    """,
    "a message is refused, and the staged approval takes effect in the next turn": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        stage
        send And now?
        fail Refused: decide first
        drop user And now?
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done
    """,
    "a staged approval is given up with everything else": """
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        stage
        save
        restore
        cancel
        send And now?
        drop user And now?
        tell c1 cancelled
        tell c2 cancelled
        user And now?
        done
    """,
    "a run that was left with a request": """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        end left: c1
    """,
}


@pytest.mark.parametrize("lines", NO_FINDING.values(), ids=NO_FINDING)
def test_it_is_no_finding(lines):
    """No check fails or warns."""
    events = parse_notation(lines)

    assert [] == [
        (verdict.check, verdict.label, verdict.actual) for verdict in judge(events) if verdict.status in SHOWN_STATUSES
    ]


@pytest.mark.parametrize("lines", NO_FINDING.values(), ids=NO_FINDING)
def test_it_is_a_journal(lines):
    """The story could have been recorded."""
    assert [] == find_violations(parse_notation(lines))


WARNINGS = {
    "an unknown request is ignored without a sound": (
        {"invalid-decision-refused"},
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q9
        go
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        """,
    ),
    "no decision closes the call as rejected": (
        {"invalid-decision-refused"},
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 "yes"
        go
        tell c1 rejected
        done
        """,
    ),
    "a repeated decision makes the agent ask the model again": (
        {"settled-stays-settled"},
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        approve c1
        go
        done
        """,
    ),
    "two copies of one state both run the call": (
        {"runs-at-most-once"},
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        restore a
        approve c1
        go
        start c1
        restore a
        approve c1
        go
        run c1 -> paid 5
        returns c1 paid 5
        3: finish Done.
        2: finish Done.
        end left
        """,
    ),
}


@pytest.mark.parametrize(("checks", "lines"), WARNINGS.values(), ids=WARNINGS)
def test_it_is_a_warning(checks, lines):
    """The weaker half of a requirement is broken, and nothing fails."""
    shown = [verdict for verdict in judge(parse_notation(lines)) if verdict.status in SHOWN_STATUSES]

    assert {(check, "warning") for check in checks} == {(verdict.check, verdict.status) for verdict in shown}


def judge_with_instructions(lines, *instructions):
    """Return the verdicts that show something, of a story whose model inputs begin with these instructions in turn."""
    events = parse_notation(lines)
    inputs = [event for event in events if event.kind == "model.request"]
    for event, texts in zip(inputs, instructions, strict=True):
        event.items[:0] = [{"kind": "other", "text": text, "message": -1} for text in texts]
    return [(verdict.check, verdict.actual) for verdict in judge(events) if verdict.status in SHOWN_STATUSES]


class TestInstructions:
    def test_they_may_change(self):
        """What stands before the messages is the agent's own, and no past of the model."""
        lines = "send Go\nmodel c1 read(path=a)\nrun c1 -> text\ndone"

        assert [] == judge_with_instructions(lines, ["It is 9:00."], ["It is 9:01."])

    def test_a_message_behind_them_may_not(self):
        """What was said stays as it was, also behind instructions that change."""
        first, second = "model c1 read(path=a)\nrun c1 -> A", "model c2 read(path=b)\nrun c2 -> B"
        lines = f"send Go\n{first}\n{second}\nuntell c1\ntell c1 C\ndone"
        shown = judge_with_instructions(lines, ["1"], ["2"], ["3"])

        assert ("history-not-rewritten", "item 4 of the previous input is different or missing") in shown

    def test_one_that_comes_later_is_no_change_of_one(self):
        """An input that begins with more instructions than the previous one does not repeat it."""
        lines = "send Go\nmodel c1 read(path=a)\nrun c1 -> text\ndone"
        shown = judge_with_instructions(lines, ["Be brief."], ["Be brief.", "Be exact."])

        assert [("history-not-rewritten", "item 2 of the previous input is different or missing")] == shown


def _write_input(m: int) -> dict[str, object]:
    user = {"kind": "user", "text": "Pay 5", "message": 0}
    made = {"kind": "call", "id": "c1", "tool": "pay", "arguments": {"amount": 5}, "message": 1}
    told = {"kind": "result", "id": "c1", "text": "paid 5", "message": 2}
    items = [user] if m == 1 else [user, made, told]
    return {"event": "model.request", "m": m, "conversation": "main", "agent": "main", "items": items, "tools": ["pay"]}


def test_of_two_turns_at_the_same_time_neither_precedes_the_other() -> None:
    """An input that one of them repeats after the other has all messages of the caller that the other one has."""
    call = {"label": "c1", "id": "c1", "tool": "pay", "arguments": {"amount": 5}, "kind": "function"}
    request = {"q": "q1", "call_id": "c1", "agent": "main", **call}
    written: list[dict[str, object]] = [
        {"event": "header", "format": 1, "scenario": "twice", "agent": "mine", "variant": {"serialize": "none"}},
        {"event": "agent.start", "tools": ["pay"], "how": "built"},
        {"event": "turn.start", "turn": 1, "text": "Pay 5"},
        _write_input(1),
        {"event": "model.answer", "m": 1, "conversation": "main", "calls": [call]},
        {"event": "turn.end", "turn": 1, "outcome": "paused", "requests": [request]},
        {"event": "caller.decide", "verdict": "approve", "q": "q1", "id": "c1", "label": "c1"},
        {"event": "turn.start", "turn": 2, "decisions": [7]},
        {"event": "caller.decide", "verdict": "approve", "q": "q1", "id": "c1", "label": "c1"},
        {"event": "turn.start", "turn": 3, "decisions": [9]},
        _write_input(2),
        {"event": "model.answer", "m": 2, "conversation": "main", "say": "Paid."},
        _write_input(3),
        {"event": "model.exhausted", "m": 3, "conversation": "main"},
        _write_input(4),
        {"event": "model.exhausted", "m": 4, "conversation": "main"},
        {"event": "turn.end", "turn": 3, "outcome": "finished", "output": "Paid."},
        {"event": "turn.end", "turn": 2, "outcome": "finished", "output": "Paid."},
        {"event": "run.end", "how": "completed"},
    ]
    events = [event_from_dict({**event, "n": number}) for number, event in enumerate(written, start=1)]

    failing = [verdict.check for verdict in judge(read_history(events)) if verdict.status == "fail"]
    assert "caller-messages-kept" not in failing
