"""The session of the OpenAI Agents SDK that keeps its items in a conversation of the provider."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.contract.types import Parameter
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool

agents = pytest.importorskip("agents")
openai = pytest.importorskip("openai")

PAY = Call(label="c1", id="c1", tool="pay", arguments={"amount": 5})
OWN = Tool(name="pay", parameters={"amount": Parameter(type="integer")}, approval="always")
SCRIPT = Script(replies=(ScriptedReply(calls=(PAY,)), ScriptedReply(say="Done."), ScriptedReply(say="Bye.")))
STORY = Scenario(id="own/pay", title="Pays.", tools=(OWN,), agents={"main": SCRIPT})


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_session_of_a_conversation_plays_an_approval(decision):
    """A call waits, is decided on, and the next run of the session goes on from what the provider holds."""
    paid = []

    @agents.function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return f"paid {amount}"

    async def play(url):
        async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as asking:
            model = agents.OpenAIResponsesModel("m", asking)
            agent = agents.Agent(name="main", model=model, tools=[pay])
            session = agents.OpenAIConversationsSession(openai_client=asking)
            options = {"session": session, "run_config": agents.RunConfig(tracing_disabled=True)}
            paused = await agents.Runner.run(agent, "go", **options)
            assert [] == paid
            state = paused.to_state()
            getattr(state, decision)(paused.interruptions[0])
            done = await agents.Runner.run(agent, state, **options)
            bye = await agents.Runner.run(agent, "bye", **options)
            return done.final_output, bye.final_output, [item.get("type") for item in await session.get_items()]

    with ScriptedModelServer().running() as server:
        begun = server.begin(STORY, ConversationOptions(protocol="responses"))
        done, bye, kinds = asyncio.run(play(server.url(begun.name)))

    assert ("Done.", "Bye.", [5] if decision == "approve" else []) == (done, bye, paid)
    assert ["message", "function_call", "function_call_output", "message", "message", "message"] == kinds
    assert [] == [event for event in begun.events if event.kind == "model.refusal"]
