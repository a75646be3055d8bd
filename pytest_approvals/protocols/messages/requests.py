"""Messages requests: bodies against the published types and the rules, and blocks as neutral items.

The rules are those of Anthropic's API reference; the sentences are those that the API is quoted with in the issue
trackers of its clients. Each part of a body has a module of rules; those about the conversation are in
`input_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import MoreMessages, ParsedRequest
from pytest_approvals.protocols.messages.bodies import CALL_ID, blocks_of, ends_in_white_space, wants_json
from pytest_approvals.protocols.messages.message_rules import MESSAGE_RULES
from pytest_approvals.protocols.messages.parameter_rules import PARAMETER_RULES
from pytest_approvals.protocols.messages.reasoning_rules import REASONING_RULES, THINKING_RULES
from pytest_approvals.protocols.messages.threads import Threads, find_thread_errors, resolve_thread
from pytest_approvals.protocols.messages.tool_rules import TOOL_RULES
from pytest_approvals.protocols.provider_errors import BodyRules, Limit, ProviderError, PublishedTypes
from pytest_approvals.protocols.reasoning import ReasoningRequest, SentReasoning, read_thought_id
from pytest_approvals.protocols.text import (
    instruction_items,
    list_objects,
    optional_text,
    property_names,
    text_of,
    to_sorted_json,
)

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES = BodyRules(MESSAGE_RULES, TOOL_RULES, PARAMETER_RULES, THINKING_RULES)
"""All other rules about a body alone."""

_DATE = "2026-11-22"
_ROOTS = ("message_create_params", "anthropic.types.message_create_params")
_READ = "2026-11-23"
_OPENAPI = "OpenAPI of `POST /v1/messages`, copied in wavetermdev/waveterm (aiprompts)"
_OLD = "anthropic 0.125.0, documentation of the parameter"
_SDK = "anthropic 2.12.0, documentation of the parameter"


def _limits(root: str, prefix: str) -> Iterator[Limit]:
    base = f"{root}.MessageCreateParamsBase"
    yield Limit(field=f"{base}.temperature", minimum=0, maximum=1, source=_OLD, date=_DATE)
    yield Limit(field=f"{base}.top_p", minimum=0, maximum=1, source=_OPENAPI, date=_READ)
    yield Limit(field=f"{base}.top_k", minimum=0, source=_OPENAPI, date=_READ)
    # Zero fills the prompt cache without an answer.
    yield Limit(field=f"{base}.max_tokens", minimum=0, source=_SDK, date=_DATE)
    enabled = f"{prefix}ThinkingConfigEnabledParam.budget_tokens"
    yield Limit(field=enabled, minimum=1024, source=_SDK, date=_DATE)
    yield Limit(field=f"{base}.model", min_length=1, max_length=256, source=_OPENAPI, date="2026-11-25")
    # A message of the model may be sent back as the client's own object.
    for block in ("ToolUseBlockParam", "ToolUseBlock"):
        yield Limit(field=f"{prefix}{block}.name", min_length=1, max_length=200, source=_OPENAPI, date=_READ)


LIMITS = (*_limits(_ROOTS[0], "Beta"), *_limits(_ROOTS[1], ""))
"""Bounds of values, beside the published ones."""

TYPES = PublishedTypes(
    str(Path(__file__).with_name("published_types.json")),
    LIMITS,
    bounds=str(Path(__file__).with_name("published_bounds.json")),
)


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Input should be a valid dictionary")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require `messages`, an array of objects (API reference)."""
    if not isinstance(body, Mapping):
        return
    if "messages" not in body:
        yield ProviderError(text="messages: Field required")
    elif not isinstance(body["messages"], list):
        yield ProviderError(text="messages: Input should be a valid list")
    else:
        for number, message in enumerate(body["messages"]):
            if not isinstance(message, Mapping):
                yield ProviderError(text=f"messages.{number}: Input should be a valid dictionary")


def parse_request(body: Mapping[str, Any], threads: Threads, sent: SentReasoning) -> ParsedRequest:
    """Read a body that has the shape of a request against what the provider holds and has sent."""
    fits = TYPES.fits(body)
    is_continuing = bool(body.get("thread"))
    thread_errors = tuple(find_thread_errors(body, threads)) if is_continuing else ()
    if is_continuing:
        body = resolve_thread(body, threads)
    errors = thread_errors or RULES.check(body, body, fits=fits)
    if sent and not errors:
        errors = REASONING_RULES.check(ReasoningRequest(body=body, sent=sent))
    tools = list_objects(body.get("tools"))
    return ParsedRequest(
        body=body,
        items=(*instruction_items(body.get("system")), *read_items(body["messages"])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(str(tool.get("name")) for tool in tools),
        parameters={str(tool.get("name")): property_names(tool.get("input_schema")) for tool in tools},
        wants_json=wants_json(body),
        body_errors=errors,
        fits_types=fits,
        has_signatures=True,
        is_stateful=is_continuing or bool(sent),
    )


def read_more(more: MoreMessages) -> tuple[tuple[Item, ...], frozenset[str]] | None:
    """Return the items of messages that follow accepted ones; the words of all messages are not needed.

    None if any is not as simple as nearly all are: texts, calls, and results that are texts. See
    `ProtocolCodec.read_more`.
    """
    before = more.body["messages"][more.start - 1] if more.start else None
    # A turn of the user may be empty no longer, and what follows decides about instructions and calls of the provider.
    if before is not None and not before.get("content"):
        return None
    if not more.words.isdisjoint(_DECIDED_LATER):
        return None
    if not TYPES.fits_more("messages", more.body, more.new) or not all(map(_is_plain, more.new)):
        return None
    last = more.new[-1]
    # What the model is to go on with may not end in white space.
    if last["role"] == "assistant" and ends_in_white_space(blocks_of(last)[-1]):
        return None
    return tuple(read_items(more.new, more.start)), more.words


_DECIDED_LATER = frozenset({"system", "server_tool_use"})
"""Words of messages that may be wrong because of what follows them."""


def _is_plain(message: Mapping[str, Any]) -> bool:
    """Return whether a message that has the published types breaks no rule about a body, wherever it stands."""
    role, content = message.get("role"), message.get("content")
    if len(message) != 2 or not content or role not in _PLAIN_FIELDS:
        return False
    if type(content) is str:
        return True
    return type(content) is list and all(_is_plain_block(block, role) for block in content)


_TEXT_FIELDS = frozenset({"type", "text"})
_PLAIN_FIELDS: dict[str, dict[str, tuple[frozenset[str], str]]] = {
    "user": {"tool_result": (frozenset({"type", "tool_use_id", "content"}), "tool_use_id")},
    "assistant": {"tool_use": (frozenset({"type", "id", "name", "input"}), "id")},
}
"""By role and type of a block: its fields, and the one that holds the id of a call."""


def _is_plain_block(block: Any, role: str) -> bool:
    if type(block) is not dict:
        return False
    if block.get("type") == "text":
        return block.keys() == _TEXT_FIELDS and type(block["text"]) is str and block["text"] != ""
    fields, name = _PLAIN_FIELDS[role].get(str(block.get("type")), (None, ""))
    if block.keys() != fields:
        return False
    held, content = block[name], block.get("content", "")
    is_plain = type(held) is str and CALL_ID.match(held) is not None
    if type(content) is list:
        return is_plain and all(type(part) is dict and part.keys() == _TEXT_FIELDS for part in content)
    return is_plain and type(content) is str


def read_items(messages: list[Mapping[str, Any]], start: int = 0) -> Iterator[Item]:
    """Yield the items of messages; each message has its number, from *start* on.

    Consecutive text blocks of the model are one text. Each text block of the caller is a message of its own: clients
    put several messages into one if the model said nothing in between.
    """
    for number, message in enumerate(messages, start):
        role = str(message.get("role"))
        for is_text, blocks in groupby(blocks_of(message), _is_text):
            if is_text and role == "assistant":
                yield Item(kind="say", text="".join(str(block["text"]) for block in blocks), message=number)
            elif is_text:
                kind = "other" if role == "system" else "user"
                yield from (Item(kind=kind, text=str(block["text"]), message=number) for block in blocks)
            else:
                yield from (_read_block(block, number, role) for block in blocks)


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _read_block(block: Mapping[str, Any], number: int, role: str) -> Item:
    kind = block.get("type")
    if kind in ("thinking", "redacted_thinking"):
        signature = optional_text(block.get("signature" if kind == "thinking" else "data"))
        return Item(
            kind="reasoning",
            id=read_thought_id(signature),
            text=optional_text(block.get("thinking")),
            signature=signature,
            message=number,
        )
    if kind == "tool_use":
        arguments = block.get("input")
        arguments = arguments if isinstance(arguments, Mapping) else to_sorted_json(arguments)
        call_id, tool = optional_text(block.get("id")), optional_text(block.get("name"))
        return Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=number)
    if kind == "tool_result":
        text = text_of(block.get("content"))
        return Item(kind="result", id=optional_text(block.get("tool_use_id")), text=text, message=number)
    # Images, documents and the like are said by the user; the rest are blocks of the model and of its servers.
    return Item(kind="user" if role == "user" else "other", text=to_sorted_json(dict(block)), message=number)
