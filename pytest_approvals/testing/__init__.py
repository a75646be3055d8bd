"""What authors of adapters and checks test with."""

from pytest_approvals.testing.adapters import AdapterTests
from pytest_approvals.testing.story import Story, approve, reject
from pytest_approvals.testing.world import SmallWorld, call, reply, tool

__all__ = ["AdapterTests", "SmallWorld", "Story", "approve", "call", "reject", "reply", "tool"]
