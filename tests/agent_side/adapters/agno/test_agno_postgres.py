"""`PostgresDb` of Agno on a PostgreSQL server."""

from __future__ import annotations

from tests.agent_side.adapters.postgres_stories import PostgresStories


class TestPostgresDb(PostgresStories):
    """It keeps sessions with their requests."""
