"""
What is wrong with stored conversations: approvals that do not fit their requests, calls and results.

    Conversation ──► trails (a call with its requests, decisions and result) ──► findings ──► text, JSON lines, GitHub
"""

from .finding import RULES, Finding
from .judging import lint

__all__ = ["RULES", "Finding", "lint"]
