"""
The conformance kit for adapters: what every adapter must do, as tests to inherit.

    class TestToyAdapter(AdapterTests):
        adapter = Toy

The tests stand on the contract alone; what a framework makes of approvals is the catalogue's business. A test about a
capability that the adapter does not claim is skipped, one about a framework that is not installed, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest

from pytest_approvals.agent_side.contract import (
    Agent,
    Blueprint,
    Condition,
    Finished,
    ModelDown,
    Reply,
    ToolRaised,
    ToolSpec,
    Unsupported,
)
from pytest_approvals.testing.story import Story, approve, reject
from pytest_approvals.testing.world import SmallWorld, call, reply, tool

WIRE_RULES = ("chat", "responses", "messages", "none")

DELETE = tool("delete_file", "always", path="string")
READ = tool("read_file", path="string")
PAY = tool("pay", Condition(argument="amount", greater_than=100), amount="integer")
TOOLS = (DELETE, READ, PAY)

DELETES = reply(None, call("delete_file", path="a.txt"))
READS = reply(None, call("read_file", path="a.txt"))
DONE = reply("Done.")


class AdapterTests:
    """
    The tests that every adapter passes; set `adapter` in a subclass.

    Attributes:
        adapter: The class under test.
        options: Options of the flavour that its tests need.
    """

    adapter: ClassVar[type[Agent]]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def story(self) -> Any:
        """Gives a function that begins a session on a world; all sessions are closed at the end."""
        begun: list[Story] = []
        with TemporaryDirectory() as folder:

            def begin(*replies: Reply | Exception, tools: Sequence[ToolSpec] = TOOLS, **more: Any) -> Story:
                blueprint = Blueprint(tools=tuple(tools), options=self.options, directory=folder)
                world = SmallWorld(replies, tools, more.pop("results", None))
                begun.append(Story(self.adapter, replace(blueprint, **more), world))
                return begun[-1]

            yield begin
            for one in begun:
                one.end()

    @pytest.fixture(autouse=True)
    def _framework_is_here(self, request: pytest.FixtureRequest) -> None:
        missing = [package for package in self.adapter.packages if find_spec(package) is None]
        if missing and "story" in request.fixturenames:
            pytest.skip(f"{self.adapter.framework} is not installed here")

    def needs(self, *capabilities: str) -> None:
        """Skips a test whose capabilities the adapter does not claim."""
        for name in capabilities:
            if name not in self.adapter.capabilities:
                pytest.skip(f"{name} is not claimed: {self.adapter.missing.get(name, '')}")

    # --- what it says of itself ---

    def test_its_facts_are_complete(self) -> None:
        """It says whose rules its inputs follow, and an adapter of a framework which, and where bugs go."""
        adapter = self.adapter

        assert adapter.wire_rules in WIRE_RULES
        assert bool(adapter.framework) == bool(adapter.packages), "framework and packages come together"
        assert not adapter.framework or adapter.issues.startswith("http"), "issues must be an address"

    def test_what_is_missing_says_why(self) -> None:
        """Each capability that is not claimed names the API that is missing or refuses."""
        assert [] == [name for name, why in self.adapter.missing.items() if not why.strip()]

    def test_importing_it_imports_no_framework(self) -> None:
        """What it says of itself can be read where its framework is not installed."""
        names = (*self.adapter.packages, "pydantic", "yaml")
        found = f"print(*[name for name in {names!r} if name in sys.modules])"
        code = f"import sys; sys.path[:] = {sys.path!r}; import {self.adapter.__module__}; {found}"
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        assert "" == printed.stdout.strip()

    # --- turns ---

    def test_a_reply_without_calls_ends_the_turn(self, story: Callable[..., Story]) -> None:
        """The model is asked once, with the caller's message, and its text is the output."""
        session = story(DONE)

        assert "Done." == session.finished("Say something.")
        assert [["Say something."]] == [_texts(items, "user") for items in session.world.inputs]

    def test_an_ungated_call_runs_and_its_result_is_told(self, story: Callable[..., Story]) -> None:
        """It runs once, with the model's arguments; the next input has its result under its id."""
        session = story(READS, DONE, results={"read_file": "text of a.txt"})

        assert "Done." == session.finished("Read a.txt.")
        assert [("read_file", {"path": "a.txt"})] == session.world.ran
        assert [("c1", "text of a.txt")] == _results(session.world)

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
        assert ["c1"] == [call_id for call_id, _ in _results(session.world)]

    def test_a_rejected_call_does_not_run(self, story: Callable[..., Story]) -> None:
        """The model is told something in place of its result."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, reject(request))

        assert [] == session.world.ran
        assert ["c1"] == [call_id for call_id, _ in _results(session.world)]

    def test_a_condition_is_asked(self, story: Callable[..., Story]) -> None:
        """`World.gate` decides whether a call waits."""
        self.needs("conditional_approval")
        small = story(reply(None, call("pay", amount=5)), DONE)
        large = story(reply(None, call("pay", amount=500)))
        small.finished("Pay 5.")
        large.paused("Pay 500.")

        assert ([("pay", {"amount": 5})], []) == (small.world.ran, large.world.ran)
        assert ("pay", {"amount": 5}) in small.world.gates
        assert ("pay", {"amount": 500}) in large.world.gates

    def test_parallel_calls_surface_together(self, story: Callable[..., Story]) -> None:
        """Two gated calls of one reply are two requests of one pause."""
        self.needs("parallel")
        both = reply(None, call("delete_file", "c1", path="a.txt"), call("delete_file", "c2", path="b.txt"))
        requests = story(both).paused("Delete a.txt and b.txt.")

        assert [{"path": "a.txt"}, {"path": "b.txt"}] == [request.arguments for request in requests]

    def test_a_failing_tool_is_told_or_fails_the_turn(self, story: Callable[..., Story]) -> None:
        """What a tool raises does not end up anywhere else."""
        self.needs("tool_errors")
        session = story(READS, DONE, results={"read_file": ToolRaised("no such file")})
        try:
            session.finished("Read a.txt.")
        except AssertionError:
            raise
        except Exception:
            return

        assert ["c1"] == [call_id for call_id, _ in _results(session.world)]

    def test_a_failing_model_fails_the_turn(self, story: Callable[..., Story]) -> None:
        """The caller can see that the model failed."""
        self.needs("model_failure")
        session = story(*[ModelDown(500)] * 9)

        with pytest.raises(Exception):  # noqa: B017 -- whatever the framework makes of it
            session.turn("Say something.")

    def test_a_stream_gives_what_a_plain_turn_gives(self, story: Callable[..., Story]) -> None:
        """The requests are the same, and the stream shows what happens, to its end."""
        self.needs("streaming")
        plain, streamed = story(DELETES, DONE), story(DELETES, DONE)
        requests, shown = plain.paused("Delete a.txt."), streamed.paused("Delete a.txt.", stream=True)
        outputs = [
            session.finished(None, approve(session.pending()[0]), stream=session is streamed)
            for session in (plain, streamed)
        ]

        assert [replace(one, id="") for one in requests] == [replace(one, id="") for one in shown]
        assert ["Done.", "Done."] == outputs
        assert "end" in [what for what, _ in streamed.world.seen]

    # --- state ---

    def test_a_saved_state_is_taken_up(self, story: Callable[..., Story]) -> None:
        """A new agent lists the same requests, and goes on where the other one stopped."""
        self.needs("serialize.json")
        self._survives_a_restart(story(DELETES, DONE, serialize="json"))

    def test_every_store_keeps_the_state(self, story: Callable[..., Story]) -> None:
        """The same holds for each durable store of the framework."""
        names = [name for name in self.adapter.stores if f"native.{name}" in self.adapter.capabilities]
        if not names:
            pytest.skip("the adapter names no store")
        for name in names:
            self._survives_a_restart(story(DELETES, DONE, serialize=f"native.{name}"))

    def _survives_a_restart(self, session: Story) -> None:
        surfaced = session.paused("Delete a.txt.")
        session.restart()
        (request,) = session.pending()
        session.finished(None, approve(request))

        assert surfaced == (request,)
        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    def test_a_finished_state_can_be_saved(self, story: Callable[..., Story]) -> None:
        """The conversation goes on after it was saved, and the model sees all of it."""
        self.needs("serialize.json")
        session = story(DONE, reply("Again."), serialize="json")
        session.finished("First.")
        session.restart()

        assert "Again." == session.finished("Second.")
        assert ["First.", "Second."] == _texts(session.world.inputs[-1], "user")

    def test_a_copy_goes_its_own_way(self, story: Callable[..., Story]) -> None:
        """What happens on the copy does not touch the original."""
        self.needs("serialize.copy")
        original, other = story(DELETES, serialize="copy"), story(DONE, serialize="copy")
        surfaced = original.paused("Delete a.txt.")
        other.wait(other.agent.copy_from(original.agent))
        other.finished(None, reject(other.pending()[0]))

        assert surfaced == original.pending()

    def test_a_request_rebuilt_from_json_can_be_answered(self, story: Callable[..., Story]) -> None:
        """A web client sends back what it was shown, without the framework's object."""
        self.needs("answer.rebuilt")
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, approve(replace(request, handle=None)))

        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    def test_sessions_on_one_agent_are_apart(self, story: Callable[..., Story]) -> None:
        """A second session on the same framework objects has its own world, and nothing pending."""
        self.needs("sessions")
        first = story(DELETES)
        first.paused("Delete a.txt.")
        world = SmallWorld([DONE], TOOLS)
        second = first.wait(first.agent.another_session(world))
        outcome = first.wait(second.turn("Say something.", (), stream=False))
        first.wait(second.close())

        assert (Finished(output="Done."), 1) == (outcome, len(first.pending()))
        assert ["Say something."] == _texts(world.inputs[0], "user")

    # --- the rest of the contract ---

    @pytest.mark.parametrize("capability", ["stage", "cancel", "trim", "serialize.json", "serialize.copy", "sessions"])
    def test_what_it_does_not_claim_it_refuses(self, story: Callable[..., Story], capability: str) -> None:
        """A step without its capability raises `Unsupported`, and nothing else."""
        if capability in self.adapter.capabilities or (capability == "serialize.json" and self.adapter.stores):
            pytest.skip(f"{capability} is claimed")
        session = story(DONE)
        steps: dict[str, Callable[[], Awaitable[Any]]] = {
            "stage": lambda: session.agent.stage(()),
            "cancel": session.agent.cancel,
            "trim": lambda: session.agent.trim(1),
            "serialize.json": session.agent.dump,
            "serialize.copy": lambda: session.agent.copy_from(session.agent),
            "sessions": lambda: session.agent.another_session(session.world),
        }

        with pytest.raises(Unsupported):
            session.wait(steps[capability]())

    def test_it_has_the_tools_it_was_given(self, story: Callable[..., Story]) -> None:
        """`tools` names those of the blueprint."""
        assert [spec.name for spec in TOOLS] == [spec.name for spec in story().agent.tools()]

    def test_it_can_be_closed_twice(self, story: Callable[..., Story]) -> None:
        """Closing lets go of what is open; there is nothing left the second time."""
        session = story(DELETES)
        session.paused("Delete a.txt.")
        session.wait(session.agent.close())
        session.wait(session.agent.close())

    def test_it_prints_nothing(self, story: Callable[..., Story], capfd: pytest.CaptureFixture[str]) -> None:
        """Standard output is nobody's place for messages; a whole story leaves it empty."""
        session = story(DELETES, DONE)
        session.finished(None, approve(session.paused("Delete a.txt.")[0]))

        assert "" == capfd.readouterr().out


def _texts(items: Sequence[Any], kind: str) -> list[str | None]:
    return [item.text for item in items if item.kind == kind]


def _results(world: SmallWorld) -> list[tuple[str | None, str | None]]:
    return [(item.id, item.text) for item in world.inputs[-1] if item.kind == "result"]
