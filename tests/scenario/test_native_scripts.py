"""Native scripts: what they look like, what they say, and that they agree with the harness."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UsageError
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.native_scripts import write_native_script
from pytest_approvals.scenario.variants import plan_variants

AGENTS = ("openai_agents", "pydantic_ai")
FEW = (
    "basics/approved",
    "basics/free-call-then-gated-call",
    "basics/one-more-message-after-a-rejection",
    "parallel/two-rounds-of-two",
)
HERE = Path(__file__).parent

PLAY_ALL = """\
import runpy, sys
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print("code:", int(end.code or 0))
"""


@dataclass(frozen=True)
class Outcome:
    """What happened, by the ids of calls; in a form that does not depend on the order of parallel calls."""

    ran: list[str]
    asked: list[str]
    told: dict[str, str]


def load(name: str) -> Scenario:
    return load_scenario(find_scenarios([stock_folder()])[name], root=stock_folder())


def play_natively(agent: str, scenarios: list[Scenario], folder: Path) -> list[tuple[int, str, Outcome]]:
    """Return exit code, last line and outcome of each script; all run in one process, as importing takes longest."""
    paths = [folder / f"{number}.py" for number, _ in enumerate(scenarios)]
    for path, scenario in zip(paths, scenarios, strict=True):
        path.write_text(write_native_script(scenario, AgentSpec.parse(agent)), encoding="utf-8")
    command = [sys.executable, "-X", "utf8", "-c", PLAY_ALL, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    blocks = done.stdout.split("code: ")
    codes = [int(block.partition("\n")[0]) for block in blocks[1:]]
    # A block begins with the exit code of the script before it.
    texts = [blocks[0], *(block.partition("\n")[2] for block in blocks[1:-1])]
    return [(code, text.splitlines()[-1], read_outcome(text)) for code, text in zip(codes, texts, strict=True)]


def read_outcome(text: str) -> Outcome:
    said = dict(line.split(": ", 1) for line in text.splitlines())
    ran, asked, told = (ast.literal_eval(said[name]) for name in ("ran", "asked", "told"))
    return Outcome(sorted(map(str, ran)), sorted(asked), {call: str(text) for call, text in told.items()})


def play_in_the_harness(agent: str, scenario: Scenario) -> Outcome:
    source = create_source(resolve_local_agent(AgentSpec.parse(agent)))
    variants = plan_variants(scenario, source.facts)
    variant = next(variant for variant in variants if variant.oracle in ("script", "approve_all"))
    history = read_history(run_coroutine(run_scenario(scenario, variant, source)).events)
    told = {call.id: str(call.deliveries[-1].text) for call in history.calls if call.deliveries and call.id}
    ran: list[Any] = [(execution.call_id, execution.arguments) for execution in history.executions]
    return Outcome(sorted(map(str, ran)), sorted(str(request.label) for request in history.requests), told)


def expressible(agent: str) -> list[Scenario]:
    """Return the stories of the catalogue that a script can express, and that the adapter plays."""
    facts = create_source(resolve_local_agent(AgentSpec.parse(agent))).facts
    found = []
    for name in find_scenarios([stock_folder()]):
        try:
            write_native_script(scenario := load(name), AgentSpec.parse(agent))
        except UsageError:
            continue
        found += [scenario] if plan_variants(scenario, facts) else []
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_a_script_reads_like_an_example(agent: str) -> None:
    """It has the release in its head, and nothing of this package."""
    expected = (HERE / f"native_script_{agent}.txt").read_text(encoding="utf-8")

    assert expected == write_native_script(load("basics/rejected-with-a-reason"), AgentSpec.parse(agent))


@pytest.mark.parametrize("agent", AGENTS)
def test_scripts_agree_with_the_harness(agent: str, tmp_path: Path) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    scenarios = [load(name) for name in FEW]
    native = play_natively(agent, scenarios, tmp_path)

    assert [
        (0, "OK: asked, run and told as it should be", play_in_the_harness(agent, one)) for one in scenarios
    ] == native


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_all_scripts_agree_with_the_harness(agent: str, tmp_path: Path) -> None:
    """Of every story of the catalogue that a script can express."""
    scenarios = expressible(agent)
    native = play_natively(agent, scenarios, tmp_path)
    differing = {
        scenario.id: (harness, outcome)
        for scenario, (_, _, outcome) in zip(scenarios, native, strict=True)
        if (harness := play_in_the_harness(agent, scenario)) != outcome
    }

    assert {} == differing
    assert 40 <= len(scenarios)


PAUSED = """\
title: A story
tools:
  pay: {approval: APPROVAL, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6}}]
  - say: Done.
caller:
  - send: Pay
"""


@pytest.mark.parametrize(
    ("agent", "approval", "step", "feature"),
    [
        (
            "pydantic_ai",
            "always",
            "decide: {c1: approve}",
            "an answer to some of the open requests, or to none of them",
        ),
        ("pydantic_ai", "always", "send: Stop", "a message while a request is open"),
        ("pydantic_ai", "always", "restart: true", "the step 'restart'"),
        ("pydantic_ai", "{argument: amount, greater_than: 5}", "leave: true", "a condition on the tool 'pay'"),
        (
            "openai_agents",
            "always",
            "decide: {c1: {edit: {amount: 1}}, c2: approve}",
            "an edit: RunState.approve takes no arguments",
        ),
    ],
    ids=["partial-answer", "message", "restart", "condition", "edit"],
)
def test_what_a_script_cannot_express_is_named(
    agent: str, approval: str, step: str, feature: str, tmp_path: Path
) -> None:
    """No script is written that leaves something of the story out."""
    path = tmp_path / "mine" / "one.approval.yaml"
    path.parent.mkdir()
    path.write_text(PAUSED.replace("APPROVAL", approval) + f"  - {step}\n", encoding="utf-8")

    with pytest.raises(UsageError) as error:
        write_native_script(load_scenario(path, root=tmp_path), AgentSpec.parse(agent))

    assert f"mine/one: a native script of {agent} cannot express {feature}" == str(error.value)


@pytest.mark.parametrize("agent", AGENTS)
def test_no_text_of_a_scenario_is_code(agent: str, tmp_path: Path) -> None:
    """Quotes, backslashes, braces and control characters stay within the texts of the script."""
    text = '\\"""); raise SystemExit(7) #\n{ pay }\x1b\u202e'
    story = {
        "title": f"A story {text}",
        "tools": {"pay": {"approval": "always", "parameters": {"to": "string"}, "returns": f"{text} {{to}}"}},
        "model": [{"say": text, "calls": [{"id": "c1", "tool": "pay", "arguments": {"to": text}}]}, {"say": text}],
        "caller": [{"send": text}, {"decide": {"c1": {"reject": text}}}],
    }
    path = tmp_path / "mine" / "one.approval.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps(story), encoding="utf-8")
    tree = ast.parse(write_native_script(load_scenario(path, root=tmp_path), AgentSpec.parse(agent)))

    assert ast.get_docstring(tree, clean=False) == f"A story {text} (mine/one)."
    assert not any(isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) for node in ast.walk(tree))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("agno", "Unknown agent 'agno' in native; valid: openai_agents, pydantic_ai"),
        (
            "pydantic_ai.raised",
            "pydantic_ai.raised: native scripts are for the default flavours of releases: --agent NAME[==VERSION]",
        ),
    ],
)
def test_an_agent_without_scripts_is_refused(spec: str, message: str) -> None:
    """The message names the agents that have them."""
    with pytest.raises(UsageError) as error:
        write_native_script(load("basics/approved"), AgentSpec.parse(spec))

    assert message == str(error.value)


def test_the_release_of_the_spec_is_pinned() -> None:
    """With what its adapter needs beside it, and without the extras."""
    script = write_native_script(load("basics/approved"), AgentSpec.parse("openai_agents==0.20.0"))

    assert '# dependencies = ["openai-agents==0.20.0", "openai<3"]' in script.splitlines()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("requires_approval=True", "", "BUG: "),
        ('ToolDenied("the audit needs this file")', "True", "BUG: ran [('c1', {'path': 'a.txt'})], expected []"),
        ('ToolDenied("the audit needs this file")', "ToolDenied()", "BUG: told {"),
    ],
    ids=["not-asked", "rejected-runs", "reason-lost"],
)
def test_a_script_says_what_is_wrong(old: str, new: str, found: str, tmp_path: Path) -> None:
    """A call that runs unasked, or although it was rejected, and a reason that is not told end it with exit code 1."""
    script = write_native_script(load("basics/rejected-with-a-reason"), AgentSpec.parse("pydantic_ai"))
    assert old in script
    path = tmp_path / "script.py"
    path.write_text(script.replace(old, new), encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, encoding="utf-8", check=False)

    assert (1, found) == (done.returncode, done.stdout.splitlines()[-1][: len(found)])
