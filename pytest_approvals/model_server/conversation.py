"""Served conversation: a scenario's model script, played over HTTP.

The world that plays and records is that of every run; only the agent is outside, so that the journal holds the side of
the model alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.errors import UnknownName
from pytest_approvals.journal.events import Event, Header
from pytest_approvals.journal.files import Journal
from pytest_approvals.protocols import CODECS, PROTOCOL_PATHS, create_codec, find_protocol
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec, RequestTarget
from pytest_approvals.protocols.endpoint import Endpoint, HttpResponse, unknown_path_error
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import get_stream_style
from pytest_approvals.runner.journal_values import describe_tools
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.stream_chunks import CHUNKINGS
from pytest_approvals.runner.world import RecordingWorld
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.protocols.responses import ResponsesCodec

OBSERVED_EVENTS = ("model.request", "model.answer", "model.refusal", "model.failure", "model.exhausted")
"""Kinds of events that its journals hold; checks that need others do not apply."""

_STORED_PATHS = {"responses": "responses", "conversations": "responses", "messages": "messages"}
"""The protocols by the first part of the paths of what they store or count."""

_COUNTS = {":countTokens": "gemini", "/count-tokens": "converse"}
"""The protocols by the end of the paths that count the tokens of an input for a model."""

_MAX_ROUTES = 64

ANY_PROTOCOL = "any"
"""Name that stands for the protocol of the first request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """How a script is played.

    Attributes:
        protocol: The provider's protocol, whose rules apply; only its path is served. `any` is that of the first
            request.
        chunking: How streamed replies are cut.
        style: How streams are written.
        lenient: Answer what the provider would refuse.
        again: Start over with every request that has no reply in it yet, and forget what was before: for load tests.
        journal: The file to record in; in memory only if there is none.

    Raises:
        UnknownName: The protocol, the chunking or the style does not exist.
    """

    protocol: str = "chat"
    chunking: str = "whole"
    style: str = "plain"
    lenient: bool = False
    again: bool = False
    journal: Path | None = None

    def __post_init__(self) -> None:
        names = (("protocol", self.protocol, (*CODECS, ANY_PROTOCOL)), ("chunking", self.chunking, CHUNKINGS))
        for option, name, known in names:
            if name not in known:
                raise UnknownName(option, name, known)
        get_stream_style(self.style)


class ServedConversation:
    """One scripted model at one address.

    Args:
        name: Its address, and the agent's name in the journal.
        script: Returns the scenario; called before each reply, because a test may still be writing it.
        options: How it is played.

    Attributes:
        options: How it is played; they may be changed until the first request.
    """

    def __init__(self, name: str, script: Callable[[], Scenario], options: ConversationOptions) -> None:
        self.name = name
        self.options = options
        self._script = script
        self._lock = RLock()
        self._endpoint: Endpoint | None = None
        self._world: RecordingWorld | None = None
        self._needs_loop: tuple[Scenario | None, bool] = None, False
        # Where requests to the model go, by their path: nearly all of a client have the same one.
        self._routes: dict[str, tuple[Endpoint, RequestTarget]] = {}

    @property
    def scenario(self) -> Scenario:
        """What it plays."""
        return self._script()

    @property
    def protocol(self) -> str:
        """Its protocol; `any` before the first request, if that is to decide."""
        return self.options.protocol if self._endpoint is None else self._endpoint.codec.name

    @property
    def responses(self) -> ResponsesCodec | None:
        """Its codec of the Responses API, which stores things between requests; None for other protocols."""
        if self._endpoint is None or self._endpoint.codec.name != "responses":
            return None
        return cast("ResponsesCodec", self._endpoint.codec)

    @property
    def context(self) -> RunContext | None:
        """The run that is recorded; None before the first request."""
        return self._world.context if self._world is not None else None

    @property
    def events(self) -> list[Event]:
        """All that was recorded."""
        return self.context.journal.events if self.context is not None else []

    @property
    def status(self) -> dict[str, Any]:
        """Its scenario and the numbers of requests, answers and refusals, as clients get them."""
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
        """Close its journal."""
        if self.context is not None:
            self.context.journal.close()

    # --- requests ---

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answer a request to a path of a provider."""
        return await self._in_order(self._serve(method, path, raw))

    def serve_now(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answer a request to a path of a provider, in a conversation that need not wait."""
        # A response that need not wait never suspends, so a thread's lock may be held across it.
        with self._lock:
            route = self._routes.get(path) if method == "POST" else None
            return run_without_loop(
                self._serve(method, path, raw) if route is None else route[0].post(raw, route[1]),
            )

    async def reject(self, error: ProviderError, codec: ProtocolCodec) -> HttpResponse:
        """Refuse a request in the protocol of *codec*; record it if the own protocol is known."""
        return await self._in_order(self._reject(error, codec))

    @property
    def may_wait(self) -> bool:
        """Whether a response may have to wait: for a hosted tool, or because the model is slow."""
        # Kept until the script changes, because every request asks.
        scenario = self._script()
        if scenario is not self._needs_loop[0]:
            self._needs_loop = scenario, _needs_event_loop(scenario)
        return self._needs_loop[1]

    async def _in_order(self, response: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        """Await a response, one after the other; those that may wait are all awaited in one event loop."""
        if self.may_wait:
            return await response
        # A response that need not wait never suspends, so a thread's lock may be held across the await.
        with self._lock:
            return await response

    async def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        route = self._routes.get(path) if method == "POST" else None
        if route is not None:
            return await route[0].post(raw, route[1])
        whole = path
        path, _, query = path.partition("?")
        endpoint_path = strip_base_path(path)
        if method == "GET" and endpoint_path == "models":
            return HttpResponse.from_json(
                {"object": "list", "data": [_model_entry(agent) for agent in self.scenario.agents]}
            )
        protocol = find_protocol(endpoint_path) or find_stored_protocol(endpoint_path)
        is_spoken = protocol is not None and self.protocol in (protocol, ANY_PROTOCOL)
        target = None
        if protocol is not None and is_spoken:
            endpoint = self._get_endpoint(protocol)
            target = endpoint.codec.find_target(f"/{endpoint_path}", query) if method == "POST" else None
            stored = endpoint.serve_stored(method, f"/{endpoint_path}", query, raw) if target is None else None
            if stored is not None:
                return stored
        if protocol is None or target is None:
            codec = create_codec(protocol or ("chat" if self.protocol == ANY_PROTOCOL else self.protocol))
            text = f"Invalid URL ({method} /v1/{endpoint_path}); this conversation speaks {self.protocol}"
            return await self._reject(unknown_path_error(codec, text), codec)
        endpoint = self._get_endpoint(protocol)
        if len(self._routes) < _MAX_ROUTES:
            self._routes[whole] = endpoint, target
        return await endpoint.post(raw, target)

    async def _reject(self, error: ProviderError, codec: ProtocolCodec) -> HttpResponse:
        # Until the first request decides on the protocol, there is no journal to record in.
        if self.protocol != ANY_PROTOCOL:
            await self._get_endpoint(self.protocol).reject_unreadable(error)
        return HttpResponse.from_error(codec, error)

    def _answer(self, items: Sequence[Item], request: ParsedRequest) -> Coroutine[Any, Any, Reply]:
        world = self._world
        assert world is not None
        if self.options.again and _is_first(items):
            world.reset()
            if self._endpoint is not None:
                self._endpoint.codec.clear()
        # A test may have written further replies since the last request.
        world.context.scenario = self._script()
        return world.answer_request(items, request)

    def _get_endpoint(self, protocol: str) -> Endpoint:
        """Return the endpoint, which the first request creates in its *protocol*."""
        with self._lock:
            if self._endpoint is None:
                self._world = self._create_world(protocol)
                self._endpoint = Endpoint(
                    create_codec(protocol), self._answer, style=get_stream_style(self.options.style)
                )
            return self._endpoint

    def _create_world(self, protocol: str) -> RecordingWorld:
        scenario = self.scenario
        variant = replace(Variant(), chunking=self.options.chunking, protocol=protocol)
        header = Header(
            scenario=scenario.id,
            agent=self.name,
            variant={name: getattr(variant, name) for name in variant.__slots__},
            tools=describe_tools(scenario.tools),
            wire_rules=protocol,
            observes=list(OBSERVED_EVENTS),
        )
        context = RunContext(
            scenario=scenario,
            variant=variant,
            journal=Journal(self.options.journal),
            header=header,
            lenient=self.options.lenient,
        )
        context.record_header()
        return RecordingWorld(context, "")


def _is_first(items: Sequence[Item]) -> bool:
    """Return whether no reply is among the items of a request."""
    for item in items:  # noqa: SIM110 -- takes half as long as `all`, for every request
        if item.kind not in ("user", "other"):
            return False
    return True


def run_without_loop(response: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
    """Return a response that need not wait; without an event loop it costs less than half."""
    try:
        response.send(None)
    except StopIteration as ended:
        result: HttpResponse = ended.value
        return result
    response.close()
    raise RuntimeError("a response waits, though nothing in the scenario does")


def _needs_event_loop(scenario: Scenario) -> bool:
    hosted = any(tool.kind == "hosted_mcp" for tool in scenario.tools)
    return hosted or any(reply.takes for script in scenario.agents.values() for reply in script.all_replies)


def find_stored_protocol(path: str) -> str | None:
    """Return the protocol that stores or counts what a path names; None if there is none.

    >>> [find_stored_protocol(path) for path in ("responses/r1", "v1beta/models/m:countTokens", "files")]
    ['responses', 'gemini', None]
    """
    counts = next((name for end, name in _COUNTS.items() if path.endswith(end)), None)
    return counts or _STORED_PATHS.get(path.partition("/")[0])


@lru_cache(maxsize=256)
def strip_base_path(path: str) -> str:
    """Return the part of a path behind the base address of a provider.

    >>> [strip_base_path(path) for path in ("/v1/messages", "/openai/deployments/d/chat/completions", "/v1/files")]
    ['messages', 'chat/completions', 'files']
    """
    whole = path.strip("/")
    _, version, rest = f"/{whole}".partition("/v1/")
    return rest if version else next((known for known in PROTOCOL_PATHS if f"/{whole}".endswith(f"/{known}")), whole)


def _model_entry(agent: str) -> dict[str, Any]:
    return {"id": agent, "object": "model", "created": 0, "owned_by": "scenario"}
