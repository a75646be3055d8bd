"""`AsyncPostgresSaver` and `PostgresSaver` of LangGraph on a PostgreSQL server."""

from __future__ import annotations

import pytest

from pytest_approvals.scenario.model import Variant
from tests.agent_side.adapters.postgres_stories import VARIANTS, Play, PostgresStories


class TestPostgresSaver(PostgresStories):
    """It keeps the checkpoints of threads."""

    @pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
    def test_the_blocking_checkpointer_runs_the_graph_with_invoke(
        self, play: Play, postgres: str, variant: Variant
    ) -> None:
        """`PostgresSaver` cannot be awaited; what it stores is the same."""
        played = play(variant=variant, options={"postgres": postgres, "checkpointer": "blocking"})

        assert ["paused", "finished"] == played.outcomes
        assert [("pay", {"amount": 5})] == played.ran
        assert {"c1": "paid 5"} == played.told
