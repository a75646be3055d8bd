"""One story, as each library stores it: live where the library is installed here, else what `make_*` wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import ModelCall, Reply
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.endpoint import Endpoint
from pytest_approvals.protocols.streaming import get_stream_style
from pytest_approvals.protocols.transport import Transport

STORED = Path(__file__).parent / "stored"

PROMPT = "Pay 5 and 6"
CALLS = (("c1", "pay", {"amount": 5}), ("c2", "pay", {"amount": 6}), ("c3", "read", {"path": "x"}))


class Scripted:
    """A scripted model of a provider, which keeps the bodies that it was sent."""

    def __init__(self, protocol: str) -> None:
        calls = tuple(ModelCall(id=call_id, tool=tool, arguments=given) for call_id, tool, given in CALLS)
        self.replies = [Reply(say="Let me see.", calls=calls), Reply(say="Done.")]
        self.bodies: list[Any] = []
        self.transport = Transport(Endpoint(create_codec(protocol), self, style=get_stream_style("plain")))

    async def __call__(self, items: Any, asked: Any) -> Reply:
        self.bodies.append(asked.body)
        return self.replies[len(self.bodies) - 1]


def pydantic_agent(model: Any) -> Any:
    from pydantic_ai import Agent, DeferredToolRequests

    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    @agent.tool_plain
    def read(path: str) -> str:
        return f"text of {path}"

    return agent


async def pydantic_ai() -> dict[str, Any]:
    """Return the message histories of two runs: up to the pause, and to the end."""
    from pydantic_ai import DeferredToolResults, ModelResponse, TextPart, ToolCallPart, ToolDenied
    from pydantic_ai.models.function import FunctionModel

    calls = [ToolCallPart(tool, given, tool_call_id=call_id) for call_id, tool, given in CALLS]
    replies = iter([[TextPart("Let me see."), *calls], [TextPart("Done.")]])
    agent = pydantic_agent(FunctionModel(lambda messages, info: ModelResponse(parts=next(replies))))
    paused = await agent.run(PROMPT)
    answers = DeferredToolResults(approvals={"c1": True, "c2": ToolDenied("no 6")})
    done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
    return {"paused": json.loads(paused.all_messages_json()), "done": json.loads(done.all_messages_json())}


async def sent(protocol: str) -> dict[str, Any]:
    """Return what Pydantic AI's client sends a provider after the pause."""
    import httpx2
    from pydantic_ai import DeferredToolResults, ToolDenied

    scripted = Scripted(protocol)
    client = httpx2.AsyncClient(transport=scripted.transport)
    agent = pydantic_agent(provider_model(protocol, client))
    paused = await agent.run(PROMPT)
    answers = DeferredToolResults(approvals={"c1": True, "c2": ToolDenied("no 6")})
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
    await client.aclose()
    return {"paused": scripted.bodies[0], "sent": scripted.bodies[1]}


def provider_model(protocol: str, client: Any) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    if protocol == "messages":
        return AnthropicModel("claude", provider=AnthropicProvider(api_key="none", http_client=client))
    model = OpenAIChatModel if protocol == "chat" else OpenAIResponsesModel
    return model("gpt-4o", provider=OpenAIProvider(api_key="none", http_client=client))


async def openai_agents() -> dict[str, Any]:
    """Return the states of a run: paused, decided, and done."""
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    def said(text: str) -> ResponseOutputMessage:
        content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
        return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)

    def call(call_id: str, tool: str, given: dict[str, Any]) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(
            type="function_call", id=f"fc_{call_id}", call_id=call_id, name=tool, arguments=json.dumps(given)
        )

    class Replies(Model):
        def __init__(self) -> None:
            self.replies = iter([[said("Let me see."), *(call(*each) for each in CALLS)], [said("Done.")]])

        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            return ModelResponse(output=next(self.replies), usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    def pay(amount: int) -> str:
        return f"paid {amount}"

    def read(path: str) -> str:
        return f"text of {path}"

    tools = [function_tool(pay, needs_approval=True), function_tool(read)]
    agent = Agent(name="A", model=Replies(), tools=tools)
    state = (await Runner.run(agent, PROMPT)).to_state()
    found = {"paused": state.to_json()}
    one, other = state.get_interruptions()
    state.approve(one)
    state.reject(other, rejection_message="no 6")
    found["decided"] = state.to_json()
    done = await Runner.run(agent, state)
    return {**found, "done": done.to_state().to_json(), "input_list": done.to_input_list()}


def meai() -> dict[str, Any]:
    """Return what the simulated client leaves in a history, in both generations of discriminators."""
    from pytest_approvals.simulation.meai import (
        read_case,
        read_json,
        read_messages,
        run_case,
        write_json,
        write_messages,
    )

    pay = {"name": "pay", "approval_required": True, "returns": "paid {amount}"}
    read = {"name": "read", "approval_required": False, "returns": "text of {path}"}
    calls = [
        {"$type": "functionCall", "callId": call_id, "name": tool, "arguments": given} for call_id, tool, given in CALLS
    ]
    first = [{"role": "assistant", "contents": [{"$type": "text", "text": "Let me see."}, *calls]}]
    last = [{"role": "assistant", "contents": [{"$type": "text", "text": "Done."}]}]
    user = {"role": "user", "contents": [{"$type": "text", "text": PROMPT}]}

    def play(messages: list[Any], reply: list[Any]) -> list[Any]:
        case = {"behaviour": "10.9", "tools": [pay, read], "model": [reply], "messages": messages}
        outcome = read_json(write_json(run_case(read_case(case))))
        assert outcome["error"] is None
        return [*outcome["messages_after"], *outcome["messages"]]

    paused = play([user], first)
    asked = [each for each in paused[-1]["contents"] if each["$type"] == "toolApprovalRequest"]
    answers = [
        {
            "$type": "toolApprovalResponse",
            "approved": each["toolCall"]["callId"] != "c2",
            "toolCall": each["toolCall"],
            "requestId": each["requestId"],
            **({"reason": "no 6"} if each["toolCall"]["callId"] == "c2" else {}),
        }
        for each in asked
    ]
    done = play([*paused, {"role": "user", "contents": answers}], last)
    session = {"stateBag": {"InMemoryChatHistoryProvider": {"messages": done}}}
    earlier = write_messages(read_messages(done), "earlier")
    return {"paused": paused, "done": done, "session": session, "earlier": earlier}


LIVE: dict[str, Callable[[], dict[str, Any]]] = {
    "meai": meai,
    "pydantic_ai": lambda: asyncio.run(pydantic_ai()),
    "openai_agents": lambda: asyncio.run(openai_agents()),
    "chat": lambda: asyncio.run(sent("chat")),
    "messages": lambda: asyncio.run(sent("messages")),
    "responses": lambda: asyncio.run(sent("responses")),
}


@pytest.fixture(scope="session")
def document() -> Callable[[str, str], Any]:
    """Return what a library stores of the story: by its name, and how far the story is."""
    kept: dict[str, dict[str, Any]] = {}

    def get(name: str, how: str) -> Any:
        path = STORED / f"{name}_{how}.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        lines = path.with_suffix(".jsonl")
        if lines.exists():
            return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        if name not in kept:
            kept[name] = LIVE[name]()
        return kept[name][how]

    return get
