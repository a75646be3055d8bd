"""
The variants of a scenario: which points of its matrix are run on an agent.

Every pair of values that can stand together does so in some variant (`strength` says 1, 2, 3, or `full` for all of
them). What can stand together is said once, in `is_consistent`; what an agent does not claim is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any, Protocol

from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS
from pytest_approvals.agents.versions import release_sort_key
from pytest_approvals.errors import UnknownName
from pytest_approvals.scenario.model import (
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    SaveStep,
    Scenario,
    Variant,
)
from pytest_approvals.scenario.requirements import all_steps, required_by_content, required_by_variant, session_names
from pytest_approvals.scenario.stored_states import list_stored_states
from pytest_approvals.scenario.vocabulary import ANY_STORE, DIMENSIONS

STRENGTHS: dict[Any, int | None] = {"1": 1, "2": 2, "3": 3, "full": None, 1: 1, 2: 2, 3: 3, None: None}
"""How many values at a time are covered in every combination, by word and by number; None: all."""

Overrides = Mapping[str, Sequence[Any]]
"""Dimensions with the values that a person asked for, in place of the default ones."""

Upgrade = tuple[str, str]
"""An agent's name without its release, and the release."""

Row = tuple[Any, ...]


class AgentCapabilities(Protocol):
    """What must be known of an agent."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it claims."""

    @property
    def stores(self) -> Mapping[str, str]:
        """Its durable stores."""

    @property
    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """The protocols over which it reaches its model, each with what it cannot do there."""


def plan_variants(
    scenario: Scenario,
    facts: AgentCapabilities,
    *,
    strength: str | int | None = "2",
    overrides: Overrides | None = None,
    upgrade: Upgrade | None = None,
) -> tuple[Variant, ...]:
    """
    Gives the variants in which an agent runs *scenario*, the base variant first; none where it cannot.

    Arguments:
        strength: How many values at a time are covered in every combination: 1, 2, 3, or `full`.
        overrides: Values that a person asked for; a value that the scenario does not allow gives no variant.
        upgrade: What the agent is called without its release, and the release: states that older ones saved are taken
            up in variants of their own.

    Errors:
        UnknownName: *strength* is none.
    """
    if strength not in STRENGTHS:
        raise UnknownName("strength", str(strength), ["1", "2", "3", "full"])
    asked = overrides or {}
    allowed = [one for one in allowed_variants(scenario, facts, asked) if one.resume != "cold"]
    chosen = [
        Variant(**dict(zip(DIMENSIONS, row, strict=True))) for row in _cover(_to_rows(allowed), STRENGTHS[strength])
    ]
    elsewhere = [one for one in _process_variants(scenario, facts, asked) if one not in chosen]
    over = _protocol_variants(scenario, facts, asked)
    return (*chosen, *elsewhere, *over, *_upgrade_variants(scenario, facts, asked, upgrade))


def missing_capabilities(scenario: Scenario, facts: AgentCapabilities) -> frozenset[str]:
    """
    Gives the capabilities that the agent lacks for the plainest variant of *scenario*; none where it can run it.

    Where several variants are equally plain, it is the one for which the fewest are missing.
    """
    needed = (required_by_variant(scenario, one) for one in candidate_variants(scenario, facts, {}))
    lacking = [one - facts.capabilities for one in needed]
    return min(lacking, key=len, default=frozenset()) | (required_by_content(scenario) - facts.capabilities)


def allowed_variants(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides) -> list[Variant]:
    """Gives every variant that *scenario* allows and the agent can run, the plainest first."""
    needed = required_by_content(scenario)
    if not needed <= facts.capabilities:
        return []
    claimed = {"native": facts.capabilities}
    claimed |= {name: facts.capabilities - {*PROTOCOLS[name], *lacks} for name, lacks in facts.protocols.items()}
    possible_ones = candidate_variants(scenario, facts, overrides)
    return [one for one in possible_ones if needed | required_by_variant(scenario, one) <= claimed[one.protocol]]


# --- what there is to choose from -------------------------------------------------------------------------------------


def dimension_values(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides) -> dict[str, tuple[Any, ...]]:
    """Gives the values of every dimension, the plainest first, before anything is known to exclude another."""
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
    spoken = tuple(one for one in chosen["protocol"] if one in by_default["protocol"])
    return {**chosen, "protocol": spoken if "protocol" in (*scenario.vary, *overrides) else spoken[:1]}


def _with_stores(modes: tuple[Any, ...] | None, stores: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Puts the agent's durable stores in place of the word for all of them, which stays where it has none."""
    if modes is None or not stores:
        return modes
    return tuple(mode for one in modes for mode in (stores if one == ANY_STORE else (one,)))


def scenario_oracles(scenario: Scenario) -> tuple[str, ...]:
    """Gives the oracles of a scenario: its own, or both constant ones where the deciding is left to them."""
    if scenario.oracles:
        return scenario.oracles
    if scenario.decides_itself or not _leaves_requests_open(scenario):
        return ("script",)
    return ("approve_all", "reject_all")


def _leaves_requests_open(scenario: Scenario) -> bool:
    asks = (
        tool.approval != "never" or any(one.asks_again for several in _behaviour_lists(tool) for one in several)
        for tool in scenario.tools
    )
    steps = scenario.caller or ()
    leaves = any(isinstance(step, LeaveStep) for step in steps) and not any(
        isinstance(step, LetOracleStep) for step in steps
    )
    return any(asks) and not leaves


def _behaviour_lists(tool: Any) -> tuple[Any, ...]:
    return (tool.behaviours, *tool.per_call.values())


def _narrow(values: tuple[Any, ...], pinned: tuple[Any, ...] | None, asked: Sequence[Any] | None) -> tuple[Any, ...]:
    if asked is None:
        return values if pinned is None else pinned
    return tuple(value for value in asked if pinned is None or value in pinned)


def candidate_variants(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides) -> Iterator[Variant]:
    """Gives every variant that *scenario* allows, whatever the agent claims, the plainest first."""
    held_across_saves = "source" in scenario.vary or "held" in scenario.only.get("source", ()) or "source" in overrides
    for row in product(*dimension_values(scenario, facts, overrides).values()):
        variant = Variant(**dict(zip(DIMENSIONS, row, strict=True)))
        if is_consistent(scenario, variant, held_across_saves=held_across_saves):
            yield variant


def is_consistent(scenario: Scenario, variant: Variant, *, held_across_saves: bool) -> bool:
    """
    Says whether the values of a variant can stand together.

    - Another process gets its state as text: `json` or a durable store.
    - Only `json` can be kept in pieces.
    - Pieces of a reply are seen in a stream only.
    - Without a save nothing is restored; across a save, and in another process, the held object is a special case.
    - A story that saves, restores or restarts needs a serialize mode; a fresh restart one that leaves the process.
    - Two sessions share one client of a provider, and its requests do not say whose they are.
    """
    saved = variant.serialize != "none"
    leaves_process = variant.serialize not in ("none", "copy")
    return (
        (variant.resume == "same" or leaves_process)
        and (variant.history == "whole" or variant.serialize == "json")
        and (variant.chunking == "whole" or variant.stream)
        and (variant.source != "restored" or saved)
        and (variant.source != "held" or not saved or held_across_saves)
        and (variant.source != "held" or variant.resume == "same")
        and (saved or "serialize" in scenario.only or not _keeps_state(scenario))
        and (leaves_process or not _restarts_fresh(scenario))
        and (variant.protocol == "native" or len(session_names(scenario)) < 2)
    )


def _keeps_state(scenario: Scenario) -> bool:
    return any(isinstance(step, (SaveStep, RestoreStep, RestartStep)) for step in all_steps(scenario))


def _restarts_fresh(scenario: Scenario) -> bool:
    return any(isinstance(step, RestartStep) and step.fresh for step in all_steps(scenario))


# --- choosing ---------------------------------------------------------------------------------------------------------


def _to_rows(allowed: Sequence[Variant]) -> tuple[Row, ...]:
    return tuple(tuple(getattr(one, name) for name in DIMENSIONS) for one in allowed)


@lru_cache(maxsize=1024)
def _cover(allowed: tuple[Row, ...], strength: int | None) -> tuple[Row, ...]:
    """Gives rows of *allowed* that cover every combination of so many values that stands in any of them."""
    if strength is None or len(allowed) < 2:
        return allowed
    factors = {at: tuple(dict.fromkeys(row[at] for row in allowed)) for at in range(len(DIMENSIONS))}
    free = {str(at): list(values) for at, values in factors.items() if len(values) > 1}
    fixed = allowed[0]

    def row_of(made: Mapping[str, Any]) -> Row:
        return tuple(made.get(str(at), value) for at, value in enumerate(fixed))

    return tuple(map(row_of, _covering_rows(free, allowed, min(strength, len(free)))))


def _covering_rows(free: dict[str, list[Any]], allowed: tuple[Row, ...], strength: int) -> list[dict[str, Any]]:
    from covertable import Controller  # type: ignore[import-untyped]

    base = {name: allowed[0][int(name)] for name in free}
    together = [*combinations(free, 2), tuple(free)] if len(free) > 1 else [tuple(free)]
    constraints = [_constraint(names, allowed) for names in together]
    made = Controller(free, strength=strength, presets=[base], constraints=constraints).make()
    return sorted(made, key=lambda row: (row != base, *(free[name].index(row[name]) for name in free)))


def _constraint(names: tuple[str, ...], allowed: tuple[Row, ...]) -> dict[str, Any]:
    seen = {tuple(row[int(name)] for name in names) for row in allowed}
    return {
        "operator": "fn",
        "requires": list(names),
        "evaluate": lambda row: tuple(row[name] for name in names) in seen,
    }


def _process_variants(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides) -> Iterator[Variant]:
    """
    Gives the single variants that go on in another process: they are dear, and one shows what all would.

    That is one in a `fresh` process, unless the story varies or pins where it goes on or a person asks for it (`fresh`
    is then covered like any other value); and one in a `cold` process where any of them names it.
    """
    named = "resume" in overrides or "resume" in scenario.only
    varied = "resume" in scenario.vary and not named
    if not named and not varied:
        yield from _first_resumed(scenario, facts, overrides, "fresh")
    if "cold" in dimension_values(scenario, facts, overrides)["resume"]:
        yield from _first_resumed(scenario, facts, overrides, "cold")


def _protocol_variants(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides) -> Iterator[Variant]:
    """
    Gives for each protocol the plainest variant, and the one that differs most from it.

    A protocol meets the stream, the saves and the oracles in these two; all their pairs would double a matrix. Where a
    story varies the protocol, or a person asks for it, it is covered like any other value.
    """
    if "protocol" in overrides or "protocol" in scenario.vary:
        return
    for protocol in facts.protocols:
        here = {"resume": ("same",)} | dict(overrides) | {"protocol": (protocol,)}
        allowed = [one for one in allowed_variants(scenario, facts, here) if one.resume == "same"]
        yield from dict.fromkeys((*allowed[:1], *allowed[-1:]))


def _upgrade_variants(
    scenario: Scenario, facts: AgentCapabilities, overrides: Overrides, upgrade: Upgrade | None
) -> Iterator[Variant]:
    """Gives a variant for each oracle and each state that an older release saved."""
    agent, version = upgrade or ("", "")
    for state in list_stored_states(scenario, agent) if version else ():
        if release_sort_key(state.version) >= release_sort_key(version):
            continue
        asked = {"serialize": (state.serialize,), "resume": ("same",), "history": ("whole",), "stream": (False,)}
        if any(not set(values) & set(asked.get(name, values)) for name, values in overrides.items()):
            continue
        allowed = allowed_variants(scenario, facts, {**overrides, **asked, "source": ("restored", "rebuilt")})
        for oracle in dict.fromkeys(one.oracle for one in allowed):
            yield replace(next(one for one in allowed if one.oracle == oracle), saved_by=state.version)


def _first_resumed(scenario: Scenario, facts: AgentCapabilities, overrides: Overrides, resume: str) -> list[Variant]:
    asked = {**overrides, "resume": (resume,)}
    plain = {"serialize": ("json",), "source": ("restored", "rebuilt")}
    return (allowed_variants(scenario, facts, plain | asked) or allowed_variants(scenario, facts, asked))[:1]
