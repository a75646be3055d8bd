"""`pytest-approvals record`, as a process of its own."""

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
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.scenario.load import load_scenario, parse_scenario

STORY = "title: A greeting\nmodel: [{say: Hello.}]\ntools: {look: {}}\n"


def test_records_until_it_is_stopped(tmp_path: Path) -> None:
    """It prints an address, passes on what comes there, and says at its end what it wrote."""
    with ScriptedModelServer().running() as server:
        url = server.url(server.begin(parse_scenario(STORY, name="a/greeting", path="greeting")).name)
        words = ["record", "--upstream", url, "--out", "stories/hello"]
        started = subprocess.Popen(
            [sys.executable, "-m", "pytest_approvals.cli", *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        try:
            assert started.stdout is not None
            first = started.stdout.readline()
            found = re.fullmatch(rf"recording; clients take (http://127\.0\.0\.1:\d+/\S+) in place of {url}\n", first)
            assert found is not None
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            request = urllib.request.Request(f"{found[1]}/chat/completions", json.dumps(body).encode())
            urllib.request.urlopen(request, timeout=20).close()
        finally:
            started.send_signal(signal.SIGTERM)
            rest, _ = started.communicate(timeout=20)

    written = tmp_path / "stories" / "hello.approval.yaml"
    assert (0, "stopped\nwrote stories/hello.approval.yaml\n") == (started.returncode, rest)
    assert "Recorded: Hi" == load_scenario(written, root=tmp_path).title


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with exit code 2, and nothing is recorded."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert 2 == main(["record", "--upstream", "api.openai.com"])
    finally:
        signal.signal(signal.SIGTERM, before)

    assert "Invalid provider address" in capsys.readouterr().err
