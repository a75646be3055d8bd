"""
What is wrong with stored conversations: approvals that do not fit their requests, calls and results.

    Conversation ──► trails (a call with its requests, decisions and result) ──► findings ──► text, JSON lines, GitHub
"""

from pytest_approvals.conversations.lint.rules import RULES, LintFinding, lint_conversation

__all__ = ["RULES", "LintFinding", "lint_conversation"]
