"""Messages requests: errors of their bodies, and blocks as neutral items.

The rules are those of Anthropic's API reference; the sentences are those that the API is quoted with in the issue
trackers of its clients. Rules about the conversation are in `input_rules.py`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import MoreMessages, ParsedRequest
from pytest_approvals.protocols.provider_errors import BodyRules, Limit, ProviderError, PublishedTypes
from pytest_approvals.protocols.reasoning import ReasoningRequest, SentReasoning, read_thought_id
from pytest_approvals.protocols.schemas import COMBINATIONS, iter_schemas
from pytest_approvals.protocols.text import (
    instruction_items,
    list_objects,
    object_or_empty,
    optional_text,
    property_names,
    text_of,
    to_sorted_json,
)

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""All other rules about a body alone."""

REASONING_RULES: BodyRules[ReasoningRequest] = BodyRules()
"""The rules about reasoning that the provider has sent."""

_DATE = "2026-11-22"
_MAX_CACHE_BREAKPOINTS = 4
_LEAST_TOP_P_OF_THINKING = 0.95
_THINKING = ("thinking", "redacted_thinking")
_ROOTS = ("message_create_params", "anthropic.types.message_create_params")
_READ = "2026-11-23"
_OPENAPI = "OpenAPI of `POST /v1/messages`, copied in wavetermdev/waveterm (aiprompts)"
_OLD = "anthropic 0.125.0, documentation of the parameter"
_GEOGRAPHIES = ("global", "us")
_CITABLE = ("document", "search_result")
_OF_INSTRUCTIONS = ("text", "tool_addition", "tool_removal")
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

# `\Z` and not `$`, which would allow a line break at the end.
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")
# Of any length and alphabet, since many servers decode those, too.
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]*\Z")
_SERVER_CALL = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content of a message as blocks; a string is one text block, and an empty one is none."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list_objects(content)


def _iter_blocks(body: Mapping[str, Any]) -> Iterator[tuple[_Place, str, Mapping[str, Any]]]:
    """Yield each block with its place and the role of its message."""
    for number, message in enumerate(body["messages"]):
        content = message.get("content")
        if type(content) is str:
            if content and not content.strip():
                yield (number, 0), str(message.get("role")), {"type": "text", "text": content}
            continue
        role = str(message.get("role"))
        for index, block in enumerate(list_objects(content)):
            yield (number, index), role, block


_Place = tuple[int, int]
"""The number of a message, and that of a block in it."""


def _path_of(place: _Place) -> str:
    return f"messages.{place[0]}.content.{place[1]}"


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


@RULES.implied_by_types
def field_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `model` and `max_tokens` (API reference): "Field required"."""
    for name in ("model", "max_tokens"):
        if body.get(name) is None:
            yield ProviderError(text=f"{name}: Field required")


@RULES
def empty_input(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require a message: "at least one message is required"."""
    if not body["messages"]:
        yield ProviderError(text="messages: at least one message is required")


@RULES
def unexpected_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require one of the published roles: `user`, `assistant` or `system`.

    `SystemMessageParam` of anthropic 2.12.0 is one of them (2026-11-23); see `place_of_instructions`.
    """
    for message in body["messages"]:
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            yield ProviderError(text=f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')


@RULES
def empty_message(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require content of the user's messages in a row, which are one turn.

    "user messages must have non-empty content", for the first of a turn without content; a turn in which one message
    has content is accepted (kangminlee-maker/local-OAuth-CLI-API-adapter, requests that were sent to the API,
    2026-11-29). Until 2025 the API said so of all messages but a final one of the model. A message of the model may be
    empty in any place now: public probes of `u | a[] | u` and `u | a (content: "") | u` have status 200 (2026-07-25).
    """
    number = 0
    for role, messages in groupby(body["messages"], lambda message: message.get("role")):
        turn = list(messages)
        if role == "user" and not any(message.get("content") for message in turn):
            yield ProviderError(text=f"messages.{number}: user messages must have non-empty content")
        number += len(turn)


@RULES
def content_of_instructions(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require content of a system message among the messages: texts, and tools that are added or removed.

    Requests that were sent to the API in kangminlee-maker/local-OAuth-CLI-API-adapter,
    `anthropic-messages-validation-parity` (2026-11-29). The form without content that has an `output_config` is
    published in the beta types of anthropic 2.12.0.
    """
    for number, message in enumerate(body["messages"]):
        if message.get("role") != "system" or _is_directive(message):
            continue
        blocks, text = blocks_of(message), ""
        if "content" not in message:
            text = f"messages.{number}.content: Field required"
        elif message["content"] == []:
            text = f"messages.{number}: system content must contain at least one block"
        elif any(block.get("type") not in _OF_INSTRUCTIONS for block in blocks):
            text = f"messages.{number}: role 'system' supports text, tool_addition, and tool_removal blocks only"
        elif message["content"] == "" or any(_is_blank(block) for block in blocks):
            text = f"messages.{number}: system text blocks must contain non-whitespace text"
        if text:
            yield ProviderError(text=text)


def _is_directive(message: Mapping[str, Any]) -> bool:
    """Return whether a message says nothing to the model and only configures what it writes."""
    return message.get("role") == "system" and not message.get("content") and bool(message.get("output_config"))


def _is_blank(block: Mapping[str, Any]) -> bool:
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()


_ANY_PLACE = "the directive-only form (content: [] with output_config) is accepted at any position"


@RULES
def place_of_instructions(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require system messages to stand behind the user, or a result of the provider's tool, and before the model.

    "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result" and "must
    precede an 'assistant' message or end the array": anthropics/claude-code#73821, and both halves measured in
    tokenparty-net/llm-xlate (FINDINGS, 2) and kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29). Several in a
    row count as one; messages that only configure may stand anywhere.
    """
    numbered = [(number, one) for number, one in enumerate(body["messages"]) if not _is_directive(one)]
    before: Mapping[str, Any] | None = None
    runs = [(role, list(run)) for role, run in groupby(numbered, lambda pair: pair[1].get("role"))]
    for (role, run), (follows, _) in pairwise([*runs, ("", [])]):
        (first, _), (last, message) = run[0], run[-1]
        if role == "system" and before is None:
            text = f"messages.{first}: use the top-level 'system' parameter for the initial system prompt; {_ANY_PLACE}"
            yield ProviderError(text=text)
        elif role == "system" and not _can_be_instructed_after(before or {}):
            text = (
                f"messages.{first}: role 'system' must follow a 'user' message or an 'assistant' message ending in a "
                f"server tool result; {_ANY_PLACE}"
            )
            yield ProviderError(text=text)
        elif role == "system" and follows == "user":
            text = f"messages.{last}: role 'system' must precede an 'assistant' message or end the array; {_ANY_PLACE}"
            yield ProviderError(text=text)
        before = message


def _can_be_instructed_after(message: Mapping[str, Any]) -> bool:
    if message.get("role") != "assistant":
        return True
    blocks = blocks_of(message)
    return bool(blocks) and _is_server_result(blocks[-1])


def _is_server_result(block: Mapping[str, Any]) -> bool:
    """Return whether a block is the result of a tool that the provider runs."""
    return str(block.get("type")).endswith("_tool_result")


@RULES
def empty_block(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an empty text block: "text content blocks must be non-empty"."""
    for _, _, block in _iter_blocks(body):
        if block.get("type") == "text" and block.get("text") == "":
            yield ProviderError(text="messages: text content blocks must be non-empty")
    for block in list_objects(body.get("system")):
        if block.get("text") == "":
            yield ProviderError(text="system: text content blocks must be non-empty")


@RULES
def trailing_white_space(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a prefilled assistant message that ends in white space."""
    # What continues a thread without a message of its own ends in what the provider sent.
    last = body["messages"][-1] if body["messages"] and not is_continued(body) else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    text = str(blocks[-1].get("text") or "") if blocks else ""
    if text != text.rstrip():
        yield ProviderError(text="messages: final assistant content cannot end with trailing whitespace")


@RULES
def block_of_the_other_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require calls in assistant messages and results in user messages."""
    roles = {"tool_use": "assistant", "tool_result": "user"}
    for place, role, block in _iter_blocks(body):
        kind = str(block.get("type"))
        if kind in roles and role != roles[kind]:
            yield ProviderError(text=f"{_path_of(place)}: `{kind}` blocks can only be in `{roles[kind]}` messages")


@RULES
def malformed_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require call ids to match a pattern, which ids of another provider may not do.

    That of the provider's own calls is in the OpenAPI of `POST /v1/messages` (2026-11-23).
    """
    names = {"tool_use": "id", "tool_result": "tool_use_id"}
    for place, _, block in _iter_blocks(body):
        kind = str(block.get("type"))
        held = block.get(names[kind]) if kind in names else None
        if isinstance(held, str) and held and not _ID.match(held):
            text = f"{_path_of(place)}.{kind}.{names[kind]}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield ProviderError(text=text, ids=(held,))
        server_id = block.get("id")
        if kind == "server_tool_use" and isinstance(server_id, str) and not _SERVER_CALL.match(server_id):
            text = f"{_path_of(place)}.{kind}.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
            yield ProviderError(text=text, ids=(server_id,))


@RULES
def result_without_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `tool_use_id` of a result (API reference)."""
    for place, _, block in _iter_blocks(body):
        if block.get("type") == "tool_result" and not block.get("tool_use_id"):
            yield ProviderError(text=f"{_path_of(place)}.tool_result.tool_use_id: Field required")


@RULES.about("tools")
def tool_names_not_unique(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse two tools of one name."""
    names = Counter(str(tool["name"]) for tool in list_objects(body.get("tools")) if tool.get("name"))
    if any(times > 1 for times in names.values()):
        yield ProviderError(text="tools: Tool names must be unique.")


@RULES.about("tools")
def name_of_tool(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow up to 128 letters, digits, underscores and dashes in tool names.

    `Tool.name` of the OpenAPI of `POST /v1/messages`, and anthropics/claude-code#96152 (2026-11-23).
    """
    for index, tool in enumerate(list_objects(body.get("tools"))):
        name = tool.get("name")
        if isinstance(name, str) and not _TOOL.match(name):
            text = f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            yield ProviderError(text=text)


@RULES.about("tools")
def schema_not_an_object(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the schema of a tool's input to be that of an object (published types, 2026-11-22).

    It has no combination at its top (anthropics/claude-code#5319, 2026-11-23), and the names of its own properties have
    at most 64 letters, digits, underscores, dots and dashes (beautyfree/appstore-connect-mcp#2, 2026-11-23).
    """
    for index, tool in enumerate(list_objects(body.get("tools"))):
        schema = tool.get("input_schema")
        where = f"tools.{index}.custom.input_schema"
        if isinstance(schema, Mapping) and any(word in schema for word in COMBINATIONS):
            text = f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level"
            yield ProviderError(text=text)
        if not all(_PROPERTY.match(str(name)) for name in property_names(schema)):
            text = f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
            yield ProviderError(text=text)
        if not isinstance(schema, Mapping) or schema.get("type") == "object":
            continue
        what = "Input should be 'object'" if "type" in schema else "Field required"
        yield ProviderError(text=f"tools.{index}.custom.input_schema.type: {what}")


@RULES
def too_many_cache_breakpoints(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow four blocks with `cache_control`: "A maximum of 4 blocks with cache_control may be provided".

    Quoted in tghamm/Anthropic.SDK#50 and continuedev/continue#6937 (2026-11-22). None can be of an empty text block
    (askalf/dario#1066, 2026-11-22).
    """
    marked = list(_iter_marked(body))
    if len(marked) > _MAX_CACHE_BREAKPOINTS:
        text = f"A maximum of {_MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
        yield ProviderError(text=text)
    if any(block.get("type") == "text" and not block.get("text") for block in marked):
        yield ProviderError(text="messages: cache_control cannot be set for empty text blocks")


def _iter_cacheable(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("tools", "system"):
        if name in body:
            yield from list_objects(body[name])
    for message in body["messages"]:
        for block in list_objects(message.get("content")):
            yield block
            if block.get("type") == "tool_result":
                yield from list_objects(block.get("content"))


@RULES
def cache_lifetimes_out_of_order(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a block that is cached for an hour behind one that is cached for five minutes.

    Quoted in headroomlabs-ai/headroom#2939 and vellum-ai/vellum-assistant#22191 (2026-11-25).
    """
    lifetimes = [object_or_empty(block.get("cache_control")).get("ttl") or "5m" for block in _iter_marked(body)]
    if any(early == "5m" and late == "1h" for early, late in pairwise(lifetimes)):
        text = (
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )
        yield ProviderError(text=text)


@RULES.about("cache_control", reads_messages=True)
def cache_lifetime_of_the_request(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse five minutes for the whole request if its last block is cached for an hour.

    "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'", quoted in
    vellum-ai/vellum-assistant#23414 (2026-11-29).
    """
    ttl = object_or_empty(body.get("cache_control")).get("ttl") or "5m"
    blocks = blocks_of(body["messages"][-1]) if body["messages"] else []
    held = object_or_empty(blocks[-1].get("cache_control")).get("ttl") if blocks else None
    if body.get("cache_control") and (ttl, held) == ("5m", "1h"):
        text = "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'"
        yield ProviderError(text=text)


def _iter_marked(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (block for block in _iter_cacheable(body) if block.get("cache_control"))


def has_breakpoints(body: Mapping[str, Any]) -> bool:
    """Return whether any block of an accepted body is to be cached."""
    return any(True for _ in _iter_marked(body))


@RULES
def thinking_at_the_end(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking as the last block of a last message of the model.

    Quoted in tailcallhq/forgecode#2107 and measured in router-for-me/CLIProxyAPI#5321 (2026-11-25), where an earlier
    message may end in it.
    """
    last = body["messages"][-1] if body["messages"] and not is_continued(body) else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    if blocks and blocks[-1].get("type") in _THINKING:
        number = len(body["messages"]) - 1
        yield ProviderError(text=f"messages.{number}: The final block in an assistant message cannot be `thinking`.")


@RULES
def not_base64(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require base64 as the data of a source whose published type says so (anthropic 2.12.0, 2026-11-25)."""
    for place, _, block in _iter_blocks(body):
        source = object_or_empty(block.get("source"))
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str) and not _BASE64.match(data):
            yield ProviderError(text=f"{_path_of(place)}.{block.get('type')}.source.base64.data: Invalid base64 data")


_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""How files of the media types begin; a WebP file is recognized by two words."""


@RULES
def image_of_another_type(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an image that begins like one of another type, also in a result.

    "The image was specified using the image/jpeg media type, but the image appears to be a image/png image", quoted in
    vybestack/llxprt-code#2130 (2026-11-29). What begins like none of the four types is accepted.
    """
    for path, image in _iter_images(body):
        source = object_or_empty(image.get("source"))
        said = source.get("media_type")
        seen = _read_image_type(source.get("data")) if source.get("type") == "base64" else None
        if seen is not None and said in _IMAGE_TYPES and seen != said:
            text = (
                f"{path}.image.source.base64: The image was specified using the {said} media type, but the image "
                f"appears to be a {seen} image"
            )
            yield ProviderError(text=text)


def _iter_images(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each image with its path, also those in results."""
    for place, _, block in _iter_blocks(body):
        if block.get("type") == "image":
            yield _path_of(place), block
        elif block.get("type") == "tool_result":
            for at, part in enumerate(list_objects(block.get("content"))):
                if part.get("type") == "image":
                    yield f"{_path_of(place)}.tool_result.content.{at}", part


_IMAGE_TYPES = (*dict.fromkeys(_SIGNATURES.values()), "image/webp")


def _read_image_type(data: Any) -> str | None:
    """Return the media type that base64 begins like; None for another one.

    >>> _read_image_type("iVBORw0KGgoAAAANSUhEUg"), _read_image_type("aGk=")
    ('image/png', None)
    """
    if not isinstance(data, str):
        return None
    try:
        head = b64decode(data[:16] + "=" * (-len(data[:16]) % 4))
    except (Error, ValueError):
        return None
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _SIGNATURES.items() if head.startswith(begin)), None)


@RULES
def citations_of_some_documents(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse citations of some documents only.

    "Citations must be enabled on all or none of the documents within a request": the guide of citations, as quoted in
    UKGovernmentBEIS/inspect_ai#4527 (2026-11-25).
    """
    documents = [block for _, _, block in _iter_blocks(body) if block.get("type") == "document"]
    if len({object_or_empty(document.get("citations")).get("enabled") is True for document in documents}) > 1:
        yield ProviderError(text="messages: citations must be enabled on all or none of the documents")


@RULES.about("output_config", "output_format", reads_messages=True)
def citations_in_a_schema(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse citations together with a schema of the answer.

    "Citations cannot be used together with Structured Outputs": of documents and search results, with status 400 (the
    guide of citations, feature compatibility, 2026-11-29).
    """
    cited = any(
        block.get("type") in _CITABLE and object_or_empty(block.get("citations")).get("enabled") is True
        for _, _, block in _iter_blocks(body)
    )
    if cited and _wants_json(body):
        yield ProviderError(text="output_config.format: citations cannot be used together with structured outputs")


@RULES
def error_with_other_content_than_text(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a result that is an error, with an image or something else in it that is not text.

    "all content must be type `text` if `is_error` is true": quoted in vellum-ai/vellum-assistant#18387, and in
    caozhiyuan/copilot-api#196 (2026-11-26).
    """
    for place, _, block in _iter_blocks(body):
        is_text = all(part.get("type") == "text" for part in list_objects(block.get("content")))
        if block.get("type") == "tool_result" and block.get("is_error") is True and not is_text:
            text = f"{_path_of(place)}.tool_result: all content must be type `text` if `is_error` is true"
            yield ProviderError(text=text)


@RULES.about("tools")
def domains_allowed_and_blocked(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a search with both allowed and blocked domains (anthropic 2.12.0, documentation of the parameter)."""
    for index, tool in enumerate(list_objects(body.get("tools"))):
        if tool.get("allowed_domains") and tool.get("blocked_domains"):
            yield ProviderError(text=f"tools.{index}: `allowed_domains` and `blocked_domains` cannot be used together")


@RULES.about("tools")
def wildcard_in_a_domain(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a wildcard in a domain; in the path behind it, it is accepted.

    "Invalid: `*.example.com`, `ex*.com`", with status 400 (guide of server tools, domain filtering, 2026-11-29).
    """
    for index, tool in enumerate(list_objects(body.get("tools"))):
        for name in ("allowed_domains", "blocked_domains"):
            domains = tool.get(name)
            for place, domain in enumerate(domains if isinstance(domains, list) else ()):
                if isinstance(domain, str) and "*" in domain.partition("/")[0]:
                    text = f"tools.{index}.{name}.{place}: wildcards are not allowed in the domain: {domain}"
                    yield ProviderError(text=text)


@RULES.about("mcp_servers")
def servers_and_toolsets_differ(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require one toolset of each server, and a server of each toolset.

    "MCP server 'mcp' is defined but not referenced by any `mcp_toolset` in `tools`", quoted in
    anthropics/anthropic-sdk-csharp#255, and the guide as quoted in its #267 (2026-11-25). In requests without toolsets,
    servers have their tools by themselves, as in the first version of the interface.
    """
    servers = Counter(str(server.get("name")) for server in list_objects(body.get("mcp_servers")))
    tools = list_objects(body.get("tools"))
    toolsets = Counter(str(tool.get("mcp_server_name")) for tool in tools if tool.get("type") == "mcp_toolset")
    if not toolsets:
        return
    for name in sorted(servers.keys() - toolsets.keys()):
        yield ProviderError(text=f"MCP server '{name}' is defined but not referenced by any `mcp_toolset` in `tools`.")
    for name in sorted(toolsets.keys() - servers.keys()):
        yield ProviderError(text=f"MCP server '{name}' is not defined in `mcp_servers`.")
    for name in sorted(name for name, times in (servers + toolsets).items() if max(servers[name], toolsets[name]) > 1):
        yield ProviderError(text=f"MCP server '{name}' must be defined once and referenced by one `mcp_toolset`.")


@RULES.about("tools")
def all_tools_deferred(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require a tool that is loaded at once: "At least one tool must have defer_loading=false".

    Quoted in nearai/ironclaw#7274 (2026-11-26).
    """
    tools = list_objects(body.get("tools"))
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        text = "At least one tool must have defer_loading=false. All tools cannot be deferred."
        yield ProviderError(text=text)


@RULES.about("tools")
def deferred_tool_cached(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a cache breakpoint at a tool that is loaded later.

    "cannot have both defer_loading=true and cache_control set", quoted in router-for-me/CLIProxyAPI#4561 and
    Wei-Shaw/sub2api#4990 (2026-11-29).
    """
    for tool in list_objects(body.get("tools")):
        if tool.get("defer_loading") is True and tool.get("cache_control"):
            text = (
                f"Tool '{tool.get('name')}' cannot have both defer_loading=true and cache_control set. Tools with "
                "defer_loading cannot use prompt caching."
            )
            yield ProviderError(text=text)


@RULES
def result_of_an_unknown_server_call(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the call of each result of a tool that the provider runs, before it.

    "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it", quoted in
    anthropics/claude-code#64383, #65726 and #95406 (2026-11-26).
    """
    called: set[str] = set()
    for place, _, block in _iter_blocks(body):
        kind = str(block.get("type"))
        if kind == "server_tool_use":
            called.add(str(block.get("id")))
        elif kind.endswith("_tool_result") and kind != "mcp_tool_result" and block.get("tool_use_id"):
            call_id = str(block["tool_use_id"])
            if call_id not in called:
                text = (
                    f"{_path_of(place)}: unexpected `tool_use_id` found in `{kind}` blocks: {call_id}. Each `{kind}` "
                    "block must have a corresponding `server_tool_use` block before it."
                )
                yield ProviderError(text=text, ids=(call_id,))


@RULES
def server_call_without_result(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the result of each tool that the provider runs before the user says something else than results.

    "A block added after the results, such as text, tells the API that the assistant turn is over. For a server tool
    Claude called directly, that leaves the turn with an unresolved server tool call, and the request fails with a 400"
    (guide of server tools, mixing server tools and client tools, 2026-11-29). A turn that was paused may end in the
    call, and calls from within a program wait for that.
    """
    waiting: dict[str, str] = {}
    for number, message in enumerate(body["messages"]):
        blocks = blocks_of(message)
        if message.get("role") == "assistant":
            for block in blocks:
                caller = object_or_empty(block.get("caller")).get("type") or "direct"
                if block.get("type") == "server_tool_use" and caller == "direct":
                    waiting[str(block.get("id"))] = str(block.get("name"))
                elif _is_server_result(block):
                    waiting.pop(str(block.get("tool_use_id")), None)
        elif message.get("role") == "user" and any(block.get("type") != "tool_result" for block in blocks):
            for call_id, name in waiting.items():
                text = (
                    f"messages.{number}: `{name}` tool use with id `{call_id}` was found without a corresponding "
                    f"`{_result_of(name)}` block"
                )
                yield ProviderError(text=text, ids=(call_id,))
            waiting = {}


def _result_of(name: str) -> str:
    """Return the type of the result of a server tool; both tools that search for tools have the same.

    >>> _result_of("web_fetch"), _result_of("tool_search_tool_bm25")
    ('web_fetch_tool_result', 'tool_search_tool_result')
    """
    return "tool_search_tool_result" if name.startswith("tool_search_tool_") else f"{name}_tool_result"


@RULES
def caller_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the program that a call names as its caller, before it: "source tool ... not found".

    Measured in aakshintala/fiber, `Anthropic Messages facts, probed`, where a call without its caller is accepted
    (2026-11-29).
    """
    programs: set[str] = set()
    for place, _, block in _iter_blocks(body):
        if block.get("type") == "server_tool_use":
            programs.add(str(block.get("id")))
        caller = object_or_empty(block.get("caller")).get("tool_id")
        if isinstance(caller, str) and caller not in programs:
            text = f"{_path_of(place)}.{block.get('type')}.caller: source tool {caller} not found"
            yield ProviderError(text=text, ids=(caller,))


@RULES.about("tools")
def strict_tool_with_open_objects(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require closed objects in the schema of a strict tool, also inside of others (vercel/ai#20681, 2026-11-26)."""
    for index, tool in enumerate(list_objects(body.get("tools"))):
        if tool.get("strict") is True and _has_open_objects(tool.get("input_schema")):
            text = f"tools.{index}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"
            yield ProviderError(text=text)


def _has_open_objects(schema: Any) -> bool:
    parts = iter_schemas(object_or_empty(schema))
    return any(part.get("type") == "object" and part.get("additionalProperties") is not False for part in parts)


@RULES.about("output_config", "output_format")
def answer_with_open_objects(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require closed objects of the schema of an answer, whose properties may all be optional.

    Quoted in ax-llm/ax#458, veryfront/veryfront-code#3918 and BerriAI/litellm#35811 (2026-11-25).
    """
    for name, wanted in (
        ("output_config.format", object_or_empty(body.get("output_config")).get("format")),
        ("output_format", body.get("output_format")),
    ):
        if _has_open_objects(object_or_empty(wanted).get("schema")):
            text = f"{name}.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            yield ProviderError(text=text)


@RULES.about("thinking")
def thinking_budget_too_large(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `thinking.budget_tokens` to be less than `max_tokens`.

    The published types say so (anthropic 2.12.0, 2026-11-22); thinking that is interleaved with tools may have more.
    """
    budget, most = object_or_empty(body.get("thinking")).get("budget_tokens"), body.get("max_tokens")
    if type(budget) is int and type(most) is int and budget >= most and not body.get("tools"):
        yield ProviderError(text="`max_tokens` must be greater than `thinking.budget_tokens`.")


@RULES.about("thinking")
def thinking_with_forced_tool(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking together with a forced tool: "Thinking may not be enabled when tool_choice forces tool use".

    Quoted in mastra-ai/mastra#7507 and usestrix/strix#503 (2026-11-22).
    """
    forced = object_or_empty(body.get("tool_choice")).get("type") in ("any", "tool")
    if forced and object_or_empty(body.get("thinking")).get("type") == "enabled":
        yield ProviderError(text="Thinking may not be enabled when tool_choice forces tool use.")


@RULES.about("thinking")
def thinking_with_sampling(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking together with another temperature than 1, with `top_k`, or with a `top_p` below 0.95.

    MartialBE/one-hub#529, and the documentation as quoted in LostRuins/lite.koboldai.net#108 (2026-11-23);
    SEMOSS/Semoss#1655 (2026-11-25). In adaptive mode the temperature alone is quoted: tokenparty-net/llm-xlate
    (FINDINGS, 4) and dotCipher/opencode-claude-bridge#1 measured it (2026-11-29).
    """
    mode = object_or_empty(body.get("thinking")).get("type")
    temperature = body.get("temperature")
    if mode in ("enabled", "adaptive") and temperature is not None and temperature != 1:
        also = " or in adaptive mode" if mode == "adaptive" else ""
        yield ProviderError(text=f"`temperature` may only be set to 1 when thinking is enabled{also}.")
    if mode != "enabled":
        return
    if body.get("top_k") is not None:
        yield ProviderError(text="`top_k` must be unset when thinking is enabled.")
    top_p = body.get("top_p")
    if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P_OF_THINKING:
        text = f"`top_p` must be greater than or equal to {_LEAST_TOP_P_OF_THINKING} or unset when thinking is enabled."
        yield ProviderError(text=text)


@RULES.about("tool_choice")
def tool_choice_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the tool of `tool_choice` to be one of the tools, and tools if a call is required.

    The API reference of `tool_choice` lets it force one of the provided tools (2026-11-22).
    """
    choice, tools = object_or_empty(body.get("tool_choice")), list_objects(body.get("tools"))
    # Servers bring tools of which only they know the names.
    if choice.get("type") not in ("any", "tool") or body.get("mcp_servers"):
        return
    if not tools:
        yield ProviderError(text="tool_choice: tool_choice may only be specified while providing tools.")
        return
    is_open = any(not tool.get("name") for tool in tools)
    name = choice.get("name")
    if isinstance(name, str) and not is_open and name not in [tool.get("name") for tool in tools]:
        yield ProviderError(text=f"Tool '{name}' not found in provided tools")


@RULES.about("stop_sequences")
def blank_stop_sequence(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require text in stop sequences.

    "each stop sequence must contain non-whitespace", quoted in BerriAI/litellm#3286 (2026-11-22).
    """
    sequences = body.get("stop_sequences")
    if isinstance(sequences, list) and any(isinstance(text, str) and not text.strip() for text in sequences):
        yield ProviderError(text="stop_sequences: each stop sequence must contain non-whitespace")


@RULES.about("container")
def container_without_program(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse the identifier of a container of a request without tools that run in one.

    "Container identifier can only be provided when using the code execution tool", measured in
    tokenparty-net/llm-xlate (FINDINGS, 12) and kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29). Later web
    tools run code, too (guide of server tools), so that any tool of the provider excuses it.
    """
    container = body.get("container")
    named = container if isinstance(container, str) else object_or_empty(container).get("id")
    if named and all(tool.get("type") in (None, "custom") for tool in list_objects(body.get("tools"))):
        text = "container: Container identifier can only be provided when using the code execution tool"
        yield ProviderError(text=text)


@RULES.about("inference_geo")
def geography_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow the two regions: "must be one of ['global', 'us']".

    Measured in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    geography = body.get("inference_geo")
    if isinstance(geography, str) and geography not in _GEOGRAPHIES:
        yield ProviderError(text=f"inference_geo: must be one of {list(_GEOGRAPHIES)}")


@RULES.about("stream")
def stream_not_boolean(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse null as `stream`, which earlier types of the client allow: "Input should be a valid boolean".

    Measured in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    if body.get("stream", False) is None:
        yield ProviderError(text="stream: Input should be a valid boolean")


@RULES.about("max_tokens")
def cache_filled_with_an_answer(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse what only an answer has of a request for none, whose `max_tokens` is 0.

    It fills the cache; a stream, a schema of the answer and a forced tool are refused (a public summary of what the
    guide of prompt caching says about pre-warming, 2026-11-29). Thinking needs a budget below `max_tokens`.
    """
    if body.get("max_tokens") != 0:
        return
    refused = {
        "stream": body.get("stream") is True,
        "output_config.format": _wants_json(body),
        "tool_choice": object_or_empty(body.get("tool_choice")).get("type") in ("any", "tool"),
    }
    for name in (name for name, is_set in refused.items() if is_set):
        yield ProviderError(text=f"{name}: cannot be used when `max_tokens` is 0")


# --- reasoning --------------------------------------------------------------------------------------------------------


@REASONING_RULES
def thinking_missing(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the thinking that led to calls in front of them, as long as only their results came since.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`", quoted in anomalyco/opencode#3077,
    mastra-ai/mastra#7799 and deepset-ai/haystack-core-integrations#2146 (2026-11-25). It holds if `thinking` is
    enabled; with `adaptive`, messages need not begin with it, and without, it may be left out (documentation of
    extended thinking). A script that does not think is no model with thinking, so nothing is asked of what it sent.
    """
    number, message = _find_latest_reply(request.body)
    blocks = blocks_of(message)
    is_enabled = object_or_empty(request.body.get("thinking")).get("type") == "enabled"
    if not is_enabled or not blocks or blocks[0].get("type") in _THINKING:
        return
    if any(step in request.sent.by_signature for step in request.sent.expect_steps(_call_ids(blocks))):
        text = (
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
            "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
        )
        yield ProviderError(text=text)


@REASONING_RULES
def signature_invalid(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Refuse thinking whose text or signature is another one than was sent: "Invalid `signature` in `thinking` block".

    Quoted in ding113/claude-code-hub#518 and lbjlaq/Antigravity-Manager#498; "the check fails when a block differs in
    any way from what was originally returned" (anthropics/anthropic-sdk-python#1598, 2026-11-25). Thinking that this
    provider did not send is taken as it is.
    """
    texts = {thought.text for thought in request.sent.by_signature.values()}
    for place, _, block in _iter_blocks(request.body):
        if block.get("type") != "thinking":
            continue
        thought = request.sent.by_signature.get(str(block.get("signature")))
        is_changed = thought.text != block.get("thinking") if thought is not None else block.get("thinking") in texts
        if is_changed:
            yield ProviderError(text=f"{_path_of(place)}: Invalid `signature` in `thinking` block")


@REASONING_RULES
def thinking_modified(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the thinking of the latest reply in its order and places: it "cannot be modified".

    Quoted in anthropics/claude-code#63284, #63548 and #13201; reordered and merged blocks are refused, too
    (anthropics/anthropic-sdk-python#1598, 2026-11-25).
    """
    number, message = _find_latest_reply(request.body)
    blocks = blocks_of(message)
    steps = request.sent.keep_known([_step_of(block) for block in blocks])
    thinking = [index for index, block in enumerate(blocks) if block.get("type") in _THINKING]
    if thinking and steps != request.sent.expect_steps(_call_ids(blocks)) and _call_ids(blocks):
        text = (
            f"{_path_of((number, thinking[0]))}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            "message cannot be modified. These blocks must remain as they were in the original response."
        )
        yield ProviderError(text=text)


def _find_latest_reply(body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """Return the latest message of the model with its number; an empty one if the user said something since."""
    for number, message in reversed(list(enumerate(body["messages"]))):
        if message.get("role") == "assistant":
            return number, message
        if not any(block.get("type") == "tool_result" for block in blocks_of(message)):
            break
    return 0, {}


def _call_ids(blocks: list[Mapping[str, Any]]) -> list[str]:
    return [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _step_of(block: Mapping[str, Any]) -> str:
    name = {"thinking": "signature", "redacted_thinking": "data", "tool_use": "id"}.get(str(block.get("type")), "")
    return str(block.get(name) or "")


# --- threads ----------------------------------------------------------------------------------------------------------

_CREATE_ONLY = ("system", "tools")


@dataclass(slots=True)
class StoredThread:
    """A conversation up to a response of the provider, which holds it.

    Attributes:
        fields: What the request that created it said, which the following ones do not repeat.
        messages: The messages up to the response, with it.
        is_continued: Whether a request has continued from the response.
    """

    fields: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    is_continued: bool = False


Threads = dict[str, StoredThread]
"""The threads by the ids of the responses that they can be continued from."""


def is_continued(body: Mapping[str, Any]) -> bool:
    """Return whether a request continues a thread."""
    return object_or_empty(body.get("thread")).get("type") == "continue"


def previous_of(body: Mapping[str, Any]) -> str | None:
    """Return the id of the response that a request continues from; None if it continues no thread."""
    return str(object_or_empty(body["thread"]).get("previous_message_id")) if is_continued(body) else None


def find_thread_errors(body: Mapping[str, Any], threads: Threads) -> Iterator[ProviderError]:
    """Yield what is wrong with the thread that a request continues.

    The codes and what they mean are those of `ThreadNotFoundError` and `ThreadAlreadyContinuedError` of anthropic
    2.12.0; its `CREATE_ONLY_FIELDS` are what "the server takes from the thread on a `continue` and rejects if the
    request repeats them" (2026-11-23).
    """
    previous = previous_of(body)
    if previous is None:
        return
    thread = threads.get(previous)
    if thread is None:
        text = f"thread: No usable Thread state was found for `previous_message_id` {previous}."
        code = "thread_not_found"
        yield ProviderError(rule="thread-not-found", text=text, status=404, kind="not_found_error", code=code)
    elif thread.is_continued:
        text = f"thread: The response {previous} has already been continued, and each can be continued only once."
        yield ProviderError(rule="thread-already-continued", text=text, code="thread_already_continued")
    for name in _CREATE_ONLY:
        if name in body:
            text = f"{name}: cannot be set on a request that continues a thread"
            yield ProviderError(rule="thread-repeats-fields", text=text)


def resolve_thread(body: Mapping[str, Any], threads: Threads) -> Mapping[str, Any]:
    """Return a body with what the provider holds of its conversation."""
    thread = threads.get(previous_of(body) or "")
    if thread is None:
        return body
    return {**body, **thread.fields, "messages": [*thread.messages, *body["messages"]]}


def store_thread(body: Mapping[str, Any], threads: Threads, message: Mapping[str, Any]) -> None:
    """Hold the conversation of a resolved body under the id of its response, if it asks for that."""
    if not body.get("thread"):
        return
    previous = previous_of(body)
    if previous in threads:
        threads[previous].is_continued = True
    fields = {name: body[name] for name in _CREATE_ONLY if name in body}
    said = {"role": "assistant", "content": message["content"]}
    threads[message["id"]] = StoredThread(fields, (*body["messages"], *([said] if said["content"] else [])))


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
        wants_json=_wants_json(body),
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
    if last["role"] == "assistant" and _ends_in_white_space(blocks_of(last)[-1]):
        return None
    return tuple(read_items(more.new, more.start)), more.words


_DECIDED_LATER = frozenset({"system", "server_tool_use"})
"""Words of messages that may be wrong because of what follows them."""


def _is_plain(message: Mapping[str, Any]) -> bool:
    """Return whether a message that has the published types breaks no rule of this module, wherever it stands."""
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
    is_plain = type(held) is str and _ID.match(held) is not None
    if type(content) is list:
        return is_plain and all(type(part) is dict and part.keys() == _TEXT_FIELDS for part in content)
    return is_plain and type(content) is str


def _ends_in_white_space(block: Mapping[str, Any]) -> bool:
    text = str(block.get("text") or "")
    return text != text.rstrip()


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


def _wants_json(body: Mapping[str, Any]) -> bool:
    # `output_format` is the earlier name of `output_config.format`.
    return bool(body.get("output_format") or object_or_empty(body.get("output_config")).get("format"))
