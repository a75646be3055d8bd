"""The adapter for AutoGen keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.autogen import (
    CodeExecutorSession,
    InterventionSession,
    SwarmSession,
    ToolSession,
    WorkbenchSession,
)
from pytest_approvals.testing import AdapterTests


class TestWorkbenched(AdapterTests):
    """The flavour whose approval functions stand around a workbench."""

    adapter = WorkbenchSession


class TestTooled(AdapterTests):
    """The flavour whose approval functions stand around each tool."""

    adapter = ToolSession


class TestSwarming(AdapterTests):
    """The flavour in which the caller talks to a team."""

    adapter = SwarmSession


class TestCodeExecuting(AdapterTests):
    """The flavour of the approvals of code."""

    adapter = CodeExecutorSession


class TestIntervening(AdapterTests):
    """The flavour without AgentChat."""

    adapter = InterventionSession

    # The runtime awaits the handler, and sees the next call when this one is decided: one request comes at a time.
    test_parallel_calls_surface_together = None
