"""
What the release of the framework that can be imported here has, read from its sources without importing it.

Names are looked for, not version numbers: a checkout has no number that says what is in it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


def has(module: str, text: str = "") -> bool:
    """
    Says whether the framework's file *module* is there and holds *text*; yes where no framework is here at all.

    Arguments:
        module: Its path below the package.
        text: What must stand in it.
    """
    folder = _folder("pydantic_ai")
    return folder is None or (text in _source(folder / module) if text else (folder / module).exists())


def has_beside(package: str, path: str) -> bool:
    """Says whether another package is here and has the file or folder *path*; yes where no framework is here."""
    folder = _folder(package)
    return _folder("pydantic_ai") is None or (folder is not None and (folder / path).exists())


@cache
def _folder(package: str) -> Path | None:
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else None


@cache
def _source(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


LACKS: dict[str, str] = {}
"""What this release cannot do, and the name that it lacks."""

if not has("_run_context.py", "tool_call_metadata"):
    LACKS |= dict.fromkeys(
        ("nested", "nested_parallel", "nested_gate"), "this release's `ApprovalRequired` takes no metadata"
    )
if not has("_agent_graph.py", "user_prompt=self.user_prompt"):
    LACKS["message_with_answers"] = "this release's `Agent.run` refuses a prompt beside `DeferredToolResults`"
if not has("messages.py", "def repair_messages"):
    LACKS["cancel"] = "this release has no `repair_messages`"
if not has("conversation_store.py"):
    LACKS["trim"] = "this release has no `ConversationStore`"
if not (has("mcp.py", "class MCPToolset") and has_beside("fastmcp", "client/transports")):
    LACKS["mcp"] = "`MCPToolset`, or the package `fastmcp` that it stands on, is not here"
