"""A user's program that speaks ACP: the file or the command that describes it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "PYTEST_APPROVALS_ACP_PROGRAM"
"""Environment variable with the program: the path of a JSON file that describes it, or that object itself."""

NO_PROGRAM = (
    "no program is named",
    f"name its command with --command, or set {VARIABLE} to a JSON file that describes one",
)
"""Why the agents of a user's program cannot run without a description, and what to do."""

PROTOCOLS = ("chat", "messages")
"""The protocols over which a program may ask its model."""

_FILE_SUFFIX = ".json"

_COMMAND_PROTOCOL = "chat"
_COMMAND_ENVIRONMENT = {"OPENAI_BASE_URL": "{model}/v1", "OPENAI_API_BASE": "{model}/v1", "OPENAI_API_KEY": "none"}
"""How a program of which only the command is known is told where its model is."""


def describe_command(text: str, folder: Path) -> str:
    """Return the value of `VARIABLE` for what a user gave as the command of a program.

    Args:
        text: A command with its arguments, or the path of a JSON file, which ends with `.json`.
        folder: The folder that the path is relative to.

    Raises:
        ValueError: It is empty, its quotes do not match, or the file does not describe a program.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"Invalid command {text!r}: {error}") from None
    if not words:
        raise ValueError("Invalid command '': expected a program and its arguments, or a JSON file")
    if len(words) == 1 and words[0].endswith(_FILE_SUFFIX):
        path = str(folder / words[0])
        read_program(path)
        return path
    return json.dumps({"command": words, "protocol": _COMMAND_PROTOCOL, "environment": _COMMAND_ENVIRONMENT})


def get_description() -> str:
    """Return the description that the environment holds: an object as it is, or the absolute path of a file.

    It is empty without one.
    """
    described = os.environ.get(VARIABLE, "")
    return described if not described or described.startswith("{") else os.path.abspath(described)


def read_protocol() -> str:
    """Return the protocol of the program that the environment describes, or the first one without one.

    Raises:
        ValueError: The file cannot be read, or does not describe a program.
    """
    described = get_description()
    return str(read_program(described)["protocol"]) if described else PROTOCOLS[0]


def list_inputs() -> tuple[str, ...]:
    """Return what the runs of the program depend on: its description, and the files that its command names."""
    described = get_description()
    if not described:
        return ()
    words: Any = read_program(described)["command"]
    return (described, *(os.path.abspath(word) for word in words if os.path.isfile(word)))


def read_program(described: str) -> Mapping[str, Any]:
    """Read and validate a description.

    Args:
        described: The path of a file, or the object itself.

    Raises:
        ValueError: It cannot be read, or does not describe a program.
    """
    name = VARIABLE if described.startswith("{") else described
    try:
        text = described if described.startswith("{") else Path(described).read_text(encoding="utf-8")
        program = json.loads(text)
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


def _is_pattern(value: Any) -> bool:
    return value is None or (isinstance(value, str) and "{tool}" in value)


def _is_timeout(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)


_FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("command", _is_command, "a list of texts, the program and its arguments"),
    ("protocol", lambda value: value in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}"),
    ("tool", _is_pattern, "a text with {tool}, as '{server}_{tool}'"),
    ("environment", _is_environment, "an object of texts"),
    ("start_timeout", _is_timeout, "a positive number, in seconds"),
    ("files", lambda value: value is None or isinstance(value, dict), "an object of texts or values, by path"),
)
