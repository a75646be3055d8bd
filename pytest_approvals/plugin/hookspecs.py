"""Pytest hooks that a plugin or a conftest.py can implement.

The first four register extensions for one session. An installed distribution registers extensions for all sessions as
entry points instead, see `extensions.py`. The last two are called when something happens. An implementation can leave
arguments that it does not need out of its signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.agent_side.contract.agent import Agent
    from pytest_approvals.runner.oracles import Oracle


def pytest_approvals_adapters(config: pytest.Config) -> Mapping[str, Mapping[str, type[Agent]]]:
    """Return adapters: called once, before scenarios are collected.

    Returns:
        The flavours of each agent by its name, the default flavour first under `""`.
    """
    raise NotImplementedError


def pytest_approvals_checks(config: pytest.Config) -> Mapping[str, Any]:
    """Return checks: called once, before anything runs.

    Returns:
        The checks by slug. A slug of this package cannot be used.
    """
    raise NotImplementedError


def pytest_approvals_oracles(config: pytest.Config) -> Mapping[str, Callable[[str], Oracle]]:
    """Return oracles that variants and options can name: called once, before scenarios are collected.

    Returns:
        By name: a function that creates the oracle from the text behind the colon in `NAME:TEXT`, which is empty if
        there is none.
    """
    raise NotImplementedError


def pytest_approvals_reporters(config: pytest.Config) -> Mapping[str, Callable[..., None]]:
    """Return reporters: called once, before anything runs.

    Returns:
        By name: a function that is called at the end of the session with the lines of the report, each a dictionary as
        in the JSON-lines report, and the `config`. Under pytest-xdist it is called in the controller alone.
    """
    raise NotImplementedError


def pytest_approvals_run_begins(scenario: Any, variant: Any, agent: str, config: pytest.Config) -> None:
    """Handle the begin of a run, in the process that runs it, for scenario files and for users' tests.

    Args:
        scenario: The `Scenario`.
        variant: The `Variant`.
        agent: The agent as reports name it.
        config: The config of pytest.
    """


def pytest_approvals_run_ends(run: Any, verdicts: Sequence[Any], config: pytest.Config) -> None:
    """Handle a judged run, in the process that ran it.

    Args:
        run: The recorded `Run`; its journal is in `run.events`.
        verdicts: The verdicts of the checks, before waivers are applied.
        config: The config of pytest.
    """
