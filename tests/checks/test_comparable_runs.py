"""Which runs of a scenario have to come to the same."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import judge_group
from pytest_approvals.journal.events import CallerHungUp, ModelFailure, ModelRequest, TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

KEPT = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save
    restore
    approve c1
    go
    run c1 -> paid 5
    done
"""

LOST = KEPT.replace("run c1 -> paid 5", "tell c1 lost")


def fails(*runs):
    return any(verdict.fails for verdict in judge_group([read_history(run) for run in runs]))


def saved_by(release, lines):
    events = parse_notation(lines)
    events[0].variant = {**events[0].variant, "saved_by": release}
    return events


def test_what_another_release_saved():
    """A run that restores what another release saved is not compared with one that saved it itself."""
    assert fails(parse_notation(KEPT), parse_notation(LOST))
    assert not fails(parse_notation(KEPT), saved_by("1.0", LOST))
    assert fails(saved_by("1.0", KEPT), saved_by("1.0", LOST))


def varied(lines, **variant):
    events = parse_notation(lines)
    events[0].variant = {**events[0].variant, **variant}
    return events


def told(*runs):
    """Return what the checks of several runs say: expected, actual and witness of each failure."""
    verdicts = judge_group([read_history(run) for run in runs])
    return [(verdict.expected, verdict.actual, verdict.witness) for verdict in verdicts if verdict.status == "fail"]


def test_the_first_difference_is_told():
    """With the values that differ, if both runs have an event of one kind there, and the variants' names."""
    other = KEPT.replace("-> paid 5", "-> paid 6")

    assert [
        (
            "tool.end with result 'paid 5', as in none",
            "result 'paid 6' in json-fresh-append-stream-restored-uneven",
            (13,),
        )
    ] == told(
        varied(KEPT, serialize="none"),
        varied(
            other, serialize="json", resume="fresh", history="append", stream=True, source="restored", chunking="uneven"
        ),
    )


def test_the_plainest_run_is_the_measure():
    """Whichever comes first, the others are compared with the variant that deviates least."""
    other = KEPT.replace("-> paid 5", "-> paid 6")
    plain, streamed = varied(KEPT, serialize="none"), varied(other, serialize="json", stream=True)

    assert told(plain, streamed) == told(streamed, plain)
    assert "tool.end with result 'paid 5', as in none" == told(streamed, plain)[0][0]


def test_a_run_that_ends_early():
    """What one run has beyond the end of the other is told."""
    short = KEPT.replace("run c1 -> paid 5", "run c1 -> paid 5\n fail ModelDown: no").replace("done", "end left")
    expected, actual, _ = told(varied(KEPT, serialize="none"), varied(short, serialize="copy"))[0]

    assert "model.request (conversation 'main', agent 'main', items [" == expected[:57]
    assert "turn.end (turn 2, outcome 'failed'" == actual[:34]


@pytest.mark.parametrize(
    "apart", [{"oracle": "approve_all"}, {"protocol": "chat"}, {"saved_by": "1.0"}], ids=lambda apart: next(iter(apart))
)
def test_runs_that_are_not_compared(apart):
    """Another oracle decides otherwise, another protocol asks otherwise, another release saved otherwise."""
    plain = varied(KEPT, serialize="none")

    assert [] == told(plain, varied(LOST, serialize="json", **apart))
    assert told(plain, varied(LOST, serialize="json"))


@pytest.mark.parametrize("chunking", ["repeated_ids", "changing_ids"])
def test_a_stream_that_gives_a_call_several_ids(chunking):
    """The run is compared without ids, whether it is the plainest one or another."""
    renamed = KEPT.replace("run c1 -> paid 5", "run c1 -> paid 5\n    rename c1 c1-2")
    odd = {"chunking": chunking, "stream": True}

    for serialize in ("none", "json"):
        assert [] == told(varied(KEPT, serialize="copy"), varied(renamed, serialize=serialize, **odd))
        assert told(varied(KEPT, serialize="copy"), varied(LOST, serialize=serialize, **odd))
    assert told(varied(KEPT, serialize="copy"), varied(renamed, serialize="json"))


def test_the_plainest_run_is_one_whose_stream_gives_several_ids():
    """What deviates more is compared with it without ids, too."""
    renamed = KEPT.replace("run c1 -> paid 5", "run c1 -> paid 5\n    rename c1 c1-2")
    plainest = varied(renamed, serialize="none", chunking="changing_ids")
    deviating = {"serialize": "json", "resume": "fresh"}

    assert [] == told(plainest, varied(KEPT, **deviating))
    assert told(plainest, varied(LOST, **deviating))


def test_the_place_of_a_difference_in_a_list_is_told():
    """By its number there."""
    lost, gone = LOST, LOST.replace("tell c1 lost", "tell c1 gone")

    assert [
        ("model.request with items 3 text 'lost', as in none", "items 3 text 'gone' in json", (12,)),
    ] == told(varied(lost, serialize="none"), varied(gone, serialize="json"))


def test_a_request_is_answered_in_a_future_of_its_own():
    """A caller that answers there what was asked before the save is compared with one that holds its requests."""
    other = FORKED.replace("tell c1 no", "tell c1 lost")

    assert told(varied(FORKED, serialize="json"), varied(other, serialize="json", source="restored"))


def test_a_process_dies_while_it_stores_a_later_turn():
    """Another store is written to at other places, whatever was stored before."""
    lines = "send Hello\ndone\nsend Pay 5\n{}crash write"
    plain = varied(lines.format(""), serialize="native.files")
    asked = lines.format("model c1 pay(amount=5)\n")

    assert [] == told(plain, varied(asked, serialize="native.sqlite"))
    assert told(plain, varied(asked, serialize="native.files", stream=True))


def test_a_text_that_quotes_one_of_several_ids():
    """Where a stream gives a call several ids, the one that a text quotes does not count; the other words do."""
    rejected = KEPT.replace("approve c1", "reject c1").replace("run c1 -> paid 5", "tell c1 Rejected: call {}, {}.")
    plain = varied(rejected.format("c1", "pay"), serialize="copy")
    renamed = rejected.replace("tell c1", "rename c1 c1-2\n    tell c1")
    odd = {"chunking": "changing_ids", "stream": True}

    assert [] == told(plain, varied(renamed.format("c1-2", "pay"), serialize="copy", **odd))
    assert told(plain, varied(renamed.format("c1-2", "send"), serialize="copy", **odd))
    assert told(plain, varied(renamed.format("c1-3", "pay"), serialize="copy", **odd))
    # Nothing else may show the id that the stream has made.
    assert [] == told(plain, varied(rejected.format("c1-2", "pay"), serialize="copy", **odd))
    assert told(plain, varied(rejected.format("c1-x", "pay"), serialize="copy", **odd))
    assert told(plain, varied(renamed.format("c1-2", "pay"), serialize="json"))


@pytest.mark.parametrize("name", ["scenario", "agent"])
def test_other_stories_and_agents_are_not_compared(name):
    """Runs are compared with runs of the same scenario on the same agent."""
    other = varied(LOST, serialize="json")
    setattr(other[0], name, "another")

    assert [] == told(varied(KEPT, serialize="none"), other)


FORKED = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save a
    restore a
    approve c1
    go
    run c1 -> paid 5
    done
    restore a
    reject c1
    go
    tell c1 no
    done
"""


def test_two_futures_of_one_state():
    """A live object, a store and copies keep two futures differently, and each kind is compared with its own only."""
    other = FORKED.replace("tell c1 no\n    done", "fail AlreadySettled: req-1\n    end left")
    kinds = ("none", "native.sqlite", "json")

    assert [[], [], []] == [
        told(varied(FORKED, serialize=first), varied(other, serialize=second))
        for first, second in zip(kinds, (*kinds[1:], kinds[0]), strict=True)
    ]
    assert told(varied(FORKED, serialize="json"), varied(other, serialize="copy"))
    assert told(varied(FORKED, serialize="native.sqlite"), varied(other, serialize="native.sqlite", stream=True))


GIVEN_UP = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save a
    cancel
    restore a
    approve c1
    go
    run c1 -> paid 5
    done
"""


def test_a_cancel_makes_two_futures():
    """A save that is taken up again after a cancel holds what a store has given up."""
    gone = GIVEN_UP.replace("approve c1\n    go\n    run c1 -> paid 5\n    done", "end left")

    assert [] == told(varied(GIVEN_UP, serialize="json"), varied(gone, serialize="native.sqlite"))
    assert told(varied(GIVEN_UP, serialize="json"), varied(gone, serialize="copy"))


def test_a_save_that_does_not_hold_the_text():
    """A text is changed only where the save holds it, and runs are compared with their like."""
    changed = KEPT.replace("save\n", "save\n    rewrite 5 7\n").replace("paid 5", "paid 7")

    assert [] == told(varied(KEPT, serialize="native.sqlite"), varied(changed, serialize="json"))
    assert told(varied(KEPT, serialize="native.sqlite"), varied(LOST, serialize="json"))


SKIPPED = """
    send Pay 5
    model c1 pay(amount=5)
    fail ToolError: another call
    skip no request
    end left
"""
SHOWN = """
    send Pay 5
    model c1 pay(amount=5)
    fail ToolError: another call
    save s1
    restore s1: c1
    approve c1
    go
    run c1 -> paid 5
    done
"""


def test_a_decision_that_was_left_out_behind_a_failure():
    """Only a run that restores its state finds the request of a failed turn; others are compared with their like."""
    assert [] == told(varied(SKIPPED, serialize="none"), varied(SHOWN, serialize="json"))
    assert told(varied(SKIPPED, serialize="json"), varied(SHOWN, serialize="copy"))
    assert told(
        varied(SKIPPED.replace("fail ToolError: another call\n", "pause c1\n"), serialize="none"),
        varied(SHOWN, serialize="json"),
    )


def test_a_run_without_a_header_is_not_compared():
    """Nothing says which scenario it is of."""
    assert [] == told(parse_notation(KEPT)[1:], varied(LOST, serialize="json"))


def test_what_follows_the_end_of_one_run():
    """The other one has nothing more."""
    slow = KEPT + "end completed\nunclosed close() hangs"
    expected, actual, _ = told(varied(slow, serialize="none"), varied(KEPT, serialize="json"))[0]

    assert "agent.close_timeout (what 'close() hangs'), as in none" == expected
    assert "nothing more in json" == actual


def test_an_event_without_facts():
    """It is told by its name."""
    cancelled = KEPT.replace("approve c1", "cancel\n    approve c1")
    expected, actual, _ = told(varied(KEPT, serialize="none"), varied(cancelled, serialize="json"))[0]

    assert ("caller.decide (verdict 'approve', label 'c1', oracle 'script'), as in none", "caller.cancel in json") == (
        expected,
        actual,
    )


def test_turns_at_the_same_time():
    """A live object and copies keep them differently, even if others came one after the other."""
    lines = "send Hello\ndone\nsend Go\nsend Wait\nmodel Done.\n2: finish Done.\nmodel Done.\n3: finish Done."
    other = lines.replace("3: finish Done.", "3: fail Busy: a turn runs")

    assert [] == told(varied(lines, serialize="none"), varied(other, serialize="json"))
    assert told(varied(lines, serialize="none"), varied(other, serialize="none", stream=True))


FAILED = "send Pay 5\nmodel c1 {call}\n{between}fail ToolError: another call\n{later}"


def fails_silently(between="", later="", call="pay(amount=5)"):
    """Return a live run and a restored one, which differ, after a failed turn that showed no request."""
    lines = FAILED.format(call=call, between=between, later=later)
    return varied(lines, serialize="none"), varied(lines + "\nsend And now?\ndone", serialize="json")


DECIDED = "pause c1\napprove c1\ngo\n"


@pytest.mark.parametrize(
    "runs",
    [
        fails_silently(),
        fails_silently(later="tell c1 superseded\nsend Never mind\ndone"),
        fails_silently(DECIDED + "run c1 ??\n"),
        fails_silently(DECIDED + "run c1 ??\npause c1\napprove c1\ngo\nrun c1 ??\n"),
        fails_silently("run c1 ??\n", call="read(path=a)"),
        fails_silently(call="read(path=a)", later="skip no request"),
    ],
    ids=["undecided", "told-later", "asks-in-the-middle", "asks-twice", "ungated-asks", "left-out"],
)
def test_a_request_that_only_a_restored_state_lists(runs):
    """A call waits that nobody decided, or that asked again since: a live agent has not shown it."""
    assert [] == told(*runs)


@pytest.mark.parametrize(
    "runs",
    [
        fails_silently(call="read(path=a)"),
        fails_silently("tell c1 bad amount\ndown 500\n", call="pay(amount=much)"),
        fails_silently(DECIDED + "run c1 !! no connection\n"),
        fails_silently(DECIDED + "run c1 !! no connection\n", later="approve c1\ngo\nrun c1 ??\npause c1"),
        fails_silently(DECIDED + "run c1 ??\npause c1\napprove c1\ngo\nrun c1 !! no connection\n"),
        fails_silently(call="read(path=a)", later="skip stage: nothing to put into the state"),
        fails_silently(call="read(path=a)", between="run c1 -> text\ndone\nskip no request\nsend On\nmodel Well.\n"),
    ],
    ids=["ungated", "told", "decided", "asks-later", "decided-again", "another-step-left-out", "left-out-before"],
)
def test_nothing_waits_after_a_failure(runs):
    """No variant can list a request, so all are compared."""
    assert told(*runs)


def test_a_call_that_is_made_after_a_failure():
    """Nothing waited at the failure; a turn that was refused has shown nothing new."""
    later = "send Hello\ndown 500\nfail ModelDown: 500\n" + KEPT
    refused = KEPT.replace("save\n", "send Wait\nfail Pending: c1\nsave\n")

    for lines in (later, refused):
        assert told(varied(lines, serialize="none"), varied(lines.replace("-> paid 5", "!! no"), serialize="json"))


def test_a_failed_turn_that_shows_its_requests():
    """Then all variants list them."""
    events = varied("send Pay 5\nmodel c1 pay(amount=5)\npause c1\nend left", serialize="none")
    end = next(event for event in events if event.kind == "turn.end")
    end.outcome, end.error = "failed", ["ToolError", "another call"]

    assert told(events, varied(SHOWN, serialize="json"))


DOWN = """
    send Pay 5
    down 529
    fail ModelOverloadedError: overloaded
"""


def test_the_error_of_a_broken_stream_is_another_one():
    """What breaks off in a stream has no status, so the framework cannot say the same of it."""
    broken = varied(DOWN.replace("ModelOverloaded", "ModelConnection"), serialize="none", stream=True)
    refused = varied(DOWN.replace("ModelOverloaded", "ModelConnection"), serialize="json")
    next(event for event in broken if isinstance(event, ModelFailure)).shown = 2

    assert [] == told(varied(DOWN, serialize="none"), broken)
    assert told(varied(DOWN, serialize="none"), refused)


HUNG_UP = """
    tool ask(input: string) never runs helper
    tool pay(amount: integer) never of helper
    send Pay 5 and 6
    model o1 ask(input="Pay 5"); o2 ask(input="Pay 6")
    model @o1/helper o1/c1 pay(amount=5)
    start o1/c1
    model @o2/helper o2/c1 pay(amount=6)
    hangup o1/c1
"""


def ask_once_more(lines, *, conversation, before=TurnEnd, **variant):
    """Return a journal in which a model is asked once more, before the last event of that class."""
    events = parse_notation(lines)
    at = max(index for index, event in enumerate(events) if isinstance(event, before))
    events.insert(at, ModelRequest(m=9, conversation=conversation, agent="helper", items=[], tools=[]))
    for n, event in enumerate(events, 1):
        event.n = n
    events[0].variant = {**events[0].variant, **variant}
    return events


def test_how_far_other_agents_come_after_a_hang_up_is_chance():
    """They may be asked once more until the turn ends, in either run, and whatever came before that turn."""
    greeted = HUNG_UP.replace("send Pay", "send Hello\n    done\n    send Pay")

    for lines in (HUNG_UP, greeted):
        for one, other in (("none", "json"), ("json", "none")):
            assert [] == told(
                varied(lines, serialize=one), ask_once_more(lines, conversation="o2/helper", serialize=other)
            )


def test_what_else_differs_around_a_hang_up_is_told():
    """What the agent of the call does that was cut off, what the main one does, and what comes before or later."""
    plain = varied(HUNG_UP, serialize="none")
    ended = HUNG_UP.replace("hangup o1/c1", "start o2/c1\n    returns o2/c1 paid 6\n    hangup o1/c1")
    later = HUNG_UP + "    send Hello\n    model @o2/helper Paid.\n"

    assert told(plain, ask_once_more(HUNG_UP, conversation="o1/helper", serialize="json"))
    assert told(plain, ask_once_more(HUNG_UP, conversation="main", serialize="json"))
    assert told(plain, ask_once_more(HUNG_UP, conversation="o2/helper", before=CallerHungUp, serialize="json"))
    assert told(varied(later + "    done", serialize="none"), varied(later + "model @o2/helper Paid.\ndone"))
    assert [] == told(varied(ended, serialize="none"), ask_once_more(ended, conversation="o2/helper", serialize="json"))


def break_stream(lines, **variant):
    """Return a streamed run in which the first failure of a model is a stream that breaks off."""
    events = varied(lines, stream=True, **variant)
    next(event for event in events if isinstance(event, ModelFailure)).shown = 2
    return events


def test_only_the_error_of_the_turn_of_a_broken_stream_may_differ():
    """Not its other facts, not the error of a later turn, of a tool, or of a turn whose last reply was whole."""
    plain = DOWN.replace("fail ModelOverloadedError: overloaded", "finish Sorry.")
    later = DOWN + "send Again\ndown 529\nfail {}: no\n"
    whole = DOWN.replace("fail", "model Hm.\n    fail")
    tool = "send Go\nmodel c1 read(path=a)\nrun c1 !! no\n" + DOWN.replace("send Pay 5", "")
    raised = parse_notation(tool)
    next(event for event in raised if event.kind == "tool.end").error = ["Other", "no"]
    raised[0].variant = {"serialize": "json"}

    assert told(varied(DOWN, serialize="none"), break_stream(plain, serialize="json"))
    assert told(varied(later.format("One"), serialize="none"), break_stream(later.format("Two"), serialize="json"))
    assert told(varied(whole, serialize="none"), break_stream(whole.replace("Overloaded", "Lost"), serialize="json"))
    assert told(break_stream(tool, serialize="none"), raised)


REFUSED = KEPT + "    approve c1\n{step}\nend left"


@pytest.mark.parametrize(
    "step", ["go\n fail {}: c1", "stage {}: c1", "cancel {}: c1"], ids=lambda step: step.partition(" ")[0].strip()
)
def test_a_refusal_may_have_another_name(step):
    """What was saved may not say why a step is refused; that it is refused counts."""
    refused = REFUSED.replace("{step}", step)

    assert [] == told(
        varied(refused.format("AlreadySettled"), serialize="none"), varied(refused.format("UnknownRequest"))
    )
    assert told(varied(refused.format("AlreadySettled"), serialize="none"), varied(KEPT))
    taken = REFUSED.replace("{step}", step.split()[0])
    for one, other in (("none", "json"), ("json", "none")):
        assert told(varied(refused.format("AlreadySettled"), serialize=one), varied(taken, serialize=other))


def test_refusals_that_list_other_requests_are_told():
    """What a refused step leaves open is a fact about it."""
    lines = "send Pay 5\nmodel c1 pay(amount=5)\npause c1\napprove ?q9\ngo\nfail {}: q9\nend left"
    runs = varied(lines.format("KeyError"), serialize="none"), varied(lines.format("LookupError"), serialize="json")
    ends = [[event for event in events if isinstance(event, TurnEnd)] for events in runs]

    assert [] == told(*runs)
    ends[1][1].requests = ends[1][0].requests
    assert told(*runs)


@pytest.mark.parametrize("before", ["", "model Hm.\n"], ids=["refused", "asked"])
def test_only_a_refusal_may_have_another_name(before):
    """A turn that came to the model, or a tool, fails for a reason that its caller has to know."""
    refused = "approve c1\ngo\nfail Refused: c1\n"
    failed = KEPT + f"{refused}send Again\n{before}fail {{}}: no\nend left"
    runs = varied(failed.format("One"), serialize="none"), varied(failed.format("Two"), serialize="json")

    assert bool(before) == bool(told(*runs))


def test_a_run_without_a_header_is_compared_with_nothing():
    """Nobody knows which scenario it belongs to."""
    assert not fails(varied(KEPT, serialize="none"), parse_notation(LOST)[1:])


def test_what_one_run_lacks_is_told_without_what_is_empty():
    """Only fields that have a value are named."""
    ran = "send Go\nmodel c1 read()\nrun c1 -> text\nfinish Done."
    lost = ran.replace("run c1 -> text", "tell c1 text")
    [(expected, _, _)] = told(varied(ran, serialize="none"), varied(lost, serialize="copy"))

    assert "tool.start (tool 'read', call_id 'c1', agent 'main', by 'agent'), as in none" == expected


def test_a_call_that_begins_after_a_hang_up_was_not_cut_off():
    """Its agent may be asked once more, too."""
    begun = HUNG_UP.replace("hangup o1/c1", "start o2/c1\n    returns o2/c1 paid 6\n    hangup o1/c1")
    runs = []
    for mode in ("none", "json"):
        events = ask_once_more(begun, conversation="o2/helper", serialize=mode)
        [hang_up] = [event for event in events if isinstance(event, CallerHungUp)]
        events.remove(hang_up)
        start = next(event for event in events if event.kind == "tool.start" and event.arguments == {"amount": 6})
        events.insert(events.index(start), hang_up)
        if mode == "none":
            events = [event for event in events if getattr(event, "m", None) != 9]
        for n, event in enumerate(events, 1):
            event.n = n
        runs.append(events)

    assert [] == told(*runs)
