"""Records of causes: reading, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.agents.causes import Cause, Documentation, NativeScript, TrackerSearch, load_causes
from pytest_approvals.errors import CauseError

CHECKS = ("approved-runs", "runs-at-most-once")
SEVERITIES = ("double-effect", "lost-effect")
DIMENSIONS = ("serialize", "stream")

GOOD = """\
title: An approval is lost
class: bug
severity: lost-effect
agent: reference
releases: {seen: "1.2", first-bad: "1.1", last-good: "1.0"}
condition: The state is restored.
documentation: {says: What was approved runs., source: https://example.org/approvals}
searched: {on: 2026-11-25, tracker: owner/name, queries: [approval lost], found: []}
reported: [https://example.org/issues/1]
check: approved-runs
variant: {serialize: json}
native: {script: "print('BUG')", good: "1.0"}
story: |
  title: One call
happens: It is lost.
should: It runs.
"""


def written(folder: Path, text: str, name: str = "approval-is-lost") -> Path:
    (folder / f"{name}.yaml").write_text(text)
    return folder


def load(folder: Path) -> tuple[Cause, ...]:
    return load_causes(folder, CHECKS, SEVERITIES, DIMENSIONS)


def test_a_record_has_what_is_known_of_a_cause(tmp_path: Path) -> None:
    """Its name is that of its file."""
    [cause] = load(written(tmp_path, GOOD))

    assert ("approval-is-lost", "bug", "fail", "title: One call\n", 14) == (
        cause.id,
        cause.cause_class,
        cause.status,
        cause.story,
        cause.story_line,
    )
    assert Documentation(says="What was approved runs.", source="https://example.org/approvals") == cause.documentation
    searched = TrackerSearch(on="2026-11-25", tracker="owner/name", queries=("approval lost",), found=())
    assert searched == cause.searched
    assert NativeScript(source="print('BUG')", good="1.0") == cause.native


def test_a_record_says_what_was_not_looked_at(tmp_path: Path) -> None:
    """Nobody read the documentation, searched the tracker or wrote a script."""
    lines = [line for line in GOOD.splitlines() if not line.startswith(("documentation", "searched", "native"))]
    text = "\n".join([*lines, "documentation: unread", "searched: none", "native: none"])
    [cause] = load(written(tmp_path, text))

    assert ("unread", None, None) == (cause.documentation, cause.searched, cause.native)


def test_a_missing_folder_has_no_causes(tmp_path: Path) -> None:
    """An adapter without known failures has none."""
    assert () == load(tmp_path / "causes")


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- x\n", "1: Invalid cause: expected a mapping with title, class, severity, agent, condition, check, story, "),
        (replaced("severity: lost-effect\n", ""), "1: Missing severity"),
        (replaced("condition:", "conditions:"), "6: Unknown key of a cause 'conditions'; did you mean 'condition'?"),
        (replaced("class: bug", "class: bugs"), "2: Unknown class of a cause 'bugs'; did you mean 'bug'?"),
        (replaced("lost-effect", "lost-efect"), "3: Unknown severity 'lost-efect'; did you mean 'lost-effect'?"),
        (replaced("reference", "referense"), "4: Unknown agent 'referense'; did you mean 'reference'?"),
        (replaced("check: approved-runs", "check: approved-run"), "10: Unknown check 'approved-run'; did you mean"),
        (replaced('seen: "1.2"', "seen: 1.2"), "5: Invalid seen: expected text; put it into quotes"),
        (replaced('{seen: "1.2"', "{sen: x"), "5: Unknown key of `releases` 'sen'; did you mean 'seen'?"),
        (replaced("source: https://example.org/approvals", "source: the guide"), "7: Invalid source 'the guide': "),
        (
            replaced("{says: What was approved runs., source: https://example.org/approvals}", "undocumentd"),
            "7: Unknown state of the documentation 'undocumentd'; did you mean 'undocumented'?",
        ),
        (
            replaced("class: bug", "class: documented-limit")
            .replace("{says: What was approved runs., ", "{")
            .replace("{source: https://example.org/approvals}", "undocumented"),
            "7: Invalid documentation: a documented limit needs {says: …, source: URL}",
        ),
        (replaced("2026-11-25", "2026-13-25"), "8: Invalid date '2026-13-25': expected YEAR-MONTH-DAY"),
        (replaced("[approval lost]", "[]"), "8: Invalid queries: expected the words that were searched for"),
        (replaced("found: []", "found: [4711]"), "8: Invalid found: expected text; put it into quotes"),
        (replaced("[https://example.org/issues/1]", "[later]"), "9: Invalid address 'later': expected a URL"),
        (
            replaced("serialize: json", "serialise: json"),
            "11: Unknown dimension 'serialise'; did you mean 'serialize'?",
        ),
        (
            replaced("""{script: "print('BUG')", good: "1.0"}""", "generate"),
            "12: Unknown native script 'generate'; did",
        ),
        (replaced("should: It runs.", 'should: " "'), "16: Invalid should: expected a text that is not empty"),
        ("title: [", "2: invalid YAML: "),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """File and line are named, and the nearest valid word if a word is unknown."""
    folder = written(tmp_path, text)
    with pytest.raises(CauseError) as error:
        load(folder)

    assert str(error.value).startswith(f"{folder / 'approval-is-lost.yaml'}:{message}")


def test_a_name_is_kebab_case(tmp_path: Path) -> None:
    """The name is that of the page, too."""
    with pytest.raises(CauseError, match="Invalid name of a cause 'Lost_approval': expected kebab-case"):
        load(written(tmp_path, GOOD, "Lost_approval"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """The byte is named at which it ends to be text."""
    (tmp_path / "some.yaml").write_bytes(b"title: \xff")
    with pytest.raises(CauseError, match="invalid UTF-8: invalid start byte at byte 7"):
        load(tmp_path)
