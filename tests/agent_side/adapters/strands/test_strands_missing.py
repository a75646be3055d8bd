"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from strands import Agent
from strands.interventions import Confirm
from strands.multiagent import Swarm
from strands.types.agent import Limits
from strands.types.interrupt import InterruptResponse
from strands.vended_interventions.hitl import HumanInTheLoop

from pytest_approvals.agent_side.adapters.strands import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Condition, Decision, Request, ToolSpec, Unsupported
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reject, reply, tool

EVERYWHERE = {
    "never",
    "stage",
    "cancel",
    "tampered_request",
    "message_with_answers",
    "nested_parallel",
    "missing_ids",
    "hosted_mcp",
    "hand_offs",
    "limit_tool_calls",
    "history.append",
}

DONE = reply("Done.")
PAYS = reply(None, call("pay", amount=5))
TWICE = reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=6))
Begin = Callable[..., AdapterSession]


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begins a session of a flavour with a gated tool."""
    begun: list[AdapterSession] = []

    def begin(
        *replies: Any, flavour: str = "", approval: Any = "always", more: tuple[ToolSpec, ...] = ()
    ) -> AdapterSession:
        tools = tool("pay", approval, amount="integer"), tool("look", what="string"), *more
        world = FakeWorld(replies or (PAYS, DONE), tools)
        begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below."""
    assert {
        "": EVERYWHERE,
        "sequential": EVERYWHERE | {"concurrent_tools", "parallel", "partial_answers", "slow_conditions"},
        "tool": EVERYWHERE | {"edit_tool"},
        "middleware": EVERYWHERE,
        "handler": EVERYWHERE | {"raising_conditions", "malformed_verdict"},
        "intervention": EVERYWHERE | {"reject_reason", "edit", "edit_tool", "malformed_verdict"},
    } == {name: set(flavour.missing) for name, flavour in FLAVOURS.items()}


def test_no_refusal_is_remembered(session: Begin) -> None:
    """never: an answer of the guide's gate is yes, trust or no."""
    (request,) = session().paused("Pay.")

    with pytest.raises(KeyError, match="never"):
        session().turn(None, Decision(request=request, verdict="never"))


def test_responses_go_in_with_the_invocation(session: Begin) -> None:
    """stage: there is no other way to give one."""
    (request,) = (story := session()).paused("Pay.")

    assert "prompt" in parameters(Agent.invoke_async)
    with pytest.raises(Unsupported):
        story.wait(story.agent.stage([approve(request)]))


def test_cancel_leaves_an_interrupt_open(session: Begin) -> None:
    """cancel: it is about an invocation that runs."""
    story = session()
    story.paused("Pay.")
    story.agent._agent.cancel()  # type: ignore[attr-defined]

    assert ["c1"] == [request.call_id for request in story.pending()]


def test_a_response_holds_the_id_of_a_request_alone() -> None:
    """tampered_request: there is no place for anything else of it."""
    assert {"interruptId", "response"} == set(get_type_hints(InterruptResponse))


def test_text_beside_a_response_is_refused(session: Begin) -> None:
    """message_with_answers: a prompt holds responses alone."""
    (request,) = (story := session()).paused("Pay.")

    with pytest.raises(TypeError, match="must resume from interrupt with list of interruptResponse's"):
        story.turn("And hurry.", approve(request))


def test_an_agent_runs_one_call_at_a_time(session: Begin) -> None:
    """nested_parallel: the second call of a tool that is an agent is an error."""
    helper = ToolSpec(name="delegate", runs="helper"), ToolSpec(name="wipe", approval="always", agent="helper")
    both = reply(None, call("delegate", "o1", input="a"), call("delegate", "o2", input="b"))
    story = session(both, reply(None, call("wipe", "i1")), DONE, DONE, more=helper)
    (request,) = story.paused("Go.")
    story.finished(None, approve(request))

    assert "Agent 'delegate' is already processing a request" in story.world.told()


def test_a_call_without_an_id_is_skipped(session: Begin) -> None:
    """missing_ids: model classes have to make ids up."""
    nameless = reply(None, call("look", None, what="x"))
    story = session(nameless, DONE)
    story.turn("Look.")

    assert [] == story.world.ran


def test_gates_are_about_tools_that_run_here() -> None:
    """hosted_mcp: what a provider runs is content of its message, and no tool use."""
    from strands.types.content import ContentBlock

    assert not [name for name in get_type_hints(ContentBlock) if "approval" in name.lower() or "mcp" in name.lower()]


def test_a_swarm_hands_over_a_task() -> None:
    """hand_offs: a node gets a prompt of the swarm's making, and the swarm begins at its entry point each time."""
    assert {"nodes", "entry_point"} <= parameters(Swarm.__init__)
    assert callable(Swarm._build_node_input)


def test_limits_count_no_tool_calls() -> None:
    """limit_tool_calls: they are about turns and tokens."""
    assert {"turns", "output_tokens", "total_tokens"} == set(get_type_hints(Limits))


def test_a_snapshot_is_the_whole_state() -> None:
    """history.append: nothing gives what a turn added."""
    assert {"self", "preset", "include", "exclude", "app_data"} == parameters(Agent.take_snapshot)


class TestSequential:
    def test_nobody_is_asked_behind_the_first_question(self, session: Begin) -> None:
        """parallel, partial_answers, concurrent_tools: the second call is not looked at before the first is through."""
        story = session(TWICE, DONE, flavour="sequential")
        (first,) = story.paused("Pay.")
        (second,) = story.paused(None, approve(first))

        assert ("c1", "c2", [("pay", {"amount": 5})]) == (first.call_id, second.call_id, story.world.ran)

    def test_a_condition_holds_up_those_behind_it(self, session: Begin) -> None:
        """slow_conditions: the policy of the second call is asked when the first was answered."""
        condition = Condition(argument="amount", greater_than=0)
        story = session(TWICE, DONE, flavour="sequential", approval=condition)
        story.paused("Pay.")

        assert ["c1"] == [request.call_id for request in story.pending()]


class TestTool:
    def test_a_body_cannot_become_another_one(self, session: Begin) -> None:
        """edit_tool: what a person wrote instead is given to the body that asked."""
        (request,) = (story := session(flavour="tool")).paused("Pay.")
        story.finished(None, Decision(request=request, verdict="edit", arguments={"amount": 1}, tool="look"))

        assert ["pay"] == [name for name, _ in story.world.ran]


class TestHandler:
    @pytest.mark.parametrize("answer", [[], "perhaps", {"approved": True}])
    def test_the_agent_goes_on_when_the_handler_fails(self, session: Begin, answer: Any) -> None:
        """raising_conditions, malformed_verdict: `on_error` is made for it, and its documentation warns."""
        (request,) = (story := session(flavour="handler")).paused("Pay.")
        story.finished(None, Decision(request=request, verdict="raw", raw=answer))

        assert ["pay"] == [name for name, _ in story.world.ran]


class TestIntervention:
    @pytest.mark.parametrize("answer", [[], "perhaps", {"approved": True}, 1])
    def test_any_answer_but_yes_is_a_no(self, session: Begin, answer: Any) -> None:
        """malformed_verdict: so its documentation has it."""
        (request,) = (story := session(flavour="intervention")).paused("Pay.")
        story.finished(None, Decision(request=request, verdict="raw", raw=answer))

        assert [] == story.world.ran

    def test_a_no_has_no_reason(self, session: Begin) -> None:
        """reject_reason: the model is told the question."""
        (request,) = (story := session(flavour="intervention")).paused("Pay.")
        story.finished(None, reject(request, "too much"))

        assert not [text for text in story.world.told() if "too much" in text]

    def test_a_yes_changes_nothing(self) -> None:
        """edit, edit_tool: a response is judged, and nothing of it is put into the call."""
        assert {"prompt", "reason", "response", "evaluate"} == parameters(Confirm) - {"type"}
        assert not [name for name in parameters(HumanInTheLoop.__init__) if "edit" in name]


def test_the_request_of_a_person_is_no_object_of_the_frameworks(session: Begin) -> None:
    """A request that was rebuilt from its JSON is as good as the one that was held."""
    (held,) = (story := session()).paused("Pay.")
    rebuilt = Request(id=held.id, call_id=None, tool="pay", arguments={})
    story.finished(None, approve(rebuilt))

    assert [("pay", {"amount": 5})] == story.world.ran
