"""Models of an agent: the scripted one, and the framework's own on a provider's client.

The scripted model is a model class of the framework that asks the world of the running turn. As in the framework's
class for Gemini, a stream gives text in partial responses and then the whole reply at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from pydantic import Field

from ...contract import MAIN, ModelAddress, ModelCall, ModelDown, Reply
from ...kit.clients import build_anthropic_client, build_google_client, build_openai_client
from ...kit.context import current_address, current_world
from .messages import ANSWER_TOOL, ResultReader, to_items


class ScriptedModel(BaseLlm):
    """Scripted model of one agent.

    Attributes:
        results: Reads the results that it is told.
    """

    model: str = "scripted"
    agent: str = MAIN
    results: ResultReader = Field(default_factory=ResultReader, exclude=True, repr=False)

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        """See `BaseLlm.generate_content_async`."""
        async for response in play_reply(llm_request, self.agent, stream, self.results):
            yield response


async def play_reply(request: Any, agent: str, stream: bool, results: ResultReader) -> AsyncIterator[LlmResponse]:
    """Ask for the next reply to *request* and play it."""
    offered = list(request.tools_dict)
    reply = await current_world().model(to_items(request.contents, results), agent=agent, stream=stream, tools=offered)
    if stream:
        for part in _streamed_parts(reply):
            yield LlmResponse(partial=True, content=_model_content(part))
        if reply.breaks:
            raise ModelDown(0, reply.how)
    usage = types.GenerateContentResponseUsageMetadata()
    yield LlmResponse(
        content=_model_content(*_reply_parts(reply, offered)),
        finish_reason=types.FinishReason.STOP,
        usage_metadata=usage,
    )


def _streamed_parts(reply: Reply) -> Iterator[types.Part]:
    for chunk in reply.chunks:
        if chunk.call is None and chunk.text:
            yield types.Part(text=chunk.text, thought=True if chunk.thought is not None else None)


def _model_content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


def _reply_parts(reply: Reply, offered: Sequence[str]) -> Iterator[types.Part]:
    for thought in reply.thoughts:
        if thought.text:
            yield types.Part(text=thought.text, thought=True)
    # As Gemini does, reasoning is signed on the first call, or else on the text.
    signature = reply.thoughts[-1].signature.encode() if reply.thoughts else None
    if reply.say:
        yield types.Part(text=reply.say, thought_signature=None if reply.calls else signature)
    for position, call in enumerate(reply.calls):
        yield types.Part(function_call=_to_function_call(call), thought_signature=None if position else signature)
    if reply.answer is not None:
        yield _answer_part(dict(reply.answer), offered)


def _answer_part(answer: dict[str, Any], offered: Sequence[str]) -> types.Part:
    """Return a structured answer: a call of the framework's tool for it, else JSON."""
    if ANSWER_TOOL in offered:
        return types.Part(function_call=types.FunctionCall(name=ANSWER_TOOL, args=answer))
    return types.Part(text=json.dumps(answer))


def _to_function_call(call: ModelCall) -> types.FunctionCall:
    # Arguments that are not an object are refused here, as by the classes that read a provider's reply.
    return types.FunctionCall(id=call.id, name=call.tool, args=call.arguments)  # type: ignore[arg-type, unused-ignore]


def build_provider_model(agent: str, address: ModelAddress) -> BaseLlm:
    """Build the framework's model of *agent* that asks the provider at *address*.

    Over `chat` it is `LiteLlm` if its package is installed, which takes seconds to import.
    """
    if address.protocol == "gemini":
        return _build_gemini_model(agent, address)
    if address.protocol == "messages":
        from google.adk.models.anthropic_llm import AnthropicLlm

        return AnthropicLlm(model=agent, client=build_anthropic_client(address))
    if address.protocol == "chat" and find_spec("litellm") is not None:
        return _build_litellm_model(agent, address)
    from google.adk.integrations.openai import OpenAILlm, OpenAIResponsesLlm

    model_class = OpenAILlm if address.protocol == "chat" else OpenAIResponsesLlm
    return model_class(model=agent, client=build_openai_client(address))


def _build_gemini_model(agent: str, address: ModelAddress) -> BaseLlm:
    from google.adk.models.google_llm import Gemini

    class ServedGemini(Gemini):
        """The framework's own model, whose clients are pointed at the sessions that ask."""

        @property
        def api_client(self) -> Any:
            """See `Gemini.api_client`."""
            # Sessions may share a model: a request of a turn goes to the address of its session.
            return build_google_client(current_address() or address)

    return ServedGemini(model=agent)


def _build_litellm_model(agent: str, address: ModelAddress) -> BaseLlm:
    # On import the package would look up the providers' prices on the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from google.adk.models.lite_llm import LiteLlm

    return LiteLlm(model=f"openai/{agent}", client=build_openai_client(address))
