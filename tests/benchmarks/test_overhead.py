from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.processes.remote_agents import SubprocessFactory
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Scenario, Variant

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

Flow = Callable[[], Awaitable[object]]
Measure = Callable[[Sequence[Flow], int, int], list[float]]

JSON = Variant(serialize="json", source="restored", oracle="approve_all")


def by_hand_pydantic_ai() -> Flow:
    """One approval with Pydantic AI as its users write it: two runs, the history through JSON between them."""
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5}, tool_call_id="c1")])
        return ModelResponse(parts=[TextPart("Paid.")])

    def build() -> Any:
        agent = Agent(FunctionModel(reply), output_type=[str, DeferredToolRequests])

        @agent.tool_plain(requires_approval=True)
        async def pay(amount: int) -> str:
            return f"paid {amount}"

        return agent

    async def flow() -> object:
        first = await build().run("Pay 5")
        assert isinstance(first.output, DeferredToolRequests)
        stored = first.all_messages_json()
        history = ModelMessagesTypeAdapter.validate_json(stored)
        results = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
        last = await build().run(message_history=history, deferred_tool_results=results)
        last.all_messages_json()
        return last.output

    return flow


def by_hand_openai_agents() -> Flow:
    """One approval with the OpenAI Agents SDK as its users write it: two runs, the state through JSON between them."""
    from agents import Agent, Model, ModelResponse, Runner, RunState, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        def __init__(self) -> None:
            self.asked = 0

        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            self.asked += 1
            call = ResponseFunctionToolCall(type="function_call", call_id="c1", name="pay", arguments='{"amount": 5}')
            text = ResponseOutputText(type="output_text", text="Paid.", annotations=[])
            said = ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[call if self.asked == 1 else said], usage=Usage(), response_id=None)

        async def stream_response(self, *args: Any, **named: Any) -> Any:
            raise AssertionError
            yield

    def build(model: Model) -> Any:
        @function_tool(needs_approval=True)
        async def pay(amount: int) -> str:
            return f"paid {amount}"

        return Agent(name="main", model=model, tools=[pay])

    async def flow() -> object:
        model = Scripted()
        first = await Runner.run(build(model), "Pay 5")
        stored = first.to_state().to_string()
        agent = build(model)
        state = await RunState.from_string(agent, stored)
        for item in state.get_interruptions():
            state.approve(item)
        last = await Runner.run(agent, state)
        last.to_state().to_string()
        return last.final_output

    return flow


BY_HAND = {"pydantic_ai": by_hand_pydantic_ai, "openai_agents": by_hand_openai_agents}


def source_of(name: str) -> InProcessSource:
    adapter = import_module(f"pytest_approvals.agent_side.adapters.{name}").FLAVOURS[""]
    return InProcessSource(
        name=name, adapter=adapter, facts=describe_adapter(adapter), elsewhere=SubprocessFactory(agent=name)
    )


@pytest.mark.parametrize("name", list(BY_HAND))
def test_the_harness_costs_little(
    scenario: Callable[[str], Scenario], cpu_times: Measure, tell: Callable[[str], None], name: str
) -> None:
    """A scenario on a framework takes at most 1.15 times the same flow by hand, or 1.5 ms more where that is larger."""
    story, source = scenario("basics/approved"), source_of(name)
    hand, ours = cpu_times([BY_HAND[name](), lambda: run_scenario(story, JSON, source)], 11, 40)

    tell(f"{name}: by hand {hand * 1e3:.2f} ms, harness {ours * 1e3:.2f} ms CPU, ratio {ours / hand:.2f} (target 1.15)")
    assert ours <= max(1.15 * hand, hand + 0.0015)


@pytest.mark.parametrize("name", list(BY_HAND))
def test_the_host_costs_little(scenario: Callable[[str], Scenario], tell: Callable[[str], None], name: str) -> None:
    """A turn over the host takes at most 1.3 times the same turn in this process, or 3 ms more."""
    import statistics
    import time

    from pytest_approvals.agent_side.contract.types import Blueprint
    from pytest_approvals.processes.agent_source import AgentSource

    class Remote:
        """Builds every agent in one other process, so that the turns are measured and not the processes."""

        def __init__(self, source: InProcessSource) -> None:
            self.name, self.facts = source.name, source.facts
            self.host: Any = None

        async def build(self, world: Any, blueprint: Blueprint) -> Any:
            from pytest_approvals.processes.process_pool import get_shared_pool
            from pytest_approvals.processes.remote_agents import RemoteAgent

            if self.host is None or not self.host.is_usable:
                self.host = await get_shared_pool().start_fresh(name)
                self.keep = await RemoteAgent.build(self.host, world, blueprint)
            return await RemoteAgent.build(self.host, world, blueprint)

        async def build_fresh(self, world: Any, blueprint: Blueprint, *, cold: bool) -> Any:
            raise AssertionError

    story, source = scenario("basics/approved"), source_of(name)
    remote: AgentSource = Remote(source)

    async def measured() -> tuple[float, float]:
        async def timed(where: AgentSource) -> float:
            start = time.perf_counter()
            for _ in range(20):
                await run_scenario(story, JSON, where)
            return (time.perf_counter() - start) / 20

        await timed(source), await timed(remote)
        rows = [(await timed(source), await timed(remote)) for _ in range(7)]
        return statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows)

    here, there = asyncio.run(measured())

    times = f"here {here * 1e3:.2f} ms, over the host {there * 1e3:.2f} ms wall"
    tell(f"{name}: {times}, ratio {there / here:.2f} (target 1.3)")
    assert there <= max(1.3 * here, here + 0.003)
