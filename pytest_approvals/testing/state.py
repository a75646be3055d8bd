"""The tests of the conformance kit about state: saved, copied, rebuilt, apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import Finished
from pytest_approvals.testing.kit import DELETES, DONE, TOOLS, Kit, requires, texts
from pytest_approvals.testing.story import Story, approve, reject
from pytest_approvals.testing.world import SmallWorld, reply


class StateTests(Kit):
    """What must be kept between turns."""

    @requires("serialize.json")
    def test_a_saved_state_is_taken_up(self, story: Callable[..., Story]) -> None:
        """A new agent lists the same requests, and goes on where the other one stopped."""
        self._survives_a_restart(story(DELETES, DONE, serialize="json"))

    @classmethod
    def parameters(cls) -> dict[str, list[Any]]:
        """Add the durable stores of the framework."""
        stores = [name for name in cls.adapter.stores if f"native.{name}" in cls.adapter.capabilities]
        return {**super().parameters(), "store": stores}

    def test_every_store_keeps_the_state(self, story: Callable[..., Story], store: str) -> None:
        """The same holds for each durable store of the framework."""
        self._survives_a_restart(story(DELETES, DONE, serialize=f"native.{store}"))

    def _survives_a_restart(self, session: Story) -> None:
        surfaced = session.paused("Delete a.txt.")
        session.restart()
        (request,) = session.pending()
        session.finished(None, approve(request))

        assert surfaced == (request,)
        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    @requires("serialize.json")
    def test_a_finished_state_can_be_saved(self, story: Callable[..., Story]) -> None:
        """The conversation goes on after it was saved, and the model sees all of it."""
        session = story(DONE, reply("Again."), serialize="json")
        session.finished("First.")
        session.restart()

        assert "Again." == session.finished("Second.")
        assert ["First.", "Second."] == texts(session.world.inputs[-1], "user")

    @requires("serialize.copy")
    def test_a_copy_goes_its_own_way(self, story: Callable[..., Story]) -> None:
        """What happens on the copy does not touch the original."""
        original, other = story(DELETES, serialize="copy"), story(DONE, serialize="copy")
        surfaced = original.paused("Delete a.txt.")
        other.wait(other.agent.copy_from(original.agent))
        other.finished(None, reject(other.pending()[0]))

        assert surfaced == original.pending()

    @requires("answer.rebuilt")
    def test_a_request_rebuilt_from_json_can_be_answered(self, story: Callable[..., Story]) -> None:
        """A web client sends back what it was shown, without the framework's object."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, approve(replace(request, handle=None)))

        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    @requires("sessions")
    def test_sessions_on_one_agent_are_apart(self, story: Callable[..., Story]) -> None:
        """A second session on the same framework objects has its own world, and nothing pending."""
        first = story(DELETES)
        first.paused("Delete a.txt.")
        world = SmallWorld([DONE], TOOLS)
        second = first.another_session(world)
        outcome = first.wait(second.turn("Say something.", (), stream=False))
        first.wait(second.close())

        assert (Finished(output="Done."), 1) == (outcome, len(first.pending()))
        assert ["Say something."] == texts(world.inputs[0], "user")
