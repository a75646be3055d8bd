"""How the loopback server starts as a command."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys

import pytest

TEXT = """
title: Says.
model:
  - say: Done.
"""


OWN = "pytest_approvals"
HEAVY = {"asyncio", "concurrent.futures", "configparser", "email", "hashlib", "http.client", "pydantic", "tomllib"}
HEAVY |= {"yaml", f"{OWN}.scenario.schema", f"{OWN}.protocols.messages", f"{OWN}.protocols.responses"}


@pytest.fixture
def imported(tmp_path):
    """The modules that the command has imported when its first answer is there; the second time that it is started."""
    scenarios = tmp_path / "scenarios" / "own"
    scenarios.mkdir(parents=True)
    (scenarios / "says.approval.yaml").write_text(TEXT)
    environment = os.environ | {"PYTEST_APPROVALS_CACHE": str(tmp_path / "cache")}
    words = [sys.executable, "-X", "importtime", "-m", "pytest_approvals.cli", "serve", "own/says"]
    for _ in range(2):
        serving = subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        host, port, path = re.search(r"http://([\d.]+):(\d+)(/own-says/v1)", _second_line(serving)).groups()
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        body = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
        connection.request("POST", f"{path}/chat/completions", json.dumps(body))
        assert "Done." == json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]
        connection.close()
        serving.terminate()
        printed, errors = serving.communicate(timeout=30)
        assert (0, "stopped\n") == (serving.returncode, printed)
    return {line.rpartition("|")[2].strip() for line in errors.splitlines()}


def _second_line(serving):
    serving.stdout.readline()
    return serving.stdout.readline()


def test_first_answer_needs_nothing_heavy(imported):
    """A cached scenario is served without what reads it, without an event loop, and without unused protocols.

    These take most of the time of a start.
    """
    assert "pytest_approvals.model_server.server" in imported
    assert set() == imported & HEAVY
