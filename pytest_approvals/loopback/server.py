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

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError, nearest
from pytest_approvals.protocols.endpoint import Answer, wrong_path
from pytest_approvals.protocols.format import PATHS, Format, format_named
from pytest_approvals.scenario.parts import Scenario

from .conversation import Conversation, Wishes, at_once, below
from .http import Listener

if TYPE_CHECKING:
    from .waiting import WorldsLoop

OWN_PATHS = ("astray", "conversations", "health")
"""What no conversation can be called."""

Load = Callable[[str], Scenario]
"""Gives a scenario by its id; raises `UnknownName`."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


class LoopbackServer:
    """
    Serves conversations on the loopback, IPv4 and IPv6.

    Arguments:
        load: Gives scenarios to clients that begin conversations by themselves.
        port: 0 takes a free one.

    Attributes:
        addresses: Where it listens, once it was started; the IPv4 address first.
    """

    def __init__(self, load: Load | None = None, *, port: int = 0) -> None:
        self.addresses: tuple[Address, ...] = ()
        self._port = port
        self._load = load
        self._conversations: dict[str, Conversation] = {}
        self._astray: deque[dict[str, str]] = deque(maxlen=100)
        self._begun = 0
        self._lock = Lock()
        self._loop: WorldsLoop | None = None
        self._listeners: list[Listener] = []
        self._threads: list[Thread] = []

    # --- life ---

    def start(self) -> LoopbackServer:
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
        self.addresses = tuple(Address(one.server_name, one.server_port) for one in self._listeners)
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
    def running(self) -> Iterator[LoopbackServer]:
        """Starts the server and stops it at the end."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def _listener(self, family: socket.AddressFamily, host: str, port: int) -> Listener:
        return Listener(family, host, port, self._serve, self._too_large)

    def _second(self, port: int) -> list[Listener]:
        """Listens on IPv6, too, under the same port, where the machine has it and the port is free there."""
        try:
            return [self._listener(socket.AF_INET6, "::1", port)]
        except OSError:
            return []

    # --- conversations ---

    def begin(self, scenario: Scenario, wishes: Wishes | None = None, *, name: str = "") -> Conversation:
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
        return self.add(Conversation(name, lambda: scenario, wishes or Wishes()))

    def add(self, conversation: Conversation) -> Conversation:
        """
        Serves a conversation under its name.

        Errors:
            UsageError: The name is taken, or cannot stand in a path.
        """
        name = conversation.name
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"the name {name!r} cannot stand in a path; use letters, digits, dashes and underscores")
        with self._lock:
            if name in self._conversations or name in OWN_PATHS:
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

    def _serve(self, method: str, path: str, raw: bytes) -> Answer:
        first, _, rest = path.strip("/").partition("/")
        try:
            if first == "health" and not rest:
                return Answer.of({"ok": True, "conversations": len(self._conversations)})
            if first == "astray" and not rest:
                return Answer.of(list(self._astray))
            if first == "conversations":
                return self._control(method, rest, raw)
            return self._model(method, first, rest, raw)
        except ApprovalsError as error:
            return Answer.of({"error": {"message": str(error)}}, 400)
        except ModelDown:
            raise
        except Exception as error:
            return Answer.of({"error": {"message": f"the server failed: {type(error).__name__}: {error}"}}, 500)

    def _model(self, method: str, name: str, rest: str, raw: bytes) -> Answer:
        conversation = self._conversations.get(name)
        if conversation is None:
            spoken = _spoken_at(rest)
            near = nearest(name, self._conversations)
            self._astray.append({"method": method, "path": f"/{name}/{rest}".rstrip("/")})
            return Answer.refusal(spoken, wrong_path(spoken, f"there is no conversation {name!r}{near}"))
        return self._answered(conversation, conversation.serve(method, rest, raw))

    def _answered(self, conversation: Conversation, served: Coroutine[Any, Any, Answer]) -> Answer:
        return self._waiting.answer(served) if conversation.may_wait else at_once(served)

    @property
    def _waiting(self) -> WorldsLoop:
        """Where answers wait; made when the first one has to, because to import asyncio takes its time."""
        with self._lock:
            if self._loop is None:
                from .waiting import WorldsLoop

                self._loop = WorldsLoop()
            return self._loop

    def _too_large(self, path: str) -> Answer:
        name, _, rest = path.strip("/").partition("/")
        spoken = _spoken_at(rest)
        complaint = replace(spoken.failure(413), rule="too-large")
        conversation = self._conversations.get(name)
        if conversation is None:
            return Answer.refusal(spoken, complaint)
        return self._answered(conversation, conversation.turn_away(complaint, spoken))

    # --- the interface ---

    def _control(self, method: str, rest: str, raw: bytes) -> Answer:
        name, _, what = rest.partition("/")
        if not name:
            return (
                self._begun_by(raw)
                if method == "POST"
                else Answer.of([one.facts for one in self._conversations.values()])
            )
        conversation = self._conversations.get(name)
        if conversation is None:
            raise UnknownName("conversation", name, self._conversations)
        if method == "DELETE":
            self.end(name)
            return Answer.of(conversation.facts)
        if what == "journal":
            lines = "".join(json.dumps(event.to_dict()) + "\n" for event in list(conversation.events))
            return Answer(status=200, content_type="application/jsonl", pieces=iter([lines.encode()]))
        return Answer.of(conversation.facts)

    def _begun_by(self, raw: bytes) -> Answer:
        body = _object(raw)
        known = ("name", "scenario", "text", *(one.name for one in fields(Wishes) if one.name != "journal"))
        for word in body:
            if word not in known:
                raise UnknownName("field of a conversation", word, known)
        begun = self.begin(self._scenario(body), _wishes(body), name=str(body.get("name") or ""))
        return Answer.of({**begun.facts, "base_url": self.url(begun.name)}, 201)

    def _scenario(self, body: Mapping[str, Any]) -> Scenario:
        if "text" in body:
            from pytest_approvals.scenario.load import scenario_from_text

            return scenario_from_text(str(body["text"]), name="sent/by-client", path="text")
        if "scenario" not in body:
            raise UsageError("a conversation needs `scenario`, the id of one, or `text`, the text of one")
        if self._load is None:
            raise UsageError("this server has no catalogue; send the `text` of a scenario")
        return self._load(str(body["scenario"]))


def _wishes(body: Mapping[str, Any]) -> Wishes:
    plain, wished = Wishes(), {word: value for word, value in body.items() if word not in ("name", "scenario", "text")}
    for word, value in wished.items():
        if type(value) is not type(getattr(plain, word)):
            raise UsageError(f"{word} is {value!r}; it must be like {getattr(plain, word)!r}")
    return Wishes(**wished)


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise UsageError("the body is not JSON") from None
    if not isinstance(body, Mapping):
        raise UsageError("the body is not an object")
    return body


def _spoken_at(path: str) -> Format:
    return format_named(PATHS.get(below(path), "chat"))
