"""Stories that each adapter with a store on a PostgreSQL server plays: a folder's tests are a subclass."""

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


class PostgresStories:
    """What an adapter keeps on the server, and what it says of one that cannot be used."""

    @pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
    def test_an_approval_outlives_its_agent(self, play: Play, postgres: str, variant: Variant) -> None:
        """A new agent finds the request in the database; the approved call runs once, and the model is told."""
        played = play(variant=variant, options={"postgres": postgres})

        assert ["paused", "finished"] == played.outcomes
        assert [("pay", {"amount": 5})] == played.ran
        assert {"c1": "paid 5"} == played.told

    def test_a_rejection_outlives_its_agent(self, play: Play, postgres: str) -> None:
        """The call does not run, and the model is told of it."""
        played = play(
            caller=["Pay.", decide(reject("c1", "too much"))], variant=VARIANTS[0], options={"postgres": postgres}
        )

        assert ([], ["c1"]) == (played.ran, list(played.told))

    def test_a_second_agent_writes_to_the_same_tables(self, play: Play, postgres: str) -> None:
        """They are made by the first one; a database that has them serves the next run as well."""
        both = [play(variant=VARIANTS[0], options={"postgres": postgres}) for _ in range(2)]

        assert [["paused", "finished"]] * 2 == [played.outcomes for played in both]

    def test_a_server_that_cannot_be_used_is_named(self, play: Play, read_only_postgres: str) -> None:
        """With the reason and what to do, before the agent is judged."""
        played = play(variant=VARIANTS[0], options={"postgres": read_only_postgres})
        (lost,) = played.events("agent.lost")

        assert [] == played.ran
        assert "read-only transaction; it can only be read: use a store that can be written to" in lost["what"]
        assert lost["what"].startswith(
            f"native.postgres: the store at {read_only_postgres.partition('@')[2]} cannot be used: "
        )

    def test_a_server_that_is_not_there_is_named(self, play: Play) -> None:
        """What the adapter says of a refused connection names the place without the password."""
        played = play(variant=VARIANTS[0], options={"postgres": "postgresql://ann:geheim@127.0.0.1:1/approvals"})
        (lost,) = played.events("agent.lost")

        assert "the server does not answer: start it, or name another one" in lost["what"]
        assert (True, False) == ("127.0.0.1:1/approvals" in lost["what"], "geheim" in lost["what"])
