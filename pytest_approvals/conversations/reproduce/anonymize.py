"""
Other values in place of a conversation's own, so that what is left can be shared: made up by Faker, the same value for
the same one everywhere, another one for another one. What tools, parameters and servers are called stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftTurn,
    ScenarioDraft,
)

if TYPE_CHECKING:
    from faker import Faker

_KINDS: tuple[tuple[str, Callable[[Faker, str], str]], ...] = (
    (r"[^@\s]+@[^@\s]+\.\w+", lambda faker, _: str(faker.email())),
    (r"https?://\S+", lambda faker, _: str(faker.url())),
    (r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", lambda faker, _: str(faker.uuid4())),
    (r"[+(]?[\d ()./-]{6,}", lambda faker, text: re.sub(r"\d", lambda _: str(faker.random_digit()), text)),
    (r"\S*/\S+", lambda faker, text: str(faker.file_path(extension=PurePosixPath(text).suffix.strip(".") or "txt"))),
    (r"[\w-]+\.\w{1,5}", lambda faker, text: str(faker.file_name(extension=text.rpartition(".")[2]))),
    (r"\S+", lambda faker, _: str(faker.word())),
    (r"[\s\S]*", lambda faker, text: str(faker.sentence(nb_words=min(12, len(text.split())), variable_nb_words=False))),
)
"""Kinds of texts by their looks, and what stands in for one; the first that matches a text counts."""

_MAX_ATTEMPTS = 1_000


def anonymize(draft: ScenarioDraft, kept: Collection[str] = ()) -> ScenarioDraft:
    """Gives the draft with made-up values, but for the texts to be *kept*; the same draft always gets the same ones."""
    values = _Replacements({(str, text): text for text in kept})
    return replace(draft, turns=tuple(map(values.turn, draft.turns)))


@dataclass(slots=True)
class _Replacements:
    """What stands in for what."""

    made: dict[tuple[type, Any], Any] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)

    def turn(self, turn: DraftTurn) -> DraftTurn:
        send = None if turn.send is None else self.value(turn.send)
        answers = tuple(map(self._answer, turn.answers))
        return replace(turn, send=send, answers=answers, replies=tuple(map(self._reply, turn.replies)))

    def value(self, value: Any) -> Any:
        """Gives what stands in for a JSON value; what cannot tell of anybody stays."""
        match value:
            case Mapping():
                return {name: self.value(inner) for name, inner in value.items()}
            case list():
                return [self.value(inner) for inner in value]
            case bool() | None:
                return value
            case str() if not value.strip():
                return value
            case _:
                return self._stand_in(value)

    def _reply(self, reply: DraftReply) -> DraftReply:
        say = None if reply.say is None else self.value(reply.say)
        return replace(reply, say=say, calls=tuple(map(self._call, reply.calls)))

    def _call(self, call: DraftCall) -> DraftCall:
        result = None if call.result is None else replace(call.result, value=self.value(call.result.value))
        return replace(call, arguments=self.value(call.arguments), result=result)

    def _answer(self, answer: DraftDecision) -> DraftDecision:
        text = None if answer.text is None else self.value(answer.text)
        unknown = self.value(answer.unknown) if answer.call is None else answer.unknown
        return replace(answer, text=text, unknown=unknown, arguments=self.value(answer.arguments))

    def _stand_in(self, value: str | float) -> Any:
        key = (type(value), value)
        if key not in self.made:
            drawn = (self._drawn(value, attempt) for attempt in range(_MAX_ATTEMPTS))
            self.made[key] = next(each for each in drawn if each != value and each not in self.used)
            self.used.add(self.made[key])
        return self.made[key]

    def _drawn(self, value: str | float, attempt: int) -> Any:
        faker = _faker()
        faker.seed_instance(_seed(f"{len(self.made)}|{attempt}"))
        widened = attempt // 50
        if isinstance(value, float):
            return round(faker.random_int(1, 999) + 0.5, 1)
        if isinstance(value, int):
            return faker.random_number(digits=len(str(abs(value))) + widened) + 1
        drawn = next(draw(faker, value) for looks, draw in _KINDS if re.fullmatch(looks, value))
        return f"{drawn} {widened}" if widened else drawn


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
