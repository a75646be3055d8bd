"""Texts that the model gets for calls that did not simply return."""

from __future__ import annotations

import json
from typing import Any

SUPERSEDED = "Not executed: the user sent a new message instead of approving this call."
CANCELLED = "Not executed: the user cancelled this call."
INTERRUPTED = "Error: the call was cancelled while it ran; it may have had effects."


def rejection_text(reason: str | None) -> str:
    """Return the text for a rejected call, with the reason."""
    return (
        f"Not executed: the user rejected this call. Reason: {reason}"
        if reason
        else "Not executed: the user rejected this call."
    )


def edit_note(tool: str, arguments: Any) -> str:
    """Return the note that another call was executed than the model wrote."""
    return f"The user changed this call to {tool}({json.dumps(arguments, ensure_ascii=False)}). Its result:"


def unknown_tool_text(tool: str) -> str:
    """Return the text for an unknown tool."""
    return f"Error: there is no tool {tool!r}."


def misfit_text(tool: str, why: str) -> str:
    """Return the text for arguments that do not fit."""
    return f"Error: the arguments do not fit {tool!r}: {why}."


def hand_off_text(agent: str) -> str:
    """Return the text for a hand-over to another agent."""
    return f"The conversation is handed over to {agent}."


def error_text(error: Exception) -> str:
    """Return the text for a failed tool."""
    return f"Error: {error}"


def result_text(value: Any) -> str:
    """Return the result of a tool as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
