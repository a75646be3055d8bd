"""Inputs that the reference agent refuses, always before anything was changed or executed.

Refused
├── MalformedDecision    not a decision, or one that cannot be carried out
├── UnknownRequest       a decision about a request that was never made
├── AlreadySettled       a decision about a request that was decided or closed before
├── Contradiction        two decisions about one request in one submission
├── NothingToGoOn        a turn without a message, a decision, or anything left to do
└── Busy                 a turn while another one runs in the same session

LimitReached             a turn was stopped by a limit; the next one can continue
"""

from __future__ import annotations


class Refused(Exception):
    """The caller's input is refused; the state is unchanged."""


class MalformedDecision(Refused):
    """A value is not a decision, or cannot be carried out: *why* says what is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(f"invalid decision: {why}")


class UnknownRequest(Refused):
    """A decision names a request that was never made."""

    def __init__(self, request: object) -> None:
        super().__init__(f"unknown approval request {request!r}")


class AlreadySettled(Refused):
    """A decision is about a request that was decided or closed before."""

    def __init__(self, request: str) -> None:
        super().__init__(f"approval request {request!r} is not open any more")


class Contradiction(Refused):
    """One submission holds two decisions about one request."""

    def __init__(self, request: str) -> None:
        super().__init__(f"there is more than one decision about approval request {request!r}")


class NothingToGoOn(Refused):
    """A turn has nothing to do."""

    def __init__(self) -> None:
        super().__init__("nothing to continue with: send a message")


class Busy(Refused):
    """A turn is running in this session."""

    def __init__(self) -> None:
        super().__init__("a turn is running in this session; wait for its end")


class LimitReached(Exception):
    """A turn needs more than its limit of *unit* allows; completed work is kept."""

    def __init__(self, unit: str, limit: int) -> None:
        super().__init__(f"the limit of {limit} {unit} in one turn is reached")
