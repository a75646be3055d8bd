"""The file that describes a user's program."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "PYTEST_APPROVALS_ACP_PROGRAM"
"""Environment variable that names the file."""

NO_PROGRAM = ("no program is named", f"set {VARIABLE} to a JSON file that describes one")
"""Why the agents of a user's program cannot run without a file, and what to do."""

PROTOCOLS = ("chat", "messages")
"""The protocols over which a program may ask its model."""


def name_program_file() -> tuple[str, ...]:
    """Return the path of the file that the environment names; nothing if it names none."""
    name = os.environ.get(VARIABLE, "")
    return (os.path.abspath(name),) if name else ()


def read_protocol() -> str:
    """Return the protocol of the program that the environment names, or the first one if it names none.

    Raises:
        ValueError: The file cannot be read, or does not describe a program.
    """
    for name in name_program_file():
        return str(read_program(name)["protocol"])
    return PROTOCOLS[0]


def read_program(name: str) -> Mapping[str, Any]:
    """Read and validate a file.

    Args:
        name: Its path.

    Raises:
        ValueError: It cannot be read, or does not describe a program.
    """
    try:
        program = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{VARIABLE}: {name} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ValueError(f"{name} is not JSON ({error})") from error
    if not isinstance(program, dict):
        raise ValueError(f"{name} must hold an object")
    for key, fits, expected in _FIELDS:
        if not fits(program.get(key)):
            raise ValueError(f"{name}: {key!r} must be {expected}")
    if unknown := sorted(program.keys() - {key for key, _, _ in _FIELDS}):
        raise ValueError(f"{name}: unknown key {unknown[0]!r}")
    return program


def _is_command(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _is_environment(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(isinstance(text, str) for text in value.values()))


def _is_timeout(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)


_FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("command", _is_command, "a list of texts, the program and its arguments"),
    ("protocol", lambda value: value in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}"),
    ("tool", lambda value: isinstance(value, str) and "{tool}" in value, "a text with {tool}, as '{server}_{tool}'"),
    ("environment", _is_environment, "an object of texts"),
    ("start_timeout", _is_timeout, "a positive number, in seconds"),
    ("files", lambda value: value is None or isinstance(value, dict), "an object of texts or values, by path"),
)
