"""
The loopback server: conversations apart by path prefix, and a small interface over HTTP that begins and reads them.

    POST   /conversations              begin one: {"scenario": ID, or "text": YAML, and what is wished for}
    GET    /conversations              list them
    GET    /conversations/NAME         say how far one has got
    GET    /conversations/NAME/journal its journal, a JSON line an event
    DELETE /conversations/NAME         end it
    GET    /astray                     list the last hundred requests that named no conversation
    GET    /health                     say that the server is there

Models are asked below `/NAME/v1`: `/chat/completions`, `/responses` and `/messages`, with `/conversations` of the
Responses protocol and `/models`.
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError, suggest_name
from pytest_approvals.model_server.conversation import (
    ConversationOptions,
    ServedConversation,
    run_without_loop,
    strip_base_path,
)
from pytest_approvals.protocols import PROTOCOL_PATHS, create_codec
from pytest_approvals.protocols.codec import ProtocolCodec
from pytest_approvals.protocols.endpoint import HttpResponse, unknown_path_error
from pytest_approvals.protocols.http.server import HttpServer
from pytest_approvals.scenario.model import Scenario

if TYPE_CHECKING:
    from pytest_approvals.model_server.background_loop import BackgroundLoop

RESERVED_PATHS = ("astray", "conversations", "health")
"""What no conversation can be called."""

LoadScenario = Callable[[str], Scenario]
"""Gives a scenario by its id; raises `UnknownName`."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class ScriptedModelServer:
    """
    Serves conversations on the loopback, IPv4 and IPv6.

    Arguments:
        load: Gives scenarios to clients that begin conversations by themselves.
        port: 0 takes a free one.

    Attributes:
        addresses: Where it listens, once it was started; the IPv4 address first.
    """

    def __init__(self, load: LoadScenario | None = None, *, port: int = 0) -> None:
        self.addresses: tuple[ListenAddress, ...] = ()
        self._port = port
        self._load = load
        self._conversations: dict[str, ServedConversation] = {}
        self._astray: deque[dict[str, str]] = deque(maxlen=100)
        self._begun = 0
        self._lock = Lock()
        self._loop: BackgroundLoop | None = None
        self._listeners: list[HttpServer] = []
        self._threads: list[Thread] = []

    # --- life ---

    def start(self) -> ScriptedModelServer:
        """
        Listens.

        Errors:
            UsageError: The port is taken.
        """
        try:
            first = self._listener(socket.AF_INET, "127.0.0.1", self._port)
        except OSError as error:
            raise UsageError(f"port {self._port} cannot be listened on: {error.strerror}") from None
        self._listeners = [first, *self._second(first.server_port)]
        self.addresses = tuple(ListenAddress(one.server_name, one.server_port) for one in self._listeners)
        self._threads = [
            Thread(target=one.serve_forever, args=(0.05,), name="loopback", daemon=True) for one in self._listeners
        ]
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Closes every connection, ends every conversation and waits for the server's threads."""
        if self._loop is not None:
            self._loop.give_up()
        for listener in self._listeners:
            listener.stop()
        for thread in self._threads:
            thread.join()
        if self._loop is not None:
            self._loop.close()
        for name in list(self._conversations):
            self.end(name)

    @contextmanager
    def running(self) -> Iterator[ScriptedModelServer]:
        """Starts the server and stops it at the end."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def _listener(self, family: socket.AddressFamily, host: str, port: int) -> HttpServer:
        return HttpServer(family, host, port, self._serve, self._too_large)

    def _second(self, port: int) -> list[HttpServer]:
        """Listens on IPv6, too, under the same port, where the machine has it and the port is free there."""
        try:
            return [self._listener(socket.AF_INET6, "::1", port)]
        except OSError:
            return []

    # --- conversations ---

    def begin(
        self, scenario: Scenario, wishes: ConversationOptions | None = None, *, name: str = ""
    ) -> ServedConversation:
        """
        Begins a conversation.

        Arguments:
            name: Its address; numbered where none is given.

        Errors:
            UsageError: The name is taken, or cannot stand in a path.
            UnknownName: A protocol or a style that does not exist is wished for.
        """
        with self._lock:
            self._begun += 1
            name = name or f"c{self._begun}"
        return self.add(ServedConversation(name, lambda: scenario, wishes or ConversationOptions()))

    def add(self, conversation: ServedConversation) -> ServedConversation:
        """
        Serves a conversation under its name.

        Errors:
            UsageError: The name is taken, or cannot stand in a path.
        """
        name = conversation.name
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"the name {name!r} cannot stand in a path; use letters, digits, dashes and underscores")
        with self._lock:
            if name in self._conversations or name in RESERVED_PATHS:
                raise UsageError(f"the name {name!r} is taken")
            self._conversations[name] = conversation
        return conversation

    def end(self, name: str) -> None:
        """Ends a conversation; one that is unknown is no error."""
        ended = self._conversations.pop(name, None)
        if ended is not None:
            ended.close()

    def url(self, name: str) -> str:
        """Gives the address that clients of OpenAI take as `base_url`; those of Anthropic take it without `/v1`."""
        return f"{self.addresses[0]}/{name}/v1"

    # --- requests ---

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        first, _, rest = path.strip("/").partition("/")
        try:
            if first == "health" and not rest:
                return HttpResponse.from_json({"ok": True, "conversations": len(self._conversations)})
            if first == "astray" and not rest:
                return HttpResponse.from_json(list(self._astray))
            if first == "conversations":
                return self._control(method, rest, raw)
            return self._model(method, first, rest, raw)
        except ApprovalsError as error:
            return HttpResponse.from_json({"error": {"message": str(error)}}, 400)
        except ModelDown:
            raise
        except Exception as error:
            return HttpResponse.from_json({"error": {"message": f"the server failed: {type(error).__name__}: {error}"}}, 500)

    def _model(self, method: str, name: str, rest: str, raw: bytes) -> HttpResponse:
        conversation = self._conversations.get(name)
        if conversation is None:
            spoken = _get_codec(rest)
            near = suggest_name(name, self._conversations)
            self._astray.append({"method": method, "path": f"/{name}/{rest}".rstrip("/")})
            return HttpResponse.from_error(spoken, unknown_path_error(spoken, f"there is no conversation {name!r}{near}"))
        return self._answered(conversation, conversation.serve(method, rest, raw))

    def _answered(self, conversation: ServedConversation, served: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        return self._waiting.answer(served) if conversation.may_wait else run_without_loop(served)

    @property
    def _waiting(self) -> BackgroundLoop:
        """Where answers wait; made when the first one has to, because to import asyncio takes its time."""
        with self._lock:
            if self._loop is None:
                from pytest_approvals.model_server.background_loop import BackgroundLoop

                self._loop = BackgroundLoop()
            return self._loop

    def _too_large(self, path: str) -> HttpResponse:
        name, _, rest = path.strip("/").partition("/")
        spoken = _get_codec(rest)
        complaint = replace(spoken.failure(413), rule="too-large")
        conversation = self._conversations.get(name)
        if conversation is None:
            return HttpResponse.from_error(spoken, complaint)
        return self._answered(conversation, conversation.turn_away(complaint, spoken))

    # --- the interface ---

    def _control(self, method: str, rest: str, raw: bytes) -> HttpResponse:
        name, _, what = rest.partition("/")
        if not name:
            return (
                self._begun_by(raw)
                if method == "POST"
                else HttpResponse.from_json([one.facts for one in self._conversations.values()])
            )
        conversation = self._conversations.get(name)
        if conversation is None:
            raise UnknownName("conversation", name, self._conversations)
        if method == "DELETE":
            self.end(name)
            return HttpResponse.from_json(conversation.facts)
        if what == "journal":
            lines = "".join(json.dumps(event.to_dict()) + "\n" for event in list(conversation.events))
            return HttpResponse(status=200, content_type="application/jsonl", pieces=iter([lines.encode()]))
        return HttpResponse.from_json(conversation.facts)

    def _begun_by(self, raw: bytes) -> HttpResponse:
        body = _parse_object(raw)
        known = (
            "name",
            "scenario",
            "text",
            *(one.name for one in fields(ConversationOptions) if one.name != "journal"),
        )
        for word in body:
            if word not in known:
                raise UnknownName("field of a conversation", word, known)
        begun = self.begin(self._scenario(body), _parse_options(body), name=str(body.get("name") or ""))
        return HttpResponse.from_json({**begun.facts, "base_url": self.url(begun.name)}, 201)

    def _scenario(self, body: Mapping[str, Any]) -> Scenario:
        if "text" in body:
            from pytest_approvals.scenario.load import parse_scenario

            return parse_scenario(str(body["text"]), name="sent/by-client", path="text")
        if "scenario" not in body:
            raise UsageError("a conversation needs `scenario`, the id of one, or `text`, the text of one")
        if self._load is None:
            raise UsageError("this server has no catalogue; send the `text` of a scenario")
        return self._load(str(body["scenario"]))


def _parse_options(body: Mapping[str, Any]) -> ConversationOptions:
    plain, wished = (
        ConversationOptions(),
        {word: value for word, value in body.items() if word not in ("name", "scenario", "text")},
    )
    for word, value in wished.items():
        if type(value) is not type(getattr(plain, word)):
            raise UsageError(f"{word} is {value!r}; it must be like {getattr(plain, word)!r}")
    return ConversationOptions(**wished)


def _parse_object(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise UsageError("the body is not JSON") from None
    if not isinstance(body, Mapping):
        raise UsageError("the body is not an object")
    return body


def _get_codec(path: str) -> ProtocolCodec:
    return create_codec(PROTOCOL_PATHS.get(strip_base_path(path), "chat"))
