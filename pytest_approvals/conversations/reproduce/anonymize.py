"""Anonymization of a draft by made-up values, so that it can be shared.

The values are Faker's: equal values stay equal, different ones stay different. The names of tools, parameters and
servers are kept.
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
"""Patterns of texts, and what draws a replacement; the first that matches a text counts."""

_MAX_ATTEMPTS = 1_000


def anonymize(draft: ScenarioDraft, keep: Collection[str] = ()) -> ScenarioDraft:
    """Return the draft with made-up values except for the texts in *keep*.

    The same draft always gets the same ones.
    """
    values = _Replacements({(str, text): text for text in keep})
    return replace(draft, turns=tuple(map(values.replace_turn, draft.turns)))


@dataclass(slots=True)
class _Replacements:
    """The replacements so far."""

    replacements: dict[tuple[type, Any], Any] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)

    def replace_turn(self, turn: DraftTurn) -> DraftTurn:
        send = None if turn.send is None else self.replace_value(turn.send)
        decisions = tuple(map(self._replace_decision, turn.decisions))
        return replace(turn, send=send, decisions=decisions, replies=tuple(map(self._replace_reply, turn.replies)))

    def replace_value(self, value: Any) -> Any:
        """Return the replacement of a JSON value; values that cannot identify anybody stay."""
        match value:
            case Mapping():
                return {name: self.replace_value(inner) for name, inner in value.items()}
            case list():
                return [self.replace_value(inner) for inner in value]
            case bool() | None:
                return value
            case str() if not value.strip():
                return value
            case _:
                return self._find_replacement(value)

    def _replace_reply(self, reply: DraftReply) -> DraftReply:
        say = None if reply.say is None else self.replace_value(reply.say)
        return replace(reply, say=say, calls=tuple(map(self._replace_call, reply.calls)))

    def _replace_call(self, call: DraftCall) -> DraftCall:
        result = None if call.result is None else replace(call.result, value=self.replace_value(call.result.value))
        return replace(call, arguments=self.replace_value(call.arguments), result=result)

    def _replace_decision(self, decision: DraftDecision) -> DraftDecision:
        text = None if decision.text is None else self.replace_value(decision.text)
        unknown = self.replace_value(decision.unknown) if decision.call is None else decision.unknown
        return replace(decision, text=text, unknown=unknown, arguments=self.replace_value(decision.arguments))

    def _find_replacement(self, value: str | float) -> Any:
        key = (type(value), value)
        if key not in self.replacements:
            drawn = (self._draw(value, attempt) for attempt in range(_MAX_ATTEMPTS))
            self.replacements[key] = next(
                candidate for candidate in drawn if candidate != value and candidate not in self.used
            )
            self.used.add(self.replacements[key])
        return self.replacements[key]

    def _draw(self, value: str | float, attempt: int) -> Any:
        faker = _faker()
        # Seeded by the number of values so far, so that the same draft always gets the same values.
        faker.seed_instance(_seed(f"{len(self.replacements)}|{attempt}"))
        # Faker has few distinct words, so the value gets longer after every 50 attempts.
        widened = attempt // 50
        if isinstance(value, float):
            return round(faker.random_int(1, 999) + 0.5, 1)
        if isinstance(value, int):
            return faker.random_number(digits=len(str(abs(value))) + widened) + 1
        drawn = next(draw(faker, value) for pattern, draw in _KINDS if re.fullmatch(pattern, value))
        return f"{drawn} {widened}" if widened else drawn


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
