"""The clients of providers, as frameworks make them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import ModelAddress
from pytest_approvals.agent_side.kit.clients import build_anthropic_client, build_openai_client, build_openai_options
from pytest_approvals.agent_side.kit.context import use_world
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import FakeWorld, reply

Ask = Callable[[ModelAddress], Awaitable[str]]


async def chat(address: ModelAddress) -> str:
    """Asks over Chat Completions."""
    answer = await build_openai_client(address).chat.completions.create(
        model="main", messages=[{"role": "user", "content": "Hello"}]
    )
    return str(answer.choices[0].message.content)


async def responses(address: ModelAddress) -> str:
    """Asks over Responses."""
    answer = await build_openai_client(address).responses.create(model="main", input="Hello")
    return answer.output_text


async def messages(address: ModelAddress) -> str:
    """Asks over Messages."""
    answer = await build_anthropic_client(address).messages.create(
        model="main", max_tokens=9, messages=[{"role": "user", "content": "Hello"}]
    )
    return "".join(block.text for block in answer.content if block.type == "text")


def test_a_framework_may_close_its_client_after_each_request() -> None:
    """The HTTP client stays open for the next one."""
    openai = pytest.importorskip("openai")
    options = build_openai_options(ModelAddress(protocol="chat", url="http://127.0.0.1:1/v1"))
    asyncio.run(openai.AsyncOpenAI(**options).close())

    assert not openai.AsyncOpenAI(**options).is_closed()


@pytest.mark.parametrize(("reader", "closed"), [("the same task", True), ("another task", False)])
def test_an_answer_is_closed_with_the_client_of_its_task(reader: str, closed: bool) -> None:
    """A framework that stops reading a stream leaves no connection behind; what other tasks read goes on."""
    openai = pytest.importorskip("openai")

    async def begin(client: Any) -> Any:
        return await client.responses.create(model="main", input="Hello", stream=True)

    async def is_closed() -> bool:
        with closing(ModelEndpoint("responses")) as served:
            options = build_openai_options(served.open_address(FakeWorld([reply("Hello.")], []).asked))
            client = openai.AsyncOpenAI(**options)
            begun = begin(client)
            stream = await (begun if reader == "the same task" else asyncio.create_task(begun))
            await client.close()
            was_closed = bool(stream.response.is_closed)
            await stream.close()
            return was_closed

    assert closed == asyncio.run(is_closed())


@pytest.mark.parametrize("ask", [chat, responses, messages])
@pytest.mark.parametrize("turn_of", ["nobody", "the other session"])
def test_the_session_whose_turn_it_is_is_answered(ask: Ask, turn_of: str) -> None:
    """Sessions may share a client; outside of turns it asks where it was pointed at."""

    async def asked() -> str:
        with closing(ModelEndpoint(ask.__name__)) as served:  # type: ignore[attr-defined]
            first, other = FakeWorld([reply("First.")], []), FakeWorld([reply("Other.")], [])
            address, other.place = served.open_address(first.asked), served.open_address(other.asked)
            with nullcontext() if turn_of == "nobody" else use_world(other):
                return await ask(address)

    assert ("First." if turn_of == "nobody" else "Other.") == asyncio.run(asked())
