"""Run options of users' tests, from the call, the marker, the fixture `approvals_config` and the command line.

What stands closer to the run takes precedence, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.model import AnswerSource, Variant
from pytest_approvals.scenario.vocabulary import DIMENSIONS

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.plugin.settings import Settings
    from pytest_approvals.runner.oracles import Oracle

SerializeMode: TypeAlias = Literal["none", "copy", "json"] | str  # noqa: PYI051 -- editors complete them
"""What the state goes through between turns; also `native.NAME`, a durable store of the framework."""

ResumePlace: TypeAlias = Literal["same", "fresh", "cold"]
"""The process that goes on after a save."""

HistoryMode: TypeAlias = Literal["whole", "append"]
"""What the caller keeps of the state."""

Chunking: TypeAlias = Literal["whole", "tokens", "ids_first", "split", "interleaved", "empty"]
"""How streamed replies are cut."""

CheckMode: TypeAlias = Literal["raise", "collect"]
"""What happens with a broken requirement."""


class RunOptions(TypedDict, total=False):
    """The options of a run, as the call takes them as arguments; None: not said."""

    agent: str | None
    oracle: Oracle | str | None
    serialize: SerializeMode | None
    resume: ResumePlace | None
    history: HistoryMode | None
    stream: bool | None
    answer: AnswerSource | None
    chunking: Chunking | None
    checks: CheckMode | None
    seed: int | None
    time_limit: float | None


RUN_OPTION_DEFAULTS: Mapping[str, Any] = {
    "agent": None,
    "oracle": None,
    "serialize": "none",
    "resume": "same",
    "history": "whole",
    "stream": False,
    "answer": None,
    "chunking": "whole",
    "checks": "raise",
    "seed": 0,
    "time_limit": 30.0,
}
"""All options, and their values if nothing is said."""

_CHECK_MODES = ("raise", "collect")
_DIMENSIONS = {"answer": "source"}


def validate_options(options: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the options that were said *where* if all of them are valid.

    Raises:
        UsageError: A name or a value is invalid; the message suggests the nearest valid one.
    """
    for name, value in options.items():
        if name not in RUN_OPTION_DEFAULTS:
            raise UnknownName("setting", name, RUN_OPTION_DEFAULTS, where)
        _validate_option(name, value, where)
    return options


def resolve_options(node: pytest.Item, config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the options of a test, which the arguments of its calls take precedence over."""
    options = dict(RUN_OPTION_DEFAULTS)
    options |= {"seed": settings.seed, "time_limit": settings.time_limit}
    # Several values on the command line mean several variants, and a call of a user's test makes one run.
    options |= {_option_of_dimension(name): values[0] for name, values in settings.pinned.items() if len(values) == 1}
    options |= validate_options(config, "the fixture approvals_config")
    # `iter_markers` begins with the closest one, which has to win.
    for mark in reversed(list(node.iter_markers("approvals"))):
        options |= options_from_marker(mark)
    return options


def options_from_marker(mark: pytest.Mark) -> Mapping[str, Any]:
    """Return the options of a marker `approvals(...)`.

    Raises:
        UsageError: The marker has something else.
    """
    if mark.args:
        raise UsageError(f"the marker approvals takes settings by name, and not {mark.args[0]!r}")
    return validate_options(mark.kwargs, "the marker approvals")


def options_from_call(arguments: RunOptions, where: str) -> Mapping[str, Any]:
    """Return the options that a call says.

    Raises:
        UsageError: A value is invalid.
    """
    return validate_options({name: value for name, value in arguments.items() if value is not None}, where)


def build_variant(options: Mapping[str, Any]) -> Variant:
    """Return the variant of a run.

    If nothing is said about it, decisions are made from restored requests as soon as the state is saved at all.
    """
    answer: AnswerSource = options["answer"] or ("held" if options["serialize"] == "none" else "restored")
    return Variant(
        serialize=options["serialize"],
        resume=options["resume"],
        history=options["history"],
        stream=options["stream"],
        source=answer,
        chunking=options["chunking"],
    )


def _option_of_dimension(dimension: str) -> str:
    return next((option for option, name in _DIMENSIONS.items() if name == dimension), dimension)


def _validate_option(name: str, value: Any, where: str) -> None:
    if value is None:
        return
    if name == "checks" and value not in _CHECK_MODES:
        raise UnknownName("checks", str(value), _CHECK_MODES, where)
    if name == "time_limit" and not (isinstance(value, (int, float)) and value > 0):
        raise UsageError(f"Invalid time_limit {value!r} in {where}: expected a positive number of seconds")
    dimension = _DIMENSIONS.get(name, name)
    if dimension not in DIMENSIONS or dimension == "oracle":
        return
    if dimension == "serialize" and str(value).startswith("native."):
        return
    if value not in DIMENSIONS[dimension]:
        raise UnknownName(name, str(value), map(str, DIMENSIONS[dimension]), where)
