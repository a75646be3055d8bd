"""What is kept of a run: its result, until somebody needs the state; and the ids of the items that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.result import RunResult

from pytest_approvals.agent_side.adapters.openai_agents import ChatAgents
from pytest_approvals.testing import AdapterSession, approve, call, reply

Begin = Callable[..., AdapterSession]

PAYS = reply("Paying.", call("pay", amount=5))
DONE = reply("Done.")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The results that a state was made of."""
    noted: list[Any] = []
    real = RunResult.to_state

    def to_state(result: RunResult) -> Any:
        noted.append(result)
        return real(result)

    monkeypatch.setattr(RunResult, "to_state", to_state)
    return noted


def ids(session: AdapterSession) -> list[str]:
    (run,) = session.agent._state.runs
    return [item["raw_item"]["id"] for item in run.state.to_json()["generated_items"] if "id" in item["raw_item"]]


def test_a_run_that_waits_has_no_state_yet(begin: Begin, made: list[Any]) -> None:
    """Its requests are those of the result."""
    session = begin(PAYS, DONE)
    requests = session.paused("Pay.")

    assert (1, 0) == (len(session.pending()), len(made))
    assert requests == session.pending()


def test_a_state_is_made_once(begin: Begin, made: list[Any]) -> None:
    """What is stored is what is decided about."""
    session = begin(PAYS, DONE)
    (request,) = session.paused("Pay.")
    session.wait(session.agent.dump())
    session.finished(None, approve(request))

    assert 1 == len(made)


def test_a_run_that_nobody_comes_back_to_stays_a_result(begin: Begin, made: list[Any]) -> None:
    """The next message begins with its list."""
    session = begin(reply("Hello."), DONE)
    session.finished("Hello.")
    session.finished("And?")

    assert [] == made


def test_over_chat_completions_items_have_no_ids(begin: Begin) -> None:
    """They have what the SDK puts in their place."""
    session = begin(PAYS, adapter=ChatAgents)
    session.paused("Pay.")

    assert {FAKE_RESPONSES_ID} == set(ids(session))


@pytest.mark.parametrize(("options", "equal"), [({}, False), ({"item_ids": "anew"}, True)], ids=["unique", "anew"])
def test_a_provider_may_number_its_items_anew(begin: Begin, options: dict[str, str], equal: bool) -> None:
    """Two conversations have equal ids then."""
    one = begin(PAYS, options=options)
    other: AdapterSession = begin(PAYS, options=options)
    one.paused("Pay for Ann.")
    other.paused("Pay for Bob.")

    assert equal == (ids(one) == ids(other))


def test_guardrails_and_a_context_of_the_application_are_in_what_is_stored(begin: Begin) -> None:
    """A restored run resumes with both."""
    session = begin(PAYS, DONE, options={"guardrails": "allow", "context": {"user": "ann"}})
    session.paused("Pay.")
    (run,) = session.agent._state.runs
    written = run.state.to_json()

    assert ["input"] == [one["guardrail"]["name"] for one in written["input_guardrail_results"]]
    assert {"user": "ann"} == written["context"]["context"]
