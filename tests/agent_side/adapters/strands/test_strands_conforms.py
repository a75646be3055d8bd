"""The adapter for Strands Agents keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.strands import Asking, Handling, Hooked, Intervening, Sequential, Wrapped
from pytest_approvals.testing import AdapterTests


class TestHooked(AdapterTests):
    """The flavour whose hook asks."""

    adapter = Hooked


class TestSequential(AdapterTests):
    """The flavour that runs one call after the other."""

    adapter = Sequential


class TestAsking(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = Asking


class TestWrapped(AdapterTests):
    """The flavour whose middleware asks."""

    adapter = Wrapped


class TestHandling(AdapterTests):
    """The flavour whose intervention handler asks by itself."""

    adapter = Handling


class TestIntervening(AdapterTests):
    """The flavour in which the SDK's own intervention asks."""

    adapter = Intervening
