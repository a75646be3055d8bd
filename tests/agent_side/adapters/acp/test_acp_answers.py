"""Clients that break the rules of ACP, and what the programs make of their answers.

Stories cannot express them: a question is answered once, by one of its options. The client is `client.mjs`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

Client = Callable[..., Mapping[str, Any]]

CLIENT = Path(__file__).with_name("client.mjs")
PROGRAMS = ["opencode", "claude_code", "codex", "gemini"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
each_program = pytest.mark.parametrize("program", PROGRAMS)


@pytest.fixture
def client(tmp_path: Path, prepare_environment: Callable[[str], Path]) -> Client:
    """Runs the client with a habit on a program, perhaps in a session of an earlier one; returns what happened."""

    def run(program: str, habit: str, *session: str) -> Mapping[str, Any]:
        package = prepare_environment(f"acp.{program}")
        packages = next(folder for folder in package.parents if folder.name == "node_modules")
        command = ["node", str(CLIENT), program, str(packages), str(tmp_path), habit, *session]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert 0 == done.returncode, done.stderr
        happened: Mapping[str, Any] = json.loads(done.stdout)
        return happened

    return run


@pytest.mark.parametrize(
    ("habit", "ran"),
    [
        ("approves, then rejects", [5]),
        ("rejects, then approves", []),
        ("approves a second time when the call has run", [5]),
    ],
)
@each_program
def test_of_two_answers_the_first_one_counts(client: Client, program: str, habit: str, ran: list[int]) -> None:
    """JSON-RPC has one response to a request; the call runs once or not at all, and the session goes on."""
    happened = client(program, habit)

    assert (ran, "end_turn", [6]) == (happened["ran"], happened["first"], happened["ranNext"])


@each_program
def test_an_answer_that_comes_after_the_cancellation_is_none(client: Client, program: str) -> None:
    """The client approves a call when it has answered that its prompt is cancelled; the call does not run."""
    happened = client(program, "approves when the prompt was cancelled")

    assert ([], "cancelled", [6]) == (happened["ran"], happened["first"], happened["ranNext"])


@each_program
def test_an_error_allows_nothing(client: Client, program: str) -> None:
    """The call does not run, the prompt ends, and the session goes on."""
    happened = client(program, "answers with an error")

    assert ([], "end_turn", [6]) == (happened["ran"], happened["first"], happened["ranNext"])


@each_program
def test_a_result_without_an_outcome_allows_nothing(client: Client, program: str) -> None:
    """The call does not run, and the session goes on; OpenCode waits until the prompt is cancelled."""
    happened = client(program, "answers with something else")
    ends = "waits; cancelled" if program == "opencode" else "end_turn"

    assert ([], ends, [6]) == (happened["ran"], happened["first"], happened["ranNext"])


@each_program
def test_an_answer_to_another_question_allows_nothing(client: Client, program: str) -> None:
    """Nobody has asked it; the question that waits is open until its own answer comes."""
    happened = client(program, "answers a question that nobody asked")

    assert ([], "end_turn", [6]) == (happened["ran"], happened["first"], happened["ranNext"])


@each_program
def test_a_program_ends_when_its_client_goes_away(client: Client, program: str) -> None:
    """The call that it has asked about does not run."""
    happened = client(program, "goes away")

    assert ([], True) == (happened["ran"], happened["first"].startswith("ended "))


@pytest.mark.parametrize("program", ["opencode", "claude_code", "codex"])
def test_a_question_is_in_no_stored_session(client: Client, program: str) -> None:
    """It is not asked again when the session is loaded, its call does not run, and the session goes on."""
    left = client(program, "goes away")
    happened = client(program, "approves, then rejects", left["session"])

    assert ([5], "end_turn", [6]) == (happened["ran"], happened["first"], happened["ranNext"])


def test_gemini_cannot_load_a_session_in_the_minute_in_which_it_began(client: Client) -> None:
    """Its file is named after the minute: the process that loads it begins that file anew, and finds nothing there."""
    for _ in range(5):
        began = datetime.now(UTC).minute
        left = client("gemini", "approves, then rejects")
        loaded = client("gemini", "approves, then rejects", left["session"])
        if datetime.now(UTC).minute == began:
            break

    assert "No previous sessions found for this project." in loaded["first"]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("opencode", "[Tool execution was interrupted]"),
        ("claude_code", "[Tool call interrupted: the session ended before this call's result was recorded"),
        ("codex", "aborted"),
    ],
)
def test_a_question_is_in_no_fork(client: Client, program: str, told: str) -> None:
    """The session is forked while its call waits: nobody is asked in the fork, where the call counts as cut off."""
    (result,) = client(program, "forks while it is asked")["told"]["fork"]

    assert told in result


@pytest.mark.parametrize("habit", ["forks while it is asked", "begins another session while it is asked"])
@pytest.mark.parametrize("program", ["opencode", "claude_code", "codex"])
def test_a_question_outlives_another_session_of_its_folder(client: Client, program: str, habit: str) -> None:
    """The approved call runs; OpenCode has connected its server anew for the other session, and loses the call."""
    happened = client(program, habit)
    lost = program == "opencode"

    assert ([] if lost else [5], lost) == (happened["ran"], '"Not connected"' in happened["told"]["original"])
