"""What each provider refuses over its own protocol, in its own status, shape and words."""

from __future__ import annotations

import asyncio
import json

import pytest

from pytest_approvals.protocols.chat.requests import RULES as CHAT_RULES
from pytest_approvals.protocols.chat.requests import SHAPE as CHAT_SHAPE
from pytest_approvals.protocols.codec import IN_BODY, RequestTarget
from pytest_approvals.protocols.converse.requests import RULES as CONVERSE_RULES
from pytest_approvals.protocols.converse.requests import SHAPE as CONVERSE_SHAPE
from pytest_approvals.protocols.gemini.requests import RULES as GEMINI_RULES
from pytest_approvals.protocols.gemini.requests import SHAPE as GEMINI_SHAPE
from pytest_approvals.protocols.input_rules import RULES as NEUTRAL
from pytest_approvals.protocols.messages.requests import RULES as MESSAGES_RULES
from pytest_approvals.protocols.messages.requests import SHAPE as MESSAGES_SHAPE
from pytest_approvals.protocols.reasoning import RULES_ABOUT_REASONING
from pytest_approvals.protocols.responses.requests import RULES as RESPONSES_RULES
from pytest_approvals.protocols.responses.requests import SHAPE as RESPONSES_SHAPE

ALL = {
    "chat": (CHAT_SHAPE, CHAT_RULES),
    "responses": (RESPONSES_SHAPE, RESPONSES_RULES),
    "messages": (MESSAGES_SHAPE, MESSAGES_RULES),
    "gemini": (GEMINI_SHAPE, GEMINI_RULES),
    "converse": (CONVERSE_SHAPE, CONVERSE_RULES),
}

KINDS = {"gemini": "INVALID_ARGUMENT", "converse": None}
"""The class of the error for a request that breaks a rule; `converse` has it in a header."""


def kind_of(response):
    """Return the class of an error, which Google calls its status."""
    error = response.get("error", {})
    return error.get("type") or error.get("status")


def words_of(response):
    return response["error"]["message"] if "error" in response else response["message"]


def posted(making, name, body, *replies, model=""):
    """Post a body and return the status and the body of the answer."""
    wire = making.Wire(name, *(replies or [making.reply(say="done")]))
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = asyncio.run(wire.endpoint.post(raw, RequestTarget(model=model) if model else IN_BODY))
    return answer.status, json.loads(b"".join(answer.pieces)), wire


# --- bodies -----------------------------------------------------------------------------------------------------------

USER = {"role": "user", "content": "go"}


def chat(*messages, **more):
    return {"model": "m", "messages": list(messages), **more}


def made(*ids, **more):
    calls = [{"id": one, "type": "function", "function": {"name": "pay", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def tool(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def responses(*items, **more):
    return {"model": "m", "input": list(items), **more}


def function(call_id, **more):
    return {"type": "function_call", "call_id": call_id, "name": "pay", "arguments": "{}", **more}


def output(call_id):
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def asks(request_id):
    facts = {"name": "search", "arguments": "{}", "server_label": "web"}
    return {"type": "mcp_approval_request", "id": request_id, **facts}


def says(request_id, approve=True):
    return {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": approve}


def messages(*those, **more):
    return {"model": "m", "max_tokens": 10, "messages": list(those)} | more


CALL = {"id": "c1", "type": "function"}
OPEN = {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
CLOSED_AROUND_OPEN = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"to": {"type": "object", "properties": {}}},
}
JSON_OBJECT = {"type": "json_object"}
SERVER = {"type": "mcp", "server_label": "web", "server_url": "https://web.invalid"}
THINKING = {"type": "enabled", "budget_tokens": 1024}


def function_tool(schema, **more):
    return {"type": "function", "function": {"name": "pay", "parameters": schema, **more}}


def server_use(call_id):
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def uses(*ids, **more):
    blocks = [{"type": "tool_use", "id": one, "name": "pay", "input": {}, **more} for one in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]}


def gemini(*contents, **more):
    return {"contents": list(contents), **more}


def turn(role, *parts):
    return {"role": role, "parts": list(parts)}


def wants(*ids):
    return turn("model", *({"functionCall": {"id": one, "name": "pay", "args": {}}} for one in ids))


def gets(*ids):
    return turn("user", *({"functionResponse": {"id": one, "name": "pay", "response": {"result": 1}}} for one in ids))


def declares(parameters):
    return {"tools": [{"functionDeclarations": [{"name": "pay", "parameters": parameters}]}]}


GO = turn("user", {"text": "go"})
ASKED = turn("user", {"text": "go"})


def converse(*messages, **more):
    return {
        "messages": [{"role": one["role"], "content": one.get("content", one.get("parts"))} for one in messages],
        **more,
    }


def used(*ids, **more):
    blocks = [{"toolUse": {"toolUseId": one, "name": "pay", "input": {}, **more}} for one in ids]
    return {"role": "assistant", "content": blocks}


def returned(*ids, **more):
    blocks = [{"toolResult": {"toolUseId": one, "content": [{"text": "ok"}], **more}} for one in ids]
    return {"role": "user", "content": blocks}


def said(role, *blocks):
    return {"role": role, "content": list(blocks)}


def file(name="a", kind="pdf"):
    return {"document": {"name": name, "format": kind, "source": {"bytes": "aGk="}}}


SPEC = {"toolSpec": {"name": "pay", "inputSchema": {"json": {"type": "object"}}}}
OFFERED = {"toolConfig": {"tools": [SPEC]}}
POINT = {"cachePoint": {"type": "default"}}
THOUGHTFUL = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
PROMPT = "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1"

DECLARED = {"functionDeclarations": [{"name": "pay", "parametersJsonSchema": {"type": "object"}}]}


def modes(mode, *names):
    return {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": list(names)}}


FUNCTION = {"type": "function", "function": {"name": "pay"}}
OWN = {"type": "function", "name": "pay", "parameters": {"type": "object"}, "strict": False}
TOOL = {"name": "pay", "input_schema": {"type": "object"}}
ANY = {"type": "any"}
CACHE = {"type": "ephemeral"}
BASE64 = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


SAYS = {"role": "assistant", "content": "So"}
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/jpeg", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEA"},
}
CLAUDE = "us.anthropic.claude-opus-4-8"

OTHER = {
    "apply_patch_call": {
        "type": "apply_patch_call",
        "call_id": "c1",
        "operation": {"type": "delete_file", "path": "a"},
        "status": "completed",
    },
    "local_shell_call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "c1",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
        "status": "completed",
    },
    "shell_call": {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
    "tool_search_call": {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {}},
}


def instructs(content):
    return {"role": "system", "content": content}


def thinks(budget):
    return {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": budget}}}


def cached(said, **more):
    return {"type": "text", "text": said, "cache_control": {**CACHE, **more}}


def document(source, **more):
    return {"type": "document", "source": source, **more}


def web(name):
    return {"type": "url", "name": name, "url": "https://x.invalid"}


def toolset(name):
    return {"type": "mcp_toolset", "mcp_server_name": name}


# --- what is refused: the protocol, the body, the rule, and what the provider says ------------------------------------

TWO_SCHEMAS = {"responseSchema": {"type": "OBJECT"}, "responseJsonSchema": {"type": "object"}}

REFUSED = [
    ("converse", [], "body-not-an-object", "Unexpected field type"),
    ("converse", {"messages": "go"}, "messages-not-a-list", "Unexpected field type"),
    ("converse", {"messages": ["go"]}, "messages-not-a-list", "Unexpected field type"),
    ("converse", converse(), "empty-input", "A conversation must have at least one message."),
    ("converse", converse(system=[{"text": "x"}]), "no-message", "A conversation must have at least one message."),
    (
        "converse",
        converse(said("assistant", {"text": "hi"})),
        "first-not-user",
        "A conversation must start with a user",
    ),
    (
        "converse",
        converse(said("user")),
        "empty-content",
        "The content field in the Message object at messages.0 is empty.",
    ),
    (
        "converse",
        converse(ASKED, said("assistant", {"text": "So"}, {"text": ""})),
        "blank-text",
        "The text field in the ContentBlock object at messages.1.content.1 is blank. Add text to the text field",
    ),
    (
        "converse",
        converse(ASKED, used("c1", "c2"), returned("c1"), **OFFERED),
        "results-missing",
        "Expected toolResult blocks at messages.2.content for the following Ids: c2",
    ),
    (
        "converse",
        converse(ASKED, used("c1"), ASKED, **OFFERED),
        "results-missing",
        "Expected toolResult blocks at messages.2.content for the following Ids: c1",
    ),
    (
        "converse",
        converse(ASKED, used("c1"), **OFFERED),
        "call-without-result",
        "Expected toolResult blocks at messages.2.content for the following Ids: c1",
    ),
    (
        "converse",
        converse(ASKED, said("assistant", {"text": "So"}), returned("c1"), **OFFERED),
        "too-many-results",
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
    ),
    (
        "converse",
        converse(ASKED, used("c1"), returned("c1", "c1"), **OFFERED),
        "duplicate-ids",
        "exceeds the number of toolUse blocks of previous turn.",
    ),
    (
        "converse",
        converse(ASKED, used("c1", "c1"), returned("c1", "c1"), **OFFERED),
        "duplicate-ids",
        "The toolUse blocks at messages.1.content contain duplicate Ids: c1",
    ),
    (
        "converse",
        converse(ASKED, used("c1"), returned("c1")),
        "tools-not-configured",
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    ),
    (
        "converse",
        converse(ASKED, used("c1"), returned("c1", content=[], status="error"), **OFFERED),
        "error-without-content",
        "The content field at messages.2.content.0.toolResult cannot be empty when status value is error.",
    ),
    (
        "converse",
        converse(
            ASKED, toolConfig={"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": {"type": "array"}}}}]}
        ),
        "schema-not-an-object",
        "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
    ),
    (
        "converse",
        converse(ASKED, inferenceConfig={"stopSequences": [""]}),
        "element-out-of-bounds",
        "Value at 'inferenceConfig.stopSequences' failed to satisfy constraint: Member must satisfy constraint: [",
    ),
    (
        "converse",
        converse(ASKED, requestMetadata={"a": "x" * 257}),
        "element-out-of-bounds",
        "[Member must have length less than or equal to 256]",
    ),
    ("converse", converse(ASKED, requestMetadata={"": "a"}), "element-out-of-bounds", "greater than or equal to 1"),
    ("converse", converse(ASKED, requestMetadata={"a": "ü"}), "element-out-of-bounds", "regular expression pattern"),
    ("converse", converse(ASKED, **OFFERED), "fields-of-a-prompt", "The toolConfig field can't be set"),
    (
        "converse",
        converse(ASKED, additionalModelResponseFieldPaths=["stop"]),
        "path-not-a-pointer",
        "additionalModelResponseFieldPaths.0 is not valid",
    ),
    ("converse", converse(ASKED, said("assistant", file())), "media-of-the-model", "must be user"),
    (
        "converse",
        converse(said("user", {"text": "?"}, *(file(str(number)) for number in range(6)))),
        "media-of-the-model",
        "You can't include more than 5 documents in a request.",
    ),
    ("converse", converse(said("user", file())), "document-without-text", "A text block must be included when using"),
    (
        "converse",
        converse(said("user", {"text": "?"}, file("a.pdf"))),
        "document-name",
        "The document file name can only contain alphanumeric characters",
    ),
    (
        "converse",
        converse(said("user", {"text": "?"}, file("a"), file("a"))),
        "document-name",
        "Messages can't contain duplicate document names.",
    ),
    ("converse", converse(said("user", POINT, {"text": "?"})), "cache-points", "There is nothing available to cache."),
    (
        "converse",
        converse(said("user", {"text": "?"}, *5 * [POINT])),
        "cache-points",
        "You can't include more than 4 cache points in a request.",
    ),
    (
        "converse",
        converse(
            said("user", {"text": "?"}, {"cachePoint": {"type": "default", "ttl": "1h"}}), system=[{"text": "x"}, POINT]
        ),
        "cache-points",
        "A cache point with ttl='1h' must not come after one with ttl='5m'.",
    ),
    (
        "converse",
        converse(ASKED, toolConfig={"tools": [SPEC], "toolChoice": {"any": {}}}, **THOUGHTFUL),
        "thinking-with-forced-tool",
        "The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use.",
    ),
    (
        "converse",
        converse(ASKED, said("assistant", {"reasoningContent": {"reasoningText": {"text": "x"}}}), ASKED, **THOUGHTFUL),
        "reasoning-not-signed",
        "messages.1.content.0.thinking.signature: Field required",
    ),
    (
        "converse",
        converse(ASKED, used("c1", input="{}"), returned("c1"), **OFFERED),
        "arguments-not-an-object",
        "",
    ),
    ("converse", converse(ASKED, used(""), returned(""), **OFFERED), "call-without-id", ""),
    ("gemini", [], "body-not-an-object", "Root element must be a message."),
    ("gemini", gemini(), "contents-not-a-list", "* GenerateContentRequest.contents: contents is not specified"),
    ("gemini", {"contents": "go"}, "contents-not-a-list", "Invalid value at 'contents'"),
    ("gemini", gemini("go"), "contents-not-a-list", "Invalid value at 'contents[0]'"),
    ("gemini", gemini({**GO, "role": "assistant"}), "unknown-role", "Please use a valid role: user, model."),
    (
        "gemini",
        gemini(turn("user")),
        "empty-parts",
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
    ),
    (
        "gemini",
        gemini(turn("user", {"thought": True})),
        "part-without-data",
        "contents[0].parts[0].data: required oneof field 'data' must have one initialized field",
    ),
    (
        "gemini",
        gemini(turn("user", {"text": "a", "inlineData": {"data": "aGk="}})),
        "part-without-data",
        "oneof field 'data' is already set. Cannot set 'text'",
    ),
    (
        "gemini",
        gemini(GO, turn("model", {"functionCall": {"args": {}}}), gets("c1")),
        "name-missing",
        "contents[1].parts[0].function_call.name: Name cannot be empty.",
    ),
    ("gemini", gemini(wants("c1"), gets("c1")), "call-turn-first", "function call turn comes immediately after"),
    (
        "gemini",
        gemini(GO, wants("c1"), wants("c2"), gets("c2")),
        "number-of-responses",
        "the number of function response parts is equal to the number of function call parts",
    ),
    (
        "gemini",
        gemini(GO, gets("c1")),
        "response-turn-without-calls",
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    ("gemini", gemini(GO, wants("c1"), GO), "number-of-responses", "the number of function response parts is equal"),
    (
        "gemini",
        gemini(GO, wants("c1", "c2"), gets("c1")),
        "number-of-responses",
        "the number of function response parts is equal to the number of function call parts",
    ),
    (
        "gemini",
        gemini(GO, **declares({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["b"]})),
        "schema-of-parameters",
        "tools[0].function_declarations[0].parameters.required[0]: property is not defined",
    ),
    (
        "gemini",
        gemini(GO, **declares({"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}})),
        "schema-of-parameters",
        "parameters.properties[a].items: missing field.",
    ),
    (
        "gemini",
        gemini(GO, **declares({"type": "OBJECT", "properties": {"a": {"items": {"type": "STRING", "format": "uri"}}}})),
        "schema-of-parameters",
        "parameters.properties[a].items.format: only 'enum' and 'date-time' are supported for STRING type",
    ),
    (
        "gemini",
        gemini(
            GO,
            **declares({"type": "OBJECT", "properties": {"a": {"type": "STRING", "properties": {"b": {}}}}}),
        ),
        "schema-of-parameters",
        "parameters.properties[a].properties: only allowed for OBJECT type",
    ),
    (
        "gemini",
        gemini(GO, **declares({"anyOf": [{"type": "INTEGER", "enum": ["1"]}]})),
        "schema-of-parameters",
        "parameters.any_of[0].enum: only allowed for STRING type",
    ),
    (
        "gemini",
        gemini(GO, cachedContent="cachedContents/1", systemInstruction={"parts": [{"text": "be kind"}]}),
        "cached-content-with-tools",
        "CachedContent can not be used with GenerateContent request setting system_instruction",
    ),
    (
        "gemini",
        gemini(turn("user", {"inlineData": {"mimeType": "image/png", "data": "data:image/png;base64,aGk="}})),
        "bytes-not-base64",
        "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed",
    ),
    (
        "gemini",
        gemini(GO, turn("model", {"text": "So", "thoughtSignature": "a b"}), GO),
        "bytes-not-base64",
        "contents[1].parts[0].thought_signature",
    ),
    ("gemini", gemini(GO, wants("c1")), "call-without-result", "the number of function response parts is equal"),
    ("gemini", gemini(GO, wants("c1"), gets("c2")), "call-without-result", "the number of function response parts"),
    (
        "gemini",
        gemini(GO, wants("c1", "c2"), gets("c1", "c1"), gets("c2")),
        "number-of-responses",
        "the number of function response parts is equal",
    ),
    ("gemini", gemini(GO, wants("c1", "c2"), gets("c1", "c1")), "second-result", "the number of function response"),
    ("gemini", gemini(GO, wants("c1"), gets("c2")), "result-without-call", "the number of function response parts"),
    ("gemini", gemini(GO, wants("c1"), GO, gets("c1")), "result-not-in-next-turn", "the number of function response"),
    (
        "gemini",
        gemini(GO, tools=[DECLARED], toolConfig=modes("AUTO", "pay")),
        "allowed-names",
        "allowed_function_names should be set only when mode is ANY or VALIDATED.",
    ),
    (
        "gemini",
        gemini(GO, tools=[DECLARED], toolConfig=modes("ANY", "play")),
        "allowed-names",
        "allowed_function_names: 'play' is not one of the function_declarations.",
    ),
    (
        "gemini",
        gemini(GO, tools=[{"functionDeclarations": [{**DECLARED["functionDeclarations"][0], "parameters": {}}]}]),
        "two-schemas",
        "only one of parameters and parametersJsonSchema can be set.",
    ),
    (
        "gemini",
        gemini(GO, generationConfig={"responseSchema": {"type": "OBJECT"}}),
        "schema-without-mime-type",
        "must be application/json if a response schema is set",
    ),
    (
        "gemini",
        gemini(GO, generationConfig={"responseMimeType": "application/json", **TWO_SCHEMAS}),
        "two-response-schemas",
        "only one response schema can be set",
    ),
    (
        "gemini",
        gemini(GO, generationConfig={"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 5}}),
        "thinking-level-with-budget",
        "You can only set only one of thinking budget and thinking level.",
    ),
    (
        "gemini",
        gemini(GO, toolConfig=modes("AUTO")),
        "config-without-functions",
        "Function calling config is set without function_declarations.",
    ),
    (
        "responses",
        responses(USER, tools=[{"type": "mcp", "server_label": "my server", "server_url": "https://e.com"}]),
        "label-of-server",
        "Invalid 'tools[0].server_label'",
    ),
    ("gemini", gemini(GO, tools=[DECLARED, DECLARED]), "repeated-functions", "Duplicate function declaration found: "),
    (
        "gemini",
        gemini(GO, tools=[{"functionDeclarations": [{"name": f"f{number}"} for number in range(513)]}]),
        "too-many-functions",
        "At most 512 function declarations can be specified.",
    ),
    (
        "responses",
        responses({"type": "compaction_trigger"}, USER),
        "trigger-not-last",
        "'compaction_trigger' must be the final input item.",
    ),
    ("chat", [], "body-not-an-object", "Invalid type for request body"),
    ("chat", {"model": "m"}, "messages-not-a-list", "Missing required parameter: 'messages'."),
    ("chat", chat() | {"messages": "go"}, "messages-not-a-list", "Invalid type for 'messages'"),
    ("chat", chat("go"), "messages-not-a-list", "Invalid type for 'messages[0]'"),
    ("chat", {"messages": [USER]}, "model-missing", "you must provide a model parameter"),
    ("chat", chat(USER, {"role": "bot", "content": "x"}), "unknown-role", "Invalid value: 'bot'."),
    ("chat", chat({"content": "x"}), "unknown-role", "Missing required parameter: 'messages[0].role'."),
    ("chat", chat({"role": "user"}), "content-missing", "Invalid value for 'content': expected a string, got null."),
    ("chat", chat(USER, {"role": "assistant"}), "content-missing", "Invalid value for 'content'"),
    ("chat", chat(USER, made("c1"), {"role": "tool", "content": "x"}), "result-without-id", "Missing parameter"),
    ("chat", chat(USER, made(content="x")), "empty-list-of-calls", "Invalid 'messages[1].tool_calls': empty array."),
    (
        "chat",
        chat(USER, made("c1", tool_calls=[{"id": "c1", "function": {"name": "pay", "arguments": "{}"}}]), tool("c1")),
        "malformed-call",
        "Missing required parameter: 'messages[1].tool_calls[0].type'.",
    ),
    (
        "chat",
        chat(USER, made("c1", tool_calls=[{"id": "c1", "type": "function", "function": {"name": "pay"}}]), tool("c1")),
        "malformed-call",
        "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got null",
    ),
    ("chat", chat(USER, tools=[]), "empty-list-of-tools", "Invalid 'tools': empty array."),
    (
        "chat",
        chat(USER, tools=[{"type": "function", "function": {"name": "pay me"}}]),
        "name-of-function",
        "Invalid 'tools[0].function.name': string does not match pattern.",
    ),
    *(
        ("chat", chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}), rule, words)
        for rule, url, words in (
            ("image-or-file-unreadable", "aGk=", "but got a value without the 'data:' prefix."),
            ("image-or-file-unreadable", "data:text/plain;base64,aGk=", "unsupported MIME type 'text/plain'."),
            ("image-or-file-unreadable", "data:image/png;base64,", "but got empty base64-encoded bytes."),
            ("image-or-file-unreadable", "data:image/png;base64,?", "but got an invalid base64-encoded value."),
        )
    ),
    (
        "chat",
        chat({"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": "aGk="}}]}),
        "image-or-file-unreadable",
        "Invalid file data: 'messages[0].content[0].file.file_data'.",
    ),
    (
        "chat",
        chat(USER, functions=[{"name": "pay"}], tools=[function_tool({"type": "object", "properties": {}})]),
        "functions-with-tools",
        "'functions' and 'tools' cannot both be provided.",
    ),
    *(
        ("responses", responses({"role": "user", "content": [part]}), "image-or-file-unreadable", words)
        for part, words in (
            ({"type": "input_image", "image_url": "aGk="}, "Invalid 'input[0].content[0].image_url'."),
            ({"type": "input_file", "file_data": "https://x.invalid/a.pdf"}, "without the 'data:' prefix"),
            ({"type": "input_file", "file_data": "data:audio/mpeg;base64,aGk="}, "unsupported MIME type 'audio/mpeg'."),
        )
    ),
    (
        "responses",
        responses(USER, function("c1"), {**output("c1"), "output": [{"type": "input_file", "file_data": "aGk="}]}),
        "image-or-file-unreadable",
        "Invalid file data: 'input[2].output[0].file_data'.",
    ),
    ("chat", chat(), "empty-input", "Invalid 'messages': empty array."),
    ("chat", chat(USER, made("c1")), "call-without-result", "did not have response messages: c1"),
    ("chat", chat(USER, made("c1", "c2"), tool("c2")), "call-without-result", "did not have response messages: c1"),
    ("chat", chat(USER, tool("c1")), "result-without-call", "must be a response to a preceeding message"),
    ("chat", chat(USER, made("c1"), tool("c1"), tool("c1")), "second-result", "'c1', in messages[2] and messages[3]."),
    ("chat", chat(USER, made("c1", "c1"), tool("c1"), tool("c1")), "duplicate-call-id", "Duplicate value for"),
    ("chat", chat(USER, made("c1"), USER, tool("c1")), "result-not-adjacent", "must be followed by tool messages"),
    ("chat", chat(USER, made(None), tool("c1")), "call-without-id", "Missing required parameter"),
    (
        "chat",
        chat(USER, tool_choice="auto"),
        "tools-not-specified",
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    (
        "chat",
        chat(USER, parallel_tool_calls=False),
        "tools-not-specified",
        "'parallel_tool_calls' is only allowed when",
    ),
    (
        "chat",
        chat(USER, tools=[FUNCTION], tool_choice={"type": "function", "function": {"name": "play"}}),
        "tool-choice-unknown",
        "the function 'play' is not one of the 'tools'",
    ),
    (
        "chat",
        chat(USER, tools=[{"type": "function", "function": {"name": "pay", "parameters": {"type": "string"}}}]),
        "schema-not-an-object",
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
    ),
    (
        "chat",
        chat(USER, function_call="auto"),
        "functions-not-specified",
        "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified.",
    ),
    (
        "chat",
        chat(USER, logit_bias={"5": -101}),
        "bias-out-of-bounds",
        "Invalid 'logit_bias.5': integer below minimum value. Expected a value >= -100, but got -101 instead.",
    ),
    (
        "chat",
        chat(USER, metadata={"a": "b"}, store=False),
        "metadata-without-store",
        "The 'metadata' parameter is only allowed when 'store' is enabled.",
    ),
    ("chat", chat({**USER, "name": "A B"}), "name-of-message", "'^[^\\s<|\\\\/>]+$'."),
    (
        "chat",
        chat(USER, made("c1"), {"role": "system", "content": "x"}, tool("c1")),
        "message-between-call-and-result",
        "The following tool_call_ids did not have response messages: c1",
    ),
    (
        "chat",
        chat(USER, made("c1", tool_calls=[CALL | {"function": {"name": "p.y", "arguments": "{}"}}]), tool("c1")),
        "malformed-call",
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern.",
    ),
    (
        "chat",
        chat(USER, stream_options={"include_usage": True}),
        "stream-options-without-stream",
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ),
    ("chat", chat(USER, top_logprobs=2), "top-logprobs-without-logprobs", "'logprobs' must be set to true"),
    ("chat", chat(USER, modalities=["audio"]), "audio-without-parameters", "Missing required parameter: 'audio'."),
    ("chat", chat(USER, max_tokens=5, max_completion_tokens=5), "two-limits-of-tokens", "at the same time"),
    ("chat", chat(USER, metadata={"k" * 65: "v"}), "metadata-too-long", "Expected a string with maximum length 64"),
    ("chat", chat(USER, metadata={"k": "v" * 513}), "metadata-too-long", "Invalid 'metadata.k': string too long."),
    ("chat", chat(USER, response_format={"type": "json_object"}), "format-of-the-answer", "must contain the word"),
    (
        "chat",
        chat(USER, response_format={"type": "json_schema", "json_schema": {"name": "n", "strict": True} | OPEN}),
        "format-of-the-answer",
        "Invalid schema for response_format 'n': In context=(), 'additionalProperties' is required",
    ),
    (
        "chat",
        chat(USER, tools=[function_tool({"type": "object", "properties": {}, "anyOf": []})]),
        "schema-not-an-object",
        "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
    ),
    (
        "chat",
        chat(USER, tools=[function_tool({"type": "object"})]),
        "schema-not-an-object",
        "In context=(), object schema missing properties.",
    ),
    (
        "chat",
        chat(USER, tools=[function_tool({"type": "object", "properties": {"a": {"type": ["array", "null"]}}})]),
        "schema-not-an-object",
        "In context=('properties', 'a'), array schema missing items.",
    ),
    (
        "chat",
        chat(USER, tools=[function_tool({**OPEN["schema"], "additionalProperties": False}, strict=True)]),
        "schema-not-an-object",
        "every key in properties. Missing 'a'.",
    ),
    (
        "responses",
        responses(USER, background=True, store=False),
        "background-not-stored",
        "Background mode requires 'store' to be true.",
    ),
    (
        "responses",
        responses(USER, tools=[OWN], tool_choice={"type": "mcp", "server_label": "web"}),
        "tool-choice-unknown",
        "Tool choice 'mcp' not found in 'tools' parameter.",
    ),
    ("responses", "go", "body-not-an-object", "Invalid type for request body"),
    (
        "responses",
        responses(USER, {"type": "reasoning", "id": "rs_1", "summary": []}),
        "reasoning-without-item",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    (
        "responses",
        responses(USER, tools=[OWN], tool_choice={"type": "function", "name": "play"}),
        "tool-choice-unknown",
        "Tool choice 'function' not found in 'tools' parameter.",
    ),
    ("responses", responses(USER, tool_choice="required"), "tools-not-specified", "must be specified with 'tools'"),
    (
        "responses",
        responses(USER, tools=[{**OWN, "parameters": {"type": "array"}}]),
        "schema-not-an-object",
        "Invalid schema for function 'pay'",
    ),
    ("responses", {"model": "m", "input": 5}, "input-not-a-list", "Invalid type for 'input'"),
    ("responses", responses("go"), "input-not-a-list", "Invalid type for 'input[0]'"),
    ("responses", {"input": "go"}, "model-missing", "Missing required parameter: 'model'."),
    ("responses", {"model": "m"}, "input-missing", "Missing required parameter: 'input'."),
    (
        "responses",
        responses(USER, previous_response_id="resp_1", conversation="conv_1"),
        "two-conversations",
        "Mutually exclusive parameters",
    ),
    (
        "responses",
        responses(USER, previous_response_id="resp_9"),
        "previous-response-unknown",
        "Previous response with id 'resp_9' not found.",
    ),
    ("responses", responses(USER, conversation="conv_9"), "conversation-unknown", "Conversation with id 'conv_9'"),
    ("responses", responses(USER, {"type": "speech"}), "unknown-type", "Invalid value: 'speech'."),
    (
        "responses",
        responses(USER, {"type": "function_call_output", "output": "x"}),
        "field-missing",
        "Missing required parameter: 'input[1].call_id'.",
    ),
    (
        "responses",
        responses(USER, function("c1", arguments={}), output("c1")),
        "arguments-not-text",
        "Invalid type for 'input[1].arguments': expected a string, but got an object",
    ),
    (
        "responses",
        responses(USER, {"type": "item_reference", "id": "mcpr_9"}),
        "reference-unknown",
        "Item with id 'mcpr_9' not found.",
    ),
    (
        "responses",
        responses(USER, function("c1", id="fc_1"), output("c1"), function("c2", id="fc_1"), output("c2")),
        "duplicate-item",
        "Duplicate item found with id fc_1.",
    ),
    ("responses", responses(USER, function("c1", id="x1"), output("c1")), "malformed-id", "begins with 'fc'"),
    (
        "responses",
        responses(USER, tools=[{"type": "function", "name": "pay me"}]),
        "name-of-function",
        "Invalid 'tools[0].name'",
    ),
    ("responses", responses(USER, tools=[{"type": "mcp"}]), "server-without-label", "'tools[0].server_label'"),
    ("responses", responses(), "empty-input", "Invalid 'input': empty array."),
    ("responses", responses(USER, function("c1")), "call-without-result", "No tool output found for function call c1."),
    ("responses", responses(USER, output("c1")), "result-without-call", "with call_id c1."),
    ("responses", responses(USER, function("c1"), output("c1"), output("c1")), "second-result", "call_id c1."),
    (
        "responses",
        responses(USER, function("c1"), function("c1"), output("c1"), output("c1")),
        "duplicate-call-id",
        "Duplicate function call found with call_id c1.",
    ),
    ("responses", responses(USER, function(None), output("c1")), "call-without-id", "Missing required parameter"),
    (
        "responses",
        responses(USER, asks("mcpr_1")),
        "request-without-response",
        "The following MCP approval requests do not have an approval: mcpr_1",
    ),
    ("responses", responses(USER, says("mcpr_9")), "unknown-approval-id", "No MCP approval request found"),
    (
        "responses",
        responses(USER, asks("mcpr_1"), says("mcpr_1"), says("mcpr_1", approve=False)),
        "second-response",
        "The MCP approval request mcpr_1 has more than one approval.",
    ),
    *(
        (
            "responses",
            responses(USER, asks("mcpr_1"), says("mcpr_1", approve=given)),
            "approval-not-boolean",
            "Invalid type for 'input[].approve': expected a boolean.",
        )
        for given in ("no", "false", "true", "", 0, 1, [], {})
    ),
    ("responses", responses(USER, function("c1", name="p.y"), output("c1")), "name-of-call", "'input[1].name'"),
    (
        "responses",
        responses({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "part-of-the-caller",
        "Invalid value: 'input_text'. Supported values are: 'output_text', and 'refusal'.",
    ),
    (
        "responses",
        responses(USER, {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "x"}),
        "call-of-another-tool-open",
        "No tool output found for custom tool call c1.",
    ),
    (
        "responses",
        responses(USER, {"type": "shell_call_output", "call_id": "c1", "output": []}),
        "call-of-another-tool-open",
        "No tool call found for shell call output with call_id c1.",
    ),
    (
        "responses",
        responses(USER, stream_options={"include_obfuscation": False}),
        "stream-options-without-stream",
        "only allowed when 'stream' is enabled.",
    ),
    ("responses", responses(USER, metadata={"k": "v" * 513}), "metadata-too-long", "Invalid 'metadata.k'"),
    ("responses", responses(USER, text={"format": JSON_OBJECT}), "format-of-the-answer", "must contain the word"),
    (
        "responses",
        responses(USER, text={"format": {"type": "json_schema", "name": "n", "strict": True} | OPEN}),
        "format-of-the-answer",
        "Invalid schema for response_format 'n'",
    ),
    (
        "responses",
        responses(USER, tools=[{"type": "mcp", "server_label": "a"}]),
        "server-without-address",
        "one of 'server_url', 'connector_id', or 'tunnel_id' must be provided.",
    ),
    ("responses", responses(USER, tools=[SERVER, SERVER]), "server-label-not-unique", "found: 'web'."),
    ("messages", [], "body-not-an-object", "Input should be a valid dictionary"),
    ("messages", {"model": "m", "max_tokens": 1}, "messages-not-a-list", "messages: Field required"),
    ("messages", messages() | {"messages": "go"}, "messages-not-a-list", "messages: Input should be a valid list"),
    ("messages", messages("go"), "messages-not-a-list", "messages.0: Input should be a valid dictionary"),
    ("messages", {"model": "m", "messages": [USER]}, "field-missing", "max_tokens: Field required"),
    ("messages", messages(USER, {"role": "tool", "content": "x"}), "unexpected-role", 'Unexpected role "tool"'),
    ("messages", messages({"role": "user", "content": []}), "empty-message", "must have non-empty content"),
    (
        "messages",
        messages(USER, SAYS, *2 * [{"role": "user", "content": []}]),
        "empty-message",
        "messages.2: user messages must have non-empty content",
    ),
    *(
        ("messages", messages(*those), "content-of-instructions", words)
        for those, words in (
            ([USER, {"role": "system"}], "messages.1.content: Field required"),
            ([USER, instructs([])], "messages.1: system content must contain at least one block"),
            ([USER, instructs("  ")], "messages.1: system text blocks must contain non-whitespace text"),
            ([USER, instructs("")], "messages.1: system text blocks must contain non-whitespace text"),
            ([USER, instructs([IMAGE])], "messages.1: role 'system' supports text, tool_addition, and tool_removal"),
        )
    ),
    *(
        ("messages", messages(*those), "place-of-instructions", words)
        for those, words in (
            ([instructs("x"), USER], "messages.0: use the top-level 'system' parameter for the initial system prompt;"),
            ([USER, instructs("x"), USER], "messages.1: role 'system' must precede an 'assistant' message or end the"),
            ([USER, instructs("x"), instructs("y"), USER], "messages.2: role 'system' must precede an 'assistant'"),
            ([USER, SAYS, instructs("x")], "messages.2: role 'system' must follow a 'user' message or an 'assistant'"),
            ([USER, SAYS, instructs("x"), SAYS, USER], "messages.2: role 'system' must follow a 'user' message or an"),
        )
    ),
    *(
        ("messages", messages(USER, *those), "server-call-without-result", words)
        for those, words in (
            (
                [{"role": "assistant", "content": [server_use("srvtoolu_1"), {"type": "text", "text": "So"}]}, USER],
                "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result`",
            ),
            (
                [
                    {"role": "assistant", "content": [server_use("srvtoolu_1"), *uses("c1")["content"]]},
                    {"role": "user", "content": [*results("c1")["content"], {"type": "text", "text": "and?"}]},
                ],
                "messages.2: `web_search` tool use with id `srvtoolu_1` was found without",
            ),
        )
    ),
    (
        "messages",
        messages(USER, uses("c1", caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}), results("c1")),
        "caller-unknown",
        "messages.1.content.0.tool_use.caller: source tool srvtoolu_9 not found",
    ),
    (
        "messages",
        messages(USER, tools=[TOOL, {**TOOL, "name": "b", "defer_loading": True, "cache_control": CACHE}]),
        "deferred-tool-cached",
        "Tool 'b' cannot have both defer_loading=true and cache_control set.",
    ),
    (
        "messages",
        messages({"role": "user", "content": [cached("x", ttl="1h")]}, cache_control=CACHE),
        "cache-lifetime-of-the-request",
        "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'",
    ),
    (
        "messages",
        messages(
            {"role": "user", "content": [document(BASE64, citations={"enabled": True})]},
            output_config={"format": {"type": "json_schema", "schema": {"type": "string"}}},
        ),
        "citations-in-a-schema",
        "citations cannot be used together with structured outputs",
    ),
    (
        "messages",
        messages(USER, container="c1", tools=[TOOL]),
        "container-without-program",
        "container: Container identifier can only be provided when using the code execution tool",
    ),
    (
        "messages",
        messages(USER, inference_geo="mars"),
        "geography-unknown",
        "inference_geo: must be one of ['global', 'us']",
    ),
    (
        "messages",
        messages(USER, tools=[{**SEARCH, "allowed_domains": ["*.example.com"]}]),
        "wildcard-in-a-domain",
        "tools.0.allowed_domains.0: wildcards are not allowed in the domain: *.example.com",
    ),
    *(
        ("messages", messages(*those), "image-of-another-type", words)
        for those, words in (
            (
                [{"role": "user", "content": [IMAGE]}],
                "source.base64: The image was specified using the image/jpeg media type, but the image appears to be a",
            ),
            (
                [
                    USER,
                    uses("c1"),
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [IMAGE]}]},
                ],
                "messages.2.content.0.tool_result.content.0.image.source.base64: The image was specified using",
            ),
        )
    ),
    *(
        ("messages", messages(USER, max_tokens=0, **more), "cache-filled-with-an-answer", words)
        for more, words in (
            ({"stream": True}, "stream: cannot be used when `max_tokens` is 0"),
            ({"tools": [TOOL], "tool_choice": ANY}, "tool_choice: cannot be used when `max_tokens` is 0"),
            (
                {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string"}}}},
                "output_config.format: cannot be used",
            ),
        )
    ),
    ("messages", messages(USER, stream=None), "stream-not-boolean", "stream: Input should be a valid boolean"),
    (
        "messages",
        messages(USER, thinking={"type": "adaptive"}, temperature=0.5),
        "thinking-with-sampling",
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
    ),
    *(
        ("responses", responses(USER, call, USER, tools=tools), "call-of-another-tool-open", words)
        for call, tools, words in (
            (OTHER["local_shell_call"], [], "No tool output found for local shell call c1."),
            (OTHER["apply_patch_call"], [], "No tool output found for apply patch call c1."),
            (OTHER["tool_search_call"], [], "No tool output found for tool search call c1."),
            ({**OTHER["shell_call"], "environment": {"type": "local"}}, [], "No tool output found for shell call c1."),
            (
                {**OTHER["shell_call"], "environment": None},
                [{"type": "shell", "environment": {"type": "local"}}],
                "No tool output found for shell call c1.",
            ),
        )
    ),
    (
        "responses",
        responses(USER, {"type": "local_shell_call_output", "call_id": "c9", "output": "ok"}),
        "call-of-another-tool-open",
        "No tool call found for local shell call output with call_id c9.",
    ),
    ("responses", {"model": "m", "input": ""}, "empty-input", 'One of "input" or "previous_response_id" or'),
    (
        "responses",
        responses({**USER, "phase": "commentary"}),
        "phase-of-the-user",
        "Unknown parameter: 'input[0].phase'.",
    ),
    (
        "chat",
        chat(
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}}]}
        ),
        "file-without-name",
        "Missing required parameter: 'messages[0].content[0].file.filename'.",
    ),
    (
        "chat",
        chat(USER, functions=[{"name": "pay"}], function_call={"name": "play"}),
        "function-call-unknown",
        "no function named 'play' was specified in the 'functions' parameter.",
    ),
    (
        "gemini",
        gemini(GO, **declares({"type": "ARRAY", "items": {"type": "STRING"}})),
        "parameters-not-an-object",
        "pay functionDeclaration parameters schema should be of type OBJECT",
    ),
    (
        "gemini",
        gemini(turn("user", {"inlineData": {"mimeType": "image/png", "data": ""}})),
        "empty-data",
        "Unable to submit request because it has an empty inlineData parameter.",
    ),
    (
        "gemini",
        gemini(GO, generationConfig={"responseMimeType": "text/html"}),
        "mime-type-of-the-answer",
        "generation_config.response_mime_type: allowed mimetypes are `text/plain`, `application/json`,",
    ),
    (
        "converse",
        converse(ASKED, toolConfig={"tools": [SPEC, SPEC]}),
        "repeated-tools",
        "The tool pay is already defined at toolConfig.tools.1.",
    ),
    *(
        ("converse", converse(ASKED, toolConfig={"tools": [untyped]}), "schema-not-an-object", "one of the following:")
        for untyped in ({"toolSpec": {"name": "a", "inputSchema": {"json": schema}}} for schema in ({}, {"anyOf": []}))
    ),
    *(
        ("converse", converse(ASKED, inferenceConfig=config, **thinks(budget)), "thinking-out-of-bounds", words)
        for budget, config, words in (
            (10, {"maxTokens": 2048}, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
            (4096, {"maxTokens": 2048}, "errors: `max_tokens` must be greater than `thinking.budget_tokens`."),
            (1024, {"maxTokens": 2048, "temperature": 0.5}, "errors: `temperature` may only be set to 1 when thinking"),
        )
    ),
    (
        "converse",
        converse(said("user", {"text": "  "})),
        "white-space-alone",
        "errors: messages: text content blocks must contain non-whitespace text",
    ),
    (
        "messages",
        messages({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]}),
        "empty-block",
        "messages: text content blocks must be non-empty",
    ),
    ("messages", messages(USER, {"role": "assistant", "content": "So "}), "trailing-white-space", "whitespace"),
    (
        "messages",
        messages(USER, {"role": "user", "content": uses("c1")["content"]}, results("c1")),
        "block-of-the-other-role",
        "messages.1.content.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    ("messages", messages(USER, uses("c:1"), results("c:1")), "malformed-id", "messages.1.content.0.tool_use.id:"),
    (
        "messages",
        messages(USER, uses("c1"), {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}),
        "result-without-id",
        "messages.2.content.0.tool_result.tool_use_id: Field required",
    ),
    ("messages", messages(USER, tools=[{"name": "a"}, {"name": "a"}]), "tool-names-not-unique", "must be unique."),
    ("messages", messages(USER, tools=[{"name": "a b"}]), "name-of-tool", "tools.0.custom.name: String should match"),
    ("messages", messages(USER, tools=[{"name": "a", "input_schema": {}}]), "schema-not-an-object", "Field required"),
    (
        "messages",
        messages({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": CACHE}] * 5}),
        "too-many-cache-breakpoints",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "messages",
        messages({"role": "user", "content": [{"type": "text", "text": "", "cache_control": CACHE}]}),
        "too-many-cache-breakpoints",
        "empty",
    ),
    (
        "messages",
        messages(USER, thinking={"type": "enabled", "budget_tokens": 2048}),
        "thinking-budget-too-large",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    (
        "messages",
        messages(
            USER, max_tokens=4096, thinking={"type": "enabled", "budget_tokens": 2048}, tools=[TOOL], tool_choice=ANY
        ),
        "thinking-with-forced-tool",
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    ("messages", messages(USER, tool_choice=ANY), "tool-choice-unknown", "while providing tools"),
    (
        "messages",
        messages(USER, tools=[TOOL], tool_choice={"type": "tool", "name": "play"}),
        "tool-choice-unknown",
        "Tool 'play' not found in provided tools",
    ),
    ("messages", messages(USER, stop_sequences=["x", "\n"]), "blank-stop-sequence", "must contain non-whitespace"),
    (
        "messages",
        messages(USER, tools=[{**TOOL, "cache_control": CACHE}], system=[cached("x", ttl="1h")]),
        "cache-lifetimes-out-of-order",
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
    ),
    (
        "messages",
        messages(USER, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}),
        "thinking-at-the-end",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    (
        "messages",
        messages({"role": "user", "content": [document({**BASE64, "data": "data:application/pdf;base64,aGk="})]}),
        "not-base64",
        "messages.0.content.0.document.source.base64.data: Invalid base64 data",
    ),
    (
        "messages",
        messages({"role": "user", "content": [document(BASE64, citations={"enabled": True}), document(BASE64)]}),
        "citations-of-some-documents",
        "citations must be enabled on all or none of the documents",
    ),
    (
        "messages",
        messages(
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "pay", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": [{"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}}],
                    }
                ],
            },
        ),
        "error-with-other-content-than-text",
        "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
    ),
    (
        "messages",
        messages(USER, tools=[{**SEARCH, "allowed_domains": ["a.invalid"], "blocked_domains": ["b.invalid"]}]),
        "domains-allowed-and-blocked",
        "tools.0: `allowed_domains` and `blocked_domains` cannot be used together",
    ),
    (
        "messages",
        messages(USER, mcp_servers=[web("a"), web("b")], tools=[toolset("a")]),
        "servers-and-toolsets-differ",
        "MCP server 'b' is defined but not referenced by any `mcp_toolset` in `tools`.",
    ),
    (
        "messages",
        messages(USER, mcp_servers=[web("a")], tools=[toolset("a"), toolset("b")]),
        "servers-and-toolsets-differ",
        "MCP server 'b' is not defined in `mcp_servers`.",
    ),
    (
        "messages",
        messages(USER, mcp_servers=[web("a")], tools=[toolset("a"), toolset("a")]),
        "servers-and-toolsets-differ",
        "MCP server 'a' must be defined once and referenced by one `mcp_toolset`.",
    ),
    (
        "messages",
        messages(USER, output_config={"format": {"type": "json_schema", **OPEN}}),
        "answer-with-open-objects",
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ),
    (
        "messages",
        messages(USER, max_tokens=2000, thinking=THINKING, top_p=0.9),
        "thinking-with-sampling",
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
    ),
    (
        "messages",
        messages({"role": "assistant", "content": [server_use("srvtoolu_1")]}, system="x"),
        "no-message",
        "messages: at least one message is required",
    ),
    ("messages", messages(), "empty-input", "messages: at least one message is required"),
    ("messages", messages({"role": "user", "content": " "}), "empty-text", "must contain non-whitespace text"),
    ("messages", messages(USER, uses("c1"), USER), "call-without-result", "messages.1: `tool_use` ids were found"),
    (
        "messages",
        messages(USER, results("c1")),
        "result-without-call",
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c1.",
    ),
    (
        "messages",
        messages(USER, uses("c1"), results("c1", "c1")),
        "second-result",
        "messages.2.content.1: each tool_use must have a single result.",
    ),
    ("messages", messages(USER, uses("c1", "c1"), results("c1", "c1")), "duplicate-call-id", "ids must be unique"),
    (
        "messages",
        messages(USER, tools=[{"name": "pay", "input_schema": {"type": "object"}, "defer_loading": True}]),
        "all-tools-deferred",
        "At least one tool must have defer_loading=false.",
    ),
    (
        "messages",
        messages(
            USER,
            {
                "role": "assistant",
                "content": [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}],
            },
            USER,
        ),
        "result-of-an-unknown-server-call",
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1.",
    ),
    (
        "messages",
        messages(USER, tools=[{"name": "pay", "strict": True, "input_schema": CLOSED_AROUND_OPEN}]),
        "strict-tool-with-open-objects",
        "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ),
    ("messages", messages(USER, uses(None), results("c1")), "call-without-id", "id: Field required"),
    (
        "messages",
        messages(USER, uses("c1", input="x"), results("c1")),
        "arguments-not-an-object",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    ("messages", messages(USER, uses("c1", input=None), results("c1")), "arguments-not-an-object", "valid dictionary"),
    ("messages", messages(USER, uses("c1"), USER, results("c1")), "result-not-in-next-turn", "immediately after: c1."),
    (
        "messages",
        messages(USER, {"role": "assistant", "content": [server_use("c1")]}),
        "malformed-id",
        "server_tool_use.id: String should match pattern",
    ),
    ("messages", messages(USER, system=[{"type": "text", "text": ""}]), "empty-block", "system: text content blocks"),
    (
        "messages",
        messages(USER, tools=[{"name": "a", "input_schema": {"type": "object", "oneOf": []}}]),
        "schema-not-an-object",
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    (
        "messages",
        messages(USER, tools=[{"name": "a", "input_schema": {"type": "object", "properties": {"a b": {}}}}]),
        "schema-not-an-object",
        "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    ),
    (
        "messages",
        messages(USER, max_tokens=2000, thinking=THINKING, temperature=0.5),
        "thinking-with-sampling",
        "`temperature` may only be set to 1 when thinking is enabled.",
    ),
    ("messages", messages(USER, max_tokens=2000, thinking=THINKING, top_k=5), "thinking-with-sampling", "`top_k`"),
]


@pytest.mark.parametrize(("name", "body", "rule", "words"), REFUSED, ids=[f"{one[0]}-{one[2]}" for one in REFUSED])
def test_provider_refuses(making, name, body, rule, words):
    """A body that breaks a rule is refused, in the provider's shape and words, and the script is not moved on."""
    models = {"fields-of-a-prompt": PROMPT, "white-space-alone": CLAUDE, "thinking-out-of-bounds": CLAUDE}
    status, response, wire = posted(making, name, body, model=models.get(rule, ""))
    broken = wire.script.asked[-1][1].violations
    assert rule in [one.rule for one in broken]
    assert words in words_of(response)
    assert (404 if rule in ("conversation-unknown", "reference-unknown") else 400) == status
    assert KINDS.get(name, "invalid_request_error") == kind_of(response)
    assert 1 == len(wire.script.replies)


def test_every_rule_has_an_example():
    """Every rule of every protocol refuses something above, and says where it comes from."""
    shown = {(name, rule) for name, _, rule, _ in REFUSED}
    # Those depend on what the provider has sent: `test_reasoning.py` shows them.
    shown |= {(name, rule) for name in ALL for rule in RULES_ABOUT_REASONING}
    own = {(name, rule) for name, books in ALL.items() for book in books for rule in book.rules}
    neutral = {(name, rule) for rule, (names, _) in NEUTRAL.items() for name in names if name in ALL}
    # A client cannot say approval items over these protocols: there is no body that holds one.
    unsayable = {(name, "approval-item-unknown") for name in ("chat", "messages", "gemini", "converse")}
    # Rules about the contents come before those of the neutral items.
    unsayable |= {("gemini", "empty-input")}
    earlier = ("duplicate-call-id", "blank-text", "result-not-adjacent", "result-without-call", "second-result")
    unsayable |= {("converse", rule) for rule in earlier}
    assert set() == (own | neutral) - shown - unsayable
    assert [] == [rule for books in ALL.values() for book in books for rule in book.rules.values() if not rule.__doc__]


TAKEN = [
    ("chat", chat(USER, made("c1", "c2"), tool("c2"), tool("c1"), USER)),
    ("chat", chat({"role": "developer", "content": "be kind"}, USER, made("c1", content="Wait."), tool("c1"))),
    ("responses", responses(USER, function("c1"), USER, output("c1"))),
    ("responses", responses(USER, asks("mcpr_1"), says("mcpr_1"))),
    ("responses", responses({"role": "user", "content": [{"type": "input_text", "text": "go"}]}, instructions="x")),
    ("messages", messages(USER, uses("c1", "c2"), results("c2", "c1"), USER, system="be kind")),
    ("messages", messages(USER, USER, {"role": "assistant", "content": "So"})),
    ("chat", chat({"role": "user", "content": "as JSON"}, response_format={"type": "json_object"})),
    ("chat", chat({**USER, "name": "Ann_1"}, stream_options=None)),
    (
        "chat",
        chat(USER, tools=[function_tool({"type": "object", "properties": {"a": {"type": "array", "items": {}}}})]),
    ),
    (
        "chat",
        chat({"role": "system", "content": "x"}, USER, made("c1"), tool("c1"), {"role": "system", "content": "x"}),
    ),
    ("responses", responses(USER, instructions="as JSON", text={"format": JSON_OBJECT})),
    ("responses", responses(USER, tools=[SERVER, SERVER | {"server_label": "bank"}])),
    (
        "responses",
        responses(
            USER,
            {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
            {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
        ),
    ),
    ("messages", messages(USER, max_tokens=2000, thinking=THINKING, temperature=1)),
    ("messages", messages(USER, {"role": "assistant", "content": [server_use("srvtoolu_1")]})),
    ("converse", converse(said("user", {"text": "go"}, {"text": "\n"}))),
    ("converse", converse(ASKED, inferenceConfig={"maxTokens": 2048, "temperature": 1}, **thinks(1024))),
    ("responses", responses(USER, {**OTHER["tool_search_call"], "execution": "server"}, USER)),
    ("responses", responses(USER, OTHER["tool_search_call"], {**output("c1"), "output": "pay"}, USER)),
]


@pytest.mark.parametrize(("name", "body"), TAKEN)
def test_provider_takes(making, name, body):
    """A body that breaks no rule is answered."""
    status, _, wire = posted(making, name, body, model=CLAUDE if name == "converse" else "")
    assert (200, []) == (status, wire.script.replies)


@pytest.mark.parametrize("name", ALL)
def test_body_that_is_not_json(making, name):
    """A body that is not JSON is refused in the provider's shape; who answers is told that it could not be read."""
    status, response, wire = posted(making, name, b'{"model": ')
    ((items, asked),) = wire.script.asked
    assert 400 == status
    assert KINDS.get(name, "invalid_request_error") == kind_of(response)
    assert ((), False, ["not-json"]) == (items, asked.is_readable, [one.rule for one in asked.body_errors])


@pytest.mark.parametrize(("name", "body"), [("chat", chat(USER)), ("messages", messages(USER))])
def test_hosted_mcp_needs_a_protocol_that_has_it(making, name, body):
    """A reply of hosted MCP over a protocol without such items is refused, not left out."""
    asked = making.reply(making.call("m1", "search", "hosted_mcp", "web"))
    for streamed in (False, True):
        status, response, _ = posted(making, name, {**body, "stream": streamed}, asked)
        assert (400, True) == (status, response["error"]["message"].startswith("hosted_mcp: "))


def test_script_that_has_run_out(making):
    """A script without a further reply is an error that clients do not retry, and it names the agent."""
    wire = making.Wire("chat")
    answer = asyncio.run(wire.endpoint.post(json.dumps(chat(USER)).encode()))
    response = json.loads(b"".join(answer.pieces))
    assert (400, "script_exhausted") == (answer.status, response["error"]["code"])
    assert "the script of agent 'main' has no further reply" == response["error"]["message"]


HOSTILE_IDS = {
    "chat": lambda value: chat(
        USER, {**made("c1"), "tool_calls": [{"id": value, "function": {"name": value}}]}, tool(value)
    ),
    "responses": lambda value: responses({**function(value), "name": value}, output(value)),
    "messages": lambda value: {
        "model": "m",
        "max_tokens": 5,
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": value, "name": value, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": value, "content": "ok"}]},
        ],
    },
    "converse": lambda value: converse(ASKED, used(value, name=value), returned(value), **OFFERED),
}


@pytest.mark.parametrize("value", [["c1"], {"id": "c1"}, 5, True])
@pytest.mark.parametrize("name", HOSTILE_IDS)
def test_ids_and_names_that_are_no_text_reach_the_model_as_text(making, name, value):
    """They are recorded and compared as JSON, so that no journal holds an id of another type."""
    *_, wire = posted(making, name, HOSTILE_IDS[name](value))

    items, _ = wire.script.asked[-1]
    found = {held for item in items for held in (item.id, item.tool) if held is not None}
    assert {json.dumps(value)} == found


@pytest.mark.parametrize("properties", [["amount"], [{}], 1.5, "amount"])
def test_properties_that_are_no_object_declare_nothing(making, properties):
    """The schema of a tool may be anything."""
    tools = [{"type": "function", "function": {"name": "pay", "parameters": {"properties": properties}}}]
    *_, wire = posted(making, "chat", chat(USER, tools=tools))

    assert {"pay": frozenset()} == wire.script.asked[-1][1].parameters


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_half_of_a_surrogate_pair_comes_back_as_an_escape(making, name, stream):
    """What a request holds and is no Unicode may be in the answer, which is JSON all the same."""
    body = {"chat": chat(USER), "responses": responses(USER), "messages": {"messages": [USER], "max_tokens": 5}}[name]
    wire = making.Wire(name, making.reply(say="done"))
    answer = asyncio.run(wire.endpoint.post(json.dumps({**body, "model": "m\ud800", "stream": stream}).encode()))

    assert "m\\ud800" in b"".join(answer.pieces).decode()


def test_arguments_that_are_nested_too_deep_are_text(making):
    """Python's parser gives up on them; they are no object."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "[" * 100_000}}]
    body = chat(USER, {"role": "assistant", "content": None, "tool_calls": calls}, tool("c1"))
    *_, wire = posted(making, "chat", body)

    assert "[" * 100_000 == wire.script.asked[-1][0][1].arguments
