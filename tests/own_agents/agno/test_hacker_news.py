"""A reader of news in Agno, after https://docs.agno.com/examples/agents/human-in-the-loop/confirmation-required.

A plain function, an async tool with `requires_confirmation`, and a toolkit that gates one of its tools.
"""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent
from agno.tools import Toolkit, tool

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, edit, reject, reject_all, say, send

posted: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_posted() -> None:
    posted.clear()


@tool(requires_confirmation=True)
async def post_story(title: str) -> str:
    """Posts a story."""
    posted.append(title)
    return f"posted {title}"


def get_top_stories(count: int) -> list[str]:
    """Lists the top stories."""
    return ["Show HN"] * count


class Mailer(Toolkit):
    def __init__(self) -> None:
        super().__init__(name="mailer", tools=[self.draft, self.mail], requires_confirmation_tools=["mail"])

    def draft(self, to: str) -> str:
        """Drafts a mail."""
        return f"a draft to {to}"

    def mail(self, to: str) -> str:
        """Sends a mail."""
        posted.append(to)
        return f"sent to {to}"


def build(model: Any) -> Agent:
    return Agent(model=model, tools=[get_top_stories, post_story, Mailer()], telemetry=False)


STORY = [calls("get_top_stories", count=1), calls("post_story", title="Hi"), say("Posted.")]


def test_an_approved_story_is_posted_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Post it", model=STORY, oracle=approve_all(), gated={"post_story", "mail"})

    assert ["Hi"] == posted
    assert "Posted." == run.output


def test_a_rejected_story_is_not_posted(approvals: Approvals) -> None:
    approvals.run(build, "Post it", model=STORY, oracle=reject_all("off topic"))

    assert [] == posted


@pytest.mark.parametrize("stream", [False, True])
def test_a_toolkit_gates_one_of_its_tools(approvals: Approvals, stream: bool) -> None:
    model = [calls("draft", to="Ann"), calls("mail", to="Ann"), say("Sent.")]
    run = approvals.run(build, model=model, caller=[send("Write"), approve("c2")], stream=stream)

    assert ["mail"] == [request.tool for request in run.requests]
    assert ["Ann"] == posted


def test_each_of_two_calls_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("post_story", title="A"), call("post_story", title="B"))
    approvals.run(build, model=[both, say("One.")], caller=[send("Both"), decide(approve("c1"), reject("c2"))])

    assert ["A"] == posted


def test_another_title_is_posted(approvals: Approvals) -> None:
    model = [calls("post_story", title="Hi"), say("Posted.")]
    approvals.run(build, model=model, caller=[send("Post it"), edit("c1", title="Hello")])

    assert ["Hello"] == posted


@pytest.mark.parametrize("serialize", ["copy", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Post it", model=STORY, oracle=approve_all(), serialize=serialize)

    assert ["Hi"] == posted


def test_an_approval_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(build, "Post", model=STORY, oracle=approve_all(), serialize="native.sqlite", resume="fresh")

    assert ["posted Hi"] == [one.result for one in run.calls["post_story"].executions]


def test_what_is_not_gated_is_not_asked_about(approvals: Approvals) -> None:
    run = approvals.run(build, "Read", model=[calls("get_top_stories", count=2), say("Two.")])

    assert [] == run.requests
