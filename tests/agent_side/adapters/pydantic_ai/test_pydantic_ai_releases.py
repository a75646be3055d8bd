"""Releases of the framework: what one lacks is read from its sources, and early ones are driven, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals import calls, say
from pytest_approvals.agent_side.adapters.pydantic_ai import releases, subject
from pytest_approvals.scenario.parts import Variant

Play = Callable[..., Any]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that is the framework."""
    monkeypatch.setattr(releases, "_folder", {"pydantic_ai": tmp_path}.get)
    return tmp_path


def test_a_name_is_looked_for_in_the_sources(here: Path) -> None:
    """A file that is not there has no names."""
    (here / "tools.py").write_text("class Tool: ...\n")

    assert [True, False, False] == [
        releases.has("tools.py", "class Tool"),
        releases.has("tools.py", "class Approval"),
        releases.has("mcp.py", "class MCPToolset"),
    ]


def test_a_file_is_looked_for(here: Path) -> None:
    """Its name is enough."""
    (here / "mcp.py").touch()

    assert (True, False) == (releases.has("mcp.py"), releases.has("conversation_store.py"))


def test_another_package_must_be_there(here: Path) -> None:
    """What it lacks, the framework cannot use."""
    assert not releases.has_beside("mcp", "server")


def test_without_the_framework_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of the latest release then."""
    monkeypatch.setattr(releases, "_folder", {}.get)

    assert releases.has("tools.py", "anything")
    assert releases.has_beside("mcp", "anything")


def test_the_latest_release_lacks_nothing() -> None:
    """What is missing there is missing by design."""
    assert {} == releases.LACKS


def test_a_release_without_a_stream_of_events_tells_a_handler(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of the call, and the end follows from the result."""
    monkeypatch.setattr(subject, "_streamed", subject._handled)
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

    assert down is model._broken(down)
    assert asyncio.iscoroutinefunction(model.scripted("main").function)
