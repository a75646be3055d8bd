"""A publisher of the OpenAI Agents SDK whose tools are agents, after `examples/agent_patterns/agents_as_tools.py`.

https://openai.github.io/openai-agents-python/human_in_the_loop/

A tool of an inner agent needs approval, whose request surfaces on the outer run.
"""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, ModelSettings, RunConfig, function_tool

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send
from pytest_approvals.errors import ScenarioError

published: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_published() -> None:
    published.clear()


@function_tool(needs_approval=True)
async def publish(text: str) -> str:
    """Publishes a text."""
    published.append(text)
    return f"published {text!r}"


@function_tool
def count_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


def build(model: Any) -> Agent[None]:
    editor = Agent[None](name="editor", model=model, tools=[count_words, publish])
    spanish = Agent[None](name="spanish", model=model, handoff_description="Translates to Spanish.")
    return Agent[None](
        name="orchestrator",
        model=model,
        model_settings=ModelSettings(parallel_tool_calls=False),
        tools=[
            spanish.as_tool(tool_name="translate", tool_description="Translates a text."),
            editor.as_tool(tool_name="edit_and_publish", tool_description="Edits and publishes a text."),
        ],
    )


MODEL = {
    "main": [calls("translate", input="Hello you"), calls("edit_and_publish", input="Hola"), say("It is out.")],
    "spanish": [say("Hola")],
    "editor": [calls("count_words", text="Hola"), calls("publish", text="Hola"), say("Published.")],
}


def test_an_approved_text_is_published_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Publish it", model=MODEL, oracle=approve_all())

    assert ["Hola"] == published
    assert "It is out." == run.output


def test_a_rejected_text_is_not_published(approvals: Approvals) -> None:
    approvals.run(build, "Publish it", model=MODEL, oracle=reject_all("not yet"))

    assert [] == published


def test_the_request_is_about_the_inner_call(approvals: Approvals) -> None:
    run = approvals.run(build, "Publish it", model=MODEL, oracle=approve_all())

    assert [("publish", {"text": "Hola"})] == [(request.tool, request.arguments) for request in run.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_an_inner_agent_does_not_start_anew(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "Publish it", model=MODEL, oracle=approve_all(), stream=stream)

    assert [1] == [one.result for one in run.calls["count_words"].executions]


def test_an_inner_request_survives_a_save(approvals: Approvals) -> None:
    approvals.run(build, "Publish it", model=MODEL, oracle=approve_all(), serialize="json")

    assert ["Hola"] == published


def test_both_texts_have_their_own_answer(approvals: Approvals) -> None:
    model = {
        "main": [calls("edit_and_publish", input="a"), calls("edit_and_publish", input="b"), say("One.")],
        "editor": [calls("publish", text="a"), say("No."), calls("publish", text="b"), say("Yes.")],
    }
    approvals.run(build, model=model, caller=[send("Publish both"), reject("c3", "bad"), approve("c4")])

    assert ["b"] == published


def test_an_answer_names_a_call_that_a_script_makes(approvals: Approvals) -> None:
    with pytest.raises(ScenarioError, match="'c9', a call that no script makes"):
        approvals.run(build, model=MODEL, caller=[send("Publish it"), approve("c9")])


def test_a_run_config_is_handed_over(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "Publish it",
        model=MODEL,
        run_options={"run_config": RunConfig(workflow_name="publisher"), "max_turns": 9},
        oracle=approve_all(),
    )

    assert 1 == len(run.calls["publish"].executions)
