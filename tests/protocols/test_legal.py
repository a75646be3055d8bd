"""What the providers' published types allow is accepted, and what they do not allow is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_approvals.protocols import CODECS, create_codec
from pytest_approvals.protocols.codec import IN_BODY
from pytest_approvals.protocols.responses.replies import USAGE
from tests.protocols import published_types

USER = {"role": "user", "content": "go"}
PIXEL = {"type": "base64", "media_type": "image/png", "data": "aGk="}
SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
    "additionalProperties": False,
}


def chat(*messages, **more):
    return {"model": "m", "messages": list(messages) or [USER]} | more


def responses(*items, **more):
    return {"model": "m", "input": list(items) or "go"} | more


def messages(*those, **more):
    return {"model": "m", "max_tokens": 10, "messages": list(those) or [USER]} | more


def user(*parts):
    return {"role": "user", "content": list(parts)}


def text(said, **more):
    return {"type": "text", "text": said, **more}


def calls(**more):
    function = {"name": "pay", "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}], **more}


def uses(**more):
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "pay", "input": {}, **more}]}


def result(**more):
    return user({"type": "tool_result", "tool_use_id": "c1", **more})


GO = {"role": "user", "parts": [{"text": "go"}]}


def gemini(*contents, **more):
    return {"contents": list(contents) or [GO]} | more


def converse(*those, **more):
    return {"messages": list(those) or [user({"text": "go"})]} | more


OFFERED = {"tools": [{"toolSpec": {"name": "pay", "inputSchema": {"json": {"type": "object"}}}}]}
PAY = {"type": "function", "function": {"name": "pay", "parameters": SCHEMA, "strict": True}}
OWN = {"type": "function", "name": "pay", "parameters": SCHEMA, "strict": None}
TOOL = {"name": "pay", "input_schema": SCHEMA}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
FETCHES = {"type": "web_fetch_20250910", "name": "web_fetch"}
FETCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {"url": "https://x.invalid"}}
FETCHED = {
    "type": "web_fetch_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "web_fetch_tool_result_error", "error_code": "unavailable"},
}
CALL = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
LOCAL_SHELL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "c1",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
    "status": "completed",
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
INPUT = {"type": "input_text", "text": "go"}
SAID = {"type": "output_text", "text": "So", "annotations": []}

LEGAL = {
    "chat": {
        "only a system message": chat({"role": "system", "content": "be kind"}),
        "only a developer message": chat({"role": "developer", "content": [text("be kind")]}),
        "an image": chat(user(text("?"), {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}})),
        "audio": chat(user({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}})),
        "a file": chat(user({"type": "file", "file": {"file_id": "file_1"}})),
        "data of a file with a name": chat(
            user({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}})
        ),
        "a forced function of the old kind": chat(functions=[{"name": "pay"}], function_call={"name": "pay"}),
        "audio of the model": chat(USER, {"role": "assistant", "audio": {"id": "audio_1"}}, USER),
        "audio asked for": chat(modalities=["text", "audio"], audio={"format": "mp3", "voice": "alloy"}),
        "a refusal of the model": chat(USER, {"role": "assistant", "content": None, "refusal": "No."}, USER),
        "a refusal as a part": chat(USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}),
        "calls without content": chat(USER, calls(), {"role": "tool", "tool_call_id": "c1", "content": "ok"}),
        "a result in parts": chat(
            USER, calls(content=""), {"role": "tool", "tool_call_id": "c1", "content": [text("ok")]}
        ),
        "a message as it was received": chat(
            USER,
            calls(content=None, refusal=None, annotations=[], audio=None, function_call=None),
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ),
        "a function of the old kind": chat(
            USER,
            {"role": "assistant", "content": None, "function_call": {"name": "pay", "arguments": "{}"}},
            {"role": "function", "name": "pay", "content": None},
        ),
        "a forced tool": chat(tools=[PAY], tool_choice={"type": "function", "function": {"name": "pay"}}),
        "no tool wanted": chat(tools=[PAY], tool_choice="none", parallel_tool_calls=False),
        "a custom tool": chat(tools=[{"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}]),
        "a tool with nothing but a name": chat(tools=[{"type": "function", "function": {"name": "pay"}}]),
        "settings": chat(temperature=2, top_p=0.5, n=2, stop=["a"], seed=1, logit_bias={"1": -100}, logprobs=True),
        "nulls": chat(temperature=None, stop=None, max_tokens=None, stream_options=None, metadata=None),
        "structured output": chat(
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
        ),
        "a stream with usage": chat(stream=True, stream_options={"include_usage": True}),
        "names": chat({**USER, "name": "Ann"}, max_completion_tokens=5, reasoning_effort="low", store=True, user="u"),
    },
    "responses": {
        "only a developer message": responses({"role": "developer", "content": "be kind"}),
        "only a system message": responses({"role": "system", "content": [{"type": "input_text", "text": "be kind"}]}),
        "a prompt without input": {"prompt": {"id": "pmpt_1", "variables": {"a": "b"}}},
        "a message with an id": responses(
            {"type": "message", "id": "msg_in_1", "status": "completed", "role": "user", "content": [INPUT]}
        ),
        "an image": responses(user({"type": "input_image", "image_url": "data:,", "detail": "auto"})),
        "a file": responses(user({"type": "input_file", "file_id": "file_1"})),
        "reasoning before a call": responses(USER, THOUGHT, {**CALL, "id": "fc_1"}, OUTPUT),
        "reasoning before a message": responses(USER, THOUGHT, {"role": "assistant", "content": [SAID]}),
        "a message of the model": responses(
            USER, {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [SAID]}
        ),
        "an output in parts": responses(USER, CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "ok"}]}),
        "a search": responses(
            USER,
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "x", "queries": ["x"]},
            },
        ),
        "a shell call": responses(
            USER,
            {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
            {
                "type": "shell_call_output",
                "call_id": "c1",
                "output": [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        "a custom call": responses(
            USER,
            {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
        ),
        "a shell call of the provider": responses(
            USER,
            {
                "type": "shell_call",
                "call_id": "c1",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference", "container_id": "cntr_1"},
            },
        ),
        "a shell call of nobody knows whom": responses(
            USER, {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "environment": None}
        ),
        "a local shell call": responses(
            USER, LOCAL_SHELL, {"type": "local_shell_call_output", "call_id": "c1", "output": "ok"}
        ),
        "a local shell call with both ids": responses(
            USER, LOCAL_SHELL, {"type": "local_shell_call_output", "id": "c1", "call_id": "c1", "output": "ok"}
        ),
        "a local shell call as the types have it": responses(
            USER, LOCAL_SHELL, {"type": "local_shell_call_output", "id": "c1", "output": "ok"}
        ),
        "a local shell call that is answered like a function": responses(USER, LOCAL_SHELL, OUTPUT),
        "a patch": responses(
            USER,
            {
                "type": "apply_patch_call",
                "call_id": "c1",
                "operation": {"type": "delete_file", "path": "a"},
                "status": "completed",
            },
            {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"},
        ),
        "a message with a status": responses({**USER, "status": "completed"}),
        "a phase of the model": responses(USER, {"role": "assistant", "content": "So", "phase": "commentary"}),
        "one call of tools": responses(max_tool_calls=1),
        "an empty text behind a prompt": {"prompt": {"id": "pmpt_1"}, "input": ""},
        "a compaction": responses({"type": "compaction", "encrypted_content": "x"}, USER),
        "hosted tools": responses(
            tools=[
                {"type": "web_search"},
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {"type": "file_search", "vector_store_ids": ["vs_1"]},
                {
                    "type": "mcp",
                    "server_label": "web",
                    "server_url": "https://web.invalid",
                    "require_approval": "never",
                },
            ]
        ),
        "an approval": responses(
            USER,
            {"type": "mcp_approval_request", "id": "r1", "name": "s", "arguments": "{}", "server_label": "web"},
            {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": False, "reason": "no"},
        ),
        "a forced tool": responses(tools=[OWN], tool_choice={"type": "function", "name": "pay"}),
        "allowed tools": responses(
            tools=[OWN], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function"}]}
        ),
        "tool choices without tools": responses(tool_choice="auto", parallel_tool_calls=True),
        "settings": responses(
            temperature=0, top_p=1, max_output_tokens=16, truncation="auto", include=["reasoning.encrypted_content"]
        ),
        "structured output": responses(text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}),
        "reasoning settings": responses(reasoning={"effort": "low", "summary": "auto"}, store=False, background=None),
    },
    "messages": {
        "only an image": messages(user({"type": "image", "source": PIXEL})),
        "only a document": messages(
            user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}})
        ),
        "only a search result": messages(
            user({"type": "search_result", "source": "s", "title": "t", "content": [text("x")]})
        ),
        "only an upload": messages(user({"type": "container_upload", "file_id": "file_1"})),
        "an image before the model": messages(
            user({"type": "image", "source": {"type": "url", "url": "https://x.invalid"}}),
            {"role": "assistant", "content": "So"},
            USER,
        ),
        "system messages in a row": messages(USER, *2 * [{"role": "system", "content": "be kind"}]),
        "a system message before the model": messages(
            USER, {"role": "system", "content": [text("be kind")]}, {"role": "assistant", "content": "So"}, USER
        ),
        "a system message that only configures": messages(
            USER, {"role": "system", "content": [], "output_config": {"effort": "low"}}, USER
        ),
        "an empty message of the user beside another": messages({"role": "user", "content": []}, USER),
        "an empty message of the user behind another": messages(USER, {"role": "user", "content": ""}),
        "an empty message of the model": messages(USER, {"role": "assistant", "content": ""}, USER),
        "an empty message of the model at the end": messages(USER, {"role": "assistant", "content": ""}),
        "thinking at the end of an earlier message": messages(
            USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, USER
        ),
        "a thread is begun": messages(thread={"type": "create"}),
        "a system message later": messages(USER, {"role": "system", "content": "be kind"}),
        "system in blocks": messages(system=[text("be kind", cache_control={"type": "ephemeral", "ttl": "1h"})]),
        "thinking": messages(
            USER,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, *uses()["content"]],
            },
            result(content="ok"),
            max_tokens=4096,
            thinking={"type": "enabled", "budget_tokens": 1024},
        ),
        "hidden thinking": messages(
            USER, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, text("So")]}, USER
        ),
        "a result without content": messages(USER, uses(), result()),
        "an error in two texts": messages(USER, uses(), result(is_error=True, content=[text("x"), text("y")])),
        "a forced tool": messages(tools=[TOOL], tool_choice={"type": "tool", "name": "pay"}),
        "one call at a time": messages(tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
        "no tool wanted": messages(tools=[TOOL], tool_choice={"type": "none"}),
        "tools of the provider": messages(
            tools=[
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
                {"type": "bash_20250124", "name": "bash"},
            ]
        ),
        "two toolsets": messages(
            mcp_servers=[{"type": "url", "name": name, "url": "https://x.invalid"} for name in ("a", "b")],
            tools=[{"type": "mcp_toolset", "mcp_server_name": name} for name in ("a", "b")],
        ),
        "settings": messages(temperature=1, top_p=0.5, top_k=5, stop_sequences=["x"], metadata={"user_id": "u"}),
        "the cache is filled": messages(max_tokens=0, stream=False, tools=[TOOL], tool_choice={"type": "auto"}),
        "a container of a program": messages(
            container="c1", tools=[{"type": "code_execution_20250825", "name": "code_execution"}]
        ),
        "a region": messages(inference_geo="us", stream=False),
        "a wildcard in a path": messages(
            tools=[{"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.invalid/*/x"]}]
        ),
        "an image of its type": messages(user({"type": "image", "source": {**PIXEL, "data": PNG}})),
        "a deferred tool beside a cached one": messages(
            tools=[{**TOOL, "cache_control": {"type": "ephemeral"}}, {**TOOL, "name": "b", "defer_loading": True}]
        ),
        "an hour for the request and its last block": messages(
            user(text("go", cache_control={"type": "ephemeral", "ttl": "1h"})),
            cache_control={"type": "ephemeral", "ttl": "1h"},
        ),
        "adaptive thinking": messages(thinking={"type": "adaptive"}, temperature=1),
        "citations without a schema": messages(user({**DOCUMENT, "citations": {"enabled": True}}, text("?"))),
        "a document without citations and a schema": messages(
            user(DOCUMENT, text("?")), output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
        ),
        "a call of the provider that waits for results": messages(
            USER,
            {"role": "assistant", "content": [FETCH, *uses()["content"]]},
            result(content="ok"),
            tools=[FETCHES, TOOL],
        ),
        "a call of the provider that was answered later": messages(
            USER,
            {"role": "assistant", "content": [FETCH, *uses()["content"]]},
            result(content="ok"),
            {"role": "assistant", "content": [FETCHED, text("So")]},
            USER,
            tools=[FETCHES, TOOL],
        ),
        "a turn that was paused": messages(USER, {"role": "assistant", "content": [FETCH]}, tools=[FETCHES]),
        "instructions behind a result of the provider": messages(
            USER, {"role": "assistant", "content": [FETCH, FETCHED]}, {"role": "system", "content": "be kind"}
        ),
        "a call from a program": messages(
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {}},
                    *uses(caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_2"})["content"],
                ],
            },
            result(content="ok"),
        ),
        "a prefilled answer": messages(USER, {"role": "assistant", "content": "So"}),
        "structured output": messages(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
    },
    "gemini": {
        "a story": gemini(
            GO,
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "pay", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "pay", "response": {"result": 1}}}]},
            tools=[{"functionDeclarations": [{"name": "pay", "parameters": {"type": "OBJECT"}}]}],
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["pay"]}},
        ),
        "media": gemini(
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"text": "?"}]}
        ),
        "a thought": gemini(
            GO, {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "So", "thoughtSignature": "x"}]}
        ),
        "words of the API": gemini(generationConfig={"responseMimeType": "text/plain", "candidateCount": 8}),
        "parameters without a type": gemini(
            tools=[{"functionDeclarations": [{"name": "pay", "parameters": {"properties": {"a": {"type": "STRING"}}}}]}]
        ),
        "settings": gemini(
            systemInstruction={"parts": [{"text": "be kind"}]},
            generationConfig={"temperature": 0.5, "maxOutputTokens": 5, "stopSequences": ["x"]},
            safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        ),
        "structured output": gemini(
            generationConfig={"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}}
        ),
    },
    "converse": {
        "a story": converse(
            user({"text": "go"}, {"cachePoint": {"type": "default", "ttl": "5m"}}),
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                    {"text": "Wait"},
                    {"toolUse": {"toolUseId": "c1", "name": "pay", "input": {"amount": 5}}},
                ],
            },
            user({"toolResult": {"toolUseId": "c1", "content": [{"text": "a"}, {"json": {}}], "status": "success"}}),
            toolConfig={**OFFERED, "toolChoice": {"tool": {"name": "pay"}}},
        ),
        "media": converse(
            user(
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"document": {"format": "pdf", "name": "a b", "source": {"s3Location": {"uri": "s3://bucket/a"}}}},
                {"text": "?"},
            )
        ),
        "two tools": converse(
            toolConfig={
                "tools": [
                    *OFFERED["tools"],
                    {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
                ]
            }
        ),
        "redacted reasoning": converse(
            user({"text": "go"}), {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": "aGk="}}]}
        ),
        "settings": converse(
            system=[{"text": "be kind"}],
            inferenceConfig={"maxTokens": 5, "temperature": 0.5, "topP": 1, "stopSequences": ["x"]},
            guardrailConfig={"guardrailIdentifier": "a1", "guardrailVersion": "1", "trace": "enabled"},
            performanceConfig={"latency": "optimized"},
            additionalModelResponseFieldPaths=["/stop_sequence"],
        ),
        "structured output": converse(
            outputConfig={"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}}}
        ),
    },
}


def refused(name, body, target=IN_BODY):
    """Return the rules that a body breaks, and the text of the error that its client gets."""
    from tests.protocols.conftest import Wire, reply

    wire = Wire(name, reply(say="done"))
    answer = asyncio.run(wire.endpoint.post(json.dumps(body).encode(), target))
    shown = b"".join(answer.pieces)
    return [one.rule for one in wire.script.asked[-1][1].violations], shown.decode() if answer.status != 200 else ""


@pytest.mark.parametrize(
    ("name", "body"),
    [(name, body) for name, bodies in LEGAL.items() for body in bodies.values()],
    ids=[f"{name}: {title}" for name, bodies in LEGAL.items() for title in bodies],
)
def test_legal_requests_are_answered(name, body):
    """No rule refuses what the provider takes."""
    assert ([], "") == refused(name, body)


MALFORMED = [
    ("chat", chat(temperature=3), "Invalid 'temperature': integer above maximum value. Expected a value <= 2"),
    ("chat", chat(temperature="hot"), "Invalid type for 'temperature': expected a decimal, but got a string"),
    ("chat", chat(thinking=True), "Unrecognized request argument supplied: thinking"),
    ("chat", chat(response_format={"type": "text", "strict": True}), "Unknown parameter: 'response_format.strict'."),
    ("chat", chat(user({"type": "text"})), "Missing required parameter: 'messages[0].content[0].text'."),
    ("chat", chat(user({"type": "picture"})), "Invalid value: 'picture'. Supported values are: 'text', 'image_url'"),
    ("chat", chat(USER, {"role": "assistant", "content": 5}), "Invalid type for 'messages[1].content'"),
    ("chat", chat(n=0), "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0 instead."),
    ("chat", chat(n=True), "Invalid type for 'n': expected an integer, but got a boolean instead."),
    ("chat", chat(stop=list("abcde")), "Invalid 'stop': array too long. Expected an array with maximum length 4"),
    ("chat", chat(tools=[PAY], tool_choice="maybe"), "Invalid value: 'maybe'."),
    ("chat", chat(tools=[{"type": "function"}]), "Missing required parameter: 'tools[0].function'."),
    (
        "chat",
        chat(tools=[{"type": "function", "function": {"name": "p" * 65}}]),
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    ),
    ("responses", responses({**CALL, "index": 0}, OUTPUT), "Unknown parameter: 'input[0].index'."),
    ("responses", responses({**USER, "metadata": {}}), "Unknown parameter: 'input[0].metadata'."),
    ("responses", responses({**CALL, "status": "done"}, OUTPUT), "Invalid value: 'done'."),
    (
        "responses",
        responses({**CALL, "call_id": "c" * 65}, {**OUTPUT, "call_id": "c" * 65}),
        "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64",
    ),
    ("responses", responses(CALL, {**OUTPUT, "output": 5}), "Invalid type for 'input[1].output'"),
    ("responses", responses(messages=[]), "Unknown parameter: 'messages'."),
    ("responses", responses(metadata={"a": 1}), "Invalid type for 'metadata.a': expected a string"),
    ("responses", responses(store="yes"), "Invalid type for 'store': expected a boolean, but got a string instead."),
    ("messages", messages(USER, uses(index=0), result()), "messages.1.content.0.tool_use.index: Extra inputs are not"),
    (
        "messages",
        messages(USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, text("So")]}),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    ("messages", messages(user({"type": "audio"})), "messages.0.content.0.type: Input should be "),
    (
        "messages",
        messages(user({"type": "text", "text": 5})),
        "messages.0.content.0.text.text: Input should be a valid",
    ),
    ("messages", messages(frequency_penalty=1), "frequency_penalty: Extra inputs are not permitted"),
    ("messages", messages(temperature=1.5), "temperature: Input should be less than or equal to 1"),
    ("messages", messages(max_tokens="10"), "max_tokens: Input should be a valid integer"),
    ("messages", messages(max_tokens=-1), "max_tokens: Input should be greater than or equal to 0"),
    (
        "messages",
        messages(USER, uses(), result(is_error="no")),
        "tool_result.is_error: Input should be a valid boolean",
    ),
    (
        "messages",
        messages(system=[text("x", cache_control={"type": "for ever"})]),
        "system.0.cache_control.type: Input should be 'ephemeral'",
    ),
    ("messages", messages(thinking={"type": "enabled"}), "thinking.enabled.budget_tokens: Field required"),
    (
        "converse",
        converse(toolConfig={"tools": [{"toolSpec": {"name": "a b", "inputSchema": {"json": {"type": "object"}}}}]}),
        "Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular",
    ),
    ("converse", converse(toolConfig={"tools": []}), "Member must have length greater than or equal to 1"),
    (
        "converse",
        converse(user({"text": "a"}), {"role": "tool", "content": [{"text": "a"}]}),
        "Value at 'messages.2.member.role' failed",
    ),
    ("converse", converse(inferenceConfig={"temperature": 2}), "Member must have value less than or equal to 1"),
    ("converse", converse(inferenceConfig={"maxTokens": 0}), "Member must have value greater than or equal to 1"),
    ("converse", converse(inferenceConfig={"maxTokens": "5"}), "STRING_VALUE can not be converted to an Integer"),
    ("converse", converse(system="be kind"), "Unexpected field type"),
    ("converse", converse(user({"text": ["a"]})), "Start of list found where not expected"),
    ("converse", converse(user({"text": {}})), "Start of structure or map found where not expected."),
    (
        "converse",
        converse(toolConfig={"tools": [{**OFFERED["tools"][0], "cachePoint": {"type": "default"}}]}),
        "The value at toolConfig.tools.0 can only set one of the following keys: cachePoint, systemTool, or toolSpec.",
    ),
    ("converse", converse(user({})), "The value at messages.0.content.0 must set one of the following keys: audio"),
    (
        "converse",
        converse(user({"text": "a"}), stream=True),
        "Malformed input request: #: extraneous key [stream] is not permitted, please reformat your input and try",
    ),
    (
        "converse",
        converse(toolConfig={"tools": [{"toolSpec": {"name": "a"}}]}),
        "Value null at 'toolConfig.tools.1.member.toolSpec.inputSchema' failed to satisfy constraint: Member must not",
    ),
    (
        "converse",
        converse(toolConfig={"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": "{}"}}}]}),
        "The format of the value at toolConfig.tools.0.toolSpec.inputSchema.json is invalid. Provide a json object for",
    ),
    (
        "converse",
        converse(user({"image": {"format": "bmp", "source": {"bytes": "aGk="}}})),
        "enum value set: [png, jpeg",
    ),
]


@pytest.mark.parametrize(("name", "body", "words"), MALFORMED, ids=[f"{one[0]}: {one[2][:40]}" for one in MALFORMED])
def test_malformed_requests_are_refused(name, body, words):
    """What does not fit the published types is refused in the provider's words."""
    rules, shown = refused(name, body)
    assert {"published-types"} == set(rules)
    answer = json.loads(shown)
    assert words in (answer["error"]["message"] if "error" in answer else answer["message"])


# --- every value of a legal request, made wrong -----------------------------------------------------------------------

FREE = (
    "parameters",
    "input_schema",
    "schema",
    "input",
    "variables",
    "logit_bias",
    "metadata",
    "args",
    "response",
    "json",
)
"""Fields whose value is any object, or any map: what is inside is the client's."""


def places(value, path=()):
    """Yield the path of every value in a body, without what is the client's own."""
    if path:
        yield path
    if path and path[-1] in FREE and isinstance(value, dict):
        return
    for step, held in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(held, (*path, step))


def at(body, path):
    for step in path:
        body = body[step]
    return body


def changed(body, path, value):
    """Return a copy of a body with another value at a path."""
    copied = json.loads(json.dumps(body))
    at(copied, path[:-1])[path[-1]] = value
    return copied


def wrong_values(held):
    """Return values of other JSON types, which no field has that holds one like this."""
    if isinstance(held, dict | list):
        return [7, True]
    return [{"no": "such"}, [[7]]]


UNTYPED = {
    ("chat", "annotations"),  # a field that messages of newer models have, and requests are not published with
    ("responses", "tool_choice.tools.type"),  # published as a map of anything
}


def fields_of(path):
    return ".".join(step for step in path if isinstance(step, str))


@pytest.mark.parametrize("name", LEGAL)
def test_each_value_of_another_type_is_refused(name):
    """In every legal request, no value can be replaced by one of another JSON type, except for two fields."""
    taken = {
        (name, fields_of(path).removeprefix("messages."))
        for body in LEGAL[name].values()
        for path in places(body)
        for value in wrong_values(at(body, path))
        if at(body, path) is not None and [] == refused(name, changed(body, path, value))[0]
    }

    assert {one for one in UNTYPED if one[0] == name} == taken


OPEN = {
    "chat": ("messages", "tools"),
    "responses": ("tools", "tool_choice.tools"),
    "messages": (),
    "gemini": (),
    "converse": (),
}
"""Where the page says that unknown fields are accepted."""


@pytest.mark.parametrize("name", LEGAL)
def test_each_unknown_field_is_refused(name):
    """In every legal request, no object can have a field more, except for messages and tools of OpenAI."""
    taken = {
        fields_of(path)
        for body in LEGAL[name].values()
        for path in [(), *places(body)]
        if isinstance(at(body, path), dict) and not (path and path[-1] in FREE)
        if [] == refused(name, changed(body, (*path, "no_such_field"), 1))[0]
    }

    assert set() == {fields for fields in taken if not fields.startswith(OPEN[name] or "never")}


@pytest.mark.parametrize(
    "name",
    ["chat", *(pytest.param(name, marks=pytest.mark.slow) for name in ("responses", "messages", "gemini", "converse"))],
)
def test_stored_types_accept_the_installed_sdk(name):
    """Each type of the installed SDK is stored with at least its fields and words."""
    pytest.importorskip(published_types.ROOTS[name][1][0].partition(":")[0])
    stored = json.loads(published_types.path_of(name).read_text())
    made = published_types.make_table(name)
    if made["source"][0] not in stored["source"]:
        pytest.skip(f"the types were not read from {made['source'][0]}")

    assert json.dumps(stored) == json.dumps(published_types.merge([json.loads(json.dumps(stored)), made]))


# --- judged requests --------------------------------------------------------------------------------------------------

JUDGED = [json.loads(line) for line in Path(__file__).with_name("judged_requests.jsonl").read_text().splitlines()]
"""Requests that were written beside the published types, each with its verdict.

It is `legal`, the name of the rule that refuses it, or `uncertain`: nothing says that it is refused, so it is not.
"""


@pytest.mark.parametrize("name", CODECS)
def test_judged_requests_are_judged_so(name):
    """No legal request is refused and no malformed one answered, and the rule is the one that says what is wrong."""
    rows = [row for row in JUDGED if row["protocol"] == name]
    verdicts = {row["title"]: next(iter(refused(name, row["body"])[0]), "accepted") for row in rows}
    accepted = ("legal", "uncertain")

    assert {row["title"]: "accepted" if row["verdict"] in accepted else row["verdict"] for row in rows} == verdicts


# --- generated requests -----------------------------------------------------------------------------------------------

_LEAVES = {
    "any": [{"type": "object"}],
    "null": [None],
    "boolean": [True, False],
    "string": ["a", "b1", "Ünï"],
    "integer": [1],
    "number": [0, 0.5, 1],
}
_DEEP = 8


def make_value(types, kind, random, depth=0):
    """Return a random value of a published type."""
    if isinstance(kind, str):
        return random.choice(_LEAVES[kind])
    if "values" in kind:
        return random.choice(kind["values"])
    if "list" in kind:
        return [make_value(types, kind["list"], random, depth + 1) for _ in range(random.choice((1, 1, 2)))]
    if "map" in kind:
        return {"a": make_value(types, kind["map"], random, depth + 1)}
    if "any_of" in kind:
        simple = [one for one in kind["any_of"] if isinstance(one, str) or "values" in one]
        return make_value(
            types, random.choice(simple if depth > _DEEP and simple else kind["any_of"]), random, depth + 1
        )
    table = types.types[kind["type"]]
    share = 0 if depth > _DEEP else 0.6 / (1 + depth / 3)
    names = [name for name in table["fields"] if name in table["required"] or random.random() < share]
    if table.get("one_of"):
        simple = [name for name, field in table["fields"].items() if isinstance(field, str)]
        names = [random.choice(simple if depth > _DEEP and simple else [*table["fields"]])]
    return {
        name: keep(
            types.limits.get(f"{kind['type']}.{name}"), make_value(types, table["fields"][name], random, depth + 1)
        )
        for name in names
    }


_WORDS = ("a1", "srvtoolu_1", "tunnel_" + "0" * 32, "aGk=", "s3://bucket", "0" * 12, "1")


def keep(limit, value):
    """Return a value that is within a bound, and the same if it is already."""
    if limit is None or limit.is_kept(value):
        return value
    if isinstance(value, str):
        return next(word for word in _WORDS if limit.is_kept(word))
    return limit.minimum


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**32))
def test_what_the_types_allow_is_accepted(name, seed):
    """A request that the SDK's types allow has no problem, whatever its fields; with one more field it has one."""
    types, random = create_codec(name).published_types, Random(seed)
    kind = types.request if "type" in types.request else random.choice(types.request["any_of"])
    body = make_value(types, kind, random)
    assert [] == types.find_problems(body)
    assert ["unknown"] == [one.how for one in types.find_problems({**body, "no_such_field": 1})]


# --- the page ---------------------------------------------------------------------------------------------------------


def by_hand(name):
    """Return the bounds of a protocol that are not those of the provider's OpenAPI."""
    types = create_codec(name).published_types
    return [limit for limit in types.limits.values() if limit.source != source_of_bounds(name)]


def source_of_bounds(name):
    """Return the OpenAPI document of a provider; None if it has none."""
    file = published_types.FOLDER / name / "published_bounds.json"
    return json.loads(file.read_text())["source"] if file.exists() else None


def limits_table():
    """Return the bounds of all protocols that were read one by one as Markdown."""
    lines = ["| protocol | value | bound | source | read on |", "|---|---|---|---|---|"]
    for name in CODECS:
        # Messages has each bound for the released and for the beta types.
        lines += dict.fromkeys(
            f"| {name} | `{value_of(limit)}` | {bound_of(limit)} | {limit.source} | {limit.date} |"
            for limit in by_hand(name)
        )
    return "\n".join(lines)


def bounds_table():
    """Return the bounds of the providers' OpenAPI as Markdown: a row for each bound of a field, with its types."""
    lines = ["| protocol | field | bound | of |", "|---|---|---|---|"]
    for name in CODECS:
        rows = {}
        for limit in create_codec(name).published_types.limits.values():
            if limit.source == source_of_bounds(name):
                owner, _, field = value_of(limit).rpartition(".")
                rows.setdefault((field, bound_of(limit)), {})[owner or "the request"] = None
        lines += [f"| {name} | `{field}` | {bound} | {', '.join(of)} |" for (field, bound), of in sorted(rows.items())]
    return "\n".join(lines)


def value_of(limit):
    owner, _, field = limit.field.rpartition(".")
    owner = owner.rpartition(".")[2].removeprefix("Beta")
    return field if owner.endswith("ParamsBase") else f"{owner}.{field}"


def bound_of(limit):
    bounds = [
        ("≥", limit.minimum),
        ("≤", limit.maximum),
        ("characters ≥", limit.min_length),
        ("characters ≤", limit.max_length),
        ("elements ≥", limit.min_items),
        ("elements ≤", limit.max_items),
        ("matches", limit.pattern and f"`{limit.pattern}`".replace("|", r"\|")),
    ]
    return ", ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


def test_the_page_lists_every_bound():
    """The docs show the bounds with their sources, as the tables have them."""
    page = (published_types.FOLDER.parents[1] / "docs" / "loopback-server.md").read_text()

    assert limits_table() in page
    assert bounds_table() in page


def test_every_bound_is_about_a_published_field():
    """No bound names a field that the tables do not have, and each has a source and a date."""
    for name in CODECS:
        types = create_codec(name).published_types
        for limit in types.limits.values():
            owner, _, field = limit.field.rpartition(".")
            assert field in types.types[owner]["fields"]
            assert limit.source
            assert limit.date


def test_usage_of_a_response_has_every_field_that_the_client_requires():
    """The newest client requires the tokens that were written to a cache, too."""
    usage = pytest.importorskip("openai").types.responses.ResponseUsage

    assert USAGE == usage.model_validate(USAGE, strict=True).model_dump(exclude_unset=True)
