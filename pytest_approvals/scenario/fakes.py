"""
Made-up values in a scenario, by Faker.

`{fake: file_name}` in arguments and results stands for a value of that Faker provider, `{{fake file_name}}` does so in
the middle of text. Each is a new value; `{fake: file_name, as: doc}` and `{{fake file_name as doc}}` name it, and
`{fake: doc}` and `{{fake doc}}` are the same value again, anywhere in the scenario. `with:` holds arguments for the
provider.

Values depend on the scenario's id and nothing else. No value is part of another one, so that a transcript can show
`<file_name 1>` in its place, or `<doc>` where it has a name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.mistakes import Mistake
from pytest_approvals.scenario.mistakes import Path as Place

if TYPE_CHECKING:
    from faker import Faker

_IN_TEXT = re.compile(r"\{\{fake\s+(?P<name>[^{}\s]+)(?:\s+as\s+(?P<named>[^{}\s]+))?\s*\}\}")
_KEYS = {"fake", "as", "with"}
_SHORTEST = 4  # shorter values turn up by chance in other text
_TRIES = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """One place that asks for a value: a provider or the name of a value, and what is said besides."""

    name: str
    named: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def with_fakes(part: T, seed: str) -> tuple[T, dict[str, str]]:
    """
    Gives *part*, the values of a file or a scenario, with all made-up values in place.

    Arguments:
        seed: The id of the scenario.

    Returns:
        Besides, what stands for each value in a snapshot.

    Errors:
        Mistake: A provider or name is unknown, or the provider gives no usable value.
    """
    wishes: list[_Wish] = []

    def note(wish: _Wish, path: Place) -> str:
        wishes.append(wish)
        return ""

    without = _walk(part, (), note)
    if not wishes:
        return part, {}
    values = _Values(seed=seed, named=_named(wishes), text=repr(without))
    return _walk(part, (), values.value), values.placeholders


def _named(wishes: list[_Wish]) -> dict[str, _Wish]:
    return {wish.named: wish for wish in wishes if wish.named is not None}


# --- where values are asked for ---------------------------------------------------------------------------------------


def _walk(part: Any, path: Place, fill: Callable[[_Wish, Place], Any]) -> Any:
    """Gives *part* with every wish in it replaced by what *fill* gives for it."""
    if isinstance(part, str):
        return _in_text(part, path, fill) if "{{" in part else part
    if isinstance(part, Mapping):
        if isinstance(part.get("fake"), str) and set(part) <= _KEYS:
            return fill(_wish(part, path), path)
        return {_walk(key, path, fill): _walk(value, (*path, key), fill) for key, value in part.items()}
    if isinstance(part, (tuple, list)):
        return type(part)(_walk(value, (*path, at), fill) for at, value in enumerate(part))
    if is_dataclass(part) and not isinstance(part, type):
        inner = {one.name: _walk(getattr(part, one.name), (*path, one.name), fill) for one in fields(part)}
        return replace(part, **inner)
    return part


def _in_text(text: str, path: Place, fill: Callable[[_Wish, Place], Any]) -> str:
    if "{{fake" in _IN_TEXT.sub("", text):
        raise Mistake(path, "a made-up value in text is written {{fake PROVIDER}} or {{fake PROVIDER as NAME}}")
    return _IN_TEXT.sub(lambda found: str(fill(_Wish(name=found["name"], named=found["named"]), path)), text)


def _wish(part: Mapping[str, Any], path: Place) -> _Wish:
    named, arguments = part.get("as"), part.get("with", {})
    if named is not None and not isinstance(named, str):
        raise Mistake((*path, "as"), "`as` gives a made-up value a name, which is text")
    if not isinstance(arguments, Mapping):
        raise Mistake((*path, "with"), "`with` holds arguments of the provider, by name")
    return _Wish(name=part["fake"], named=named, arguments=arguments)


# --- making them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """
    The values of one scenario, made as they are asked for.

    Attributes:
        named: The wishes that name their value.
        text: All other text of the scenario; no value is found in it.
        made: The named values so far.
        placeholders: What stands for each value.
    """

    seed: str
    named: Mapping[str, _Wish]
    text: str
    made: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    placeholders: dict[str, str] = field(default_factory=dict)

    def value(self, wish: _Wish, path: Place) -> Any:
        """Gives the value that *wish* asks for."""
        name = wish.named or (wish.name if wish.name in self.named else None)
        if name is None:
            self.counts[wish.name] += 1
            return self._new(wish, f"{wish.name} {self.counts[wish.name]}", path)
        self._judge_name(name, wish, path)
        if name not in self.made:
            self.made[name] = self._new(self.named[name], name, path)
        return self.made[name]

    def _judge_name(self, name: str, wish: _Wish, path: Place) -> None:
        if hasattr(_faker(), name):
            raise Mistake(path, f"{name!r} is a provider of Faker and cannot name a value, too")
        if wish.named and (wish.name, wish.arguments) != (self.named[name].name, self.named[name].arguments):
            raise Mistake(path, f"{name!r} names two made-up values; refer to the first one with {{fake: {name}}}")

    def _new(self, wish: _Wish, what: str, path: Place) -> Any:
        provider = _provider(wish, self.named, path)
        for attempt in range(_TRIES):
            _faker().seed_instance(_number(f"{self.seed}|{what}|{attempt}"))
            value = _drawn(provider, wish, path)
            if self._usable(str(value)):
                self.placeholders[str(value)] = f"<{what}>"
                return value
        raise Mistake(path, f"the provider {wish.name!r} gives no further value of {_SHORTEST} characters or more")

    def _usable(self, value: str) -> bool:
        others = self.placeholders
        clash = value in self.text or any(value in other or other in value for other in others)
        return len(value) >= _SHORTEST and not clash


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _provider(wish: _Wish, named: Mapping[str, _Wish], path: Place) -> Callable[..., Any]:
    found: Any = getattr(_faker(), wish.name, None)
    owner = getattr(found, "__module__", "") or ""
    if not owner.startswith("faker.providers"):
        raise Mistake(path, f"Faker has no provider {wish.name!r}{nearest(wish.name, [*_names(), *named])}")
    if owner.startswith("faker.providers.date_time") or wish.name in _CLOCK:
        raise Mistake(path, f"the provider {wish.name!r} reads the clock, so its values differ from day to day")
    return cast("Callable[..., Any]", found)


_CLOCK = ("credit_card_expire", "credit_card_full", "passport_dates", "passport_dob", "passport_full", "profile",
          "simple_profile")  # fmt: skip


def _names() -> list[str]:
    known = (name for provider in _faker().get_providers() for name in dir(provider))
    return sorted({name for name in known if not name.startswith("_")})


def _drawn(provider: Callable[..., Any], wish: _Wish, path: Place) -> str | int:
    try:
        value = provider(**wish.arguments)
    except Exception as error:
        raise Mistake(path, f"the provider {wish.name!r} refuses {dict(wish.arguments)}: {error}") from None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        what = f"the provider {wish.name!r} gives {type(value).__name__}; only text and whole numbers can stand here"
        raise Mistake(path, what)
    return value
