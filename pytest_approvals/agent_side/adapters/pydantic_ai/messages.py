"""The names of tools as the framework has them.

The framework wants the tools of one agent to have different names. Where two servers offer tools of one name, they get
the server's name as a prefix, as the framework advises; towards the world they keep their own.

Messages of the framework in the neutral form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract import MAIN, Item, ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ToolCallPart


ANSWER_TOOL = "final_result"
"""The tool by which a model gives a structured answer, as the framework calls it."""

SpecsByName = Mapping[tuple[str, str], ToolSpec]
"""Tools by agent and by the name that the framework has for them."""

RenamedTools = tuple[tuple[str, str, str | None], ...]
"""The tools of one agent that are renamed: the framework's name, their own, and their server."""


def index_specs(specs: Iterable[ToolSpec]) -> dict[tuple[str, str], ToolSpec]:
    """Gives the tools by agent and by the name that the framework has for them."""
    listed = list(specs)
    return {
        (spec.agent, f"{spec.server}_{spec.name}" if _is_name_shared(spec, listed) else spec.name): spec
        for spec in listed
    }


def get_original_name(name: str, specs: SpecsByName) -> str:
    """Gives a tool's own name, by the name that the framework has for it on the main agent."""
    spec = specs.get((MAIN, name))
    return spec.name if spec else name


def list_renamed_tools(specs: Iterable[ToolSpec]) -> RenamedTools:
    """Gives those tools of one agent that the framework has under another name."""
    pairs = ((name, spec) for (_, name), spec in index_specs(specs).items())
    return tuple((name, spec.name, spec.server) for name, spec in pairs if name != spec.name)


def _is_name_shared(spec: ToolSpec, specs: Iterable[ToolSpec]) -> bool:
    """Another tool of the same agent has the same name as this tool of a server."""
    same = [other for other in specs if (other.agent, other.name) == (spec.agent, spec.name)]
    return spec.server is not None and len(same) > 1


def to_items(messages: Iterable[ModelMessage], renamed: RenamedTools = (), answers: Collection[str] = ()) -> list[Item]:
    """
    Gives the input of the model as a provider would get it; *messages* went through the framework's repairs.

    Arguments:
        renamed: The tools that go by their own name in the neutral form.
        answers: The tools by which the model gives structured answers.
    """
    own = {name: tool for name, tool, _ in renamed}
    parts = ((part, number) for number, message in enumerate(messages) for part in message.parts)
    return [
        _to_answer_item(part, number) if getattr(part, "tool_name", None) in answers else _to_item(part, number, own)
        for part, number in parts
    ]


def _to_answer_item(part: Any, number: int) -> Item:
    """A structured answer, or what the framework tells about it."""
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
    """Releases before 2.0 answer a call with a retry prompt; one without a tool is a message to the model."""
    if part.tool_name is None:
        return Item(kind="user", text=part.model_response(), message=number)
    return _to_result_item(part, part.model_response(), number, own)


def _content_text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(getattr(part, "content", part)) for part in content)


def read_arguments(part: ToolCallPart) -> dict[str, Any] | str:
    """
    Gives the arguments of a call as the framework sends them.

    The framework keeps an object where the model gave one and a text where it was streamed; both mean the same. What is
    no object is sent wrapped into one; releases that do not wrap it send the text.
    """
    try:
        return dict(part.args_as_dict())
    except (ValueError, AssertionError):
        return str(part.args)
