"""Requests of Gemini: errors of their bodies, and parts as neutral items.

The rules are those of the documentation of Google's client; the sentences are those that the API is quoted with in the
issue trackers of its clients. Rules about the conversation are in `input_rules.py`.

The API reads JSON as protocol buffers do: names in snake case, null for what is left out, and whole numbers as text or
with a fraction of zero. Such a body is first brought into the form of the published types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import ParsedRequest, RequestTarget
from pytest_approvals.protocols.gemini.schema_errors import find_schema_errors
from pytest_approvals.protocols.provider_errors import BodyRules, Limit, ProviderError, PublishedTypes
from pytest_approvals.protocols.reasoning import ReasoningRequest, SentReasoning, read_thought_id
from pytest_approvals.protocols.text import (
    list_objects,
    object_or_empty,
    optional_text,
    property_names,
    to_sorted_json,
)

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""All other rules about a body alone."""

REASONING_RULES: BodyRules[ReasoningRequest] = BodyRules()
"""The rules about reasoning that the provider has sent."""

_DATE = "2026-11-25"
_SDK = "google-genai 3.6.1, documentation of the field"
_CONFIG = "GenerationConfig"
_NAME = "^[a-zA-Z_][a-zA-Z0-9_.:-]*$"

LIMITS = (
    Limit(field=f"{_CONFIG}.temperature", minimum=0, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_CONFIG}.presencePenalty", minimum=-2, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_CONFIG}.frequencyPenalty", minimum=-2, maximum=2, source=_SDK, date=_DATE),
    Limit(field=f"{_CONFIG}.stopSequences", max_items=5, source="API reference of GenerationConfig", date="2026-11-28"),
    # Zero is what protocol buffers leave out.
    Limit(
        field=f"{_CONFIG}.maxOutputTokens",
        minimum=0,
        source="BerriAI/litellm#10548: the supported range is from 1 (inclusive)",
        date="2026-11-29",
    ),
    Limit(
        field=f"{_CONFIG}.candidateCount",
        minimum=0,
        maximum=8,
        source="router-for-me/CLIProxyAPI#879: no model gives more than 8",
        date="2026-11-29",
    ),
    Limit(field="FunctionDeclaration.name", min_length=1, max_length=128, pattern=_NAME, source=_SDK, date=_DATE),
)
"""Bounds of values, beside the published types."""

TYPES = PublishedTypes(str(Path(__file__).with_name("published_types.json")), LIMITS)

_SKIPPED_SIGNATURES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Signatures that the guide of thought signatures allows for calls that another model made."""

_DATA = (
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
    "toolCall",
    "toolResponse",
)
"""The fields of a part of which it has one."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z")

_DATA_WITHOUT_KIND = ("thoughtSignature", "videoMetadata")
"""The fields of a part with which it needs none of those."""


def parts_of(content: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a content."""
    return list_objects(object_or_empty(content).get("parts"))


def _list_parts(content: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [part[kind] for part in parts_of(content) if isinstance(part.get(kind), Mapping)]


# --- the form of the published types ----------------------------------------------------------------------------------


def to_published_form(value: Any, kind: Any) -> Any:
    """Return a value as the published types write it, as far as it is one of *kind*.

    >>> to_published_form({"generation_config": {"max_output_tokens": "5", "seed": None}}, TYPES.request)
    {'generationConfig': {'maxOutputTokens': 5}}
    """
    if isinstance(kind, str):
        return _to_number(value, kind)
    for one in kind.get("any_of", [kind]):
        if isinstance(one, str):
            value = _to_number(value, one)
        elif "values" in one:
            value = _to_word(value, one["values"])
        elif "type" in one and isinstance(value, Mapping):
            return _to_published_object(value, TYPES.types[one["type"]]["fields"])
        elif "list" in one and isinstance(value, list):
            return [to_published_form(element, one["list"]) for element in value]
        elif "list" in one and isinstance(value, Mapping) and "type" in one["list"]:
            # One message counts as a list of one (pydantic/pydantic-ai, cassette `test_multiple_agent_tool_calls`).
            return [to_published_form(value, one["list"])]
        elif "map" in one and isinstance(value, Mapping):
            return {name: to_published_form(element, one["map"]) for name, element in value.items()}
    return value


def _to_published_object(value: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    whole = {}
    for name, held in value.items():
        called = name if name in fields or not isinstance(name, str) else _to_camel_case(name)
        if called not in fields:
            whole[name] = held
        elif held is not None:
            whole[called] = to_published_form(held, fields[called])
    return whole


def _to_word(value: Any, words: list[Any]) -> Any:
    """Return the word of an enumeration's number, which protocol buffers write, too.

    The clients of Vertex AI do (open-telemetry/opentelemetry-python-contrib, cassette `test_function_call_choice`).
    """
    names = [word for word in words if not word.islower()]
    return names[value] if type(value) is int and 0 <= value < len(names) else value


def _to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _to_number(value: Any, kind: str) -> Any:
    if kind not in ("integer", "number") or isinstance(value, bool) or not isinstance(value, str | float):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


# --- rules ------------------------------------------------------------------------------------------------------------


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Invalid JSON payload received. Root element must be a message.")


@SHAPE
def contents_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require contents, an array of objects: "contents is not specified" (vercel/ai#3775, 2026-11-25)."""
    if not isinstance(body, Mapping):
        return
    contents = body.get("contents")
    if contents is None or contents == []:
        yield ProviderError(text="* GenerateContentRequest.contents: contents is not specified\n")
    elif isinstance(contents, Mapping):
        return
    elif not isinstance(contents, list):
        yield ProviderError(text="Invalid value at 'contents' (type.googleapis.com/Content), expected an array")
    else:
        for index, content in enumerate(contents):
            if not isinstance(content, Mapping):
                text = f"Invalid value at 'contents[{index}]' (type.googleapis.com/Content), expected an object"
                yield ProviderError(text=text)


@RULES
def unknown_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the role of the user or of the model, or none (google-genai 3.6.1, documentation of `Content.role`).

    `function` is the role of results in earlier releases of the clients.
    """
    for content in body["contents"]:
        if content.get("role") not in (None, "", "user", "model", "function"):
            yield ProviderError(text="Please use a valid role: user, model.")


@RULES
def empty_parts(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require parts: "contents.parts must not be empty" (vercel/ai#3775, QuantumNous/new-api#1060, 2026-11-25)."""
    for index, content in enumerate(body["contents"]):
        if not content.get("parts"):
            text = f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
            yield ProviderError(text=text)


@RULES
def part_without_data(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require one of the fields with data: "required oneof field 'data' must have one initialized field".

    Quoted in genkit-ai/genkit#3816 and boldsoftware/sketch#68 (2026-11-25). A signature and the metadata of a video are
    data, too (crmne/ruby_llm, cassettes of `allows_removing_schema_mid-conversation`; pydantic/pydantic-ai, cassette
    `test_google_model_video_as_binary_content_input_with_vendor_metadata`, 2026-11-26).
    """
    for index, content in enumerate(body["contents"]):
        for place, part in enumerate(parts_of(content)):
            where = f"contents[{index}].parts[{place}]"
            held = [name for name in _DATA if part.get(name) is not None]
            if not held and not any(part.get(name) is not None for name in _DATA_WITHOUT_KIND):
                text = f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized"
                yield ProviderError(text=f"{text} field\n")
            elif len(held) > 1:
                text = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{held[1]}'"
                yield ProviderError(text=text)


@RULES
def name_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the names of calls, results and declared functions (google-genai 3.6.1: "Required")."""
    for declaration in list_declarations(body):
        if not declaration.get("name"):
            yield ProviderError(
                text="* GenerateContentRequest.tools.function_declarations.name: Name cannot be empty.\n"
            )
    for index, content in enumerate(body["contents"]):
        for place, part in enumerate(parts_of(content)):
            for kind, name in (("functionCall", "function_call"), ("functionResponse", "function_response")):
                if isinstance(part.get(kind), Mapping) and not part[kind].get("name"):
                    where = f"contents[{index}].parts[{place}].{name}.name"
                    yield ProviderError(text=f"* GenerateContentRequest.{where}: Name cannot be empty.\n")


@RULES
def call_turn_first(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse calls in the first turn.

    "Please ensure that function call turn comes immediately after a user turn or after a function response turn",
    quoted in google-gemini/gemini-cli#26486 and #11814 (2026-11-25). Behind a text of the model they are accepted,
    since nobody says what happens.
    """
    for before, content in pairwise([{}, *_turns(body)]):
        if _list_parts(content, "functionCall") and not before:
            text = (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
            yield ProviderError(text=text)


@RULES
def response_turn_without_calls(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse results in another turn than the one behind their calls.

    "Please ensure that function response turn comes immediately after a function call turn", quoted in
    langchain-ai/langchain#27799 and BerriAI/litellm#26755 (2026-11-25).
    """
    for before, content in pairwise([{}, *_turns(body)]):
        if _list_parts(content, "functionResponse") and not _list_parts(before, "functionCall"):
            text = "Please ensure that function response turn comes immediately after a function call turn."
            yield ProviderError(text=text)


@RULES
def number_of_responses(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require as many results behind calls as there are calls.

    "Please ensure that the number of function response parts is equal to the number of function call parts of the
    function call turn", quoted in google-gemini/gemini-cli#16984 and #17208 (2026-11-25).
    """
    for content, following in pairwise(_turns(body)):
        calls, responses = _list_parts(content, "functionCall"), _list_parts(following, "functionResponse")
        if calls and len(calls) != len(responses):
            text = (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
            yield ProviderError(text=text, ids=tuple(str(call["id"]) for call in calls if call.get("id")))


def _turns(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the contents with those in a row of one side as one.

    Models differ in what they refuse of results in several contents: gemini-2.5-flash accepts them, gemini-3-pro does
    not (Oaklight/llm-rosetta#300, cloudwego/eino-ext#571, 2026-11-26). Calls in several contents are accepted, too
    (pydantic/pydantic-ai, cassettes of `test_cross_provider_capability_replay`).
    """
    turns: list[Mapping[str, Any]] = []
    for is_model, contents in groupby(body["contents"], lambda content: content.get("role") == "model"):
        parts = [part for content in contents for part in parts_of(content)]
        turns.append({"role": "model" if is_model else "user", "parts": parts})
    return turns


@RULES.about("toolConfig")
def allowed_names(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow `allowedFunctionNames` only in a mode that forces calls, and of declared functions.

    google-genai 3.6.1, documentation of the field (2026-11-25).
    """
    config = object_or_empty(object_or_empty(body.get("toolConfig")).get("functionCallingConfig"))
    names = config.get("allowedFunctionNames")
    if not names or not isinstance(names, list):
        return
    if str(config.get("mode")).upper() not in ("ANY", "VALIDATED"):
        yield ProviderError(text="allowed_function_names should be set only when mode is ANY or VALIDATED.")
    known = [declaration.get("name") for declaration in list_declarations(body)]
    for name in names if all(set(tool) == {"functionDeclarations"} for tool in list_objects(body.get("tools"))) else ():
        if name not in known:
            yield ProviderError(text=f"allowed_function_names: '{name}' is not one of the function_declarations.")


@RULES.about("toolConfig")
def config_without_functions(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow `functionCallingConfig` only together with functions, unless calls of the provider are to be shown.

    "Function calling config is set without function_declarations", quoted in pydantic/pydantic-ai#5791 (which tells of
    the exception), AstrBotDevs/AstrBot#7407 and musistudio/claude-code-router#1207 (2026-11-28).
    """
    config = object_or_empty(body.get("toolConfig"))
    calling = config.get("functionCallingConfig")
    if calling is None or config.get("includeServerSideToolInvocations") is True:
        return
    is_known = str(object_or_empty(calling).get("mode") or "AUTO").upper() in ("AUTO", "ANY", "NONE", "VALIDATED")
    if is_known and not list_declarations(body) and not body.get("cachedContent"):
        yield ProviderError(text="Function calling config is set without function_declarations.")


@RULES.about("tools")
def two_schemas(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse `parameters` together with `parametersJsonSchema`: "mutually exclusive" (google-genai 3.6.1)."""
    for declaration in list_declarations(body):
        for one, other in (("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema")):
            if declaration.get(one) is not None and declaration.get(other) is not None:
                yield ProviderError(text=f"function_declarations: only one of {one} and {other} can be set.")


_OTHER_TYPES = ("ARRAY", "BOOLEAN", "INTEGER", "NULL", "NUMBER", "STRING")


@RULES.about("tools")
def parameters_not_an_object(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the schema of a function's parameters to be that of an object, if it says its type.

    "functionDeclaration parameters schema should be of type OBJECT", quoted in diegosouzapw/OmniRoute#3360 and
    spring-projects/spring-ai#1373 (2026-11-29). A schema without a type is accepted; see `find_schema_errors`.
    """
    for declaration in list_declarations(body):
        kind = object_or_empty(declaration.get("parameters")).get("type")
        if isinstance(kind, str) and kind.upper() in _OTHER_TYPES:
            text = f"{declaration.get('name')} functionDeclaration parameters schema should be of type OBJECT"
            yield ProviderError(text=f"Unable to submit request because {text}.")


@RULES.about("tools")
def schema_of_parameters(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse schemas of parameters that the API has no words for; see `find_schema_errors`."""
    for number, tool in enumerate(list_objects(body.get("tools"))):
        for index, declaration in enumerate(list_objects(tool.get("functionDeclarations"))):
            where = f"tools[{number}].function_declarations[{index}].parameters"
            yield from find_schema_errors(declaration.get("parameters"), where)


_MOST_FUNCTIONS = 512


@RULES.about("tools")
def repeated_functions(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse two functions of one name: "Duplicate function declaration found".

    Quoted in ai-dashboad/flutter-skill#32, rikkahub/rikkahub#1311 and tridz-dev/huf#341 (2026-11-28).
    """
    names = Counter(str(declaration.get("name")) for declaration in list_declarations(body))
    for name, times in names.items():
        if times > 1:
            yield ProviderError(text=f"Duplicate function declaration found: {name}")


@RULES.about("tools")
def too_many_functions(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow 512 functions: "At most 512 function declarations can be specified".

    Quoted in google-gemini/gemini-cli#19083 (2026-11-28).
    """
    if len(list_declarations(body)) > _MOST_FUNCTIONS:
        text = f"At most {_MOST_FUNCTIONS} function declarations can be specified."
        yield ProviderError(text=f"* GenerateContentRequest.tools[0].function_declarations: [FIELD_INVALID] {text}\n")


@RULES.about("cachedContent")
def cached_content_with_tools(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse cached content together with what the cache holds.

    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config",
    quoted in BerriAI/litellm#17304 and langchain-ai/langchain-google#978 (2026-11-26).
    """
    if body.get("cachedContent") and any(body.get(name) for name in ("systemInstruction", "tools", "toolConfig")):
        text = (
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
            "tool_config. Proposed fix: move those values to CachedContent from GenerateContent request."
        )
        yield ProviderError(text=text)


@RULES
def bytes_not_base64(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require base64 of one of the two alphabets: "(TYPE_BYTES), Base64 decoding failed".

    Quoted in danny-avila/LibreChat#6593 (data) and crmne/ruby_llm#521 (a signature), 2026-11-26.
    """
    for index, content in enumerate(body["contents"]):
        for place, part in enumerate(parts_of(content)):
            held = {
                "inline_data.data": object_or_empty(part.get("inlineData")).get("data"),
                "thought_signature": part.get("thoughtSignature"),
            }
            for name, value in held.items():
                if isinstance(value, str) and not _BASE64.match(value):
                    where = f"contents[{index}].parts[{place}].{name}"
                    text = f"Invalid value at '{where}' (TYPE_BYTES), Base64 decoding failed for \"{value[:80]}\""
                    yield ProviderError(text=text)


@RULES
def empty_data(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse data without a byte: "Unable to submit request because it has an empty inlineData parameter".

    The integration tests of JetBrains/koog expect it of Google's models (2026-11-29).
    """
    for content in body["contents"]:
        if any(data.get("data") == "" for data in _list_parts(content, "inlineData")):
            text = "Unable to submit request because it has an empty inlineData parameter. Add a value to the parameter"
            yield ProviderError(text=f"{text} and try again.")


_ANSWERS = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")


@RULES.about("generationConfig")
def mime_type_of_the_answer(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow the media types that the API names: "response_mime_type: allowed mimetypes are `text/plain`, …".

    The sentence is in error logs of dmxapi.cn, number 1689, of January 2026 (2026-11-29).
    """
    wanted = object_or_empty(body.get("generationConfig")).get("responseMimeType")
    if isinstance(wanted, str) and wanted and wanted not in _ANSWERS:
        names = ", ".join(f"`{name}`" for name in _ANSWERS[:-1])
        text = f"generation_config.response_mime_type: allowed mimetypes are {names} and `{_ANSWERS[-1]}`."
        yield ProviderError(text=f"* GenerateContentRequest.{text}\n")


@RULES.about("generationConfig")
def schema_without_mime_type(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require JSON as the type of an answer with a schema (google-genai 3.6.1, documentation of the field)."""
    config = object_or_empty(body.get("generationConfig"))
    has_schema = config.get("responseSchema") is not None or config.get("responseJsonSchema") is not None
    if has_schema and config.get("responseMimeType") not in ("application/json", "text/x.enum"):
        text = "GenerationConfig.response_mime_type: must be application/json if a response schema is set"
        yield ProviderError(text=f"* GenerateContentRequest.{text}\n")


@RULES.about("generationConfig")
def two_response_schemas(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse `responseSchema` together with `responseJsonSchema`: it "must be omitted".

    google-genai 3.6.1, documentation of the field (2026-11-28).
    """
    config = object_or_empty(body.get("generationConfig"))
    if config.get("responseSchema") is not None and config.get("responseJsonSchema") is not None:
        yield ProviderError(text="* GenerateContentRequest.generation_config: only one response schema can be set.\n")


@RULES.about("generationConfig")
def thinking_level_with_budget(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a level of thinking together with a budget: "Doing so will return a 400 error".

    The guide of Gemini 3, quoted in nshkrdotcom/gemini_ex (documentation of `ThinkingConfig`), and
    Tom-Ryder/AgentRunKit#7 (2026-11-28).
    """
    config = object_or_empty(object_or_empty(body.get("generationConfig")).get("thinkingConfig"))
    if config.get("thinkingLevel") is not None and config.get("thinkingBudget") is not None:
        yield ProviderError(text="You can only set only one of thinking budget and thinking level.")


# --- reasoning --------------------------------------------------------------------------------------------------------


@REASONING_RULES
def thought_signature_missing(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the signature of the first call of each step since the user said something.

    "Function call is missing a thought_signature in functionCall parts", quoted in microsoft/semantic-kernel#13417,
    langgenius/dify-official-plugins#2088 and nearai/ironclaw#1510 (2026-11-25). The signatures of older steps, and of
    texts, may be left out (guide of thought signatures).
    """
    contents = request.body["contents"]
    start = max((index for index, content in enumerate(contents) if _is_said(content)), default=0)
    for index, content in enumerate(contents[start:], start):
        calls = [part for part in parts_of(content) if isinstance(part.get("functionCall"), Mapping)]
        ids = [str(part["functionCall"].get("id")) for part in calls]
        steps = request.sent.expect_steps(ids)
        if calls and steps and steps[0] in request.sent.by_signature and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"].get("name")
            text = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{name}` , position {index + 1}."
            )
            yield ProviderError(text=text, ids=tuple(ids))


@REASONING_RULES
def thought_signature_invalid(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Refuse another signature of a call than the one that it was sent with: "Thought signature is not valid".

    The guide of thought signatures says to return them exactly as they were received; it allows two words for calls
    that another model made. Signatures of calls that this provider did not send are taken as they are.
    """
    for content in request.body["contents"]:
        for part in parts_of(content):
            call, signature = object_or_empty(part.get("functionCall")), part.get("thoughtSignature")
            steps = request.sent.expect_steps([str(call.get("id"))]) if signature and call else []
            known = [step for step in steps if step in request.sent.by_signature]
            if known and read_signature(signature) not in (*known, *_SKIPPED_SIGNATURES):
                yield ProviderError(text="Thought signature is not valid.", ids=(str(call.get("id")),))


def _is_said(content: Mapping[str, Any]) -> bool:
    return content.get("role") != "model" and not _list_parts(content, "functionResponse")


def write_signature(signature: str) -> str:
    """Return a signature as the API writes bytes: as base64."""
    from base64 import b64encode

    return b64encode(signature.encode()).decode()


def read_signature(text: Any) -> str | None:
    """Return the signature in a part; what is no base64, or no text in it, as it is.

    >>> read_signature(write_signature("sig_1")), read_signature("?")
    ('sig_1', '?')
    """
    from base64 import b64decode
    from binascii import Error

    if not isinstance(text, str) or not text:
        return None
    try:
        # Both alphabets are taken; the client writes the one of addresses.
        return b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True).decode()
    except (Error, UnicodeDecodeError):
        return text


# --- items ------------------------------------------------------------------------------------------------------------


def list_declarations(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the functions that a request declares."""
    tools = list_objects(body.get("tools"))
    return [declaration for tool in tools for declaration in list_objects(tool.get("functionDeclarations"))]


def parse_request(body: Mapping[str, Any], target: RequestTarget, sent: SentReasoning) -> ParsedRequest:
    """Read a body that has the shape of a request against the reasoning that the provider has sent."""
    body = to_published_form(body, TYPES.request)
    fits = TYPES.fits(body)
    errors = RULES.check(body, body, fits=fits)
    if sent and not errors:
        errors = REASONING_RULES.check(ReasoningRequest(body=body, sent=sent))
    declarations = list_declarations(body)
    config = object_or_empty(body.get("generationConfig"))
    return ParsedRequest(
        body=body,
        items=(*_instruction_items(body.get("systemInstruction")), *read_items(body["contents"], sent)),
        model=target.model,
        stream=target.stream,
        as_array=target.as_array,
        tools=tuple(str(declaration.get("name")) for declaration in declarations),
        parameters={str(declaration.get("name")): _property_names(declaration) for declaration in declarations},
        wants_json=config.get("responseMimeType") == "application/json",
        body_errors=errors,
        fits_types=fits,
        has_signatures=True,
        is_stateful=bool(sent),
    )


def _property_names(declaration: Mapping[str, Any]) -> frozenset[str]:
    return property_names(declaration.get("parameters")) | property_names(declaration.get("parametersJsonSchema"))


def _instruction_items(instruction: Any) -> Iterator[Item]:
    text = "".join(str(part.get("text") or "") for part in parts_of(instruction))
    if text:
        yield Item(kind="other", text=text)


_UNNAMED = "unnamed-"


def is_unnamed(call_id: str) -> bool:
    """Return whether what names a call stands for an id that it does not have."""
    return call_id.startswith(_UNNAMED)


class _UnnamedCalls:
    """Ids for calls and results that have none: such a result belongs to the first open call of its tool."""

    def __init__(self) -> None:
        self._given = 0
        self._open: dict[str, list[str]] = {}

    def name_call(self, tool: str, call_id: str | None) -> str:
        if call_id is None:
            self._given += 1
            call_id = f"{_UNNAMED}{self._given}"
        self._open.setdefault(tool, []).append(call_id)
        return call_id

    def name_result(self, tool: str, result_id: str | None) -> str | None:
        waiting = self._open.get(tool, [])
        if result_id is None:
            return waiting.pop(0) if waiting else None
        if result_id in waiting:
            waiting.remove(result_id)
        return result_id


def read_items(contents: list[Mapping[str, Any]], sent: SentReasoning) -> Iterator[Item]:
    """Yield the items of contents; each content has its number.

    Reasoning is what a signature stands for, if it is not one of the words for calls without any. The text of a
    thought is only a summary for people, which the provider does not want back.
    """
    unnamed = _UnnamedCalls()
    for number, content in enumerate(contents):
        role = "say" if content.get("role") == "model" else "user"
        for part in _join_signatures(parts_of(content)):
            signature = read_signature(part.get("thoughtSignature"))
            if signature not in (None, *_SKIPPED_SIGNATURES):
                known = sent.by_signature.get(signature)
                yield Item(
                    kind="reasoning",
                    id=read_thought_id(signature),
                    text=known.text if known is not None else None,
                    signature=signature,
                    message=number,
                )
            if not part.get("thought"):
                yield from _read_part(part, role, number, unnamed)


def _join_signatures(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return *parts* with signatures on what they sign: a stream ends with that of its text, in a part of its own."""
    joined: list[Mapping[str, Any]] = []
    begin = None  # where the text that the newest part continues begins
    for part in parts:
        if begin is not None and part.get("text") == "" and part.get("thoughtSignature"):
            joined[begin] = {**joined[begin], "thoughtSignature": part["thoughtSignature"]}
            begin = None
            continue
        if not part.get("text") or part.get("thought") or part.get("thoughtSignature"):
            begin = None
        elif begin is None:
            begin = len(joined)
        joined.append(part)
    return joined


def _read_part(part: Mapping[str, Any], role: str, number: int, unnamed: _UnnamedCalls) -> Iterator[Item]:
    call, response = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, Mapping):
        tool = optional_text(call.get("name"))
        call_id = unnamed.name_call(str(tool), optional_text(call.get("id")) or None)
        arguments = call.get("args") if call.get("args") is not None else {}
        yield Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=number)
    elif isinstance(response, Mapping):
        tool = optional_text(response.get("name"))
        result_id = unnamed.name_result(str(tool), optional_text(response.get("id")) or None)
        yield Item(kind="result", id=result_id, tool=tool, text=read_response(response.get("response")), message=number)
    elif part.get("text"):
        yield Item(kind=role, text=str(part["text"]), message=number)
    elif part.get("text") is None:
        # Images, files and the like are said by the user; the rest are parts of the model and of its servers.
        yield Item(kind="user" if role == "user" else "other", text=to_sorted_json(dict(part)), message=number)


_USUAL_KEYS = ("result", "output", "error", "return_value", "call_error")
"""Names under which clients put the text of a result, which has to be an object: Google's own, and Pydantic AI's."""


def read_response(response: Any) -> str:
    """Return the text of a result: what is under its only key, if that is one of the usual ones.

    >>> read_response({"result": "ok"}), read_response({"return_value": "ok"}), read_response({"amount": 5})
    ('ok', 'ok', '{"amount": 5}')
    """
    if isinstance(response, Mapping) and len(response) == 1:
        (name, value), *_ = response.items()
        if name in _USUAL_KEYS:
            return value if isinstance(value, str) else to_sorted_json(value)
    return to_sorted_json(response)
