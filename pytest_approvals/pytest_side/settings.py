"""What the options say, read once when pytest is configured; a value that cannot be used is refused there."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.pytest_side.options import OPTIONS, SCENARIOS_INI, Option, given
from pytest_approvals.scenario.words import DIMENSIONS

if TYPE_CHECKING:
    import pytest

_DIMENSIONS = {"answer": "source"}
_STRENGTHS = ("1", "2", "3", "full")
_SWITCH = {"yes": True, "on": True, "true": True, "1": True, "no": False, "off": False, "false": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What the options say.

    Attributes:
        agents: Specs; empty: all agents that can run here.
        requirements: Further requirements of the agents' environments.
        python: The Python of these environments; empty: the one that runs this.
        pinned: Dimensions of the variants, and the values that they are limited to.
        strength: How many dimensions are combined: `1`, `2`, `3` or `full`.
        time_limit: Seconds for one run.
        fault: The name of a seeded fault, or `MODULE:NAME`.
        report: Where the report is written.
        journals: Where the journals stay.
        allowed_hosts: Other machines that may be reached while a scripted model is active.
        folders: Folders with scenarios, besides those that pytest collects itself.
    """

    agents: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    python: str = ""
    pinned: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    strength: str = "2"
    seed: int = 0
    time_limit: float = 30.0
    fault: str | None = None
    report: Path | None = None
    journals: Path | None = None
    strict: bool = False
    update_waivers: bool = False
    allowed_hosts: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def rerun_words(self) -> tuple[str, ...]:
        """What `pytest-approvals run` needs besides agent and variant to run the same once more."""
        fault = ("--fault", self.fault) if self.fault else ()
        python = ("--python", self.python) if self.python else ()
        return (*fault, *(word for text in self.requirements for word in ("--with", text)), *python)


def read_settings(config: pytest.Config) -> Settings:
    """
    Reads all options: the command line counts more than the ini file, and that more than the default.

    Errors:
        UsageError: A value cannot be used; the option, the value and what is valid are named.
    """
    texts = {option.name: given(config, option) for option in OPTIONS}
    folders = tuple(config.rootpath / name for name in config.getini(SCENARIOS_INI))
    return settings_of(texts, config.invocation_params.dir, folders)


def settings_of(
    texts: Mapping[str, Any],
    here: Path,
    folders: tuple[Path, ...] = (),
    spell: Callable[[Option], str] = lambda option: option.flag,
    later: Container[str] = (),
) -> Settings:
    """
    Makes settings of the options' texts, by option name; what is missing or None has its default.

    Arguments:
        here: The folder that paths are relative to.
        spell: How an option is called in an error.
        later: Options that are not looked at: what they may name is not all known yet.

    Errors:
        UsageError: A value cannot be used.
    """
    values: dict[str, Any] = {"pinned": {}}
    for option in OPTIONS:
        text = texts.get(option.name)
        if text is None or text == () or option.name in later:
            continue
        try:
            _read(option, text, here, values)
        except ApprovalsError as error:
            raise UsageError(f"{spell(option)}: {error}") from None
    return Settings(folders=folders, **values)


def _read(option: Option, text: Any, here: Path, values: dict[str, Any]) -> None:
    match option.name:
        case "agents":
            values["agents"] = tuple(spec for word in _words(text) for spec in _known_agents(word))
        case "allow-host":
            values["allowed_hosts"] = _words(text)
        case "with":
            values["requirements"] = tuple(text)  # a comma is a part of a requirement
        case "python":
            values["python"] = text
        case "stream":
            values["pinned"]["stream"] = (_switch(text),)
        case "oracle":
            values["pinned"]["oracle"] = tuple(_known_oracle(word) for word in text)
        case "strength":
            values["strength"] = _one_of("strength", text, _STRENGTHS)
        case "seed":
            values["seed"] = int(_number(text, int))
        case "time-limit":
            values["time_limit"] = _number(text, float)
        case "fault":
            values["fault"] = _known_fault(text)
        case "report" | "journals":
            values[option.name] = here / text
        case "strict" | "update-waivers":
            values[option.name.replace("-", "_")] = _switch(text)
        case name:
            words = tuple(_dimension_value(name, word) for word in _words(text))
            values["pinned"][_DIMENSIONS.get(name, name)] = words


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _one_of(what: str, word: str, valid: Iterable[str]) -> str:
    names = tuple(valid)
    if word not in names:
        raise UnknownName(what, word, names)
    return word


def _dimension_value(name: str, word: str) -> str:
    if name == "serialize" and word.startswith("native.") and word != "native.":
        return word
    valid = [str(value) for value in DIMENSIONS[_DIMENSIONS.get(name, name)]]
    if name == "serialize":
        return _one_of("serialize mode", word, [*valid, "native.NAME"])
    return _one_of(name, word, valid)


def _known_agents(text: str) -> tuple[str, ...]:
    from pytest_approvals.agents import ALL, AgentSpec, adapter_of, all_agents

    if text == ALL:
        return all_agents()
    spec = AgentSpec.parse(text)
    adapter_of(spec)
    return (str(spec),)


def _known_oracle(word: str) -> str:
    from pytest_approvals.harness.oracles import oracle_named

    oracle_named(word)
    return word


def _known_fault(text: str) -> str:
    from pytest_approvals.simulation.faults import faulty, load_fault

    faulty(load_fault(text))
    return text


def _switch(text: str) -> bool:
    return _SWITCH[_one_of("switch position", text.lower(), _SWITCH)]


def _number(text: str, kind: type[int | float]) -> float:
    try:
        number = kind(text)
    except ValueError:
        raise UsageError(f"{text!r} is no number") from None
    if number < 0 or (kind is float and number == 0):
        raise UsageError(f"{text} is too small")
    return number
