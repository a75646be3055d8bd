"""Messages of the framework in the neutral form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract import Item

from .naming import Renamed

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ToolCallPart


def items(messages: Iterable[ModelMessage], renamed: Renamed = (), answers: Collection[str] = ()) -> list[Item]:
    """
    Gives the input of the model as a provider would get it; *messages* went through the framework's repairs.

    Arguments:
        renamed: The tools that go by their own name in the neutral form.
        answers: The tools by which the model gives structured answers.
    """
    own = {name: tool for name, tool, _ in renamed}
    parts = ((part, number) for number, message in enumerate(messages) for part in message.parts)
    return [
        _answer(part, number) if getattr(part, "tool_name", None) in answers else _item(part, number, own)
        for part, number in parts
    ]


def _answer(part: Any, number: int) -> Item:
    """A structured answer, or what the framework tells about it."""
    return Item(kind="other", text=_answer_text(part), message=number)


def _answer_text(part: Any) -> str:
    if part.part_kind == "tool-call":
        return str(part.args_as_json_str())
    return str(part.model_response_str() if part.part_kind == "tool-return" else part.model_response())


def _item(part: Any, number: int, own: Mapping[str, str]) -> Item:
    kind = part.part_kind
    if kind == "user-prompt":
        return Item(kind="user", text=_text(part.content), message=number)
    if kind == "text":
        return Item(kind="say", text=part.content, message=number)
    if kind == "tool-call":
        tool = own.get(part.tool_name, part.tool_name)
        return Item(kind="call", id=part.tool_call_id, tool=tool, arguments=arguments(part), message=number)
    if kind == "tool-return":
        return _result(part, part.model_response_str(), number, own)
    if kind == "retry-prompt":
        return _retry(part, number, own)
    return Item(kind="other", text=_text(getattr(part, "content", kind)), message=number)


def _result(part: Any, text: str, number: int, own: Mapping[str, str]) -> Item:
    tool = own.get(part.tool_name, part.tool_name)
    return Item(kind="result", id=part.tool_call_id, tool=tool, text=text, message=number)


def _retry(part: Any, number: int, own: Mapping[str, str]) -> Item:
    """Releases before 2.0 answer a call with a retry prompt; one without a tool is a message to the model."""
    if part.tool_name is None:
        return Item(kind="user", text=part.model_response(), message=number)
    return _result(part, part.model_response(), number, own)


def _text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(getattr(part, "content", part)) for part in content)


def arguments(part: ToolCallPart) -> dict[str, Any] | str:
    """
    Gives the arguments of a call as the framework sends them.

    The framework keeps an object where the model gave one and a text where it was streamed; both mean the same. What is
    no object is sent wrapped into one; releases that do not wrap it send the text.
    """
    try:
        return dict(part.args_as_dict())
    except (ValueError, AssertionError):
        return str(part.args)
