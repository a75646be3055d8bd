"""Chat Completions requests: errors of their bodies, and messages as neutral items.

The rules are those of the API reference about required and allowed parameters; the sentences are those that the API is
quoted with in the issue trackers of its clients. Rules about the conversation are in `input_rules.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import MoreMessages, ParsedRequest
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
    list_words,
    missing_parameter,
    openai_limit_error,
)
from pytest_approvals.protocols.reasoning import ReasoningRequest, SentReasoning
from pytest_approvals.protocols.schemas import find_answer_errors, find_function_errors
from pytest_approvals.protocols.text import (
    is_json_format,
    list_objects,
    object_or_empty,
    optional_text,
    parse_object,
    property_names,
    text_of,
)

# `\Z` and not `$`, which would allow a line break at the end.
_MESSAGE_NAME = re.compile(r"[^\s<|\\/>]+\Z")

ROLES = ("system", "assistant", "user", "function", "tool", "developer")

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""All other rules about a body alone."""

REASONING_RULES: BodyRules[ReasoningRequest] = BodyRules()
"""The rules about reasoning that the provider has sent."""

_DATE = "2026-11-22"
_ROOT = "completion_create_params.CompletionCreateParamsBase"
_CALL = "chat_completion_message_function_tool_call_param"
_SDK = "openai 3.52.0, documentation of the parameter"
_REFERENCE = "API reference of `chat.completions.create`, minimum and maximum"
_READ = "2026-11-23"
_FEW_TOKENS = "OpenBMB/ChatDev#446, YSocialTwin/YClient#6: integer_below_min_value"
_NAME = "^[a-zA-Z0-9_-]+$"

LIMITS = (
    Limit(field=f"{_ROOT}.frequency_penalty", minimum=-2, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.presence_penalty", minimum=-2, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.temperature", minimum=0, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.top_p", minimum=0, maximum=1, source=_REFERENCE, date=_READ),
    Limit(field=f"{_ROOT}.top_logprobs", minimum=0, maximum=20, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.n", minimum=1, maximum=128, source=_REFERENCE, date=_READ),
    Limit(field=f"{_ROOT}.stop", max_items=4, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.metadata", max_items=16, source=_SDK, date=_READ),
    Limit(field=f"{_ROOT}.safety_identifier", max_length=128, source=_SDK, date=_DATE),
    Limit(field=f"{_ROOT}.tools", max_items=128, source="julep-ai/julep#330, Upsonic/Upsonic#176", date=_READ),
    Limit(field=f"{_ROOT}.prompt_cache_key", max_length=64, source="theopenco/llmgateway#3110", date=_READ),
    Limit(field=f"{_ROOT}.max_tokens", minimum=1, source=_FEW_TOKENS, date="2026-11-25"),
    Limit(field=f"{_ROOT}.max_completion_tokens", minimum=1, source=f"as max_tokens: {_FEW_TOKENS}", date="2026-11-25"),
    Limit(field="FunctionDefinition.name", max_length=64, source=_SDK, date=_DATE),
    Limit(field="completion_create_params.Function.name", max_length=64, pattern=_NAME, source=_SDK, date="2026-11-25"),
    Limit(field="response_format_json_schema.JSONSchema.name", max_length=64, pattern=_NAME, source=_SDK, date=_DATE),
    Limit(
        field=f"{_CALL}.Function.name",
        max_length=64,
        source="a test of open-managed-agents quotes it: 'messages[8].tool_calls[0].function.name', string too long",
        date="2026-11-28",
    ),
    Limit(
        field="ChatCompletionMessageFunctionToolCallParam.id",
        max_length=64,
        source="openclaw/openclaw#875; older quotations say 40, which vercel/ai#17233 no longer found",
        date=_DATE,
    ),
)
"""Bounds of values, beside the published ones."""

_MAX_BIAS = 100
_BIAS = Limit(field="logit_bias", minimum=-_MAX_BIAS, maximum=_MAX_BIAS, source=_SDK, date="2026-11-25")

_OPEN = (
    "ChatCompletionAssistantMessageParam",
    "ChatCompletionDeveloperMessageParam",
    "ChatCompletionFunctionMessageParam",
    "ChatCompletionSystemMessageParam",
    "ChatCompletionToolMessageParam",
    "ChatCompletionUserMessageParam",
    "ChatCompletionMessageFunctionToolCallParam",
    f"{_CALL}.Function",
    "ChatCompletionMessageCustomToolCallParam",
    "ChatCompletionContentPartTextParam",
    "ChatCompletionContentPartImageParam",
    "ChatCompletionFunctionToolParam",
    "FunctionDefinition",
)
"""Unknown fields of messages and tools are accepted.

For messages microsoft/agent-framework#2344 and openai/openai-node#1161 say so. Agno sends fields of its own with each
tool, which agno-agi/agno#3503 tells of another provider only.
"""

_ROOT = "completion_create_params.CompletionCreateParamsBase"

TYPES = PublishedTypes(
    str(Path(__file__).with_name("published_types.json")),
    LIMITS,
    bounds=str(Path(__file__).with_name("published_bounds.json")),
    open_types=_OPEN,
    # Google ADK sends null for what it leaves out, and nobody reports that it is refused.
    null_types=(_ROOT,),
)


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object: "expected an object"."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Invalid type for request body: expected an object.", code="invalid_type")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require `messages`, an array of objects (API reference)."""
    if not isinstance(body, Mapping):
        return
    messages = body.get("messages")
    if messages is None:
        yield missing_parameter("messages")
    elif not isinstance(messages, list):
        yield invalid_type("messages", "an array of objects", messages)
    else:
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                yield invalid_type(f"messages[{index}]", "an object", message)


@RULES
def model_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `model`; without it the API says "you must provide a model parameter"."""
    if not body.get("model"):
        yield ProviderError(text="you must provide a model parameter")


@RULES
def empty_input(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require a message: "empty array"."""
    if not body["messages"]:
        yield empty_array("messages")


@RULES.implied_by_types
def unknown_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require one of the six roles of the API reference of every message."""
    for index, message in enumerate(body["messages"]):
        role = message.get("role")
        if role is None:
            yield missing_parameter(f"messages[{index}].role")
        elif role not in ROLES:
            yield invalid_value(f"messages[{index}].role", role, ROLES)


@RULES.each_message
def content_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require content of every message but an assistant message with calls.

    The API says "expected a string, got null".
    """
    for index, message in enumerate(body["messages"]):
        if message.get("content") is None and not _may_lack_content(message):
            text = "Invalid value for 'content': expected a string, got null."
            yield ProviderError(text=text, param=f"messages.[{index}].content")


def _may_lack_content(message: Mapping[str, Any]) -> bool:
    if message.get("role") == "function":
        return "content" in message
    return message.get("role") == "assistant" and any(
        message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio")
    )


@RULES.about_messages("tool", each=True)
def result_without_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `tool_call_id` of a message with the role `tool` (API reference)."""
    for index, message in enumerate(body["messages"]):
        if message.get("role") == "tool" and not message.get("tool_call_id"):
            text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
            yield ProviderError(text=text, param=f"messages.[{index}].tool_call_id")


@RULES.about_messages("tool_calls", each=True)
def empty_list_of_calls(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an empty `tool_calls`, which may be left out: "empty array"."""
    for index, message in enumerate(body["messages"]):
        if message.get("tool_calls") == []:
            yield empty_array(f"messages[{index}].tool_calls")


@RULES.about_messages("tool_calls", each=True)
def malformed_call(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `type`, and a `function` with `name` and textual `arguments` (API reference).

    The name has letters, digits, underscores and dashes only (mcp-use/mcp-use#90, 2026-11-23).
    """
    for index, message in enumerate(body["messages"]):
        for place, call in enumerate(list_objects(message.get("tool_calls"))):
            yield from _check_call(call, f"messages[{index}].tool_calls[{place}]")


def _check_call(call: Mapping[str, Any], param: str) -> Iterator[ProviderError]:
    if call.get("type") is None:
        yield missing_parameter(f"{param}.type")
    if call.get("type", "function") != "function":
        return
    function = call.get("function")
    if type(function) is not dict:
        yield missing_parameter(f"{param}.function")
        return
    if not function.get("name"):
        yield missing_parameter(f"{param}.function.name")
    name = function.get("name")
    if isinstance(name, str) and name and not OPENAI_NAME.match(name):
        yield invalid_name(f"{param}.function.name")
    if not isinstance(function.get("arguments"), str):
        yield invalid_type(f"{param}.function.arguments", "a string", function.get("arguments"))


@RULES.about("tools")
def empty_list_of_tools(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an empty `tools`, which may be left out: "empty array"."""
    if body.get("tools") == []:
        yield empty_array("tools")


@RULES.about("tools")
def name_of_function(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow letters, digits, underscores and dashes in function names (API reference)."""
    yield from invalid_names(body.get("tools"), "function")


@RULES.about("tool_choice", "parallel_tool_calls")
def tools_not_specified(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow `tool_choice` and `parallel_tool_calls` only together with `tools`.

    Quoted in dapr/dapr-agents#248 and openai/swarm#30 (2026-11-22).
    """
    for name in ("tool_choice", "parallel_tool_calls"):
        # `none` asks for nothing that tools would be needed for, and no source says that it is refused.
        if body.get(name) is not None and body.get(name) != "none" and not body.get("tools"):
            text = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            yield ProviderError(text=text, param=name)


@RULES.about("function_call")
def functions_not_specified(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow `function_call` only together with `functions` (PlexPt/chatgpt-java#150, 2026-11-25)."""
    # As for `tools_not_specified`, `none` asks for nothing.
    if body.get("function_call") not in (None, "none") and not body.get("functions"):
        text = "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified."
        yield ProviderError(text=text, param="function_call")


@RULES.about("function_call")
def function_call_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the function of `function_call` to be one of the functions: "no function named 'x' was specified".

    A request that was sent to the API in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    name = object_or_empty(body.get("function_call")).get("name")
    functions = list_objects(body.get("functions"))
    if isinstance(name, str) and functions and name not in [function.get("name") for function in functions]:
        text = f"Invalid value for 'function_call': no function named '{name}' was specified in the 'functions' "
        yield ProviderError(text=f"{text}parameter.", param="function_call")


@RULES.about("logit_bias")
def bias_out_of_bounds(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow biases from -100 to 100 (openai 3.52.0, documentation of the parameter, 2026-11-25)."""
    for token, bias in object_or_empty(body.get("logit_bias")).items():
        if type(bias) is int and abs(bias) > _MAX_BIAS:
            yield openai_limit_error(f"logit_bias.{token}", bias, _BIAS)


@RULES.about("tool_choice")
def tool_choice_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the function of `tool_choice` to be one of the tools.

    The API reference of `tool_choice` lets it force a tool that the model is offered (2026-11-22).
    """
    choice = object_or_empty(body.get("tool_choice"))
    if choice.get("type") not in ("function", "custom"):
        return
    kind = str(choice["type"])
    name = object_or_empty(choice.get(kind)).get("name")
    known = [object_or_empty(tool.get(kind)).get("name") for tool in list_objects(body.get("tools"))]
    if isinstance(name, str) and name not in known:
        text = f"Invalid value for 'tool_choice': the {kind} '{name}' is not one of the 'tools'."
        yield ProviderError(text=text, param="tool_choice", code="invalid_value")


@RULES.about("tools")
def schema_not_an_object(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the schema of a function's parameters to be that of an object; see `find_function_errors`."""
    yield from find_function_errors(body.get("tools"), "function")


@RULES.about_messages("name", each=True)
def name_of_message(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    r"""Refuse white space and `< | \ / >` in the name of a message.

    Quoted in FlowiseAI/Flowise#2948 (2026-11-23), where the pattern was narrower still.
    """
    for index, message in enumerate(body["messages"]):
        name = message.get("name")
        if isinstance(name, str) and not _MESSAGE_NAME.match(name):
            param = f"messages[{index}].name"
            text = (
                f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
                "'^[^\\s<|\\\\/>]+$'."
            )
            yield ProviderError(text=text, param=param, code="invalid_value")


@RULES.about_messages("tool_calls", at=("system", "developer"))
def message_between_call_and_result(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an instruction between calls and their results.

    The messages of the results follow the one of the calls, as for any other message between them: see
    `result_not_adjacent` of the conversation's rules.
    """
    waiting: dict[str, None] = {}
    for message in body["messages"]:
        role = message.get("role")
        if role == "tool":
            waiting.pop(str(message.get("tool_call_id")), None)
        elif role in ("system", "developer") and waiting:
            ids = tuple(waiting)
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(ids)}"
            )
            yield ProviderError(text=text, param="messages", ids=ids)
            waiting = {}
        else:
            calls = list_objects(message.get("tool_calls")) if role == "assistant" else []
            waiting = {str(call["id"]): None for call in calls if call.get("id")}


@RULES.about("stream_options")
def stream_options_without_stream(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow `stream_options` only together with `stream` (BerriAI/litellm#5803, 2026-11-23)."""
    if body.get("stream_options") is not None and body.get("stream") is not True:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield ProviderError(text=text, param="stream_options")


@RULES.about("top_logprobs")
def top_logprobs_without_logprobs(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `logprobs` for `top_logprobs` (openai 3.52.0, documentation of the parameter, 2026-11-23)."""
    if body.get("top_logprobs") is not None and body.get("logprobs") is not True:
        text = "'logprobs' must be set to true if 'top_logprobs' is used."
        yield ProviderError(text=text, param="top_logprobs")


@RULES.about("modalities")
def audio_without_parameters(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `audio` of a request for audio (openai 3.52.0, documentation of the parameter, 2026-11-23)."""
    modalities = body.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities and not body.get("audio"):
        yield missing_parameter("audio")


@RULES.about("max_tokens")
def two_limits_of_tokens(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse `max_tokens` together with `max_completion_tokens` (langchain-ai/langgraph#5943, 2026-11-23)."""
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        yield ProviderError(text=text, param="max_tokens", code="invalid_parameter_combination")


@RULES.about_messages("image_url", "file", each=True)
def image_or_file_unreadable(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require addresses or data URLs of images, and data URLs of files.

    See `find_image_errors` and `find_file_errors`.
    """
    for index, message in enumerate(body["messages"]):
        content = message.get("content")
        if type(content) is not list:
            continue
        for place, part in enumerate(list_objects(content)):
            where = f"messages[{index}].content[{place}]"
            url = object_or_empty(part.get("image_url")).get("url")
            data = object_or_empty(part.get("file")).get("file_data")
            if part.get("type") == "image_url" and isinstance(url, str):
                yield from find_image_errors(url, f"{where}.image_url.url")
            elif part.get("type") == "file" and isinstance(data, str):
                yield from find_file_errors(data, f"{where}.file.file_data")


@RULES.about_messages("file", each=True)
def file_without_name(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the name of a file whose data the message holds.

    "file PDF WITHOUT filename -> 400 (filename required)", measured in tokenparty-net/llm-xlate (FINDINGS, 17,
    2026-11-29). Responses accepts such a file, since nobody says what happens.
    """
    for index, message in enumerate(body["messages"]):
        for place, part in enumerate(list_objects(message.get("content"))):
            file = object_or_empty(part.get("file")) if part.get("type") == "file" else {}
            if file.get("file_data") and not file.get("filename"):
                yield missing_parameter(f"messages[{index}].content[{place}].file.filename")


@RULES.about("functions")
def functions_with_tools(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse functions of the old kind together with tools (microsoft/autogen#3285, 2026-11-26)."""
    if body.get("functions") and body.get("tools"):
        text = (
            "Invalid request: 'functions' and 'tools' cannot both be provided. 'functions' are deprecated; use the "
            "'tools' parameter instead."
        )
        yield ProviderError(text=text)


@RULES.about("metadata")
def metadata_too_long(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Bound names and values of metadata; see `invalid_metadata`."""
    yield from invalid_metadata(body.get("metadata"))


@RULES.about("metadata")
def metadata_without_store(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse metadata of a completion that is not stored (tmc/langchaingo#1484, looplj/axonhub#1380, 2026-11-25).

    Some accounts store completions by default, so that a request which does not say is accepted.
    """
    if body.get("metadata") and body.get("store") is False:
        text = "The 'metadata' parameter is only allowed when 'store' is enabled."
        yield ProviderError(text=text, param="metadata")


@RULES.about("response_format", reads_messages=True)
def format_of_the_answer(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require closed objects of a strict schema, and a message with "json" in it of a request for a JSON object.

    See `find_answer_errors`, and ultimatejimmy/xray.koplugin#33 (2026-11-23).
    """
    wanted = object_or_empty(body.get("response_format"))
    yield from find_answer_errors(wanted.get("json_schema"), "response_format")
    texts = (text_of(message.get("content")) for message in body["messages"])
    if wanted.get("type") == "json_object" and not any("json" in text.lower() for text in texts):
        yield json_not_mentioned("'messages'", "response_format", "messages")


@REASONING_RULES
def reasoning_content_missing(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the `reasoning_content` of messages with calls that were sent with one, until the user says more.

    Quoted of DeepSeek in anomalyco/opencode#24083, earendil-works/pi#3636 and crewAIInc/crewAI#5878, and of Moonshot in
    other words in bytedance/deer-flow#3043 and continuedev/continue#11711 (2026-11-25). Newer models of DeepSeek want
    it in all later requests (anomalyco/opencode#24722), earlier ones dropped it with the next message of the user; so
    older messages may lack it. Nothing says that another text is refused.
    """
    messages = request.body["messages"]
    start = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    for message in messages[start:]:
        ids = [str(call.get("id")) for call in list_objects(message.get("tool_calls"))]
        has_reasoning = any(step in request.sent.by_signature for step in request.sent.expect_steps(ids))
        if has_reasoning and not reasoning_of(message):
            text = "The `reasoning_content` in the thinking mode must be passed back to the API."
            yield ProviderError(text=text, code="invalid_request_error", ids=tuple(ids))


def reasoning_of(message: Mapping[str, Any]) -> str:
    """Return the reasoning in a message: under DeepSeek's name, or the shorter one of other servers."""
    return str(message.get("reasoning_content") or message.get("reasoning") or "")


def parse_request(body: Mapping[str, Any], sent: SentReasoning) -> ParsedRequest:
    """Read a body that has the shape of a request against the reasoning that the provider has sent."""
    fits = TYPES.fits(body)
    errors = RULES.check(body, body, words=list_words(body["messages"]), fits=fits)
    if sent and not errors:
        errors = REASONING_RULES.check(ReasoningRequest(body=body, sent=sent))
    functions = [
        tool["function"] for tool in list_objects(body.get("tools")) if isinstance(tool.get("function"), Mapping)
    ]
    return ParsedRequest(
        body=body,
        items=tuple(read_items(body["messages"])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(str(function.get("name")) for function in functions),
        parameters={str(function.get("name")): property_names(function.get("parameters")) for function in functions},
        wants_json=is_json_format(body.get("response_format")),
        body_errors=errors,
        fits_types=fits,
        is_stateful=bool(sent),
    )


def read_more(more: MoreMessages) -> tuple[tuple[Item, ...], frozenset[str]] | None:
    """Return the items of messages that follow accepted ones, and the words of all messages.

    None if anything is wrong with them. See `ProtocolCodec.read_more`.
    """
    # No rule but those that other fields bring about can be broken by plain messages.
    items = None if RULES.reads_messages(more.body) else _read_plain(more.new, more.start)
    if items is not None:
        return items, more.words if more.words >= _PLAIN_WORDS else more.words | _PLAIN_WORDS
    new_words = frozenset(list_words(more.new))
    if not TYPES.fits_more("messages", more.body, more.new):
        return None
    new = {**more.body, "messages": more.new}
    if RULES.breaks_more(more.body, new, words=more.words | new_words, new_words=new_words):
        return None
    return tuple(read_items(more.new, more.start)), more.words | new_words


_PLAIN_WORDS = frozenset(
    {"role", "content", "system", "developer", "user", "assistant", "tool", "tool_calls", "tool_call_id"}
)
"""The words of plain messages."""


def _read_plain(messages: Iterable[Mapping[str, Any]], start: int) -> tuple[Item, ...] | None:
    """Return the items of messages that are as simple as nearly all are: texts, calls of functions, and results.

    They break no rule of this module, so that the types and rules are only asked about others; for those it is None.
    The rules about ids are those of the input.
    """
    items: list[Item] = []
    for number, message in enumerate(messages, start):
        role, content = message.get("role"), message.get("content")
        if len(message) == 2 and type(content) is str:
            if role == "user" and role in _TEXT_ROLES:
                items.append(Item(kind="user", text=content, message=number))
            elif role == "assistant" and role in _TEXT_ROLES:
                if content:
                    items.append(Item(kind="say", text=content, message=number))
            # No call is open before the first new message, so that an instruction there is between no call and its
            # result.
            elif number == start and role in _INSTRUCTION_ROLES:
                items.append(Item(kind="other", text=content, message=number))
            else:
                return None
        elif len(message) != 3:
            return None
        elif role == "tool":
            call_id = message.get("tool_call_id")
            if type(content) is not str or type(call_id) is not str:
                return None
            items.append(Item(kind="result", id=call_id, text=content, message=number))
        elif role != "assistant" or not _read_plain_calls(message, number, items):
            return None
    return tuple(items)


def _read_plain_calls(message: Mapping[str, Any], number: int, items: list[Item]) -> bool:
    """Read a message of the assistant with calls; return whether it is plain."""
    content, calls = message.get("content", ...), message.get("tool_calls")
    if type(calls) is not list or not calls or not (content is None or type(content) is str):
        return False
    if content:
        items.append(Item(kind="say", text=content, message=number))
    for call in calls:
        if not _is_plain_call(call):
            return False
        function = call["function"]
        arguments = parse_object(function["arguments"])
        items.append(Item(kind="call", id=call["id"], tool=function["name"], arguments=arguments, message=number))
    return True


def _is_plain_call(call: Any) -> bool:
    if type(call) is not dict or len(call) != 3 or call.get("type") != "function":
        return False
    call_id, function = call.get("id"), call.get("function")
    if type(function) is not dict or len(function) != 2 or type(function.get("arguments")) is not str:
        return False
    name = function.get("name")
    is_named = type(name) is str and len(name) <= _PLAIN_NAME_LENGTH and OPENAI_NAME.match(name) is not None
    return is_named and type(call_id) is str and len(call_id) <= _PLAIN_ID_LENGTH


def _roles_of_texts(*roles: str) -> tuple[str, ...]:
    return tuple(role for role in roles if TYPES.takes_any("messages", role, "content", "string"))


_TEXT_ROLES = _roles_of_texts("user", "assistant")
_INSTRUCTION_ROLES = _roles_of_texts("system", "developer")
_PLAIN_ID_LENGTH = 40
_PLAIN_NAME_LENGTH = 64


def read_items(messages: Iterable[Mapping[str, Any]], start: int = 0) -> Iterator[Item]:
    """Yield the items of messages; each message has its number, from *start* on."""
    for number, message in enumerate(messages, start):
        role = message.get("role")
        if role == "assistant":
            yield from _read_assistant_message(message, number)
        elif role == "tool":
            text = text_of(message.get("content"))
            yield Item(kind="result", id=optional_text(message.get("tool_call_id")), text=text, message=number)
        else:
            kind = "user" if role == "user" else "other"
            yield Item(kind=kind, text=text_of(message.get("content")), message=number)


def _read_assistant_message(message: Mapping[str, Any], number: int) -> Iterator[Item]:
    if reasoning := reasoning_of(message):
        yield Item(kind="reasoning", text=reasoning, message=number)
    if message.get("content"):
        yield Item(kind="say", text=text_of(message["content"]), message=number)
    for call in list_objects(message.get("tool_calls")):
        function = object_or_empty(call.get("function"))
        arguments = parse_object(function.get("arguments"))
        call_id, tool = optional_text(call.get("id")), optional_text(function.get("name"))
        yield Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=number)
