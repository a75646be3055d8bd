"""Requests of Converse: errors of their bodies, and content blocks as neutral items.

The types and their bounds are those of the service model of botocore. The sentences are those that Bedrock is quoted
with in the issue trackers of its clients. Rules about the conversation are in `input_rules.py`, too.

What Bedrock checks itself is checked here for every model. What it leaves to the model is that of Anthropic's models,
whose reasoning has signatures; Bedrock hands requests on to them as those of Messages.

Two messages of one role in a row are accepted: Bedrock refused them until the spring of 2025
(microsoft/semantic-kernel#10281), and nobody quotes it so since.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import ParsedRequest, RequestTarget
from pytest_approvals.protocols.messages.reasoning_rules import (
    REASONING_RULES,
    thinking_budget_too_large,
    thinking_with_sampling,
)
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError, PublishedTypes
from pytest_approvals.protocols.reasoning import ReasoningRequest, SentReasoning, read_thought_id
from pytest_approvals.protocols.text import (
    list_objects,
    object_or_empty,
    optional_text,
    property_names,
    to_sorted_json,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseRequest:
    """A body, and the model that its path names."""

    body: Mapping[str, Any]
    model: str

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """Its messages."""
        return list_objects(self.body.get("messages"))

    @property
    def thinks(self) -> bool:
        """Whether it switches the reasoning of an Anthropic model on."""
        return read_thinking(self.body).get("type") == "enabled"

    @property
    def is_for_claude(self) -> bool:
        """Whether the model is one of Anthropic's, whose names say so; that of a profile or a prompt may not."""
        return "anthropic." in self.model

    def blocks(self, kind: str) -> Iterator[tuple[int, int, Any]]:
        """Yield the content blocks of a kind, with the numbers of their message and of the block."""
        for number, message in enumerate(self.messages):
            for place, block in enumerate(content_of(message)):
                if kind in block:
                    yield number, place, block[kind]


SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[ConverseRequest] = BodyRules()
"""All other rules about a body alone."""


_PLAIN_STRUCTURES = (
    "ConverseStreamRequest",
    "InferenceConfiguration",
    "Message",
    "ToolConfiguration",
    "ToolResultBlock",
    "ToolSpecification",
)
"""Types whose optional fields may be null: no source says that null is refused there, as it is in a choice of keys."""

TYPES = PublishedTypes(
    str(Path(__file__).with_name("published_types.json")),
    bounds=str(Path(__file__).with_name("published_bounds.json")),
    # Clients put a cache point into a result, which Bedrock takes (Portkey-AI/gateway#1762, 2026-11-25).
    # A video may have another word as its format (pydantic/pydantic-ai, cassette `test_video_url_input` of Bedrock),
    # but not an image or a document (NousResearch/hermes-agent#55429, strands-agents/harness-sdk#3019, 2026-11-26).
    more={"ToolResultContentBlock": {"cachePoint": {"type": "CachePointBlock"}}, "VideoBlock": {"format": "string"}},
    null_types=_PLAIN_STRUCTURES,
)

_PROMPT = re.compile(r"arn:aws[^:]*:bedrock:[^:]*:\d{12}:prompt/")


def is_prompt(model: str) -> bool:
    """Return whether a model is a prompt that is stored with the provider, which has messages of its own."""
    return _PROMPT.match(model) is not None


def content_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content blocks of a message."""
    return list_objects(message.get("content"))


def read_thinking(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the reasoning that a request asks of an Anthropic model."""
    fields = object_or_empty(body.get("additionalModelRequestFields"))
    return object_or_empty(fields.get("thinking") or fields.get("reasoning_config"))


def _calls(message: Mapping[str, Any]) -> list[str]:
    """Return the ids of the calls of a message that its client answers."""
    calls = [object_or_empty(block["toolUse"]) for block in content_of(message) if "toolUse" in block]
    return [str(call.get("toolUseId")) for call in calls if call.get("type") != "server_tool_use"]


def _results(message: Mapping[str, Any]) -> list[str]:
    results = [object_or_empty(block["toolResult"]) for block in content_of(message) if "toolResult" in block]
    return [str(result.get("toolUseId")) for result in results if result.get("type") is None]


# --- rules ------------------------------------------------------------------------------------------------------------

_MODEL_ERRORS = "The model returned the following errors: "
_LEAST_BUDGET = 1024


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Unexpected field type", kind="SerializationException")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require messages to be a list of objects, if there are any (service model of botocore 1.44.8)."""
    messages = body.get("messages") if isinstance(body, Mapping) else None
    if messages is not None and not (isinstance(messages, list) and all(isinstance(one, Mapping) for one in messages)):
        yield ProviderError(text="Unexpected field type", kind="SerializationException")


@RULES
def empty_content(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require content: "The content field in the Message object at messages.N is empty".

    Quoted in archestra-ai/archestra#4220 (2026-11-25).
    """
    for number, message in enumerate(request.messages):
        if message.get("content") == []:
            text = f"The content field in the Message object at messages.{number} is empty."
            yield ProviderError(text=f"{text} Add a ContentBlock object to the content field and try again.")


@RULES
def blank_text(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse empty texts: "The text field in the ContentBlock object at messages.N.content.M is blank".

    Quoted in aws/bedrock-agentcore-sdk-python#185 and earendil-works/pi#4975 (2026-11-25). A line break is accepted
    (pydantic/pydantic-ai, cassette `test_bedrock_cache_write_and_read`, 2026-11-26), and so are empty texts in results,
    since nobody quotes Bedrock about them. See `white_space_alone` for Anthropic's models.
    """
    for number, place, text in request.blocks("text"):
        if text == "":
            where = f"messages.{number}.content.{place}"
            error = f"The text field in the ContentBlock object at {where} is blank. Add text to the text field, and"
            yield ProviderError(text=f"{error} try again.")


@RULES
def white_space_alone(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse a message whose texts hold only white space, of an Anthropic model.

    "text content blocks must contain non-whitespace text", quoted in NousResearch/hermes-agent#41985 and #63983
    (2026-11-29). Beside another text a line break is accepted: see `blank_text`.
    """
    for message in request.messages if request.is_for_claude else ():
        texts = [block["text"] for block in content_of(message) if isinstance(block.get("text"), str)]
        if any(texts) and not any(text.strip() for text in texts):
            yield ProviderError(text=f"{_MODEL_ERRORS}messages: text content blocks must contain non-whitespace text")


@RULES
def results_missing(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require the results of a message's calls in the next one: "Expected toolResult blocks at messages.N.content".

    Quoted in camel-ai/camel#3954, agno-agi/agno#6698 and genkit-ai/aws-bedrock-js-plugin#664 (2026-11-25).
    """
    for (_, message), (number, following) in pairwise(_conversation(request)):
        missing = [call for call in _calls(message) if call not in _results(following)]
        if missing:
            text = f"Expected toolResult blocks at messages.{number}.content for the following Ids: "
            yield ProviderError(text=text + ", ".join(missing), ids=tuple(missing))


@RULES
def too_many_results(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse more results than the message before has calls.

    "The number of toolResult blocks at messages.N.content exceeds the number of toolUse blocks of previous turn",
    quoted in pydantic/pydantic-ai#2327 and strands-agents/harness-sdk#1435 (2026-11-25).
    """
    for (_, before), (number, message) in pairwise([(-1, {}), *_conversation(request)]):
        if len(_results(message)) > len(_calls(before)):
            text = f"The number of toolResult blocks at messages.{number}.content exceeds the number of toolUse blocks"
            yield ProviderError(text=f"{text} of previous turn.", ids=tuple(_results(message)))


def _conversation(request: ConverseRequest) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the messages of the two sides with their numbers."""
    return [(number, message) for number, message in enumerate(request.messages) if message.get("role") != "system"]


@RULES
def duplicate_ids(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse an id that comes twice in a message: "The toolResult blocks at messages.N.content contain duplicate Ids".

    Quoted in BerriAI/litellm#20048 and kirodotdev/Kiro#9355, of calls in BerriAI/litellm#20049 (2026-11-25).
    """
    for number, message in enumerate(request.messages):
        for kind, ids in (("toolUse", _calls(message)), ("toolResult", _results(message))):
            double = [one for one, times in Counter(ids).items() if times > 1]
            if double:
                text = f"The {kind} blocks at messages.{number}.content contain duplicate Ids: {', '.join(double)}"
                yield ProviderError(text=text, ids=tuple(double))


@RULES
def tools_not_configured(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require tools if the conversation has calls: "The toolConfig field must be defined".

    Quoted in langgenius/dify#16421, onyx-dot-app/onyx#7842 and aws-samples/bedrock-access-gateway#239 (2026-11-25).
    """
    needs_tools = any(_calls(message) or _results(message) for message in request.messages)
    if needs_tools and request.body.get("toolConfig") is None and not is_prompt(request.model):
        text = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        yield ProviderError(text=text)


@RULES
def error_without_content(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require content of a result whose status is `error`.

    "The content field at … cannot be empty when status value is error", quoted in
    aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15 (2026-11-25).
    """
    for number, place, result in request.blocks("toolResult"):
        if object_or_empty(result).get("status") == "error" and result.get("content") == []:
            where = f"messages.{number}.content.{place}.toolResult"
            yield ProviderError(text=f"The content field at {where} cannot be empty when status value is error.")


@RULES.about("toolConfig")
def schema_not_an_object(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require the schema of an object: "…inputSchema.json.type must be one of the following: object".

    Quoted in cognitect-labs/aws-api#272 (2026-11-25), and of schemas without `type` in earendil-works/pi#8279,
    code-yeongyu/senpi#1947 and d-kuro/kirocc#93 (2026-11-29).
    """
    for number, tool in enumerate(list_objects(object_or_empty(request.body.get("toolConfig")).get("tools"))):
        schema = object_or_empty(object_or_empty(tool.get("toolSpec")).get("inputSchema")).get("json")
        if isinstance(schema, Mapping) and schema.get("type") != "object":
            where = f"toolConfig.tools.{number}.toolSpec.inputSchema.json.type"
            yield ProviderError(text=f"The value at {where} must be one of the following: object.")


@RULES.about("toolConfig")
def repeated_tools(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse two tools of one name: "The tool ask_user_question is already defined at toolConfig.tools.14".

    Quoted in the changelog of Cognipeer/agent-sdk (2026-11-29). The place is that of the second of the name.
    """
    known: set[str] = set()
    for number, tool in enumerate(list_objects(object_or_empty(request.body.get("toolConfig")).get("tools"))):
        name = object_or_empty(tool.get("toolSpec")).get("name")
        if isinstance(name, str) and name in known:
            yield ProviderError(text=f"The tool {name} is already defined at toolConfig.tools.{number}.")
        known.add(str(name))


@RULES.about("additionalModelRequestFields", "inferenceConfig", "system", "toolConfig")
def fields_of_a_prompt(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse fields that a stored prompt has itself (service model of botocore 1.44.8, documentation of Converse)."""
    if is_prompt(request.model):
        for field in ("additionalModelRequestFields", "inferenceConfig", "system", "toolConfig"):
            if request.body.get(field):
                yield ProviderError(text=f"The {field} field can't be set when the modelId is a prompt.")


@RULES.about("additionalModelResponseFieldPaths")
def path_not_a_pointer(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require JSON Pointers that are not empty (service model of botocore 1.44.8, documentation of the field)."""
    paths = request.body.get("additionalModelResponseFieldPaths")
    for number, path in enumerate(paths if isinstance(paths, list) else ()):
        if isinstance(path, str) and not re.fullmatch(r"(/([^~]|~[01])*)+", path):
            yield ProviderError(text=f"The JSON Pointer at additionalModelResponseFieldPaths.{number} is not valid.")


_METADATA = r"[a-zA-Z0-9\s:_@$#=/+,-.]*"


@RULES.about("additionalModelResponseFieldPaths", "inferenceConfig", "requestMetadata")
def element_out_of_bounds(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse elements of lists and maps that are too short, too long, or have other characters.

    Service model of botocore 1.44.8 (2026-11-25): stop sequences that are empty, paths and metadata above 256
    characters, metadata with other characters, and names of metadata that are empty.
    """
    sequences = object_or_empty(request.body.get("inferenceConfig")).get("stopSequences")
    if isinstance(sequences, list) and "" in sequences:
        yield _element_error("inferenceConfig.stopSequences", "have length greater than or equal to 1")
    metadata = object_or_empty(request.body.get("requestMetadata"))
    paths = request.body.get("additionalModelResponseFieldPaths")
    texts = {
        "requestMetadata": [*metadata, *metadata.values()],
        "additionalModelResponseFieldPaths": paths if isinstance(paths, list) else [],
    }
    for field, elements in texts.items():
        if any(isinstance(element, str) and len(element) > _LONGEST_ELEMENT for element in elements):
            yield _element_error(field, f"have length less than or equal to {_LONGEST_ELEMENT}")
    if "" in metadata:
        yield _element_error("requestMetadata", "have length greater than or equal to 1")
    words = [word for word in texts["requestMetadata"] if isinstance(word, str)]
    if not all(re.fullmatch(_METADATA, word) for word in words):
        yield _element_error("requestMetadata", f"satisfy regular expression pattern: {_METADATA}")


_LONGEST_ELEMENT = 256


def _element_error(field: str, constraint: str) -> ProviderError:
    text = (
        f"Value at '{field}' failed to satisfy constraint: Member must satisfy constraint: [Member must {constraint}]"
    )
    return ProviderError(text=f"1 validation error detected: {text}")


# --- documents and caches ---------------------------------------------------------------------------------------------

_MOST_DOCUMENTS, _MOST_IMAGES, _MOST_CACHE_POINTS = 5, 20, 4


@RULES
def media_of_the_model(request: ConverseRequest) -> Iterator[ProviderError]:
    """Allow images and documents in the user's messages only, and few of them.

    "You can only include images and documents if the role is user", up to 20 images and five documents in a message
    (service model of botocore 1.44.8, documentation of `Message`, 2026-11-25).
    """
    for number, message in enumerate(request.messages):
        for kind, most in (("image", _MOST_IMAGES), ("document", _MOST_DOCUMENTS)):
            held = sum(kind in block for block in content_of(message))
            if held and message.get("role") == "assistant":
                yield ProviderError(text=f"messages.{number}: the role of a message with {kind} blocks must be user.")
            elif held > most:
                yield ProviderError(text=f"You can't include more than {most} {kind}s in a request.")


@RULES
def document_without_text(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require a text beside documents: "A text block must be included when using documents".

    Quoted in archestra-ai/archestra#4220 (2026-11-25); also in the documentation of `Message`.
    """
    for message in request.messages:
        held = [name for block in content_of(message) for name in block]
        if "document" in held and "text" not in held:
            yield ProviderError(text="A text block must be included when using documents.")


@RULES
def document_name(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse characters in names of documents, and a name that comes twice in the conversation.

    "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and
    square brackets", quoted in simonw/llm-bedrock#8 and vercel/ai#20365; underscores are taken
    (strands-agents/harness-sdk#3019). "Messages can't contain duplicate document names", quoted in
    aws-samples/generative-ai-use-cases#1685 (2026-11-25).
    """
    names = [str(object_or_empty(document).get("name") or "") for _, _, document in request.blocks("document")]
    if not all(re.fullmatch(r"(?:[\w\-()\[\]]|[ \n](?![ \n]))*", name, re.ASCII) for name in names):
        text = (
            "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
            "parentheses, and square brackets. The name can't contain more than one consecutive whitespace character. "
            "Check that the file name conforms to these restrictions and retry your request."
        )
        yield ProviderError(text=text)
    if len(set(names)) < len(names):
        yield ProviderError(text="Messages can't contain duplicate document names.")


@RULES
def cache_points(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse cache points with nothing before them, more than four, and a longer lifetime after a shorter one.

    strands-agents 1.62.0 says so of the API, in its `BedrockModel`: "There is nothing available to cache"
    (2026-11-25). The order is that of tools, system and messages.
    """
    for number, place, _ in request.blocks("cachePoint"):
        if place == 0:
            yield ProviderError(text=f"messages.{number}.content.0: There is nothing available to cache.")
    points = [object_or_empty(one) for one in _cache_points(request)]
    if len(points) > _MOST_CACHE_POINTS:
        yield ProviderError(text=f"You can't include more than {_MOST_CACHE_POINTS} cache points in a request.")
    lifetimes = [point.get("ttl") or "5m" for point in points]
    if any(before == "5m" and ttl == "1h" for before, ttl in pairwise(lifetimes)):
        yield ProviderError(text="A cache point with ttl='1h' must not come after one with ttl='5m'.")


def _cache_points(request: ConverseRequest) -> Iterator[Any]:
    tools, system = object_or_empty(request.body.get("toolConfig")).get("tools"), request.body.get("system")
    for block in (*list_objects(tools), *list_objects(system)):
        if "cachePoint" in block:
            yield block["cachePoint"]
    for _, _, point in request.blocks("cachePoint"):
        yield point


# --- reasoning --------------------------------------------------------------------------------------------------------


@RULES
def thinking_with_forced_tool(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse thinking together with a forced tool: "Thinking may not be enabled when tool_choice forces tool use".

    Quoted in can1357/oh-my-pi#333 (2026-11-25).
    """
    choice = object_or_empty(object_or_empty(request.body.get("toolConfig")).get("toolChoice"))
    if request.thinks and ("any" in choice or "tool" in choice):
        yield ProviderError(text=f"{_MODEL_ERRORS}Thinking may not be enabled when tool_choice forces tool use.")


@RULES.about("additionalModelRequestFields")
def thinking_out_of_bounds(request: ConverseRequest) -> Iterator[ProviderError]:
    """Refuse a budget of thinking below 1024 or not below `maxTokens`, and sampling that thinking does not allow.

    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", quoted in
    danny-avila/LibreChat#8346; "`max_tokens` must be greater than `thinking.budget_tokens`" in vercel/ai#7927;
    "`temperature` may only be set to 1 when thinking is enabled" in BerriAI/litellm#9524 and Aider-AI/aider#3720
    (2026-11-29). The rest are the rules of Messages; other makers' models have fields of the same name.
    """
    if not request.is_for_claude:
        return
    thinking, config = read_thinking(request.body), object_or_empty(request.body.get("inferenceConfig"))
    budget = thinking.get("budget_tokens")
    if request.thinks and type(budget) is int and budget < _LEAST_BUDGET:
        text = f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_BUDGET}"
        yield ProviderError(text=_MODEL_ERRORS + text)
    handed_on = {
        "thinking": thinking,
        "max_tokens": config.get("maxTokens"),
        "temperature": config.get("temperature"),
        "top_p": config.get("topP"),
        "top_k": object_or_empty(request.body.get("additionalModelRequestFields")).get("top_k"),
        "tools": list_tools(request.body),
    }
    for rule in (thinking_budget_too_large, thinking_with_sampling):
        for error in rule(handed_on):
            yield replace(error, text=_MODEL_ERRORS + error.text)


@RULES
def reasoning_not_signed(request: ConverseRequest) -> Iterator[ProviderError]:
    """Require the signature of reasoning if thinking is enabled: "thinking.signature: Field required".

    Quoted in run-llama/llama_index#20851 and can1357/oh-my-pi#10486 (2026-11-25). Other models sign nothing
    (langchain-ai/langchain-aws#408).
    """
    for number, place, reasoning in request.blocks("reasoningContent") if request.thinks else ():
        shown = object_or_empty(reasoning).get("reasoningText")
        if isinstance(shown, Mapping) and not shown.get("signature"):
            yield ProviderError(
                text=f"{_MODEL_ERRORS}messages.{number}.content.{place}.thinking.signature: Field required"
            )


def find_reasoning_errors(body: Mapping[str, Any], sent: SentReasoning) -> Iterator[ProviderError]:
    """Yield the errors of Anthropic's models about reasoning that was sent, as Bedrock hands them on.

    The rules are `REASONING_RULES` of Messages. They are quoted in RooCodeInc/Roo-Code#11238 (reasoning that is
    missing), anomalyco/opencode#18078 (that was modified) and can1357/oh-my-pi#333 (an invalid signature), 2026-11-25.
    """
    messages = [
        {"role": message.get("role"), "content": [_to_anthropic(block) for block in content_of(message)]}
        for message in list_objects(body.get("messages"))
    ]
    handed_on = {"messages": messages, "thinking": read_thinking(body)}
    for error in REASONING_RULES.check(ReasoningRequest(body=handed_on, sent=sent)):
        yield replace(error, text=_MODEL_ERRORS + error.text)


def _to_anthropic(block: Mapping[str, Any]) -> dict[str, Any]:
    reasoning, call = object_or_empty(block.get("reasoningContent")), object_or_empty(block.get("toolUse"))
    if reasoning:
        shown = object_or_empty(reasoning.get("reasoningText"))
        if "redactedContent" in reasoning:
            return {"type": "redacted_thinking", "data": read_blob(reasoning["redactedContent"])}
        return {"type": "thinking", "thinking": shown.get("text"), "signature": shown.get("signature")}
    if call:
        return {"type": "tool_use", "id": call.get("toolUseId"), "name": call.get("name")}
    return {"type": "tool_result"} if "toolResult" in block else {"type": "text"}


def write_blob(text: str) -> str:
    """Return a text as the API writes bytes: as base64."""
    return b64encode(text.encode()).decode()


def read_blob(value: Any) -> str | None:
    """Return the text of bytes; what is no base64, or no text in it, as it is.

    >>> read_blob(write_blob("sig_1")), read_blob("?")
    ('sig_1', '?')
    """
    if not isinstance(value, str):
        return None
    try:
        return b64decode(value, validate=True).decode()
    except (Error, UnicodeDecodeError):
        return value


# --- items ------------------------------------------------------------------------------------------------------------


def list_tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tools that a request offers."""
    tools = list_objects(object_or_empty(body.get("toolConfig")).get("tools"))
    return [object_or_empty(tool["toolSpec"]) for tool in tools if "toolSpec" in tool]


def parse_request(body: Mapping[str, Any], target: RequestTarget, sent: SentReasoning) -> ParsedRequest:
    """Read a body that has the shape of a request against the reasoning that the provider has sent."""
    fits = TYPES.fits(body)
    errors = RULES.check(ConverseRequest(body=body, model=target.model), body, fits=fits)
    if sent and not errors:
        errors = tuple(find_reasoning_errors(body, sent))
    tools = list_tools(body)
    return ParsedRequest(
        body=body,
        items=(*_instruction_items(body.get("system")), *read_items(list_objects(body.get("messages")))),
        model=target.model,
        stream=target.stream,
        tools=tuple(str(tool.get("name")) for tool in tools),
        parameters={
            str(tool.get("name")): property_names(object_or_empty(tool.get("inputSchema")).get("json"))
            for tool in tools
        },
        wants_json=bool(object_or_empty(body.get("outputConfig")).get("textFormat")),
        body_errors=errors,
        fits_types=fits,
        has_signatures=True,
        is_stateful=bool(sent),
    )


def _instruction_items(system: Any) -> Iterator[Item]:
    text = "".join(str(block.get("text") or "") for block in list_objects(system))
    if text:
        yield Item(kind="other", text=text)


def read_items(messages: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    """Yield the items of messages; consecutive texts of the model are one."""
    for number, message in enumerate(messages):
        role = message.get("role")
        for is_text, blocks in groupby(content_of(message), lambda block: isinstance(block.get("text"), str)):
            if is_text and role == "assistant":
                yield Item(kind="say", text="".join(str(block["text"]) for block in blocks), message=number)
            elif is_text:
                kind = "user" if role == "user" else "other"
                yield from (Item(kind=kind, text=str(block["text"]), message=number) for block in blocks)
            else:
                yield from (_read_block(block, number, role) for block in blocks)


def _read_block(block: Mapping[str, Any], number: int, role: Any) -> Item:
    call, result = block.get("toolUse"), block.get("toolResult")
    if isinstance(call, Mapping) and call.get("type") is None:
        arguments = call.get("input")
        arguments = arguments if isinstance(arguments, Mapping) else to_sorted_json(arguments)
        call_id, tool = optional_text(call.get("toolUseId")), optional_text(call.get("name"))
        return Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=number)
    if isinstance(result, Mapping) and result.get("type") is None:
        text = "".join(_text_of(part) for part in list_objects(result.get("content")))
        return Item(kind="result", id=optional_text(result.get("toolUseId")), text=text, message=number)
    reasoning = block.get("reasoningContent")
    if isinstance(reasoning, Mapping):
        return _read_reasoning(reasoning, number)
    # Images, documents and the like are said by the user; cache points are no one's.
    kind = "user" if role == "user" and "cachePoint" not in block else "other"
    return Item(kind=kind, text=to_sorted_json(dict(block)), message=number)


def _read_reasoning(reasoning: Mapping[str, Any], number: int) -> Item:
    shown = object_or_empty(reasoning.get("reasoningText"))
    is_shown = "redactedContent" not in reasoning
    signature = optional_text(shown.get("signature")) if is_shown else read_blob(reasoning["redactedContent"])
    text = optional_text(shown.get("text"))
    return Item(kind="reasoning", id=read_thought_id(signature), text=text, signature=signature, message=number)


def _text_of(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else to_sorted_json(part.get("json", dict(part)))
