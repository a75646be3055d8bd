"""Tools of every kind, as the SDK validates, gates and runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agents.exceptions import UserError

from pytest_approvals.agent_side.adapters.openai_agents import ChatAgents, SessionAgents
from pytest_approvals.agent_side.contract import (
    Condition,
    ConditionRaised,
    HostedResult,
    ModelCall,
    Parameter,
    ToolRaised,
    ToolSpec,
)
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reject, reply, tool

Begin = Callable[..., AdapterSession]

DONE = reply("Done.")
BIG = Condition(argument="amount", greater_than=10)


def with_default(approval: Any = "never") -> ToolSpec:
    parameters = {"amount": Parameter(type="integer"), "note": Parameter(required=False, default="none")}
    return ToolSpec(name="pay", description="Pays.", parameters=parameters, approval=approval)


class TestArguments:
    def test_they_are_coerced_and_completed(self, begin: Begin) -> None:
        """The body gets what the SDK's validation makes of them: defaults in, unknown ones out."""
        session = begin(reply(None, call("pay", amount="5", more=1)), DONE, tools=[with_default()])
        session.finished("Pay.")

        assert [("pay", {"amount": 5, "note": "none"})] == session.world.ran

    @pytest.mark.parametrize("arguments", ['{"amount": "many"}', "[5]", '{"amount": ', "null", "{}"])
    def test_what_does_not_fit_enters_no_body(self, begin: Begin, arguments: str) -> None:
        """The model is told that something is wrong."""
        broken = reply(None, ModelCall(id="c1", tool="pay", arguments=arguments))
        session = begin(broken, DONE, tools=[with_default()])
        session.finished("Pay.")

        assert ([], 1) == (session.world.ran, len(session.world.told()))

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("string", "a"),
            ("integer", 5),
            ("number", 0.5),
            ("boolean", True),
            ("array", [1, "a"]),
            ("object", {"a": 1}),
        ],
    )
    def test_every_type_can_be_declared(self, begin: Begin, kind: str, value: Any) -> None:
        """A value of the type reaches the body as it is."""
        session = begin(reply(None, call("take", value=value)), DONE, tools=[tool("take", value=kind)])
        session.finished("Take.")

        assert [("take", {"value": value})] == session.world.ran

    def test_the_model_is_offered_the_declared_schema(self, begin: Begin) -> None:
        """Types, required parameters and defaults are those of the spec."""
        (offered,) = begin(tools=[with_default()]).agent._agents.main.tools
        properties = offered.params_json_schema["properties"]

        assert (["amount"], "integer", "none") == (
            offered.params_json_schema["required"],
            properties["amount"]["type"],
            properties["note"]["default"],
        )


class TestResults:
    @pytest.mark.parametrize(
        ("value", "told"), [("text", "text"), ({"a": [1, None]}, "{'a': [1, None]}"), (None, "None")]
    )
    def test_any_value_is_told_as_text(self, begin: Begin, value: Any, told: str) -> None:
        """The SDK writes what is no text as Python does."""
        session = begin(reply(None, call("look", what="a")), DONE, results={"look": value})
        session.finished("Look.")

        assert [told] == session.world.told()

    def test_a_tool_that_raises_is_told_about(self, begin: Begin) -> None:
        """The SDK's default says that there was an error, not which."""
        session = begin(reply(None, call("look", what="a")), DONE, results={"look": ToolRaised("no such thing")})
        session.finished("Look.")

        assert ["An error occurred while running the tool. Please try again."] == session.world.told()


class TestPolicies:
    def test_a_policy_is_asked_about_the_arguments(self, begin: Begin) -> None:
        """It is asked once a call, and decides alone."""
        both = reply(None, call("pay", "c1", amount=5), call("pay", "c2", amount=50))
        session = begin(both, DONE, tools=[tool("pay", BIG, amount="integer")])
        (request,) = session.paused("Pay.")

        assert ("c2", 2) == (request.call_id, len(session.world.gates))

    @pytest.mark.parametrize("arguments", ["[5]", '{"amount": ', '{"amount": NaN}', '{"amount": "5"}', '{"amount": 5}'])
    def test_what_a_policy_cannot_be_shown_waits(self, begin: Begin, arguments: str) -> None:
        """No object, a value to be coerced, a default to be filled in: the SDK asks the human, not the policy."""
        given = reply(None, ModelCall(id="c1", tool="pay", arguments=arguments))
        session = begin(given, tools=[with_default(BIG)])
        session.paused("Pay.")

        assert [] == session.world.gates

    def test_a_policy_that_raises_fails_the_turn(self, begin: Begin) -> None:
        """Nothing runs."""

        class Raises(FakeWorld):
            def gate(self, *_: Any, **__: Any) -> bool:
                raise ConditionRaised("no answer")

        session = begin(reply(None, call("pay", amount=5)), tools=[tool("pay", BIG, amount="integer")])
        session.world = session.agent.world = Raises(session.world.replies, [])
        with pytest.raises(UserError, match="no answer"):
            session.turn("Pay.")

        assert [] == session.world.ran

    def test_a_condition_that_waits_is_asked_asynchronously(self, begin: Begin) -> None:
        """The policy of the SDK may wait."""
        slow = replace(BIG, waits_for="go")
        session = begin(reply(None, call("pay", amount=50)), tools=[tool("pay", slow, amount="integer")])
        asked: list[str] = []

        async def gate_slowly(name: str, *_: Any, **__: Any) -> bool:
            asked.append(name)
            return True

        session.world.gate_slowly = gate_slowly
        session.paused("Pay.")

        assert ["pay"] == asked


FIND = ToolSpec(name="find", parameters={"q": Parameter()}, approval="always", kind="mcp", server="docs")
READ = replace(FIND, name="read", approval="never")


class TestLocalServers:
    def test_gated_calls_of_a_server_wait(self, begin: Begin) -> None:
        """The request names the server; the others run at once."""
        both = reply(None, call("find", "c1", q="a"), call("read", "c2", q="b"))
        session = begin(both, DONE, tools=[FIND, READ], results={"find": {"hits": 1}})
        (request,) = session.paused("Find.")
        session.finished(None, approve(request))

        assert ("mcp", "docs", "find") == (request.kind, request.server, request.tool)
        assert ["ok", '{"hits": 1}'] == session.world.told()

    def test_they_wait_after_a_restart(self, begin: Begin) -> None:
        """The stored run finds its server again."""
        session = begin(reply(None, call("find", q="a")), DONE, tools=[FIND], serialize="json")
        before = session.paused("Find.")
        session.restart()
        after = session.pending()
        session.finished(None, approve(after[0]))

        assert (before, [("find", {"q": "a"})]) == (after, session.world.ran)

    def test_a_tool_of_a_server_that_fails_is_a_result(self, begin: Begin) -> None:
        """It says so in its text, as servers do."""
        session = begin(reply(None, call("read", q="a")), DONE, tools=[READ], results={"read": ToolRaised("gone")})
        session.finished("Read.")

        assert ["gone"] == session.world.told()

    def test_its_policy_is_shown_no_arguments(self, begin: Begin) -> None:
        """A condition on an argument cannot be judged, and asks for every call."""
        session = begin(reply(None, call("find", q="a")), tools=[replace(FIND, approval=BIG)])
        session.paused("Find.")

        assert [("find", None)] == session.world.gates


SEARCH = replace(FIND, name="search", kind="hosted_mcp")
ASKS = reply(None, replace(call("search", "r1", q="a"), kind="hosted_mcp", server="docs"))
FOUND = HostedResult(call_id="r1", tool="search", server="docs", arguments={"q": "a"}, output="found")


class TestHostedServers:
    @pytest.mark.parametrize("adapter", [None, SessionAgents])
    @pytest.mark.parametrize("stream", [False, True])
    def test_an_approval_goes_out_with_the_next_input(self, begin: Begin, adapter: Any, stream: bool) -> None:
        """The provider runs the call and reports it with its next reply."""
        more = {} if adapter is None else {"adapter": adapter}
        session = begin(ASKS, replace(DONE, hosted=(FOUND,)), DONE, tools=[SEARCH], serialize="json", **more)
        before = session.paused("Search.", stream=stream)
        session.restart()
        (request,) = after = session.pending()
        session.finished(None, approve(request), stream=stream)
        answered = [(item.kind, item.id, item.approved) for item in session.world.inputs[-1]][1:]
        session.finished("Thanks.", stream=stream)

        assert before == after
        assert [("approval_request", "r1", None), ("approval_response", "r1", True)] == answered
        assert ("hosted_result", "r1", "found") in [
            (item.kind, item.id, item.text) for item in session.world.inputs[-1]
        ]

    def test_a_rejection_carries_its_reason(self, begin: Begin) -> None:
        """The provider is told no, and why."""
        session = begin(ASKS, DONE, tools=[SEARCH])
        (request,) = session.paused("Search.")
        session.finished(None, reject(replace(request, handle=None), "not now"))
        response = session.world.inputs[-1][-1]

        assert (False, "not now") == (response.approved, response.text)

    def test_the_stream_shows_the_request(self, begin: Begin) -> None:
        """A hosted call is the one kind whose request has an event."""
        session = begin(ASKS, tools=[SEARCH])
        session.paused("Search.", stream=True)

        assert ("request", {"id": "r1", "tool": "search"}) in session.world.seen

    def test_the_provider_is_told_what_is_gated(self, begin: Begin) -> None:
        """One hosted tool a server, with a list of names each way."""
        session = begin(tools=[SEARCH, replace(SEARCH, name="peek", approval="never")])
        (hosted,) = session.agent._agents.main.tools

        assert {"always": {"tool_names": ["search"]}, "never": {"tool_names": ["peek"]}} == hosted.tool_config[
            "require_approval"
        ]

    def test_chat_completions_has_none(self) -> None:
        """The SDK's own model class for it refuses, which is why the flavour does not claim them."""
        assert "hosted_mcp" in ChatAgents.missing


def test_an_agent_that_is_a_tool_can_be_gated_twice(begin: Begin) -> None:
    """The call of the agent waits, and then the call that the agent makes."""
    ask = ToolSpec(name="ask", parameters={"input": Parameter()}, approval="always", runs="helper")
    pay = replace(tool("pay", "always", amount="integer"), agent="helper")
    asks, pays = reply(None, call("ask", "o1", input="x")), reply(None, call("pay", "i1", amount=1))
    session = begin(asks, pays, reply("Inner."), DONE, tools=[ask, pay])
    (outer,) = session.paused("Go.")
    (inner,) = session.paused(None, approve(outer))
    session.finished(None, approve(inner))

    assert (("ask", "main"), ("pay", "helper")) == ((outer.tool, outer.agent), (inner.tool, inner.agent))
    assert ["Inner."] == session.world.told()
