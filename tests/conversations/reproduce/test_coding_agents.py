"""Scenarios out of what coding agents store."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.cli import main

STORED = Path(__file__).parents[1] / "histories" / "stored"

ENDED_BY_ITS_USER = """\
model:
  - say: Let me see.
    calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
  - say: Hello.
  - say: Done.
  - say: Done.
caller:
  - send: Pay 5 and 6
  - decide: {c1: reject}
  - send: Hi
"""
"""A rejection after which the model is not asked, which other agents do: it says that it is done."""


@pytest.mark.parametrize("name", ["done", "deferred", "deferred_approved", "deferred_passed", "interrupted", "killed",
                                  "killed_resumed", "rewound", "with_sub_agent", "of_sub_agent"])  # fmt: skip
def test_a_transcript_of_claude_code_is_a_scenario(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A correct agent plays it, however the session ended."""
    path = STORED / f"claude_code_{name}.jsonl"
    code = main(["reproduce", str(path), "--conversation", "1", "--neighbours", "0", "--agent", "reference"])
    said = capsys.readouterr()

    assert (1, "reference: nothing fails") == (
        code,
        next(line for line in said.err.splitlines() if "reference" in line),
    )
    assert "Made from a stored conversation (claude_code)." in said.out


@pytest.mark.parametrize("name", ["done", "paused", "cancelled"])
def test_a_session_of_opencode_is_a_scenario(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A correct agent plays it; a rejected tool is gated."""
    path = STORED / f"opencode_{name}.json"
    code = main(["reproduce", str(path), "--neighbours", "0", "--agent", "reference"])
    said = capsys.readouterr()

    assert (1, "reference: nothing fails") == (code, said.err.splitlines()[0])
    assert ("bank_pay: {approval: always" in said.out) == (name == "done")


@pytest.mark.parametrize("program", ["claude_code", "opencode"])
@pytest.mark.parametrize("name", ["done", "paused", "cancelled", "loaded"])
def test_a_recording_of_acp_is_a_scenario(program: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A correct agent plays it."""
    path = STORED / f"acp_{program}_{name}.jsonl"
    code = main(["reproduce", str(path), "--neighbours", "0", "--agent", "reference"])

    assert (1, "reference: nothing fails") == (code, capsys.readouterr().err.splitlines()[0])


def test_a_turn_that_its_user_ended_goes_on_with_the_next_message(capsys: pytest.CaptureFixture[str]) -> None:
    """A coding agent does not ask its model after such a rejection."""
    main(["reproduce", str(STORED / "claude_code_interrupted.jsonl"), "--neighbours", "0", "--agent", "reference"])

    assert ENDED_BY_ITS_USER in capsys.readouterr().out
