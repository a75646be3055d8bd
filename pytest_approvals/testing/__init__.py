"""Test tools: for authors of adapters and checks, and for stored conversations."""

from pytest_approvals.conversations.lint.linter import judge_conversation
from pytest_approvals.testing.adapters import AdapterTests
from pytest_approvals.testing.session import AdapterSession, approve, reject
from pytest_approvals.testing.world import FakeWorld, call, reply, thought, tool

__all__ = [
    "AdapterSession",
    "AdapterTests",
    "FakeWorld",
    "approve",
    "call",
    "judge_conversation",
    "reject",
    "reply",
    "thought",
    "tool",
]
