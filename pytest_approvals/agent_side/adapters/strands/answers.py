"""Decisions as the framework takes them, and responses as a gate reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...contract import Decision

Form = Callable[[Decision], Any]
"""Gives the response that says what a decision says."""

DENIED = "User denied permission to run this tool"


def responses(decisions: Sequence[Decision], form: Form) -> list[dict[str, Any]]:
    """Gives the prompt that resumes an agent with *decisions*."""
    return [{"interruptResponse": {"interruptId": _address(one), "response": form(one)}} for one in decisions]


def _address(decision: Decision) -> Any:
    return decision.address if decision.request is None else decision.request.id


# --- the gate of this adapter -----------------------------------------------------------------------------------------


def with_details(decision: Decision) -> Any:
    """Gives the answer of the guide with whatever a person adds to it: a reason, other arguments, another tool."""
    return _DETAILED[decision.verdict](decision)


def _edit(decision: Decision) -> dict[str, Any]:
    tool = {} if decision.tool is None else {"tool": decision.tool}
    return {"answer": "y", "input": dict(decision.arguments or {}), **tool}


def _rejection(decision: Decision) -> Any:
    """A bare no is False: a response is whatever JSON has, and one that counts as nothing in Python is one, too."""
    return False if decision.reason is None else {"answer": "n", "reason": decision.reason}


_DETAILED: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"answer": "y"},
    "always": lambda decision: {"answer": "t"},
    "reject": _rejection,
    "edit": _edit,
    "raw": lambda decision: decision.raw,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person said: *refusal* is what the model is told of a call that must not run."""

    refusal: str | None = None
    trusted: bool = False
    input: Mapping[str, Any] | None = None
    tool: str | None = None


def read(response: Any) -> Answer:
    """
    Gives what a response says.

    Errors:
        ValueError: It says nothing that a gate understands.
    """
    said = response if isinstance(response, Mapping) else {"answer": response}
    if response is False or said.get("answer") == "n":
        return Answer(refusal=said.get("reason") or DENIED)
    if said.get("answer") in ("y", "t"):
        return Answer(trusted=said["answer"] == "t", input=said.get("input"), tool=said.get("tool"))
    raise ValueError(f"{response!r} is no answer to a question for approval")


# --- plain words ------------------------------------------------------------------------------------------------------


def in_a_word(decision: Decision) -> Any:
    """Gives the answer as the guide and `HumanInTheLoop` have it, a single letter."""
    return decision.raw if decision.verdict == "raw" else _WORDS[decision.verdict]


_WORDS: Mapping[str, str] = {"approve": "y", "always": "t", "reject": "n"}
