"""
Narrowing the variants: the values of dimensions that a person asks for on a command line, and variants by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.parts import Variant
from pytest_approvals.scenario.words import DIMENSIONS

_STORE = re.compile(r"native\.[a-z][a-z0-9_]*")
_AFTER_SERIALIZE = ("same", "fresh", "cold", "append", "stream", "held", "restored", "rebuilt")
_KINDS = {
    "serialize": "serialize mode",
    "source": "answer source",
    "resume": "way to resume",
    "history": "history mode",
}


def overrides(
    *,
    serialize: str | Iterable[str] | None = None,
    stream: bool | None = None,
    answer: str | Iterable[str] | None = None,
    resume: str | Iterable[str] | None = None,
    history: str | Iterable[str] | None = None,
    oracle: str | Iterable[str] | None = None,
    chunking: str | Iterable[str] | None = None,
    protocol: str | Iterable[str] | None = None,
) -> dict[str, tuple[Any, ...]]:
    """
    Gives the dimensions that a person narrowed, for `variants`.

    Arguments:
        serialize, answer, resume, history, oracle, chunking, protocol: Values, as text with commas between them or one
            by one.

    Errors:
        UnknownName: A dimension has no such value.
    """
    given = {
        "serialize": serialize,
        "resume": resume,
        "history": history,
        "source": answer,
        "oracle": oracle,
        "chunking": chunking,
        "protocol": protocol,
    }
    chosen: dict[str, tuple[Any, ...]] = {
        name: tuple(_value(name, word) for word in _words(values)) for name, values in given.items() if values
    }
    return chosen | ({} if stream is None else {"stream": (stream,)})


def variant_from_id(name: str) -> Variant:
    """
    Gives the variant that is called *name*: the words in an item's brackets, with those of the base variant left out.

    >>> variant_from_id("json-stream-restored")
    Variant(serialize='json', resume='same', history='whole', stream=True, source='restored', oracle='script', \
chunking='whole', protocol='native', saved_by='')

    Errors:
        UsageError: It is no name of a variant.
    """
    plain, _, saved_by = name.partition("-from-")
    words = plain.split("-")
    split = next((at for at, word in enumerate(words) if at and word in _AFTER_SERIALIZE), len(words))
    serialize, rest = "_".join(words[:split]), words[split:]
    found: dict[str, Any] = {"serialize": _value("serialize", serialize)}
    for dimension, values in (("resume", ("fresh", "cold")), ("history", ("append",)), ("stream", ("stream",))):
        if rest and rest[0] in values:
            found[dimension] = rest.pop(0) if dimension != "stream" else bool(rest.pop(0))
    found.update(_chunking(rest))
    if not rest or rest[0] not in DIMENSIONS["source"]:
        raise UsageError(f"{name!r} is no name of a variant: it lacks held, restored or rebuilt, as in 'json-restored'")
    found["source"] = rest.pop(0)
    if rest and rest[-1] in DIMENSIONS["protocol"]:
        found["protocol"] = rest.pop()
    if rest:
        found["oracle"] = _value("oracle", "_".join(rest))
    variant = Variant(**found, saved_by=saved_by)
    if variant.id != name:
        raise UsageError(f"{name!r} is no name of a variant; this one is called {variant.id!r}")
    return variant


def _chunking(rest: list[str]) -> dict[str, str]:
    for style in DIMENSIONS["chunking"]:
        words = str(style).split("_")
        if rest[: len(words)] == words:
            del rest[: len(words)]
            return {"chunking": str(style)}
    return {}


def _words(values: str | Iterable[str]) -> list[str]:
    several = _split(values) if isinstance(values, str) else list(values)
    return [word.strip() for word in several if word.strip()]


def _split(text: str) -> list[str]:
    """Splits at commas, but not at those between the tools of an allowlist."""
    head, allowlist, tools = text.partition("allowlist:")
    return [*head.split(","), *([allowlist + tools] if allowlist else [])]


def _value(dimension: str, word: str) -> str:
    plain = word.replace("-", "_") if dimension in ("oracle", "chunking") else word
    name, colon, rest = plain.partition(":")
    known = DIMENSIONS[dimension]
    if dimension == "serialize" and _STORE.fullmatch(word):
        return word
    if dimension == "oracle" and name in ("random", "allowlist"):
        if (name == "random" and not rest.isdecimal()) or not rest:
            needs = "a seed: random:7" if name == "random" else "tools: allowlist:read_file,list_files"
            raise UsageError(f"the oracle {name} needs {needs}")
        return plain
    if plain not in known or (colon and name != "reject_all"):
        raise UnknownName(_KINDS.get(dimension, dimension), word, map(str, known))
    return plain
