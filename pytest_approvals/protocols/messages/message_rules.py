"""Rules about the messages of a body of Messages: their roles, their blocks, and the instructions between them."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any

from pytest_approvals.protocols.messages.bodies import (
    CALL_ID,
    blocks_of,
    is_continued,
    is_server_result,
    iter_blocks,
    path_of,
    wants_json,
)
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError
from pytest_approvals.protocols.text import list_objects, object_or_empty

MESSAGE_RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""The rules about messages."""

_OF_INSTRUCTIONS = ("text", "tool_addition", "tool_removal")
_CITABLE = ("document", "search_result")
_SERVER_CALL = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")
# Of any length and alphabet, since many servers decode those, too.
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]*\Z")


@MESSAGE_RULES
def empty_input(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require a message: "at least one message is required"."""
    if not body["messages"]:
        yield ProviderError(text="messages: at least one message is required")


@MESSAGE_RULES
def unexpected_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require one of the published roles: `user`, `assistant` or `system`.

    `SystemMessageParam` of anthropic 2.12.0 is one of them (2026-11-23); see `place_of_instructions`.
    """
    for message in body["messages"]:
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            yield ProviderError(text=f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')


@MESSAGE_RULES
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


@MESSAGE_RULES
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


@MESSAGE_RULES
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
    return bool(blocks) and is_server_result(blocks[-1])


@MESSAGE_RULES
def empty_block(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an empty text block: "text content blocks must be non-empty"."""
    for _, _, block in iter_blocks(body):
        if block.get("type") == "text" and block.get("text") == "":
            yield ProviderError(text="messages: text content blocks must be non-empty")
    for block in list_objects(body.get("system")):
        if block.get("text") == "":
            yield ProviderError(text="system: text content blocks must be non-empty")


@MESSAGE_RULES
def trailing_white_space(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a prefilled assistant message that ends in white space."""
    # What continues a thread without a message of its own ends in what the provider sent.
    last = body["messages"][-1] if body["messages"] and not is_continued(body) else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    text = str(blocks[-1].get("text") or "") if blocks else ""
    if text != text.rstrip():
        yield ProviderError(text="messages: final assistant content cannot end with trailing whitespace")


@MESSAGE_RULES
def block_of_the_other_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require calls in assistant messages and results in user messages."""
    roles = {"tool_use": "assistant", "tool_result": "user"}
    for place, role, block in iter_blocks(body):
        kind = str(block.get("type"))
        if kind in roles and role != roles[kind]:
            yield ProviderError(text=f"{path_of(place)}: `{kind}` blocks can only be in `{roles[kind]}` messages")


@MESSAGE_RULES
def malformed_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require call ids to match a pattern, which ids of another provider may not do.

    That of the provider's own calls is in the OpenAPI of `POST /v1/messages` (2026-11-23).
    """
    names = {"tool_use": "id", "tool_result": "tool_use_id"}
    for place, _, block in iter_blocks(body):
        kind = str(block.get("type"))
        held = block.get(names[kind]) if kind in names else None
        if isinstance(held, str) and held and not CALL_ID.match(held):
            text = f"{path_of(place)}.{kind}.{names[kind]}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield ProviderError(text=text, ids=(held,))
        server_id = block.get("id")
        if kind == "server_tool_use" and isinstance(server_id, str) and not _SERVER_CALL.match(server_id):
            text = f"{path_of(place)}.{kind}.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
            yield ProviderError(text=text, ids=(server_id,))


@MESSAGE_RULES
def result_without_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `tool_use_id` of a result (API reference)."""
    for place, _, block in iter_blocks(body):
        if block.get("type") == "tool_result" and not block.get("tool_use_id"):
            yield ProviderError(text=f"{path_of(place)}.tool_result.tool_use_id: Field required")


@MESSAGE_RULES
def error_with_other_content_than_text(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a result that is an error, with an image or something else in it that is not text.

    "all content must be type `text` if `is_error` is true": quoted in vellum-ai/vellum-assistant#18387, and in
    caozhiyuan/copilot-api#196 (2026-11-26).
    """
    for place, _, block in iter_blocks(body):
        is_text = all(part.get("type") == "text" for part in list_objects(block.get("content")))
        if block.get("type") == "tool_result" and block.get("is_error") is True and not is_text:
            text = f"{path_of(place)}.tool_result: all content must be type `text` if `is_error` is true"
            yield ProviderError(text=text)


@MESSAGE_RULES
def not_base64(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require base64 as the data of a source whose published type says so (anthropic 2.12.0, 2026-11-25)."""
    for place, _, block in iter_blocks(body):
        source = object_or_empty(block.get("source"))
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str) and not _BASE64.match(data):
            yield ProviderError(text=f"{path_of(place)}.{block.get('type')}.source.base64.data: Invalid base64 data")


_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""How files of the media types begin; a WebP file is recognized by two words."""


@MESSAGE_RULES
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
    for place, _, block in iter_blocks(body):
        if block.get("type") == "image":
            yield path_of(place), block
        elif block.get("type") == "tool_result":
            for at, part in enumerate(list_objects(block.get("content"))):
                if part.get("type") == "image":
                    yield f"{path_of(place)}.tool_result.content.{at}", part


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


@MESSAGE_RULES
def citations_of_some_documents(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse citations of some documents only.

    "Citations must be enabled on all or none of the documents within a request": the guide of citations, as quoted in
    UKGovernmentBEIS/inspect_ai#4527 (2026-11-25).
    """
    documents = [block for _, _, block in iter_blocks(body) if block.get("type") == "document"]
    if len({object_or_empty(document.get("citations")).get("enabled") is True for document in documents}) > 1:
        yield ProviderError(text="messages: citations must be enabled on all or none of the documents")


@MESSAGE_RULES.about("output_config", "output_format", reads_messages=True)
def citations_in_a_schema(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse citations together with a schema of the answer.

    "Citations cannot be used together with Structured Outputs": of documents and search results, with status 400 (the
    guide of citations, feature compatibility, 2026-11-29).
    """
    cited = any(
        block.get("type") in _CITABLE and object_or_empty(block.get("citations")).get("enabled") is True
        for _, _, block in iter_blocks(body)
    )
    if cited and wants_json(body):
        yield ProviderError(text="output_config.format: citations cannot be used together with structured outputs")
