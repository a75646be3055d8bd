"""Made-up values in a scenario, by Faker.

`{fake: file_name}` in arguments and results is replaced by a value of that Faker provider, `{{fake file_name}}` by one
inside text. Each occurrence is a new value; `{fake: file_name, as: doc}` and `{{fake file_name as doc}}` name it, and
`{fake: doc}` and `{{fake doc}}` repeat it anywhere in the scenario. `with:` holds arguments for the provider.

Values depend on the scenario's id alone. No value is part of another, so that a transcript can show `<file_name 1>`
in its place, or `<doc>` if it has a name.
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
from pytest_approvals.yaml_files import Diagnostic, KeyPath

if TYPE_CHECKING:
    from faker import Faker

_TEXT_PATTERN = re.compile(r"\{\{fake\s+(?P<name>[^{}\s]+)(?:\s+as\s+(?P<named>[^{}\s]+))?\s*\}\}")
_KEYS = {"fake", "as", "with"}
_MIN_LENGTH = 4  # shorter values turn up by chance in other text
_MAX_ATTEMPTS = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FakeRequest:
    """One place that asks for a value: a provider or the name of a value."""

    name: str
    named: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def fill_fake_values(part: T, seed: str) -> tuple[T, dict[str, str]]:
    """Fill in all made-up values.

    Args:
        part: The values of a file, or a scenario.
        seed: Id of the scenario.

    Returns:
        *part* with the values, and the placeholder of each value in snapshots.

    Raises:
        Diagnostic: A provider or name is unknown, or the provider returns no usable value.
    """
    requests: list[_FakeRequest] = []

    def collect(request: _FakeRequest, path: KeyPath) -> str:
        requests.append(request)
        return ""

    # Two passes, because a value may be repeated before the place that names it.
    without = _replace_fakes(part, (), collect)
    if not requests:
        return part, {}
    values = _FakeValues(seed=seed, named=_named_requests(requests), text=repr(without))
    return _replace_fakes(part, (), values.value), values.placeholders


def _named_requests(requests: list[_FakeRequest]) -> dict[str, _FakeRequest]:
    return {request.named: request for request in requests if request.named is not None}


# --- finding requests -------------------------------------------------------------------------------------------------


def _replace_fakes(part: Any, path: KeyPath, fill: Callable[[_FakeRequest, KeyPath], Any]) -> Any:
    """Return *part* with every request in it replaced by the result of *fill*."""
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
        inner = {item.name: _replace_fakes(getattr(part, item.name), (*path, item.name), fill) for item in fields(part)}
        return replace(part, **inner)
    return part


def _replace_in_text(text: str, path: KeyPath, fill: Callable[[_FakeRequest, KeyPath], Any]) -> str:
    if "{{fake" in _TEXT_PATTERN.sub("", text):
        raise Diagnostic(path, "a made-up value in text is written {{fake PROVIDER}} or {{fake PROVIDER as NAME}}")
    return _TEXT_PATTERN.sub(
        lambda match: str(fill(_FakeRequest(name=match["name"], named=match["named"]), path)), text
    )


def _parse_request(part: Mapping[str, Any], path: KeyPath) -> _FakeRequest:
    named, arguments = part.get("as"), part.get("with", {})
    if named is not None and not isinstance(named, str):
        raise Diagnostic((*path, "as"), "`as` names a made-up value and must be text")
    if not isinstance(arguments, Mapping):
        raise Diagnostic((*path, "with"), "`with` holds arguments of the provider, by name")
    return _FakeRequest(name=part["fake"], named=named, arguments=arguments)


# --- generating values ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _FakeValues:
    """The values of one scenario, generated on request.

    Attributes:
        named: Requests that name their value.
        text: All other text of the scenario; no value may occur in it.
        generated: Named values so far.
        placeholders: Placeholder of each value in snapshots.
    """

    seed: str
    named: Mapping[str, _FakeRequest]
    text: str
    generated: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    placeholders: dict[str, str] = field(default_factory=dict)

    def value(self, request: _FakeRequest, path: KeyPath) -> Any:
        """Return the requested value."""
        name = request.named or (request.name if request.name in self.named else None)
        if name is None:
            self.counts[request.name] += 1
            return self._generate(request, f"{request.name} {self.counts[request.name]}", path)
        self._validate_name(name, request, path)
        if name not in self.generated:
            self.generated[name] = self._generate(self.named[name], name, path)
        return self.generated[name]

    def _validate_name(self, name: str, request: _FakeRequest, path: KeyPath) -> None:
        if hasattr(_faker(), name):
            raise Diagnostic(path, f"{name!r} is a provider of Faker and cannot name a value, too")
        if request.named and (request.name, request.arguments) != (self.named[name].name, self.named[name].arguments):
            raise Diagnostic(path, f"{name!r} names two made-up values; refer to the first one with {{fake: {name}}}")

    def _generate(self, request: _FakeRequest, key: str, path: KeyPath) -> Any:
        provider = _find_provider(request, self.named, path)
        for attempt in range(_MAX_ATTEMPTS):
            # Seeded anew each time, so that no value depends on those generated before it.
            _faker().seed_instance(_seed_number(f"{self.seed}|{key}|{attempt}"))
            value = _call_provider(provider, request, path)
            if self._is_usable(str(value)):
                self.placeholders[str(value)] = f"<{key}>"
                return value
        raise Diagnostic(
            path, f"the provider {request.name!r} returns no further value of {_MIN_LENGTH} characters or more"
        )

    def _is_usable(self, value: str) -> bool:
        others = self.placeholders
        clash = value in self.text or any(value in other or other in value for other in others)
        return len(value) >= _MIN_LENGTH and not clash


@cache
def _faker() -> Faker:
    from faker import Faker

    return Faker(use_weighting=False)


def _seed_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _find_provider(request: _FakeRequest, named: Mapping[str, _FakeRequest], path: KeyPath) -> Callable[..., Any]:
    provider: Any = getattr(_faker(), request.name, None)
    owner = getattr(provider, "__module__", "") or ""
    # The proxy has attributes that are not providers, such as `seed_instance`.
    if not owner.startswith("faker.providers"):
        raise Diagnostic(
            path, f"unknown Faker provider {request.name!r}{suggest_name(request.name, [*_provider_names(), *named])}"
        )
    if owner.startswith("faker.providers.date_time") or request.name in _CLOCK_PROVIDERS:
        raise Diagnostic(path, f"the provider {request.name!r} reads the clock, so its values differ from day to day")
    return cast("Callable[..., Any]", provider)


_CLOCK_PROVIDERS = (
    "credit_card_expire",
    "credit_card_full",
    "passport_dates",
    "passport_dob",
    "passport_full",
    "profile",
    "simple_profile",
)


def _provider_names() -> list[str]:
    known = (name for provider in _faker().get_providers() for name in dir(provider))
    return sorted({name for name in known if not name.startswith("_")})


def _call_provider(provider: Callable[..., Any], request: _FakeRequest, path: KeyPath) -> str | int:
    try:
        value = provider(**request.arguments)
    except Exception as error:
        raise Diagnostic(path, f"the provider {request.name!r} refuses {dict(request.arguments)}: {error}") from None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        message = f"the provider {request.name!r} returns {type(value).__name__}; expected text or an integer"
        raise Diagnostic(path, message)
    return value
