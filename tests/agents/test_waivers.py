"""Waivers: reading, covering, going stale, being updated."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import list_adapter_names
from pytest_approvals.agents.waivers import (
    CheckOutcome,
    Waiver,
    find_stale_waivers,
    find_waiver,
    get_waiver_file,
    load_waivers,
    rewrite_waivers,
)
from pytest_approvals.checks import CHECKS as ALL_CHECKS
from pytest_approvals.errors import WaiverError
from pytest_approvals.plugin.agents import load_narrow_waivers
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder

CHECKS = ("decision-survives", "runs-at-most-once")

GOOD = """\
# known
- scenario: parallel/*
  check: decision-survives
  variant: json-*-held
  version: ">=0.20,<0.25"
  reason: The restored state has new agent objects.
  issue: https://example.org/issues/1

# another
- scenario: basics/one
  check: runs-at-most-once
  reason: It runs twice.
  issue: https://example.org/issues/2
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some.waivers.yaml"
    path.write_text(text)
    return path


def outcome(
    scenario: str = "parallel/two",
    variant: str = "json-stream-held",
    check: str = "decision-survives",
    *,
    failed: bool = True,
    version: str | None = "0.24.0",
) -> CheckOutcome:
    return CheckOutcome(scenario=scenario, variant=variant, check=check, failed=failed, version=version)


def test_a_file_gives_its_waivers_with_their_lines(tmp_path: Path) -> None:
    """Every entry is a waiver that knows its line; what is left out covers everything."""
    first, second = load_waivers(written(tmp_path, GOOD), CHECKS)

    assert (2, "json-*-held", ">=0.20,<0.25") == (first.line, first.variant, first.version)
    assert (10, "*", "") == (second.line, second.variant, second.version)


@pytest.mark.parametrize(
    ("flavour", "covered"), [("hosted", True), ("hosted_chat", True), ("agui", False), ("", False)]
)
def test_a_waiver_may_be_about_flavours_of_a_kind(tmp_path: Path, flavour: str, covered: bool) -> None:
    """The flavour is a name or a pattern, and covers the flavours that it fits."""
    text = GOOD.replace("  variant: json-*-held\n", "  flavour: hosted*\n")
    failed = CheckOutcome(
        scenario="parallel/two",
        variant="none-held",
        check="decision-survives",
        failed=True,
        flavour=flavour,
        version="0.24.0",
    )

    assert covered == bool(find_waiver(failed, load_waivers(written(tmp_path, text), CHECKS)))


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_a_file_without_entries_holds_no_waivers(tmp_path: Path, text: str) -> None:
    """An empty file, or one of comments, is a file without waivers."""
    assert () == load_waivers(written(tmp_path, text), CHECKS)


def test_a_missing_file_holds_no_waivers(tmp_path: Path) -> None:
    """An adapter without known failures has no file."""
    assert () == load_waivers(tmp_path / "none.waivers.yaml", CHECKS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenario: x\n", "1: Invalid file: expected a list of waivers"),
        ("- x\n", "1: Invalid waiver: expected a mapping with scenario, check, reason and issue"),
        (
            "- scenario: a/b\n  chek: runs-at-most-once\n",
            "2: Unknown key of a waiver 'chek'; did you mean 'check'?",
        ),
        ("- scenario: a/b\n  check: runs-at-most-once\n", "1: Missing reason"),
        (
            '- scenario: a/b\n  check: runs-at-most-once\n  reason: " "\n  issue: x\n',
            "3: Invalid reason: expected a text that is not empty",
        ),
        (
            "- scenario: a/b\n  check: run-at-most-once\n  reason: r\n  issue: https://e.org/1\n",
            "2: Unknown check 'run-at-most-once'; did you mean 'runs-at-most-once'?",
        ),
        (
            "- scenario: a/b\n  check: runs-at-most-once\n  reason: r\n  issue: later\n",
            "4: Invalid issue: expected a URL; `cause: ID` refers to a record beside the file",
        ),
        (
            "- scenario: a/b\n  check: runs-at-most-once\n  version: new\n  reason: r\n  issue: https://e.org/1\n",
            "3: Invalid version range 'new': expected '>=0.8', '>=1.0,<2' or '==1.*', say",
        ),
        (
            '- scenario: a/b\n  check: runs-at-most-once\n  reason: r\n  issue: https://e.org/1\n  sometimes: ""\n',
            "5: Invalid sometimes: expected a text that is not empty",
        ),
        (
            "- scenarios: [a/b, a/b]\n  check: runs-at-most-once\n  reason: r\n  issue: https://e.org/1\n",
            "1: Invalid scenarios: a/b is there twice",
        ),
        (
            "- scenario: a/b\n  checks: []\n  reason: r\n  issue: https://e.org/1\n",
            "2: Invalid checks: expected a list of texts that are not empty",
        ),
        (
            "- scenario: a/b\n  checks: [runs-at-most-once]\n  check: runs-at-most-once\n",
            "2: Invalid checks: there is a check, too; keep one of the two",
        ),
        (
            "- scenario: a/b\n  checks: [run-at-most-once]\n  reason: r\n  issue: https://e.org/1\n",
            "2: Unknown check 'run-at-most-once'; did you mean 'runs-at-most-once'?",
        ),
        ("- scenario: [a]\n", "1: Invalid scenario: expected text; put it into quotes"),
        ("- scenario: 'a\n", "2: invalid YAML: while scanning a quoted scalar: found unexpected end of stream"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Loading refuses what cannot be meant, and names its place."""
    path = written(tmp_path, text)

    with pytest.raises(WaiverError) as error:
        load_waivers(path, CHECKS)

    assert f"{path}:{message}" == str(error.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are a mistake in the file."""
    path = tmp_path / "x.waivers.yaml"
    path.write_bytes(b"- scenario: \xff\n")

    with pytest.raises(WaiverError) as error:
        load_waivers(path, CHECKS)

    assert f"{path}: invalid UTF-8: invalid start byte at byte 12" == str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder of that name is no file of waivers."""
    with pytest.raises(WaiverError) as error:
        load_waivers(tmp_path, CHECKS)

    assert f"{tmp_path}: cannot read file: Is a directory" == str(error.value)


@pytest.mark.parametrize(
    ("given", "covered"),
    [
        (outcome(), True),
        (outcome(scenario="basics/two"), False),
        (outcome(variant="none-held"), False),
        (outcome(check="runs-at-most-once"), False),
        (outcome(version="0.25.0"), False),
        (outcome(version="0.24.1rc1"), True),
        (outcome(version=None), False),
        (outcome(failed=False), False),
    ],
)
def test_a_waiver_covers_failures_within_its_range(tmp_path: Path, given: CheckOutcome, covered: bool) -> None:
    """Scenario, variant, check and version must fit, and the check must have failed."""
    waivers = load_waivers(written(tmp_path, GOOD), CHECKS)

    assert covered == (find_waiver(given, waivers) is not None)


TWO = frozenset({"parallel/two", "parallel/three"})


@pytest.mark.parametrize(
    ("outcomes", "complete", "stale"),
    [
        ([outcome(failed=False)], TWO, True),
        ([outcome(failed=False), outcome(scenario="parallel/three")], TWO, False),
        ([outcome(failed=False)], {"parallel/two"}, False),
        ([outcome(failed=False, version="0.30")], TWO, False),
        ([], TWO, False),
    ],
)
def test_a_waiver_is_stale_only_if_all_that_it_covers_ran_and_nothing_failed(
    tmp_path: Path, outcomes: list[CheckOutcome], complete: set[str], stale: bool
) -> None:
    """What was not run, or is of another version, says nothing about a waiver."""
    waiver = load_waivers(written(tmp_path, GOOD), CHECKS)[0]

    assert stale == ((waiver,) == find_stale_waivers([waiver], outcomes, complete, TWO))


@pytest.mark.parametrize(("sometimes", "stale"), [("", True), ("Two threads race for it.", False)])
def test_a_waiver_of_a_race_is_never_stale(sometimes: str, stale: bool) -> None:
    """A run without the failure shows nothing about a failure that says why it comes only in some runs."""
    waiver = Waiver(scenario="a/b", check="runs-at-most-once", reason="r", issue="i", sometimes=sometimes)
    outcomes = [outcome("a/b", check="runs-at-most-once", failed=False)]

    assert stale == bool(find_stale_waivers([waiver], outcomes, ["a/b"], ["a/b"]))


def test_updating_removes_stale_waivers_and_keeps_comments(tmp_path: Path) -> None:
    """What is not stale stays as it was written."""
    first, _ = load_waivers(written(tmp_path, GOOD), CHECKS)

    assert "# known\n\n# another" + GOOD.partition("# another")[2] == rewrite_waivers(GOOD, [first], [])


def test_a_new_waiver_is_refused_until_it_has_a_reason(tmp_path: Path) -> None:
    """Updating adds what failed; a user has to look at it."""
    text = rewrite_waivers(
        GOOD, [], [outcome("basics/new"), outcome("basics/new", "none-held"), outcome("basics/other")]
    )

    assert (
        "- scenario: basics/new\n"
        "  check: decision-survives\n"
        '  version: ">=0.24.0"\n'
        '  reason: ""\n'
        '  issue: ""\n'
        "- scenario: basics/other\n"
        "  check: decision-survives\n"
        "  variant: json-stream-held\n"
        '  version: ">=0.24.0"\n'
        '  reason: ""\n'
        '  issue: ""\n'
    ) == text.removeprefix(GOOD)
    with pytest.raises(WaiverError, match="Invalid reason: expected a text"):
        load_waivers(written(tmp_path, text), CHECKS)


LISTS = """\
- scenarios: [a/one, a/two]
  flavour: chat
  checks:
    - decision-survives
    - runs-at-most-once
  reason: >-
    Two
    lines.
  issue: https://example.org/issues/1
# next
"""


def test_an_entry_with_lists_is_a_waiver_of_each_check_in_each_scenario(tmp_path: Path) -> None:
    """All share the rest of the entry, and its line."""
    waivers = load_waivers(written(tmp_path, LISTS), CHECKS)

    assert [(scenario, check, "chat", 1) for scenario in ("a/one", "a/two") for check in CHECKS] == [
        (waiver.scenario, waiver.check, waiver.flavour, waiver.line) for waiver in waivers
    ]


def test_updating_keeps_what_is_not_stale_of_a_list(tmp_path: Path) -> None:
    """Scenarios with the same checks stay together; the rest of the entry stays as it was written."""
    path = written(tmp_path, LISTS)
    waivers = load_waivers(path, CHECKS)
    rest = "  flavour: chat\n  reason: >-\n    Two\n    lines.\n  issue: https://example.org/issues/1\n"

    assert (
        "- scenario: a/one\n  check: runs-at-most-once\n" + rest + "- scenario: a/two\n"
        "  checks: [decision-survives, runs-at-most-once]\n" + rest + "# next\n"
    ) == rewrite_waivers(LISTS, waivers[:1], [])
    assert "# next\n" == rewrite_waivers(LISTS, waivers, [])


FLAVOURS = """\
- scenarios: [a/one, a/two]
  check: runs-at-most-once
  flavours: ["", chat, session]
  reason: It runs twice.
  issue: https://example.org/issues/1
"""


def test_an_entry_may_list_flavours(tmp_path: Path) -> None:
    """It is a waiver in each of them; the default flavour has an empty name."""
    waivers = load_waivers(written(tmp_path, FLAVOURS), CHECKS)

    assert ["", "", "chat", "chat", "session", "session"] == [waiver.flavour for waiver in waivers]


def test_updating_keeps_the_flavours_that_are_not_stale(tmp_path: Path) -> None:
    """Flavours of which the same is left stay together."""
    waivers = load_waivers(written(tmp_path, FLAVOURS), CHECKS)
    rest = "  reason: It runs twice.\n  issue: https://example.org/issues/1\n"

    assert (
        '- scenario: a/two\n  check: runs-at-most-once\n  flavour: ""\n' + rest + "- scenarios: [a/one, a/two]\n"
        "  check: runs-at-most-once\n  flavours: [chat, session]\n" + rest
    ) == rewrite_waivers(FLAVOURS, waivers[:1], [])


def add_cause(folder: Path, name: str = "runs-twice") -> None:
    (folder / "causes").mkdir(exist_ok=True)
    (folder / "causes" / f"{name}.yaml").write_text("title: An approval that comes twice runs twice\n")


BY_CAUSE = "- scenario: a/b\n  check: runs-at-most-once\n  cause: runs-twice\n"


def test_a_waiver_may_refer_to_a_cause(tmp_path: Path) -> None:
    """The title of its record is the reason, and its page is where to read on."""
    add_cause(tmp_path)
    [waiver] = load_waivers(written(tmp_path, BY_CAUSE), CHECKS)

    assert ("runs-twice", "An approval that comes twice runs twice", "docs/findings/runs-twice.md") == (
        waiver.cause,
        waiver.reason,
        waiver.issue,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BY_CAUSE.replace("twice", "twise"), "3: Unknown cause 'runs-twise'; did you mean 'runs-twice'?"),
        (BY_CAUSE + "  issue: https://e.org/1\n", "4: Invalid issue: there is a cause, too; keep one of the two"),
        (BY_CAUSE + "  flavours: []\n", "4: Invalid flavours: expected a list of texts that are not empty"),
    ],
)
def test_a_wrong_cause_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """A cause has a record beside the file of waivers."""
    add_cause(tmp_path)
    path = written(tmp_path, text)
    with pytest.raises(WaiverError) as error:
        load_waivers(path, CHECKS)

    assert f"{path}:{message}" == str(error.value)


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("call: c2 *", True),
        ("call: c1 *", False),
        ('actual: "it runs twice*"', True),
        ("actual: it never runs", False),
    ],
)
def test_a_waiver_may_name_the_call_and_what_was_seen(tmp_path: Path, pattern: str, covered: bool) -> None:
    """A failure of the same check that says something else is not covered."""
    text = f"- scenario: a/b\n  check: runs-at-most-once\n  {pattern}\n  reason: r\n  issue: https://e.org/1\n"
    failed = CheckOutcome(
        scenario="a/b",
        variant="none-held",
        check="runs-at-most-once",
        failed=True,
        call="c2 pay(amount=5)",
        actual="it runs twice: in turn 2, and in turn 3",
    )

    assert covered == bool(find_waiver(failed, load_waivers(written(tmp_path, text), CHECKS)))


def test_a_waiver_whose_failure_says_something_else_is_stale() -> None:
    """Its own failure did not come."""
    waiver = Waiver(scenario="a/b", check="runs-at-most-once", reason="r", issue="i", actual="it runs twice")
    passed = outcome("a/b", check="runs-at-most-once", failed=False)
    other = CheckOutcome(scenario="a/b", variant="x", check="runs-at-most-once", failed=True, actual="it runs thrice")

    assert (waiver,) == find_stale_waivers([waiver], [passed, other], ["a/b"], ["a/b"])


def test_a_waiver_reads_as_one_line() -> None:
    """It names its place, what it waives and why."""
    waiver = Waiver(scenario="a/b", check="runs-at-most-once", reason="r", issue="i", path="x.yaml", line=3)

    assert "x.yaml:3: runs-at-most-once on a/b: r (i)" == str(waiver)


@pytest.mark.parametrize(
    ("names", "key", "pattern"),
    [
        ('scenario: "*"', "scenario", "*"),
        ('scenarios: [a/b, "*/*"]', "scenarios", "*/*"),
    ],
    ids=["one", "list"],
)
def test_an_effect_is_not_waived_everywhere(tmp_path: Path, names: str, key: str, pattern: str) -> None:
    """What such a waiver hides could be anything; the message names the check, its severity and what to write."""
    path = written(tmp_path, f"- {names}\n  check: runs-at-most-once\n  reason: r\n  issue: https://e.org/1\n")

    with pytest.raises(WaiverError) as error:
        load_narrow_waivers(path, ALL_CHECKS)

    assert (
        f"{path}:1: Invalid {key} {pattern!r}: a failure of runs-at-most-once has the severity double-effect and must "
        "not be waived everywhere; list where it occurs: `scenarios: [FAMILY/NAME, …]`"
    ) == str(error.value)


@pytest.mark.parametrize(
    ("scenario", "check"), [('"*"', "reason-told"), ("parallel/*", "runs-at-most-once")], ids=["mistold", "family"]
)
def test_other_failures_and_families_are_waived_by_patterns(tmp_path: Path, scenario: str, check: str) -> None:
    """Only an effect in every scenario is too much."""
    text = f"- scenario: {scenario}\n  check: {check}\n  reason: r\n  issue: https://e.org/1\n"

    assert 1 == len(load_narrow_waivers(written(tmp_path, text), ALL_CHECKS))


@pytest.mark.parametrize("name", list_adapter_names())
def test_waivers_of_this_package_are_narrow_and_about_its_catalogue(name: str) -> None:
    """None hides an effect everywhere, and each is about a scenario that there is."""
    catalogue = find_scenarios([stock_folder()])
    waivers = load_narrow_waivers(get_waiver_file(name), ALL_CHECKS)

    assert [] == [
        str(waiver) for waiver in waivers if not any(fnmatchcase(scenario, waiver.scenario) for scenario in catalogue)
    ]
