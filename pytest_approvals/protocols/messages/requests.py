"""Messages requests: errors of their bodies, and blocks as neutral items.

The rules are those of Anthropic's API reference; the sentences are those that the API is quoted with in the issue
trackers of its clients. Rules about the conversation are in `input_rules.py`.
"""

from __future__ import annotations

import re
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
    """Return the content of a message as blocks; a string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list_objects(content)


def _iter_blocks(body: Mapping[str, Any]) -> Iterator[tuple[_Place, str, Mapping[str, Any]]]:
    """Yield each block with its place and the role of its message."""
    for number, message in enumerate(body["messages"]):
        content = message.get("content")
        if type(content) is str:
            if not content.strip():
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

    `SystemMessageParam` of anthropic 2.12.0 may stand anywhere in `messages` (2026-11-23).
    """
    for message in body["messages"]:
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            yield ProviderError(text=f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')


@RULES
def empty_message(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require content of every message but a final assistant message."""
    last = len(body["messages"]) - 1
    for number, message in enumerate(body["messages"]):
        is_optional = message.get("role") == "system" or (number == last and message.get("role") == "assistant")
        if not message.get("content") and not is_optional:
            text = (
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
            yield ProviderError(text=text)


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


def _iter_marked(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (block for block in _iter_cacheable(body) if block.get("cache_control"))


def has_breakpoints(body: Mapping[str, Any]) -> bool:
    """Return whether any block of an accepted body is to be cached."""
    return any(True for _ in _iter_marked(body))


@RULES
def thinking_at_the_end(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking as the last block of a last message of the model.

    Quoted in tailcallhq/forgecode#2107 and measured in router-for-me/CLIProxyAPI#5321 (2026-11-25).
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


@RULES
def citations_of_some_documents(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse citations of some documents only.

    "Citations must be enabled on all or none of the documents within a request": the guide of citations, as quoted in
    UKGovernmentBEIS/inspect_ai#4527 (2026-11-25).
    """
    documents = [block for _, _, block in _iter_blocks(body) if block.get("type") == "document"]
    if len({object_or_empty(document.get("citations")).get("enabled") is True for document in documents}) > 1:
        yield ProviderError(text="messages: citations must be enabled on all or none of the documents")


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
    SEMOSS/Semoss#1655 (2026-11-25).
    """
    if object_or_empty(body.get("thinking")).get("type") != "enabled":
        return
    temperature = body.get("temperature")
    if temperature is not None and temperature != 1:
        yield ProviderError(text="`temperature` may only be set to 1 when thinking is enabled.")
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
    # Only a last message may be empty, which this one was until now.
    if before is not None and not before.get("content"):
        return None
    if not TYPES.fits_more("messages", more.body, more.new) or not all(map(_is_plain, more.new)):
        return None
    last = more.new[-1]
    # What the model is to go on with may not end in white space.
    if last["role"] == "assistant" and _ends_in_white_space(blocks_of(last)[-1]):
        return None
    return tuple(read_items(more.new, more.start)), more.words


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
