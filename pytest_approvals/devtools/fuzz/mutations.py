"""Mutations of valid specimens: of the values in them, of their lines, and of their bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pytest_approvals.yaml_files import Diagnostic
from pytest_approvals.yaml_files.document import parse_yaml

KeyPath = tuple[str | int, ...]

_PREFIX = re.compile(rb"(?:data: ?)?")

_RAW = "\x01raw"
_DUPLICATE = "\x01duplicate "
_RAW_TOKEN = re.compile(r'"\\u0001raw(\d+)"')
_DUPLICATE_TOKEN = '"\\u0001duplicate '

_NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 255, 2**31, -(2**31), 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30),
    *(0.5, -1.5, 1e308, 5e-324),
)
_TEXTS = (
    *("", " ", "x", "main", "c1", "c1 ", "pay", "null", "true", "0", "-1", "1.5", "1970-01-01", "*", "a-*", "[!a", "|"),
    *("{amount}", "{}", "{0}", "%s", "{a.__class__}", '{"a": 1}', '{"a": ', "[" * 60, "[" * 5000, "&a", "*a"),
    *("\ud800", "\udfff x", "\x00", "\x1b]52;c;YQ==\x07", "\n::error file=a::b", "\u202eabc", "\u2028", "\ufeff"),
    *("e\u0301" * 20, "😀" * 50, "a" * 300, "a b " * 500, "<script>", "a/b", "../../etc/passwd", "https://a.b/c"),
    *(">=1,<2", ">=x", "==1.*", "!!python/object:os.system"),
)
_RAWS = (
    *("9" * 5000, "-" + "9" * 700, "1" + "0" * 400, "1" + "0" * 400 + ".0", "1e999", "-1e999", "1e-999", "-0", "-0.0"),
    *("NaN", "Infinity", "-Infinity", "1.0", "1E5", "01", "+1", ".5", "0x10", "1_000", "nul", "undefined", "'x'", ""),
    *('"\\ud800"', '"\\ud83d\\ude00"', '"\\x"', '"a', '{"a":1,"a":2}', '{"\\ud800":1}', '{"":{"":{}}}', "{,}", "[1,]"),
    *("[" * 50 + "]" * 50, "[" * 70 + "]" * 70, "[" * 150 + "]" * 150, "[" * 400 + "]" * 400, "[" * 600),
    *('{"a":' * 99 + "1" + "}" * 99, '{"a":' * 300 + "[]" + "}" * 300),
)
_LARGE_RAWS = ("[" * 2000 + "]" * 2000, '{"a":' * 1500 + "1" + "}" * 1500, "[" * 60_000, '"' + "x" * 60_000 + '"')
_TOKENS = (
    *(b"[", b"]", b"{", b"}", b",", b":", b'"', b"'", b"\\", b"\n", b"\r\n", b"\t", b"\x00", b"\xff", b"\xc3"),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\\u0000", b"- ", b"? ", b"&a ", b"*a ", b"!!str ", b"| "),
    *(b"---\n", b"#", b"null", b"true", b"1e9", b'"a":', b"%", b"<<: "),
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A document of a specimen.

    Attributes:
        prefix: What precedes it on its line.
        paths: The paths of all values in it.
        text: Its line as it was; None if it was changed.
    """

    prefix: bytes
    value: Any
    paths: tuple[KeyPath, ...]
    text: bytes | None = None


@dataclass(slots=True)
class Specimen:
    """A valid input.

    Attributes:
        raw: Its bytes.
        parts: Its documents; bytes for a line that is none.
    """

    raw: bytes
    parts: tuple[_Part | bytes, ...]
    documents: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.documents = tuple(at for at, part in enumerate(self.parts) if isinstance(part, _Part))

    @classmethod
    def parse(cls, raw: bytes) -> Specimen:
        """Parse an input as one JSON or YAML document, or as lines, of which some are JSON."""
        whole = _parse_document(raw)
        if whole is not None:
            return cls(raw, (_Part(b"", whole, tuple(_list_paths(whole))),))
        return cls(raw, tuple(map(_parse_line, raw.splitlines())))


def _parse_document(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        pass
    try:
        value = parse_yaml(raw.decode()).value
    except (ValueError, Diagnostic):
        return None
    # A text of several words is YAML, too, but says nothing about structure.
    return value if isinstance(value, (dict, list)) else None


def _parse_line(line: bytes) -> _Part | bytes:
    match = _PREFIX.match(line)
    prefix = match[0] if match else b""
    try:
        value = json.loads(line[len(prefix) :])
    except ValueError:
        return line
    return _Part(prefix, value, tuple(_list_paths(value)), line)


def _list_paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for step, part in inside for below in _list_paths(part, (*path, step)))]


def mutate(random: Random, specimens: Sequence[Specimen]) -> bytes:
    """Return one of *specimens*, changed in one to four places."""
    specimen = random.choice(specimens)
    kind = random.random()
    if specimen.documents and kind < 0.7:
        return _mutate_values(random, specimen, specimens)
    if kind < 0.72:
        return _cut_or_splice(random, specimen.raw, random.choice(specimens).raw)
    if kind < 0.85:
        return _mutate_lines(random, specimen.raw, random.choice(specimens).raw)
    changed = specimen.raw
    for _ in range(random.choice((1, 1, 2, 4))):
        changed = _mutate_bytes(random, changed)
    return changed


# --- values -----------------------------------------------------------------------------------------------------------


def _mutate_values(random: Random, specimen: Specimen, specimens: Sequence[Specimen]) -> bytes:
    parts = list(specimen.parts)
    raws: list[str] = []
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        at = random.choice(specimen.documents)
        part = parts[at]
        assert isinstance(part, _Part)
        # The first path is that of the whole document, which says little if it is replaced.
        path = part.paths[random.randrange(random.random() < 0.95, len(part.paths))] if len(part.paths) > 1 else ()
        parts[at] = _Part(part.prefix, _Edit(random, specimens, raws).apply(part.value, path), part.paths)
    if len(parts) > 1 and random.random() < 0.15:
        _move_line(random, parts)
    return b"".join(_write_part(part, raws) + b"\n" for part in parts)


def _write_part(part: _Part | bytes, raws: Sequence[str]) -> bytes:
    if isinstance(part, bytes):
        return part
    return part.prefix + _dump(part.value, raws) if part.text is None else part.text


_encode = json.JSONEncoder(separators=(", ", ": ")).encode


def _dump(value: Any, raws: Sequence[str]) -> bytes:
    text = _encode(value)
    if "\\u0001" in text:
        text = _RAW_TOKEN.sub(lambda match: raws[int(match[1])], text).replace(_DUPLICATE_TOKEN, '"')
    return text.encode("utf-8", "surrogatepass")


class _Edit:
    """A change of the value at a path."""

    def __init__(self, random: Random, specimens: Sequence[Specimen], raws: list[str]) -> None:
        self.random = random
        self.specimens = specimens
        self.raws = raws

    def apply(self, value: Any, path: KeyPath) -> Any:
        """Return a copy of *value* with a change at *path*, or above it if an earlier change has removed it."""
        if not path:
            return self.change(value)
        step, rest = path[0], path[1:]
        inside = step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int)
        if not inside or (isinstance(value, list) and isinstance(step, int) and step >= len(value)):
            return self.change(value)
        copied = value.copy()
        if not rest and self.random.random() < 0.4:
            return self.random.choice(_MAPPING_CHANGES if isinstance(value, dict) else _LIST_CHANGES)(
                self, copied, step
            )
        copied[step] = self.apply(copied[step], rest)
        return copied

    def change(self, value: Any) -> Any:
        """Return what stands in place of *value*."""
        kind = self.random.random()
        if kind < 0.12:
            return [value] if self.random.random() < 0.5 else {"a": value}
        if kind < 0.2 and isinstance(value, (dict, list)):
            return json.dumps(value)
        if kind < 0.4:
            return self._vary(value)
        return self.make()

    def _vary(self, value: Any) -> Any:
        if isinstance(value, str):
            at = self.random.randint(0, len(value))
            return value[:at] + self.random.choice(_TEXTS) + value[at + self.random.randint(0, 3) :]
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return self.random.choice((value + 1, -value, value * 1000, str(value), value / 2))
        if isinstance(value, dict):
            return dict(self.random.sample(sorted(value.items(), key=str), len(value) // 2))
        return [*value, *value] if isinstance(value, list) else self.make()

    def make(self) -> Any:
        """Return a hostile value, or one from another place of a specimen."""
        kind = self.random.random()
        if kind < 0.25:
            return self._borrow()
        if kind < 0.45:
            return self.random.choice((None, True, False, [], {}, [[]], [{}], {"a": {}}, [None], ["x"], [0]))
        if kind < 0.6:
            return self.random.choice(_NUMBERS)
        if kind < 0.8:
            return self.random.choice(_TEXTS)
        self.raws.append(self.random.choice(_LARGE_RAWS if kind > 0.9985 else _RAWS))
        return f"{_RAW}{len(self.raws) - 1}"

    def _borrow(self) -> Any:
        lender = self.random.choice(self.specimens)
        if not lender.documents:
            return None
        part = lender.parts[self.random.choice(lender.documents)]
        assert isinstance(part, _Part)
        value = part.value
        for step in self.random.choice(part.paths):
            value = value[step]
        return value

    # --- changes of a container at one of its keys ---

    def remove(self, container: Any, step: Any) -> Any:
        """Remove the value."""
        del container[step]
        return container

    def swap(self, container: Any, step: Any) -> Any:
        """Exchange two values."""
        other = self.random.choice([*container] if isinstance(container, dict) else range(len(container)))
        container[step], container[other] = container[other], container[step]
        return container

    def rename(self, container: dict[str, Any], step: str) -> dict[str, Any]:
        """Give the value another name, in its place."""
        name = self._vary(step) if self.random.random() < 0.5 else self.random.choice(_TEXTS)
        return {name if key == step else key: value for key, value in container.items()}

    def say_twice(self, container: dict[str, Any], step: str) -> dict[str, Any]:
        """Write the name a second time, with another value or the same."""
        container[_DUPLICATE + step] = self.make() if self.random.random() < 0.7 else container[step]
        return container

    def insert(self, container: Any, step: Any) -> Any:
        """Add a value."""
        if isinstance(container, dict):
            container[self.random.choice((*_TEXTS, *container))] = self.make()
        else:
            container.insert(step, self.make())
        return container

    def repeat(self, container: list[Any], step: int) -> list[Any]:
        """Write an element several times."""
        return [*container[:step], *[container[step]] * self.random.choice((2, 2, 3, 50)), *container[step + 1 :]]


_Change = Callable[[_Edit, Any, Any], Any]
_MAPPING_CHANGES: tuple[_Change, ...] = (
    _Edit.remove,
    _Edit.remove,
    _Edit.swap,
    _Edit.rename,
    _Edit.say_twice,
    _Edit.insert,
)
_LIST_CHANGES: tuple[_Change, ...] = (_Edit.remove, _Edit.swap, _Edit.insert, _Edit.repeat)


# --- lines and bytes --------------------------------------------------------------------------------------------------


def _move_line(random: Random, lines: list[Any]) -> None:
    """Remove, repeat or move a line."""
    line = lines.pop(random.randrange(len(lines)))
    for _ in range(random.choice((0, 1, 2))):
        lines.insert(random.randint(0, len(lines)), line)


def _mutate_lines(random: Random, raw: bytes, other: bytes) -> bytes:
    lines = raw.splitlines(keepends=True)
    for _ in range(random.choice((1, 1, 2, 5))):
        if random.random() < 0.3:
            lines.insert(random.randint(0, len(lines)), random.choice(other.splitlines(keepends=True) or [b"\n"]))
        elif len(lines) > 1:
            _move_line(random, lines)
    return b"".join(lines)


def _cut_or_splice(random: Random, raw: bytes, other: bytes) -> bytes:
    start = raw[: random.randint(0, len(raw))]
    return start if random.random() < 0.5 else start + other[random.randint(0, len(other)) :]


def _mutate_bytes(random: Random, raw: bytes) -> bytes:
    at = random.randint(0, len(raw))
    kind = random.random()
    if kind < 0.35 and at < len(raw):
        return raw[:at] + bytes((raw[at] ^ (1 << random.randrange(8)),)) + raw[at + 1 :]
    if kind < 0.5:
        return raw[:at] + raw[at + random.randint(1, 20) :]
    if kind < 0.95:
        return raw[:at] + random.choice(_TOKENS) + raw[at:]
    return raw[:at] + random.choice(_TOKENS) * random.choice((10, 200)) + raw[at:]
