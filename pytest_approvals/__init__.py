"""Tests for the tool-approval flows of agents: the public API of the pytest plugin.

Everything that a test needs can be imported from here. Each name is imported when it is first used, because this
package is loaded in every pytest run of everybody who installed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Request
    from pytest_approvals.checks import CheckFailed
    from pytest_approvals.errors import AgentFailed, ApprovalsError, ScenarioError, UsageError
    from pytest_approvals.plugin.model_script import ScriptedModel
    from pytest_approvals.plugin.run_options import SerializeMode
    from pytest_approvals.plugin.run_result import RunResult
    from pytest_approvals.plugin.servers import ModelServer, ToolServer
    from pytest_approvals.plugin.user_runs import Approvals
    from pytest_approvals.runner import oracles
    from pytest_approvals.runner.oracles import (
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
        elicits,
        fails,
        fake,
        raises,
        returns,
        say,
        tool,
        when,
    )
    from pytest_approvals.scenario.build import scenario as Scenario  # noqa: N812 -- called like a class
    from pytest_approvals.scenario.build_steps import (
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

__all__ = [
    "AgentFailed",
    "Approvals",
    "ApprovalsError",
    "CheckFailed",
    "ModelServer",
    "Oracle",
    "Request",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "ScriptedModel",
    "SerializeMode",
    "ToolServer",
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
    "elicits",
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

_places: dict[str, tuple[str, str]] = {}
"""The module of each public name and its name there; filled when the first name is used."""

if not TYPE_CHECKING:  # a type checker would take every name for a known one

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        _places.update(_places or _read_places())
        value = _import(*_places[name])
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__


def _read_places() -> dict[str, tuple[str, str]]:
    """Return where each public name comes from, as the imports for type checkers say."""
    import ast
    from pathlib import Path

    body = ast.parse(Path(__file__).read_text(encoding="utf-8")).body
    checked = next(statement for statement in body if isinstance(statement, ast.If))
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for statement in checked.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _import(module: str, name: str) -> Any:
    from importlib import import_module

    try:
        return getattr(import_module(module), name)
    except AttributeError:  # a submodule that nobody has imported yet
        return import_module(f"{module}.{name}")
