"""Mistakes in what stands around the story: title, words, numbers, pinned dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.capabilities import CAPABILITIES, PROTOCOLS
from pytest_approvals.errors import nearest
from pytest_approvals.scenario.mistakes import Mistake, Path
from pytest_approvals.scenario.parts import PROMPT, Scenario
from pytest_approvals.scenario.variants import candidates
from pytest_approvals.scenario.view import View
from pytest_approvals.scenario.words import ANY_STORE, DIMENSIONS, REACHES, VARIED_ON_REQUEST

_SOURCE = re.compile(r"[\w.-]+/[\w.-]+#[0-9]+|https?://\S+")
TRANSPORTS = ("http", "stdio")
"""How an agent may connect to an MCP server."""

_ORACLES = ["approve_all", "reject_all", "random:SEED", "allowlist:TOOL,TOOL", "script"]
_STORE = re.compile(r"native\.[a-z][a-z0-9_]*")


def frame_mistakes(view: View) -> Iterator[Mistake]:
    """Gives the mistakes outside tools, model and caller."""
    scenario = view.scenario
    yield from _words(scenario)
    yield from _numbers(scenario)
    pinned = list(_dimensions(scenario))
    yield from pinned
    if scenario.only and not pinned:
        yield from _impossible(scenario)
    for k, name in enumerate(scenario.oracles):
        yield from _value("oracle", name, ("oracles", k))
    yield from _servers(scenario)
    for k, label in enumerate(scenario.expect.runs or ()):
        yield from view.unknown_label(label, ("expect", "runs", k), "expect names")


def _words(scenario: Scenario) -> Iterator[Mistake]:
    if not scenario.title.strip():
        yield Mistake(("title",), "the title is empty; it says in one sentence what happens")
    if scenario.caller is not None and scenario.prompt != PROMPT:
        yield Mistake(("prompt",), "a scenario with a caller sends what its steps say; `prompt` would never be sent")
    for k, source in enumerate(scenario.sources):
        if not _SOURCE.fullmatch(source):
            yield Mistake(("sources", k), f"{source!r} is neither OWNER/REPO#NUMBER nor an address")
    for name in sorted(scenario.requires):
        if name not in CAPABILITIES and not _STORE.fullmatch(name):
            what = f"no capability is called {name!r}{nearest(name, CAPABILITIES)}"
            yield Mistake(("requires",), what)


def _servers(scenario: Scenario) -> Iterator[Mistake]:
    connected = {tool.server for tool in scenario.tools if tool.kind == "mcp" and tool.server is not None}
    for name, transport in scenario.servers.items():
        if name not in connected:
            what = f"no tool of kind mcp is offered by a server {name!r}{nearest(name, sorted(connected))}"
            yield Mistake(("servers", name), what)
        if transport not in TRANSPORTS:
            yield Mistake(("servers", name), f"{transport!r} is no transport; choose http or stdio")


def _numbers(scenario: Scenario) -> Iterator[Mistake]:
    for word, count in scenario.reaches.items():
        if word not in REACHES:
            yield Mistake(("reaches", word), f"nothing that can be reached is called {word!r}{nearest(word, REACHES)}")
        elif count < 1:
            yield Mistake(("reaches", word), f"reaching {word!r} {count} times means nothing; 1 is the least")
    for name in ("model_replies", "tool_calls"):
        limit = getattr(scenario.limits, name)
        if limit is not None and limit < 1:
            yield Mistake(("limits", name), f"a limit of {limit} lets nothing happen; 1 is the least")


def _dimensions(scenario: Scenario) -> Iterator[Mistake]:
    for dimension, values in scenario.only.items():
        path: Path = ("only", dimension)
        if dimension not in DIMENSIONS:
            yield Mistake(path, f"no dimension is called {dimension!r}{nearest(dimension, DIMENSIONS)}")
            continue
        for k, value in enumerate(values):
            yield from _value(dimension, value, (*path, k))
        if not values:
            yield Mistake(path, f"{dimension!r} is pinned to no value at all")
    for dimension in sorted(scenario.vary):
        if dimension not in VARIED_ON_REQUEST:
            what = f"{dimension!r} cannot be varied on request{nearest(dimension, VARIED_ON_REQUEST)}"
            yield Mistake(("vary",), what)
        elif dimension in scenario.only:
            yield Mistake(("vary",), f"{dimension!r} is varied and pinned at once")


@dataclass(frozen=True, slots=True)
class _AbleToAll:
    """An agent that can do whatever a scenario asks for."""

    stores: Mapping[str, str]
    protocols: Mapping[str, Mapping[str, str]]
    capabilities: frozenset[str] = frozenset()


def _impossible(scenario: Scenario) -> Iterator[Mistake]:
    stores = {str(mode).removeprefix("native."): "" for mode in scenario.only.get("serialize", ())}
    if next(candidates(scenario, _AbleToAll(stores, PROTOCOLS), {}), None) is None:
        pins = ", ".join(f"{name}: {' or '.join(map(str, values))}" for name, values in scenario.only.items())
        yield Mistake(("only",), f"no variant is left by `only` ({pins}): these values and steps exclude each other")


def _value(dimension: str, value: Any, path: Path) -> Iterator[Mistake]:
    known = DIMENSIONS[dimension]
    if any(value is one for one in known) or (isinstance(value, str) and _known_text(dimension, value)):
        return
    words = _ORACLES if dimension == "oracle" else [str(one).lower() for one in known]
    yield Mistake(path, f"{value!r} is no value of {dimension}{nearest(str(value), words)}")


def _known_text(dimension: str, value: str) -> bool:
    if dimension == "serialize" and (value == ANY_STORE or _STORE.fullmatch(value)):
        return True
    if dimension != "oracle":
        return value in DIMENSIONS[dimension]
    return _known_oracle(value)


def _known_oracle(value: str) -> bool:
    """
    Says whether an oracle may be called so.

    A plugin can bring oracles of its own, so a name that is not even near to a known one is judged where it is made.
    """
    word, colon, rest = value.partition(":")
    match word:
        case "random":
            return rest.isdecimal()
        case "allowlist":
            return bool(rest)
        case "script" | "approve_all":
            return not colon
        case "reject_all":
            return True
    return word.isidentifier() and "did you mean" not in nearest(word, map(str, DIMENSIONS["oracle"]))
