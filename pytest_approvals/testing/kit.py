"""What all tests of the conformance kit stand on: the adapter, its stories, and the capabilities that it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from inspect import signature
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

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


_Test = TypeVar("_Test", bound=Callable[..., Any])


def requires(*capabilities: str) -> Callable[[_Test], _Test]:
    """Mark a test that is for adapters with these capabilities only."""

    def mark(test: _Test) -> _Test:
        test.requires = capabilities  # type: ignore[attr-defined]
        return test

    return mark


class Kit:
    """
    What every test of an adapter has.

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
            if name.startswith("test_") and not cls.applies(name):
                setattr(cls, name, None)

    @classmethod
    def applies(cls, test: str) -> bool:
        """Return whether the adapter has the capabilities that a test requires, and values for its parameters."""
        required = {name for base in cls.__mro__ for name in getattr(vars(base).get(test), "requires", ())}
        parameters, taken = cls.parameters(), signature(getattr(cls, test)).parameters
        return required <= cls.adapter.capabilities and all(parameters[name] for name in taken if name in parameters)

    @classmethod
    def parameters(cls) -> dict[str, list[Any]]:
        """Return the values of each parameter with which tests are repeated for the adapter, by its name."""
        return {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat a test for each value of the parameters that it takes, if it does not say by itself for which."""
        marks = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
        own = {name.strip() for names in marks for name in (names.split(",") if isinstance(names, str) else names)}
        for name, values in self.parameters().items():
            if name in metafunc.fixturenames and name not in own:
                metafunc.parametrize(name, values)

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


def texts(items: Sequence[Any], kind: str) -> list[str | None]:
    """Gives what the items of a kind say."""
    return [item.text for item in items if item.kind == kind]


def results(world: SmallWorld) -> list[tuple[str | None, str | None]]:
    """Gives the results in the latest input of the model, each with the id of its call."""
    return [(item.id, item.text) for item in world.inputs[-1] if item.kind == "result"]
