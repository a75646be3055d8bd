"""Clients of providers and of MCP servers, pointed at the scripted ones of a run.

A script says what a model answers to each request, so clients do not retry. The model is on the loopback interface, so
clients look for no proxy and no certificates, which would take most of the time that making a client takes.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Task, current_task, get_running_loop
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from ..contract.agent import World
from ..contract.exceptions import ModelDown
from ..contract.types import ElicitationAnswer, ModelAddress, ServerAddress
from .context import await_in_turn, await_on, current_address, current_world

if TYPE_CHECKING:
    from ssl import SSLContext

    from anthropic import AsyncAnthropic
    from boto3 import Session
    from google.genai import Client
    from openai import AsyncOpenAI

API_KEY = "none"
"""The API key of clients, which must not be empty."""

UNREADABLE_FAILURES = ("truncated", "garbled")
"""The names in `MODEL_FAILURES` of a model that answers, though not readably."""

CLIENT_LIBRARIES = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
"""The library with the client, by protocol."""


def list_installed_protocols(**lacks: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return the protocols whose clients are installed, for frameworks with model classes for all of them.

    Args:
        **lacks: By protocol, the capabilities that its model class lacks, with the reasons.
    """
    return {name: lacks.get(name, {}) for name, library in CLIENT_LIBRARIES.items() if find_spec(library) is not None}


def build_openai_client(address: ModelAddress) -> AsyncOpenAI:
    """Return OpenAI's client, for `chat` and `responses`."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(**build_openai_options(address))


def build_openai_options(address: ModelAddress) -> dict[str, Any]:
    """Return the arguments of OpenAI's client, for frameworks that make it themselves."""
    import openai

    return _build_options(openai, address)


def build_anthropic_client(address: ModelAddress) -> AsyncAnthropic:
    """Return Anthropic's client, for `messages`."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(**build_anthropic_options(address))


def build_anthropic_options(address: ModelAddress) -> dict[str, Any]:
    """Return the arguments of Anthropic's client, for frameworks that make it themselves."""
    import anthropic

    return _build_options(anthropic, address)


def build_google_client(address: ModelAddress) -> Client:
    """Return Google's client, for `gemini`: one for each address and running event loop.

    The connections of a client belong to the loop in which they are opened.
    """
    try:
        clients = _GOOGLE_CLIENTS.setdefault(get_running_loop(), {})
    except RuntimeError:
        clients = {}
    client = clients.get(address.url)
    if client is None:
        client = clients[address.url] = _make_google_client(address)
    return client


_GOOGLE_CLIENTS: WeakKeyDictionary[AbstractEventLoop, dict[str, Client]] = WeakKeyDictionary()


def _make_google_client(address: ModelAddress) -> Client:
    from google.genai import Client
    from google.genai.types import HttpOptions
    from httpx import AsyncClient
    from httpx import Client as HttpClient

    # With an HTTP client of its own it looks for no proxy and no certificates, and does not use `aiohttp`.
    http = HttpClient(trust_env=False, verify=_get_ssl_context())
    asynchronous = AsyncClient(trust_env=False, verify=_get_ssl_context())
    options = HttpOptions(base_url=address.url, httpx_client=http, httpx_async_client=asynchronous)
    return Client(api_key=API_KEY, vertexai=False, http_options=options)


def build_bedrock_options(address: ModelAddress) -> dict[str, Any]:
    """Return the arguments of boto3's client, for `converse`, besides the name of its service."""
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1}, proxies={}, read_timeout=MODEL_TIMEOUT)
    return {"config": config, "endpoint_url": address.url, "region_name": "us-east-1"}


@cache
def get_bedrock_session() -> Session:
    """Return the session of boto3 for `build_bedrock_options`: one, since each reads the models of its services."""
    from boto3 import Session

    # With keys it looks for none in files and on the network.
    return Session(aws_access_key_id=API_KEY, aws_secret_access_key=API_KEY, region_name="us-east-1")


def readdress_bedrock_client(client: Any, address: ModelAddress) -> None:
    """Let requests of a client of boto3 go to the address of the session whose turn sends them."""

    def readdress(request: Any, **_: Any) -> None:
        here = current_address()
        if here is not None and here != address:
            request.url = here.url + request.url.removeprefix(address.url)

    client.meta.events.register("before-send", readdress)


MODEL_TIMEOUT = 600
"""Seconds that an answer of the model may take: the harness has a limit of its own."""


def _build_options(library: Any, address: ModelAddress) -> dict[str, Any]:
    kind = _get_lasting_client(library)
    http = kind(trust_env=False, verify=_get_ssl_context(), event_hooks=_build_readdressing_hooks(address))
    return {"api_key": API_KEY, "base_url": address.url, "max_retries": 0, "http_client": http}


# Some frameworks make and close a client for every request: the HTTP client below it stays open for the next one.
@cache
def _get_lasting_client(library: Any) -> Any:
    class LastingHttpClient(library.DefaultAsyncHttpxClient):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._tasks: WeakKeyDictionary[Any, ReferenceType[Task[Any]] | None] = WeakKeyDictionary()

        async def send(self, request: Any, **options: Any) -> Any:
            """Send a request, and keep in mind which task reads the answer."""
            response = await super().send(request, **options)
            task = current_task()
            self._tasks[response] = None if task is None else ref(task)
            return response

        async def aclose(self) -> None:
            """Close the answers that the calling task did not read to their end, and nothing of other tasks.

            A connection is closed with its answer.
            """
            here = current_task()
            for response, task in list(self._tasks.items()):
                if task is not None and task() is here:
                    await response.aclose()

    return LastingHttpClient


# Each client would make one of its own, though it needs none on the loopback interface.
@cache
def _get_ssl_context() -> SSLContext:
    from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLContext

    context = SSLContext(PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = CERT_NONE
    return context


def _build_readdressing_hooks(address: ModelAddress) -> dict[str, list[Any]]:
    # Sessions may share a client: a request of a turn goes to the address of its session.
    async def readdress(request: Any) -> None:
        here = current_address()
        if here is not None and here != address:
            request.url = type(request.url)(here.url + str(request.url).removeprefix(address.url))

    return {"request": [readdress]}


def to_openai_error(down: ModelDown) -> Exception:
    """Return the exception that OpenAI's client raises if the provider fails or refuses as *down* says."""
    from openai import (
        APIConnectionError,
        APIStatusError,
        BadRequestError,
        DefaultAsyncHttpxClient,
        InternalServerError,
        RateLimitError,
    )

    if not down.status and down.how in UNREADABLE_FAILURES:
        return JSONDecodeError(str(down), "", 0)
    client = DefaultAsyncHttpxClient(trust_env=False, verify=_get_ssl_context())
    request = client.build_request("POST", "http://model.invalid")
    if not down.status:
        return APIConnectionError(request=request)
    kinds = {400: BadRequestError, 429: RateLimitError}
    kind = kinds.get(down.status, InternalServerError if down.status >= 500 else APIStatusError)
    response = import_module(type(request).__module__.partition(".")[0]).Response(down.status, request=request)
    return kind(str(down), response=response, body=None)


MCP_TIMEOUT = 600
"""Seconds that a tool of an MCP server, or connecting to it, may take: the harness has a limit of its own."""


def split_command(address: ServerAddress) -> tuple[str, list[str]]:
    """Return the program of an MCP server that speaks over stdio, and its arguments."""
    program, *arguments = address.command
    return program, arguments


def read_annotations(said: Any) -> Mapping[str, Any] | None:
    """Return the annotations of a tool, as a client of MCP servers has them, in the words of MCP."""
    if said is None or isinstance(said, Mapping):
        return said
    # The names of the SDK's attributes differ between its releases.
    found: Mapping[str, Any] = said.model_dump(by_alias=True, exclude_none=True)
    return found


async def answer_elicitation(world: World, params: Any) -> ElicitationAnswer:
    """Return the caller's answer to what a server asks.

    Args:
        world: The world of the turn, or of the agent if its connections outlive turns.
        params: The parameters of `elicitation/create`, as either major release of the SDK has them.
    """
    form = getattr(params, "requested_schema", None) or getattr(params, "requestedSchema", None)
    return await await_in_turn(world.elicit(params.message, form=form, url=getattr(params, "url", None)))


def build_elicitation_callback(world: World | None = None) -> Callable[..., Awaitable[Any]]:
    """Return an `elicitation_callback` as `mcp.ClientSession` takes it.

    Args:
        world: The world to ask, on the event loop that runs now, for a client with a loop of its own; None for that of
            the turn.
    """
    loop = None if world is None else get_running_loop()

    async def answer(context: Any, params: Any, *_: Any) -> Any:
        from mcp.types import ElicitResult

        work = answer_elicitation(world or current_world(), params)
        asked = await (work if loop is None else await_on(loop, work))
        content = None if asked.content is None else dict(asked.content)
        return ElicitResult.model_validate({"action": asked.action, "content": content})

    return answer
