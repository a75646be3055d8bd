"""Responses requests: errors of their bodies, and their items as neutral items.

A request is checked together with what the provider stored before it. The rules are those of OpenAI's API reference;
the sentences are those that the API is quoted with in the issue trackers of its clients. Rules about the conversation
are in `input_rules.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.media import find_file_errors, find_image_errors
from pytest_approvals.protocols.provider_errors import (
    OPENAI_NAME,
    BodyRules,
    Limit,
    ProviderError,
    PublishedTypes,
    empty_array,
    invalid_metadata,
    invalid_name,
    invalid_names,
    invalid_type,
    invalid_value,
    json_not_mentioned,
    missing_parameter,
)
from pytest_approvals.protocols.responses.stored_items import (
    ItemObject,
    ProviderStore,
    ResponsesRequest,
    is_reference,
    resolve_request,
)
from pytest_approvals.protocols.schemas import find_answer_errors, find_function_errors
from pytest_approvals.protocols.text import (
    instruction_items,
    is_json_format,
    list_objects,
    object_or_empty,
    optional_text,
    parse_object,
    property_names,
    text_of,
    to_sorted_json,
)

_REQUIRED = {
    "function_call": ("name",),
    "function_call_output": ("call_id", "output"),
    "mcp_approval_request": ("id", "name", "arguments", "server_label"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "item_reference": ("id",),
}

_DATE = "2026-11-22"
_ROOT = "response_create_params.ResponseCreateParamsBase"
_SDK = "openai 3.52.0, documentation of the parameter"
_READ = "2026-11-23"
_FEW_TOKENS = "UKGovernmentBEIS/inspect_evals#694, vectorize-io/hindsight#58: integer_below_min_value"
_LENGTH_OF_NAME = "CommandCodeAI/command-code#778: string too long; decolua/9router#444: empty string"
_LONG_ID = "orchidfiles/ungate#26, AnswerDotAI/fastllm#45: string_above_max_length"
_NAME_OF_TOOL = "openai/openai-openapi, `FunctionToolParam`"
_NAME = "^[a-zA-Z0-9_-]+$"
_NEW = "2026-11-25"
_MEASURED = "kangminlee-maker/local-OAuth-CLI-API-adapter"

LIMITS = (
    Limit(field=f"{_ROOT}.temperature", minimum=0, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.top_p", minimum=0, maximum=1, source=f"{_SDK}: a probability mass", date=_READ),
    Limit(field=f"{_ROOT}.top_logprobs", minimum=0, maximum=20, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.max_output_tokens", minimum=16, source=_FEW_TOKENS, date=_READ),
    Limit(
        field=f"{_ROOT}.max_tool_calls",
        minimum=1,
        source=f"{_MEASURED}, a request that was sent to the API: integer_below_min_value",
        date="2026-11-29",
    ),
    Limit(field=f"{_ROOT}.metadata", max_items=16, source=_SDK, date=_READ),
    Limit(field=f"{_ROOT}.prompt_cache_key", max_length=64, source="theopenco/llmgateway#3110", date=_READ),
    Limit(field=f"{_ROOT}.safety_identifier", max_length=128, source=_SDK, date=_DATE),
    Limit(field="FunctionToolParam.name", min_length=1, max_length=128, source=_NAME_OF_TOOL, date=_NEW),
    Limit(field="FileSearchToolParam.max_num_results", minimum=1, maximum=50, source=_SDK, date=_NEW),
    Limit(field="file_search_tool_param.RankingOptions.score_threshold", minimum=0, maximum=1, source=_SDK, date=_NEW),
    Limit(field="ResponseFormatTextJSONSchemaConfigParam.name", max_length=64, pattern=_NAME, source=_SDK, date=_DATE),
    Limit(field="ResponseFunctionToolCallParam.name", min_length=1, max_length=128, source=_LENGTH_OF_NAME, date=_READ),
    Limit(field="ResponseFunctionToolCallParam.call_id", max_length=64, source=_LONG_ID, date=_DATE),
    Limit(field="ResponseFunctionToolCallParam.id", max_length=64, source=_LONG_ID, date=_DATE),
    Limit(field="response_input_param.FunctionCallOutput.call_id", max_length=64, source=_LONG_ID, date=_DATE),
)
"""Bounds of values, beside the published ones."""

_OPTIONAL = {
    # BerriAI/litellm#13420 sends a function with nothing but its name.
    "FunctionToolParam": ("parameters", "strict"),
    # Messages of the model, and reasoning, are sent back without ids by openai/codex.
    "ResponseOutputMessageParam": ("id", "status", "type"),
    "ResponseOutputTextParam": ("annotations",),
    "ResponseReasoningItemParam": ("id",),
    # crmne/ruby_llm, cassettes of `attachment_handling`: an image without `detail`.
    "ResponseInputImageParam": ("detail",),
    # pydantic/pydantic-ai, cassette `test_openai_responses_image_generation_tool_without_image_output`.
    "response_input_param.ImageGenerationCall": ("result", "status"),
    # The `id` of the types is not what the API wants: see `_MORE`.
    "response_input_param.LocalShellCallOutput": ("id",),
}

# A status of null is accepted (pydantic/pydantic-ai, cassette
# `test_openai_responses_requires_function_call_status_none`), as are sources of null (posit-dev/chatlas, cassette
# `test_openai_citations_become_the_source_list`).
_NULL = ("ResponseFunctionToolCallParam", "response_function_web_search_param.ActionSearch")

_STATUS = {"values": ["in_progress", "completed", "incomplete"]}

_MORE: dict[str, dict[str, Any]] = {
    # `OpenAIConversationsSession` of openai-agents 0.24.0 sends messages back with the ids that a conversation lists. A
    # message whose content is a text may have a status (kangminlee-maker/local-OAuth-CLI-API-adapter, 2026-11-29).
    "EasyInputMessageParam": {"id": "string", "status": _STATUS},
    "response_input_param.Message": {"id": "string"},
    # openai-agents 0.24.0 sends it, since "the server actually expects call_id" (openai/openai-agents-python#1855); it
    # may stand beside the `id` of the types (openai/openai-python#3923, 2026-11-29).
    "response_input_param.LocalShellCallOutput": {"call_id": "string"},
}

TYPES = PublishedTypes(
    str(Path(__file__).with_name("published_types.json")),
    LIMITS,
    bounds=str(Path(__file__).with_name("published_bounds.json")),
    # Agno sends fields of its own with each tool, and nobody reports that they or null are refused.
    open_types=("FunctionToolParam",),
    null_types=(_ROOT, *_NULL),
    optional=_OPTIONAL,
    more=_MORE,
)

ITEM_TYPES = tuple(sorted(TYPES.words_of(f"{_ROOT}.input", "type")))

_ADDRESSES = ("server_url", "connector_id", "tunnel_id")

_ANSWERS = {
    "apply_patch_call": ("apply_patch_call_output",),
    "computer_call": ("computer_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    # openai/codex answers it like a function, as `ensure_call_outputs_present` in its history says (2026-11-29).
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
    "shell_call": ("shell_call_output",),
    # pydantic/pydantic-ai, cassettes of `test_tool_availability_portability_matrix`.
    "tool_search_call": ("tool_search_output", "function_call_output"),
}
"""Types of calls of other tools than functions, with those of the items that may answer them."""

_ANSWERING = frozenset(kind for answers in _ANSWERS.values() for kind in answers)
_ANSWERED_ONCE = ("custom_tool_call", "computer_call")

_MAY_LACK_CALL = ("function_call_output", "tool_search_output")
"""Answers whose calls other rules look for, or which the provider gives itself."""

HOSTED_CALL_PREFIX = "mcp_"
"""What stands in the id of the item of a hosted call before the id of the call."""

_PREFIXES = {"function_call": "fc", "message of assistant": "msg", "reasoning": "rs"}

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[ResponsesRequest] = BodyRules()
"""All other rules."""


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object: "expected an object"."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Invalid type for request body: expected an object.", code="invalid_type")


@SHAPE
def input_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require a string or an array of objects as `input` (API reference)."""
    value = body.get("input") if isinstance(body, Mapping) else None
    if value is not None and not isinstance(value, str | list):
        yield invalid_type("input", "one of a string or an array of objects", value)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(item, Mapping):
            yield invalid_type(f"input[{index}]", "an object", item)


@RULES
def model_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `model`, unless a prompt names it (published types, 2026-11-22)."""
    if not request.body.get("model") and not request.body.get("prompt"):
        yield missing_parameter("model")


@RULES
def input_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `input` of a request that continues no conversation and has no prompt."""
    if request.body.get("input") is None and not request.before and not request.body.get("prompt"):
        yield missing_parameter("input")


@RULES
def empty_input(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require an item, "empty array", or a text.

    An empty text is as none: "One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided",
    measured in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    if request.before or request.body.get("prompt"):
        return
    if request.body.get("input") == []:
        yield empty_array("input")
    if request.body.get("input") == "":
        text = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided."
        yield ProviderError(text=text, code="missing_required_parameter")


@RULES.about("conversation")
def two_conversations(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a request that names a response and a conversation (API reference)."""
    if request.previous is not None and request.conversation is not None:
        text = (
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only providing "
            "one of: 'conversation' or 'previous_response_id'."
        )
        yield ProviderError(text=text, code="mutually_exclusive_parameters")


@RULES.about("previous_response_id")
def previous_response_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse to continue from a response that does not exist or was not stored.

    The code is `previous_response_not_found`.
    """
    if request.previous is not None and not request.store.has_response(request.previous):
        yield ProviderError(
            text=f"Previous response with id '{request.previous}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )


@RULES.about("conversation")
def conversation_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a conversation that was not created before, with status 404."""
    if request.conversation is not None and not request.store.has_conversation(request.conversation):
        yield ProviderError(text=f"Conversation with id '{request.conversation}' not found.", status=404)


@RULES.implied_by_types
def unknown_type(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require one of the types of the API reference of every item of the input."""
    for index, item in enumerate(request.written):
        kind = item.get("type")
        # A message and a reference are recognized without it.
        if kind is None and ("role" in item or "id" in item):
            continue
        if kind not in ITEM_TYPES:
            yield invalid_value(f"input[{index}]" if kind is None else f"input[{index}].type", kind or "", ITEM_TYPES)


@RULES
def field_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the fields that the API reference requires of an item's type."""
    for index, item in enumerate(request.written):
        for name in _REQUIRED.get(str(item.get("type")), ()):
            if item.get(name) is None:
                yield missing_parameter(f"input[{index}].{name}")


@RULES.implied_by_types
def arguments_not_text(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require text as the arguments of a call, as the model wrote it."""
    for index, item in enumerate(request.written):
        if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
            yield invalid_type(f"input[{index}].arguments", "a string", item.get("arguments"))


@RULES
def reference_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a reference to an item that was not stored, with status 404."""
    for item in request.new:
        if is_reference(item):
            text = (
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input."
            )
            yield ProviderError(text=text, param="input", status=404)


_NAMED_BY_CALL = ("local_shell_call_output",)
"""Types of items whose `id` is that of the call that they answer (openai 3.52.0, documentation of the field)."""


@RULES
def duplicate_item(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse an item that comes twice: what a previous response holds is not sent again.

    Quoted in openai/openai-agents-python#1789 (a conversation), vercel/ai#15492 and vercel/ai#18605 (a previous
    response and a reference to one of its items).
    """
    new = [item for item in request.new if item.get("type") not in _NAMED_BY_CALL]
    seen = Counter(str(item["id"]) for item in (*request.before, *new) if item.get("id"))
    new_ids = {str(item["id"]): None for item in new if item.get("id")}
    for item_id in new_ids:
        # A script may give one id to several calls, as no provider would; the client must be able to send those back.
        if seen[item_id] > max(1, request.store.id_counts[item_id]):
            text = f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            yield ProviderError(text=text, param="input", ids=(item_id,))


@RULES
def trigger_not_last(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow `compaction_trigger` as the last item only: "Must be the final input item".

    openai 3.52.0, documentation of the item (2026-11-28).
    """
    for index, item in enumerate(request.written[:-1]):
        if item.get("type") == "compaction_trigger":
            param = f"input[{index}]"
            text = f"Invalid '{param}': 'compaction_trigger' must be the final input item."
            yield ProviderError(text=text, param=param, code="invalid_value")


@RULES
def malformed_id(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require ids with the prefix of their type: "Expected an ID that begins with 'fc'"."""
    for index, item in enumerate(request.written):
        kind = item.get("type") or "message"
        prefix = _PREFIXES.get(f"message of {item.get('role')}" if kind == "message" else str(kind))
        held = item.get("id")
        if prefix is not None and isinstance(held, str) and not held.startswith(prefix):
            text = f"Invalid 'input[{index}].id': '{held}'. Expected an ID that begins with '{prefix}'."
            yield ProviderError(text=text, param=f"input[{index}].id", code="invalid_value")


@RULES.about("tools")
def name_of_function(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow letters, digits, underscores and dashes in function names (API reference)."""
    yield from invalid_names(request.body.get("tools"))


@RULES
def reasoning_without_item(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the item of the model that a reasoning item led to behind it.

    Quoted in vercel/ai#7099, continuedev/continue#8933 and openai/openai-node#1567 (2026-11-22).
    """
    for item, following in zip(request.new, (*request.new, {})[1:], strict=True):
        if item.get("type") == "reasoning" and not _is_by_model(following):
            text = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            yield ProviderError(text=text, param="input")


@RULES
def item_without_reasoning(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the reasoning item that led to an item of the model, if that item is sent with its id.

    "Item 'fc_...' of type 'function_call' was provided without its required 'reasoning' item: 'rs_...'", quoted in
    VRSEN/agency-swarm#367, and of a message in continuedev/continue#11309 and mastra-ai/mastra#22291. Without the id of
    the item, the reasoning may be left out (laravel/ai#1052, 2026-11-25).
    """
    reasons = {following: reasoning for reasoning, following in request.store.led_to.items()}
    given = {str(item.get("id")) for item in (*request.before, *request.new) if item.get("type") == "reasoning"}
    for item in request.new if reasons else ():
        item_id = str(item.get("id") or "")
        if item_id in reasons and reasons[item_id] not in given:
            text = (
                f"Item '{item_id}' of type '{item.get('type') or 'message'}' was provided without its required "
                f"'reasoning' item: '{reasons[item_id]}'."
            )
            yield ProviderError(text=text, param="input", ids=(item_id,))


@RULES
def reasoning_with_other_item(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a reasoning item in front of another item than the one that it led to.

    It is "provided without its required following item", as in vercel/ai#7099; items without ids may be any.
    """
    led_to = request.store.led_to
    for item, following in pairwise(request.new) if led_to else ():
        item_id, next_id = str(item.get("id")), str(following.get("id") or "")
        known = next_id in led_to or next_id in led_to.values() or request.store.id_counts[next_id] > 0
        if item_id in led_to and known and next_id != led_to[item_id]:
            text = f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
            yield ProviderError(text=text, param="input", ids=(item_id,))


@RULES
def reasoning_not_stored(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a reasoning item that the provider did not store and that has no encrypted content, with status 404.

    Quoted in anomalyco/opencode#7724 (2026-11-25). Items that this provider did not send are taken as they are.
    """
    for item in request.new if request.store.reasoning else ():
        item_id = str(item.get("id"))
        is_known = item.get("type") == "reasoning" and item_id in request.store.reasoning
        if is_known and not item.get("encrypted_content") and request.store.get_item(item_id) is None:
            text = (
                f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false. Try again "
                "with `store` set to true, or remove this item from your input."
            )
            yield ProviderError(text=text, param="input", status=404, ids=(item_id,))


@RULES
def encrypted_content_changed(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse encrypted content that is another one than was sent: it "could not be verified".

    Quoted in openai/codex#8145 and Wei-Shaw/sub2api#2863 (2026-11-25).
    """
    for item in request.new if request.store.reasoning else ():
        sent = request.store.reasoning.get(str(item.get("id")), {})
        content = item.get("encrypted_content")
        if sent.get("encrypted_content") and content and content != sent["encrypted_content"]:
            text = (
                f"The encrypted content {str(content)[:4]}...{str(content)[-4:]} could not be verified. Reason: "
                "Encrypted content could not be decrypted or parsed."
            )
            yield ProviderError(text=text, code="invalid_encrypted_content", ids=(str(item.get("id")),))


def _is_by_model(item: ItemObject) -> bool:
    kind = str(item.get("type") or "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return bool(item) and not kind.endswith("_output") and kind not in ("mcp_approval_response", "compaction_trigger")


@RULES.about("tool_choice")
def tool_choice_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the tool of `tool_choice` to be one of the tools.

    The API reference of `tool_choice` lets it force a tool that the model is offered (2026-11-22).
    """
    choice, tools = object_or_empty(request.body.get("tool_choice")), list_objects(request.body.get("tools"))
    kind, name = choice.get("type"), choice.get("name")
    # Further tools may be in the conversation: a prompt, a namespace or a search brings them.
    if kind in (None, "allowed_tools") or request.body.get("prompt") or not _are_plain(tools):
        return
    known = [tool.get("name") for tool in tools if tool.get("type") == kind]
    is_unknown = isinstance(name, str) and name not in known if kind in ("function", "custom") else not known
    if is_unknown:
        text = f"Tool choice '{kind}' not found in 'tools' parameter."
        yield ProviderError(text=text, param="tool_choice")


def _are_plain(tools: Iterable[Mapping[str, Any]]) -> bool:
    return all(tool.get("type") in ("function", "custom") for tool in tools)


@RULES.about("tool_choice")
def tools_not_specified(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require tools of a request that requires a call (API reference of `tool_choice`, 2026-11-22)."""
    has_tools = request.body.get("tools") or request.body.get("prompt")
    if request.body.get("tool_choice") == "required" and not has_tools:
        text = "Tool choice 'required' must be specified with 'tools' parameter."
        yield ProviderError(text=text, param="tool_choice")


@RULES.about("background")
def background_not_stored(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a response in the background that is not stored, as the guide of background mode says.

    "Background sampling requires `store=true`", as agno-agi/agno#7444 and DEEIX-AI/DEEIX-Chat#447 found (2026-11-25).
    """
    if request.body.get("background") is True and request.body.get("store") is False:
        yield ProviderError(text="Background mode requires 'store' to be true.", param="background")


@RULES.about("tools")
def schema_not_an_object(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the schema of a function's parameters to be that of an object; see `find_function_errors`."""
    yield from find_function_errors(request.body.get("tools"))


@RULES.about("tools")
def server_without_label(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `server_label` of a server whose tools the provider calls (API reference)."""
    for index, tool in enumerate(list_objects(request.body.get("tools"))):
        if tool.get("type") == "mcp" and not tool.get("server_label"):
            yield missing_parameter(f"tools[{index}].server_label")


_LABEL = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


@RULES.about("tools")
def label_of_server(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow letters, digits, underscores and dashes in `server_label`, at most 64 of them.

    fhswf/openai-ui#159 and pomerium/mcp-app-demo#18 (2026-11-28).
    """
    for index, tool in enumerate(list_objects(request.body.get("tools"))):
        label = tool.get("server_label")
        if tool.get("type") == "mcp" and isinstance(label, str) and label and not _LABEL.match(label):
            yield invalid_name(f"tools[{index}].server_label")


@RULES.about("tools")
def server_without_address(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require one of the addresses of a server whose tools the provider calls.

    openai 3.52.0, documentation of the tool (2026-11-23).
    """
    for index, tool in enumerate(list_objects(request.body.get("tools"))):
        if tool.get("type") == "mcp" and not any(tool.get(name) for name in _ADDRESSES):
            names = ", ".join(f"'{name}'" for name in _ADDRESSES[:-1])
            text = f"Invalid 'tools[{index}]': one of {names}, or '{_ADDRESSES[-1]}' must be provided."
            yield ProviderError(text=text, param=f"tools[{index}]")


@RULES.about("tools")
def server_label_not_unique(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse two servers of one label, whatever its case (smg-project/smg#479, 2026-11-23)."""
    servers = [tool for tool in list_objects(request.body.get("tools")) if tool.get("type") == "mcp"]
    labels = Counter(str(tool.get("server_label")).lower() for tool in servers if tool.get("server_label"))
    for label, times in labels.items():
        if times > 1:
            text = f"Duplicate MCP server_label found: '{label}'. Please provide a unique label for each MCP server."
            yield ProviderError(text=text, param="tools")


@RULES
def name_of_call(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow letters, digits, underscores and dashes in the name of a call.

    NousResearch/hermes-agent#31666 and openai/codex#9447 (2026-11-23).
    """
    for index, item in enumerate(request.written):
        name = item.get("name")
        if item.get("type") == "function_call" and isinstance(name, str) and name and not OPENAI_NAME.match(name):
            yield invalid_name(f"input[{index}].name")


@RULES
def part_of_the_caller(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse input in a message of the model, which has output and refusals only (tinyhumansai/openhuman#3624)."""
    for index, item in enumerate(request.written):
        if _item_type(item) == "message of assistant":
            for place, part in enumerate(list_objects(item.get("content"))):
                if str(part.get("type")).startswith("input_"):
                    yield invalid_value(f"input[{index}].content[{place}]", part["type"], ("output_text", "refusal"))


@RULES
def phase_of_the_user(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a phase of the user's message: "Not used for user messages".

    openai 3.52.0, documentation of the field; "Unknown parameter: 'input[0].phase'" is measured in
    kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    for index, item in enumerate(request.written):
        if _item_type(item) == "message of user" and item.get("phase") is not None:
            param = f"input[{index}].phase"
            yield ProviderError(text=f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter")


@RULES
def image_or_file_unreadable(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require addresses or data URLs of images, and data URLs of files.

    See `find_image_errors` and `find_file_errors`.
    """
    for index, item in enumerate(request.written):
        for name in ("content", "output"):
            parts = item.get(name)
            for place, part in enumerate(list_objects(parts) if type(parts) is list else ()):
                url, data = part.get("image_url"), part.get("file_data")
                where = f"input[{index}].{name}[{place}]"
                if part.get("type") == "input_image" and isinstance(url, str):
                    yield from find_image_errors(url, f"{where}.image_url")
                elif part.get("type") == "input_file" and isinstance(data, str):
                    yield from find_file_errors(data, f"{where}.file_data")


@RULES
def call_of_another_tool_open(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require an output of every call of another tool that the client runs, and a call before each such output.

    "No tool output found for custom tool call", "for computer call", "for shell call", "for local shell call", "for
    tool search call" and "for apply patch call": Soju06/codex-lb#1168 and its requirements for missing outputs,
    Azure-Samples/computer-use#22 (2026-11-23), microsoft/agent-framework#8663 and
    openai/openai-agents-python#1855 (2026-11-29). See `_is_run_by_client`.
    """
    waiting: dict[tuple[str, str], ItemObject] = {}
    answered: set[tuple[str, str]] = set()
    for item in (*request.before, *request.new):
        kind = str(item.get("type"))
        if kind in _ANSWERS:
            key = (kind, str(item.get("call_id")))
            waiting[key] = item
            answered.discard(key)
        elif kind in _ANSWERING:
            names = _names_of_call(item)
            found = [
                key
                for key, call in waiting.items()
                if kind in _ANSWERS[key[0]] and not names.isdisjoint(_names_of_call(call))
            ]
            if not found and kind not in _MAY_LACK_CALL:
                call_id = str(item.get("call_id") or item.get("id"))
                text = f"No tool call found for {_words_of(kind)} with call_id {call_id}."
                yield ProviderError(text=text, param="input", ids=(call_id,))
            answered.update(found)
            for key in found if kind.removesuffix("_output") in _ANSWERED_ONCE else ():
                del waiting[key]
    for (kind, call_id), call in waiting.items():
        if (kind, call_id) not in answered and _is_run_by_client(call, request.body.get("tools")):
            text = f"No tool output found for {_words_of(kind)} {call_id}."
            yield ProviderError(text=text, param="input", ids=(call_id,))


def _names_of_call(item: ItemObject) -> set[str]:
    """Return what a call and its output name the call: the `id` of a local shell's output may be that of the call."""
    fields = ("call_id", "id") if str(item.get("type")).startswith("local_shell_call") else ("call_id",)
    return {str(item[name]) for name in fields if item.get(name) is not None}


def _is_run_by_client(call: ItemObject, tools: Any) -> bool:
    """Return whether the client runs a call of another tool than a function.

    The provider runs searches for tools that do not say `client`, and shells in its containers. A shell of the client
    has the environment `local`, or null if the shell among the tools is local (microsoft/agent-framework#8663); where
    nothing says so, it may be either.
    """
    if call.get("type") == "tool_search_call":
        return call.get("execution") == "client"
    if call.get("type") != "shell_call":
        return True
    if call.get("environment", "") is None:
        shells = [tool for tool in list_objects(tools) if tool.get("type") == "shell"]
        return any(object_or_empty(shell.get("environment")).get("type") == "local" for shell in shells)
    return object_or_empty(call.get("environment")).get("type") == "local"


def _words_of(kind: str) -> str:
    return kind.replace("_", " ")


@RULES.about("stream_options")
def stream_options_without_stream(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow `stream_options` only together with `stream`.

    openai 3.52.0, documentation of the parameter (2026-11-23).
    """
    if request.body.get("stream_options") is not None and request.body.get("stream") is not True:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield ProviderError(text=text, param="stream_options")


@RULES.about("metadata")
def metadata_too_long(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Bound names and values of metadata; see `invalid_metadata`."""
    yield from invalid_metadata(request.body.get("metadata"))


@RULES.about("text")
def format_of_the_answer(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require closed objects of a strict schema, and "json" in the input of a request for a JSON object.

    See `find_answer_errors`, and for Chat Completions ultimatejimmy/xray.koplugin#33 (2026-11-23). The instructions
    count as input, as does a stored prompt, of which nobody here knows what it says.
    """
    wanted = object_or_empty(object_or_empty(request.body.get("text")).get("format"))
    if wanted.get("type") == "json_schema":
        yield from find_answer_errors(wanted, "text.format.schema")
    if wanted.get("type") != "json_object" or request.body.get("prompt"):
        return
    texts = [text_of(request.body.get("instructions"))]
    texts += [text_of(item.get("content")) for item in (*request.before, *request.new)]
    if not any("json" in text.lower() for text in texts):
        yield json_not_mentioned("Response input messages", "text.format", "input")


def parse_request(body: Mapping[str, Any], store: ProviderStore) -> ParsedRequest:
    """Read a body that has the shape of a request against what the provider stored."""
    fits = TYPES.fits(body)
    request = resolve_request(body, store)
    functions = [tool for tool in list_objects(body.get("tools")) if tool.get("type") == "function"]
    return ParsedRequest(
        body=body,
        items=(
            *instruction_items(body.get("instructions")),
            *_prompt_items(body.get("prompt")),
            *read_items([*request.before, *request.new]),
        ),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(name for tool in list_objects(body.get("tools")) for name in offered_names(tool)),
        parameters={str(tool.get("name")): property_names(tool.get("parameters")) for tool in functions},
        wants_json=is_json_format(object_or_empty(body.get("text")).get("format")),
        body_errors=RULES.check(request, body, fits=fits),
        fits_types=fits,
        has_signatures=includes_encrypted_reasoning(body),
        is_stateful=True,
    )


def includes_encrypted_reasoning(body: Mapping[str, Any]) -> bool:
    """Return whether a request asks for the encrypted content of reasoning."""
    included = body.get("include")
    return isinstance(included, list) and "reasoning.encrypted_content" in included


def _prompt_items(prompt: Any) -> tuple[Item, ...]:
    """Return a prompt that the provider stores as an item, since it may stand in place of an input."""
    return (Item(kind="other", text=to_sorted_json(dict(prompt))),) if isinstance(prompt, Mapping) else ()


def offered_names(tool: Mapping[str, Any]) -> list[str]:
    """Return the names that a tool offers: its own, or those that are allowed of a server."""
    if tool.get("type") != "mcp":
        return [str(tool.get("name") or tool.get("type"))]
    return allowed_tools(tool) or [str(tool.get("server_label"))]


def allowed_tools(tool: Mapping[str, Any]) -> list[str]:
    """Return the names that a server's tool allows; empty if it allows all."""
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("tool_names")
    return [str(name) for name in allowed] if isinstance(allowed, list) else []


def read_items(objects: Iterable[ItemObject]) -> list[Item]:
    """Return the items of a conversation as neutral ones.

    Consecutive items of the model are one message, consecutive results are one, each message of the caller is its own.
    The provider's list of a server's tools belongs to no message.
    """
    items: list[Item] = []
    message, before = -1, ""
    others: set[str] = set()
    for item in objects:
        if _item_type(item) == "mcp_list_tools":
            continue
        if "function_call_output" in _ANSWERS.get(str(item.get("type")), ()):
            others.add(str(item.get("call_id")))
        # The caller's messages stay apart; a turn of the model and a batch of results are one message each.
        side = _SIDES.get(_item_type(item), "other")
        if side != before or side == "caller":
            message, before = message + 1, side
        # Calls of some other tools may be answered like those of functions, but are none.
        is_of_other = item.get("type") == "function_call_output" and str(item.get("call_id")) in others
        reader = _read_other if is_of_other else _READERS.get(_item_type(item), _read_other)
        items.append(reader(item, message))
    return items


def _item_type(item: ItemObject) -> str:
    kind = item.get("type") or "message"
    return f"message of {item.get('role')}" if kind == "message" else str(kind)


def _read_user(item: ItemObject, message: int) -> Item:
    return Item(kind="user", text=text_of(item.get("content")), message=message)


def _read_text(item: ItemObject, message: int) -> Item:
    return Item(kind="say", text=text_of(item.get("content")), message=message)


def _read_call(item: ItemObject, message: int) -> Item:
    arguments = parse_object(item.get("arguments"))
    call_id, tool = optional_text(item.get("call_id")), optional_text(item.get("name"))
    return Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=message)


def _read_result(item: ItemObject, message: int) -> Item:
    call_id, text = optional_text(item.get("call_id")), text_of(item.get("output"))
    return Item(kind="result", id=call_id, text=text, message=message)


def _read_approval_request(item: ItemObject, message: int) -> Item:
    return Item(
        kind="approval_request",
        id=optional_text(item.get("id")),
        tool=optional_text(item.get("name")),
        arguments=parse_object(item.get("arguments")),
        message=message,
    )


def _read_approval_response(item: ItemObject, message: int) -> Item:
    approve = item.get("approve")
    return Item(
        kind="approval_response",
        id=optional_text(item.get("approval_request_id")),
        # What is no boolean decides nothing, even if a lenient server answers the request.
        approved=approve if isinstance(approve, bool) else None,
        text=optional_text(item.get("reason")),
        message=message,
    )


def read_hosted_id(item_id: Any) -> Any:
    """Return the id of a call that nobody was asked about, from the id that its item was sent under."""
    return item_id.removeprefix(HOSTED_CALL_PREFIX) if isinstance(item_id, str) else item_id


def _read_hosted_call(item: ItemObject, message: int) -> Item:
    error = item.get("error")
    return Item(
        kind="hosted_result",
        id=optional_text(item.get("approval_request_id") or read_hosted_id(item.get("id"))),
        tool=optional_text(item.get("name")),
        arguments=parse_object(item.get("arguments")),
        text=optional_text(item.get("output")) if error is None else _error_text(error),
        message=message,
    )


def _error_text(error: Any) -> str:
    return text_of(error.get("content", [error]) if isinstance(error, Mapping) else error)


def _read_reasoning(item: ItemObject, message: int) -> Item:
    return Item(
        kind="reasoning",
        id=optional_text(item.get("id")),
        text=text_of(item.get("summary")) or text_of(item.get("content")) or None,
        signature=optional_text(item.get("encrypted_content")),
        message=message,
    )


def _read_other(item: ItemObject, message: int) -> Item:
    return Item(kind="other", text=to_sorted_json(dict(item)), message=message)


_READERS: dict[str, Callable[[ItemObject, int], Item]] = {
    "message of user": _read_user,
    "message of assistant": _read_text,
    "reasoning": _read_reasoning,
    "function_call": _read_call,
    "function_call_output": _read_result,
    "mcp_approval_request": _read_approval_request,
    "mcp_approval_response": _read_approval_response,
    "mcp_call": _read_hosted_call,
}

_SIDES = {
    "message of user": "caller",
    "message of assistant": "model",
    "reasoning": "model",
    "function_call": "model",
    "mcp_approval_request": "model",
    "mcp_call": "model",
    "function_call_output": "results",
    "mcp_approval_response": "results",
}
