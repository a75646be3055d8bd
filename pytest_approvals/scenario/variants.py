"""Variant planning: which points of a scenario's matrix are run on an agent.

Every pair of consistent values occurs together in some variant (`strength` is 1, 2, 3, or `full` for all
combinations). Which values are consistent is defined in `matrix`; what an agent does not claim is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agents.versions import release_sort_key
from pytest_approvals.errors import UnknownName
from pytest_approvals.scenario.matrix import Overrides, candidate_variants, dimension_values
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content, required_by_variant
from pytest_approvals.scenario.stored_states import list_stored_states
from pytest_approvals.scenario.vocabulary import DIMENSIONS

STRENGTHS: dict[Any, int | None] = {"1": 1, "2": 2, "3": 3, "full": None, 1: 1, 2: 2, 3: 3, None: None}
"""Number of values that are covered in every combination, by word and by number; None for all."""

Upgrade = tuple[str, str]
"""Name of an agent without its release, and the release."""

Row = tuple[Any, ...]


def plan_variants(
    scenario: Scenario,
    facts: Facts,
    *,
    strength: str | int | None = "2",
    overrides: Overrides | None = None,
    upgrade: Upgrade | None = None,
) -> tuple[Variant, ...]:
    """Return the variants in which an agent runs *scenario*, the base variant first.

    Args:
        scenario: The scenario.
        facts: What the agent claims.
        strength: Number of values that are covered in every combination: 1, 2, 3, or `full`.
        overrides: Values that a user asked for; a value that the scenario does not allow yields no variant.
        upgrade: Name of the agent without its release, and the release: states that older releases saved are restored
            in additional variants.

    Returns:
        The variants; none if the agent cannot run the scenario.

    Raises:
        UnknownName: *strength* is invalid.
    """
    if strength not in STRENGTHS:
        raise UnknownName("strength", str(strength), ["1", "2", "3", "full"])
    requested = overrides or {}
    # A cold process is too slow for every pair of values; `_process_variants` adds one.
    allowed = [variant for variant in allowed_variants(scenario, facts, requested) if variant.resume != "cold"]
    chosen = [
        Variant(**dict(zip(DIMENSIONS, row, strict=True))) for row in _cover(_to_rows(allowed), STRENGTHS[strength])
    ]
    in_processes = [variant for variant in _process_variants(scenario, facts, requested) if variant not in chosen]
    over_protocols = _protocol_variants(scenario, facts, requested)
    return (*chosen, *in_processes, *over_protocols, *_upgrade_variants(scenario, facts, requested, upgrade))


def missing_capabilities(scenario: Scenario, facts: Facts) -> frozenset[str]:
    """Return the capabilities that the agent lacks for the plainest variant of *scenario*.

    If several variants are equally plain, the one that lacks the fewest counts. Empty if the agent can run it.
    """
    needs = (required_by_variant(scenario, variant) for variant in candidate_variants(scenario, facts, {}))
    lacking = [needed - facts.capabilities for needed in needs]
    return min(lacking, key=len, default=frozenset()) | (required_by_content(scenario) - facts.capabilities)


def allowed_variants(scenario: Scenario, facts: Facts, overrides: Overrides) -> list[Variant]:
    """Return every variant that *scenario* allows and the agent can run, the plainest first."""
    needed = required_by_content(scenario)
    if not needed <= facts.capabilities:
        return []
    claimed = {"native": facts.capabilities}
    # What no model can do over a protocol, and what the adapter lacks there, is not claimed in it.
    claimed |= {name: facts.capabilities - {*PROTOCOLS[name], *lacks} for name, lacks in facts.protocols.items()}
    return [
        variant
        for variant in candidate_variants(scenario, facts, overrides)
        if needed | required_by_variant(scenario, variant) <= claimed[variant.protocol]
    ]


# --- choosing ---------------------------------------------------------------------------------------------------------


def _to_rows(allowed: Sequence[Variant]) -> tuple[Row, ...]:
    return tuple(tuple(getattr(variant, name) for name in DIMENSIONS) for variant in allowed)


@lru_cache(maxsize=1024)
def _cover(allowed: tuple[Row, ...], strength: int | None) -> tuple[Row, ...]:
    """Return rows of *allowed* that cover every combination of *strength* values that occurs in any of them."""
    if strength is None or len(allowed) < 2:
        return allowed
    factors = {at: tuple(dict.fromkeys(row[at] for row in allowed)) for at in range(len(DIMENSIONS))}
    free = {str(at): list(values) for at, values in factors.items() if len(values) > 1}
    fixed = allowed[0]

    def row_of(values: Mapping[str, Any]) -> Row:
        return tuple(values.get(str(at), value) for at, value in enumerate(fixed))

    return tuple(map(row_of, _covering_rows(free, allowed, min(strength, len(free)))))


def _covering_rows(free: dict[str, list[Any]], allowed: tuple[Row, ...], strength: int) -> list[dict[str, Any]]:
    from covertable import Controller  # type: ignore[import-untyped]

    # The first allowed row is the base variant, which always runs.
    base = {name: allowed[0][int(name)] for name in free}
    together = [*combinations(free, 2), tuple(free)] if len(free) > 1 else [tuple(free)]
    constraints = [_constraint(names, allowed) for names in together]
    rows = Controller(free, strength=strength, presets=[base], constraints=constraints).make()
    # The covering rows come in no useful order; variants are listed with the base first, then the plainest.
    return sorted(rows, key=lambda row: (row != base, *(free[name].index(row[name]) for name in free)))


def _constraint(names: tuple[str, ...], allowed: tuple[Row, ...]) -> dict[str, Any]:
    seen = {tuple(row[int(name)] for name in names) for row in allowed}
    return {
        "operator": "fn",
        "requires": list(names),
        "evaluate": lambda row: tuple(row[name] for name in names) in seen,
    }


def _process_variants(scenario: Scenario, facts: Facts, overrides: Overrides) -> Iterator[Variant]:
    """Yield the single variants that resume in another process; they are expensive, and one represents all.

    One resumes in a `fresh` process, unless the scenario varies or pins `resume` or a user asked for it (`fresh` is
    then covered like any other value); one in a `cold` process if any of them names it.
    """
    named = "resume" in overrides or "resume" in scenario.only
    varied = "resume" in scenario.vary and not named
    if not named and not varied:
        yield from _first_resumed(scenario, facts, overrides, "fresh")
    if "cold" in dimension_values(scenario, facts, overrides)["resume"]:
        yield from _first_resumed(scenario, facts, overrides, "cold")


def _protocol_variants(scenario: Scenario, facts: Facts, overrides: Overrides) -> Iterator[Variant]:
    """Yield for each protocol the plainest variant and the one that differs most from it.

    A protocol meets streams, saves and oracles in these two; all pairs would double a matrix. If a scenario varies the
    protocol, or a user asked for it, it is covered like any other value.
    """
    if "protocol" in overrides or "protocol" in scenario.vary:
        return
    for protocol in facts.protocols:
        requested = {"resume": ("same",)} | dict(overrides) | {"protocol": (protocol,)}
        allowed = [variant for variant in allowed_variants(scenario, facts, requested) if variant.resume == "same"]
        yield from dict.fromkeys((*allowed[:1], *allowed[-1:]))


def _upgrade_variants(
    scenario: Scenario, facts: Facts, overrides: Overrides, upgrade: Upgrade | None
) -> Iterator[Variant]:
    """Yield a variant for each oracle and each state that an older release saved."""
    agent, version = upgrade or ("", "")
    for state in list_stored_states(scenario, agent) if version else ():
        if release_sort_key(state.version) >= release_sort_key(version):
            continue
        fixed = {"serialize": (state.serialize,), "resume": ("same",), "history": ("whole",), "stream": (False,)}
        if any(not set(values) & set(fixed.get(name, values)) for name, values in overrides.items()):
            continue
        allowed = allowed_variants(scenario, facts, {**overrides, **fixed, "source": ("restored", "rebuilt")})
        for oracle in dict.fromkeys(variant.oracle for variant in allowed):
            yield replace(next(variant for variant in allowed if variant.oracle == oracle), saved_by=state.version)


def _first_resumed(scenario: Scenario, facts: Facts, overrides: Overrides, resume: str) -> list[Variant]:
    requested = {**overrides, "resume": (resume,)}
    plain = {"serialize": ("json",), "source": ("restored", "rebuilt")}
    return (allowed_variants(scenario, facts, plain | requested) or allowed_variants(scenario, facts, requested))[:1]
