"""A user's own agents: discovery, runs and clean-up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from pytest_approvals import approve_all, calls, say
from pytest_approvals.agent_side.adapters.langgraph.attach import attach_agents
from pytest_approvals.agent_side.contract import Attachment, Unsupported
from pytest_approvals.errors import UsageError
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

REFUNDS = reply(None, call("refund", order=42))
DONE = reply("Done.")
GATE = HumanInTheLoopMiddleware({"refund": True})


class Model(FakeListChatModel):
    """A user's own model."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self.bind(tools=[{"type": "function", "function": {"name": tool.name}} for tool in tools])


def make_model() -> Model:
    return Model(responses=["The real model answers."])


@tool
def refund(order: int, runtime: ToolRuntime) -> str:
    """Refunds an order."""
    return f"refunded {order} for {runtime.tool_call_id}"


@tool
async def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


@tool
def send_mail(to: str) -> str:
    """Sends a mail."""
    raise RuntimeError(f"a mail to {to}")


@tool
def wipe(disk: str) -> str:
    """Wipes a disk, and asks by itself."""
    answer = interrupt({"name": "wipe", "args": {"disk": disk}})
    return f"wiped {disk}" if answer["type"] == "approve" else "kept"


def make_agent(model: Any = None, **more: Any) -> Any:
    gate = HumanInTheLoopMiddleware({"refund": True, "look": False}, **more)
    return create_agent(model or make_model(), [refund, look, send_mail, wipe], middleware=[gate])


class TestFinding:
    def test_what_the_framework_marks_is_found(self, attach: Attach) -> None:
        """Every tool is listed with its parameters, and with whether the middleware gates it."""
        found = {spec.name: spec for spec in attach(make_agent()).agent.tools()}

        assert {"refund": "always", "look": "never", "send_mail": "never", "wipe": "never"} == {
            name: spec.approval for name, spec in found.items()
        }
        assert ["order"] == list(found["refund"].parameters)
        assert (False, 3) == (found["look"].parameters["limit"].required, found["look"].parameters["limit"].default)

    def test_a_policy_of_the_persons_own_is_not_foretold(self, attach: Attach) -> None:
        """What `when` will say is not known before it is asked."""
        gate = HumanInTheLoopMiddleware({"look": {"allowed_decisions": ["approve"], "when": lambda _: True}})
        (found,) = attach(create_agent(make_model(), [look], middleware=[gate])).agent.tools()

        assert "never" == found.approval

    def test_a_graph_without_a_model_is_refused(self) -> None:
        """The person is told what to hand over instead."""
        graph = StateGraph(MessagesState).add_node("nothing", lambda state: {}).add_edge(START, "nothing").compile()

        with pytest.raises(Unsupported, match="hand over a factory"):
            attach_agents(Attachment(subject=graph))


class TestRunning:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("subject", [make_agent, make_agent()], ids=["factory", "agent"])
    def test_a_real_tool_runs_after_its_approval(self, attach: Attach, subject: Any, stream: bool) -> None:
        """The scripted model replaces theirs; their tool's own result reaches it."""
        session = attach(subject, REFUNDS, DONE)
        (request,) = session.paused("Refund 42.", stream=stream)

        assert "Done." == session.finished(None, approve(request), stream=stream)
        assert ([("refund", {"order": 42})], ["refunded 42 for c1"]) == (session.world.ran, session.world.told())

    def test_a_rejected_call_does_not_reach_the_real_tool(self, attach: Attach) -> None:
        """The world sees no run at all."""
        session = attach(make_agent(), REFUNDS, DONE)
        session.finished(None, reject(session.paused("Refund 42.")[0], "over the limit"))

        assert ([], True) == (session.world.ran, "over the limit" in session.world.told()[0])

    def test_each_call_can_be_asked_about(self, attach: Attach) -> None:
        """The flavour says how a person's agent is answered."""
        session = attach(make_agent(interrupt_mode="per_call"), REFUNDS, DONE, flavour="per_call")
        (request,) = session.paused("Refund 42.")
        session.finished(None, approve(request))

        assert ("c1", ["refund"]) == (request.call_id, session.world.real)

    def test_a_tool_that_asks_by_itself_is_entered_twice(self, attach: Attach) -> None:
        """The framework starts a body again that waits for an answer, and so the world is told."""
        session = attach(make_agent(), reply(None, call("wipe", disk="a")), DONE, flavour="interrupt")
        (request,) = session.paused("Wipe a.")
        session.finished(None, approve(request))

        assert ("wipe", {"disk": "a"}) == (request.tool, request.arguments)
        assert (2, ["wiped a"]) == (len(session.world.ran), session.world.told())

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

    def test_the_model_is_offered_the_persons_tools(self, attach: Attach) -> None:
        """What they bound to their model is bound still."""
        offered: list[Any] = []
        session = attach(make_agent(), DONE)
        ask = session.world.model

        async def model(items: Any, *, tools: Any = (), **more: Any) -> Any:
            offered.append(list(tools))
            return await ask(items, tools=tools, **more)

        session.world.model = model
        session.finished("Hello.")

        assert [["refund", "look", "send_mail", "wipe"]] == offered

    def test_the_graph_goes_on_from_a_store(self, attach: Attach) -> None:
        """Another agent object restores the thread from the file."""
        session = attach(make_agent, REFUNDS, DONE, serialize="native.sqlite")
        session.paused("Refund 42.")
        session.restart()
        session.finished(None, approve(session.pending()[0]))

        assert ["refund"] == session.world.real


class TestLeaving:
    def test_the_agent_is_left_as_it_was(self, attach: Attach) -> None:
        """Model and tools are their own again when the session is closed."""
        agent = make_agent()
        session = attach(agent, DONE)
        session.finished("Hello.")
        session.wait(session.agent.close())
        asked = {"messages": [{"role": "user", "content": "Hello."}]}
        done = session.wait(agent.ainvoke(asked))

        assert "The real model answers." == done["messages"][-1].content
        assert "a 3" == session.wait(look.ainvoke({"name": "a"}))

    def test_a_persons_own_checkpointer_is_used(self, attach: Attach) -> None:
        """The thread is in their store, under a name of its own."""
        saver = InMemorySaver()
        gate = HumanInTheLoopMiddleware({"refund": True})
        session = attach(create_agent(make_model(), [refund], middleware=[gate], checkpointer=saver), REFUNDS)
        session.paused("Refund 42.")

        assert 1 == len(saver.storage)


class TestBlocking:
    def test_a_tool_invokes_a_graph_without_awaiting_it(self, approvals: Any) -> None:
        """A blocking body asks on the turn's event loop; one that blocks that loop asks on another."""

        def build(model: Any) -> Any:
            auditor = create_agent(model, [look])

            @tool
            def audit(order: int) -> str:
                """Audits an order."""
                question = {"messages": [{"role": "user", "content": f"Audit {order}"}]}
                return str(auditor.invoke(question)["messages"][-1].content)

            @tool
            async def audit_later(order: int) -> str:
                """Audits an order, and blocks the event loop."""
                return str("".join(chunk.text for chunk in model.stream(f"Audit {order}")))

            return create_agent(model, [audit, audit_later])

        model = [calls("audit", order=1), say("fine"), calls("audit_later", order=2), say("late"), say("Done.")]
        run = approvals.run(build, model=model)

        assert ["fine"] == [execution.result for execution in run.calls["audit"].executions]
        assert ["late"] == [execution.result for execution in run.calls["audit_later"].executions]

    def test_a_blocking_checkpointer_is_used(self, approvals: Any) -> None:
        """A `SqliteSaver` cannot be awaited; each run has a thread of its own in it."""
        saver = SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False))
        graph = create_agent(make_model(), [refund], middleware=[GATE], checkpointer=saver)
        for _ in range(2):
            run = approvals.run(graph, model=[calls("refund", order=42), say("Done.")], oracle=approve_all())
            assert 1 == len(run.calls["refund"].executions)

        assert 2 == len({found.config["configurable"]["thread_id"] for found in saver.list(None)})
        saver.conn.close()


class TestConfig:
    @pytest.mark.parametrize("stream", [False, True])
    def test_the_users_config_is_merged(self, approvals: Any, stream: bool) -> None:
        """Its values reach the tools; the thread is one of the run's own."""
        seen: list[Any] = []

        @tool
        def whoami(config: RunnableConfig) -> str:
            """Tells who asks."""
            seen.append((config["configurable"]["user"], config["configurable"]["thread_id"]))
            return "you"

        config = {"configurable": {"user": "ann", "thread_id": "7"}, "recursion_limit": 30}
        approvals.run(
            lambda model: create_agent(model, [whoami]),
            model=[calls("whoami"), say("Ann.")],
            run_options={"config": config},
            stream=stream,
        )

        ((user, thread),) = seen
        assert "ann" == user
        assert "7" != thread

    def test_a_config_that_is_no_mapping_is_refused(self, approvals: Any) -> None:
        """With what it is, before the graph runs."""
        with pytest.raises(UsageError, match="config in run_options is 'ann'; expected a mapping"):
            approvals.run(make_agent, model=[say("Hello.")], run_options={"config": "ann"})

    def test_json_names_the_modes_that_exist(self, approvals: Any) -> None:
        """A thread lives in a checkpointer, so the message offers the stores."""
        with pytest.raises(UsageError, match=r"it can do none, copy, native\.sqlite"):
            approvals.run(make_agent, model=[say("Hello.")], serialize="json")
