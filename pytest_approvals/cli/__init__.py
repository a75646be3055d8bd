"""Command line `pytest-approvals`.

For each command NAME a module has `add_NAME_arguments(parser)` and `execute_NAME(args) -> int`. The exit code is 0, or
1 if something failed. An invalid argument ends with a message on stderr and exit code 2.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from pytest_approvals.cli.output import printable_output, true_stream
from pytest_approvals.errors import ApprovalsError, UnknownName
from pytest_approvals.errors.printable import format_message

COMMANDS = {
    "run": ("run", "run scenarios on agents and print the matrix"),
    "list": ("scenarios", "list the scenarios"),
    "show": ("scenarios", "show a scenario, its requirements and its variants"),
    "schema": ("scenarios", "print the JSON Schema of scenario files"),
    "native": ("scenarios", "write a scenario as a script that uses the framework of an agent only"),
    "agents": ("agents", "list the agents, whether they can run here, and what they can and cannot do"),
    "smoke": ("run", "run a smoke test on an agent"),
    "serve": ("servers", "serve the scripted model on the loopback, for agents in any language"),
    "record": ("servers", "record scenarios from the traffic between a client and a provider"),
    "conformance": ("agents", "test whether an agent process in any language conforms to the host protocol"),
    "check": ("reports", "re-evaluate recorded journals"),
    "report": ("reports", "show, merge, compare and convert report files"),
    "report-upstream": ("reports", "write the issue about a cause of known failures for the framework's tracker"),
    "lint": ("conversations", "find approval mistakes in stored conversations"),
    "explore": ("explore", "play stories that nobody wrote on agents, and reduce those that fail"),
    "reproduce": ("conversations", "reduce a stored conversation to a small scenario that fails in the same way"),
    "matrix": ("releases", "show which check fails in which release of an agent"),
    "compare": ("releases", "show what changes from a release of an agent to another one, or to a checkout"),
    "pins": ("releases", "list the releases that this package is developed with, or move them to the newest"),
    "bisect": ("releases", "find the release of an agent that changed a verdict"),
    "recall": ("releases", "measure how many known bugs the catalogue detects"),
    "keep-state": ("releases", "store the paused state of a release, for newer releases to restore"),
    "environments": ("agents", "list the environments of agents, or remove old ones"),
    "new-adapter": ("agents", "write a commented adapter and its test into this folder"),
}
"""The commands: the module and the help text."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; *words* are the arguments."""
    words = list(sys.argv[1:] if words is None else words)
    with printable_output():
        return _run_guarded(words)


def _run_guarded(words: list[str]) -> int:
    """Run a command, and print its error if it ends with one."""
    try:
        return _run_command(words)
    except ApprovalsError as error:
        print(f"pytest-approvals: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pytest-approvals: interrupted", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read the output has gone; closing stderr, too, keeps Python silent about it at its end.
        true_stream(sys.stderr).close()
        return 0
    except OSError as error:
        # Names of files are too long, say, or lead in a circle.
        print(f"pytest-approvals: {format_message(str(error))}", file=sys.stderr)
        return 2
    except Exception:
        # Exit code 1 would say that a requirement is broken.
        traceback.print_exc()
        print("pytest-approvals: this is a bug of pytest-approvals; please report it", file=sys.stderr)
        return 2


def _run_command(words: list[str]) -> int:
    if words[:1] in ([], ["-h"], ["--help"], ["help"]):
        print(_format_overview())
        return 0 if words else 2
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"pytest-approvals {version('pytest-approvals')}")
        return 0
    if words[0] not in COMMANDS:
        raise UnknownName("command", words[0], COMMANDS)
    from pytest_approvals.cli.parser import CommandParser

    module_name, purpose = COMMANDS[words[0]]
    command = import_module(f"pytest_approvals.cli.{module_name}")
    parser = CommandParser(words[0], purpose)
    suffix = words[0].replace("-", "_")
    getattr(command, f"add_{suffix}_arguments")(parser)
    code = getattr(command, f"execute_{suffix}")(parser.parse(words[1:]))
    return int(code)


def _format_overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {purpose}" for name, (_, purpose) in COMMANDS.items()]
    usage = ["usage: pytest-approvals COMMAND [ARGUMENTS]", "", "Tests of tool-approval flows of agents.", ""]
    return "\n".join([*usage, *lines, "", "pytest-approvals COMMAND --help says more."])
