"""Settings of the plugin, parsed from the options when pytest is configured; an invalid value is refused there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.plugin.options import OPTIONS, SCENARIOS_INI, Option, option_value
from pytest_approvals.scenario.vocabulary import DIMENSIONS

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.checks import Severity

PROGRAM_AGENT = "acp.program"
"""The agent whose program is the user's own command."""

_DIMENSIONS = {"answer": "source"}
_STRENGTHS = ("1", "2", "3", "full")
_SWITCH_WORDS = {
    "yes": True,
    "on": True,
    "true": True,
    "1": True,
    "no": False,
    "off": False,
    "false": False,
    "0": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parsed options.

    Attributes:
        agents: Specs; empty: all agents that can run here.
        command: The command of the user's own program, or the file that describes it; empty without one.
        requirements: Further requirements of the agents' environments.
        python: The Python of these environments; empty: the one that runs this.
        pinned: Dimensions of the variants, and the values that they are limited to.
        strength: How many dimensions are combined: `1`, `2`, `3` or `full`.
        time_limit: Seconds for one run.
        fault: The name of a seeded fault, or `MODULE:NAME`.
        report: The file that the report is written to.
        shard: Which part of the scenarios is run, and of how many parts; None for all.
        times: The file with the times by which parts are balanced; None without one.
        journals: The folder in which journals are kept.
        allowed_hosts: Other machines that may be reached while a scripted model is active.
        strict: Whether a `should` that does not hold fails a run.
        fail_on: The least severity that fails a run; None if must and should decide.
        waivers: Files with known failures of the user's own.
        fresh_runs: Whether runs that are remembered from earlier sessions are played again.
        folders: Folders with scenarios, in addition to those that pytest collects itself.
    """

    agents: tuple[str, ...] = ()
    command: str = ""
    requirements: tuple[str, ...] = ()
    python: str = ""
    pinned: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    strength: str = "2"
    seed: int = 0
    time_limit: float = 30.0
    fault: str | None = None
    report: Path | None = None
    shard: tuple[int, int] | None = None
    times: Path | None = None
    journals: Path | None = None
    strict: bool = False
    fail_on: Severity | None = None
    waivers: tuple[Path, ...] = ()
    update_waivers: bool = False
    fresh_runs: bool = False
    allowed_hosts: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def rerun_words(self) -> tuple[str, ...]:
        """Further words that `pytest-approvals run` needs, after agent and variant, to repeat a run."""
        command = ("--command", self.command) if self.command else ()
        fault = ("--fault", self.fault) if self.fault else ()
        python = ("--python", self.python) if self.python else ()
        return (*command, *fault, *(word for text in self.requirements for word in ("--with", text)), *python)


def read_settings(config: pytest.Config) -> Settings:
    """Read all options: from the command line, else from the ini file, else the default.

    Raises:
        UsageError: A value is invalid; the message names the option, the value and what is valid.
    """
    texts = {option.name: option_value(config, option) for option in OPTIONS}
    if texts["command"] and config.getoption("approvals_command") is None and texts["command"].endswith(".json"):
        texts["command"] = str(config.rootpath / texts["command"])
    if texts["waivers"] and config.getoption("approvals_waivers") is None:
        # Those of the ini file are relative to it.
        texts["waivers"] = [str(config.rootpath / name) for name in texts["waivers"]]
    folders = tuple(config.rootpath / name for name in config.getini(SCENARIOS_INI))
    return parse_settings(texts, config.invocation_params.dir, folders)


def parse_settings(
    texts: Mapping[str, Any],
    here: Path,
    folders: tuple[Path, ...] = (),
    spell: Callable[[Option], str] = lambda option: option.flag,
    later: Container[str] = (),
) -> Settings:
    """Return the settings that the texts of options stand for.

    Args:
        texts: The texts by option name; what is missing or None has its default.
        here: The folder that paths are relative to.
        folders: Folders with scenarios.
        spell: Returns the name of an option for an error.
        later: Options that are not parsed, because not all names that they may have are known yet.

    Raises:
        UsageError: A value is invalid.
    """
    values: dict[str, Any] = {"pinned": {}}
    for option in OPTIONS:
        text = texts.get(option.name)
        if text is None or text == () or option.name in later:
            continue
        try:
            _parse_option(option, text, here, values)
        except ApprovalsError as error:
            raise UsageError(f"{spell(option)}: {error}") from None
    if values.get("command"):
        values["agents"] = tuple(map(_name_program, values.get("agents", (PROGRAM_AGENT,))))
    return Settings(folders=folders, **values)


def _name_program(spec: str) -> str:
    """Return the agent that *spec* names beside a command: `acp` alone is then the program of the command."""
    return PROGRAM_AGENT if spec == PROGRAM_AGENT.partition(".")[0] else spec


def _parse_option(option: Option, text: Any, here: Path, values: dict[str, Any]) -> None:
    match option.name:
        case "command":
            values["command"] = text
            _describe_program(text, here)
        case "agents":
            values["agents"] = tuple(spec for word in _split_words(text) for spec in _expand_agents(word))
        case "allow-host":
            values["allowed_hosts"] = _split_words(text)
        case "with":
            values["requirements"] = tuple(text)  # a comma is a part of a requirement
        case "python":
            values["python"] = text
        case "stream":
            values["pinned"]["stream"] = (_parse_switch(text),)
        case "oracle":
            values["pinned"]["oracle"] = tuple(_validate_oracle(word) for word in text)
        case "strength":
            values["strength"] = _require_choice("strength", text, _STRENGTHS)
        case "seed":
            values["seed"] = int(_parse_number(text, int))
        case "time-limit":
            values["time_limit"] = _parse_number(text, float)
        case "fault":
            values["fault"] = _validate_fault(text)
        case "fail-on":
            values["fail_on"] = _parse_severity(text)
        case "shard":
            values["shard"] = parse_shard(text)
        case "times":
            read_times(here / text)
            values["times"] = here / text
        case "waivers":
            values["waivers"] = tuple(here / word for word in _split_words(text))
        case "report" | "journals":
            values[option.name] = here / text
        case "strict" | "update-waivers" | "fresh-runs":
            values[option.name.replace("-", "_")] = _parse_switch(text)
        case name:
            words = tuple(_validate_dimension(name, word) for word in _split_words(text))
            values["pinned"][_DIMENSIONS.get(name, name)] = words


def _split_words(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _require_choice(what: str, word: str, valid: Iterable[str]) -> str:
    names = tuple(valid)
    if word not in names:
        raise UnknownName(what, word, names)
    return word


def _validate_dimension(name: str, word: str) -> str:
    if name == "serialize" and word.startswith("native.") and word != "native.":
        return word
    valid = [str(value) for value in DIMENSIONS[_DIMENSIONS.get(name, name)]]
    if name == "serialize":
        return _require_choice("serialize mode", word, [*valid, "native.NAME"])
    return _require_choice(name, word, valid)


def _describe_program(command: str, here: Path) -> None:
    from pytest_approvals.agent_side.kit.acp_program import VARIABLE, describe_command

    try:
        # Its adapter and its process read it there, as do the workers of pytest-xdist.
        os.environ[VARIABLE] = describe_command(command, here)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _expand_agents(text: str) -> tuple[str, ...]:
    from pytest_approvals.agents.adapters import get_adapter, list_all_agents
    from pytest_approvals.agents.spec import ALL_AGENTS, AgentSpec

    if text == ALL_AGENTS:
        return list_all_agents()
    spec = AgentSpec.parse(text)
    get_adapter(spec)
    return (str(spec),)


def _validate_oracle(word: str) -> str:
    from pytest_approvals.runner.oracles import create_oracle

    create_oracle(word)
    return word


def _validate_fault(text: str) -> str:
    from pytest_approvals.simulation.faults import build_faulty_agent, load_fault

    build_faulty_agent(load_fault(text))
    return text


def _parse_severity(text: str) -> Severity:
    # Imported late: all checks come with it.
    from pytest_approvals.checks import parse_severity

    return parse_severity(text)


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of a part, and how many parts there are.

    Raises:
        UsageError: The text is not of the form `I/N`.
    """
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and len(count) < 6 and 0 < int(number) <= int(count)):
        raise UsageError(f"Invalid shard {text!r}: expected I/N, as 1/8 for the first of eight")
    return int(number), int(count)


def read_times(path: Path) -> dict[tuple[str, str], float]:
    """Return the seconds that each scenario took on each agent; none if there is no such file yet.

    Raises:
        UsageError: It cannot be read, or holds something else.
    """
    try:
        seconds = json.loads(path.read_bytes())["seconds"]
        times = {(scenario, agent): float(took) for agent, row in seconds.items() for scenario, took in row.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        times = {("", ""): -1.0}
    if not all(0 <= took < float("inf") for took in times.values()):
        raise UsageError(f"{path}: no times of scenarios; delete it, and a session without --shard writes it anew")
    return times


def _parse_switch(text: str) -> bool:
    return _SWITCH_WORDS[_require_choice("switch position", text.lower(), _SWITCH_WORDS)]


def _parse_number(text: str, kind: type[int | float]) -> float:
    try:
        number = kind(text)
    except ValueError:
        raise UsageError(f"Invalid number {text!r}") from None
    if number < 0 or (kind is float and number == 0):
        raise UsageError(f"Invalid number {text}: too small")
    return number
