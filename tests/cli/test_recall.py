"""The command `recall`."""

from __future__ import annotations

import json
import re
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import CommandLine

ROWS = """\
- {id: runs-when-rejected, title: A rejected call runs, source: owner/repository#1,
   bad: {agent: loose}, good: {agent: reference}, checks: [rejected-never-runs]}
- {id: not-there, title: An agent that is not there, source: owner/repository#2,
   bad: {agent: nobody}, good: null, checks: [rejected-never-runs]}
"""
ADAPTER = """\
from pytest_approvals.simulation.faults import FAMILIES, build_faulty_agent
FAULT = next(one for one in FAMILIES["execution"].values() if one.caught_by == "rejected-never-runs")
FLAVOURS = {"": build_faulty_agent(FAULT)}
"""


def test_each_row_has_a_line_and_the_last_one_counts(command_line: CommandLine) -> None:
    """What was missed fails the command; the report says the same."""
    command_line.write("loose_adapter.py", ADAPTER)
    command_line.write("table.yaml", ROWS)
    said = command_line("recall", "table.yaml", "--report", "out/recall.jsonl")
    first, second, last = said.out.splitlines()
    lines = [json.loads(line) for line in (command_line.folder / "out" / "recall.jsonl").read_text().splitlines()]

    assert (1, "") == (said.code, said.err)
    assert "found runs-when-rejected: rejected-never-runs" == first
    assert second.startswith("missed not-there: Unknown agent 'nobody'")
    assert "recall: 1 of 2" == last
    assert [True, False] == [line["found"] for line in lines[:-1]]
    assert {"event": "footer", "found": 1, "rows": 2} == lines[-1]


def test_single_rows_can_be_chosen(command_line: CommandLine) -> None:
    """An id that is not in the table is an error with the nearest one."""
    command_line.write("loose_adapter.py", ADAPTER)
    command_line.write("table.yaml", ROWS)
    chosen = command_line("recall", "table.yaml", "--only", "runs-when-rejected")
    unknown = command_line("recall", "table.yaml", "--only", "run-when-rejected")

    assert (0, ["found runs-when-rejected: rejected-never-runs", "recall: 1 of 1"]) == (
        chosen.code,
        chosen.out.splitlines(),
    )
    assert (2, "Unknown row 'run-when-rejected'; did you mean 'runs-when-rejected'?") == (
        unknown.code,
        unknown.err.strip().removeprefix("pytest-approvals: "),
    )


def test_a_mistake_in_a_table_ends_the_command(command_line: CommandLine) -> None:
    """It is told with file and line."""
    command_line.write("table.yaml", dedent(ROWS.replace("title", "titel")))
    said = command_line("recall", "table.yaml")

    assert (2, "") == (said.code, said.out)
    assert "table.yaml:1: Unknown key of a row 'titel'; did you mean 'title'?" in said.err


def test_runs_without_a_failure_are_remembered(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the adapter changed, all are played again."""
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(command_line.folder / "runs"))
    command_line.write("loose_adapter.py", ADAPTER)
    command_line.write("table.yaml", ROWS)
    command = ("recall", "table.yaml", "--only", "runs-when-rejected")
    first, second = command_line(*command), command_line(*command)
    command_line.write("loose_adapter.py", f"{ADAPTER}# another one\n")
    changed = command_line(*command)
    told = second.out.splitlines()

    assert ["found runs-when-rejected: rejected-never-runs", "recall: 1 of 1"] == [told[0], told[-1]]
    assert re.fullmatch(r"(1 run was|\d+ runs were) remembered; --fresh-runs plays every run", told[1])
    assert [told[0], told[-1]] == first.out.splitlines() == changed.out.splitlines()


def test_parts_of_a_table_are_disjoint_and_together_whole(command_line: CommandLine) -> None:
    """Every N-th row is in a part; a part that does not exist is an error."""
    command_line.write("table.yaml", ROWS.replace("loose", "nowhere"))
    parts = [command_line("recall", "table.yaml", "--shard", f"{number}/3").out.splitlines() for number in (1, 2, 3)]
    wrong = command_line("recall", "table.yaml", "--shard", "4/3")

    assert ["missed runs-when-rejected", "missed not-there"] == [part[0].partition(":")[0] for part in parts[:2]]
    assert ["recall: 0 of 1", "recall: 0 of 1", "recall: 0 of 0"] == [part[-1] for part in parts]
    assert (2, "pytest-approvals: --shard: Invalid shard '4/3': expected I/N, as 1/8 for the first of eight\n") == (
        wrong.code,
        wrong.err,
    )
