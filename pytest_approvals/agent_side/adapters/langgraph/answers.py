"""Decisions as the framework takes them: the value of `Command(resume=...)`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract import Decision, Unsupported
from .requests import SEPARATOR

Form = Callable[[Sequence[Decision], int], Any]
"""Gives the value to resume with, of decisions and of how many interrupts are waiting."""

_ID = re.compile(r"[0-9a-f]{32}")


def by_position(decisions: Sequence[Decision], waiting: int) -> Any:
    """
    Gives the documented answer to a batched request: a list by position, which names nothing.

    Where several interrupts wait, the framework wants their ids.
    """
    listed: dict[str, list[tuple[int, Any]]] = {}
    answers: dict[str, Any] = {}
    for decision in decisions:
        if decision.request is None:
            raise Unsupported("malformed_address", "a list of decisions has no place for an address")
        asked, _, position = decision.request.id.partition(SEPARATOR)
        if not position:
            # A tool that asks from within asks about itself alone.
            answers[asked] = verdict(decision)
            continue
        listed.setdefault(asked, []).append((int(position), verdict(decision)))
        answers[asked] = {"decisions": [answer for _, answer in sorted(listed[asked], key=lambda pair: pair[0])]}
    return next(iter(answers.values())) if len(answers) == 1 and waiting < 2 else answers


def by_id(decisions: Sequence[Decision], _: int) -> Any:
    """Gives answers by the ids of interrupts; one whose address is None names no interrupt."""
    if [decision.address for decision in decisions if decision.request is None] == [None]:
        return verdict(decisions[0])
    return {_address(decision): verdict(decision) for decision in decisions}


def bare_if_single(decisions: Sequence[Decision], waiting: int) -> Any:
    """Gives the answer itself where one interrupt waits, as the guides have it, and else answers by id."""
    if len(decisions) == 1 and waiting < 2:
        return verdict(decisions[0])
    return by_id(decisions, waiting)


def _address(decision: Decision) -> Any:
    if decision.request is None:
        return decision.address
    asked = decision.request.id
    # An id that was never asked is put into the form that ids have, or it would be no id at all.
    return asked if _ID.fullmatch(asked) else hashlib.md5(asked.encode(), usedforsecurity=False).hexdigest()


def verdict(decision: Decision) -> Any:
    """Gives the decision about one call."""
    return _VERDICTS[decision.verdict](decision)


def _reject(decision: Decision) -> Any:
    return {"type": "reject"} if decision.reason is None else {"type": "reject", "message": decision.reason}


def _edit(decision: Decision) -> Any:
    tool = decision.tool or (decision.request.tool if decision.request else "")
    return {"type": "edit", "edited_action": {"name": tool, "args": dict(decision.arguments or {})}}


def _standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "a decision is about one call")


_VERDICTS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"type": "approve"},
    "reject": _reject,
    "edit": _edit,
    "always": _standing,
    "never": _standing,
    "raw": lambda decision: decision.raw,
}
