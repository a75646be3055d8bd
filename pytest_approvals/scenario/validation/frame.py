"""Mistakes in what stands around the story: title, words, numbers, pinned dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES, PROTOCOLS
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.model import DEFAULT_PROMPT, Scenario
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.variants import candidate_variants
from pytest_approvals.scenario.vocabulary import ANY_STORE, DIMENSIONS, REACHES, VARIED_ON_REQUEST
from pytest_approvals.yaml_files import Diagnostic, KeyPath

_SOURCE_PATTERN = re.compile(r"[\w.-]+/[\w.-]+#[0-9]+|https?://\S+")
TRANSPORTS = ("http", "stdio")
"""How an agent may connect to an MCP server."""

_ORACLES = ["approve_all", "reject_all", "random:SEED", "allowlist:TOOL,TOOL", "script"]
_STORE_PATTERN = re.compile(r"native\.[a-z][a-z0-9_]*")


def validate_frame(view: ScenarioIndex) -> Iterator[Diagnostic]:
    """Gives the mistakes outside tools, model and caller."""
    scenario = view.scenario
    yield from _validate_metadata(scenario)
    yield from _validate_numbers(scenario)
    pinned = list(_validate_dimensions(scenario))
    yield from pinned
    if scenario.only and not pinned:
        yield from _validate_pins(scenario)
    for k, name in enumerate(scenario.oracles):
        yield from _validate_value("oracle", name, ("oracles", k))
    yield from _validate_servers(scenario)
    for k, label in enumerate(scenario.expect.runs or ()):
        yield from view.unknown_label(label, ("expect", "runs", k), "expect names")


def _validate_metadata(scenario: Scenario) -> Iterator[Diagnostic]:
    if not scenario.title.strip():
        yield Diagnostic(("title",), "the title is empty; it says in one sentence what happens")
    if scenario.caller is not None and scenario.prompt != DEFAULT_PROMPT:
        yield Diagnostic(("prompt",), "a scenario with a caller sends what its steps say; `prompt` would never be sent")
    for k, source in enumerate(scenario.sources):
        if not _SOURCE_PATTERN.fullmatch(source):
            yield Diagnostic(("sources", k), f"{source!r} is neither OWNER/REPO#NUMBER nor an address")
    for name in sorted(scenario.requires):
        if name not in CAPABILITIES and not _STORE_PATTERN.fullmatch(name):
            what = f"no capability is called {name!r}{suggest_name(name, CAPABILITIES)}"
            yield Diagnostic(("requires",), what)


def _validate_servers(scenario: Scenario) -> Iterator[Diagnostic]:
    connected = {tool.server for tool in scenario.tools if tool.kind == "mcp" and tool.server is not None}
    for name, transport in scenario.servers.items():
        if name not in connected:
            what = f"no tool of kind mcp is offered by a server {name!r}{suggest_name(name, sorted(connected))}"
            yield Diagnostic(("servers", name), what)
        if transport not in TRANSPORTS:
            yield Diagnostic(("servers", name), f"{transport!r} is no transport; choose http or stdio")


def _validate_numbers(scenario: Scenario) -> Iterator[Diagnostic]:
    for word, count in scenario.reaches.items():
        if word not in REACHES:
            yield Diagnostic(
                ("reaches", word), f"nothing that can be reached is called {word!r}{suggest_name(word, REACHES)}"
            )
        elif count < 1:
            yield Diagnostic(("reaches", word), f"reaching {word!r} {count} times means nothing; 1 is the least")
    for name in ("model_replies", "tool_calls"):
        limit = getattr(scenario.limits, name)
        if limit is not None and limit < 1:
            yield Diagnostic(("limits", name), f"a limit of {limit} lets nothing happen; 1 is the least")


def _validate_dimensions(scenario: Scenario) -> Iterator[Diagnostic]:
    for dimension, values in scenario.only.items():
        path: KeyPath = ("only", dimension)
        if dimension not in DIMENSIONS:
            yield Diagnostic(path, f"no dimension is called {dimension!r}{suggest_name(dimension, DIMENSIONS)}")
            continue
        for k, value in enumerate(values):
            yield from _validate_value(dimension, value, (*path, k))
        if not values:
            yield Diagnostic(path, f"{dimension!r} is pinned to no value at all")
    for dimension in sorted(scenario.vary):
        if dimension not in VARIED_ON_REQUEST:
            what = f"{dimension!r} cannot be varied on request{suggest_name(dimension, VARIED_ON_REQUEST)}"
            yield Diagnostic(("vary",), what)
        elif dimension in scenario.only:
            yield Diagnostic(("vary",), f"{dimension!r} is varied and pinned at once")


@dataclass(frozen=True, slots=True)
class _CapableAgent:
    """An agent that can do whatever a scenario asks for."""

    stores: Mapping[str, str]
    protocols: Mapping[str, Mapping[str, str]]
    capabilities: frozenset[str] = frozenset()


def _validate_pins(scenario: Scenario) -> Iterator[Diagnostic]:
    stores = {str(mode).removeprefix("native."): "" for mode in scenario.only.get("serialize", ())}
    if next(candidate_variants(scenario, _CapableAgent(stores, PROTOCOLS), {}), None) is None:
        pins = ", ".join(f"{name}: {' or '.join(map(str, values))}" for name, values in scenario.only.items())
        yield Diagnostic(("only",), f"no variant is left by `only` ({pins}): these values and steps exclude each other")


def _validate_value(dimension: str, value: Any, path: KeyPath) -> Iterator[Diagnostic]:
    known = DIMENSIONS[dimension]
    if any(value is one for one in known) or (isinstance(value, str) and _is_known_value(dimension, value)):
        return
    words = _ORACLES if dimension == "oracle" else [str(one).lower() for one in known]
    yield Diagnostic(path, f"{value!r} is no value of {dimension}{suggest_name(str(value), words)}")


def _is_known_value(dimension: str, value: str) -> bool:
    if dimension == "serialize" and (value == ANY_STORE or _STORE_PATTERN.fullmatch(value)):
        return True
    if dimension != "oracle":
        return value in DIMENSIONS[dimension]
    return _is_known_oracle(value)


def _is_known_oracle(value: str) -> bool:
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
    return word.isidentifier() and "did you mean" not in suggest_name(word, map(str, DIMENSIONS["oracle"]))
