"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, get_args

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.human_in_the_loop import ApproveDecision, DecisionType, RejectDecision
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from pytest_approvals.agent_side.adapters.langgraph import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Condition, Decision, Request, Unsupported
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reject, reply, thought, tool

EVERYWHERE = {
    "always",
    "never",
    "stage",
    "cancel",
    "trim",
    "tampered_request",
    "contradiction",
    "missing_ids",
    "changing_ids",
    "hosted_mcp",
    "serialize.json",
    "history.append",
}
UNADDRESSED = {"malformed_address", "unknown_request"}
BARE = {"hand_offs", "limit_model_replies", "limit_tool_calls", "structured_answer"}

DONE = reply("Done.")
TWICE = reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=6))
Begin = Callable[..., AdapterSession]


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begins a session of a flavour with a gated tool."""
    begun: list[AdapterSession] = []

    def begin(*replies: Any, flavour: str = "", approval: Any = "always") -> AdapterSession:
        tools = tool("pay", approval, amount="integer"), tool("look", what="string")
        world = FakeWorld(replies or (reply(None, call("pay", amount=5)), DONE), tools)
        begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below; whether there is a server is not a matter of the framework."""
    assert [
        EVERYWHERE | UNADDRESSED | {"slow_conditions", "partial_answers"},
        EVERYWHERE | {"slow_conditions", "edit_tool"},
        EVERYWHERE | {"slow_conditions", "edit_tool"},
        EVERYWHERE | {"unknown_request", "edit_tool"},
        EVERYWHERE | {"unknown_request", "edit_tool", "broken_arguments", "partial_answers", "mcp"} | BARE,
    ] == [
        set(FLAVOURS[one].missing) - {"native.postgres"} for one in ("", "per_call", "retry", "interrupt", "tool_node")
    ]


def test_a_node_shows_one_question(session: Begin) -> None:
    """partial_answers: of two questions in one node the second one shows when the first one is answered."""
    paused = session(TWICE, DONE, flavour="tool_node")

    (first,) = paused.paused("Pay.")
    (second,) = paused.paused(None, Decision(request=first, verdict="approve"))

    assert ("c1", "c2") == (first.call_id, second.call_id)


async def _in_one_node(first: Any, second: Any, *inputs: Any) -> Any:
    """Runs a graph of one node with a call of each of the two tools; gives what the last run gives."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([first, second]))
    graph.add_edge(START, "tools")
    calls = [{"name": one.__name__, "args": {}, "id": one.__name__} for one in (first, second)]
    runs = graph.compile(checkpointer=InMemorySaver())
    for given in ({"messages": [AIMessage("", tool_calls=calls)]}, *inputs):
        done = await runs.ainvoke(given, {"configurable": {"thread_id": "1"}})
    return done


def test_a_node_does_not_stop_what_runs_beside_a_question() -> None:
    """mcp: the run has ended, and a call next to the one that asked continues."""
    paused, worked = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        """Asks."""
        interrupt("May I?")

    async def work() -> None:
        """Works for longer than the run takes."""
        await paused.wait()
        worked.set()

    async def play() -> bool:
        await _in_one_node(ask, work)
        paused.set()
        return await asyncio.wait_for(worked.wait(), 5)

    assert asyncio.run(play())


def test_an_answer_in_a_node_goes_to_the_first_request() -> None:
    """nested_parallel, over a protocol: a person was shown the question of the one, and answered the other."""
    answered: list[str] = []
    asked = asyncio.Event()

    async def slow() -> None:
        """Asks after the other one, the first time."""
        await asked.wait()
        interrupt("May slow?")
        answered.append("slow")

    async def quick() -> None:
        """Asks at once, the first time."""
        if asked.is_set():
            await asyncio.sleep(0)
        asked.set()
        interrupt("May quick?")

    done = asyncio.run(_in_one_node(slow, quick, Command(resume="Yes.")))

    assert (["slow"], ["May quick?"]) == (answered, [one.value for one in done["__interrupt__"]])


def test_a_node_passes_broken_calls_over() -> None:
    """broken_arguments: where a message has no calls that can be read, the graph ends."""
    broken = AIMessage("", invalid_tool_calls=[{"name": "pay", "args": "{", "id": "c1", "error": None}])

    assert "__end__" == tools_condition({"messages": [broken]})


def test_a_graph_of_ones_own_has_no_middleware() -> None:
    """hand_offs, limit_model_replies, limit_tool_calls, structured_answer: a graph has nodes and edges, and no more."""
    assert not {"middleware", "response_format", "limits", "agents"} & parameters(StateGraph.__init__)


@pytest.mark.parametrize("verdict", ["always", "never"])
def test_a_decision_does_not_last(session: Begin, flavour: str, verdict: Any) -> None:
    """always, never: none of the decisions says anything of further calls."""
    paused = session(flavour=flavour)
    (request,) = paused.paused("Pay.")

    assert {"approve", "edit", "reject", "respond"} == set(get_args(DecisionType))
    assert ({"type"}, {"type", "message"}) == (
        set(ApproveDecision.__annotations__),
        set(RejectDecision.__annotations__),
    )
    with pytest.raises(Unsupported):
        paused.turn(None, Decision(request=request, verdict=verdict))


def test_an_answer_is_a_run(session: Begin) -> None:
    """stage, cancel: a state can be updated with values for its keys, and nothing there answers an interrupt."""
    paused = session()
    paused.paused("Pay.")

    assert {"self", "config", "values", "as_node", "task_id"} == parameters(CompiledStateGraph.update_state)
    assert "resume" in {field.name for field in fields(Command)}
    for step in (paused.agent.stage(()), paused.agent.cancel(), paused.agent.trim(1)):
        with pytest.raises(Unsupported):
            paused.wait(step)


def test_trimming_does_not_happen_in_a_pause(session: Begin) -> None:
    """trim: the middleware for it runs before the model, and the messages of a paused thread stay as they are."""
    from langchain.agents.middleware import SummarizationMiddleware

    assert SummarizationMiddleware.abefore_model is not None
    assert "amodify_state" not in dir(CompiledStateGraph)


@pytest.mark.parametrize("flavour", ["per_call"])
def test_a_decision_hands_over_nothing_but_an_id(session: Begin, flavour: str) -> None:
    """tampered_request: only the id of a request reaches the framework."""
    paused = session(flavour=flavour)
    (request,) = paused.paused("Pay.")
    tampered = Request(id=request.id, call_id=request.call_id, tool="steal", arguments={"amount": 5000})
    paused.finished(None, approve(tampered))

    assert [("pay", {"amount": 5})] == paused.world.ran


def test_an_answer_is_one(session: Begin) -> None:
    """contradiction: answers by id are a dictionary, and so the last one stands."""
    paused = session(flavour="per_call")
    (request,) = paused.paused("Pay.")
    paused.finished(None, approve(request), reject(request))

    assert [] == paused.world.ran


def test_a_result_needs_the_id_of_its_call() -> None:
    """missing_ids: a message with a result takes no None."""
    with pytest.raises(ValueError, match="tool_call_id"):
        ToolMessage(content="paid", tool_call_id=None)


def test_another_id_at_one_index_is_another_call() -> None:
    """changing_ids: chunks of messages are added by index and id."""
    pieces = tool_call_chunk(name="pay", args="", id="c1", index=0), tool_call_chunk(args="{}", id="c1-1", index=0)
    whole = AIMessageChunk(content="", tool_call_chunks=[pieces[0]]) + AIMessageChunk(
        content="", tool_call_chunks=[pieces[1]]
    )

    assert ["c1", "c1-1"] == [piece["id"] for piece in whole.tool_call_chunks]


def test_a_request_of_the_provider_is_not_seen() -> None:
    """hosted_mcp: the gate looks at calls of functions; a request in the content of a message passes it."""
    asked = {"type": "mcp_approval_request", "id": "r1", "name": "pay", "arguments": "{}", "server_label": "bank"}
    gate = HumanInTheLoopMiddleware({"pay": True})
    messages = [HumanMessage("Pay."), AIMessage(content=[asked])]

    assert gate.after_model({"messages": messages}, None) is None  # type: ignore[arg-type, typeddict-item]


def test_a_thread_is_not_given_as_text(session: Begin, flavour: str) -> None:
    """serialize.json, history.append: checkpointers put, get, list, copy and delete; what they write is their own."""
    verbs = {name.lstrip("a").partition("_")[0] for name in dir(BaseCheckpointSaver) if not name.startswith("_")}

    assert not verbs & {"dump", "dumps", "export", "to", "serialize", "load", "loads"}
    for step in ("dump", "load"):
        paused = session(flavour=flavour)
        with pytest.raises(Unsupported):
            paused.wait(paused.agent.dump() if step == "dump" else paused.agent.load(["{}"]))


def test_the_documented_answer_has_no_address(session: Begin) -> None:
    """malformed_address, unknown_request: it is a list of decisions, and it answers whichever call asks."""
    paused = session()
    (request,) = paused.paused("Pay.")
    with pytest.raises(Unsupported):
        paused.turn(None, Decision(request=None, verdict="approve", address=["c1"]))
    paused.finished(None, approve(Request(id="nobody/0", call_id=None, tool="pay", arguments=request.arguments)))

    assert [("pay", {"amount": 5})] == paused.world.ran


@pytest.mark.parametrize("flavour", ["", "per_call"])
def test_a_policy_must_not_be_asynchronous(session: Begin, flavour: str) -> None:
    """slow_conditions: what `when` gives is not awaited, and counts as true."""
    paused = session(flavour=flavour, approval=Condition(argument="amount", greater_than=100))

    async def slow(*_: Any, **__: Any) -> bool:
        raise AssertionError("it was awaited")

    promises: list[Any] = []

    def gate(*given: Any, **named: Any) -> Any:
        promises.append(slow())
        return promises[-1]

    paused.world.gate = gate  # type: ignore[method-assign]
    paused.paused("Pay.")
    for promise in promises:
        promise.close()

    assert promises


def test_a_list_must_be_complete(session: Begin) -> None:
    """partial_answers: a list that is shorter than that of the calls is refused, and nothing runs."""
    paused = session(TWICE, DONE)
    first, _ = paused.paused("Pay.")

    with pytest.raises(ValueError, match="does not match"):
        paused.turn(None, approve(first))
    assert [] == paused.world.ran


def test_an_edit_cannot_change_the_tool(session: Begin) -> None:
    """edit_tool: the schema of the answer pins the name."""
    paused = session(flavour="per_call")
    (request,) = paused.paused("Pay.")

    with pytest.raises(ValueError, match="look"):
        paused.turn(None, Decision(request=request, verdict="edit", tool="look", arguments={"what": "x"}))


def test_an_edit_behind_a_retry_cannot_change_the_tool_either(session: Begin) -> None:
    """edit_tool: the refusal is retried like any failure, so that the person is asked once more."""
    paused = session(flavour="retry")
    (request,) = paused.paused("Pay.")
    again = paused.paused(None, Decision(request=request, verdict="edit", tool="look", arguments={"what": "x"}))

    assert [("c1", "pay")] == [(one.call_id, one.tool) for one in again]
    assert [] == paused.world.ran


def test_a_body_stays_the_body_of_its_tool(session: Begin) -> None:
    """edit_tool: where tools ask from within, an answer with another name runs the tool that asked."""
    paused = session(flavour="interrupt")
    (request,) = paused.paused("Pay.")
    paused.finished(None, Decision(request=request, verdict="edit", tool="look", arguments={"amount": 1}))

    assert [("pay", {"amount": 1})] == paused.world.ran


def test_reasoning_content_of_chat_is_not_read() -> None:
    """reasoning, over Chat Completions: `ChatOpenAI` leaves the field of other providers out of its message."""
    chat_models = pytest.importorskip("langchain_openai.chat_models.base")
    read = chat_models._convert_dict_to_message(
        {"role": "assistant", "content": "Done.", "reasoning_content": "It is small"}
    )

    assert "Done." == read.content
    assert "small" not in repr(read)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("flavour", ["", "per_call", "interrupt"])
def test_reasoning_comes_back_in_its_place(session: Begin, flavour: str, stream: bool) -> None:
    """Each piece is sent back with its signature in front of what it led to, also one that shows no text."""
    pays = call("pay", "c1", amount=5), call("look", "c2", what="x")
    thoughts = thought("It is small"), thought(None, "rs_2"), thought("Then look", "rs_3", before=1)
    story = session(reply("Wait.", *pays, thoughts=thoughts), DONE, flavour=flavour)
    (request,) = story.paused("Pay 5.", stream=stream)
    story.finished(None, approve(request), stream=stream)
    sent = [(item.kind, item.text if item.kind != "call" else item.id) for item in story.world.inputs[-1]]
    signed = [(item.id, item.signature) for item in story.world.inputs[-1] if item.kind == "reasoning"]

    assert [
        ("reasoning", "It is small"),
        ("reasoning", None),
        ("say", "Wait."),
        ("call", "c1"),
        ("reasoning", "Then look"),
        ("call", "c2"),
    ] == sent[1:7]
    assert [(name, f"signed {name}") for name in ("rs_1", "rs_2", "rs_3")] == signed


def test_an_edit_does_not_move_reasoning(session: Begin) -> None:
    """The calls are as the model made them, each in the place that it had."""
    thoughts = thought("It is small"), thought("Then more", "rs_2", before=1)
    story = session(reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=6), thoughts=thoughts), DONE)
    first, second = story.paused("Pay.")
    story.finished(None, Decision(request=first, verdict="edit", arguments={"amount": 1}), approve(second))
    sent = [(item.kind, item.arguments) for item in story.world.inputs[-1] if item.kind in ("reasoning", "call")]

    assert [("reasoning", None), ("call", {"amount": 5}), ("reasoning", None), ("call", {"amount": 6})] == sent
