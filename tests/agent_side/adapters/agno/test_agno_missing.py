"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agno.agent import Agent
from agno.models.message import Message
from agno.run.requirement import RunRequirement
from agno.team import Team
from agno.team.mode import TeamMode
from agno.tools.function import Function

from pytest_approvals.agent_side.adapters.agno import FLAVOURS
from pytest_approvals.agent_side.adapters.agno.messages import DELEGATE
from pytest_approvals.agent_side.contract import Blueprint, Decision, Unsupported
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reply, thought, tool

EVERYWHERE = {
    "reasoning_between_calls",
    "always",
    "never",
    "stage",
    "concurrent_tools",
    "asks_again",
    "hand_offs",
    "conditional_approval",
    "slow_conditions",
    "raising_conditions",
    "elicitation",
    "annotations",
    "hosted_mcp",
    "limit_model_replies",
    "nested_gate",
}

Begin = Callable[..., AdapterSession]
TWICE = reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=6))


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begins a session of a flavour with a gated tool."""
    begun: list[AdapterSession] = []

    def begin(*replies: Any, flavour: str = "") -> AdapterSession:
        tools = (tool("pay", "always", amount="integer"),)
        world = FakeWorld(replies or (reply(None, call("pay", amount=5)), reply("Done.")), tools)
        begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below; whether there is a server is not a matter of the framework."""
    assert [EVERYWHERE | {"nested", "nested_parallel"}, EVERYWHERE | {"edit", "edit_tool"}] == [
        set(FLAVOURS[one].missing) - {"native.postgres"} for one in ("", "team")
    ]


@pytest.mark.parametrize("verdict", ["always", "never"])
def test_a_decision_does_not_last(session: Begin, flavour: str, verdict: Any) -> None:
    """always, never: a requirement is confirmed or rejected, and says nothing of further calls."""
    paused = session(flavour=flavour)
    (request,) = paused.paused("Pay 5.")

    with pytest.raises(Unsupported):
        paused.turn(None, Decision(request=request, verdict=verdict))
    assert {"note"} == parameters(RunRequirement.reject) - {"self"}
    assert set() == parameters(RunRequirement.confirm) - {"self"}


def test_decisions_go_in_with_the_continuation() -> None:
    """stage: nothing of an agent or a team takes requirements without going on."""
    taking = {
        name
        for kind in (Agent, Team)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if "requirements" in parameters(method)
    }

    assert {"continue_run", "acontinue_run"} == taking


def test_confirmed_calls_run_one_after_the_other(session: Begin, flavour: str) -> None:
    """concurrent_tools: the second body begins when the first one has ended."""
    running, most = 0, 0
    story = session(TWICE, reply("Done."), flavour=flavour)
    run = story.world.run

    async def counted(*given: Any, **more: Any) -> Any:
        nonlocal running, most
        import asyncio

        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        result = await run(*given, **more)
        running -= 1
        return result

    story.world.run = counted
    story.finished(None, *(approve(request) for request in story.paused("Pay both.")))

    assert (2, 1) == (len(story.world.ran), most)


def test_a_gate_is_a_mark_of_the_tool() -> None:
    """conditional_approval, slow_conditions, raising_conditions: it is true or false."""
    assert "bool" in str(Function.model_fields["requires_confirmation"].annotation)
    with pytest.raises(ValueError, match="requires_confirmation"):
        Function(name="pay", requires_confirmation=lambda call: True)


def test_a_body_cannot_pause_the_run() -> None:
    """asks_again: what a body may raise to steer the run has no pause."""
    from agno import exceptions

    steering = {name for name, one in vars(exceptions).items() if inspect.isclass(one) and "Agent" in name}

    assert {"AgentRunException", "RetryAgentRun"} <= steering
    assert not {name for name in vars(exceptions) if "pause" in name.lower()}


def test_nothing_hands_a_conversation_over() -> None:
    """hand_offs: an agent knows no others, and every mode of a team begins with its leader."""
    assert not {name for name in parameters(Agent.__init__) if "hand" in name or "member" in name}
    assert {"coordinate", "route", "broadcast", "tasks"} == {mode.value for mode in TeamMode}


def test_replies_are_not_counted() -> None:
    """limit_model_replies: what an agent limits are tool calls."""
    assert {"tool_call_limit"} == {name for name in parameters(Agent.__init__) if name.endswith("_limit")}


def test_nothing_answers_what_a_server_asks() -> None:
    """elicitation: the client of a toolkit is made without handlers, and none can be given."""
    from agno.tools.mcp import MCPTools

    handlers = {name for name in parameters(MCPTools.__init__) if "handler" in name or "callback" in name}

    assert not handlers


def test_a_providers_tool_is_no_function() -> None:
    """hosted_mcp: what is handed to the provider is a plain dictionary, which has no mark."""
    from agno.models.base import Model

    class Theirs(Model):
        def invoke(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        ainvoke = invoke_stream = ainvoke_stream = invoke
        _parse_provider_response = _parse_provider_response_delta = invoke

    hosted = {"type": "mcp", "server_label": "bank", "require_approval": "always"}

    assert [hosted] == Theirs(id="theirs")._format_tools([hosted])


def test_the_leaders_tool_takes_no_marks() -> None:
    """nested_gate: a team makes the tool itself, and nothing of a team says that it needs confirmation."""
    assert DELEGATE == "delegate_task_to_member"
    assert not {name for name in parameters(Team.__init__) if "confirm" in name or "approval" in name}


def test_what_a_tool_runs_does_not_surface() -> None:
    """nested, nested_parallel: an agent that is published as a tool is one for servers, and no function for agents."""
    published = Agent(id="helper").as_tool(name="ask_helper")

    assert not isinstance(published, Function)
    assert not callable(published)
    assert not {name for name in parameters(Agent.__init__) if "subagent" in name or "members" in name}


@pytest.mark.parametrize("arguments", [{"amount": 4}])
def test_a_team_runs_the_call_of_its_own_run(session: Begin, arguments: dict[str, Any]) -> None:
    """edit, edit_tool: what is changed in a requirement is not looked at."""
    story = session(flavour="team")
    (request,) = story.paused("Pay 5.")
    story.finished(None, Decision(request=request, verdict="edit", arguments=arguments))

    assert [("pay", {"amount": 5})] == story.world.ran


def reasoning_of(story: AdapterSession) -> list[tuple[str, str | None, str | None]]:
    """Return what the model was last sent of its reasoning and calls, with the signatures."""
    sent = [item for item in story.world.inputs[-1] if item.kind in ("reasoning", "call")]
    return [(item.kind, item.text, item.signature) for item in sent]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("said", "kept"),
    [("It is small", ("reasoning", "It is small", "signed rs_1")), (None, ("reasoning", None, "signed rs_1"))],
)
def test_reasoning_comes_back_before_its_call(
    session: Begin, stream: bool, said: str | None, kept: tuple[str, str | None, str]
) -> None:
    """It is sent back with its signature, also if there is no text to show."""
    story = session()
    story.world.replies[0] = reply(None, call("pay", amount=5), thoughts=[thought(said)])
    (request,) = story.paused("Pay 5.", stream=stream)
    story.turn(None, approve(request), stream=stream)

    assert [kept, ("call", None, None)] == reasoning_of(story)


def test_reasoning_between_calls_has_no_place(session: Begin) -> None:
    """reasoning_between_calls: a message has one text of reasoning, in front of all its calls."""
    story = session()
    between = thought("Then more", before=1)
    story.world.replies[0] = reply(None, call("look", "c1", what="x"), call("pay", "c2", amount=5), thoughts=[between])
    (request,) = story.paused("Pay 5.")
    story.turn(None, approve(request))

    assert ["reasoning", "call", "call"] == [kind for kind, *_ in reasoning_of(story)]


def test_reasoning_is_not_sent_over_chat() -> None:
    """reasoning, over Chat Completions: a message that the class sends has nothing of it."""
    openai = pytest.importorskip("agno.models.openai")
    message = Message(role="assistant", content="Done.", reasoning_content="It is small")
    sent = openai.OpenAIChat(id="m")._format_message(message)

    assert ("Done.", False) == (sent["content"], "small" in repr(sent))


@pytest.mark.parametrize(("name", "reasons"), [("o3", True), ("agent", False)])
def test_a_model_of_responses_reasons_by_its_name(name: str, reasons: bool) -> None:
    """reasoning, over Responses: the class knows OpenAI's names only."""
    openai = pytest.importorskip("agno.models.openai")

    assert reasons == openai.OpenAIResponses(id=name)._using_reasoning_model()


def test_annotations_of_a_server_are_not_read() -> None:
    """annotations: a toolkit makes functions of what a server lists, without what it says of them."""
    from agno.tools.mcp import MCPTools

    assert "annotations" not in inspect.getsource(MCPTools.build_tools)
