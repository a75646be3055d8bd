"""
What a provider answers to a request that it refuses.

The neutral rules of `rules.py` judge the conversation; a protocol has rules of its own for what only its bodies show. A
complaint is a broken rule of either kind in the words of one provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from .rules import BrokenRule

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint(BrokenRule):
    """
    A broken rule as a provider tells it.

    Attributes:
        status: The HTTP status of the answer.
        kind: The provider's class of the error: `invalid_request_error`, `not_found_error`, `rate_limit_error`, ...
        param: What is wrong in the request, as OpenAI names it.
        code: OpenAI's code of the error.
    """

    rule: str = ""
    ids: tuple[str, ...] = ()
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class WireRules(Generic[Request]):
    """
    The rules of one protocol about its own bodies; each is a function, and its name the name of the rule.

    Attributes:
        all: The rules by their names.
    """

    def __init__(self) -> None:
        self.all: dict[str, Callable[[Request], Iterable[Complaint]]] = {}

    def __call__(self, rule: Callable[[Request], Iterable[Complaint]]) -> Callable[[Request], Iterable[Complaint]]:
        """Adds a rule, as a decorator."""
        self.all[str(getattr(rule, "__name__", "")).replace("_", "-")] = rule
        return rule

    def broken(self, request: Request) -> tuple[Complaint, ...]:
        """Lists what the provider has to complain of in *request*, in the order of the rules."""
        return tuple(replace(complaint, rule=name) for name, rule in self.all.items() for complaint in rule(request))
