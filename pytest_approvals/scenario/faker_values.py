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

from pytest_approvals.errors import suggest_name
from pytest_approvals.yaml_files import Diagnostic
from pytest_approvals.yaml_files import KeyPath as Place

if TYPE_CHECKING:
    from faker import Faker

_TEXT_PATTERN = re.compile(r"\{\{fake\s+(?P<name>[^{}\s]+)(?:\s+as\s+(?P<named>[^{}\s]+))?\s*\}\}")
_KEYS = {"fake", "as", "with"}
_MIN_LENGTH = 4  # shorter values turn up by chance in other text
_MAX_ATTEMPTS = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FakeRequest:
    """One place that asks for a value: a provider or the name of a value, and what is said besides."""

    name: str
    named: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def fill_fake_values(part: T, seed: str) -> tuple[T, dict[str, str]]:
    """
    Gives *part*, the values of a file or a scenario, with all made-up values in place.

    Arguments:
        seed: The id of the scenario.

    Returns:
        Besides, what stands for each value in a snapshot.

    Errors:
        Mistake: A provider or name is unknown, or the provider gives no usable value.
    """
    wishes: list[_FakeRequest] = []

    def note(wish: _FakeRequest, path: Place) -> str:
        wishes.append(wish)
        return ""

    without = _replace_fakes(part, (), note)
    if not wishes:
        return part, {}
    values = _FakeValues(seed=seed, named=_named_requests(wishes), text=repr(without))
    return _replace_fakes(part, (), values.value), values.placeholders


def _named_requests(wishes: list[_FakeRequest]) -> dict[str, _FakeRequest]:
    return {wish.named: wish for wish in wishes if wish.named is not None}


# --- where values are asked for ---------------------------------------------------------------------------------------


def _replace_fakes(part: Any, path: Place, fill: Callable[[_FakeRequest, Place], Any]) -> Any:
    """Gives *part* with every wish in it replaced by what *fill* gives for it."""
    if isinstance(part, str):
        return _replace_in_text(part, path, fill) if "{{" in part else part
    if isinstance(part, Mapping):
        if isinstance(part.get("fake"), str) and set(part) <= _KEYS:
            return fill(_parse_request(part, path), path)
        return {
            _replace_fakes(key, path, fill): _replace_fakes(value, (*path, key), fill) for key, value in part.items()
        }
    if isinstance(part, (tuple, list)):
        return type(part)(_replace_fakes(value, (*path, at), fill) for at, value in enumerate(part))
    if is_dataclass(part) and not isinstance(part, type):
        inner = {one.name: _replace_fakes(getattr(part, one.name), (*path, one.name), fill) for one in fields(part)}
        return replace(part, **inner)
    return part


def _replace_in_text(text: str, path: Place, fill: Callable[[_FakeRequest, Place], Any]) -> str:
    if "{{fake" in _TEXT_PATTERN.sub("", text):
        raise Diagnostic(path, "a made-up value in text is written {{fake PROVIDER}} or {{fake PROVIDER as NAME}}")
    return _TEXT_PATTERN.sub(
        lambda found: str(fill(_FakeRequest(name=found["name"], named=found["named"]), path)), text
    )


def _parse_request(part: Mapping[str, Any], path: Place) -> _FakeRequest:
    named, arguments = part.get("as"), part.get("with", {})
    if named is not None and not isinstance(named, str):
        raise Diagnostic((*path, "as"), "`as` gives a made-up value a name, which is text")
    if not isinstance(arguments, Mapping):
        raise Diagnostic((*path, "with"), "`with` holds arguments of the provider, by name")
    return _FakeRequest(name=part["fake"], named=named, arguments=arguments)


# --- making them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _FakeValues:
    """
    The values of one scenario, made as they are asked for.

    Attributes:
        named: The wishes that name their value.
        text: All other text of the scenario; no value is found in it.
        made: The named values so far.
        placeholders: What stands for each value.
    """

    seed: str
    named: Mapping[str, _FakeRequest]
    text: str
    made: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    placeholders: dict[str, str] = field(default_factory=dict)

    def value(self, wish: _FakeRequest, path: Place) -> Any:
        """Gives the value that *wish* asks for."""
        name = wish.named or (wish.name if wish.name in self.named else None)
        if name is None:
            self.counts[wish.name] += 1
            return self._new(wish, f"{wish.name} {self.counts[wish.name]}", path)
        self._judge_name(name, wish, path)
        if name not in self.made:
            self.made[name] = self._new(self.named[name], name, path)
        return self.made[name]

    def _judge_name(self, name: str, wish: _FakeRequest, path: Place) -> None:
        if hasattr(_faker(), name):
            raise Diagnostic(path, f"{name!r} is a provider of Faker and cannot name a value, too")
        if wish.named and (wish.name, wish.arguments) != (self.named[name].name, self.named[name].arguments):
            raise Diagnostic(path, f"{name!r} names two made-up values; refer to the first one with {{fake: {name}}}")

    def _new(self, wish: _FakeRequest, what: str, path: Place) -> Any:
        provider = _find_provider(wish, self.named, path)
        for attempt in range(_MAX_ATTEMPTS):
            _faker().seed_instance(_seed_number(f"{self.seed}|{what}|{attempt}"))
            value = _call_provider(provider, wish, path)
            if self._usable(str(value)):
                self.placeholders[str(value)] = f"<{what}>"
                return value
        raise Diagnostic(path, f"the provider {wish.name!r} gives no further value of {_MIN_LENGTH} characters or more")

    def _usable(self, value: str) -> bool:
        others = self.placeholders
        clash = value in self.text or any(value in other or other in value for other in others)
        return len(value) >= _MIN_LENGTH and not clash


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _seed_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _find_provider(wish: _FakeRequest, named: Mapping[str, _FakeRequest], path: Place) -> Callable[..., Any]:
    found: Any = getattr(_faker(), wish.name, None)
    owner = getattr(found, "__module__", "") or ""
    if not owner.startswith("faker.providers"):
        raise Diagnostic(
            path, f"Faker has no provider {wish.name!r}{suggest_name(wish.name, [*_provider_names(), *named])}"
        )
    if owner.startswith("faker.providers.date_time") or wish.name in _CLOCK_PROVIDERS:
        raise Diagnostic(path, f"the provider {wish.name!r} reads the clock, so its values differ from day to day")
    return cast("Callable[..., Any]", found)


_CLOCK_PROVIDERS = ("credit_card_expire", "credit_card_full", "passport_dates", "passport_dob", "passport_full", "profile",
          "simple_profile")  # fmt: skip


def _provider_names() -> list[str]:
    known = (name for provider in _faker().get_providers() for name in dir(provider))
    return sorted({name for name in known if not name.startswith("_")})


def _call_provider(provider: Callable[..., Any], wish: _FakeRequest, path: Place) -> str | int:
    try:
        value = provider(**wish.arguments)
    except Exception as error:
        raise Diagnostic(path, f"the provider {wish.name!r} refuses {dict(wish.arguments)}: {error}") from None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        what = f"the provider {wish.name!r} gives {type(value).__name__}; only text and whole numbers can stand here"
        raise Diagnostic(path, what)
    return value
