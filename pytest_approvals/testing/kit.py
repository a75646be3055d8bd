"""What all tests of the conformance kit stand on: the adapter, its stories, and the capabilities that it claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest

from pytest_approvals.agent_side.contract import Agent, Blueprint, Condition, Reply, ToolSpec
from pytest_approvals.harness.served import ServedModel
from pytest_approvals.testing.story import Story
from pytest_approvals.testing.world import SmallWorld, call, reply, tool

DELETE = tool("delete_file", "always", path="string")
READ = tool("read_file", path="string")
PAY = tool("pay", Condition(argument="amount", greater_than=100), amount="integer")
TOOLS = (DELETE, READ, PAY)

DELETES = reply(None, call("delete_file", path="a.txt"))
READS = reply(None, call("read_file", path="a.txt"))
DONE = reply("Done.")


class Kit:
    """
    What every test of an adapter has.

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
        native = self.adapter.native
        with TemporaryDirectory() as folder, closing(ServedModel(native)) if native else nullcontext() as served:

            def begin(*replies: Reply | Exception, tools: Sequence[ToolSpec] = TOOLS, **more: Any) -> Story:
                blueprint = Blueprint(tools=tuple(tools), options=self.options, directory=folder)
                world = SmallWorld(replies, tools, more.pop("results", None))
                begun.append(Story(self.adapter, replace(blueprint, **more), world, served))
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


def texts(items: Sequence[Any], kind: str) -> list[str | None]:
    """Gives what the items of a kind say."""
    return [item.text for item in items if item.kind == kind]


def results(world: SmallWorld) -> list[tuple[str | None, str | None]]:
    """Gives the results in the latest input of the model, each with the id of its call."""
    return [(item.id, item.text) for item in world.inputs[-1] if item.kind == "result"]
