"""A user's own agents: discovery, runs and clean-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    HostedMCPTool,
    InputGuardrail,
    RunConfig,
    RunContextWrapper,
    SQLiteSession,
    function_tool,
)
from agents.mcp import MCPServer
from mcp import types
from pydantic import BaseModel

from pytest_approvals.agent_side.adapters.openai_agents import ChatAgents, OpenAIAgents
from pytest_approvals.agent_side.contract.agent import Agent as Driven
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

DONE = reply("Done.")
REFUNDS = reply(None, call("refund", order=42))


@dataclass
class Shop:
    refunded: list[int]


class Order(BaseModel):
    number: int


async def let_through(context: Any, agent: Any, text: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


_FIND = {"name": "find", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class Library(MCPServer):
    """A user's own server: it has one tool, asks about it, and runs it itself."""

    name = "library"
    cached_tools = (types.Tool.model_validate(_FIND),)

    def __init__(self) -> None:
        super().__init__(require_approval="always")

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[types.Tool]:
        return list(self.cached_tools)

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> types.CallToolResult:
        told = {"type": "text", "text": f"found {arguments['q']}"}
        return types.CallToolResult.model_validate({"content": [told]})

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


@function_tool(needs_approval=True)
def refund(context: RunContextWrapper[Shop], order: int) -> str:
    """Refunds an order.

    Args:
        order: Its number.
    """
    context.context.refunded.append(order)
    return f"refunded {order}"


@function_tool
async def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


@function_tool
def send_mail(to: str) -> str:
    raise RuntimeError(f"a mail to {to}")


def make_agent(**more: Any) -> Agent[Any]:
    return Agent(name="Support", instructions="Help.", model="gpt-none", tools=[refund, look, send_mail], **more)


class TestFinding:
    def test_what_the_framework_marks_is_found(self, attach: Attach) -> None:
        """Every tool is listed with its parameters, and with whether the framework gates it."""
        found = {spec.name: spec for spec in attach(make_agent()).agent.tools()}

        assert {"refund": "always", "look": "never", "send_mail": "never"} == {
            name: spec.approval for name, spec in found.items()
        }
        assert "integer" == found["refund"].parameters["order"].type

    def test_agents_behind_tools_and_handoffs_are_found(self, attach: Attach) -> None:
        """Each has its own name; a handoff is a tool that leads to another agent."""
        inner = Agent[Any](name="Inner", tools=[look])
        next_one = Agent[Any](name="Next", tools=[refund])
        outer = Agent[Any](name="Outer", tools=[inner.as_tool("ask", "Asks.")], handoffs=[next_one])
        found = {(spec.agent, spec.name, spec.runs or spec.hands_over_to) for spec in attach(outer).agent.tools()}

        assert {
            ("main", "transfer_to_next", "Next"),
            ("main", "ask", "Inner"),
            ("Next", "refund", None),
            ("Inner", "look", None),
        } == found

    def test_hosted_tools_are_found_by_their_configuration(self, attach: Attach) -> None:
        """The provider is told by name which calls need approval."""
        config: Any = {
            "type": "mcp",
            "server_label": "docs",
            "server_url": "https://docs.invalid/mcp",
            "require_approval": {"always": {"tool_names": ["write"]}, "never": {"tool_names": ["read"]}},
        }
        agent = Agent[Any](name="A", tools=[HostedMCPTool(tool_config=config)])
        found = [(spec.name, spec.approval, spec.kind, spec.server) for spec in attach(agent).agent.tools()]

        assert [("write", "always", "hosted_mcp", "docs"), ("read", "never", "hosted_mcp", "docs")] == found

    def test_what_a_server_has_listed_is_found(self, attach: Attach) -> None:
        """Its tools come with what the server asks about."""
        (found,) = attach(Agent[Any](name="A", mcp_servers=[Library()])).agent.tools()

        assert ("find", "mcp", "library", "always") == (found.name, found.kind, found.server, found.approval)
        assert found.effects is False


class TestRunning:
    def test_a_real_tool_runs_with_the_persons_context(self, attach: Attach) -> None:
        """The content of `run_options` reaches the tool, and its own result reaches the model."""
        shop = Shop([])
        session = attach(make_agent(), REFUNDS, DONE, run_options={"context": shop})
        (request,) = session.paused("Refund 42.")
        session.finished(None, approve(request))

        assert ([42], ["refund"], ["refunded 42"]) == (shop.refunded, session.world.real, session.world.told())

    def test_a_rejected_call_does_not_reach_the_real_tool(self, attach: Attach) -> None:
        """The person's shop is untouched."""
        shop = Shop([])
        session = attach(make_agent(), REFUNDS, DONE, run_options={"context": shop})
        (request,) = session.paused("Refund 42.")
        session.finished(None, reject(request, "over the limit"))

        assert ([], ["over the limit"]) == (shop.refunded, session.world.told())

    def test_a_stub_stands_in_for_a_tool(self, attach: Attach) -> None:
        """Its body is not entered; it gets what the framework has validated."""
        mail = reply(None, call("send_mail", to="a@b.invalid"))
        session = attach(make_agent(), mail, DONE, results={"send_mail": "sent"})
        session.finished("Send a mail.")

        assert (["sent"], [], [("send_mail", {"to": "a@b.invalid"})]) == (
            session.world.told(),
            session.world.real,
            session.world.ran,
        )

    def test_a_tool_runs_with_validated_arguments(self, attach: Attach) -> None:
        """Defaults are filled in before the body is entered."""
        session = attach(make_agent(), reply(None, call("look", name="a")), DONE)
        session.finished("Look.")

        assert ([("look", {"name": "a", "limit": 3})], ["a 3"]) == (session.world.ran, session.world.told())

    def test_arguments_that_do_not_fit_enter_no_body(self, attach: Attach) -> None:
        """The framework tells the model by itself."""
        session = attach(make_agent(), reply(None, call("look", limit=1)), DONE)
        session.finished("Look.")

        assert ([], 1) == (session.world.ran, len(session.world.told()))

    def test_the_failure_of_a_real_tool_is_told_as_the_person_wants(self, attach: Attach) -> None:
        """The tool's own failure function makes the text, in a copy of the tool as in the tool."""

        def tells(_: Any, error: Exception) -> str:
            return f"sorry: {error}"

        @function_tool(failure_error_function=tells)
        def breaks() -> str:
            raise ValueError("no")

        session = attach(Agent[Any](name="A", tools=[breaks]), reply(None, call("breaks")), DONE)
        session.finished("Break.")

        assert ["sorry: no"] == session.world.told()

    def test_a_tool_made_by_hand_runs_too(self, attach: Attach) -> None:
        """Its body is handed the model's text, as without probes."""

        async def invoke(_: Any, text: str) -> str:
            return f"got {text}"

        raw = FunctionTool(name="raw", description="", params_json_schema={}, on_invoke_tool=invoke)
        session = attach(Agent[Any](name="A", tools=[raw]), reply(None, call("raw", x=1)), DONE)
        session.finished("Go.")

        assert ([("raw", {"x": 1})], ['got {"x": 1}']) == (session.world.ran, session.world.told())

    @pytest.mark.parametrize("stub", [False, True])
    def test_a_tool_of_a_server_is_run_through_the_world(self, attach: Attach, stub: bool) -> None:
        """The request is the server's; the call reaches it, or the stub in its place."""
        results = {"find": "stubbed"} if stub else {}
        agent = Agent[Any](name="A", mcp_servers=[Library()])
        session = attach(agent, reply(None, call("find", q="a")), DONE, results=results)
        (request,) = session.paused("Find.")
        session.finished(None, approve(request))

        assert ("mcp", "library") == (request.kind, request.server)
        assert [("find", {"q": "a"})] == session.world.ran
        assert ["stubbed" if stub else "found a"] == session.world.told()

    def test_models_as_arguments_are_recorded_as_json(self, attach: Attach) -> None:
        """The body gets the user's own type, the record its values."""

        @function_tool
        def ship(order: Order) -> str:
            return f"shipped {order.number}"

        session = attach(Agent[Any](name="A", tools=[ship]), reply(None, call("ship", order={"number": 7})), DONE)
        session.finished("Ship.")

        assert ([("ship", {"order": {"number": 7}})], ["shipped 7"]) == (session.world.ran, session.world.told())

    def test_the_persons_policy_keeps_its_say(self, attach: Attach) -> None:
        """A probe does not change when the framework asks."""

        async def large(_: Any, arguments: dict[str, Any], __: str) -> bool:
            return bool(arguments["amount"] > 10)

        @function_tool(needs_approval=large)
        def pay(amount: int) -> str:
            return f"paid {amount}"

        both = reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=50))
        session = attach(Agent[Any](name="A", tools=[pay]), both, DONE)
        (request,) = session.paused("Pay.")

        assert ({"amount": 50}, [("pay", {"amount": 5})]) == (request.arguments, session.world.ran)

    @pytest.mark.parametrize("adapter", [OpenAIAgents, ChatAgents])
    @pytest.mark.parametrize("stream", [False, True])
    def test_each_agent_asks_by_its_own_name(self, attach: Attach, stream: bool, adapter: type[Driven]) -> None:
        """The model is told which agent asks: the first one, the one that it hands over to, one behind a tool."""
        inner = Agent[Any](name="Inner")
        next_one = Agent[Any](name="Next", tools=[inner.as_tool("ask", "Asks.")])
        outer = Agent[Any](name="Outer", handoffs=[next_one])
        replies = [reply(None, call("transfer_to_next", "h1")), reply(None, call("ask", input="x")), reply("In.")]
        session = attach(outer, *replies, DONE, adapter=adapter)
        session.turn("Go.", stream=stream)

        assert ["main", "Next", "Inner", "Next"] == session.world.askers

    def test_the_persons_run_configuration_is_kept(self, attach: Attach) -> None:
        """Their filter still sees every input."""
        seen: list[int] = []

        def count(data: Any) -> Any:
            seen.append(len(data.model_data.input))
            return data.model_data

        session = attach(make_agent(), DONE, run_options={"run_config": RunConfig(call_model_input_filter=count)})
        session.finished("Go.")

        assert [1] == seen

    def test_an_output_of_the_persons_own_type_comes_as_json(self, attach: Attach) -> None:
        """What crosses a process boundary is plain."""

        class Answer(BaseModel):
            number: int

        session = attach(Agent[Any](name="A", output_type=Answer), reply('{"number": 42}'))

        assert {"number": 42} == session.finished("Answer.")


class TestLeaving:
    def test_a_factory_is_given_the_model(self, attach: Attach) -> None:
        """It puts it where it likes; the agent is new each time."""
        made: list[Any] = []

        def factory(model: Any) -> Agent[Any]:
            made.append(model)
            return make_agent()

        attach(factory, DONE).finished("Go.")

        assert ["DispatchingModel"] == [type(model).__name__ for model in made]

    def test_the_persons_agent_is_left_as_it_was(self, attach: Attach) -> None:
        """The probes are taken out when the last session lets go."""
        agent = make_agent()
        before = agent.tools
        first, second = attach(agent, DONE), attach(agent, DONE)
        probed = agent.tools
        first.wait(first.agent.close())
        still = agent.tools
        second.wait(second.agent.close())

        assert (True, True, True) == (probed is not before, still is probed, agent.tools is before)

    def test_closing_twice_takes_the_probes_out_once(self, attach: Attach) -> None:
        """Another session on the same agent is not disturbed."""
        agent = make_agent()
        first, second = attach(agent), attach(agent, DONE)
        probed = agent.tools
        first.wait(first.agent.close())
        first.wait(first.agent.close())

        assert agent.tools is probed
        assert "Done." == second.finished("Go.")

    def test_a_session_on_a_persons_agent_keeps_the_probes(self, attach: Attach) -> None:
        """They are taken out when both sessions have let go."""
        agent = make_agent()
        before = agent.tools
        first = attach(agent)
        second = first.wait(first.agent.another_session(first.world))
        first.wait(first.agent.close())
        kept = agent.tools
        first.wait(second.close())

        assert (True, True) == (kept is not before, agent.tools is before)

    def test_a_persons_session_keeps_the_history(self, attach: Attach) -> None:
        """Each run is given the message alone, and the session stays open."""
        session = SQLiteSession("theirs")
        story = attach(lambda _: make_agent(), DONE, reply("Again."), run_options={"session": session})
        story.finished("One.")
        story.restart()
        story.finished("Two.")
        items = story.wait(session.get_items())
        session.close()

        assert ["One.", "Done.", "Two."] == [item.text for item in story.world.inputs[-1]]
        assert 4 == len(items)

    def test_a_guardrail_without_a_name_is_saved_as_it_is_restored(self, attach: Attach) -> None:
        """The SDK names it when it restores a state."""
        guardrail: InputGuardrail[Any] = InputGuardrail(guardrail_function=let_through)
        session = attach(
            lambda _: make_agent(input_guardrails=[guardrail]),
            REFUNDS,
            run_options={"context": Shop([])},
        )
        session.paused("Refund 42.")
        saved = session.wait(session.agent.dump())
        session.restart()

        assert saved == session.wait(session.agent.dump())

    def test_a_state_with_a_persons_context_is_taken_up(self, attach: Attach) -> None:
        """What cannot be stored is handed in again."""
        shop = Shop([])
        session = attach(lambda _: make_agent(), REFUNDS, DONE, run_options={"context": shop})
        session.paused("Refund 42.")
        session.restart()
        session.finished(None, approve(session.pending()[0]))

        assert [42] == shop.refunded
