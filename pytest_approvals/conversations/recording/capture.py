"""Capture of exchanges as scenario files.

Exchanges are parsed, assigned to conversations, and written while they come, without the secrets in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.made_up_values import SECRET_NAMES
from pytest_approvals.conversations.recording.recorded_conversation import RecordedConversation, opening_text
from pytest_approvals.errors import ScenarioError
from pytest_approvals.protocols import PROTOCOL_PATHS, create_codec
from pytest_approvals.protocols.chat.requests import read_items as chat_items
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec
from pytest_approvals.protocols.messages.requests import read_items as messages_items
from pytest_approvals.protocols.responses import ResponsesCodec
from pytest_approvals.protocols.responses.requests import read_items as responses_items
from pytest_approvals.protocols.responses.stored_items import resolve_request
from pytest_approvals.protocols.text import list_objects
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.to_file import format_yaml

PLACEHOLDER = "[secret]"
"""The text in place of a secret."""

_SHAPES = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}",  # OpenAI, Anthropic, Stripe
    r"\b(?:gh[pousr]|github_pat)_\w{16,}",
    r"\bgl(?:pat|ptt|rt)-[\w-]{16,}",
    r"\bxox[a-z]-[\w-]{8,}",
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\bAIza[\w-]{20,}",
    r"\bya29\.[\w.-]{8,}",
    r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*",  # a JSON Web Token
    # Long words of capital and small letters and digits, as keys without a prefix are.
    r"(?<![\w+/-])(?=[\w+/-]*[0-9])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])[\w+/-]{32,}={0,2}",
    r"(?<![0-9A-Fa-f])[0-9a-f]{40,}(?![0-9A-Fa-f])",
)

_SECRET_PATTERN = re.compile("|".join(_SHAPES), re.DOTALL)
_BEARER = re.compile(r"\b(bearer|basic|token)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(rf"""\b({SECRET_NAMES})(["']?\s*[:=]\s*["']?)[^\s"',;&}}\]]{{4,}}""", re.IGNORECASE)
_IN_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+(@)")
_SECRET_NAME = re.compile(rf"(?:{SECRET_NAMES})", re.IGNORECASE)

_CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")


def find_credentials(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the credentials of a client, as they may turn up elsewhere.

    >>> find_credentials({"Authorization": "Bearer abc", "Accept": "text/plain"})
    frozenset({'abc'})
    """
    values = (value for name, value in headers.items() if name.lower() in _CREDENTIAL_HEADERS)
    return frozenset(value.split()[-1] for value in values if value.strip())


def redact(value: Any, known: Collection[str] = ()) -> Any:
    """Return a JSON value without secrets in its texts and names.

    Args:
        value: The value.
        known: Secrets that need not look like one.

    >>> redact({"text": "my key is sk-abcdefgh1234", "api_key": "x"}, ["blue"])
    {'text': 'my key is [secret]', 'api_key': '[secret]'}
    """
    match value:
        case str():
            return _redact_text(value, known)
        case Mapping():
            return {
                _redact_text(str(name), known): PLACEHOLDER if _is_secret(name, inner) else redact(inner, known)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [redact(inner, known) for inner in value]
        case _:
            return value


def _is_secret(name: str, value: Any) -> bool:
    return isinstance(value, str) and _SECRET_NAME.fullmatch(str(name)) is not None


def _redact_text(text: str, known: Collection[str]) -> str:
    # The longest first, because one secret may contain another.
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, PLACEHOLDER)
    text = _IN_URL.sub(rf"\1{PLACEHOLDER}\2", text)
    text = _BEARER.sub(rf"\1\2{PLACEHOLDER}", text)
    return _ASSIGNED.sub(rf"\1\2{PLACEHOLDER}", _SECRET_PATTERN.sub(PLACEHOLDER, text))


Body = dict[str, Any]


def parse_response(protocol: str, raw: bytes, *, streamed: bool) -> Body:
    """Return the body of a response; that of a stream is assembled from its events.

    Raises:
        ValueError: It is invalid, or the stream was not finished.
    """
    with _reject_shape(protocol):
        body = _ASSEMBLERS[protocol](list(_iter_events(raw))) if streamed else json.loads(raw)
    if not isinstance(body, dict):
        raise ValueError("invalid response: expected an object")
    return body


def read_response_items(protocol: str, body: Body) -> list[Item]:
    """Return the texts and calls of the model in a response.

    Raises:
        ValueError: The response does not have the shape of the protocol.
    """
    with _reject_shape(protocol):
        return list(_ITEM_READERS[protocol](body))


@contextmanager
def _reject_shape(protocol: str) -> Iterator[None]:
    """Raise a `ValueError` in place of what is raised where a response does not have the shape of its protocol."""
    try:
        yield
    # The shape of a response is not checked before it is read: all that it can break is this.
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"invalid response of {protocol}: {error!r}") from error


_ITEM_READERS: dict[str, Callable[[Body], Any]] = {
    "chat": lambda body: chat_items([body["choices"][0]["message"]]),
    "responses": lambda body: responses_items(body["output"]),
    "messages": lambda body: messages_items([{"role": "assistant", "content": body["content"]}]),
}


def _iter_events(raw: bytes) -> Iterator[Body]:
    for line in raw.decode("utf-8", "replace").splitlines():
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data and data != "[DONE]":
            event = json.loads(data)
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
    # A call without arguments streams an empty text.
    for place, text in arguments.items():
        blocks[place]["input"] = json.loads(text) if text else {}
    return {"content": list(blocks.values())}


_ASSEMBLERS: dict[str, Callable[[list[Body]], Body]] = {
    "chat": _assemble_completion,
    "responses": _assemble_response,
    "messages": _assemble_message,
}


_ABOUT = (
    "Recorded on the wire, which shows who approved what of hosted MCP servers only: add `approval` to other tools, "
    "and the decisions of the caller. A result that says that a call was rejected is returned by its tool here."
)


class Recorder:
    """Writer of a scenario file for every conversation that passes.

    Args:
        path: The file of the first conversation; further ones are numbered.
        gated: The tools whose calls need approval.

    Attributes:
        written: The files.
        problems: Why an exchange is in none of them, or a file is not a valid scenario.
    """

    def __init__(self, path: Path, gated: Collection[str] = ()) -> None:
        self.written: list[Path] = []
        self.problems: list[str] = []
        self._path = path
        self._gated = gated
        self._conversations: list[RecordedConversation] = []
        self._codecs: dict[str, ProtocolCodec] = {}
        self._secrets: set[str] = set()
        self._lock = Lock()

    def record(self, path: str, sent: bytes, received: bytes, *, streamed: bool, secrets: Collection[str]) -> None:
        """Record an exchange, unless its path is not one of a model."""
        protocol = next((name for ending, name in PROTOCOL_PATHS.items() if path.endswith(f"/{ending}")), None)
        if protocol is None:
            return
        with self._lock:
            self._secrets.update(secrets)
            try:
                self._add_exchange(protocol, _parse_sent(sent), parse_response(protocol, received, streamed=streamed))
            except ValueError as error:
                self.problems.append(f"{path}: {error}")

    def _add_exchange(self, protocol: str, sent: Any, received: dict[str, Any]) -> None:
        codec = self._codecs.setdefault(protocol, create_codec(protocol))
        request = codec.read(sent)
        if not request.is_readable:
            raise ValueError(request.body_errors[0].text)
        answer = read_response_items(protocol, received)
        if isinstance(codec, ResponsesCodec):
            _store_response(codec, sent, received)
        conversation = self._find_conversation(request)
        conversation.add_exchange(
            request.items, answer, dict(_iter_schemas(request.body)), dict(_iter_servers(received))
        )
        self._write(conversation)

    def _find_conversation(self, request: ParsedRequest) -> RecordedConversation:
        # The latest first, since several conversations may begin alike.
        for conversation in reversed(self._conversations):
            if conversation.is_continued_by(request.model, request.items):
                return conversation
        conversation = RecordedConversation(request.model, opening_text(request.items))
        self._conversations.append(conversation)
        return conversation

    def _write(self, conversation: RecordedConversation) -> None:
        number = self._conversations.index(conversation) + 1
        name = self._path.name.removesuffix(SCENARIO_SUFFIX)
        path = self._path.with_name(f"{name if number == 1 else f'{name}-{number}'}{SCENARIO_SUFFIX}")
        document = redact(conversation.build_document(self._gated, _ABOUT), self._secrets)
        text = format_yaml(document)
        try:
            parse_scenario(text, name=name, path=path.name)
        except ScenarioError as error:
            self.problems.append(f"{path.name} has to be edited: {error}")
        # An invalid scenario is written, too, so that the user can edit it.
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path not in self.written:
            self.written.append(path)


def _parse_sent(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("invalid request: nested too deep") from None


def _store_response(codec: ResponsesCodec, sent: Mapping[str, Any], received: Mapping[str, Any]) -> None:
    """Store a response as its provider does, so that a request may continue from it."""
    request = resolve_request(sent, codec.store)
    output = list(list_objects(received.get("output")))
    codec.store.add_output(output)
    codec.store.add_response(str(received.get("id")), request.previous, request.conversation, [*request.new, *output])


def _iter_servers(received: Body) -> Iterator[tuple[str, str]]:
    """Yield the hosted tools that a response asks about, each with its server."""
    for item in list_objects(received.get("output")):
        if item.get("type") == "mcp_approval_request":
            yield str(item.get("name")), str(item.get("server_label"))


def _iter_schemas(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parameter schemas of the functions that a request of any protocol offers."""
    for tool in list_objects(body.get("tools")):
        nested = tool.get("function")
        function: Mapping[str, Any] = nested if isinstance(nested, Mapping) else tool
        schema = function.get("parameters", function.get("input_schema"))
        if isinstance(function.get("name"), str) and isinstance(schema, Mapping):
            yield function["name"], schema
