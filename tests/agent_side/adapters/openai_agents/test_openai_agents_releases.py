"""Releases of the SDK: what one lacks is read from its sources, and is not asked of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.adapters.openai_agents import metadata, requests
from pytest_approvals.agent_side.adapters.openai_agents import session as session_module
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Begin = Callable[..., AdapterSession]

PAYS = reply(None, call("pay", amount=5))
DONE = reply("Done.")


def test_the_latest_release_lacks_nothing() -> None:
    """What is missing there is missing by design."""
    assert {} == metadata.RELEASE_MISSING


def test_a_release_without_reasons_still_rejects(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is told what the SDK tells it."""
    monkeypatch.setattr(requests, "RELEASE_MISSING", {"reject_reason": "no rejection_message"})
    session = begin(PAYS, DONE)
    session.finished(None, *(reject(request, "not today") for request in session.paused("Pay.")))

    assert ["Tool execution was not approved."] == session.world.told()


def test_where_a_run_takes_no_message_a_new_one_takes_it(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message after a resumed run that failed begins a run of its own."""
    monkeypatch.setattr(session_module, "CAN_ADD_INPUT", False)
    session = begin(PAYS, RuntimeError("down"), DONE)
    (request,) = session.paused("Pay.")
    with pytest.raises(RuntimeError, match="down"):
        session.turn(None, approve(request))
    session.finished("And?")

    assert "And?" == session.world.inputs[-1][-1].text
