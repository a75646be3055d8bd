"""`AsyncPostgresSaver` of LangGraph on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import decide, reject
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

VARIANTS = [
    Variant(serialize="native.postgres", source="restored"),
    Variant(serialize="native.postgres", source="rebuilt", stream=True),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
def test_an_approval_outlives_its_agent(play: Play, postgres: str, variant: Variant) -> None:
    """A new agent finds the request in the database; the approved call runs once, and the model is told."""
    played = play(variant=variant, options={"postgres": postgres})

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejection_outlives_its_agent(play: Play, postgres: str) -> None:
    """The call does not run, and the model is told of it."""
    played = play(
        caller=["Pay.", decide(reject("c1", "too much"))], variant=VARIANTS[0], options={"postgres": postgres}
    )

    assert ([], ["c1"]) == (played.ran, list(played.told))


def test_a_second_agent_writes_to_the_same_tables(play: Play, postgres: str) -> None:
    """They are made by the first one; a database that has them serves the next run as well."""
    both = [play(variant=VARIANTS[0], options={"postgres": postgres}) for _ in range(2)]

    assert [["paused", "finished"]] * 2 == [played.outcomes for played in both]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
def test_the_blocking_checkpointer_runs_the_graph_with_invoke(play: Play, postgres: str, variant: Variant) -> None:
    """`PostgresSaver` cannot be awaited; what it stores is the same."""
    played = play(variant=variant, options={"postgres": postgres, "checkpointer": "blocking"})

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told
