"""Commands that start pytest on scenarios: `run` and `smoke`."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.cli.output import PrintableStream
from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.cli.remembered_sessions import RememberedSession, SessionMemory
from pytest_approvals.errors import UsageError, suggest_name
from pytest_approvals.errors.printable import escape_lines, quote
from pytest_approvals.plugin.options import CHOSEN_OPTION, OPTIONS, Option
from pytest_approvals.plugin.settings import parse_settings
from pytest_approvals.scenario.catalogue import find_scenarios, select_scenarios, stock_folder

_PYTEST_OPTIONS_WITH_VALUE = (
    "-k",
    "-m",
    "-n",
    "-p",
    "-o",
    "-c",
    "-W",
    "--tb",
    "--maxfail",
    "--dist",
    "--tx",
    "--junitxml",
    "--durations",
)
"""Options of pytest and pytest-xdist whose value is a word of its own; all others need `--option=value`."""

_REWRITE_WARNING_FILTER = "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"
"""This command imports the package before pytest looks at it; its plugin has nothing to rewrite."""

_REQUIREMENT_WARNING_FILTER = "default::pytest_approvals.errors.RequirementWarning"
"""A `should` that does not hold is in the summary; only `--strict` makes it a failure."""


MANY_SCENARIOS = 100
"""How many scenarios, counted once for each agent, are worth the start of several processes."""

_UNUSED_PLUGINS = ("anyio", "faker", "pytest_httpx2", "respx")
"""Pytest plugins that hold nothing but fixtures and async tests, and take longer to import than the first run."""


def add_run_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.passes_on = True
    parser.alone["--stream"] = (("on", "off"), "on")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="ids, families, patterns, files or folders")
    for option in OPTIONS:
        _add_option(parser, option)
    for flag in _PYTEST_OPTIONS_WITH_VALUE:
        parser.add_argument(flag, dest="for_pytest", action=_KeepPytestOption, help=argparse.SUPPRESS)
    parser.epilog = "All other options go to pytest, those with a value as --option=value."


def execute_run(args: argparse.Namespace) -> int:
    """Run the scenarios; return 1 if one failed."""
    texts = {option.name: getattr(args, option.ini) for option in OPTIONS}
    settings = parse_settings(
        texts, Path.cwd(), spell=lambda option: option.command, later=_options_a_project_may_extend(Path.cwd())
    )
    if settings.command:
        # What is remembered depends on the agent that the command describes.
        texts["agents"] = list(settings.agents)
    files = select_scenarios(args.scenarios, Path.cwd())
    passed = [*(args.for_pytest or ()), *args.others]
    _require_xdist(passed)
    _, parts = settings.shard or (1, 1)
    count = len(files) * max(1, len(args.approvals_agents or ())) // parts
    code = run_pytest(texts, files.values(), passed, is_long=count >= MANY_SCENARIOS)
    if code == 2:
        _print_option_hint(args.others, args.parser)
    return code


def _options_a_project_may_extend(folder: Path) -> Container[str]:
    """Return the options whose names cannot be validated yet, because a conftest may register agents and oracles."""
    return ("agents", "oracle") if (folder / "conftest.py").exists() else ()


def run_pytest(texts: Mapping[str, Any], files: Iterable[Path], passed: Iterable[str], *, is_long: bool = False) -> int:
    """Run pytest on scenario files, and return the exit code of a command.

    Args:
        texts: Options of this package, by name.
        files: The scenario files.
        passed: Words for pytest itself.
        is_long: Whether the work is worth several processes, unless the words say how many.
    """
    chosen, passed = list(files), list(passed)
    is_open = _has_conftest(chosen)
    memory = None if is_open else SessionMemory.of_command(texts, chosen, passed, Path.cwd())
    if memory is not None and (known := memory.find()) is not None:
        return _repeat_session(known, texts.get("report"))
    unused = () if is_open else _UNUSED_PLUGINS
    # What the user passes comes last, because pytest lets the last of two options win.
    words = [
        *_pytest_words(texts),
        *(word for name in unused for word in ("-p", f"no:{name}")),
        # What failed last time comes first. Without its plugin pytest does not know the option.
        *(["--failed-first"] if not any(word.endswith("no:cacheprovider") for word in passed) else []),
        *(f"{CHOSEN_OPTION}={path}" for path in chosen),
        *passed,
    ]
    if isinstance(sys.stderr, PrintableStream):
        # pytest prints a usage error by a writer of its own, whose colours cannot be told from others.
        sys.stderr.drops_colours = True
    with rare_garbage_collections():
        plugins = [
            PrintableTerminal(),
            UnusedHypothesis(),
            *([ParallelByDefault()] if is_long else ()),
            *([memory] if memory else ()),
        ]
        code = pytest.main(words, plugins=plugins)
    if memory is not None:
        memory.close()
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        print("pytest-approvals: nothing ran: no agent can play any of these scenarios in this way", file=sys.stderr)
    return int(code) if code in (0, 1) else 2


def _repeat_session(session: RememberedSession, report: str | None) -> int:
    """Print what a remembered session printed, write its report, and return its exit code."""
    if report is not None and session.report is not None:
        from pytest_approvals.reporting.files import write_data

        write_data(Path(report), session.report)
    print(session.text)
    return 0


@contextlib.contextmanager
def rare_garbage_collections() -> Iterator[None]:
    """Collect garbage a tenth as often inside the block: a session keeps nearly everything that it makes.

    What `PluginState.freeze_imports` left out takes part again afterwards.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0] * 10, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _has_conftest(files: Iterable[Path]) -> bool:
    """Return whether a conftest applies to any of the files: its fixtures may need plugins of other packages."""
    folders = {Path.cwd()}.union(*(path.absolute().parents for path in files))
    return any((folder / "conftest.py").is_file() for folder in folders)


class PrintableTerminal:
    """Plugin of pytest that keeps its colours while all other escape characters are escaped; see `PrintableStream`."""

    # After pytest has made its terminal writer.
    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Mark the colours of the terminal writer as trusted."""
        out = sys.stdout
        if isinstance(out, PrintableStream) and config.pluginmanager.has_plugin("terminalreporter"):
            writer = config.get_terminal_writer()
            add_markup = writer.markup

            def add_trusted_markup(text: str, **markup: bool) -> str:
                # With it pytest begins to write the same line again.
                start = "\r" * text.startswith("\r")
                return start + out.mark_colours(add_markup(escape_lines(text[len(start) :]), **markup))

            writer.markup = add_trusted_markup  # type: ignore[method-assign]
            # Highlighting would mix its colours with the text.
            writer.code_highlight = False


class UnusedHypothesis:
    """Plugin of pytest that leaves out the summary of Hypothesis where nothing used it: it would import all of it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Unregister its plugin."""
        manager = session.config.pluginmanager
        if "hypothesis" not in sys.modules and manager.has_plugin("hypothesispytest"):
            manager.unregister(name="hypothesispytest")


class ParallelByDefault:
    """Plugin of pytest that starts a worker for each processor, as `-n auto` does, unless an option says otherwise."""

    # As a wrapper it runs before pytest-xdist reads its options.
    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, Any, Any]:
        """Set the number of workers."""
        option = config.option
        if (
            config.pluginmanager.has_plugin("xdist")
            and option.numprocesses is None
            and (option.dist, option.tx) == ("no", [])
            and not (option.usepdb or option.collectonly or option.capture == "no")
            # A session around this one has the processors already.
            and "PYTEST_XDIST_WORKER" not in os.environ
        ):
            count = config.hook.pytest_xdist_auto_num_workers(config=config)
            option.numprocesses = count if count > 1 else None
        return (yield)


class _KeepPytestOption(argparse.Action):
    """Action that keeps an option of pytest as it was written."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        kept = [*(getattr(namespace, self.dest) or ()), str(option_string), str(values)]
        setattr(namespace, self.dest, kept)


def _add_option(parser: CommandParser, option: Option) -> None:
    if option.kind == "switch":
        parser.add_argument(option.command, dest=option.ini, action="store_const", const="yes", help=option.help)
    else:
        action = "append" if option.kind == "words" else "store"
        parser.add_argument(option.command, dest=option.ini, action=action, metavar=option.metavar, help=option.help)
    # `execute_run` gets only the arguments, and suggests options of this parser.
    parser.set_defaults(parser=parser)


def _pytest_words(texts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pytest options for those of this package; the summary shows failures, once for all variants."""
    yield from (
        "-p",
        "approvals",
        "--tb=no",
        "-rN",
        "--disable-warnings",
        # Its progress bar moves the cursor, which `PrintableStream` does not let through.
        "-p",
        "no:sugar",
        "-W",
        _REWRITE_WARNING_FILTER,
        "-W",
        _REQUIREMENT_WARNING_FILTER,
    )
    for option in OPTIONS:
        value = texts.get(option.name)
        if value is None:
            continue
        if option.kind == "switch":
            yield option.flag
        else:
            yield from (f"{option.flag}={text}" for text in ([value] if isinstance(value, str) else value))


def _require_xdist(passed: list[str]) -> None:
    from importlib.util import find_spec

    if any(word == "-n" or word.startswith(("-n", "--numprocesses")) for word in passed) and find_spec("xdist") is None:
        raise UsageError("-n needs pytest-xdist: pip install pytest-xdist")


def _print_option_hint(others: list[str], parser: CommandParser) -> None:
    for word in others:
        hint = suggest_name(word.partition("=")[0], parser.options())
        if word.startswith("--") and "did you mean" in hint:
            print(f"pytest-approvals: Unknown option {quote(word.partition('=')[0])}{hint}", file=sys.stderr)


SMOKE_FAMILY = "basics"
"""The family of scenarios that every agent must be able to play."""


def add_smoke_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--agent", metavar="SPEC", action="append", required=True, help="the agents to try")


def execute_smoke(args: argparse.Namespace) -> int:
    """Run the plainest scenarios in their plainest variants."""
    from pytest_approvals.plugin.settings import parse_settings

    texts = {"agents": args.agent, "strength": "1", "serialize": ["none"], "stream": "off", "answer": ["held"]}
    parse_settings(texts, Path.cwd(), spell=lambda option: option.command)
    files = {
        name: path for name, path in find_scenarios([stock_folder()]).items() if name.startswith(f"{SMOKE_FAMILY}/")
    }
    return run_pytest(texts, files.values(), [])
