"""
How a person's test wants its runs: said in the call, in the marker, in the fixture `approvals_config`, by options.

What is said closer to the run counts more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.model import AnswerSource, Variant
from pytest_approvals.scenario.vocabulary import DIMENSIONS

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.plugin.settings import Settings

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
"""Everything that can be said, and what holds where nothing is."""

_CHECK_MODES = ("raise", "collect")
_DIMENSIONS = {"answer": "source"}


def validate_options(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """
    Gives what was said *where*, if every word of it can be used.

    Errors:
        UsageError: A word cannot be used; the nearest valid one is named.
    """
    for name, value in given.items():
        if name not in RUN_OPTION_DEFAULTS:
            raise UnknownName(f"setting of {where}", name, RUN_OPTION_DEFAULTS)
        _validate_option(name, value, where)
    return given


def resolve_options(node: pytest.Item, config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Gives what holds for a test, before its call says more."""
    wishes = dict(RUN_OPTION_DEFAULTS)
    wishes |= {"seed": settings.seed, "time_limit": settings.time_limit}
    wishes |= {_option_of_dimension(name): values[0] for name, values in settings.pinned.items() if len(values) == 1}
    wishes |= validate_options(config, "the fixture approvals_config")
    for mark in reversed(list(node.iter_markers("approvals"))):
        wishes |= options_from_marker(mark)
    return wishes


def options_from_marker(mark: pytest.Mark) -> Mapping[str, Any]:
    """
    Gives what a marker `approvals(...)` says.

    Errors:
        UsageError: It says something else.
    """
    if mark.args:
        raise UsageError(f"the marker approvals takes settings by name, and not {mark.args[0]!r}")
    return validate_options(mark.kwargs, "the marker approvals")


def build_variant(wishes: Mapping[str, Any]) -> Variant:
    """
    Gives the variant that a run is; where nothing is said of it, decisions are made from what was restored as soon as
    anything is.
    """
    answer: AnswerSource = wishes["answer"] or ("held" if wishes["serialize"] == "none" else "restored")
    return Variant(
        serialize=wishes["serialize"],
        resume=wishes["resume"],
        history=wishes["history"],
        stream=wishes["stream"],
        source=answer,
        chunking=wishes["chunking"],
    )


def _option_of_dimension(dimension: str) -> str:
    return next((word for word, name in _DIMENSIONS.items() if name == dimension), dimension)


def _validate_option(name: str, value: Any, where: str) -> None:
    if value is None:
        return
    if name == "checks" and value not in _CHECK_MODES:
        raise UnknownName(f"value of checks in {where}", str(value), _CHECK_MODES)
    if name == "time_limit" and not (isinstance(value, (int, float)) and value > 0):
        raise UsageError(f"time_limit in {where} must be a number of seconds, and is {value!r}")
    dimension = _DIMENSIONS.get(name, name)
    if dimension not in DIMENSIONS or dimension == "oracle":
        return
    if dimension == "serialize" and str(value).startswith("native."):
        return
    if value not in DIMENSIONS[dimension]:
        raise UnknownName(f"value of {name} in {where}", str(value), map(str, DIMENSIONS[dimension]))
