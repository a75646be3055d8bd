"""The flavours of Agent Framework behind AG-UI keep the contract."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.agent_framework import Interface, InterfaceChat
from pytest_approvals.testing import AdapterTests


class TestInterface(AdapterTests):
    """The flavour whose model is reached with Responses."""

    adapter = Interface


class TestInterfaceChat(AdapterTests):
    """The flavour whose model is reached with Chat Completions."""

    adapter = InterfaceChat
