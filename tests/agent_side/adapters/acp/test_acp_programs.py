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

from pytest_approvals.agent_side.kit.acp_program import VARIABLE, describe_command, read_program
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

TWO_PAYMENTS = """\
title: Two payments
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - say: Done.
caller:
  - send: Pay both
  - decide: {c1: approve, c2: approve}
"""

LIST = """\
title: The arguments are a list
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: "[5]"}]
  - say: All right.
caller:
  - send: Pay 5
  - decide: {c1: reject}
expect: {runs: [], output: All right.}
"""

GIVEN_UP = """\
title: Two payments are given up
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - say: All right.
caller:
  - send: Pay both
  - cancel: true
  - send: Never mind
expect: {runs: [], output: All right.}
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
        return run_payment(tmp_path, "--agent", "acp.program", *words, variable="program.json")

    return play


def run_payment(folder: Path, *words: str, variable: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "payment.approval.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "payment.approval.yaml"]
    plain = ["--stream", "off", "-q", "-n", "0"]
    environment = os.environ | {VARIABLE: variable, "PYTEST_APPROVALS_RUNS": str(folder / "runs")}
    return subprocess.run(
        [*command, *plain, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


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
        ("needs a login", "needs a login (Authentication required; it offers api-key): put a key into `environment`"),
        ("is newer", "speaks version 99 of ACP, not 1; name a release of it that speaks 1"),
        ("writes rubbish", "writes what is no message of ACP to its standard output: Welcome!"),
        ("closes its output", "has closed its standard output and still runs"),
        ("asks over messages", "asks its model over messages, not chat; say so with `protocol`"),
    ],
)
def test_a_program_that_cannot_be_used_says_why(run: Run, habit: str, message: str) -> None:
    """The run is broken, and the reason is the program's own."""
    done = run(describe_program(habit))

    assert (1, True) == (done.returncode, message in done.stdout), done.stdout


def test_a_question_waits_for_what_was_answered_before(tmp_path: Path) -> None:
    """A program may ask about the next call while it runs the last one, whose result is shown before the question."""
    (tmp_path / "payments.approval.yaml").write_text(TWO_PAYMENTS)
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "payments.approval.yaml", "--agent", "acp"]
    words = ["--command", f"node '{PROGRAM}' 'asks ahead'", "--stream", "on", "-n", "0", "--journals", "journals"]
    environment = os.environ | {"PYTEST_APPROVALS_RUNS": str(tmp_path / "runs")}
    subprocess.run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, check=False)
    journals = [path.read_text().splitlines() for path in tmp_path.joinpath("journals").rglob("*.jsonl")]
    shown = [[each["what"] for each in map(json.loads, lines) if each["event"] == "caller.shown"] for lines in journals]

    first, then, last = ["call", "request", "end"], ["call", "result", "request", "end"], ["result", "text", "end"]
    assert [[*first, *then, *last]] * 2 == shown


def test_what_is_asked_after_a_cancellation_is_answered_so(tmp_path: Path) -> None:
    """The program asks about the second call when the first one was given up; nobody sees the question."""
    (tmp_path / "payments.approval.yaml").write_text(GIVEN_UP)
    words = ["payments.approval.yaml", "--agent", "acp", "--command", f"node '{PROGRAM}'", "--stream", "off", "-n", "0"]
    environment = os.environ | {"PYTEST_APPROVALS_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_arguments_that_are_a_list_are_shown_as_text(tmp_path: Path) -> None:
    """The program shows what the model wrote, and the request says so."""
    (tmp_path / "list.approval.yaml").write_text(LIST)
    words = ["list.approval.yaml", "--agent", "acp", "--command", f"node '{PROGRAM}'", "--stream", "off", "-n", "0"]
    environment = os.environ | {"PYTEST_APPROVALS_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", *words, "--journals", "journals"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = [line for path in tmp_path.joinpath("journals").rglob("*.jsonl") for line in path.read_text().splitlines()]
    asked = [one["arguments"] for event in map(json.loads, lines) for one in event.get("requests") or ()]

    assert (0, ["[5]"]) == (done.returncode, asked), done.stdout + done.stderr


def test_a_command_that_is_not_there_is_named(run: Run) -> None:
    """The error says what could not be started."""
    done = run(describe_program(command=["no-such-program", "acp"]))

    assert "no-such-program acp cannot be started (spawn no-such-program ENOENT); is it installed" in done.stdout


def test_a_program_that_dies_while_it_asks_breaks_the_run(run: Run) -> None:
    """The error says how it ended."""
    done = run(describe_program("dies"))

    assert (1, True) == (done.returncode, "program.mjs dies ended (3)" in done.stdout), done.stdout


@pytest.mark.parametrize("method", ["initialize", "session/new"])
def test_a_program_that_hangs_at_its_start_is_ended(run: Run, method: str) -> None:
    """The file says how long it may take."""
    done = run(describe_program(f"hangs at {method}", start_timeout=1))
    message = f"does not answer `{method}` within 1 s (`start_timeout` of its description)"

    assert (1, True) == (done.returncode, message in done.stdout), done.stdout


@pytest.mark.parametrize("agent", [["--agent", "acp"], []])
def test_a_command_is_enough(tmp_path: Path, agent: list[str]) -> None:
    """The names of its tools are found out, and its model is where `OPENAI_BASE_URL` says."""
    done = run_payment(tmp_path, *agent, "--command", f"node '{PROGRAM}'")

    assert (0, True) == (done.returncode, "acp.program" in done.stdout), done.stdout + done.stderr


def test_a_program_that_was_changed_is_played_again(tmp_path: Path) -> None:
    """The files that its command names are what its runs depend on."""
    program = tmp_path / "program.mjs"
    program.write_text(PROGRAM.read_text())
    words = ("--command", f"node '{program}'")
    outputs = [run_payment(tmp_path, *words).stdout for _ in range(2)]
    program.write_text(PROGRAM.read_text() + "// changed\n")
    outputs.append(run_payment(tmp_path, *words).stdout)

    assert [False, True, False] == ["1 run was remembered" in output for output in outputs], outputs


def test_a_command_can_stand_in_the_ini_file(tmp_path: Path) -> None:
    """A file that it names is relative to the ini file."""
    (tmp_path / "pytest.ini").write_text("[pytest]\napprovals_command = program.json\napprovals_stream = off\n")
    (tmp_path / "program.json").write_text(json.dumps(describe_program()))
    (tmp_path / "payment.approval.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "pytest", "-p", "approvals", "-q", "-n", "0", "--snapshot-update"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (0, True) == (done.returncode, "acp.program" in done.stdout), done.stdout + done.stderr


def test_a_program_that_calls_its_tools_by_other_names_says_so(tmp_path: Path) -> None:
    """What it offers to its model is listed, and the key that names the tools."""
    done = run_payment(tmp_path, "--command", f"node '{PROGRAM}' 'renames tools'")
    message = "offers its model no tool called pay, only tool0; say how it names them with `tool`"

    assert (1, True) == (done.returncode, message in done.stdout), done.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "expected a program and its arguments, or a JSON file"),
        ("node 'x", 'Invalid command "node \'x": No closing quotation'),
        ("missing.json", "missing.json cannot be read"),
    ],
)
def test_a_command_that_is_none_is_refused(tmp_path: Path, command: str, message: str) -> None:
    """Before anything is started."""
    with pytest.raises(ValueError, match="ommand|cannot be read") as raised:
        describe_command(command, tmp_path)

    assert message in str(raised.value)


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
