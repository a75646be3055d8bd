"""Conformance tests for adapters, to be inherited.

    class TestToyAdapter(AdapterTests):
        adapter = Toy

The tests use the contract alone; what a framework makes of approvals is tested by the catalogue. There is no test about
a capability that the adapter does not claim. A test that needs a framework which is not installed is skipped.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from inspect import signature
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

import pytest

from pytest_approvals.agent_side.contract import (
    Blueprint,
    Condition,
    Finished,
    ModelDown,
    Reply,
    ToolRaised,
    ToolSpec,
    Unsupported,
)
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Parameter
from pytest_approvals.journal.events import Event, ModelRequest
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool, ToolBehaviour, Variant
from pytest_approvals.testing.session import AdapterSession, approve, reject
from pytest_approvals.testing.world import FakeWorld, call, reply, tool

DELETE = tool("delete_file", "always", path="string")
READ = tool("read_file", path="string")
PAY = tool("pay", Condition(argument="amount", greater_than=100), amount="integer")
TOOLS = (DELETE, READ, PAY)

DELETES = reply(None, call("delete_file", path="a.txt"))
READS = reply(None, call("read_file", path="a.txt"))
DONE = reply("Done.")

PAY_TOOL = Tool(
    name="pay",
    approval="always",
    parameters={"amount": Parameter(type="integer")},
    behaviours=(ToolBehaviour(returns="paid {amount}"),),
)
PAY_REPLY = ScriptedReply(say="Wait.", calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),))
PAY_SCENARIO = Scenario(
    id="kit/paid",
    title="A payment",
    tools=(PAY_TOOL,),
    agents={"main": Script(replies=(PAY_REPLY, ScriptedReply(say="Done.")))},
)

WIRE_RULES = ("chat", "responses", "messages", "none")

_Test = TypeVar("_Test", bound=Callable[..., Any])


def requires(*capabilities: str) -> Callable[[_Test], _Test]:
    """Mark a test that is for adapters with these capabilities only."""

    def mark(test: _Test) -> _Test:
        test.requires = capabilities  # type: ignore[attr-defined]
        return test

    return mark


class AdapterTests:
    """The tests that every adapter passes; set `adapter` in a subclass.

    A subclass has only those tests that apply to its adapter. The others are not collected, so that a skipped test
    always means that something was not tried.

    Attributes:
        adapter: The class under test.
        options: Options of the flavour that its tests need.
    """

    adapter: ClassVar[type[Agent]]
    options: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if not hasattr(cls, "adapter"):
            return
        for name in dir(cls):
            # None in place of an inherited test keeps pytest from collecting it.
            if name.startswith("test_") and callable(getattr(cls, name)) and not cls.applies(name):
                setattr(cls, name, None)

    @classmethod
    def applies(cls, test: str) -> bool:
        """Return whether the adapter has the capabilities that a test requires, and values for its parameters."""
        # An override has no marks of its own, so those of all bases count.
        required = {name for base in cls.__mro__ for name in getattr(vars(base).get(test), "requires", ())}
        parameters, taken = cls.parameters(), signature(getattr(cls, test)).parameters
        return required <= cls.adapter.capabilities and all(parameters[name] for name in taken if name in parameters)

    @classmethod
    def parameters(cls) -> dict[str, list[Any]]:
        """Return the values that tests of the adapter are parametrized with, by parameter."""
        adapter, capabilities = cls.adapter, cls.adapter.capabilities
        steps = ["stage", "cancel", "trim", "serialize.copy", "sessions"]
        if not adapter.stores:  # a save into a store is one that is dumped, too
            steps.append("serialize.json")
        streamed = [pytest.param(True, id="streamed")] if "streaming" in capabilities else []
        return {
            "capability": [name for name in steps if name not in capabilities],
            "store": [name for name in adapter.stores if f"native.{name}" in capabilities],
            "protocol": [name for name in PROTOCOLS if name in adapter.protocols],
            "stream": [pytest.param(False, id="whole"), *streamed],
        }

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a test with the values of the parameters that it takes, unless it has a mark for them."""
        marks = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
        own = {name.strip() for names in marks for name in (names.split(",") if isinstance(names, str) else names)}
        for name, values in self.parameters().items():
            if name in metafunc.fixturenames and name not in own:
                metafunc.parametrize(name, values)

    @pytest.fixture
    def story(self) -> Any:
        """Return a function that begins a session on a world; all sessions are closed at the end."""
        begun: list[AdapterSession] = []
        native = self.adapter.native
        with TemporaryDirectory() as folder, closing(ModelEndpoint(native)) if native else nullcontext() as served:

            def begin(*replies: Reply | Exception, tools: Sequence[ToolSpec] = TOOLS, **more: Any) -> AdapterSession:
                blueprint = Blueprint(tools=tuple(tools), options=self.options, directory=folder)
                world = FakeWorld(replies, tools, more.pop("results", None))
                begun.append(AdapterSession(self.adapter, replace(blueprint, **more), world, served))
                return begun[-1]

            yield begin
            for session in begun:
                session.end()

    @pytest.fixture(autouse=True)
    def _skip_without_framework(self, request: pytest.FixtureRequest) -> None:
        missing = [package for package in self.adapter.packages if find_spec(package) is None]
        if missing and "story" in request.fixturenames:
            pytest.skip(f"{self.adapter.framework} is not installed here")

    # --- metadata ---

    def test_its_facts_are_complete(self) -> None:
        """It names the rules of its inputs and, if it has one, its framework and the issue tracker."""
        adapter = self.adapter

        assert adapter.wire_rules in WIRE_RULES
        assert bool(adapter.framework) == bool(adapter.packages), "framework and packages come together"
        assert not adapter.framework or adapter.issues.startswith("http"), "issues must be an address"

    def test_missing_capabilities_have_reasons(self) -> None:
        """Each capability that is not claimed names the API that is missing or refuses."""
        assert [] == [name for name, why in self.adapter.missing.items() if not why.strip()]

    def test_importing_it_imports_no_framework(self) -> None:
        """Its metadata can be read without its framework being installed."""
        # The agent side has no dependencies, so an environment of agents may lack these two.
        names = (*self.adapter.packages, "pydantic", "yaml")
        print_loaded = f"print(*[name for name in {names!r} if name in sys.modules])"
        code = f"import sys; sys.path[:] = {sys.path!r}; import {self.adapter.__module__}; {print_loaded}"
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        assert "" == printed.stdout.strip()

    # --- refusals and lifecycle ---

    def test_it_refuses_steps_without_their_capability(
        self, story: Callable[..., AdapterSession], capability: str
    ) -> None:
        """A step without its capability raises `Unsupported`, and nothing else."""
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

    def test_it_has_the_tools_of_its_blueprint(self, story: Callable[..., AdapterSession]) -> None:
        """`tools` names those of the blueprint."""
        assert [spec.name for spec in TOOLS] == [spec.name for spec in story().agent.tools()]

    def test_it_can_be_closed_twice(self, story: Callable[..., AdapterSession]) -> None:
        """Closing releases all resources; the second time there are none left."""
        session = story(DELETES)
        session.paused("Delete a.txt.")
        session.wait(session.agent.close())
        session.wait(session.agent.close())

    def test_it_prints_nothing(self, story: Callable[..., AdapterSession], capfd: pytest.CaptureFixture[str]) -> None:
        """A whole story leaves standard output empty."""
        session = story(DELETES, DONE)
        session.finished(None, approve(session.paused("Delete a.txt.")[0]))

        assert "" == capfd.readouterr().out

    # --- turns ---

    def test_a_reply_without_calls_ends_the_turn(self, story: Callable[..., AdapterSession]) -> None:
        """The model is asked once, with the caller's message, and its text is the output."""
        session = story(DONE)

        assert "Done." == session.finished("Say something.")
        assert [["Say something."]] == [_item_texts(items, "user") for items in session.world.inputs]

    def test_an_ungated_call_runs_and_its_result_is_sent(self, story: Callable[..., AdapterSession]) -> None:
        """It runs once, with the model's arguments; the next input has its result under its id."""
        session = story(READS, DONE, results={"read_file": "text of a.txt"})

        assert "Done." == session.finished("Read a.txt.")
        assert [("read_file", {"path": "a.txt"})] == session.world.ran
        assert [("c1", "text of a.txt")] == _result_items(session.world)

    def test_a_gated_call_pauses_before_it_runs(self, story: Callable[..., AdapterSession]) -> None:
        """The turn ends with a request that shows the call, and nothing has run."""
        session = story(DELETES)
        (request,) = session.paused("Delete a.txt.")

        assert ("delete_file", {"path": "a.txt"}) == (request.tool, request.arguments)
        assert request.call_id in ("c1", None)
        assert [] == session.world.ran

    def test_what_surfaced_is_pending(self, story: Callable[..., AdapterSession]) -> None:
        """`pending` lists the requests of the pause, and nothing before and after it."""
        session = story(DELETES, DONE)
        before = session.pending()
        surfaced = session.paused("Delete a.txt.")
        during = session.pending()
        session.finished(None, approve(surfaced[0]))

        assert ((), surfaced, ()) == (before, during, session.pending())

    def test_an_approved_call_runs_with_its_arguments(self, story: Callable[..., AdapterSession]) -> None:
        """It runs once, and the next input of the model has its result."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")

        assert "Done." == session.finished(None, approve(request))
        assert [("delete_file", {"path": "a.txt"})] == session.world.ran
        assert ["c1"] == [call_id for call_id, _ in _result_items(session.world)]

    def test_a_rejected_call_does_not_run(self, story: Callable[..., AdapterSession]) -> None:
        """The next input of the model has a text in place of its result."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, reject(request))

        assert [] == session.world.ran
        assert ["c1"] == [call_id for call_id, _ in _result_items(session.world)]

    @requires("conditional_approval")
    def test_a_condition_is_asked(self, story: Callable[..., AdapterSession]) -> None:
        """`World.gate` decides whether a call waits."""
        small = story(reply(None, call("pay", amount=5)), DONE)
        large = story(reply(None, call("pay", amount=500)))
        small.finished("Pay 5.")
        large.paused("Pay 500.")

        assert ([("pay", {"amount": 5})], []) == (small.world.ran, large.world.ran)
        assert ("pay", {"amount": 5}) in small.world.gates
        assert ("pay", {"amount": 500}) in large.world.gates

    @requires("parallel")
    def test_parallel_calls_surface_together(self, story: Callable[..., AdapterSession]) -> None:
        """Two gated calls of one reply are two requests of one pause."""
        both = reply(None, call("delete_file", "c1", path="a.txt"), call("delete_file", "c2", path="b.txt"))
        requests = story(both).paused("Delete a.txt and b.txt.")

        assert [{"path": "a.txt"}, {"path": "b.txt"}] == [request.arguments for request in requests]

    @requires("tool_errors")
    def test_a_failing_tool_is_reported_or_fails_the_turn(self, story: Callable[..., AdapterSession]) -> None:
        """The error of a tool goes to the model or fails the turn, and nowhere else."""
        session = story(READS, DONE, results={"read_file": ToolRaised("no such file")})
        try:
            session.finished("Read a.txt.")
        # The turn paused, which the session reports.
        except AssertionError:
            raise
        except Exception:
            return

        assert ["c1"] == [call_id for call_id, _ in _result_items(session.world)]

    @requires("model_failure")
    def test_a_failing_model_fails_the_turn(self, story: Callable[..., AdapterSession]) -> None:
        """The caller can see that the model failed."""
        # Enough failures for frameworks that retry.
        session = story(*[ModelDown(500)] * 9)

        with pytest.raises(Exception):  # noqa: B017 -- each framework raises its own
            session.turn("Say something.")

    @requires("streaming")
    def test_a_stream_ends_like_a_plain_turn(self, story: Callable[..., AdapterSession]) -> None:
        """The requests are the same, and the stream shows what happens, to its end."""
        plain, streamed = story(DELETES, DONE), story(DELETES, DONE)
        requests, shown = plain.paused("Delete a.txt."), streamed.paused("Delete a.txt.", stream=True)
        outputs = [
            session.finished(None, approve(session.pending()[0]), stream=session is streamed)
            for session in (plain, streamed)
        ]

        assert [replace(request, id="") for request in requests] == [replace(request, id="") for request in shown]
        assert ["Done.", "Done."] == outputs
        assert "end" in [what for what, _ in streamed.world.seen]

    # --- state between turns ---

    @requires("serialize.json")
    def test_a_saved_state_is_restored(self, story: Callable[..., AdapterSession]) -> None:
        """A new agent lists the same requests, and resumes where the other one stopped."""
        self._survives_a_restart(story(DELETES, DONE, serialize="json"))

    def test_every_store_keeps_the_state(self, story: Callable[..., AdapterSession], store: str) -> None:
        """The same holds for each durable store of the framework."""
        self._survives_a_restart(story(DELETES, DONE, serialize=f"native.{store}"))

    def _survives_a_restart(self, session: AdapterSession) -> None:
        surfaced = session.paused("Delete a.txt.")
        session.restart()
        (request,) = session.pending()
        session.finished(None, approve(request))

        assert surfaced == (request,)
        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    @requires("serialize.json")
    def test_a_finished_state_can_be_saved(self, story: Callable[..., AdapterSession]) -> None:
        """The conversation continues after a save, and the model sees all of it."""
        session = story(DONE, reply("Again."), serialize="json")
        session.finished("First.")
        session.restart()

        assert "Again." == session.finished("Second.")
        assert ["First.", "Second."] == _item_texts(session.world.inputs[-1], "user")

    @requires("serialize.copy")
    def test_a_copy_goes_its_own_way(self, story: Callable[..., AdapterSession]) -> None:
        """What happens on the copy does not touch the original."""
        original, other = story(DELETES, serialize="copy"), story(DONE, serialize="copy")
        surfaced = original.paused("Delete a.txt.")
        other.wait(other.agent.copy_from(original.agent))
        other.finished(None, reject(other.pending()[0]))

        assert surfaced == original.pending()

    @requires("answer.rebuilt")
    def test_a_request_rebuilt_from_json_can_be_answered(self, story: Callable[..., AdapterSession]) -> None:
        """A web client sends back what it was shown, without the framework's object."""
        session = story(DELETES, DONE)
        (request,) = session.paused("Delete a.txt.")
        session.finished(None, approve(replace(request, handle=None)))

        assert [("delete_file", {"path": "a.txt"})] == session.world.ran

    @requires("sessions")
    def test_sessions_on_one_agent_are_apart(self, story: Callable[..., AdapterSession]) -> None:
        """A second session on the same framework objects has its own world, and nothing pending."""
        first = story(DELETES)
        first.paused("Delete a.txt.")
        world = FakeWorld([DONE], TOOLS)
        second = first.another_session(world)
        outcome = first.wait(second.turn("Say something.", (), stream=False))
        first.wait(second.close())

        assert (Finished(output="Done."), 1) == (outcome, len(first.pending()))
        assert ["Say something."] == _item_texts(world.inputs[0], "user")

    # --- protocols ---

    @requires("text_with_calls")
    def test_a_story_is_the_same_over_a_protocol(
        self, story: Callable[..., AdapterSession], protocol: str, stream: bool
    ) -> None:
        """With the framework's own client, one payment has the transcript that it has with the scripted model.

        Instructions are left out: a model class may have some for its provider.
        """
        assert self._transcript("native", stream) == self._transcript(protocol, stream)

    def _transcript(self, protocol: str, stream: bool) -> str:
        source = InProcessSource(name="agent", adapter=self.adapter, facts=describe_adapter(self.adapter))
        variant = Variant(protocol=protocol, stream=stream, oracle="approve_all")
        run = asyncio.run(run_scenario(PAY_SCENARIO, variant, source))
        return Transcript.of_history(read_history([_without_instructions(event) for event in run.events])).render()


def _item_texts(items: Sequence[Any], kind: str) -> list[str | None]:
    """Return the texts of the items of a kind."""
    return [item.text for item in items if item.kind == kind]


def _result_items(world: FakeWorld) -> list[tuple[str | None, str | None]]:
    """Return the results in the latest input of the model, each with the id of its call."""
    return [(item.id, item.text) for item in world.inputs[-1] if item.kind == "result"]


def _without_instructions(event: Event) -> Event:
    if not isinstance(event, ModelRequest):
        return event
    return replace(event, items=[item for item in event.items if item["kind"] != "other"])
