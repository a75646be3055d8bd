"""
A scenario's model script, played over the wire.

The world that plays and records is the one of every run; only the agent stands outside, so that its journal holds the
side of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.errors import UnknownName
from pytest_approvals.journal.events import Event, Header
from pytest_approvals.journal.files import Journal
from pytest_approvals.protocols import CODECS, PROTOCOL_PATHS, create_codec
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec
from pytest_approvals.protocols.endpoint import Endpoint, HttpResponse, unknown_path_error
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import get_stream_style
from pytest_approvals.protocols.text import list_objects, parse_object
from pytest_approvals.runner.run_context import RunContext, describe_tools
from pytest_approvals.runner.stream_chunks import CHUNKINGS
from pytest_approvals.runner.world import RecordingWorld
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.protocols.responses import ResponsesCodec

OBSERVED_EVENTS = ("model.request", "model.answer", "model.refusal", "model.failure", "model.exhausted")

ANY_PROTOCOL = "any"
"""Stands for the protocol that the first request speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """
    How a script is played.

    Attributes:
        protocol: Whose rules hold; only its path is served. `any` is the one that is asked for first.
        chunking: How streamed replies are cut.
        style: How streams are written.
        lenient: Answer what the provider would refuse.
        again: Begin anew with every request that has no reply in it yet, and forget what was before: for load tests.
        journal: The file to record in; in memory only where there is none.

    Errors:
        UnknownName: A protocol, a chunking or a style that does not exist is wished for.
    """

    protocol: str = "chat"
    chunking: str = "whole"
    style: str = "plain"
    lenient: bool = False
    again: bool = False
    journal: Path | None = None

    def __post_init__(self) -> None:
        named = (("protocol", self.protocol, (*CODECS, ANY_PROTOCOL)), ("chunking", self.chunking, CHUNKINGS))
        for what, name, known in named:
            if name not in known:
                raise UnknownName(what, name, known)
        get_stream_style(self.style)


class ServedConversation:
    """
    One scripted model at one address.

    Arguments:
        name: Its address, and the agent's name in the journal.
        script: Gives the scenario; it is asked before each reply, because a test may still be writing it.

    Attributes:
        wishes: How it is played; it may be changed until the first request comes.
    """

    def __init__(self, name: str, script: Callable[[], Scenario], wishes: ConversationOptions) -> None:
        self.name = name
        self.wishes = wishes
        self._script = script
        self._lock = RLock()
        self._endpoint: Endpoint | None = None
        self._world: RecordingWorld | None = None
        self._looked_at: tuple[Scenario | None, bool] = None, False

    @property
    def scenario(self) -> Scenario:
        """What it plays."""
        return self._script()

    @property
    def protocol(self) -> str:
        """What it speaks; `any` where the first request is to say so and has not come."""
        return self.wishes.protocol if self._endpoint is None else self._endpoint.codec.name

    @property
    def responses(self) -> ResponsesCodec | None:
        """Its side of Responses, which keeps things between requests; None for other protocols."""
        if self._endpoint is None or self._endpoint.codec.name != "responses":
            return None
        return cast("ResponsesCodec", self._endpoint.codec)

    @property
    def play(self) -> RunContext | None:
        """What is played, since the first request came."""
        return self._world.play if self._world is not None else None

    @property
    def events(self) -> list[Event]:
        """All that was recorded."""
        return self.play.journal.events if self.play is not None else []

    @property
    def facts(self) -> dict[str, Any]:
        """What it plays, and how often it was asked and refused."""
        kinds = [event.kind for event in self.events]
        return {
            "name": self.name,
            "scenario": self.scenario.id,
            "protocol": self.protocol,
            "asked": kinds.count("model.request"),
            "answered": kinds.count("model.answer"),
            "refused": kinds.count("model.refusal"),
        }

    def close(self) -> None:
        """Ends its journal."""
        if self.play is not None:
            self.play.journal.close()

    # --- requests ---

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answers a request to a path of a provider; see `transport.Served`."""
        return await self._in_order(self._serve(method, path, raw))

    async def turn_away(self, complaint: ProviderError, spoken: ProtocolCodec) -> HttpResponse:
        """Refuses a request in the words of *spoken*; recorded, but where nobody knows yet what is spoken here."""
        return await self._in_order(self._turned_away(complaint, spoken))

    @property
    def may_wait(self) -> bool:
        """Whether an answer may have to wait: for a tool that the provider runs, or because the model is slow."""
        scenario = self.scenario
        if scenario is not self._looked_at[0]:
            self._looked_at = scenario, _needs_event_loop(scenario)
        return self._looked_at[1]

    async def _in_order(self, served: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        """Threads ask one after the other; answers that may wait are all given in one event loop."""
        if self.may_wait:
            return await served
        with self._lock:
            return await served

    async def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        asked = strip_base_path(path)
        if method == "GET" and asked == "models":
            return HttpResponse.from_json({"object": "list", "data": [_model_entry(agent) for agent in self.scenario.agents]})
        protocol = "responses" if asked == "conversations" else PROTOCOL_PATHS.get(asked)
        if method != "POST" or protocol is None or self.protocol not in (protocol, ANY_PROTOCOL):
            spoken = create_codec(protocol or ("chat" if self.protocol == ANY_PROTOCOL else self.protocol))
            text = f"Invalid URL ({method} /v1/{asked}); this conversation speaks {self.protocol}"
            return await self._turned_away(unknown_path_error(spoken, text), spoken)
        endpoint = self._speak(protocol)
        if asked == "conversations" and self.responses is not None:
            return HttpResponse.from_json(self.responses.begin_conversation(list_objects(_parse_body(raw).get("items"))))
        return await endpoint.post(raw)

    async def _turned_away(self, complaint: ProviderError, spoken: ProtocolCodec) -> HttpResponse:
        if self.protocol != ANY_PROTOCOL:
            await self._speak(self.protocol).reject_unreadable(complaint)
        return HttpResponse.from_error(spoken, complaint)

    async def _model(self, items: Sequence[Item], asked: ParsedRequest) -> Reply:
        world = self._world
        assert world is not None
        if self.wishes.again and all(item.kind in ("user", "other") for item in items):
            world.reset()
            if self.responses is not None:
                self.responses.store.clear()
        world.play.scenario = self.scenario
        return await world.asked(items, asked)

    def _speak(self, protocol: str) -> Endpoint:
        """Gives the endpoint that speaks *protocol*, which begins the story where nobody has asked yet."""
        with self._lock:
            if self._endpoint is None:
                self._world = self._new_world(protocol)
                self._endpoint = Endpoint(
                    create_codec(protocol), self._model, style=get_stream_style(self.wishes.style)
                )
            return self._endpoint

    def _new_world(self, protocol: str) -> RecordingWorld:
        scenario = self.scenario
        variant = replace(Variant(), chunking=self.wishes.chunking, protocol=protocol)
        header = Header(
            scenario=scenario.id,
            agent=self.name,
            variant={name: getattr(variant, name) for name in variant.__slots__},
            tools=describe_tools(scenario.tools),
            wire_rules=protocol,
            observes=list(OBSERVED_EVENTS),
        )
        play = RunContext(
            scenario=scenario,
            variant=variant,
            journal=Journal(self.wishes.journal),
            header=header,
            lenient=self.wishes.lenient,
        )
        play.begin()
        return RecordingWorld(play, "")


def run_without_loop(served: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
    """Gives an answer that has not to wait, without an event loop, which costs less than half."""
    try:
        served.send(None)
    except StopIteration as ended:
        answer: HttpResponse = ended.value
        return answer
    served.close()
    raise RuntimeError("an answer waits, though nothing in the scenario does")


def _needs_event_loop(scenario: Scenario) -> bool:
    hosted = any(tool.kind == "hosted_mcp" for tool in scenario.tools)
    return hosted or any(reply.takes for script in scenario.agents.values() for reply in script.all_replies)


@lru_cache(maxsize=256)
def strip_base_path(path: str) -> str:
    """
    Gives what stands in a path behind the base address of a provider.

    >>> below("/v1/messages"), below("/openai/deployments/d/chat/completions"), below("/v1/files")
    ('messages', 'chat/completions', 'files')
    """
    whole = path.strip("/")
    _, found, rest = f"/{whole}".partition("/v1/")
    return rest if found else next((known for known in PROTOCOL_PATHS if f"/{whole}".endswith(f"/{known}")), whole)


def _parse_body(raw: bytes) -> Mapping[str, Any]:
    body = parse_object(raw.decode(errors="replace"))
    return body if isinstance(body, Mapping) else {}


def _model_entry(agent: str) -> dict[str, Any]:
    return {"id": agent, "object": "model", "created": 0, "owned_by": "scenario"}
