"""Validation of everything around the story: title, words, numbers, servers, pinned dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES, PROTOCOLS
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.matrix import candidate_variants
from pytest_approvals.scenario.model import DEFAULT_PROMPT, Scenario
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.vocabulary import ANY_STORE, DIMENSIONS, REACHES, VARIED_ON_REQUEST
from pytest_approvals.yaml_files import Diagnostic, KeyPath

_SOURCE_PATTERN = re.compile(r"[\w.-]+/[\w.-]+#[0-9]+|https?://\S+")
TRANSPORTS = ("http", "stdio")
"""Transports between an agent and an MCP server."""

_ORACLES = ["approve_all", "reject_all", "random:SEED", "allowlist:TOOL,TOOL", "script"]
_STORE_PATTERN = re.compile(r"native\.[a-z][a-z0-9_]*")


def validate_frame(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics outside tools, model and caller."""
    scenario = index.scenario
    yield from _validate_metadata(scenario)
    yield from _validate_numbers(scenario)
    diagnostics = list(_validate_dimensions(scenario))
    yield from diagnostics
    if scenario.only and not diagnostics:
        yield from _validate_pins(scenario)
    for k, name in enumerate(scenario.oracles):
        yield from _validate_value("oracle", name, ("oracles", k))
    yield from _validate_servers(scenario)
    for k, label in enumerate(scenario.expect.runs or ()):
        yield from index.validate_label(label, ("expect", "runs", k), "expect names")


def _validate_metadata(scenario: Scenario) -> Iterator[Diagnostic]:
    if not scenario.title.strip():
        yield Diagnostic(("title",), "the title is empty; describe in one sentence what happens")
    if scenario.caller is not None and scenario.prompt != DEFAULT_PROMPT:
        yield Diagnostic(("prompt",), "a scenario with a caller sends what its steps say; `prompt` would never be sent")
    for k, source in enumerate(scenario.sources):
        if not _SOURCE_PATTERN.fullmatch(source):
            yield Diagnostic(("sources", k), f"invalid source {source!r}: expected OWNER/REPO#NUMBER or a URL")
    for name in sorted(scenario.requires):
        if name not in CAPABILITIES and not _STORE_PATTERN.fullmatch(name):
            message = f"unknown capability {name!r}{suggest_name(name, CAPABILITIES)}"
            yield Diagnostic(("requires",), message)


def _validate_servers(scenario: Scenario) -> Iterator[Diagnostic]:
    connected = {tool.server for tool in scenario.tools if tool.kind == "mcp" and tool.server is not None}
    for name, transport in scenario.servers.items():
        if name not in connected:
            message = f"no tool of kind mcp is offered by a server {name!r}{suggest_name(name, sorted(connected))}"
            yield Diagnostic(("servers", name), message)
        if transport not in TRANSPORTS:
            yield Diagnostic(("servers", name), f"invalid transport {transport!r}: expected http or stdio")


def _validate_numbers(scenario: Scenario) -> Iterator[Diagnostic]:
    for word, count in scenario.reaches.items():
        if word not in REACHES:
            yield Diagnostic(("reaches", word), f"unknown key {word!r} of reaches{suggest_name(word, REACHES)}")
        elif count < 1:
            yield Diagnostic(("reaches", word), f"invalid count {count} of {word!r}: must be at least 1")
    for name in ("model_replies", "tool_calls"):
        limit = getattr(scenario.limits, name)
        if limit is not None and limit < 1:
            yield Diagnostic(("limits", name), f"invalid limit {limit}: must be at least 1")


def _validate_dimensions(scenario: Scenario) -> Iterator[Diagnostic]:
    for dimension, values in scenario.only.items():
        path: KeyPath = ("only", dimension)
        if dimension not in DIMENSIONS:
            yield Diagnostic(path, f"unknown dimension {dimension!r}{suggest_name(dimension, DIMENSIONS)}")
            continue
        for k, value in enumerate(values):
            yield from _validate_value(dimension, value, (*path, k))
        if not values:
            yield Diagnostic(path, f"{dimension!r} is pinned to an empty list")
    for dimension in sorted(scenario.vary):
        if dimension not in VARIED_ON_REQUEST:
            message = f"{dimension!r} cannot be varied on request{suggest_name(dimension, VARIED_ON_REQUEST)}"
            yield Diagnostic(("vary",), message)
        elif dimension in scenario.only:
            yield Diagnostic(("vary",), f"{dimension!r} is varied and pinned at once")


def _validate_pins(scenario: Scenario) -> Iterator[Diagnostic]:
    stores = {str(mode).removeprefix("native."): "" for mode in scenario.only.get("serialize", ("native.any",))}
    # An agent that can do everything, so that only the scenario itself can exclude a variant.
    capable = Facts(stores=stores, protocols=PROTOCOLS)
    if next(candidate_variants(scenario, capable, {}), None) is None:
        pins = ", ".join(f"{name}: {' or '.join(map(str, values))}" for name, values in scenario.only.items())
        yield Diagnostic(("only",), f"no variant is left by `only` ({pins}): these values and steps exclude each other")


def _validate_value(dimension: str, value: Any, path: KeyPath) -> Iterator[Diagnostic]:
    known = DIMENSIONS[dimension]
    # Identity, because 1 == True and 0 == False.
    if any(value is candidate for candidate in known) or (isinstance(value, str) and _is_known_value(dimension, value)):
        return
    words = _ORACLES if dimension == "oracle" else [str(candidate).lower() for candidate in known]
    yield Diagnostic(path, f"invalid value {value!r} of {dimension}{suggest_name(str(value), words)}")


def _is_known_value(dimension: str, value: str) -> bool:
    if dimension == "serialize" and (value == ANY_STORE or _STORE_PATTERN.fullmatch(value)):
        return True
    if dimension != "oracle":
        return value in DIMENSIONS[dimension]
    return _is_known_oracle(value)


def _is_known_oracle(value: str) -> bool:
    """Return whether *value* can name an oracle.

    A plugin may register further oracles, so a name that resembles no known one is accepted here and looked up later.
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
    # `suggest_name` asks "did you mean" only if a known name is near: then the word is a typing error.
    return word.isidentifier() and "did you mean" not in suggest_name(word, map(str, DIMENSIONS["oracle"]))
