"""Variant matrix of a scenario: the values of each dimension, and which values are consistent.

Nothing here knows what an agent claims or which points of the matrix are run; `variants` plans that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.scenario.dry_run import resumes_without_requests
from pytest_approvals.scenario.model import (
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    SaveStep,
    Scenario,
    Variant,
    all_steps,
    crash_places,
    fails_to_store,
    owns_processes,
    rolls_back,
    session_names,
)
from pytest_approvals.scenario.vocabulary import ANY_STORE, AT_STREAM, DIMENSIONS, SERVER_STORES

Overrides = Mapping[str, Sequence[Any]]
"""Values of dimensions that a user asked for, in place of the default ones."""


def dimension_values(scenario: Scenario, facts: Facts, overrides: Overrides) -> dict[str, tuple[Any, ...]]:
    """Return the values of every dimension, the plainest first, before any excludes another."""
    stores = tuple(f"native.{name}" for name in sorted(facts.stores))
    by_default = {
        "serialize": ("none", "copy", "json", *stores),
        "resume": ("same", "fresh") if "resume" in scenario.vary else ("same",),
        "history": ("whole", "append") if "history" in scenario.vary else ("whole",),
        "stream": (False, True),
        "source": ("held", "restored", "rebuilt"),
        "oracle": scenario_oracles(scenario),
        "chunking": DIMENSIONS["chunking"] if "chunking" in scenario.vary else ("whole", "interleaved"),
        "protocol": ("native", *facts.protocols),
    }
    pinned = {**scenario.only, "serialize": _with_stores(scenario.only.get("serialize"), stores)}
    chosen = {name: _narrow(values, pinned.get(name), overrides.get(name)) for name, values in by_default.items()}
    # A scenario may pin a protocol that this agent does not speak.
    spoken = tuple(protocol for protocol in chosen["protocol"] if protocol in by_default["protocol"])
    return {**chosen, "protocol": spoken if "protocol" in (*scenario.vary, *overrides) else spoken[:1]}


def _with_stores(modes: tuple[Any, ...] | None, stores: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Replace the word for all durable stores by the agent's stores; keep it for an agent without any."""
    if modes is None or not stores:
        return modes
    return tuple(expanded for mode in modes for expanded in (stores if mode == ANY_STORE else (mode,)))


def scenario_oracles(scenario: Scenario) -> tuple[str, ...]:
    """Return the oracles of a scenario: its own, else both constant ones if it leaves requests open."""
    if scenario.oracles:
        return scenario.oracles
    if scenario.has_decisions or not _leaves_requests_open(scenario):
        return ("script",)
    return ("approve_all", "reject_all")


def _leaves_requests_open(scenario: Scenario) -> bool:
    asks = (
        tool.approval != "never" or any(behaviour.asks_again for behaviour in tool.all_behaviours)
        for tool in scenario.tools
    )
    steps = scenario.caller or ()
    leaves = any(isinstance(step, LeaveStep) for step in steps) and not any(
        isinstance(step, LetOracleStep) for step in steps
    )
    return any(asks) and not leaves


def _narrow(
    values: tuple[Any, ...], pinned: tuple[Any, ...] | None, requested: Sequence[Any] | None
) -> tuple[Any, ...]:
    if requested is None:
        return values if pinned is None else pinned
    return tuple(value for value in requested if pinned is None or value in pinned)


def candidate_variants(scenario: Scenario, facts: Facts, overrides: Overrides) -> Iterator[Variant]:
    """Yield every variant that *scenario* allows, the plainest first, regardless of what the agent claims.

    Its values are consistent:

    - Another process gets its state as text: `json` or a durable store.
    - Only `json` can be stored in pieces.
    - Pieces of a reply are visible in a stream only.
    - Without a save nothing is restored; across a save, and in another process, the held object is a special case. It
      is the only one of an agent that is never saved while a request waits; only a turn that begins without requests
      resumes one of its saves.
    - A scenario that saves, restores or restarts needs a serialize mode; a fresh restart, or a process that is killed
      or stopped, one that leaves the process.
    - Only a stream can be cut off while it shows something, and only a durable store while it is written to, or not
      be written to. Where a server writes the files, no story reaches into them: nothing is cut off, nor lost.
    - Two sessions share one client of a provider, and its requests do not say whose they are.
    """
    held_across_saves = "source" in scenario.vary or "held" in scenario.only.get("source", ()) or "source" in overrides
    # What the scenario decides is asked once: a matrix has hundreds of points.
    must_save = "serialize" not in scenario.only and _keeps_state(scenario)
    must_leave = _restarts_fresh(scenario) or owns_processes(scenario)
    must_stream = AT_STREAM in crash_places(scenario)
    must_store = fails_to_store(scenario)
    must_own_files = must_store or rolls_back(scenario)
    has_one_session = len(session_names(scenario)) < 2
    stores_requests = facts.stores_requests
    is_resumed = stores_requests or resumes_without_requests(scenario)
    for row in product(*dimension_values(scenario, facts, overrides).values()):
        serialize, resume, history, stream, source, _, chunking, protocol = row
        is_saved = serialize != "none"
        leaves_process = is_saved and serialize != "copy"
        if (
            (resume == "same" or leaves_process)
            and (history == "whole" or serialize == "json")
            and (chunking == "whole" or stream)
            and (source != "restored" or is_saved)
            and (source != "held" or not is_saved or held_across_saves or not stores_requests)
            and (source != "held" or resume == "same" or not stores_requests)
            and (is_saved or not must_save)
            and (is_resumed or not is_saved)
            and (leaves_process or not must_leave)
            and (stream or not must_stream)
            and (not must_store or serialize.startswith(ANY_STORE))
            and (not must_own_files or serialize not in SERVER_STORES)
            and (protocol == "native" or has_one_session)
        ):
            yield Variant(**dict(zip(DIMENSIONS, row, strict=True)))


def _keeps_state(scenario: Scenario) -> bool:
    return any(isinstance(step, (SaveStep, RestoreStep, RestartStep)) for step in all_steps(scenario))


def _restarts_fresh(scenario: Scenario) -> bool:
    return any(isinstance(step, RestartStep) and step.fresh for step in all_steps(scenario))
