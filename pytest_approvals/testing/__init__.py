"""Test tools: for authors of adapters and checks, and for stored conversations."""

import pytest

# pytest rewrites a module's assertions only if it is told so before the module is imported.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in ("adapters", "host", "session", "world")))

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
