"""The adapter for AutoGen keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.autogen import CodeExecuting, Intervening, Swarming, Tooled, Workbenched
from pytest_approvals.testing import AdapterTests


class TestWorkbenched(AdapterTests):
    """The flavour whose approval functions stand around a workbench."""

    adapter = Workbenched


class TestTooled(AdapterTests):
    """The flavour whose approval functions stand around each tool."""

    adapter = Tooled


class TestSwarming(AdapterTests):
    """The flavour in which the caller talks to a team."""

    adapter = Swarming


class TestCodeExecuting(AdapterTests):
    """The flavour of the approvals of code."""

    adapter = CodeExecuting


class TestIntervening(AdapterTests):
    """The flavour without AgentChat."""

    adapter = Intervening

    # The runtime awaits the handler, and sees the next call when this one is decided: one request comes at a time.
    test_parallel_calls_surface_together = None
