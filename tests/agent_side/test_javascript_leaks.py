"""The leak guard of agents in JavaScript."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import pytest_approvals.agent_side
from pytest_approvals.agent_side.process.network_guard import (
    GUARD_VARIABLE,
    BlockedHost,
    encode_guard_settings,
    parse_blocked_hosts,
)

GUARD = Path(pytest_approvals.agent_side.__file__).parent / "javascript" / "leaks.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not on this machine")

WAYS = {
    "fetch": 'await fetch("http://192.0.2.1:81/").catch((error) => console.log(error.cause.code));',
    "name": 'await fetch("https://model.invalid/").catch((error) => console.log(error.cause.code));',
    "net": """
        import net from "node:net";
        await new Promise((done) => net.connect(81, "192.0.2.1").on("error", (error) => done(console.log(error.code))));
    """,
    "https": """
        import https from "node:https";
        const asked = https.get("https://192.0.2.1:81/");
        await new Promise((done) => asked.on("error", (error) => done(console.log(error.code))));
    """,
}


def ran(code, file, *allowed):
    """Runs a program that watches itself, and gives what it prints."""
    watched = f'import {{ watchAsTold }} from "{GUARD.as_uri()}";\nwatchAsTold();\n{code}'
    environment = os.environ | {GUARD_VARIABLE: encode_guard_settings(str(file), allowed)}
    words = [NODE, "--input-type=module", "-e", watched]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("way", WAYS)
def test_leak_is_refused_and_told(way, tmp_path):
    """Whatever connects, it is refused as if nobody listened, and told with the host as the client named it."""
    file = tmp_path / "leaks.jsonl"
    assert "ECONNREFUSED\n" == ran(WAYS[way], file)
    expected = BlockedHost("model.invalid", 443) if way == "name" else BlockedHost("192.0.2.1", 81)
    assert [expected] == parse_blocked_hosts(file.read_text().splitlines())


HERE = """
import http from "node:http";
const server = http.createServer((asked, answer) => answer.end("here"));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address();
for (const host of ["127.0.0.1", "localhost"]) console.log(await (await fetch(`http://${host}:${port}/`)).text());
server.closeAllConnections();
server.close();
"""


def test_this_machine_is_reached(tmp_path):
    """The loopback, where the scripted model is served, stays reachable."""
    file = tmp_path / "leaks.jsonl"
    assert "here\nhere\n" == ran(HERE, file)
    assert not file.exists()


def test_allowed_host_is_not_refused(tmp_path):
    """A host that is allowed is asked for; that it does not exist is another error."""
    file = tmp_path / "leaks.jsonl"
    assert "ECONNREFUSED\n" != ran(WAYS["name"], file, "model.invalid")
    assert not file.exists()
