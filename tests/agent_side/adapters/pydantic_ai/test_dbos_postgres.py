"""The system database of DBOS on a PostgreSQL server."""

from __future__ import annotations

from functools import partial

import pytest

from tests.agent_side.adapters.postgres_stories import Play, PostgresStories

pytest.importorskip("dbos")


class TestDBOSDurability(PostgresStories):
    """It keeps the workflows of sessions."""

    @pytest.fixture
    def play(self, play: Play) -> Play:
        """Plays a story on the flavour with DBOS."""
        return partial(play, flavour="dbos")
