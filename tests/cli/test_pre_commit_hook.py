"""The hook of pre-commit: what it runs is a command of this package, on the files that it names."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HELLO = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
ANSWERED_TWICE = [
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
    {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
]


@pytest.fixture
def hook() -> dict[str, Any]:
    """Return the definition, as pre-commit reads it."""
    [found] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_it_has_what_pre_commit_requires(hook) -> None:
    """An id, a name, a language and a command."""
    assert {"id": "pytest-approvals-lint", "language": "python"}.items() <= hook.items()
    assert {"name", "entry", "files"} <= hook.keys()


def test_it_is_one_process(hook) -> None:
    """pre-commit would share the files out among several, and a conversation may be spread over spans in all files."""
    assert hook["require_serial"] is True


def test_its_command_is_installed_with_the_package(hook) -> None:
    """The first word is a script of the distribution, which pre-commit installs from the repository."""
    script, *_ = shlex.split(hook["entry"])

    assert script in {each.name for each in entry_points(group="console_scripts") if each.dist.name == script}


@pytest.mark.parametrize(
    ("path", "is_linted"),
    [
        ("conversations/a.json", True),
        ("sessions/2026/b.jsonl", True),
        ("sessions/c.ndjson", True),
        ("package.json", False),
        ("docs/conversations/a.json", False),
        ("conversations/README.md", False),
    ],
)
def test_which_files_it_names(hook, path, is_linted) -> None:
    """Those of two folders at the top."""
    assert is_linted == bool(re.search(hook["files"], path))


@pytest.mark.parametrize(("stored", "code"), [(HELLO, 0), (ANSWERED_TWICE, 1)])
def test_its_exit_code_is_that_of_the_conversations(hook, command_line, stored, code) -> None:
    """The paths follow the command and its arguments, as pre-commit puts them."""
    command_line.write("conversations/a b.json", json.dumps(stored))
    _, *words = shlex.split(hook["entry"])

    assert code == command_line(*words, "--gated", "wipe_*", "conversations/a b.json").code
