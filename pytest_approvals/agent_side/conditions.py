"""
Approval conditions: data that says when a call needs approval, and the one function that answers them.

A condition is data and not a callable, so that it can be judged afterwards, cross a process, and be told apart from a
policy that was never asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """
    When a call needs approval.

    The call needs it if the *argument* passes the one comparison that is given. *answers* replaces the comparison: the
    k-th time one call is asked about, the k-th answer is given, the last one for ever. *raises* fails instead of
    answering. *waits_for* names a signal that comes before the answer.
    """

    argument: str | None = None
    greater_than: float | None = None
    less_than: float | None = None
    equals: Any = None
    starts_with: str | None = None
    one_of: tuple[Any, ...] = ()
    answers: tuple[bool, ...] = ()
    raises: str | None = None
    waits_for: str | None = None


Approval = Union[Literal["always", "never"], Condition]


def needs_approval(approval: Approval, arguments: Any, asked_before: int = 0) -> bool:
    """
    Says whether a call with *arguments* needs approval; *asked_before* counts the earlier questions about the same
    call.

    Arguments that are not an object, or lack the compared argument, need approval: a policy that cannot judge does not
    open the gate. A condition that raises counts as needing approval here; raising is the caller's business.
    """
    if approval == "always" or approval == "never":
        return approval == "always"
    if approval.raises is not None:
        return True
    if approval.answers:
        return approval.answers[min(asked_before, len(approval.answers) - 1)]
    if not isinstance(arguments, Mapping) or approval.argument not in arguments:
        return True
    return _passes(approval, arguments[approval.argument])


def _passes(condition: Condition, value: Any) -> bool:
    try:
        if condition.greater_than is not None:
            return bool(float(value) > condition.greater_than)
        if condition.less_than is not None:
            return bool(float(value) < condition.less_than)
    except (TypeError, ValueError):
        return True
    if condition.starts_with is not None:
        return str(value).startswith(condition.starts_with)
    if condition.one_of:
        return value in condition.one_of
    return bool(value == condition.equals)
