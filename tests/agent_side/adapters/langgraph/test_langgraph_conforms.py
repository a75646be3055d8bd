"""The adapter for LangChain's agents keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.langgraph import Batched, Interrupting, PerCall, Retrying
from pytest_approvals.testing import AdapterTests


class TestBatched(AdapterTests):
    """The flavour that asks once for all calls of a reply."""

    adapter = Batched


class TestPerCall(AdapterTests):
    """The flavour that asks for each call."""

    adapter = PerCall


class TestRetrying(AdapterTests):
    """The flavour whose gate stands inside of a retry."""

    adapter = Retrying


class TestInterrupting(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = Interrupting
