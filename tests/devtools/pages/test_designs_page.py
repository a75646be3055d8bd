"""Legitimate designs of the reference agent: no check fails on one, and a page lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.devtools.pages import designs as designs_page
from pytest_approvals.devtools.pages.designs import (
    EXPECTED_WARNINGS,
    NO_TRAITS,
    OPEN_ALARMS,
    describe_design,
    examine_design,
    find_mistakes,
    find_own_traits,
    main,
)
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue, load_scenario
from pytest_approvals.simulation.faults import FAULTS
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.designs import DESIGNS

PAGE = Path(__file__).parents[3] / "docs" / "designs.md"

CUT = (
    "decisions/edited-arguments",
    "decisions/repeated-while-another-request-is-open",
    "failures/limit-reached-beside-a-request",
    "failures/ungated-sibling-raises",
    "parallel/one-approved-one-rejected",
    "policies/text-where-a-boolean-is-compared",
    "state/partial-answer-across-restarts",
    "timing/slow-condition",
)


@pytest.fixture(scope="module")
def stories():
    """The stories that tell designs apart."""
    return [load_scenario(stock_folder() / f"{name}.approval.yaml", root=stock_folder()) for name in CUT]


@pytest.mark.parametrize("name", DESIGNS)
def test_no_check_fails_on_a_legitimate_design(stories, name):
    """In the stories that tell designs apart, and in a few drawn ones."""
    assert [] == find_mistakes(name, examine_design(DESIGNS[name], stories, stories=2))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", DESIGNS)
def test_no_check_fails_on_a_legitimate_design_in_the_whole_catalogue(name):
    """In every scenario, in the variants of strength 1."""
    assert [] == find_mistakes(name, examine_design(DESIGNS[name], load_catalogue([stock_folder()]), stories=0))


def test_a_faulty_agent_is_no_legitimate_design(stories):
    """The same examination fails agents that are wrong, in scenarios and in drawn stories."""
    told = find_mistakes("RejectedCallRuns", examine_design(FAULTS["RejectedCallRuns"], stories, stories=0))
    drawn = find_mistakes("RejectedCallRuns", examine_design(FAULTS["RejectedCallRuns"], [], stories=60))

    assert any("parallel/one-approved-one-rejected none-held: rejected-never-runs fail" in line for line in told)
    assert any("of seed 0" in line and "rejected-never-runs fail" in line for line in drawn)


def test_a_warning_that_nobody_expects_is_a_mistake(stories, monkeypatch):
    """Only those that are listed with a reason say something about a design."""
    result = examine_design(DESIGNS["EditsRewriteTheCall"], stories, stories=0)
    expected = find_mistakes("EditsRewriteTheCall", result)
    monkeypatch.setattr(designs_page, "EXPECTED_WARNINGS", {})

    assert [] == expected
    assert ["history-not-rewritten"] == [line.split()[0] for line in find_mistakes("EditsRewriteTheCall", result)]


def test_every_design_says_how_it_differs():
    """In one line of its own; and expected warnings name designs that exist."""
    lines = {name: describe_design(design) for name, design in DESIGNS.items()}

    assert len(DESIGNS) == len({line for line in lines.values() if line.endswith(".")})
    assert set() == {*EXPECTED_WARNINGS, *NO_TRAITS, *OPEN_ALARMS} - set(DESIGNS)


def test_the_page_has_every_design_clean():
    """The table names each design, with its words, and no failures."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

    assert [[f"| `{name}`", describe_design(design)] for name, design in DESIGNS.items()] == [row[:2] for row in rows]
    assert {"0"} == {row[6] for row in rows}


def test_a_design_is_a_trait_or_says_why_not():
    """On the page each design shows another trait than the reference agent, or is listed with a reason."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

    assert set(NO_TRAITS) == {row[0].strip("| `") for row in rows if not row[3].strip()}


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("RequestsHideTheCallId", {"call-id-in-requests": ("without",)}),
        ("ResultsInOneMessage", {"results-in-messages": ("one message",)}),
        ("SavedKeysAreSorted", {}),
    ],
)
def test_traits_of_its_own(stories, name, traits):
    """The traits of a design are those of which the reference agent shows other values in the same stories."""
    reference = examine_design(ReferenceAgent, stories, stories=0)

    assert traits == find_own_traits(examine_design(DESIGNS[name], stories, stories=0), reference)


def test_the_command_writes_the_page(stories, monkeypatch, tmp_path, capsys):
    """Of all designs; with `--design` it prints only."""
    monkeypatch.setattr(designs_page, "PAGE", tmp_path / "designs.md")
    monkeypatch.setattr(designs_page, "load_catalogue", lambda folders: stories[:1])
    monkeypatch.setattr(designs_page, "DESIGNS", {"RequestIdsAreOpaque": DESIGNS["RequestIdsAreOpaque"]})

    assert 0 == main(["--stories", "0", "--design", "SavedKeysAreSorted"])
    assert not (tmp_path / "designs.md").exists()
    assert 0 == main(["--stories", "0"])
    assert "| `RequestIdsAreOpaque` |" in (tmp_path / "designs.md").read_text(encoding="utf-8")
    assert "SavedKeysAreSorted: 0 mistakes" in capsys.readouterr().out


def test_several_designs_at_a_time_give_the_same_page(stories, monkeypatch, tmp_path):
    """Processes of their own examine them, in any order."""
    names = ("RequestIdsAreOpaque", "SavedKeysAreSorted")
    monkeypatch.setattr(designs_page, "load_catalogue", lambda folders: stories[:2])
    monkeypatch.setattr(designs_page, "DESIGNS", {name: DESIGNS[name] for name in names})
    pages = []
    for jobs in ("1", "2"):
        monkeypatch.setattr(designs_page, "PAGE", tmp_path / f"{jobs}.md")
        assert 0 == main(["--stories", "3", "--jobs", jobs])
        pages.append((tmp_path / f"{jobs}.md").read_text(encoding="utf-8"))

    assert pages[0] == pages[1]
    assert all(f"| `{name}` |" in pages[0] for name in names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--design", "RequestIdsAreOpaqe"], "did you mean 'RequestIdsAreOpaque'?"),
        (["--stories", "-1"], "--stories: Invalid number -1: must be at least 0"),
        (["--jobs", "0"], "--jobs: Invalid number 0: must be at least 1"),
    ],
    ids=["name", "number", "jobs"],
)
def test_a_wrong_option_is_an_error(capsys, words, message):
    """In one line, without a traceback."""
    assert 2 == main(words)
    assert message in capsys.readouterr().err
