"""Models of an agent: the scripted one, and the framework's own, which create clients.

The scripted model is a model class of the framework that asks the world of the running turn. It streams as the
framework's class for Chat Completions does: text as it comes, then call by call. The framework only asks its models for
streams; the reply of a provider that does not stream is shown in the same events, each block in one piece. So a context
variable tells the model whether the turn is streamed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from strands.models import Model

from ...contract import MAIN, Chunk, ModelAddress, ModelDown, Reply
from ...kit.clients import (
    build_anthropic_options,
    build_bedrock_options,
    build_openai_options,
    get_bedrock_session,
    readdress_bedrock_client,
)
from ...kit.context import await_in_turn, current_world
from ...kit.tool_schema import write_arguments
from .messages import ANSWER, to_items

_IS_STREAMED: ContextVar[bool] = ContextVar("pytest_approvals_strands_stream")


def is_streamed() -> bool:
    """Return whether the running turn is streamed."""
    return _IS_STREAMED.get()


@contextmanager
def stream_turn(stream: bool) -> Iterator[None]:
    """Mark what runs inside as a turn that is streamed, or as one that is not."""
    token = _IS_STREAMED.set(stream)
    try:
        yield
    finally:
        _IS_STREAMED.reset(token)


Event = dict[str, Any]


class ScriptedModel(Model):
    """Scripted model of one agent."""

    def __init__(self, agent: str = MAIN) -> None:
        self.agent = agent

    def update_config(self, **_: Any) -> None:
        """Configure nothing."""

    def get_config(self) -> dict[str, Any]:
        """See `Model.get_config`."""
        return {"model_id": "scripted"}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Refuse: only a deprecated method of agents calls it."""
        raise NotImplementedError("the model answers with the output tool")
        yield  # makes this an asynchronous generator

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **_: Any
    ) -> AsyncIterator[Event]:
        """See `Model.stream`."""
        offered = [spec["name"] for spec in tool_specs or () if spec["name"] != ANSWER]
        reply = await await_in_turn(
            current_world().model(to_items(messages), agent=self.agent, stream=is_streamed(), tools=offered)
        )
        chunks = reply.chunks if is_streamed() else _whole_chunks(reply)
        yield {"messageStart": {"role": "assistant"}}
        for event in _reasoning_events(reply, chunks, None):
            yield event
        for event in _text_events(chunk.text for chunk in chunks if chunk.call is None and chunk.thought is None):
            yield event
        # Calls follow the whole text, as in the framework's class, so a broken stream never gets to them.
        if reply.breaks:
            raise ModelDown(0, reply.how)
        for event in _call_events(reply, chunks):
            yield event
        for event in _answer_events(reply.answer, len(messages)):
            yield event
        yield {"messageStop": {"stopReason": "tool_use" if reply.calls or reply.answer is not None else "end_turn"}}
        yield _METADATA


_METADATA: Event = {
    "metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 0}}
}


def _whole_chunks(reply: Reply) -> list[Chunk]:
    thoughts = [Chunk(thought=number, text=thought.text or "") for number, thought in enumerate(reply.thoughts)]
    text_chunks = [] if reply.say is None else [Chunk(text=reply.say)]
    return [*thoughts, *text_chunks] + [
        Chunk(call=number, id=call.id, tool=call.tool, arguments=write_arguments(call.arguments))
        for number, call in enumerate(reply.calls)
    ]


def _reasoning_events(reply: Reply, chunks: Iterable[Chunk], before: int | None) -> Iterator[Event]:
    """Yield the blocks of the reasoning before a call; None for that before the text and all calls."""
    pieces: dict[int, list[str]] = {}
    for chunk in chunks:
        if chunk.thought is not None and reply.thoughts[chunk.thought].before == before:
            pieces.setdefault(chunk.thought, []).append(chunk.text or "")
    for number, texts in pieces.items():
        thought = reply.thoughts[number]
        deltas: list[dict[str, Any]] = [{"text": text} for text in texts if text]
        # As `AnthropicModel` hands over what is encrypted: the bytes of the text.
        encrypted = {"redactedContent": thought.signature.encode()}
        last: dict[str, Any] = encrypted if thought.text is None else {"signature": thought.signature}
        yield {"contentBlockStart": {"start": {}}}
        for delta in [*deltas, last]:
            yield {"contentBlockDelta": {"delta": {"reasoningContent": delta}}}
        yield {"contentBlockStop": {}}


def _text_events(candidates: Iterable[str | None]) -> Iterator[Event]:
    texts = [piece for piece in candidates if piece]
    if texts:
        yield {"contentBlockStart": {"start": {}}}
        for piece in texts:
            yield {"contentBlockDelta": {"delta": {"text": piece}}}
        yield {"contentBlockStop": {}}


def _call_events(reply: Reply, chunks: Iterable[Chunk]) -> Iterator[Event]:
    calls: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        if chunk.call is not None:
            calls.setdefault(chunk.call, []).append(chunk)
    for number in sorted(calls):
        yield from _reasoning_events(reply, chunks, number)
        pieces = calls[number]
        name = "".join(piece.tool or "" for piece in pieces)
        call_id = next((piece.id for piece in pieces if piece.id is not None), None)
        yield from _tool_use_events(call_id, name, [piece.arguments for piece in pieces if piece.arguments])


def _answer_events(answer: Mapping[str, Any] | None, number: int) -> Iterator[Event]:
    if answer is not None:
        yield from _tool_use_events(f"answer-{number}", ANSWER, [json.dumps(dict(answer))])


def _tool_use_events(id: str | None, name: str, pieces: Iterable[str]) -> Iterator[Event]:
    yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": id}}}}
    for piece in pieces:
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": piece}}}}
    yield {"contentBlockStop": {}}


MAX_TOKENS = 4096
"""Length of a reply; `AnthropicModel` requires it."""


def build_provider_model(agent: str, address: ModelAddress, *, reasoning: bool = False) -> Model:
    """Build the framework's model of *agent* that asks the provider at *address*; *reasoning* if it reasons."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if reasoning else {}
    if address.protocol == "messages":
        from strands.models.anthropic import AnthropicModel

        options = {"client_args": build_anthropic_options(address), "max_tokens": MAX_TOKENS}
        return AnthropicModel(model_id=agent, **options, **({"params": thinking} if thinking else {}))
    if address.protocol == "converse":
        from strands.models.bedrock import BedrockModel

        client = build_bedrock_options(address)
        bedrock = BedrockModel(
            boto_session=get_bedrock_session(),
            boto_client_config=client["config"],
            endpoint_url=client["endpoint_url"],
            model_id=agent,
            **({"additional_request_fields": thinking} if thinking else {}),
        )
        readdress_bedrock_client(bedrock.client, address)
        return bedrock
    if address.protocol == "chat":
        from strands.models.openai import OpenAIModel

        return OpenAIModel(client_args=build_openai_options(address), model_id=agent)
    from strands.models.openai_responses import OpenAIResponsesModel

    return OpenAIResponsesModel(client_args=build_openai_options(address), model_id=agent)
