"""
The scripted model: a model class of the framework that asks the world of the running turn.

As the framework's class for Gemini does it, a stream gives text in partial responses and then the whole reply at once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

from ...contract import MAIN, ModelCall, ModelDown, Reply
from ...current import world
from .messages import ANSWERS, items


class ScriptedModel(BaseLlm):
    """The model of one agent."""

    model: str = "scripted"
    agent: str = MAIN

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        """See `BaseLlm.generate_content_async`."""
        async for response in answered(llm_request, self.agent, stream):
            yield response


async def answered(request: Any, agent: str, stream: bool) -> AsyncIterator[LlmResponse]:
    """Asks for the next reply to *request* and plays it."""
    offered = list(request.tools_dict)
    reply = await world().model(items(request.contents), agent=agent, stream=stream, tools=offered)
    if stream:
        for text in _texts(reply):
            yield LlmResponse(partial=True, content=_content(types.Part(text=text)))
        if reply.breaks:
            raise ModelDown(0, reply.how)
    used = types.GenerateContentResponseUsageMetadata()
    yield LlmResponse(
        content=_content(*_parts(reply, offered)), finish_reason=types.FinishReason.STOP, usage_metadata=used
    )


def _texts(reply: Reply) -> Iterator[str]:
    return (chunk.text for chunk in reply.chunks if chunk.call is None and chunk.text)


def _content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


def _parts(reply: Reply, offered: Sequence[str]) -> Iterator[types.Part]:
    if reply.say:
        yield types.Part(text=reply.say)
    for call in reply.calls:
        yield types.Part(function_call=_call(call))
    if reply.answer is not None:
        yield _answer(dict(reply.answer), offered)


def _answer(answer: dict[str, Any], offered: Sequence[str]) -> types.Part:
    """Gives a structured answer: where the framework offers a tool for it, as its call, or else as JSON."""
    if ANSWERS in offered:
        return types.Part(function_call=types.FunctionCall(name=ANSWERS, args=answer))
    return types.Part(text=json.dumps(answer))


def _call(call: ModelCall) -> types.FunctionCall:
    # What is no object is refused here, as it is by the classes that read a provider's answer.
    return types.FunctionCall(id=call.id, name=call.tool, args=call.arguments)  # type: ignore[arg-type, unused-ignore]
