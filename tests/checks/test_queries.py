"""What several checks ask of a history."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.checks._queries import is_tool_missing, repeats_rewritten_text, was_forgotten
from pytest_approvals.journal.events import AgentStart, Header, StateRewritten
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

TOLD_TWICE = """
mode json
send Pay 5
model c1 pay(amount=5)
pause c1
approve c1
go
run c1 -> paid 5
done
save
rewrite {change}
restore save-1
send Next
{told}
done
send Last
done
"""


def read(lines: str) -> History:
    """Returns the history of a journal in notation."""
    return read_history(parse_notation(lines))


def list_repeated(history: History) -> list[bool]:
    """Returns of each text that the model is told of the first call whether it is the text before, rewritten."""
    call = history.calls[0]
    return [repeats_rewritten_text(history, call, delivery) for delivery in call.deliveries]


@pytest.mark.parametrize("told", ["spent 5", "paid 5"])
def test_a_text_is_repeated_as_the_change_of_the_save_has_left_it(told: str) -> None:
    """The change may have reached the place that holds the text, or not."""
    history = read(TOLD_TWICE.format(change="paid spent", told=f"tell c1 {told}"))
    assert [False, True] == list_repeated(history)[:2]


@pytest.mark.parametrize("told", ["spent 6", "gone"])
def test_another_text_is_not_what_a_change_has_left(told: str) -> None:
    """What the change does not say is told anew."""
    history = read(TOLD_TWICE.format(change="paid spent", told=f"tell c1 {told}"))
    assert [False, False] == list_repeated(history)[:2]


def test_a_text_that_a_change_removes_is_repeated_without_it() -> None:
    """A change to nothing leaves what stood around the text."""
    history = read(TOLD_TWICE.format(change="paid spent", told="tell c1 all 5"))
    for delivery, text in zip(history.calls[0].deliveries, ("all paid 5", "all  5"), strict=False):
        delivery.text = text
    for change in history.events_of(StateRewritten):
        change.new = ""
    assert [False, True] == list_repeated(history)[:2]


@pytest.mark.parametrize("texts", [(None, "paid 5"), ("paid 5", None), (None, None)])
def test_a_result_without_a_text_repeats_nothing(texts: tuple[str | None, str | None]) -> None:
    """Pictures and the like have no text in which a change could be seen."""
    history = read(TOLD_TWICE.format(change="paid spent", told="tell c1 spent 5"))
    for delivery, text in zip(history.calls[0].deliveries, texts, strict=False):
        delivery.text = text
    assert [False, False] == list_repeated(history)[:2]


def test_a_text_is_compared_with_the_last_one_before_it() -> None:
    """The change came before the text that is repeated now, so that it explains nothing."""
    lines = TOLD_TWICE.format(change="paid spent", told="tell c1 all spent") + "\nsend More\ntell c1 paid 5\ndone\n"
    assert [False, False, False] == list_repeated(read(lines))


def test_a_change_after_a_text_does_not_explain_it() -> None:
    """What is told before the change has another reason; what is told again after it may be told so by the change."""
    lines = """
    mode json
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done
    send Next
    tell c1 spent 5
    done
    save
    rewrite paid spent
    restore save-1
    send Last
    tell c1 spent 5
    done
    """
    assert [False, False, True] == list_repeated(read(lines))


PAID_TWICE = """
mode native.sqlite
send Pay 5
model c1 pay(amount=5)
pause c1
save
approve c1
go
run c1 -> paid 5
done
restore save-1: c1
approve c1
go
run c1 -> paid 5
done
session b
send Hello
done
"""


@pytest.mark.parametrize(
    ("forgets", "save", "begun", "expected"),
    [
        (True, 6, 90, True),
        (True, None, 90, True),
        (False, 6, 90, False),
        (True, 80, 90, False),
        (True, 6, 7, False),
    ],
    ids=["lost", "all lost", "kept", "before the save", "after the restore"],
)
def test_a_store_forgets_what_ran_between_save_and_restore(
    forgets: bool, save: int | None, begun: int, expected: bool
) -> None:
    """What ran before the save is in it, and what runs after the restore is stored anew."""
    history = read(PAID_TWICE)
    first, second = (call.executions[0] for call in history.calls)
    branch = next(each for each in history.branches if each.number == second.branch)
    branch.forgets, branch.save, branch.n = forgets, save, begun
    assert expected == was_forgotten(history, first, second)


def test_the_store_of_another_session_forgets_for_itself() -> None:
    """Sessions have branches of the same numbers."""
    history = read(PAID_TWICE)
    first, second = (call.executions[0] for call in history.calls)
    other = next(each for each in history.branches if each.session == "b")
    other.number, other.forgets, other.save, other.n = second.branch, True, None, 90
    assert not was_forgotten(history, first, second)


HIDDEN = """
send Pay 5
model c1 pay(amount=5)
pause c1
save a
restore a: c1
approve c1
go
tell c1 not now
done
"""


def test_an_agent_of_which_no_start_is_known_has_its_tools() -> None:
    """What nobody has written down is not missing, so the approved call has to run."""
    events = [event for event in parse_notation(HIDDEN) if not isinstance(event, AgentStart)]
    verdicts = CHECKS["approved-runs"].judge(read_history(events))
    assert ["fail"] == [verdict.status for verdict in verdicts]


@pytest.mark.parametrize(("offered", "is_missing"), [("main", False), ("helper", True)])
def test_of_two_tools_of_one_name_the_one_is_missing_that_is_not_offered(offered: str, is_missing: bool) -> None:
    """After a restart one of two agents has its tool no more, and what each model is offered tells which one."""
    lines = """
    tool ask(input: string) never runs helper
    tool pay(amount: integer) always
    tool look(at) never of helper
    send Pay 5
    model o1 ask(input=one); c1 pay(amount=5)
    model @o1/helper One.
    run o1 -> One.
    pause c1
    save a
    restore a: c1
    approve c1
    go
    offers {inside}
    model @o1/helper Two.
    tell c1 not now
    offers {outside}
    done
    """
    inside, outside = ("look", "pay") if offered == "main" else ("pay", "look")
    events = parse_notation(lines.format(inside=inside, outside=outside))
    assert isinstance(events[0], Header)
    events[0].tools["helper/pay"] = events[0].tools["pay"] | {"agent": "helper"}
    starts = [event for event in events if isinstance(event, AgentStart)]
    starts[0].tools = ["ask", "pay", "look", "pay"]
    history = read_history(events)
    call = history.find_call("c1")
    assert call is not None
    assert is_missing is is_tool_missing(history, call, "pay", history.events[-1].n)
