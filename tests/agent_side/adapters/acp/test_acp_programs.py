"""Programs of users, of which a file says how they are started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.acp.program_file import VARIABLE, read_program
from pytest_approvals.agents.environments import installers

PROGRAM = Path(__file__).with_name("program.mjs")
SCENARIO = """\
title: A payment
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
caller:
  - send: Pay 5
  - decide: {c1: approve}
expect: {runs: [c1], output: Done.}
"""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not installers.is_npm_available(), reason="Node is not on this machine"),
]

Run = Callable[..., subprocess.CompletedProcess[str]]


def describe_program(*habit: str, **changes: Any) -> dict[str, Any]:
    described = {
        "command": ["node", str(PROGRAM), *habit],
        "protocol": "chat",
        "tool": "{server}.{tool}",
        "environment": {"MODEL": "{model}"},
    }
    return described | changes


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the payment on a program."""

    def play(program: Mapping[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.json").write_text(json.dumps(program))
        (tmp_path / "payment.approval.yaml").write_text(SCENARIO)
        command = [
            sys.executable,
            "-m",
            "pytest_approvals.cli",
            "run",
            "payment.approval.yaml",
            "--agent",
            "acp.program",
        ]
        plain = ["--stream", "off", "--fresh-runs", "-q", "-n", "0"]
        environment = os.environ | {VARIABLE: "program.json"}
        return subprocess.run(
            [*command, *plain, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return play


def test_a_program_runs_from_its_file(run: Run) -> None:
    """Its command, its protocol and the names of its tools are all that is needed."""
    done = run(describe_program())

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("habit", "slug"), [("never asks", "approval-before-execution"), ("asks twice", "asked-once")])
def test_a_bad_habit_is_found(run: Run, habit: str, slug: str) -> None:
    """A program that never asks runs a gated call, one that asks twice asks about what is decided."""
    done = run(describe_program(habit))

    assert (1, True) == (done.returncode, f"\n{slug}: " in done.stdout), done.stdout


@pytest.mark.parametrize(
    ("habit", "message"),
    [
        ("leaves at once", "ended (2); its standard error ends with: no configuration was found"),
        ("needs a login", "Authentication required"),
        ("is newer", "speaks version 99 of ACP, not 1"),
        ("writes rubbish", "writes what is no message of ACP to its standard output: Welcome!"),
    ],
)
def test_a_program_that_cannot_be_used_says_why(run: Run, habit: str, message: str) -> None:
    """The run is broken, and the reason is the program's own."""
    done = run(describe_program(habit))

    assert (1, True) == (done.returncode, message in done.stdout), done.stdout


def test_a_command_that_is_not_there_is_named(run: Run) -> None:
    """The error says what could not be started."""
    done = run(describe_program(command=["no-such-program", "acp"]))

    assert "no-such-program acp cannot be started" in done.stdout, done.stdout


def test_a_program_that_dies_while_it_asks_fails_the_turn(run: Run) -> None:
    """What the scenario expects to run is missed."""
    done = run(describe_program("dies"))

    assert (1, True) == (done.returncode, "actual    runs of nothing" in done.stdout), done.stdout


def test_a_program_that_hangs_at_its_start_is_ended(run: Run) -> None:
    """The file says how long it may take."""
    done = run(describe_program("hangs", start_timeout=1))

    assert (1, True) == (done.returncode, "does not answer `initialize` within 1 s" in done.stdout), done.stdout


def test_a_program_that_asks_the_network_is_reported(run: Run) -> None:
    """The program is told to reach other machines through a proxy, which refuses and reports them."""
    done = run(describe_program("asks the network"))

    assert "Network access to example.org:443" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": []}, "'command' must be a list of texts, the program and its arguments"),
        ({"protocol": "chats"}, "'protocol' must be one of chat, messages"),
        ({"tool": "x"}, "'tool' must be a text with {tool}, as '{server}_{tool}'"),
        ({"environment": {"A": 1}}, "'environment' must be an object of texts"),
        ({"start_timeout": 0}, "'start_timeout' must be a positive number, in seconds"),
        ({"files": []}, "'files' must be an object of texts or values, by path"),
        ({"envronment": {}}, "unknown key 'envronment'"),
    ],
)
def test_a_file_that_describes_no_program_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """The message names the file, the key, and what it must be."""
    file = tmp_path / "program.json"
    file.write_text(json.dumps(describe_program(**change)))

    with pytest.raises(ValueError, match="program.json") as raised:
        read_program(str(file))

    assert message in str(raised.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """The message names the variable, too."""
    with pytest.raises(ValueError, match=f"{VARIABLE}: .*missing.json cannot be read"):
        read_program(str(tmp_path / "missing.json"))
