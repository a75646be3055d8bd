"""Tables of known bugs: what a row says, and how mistakes are told."""

import re
from pathlib import Path

import pytest

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.known_bugs import KnownBug, load_known_bugs
from pytest_approvals.errors import TableError

ROW = """\
- id: one
  title: Something runs
  source: owner/repository#1
  bad: {agent: openai_agents==0.9.0, with: [openai==2.26.0], python: 3.10}
  good: null
  checks: [rejected-never-runs]
"""
OWN_TABLE = Path(__file__).parents[2] / "docs" / "known-bugs.yaml"


def load(folder: Path, text: str) -> tuple[KnownBug, ...]:
    """Loads a table of that text."""
    (folder / "table.yaml").write_text(text)
    return load_known_bugs(folder / "table.yaml", CHECKS)


def test_a_row_says_which_releases_and_which_checks(tmp_path: Path) -> None:
    """An agent may have requirements and a Python; 3.10 without quotes means 3.10."""
    [row] = load(tmp_path, ROW)

    bad = AgentRelease(spec=AgentSpec.parse("openai_agents==0.9.0"), requirements=("openai==2.26.0",), python="3.10")
    assert bad == row.bad
    assert "openai_agents==0.9.0 with openai==2.26.0, Python 3.10" == str(bad)
    assert (None, ("rejected-never-runs",), ("owner/repository#1",)) == (row.good, row.checks, row.sources)


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ("title", "titel", 2, "Unknown key of a row 'titel'; did you mean 'title'?"),
        ("  title: Something runs\n", "", 1, "the title of a row is missing"),
        ("rejected-never-runs", "rejected-never-run", 6, "Unknown check 'rejected-never-run'; did you mean"),
        ("[rejected-never-runs]", "[]", 6, "name the checks whose failure counts as having found it"),
        ("[rejected-never-runs]", "rejected-never-runs", 6, "checks must be a list"),
        ("agent: openai_agents==0.9.0", "agent: ==0.9.0", 4, "Invalid agent spec '==0.9.0': expected NAME"),
        ("agent: openai_agents", "agnt: openai_agents", 4, "Unknown key of an agent of a row 'agnt'; did you"),
        ("[openai==2.26.0]", '["open ai"]', 4, "Invalid requirement 'open ai': use NAME, NAME==VERSION or"),
        ("id: one", "id: [one]", 1, "id must be text; put it into quotes"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, before: str, after: str, line: int, what: str) -> None:
    """File, line, what, and the nearest valid word."""
    with pytest.raises(TableError) as caught:
        load(tmp_path, ROW.replace(before, after))

    assert str(caught.value).startswith(f"{tmp_path / 'table.yaml'}:{line}: {what}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id: one", ":1: a table is a list of rows"),
        ("- one", ":1: a row is a mapping with id, title, source, bad, checks"),
        ("- [", ":2: invalid YAML"),
        (ROW + ROW, ":7: line 1 has a row with the id 'one', too"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, what: str) -> None:
    """The error says what a table is."""
    with pytest.raises(TableError) as caught:
        load(tmp_path, text)

    assert str(caught.value).startswith(f"{tmp_path / 'table.yaml'}{what}")


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The system's reason follows."""
    with pytest.raises(TableError) as caught:
        load_known_bugs(tmp_path / "nowhere.yaml", CHECKS)

    assert f"{tmp_path / 'nowhere.yaml'}: it cannot be read: No such file or directory" == str(caught.value)


def test_the_projects_own_table_is_one() -> None:
    """It holds, and cites public reports or pages of findings that are there."""
    rows = load_known_bugs(OWN_TABLE, CHECKS)
    pages = [source for row in rows for source in row.sources if "#" not in source]

    assert rows
    assert [] == [page for page in pages if not (OWN_TABLE.parents[1] / page).is_file()]


def test_the_page_names_rows_of_the_table() -> None:
    """What it says to be missed is in the table, and the numbers fit."""
    rows = load_known_bugs(OWN_TABLE, CHECKS)
    page = OWN_TABLE.with_suffix(".md").read_text(encoding="utf-8")
    missed = set(re.findall(r"^\| `([\w-]+)` \|", page.partition("## What is missed")[2], re.MULTILINE))

    assert missed <= {row.id for row in rows}
    assert f"finds {len(rows) - len(missed)} of {len(rows)} bugs" in page
