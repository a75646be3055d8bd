"""The framework's own store of sessions, and its own trimming of what they hold."""

from __future__ import annotations

import warnings
from typing import Any

from ...contract import Blueprint, Unsupported


def opened(blueprint: Blueprint) -> Any:
    """Opens the store that a serialize mode asks for."""
    try:
        from agent_framework import FileSessionStore
    except ImportError as error:
        raise Unsupported("native.file", "this release has no store of sessions") from error
    with warnings.catch_warnings():
        # It is marked as experimental, which is no news to whoever chose it.
        warnings.simplefilter("ignore", FutureWarning)
        return FileSessionStore(blueprint.directory)


async def trimmed(agent: Any, session: Any, keep: int) -> None:
    """Excludes all but the last *keep* stored messages of *session*, as after a run."""
    try:
        from agent_framework import CompactionProvider, TruncationStrategy
    except ImportError as error:
        raise Unsupported("trim", "this release has no compaction of stored histories") from error
    compaction = CompactionProvider(after_strategy=TruncationStrategy(max_n=keep, compact_to=keep))
    await compaction.after_run(agent=agent, session=session, context=None, state={})
