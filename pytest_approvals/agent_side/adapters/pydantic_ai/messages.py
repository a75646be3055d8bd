"""Messages of the framework as neutral items, and the names of tools in them.

The framework wants the tools of one agent to have different names. If two servers offer tools of one name, they get the
server's name as a prefix, as the framework advises; the world knows them by their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Item, ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ToolCallPart


ANSWER_TOOL = "final_result"
"""The tool by which a model gives a structured answer, in the framework's name for it."""

SpecsByName = Mapping[tuple[str, str], ToolSpec]
"""Tools by agent and by their name in the framework."""

RenamedTools = tuple[tuple[str, str, str | None], ...]
"""The tools of one agent that are renamed: the framework's name, their own, and their server."""


def index_specs(specs: Iterable[ToolSpec]) -> dict[tuple[str, str], ToolSpec]:
    """Return the tools by agent and by their name in the framework."""
    listed = list(specs)
    return {
        (spec.agent, f"{spec.server}_{spec.name}" if _is_name_shared(spec, listed) else spec.name): spec
        for spec in listed
    }


def get_original_name(name: str, specs: SpecsByName) -> str:
    """Return the own name of a tool of the main agent, by its name in the framework."""
    spec = specs.get((MAIN, name))
    return spec.name if spec else name


def list_renamed_tools(specs: Iterable[ToolSpec]) -> RenamedTools:
    """Return the tools of one agent that have another name in the framework."""
    pairs = ((name, spec) for (_, name), spec in index_specs(specs).items())
    return tuple((name, spec.name, spec.server) for name, spec in pairs if name != spec.name)


def _is_name_shared(spec: ToolSpec, specs: Iterable[ToolSpec]) -> bool:
    """Return whether another tool of the same agent has the same name as this tool of a server."""
    same = [other for other in specs if (other.agent, other.name) == (spec.agent, spec.name)]
    return spec.server is not None and len(same) > 1


def to_items(messages: Iterable[ModelMessage], renamed: RenamedTools = (), answers: Collection[str] = ()) -> list[Item]:
    """Return the model input as a provider would get it.

    Args:
        messages: The messages after the framework's repairs.
        renamed: The tools that have another name in the framework.
        answers: The tools by which the model gives structured answers.
    """
    own = {name: tool for name, tool, _ in renamed}
    parts = ((part, number) for number, message in enumerate(messages) for part in message.parts)
    return [
        _to_answer_item(part, number) if getattr(part, "tool_name", None) in answers else _to_item(part, number, own)
        for part, number in parts
    ]


def _to_answer_item(part: Any, number: int) -> Item:
    """Return the item of a structured answer, or of what the framework tells about it."""
    return Item(kind="other", text=_answer_text(part), message=number)


def _answer_text(part: Any) -> str:
    if part.part_kind == "tool-call":
        return str(part.args_as_json_str())
    return str(part.model_response_str() if part.part_kind == "tool-return" else part.model_response())


def _to_item(part: Any, number: int, own: Mapping[str, str]) -> Item:
    kind = part.part_kind
    if kind == "user-prompt":
        return Item(kind="user", text=_content_text(part.content), message=number)
    if kind == "text":
        return Item(kind="say", text=part.content, message=number)
    if kind == "thinking":
        # The id is the provider's: streams of a scripted model have none.
        return Item(kind="reasoning", text=part.content or None, signature=part.signature, message=number)
    if kind == "tool-call":
        tool = own.get(part.tool_name, part.tool_name)
        return Item(kind="call", id=part.tool_call_id, tool=tool, arguments=read_arguments(part), message=number)
    if kind == "tool-return":
        return _to_result_item(part, part.model_response_str(), number, own)
    if kind == "retry-prompt":
        return _to_retry_item(part, number, own)
    return Item(kind="other", text=_content_text(getattr(part, "content", kind)), message=number)


def _to_result_item(part: Any, text: str, number: int, own: Mapping[str, str]) -> Item:
    tool = own.get(part.tool_name, part.tool_name)
    return Item(kind="result", id=part.tool_call_id, tool=tool, text=text, message=number)


def _to_retry_item(part: Any, number: int, own: Mapping[str, str]) -> Item:
    # Releases before 2.0 answer a call with a retry prompt; one without a tool is a message to the model.
    if part.tool_name is None:
        return Item(kind="user", text=part.model_response(), message=number)
    return _to_result_item(part, part.model_response(), number, own)


def _content_text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else _media_text(part) for part in content)


def _media_text(part: Any) -> str:
    """Return the text of content that is none: stored messages come back with other classes for the same data."""
    if isinstance(data := getattr(part, "data", None), bytes):
        return f"<{part.media_type} {sha256(data).hexdigest()[:12]}>"
    return str(getattr(part, "url", getattr(part, "content", part)))


def read_arguments(part: ToolCallPart) -> dict[str, Any] | str:
    """Return the arguments of a call as the framework sends them.

    The framework keeps an object if the model gave one and a text if it was streamed; both mean the same. Anything else
    is sent wrapped into an object; releases that do not wrap it send the text.
    """
    try:
        return dict(part.args_as_dict())
    except (ValueError, AssertionError):
        return str(part.args)
