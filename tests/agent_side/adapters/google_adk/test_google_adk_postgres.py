"""`DatabaseSessionService` of Google ADK on a PostgreSQL server."""

from __future__ import annotations

from tests.agent_side.adapters.postgres_stories import PostgresStories


class TestDatabaseSessionService(PostgresStories):
    """It keeps sessions with their requests."""
