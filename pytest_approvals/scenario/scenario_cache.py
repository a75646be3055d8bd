"""Cache of scenario files that were read before.

Reading and validating a scenario takes a fifth of a second in a process that has not done so yet, most of it for the
imports. A cached scenario is JSON of the frozen values in `scenario.model`: nothing in it is run. An entry counts only
for the same text and id, read by the same code, and only if its checksum is right and nobody else could have written
it; otherwise the file is read again.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from pytest_approvals.agent_side.contract import types
from pytest_approvals.agents.cache_folder import create_private_folder, get_cache_folder
from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario import model
from pytest_approvals.scenario.model import Scenario

_PACKAGE = Path(__file__).parents[1]
_READERS = ("scenario", "scenario/validation", "yaml_files", "agent_side/contract")
"""The folders with the code that defines what a scenario is."""
_CLASSES = {
    kind.__name__: kind
    for kind in [*vars(types).values(), *vars(model).values()]
    if isinstance(kind, type) and is_dataclass(kind)
}


def load_cached_scenario(path: Path, *, root: Path, folder: Path | None = None) -> Scenario:
    """Load a scenario file as `load_scenario` does, from the cache if it holds it.

    Args:
        path: The file.
        root: Folder that its id is relative to.
        folder: Folder of the entries; by default `scenarios` in the cache of this package.

    Raises:
        ScenarioError: The file is unreadable or invalid.
    """
    origin = _read_origin(path, root)
    entry = (folder or get_cache_folder() / "scenarios") / f"{path.stem}-{crc32(origin[0].encode()):08x}.json"
    # An entry that cannot be read, or whose values do not fit the model any more, is as good as none.
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return replace(_read_entry(entry, origin), path=str(path))
    # Imported late: the imports of the loader are most of what the cache saves.
    from pytest_approvals.scenario.load import load_scenario

    scenario = load_scenario(path, root=root)
    # Values that JSON cannot hold exactly (NaN, say) are not cached, nor is anything in a folder that is read-only.
    with suppress(OSError, ValueError, TypeError):
        _write_entry(entry, origin, scenario)
    return scenario


Origin = tuple[str, list[list[Any]], str]
"""What a scenario is made of: its path below the root, the code that reads it, and its text."""


@cache
def _describe_readers() -> list[list[Any]]:
    readers: list[list[Any]] = []
    for name in _READERS:
        with os.scandir(_PACKAGE / name) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py"):
                    about = entry.stat()
                    readers.append([entry.path, about.st_mtime_ns, about.st_size])
    return readers


def _read_origin(path: Path, root: Path) -> Origin:
    try:
        # Latin-1 decodes any bytes; whether they are UTF-8 is for the loader to say.
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise ScenarioError(str(path), None, f"cannot read file: {error.strerror}") from None
    return os.path.relpath(path.resolve(), root.resolve()), _describe_readers(), text


def _read_entry(entry: Path, origin: Origin) -> Scenario:
    with entry.open("rb") as file:
        # Of the open file, not of the path, which somebody could exchange in between.
        about = os.fstat(file.fileno())
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("somebody else may have written it")
        checksum, _, body = file.read().partition(b"\n")
    if int(checksum, 16) != crc32(body):
        raise ValueError("damaged")
    written_origin, written_scenario = json.loads(body)
    if written_origin != list(origin):
        raise ValueError("of another text or other code")
    scenario = _decode(written_scenario)
    if not isinstance(scenario, Scenario):
        raise TypeError("not a scenario")
    return scenario


def _write_entry(entry: Path, origin: Origin, scenario: Scenario) -> None:
    create_private_folder(entry.parent)
    body = json.dumps([origin, _encode(scenario)], allow_nan=False).encode()
    unfinished = entry.with_suffix(f".{os.getpid()}")
    with open(unfinished, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(b"%08x\n" % crc32(body) + body)
    # In one step, so that no other process ever reads half an entry.
    unfinished.replace(entry)


def _encode(value: Any) -> Any:
    """Return *value* as JSON: a scalar as it is, all else as a list that begins with its kind."""
    # Exact types only: an instance of a subclass would come back as one of its base.
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple, frozenset):
        return [kind.__name__, *map(_encode, sorted(value) if kind is frozenset else value)]
    if isinstance(value, Mapping):
        # As pairs, because the keys of a JSON object would all become text.
        return ["dict", *([_encode(key), _encode(held)] for key, held in value.items())]
    if _CLASSES.get(kind.__name__) is kind:
        return [f"={kind.__name__}", {field.name: _encode(getattr(value, field.name)) for field in fields(value)}]
    raise TypeError(f"no way to write a {kind.__name__}")


def _decode(written: Any) -> Any:
    if not isinstance(written, list):
        return written
    kind, *parts = written
    if kind == "dict":
        return {_decode(key): _decode(held) for key, held in parts}
    if kind in ("list", "tuple", "frozenset"):
        return {"list": list, "tuple": tuple, "frozenset": frozenset}[kind](map(_decode, parts))
    (held_fields,) = parts
    return _CLASSES[kind.removeprefix("=")](**{name: _decode(held) for name, held in held_fields.items()})
