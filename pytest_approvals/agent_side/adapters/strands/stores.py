"""The framework's own stores: session managers, which an agent is made with."""

from __future__ import annotations

import json
import os
from typing import Any

from ...contract import Blueprint


def manager(blueprint: Blueprint, session: str) -> Any:
    """Gives the session manager that a serialize mode asks for; None where there is none."""
    if blueprint.serialize == "native.files":
        from strands.session import FileSessionManager

        return FileSessionManager(session_id=session, storage_dir=os.path.join(blueprint.directory, "sessions"))
    if blueprint.serialize == "native.snapshots":
        from strands.session import SnapshotSessionManager
        from strands.storage import LocalFileStorage

        return SnapshotSessionManager(session, storage=LocalFileStorage(blueprint.directory))
    return None


async def place(agent: Any, manager: Any, session: str) -> str:
    """
    Gives the reference into the store: the session, and where snapshots are kept, the one of this moment.

    `FileSessionManager` keeps the newest state of a session and no older one.
    """
    if not hasattr(manager, "save_snapshot"):
        return json.dumps({"session": session})
    return json.dumps({"session": session, "snapshot": await manager.save_snapshot(agent, is_latest=False)})


async def go_to(agent: Any, manager: Any, where: dict[str, Any]) -> None:
    """Goes to the snapshot that a reference names; the newest state of the session is restored without it."""
    if "snapshot" in where:
        await manager.restore_snapshot(agent, snapshot_id=where["snapshot"])
