"""Options of the plugin: one table that defines the pytest options, their ini entries and the command line.

Values are text, because pytest-xdist hands options to its workers; `settings.py` parses them.
"""

from __future__ import annotations

from argparse import SUPPRESS
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pytest


class Option(NamedTuple):
    """One option; a tuple, because making a dataclass would take a third of the time that the idle plugin may take.

    Attributes:
        name: `agents` stands for `--approvals-agents` and the ini entry `approvals_agents`.
        kind: `words` (may be repeated, and each may hold several, with commas between), `text`, or `switch`.
        metavar: The name of its value in the help.
        help: One sentence; the default is in it.
        short: Its name for `pytest-approvals run` if that differs.
    """

    name: str
    kind: str
    metavar: str
    help: str
    short: str = ""

    @property
    def flag(self) -> str:
        """Its name as a pytest option."""
        return f"--approvals-{self.name}"

    @property
    def ini(self) -> str:
        """The name of its ini entry, which is also the `dest` of the option."""
        return f"approvals_{self.name.replace('-', '_')}"

    @property
    def command(self) -> str:
        """Its name as an option of `pytest-approvals run`."""
        return f"--{self.short or self.name}"


OPTIONS = (
    # Before the agents, one of which it describes.
    Option(
        "command", "text", "COMMAND", "program of the agent acp.program, which speaks ACP: its command, or a JSON file"
    ),
    Option("agents", "words", "SPEC", "agents to run scenarios on, or all (default: those that can run here)", "agent"),
    Option("with", "words", "REQUIREMENT", "further requirement for the environments of agents with a release"),
    Option("python", "text", "VERSION", "Python of these environments (default: the one that runs this)"),
    Option("serialize", "words", "MODE", "state between turns: none, copy, json, native.NAME"),
    Option("resume", "words", "WHERE", "resume in: same, fresh or cold process"),
    Option("history", "words", "KIND", "what the caller keeps: whole state, or append to it"),
    Option("stream", "text", "on|off", "streaming variants on or off (default: both)"),
    Option("answer", "words", "SOURCE", "request that decisions are made from: held, restored or rebuilt"),
    Option("oracle", "words", "NAME", "oracle: approve_all, reject_all, random:SEED, ..."),
    Option("chunking", "words", "STYLE", "how streams are cut: whole, tokens, split, ..."),
    Option(
        "protocol", "words", "NAME", "how the model is reached: native, chat, responses, messages, gemini, converse"
    ),
    Option("strength", "text", "1|2|3|full", "number of combined dimensions of the variants (default: 2, pairwise)"),
    Option("seed", "text", "NUMBER", "seed of all generated values (default: 0)"),
    Option("time-limit", "text", "SECONDS", "time limit of one run (default: 30)"),
    Option("fault", "text", "MODULE:NAME", "seeded fault to switch on in the reference agent"),
    Option("report", "text", "FILE", "write the report to this file: JSON lines, or by its ending .md, .html, .sarif"),
    Option("shard", "text", "I/N", "run only the I-th of N parts of the scenarios; `report merge` joins their reports"),
    Option("times", "text", "FILE", "balance the parts by the times in this file, which a session of all parts writes"),
    Option("journals", "text", "FOLDER", "keep the journal of every run in this folder"),
    Option("allow-host", "words", "HOST", "allow connections to this host while a scripted model is active"),
    Option("strict", "switch", "", "treat warnings (`should`) as failures"),
    Option("fail-on", "text", "SEVERITY", "let failures of this severity or a graver one fail a run, and no others"),
    Option("fresh-runs", "switch", "", "play every run again, also one that is remembered from an earlier session"),
    Option("waivers", "words", "FILE", "file with known failures of your own"),
    Option("update-waivers", "switch", "", "remove stale waivers, and add one without a reason for each new failure"),
)

SCENARIO_SUFFIX = ".approval.yaml"
"""End of the name of every scenario file."""

SCENARIOS_INI = "approvals_scenarios"
"""Ini entry with folders whose scenarios are collected in addition to those that pytest finds itself."""

CHOSEN_OPTION = "--approvals-chosen"
"""Option in which `pytest-approvals run` hands over a chosen file; only those are then collected."""


def add_options(parser: pytest.Parser) -> None:
    """Add all options and their ini entries to pytest's parser."""
    group = parser.getgroup("approvals", "tool-approval flows of agents")
    for option in OPTIONS:
        more = _option_settings(option)
        group.addoption(option.flag, dest=option.ini, default=None, help=option.help, **more)
        parser.addini(option.ini, option.help, type=_ini_type(option), default=None)
    group.addoption(CHOSEN_OPTION, dest="approvals_chosen", action="append", default=[], help=SUPPRESS)
    parser.addini(SCENARIOS_INI, "folders with scenarios outside of the usual collection", type="args", default=[])


def _ini_type(option: Option) -> Literal["args", "string"]:
    return "args" if option.kind == "words" else "string"


def is_configured(config: pytest.Config) -> bool:
    """Return whether any option or ini entry is set."""
    return bool(config.getini(SCENARIOS_INI) or config.getoption("approvals_chosen")) or any(
        option_value(config, option) is not None for option in OPTIONS
    )


def option_value(config: pytest.Config, option: Option) -> Any:
    """Return the value of an option on the command line, or else in the ini file; None if it has none."""
    value = config.getoption(option.ini)
    return value if value is not None else config.getini(option.ini) or None


def _option_settings(option: Option) -> dict[str, Any]:
    if option.kind == "switch":
        return {"action": "store_const", "const": "yes"}
    return {"action": "append" if option.kind == "words" else "store", "metavar": option.metavar}
