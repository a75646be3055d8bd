"""Linter of stored conversations: approvals that do not fit their calls and results.

StoredConversation ──► call lifecycles (a call with its request, decisions and result) ──► findings ──► output
"""

from pytest_approvals.conversations.lint.rules import RULES, LintFinding, lint_conversation

__all__ = ["RULES", "LintFinding", "lint_conversation"]
