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


@pytest.mark.parametrize(("trait", "lines"), SHOWN.items(), ids=[f"{name}: {value}" for name, value in SHOWN])
def test_trait(trait, lines):
    """A journal shows what the agent does."""
    name, value = trait

    assert (value,) == observe_traits(read_history(parse_notation(lines))).get(name)


def test_every_trait_is_shown():
    """No trait is looked for that no story shows."""
    assert set(TRAITS) == {name for name, _ in SHOWN}


def test_values_are_documented():
    """The description of a trait names its values."""
    assert [] == [(name, value) for name, value in SHOWN if f"`{value}" not in TRAITS[name].description]


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

    assert list(TRAITS) == list(merged)
    assert ("fail", "model") == merged["raising-tool"]
