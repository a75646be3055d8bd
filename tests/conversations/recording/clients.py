"""Official clients of the five protocols that have a conversation, and what they see of it.

Each client writes its requests as its provider wants them: with the whole history, or for Responses also with what the
provider stored. What it sees of a response is a list of parts in their order, and why the response ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import anthropic
import boto3
import openai
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai

from pytest_approvals.scenario.model import Scenario, Tool

KEY = "blue-sky-key"

Part = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of a response."""

    parts: list[Part]
    finish: str

    def of(self, kind: str) -> list[Part]:
        """Return the parts of a kind."""
        return [part for part in self.parts if part[0] == kind]


@dataclass(slots=True)
class Said:
    """What the caller tells the model next: messages, results by call id, decisions by request id."""

    texts: list[str] = field(default_factory=list)
    results: list[tuple[str | None, str, str]] = field(default_factory=list)
    decisions: list[tuple[str, bool, str | None]] = field(default_factory=list)


def schema_of(tool: Tool) -> dict[str, Any]:
    """Return the JSON Schema of a tool's parameters."""
    required = [name for name, parameter in tool.parameters.items() if parameter.required]
    properties = {name: {"type": parameter.type} for name, parameter in tool.parameters.items()}
    return {"type": "object", "properties": properties, "required": required}


class Client:
    """A client with its history.

    Args:
        url: The address of a conversation, without the version.
        tools: The tools that it offers.
        stream: It wants streams.
        thinks: It switches reasoning on.
    """

    def __init__(self, url: str, tools: Sequence[Tool], *, stream: bool, thinks: bool = True) -> None:
        self.url = url
        self.tools = tools
        self.stream = stream
        self.thinks = thinks
        self.history: list[Any] = []
        self.open()

    def open(self) -> None:
        """Make the official client."""

    def close(self) -> None:
        """Close it."""

    def tell(self, said: Said) -> Seen:
        """Send a request and return what came."""
        raise NotImplementedError


def _functions(tools: Sequence[Tool]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in tools:
        if tool.kind != "hosted_mcp":
            yield tool.visible_name, schema_of(tool)


class Chat(Client):
    """Chat Completions."""

    def open(self) -> None:
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0)

    def close(self) -> None:
        self.client.close()

    def tell(self, said: Said) -> Seen:
        self.history += [{"role": "tool", "tool_call_id": one, "content": text} for one, _, text in said.results]
        self.history += [{"role": "user", "content": text} for text in said.texts]
        functions = [{"name": name, "parameters": schema} for name, schema in _functions(self.tools)]
        tools = [{"type": "function", "function": function} for function in functions]
        asked: dict[str, Any] = {"model": "m", "messages": self.history, **({"tools": tools} if tools else {})}
        if self.stream:
            with self.client.chat.completions.create(**asked, stream=True) as events:
                message, finish = self._join(events)
        else:
            choice = self.client.chat.completions.create(**asked).choices[0]
            message, finish = choice.message.model_dump(exclude_none=True), choice.finish_reason
        self.history.append(message)
        parts: list[Part] = []
        if message.get("reasoning_content") is not None:
            parts.append(("reasoning", message["reasoning_content"]))
        if message.get("content") is not None:
            parts.append(("say", message["content"]))
        made = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
        parts += [("call", one, called["name"], read_json(called["arguments"])) for one, called in made]
        return Seen(parts, finish)

    def _join(self, events: Any) -> tuple[dict[str, Any], Any]:
        message: dict[str, Any] = {"role": "assistant"}
        calls: dict[int, dict[str, Any]] = {}
        finish = None
        for event in events:
            for choice in event.choices:
                finish = choice.finish_reason or finish
                for name in ("content", "reasoning_content"):
                    piece = getattr(choice.delta, name, None)
                    if piece is not None:
                        message[name] = message.get(name, "") + piece
                for delta in choice.delta.tool_calls or ():
                    call = calls.setdefault(
                        delta.index, {"id": None, "type": "function", "function": {"name": None, "arguments": ""}}
                    )
                    call["id"] = delta.id or call["id"]
                    call["function"]["name"] = delta.function.name or call["function"]["name"]
                    call["function"]["arguments"] += delta.function.arguments or ""
        return {**message, **({"tool_calls": list(calls.values())} if calls else {})}, finish


class Responses(Client):
    """Responses; the whole history is sent again."""

    keeps = False

    def open(self) -> None:
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0)
        self.previous: str | None = None

    def close(self) -> None:
        self.client.close()

    def tell(self, said: Said) -> Seen:
        new: list[Any] = [
            {"type": "function_call_output", "call_id": one, "output": text} for one, _, text in said.results
        ]
        for one, approve, reason in said.decisions:
            answer = {"type": "mcp_approval_response", "approval_request_id": one, "approve": approve}
            new.append(answer if reason is None else {**answer, "reason": reason})
        new += [{"role": "user", "content": text} for text in said.texts]
        self.history += new
        asked: dict[str, Any] = {"model": "m", "input": self.history, "tools": self._tools()}
        if self.keeps and self.previous is not None:
            asked |= {"input": new, "previous_response_id": self.previous}
        if self.stream:
            with self.client.responses.create(**asked, stream=True) as events:
                response = next(event.response for event in events if event.type == "response.completed")
        else:
            response = self.client.responses.create(**asked)
        self.previous = response.id
        items = [item.model_dump(exclude_none=True) for item in response.output]
        self.history += items
        return Seen([part for item in items for part in self._parts(item)], str(response.status))

    def _tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = [
            {"type": "function", "name": name, "parameters": schema} for name, schema in _functions(self.tools)
        ]
        hosted = [tool for tool in self.tools if tool.kind == "hosted_mcp"]
        for label in dict.fromkeys(tool.server for tool in hosted):
            never = [tool.visible_name for tool in hosted if tool.server == label and tool.approval == "never"]
            rule = {"never": {"tool_names": never}} if never else "always"
            server = {"type": "mcp", "server_label": label, "server_url": "https://mcp.invalid"}
            tools.append({**server, "require_approval": rule})
        return tools

    def _parts(self, item: Mapping[str, Any]) -> Iterator[Part]:
        match item["type"]:
            case "reasoning":
                yield "reasoning", "".join(part["text"] for part in item["summary"]) or None
            case "message":
                yield "say", "".join(part["text"] for part in item["content"])
            case "function_call":
                yield "call", item["call_id"], item["name"], read_json(item["arguments"])
            case "mcp_approval_request":
                yield "asked", item["id"], item["name"], item["server_label"], read_json(item["arguments"])
            case "mcp_call":
                yield (
                    *("hosted", item["id"], item.get("approval_request_id"), item["name"], item["server_label"]),
                    *(read_json(item["arguments"]), item.get("output"), item.get("error"), item.get("status")),
                )
            case "mcp_list_tools":
                pass
            case kind:
                yield (kind,)


class StoredResponses(Responses):
    """Responses; the provider keeps the history."""

    keeps = True


class Messages(Client):
    """Messages."""

    def open(self) -> None:
        self.client = anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0)

    def close(self) -> None:
        self.client.close()

    def tell(self, said: Said) -> Seen:
        content: list[Any] = [
            {"type": "tool_result", "tool_use_id": one, "content": text} for one, _, text in said.results
        ]
        content += [{"type": "text", "text": text} for text in said.texts]
        self.history.append({"role": "user", "content": content})
        tools = [{"name": name, "input_schema": schema} for name, schema in _functions(self.tools)]
        asked: dict[str, Any] = {"model": "m", "max_tokens": 4096, "messages": self.history, "tools": tools}
        if self.thinks:
            asked["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        if self.stream:
            with self.client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = self.client.messages.create(**asked)
        blocks = [block.model_dump(exclude_none=True) for block in message.content]
        self.history.append({"role": "assistant", "content": blocks})
        return Seen([self._part(block) for block in blocks], str(message.stop_reason))

    def _part(self, block: Mapping[str, Any]) -> Part:
        match block["type"]:
            case "thinking":
                return "reasoning", block["thinking"]
            case "redacted_thinking":
                return "reasoning", None
            case "text":
                return "say", block["text"]
            case "tool_use":
                return "call", block["id"], block["name"], block.get("input")
        return (block["type"],)


class Gemini(Client):
    """Gemini."""

    def open(self) -> None:
        self.client = genai.Client(api_key=KEY, vertexai=False, http_options=genai.types.HttpOptions(base_url=self.url))

    def close(self) -> None:
        self.client.close()

    def tell(self, said: Said) -> Seen:
        parts: list[Any] = [
            {"function_response": {"id": one, "name": name, "response": {"result": text}}}
            for one, name, text in said.results
        ]
        parts += [{"text": text} for text in said.texts]
        self.history.append({"role": "user", "parts": parts})
        functions = [{"name": name, "parameters_json_schema": schema} for name, schema in _functions(self.tools)]
        config: dict[str, Any] = {"tools": [{"function_declarations": functions}]} if functions else {}
        if self.thinks:
            config["thinking_config"] = {"include_thoughts": True}
        asked: dict[str, Any] = {"model": "m", "contents": self.history, "config": config}
        if self.stream:
            got = list(self.client.models.generate_content_stream(**asked))
        else:
            got = [self.client.models.generate_content(**asked)]
        held = [part for response in got for part in response.candidates[0].content.parts or ()]
        self.history.append(genai.types.Content(role="model", parts=held))
        return Seen(list(_join_texts(map(self._part, held))), str(got[-1].candidates[0].finish_reason))

    def _part(self, part: Any) -> Part:
        signed = (("signed",),) if part.thought_signature else ()
        if part.function_call is not None:
            return "call", part.function_call.id, part.function_call.name, part.function_call.args, *signed
        return "reasoning" if part.thought else "say", part.text, *signed


def _join_texts(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield parts; pieces of one text, of which the last may be signed, are one."""
    last: Part | None = None
    for part in parts:
        if last is not None and last[0] == part[0] != "call" and len(last) == 2:
            last = (last[0], last[1] + part[1], *part[2:])
            continue
        if last is not None and last != ("say", ""):
            yield last
        last = part
    if last is not None and last != ("say", ""):
        yield last


_SESSION = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
_CONFIG = Config(retries={"total_max_attempts": 1}, proxies={})


class Converse(Client):
    """Converse."""

    def open(self) -> None:
        self.client = _SESSION.client("bedrock-runtime", endpoint_url=self.url, config=_CONFIG)

    def close(self) -> None:
        self.client.close()

    def tell(self, said: Said) -> Seen:
        content: list[Any] = [
            {"toolResult": {"toolUseId": one, "content": [{"text": text}]}} for one, _, text in said.results
        ]
        content += [{"text": text} for text in said.texts]
        self.history.append({"role": "user", "content": content})
        tools = [
            {"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name, schema in _functions(self.tools)
        ]
        asked: dict[str, Any] = {"modelId": "us.anthropic.claude:0", "messages": self.history}
        asked |= {"toolConfig": {"tools": tools}} if tools else {}
        if self.thinks:
            asked["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        if self.stream:
            blocks, finish = self._join(self.client.converse_stream(**asked)["stream"])
        else:
            got = self.client.converse(**asked)
            blocks, finish = got["output"]["message"]["content"], got["stopReason"]
        self.history.append({"role": "assistant", "content": blocks})
        return Seen([self._part(block) for block in blocks], finish)

    def _join(self, events: Any) -> tuple[list[dict[str, Any]], str]:
        blocks: dict[int, dict[str, Any]] = {}
        finish = ""
        for event in events:
            ((kind, facts),) = event.items()
            if kind == "contentBlockStart":
                blocks[facts["contentBlockIndex"]] = {"toolUse": {**facts["start"]["toolUse"], "input": ""}}
            elif kind == "messageStop":
                finish = facts["stopReason"]
            elif kind == "contentBlockDelta":
                ((name, piece),) = facts["delta"].items()
                block = blocks.setdefault(facts["contentBlockIndex"], {})
                if name == "text":
                    block["text"] = block.get("text", "") + piece
                elif name == "toolUse":
                    block["toolUse"]["input"] += piece["input"]
                elif "redactedContent" in piece:
                    block["reasoningContent"] = dict(piece)
                else:
                    held = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
                    held["text"] += piece.get("text", "")
                    held |= {"signature": piece["signature"]} if "signature" in piece else {}
        for block in blocks.values():
            if "toolUse" in block:
                block["toolUse"]["input"] = read_json(block["toolUse"]["input"] or "{}")
        return [blocks[place] for place in sorted(blocks)], finish

    def _part(self, block: Mapping[str, Any]) -> Part:
        if "toolUse" in block:
            return "call", block["toolUse"]["toolUseId"], block["toolUse"]["name"], block["toolUse"]["input"]
        if "reasoningContent" in block:
            return "reasoning", block["reasoningContent"].get("reasoningText", {}).get("text")
        return "say", block["text"]


CLIENTS: dict[str, type[Client]] = {
    "chat": Chat,
    "responses": Responses,
    "stored responses": StoredResponses,
    "messages": Messages,
    "gemini": Gemini,
    "converse": Converse,
}

REFUSALS = (openai.APIStatusError, anthropic.APIStatusError, genai.errors.APIError, ClientError, ValueError)
"""What clients raise: errors of the provider, and `ValueError` for arguments that are no JSON."""


def read_json(text: str) -> Any:
    """Return the value of a JSON text; a text that is none as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


Decide = Callable[[int], tuple[bool, str | None]]
"""Whether the k-th request for an approval is approved, and the reason."""


def have(client: Client, messages: Sequence[str], replies: int, decide: Decide) -> list[Any]:
    """Have a conversation of so many replies and return all that was seen of it; an error ends it."""
    seen: list[Any] = []
    texts, asked = iter(messages), 0
    said = Said(texts=[next(texts, "Go.")])
    with closing(client):
        for _ in range(replies):
            try:
                got = client.tell(said)
            except REFUSALS as refused:
                seen.append(f"{type(refused).__name__}: {refused}")
                break
            seen.append(got)
            said = Said()
            for call in got.of("call"):
                said.results.append((call[1], call[2], f"done: {call[2]}"))
            for request in got.of("asked"):
                said.decisions.append((request[1], *decide(asked)))
                asked += 1
            if not said.results and not said.decisions:
                said.texts.append(next(texts, "Go on."))
    return seen


def open_client(name: str, url: str, scenario: Scenario, *, stream: bool) -> Client:
    """Return a client for a scenario at the address of its conversation."""
    main = scenario.agents["main"]
    thinks = any(reply.has_reasoning for reply in main.all_replies)
    tools = [tool for tool in scenario.tools if tool.agent == "main"]
    return CLIENTS[name](url.removesuffix("/v1"), tools, stream=stream, thinks=thinks)
