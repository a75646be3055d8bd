"""Requests that providers are recorded to answer, and to refuse, are answered and refused here, too.

Each is what matters of a request in a cassette of a public repository, that is, of the traffic between an official
client and the real provider. The cassettes themselves are not in this repository.
"""

from __future__ import annotations

import pytest

from pytest_approvals.protocols.codec import RequestTarget
from tests.protocols.test_legal import chat as chat_body
from tests.protocols.test_legal import converse as converse_body
from tests.protocols.test_legal import gemini, messages, refused, responses, result, user, uses

USER = {"role": "user", "content": "go"}
GO = {"role": "user", "parts": [{"text": "go"}]}
PIXEL = "data:image/png;base64,aGk="


def model_calls(*ids):
    return {"role": "model", "parts": [{"functionCall": {"id": one, "name": "pay", "args": {}}} for one in ids]}


def user_returns(*ids):
    parts = [{"functionResponse": {"id": one, "name": "pay", "response": {"result": 1}}} for one in ids]
    return {"role": "user", "parts": parts}


def calls_block(call_id):
    return {"role": "assistant", "content": [{**uses()["content"][0], "id": call_id}]}


def result_block(*ids):
    return user(*({"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids))


CALL = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}
SEARCH = {
    "type": "tool_search_call",
    "call_id": "s1",
    "execution": "client",
    "status": "completed",
    "arguments": {"queries": ["pay"]},
}
FOUND = {"type": "function_call_output", "call_id": "s1", "output": "found pay"}
LOOKED_UP = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "queries": ["x"], "sources": None},
}
FUNCTION = {"name": "pay", "parameters": {"type": "OBJECT", "properties": {"to": {"type": "STRING"}}}}
NUMBERED = {"name": "pay", "parameters": {"type": 6, "properties": {"to": {"type": 1}}}}
VIDEO = {"inlineData": {"mimeType": "video/mp4", "data": "aGk="}}

ANSWERED = [
    ("chat", "no stop sequence", "crewAIInc/crewAI test_gpt_4_1", chat_body(stop=[])),
    (
        "responses",
        "an image without detail",
        "crmne/ruby_llm activerecord_actsas_attachment_handling",
        responses(user({"type": "input_image", "image_url": PIXEL})),
    ),
    (
        "responses",
        "a call whose status is null",
        "pydantic/pydantic-ai test_openai_responses_requires_function_call_status_none",
        responses(USER, {**CALL, "status": None}, {"type": "function_call_output", "call_id": "c1", "output": "ok"}),
    ),
    (
        "responses",
        "a search whose sources are null",
        "posit-dev/chatlas test_openai_citations_become_the_source_list",
        responses(USER, LOOKED_UP, USER),
    ),
    (
        "responses",
        "a generated image without its bytes",
        "pydantic/pydantic-ai test_openai_responses_image_generation_tool_without_image_output",
        responses(USER, {"type": "image_generation_call", "id": "ig_1"}, USER),
    ),
    (
        "responses",
        "a search for tools that is answered like a function",
        "pydantic/pydantic-ai test_tool_availability_portability_matrix",
        responses(USER, SEARCH, FOUND, USER),
    ),
    (
        "messages",
        "the model speaks first",
        "pydantic/pydantic-ai test_anthropic_model_empty_message_on_history",
        messages({"role": "assistant", "content": "Hello"}, USER),
    ),
    (
        "messages",
        "calls in two messages, results in one",
        "pydantic/pydantic-ai test_cross_provider_capability_replay",
        messages(USER, calls_block("c1"), calls_block("c2"), result_block("c1", "c2")),
    ),
    (
        "messages",
        "an id that comes again after its result",
        "pydantic/pydantic-ai test_cross_provider_capability_replay",
        messages(USER, calls_block("c1"), result_block("c1"), calls_block("c1"), result_block("c1"), USER),
    ),
    (
        "messages",
        "text behind a result",
        "crewAIInc/crewAI TestAnthropicNativeToolCalling",
        messages(USER, uses(), result(content="ok"), USER),
    ),
    (
        "gemini",
        "calls in two contents, results in one",
        "pydantic/pydantic-ai test_cross_provider_capability_replay",
        gemini(GO, model_calls("c1"), model_calls("c2"), user_returns("c1", "c2")),
    ),
    (
        "gemini",
        "results in three contents",
        "crewAIInc/crewAI TestGeminiNativeToolCalling",
        gemini(GO, model_calls("c1", "c2", "c3"), user_returns("c1"), user_returns("c2"), user_returns("c3")),
    ),
    (
        "gemini",
        "an empty text",
        "Mirascope/mirascope test_call_with_empty_string",
        gemini({"role": "user", "parts": [{"text": ""}]}),
    ),
    (
        "gemini",
        "a signature without data",
        "crmne/ruby_llm allows_removing_schema_mid-conversation",
        gemini(GO, {"role": "model", "parts": [{"thought": True, "thoughtSignature": "aGk="}, {"text": "So"}]}, GO),
    ),
    (
        "gemini",
        "the metadata of a video in a part of its own",
        "pydantic/pydantic-ai test_google_model_video_as_binary_content_input_with_vendor_metadata",
        gemini({"role": "user", "parts": [VIDEO, {"videoMetadata": {"startOffset": "2s"}}]}),
    ),
    (
        "gemini",
        "one tool without a list",
        "pydantic/pydantic-ai test_multiple_agent_tool_calls",
        gemini(tools={"function_declarations": [FUNCTION]}),
    ),
    (
        "gemini",
        "types as numbers",
        "open-telemetry/opentelemetry-python-contrib test_function_call_choice",
        gemini(tools=[{"functionDeclarations": [NUMBERED]}]),
    ),
    (
        "gemini",
        "a function without parameters in an object",
        "crmne/ruby_llm function_calling",
        gemini(tools=[{"functionDeclarations": [{"name": "pay", "parameters": {"type": "OBJECT", "properties": {}}}]}]),
    ),
    (
        "converse",
        "a line break as a text",
        "pydantic/pydantic-ai test_bedrock_cache_write_and_read",
        converse_body(user({"text": "go"}, {"text": "\n"}, {"cachePoint": {"type": "default"}})),
    ),
    (
        "converse",
        "a media type as the format of a video",
        "pydantic/pydantic-ai test_video_url_input",
        converse_body(user({"text": "?"}, {"video": {"format": "video/mp4", "source": {"bytes": "aGk="}}})),
    ),
]


@pytest.mark.parametrize(
    ("name", "source", "body"),
    [(name, source, body) for name, _, source, body in ANSWERED],
    ids=[f"{name}: {title}" for name, title, *_ in ANSWERED],
)
def test_recorded_request_is_answered(name, source, body):
    """What a provider answered with status 200, in the cassette of that name, is not refused."""
    assert [] == refused(name, body)[0]
    assert source


SAYS = {"role": "assistant", "content": [{"text": "Hello"}]}


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0", []),
        ("qwen.qwen3-32b-v1%3A0", []),
        ("us.amazon.nova-2-lite-v1%3A0", ["first-not-user"]),
        ("m", ["first-not-user"]),
    ],
)
def test_models_differ_in_who_may_begin(model, rules):
    """Over Converse, a conversation that the model begins is refused but for models of Anthropic and Qwen."""
    body = converse_body(SAYS, user({"text": "go"}))

    assert rules == refused("converse", body, RequestTarget(model=model))[0]


AUDIO = {"type": "input_file", "filename": "a.mp3", "file_data": "data:audio/mpeg;base64,aGk="}
SPLIT = [
    user({"text": "go"}),
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": one, "name": "pay", "input": {}}} for one in "ab"]},
    *(user({"toolResult": {"toolUseId": one, "content": [{"text": "ok"}]}}) for one in "ab"),
]
OFFERED = {"tools": [{"toolSpec": {"name": "pay", "inputSchema": {"json": {"type": "object"}}}}]}

REFUSED = [
    (
        "responses",
        "audio as a file",
        "pydantic/pydantic-ai test_multimodal_tool_return_matrix",
        responses(user(AUDIO)),
        "image-or-file-unreadable",
    ),
    (
        "responses",
        "audio as a file in a result",
        "pydantic/pydantic-ai test_multimodal_tool_return_matrix",
        responses(USER, CALL, {"type": "function_call_output", "call_id": "c1", "output": [AUDIO]}),
        "image-or-file-unreadable",
    ),
    (
        "converse",
        "results in two messages",
        "anomalyco/opencode#41780, a live request to Amazon Nova Micro",
        converse_body(*SPLIT, toolConfig=OFFERED),
        "results-missing",
    ),
]


@pytest.mark.parametrize(
    ("name", "source", "body", "rule"),
    [(name, source, body, rule) for name, _, source, body, rule in REFUSED],
    ids=[f"{name}: {title}" for name, title, *_ in REFUSED],
)
def test_recorded_request_is_refused(name, source, body, rule):
    """What a provider refused because of its form, in the cassette of that name, is refused by a rule."""
    assert rule in refused(name, body)[0]
    assert source
