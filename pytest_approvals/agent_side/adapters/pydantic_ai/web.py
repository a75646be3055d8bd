"""
Agents behind a web client: the framework's UI adapters serve them, and the client holds the conversation.

A turn is one request of the client. Its body is made of what the client holds; the adapter of the protocol reads it,
runs the agent, and streams events, each as the text that goes over the wire. What the client makes of them is its state
until the next turn; answers that the server refused it takes back. A server that stores conversations does so when a
run has completed (`on_complete`), with `dump_messages`; a page that is loaded again begins with that. So `dump` gives
it; after a failed turn, for which nothing is stored, it gives what the client holds.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_approvals.agent_side.contract import Blueprint, Decision, Finished, Outcome, Paused, Request, Unsupported
from pytest_approvals.agent_side.contract.agent import Agent, World

from .messages import SpecsByName
from .session import Session

if TYPE_CHECKING:
    from typing import Self

Event = Mapping[str, Any]
ShownEvents = Iterator[tuple[str, dict[str, Any]]]


class RunFailed(Exception):
    """The stream ended with an error; the client is told no more than its text."""


class WebClient(ABC):
    """
    What a web client holds, and what it makes of the events that it is sent.

    Attributes:
        messages: The conversation, in the protocol's own messages.
        error: What the last stream ended with, where it ended with an error.
    """

    def __init__(self, specs: SpecsByName) -> None:
        self.specs = specs
        self.messages: list[dict[str, Any]] = []
        self.error: str | None = None
        self._unanswered: list[dict[str, Any]] = []

    @staticmethod
    @abstractmethod
    def adapter() -> tuple[Any, dict[str, Any]]:
        """Gives the framework's adapter of this protocol, and what it is made with."""

    def body(self, text: str | None, decisions: Sequence[Decision], *, raw_in: str) -> dict[str, Any]:
        """
        Gives the body of a request with *text* and *decisions*, which are in the client's messages from then on.

        Arguments:
            raw_in: `calls` puts a raw verdict where the result of a call goes that runs in the client.
        """
        self._unanswered = deepcopy(self.messages)
        more = self.decide(decisions, raw_in=raw_in)
        if text is not None:
            for messages in (self.messages, self._unanswered):
                messages.append(self.written(text, f"message-{len(messages) + 1}"))
        return {**more, "messages": deepcopy(self.messages)}

    @abstractmethod
    def decide(self, decisions: Sequence[Decision], *, raw_in: str) -> Mapping[str, Any]:
        """Puts decisions into the messages, as far as they stand there, and gives what else the body has."""

    @abstractmethod
    def written(self, text: str, id: str) -> dict[str, Any]:
        """Gives the message of the person at the client."""

    @abstractmethod
    def take(self, event: Event) -> ShownEvents:
        """Takes in one event, and gives what it shows, as arguments for `World.shown`."""

    @abstractmethod
    def requests(self) -> tuple[Request, ...]:
        """Gives the requests that the client shows as open."""

    @abstractmethod
    def said(self) -> str:
        """Gives the text that the agent said last."""

    def take_back(self) -> None:
        """Takes the decisions out of the messages again: they were refused, and the requests are open."""
        self.messages = self._unanswered

    def kept(self) -> dict[str, Any]:
        """Gives what the client holds, as JSON data."""
        return {"messages": self.messages}

    def take_up(self, kept: Mapping[str, Any]) -> None:
        """Begins with what `kept` gave."""
        self.messages = kept["messages"]

    def copied(self) -> Self:
        """Gives another client that holds the same, as a second tab does."""
        other = type(self)(self.specs)
        other.take_up(deepcopy(self.kept()))
        return other


class WebSession(Session):
    """A session of a Pydantic AI agent with a web client."""

    client: ClassVar[type[WebClient]]

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._client = self.client(self._specs)
        self._completed: Any = None

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """
        Turns that overlap are two tabs, which begin with the same; what is kept is that of the one that ends last.

        What the server refuses to read leaves the client as it was.
        """
        client = self._client.copied()
        completed: list[Any] = []
        body = client.body(text, decisions, raw_in=self._raw_in)
        refused = True
        with self._playing():
            async for event in self._posted(body, completed.append):
                for what, told in client.take(event):
                    refused = refused and what == "end"
                    if stream:
                        self.world.shown(what, **told)
        self._client, self._completed = client, completed[-1] if completed else None
        if client.error is not None:
            if refused:
                client.take_back()
            raise RunFailed(client.error)
        return self._ended()

    async def _posted(self, body: Mapping[str, Any], complete: Callable[[Any], None]) -> AsyncIterator[Event]:
        """Sends *body*; gives the events that come back, read from their text, and the result of a completed run."""
        made, settings = self._client.adapter()
        adapter = made(agent=self._subject.agent, run_input=made.build_run_input(json.dumps(body).encode()), **settings)
        with self._subject.probed():
            events = adapter.run_stream(on_complete=complete, **self._subject.options)
            async for text in adapter.encode_stream(events):
                data = text.removeprefix("data:").strip()
                if data != "[DONE]":
                    yield json.loads(data)

    def _ended(self) -> Outcome:
        from pydantic_ai import DeferredToolRequests

        from .requests import read_output

        requests = self._client.requests()
        if requests:
            return Paused(requests=requests, text=self._client.said() or None)
        result = self._completed
        hidden = result is None or isinstance(result.output, DeferredToolRequests)
        return Finished(output=self._client.said() if hidden else read_output(result))

    async def pending(self) -> Sequence[Request]:
        return self._client.requests()

    @property
    def _raw_in(self) -> str:
        return str(self.blueprint.options.get("raw_in", "approvals"))

    async def cancel(self) -> None:
        raise Unsupported("cancel", self.missing["cancel"])

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        kept = self._client.kept()
        if self._completed is not None:
            kept = {**kept, "messages": self._stored()}
        return json.dumps(kept)

    def _stored(self) -> list[dict[str, Any]]:
        """Gives the messages of the completed run as a server stores them."""
        made, settings = self._client.adapter()
        dumped = made.dump_messages(self._completed.all_messages(), **_select_accepted(made.dump_messages, settings))
        return [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in dumped]

    async def load(self, parts: Sequence[str]) -> None:
        (part,) = parts
        self._client.take_up(json.loads(part))

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, WebSession)
        self._client = other._client.copied()

    async def another_session(self, world: World) -> Self:
        other = await super().another_session(world)
        other._client, other._completed = self.client(self._specs), None
        return other


def _select_accepted(function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the *settings* that a release's function takes."""
    from inspect import signature

    return {name: value for name, value in settings.items() if name in signature(function).parameters}
