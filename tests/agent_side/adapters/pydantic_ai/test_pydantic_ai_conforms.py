"""The adapter for Pydantic AI keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.pydantic_ai import AGUI, DBOSSession, Inline, PydanticAI, Raised, Vercel
from pytest_approvals.testing import AdapterTests


class TestPydanticAI(AdapterTests):
    """The flavour whose gates are declared."""

    adapter = PydanticAI


class TestRaised(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = Raised


class TestInline(AdapterTests):
    """The flavour whose runs wait in a handler."""

    adapter = Inline


class TestDBOS(AdapterTests):
    """The flavour whose runs are workflows of DBOS."""

    adapter = DBOSSession


class TestVercel(AdapterTests):
    """The flavour behind a client of the Vercel AI SDK."""

    adapter = Vercel


class TestAGUI(AdapterTests):
    """The flavour behind a client of AG-UI."""

    adapter = AGUI
