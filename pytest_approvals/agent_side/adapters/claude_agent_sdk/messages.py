"""Messages of the SDK: what a stream shows, the text of an agent, and the error of a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claude_agent_sdk import AssistantMessage, ProcessError, ResultMessage, TextBlock, ToolResultBlock, UserMessage
from claude_agent_sdk.types import StreamEvent

Shown = tuple[str, dict[str, Any]]
"""What a stream shows, as `World.shown` takes it."""


def read_shown(message: Any, names: Mapping[str, str]) -> Iterator[Shown]:
    """Yield what a message shows to the consumer of a stream.

    Args:
        message: The message.
        names: The names of tools in the script, by those in the CLI.
    """
    if isinstance(message, StreamEvent):
        yield from _read_event(message.event, names)
    elif isinstance(message, UserMessage) and isinstance(message.content, list):
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                yield "result", {"id": block.tool_use_id, "text": text_of(block.content)}


def _read_event(event: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Shown]:
    if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
        block = event["content_block"]
        yield "call", {"id": block["id"], "tool": names.get(block["name"], block["name"])}
    elif event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta" and event["delta"]["text"]:
        yield "text", {"text": event["delta"]["text"]}


def text_of(content: Any) -> str:
    """Return the text of the content of a result."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or ())


def read_said(message: Any) -> str:
    """Return what the agent says in a message."""
    if not isinstance(message, AssistantMessage):
        return ""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def to_error(result: ResultMessage) -> Exception:
    """Return the exception that the SDK's `query` raises for a result that is an error."""
    import claude_agent_sdk

    text = "; ".join(result.errors or ()) or result.result or result.subtype
    kind: Any = getattr(claude_agent_sdk, "ResultError", ProcessError)
    return kind(f"Claude Code returned an error result: {text}")  # type: ignore[no-any-return]
