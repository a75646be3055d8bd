"""Releases of the framework: what one lacks is read from its sources, and early ones are driven, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import calls, say
from pytest_approvals.agent_side.adapters.pydantic_ai import agents, metadata
from pytest_approvals.agent_side.kit import feature_detection
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


def test_another_package_must_be_there() -> None:
    """What it lacks, the framework cannot use."""
    assert (True, False, False) == (
        metadata.other_package_has("pytest_approvals", "agent_side/kit/feature_detection.py"),
        metadata.other_package_has("pytest_approvals", "no_such.py"),
        metadata.other_package_has("no_such_package", "anything"),
    )


def test_without_the_framework_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of the latest release then."""
    monkeypatch.setattr(feature_detection, "find_package_folder", {}.get)

    assert metadata.framework_has("tools.py", "anything")
    assert metadata.other_package_has("mcp", "anything")


def test_the_latest_release_lacks_nothing() -> None:
    """What is missing there is missing by design."""
    assert {} == metadata.RELEASE_MISSING


def test_a_release_without_a_stream_of_events_tells_a_handler(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of the call, and the end follows from the result."""
    monkeypatch.setattr(agents, "_run_streamed", agents._run_with_handler)
    played = play(calls("pay", amount=5), say("Done."), variant=Variant(stream=True))
    shown = [one["what"] for one in played.events("caller.shown") if one["what"] != "text"]

    assert ["paused", "finished"] == played.outcomes
    assert ["call", "request", "end", "result", "end"] == shown


def test_early_releases_let_out_that_the_connection_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no exception of the framework for it."""
    from pytest_approvals.agent_side.adapters.pydantic_ai import model
    from pytest_approvals.agent_side.contract import ModelDown

    monkeypatch.setattr(model, "exceptions", object())
    down = ModelDown(0)

    assert down is model._to_framework_error(down)
    assert asyncio.iscoroutinefunction(model.build_scripted_model("main").function)
