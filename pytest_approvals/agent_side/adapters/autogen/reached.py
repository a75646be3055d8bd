"""The model of an agent: the scripted one, or the framework's own client class, which makes the provider's client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_core.models import ChatCompletionClient, CreateResult

from ...clients import anthropic_options, openai_options
from ...contract import ModelAddress, World
from .model import INFO, Expect, ScriptedClient, names_of, reaching_a_tool


def client(
    world: World, agent: str, address: ModelAddress | None, expect: Expect = lambda _: None
) -> ChatCompletionClient:
    """
    Gives the model of *agent*.

    Arguments:
        address: Where the model is asked; None: the world is.
        expect: Is told the calls of every reply.
    """
    if address is None:
        return ScriptedClient(world, agent, expect)
    if address.protocol == "messages":
        from autogen_ext.models.anthropic import AnthropicChatCompletionClient

        return _telling(AnthropicChatCompletionClient, expect)(
            model=agent, model_info=INFO, **anthropic_options(address)
        )
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    return _telling(OpenAIChatCompletionClient, expect)(model=agent, model_info=INFO, **openai_options(address))


def _telling(kind: Any, expect: Expect) -> Any:
    """Gives a client class that tells what it was answered, and is *kind* in everything else."""

    class Telling(kind):
        async def create(self, messages: Any, *, tools: Sequence[Any] = (), **more: Any) -> CreateResult:
            result: CreateResult = await super().create(messages, tools=tools, **more)
            expect(reaching_a_tool(result, names_of(tools)))
            return result

        async def create_stream(
            self, messages: Any, *, tools: Sequence[Any] = (), **more: Any
        ) -> AsyncGenerator[str | CreateResult, None]:
            async for piece in super().create_stream(messages, tools=tools, **more):
                if isinstance(piece, CreateResult):
                    expect(reaching_a_tool(piece, names_of(tools)))
                yield piece

    return Telling
