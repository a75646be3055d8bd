"""States of OpenAI Agents that lost a part: what one list holds and another one lacks is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation

Json = dict[str, Any]

PAUSED = Path(__file__).parents[1] / "histories/stored/openai_agents_js_paused.json"
"""A state that the library wrote: `c1` and `c2` of `pay` wait for decisions, and `c3` of `read` has run."""


def find(state: Json) -> list[str]:
    """Return the mistakes that the linter finds in a state."""
    found = lint_conversation(FormatDetector().read(state))
    return [f"{finding.rule} at {finding.where}" for finding in found if finding.is_mistake]


def is_request_of_c2(item: Json) -> bool:
    return bool(item["type"] == "tool_approval_item" and item["rawItem"]["callId"] == "c2")


def is_of_c2(item: Json) -> bool:
    return bool(item.get("rawItem", {}).get("callId") == "c2")


@pytest.fixture
def state() -> Json:
    """The state, whole."""
    read: Json = json.loads(PAUSED.read_text())
    return read


@pytest.fixture
def lose(state: Json) -> Callable[..., list[str]]:
    """Take from the items, or from what the state lists as waiting, and return what is found."""

    def kept(items: list[Json], lost: Callable[[Json], bool] | None) -> Iterator[Json]:
        return (item for item in items if lost is None or not lost(item))

    def take(
        *, items: Callable[[Json], bool] | None = None, waiting: Callable[[Json], bool] | None = None
    ) -> list[str]:
        state["generatedItems"] = list(kept(state["generatedItems"], items))
        step = state["currentStep"]["data"]
        step["interruptions"] = list(kept(step["interruptions"], waiting))
        return find(state)

    return take


WAITING = "currentStep.data.interruptions"


def test_a_whole_state_has_no_finding(state: Json) -> None:
    """All lists hold the same calls."""
    assert [] == find(state)


def test_a_request_that_is_not_listed_as_waiting(lose: Callable[..., list[str]]) -> None:
    """Nobody will be asked about it."""
    assert [f"pending-survives at {WAITING}"] == lose(waiting=is_of_c2)


def test_a_waiting_call_without_its_request(lose: Callable[..., list[str]]) -> None:
    """It is listed as waiting, and the item that asks is gone."""
    assert [f"pending-survives at {WAITING}"] == lose(items=is_request_of_c2)


def test_a_call_that_nobody_is_asked_about(lose: Callable[..., list[str]]) -> None:
    """It has no result, and neither an item nor the list asks."""
    assert [f"pending-survives at {WAITING}"] == lose(items=is_request_of_c2, waiting=is_of_c2)


def test_a_call_that_is_not_among_the_items(lose: Callable[..., list[str]]) -> None:
    """The model made it, and the run forgot it."""
    assert ["history-not-rewritten at lastModelResponse.output[2]"] == lose(items=is_of_c2, waiting=is_of_c2)


def test_a_call_of_an_agent_that_runs_as_a_tool_may_wait_elsewhere(state: Json) -> None:
    """What a sub-agent asks is listed, and has no items in this run; the call of the sub-agent waits for that."""
    first, second = state["currentStep"]["data"]["interruptions"]
    second["rawItem"]["callId"] = "inner"
    state["generatedItems"] = [item for item in state["generatedItems"] if not is_request_of_c2(item)]

    assert [] == find(state)
    assert "c1" == first["rawItem"]["callId"]


def test_a_decided_call_need_not_be_listed(state: Json) -> None:
    """The context says what was decided about it."""
    state["context"]["approvals"] = {"pay": {"approved": ["c2"], "rejected": []}}
    state["currentStep"]["data"]["interruptions"].pop()

    assert [] == find(state)
