"""The tests of the conformance kit about turns: pausing, running, telling, streaming, failing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_approvals.agent_side.contract import ModelDown, ToolRaised
from pytest_approvals.testing.kit import DELETES, DONE, READS, Kit, requires, results, texts
from pytest_approvals.testing.story import Story, approve, reject
from pytest_approvals.testing.world import call, reply


class TurnTests(Kit):
    """What a turn must do."""

    def test_a_reply_without_calls_ends_the_turn(self, story: Callable[..., Story]) -> None:
        """The model is asked once, with the caller's message, and its text is the output."""
        session = story(DONE)

        assert "Done." == session.finished("Say something.")
        assert [["Say something."]] == [texts(items, "user") for items in session.world.inputs]

    def test_an_ungated_call_runs_and_its_result_is_told(self, story: Callable[..., Story]) -> None:
        """It runs once, with the model's arguments; the next input has its result under its id."""
        session = story(READS, DONE, results={"read_file": "text of a.txt"})

        assert "Done." == session.finished("Read a.txt.")
        assert [("read_file", {"path": "a.txt"})] == session.world.ran
        assert [("c1", "text of a.txt")] == results(session.world)

    def test_a_gated_call_pauses_before_it_runs(self, story: Callable[..., Story]) -> None:
        """The turn ends with a request that shows the call, and nothing has run."""
        session = story(DELETES)
        (request,) = session.paused("Delete a.txt.")

        assert ("delete_file", {"path": "a.txt"}) == (request.tool, request.arguments)
        assert request.call_id in ("c1", None)
        assert [] == session.world.ran

    def test_what_surfaced_is_pending(self, story: Callable[..., Story]) -> None:
        """`pending` lists the requests of the pause, and nothing before and after it."""
        session = story(DELETES, DONE)
        before = session.pending()
        surfaced = session.paused("Delete a.txt.")
        during = session.pending()
        session.finished(None, approve(surfaced[0]))

        assert ((), surfaced, ()) == (before, during, session.pending())

    def test_an_approved_call_runs_with_its_arguments(self, story: Callable[..., Story]) -> None:
        """It runs once, and the model is told its result."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")

        assert "Done." == session.finished(None, approve(request))
        assert [("delete_file", {"path": "a.txt"})] == session.world.ran
        assert ["c1"] == [call_id for call_id, _ in results(session.world)]

    def test_a_rejected_call_does_not_run(self, story: Callable[..., Story]) -> None:
        """The model is told something in place of its result."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, reject(request))

        assert [] == session.world.ran
        assert ["c1"] == [call_id for call_id, _ in results(session.world)]

    @requires("conditional_approval")
    def test_a_condition_is_asked(self, story: Callable[..., Story]) -> None:
        """`World.gate` decides whether a call waits."""
        small = story(reply(None, call("pay", amount=5)), DONE)
        large = story(reply(None, call("pay", amount=500)))
        small.finished("Pay 5.")
        large.paused("Pay 500.")

        assert ([("pay", {"amount": 5})], []) == (small.world.ran, large.world.ran)
        assert ("pay", {"amount": 5}) in small.world.gates
        assert ("pay", {"amount": 500}) in large.world.gates

    @requires("parallel")
    def test_parallel_calls_surface_together(self, story: Callable[..., Story]) -> None:
        """Two gated calls of one reply are two requests of one pause."""
        both = reply(None, call("delete_file", "c1", path="a.txt"), call("delete_file", "c2", path="b.txt"))
        requests = story(both).paused("Delete a.txt and b.txt.")

        assert [{"path": "a.txt"}, {"path": "b.txt"}] == [request.arguments for request in requests]

    @requires("tool_errors")
    def test_a_failing_tool_is_told_or_fails_the_turn(self, story: Callable[..., Story]) -> None:
        """What a tool raises does not end up anywhere else."""
        session = story(READS, DONE, results={"read_file": ToolRaised("no such file")})
        try:
            session.finished("Read a.txt.")
        except AssertionError:
            raise
        except Exception:
            return

        assert ["c1"] == [call_id for call_id, _ in results(session.world)]

    @requires("model_failure")
    def test_a_failing_model_fails_the_turn(self, story: Callable[..., Story]) -> None:
        """The caller can see that the model failed."""
        session = story(*[ModelDown(500)] * 9)

        with pytest.raises(Exception):  # noqa: B017 -- whatever the framework makes of it
            session.turn("Say something.")

    @requires("streaming")
    def test_a_stream_gives_what_a_plain_turn_gives(self, story: Callable[..., Story]) -> None:
        """The requests are the same, and the stream shows what happens, to its end."""
        plain, streamed = story(DELETES, DONE), story(DELETES, DONE)
        requests, shown = plain.paused("Delete a.txt."), streamed.paused("Delete a.txt.", stream=True)
        outputs = [
            session.finished(None, approve(session.pending()[0]), stream=session is streamed)
            for session in (plain, streamed)
        ]

        assert [replace(one, id="") for one in requests] == [replace(one, id="") for one in shown]
        assert ["Done.", "Done."] == outputs
        assert "end" in [what for what, _ in streamed.world.seen]
