"""What the release of the framework that can be imported here has."""

from __future__ import annotations

from functools import partial

from pytest_approvals.agent_side import installed

has = partial(installed.has, "pydantic_ai")
"""Says whether the framework has a file, and in it a text; yes where no framework is here at all."""


def has_beside(package: str, path: str) -> bool:
    """Says whether another package is here and has the file or folder *path*; yes where no framework is here."""
    here = installed.folder(package) is not None and installed.has(package, path)
    return here or installed.folder("pydantic_ai") is None


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
