"""
The command line `pytest-approvals`: a command a file.

A command's module has `add_arguments(parser)` and `execute(args) -> int`, which gives the exit code: 0, or 1 where
something failed. What cannot be used ends with a sentence on stderr and exit code 2.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from pytest_approvals.errors import ApprovalsError, UnknownName

COMMANDS = {
    "run": ("run", "run scenarios on agents; ends with the matrix"),
    "list": ("scenarios", "list the scenarios"),
    "show": ("scenarios", "tell the story of a scenario, its requirements and its variants"),
    "schema": ("scenarios", "print the JSON Schema of scenario files"),
    "agents": ("agents", "say which agents can run here, and what they can and cannot do"),
    "smoke": ("run", "see whether an agent runs at all"),
    "serve": ("servers", "serve the scripted model on the loopback, for agents in any language"),
    "record": ("servers", "make scenarios of what passes between a client and a provider"),
    "conformance": ("conformance", "see whether an agent process in any language keeps the host protocol"),
    "check": ("check", "take the verdicts on recorded journals again"),
    "lint": ("conversations", "find what is wrong with approvals in stored conversations"),
    "reproduce": ("conversations", "make a small scenario that fails as a stored conversation does"),
    "matrix": ("releases", "see which check fails in which release of an agent"),
    "bisect": ("releases", "find the release of an agent that changed a verdict"),
    "recall": ("recall", "see whether the catalogue finds known bugs: a table of bad and good releases"),
    "keep-state": ("releases", "store what a release saves while it is paused, for newer ones to take up"),
    "environments": ("agents", "list the environments that were made for agents, or remove old ones"),
    "new-adapter": ("agents", "write a commented adapter and its test into this folder"),
}
"""The commands: the module and what it does."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line; *words* are what follows the program's name."""
    given = list(sys.argv[1:] if words is None else words)
    try:
        return _run_command(given)
    except ApprovalsError as error:
        print(f"pytest-approvals: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pytest-approvals: interrupted", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read the output has gone; closing stderr, too, keeps Python silent about it at its end.
        sys.stderr.close()
        return 0


def _run_command(given: list[str]) -> int:
    if given[:1] in ([], ["-h"], ["--help"], ["help"]):
        print(_format_overview())
        return 0 if given else 2
    if given[0] == "--version":
        from importlib.metadata import version

        print(f"pytest-approvals {version('pytest-approvals')}")
        return 0
    if given[0] not in COMMANDS:
        raise UnknownName("command", given[0], COMMANDS)
    from pytest_approvals.cli.parser import CommandParser

    module_name, purpose = COMMANDS[given[0]]
    command = import_module(f"pytest_approvals.cli.{module_name}")
    parser = CommandParser(given[0], purpose)
    suffix = given[0].replace("-", "_")
    getattr(command, f"add_{suffix}_arguments")(parser)
    code = getattr(command, f"execute_{suffix}")(parser.parse(given[1:]))
    return int(code)


def _format_overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {purpose}" for name, (_, purpose) in COMMANDS.items()]
    usage = ["usage: pytest-approvals COMMAND [ARGUMENTS]", "", "Tests of tool-approval flows of agents.", ""]
    return "\n".join([*usage, *lines, "", "pytest-approvals COMMAND --help says more."])
