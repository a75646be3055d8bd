"""Variant planning: which points of a scenario's matrix are run on an agent.

Every pair of consistent values occurs together in some variant (`strength` is 1, 2, 3, or `full` for all
combinations). Which values are consistent is defined in `matrix`; what an agent does not claim is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any

from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agents.spec import release_sort_key
from pytest_approvals.errors import UnknownName
from pytest_approvals.scenario.covering_arrays import Row, find_cover
from pytest_approvals.scenario.matrix import Overrides, candidate_variants, dimension_values
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import VariantRequirements, required_by_content
from pytest_approvals.scenario.stored_states import list_stored_states
from pytest_approvals.scenario.vocabulary import DIMENSIONS

STRENGTHS: dict[Any, int | None] = {"1": 1, "2": 2, "3": 3, "full": None, 1: 1, 2: 2, 3: 3, None: None}
"""Number of values that are covered in every combination, by word and by number; None for all."""

Upgrade = tuple[str, str]
"""Name of an agent without its release, and the release."""


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
    matrix = _Matrix(scenario, facts)
    allowed = [variant for variant in matrix.allowed(requested) if variant.resume != "cold"]
    # Their combinations need no other variant.
    in_processes = [variant for variant in _process_variants(matrix, requested) if variant not in allowed]
    over_each = [*_protocol_variants(matrix, requested)]
    chosen, over_protocols = _cover(allowed, STRENGTHS[strength], in_processes, over_each)
    return (*chosen, *in_processes, *over_protocols, *_upgrade_variants(matrix, requested, upgrade))


def missing_capabilities(scenario: Scenario, facts: Facts) -> frozenset[str]:
    """Return the capabilities that the agent lacks for the plainest variant of *scenario*.

    If several variants are equally plain, the one that lacks the fewest counts. Empty if the agent can run it.
    """
    needs = map(VariantRequirements(scenario).of, candidate_variants(scenario, facts, {}))
    lacking = [needed - facts.abilities for needed in needs]
    return min(lacking, key=len, default=frozenset()) | (required_by_content(scenario) - facts.capabilities)


def allowed_variants(scenario: Scenario, facts: Facts, overrides: Overrides) -> list[Variant]:
    """Return every variant that *scenario* allows and the agent can run, the plainest first."""
    return _Matrix(scenario, facts).allowed(overrides)


class _Matrix:
    """Matrix of a scenario on an agent; what does not depend on overrides is computed once."""

    def __init__(self, scenario: Scenario, facts: Facts) -> None:
        self.scenario = scenario
        self.facts = facts
        self._requirements = VariantRequirements(scenario)
        needed = required_by_content(scenario)
        claimed = {"native": facts.abilities}
        # What no model can do over a protocol, and what the adapter lacks there, is not claimed in it.
        claimed |= {name: facts.abilities - {*PROTOCOLS[name], *lacks} for name, lacks in facts.protocols.items()}
        self._claimed = {name: capabilities for name, capabilities in claimed.items() if needed <= capabilities}

    def allowed(self, overrides: Overrides) -> list[Variant]:
        """Return every variant that the scenario allows and the agent can run, the plainest first."""
        if "native" not in self._claimed:
            return []
        return [
            variant
            for variant in candidate_variants(self.scenario, self.facts, overrides)
            if variant.protocol in self._claimed and self._requirements.of(variant) <= self._claimed[variant.protocol]
        ]


# --- choosing ---------------------------------------------------------------------------------------------------------


PROCESS_COST = 4
"""How many variants in one process cost as much as one that resumes in another."""

Alternatives = list[list[Variant]]
"""Variants over a protocol that can stand for each other: those of one alternative run."""


def _cover(
    allowed: Sequence[Variant], strength: int | None, present: Sequence[Variant], over_each: Sequence[Alternatives]
) -> tuple[list[Variant], list[Variant]]:
    """Return the variants of *allowed* that cover, together with those that run anyway, all combinations of values.

    The second list has the variants over the protocols.
    """
    # Alternatives have the same pairs with a protocol, but not the same threes; single values need no search.
    is_pairwise = strength == 2
    choices = [several if is_pairwise else several[:1] for several in over_each]
    by_row = {_row_of(variant): variant for variant in allowed}
    cover = find_cover(
        tuple(by_row),
        strength,
        tuple(map(_row_of, present)),
        tuple(tuple(tuple(map(_row_of, variants)) for variants in several) for several in choices),
        tuple(PROCESS_COST if is_pairwise and variant.resume != "same" else 1 for variant in by_row.values()),
    )
    over = chain.from_iterable(several[at] for several, at in zip(choices, cover.alternatives, strict=True))
    return [by_row[row] for row in cover.rows], [*over]


def _row_of(variant: Variant) -> Row:
    return tuple(getattr(variant, name) for name in DIMENSIONS)


def _process_variants(matrix: _Matrix, overrides: Overrides) -> Iterator[Variant]:
    """Yield the single variants that resume in another process; they are expensive, and one represents all.

    One resumes in a `fresh` process, unless the scenario varies or pins `resume` or a user asked for it (`fresh` is
    then covered like any other value); one in a `cold` process if any of them names it.
    """
    scenario = matrix.scenario
    named = "resume" in overrides or "resume" in scenario.only
    varied = "resume" in scenario.vary and not named
    if not named and not varied:
        yield from _first_resumed(matrix, overrides, "fresh")
    if "cold" in dimension_values(scenario, matrix.facts, overrides)["resume"]:
        yield from _first_resumed(matrix, overrides, "cold")


def _protocol_variants(matrix: _Matrix, overrides: Overrides) -> Iterator[Alternatives]:
    """Yield for each protocol the plainest variant and the one that differs most from it, and what can stand for them.

    A protocol meets streams, saves and oracles in these two; all pairs would double a matrix. Two others in which each
    value of theirs occurs do as well. What stands together in them needs no native variant. If a scenario varies the
    protocol, or a user asked for it, it is covered like any other value.
    """
    if "protocol" in overrides or "protocol" in matrix.scenario.vary:
        return
    for protocol in matrix.facts.protocols:
        requested = {"resume": ("same",)} | dict(overrides) | {"protocol": (protocol,)}
        allowed = {_row_of(variant): variant for variant in matrix.allowed(requested) if variant.resume == "same"}
        rows = [*allowed]
        if rows:
            yield [[allowed[row] for row in pair] for pair in _exchange_values(rows[0], rows[-1], allowed)]


def _exchange_values(first: Row, last: Row, allowed: Container[Row]) -> Iterator[tuple[Row, ...]]:
    """Yield two rows, and all pairs of allowed rows that come of exchanging values between them.

    If both are one row, only that is yielded.
    """
    places = [at for at, (one, other) in enumerate(zip(first, last, strict=True)) if one != other]
    if not places:
        yield (first,)
    # The first value stays: to exchange all of them would only exchange the rows.
    for exchanged in product((False, True), repeat=max(len(places) - 1, 0)):
        swapped = dict(zip(places[1:], exchanged, strict=True))
        one = tuple(last[at] if swapped.get(at) else value for at, value in enumerate(first))
        other = tuple(first[at] if swapped.get(at) else value for at, value in enumerate(last))
        if places and one in allowed and other in allowed:
            yield one, other


def _upgrade_variants(matrix: _Matrix, overrides: Overrides, upgrade: Upgrade | None) -> Iterator[Variant]:
    """Yield a variant for each oracle and each state that an older release saved."""
    agent, version = upgrade or ("", "")
    for state in list_stored_states(matrix.scenario, agent) if version else ():
        if release_sort_key(state.version) >= release_sort_key(version):
            continue
        fixed = {"serialize": (state.serialize,), "resume": ("same",), "history": ("whole",), "stream": (False,)}
        if any(not set(values) & set(fixed.get(name, values)) for name, values in overrides.items()):
            continue
        allowed = matrix.allowed({**overrides, **fixed, "source": ("restored", "rebuilt")})
        for oracle in dict.fromkeys(variant.oracle for variant in allowed):
            yield replace(next(variant for variant in allowed if variant.oracle == oracle), saved_by=state.version)


def _first_resumed(matrix: _Matrix, overrides: Overrides, resume: str) -> list[Variant]:
    requested = {**overrides, "resume": (resume,)}
    plain = {"serialize": ("json",), "source": ("restored", "rebuilt")}
    return (matrix.allowed(plain | requested) or matrix.allowed(requested))[:1]
