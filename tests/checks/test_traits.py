"""The design choices that journals show."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import TRAITS, merge_traits, observe_traits
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

ASKED = "send Pay\nmodel c1 pay(amount=5)\npause c1"
TWO = "send Pay\nmodel c1 pay(amount=5); c2 pay(amount=6)\npause c1, c2"
BESIDE = "send Go\nmodel c1 pay(amount=5); c2 read(path=a)"
RAISES = "tool pay(amount: integer) raises\nsend Pay\nmodel c1 pay(amount=5)\ngate c1 raises"
DONE = f"{ASKED}\napprove c1\ngo\nrun c1 -> paid 5\ndone"
SHOWN = {
    ("ungated-siblings", "at once"): f"{BESIDE}\nrun c2 -> text\npause c1\nend left",
    ("ungated-siblings", "wait"): f"{BESIDE}\npause c1\nreject c1\ngo\ntell c1 no\nrun c2 -> text\ndone",
    ("requests-surface", "together"): f"{TWO}\nend left",
    ("requests-surface", "one by one"): (
        "send Pay\nmodel c1 pay(amount=5); c2 pay(amount=6)\npause c1\napprove c1\ngo\nrun c1 -> ok\npause c2\nend left"
    ),
    ("approved-calls-run", "at the same time"): (
        f"{TWO}\napprove c1\napprove c2\ngo\nstart c1\nrun c2 -> paid 6\nreturns c1 paid 5\ndone"
    ),
    ("approved-calls-run", "one after the other"): (
        f"{TWO}\napprove c1\napprove c2\ngo\nstart c1\nsignal now\nreturns c1 paid 5\nrun c2 -> paid 6\ndone"
    ),
    ("order-of-results", "order of the calls"): (
        f"{TWO}\napprove c1\napprove c2\ngo\nstart c1\nstart c2\ngives c2 6\ngives c1 5\ntell c1 5\ntell c2 6\ndone"
    ),
    ("order-of-results", "order of the runs"): (
        f"{TWO}\napprove c1\napprove c2\ngo\nstart c1\nstart c2\ngives c2 6\ngives c1 5\ntell c2 6\ntell c1 5\ndone"
    ),
    ("results-in-messages", "a message each"): (
        "send Go\nmodel c1 read(path=a); c2 read(path=b)\nrun c1 -> A\nrun c2 -> B\ndone"
    ),
    ("form-of-results", "as text"): f"{DONE}",
    (
        "form-of-results",
        "in an object",
    ): f'{ASKED}\napprove c1\ngo\nstart c1\ngives c1 paid\ntell c1 {{"output": "paid"}}\ndone',
    (
        "form-of-results",
        "in blocks",
    ): f'{ASKED}\napprove c1\ngo\nstart c1\ngives c1 paid\ntell c1 [{{"text": "paid"}}]\ndone',
    ("form-of-rejections", "as text"): f"{ASKED}\nreject c1\ngo\ntell c1 rejected\ndone",
    ("form-of-rejections", "in an object"): f'{ASKED}\nreject c1\ngo\ntell c1 {{"status": "rejected"}}\ndone',
    ("form-of-rejections", "in blocks"): f'{ASKED}\nreject c1\ngo\ntell c1 [{{"text": "rejected"}}]\ndone',
    ("policies-asked", "before any other call"): f"{BESIDE}\ngate c1 yes\nrun c2 -> text\npause c1\nend left",
    ("policies-asked", "after one began"): f"{BESIDE}\nrun c2 -> text\ngate c1 yes\npause c1\nend left",
    ("policy-questions", "once"): f"{BESIDE}\ngate c1 yes\npause c1\nend left",
    ("policy-questions", "several times"): f"{BESIDE}\ngate c1 no\ngate c1 yes\npause c1\nend left",
    ("policy-arguments", "as written"): (
        'send Pay\nmodel c1 pay(amount="5")\ngate c1 no\nrun c1 pay(amount=5) -> paid 5\ndone'
    ),
    ("order-of-requests", "order of the calls"): f"{TWO}\nend left",
    ("order-of-requests", "another"): f"{TWO.replace('c1, c2', 'c2, c1')}\nend left",
    ("call-id-in-requests", "with"): f"{ASKED}\nend left",
    ("request-ids", "the same id"): f"{ASKED}\ngo\npause c1\nend left",
    ("equal-decisions", "refused"): f"{ASKED}\napprove c1\napprove c1\ngo\nfail UserError: twice\nend left: c1",
    ("equal-decisions", "count once"): f"{ASKED}\napprove c1\napprove c1\ngo\nrun c1 -> paid 5\ndone",
    ("trimming-while-pending", "shorter"): (f"send Hi\ndone\n{ASKED}\ntrim 1\napprove c1\ngo\nrun c1 -> ok\ndone"),
    ("pending-at-a-new-message", "refused"): f"{ASKED}\nsend Wait\nfail UserError: no\nend left: c1",
    ("pending-at-a-new-message", "closed"): f"{ASKED}\ntell c1 superseded\nsend Wait\ndone",
    ("pending-at-a-new-message", "kept"): f"{ASKED}\nsend Wait\npause c1\nend left: c1",
    ("pending-at-a-new-message", "left open"): f"{ASKED}\nsend Wait\ndone",
    ("partial-answers", "refused"): f"{TWO}\napprove c1\ngo\nfail UserError: c2\nend left",
    ("partial-answers", "at once"): f"{TWO}\napprove c1\ngo\nrun c1 -> paid 5\npause c2\nend left",
    ("partial-answers", "waits"): f"{TWO}\napprove c1\ngo\npause c2\nend left",
    ("partly-settled-batch", "refused"): (
        f"{TWO}\napprove c1\ngo\nrun c1 -> ok\npause c2\napprove c1\napprove c2\ngo\nfail UserError: c1\nend left"
    ),
    ("partly-settled-batch", "taken"): (
        f"{TWO}\napprove c1\ngo\nrun c1 -> ok\npause c2\napprove c1\napprove c2\ngo\nrun c2 -> ok\ndone"
    ),
    ("contradiction", "refused"): f"{ASKED}\napprove c1\nreject c1\ngo\nfail UserError: both\nend left: c1",
    ("contradiction", "rejected"): f"{ASKED}\napprove c1\nreject c1\ngo\ntell c1 no\ndone",
    ("contradiction", "kept"): f"{ASKED}\napprove c1\nreject c1\ngo\npause c1\nend left",
    ("contradiction", "run"): f"{ASKED}\napprove c1\nreject c1\ngo\nrun c1 -> paid 5\ndone",
    ("malformed-decision", "kept"): f'{ASKED}\nraw c1 "yes"\ngo\npause c1\nend left',
    ("unknown-request", "refused"): f"{ASKED}\napprove ?x\ngo\nfail KeyError: x\nend left: c1",
    ("unknown-request", "ignored"): f"{ASKED}\napprove ?x\ngo\npause c1\nend left",
    ("late-decision", "refused"): f"{DONE}\napprove c1\ngo\nfail UserError: late",
    ("late-decision", "ignored"): f"{DONE}\napprove c1\ngo\nfinish Done.",
    ("late-decision", "ask the model"): f"{DONE}\napprove c1\ngo\ndone",
    ("standing-decision-lasts", "in the turn"): (
        f"{ASKED}\nalways c1\ngo\nrun c1 -> ok\nmodel c2 pay(amount=6)\nrun c2 -> ok\ndone"
    ),
    ("standing-decision-lasts", "after a new message"): (
        f"{ASKED}\nalways c1\ngo\nrun c1 -> ok\ndone\nsend More\nmodel c2 pay(amount=6)\nrun c2 -> ok\ndone"
    ),
    ("standing-decision-lasts", "asked again"): (
        f"{ASKED}\nalways c1\ngo\nrun c1 -> ok\ndone\nsend More\nmodel c2 pay(amount=6)\npause c2\nend left"
    ),
    ("edited-arguments", "as it was"): f"{ASKED}\nedit c1 (amount=3)\ngo\nrun c1 pay(amount=3) -> ok\ndone",
    ("edited-arguments", "as edited"): (
        f"{ASKED}\nedit c1 (amount=3)\ngo\nrun c1 pay(amount=3) -> ok\nchange c1 amount=3\ndone"
    ),
    ("raising-policy", "ask"): f"{RAISES}\npause c1\nend left",
    ("raising-policy", "fail"): f"{RAISES}\nfail ConditionRaised: no",
    ("raising-policy", "model"): f"{RAISES}\ntell c1 no\ndone",
    ("unfitting-arguments", "ask"): "send Pay\nmodel c1 pay(amount=much)\npause c1\nend left",
    ("raising-tool", "fail"): f"{ASKED}\napprove c1\ngo\nrun c1 !! no\nfail ToolRaised: no",
    ("raising-tool", "model"): f"{ASKED}\napprove c1\ngo\nrun c1 !! no\ntell c1 no\ndone",
}


def hide_call_ids(events):
    for event in events:
        for request in getattr(event, "requests", ()):
            request["call_id"] = None


def list_other_ids(events):
    for request in [event for event in events if event.kind == "turn.end"][1].requests:
        request["id"] = "another"


def convert_for_policies(events):
    for event in events:
        if event.kind == "tool.gate":
            event.arguments = {"amount": 5}


def join_messages(events):
    for event in events:
        for item in getattr(event, "items", ()):
            item["message"] = 1


def trim_more(events):
    for event in events:
        if event.kind == "store.trim":
            event.keep = 1


CHANGED = {
    ("trimming-while-pending", "everything"): (
        trim_more,
        f"send Hi\ndone\n{ASKED}\ntrim 99\napprove c1\ngo\nrun c1 -> ok\ndone",
    ),
    ("call-id-in-requests", "without"): (hide_call_ids, f"{ASKED}\nend left"),
    ("request-ids", "another id"): (list_other_ids, f"{ASKED}\ngo\npause c1\nend left"),
    ("earlier-request-ids", "counts"): (
        list_other_ids,
        f"{ASKED}\ngo\npause c1\napprove c1\ngo\nrun c1 -> paid 5\ndone",
    ),
    ("earlier-request-ids", "refused"): (
        list_other_ids,
        f"{ASKED}\ngo\npause c1\napprove c1\ngo\nfail UserError: old\nend left: c1",
    ),
    ("policy-arguments", "as converted"): (
        convert_for_policies,
        'send Pay\nmodel c1 pay(amount="5")\ngate c1 no\nrun c1 pay(amount=5) -> paid 5\ndone',
    ),
    ("results-in-messages", "one message"): (
        join_messages,
        "send Go\nmodel c1 read(path=a); c2 read(path=b)\nrun c1 -> A\nrun c2 -> B\ndone",
    ),
}
"""Stories that short lines cannot tell, with what changes their events."""


@pytest.mark.parametrize(("trait", "story"), CHANGED.items(), ids=[f"{name}: {value}" for name, value in CHANGED])
def test_trait_of_ids(trait, story):
    """A journal shows which ids, arguments and messages the agent uses."""
    (name, value), (change, lines) = trait, story
    events = parse_notation(lines)
    change(events)

    assert (value,) == observe_traits(read_history(events)).get(name)


@pytest.mark.parametrize(("trait", "lines"), SHOWN.items(), ids=[f"{name}: {value}" for name, value in SHOWN])
def test_trait(trait, lines):
    """A journal shows what the agent does."""
    name, value = trait

    assert (value,) == observe_traits(read_history(parse_notation(lines))).get(name)


def test_every_trait_is_shown():
    """No trait is looked for that no story shows."""
    assert set(TRAITS) == {name for name, _ in (*SHOWN, *CHANGED)}


def test_values_are_documented():
    """The description of a trait names its values."""
    assert [] == [(name, value) for name, value in (*SHOWN, *CHANGED) if f"`{value}" not in TRAITS[name].description]


def test_several_values():
    """A journal that shows two of them says so."""
    lines = f"{DONE}\napprove c1\ngo\nfinish Done.\napprove c1\ngo\nfail UserError: late"

    assert ("ignored", "refused") == observe_traits(read_history(parse_notation(lines)))["late-decision"]


def test_none():
    """A journal in which nothing happened shows nothing."""
    assert {} == observe_traits(read_history(parse_notation("send Hello\ndone")))


def test_merged():
    """The values that several journals show are joined, in the order of the registry."""
    observed = [observe_traits(read_history(parse_notation(lines))) for lines in SHOWN.values()]

    merged = merge_traits(observed)

    assert [name for name in TRAITS if name != "earlier-request-ids"] == list(merged)
    assert ("fail", "model") == merged["raising-tool"]
