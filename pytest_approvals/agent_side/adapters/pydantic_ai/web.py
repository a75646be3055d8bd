"""Sessions behind a web client: the framework's UI adapters serve the agent, the client holds the conversation.

A turn is one request of the client. Its body is made of what the client holds; the adapter of the protocol reads it,
runs the agent, and streams events, each as the text that goes over the wire. What the client makes of them is its state
until the next turn; it takes back answers that the server refused. A server that stores conversations does so when a
run has completed (`on_complete`), with `dump_messages`; a page that is loaded again begins with that. So `dump` returns
it; after a failed turn, for which nothing is stored, it returns what the client holds.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, Unsupported, World
from ...kit.context import use_world
from .messages import SpecsByName
from .session import Session

if TYPE_CHECKING:
    from typing import Self

Event = Mapping[str, Any]
ShownEvents = Iterator[tuple[str, dict[str, Any]]]


class RunFailed(Exception):
    """The stream ended with an error; the client learns only its text."""


class WebClient(ABC):
    """A web client: the messages that it holds, and its handling of events.

    Attributes:
        messages: The conversation, in the protocol's own messages.
        error: The error with which the last stream ended, if any.
    """

    def __init__(self, specs: SpecsByName) -> None:
        self.specs = specs
        self.messages: list[dict[str, Any]] = []
        self.error: str | None = None
        self._unanswered: list[dict[str, Any]] = []

    @staticmethod
    @abstractmethod
    def adapter() -> tuple[Any, dict[str, Any]]:
        """Return the framework's adapter of this protocol, and its arguments."""

    def body(self, text: str | None, decisions: Sequence[Decision], *, raw_in: str) -> dict[str, Any]:
        """Return the body of a request, and add *text* and *decisions* to the client's messages.

        Args:
            text: The message of the user, if there is one.
            decisions: The decisions of the user.
            raw_in: `calls` puts a raw verdict in the place of the result of a call that runs in the client.
        """
        self._unanswered = deepcopy(self.messages)
        more = self.decide(decisions, raw_in=raw_in)
        if text is not None:
            for messages in (self.messages, self._unanswered):
                messages.append(self.build_message(text, f"message-{len(messages) + 1}"))
        return {**more, "messages": deepcopy(self.messages)}

    @abstractmethod
    def decide(self, decisions: Sequence[Decision], *, raw_in: str) -> Mapping[str, Any]:
        """Put decisions into the messages, as far as they belong there, and return the rest of the body."""

    @abstractmethod
    def build_message(self, text: str, id: str) -> dict[str, Any]:
        """Return the message of the user at the client."""

    @abstractmethod
    def handle(self, event: Event) -> ShownEvents:
        """Handle one event, and yield what it shows, as arguments for `World.shown`."""

    @abstractmethod
    def requests(self) -> tuple[Request, ...]:
        """Return the requests that the client shows as open."""

    @abstractmethod
    def last_text(self) -> str:
        """Return the last text of the agent."""

    def undo_decisions(self) -> None:
        """Remove the decisions from the messages: they were refused, and the requests are open again."""
        self.messages = self._unanswered

    def dump(self) -> dict[str, Any]:
        """Return the state of the client, as JSON data."""
        return {"messages": self.messages}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned."""
        self.messages = state["messages"]

    def copy(self) -> Self:
        """Return another client with the same state, like a second tab."""
        other = type(self)(self.specs)
        other.load(deepcopy(self.dump()))
        return other


class WebSession(Session):
    """A session of a Pydantic AI agent with a web client."""

    client: ClassVar[type[WebClient]]

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._client = self.client(self._specs)
        self._completed: Any = None

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`.

        Turns that overlap are two tabs with the same state; the client of the one that ends last is kept. A request
        that the server refuses to read leaves the client as it was.
        """
        client = self._client.copy()
        completed: list[Any] = []
        body = client.body(text, decisions, raw_in=self._raw_in)
        refused = True
        with use_world(self.world):
            async for event in self._post(body, completed.append):
                for what, details in client.handle(event):
                    # A server that refuses a request streams an error, and shows nothing before its end.
                    refused = refused and what == "end"
                    if stream:
                        self.world.shown(what, **details)
        # A failed turn keeps its client: the browser has seen what was streamed before the error.
        self._client, self._completed = client, completed[-1] if completed else None
        if client.error is not None:
            if refused:
                client.undo_decisions()
            raise RunFailed(client.error)
        return self._to_web_outcome()

    async def _post(self, body: Mapping[str, Any], complete: Callable[[Any], None]) -> AsyncIterator[Event]:
        """Send *body*; yield the events of the answer, and hand the result of a completed run to *complete*."""
        kind, settings = self._client.adapter()
        # From bytes, as they come over the wire, so that the framework validates them.
        adapter = kind(agent=self._subject.agent, run_input=kind.build_run_input(json.dumps(body).encode()), **settings)
        with self._subject.use_probes():
            events = adapter.run_stream(on_complete=complete, **self._subject.options)
            async for text in adapter.encode_stream(events):
                data = text.removeprefix("data:").strip()
                if data != "[DONE]":
                    yield json.loads(data)

    def _to_web_outcome(self) -> Outcome:
        from pydantic_ai import DeferredToolRequests

        from .requests import read_output

        requests = self._client.requests()
        if requests:
            return Paused(requests=requests, text=self._client.last_text() or None)
        result = self._completed
        hidden = result is None or isinstance(result.output, DeferredToolRequests)
        return Finished(output=self._client.last_text() if hidden else read_output(result))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return self._client.requests()

    @property
    def _raw_in(self) -> str:
        return str(self.blueprint.options.get("raw_in", "approvals"))

    async def cancel(self) -> None:
        """See `Agent.cancel`."""
        raise Unsupported("cancel", self.missing["cancel"])

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """See `Agent.dump`."""
        state = self._client.dump()
        if self._completed is not None:
            state = {**state, "messages": self._dump_completed()}
        return json.dumps(state)

    def _dump_completed(self) -> list[dict[str, Any]]:
        """Return the messages of the completed run as a server stores them."""
        kind, settings = self._client.adapter()
        dumped = kind.dump_messages(self._completed.all_messages(), **_select_accepted(kind.dump_messages, settings))
        return [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in dumped]

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        (part,) = parts
        self._client.load(json.loads(part))

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, WebSession)
        self._client = other._client.copy()

    async def another_session(self, world: World) -> Self:
        """See `Agent.another_session`."""
        other = await super().another_session(world)
        other._client, other._completed = self.client(self._specs), None
        return other


def _select_accepted(function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the *settings* that the function of this release takes."""
    from inspect import signature

    return {name: value for name, value in settings.items() if name in signature(function).parameters}
