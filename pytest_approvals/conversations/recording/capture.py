"""What a provider answered, as neutral items: bodies and streams of every protocol.

What passes, put together by conversation, and written down as it comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.recording.recorded_conversation import RecordedConversation, opening_text
from pytest_approvals.conversations.recording.redaction import redact
from pytest_approvals.conversations.reproduce.scenario_document import format_yaml
from pytest_approvals.errors import ScenarioError
from pytest_approvals.protocols.chat.requests import read_items as chat_items
from pytest_approvals.protocols.codec import PROTOCOL_PATHS, ParsedRequest, ProtocolCodec, create_codec
from pytest_approvals.protocols.messages.requests import read_items as messages_items
from pytest_approvals.protocols.responses import ResponsesCodec
from pytest_approvals.protocols.responses.requests import read_items as responses_items
from pytest_approvals.protocols.responses.stored_items import resolve_request
from pytest_approvals.protocols.text import list_objects
from pytest_approvals.scenario.load import parse_scenario

Body = dict[str, Any]


def parse_response(protocol: str, raw: bytes, *, streamed: bool) -> Body:
    """
    Gives the body of an answer; that of a stream is put together from its events.

    Errors:
        ValueError: It is none, or the stream was not finished.
    """
    body = _ASSEMBLERS[protocol](list(_iter_events(raw))) if streamed else json.loads(raw)
    if not isinstance(body, dict):
        raise ValueError("the answer is no object")
    return body


def read_response_items(protocol: str, body: Body) -> list[Item]:
    """
    Gives what the model said and called.

    Errors:
        ValueError: The answer has another shape.
    """
    try:
        return list(_ITEM_READERS[protocol](body))
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the answer has another shape than {protocol}: {error!r}") from error


_ITEM_READERS: dict[str, Callable[[Body], Any]] = {
    "chat": lambda body: chat_items([body["choices"][0]["message"]]),
    "responses": lambda body: responses_items(body["output"]),
    "messages": lambda body: messages_items([{"role": "assistant", "content": body["content"]}]),
}


def _iter_events(raw: bytes) -> Iterator[Body]:
    for line in raw.decode("utf-8", "replace").splitlines():
        told = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if told and told != "[DONE]":
            event = json.loads(told)
            if isinstance(event, dict):
                yield event


def _assemble_completion(events: list[Body]) -> Body:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finished = False
    for event in events:
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            message["content"] = _append_text(message["content"], delta.get("content"))
            for piece in delta.get("tool_calls") or ():
                _add_delta(
                    calls.setdefault(piece.get("index", 0), {"function": {"name": None, "arguments": None}}), piece
                )
            finished = finished or choice.get("finish_reason") is not None
    if not finished:
        raise ValueError("the stream was not finished")
    return {"choices": [{"message": {**message, "tool_calls": list(calls.values())}}]}


def _add_delta(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    call["id"] = piece.get("id") or call.get("id")
    for name, text in (piece.get("function") or {}).items():
        call["function"][name] = _append_text(call["function"].get(name), text)


def _append_text(text: str | None, piece: str | None) -> str | None:
    return text if not piece else (text or "") + piece


def _assemble_response(events: list[Body]) -> Body:
    for event in reversed(events):
        if event.get("type") == "response.completed" and isinstance(event.get("response"), dict):
            return dict(event["response"])
    raise ValueError("the stream was not finished")


def _assemble_message(events: list[Body]) -> Body:
    blocks: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    for event in events:
        place, delta = event.get("index", 0), event.get("delta") or {}
        if event.get("type") == "content_block_start":
            blocks[place] = dict(event["content_block"])
        elif delta.get("type") == "text_delta":
            blocks[place]["text"] = blocks[place].get("text", "") + delta["text"]
        elif delta.get("type") == "input_json_delta":
            arguments[place] = arguments.get(place, "") + delta["partial_json"]
    if not any(event.get("type") == "message_stop" for event in events):
        raise ValueError("the stream was not finished")
    for place, text in arguments.items():
        blocks[place]["input"] = json.loads(text) if text else {}
    return {"content": list(blocks.values())}


_ASSEMBLERS: dict[str, Callable[[list[Body]], Body]] = {
    "chat": _assemble_completion,
    "responses": _assemble_response,
    "messages": _assemble_message,
}


SCENARIO_SUFFIX = ".approval.yaml"
"""What the name of a scenario file ends with."""

ABOUT = (
    "Recorded on the wire, which does not show what needs approval and who gave it: say `approval` at the tools, and "
    "what the caller decides. A result that says that a call was rejected is one that its tool returns here."
)


class Recorder:
    """
    Makes a scenario file of every conversation that passes.

    Arguments:
        path: The file of the first conversation; further ones are numbered.
        gated: The tools whose calls need approval.

    Attributes:
        written: The files.
        passed_over: Why an exchange is in none of them.
    """

    def __init__(self, path: Path, gated: Collection[str] = ()) -> None:
        self.written: list[Path] = []
        self.passed_over: list[str] = []
        self._path = path
        self._gated = gated
        self._conversations: list[RecordedConversation] = []
        self._formats: dict[str, ProtocolCodec] = {}
        self._secrets: set[str] = set()
        self._lock = Lock()

    def took(self, path: str, sent: bytes, got: bytes, *, streamed: bool, secrets: Collection[str]) -> None:
        """Takes in an exchange; one that is none of a model's is passed over."""
        protocol = next((name for ending, name in PROTOCOL_PATHS.items() if path.endswith(f"/{ending}")), None)
        if protocol is None:
            return
        with self._lock:
            self._secrets.update(secrets)
            try:
                self._note(protocol, json.loads(sent), parse_response(protocol, got, streamed=streamed))
            except ValueError as error:
                self.passed_over.append(f"{path}: {error}")

    def _note(self, protocol: str, sent: Any, got: dict[str, Any]) -> None:
        spoken = self._formats.setdefault(protocol, create_codec(protocol))
        asked = spoken.read(sent)
        if not asked.readable:
            raise ValueError(asked.complaints[0].text)
        answer = read_response_items(protocol, got)
        if isinstance(spoken, ResponsesCodec):
            _store_response(spoken, sent, got)
        conversation = self._conversation(asked)
        conversation.took(asked.items, answer, dict(_iter_schemas(asked.body)))
        self._write(conversation)

    def _conversation(self, asked: ParsedRequest) -> RecordedConversation:
        items: tuple[Item, ...] = asked.items
        found = next((one for one in reversed(self._conversations) if one.is_continued_by(asked.model, items)), None)
        if found is None:
            found = RecordedConversation(asked.model, opening_text(items))
            self._conversations.append(found)
        return found

    def _write(self, conversation: RecordedConversation) -> None:
        number = self._conversations.index(conversation) + 1
        name = self._path.name.removesuffix(SCENARIO_SUFFIX)
        path = self._path.with_name(f"{name if number == 1 else f'{name}-{number}'}{SCENARIO_SUFFIX}")
        document = redact(conversation.document(self._gated, ABOUT), self._secrets)
        text = format_yaml(document)
        try:
            parse_scenario(text, name=name, path=path.name)
        except ScenarioError as error:
            self.passed_over.append(f"{path.name} needs a hand: {error}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path not in self.written:
            self.written.append(path)


def _store_response(spoken: ResponsesCodec, sent: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    """Keeps a response as its provider does, so that a request may go on from it."""
    request = resolve_request(sent, spoken.kept)
    output = list(list_objects(got.get("output")))
    spoken.kept.add_output(output)
    spoken.kept.keep(str(got.get("id")), request.previous, request.conversation, [*request.new, *output])


def _iter_schemas(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Gives the schemas of the functions that a request offers, in whichever protocol."""
    for tool in list_objects(body.get("tools")):
        function = tool.get("function")
        told: Mapping[str, Any] = function if isinstance(function, Mapping) else tool
        schema = told.get("parameters", told.get("input_schema"))
        if isinstance(told.get("name"), str) and isinstance(schema, Mapping):
            yield told["name"], schema
