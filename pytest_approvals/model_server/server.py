"""Scripted model server: conversations at paths, and an HTTP interface to manage them.

    POST   /conversations              begin one: {"scenario": ID, or "text": YAML, and its options}
    GET    /conversations              list them
    GET    /conversations/NAME         the status of one
    GET    /conversations/NAME/journal its journal, a JSON line an event
    DELETE /conversations/NAME         end it
    GET    /astray                     list the last hundred requests that named no conversation
    GET    /health                     confirm that the server runs

Clients send requests below `/NAME/v1`: `/chat/completions`, `/responses` and `/messages`, what these protocols store or
count, and `/models`; those of Google and of Amazon below `/NAME`.
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
from pytest_approvals.protocols import create_codec, find_protocol
from pytest_approvals.protocols.codec import ProtocolCodec
from pytest_approvals.protocols.endpoint import HttpResponse, unknown_path_error
from pytest_approvals.protocols.http.server import HttpServer, error_of
from pytest_approvals.scenario.model import Scenario

if TYPE_CHECKING:
    from pytest_approvals.runner.event_loops import BackgroundLoop

RESERVED_PATHS = ("astray", "conversations", "health")
"""Names that no conversation can have."""

_MAX_PATHS = 256

LoadScenario = Callable[[str], Scenario]
"""Returns a scenario by its id; raises `UnknownName`."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Address on which a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class ScriptedModelServer:
    """Server of conversations on the loopback interface, IPv4 and IPv6.

    Args:
        load: Loads scenarios for clients that begin conversations by themselves.
        port: 0 takes a free one.

    Attributes:
        addresses: The addresses on which it listens, once it is started; the IPv4 address first.
    """

    def __init__(self, load: LoadScenario | None = None, *, port: int = 0) -> None:
        self.addresses: tuple[ListenAddress, ...] = ()
        self._port = port
        self._load = load
        self._conversations: dict[str, ServedConversation] = {}
        # Of the paths of requests, nearly all of which are alike, the conversation and the rest.
        self._paths: dict[str, tuple[ServedConversation, str]] = {}
        self._astray: deque[dict[str, str]] = deque(maxlen=100)
        self._begun = 0
        self._lock = Lock()
        self._loop: BackgroundLoop | None = None
        self._servers: list[HttpServer] = []
        self._threads: list[Thread] = []

    # --- start and stop ---

    def start(self) -> ScriptedModelServer:
        """Listen.

        Raises:
            UsageError: The port is taken.
        """
        try:
            first = self._listen(socket.AF_INET, "127.0.0.1", self._port)
        except OSError as error:
            raise UsageError(f"Cannot listen on port {self._port}: {error.strerror}") from None
        self._servers = [first, *self._listen_on_ipv6(first.server_port)]
        self.addresses = tuple(ListenAddress(server.server_name, server.server_port) for server in self._servers)
        self._threads = [Thread(target=server.serve_forever, name="loopback", daemon=True) for server in self._servers]
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Close every connection, end every conversation and wait for the server's threads."""
        # First, because threads of the servers wait for these responses.
        if self._loop is not None:
            self._loop.cancel_all()
        for server in self._servers:
            server.stop()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            server.close()
        if self._loop is not None:
            self._loop.close()
        for name in list(self._conversations):
            self.end(name)

    @contextmanager
    def running(self) -> Iterator[ScriptedModelServer]:
        """Start the server and stop it at the end."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def _listen(self, family: socket.AddressFamily, host: str, port: int) -> HttpServer:
        return HttpServer(family, host, port, self._serve, self._refuse_too_large, serve_now=self._serve_now)

    def _listen_on_ipv6(self, port: int) -> list[HttpServer]:
        """Listen on IPv6 under the same port, if the machine has IPv6 and the port is free there."""
        try:
            return [self._listen(socket.AF_INET6, "::1", port)]
        except OSError:
            return []

    # --- conversations ---

    def begin(
        self, scenario: Scenario, options: ConversationOptions | None = None, *, name: str = ""
    ) -> ServedConversation:
        """Begin a conversation.

        Args:
            scenario: The scenario whose model script it plays.
            options: How it is played.
            name: Its address; a number by default.

        Raises:
            UsageError: The name is taken, or invalid in a path.
        """
        with self._lock:
            self._begun += 1
            name = name or f"c{self._begun}"
        return self.add(ServedConversation(name, lambda: scenario, options or ConversationOptions()))

    def add(self, conversation: ServedConversation) -> ServedConversation:
        """Serve a conversation under its name.

        Raises:
            UsageError: The name is taken, or invalid in a path.
        """
        name = conversation.name
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"Invalid name {name!r}: expected letters, digits, dashes and underscores")
        with self._lock:
            if name in self._conversations or name in RESERVED_PATHS:
                raise UsageError(f"Invalid name {name!r}: it is taken")
            self._conversations[name] = conversation
        return conversation

    def end(self, name: str) -> None:
        """End a conversation; an unknown one is ignored."""
        with self._lock:
            ended = self._conversations.pop(name, None)
            # Another conversation may get its name.
            self._paths.clear()
        if ended is not None:
            ended.close()

    def url(self, name: str) -> str:
        """Return the `base_url` for clients of OpenAI; those of Anthropic, Google and Amazon take it without `/v1`."""
        return f"{self.addresses[0]}/{name}/v1"

    # --- requests ---

    def _find_conversation(self, path: str) -> tuple[ServedConversation, str] | None:
        """Return the conversation that a path names and the rest of the path; None if it names none."""
        known = self._paths.get(path)
        if known is not None:
            return known
        bare, mark, query = path.partition("?")
        first, _, rest = bare.strip("/").partition("/")
        with self._lock:
            conversation = self._conversations.get(first)
            if conversation is None:
                return None
            if len(self._paths) >= _MAX_PATHS:
                self._paths.clear()
            known = self._paths[path] = conversation, rest + mark + query
        return known

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        try:
            found = self._find_conversation(path)
            if found is not None:
                return self._ask(found[0], method, found[1], raw)
            bare = path.partition("?")[0]
            first, _, rest = bare.strip("/").partition("/")
            if first == "health" and not rest:
                return HttpResponse.from_json({"ok": True, "conversations": len(self._conversations)})
            if first == "astray" and not rest:
                return HttpResponse.from_json(list(self._astray))
            if first == "conversations":
                return self._control(method, rest, raw)
            return self._refuse_astray(method, first, rest)
        except ModelDown:
            raise
        except Exception as error:
            return _describe_failure(error)

    def _serve_now(self, method: str, path: str, raw: bytes) -> HttpResponse | None:
        """Answer a request, but for one that takes long: it loads a scenario, or its conversation may wait."""
        found = self._paths.get(path) or self._find_conversation(path)
        if found is None:
            takes_long = path.strip("/").partition("/")[0] == "conversations"
            return None if takes_long else self._serve(method, path, raw)
        conversation, rest = found
        try:
            return None if conversation.may_wait else conversation.serve_now(method, rest, raw)
        except ModelDown:
            raise
        # What is wrong with the script is the response to the request.
        except Exception as error:
            return _describe_failure(error)

    def _ask(self, conversation: ServedConversation, method: str, rest: str, raw: bytes) -> HttpResponse:
        if conversation.may_wait:
            return self._background_loop.run(conversation.serve(method, rest, raw))
        return conversation.serve_now(method, rest, raw)

    def _refuse_astray(self, method: str, name: str, rest: str) -> HttpResponse:
        codec = _get_codec(rest)
        suggestion = suggest_name(name, self._conversations)
        self._astray.append({"method": method, "path": f"/{name}/{rest}".rstrip("/")})
        return HttpResponse.from_error(codec, unknown_path_error(codec, f"Unknown conversation {name!r}{suggestion}"))

    @property
    def _background_loop(self) -> BackgroundLoop:
        """The event loop in which responses wait."""
        # Created when the first response has to wait, because importing asyncio takes time.
        with self._lock:
            if self._loop is None:
                from pytest_approvals.runner.event_loops import BackgroundLoop

                self._loop = BackgroundLoop()
            return self._loop

    def _refuse_too_large(self, path: str) -> HttpResponse:
        name, _, rest = path.strip("/").partition("/")
        codec = _get_codec(rest)
        error = replace(codec.failure(413), rule="too-large")
        conversation = self._conversations.get(name)
        if conversation is None:
            return HttpResponse.from_error(codec, error)
        refusal = conversation.reject(error, codec)
        return self._background_loop.run(refusal) if conversation.may_wait else run_without_loop(refusal)

    # --- the HTTP interface ---

    def _control(self, method: str, rest: str, raw: bytes) -> HttpResponse:
        name, _, part = rest.partition("/")
        if not name:
            return (
                self._begin_for_client(raw)
                if method == "POST"
                else HttpResponse.from_json([conversation.status for conversation in self._conversations.values()])
            )
        conversation = self._conversations.get(name)
        if conversation is None:
            raise UnknownName("conversation", name, self._conversations)
        if method == "DELETE":
            self.end(name)
            return HttpResponse.from_json(conversation.status)
        if part == "journal":
            # A copy: another thread may record an event meanwhile.
            lines = "".join(json.dumps(event.to_dict()) + "\n" for event in list(conversation.events))
            return HttpResponse(status=200, content_type="application/jsonl", pieces=iter([lines.encode()]))
        return HttpResponse.from_json(conversation.status)

    def _begin_for_client(self, raw: bytes) -> HttpResponse:
        body = _parse_object(raw)
        # Clients name no files of this machine.
        options = (field.name for field in fields(ConversationOptions) if field.name != "journal")
        known = ("name", "scenario", "text", *options)
        for name in body:
            if name not in known:
                raise UnknownName("field of a conversation", name, known)
        conversation = self.begin(self._load_scenario(body), _parse_options(body), name=str(body.get("name") or ""))
        return HttpResponse.from_json({**conversation.status, "base_url": self.url(conversation.name)}, 201)

    def _load_scenario(self, body: Mapping[str, Any]) -> Scenario:
        if "text" in body:
            from pytest_approvals.scenario.load import parse_scenario

            return parse_scenario(str(body["text"]), name="sent/by-client", path="text")
        if "scenario" not in body:
            raise UsageError("Missing scenario: expected `scenario` (an id) or `text` (YAML)")
        if self._load is None:
            raise UsageError("Invalid `scenario`: this server has no catalogue; send the `text` of a scenario")
        return self._load(str(body["scenario"]))


def _describe_failure(error: Exception) -> HttpResponse:
    """Return the response to a request that failed."""
    if isinstance(error, ApprovalsError):
        return error_of(str(error), 400)
    return error_of(f"the server failed: {type(error).__name__}: {error}", 500)


def _parse_options(body: Mapping[str, Any]) -> ConversationOptions:
    defaults = ConversationOptions()
    options = {name: value for name, value in body.items() if name not in ("name", "scenario", "text")}
    for name, value in options.items():
        default = getattr(defaults, name)
        if type(value) is not type(default):
            raise UsageError(f"Invalid {name} {value!r}: expected {type(default).__name__}, such as {default!r}")
    return ConversationOptions(**options)


def _parse_object(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise UsageError("Invalid body: expected JSON") from None
    if not isinstance(body, Mapping):
        raise UsageError("Invalid body: expected an object")
    return body


def _get_codec(path: str) -> ProtocolCodec:
    return create_codec(find_protocol(strip_base_path(path)) or "chat")
