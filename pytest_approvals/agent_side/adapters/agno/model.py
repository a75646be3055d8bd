"""Models of an agent: the scripted one, and the framework's own on a provider's client.

The scripted model is a model class of the framework that asks the world of the running turn. A reply becomes the
framework's response as in its class for Chat Completions: calls keep the text of their arguments, and the pieces of a
streamed call are joined by their index.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from agno.exceptions import ModelProviderError
from agno.models.base import Model
from agno.models.response import ModelResponse

from ...contract import MAIN, Chunk, Item, ModelAddress, ModelCall, ModelDown, Thought
from ...kit.clients import build_anthropic_client, build_openai_client
from ...kit.context import await_in_turn, current_world
from ...kit.tool_schema import write_arguments
from .messages import Delegations, to_items


class ScriptedModel(Model):
    """Scripted model of one agent."""

    def __init__(self, agent: str = MAIN, delegations: Delegations | None = None) -> None:
        super().__init__(id="scripted", name="Scripted", provider="scripted")
        self.agent = agent
        self.delegations = delegations or Delegations()

    def __deepcopy__(self, memo: Any) -> ScriptedModel:
        return ScriptedModel(self.agent, self.delegations)

    async def ainvoke(self, messages: Any, *_: Any, **options: Any) -> ModelResponse:
        """See `Model.ainvoke`."""
        with _provider_errors():
            reply = await await_in_turn(
                current_world().model(
                    self._to_items(messages, options), agent=self.agent, tools=self._list_offered(options)
                )
            )
        calls, _chunks = self.delegations.to_framework(reply)
        text = reply.say if reply.answer is None else json.dumps(dict(reply.answer))
        response = ModelResponse(role="assistant", content=text, tool_calls=[_to_call(call) for call in calls])
        for thought in reply.thoughts:
            _add_reasoning(response, thought, thought.text, is_last=True)
        return response

    async def ainvoke_stream(self, messages: Any, *_: Any, **options: Any) -> AsyncIterator[ModelResponse]:
        """See `Model.ainvoke_stream`."""
        with _provider_errors():
            items = self._to_items(messages, options)
            offered = self._list_offered(options)
            reply = await await_in_turn(current_world().model(items, agent=self.agent, stream=True, tools=offered))
        _calls, chunks = self.delegations.to_framework(reply)
        for place, chunk in enumerate(chunks):
            if chunk.thought is None:
                yield _to_delta(chunk)
                continue
            is_last = all(later.thought != chunk.thought for later in chunks[place + 1 :])
            delta = ModelResponse(role="assistant")
            _add_reasoning(delta, reply.thoughts[chunk.thought], chunk.text, is_last=is_last)
            yield delta
        with _provider_errors():
            if reply.breaks:
                raise ModelDown(0, reply.how)
        if reply.answer is not None:
            yield ModelResponse(role="assistant", content=json.dumps(dict(reply.answer)))

    def _to_items(self, messages: Any, options: dict[str, Any]) -> list[Item]:
        return to_items(
            messages,
            self.delegations,
            answers=options.get("response_format") is not None,
            compresses=bool(options.get("compress_tool_results")),
        )

    def _list_offered(self, options: dict[str, Any]) -> list[str]:
        return self.delegations.to_neutral_names(_offered_names(options.get("tools") or ()))

    def parse_tool_calls(self, tool_calls_data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Join the pieces of streamed calls, as the framework's Chat Completions class does."""
        calls: list[dict[str, Any]] = []
        for piece in tool_calls_data:
            while len(calls) <= piece["index"]:
                calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
            call = calls[piece["index"]]
            call["id"] = piece["id"] or call["id"]
            call["function"]["name"] = piece["name"] or call["function"]["name"]
            call["function"]["arguments"] += piece["arguments"] or ""
        return calls

    def invoke(self, *_: Any, **__: Any) -> ModelResponse:
        """Refuse: the world is asynchronous."""
        raise NotImplementedError

    def invoke_stream(self, *_: Any, **__: Any) -> Iterator[ModelResponse]:
        """Refuse: the world is asynchronous."""
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


@contextmanager
def _provider_errors() -> Iterator[None]:
    """Raise what the framework's models raise for a status or a lost connection."""
    try:
        yield
    except ModelDown as error:
        raise ModelProviderError(message=str(error), status_code=error.status or 502) from error


def _offered_names(offered: Iterable[Any]) -> Iterator[str]:
    for tool in offered:
        function = tool.get("function", tool) if isinstance(tool, dict) else {"name": getattr(tool, "name", "")}
        yield str(function.get("name", ""))


def _to_call(call: ModelCall) -> dict[str, Any]:
    text = write_arguments(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": text}}


def _add_reasoning(response: ModelResponse, thought: Thought, text: str | None, *, is_last: bool) -> None:
    """Add reasoning, or a piece of it, of which the last one has the signature, as the class for Anthropic does."""
    if thought.text is not None:
        response.reasoning_content = text or ""
    if is_last and thought.text is None:
        response.redacted_reasoning_content = thought.signature
    elif is_last:
        response.provider_data = {"signature": thought.signature}


def _to_delta(chunk: Chunk) -> ModelResponse:
    if chunk.call is None:
        return ModelResponse(role="assistant", content=chunk.text or "")
    piece = {"index": chunk.call, "id": chunk.id, "name": chunk.tool, "arguments": chunk.arguments}
    return ModelResponse(role="assistant", tool_calls=[piece])


def build_provider_model(agent: str, address: ModelAddress, *, reasoning: bool = False) -> Model:
    """Build the framework's model of *agent* that asks the provider at *address*; *reasoning* if it reasons."""
    if address.protocol == "messages":
        from agno.models.anthropic import Claude

        thinking: Any = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
        return Claude(id=agent, async_client=build_anthropic_client(address), **(thinking if reasoning else {}))
    if address.protocol == "responses":
        from agno.models.openai import OpenAIResponses

        return OpenAIResponses(id=agent, async_client=build_openai_client(address))
    from agno.models.openai import OpenAIChat

    return OpenAIChat(id=agent, async_client=build_openai_client(address))
