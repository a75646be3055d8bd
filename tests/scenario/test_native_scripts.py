"""Native scripts: what they look like, what they say, and that they agree with the harness."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_approvals.agents.environments.installers import is_npm_available
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.native_scripts import list_native_agents, write_native_script
from tests.native_scripts import (
    find_differences,
    find_expressible,
    find_failing,
    load,
    load_few,
    play_both,
    play_in_the_harness,
    play_natively,
)

AGENTS = ("openai_agents", "pydantic_ai")
"""Those whose frameworks are among our own locked versions; the tests of the other adapters have theirs."""

FAILING = {
    "openai_agents": {
        "identity/id-reused-after-a-rejection",
        "identity/id-reused-in-a-later-reply",
        "identity/same-id-gated-and-ungated",
        "identity/ungated-id-reused-by-a-gated-call",
    },
    "pydantic_ai": {"identity/same-id-gated-and-ungated", "state/going-on-without-an-answer-after-a-sibling-ran"},
}
"""The stories whose scripts end with `BUG`."""

IN_JAVASCRIPT = ("ai_sdk", "openai_agents_js")

HERE = Path(__file__).parent


@pytest.mark.parametrize("agent", list_native_agents())
def test_a_script_reads_like_an_example(agent: str) -> None:
    """It has the release in its head, and nothing of this package."""
    expected = (HERE / f"native_script_{agent}.txt").read_text(encoding="utf-8")

    assert expected == write_native_script(load("basics/rejected-with-a-reason"), AgentSpec.parse(agent))


@pytest.mark.parametrize("agent", AGENTS)
def test_the_adapter_does_what_the_scripts_do(agent: str, tmp_path: Path) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    played = play_both(agent, load_few(agent), tmp_path)

    assert {} == find_differences(played)
    assert set() == find_failing(played)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_the_adapter_does_what_all_scripts_do(agent: str, tmp_path: Path) -> None:
    """In every story of the catalogue that a script can express."""
    played = play_both(agent, find_expressible(agent), tmp_path)

    assert {} == find_differences(played)
    assert FAILING[agent] == find_failing(played)
    assert 40 <= len(played)


def test_another_outcome_is_a_difference(tmp_path: Path) -> None:
    """An approved call and a rejected one are not the same."""
    native = play_natively("pydantic_ai", load("basics/approved"), tmp_path)
    harness = play_in_the_harness("pydantic_ai", load("basics/rejected-with-a-reason"))

    assert {"a": (harness, native)} == find_differences({"a": (harness, native), "b": (native.outcome, native)})


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
            "an answer to some of the open requests",
        ),
        ("openai_agents", "always", "go_on: true", "an answer to none of the open requests"),
        ("autogen", "always", "go_on: true", "an answer to none of the open requests"),
        ("pydantic_ai", "never", "go_on: true", "a turn without a message when no request is open"),
        ("pydantic_ai", "always", "send: Stop", "a message while a request is open"),
        ("pydantic_ai", "always", "restart: true", "the step 'restart'"),
        ("pydantic_ai", "{argument: amount, greater_than: 5}", "leave: true", "a condition on the tool 'pay'"),
        (
            "openai_agents",
            "always",
            "decide: {c1: {edit: {amount: 1}}, c2: approve}",
            "an edit: RunState.approve takes no arguments",
        ),
        (
            "google_adk",
            "always",
            "decide: {c1: {edit: {amount: 1}}, c2: approve}",
            "an edit: the arguments of a call that `require_confirmation` gates are those of the model",
        ),
        ("pydantic_ai", "never", "send: Stop", "a model that has nothing more to say"),
        ("autogen", "always", "leave: true", "a request that nobody answers: the run waits for the answer"),
        ("pydantic_ai", "always", "leave: true\nonly: {serialize: json}", "a state that is saved"),
    ],
    ids=[
        "partial-answer",
        "go-on",
        "go-on-before-the-run",
        "go-on-with-nothing-open",
        "message",
        "restart",
        "condition",
        "edit",
        "edit-from-parts",
        "nothing-more-to-say",
        "left-open",
        "saved",
    ],
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


@pytest.mark.parametrize("agent", list_native_agents())
def test_a_pinned_stream_is_streamed(agent: str) -> None:
    """The same story without the pin has another script."""
    story = load("streaming/request-in-a-stream")

    assert {"stream": (True,)} == story.only
    assert write_native_script(replace(story, only={}), AgentSpec.parse(agent)) != write_native_script(
        story, AgentSpec.parse(agent)
    )


@pytest.mark.parametrize(
    ("agent", "name", "feature"),
    [
        ("pydantic_ai", "identity/same-id-twice-in-one-reply", "two open requests about calls with one id"),
        ("autogen", "identity/id-reused-in-a-later-reply", "two requests of a run about calls with one id"),
    ],
)
def test_answers_by_id_cannot_tell_equal_ids_apart(agent: str, name: str, feature: str) -> None:
    """A script keeps the answers that it gives together by the ids of their calls."""
    with pytest.raises(UsageError) as error:
        write_native_script(load(name), AgentSpec.parse(agent))

    assert f"{name}: a native script of {agent} cannot express {feature}" == str(error.value)


def test_a_tool_is_not_called_like_something_in_the_script(tmp_path: Path) -> None:
    """Its function would take the place of what the script needs."""
    path = tmp_path / "mine" / "one.approval.yaml"
    path.parent.mkdir()
    path.write_text("title: A story\ntools: {session: {}}\nmodel: [{say: Done.}]\n", encoding="utf-8")

    with pytest.raises(UsageError) as error:
        write_native_script(load_scenario(path, root=tmp_path), AgentSpec.parse("agent_framework"))

    assert "mine/one: a native script of agent_framework cannot express the name 'session' of a tool" == str(
        error.value
    )


def write_odd_script(agent: str, text: str, folder: Path) -> str:
    """Return the script of a story in which each text is an odd one."""
    story = {
        "title": f"A story {text}",
        "tools": {"pay": {"approval": "always", "parameters": {"to": "string"}, "returns": f"{text} {{to}}"}},
        "model": [{"say": text, "calls": [{"id": "c1", "tool": "pay", "arguments": {"to": text}}]}, {"say": text}],
        "caller": [{"send": text}, {"decide": {"c1": {"reject": text}}}],
    }
    path = folder / "mine" / "one.approval.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps(story), encoding="utf-8")
    return write_native_script(load_scenario(path, root=folder), AgentSpec.parse(agent))


@pytest.mark.parametrize("agent", sorted({*list_native_agents()} - {*IN_JAVASCRIPT}))
def test_no_text_of_a_scenario_is_code(agent: str, tmp_path: Path) -> None:
    """Quotes, backslashes, braces and control characters stay within the texts of the script."""
    text = '\\"""); raise SystemExit(7) #\n{ pay }\x1b\u202e'
    tree = ast.parse(write_odd_script(agent, text, tmp_path))

    assert ast.get_docstring(tree, clean=False) == f"A story {text} (mine/one)."
    assert not any(isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) for node in ast.walk(tree))


@pytest.mark.parametrize("agent", IN_JAVASCRIPT)
@pytest.mark.skipif(not is_npm_available(), reason="Node is not on this machine")
def test_no_text_of_a_scenario_is_code_of_node(agent: str, tmp_path: Path) -> None:
    """Nor do line ends of JavaScript, and what ends a template or begins an expression in it."""
    text = '\\"`${process.exit(7)}); process.exit(7); //\n{ pay }\u2028\x1b'
    path = tmp_path / "script.mjs"
    path.write_text(script := write_odd_script(agent, text, tmp_path), encoding="utf-8")

    assert 0 == subprocess.run(["node", "--check", path], check=False).returncode
    assert [] == [line for line in script.splitlines() if line.startswith(("process.exit(7)", "{ pay }"))]
    assert 'return `\\\\"\\`\\${process.exit(7)}' in script


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("reference", f"Unknown agent 'reference' in native; valid: {', '.join(list_native_agents())}"),
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


def test_an_integer_that_javascript_rounds_is_refused() -> None:
    """The script would be about another number."""
    with pytest.raises(UsageError, match="cannot express an integer beyond 2\\*\\*53, which JavaScript rounds$"):
        write_native_script(load("values/large-integers"), AgentSpec.parse("ai_sdk"))


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


def test_a_turn_that_answers_nothing_is_asked_again(tmp_path: Path) -> None:
    """Going on without an answer leaves the requests open, which the caller then answers."""
    path = tmp_path / "mine" / "one.approval.yaml"
    path.parent.mkdir()
    path.write_text(PAUSED.replace("APPROVAL", "always") + "  - go_on: true\n", encoding="utf-8")

    played = play_natively("pydantic_ai", load_scenario(path, root=tmp_path), tmp_path)

    assert 0 == played.code, played.last_line
