"""
A pytest plugin and simulation harness for the tool-approval flows of agents.

Everything for people's own tests can be imported from here; each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Request
    from pytest_approvals.errors import ApprovalsError, CheckFailed, ScenarioError, UsageError
    from pytest_approvals.harness import oracles
    from pytest_approvals.harness.oracles import (
        Oracle,
        allowlist,
        approve_all,
        first_of,
        on,
        policy,
        reject_all,
        scripted,
    )
    from pytest_approvals.scenario.build import (
        asks_again,
        call,
        calls,
        fails,
        fake,
        raises,
        returns,
        say,
        tool,
        when,
    )
    from pytest_approvals.scenario.build import scenario as Scenario  # noqa: N812 -- used as if it were a class
    from pytest_approvals.scenario.build_caller import (
        always,
        approve,
        cancel,
        decide,
        edit,
        go_on,
        leave,
        let_oracle,
        malformed,
        never,
        raw,
        reject,
        restart,
        restore,
        rewrite,
        save,
        send,
        signal,
        stage,
        together,
        trim,
        unknown,
    )

_PLACES = {
    "agent_side.contract": ("Request",),
    "errors": ("ApprovalsError", "CheckFailed", "ScenarioError", "UsageError"),
    "harness.oracles": ("Oracle", "allowlist", "approve_all", "first_of", "on", "policy", "reject_all", "scripted"),
    "scenario.build": (*("asks_again", "call", "calls", "fails", "fake", "raises", "returns", "say", "tool", "when"),),
    "scenario.build_caller": (
        *("always", "approve", "cancel", "decide", "edit", "go_on", "leave", "let_oracle", "malformed", "never", "raw"),
        *("reject", "restart", "restore", "rewrite", "save", "send", "signal", "stage", "together", "trim", "unknown"),
    ),
}
_WHERE = {name: (place, name) for place, names in _PLACES.items() for name in names}
_WHERE["Scenario"] = ("scenario.build", "scenario")

__all__ = [
    "ApprovalsError",
    "CheckFailed",
    "Oracle",
    "Request",
    "Scenario",
    "ScenarioError",
    "UsageError",
    "allowlist",
    "always",
    "approve",
    "approve_all",
    "asks_again",
    "call",
    "calls",
    "cancel",
    "decide",
    "edit",
    "fails",
    "fake",
    "first_of",
    "go_on",
    "leave",
    "let_oracle",
    "malformed",
    "never",
    "on",
    "oracles",
    "policy",
    "raises",
    "raw",
    "reject",
    "reject_all",
    "restart",
    "restore",
    "returns",
    "rewrite",
    "save",
    "say",
    "scripted",
    "send",
    "signal",
    "stage",
    "together",
    "tool",
    "trim",
    "unknown",
    "when",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "oracles":
        return import_module("pytest_approvals.harness.oracles")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place, original = _WHERE[name]
    return getattr(import_module(f"{__name__}.{place}"), original)


def __dir__() -> list[str]:
    return __all__
