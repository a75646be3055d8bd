"""
The clients of providers, pointed at a scripted model.

A script says what a model answers to each request, so nothing is asked twice; and the model is on the loopback, so no
proxy of the machine and no certificates are looked for, which takes most of the time that a client is made in.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from ..contract.exceptions import ModelDown
from ..contract.types import ModelAddress
from . import context

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

API_KEY = "none"
"""What clients that ask for a key are given."""


UNREADABLE_FAILURES = ("truncated", "garbled")
"""The ways to fail of a model that answers, in names of `failures.BREAKS`."""

CLIENT_LIBRARIES = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
"""The library with the client, by protocol."""


def list_installed_protocols(**lacks: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """
    Gives the protocols whose clients are installed, for frameworks with model classes for all of them.

    Arguments:
        lacks: What a model class cannot do besides, with the reasons, by protocol.
    """
    return {name: lacks.get(name, {}) for name, library in CLIENT_LIBRARIES.items() if find_spec(library) is not None}


def build_openai_client(address: ModelAddress) -> AsyncOpenAI:
    """Gives OpenAI's client, for `chat` and `responses`."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(**build_openai_options(address))


def build_openai_options(address: ModelAddress) -> dict[str, Any]:
    """Gives what OpenAI's client is made with, for frameworks that make it themselves."""
    import openai

    return _build_options(openai, address)


def build_anthropic_client(address: ModelAddress) -> AsyncAnthropic:
    """Gives Anthropic's client, for `messages`."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(**build_anthropic_options(address))


def build_anthropic_options(address: ModelAddress) -> dict[str, Any]:
    """Gives what Anthropic's client is made with, for frameworks that make it themselves."""
    import anthropic

    return _build_options(anthropic, address)


def _build_options(library: Any, address: ModelAddress) -> dict[str, Any]:
    """Some frameworks make and close a client for every request: what is below the client stays open for the next."""

    class Lasting(library.DefaultAsyncHttpxClient):  # type: ignore[misc]
        async def aclose(self) -> None:
            """Closes nothing: no connection outlasts an answer."""

    http = Lasting(trust_env=False, verify=False, event_hooks=_build_readdressing_hooks(address))
    return {"api_key": API_KEY, "base_url": address.url, "max_retries": 0, "http_client": http}


def _build_readdressing_hooks(address: ModelAddress) -> dict[str, list[Any]]:
    """Sessions may share a client: what is asked in a turn goes to the address of its session."""

    async def readdressed(request: Any) -> None:
        here = context.current_address()
        if here is not None and here != address:
            request.url = type(request.url)(here.url + str(request.url).removeprefix(address.url))

    return {"request": [readdressed]}


def to_openai_error(down: ModelDown) -> Exception:
    """Gives what OpenAI's client raises where the provider fails or refuses as *down* says."""
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
    request = DefaultAsyncHttpxClient(trust_env=False, verify=False).build_request("POST", "http://model.invalid")
    if not down.status:
        return APIConnectionError(request=request)
    kinds = {400: BadRequestError, 429: RateLimitError}
    made = kinds.get(down.status, InternalServerError if down.status >= 500 else APIStatusError)
    response = import_module(type(request).__module__.partition(".")[0]).Response(down.status, request=request)
    return made(str(down), response=response, body=None)
