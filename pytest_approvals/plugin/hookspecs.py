"""
The pytest hooks that others can implement in a plugin or a conftest.py.

The first four bring things for as long as the session lasts; what an installed distribution brings for all sessions it
offers as an entry point instead, see `extensions.py`. The last two tell what happens. Arguments that an implementation
does not need can be left out of its signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.agent_side.contract.agent import Agent
    from pytest_approvals.runner.oracles import Oracle


def pytest_approvals_adapters(config: pytest.Config) -> Mapping[str, Mapping[str, type[Agent]]]:
    """
    Brings adapters: called once, before scenarios are collected.

    Returns:
        By the name of the agent: its flavours, the default one first under `""`.
    """
    raise NotImplementedError


def pytest_approvals_checks(config: pytest.Config) -> Mapping[str, Any]:
    """
    Brings checks: called once, before anything runs.

    Returns:
        By slug: the check. A slug of this package cannot be taken.
    """
    raise NotImplementedError


def pytest_approvals_oracles(config: pytest.Config) -> Mapping[str, Callable[[str], Oracle]]:
    """
    Brings oracles that variants and options can name: called once, before scenarios are collected.

    Returns:
        By name: a function that makes the oracle of the text behind the colon in `NAME:TEXT`, empty where there is
        none.
    """
    raise NotImplementedError


def pytest_approvals_reporters(config: pytest.Config) -> Mapping[str, Callable[..., None]]:
    """
    Brings reporters: called once, before anything runs.

    Returns:
        By name: a function that is called at the end of the session with the lines of the report, each a dictionary as
        in the JSON-lines report, and the `config`. Under pytest-xdist it is called in the controller alone.
    """
    raise NotImplementedError


def pytest_approvals_run_begins(scenario: Any, variant: Any, agent: str, config: pytest.Config) -> None:
    """
    Tells that a run begins: called in the process that runs it, for scenario files and for people's own tests.

    Arguments:
        scenario: The `Scenario`.
        variant: The `Variant`.
        agent: The agent as reports name it.
    """


def pytest_approvals_run_ends(run: Any, verdicts: Sequence[Any], config: pytest.Config) -> None:
    """
    Tells that a run was judged: called in the process that ran it.

    Arguments:
        run: The recorded `Run`; its journal is in `run.events`.
        verdicts: What the checks say of it, waivers not applied yet.
    """
