"""How turns begin, what decisions do, and what is kept between turns and after a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from agents import MaxTurnsExceeded
from agents.exceptions import ModelBehaviorError, UserError
from openai import InternalServerError

from pytest_approvals.agent_side.adapters.openai_agents import FLAVOURS, ChatAgents, OpenAIAgents, SessionAgents
from pytest_approvals.agent_side.contract import Decision, Item, Limits, ModelDown, Paused, Request, Unsupported
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reject, reply

Begin = Callable[..., AdapterSession]

DONE = reply("Done.")
PAYS = reply(None, call("pay", amount=5))
PAYS_TWICE = reply("Two.", call("pay", "c1", amount=1), call("pay", "c2", amount=2))

every_flavour = pytest.mark.parametrize("adapter", FLAVOURS.values(), ids=[name or "default" for name in FLAVOURS])
streamed_and_not = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


def decision(request: Request | None, verdict: Any, **more: Any) -> Decision:
    return Decision(request=request, verdict=verdict, **more)


def story_of(items: Sequence[Item]) -> list[str]:
    return [f"{item.kind} {item.id or item.text}" for item in items]


def amounts(session: AdapterSession) -> list[int]:
    return [arguments["amount"] for _, arguments in session.world.ran]


class TestDecisions:
    @every_flavour
    @streamed_and_not
    def test_each_verdict_is_put_into_the_run(self, begin: Begin, adapter: type[Agent], stream: bool) -> None:
        """Approved calls run, a rejected one is answered with the reason."""
        session = begin(PAYS_TWICE, DONE, adapter=adapter)
        first, second = session.paused("Pay.", stream=stream)
        session.finished(None, reject(first, "not this one"), approve(second), stream=stream)

        assert ([2], ["not this one", "ok"]) == (amounts(session), session.world.told())

    def test_always_reaches_the_calls_to_come(self, begin: Begin) -> None:
        """The next call of the tool runs unasked."""
        session = begin(PAYS, reply(None, call("pay", "c2", amount=6)), DONE)
        (request,) = session.paused("Pay.")
        session.finished(None, decision(request, "always"))

        assert [5, 6] == amounts(session)

    def test_never_reaches_the_calls_to_come(self, begin: Begin) -> None:
        """The next call of the tool is answered with the same reason."""
        session = begin(PAYS, reply(None, call("pay", "c2", amount=6)), DONE)
        (request,) = session.paused("Pay.")
        session.finished(None, decision(request, "never", reason="stop"))

        assert ([], ["stop", "stop"]) == (amounts(session), session.world.told())

    def test_the_rest_stays_pending(self, begin: Begin) -> None:
        """What is answered goes on, and the model waits for the rest."""
        session = begin(PAYS_TWICE, DONE)
        _, second = session.paused("Pay.")
        outcome = session.turn(None, approve(second))

        assert isinstance(outcome, Paused)
        assert (("c1",), "Two.", [2], 1) == (
            tuple(request.id for request in outcome.requests),
            outcome.text,
            amounts(session),
            len(session.world.inputs),
        )

    def test_the_last_of_two_decisions_counts(self, begin: Begin) -> None:
        """They go in one after the other, as the caller gave them."""
        session = begin(PAYS, DONE)
        (request,) = session.paused("Pay.")
        session.finished(None, approve(request), reject(request))

        assert [] == amounts(session)

    @every_flavour
    def test_staged_decisions_survive_a_restart(self, begin: Begin, adapter: type[Agent]) -> None:
        """They are in the state that is stored, and going on carries them out."""
        session = begin(PAYS, DONE, adapter=adapter, serialize="json")
        (request,) = session.paused("Pay.")
        session.wait(session.agent.stage([approve(request)]))
        ran_before = amounts(session)
        session.restart()
        session.finished(None)

        assert ([], [5]) == (ran_before, amounts(session))

    @pytest.mark.parametrize(
        ("verdict", "capability"), [("edit", "edit"), ("raw", "malformed_verdict")], ids=["edit", "raw"]
    )
    def test_what_the_sdk_cannot_decide_is_refused(self, begin: Begin, verdict: Any, capability: str) -> None:
        """The adapter emulates nothing."""
        session = begin(PAYS)
        (request,) = session.paused("Pay.")
        with pytest.raises(Unsupported) as refused:
            session.turn(None, decision(request, verdict))

        assert capability == refused.value.capability


class TestAddresses:
    @pytest.mark.parametrize("source", ["restored", "rebuilt"])
    def test_a_restored_request_can_be_answered(self, begin: Begin, source: str) -> None:
        """From the object in the restored state, or from its JSON."""
        session = begin(PAYS, DONE, serialize="json")
        session.paused("Pay.")
        session.restart()
        (request,) = session.pending()
        session.finished(None, approve(request if source == "restored" else replace(request, handle=None)))

        assert [5] == amounts(session)

    def test_requests_of_parallel_agents_are_told_apart(self, begin: Begin) -> None:
        """Equal call ids of two runs of one agent are addressed by what the request shows."""
        from pytest_approvals.agent_side.contract import Parameter, ToolSpec
        from pytest_approvals.testing import tool

        ask = ToolSpec(name="ask", parameters={"input": Parameter()}, runs="helper")
        pay = replace(tool("pay", "always", amount="integer"), agent="helper")
        one, two = reply(None, call("pay", "i1", amount=1)), reply(None, call("pay", "i1", amount=2))
        both = reply(None, call("ask", "o1", input="one"), call("ask", "o2", input="two"))
        session = begin(both, one, two, DONE, DONE, DONE, tools=(ask, pay), serialize="json")
        session.paused("Go.")
        session.restart()
        first, second = (replace(request, handle=None) for request in session.pending())
        session.finished(None, approve(second), reject(first))

        assert ([2], ["helper", "helper"]) == (amounts(session), [first.agent, second.agent])

    def test_an_unknown_id_goes_in_as_an_item_of_its_own(self, begin: Begin) -> None:
        """The SDK takes it without a sound; nothing runs, and the right answer works afterwards."""
        session = begin(PAYS, DONE)
        (request,) = session.paused("Pay.")
        stray = Request(id="nobody", call_id="nobody", tool="", arguments={})
        after = session.paused(None, approve(stray))
        session.finished(None, approve(request))

        assert ((request,), [5]) == (after, amounts(session))

    def test_a_request_with_other_arguments_goes_in_as_it_is(self, begin: Begin) -> None:
        """The SDK compares it with the call, and refuses."""
        session = begin(PAYS, DONE)
        (request,) = session.paused("Pay.")
        tampered = replace(request, arguments={"amount": 500}, handle=None)
        with pytest.raises(ModelBehaviorError, match="a different invocation"):
            session.turn(None, approve(tampered))

        assert [] == amounts(session)

    def test_an_address_goes_in_verbatim(self, begin: Begin) -> None:
        """Whatever is no item fails in `RunState.approve`, before anything runs."""
        session = begin(PAYS)
        session.paused("Pay.")
        with pytest.raises(AttributeError):
            session.turn(None, decision(None, "approve", address="c1"))

        assert 1 == len(session.pending())


class TestMessages:
    @every_flavour
    def test_the_next_message_follows_the_history(self, begin: Begin, adapter: type[Agent]) -> None:
        """Each turn sees all that came before."""
        session = begin(PAYS, DONE, reply("Again."), adapter=adapter)
        session.finished(None, approve(session.paused("Pay.")[0]))
        session.finished("And now?")

        assert ["user Pay.", "call c1", "result c1", "say Done.", "user And now?"] == story_of(session.world.inputs[-1])

    @every_flavour
    def test_a_message_with_the_answers_comes_after_the_results(self, begin: Begin, adapter: type[Agent]) -> None:
        """It is put into the paused run."""
        session = begin(PAYS, DONE, adapter=adapter)
        (request,) = session.paused("Pay.")
        session.finished("And hurry.", approve(request))

        assert ["user Pay.", "call c1", "result c1", "user And hurry."] == story_of(session.world.inputs[-1])

    def test_a_list_with_a_pending_call_goes_out_as_the_sdk_gives_it(self, begin: Begin) -> None:
        """`to_input_list` of a paused run holds the call without a result."""
        session = begin(PAYS, DONE)
        session.paused("Pay.")
        session.finished("Never mind.")

        assert ["user Pay.", "call c1", "user Never mind."] == story_of(session.world.inputs[-1])

    def test_a_session_leaves_the_pending_call_out(self, begin: Begin) -> None:
        """The run that waits can still be decided during a newer one; its result goes behind the newer messages."""
        session = begin(PAYS, DONE, reply("Paid."), reply("Next."), adapter=SessionAgents)
        (request,) = session.paused("Pay.")
        session.finished("Never mind.")
        left_out = story_of(session.world.inputs[-1])
        late = session.finished(None, approve(request))
        session.finished("Next?")

        assert (["user Pay.", "user Never mind."], "Paid.", [5]) == (left_out, late, amounts(session))
        assert ["result c1", "say Paid.", "user Next?"] == story_of(session.world.inputs[-1])[-3:]

    def test_a_paused_run_beside_a_newer_one_survives_a_restart(self, begin: Begin) -> None:
        """The decision finds the run that it is about, though it is not what is pending now."""
        session = begin(PAYS, DONE, reply("Paid."), adapter=SessionAgents, serialize="native.sqlite")
        (request,) = session.paused("Pay.")
        session.finished("Never mind.")
        session.restart()
        pending = session.pending()
        session.finished(None, approve(replace(request, handle=None)))

        assert ((), [5]) == (pending, amounts(session))

    @every_flavour
    def test_going_on_without_an_answer_changes_nothing(self, begin: Begin, adapter: type[Agent]) -> None:
        """The same requests are open, and the model was not asked."""
        session = begin(PAYS, adapter=adapter)
        before = session.paused("Pay.")

        assert (before, 1) == (session.paused(None), len(session.world.inputs))

    def test_a_decision_after_the_end_is_handed_in(self, begin: Begin) -> None:
        """The finished run's state takes it; what the SDK makes of it is its own business."""
        session = begin(PAYS, DONE, reply("Again."))
        (request,) = session.paused("Pay.")
        session.finished(None, approve(request))
        session.finished(None, approve(request))

        assert [5] == amounts(session)

    def test_nothing_can_be_decided_before_a_run_has_ended(self, begin: Begin) -> None:
        """There is no state to put a decision into."""
        stray = Request(id="c1", call_id="c1", tool="pay", arguments={})
        with pytest.raises(Unsupported, match="no RunState"):
            begin().turn(None, approve(stray))


class TestFailures:
    @every_flavour
    @streamed_and_not
    @pytest.mark.parametrize("restart", [False, True], ids=["live", "restarted"])
    def test_a_failed_first_run_is_begun_again(
        self, begin: Begin, adapter: type[Agent], stream: bool, restart: bool
    ) -> None:
        """The model is sent the same message, once."""
        session = begin(ModelDown(500), DONE, adapter=adapter, serialize="json")
        with pytest.raises(InternalServerError):
            session.turn("Go.", stream=stream)
        if restart:
            session.restart()
        session.finished(None, stream=stream)

        assert [["user Go."], ["user Go."]] == [story_of(items) for items in session.world.inputs]

    @every_flavour
    @streamed_and_not
    @pytest.mark.parametrize("restart", [False, True], ids=["live", "restarted"])
    def test_a_resumed_run_that_failed_does_not_run_the_tool_again(
        self, begin: Begin, adapter: type[Agent], stream: bool, restart: bool
    ) -> None:
        """Its state holds the result of what ran."""
        session = begin(PAYS, ModelDown(500), DONE, adapter=adapter, serialize="json")
        (request,) = session.paused("Pay.", stream=stream)
        with pytest.raises(InternalServerError):
            session.turn(None, approve(request), stream=stream)
        if restart:
            session.restart()
        session.finished(None, stream=stream)

        assert ([5], ["user Pay.", "call c1", "result c1"]) == (amounts(session), story_of(session.world.inputs[-1]))

    @every_flavour
    @pytest.mark.parametrize("restart", [False, True], ids=["live", "restarted"])
    def test_a_message_after_a_resumed_run_failed_finds_its_result(
        self, begin: Begin, adapter: type[Agent], restart: bool
    ) -> None:
        """Without a session it is put into the run, which alone knows the result; a session has stored it."""
        session = begin(PAYS, ModelDown(500), DONE, adapter=adapter, serialize="json")
        (request,) = session.paused("Pay.")
        with pytest.raises(InternalServerError):
            session.turn(None, approve(request))
        if restart:
            session.restart()
        session.finished("Well?")

        assert ["user Pay.", "call c1", "result c1", "user Well?"] == story_of(session.world.inputs[-1])

    @every_flavour
    @streamed_and_not
    def test_a_message_after_the_limit_finds_what_was_done(
        self, begin: Begin, adapter: type[Agent], stream: bool
    ) -> None:
        """The SDK's own error tells it."""
        looks = reply(None, call("look", what="a"))
        session = begin(looks, DONE, adapter=adapter, limits=Limits(model_replies=1))
        with pytest.raises(MaxTurnsExceeded):
            session.turn("Look.", stream=stream)
        session.finished("Well?", stream=stream)

        assert ["user Look.", "call c1", "result c1", "user Well?"] == story_of(session.world.inputs[-1])

    def test_messages_of_failed_runs_are_kept(self, begin: Begin) -> None:
        """The caller's list has the message even if the run failed."""
        session = begin(ModelDown(500), DONE)
        with pytest.raises(InternalServerError):
            session.turn("One.")
        session.finished("Two.")

        assert ["user One.", "user Two."] == story_of(session.world.inputs[-1])

    def test_a_run_that_is_over_takes_no_message_with_a_decision(self, begin: Begin) -> None:
        """`RunState.add_input` refuses, and the model is not asked."""
        session = begin(PAYS, DONE)
        (request,) = session.paused("Pay.")
        session.finished(None, approve(request))
        with pytest.raises(UserError, match="terminal"):
            session.turn("And?", approve(request))

        assert 2 == len(session.world.inputs)


class TestSessions:
    @every_flavour
    def test_two_sessions_record_in_their_own_worlds(self, begin: Begin, adapter: type[Agent]) -> None:
        """The same agents, models and tools serve both, in turns."""
        one = begin(PAYS, DONE, adapter=adapter)
        world = FakeWorld([reply(None, call("pay", amount=6)), DONE], (), {})
        world.tools = one.world.tools
        other = one.another_session(world)
        (first,) = one.paused("Pay 5.")
        second = one.wait(other.turn("Pay 6.", (), stream=False)).requests[0]
        one.finished(None, approve(first))
        one.wait(other.turn(None, [reject(second)], stream=False))
        one.wait(other.close())

        assert ([5], []) == (amounts(one), world.ran)

    def test_trimming_limits_what_a_new_run_gets(self, begin: Begin) -> None:
        """`SessionSettings.limit` counts items, and survives a restart."""
        session = begin(reply("One."), reply("Two."), DONE, adapter=SessionAgents, serialize="native.sqlite")
        session.finished("First.")
        session.finished("Second.")
        session.wait(session.agent.trim(2))
        session.restart()
        session.finished("Third.")

        assert ["user Second.", "say Two.", "user Third."] == story_of(session.world.inputs[-1])

    def test_over_chat_completions_an_agent_may_say_something_beside_its_calls(self, begin: Begin) -> None:
        """Text and calls of one reply are one message there."""
        session = begin(PAYS_TWICE, DONE, adapter=ChatAgents)
        session.finished(None, *map(approve, session.paused("Pay.")))
        items = session.world.inputs[-1]

        assert [0, 1, 1, 1, 2, 3] == [item.message for item in items]


def test_the_stream_shows_what_the_sdk_shows(begin: Begin) -> None:
    """Text, calls and results, and the end; a request for a function call is not among it."""
    session = begin(PAYS_TWICE, DONE)
    session.paused("Pay.", stream=True)

    assert [
        ("text", {"text": "Two."}),
        ("call", {"id": "c1", "tool": "pay"}),
        ("call", {"id": "c2", "tool": "pay"}),
        ("end", {}),
    ] == session.world.seen


def test_the_adapter_is_found_under_its_flavours() -> None:
    """The default one comes first."""
    assert ["", "session", "chat"] == list(FLAVOURS)
    assert FLAVOURS[""] is OpenAIAgents
