"""Rules that judge executions, which only traces show: each on a trace of the instrumentation, healthy and broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.testing import judge_conversation

Json = dict[str, Any]

STORED = Path(__file__).parents[1] / "histories" / "traces" / "stored"


def spans_of(document: Json) -> list[Json]:
    found: list[Json] = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def load(name: str) -> Json:
    loaded: Json = json.loads((STORED / f"{name}_done.json").read_text())
    return loaded


def is_run_of_pay(span: Json) -> bool:
    return span["name"] in ("execute_tool pay", "running tool", "pay") and "paid 5" in json.dumps(span)


def change(document: Json, old: str, new: str, *, of: Callable[[Json], bool]) -> Json:
    """Replace text in the spans that a condition holds for."""
    spans = spans_of(document)
    assert any(old in json.dumps(span) for span in spans if of(span))
    spans[:] = [json.loads(json.dumps(span).replace(old, new)) if of(span) else span for span in spans]
    return document


def add_again(document: Json) -> Json:
    """Add a second execution of the approved call."""
    again = copy.deepcopy(next(span for span in spans_of(document) if is_run_of_pay(span)))
    again["spanId"] = "00000000000000aa"
    spans_of(document).append(again)
    return document


def found(document: Json, *gated: str) -> list[str]:
    return [f"{each.rule}: {each.text}" for each in judge_conversation(json.dumps(document), gated=gated)]


INSTRUMENTED = [
    "agent_framework",
    "agno_openinference",
    "google_adk",
    "google_adk_legacy",
    "langchain_openinference",
    "openai_agents_openinference",
    "pydantic_ai_1",
    "pydantic_ai_2",
    "pydantic_ai_6",
    "strands",
    "strands_newest",
]


@pytest.mark.parametrize("name", INSTRUMENTED)
def test_a_call_that_ran_twice(name: str) -> None:
    """Two spans of executions of one call, both of which returned, are a double effect."""
    document = load(name)
    healthy = found(document)
    [finding] = found(add_again(document))

    assert [] == healthy
    assert finding.startswith("runs-at-most-once: pay(amount=5) runs again, after it has returned (span ")


def test_a_failed_execution_may_be_tried_again() -> None:
    """Middleware retries a tool that raised, under the same call id."""
    document = add_again(load("pydantic_ai_6"))
    first = next(span for span in spans_of(document) if is_run_of_pay(span))
    first["status"] = {"code": "STATUS_CODE_ERROR"}

    assert [] == found(document)


def test_a_rejected_call_that_ran() -> None:
    """The trace shows the decision, and an execution all the same."""
    document = change(load("agent_framework"), '\\"approved\\": true', '\\"approved\\": false', of=lambda span: True)
    [finding] = found(document)

    assert finding.startswith("rejected-never-runs: pay(amount=5) was decided with reject, and has the result of a run")


def test_an_execution_without_a_decision() -> None:
    """The request is in the trace, and the run continues without an answer."""
    document = change(load("agent_framework"), "function_approval_response", "else", of=lambda span: True)

    assert ["approval-before-execution: pay(amount=5) has a result, and nobody decided about its request"] == [
        each.partition(" (")[0] for each in found(document) if "amount=5" in each
    ]


def test_an_execution_with_other_arguments_than_approved() -> None:
    """What was approved is in the trace, and what ran."""
    document = change(load("agent_framework"), '\\"amount\\": 5', '\\"amount\\": 500', of=is_run_of_pay)
    [finding] = found(document)

    assert finding.startswith("arguments-as-approved: pay(amount=500) ran, and the call is pay(amount=5)")


def test_other_arguments_may_be_an_edit() -> None:
    """Most traces do not show decisions: whether a user has edited the call is unknown, so it is a notice."""
    document = change(load("pydantic_ai_6"), '\\"amount\\":5', '\\"amount\\":500', of=is_run_of_pay)

    assert [] == found(document)


def test_a_gated_tool_that_nobody_asked_about() -> None:
    """A policy named by the user: `pay` asked before it ran, and `read` did not."""
    document = load("pydantic_ai_6")

    assert [] == found(document, "pay")
    assert ['approval-before-execution: read(path="x") is gated, and has a result without an approval'] == [
        each.partition(";")[0] for each in found(document, "read")
    ]


def test_a_result_that_the_model_was_not_told() -> None:
    """The call has run, and the next input shows the call and not its result."""
    document = load("pydantic_ai_6")
    told = {"type": "tool_call_response", "id": "call_A7kQ2mZ9xWpay5", "name": "pay", "result": "paid 5"}
    lost = json.dumps(json.dumps(told, separators=(",", ":")) + ",")[1:-1]
    change(document, lost, "", of=lambda span: "chat" in span["name"] and "paid 5" in json.dumps(span))

    assert [
        "result-delivered-once: call 'call_A7kQ2mZ9xWpay5' ran, and the model is shown the call without its result"
    ] == (found(document))


def swap_results(document: Json) -> Json:
    """Give each of two calls the result of the other one, in all that the model is told."""
    spans = spans_of(document)
    for number, span in enumerate(spans):
        text = json.dumps(span)
        if "text of x" in text and "paid 5" in text:
            text = text.replace("text of x", "\0").replace("paid 5", "text of x").replace("\0", "paid 5")
            spans[number] = json.loads(text)
    return document


@pytest.mark.parametrize("name", INSTRUMENTED)
def test_results_that_changed_places(name: str) -> None:
    """Each call returned what the model is told of the other one."""
    shown = found(swap_results(load(name)))

    said = "result-matches-its-call: the model is told of call"
    assert {
        f"{said} 'call_A7kQ2mZ9xWpay5' what call 'call_C5jL4sH6eDread' returned",
        f"{said} 'call_C5jL4sH6eDread' what call 'call_A7kQ2mZ9xWpay5' returned",
    } == set(shown)


def test_a_result_may_be_told_in_other_words() -> None:
    """A hook of the user rewrites results: what no call returned belongs to its own one."""
    document = change(
        load("pydantic_ai_6"), "text of x", "a shorter text", of=lambda span: "paid 5" in json.dumps(span)
    )

    assert [] == found(document)
