"""Made-up values in place of a conversation's own, so that it can be shown to others.

The values are Faker's: equal values stay equal, different ones stay different, and a text keeps its length and its
shape, a number its digits. No run of five letters of a text is in the one that replaces it, nor in any other one if the
texts are known before. The value of a name that looks like a secret's is replaced by a placeholder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faker import Faker

SECRET = "[secret]"
"""The text in place of a secret."""

SECRET_NAMES = (
    r"authorization|(?:x[-_]?)?api[-_]?key|(?:access|auth|refresh|id)[-_]?token|(?:client[-_]?)?secret|passw(?:or)?d"
    r"|private[-_]?key"
)
"""Names whose values are secrets, as a pattern."""

_SECRET_NAME = re.compile(rf"(?:{SECRET_NAMES}|token|credentials?)", re.IGNORECASE)

_KINDS: tuple[tuple[str, Callable[[Faker, str], str]], ...] = (
    (r"[^@\s]+@[^@\s]+\.\w+", lambda faker, text: _keep_shape(faker, text)),
    (r"https?://\S+", lambda faker, text: text[: text.index("//") + 2] + _keep_shape(faker, text.partition("//")[2])),
    (r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", lambda faker, _: str(faker.uuid4())),
    (r"[+(]?[\d ()./-]{6,}", lambda faker, text: re.sub(r"\d", lambda _: str(faker.random_digit()), text)),
    (r"\S*[/.]\S+", lambda faker, text: _keep_ending(faker, text)),
    (r"[^\s\d]+", lambda faker, text: _fit(faker, str(faker.word()), len(text))),
    (r"\S+", lambda faker, text: _keep_shape(faker, text)),
    (r"[\s\S]*", lambda faker, text: _fit(faker, _sentence(faker, text), len(text))),
)
"""Patterns of texts, and what draws a replacement; the first that matches a text counts."""

_LETTERS_ONLY = ((r"[\s\S]*", lambda faker, text: _keep_ending(faker, text)),)

_SCHEME = re.compile(r"^https?://")
_MAX_ATTEMPTS = 1_000
_MAX_WORD_ATTEMPTS = 100
"""After so many attempts with words, letters are drawn: a long conversation has most words that there are to draw."""

_LETTERS = 5
"""So many letters in a row must not be left of a text."""


def is_secret_name(name: Any) -> bool:
    """Return whether the value of an argument with this name is a secret."""
    return _SECRET_NAME.fullmatch(str(name)) is not None


def hide_secrets(value: Any) -> Any:
    """Return a JSON value with placeholders for the texts and numbers of names that look like a secret's."""
    match value:
        case Mapping():
            return {
                name: SECRET if is_secret_name(name) and _is_plain(inner) else hide_secrets(inner)
                for name, inner in value.items()
            }
        case list():
            return [hide_secrets(inner) for inner in value]
        case _:
            return value


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


@dataclass(slots=True)
class MadeUpValues:
    """The replacements so far; the same values in the same order always get the same ones.

    Attributes:
        replacements: By type and value; what is there from the start stays as it is given.
        used: The replacements that are taken.
        avoided: Runs of five letters that no replacement has.
    """

    replacements: dict[tuple[type, Any], Any] = field(default_factory=dict)
    used: set[Any] = field(default_factory=set)
    avoided: set[str] = field(default_factory=set)

    def avoid(self, value: Any) -> None:
        """Let no replacement have five letters in a row of the texts of a JSON value, not even by chance."""
        match value:
            case Mapping():
                for inner in value.values():
                    self.avoid(inner)
            case list() | tuple():
                for inner in value:
                    self.avoid(inner)
            case str():
                self.avoided.update(letter_runs(value))

    def replace(self, value: Any) -> Any:
        """Return the replacement of a JSON value; values that cannot identify anybody stay."""
        match value:
            case Mapping():
                return {
                    name: SECRET if is_secret_name(name) and _is_plain(inner) else self.replace(inner)
                    for name, inner in value.items()
                }
            case list() | tuple():
                return [self.replace(inner) for inner in value]
            case bool() | None:
                return value
            case str() if not value.strip():
                return value
            case _:
                return self._find_replacement(value)

    def _find_replacement(self, value: str | float) -> Any:
        key = (type(value), value)
        if key not in self.replacements:
            drawn = (self._draw(value, attempt) for attempt in range(_MAX_ATTEMPTS))
            fallback = self._draw(value, _MAX_ATTEMPTS)
            self.replacements[key] = next((each for each in drawn if self._is_free(each, value)), fallback)
            self.used.add(self.replacements[key])
        return self.replacements[key]

    def _is_free(self, candidate: Any, value: str | float) -> bool:
        is_new = candidate != value and candidate not in self.used
        return is_new and not (isinstance(value, str) and self._has_letters_of(value, str(candidate)))

    def _has_letters_of(self, value: str, candidate: str) -> bool:
        """Return whether five letters in a row of a text, or of one that is avoided, are in the other."""
        own = set(letter_runs(value))
        return any(run in own or run in self.avoided for run in letter_runs(candidate))

    def _draw(self, value: str | float, attempt: int) -> Any:
        faker = _faker()
        # Seeded by the number of values so far, so that the same conversation always gets the same values.
        faker.seed_instance(_seed(f"{len(self.replacements)}|{attempt}"))
        # Of short texts and numbers there are few, so the value gets longer if none is left.
        widened = attempt // 200
        if isinstance(value, float):
            return round(faker.random_int(1, 999) + 0.5, 1)
        if isinstance(value, int):
            number = faker.random_number(digits=len(str(abs(value))) + widened, fix_len=True) or 1
            return -number if value < 0 else number
        kinds = _KINDS if attempt < _MAX_WORD_ATTEMPTS else _LETTERS_ONLY
        drawn = next(draw(faker, value) for pattern, draw in kinds if re.fullmatch(pattern, value))
        return f"{drawn}{faker.lexify('?' * widened)}" if widened else drawn


def letter_runs(text: str) -> Iterator[str]:
    """Yield all runs of five letters in a text, in lower case, but for the scheme of a web address, which is kept."""
    for word in re.findall(r"[^\W\d_]{5,}", _SCHEME.sub("", text).lower()):
        yield from (word[start : start + _LETTERS] for start in range(len(word) - _LETTERS + 1))


def _keep_shape(faker: Faker, text: str) -> str:
    """Return a text with other letters and digits at the places of letters and digits."""

    def change(found: re.Match[str]) -> str:
        if found[0].isdigit():
            return str(faker.random_digit())
        letter = str(faker.random_lowercase_letter())
        return letter.upper() if found[0].isupper() else letter

    return re.sub(r"[^\W_]", change, text)


def _keep_ending(faker: Faker, text: str) -> str:
    """Return a path or a file name of the same shape, with the same ending."""
    ending = PurePosixPath(text).suffix
    ending = ending if re.fullmatch(r"\.\w{1,4}", ending) else ""
    return _keep_shape(faker, text[: len(text) - len(ending)]) + ending


def _sentence(faker: Faker, text: str) -> str:
    return str(faker.sentence(nb_words=len(text.split()), variable_nb_words=False))


def _fit(faker: Faker, drawn: str, length: int) -> str:
    """Return a text of the given length that begins as the drawn one."""
    while len(drawn) < length:
        drawn += str(faker.random_lowercase_letter())
    return drawn[:length].rstrip().ljust(length, "e")


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
