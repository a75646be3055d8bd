"""The conformance kit for agent processes: it passes the JavaScript host, and finds what others break."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from pytest_approvals.errors import AgentUnavailable, UnknownName
from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER
from pytest_approvals.testing.host import HostConformanceError, check_host, host_conforms, raw_client

HERE = Path(__file__).parent
NODE = shutil.which("node") or "node"
JAVASCRIPT = Path(AGENT_SIDE_FOLDER) / "javascript"
FACTS = {
    "framework": "plain",
    "capabilities": ["parallel", "reject_reason", "text_with_calls", "serialize.json", "answer.restored", "fresh"],
    "wire_rules": "chat",
}
OURS = [NODE, str(JAVASCRIPT / "main.mjs"), str(HERE / "plain"), json.dumps(FACTS)]

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here takes long, but for what is broken."""
    monkeypatch.setattr(raw_client, "ANSWER_TIMEOUT", 3.0)
    monkeypatch.setenv("AGENT_SIDE", str(JAVASCRIPT))


def broken(what: str) -> dict[str, str]:
    """Return the rules that a host breaks, with what was seen."""
    findings = check_host([NODE, str(HERE / "broken.mjs"), what])
    return {one.name: one.what for one in findings}


@pytest.mark.timeout(120)
def test_the_javascript_host_conforms() -> None:
    """It keeps all rules, and an agent on it plays the plainest stories."""
    host_conforms(OURS, scenarios=["basics/approved", "basics/rejected-with-a-reason"])


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        ("version", "it speaks protocol 7; this is 1"),
        ("capability", "there is no capability flying"),
        ("facts", "its answer to `hello` cannot be read: Welcome has no field 'colour'"),
        ("prints", "a line is one JSON object; what came is b'starting\\n'"),
        ("silent", "`hello` was not answered within 3 s"),
    ],
)
def test_a_host_that_does_not_greet_is_reported(what: str, seen: str) -> None:
    """The greeting is the first rule; without it nothing else is tried."""
    assert {"greets": seen} == broken(what)


def test_a_host_that_says_yes_to_everything_breaks_the_rules() -> None:
    """What cannot be done must be refused."""
    findings = broken("nothing else")

    assert {"waits-for-hello", "refuses-unknown-methods", "refuses-unknown-sessions"} <= findings.keys()
    assert (
        "`stage` without the capability stage was answered with {'re': 3, 'ok': {}}" == findings["says-what-it-cannot"]
    )
    assert "ends-with-its-harness" not in findings


def test_a_host_that_outlives_its_harness_is_found() -> None:
    """It would be left over after every run."""
    assert "it is still there" == broken("stays")["ends-with-its-harness"]


def test_a_story_that_fails_is_named(tmp_path: Path) -> None:
    """An agent that asks nobody keeps the protocol, and breaks what approvals are for."""
    text = (HERE / "plain" / "agents.mjs").read_text(encoding="utf-8").replace('approval === "always"', "false")
    (tmp_path / "agents.mjs").write_text(text, encoding="utf-8")
    command = [*OURS[:2], str(tmp_path), OURS[3]]

    with pytest.raises(HostConformanceError) as caught:
        host_conforms(command, scenarios=["basics/approved"])

    assert "basics/approved[none-held]" == caught.value.found[0].name
    assert "a call that needs approval must not run before a person approved it" in str(caught.value)


def test_what_cannot_be_started_is_reported() -> None:
    """It is a mistake in the command, and nothing about the host."""
    with pytest.raises(AgentUnavailable, match="no-such-program cannot be started"):
        check_host(["no-such-program"])


def test_a_missing_scenario_is_reported() -> None:
    """The nearest one is named."""
    with pytest.raises(UnknownName, match="basics/approved"):
        check_host(OURS, scenarios=["basics/aproved"])


def test_python_need_not_be_the_language_of_the_tests_host() -> None:
    """The example of another language stops no turn: the kit says so."""
    example = HERE.parents[1] / "processes" / "other_language.py"
    findings = {one.name for one in check_host([sys.executable, str(example)])}

    assert {"waits-for-hello", "says-what-it-cannot", "stops-a-turn"} == findings
