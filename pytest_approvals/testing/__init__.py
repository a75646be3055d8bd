"""Test tools for authors of adapters and checks."""

from pytest_approvals.testing.adapters import AdapterTests
from pytest_approvals.testing.session import AdapterSession, approve, reject
from pytest_approvals.testing.world import FakeWorld, call, reply, tool

__all__ = ["AdapterSession", "AdapterTests", "FakeWorld", "approve", "call", "reject", "reply", "tool"]
