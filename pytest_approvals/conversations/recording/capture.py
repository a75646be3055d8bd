"""Capture of exchanges as scenario files.

Exchanges are parsed, assigned to conversations, and written while they come, without the secrets in them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_approvals.conversations.recording.media import replace_media
from pytest_approvals.conversations.recording.received import Body, parse_response, read_response_items
from pytest_approvals.conversations.recording.recorded_conversation import Exchange, RecordedConversation, opening_text
from pytest_approvals.conversations.recording.redaction import redact
from pytest_approvals.errors import ScenarioError
from pytest_approvals.protocols import PROTOCOL_PATHS, create_codec, find_protocol
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec
from pytest_approvals.protocols.responses import ResponsesCodec
from pytest_approvals.protocols.responses.requests import read_hosted_id
from pytest_approvals.protocols.responses.stored_items import resolve_request
from pytest_approvals.protocols.text import list_objects, object_or_empty
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.to_file import format_yaml
from pytest_approvals.scenario.vocabulary import PARAMETER_TYPES

_TYPE_NAMES = frozenset(f"{name}{mark}" for name in PARAMETER_TYPES for mark in ("", "?"))
"""Words that stand below the name of a parameter, which may be that of a secret."""

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
        protocol = _find_protocol(path)
        if protocol is None:
            return
        with self._lock:
            self._secrets.update(secrets)
            try:
                body = parse_response(protocol, received, streamed=streamed)
                self._add_exchange(protocol, path, _parse_sent(sent), body)
            except ValueError as error:
                self.problems.append(f"{path}: {error}")

    def _add_exchange(self, protocol: str, path: str, sent: Any, received: Body) -> None:
        codec = self._codecs.setdefault(protocol, create_codec(protocol))
        target = codec.find_target(path, "")
        if target is None:
            return
        request = codec.read(replace_media(sent), target)
        if not request.is_readable:
            raise ValueError(request.body_errors[0].text)
        answer = read_response_items(protocol, received, list_objects(request.body.get("contents")))
        if isinstance(codec, ResponsesCodec):
            _store_response(codec, sent, received)
        conversation = self._find_conversation(request)
        conversation.add_exchange(
            Exchange(
                items=request.items,
                answer=answer,
                schemas=dict(_iter_schemas(request.body)),
                servers=dict(_iter_servers(received)),
                failed=frozenset(_iter_failed(received)),
            )
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
        document = conversation.build_document(self._gated, _ABOUT)
        document = redact(document, self._secrets, conversation.call_ids | _TYPE_NAMES)
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


def _find_protocol(path: str) -> str | None:
    """Return the protocol of a path that may have anything before what the protocol says.

    >>> [_find_protocol(path) for path in ("/v1/messages", "/v1beta/models/m:generateContent", "/v1/files")]
    ['messages', 'gemini', None]
    """
    plain = next((name for ending, name in PROTOCOL_PATHS.items() if path.endswith(f"/{ending}")), None)
    return plain or find_protocol(path)


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
    """Yield the ids of the items about hosted calls in a response, each with its server."""
    for item in list_objects(received.get("output")):
        if item.get("type") in ("mcp_approval_request", "mcp_call"):
            yield _hosted_id(item), str(item.get("server_label"))


def _hosted_id(item: Mapping[str, Any]) -> str:
    if item.get("type") == "mcp_approval_request":
        return str(item.get("id"))
    return str(item.get("approval_request_id") or read_hosted_id(item.get("id")))


def _iter_failed(received: Body) -> Iterator[str]:
    """Yield the ids of the hosted calls that a response reports as failed, as those of what asked about them."""
    for item in list_objects(received.get("output")):
        if item.get("type") == "mcp_call" and item.get("error") is not None:
            yield _hosted_id(item)


_SCHEMA_KEYS = ("parameters", "parametersJsonSchema", "input_schema")


def _iter_schemas(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parameter schemas of the functions that a request of any protocol offers."""
    for function in _iter_functions(body):
        schema = next((function[key] for key in _SCHEMA_KEYS if function.get(key) is not None), None)
        if schema is None:
            schema = object_or_empty(function.get("inputSchema")).get("json")
        if isinstance(function.get("name"), str) and isinstance(schema, Mapping):
            yield function["name"], schema


def _iter_functions(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for tool in list_objects(body.get("tools")):
        yield from list_objects(tool.get("functionDeclarations"))
        nested = tool.get("function")
        yield nested if isinstance(nested, Mapping) else tool
    for tool in list_objects(object_or_empty(body.get("toolConfig")).get("tools")):
        yield object_or_empty(tool.get("toolSpec"))
