"""
The clients of providers, pointed at a scripted model.

A script says what a model answers to each request, so nothing is asked twice; and the model is on the loopback, so no
proxy of the machine and no certificates are looked for, which takes most of the time that a client is made in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .neutral import ModelAddress

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

KEY = "none"
"""What clients that ask for a key are given."""


def openai_client(address: ModelAddress) -> AsyncOpenAI:
    """Gives OpenAI's client, for `chat` and `responses`."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(trust_env=False, verify=False)
    return AsyncOpenAI(api_key=KEY, base_url=address.url, max_retries=0, http_client=http)


def anthropic_client(address: ModelAddress) -> AsyncAnthropic:
    """Gives Anthropic's client, for `messages`."""
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(trust_env=False, verify=False)
    return AsyncAnthropic(api_key=KEY, base_url=address.url, max_retries=0, http_client=http)
