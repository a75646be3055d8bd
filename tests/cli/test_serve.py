"""`pytest-approvals serve`, as a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from pytest_approvals.cli import main


def test_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """It prints an address for each scenario, serves there, writes journals, and ends with exit code 0."""
    words = ["serve", "basics/approved", "--protocol", "messages", "--journals", str(tmp_path / "journals")]
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest_approvals.cli", *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert started.stdout is not None
        first, second = started.stdout.readline(), started.stdout.readline()
        found = re.fullmatch(r"basics/approved  (http://127\.0\.0\.1:\d+/basics-approved/v1)\n", second)
        assert first.startswith("serving on http://127.0.0.1:")
        assert found is not None
        told = _post(f"{found[1]}/messages")
    finally:
        started.send_signal(signal.SIGTERM)
        rest, _ = started.communicate(timeout=20)
    journal = (tmp_path / "journals" / "basics-approved.jsonl").read_text().splitlines()
    assert "tool_use" == told["stop_reason"]
    assert (0, "stopped\n") == (started.returncode, rest)
    assert ["header", "model.request", "model.answer", "footer"] == [json.loads(line)["event"] for line in journal]


def _post(url: str) -> dict[str, object]:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        told: dict[str, object] = json.load(answer)
    return told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["basics/aproved"], "Unknown scenario 'basics/aproved'; did you mean 'basics/approved'?"),
        (["basics"], "'basics' names "),
        (["basics/approved", "--protocol", "chats"], "Unknown protocol 'chats'; did you mean 'chat'?"),
        (["basics/approved", "--style", "crfl"], "Unknown style of a stream 'crfl'; did you mean 'crlf'?"),
    ],
)
def test_what_cannot_be_served(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word that cannot be used ends with exit code 2 and the nearest valid one, and nothing is served."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = main(["serve", *words])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert 2 == code
    assert said in capsys.readouterr().err
