"""The adapter for Google's ADK keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.google_adk import CustomTool, Dynamic, Resumable, Static
from pytest_approvals.testing import AdapterTests


class TestStatic(AdapterTests):
    """The flavour in which the framework gates functions."""

    adapter = Static


class TestResumable(AdapterTests):
    """The flavour whose invocations can be resumed."""

    adapter = Resumable


class TestDynamic(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = Dynamic


class TestCustomTool(AdapterTests):
    """The flavour whose tools are classes of their own."""

    adapter = CustomTool
