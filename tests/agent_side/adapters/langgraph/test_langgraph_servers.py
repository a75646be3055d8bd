"""Tools of connected servers, as LangChain's own client makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals import calls, raises, returns, say, tool

Play = Callable[..., Any]

SERVED: dict[str, Any] = {"kind": "mcp", "server": "db", "parameters": {"table": "string"}}
DROP = tool("drop", returns("dropped {table}"), approval="always", **SERVED)
SHOW = tool("show", returns("rows of {table}"), **SERVED)


def test_calls_of_one_server_are_gated_apart(play: Play, flavour: str) -> None:
    """The gated one waits, and the request names the server."""
    replies = calls("drop", table="users"), calls("show", table="drafts"), say("Done.")
    played = play(*replies, tools=[DROP, SHOW], flavour=flavour)
    (request,) = played.events("turn.end")[0]["requests"]

    assert ("mcp", "db") == (request["kind"], request["server"])
    assert [("drop", {"table": "users"}), ("show", {"table": "drafts"})] == played.ran


def test_what_a_server_reports_of_a_failure_is_a_result(play: Play, flavour: str) -> None:
    """The model is told, and the call is not run again."""
    locked = tool("drop", raises("the table is locked"), approval="always", **SERVED)
    played = play(calls("drop", table="users"), say("Done."), tools=[locked], flavour=flavour)

    assert (1, True) == (len(played.ran), "the table is locked" in played.told["c1"])
