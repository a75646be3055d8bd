"""The adapter for Strands Agents keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.strands import (
    HandlerSession,
    HookSession,
    InterventionSession,
    MiddlewareSession,
    SequentialSession,
    ToolSession,
)
from pytest_approvals.testing import AdapterTests


class TestHooked(AdapterTests):
    """The flavour whose hook asks."""

    adapter = HookSession


class TestSequential(AdapterTests):
    """The flavour that runs one call after the other."""

    adapter = SequentialSession


class TestAsking(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = ToolSession


class TestWrapped(AdapterTests):
    """The flavour whose middleware asks."""

    adapter = MiddlewareSession


class TestHandling(AdapterTests):
    """The flavour whose intervention handler asks by itself."""

    adapter = HandlerSession


class TestIntervening(AdapterTests):
    """The flavour in which the SDK's own intervention asks."""

    adapter = InterventionSession
