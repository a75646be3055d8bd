"""Rules about the tools of a body of Messages, those that the provider runs, and the calls of these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.messages.bodies import blocks_of, is_server_result, iter_blocks, path_of
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError
from pytest_approvals.protocols.schemas import COMBINATIONS, iter_schemas
from pytest_approvals.protocols.text import list_objects, object_or_empty, property_names

TOOL_RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""The rules about tools."""

_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")


@TOOL_RULES.about("tools")
def tool_names_not_unique(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse two tools of one name."""
    names = Counter(str(tool["name"]) for tool in list_objects(body.get("tools")) if tool.get("name"))
    if any(times > 1 for times in names.values()):
        yield ProviderError(text="tools: Tool names must be unique.")


@TOOL_RULES.about("tools")
def name_of_tool(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow up to 128 letters, digits, underscores and dashes in tool names.

    `Tool.name` of the OpenAPI of `POST /v1/messages`, and anthropics/claude-code#96152 (2026-11-23).
    """
    for index, tool in enumerate(list_objects(body.get("tools"))):
        name = tool.get("name")
        if isinstance(name, str) and not _TOOL.match(name):
            text = f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            yield ProviderError(text=text)


@TOOL_RULES.about("tools")
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


@TOOL_RULES.about("tools")
def domains_allowed_and_blocked(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a search with both allowed and blocked domains (anthropic 2.12.0, documentation of the parameter)."""
    for index, tool in enumerate(list_objects(body.get("tools"))):
        if tool.get("allowed_domains") and tool.get("blocked_domains"):
            yield ProviderError(text=f"tools.{index}: `allowed_domains` and `blocked_domains` cannot be used together")


@TOOL_RULES.about("tools")
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


@TOOL_RULES.about("mcp_servers")
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


@TOOL_RULES.about("tools")
def all_tools_deferred(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require a tool that is loaded at once: "At least one tool must have defer_loading=false".

    Quoted in nearai/ironclaw#7274 (2026-11-26).
    """
    tools = list_objects(body.get("tools"))
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        text = "At least one tool must have defer_loading=false. All tools cannot be deferred."
        yield ProviderError(text=text)


@TOOL_RULES.about("tools")
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


@TOOL_RULES.about("tools")
def strict_tool_with_open_objects(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require closed objects in the schema of a strict tool, also inside of others (vercel/ai#20681, 2026-11-26)."""
    for index, tool in enumerate(list_objects(body.get("tools"))):
        if tool.get("strict") is True and _has_open_objects(tool.get("input_schema")):
            text = f"tools.{index}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"
            yield ProviderError(text=text)


def _has_open_objects(schema: Any) -> bool:
    parts = iter_schemas(object_or_empty(schema))
    return any(part.get("type") == "object" and part.get("additionalProperties") is not False for part in parts)


@TOOL_RULES.about("output_config", "output_format")
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


@TOOL_RULES.about("tool_choice")
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


@TOOL_RULES.about("container")
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


@TOOL_RULES
def result_of_an_unknown_server_call(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the call of each result of a tool that the provider runs, before it.

    "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it", quoted in
    anthropics/claude-code#64383, #65726 and #95406 (2026-11-26).
    """
    called: set[str] = set()
    for place, _, block in iter_blocks(body):
        kind = str(block.get("type"))
        if kind == "server_tool_use":
            called.add(str(block.get("id")))
        elif kind.endswith("_tool_result") and kind != "mcp_tool_result" and block.get("tool_use_id"):
            call_id = str(block["tool_use_id"])
            if call_id not in called:
                text = (
                    f"{path_of(place)}: unexpected `tool_use_id` found in `{kind}` blocks: {call_id}. Each `{kind}` "
                    "block must have a corresponding `server_tool_use` block before it."
                )
                yield ProviderError(text=text, ids=(call_id,))


@TOOL_RULES
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
                elif is_server_result(block):
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


@TOOL_RULES
def caller_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the program that a call names as its caller, before it: "source tool ... not found".

    Measured in aakshintala/fiber, `Anthropic Messages facts, probed`, where a call without its caller is accepted
    (2026-11-29).
    """
    programs: set[str] = set()
    for place, _, block in iter_blocks(body):
        if block.get("type") == "server_tool_use":
            programs.add(str(block.get("id")))
        caller = object_or_empty(block.get("caller")).get("tool_id")
        if isinstance(caller, str) and caller not in programs:
            text = f"{path_of(place)}.{block.get('type')}.caller: source tool {caller} not found"
            yield ProviderError(text=text, ids=(caller,))
