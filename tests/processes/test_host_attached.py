"""A user's own agent in another process: its tools run there, their starts and ends are recorded here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import toy_agent
from toy_world import ToyWorld, pays, says

from pytest_approvals.agent_side.contract import Attachment, Blueprint
from pytest_approvals.errors import UsageError
from pytest_approvals.processes.remote_agents import RemoteAgent

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]


def attached(subject: Any, **parts: Any) -> Blueprint:
    return Blueprint(attachment=Attachment(subject=subject, **parts))


def results(world: ToyWorld) -> list[str | None]:
    return [item.text for item in world.inputs[-1] if item.kind == "result"]


async def test_a_real_tool_runs_where_the_agent_is(hosted: Callable[..., Any]) -> None:
    """What it returns never leaves: the framework gets the very object, the world what can be told of it."""
    world = ToyWorld(pays(1, tool="sell"), says("Done."))
    agent = await hosted("toy_agent:Attached", world, attached(toy_agent.own_tool))
    await agent.turn("Sell.", (), stream=False)

    assert ["<a ticket>"] == results(world)
    assert ["model 1", "start c1", "end c1", "model 3"] == world.log


async def test_a_real_tool_raises_its_own_exception(hosted: Callable[..., Any]) -> None:
    """The framework can catch it by its type; it ran in the framework's own task, with its context."""
    world = ToyWorld(pays(0, tool="sell"), says("Done."))
    agent = await hosted("toy_agent:Attached", world, attached("toy_agent:own_tool"))
    await agent.turn("Sell.", (), stream=False)

    assert ['("the framework\'s",)'] == results(world)
    assert ["model 1", "start c1", "SoldOut c1", "end c1", "model 3"] == world.log


async def test_a_stub_takes_the_place_of_a_real_tool(hosted: Callable[..., Any]) -> None:
    """The world decides whether the body is entered."""

    async def sell(amount: int) -> dict[str, Any]:
        return {"sold": amount}

    world = ToyWorld(pays(0, tool="sell"), says("Done."), sell=sell)
    agent = await hosted("toy_agent:Attached", world, attached(toy_agent.own_tool))
    await agent.turn("Sell.", (), stream=False)

    assert ["{'sold': 0}"] == results(world)


async def test_real_tools_run_at_the_same_time(hosted: Callable[..., Any]) -> None:
    """Each start finds its own end."""
    world = ToyWorld(pays(1, 0, 2, tool="sell"), says("Done."))
    agent = await hosted("toy_agent:Attached", world, attached(toy_agent.own_tool))
    await agent.turn("Sell.", (), stream=False)

    assert ["start c1", "start c2", "start c3"] == world.log[1:4]
    assert ['("the framework\'s",)', "<a ticket>", "<a ticket>"] == sorted(map(str, results(world)))


async def test_a_real_tool_is_cancelled_with_its_turn(hosted: Callable[..., Any]) -> None:
    """There, and in what is recorded here, before the caller continues."""
    world = ToyWorld(pays(99, tool="sell"))
    agent = await hosted("toy_agent:Attached", world, attached(toy_agent.own_tool))
    turn = asyncio.ensure_future(agent.turn("Sell.", (), stream=False))
    await world.something_shown.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert ["model 1", "start c1", "shown text it runs", "CancelledError c1", "end c1"] == world.log

    world = ToyWorld(pays(1, tool="tell"), says("Done."))
    teller = await RemoteAgent.build(agent.host, world, attached(toy_agent.what_was_cancelled))
    await teller.turn("What was cancelled?", (), stream=False)
    assert ["['not yet', 'cancelled']"] == results(world)
    await teller.close()


@pytest.mark.parametrize(
    "subject",
    [lambda model: model, object(), 5, toy_agent.Ticket().__repr__],
    ids=["lambda", "object", "number", "method"],
)
async def test_what_cannot_be_imported_cannot_be_attached_elsewhere(hosted: Callable[..., Any], subject: Any) -> None:
    """The message says what to give instead."""
    with pytest.raises(UsageError, match=r"Invalid agent .* for a fresh process: expected a function of a module"):
        await hosted("toy_agent:Attached", ToyWorld(), attached(subject))


async def test_a_function_of_a_module_off_the_import_path_is_found_by_its_file(
    hosted: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pytest imports test modules."""
    file = tmp_path / "test_shop.py"
    file.write_text("async def sell(amount):\n    return f'sold {amount}'\n", encoding="utf-8")
    spec = spec_from_file_location("tests.shop.test_shop", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tests.shop.test_shop", module)
    spec.loader.exec_module(module)
    world = ToyWorld(pays(1, tool="sell"), says("Done."))
    agent = await hosted("toy_agent:Attached", world, attached(module.sell))
    await agent.turn("Sell.", (), stream=False)

    assert ["'sold 1'"] == results(world)


async def test_a_name_that_cannot_be_imported_says_so(hosted: Callable[..., Any]) -> None:
    """With the name and the reason."""
    with pytest.raises(Exception, match="Cannot import 'toy_agent:nobody' \\(AttributeError"):
        await hosted("toy_agent:Attached", ToyWorld(), attached("toy_agent:nobody"))


async def test_options_that_cannot_cross_are_named(hosted: Callable[..., Any]) -> None:
    """They must be JSON."""
    blueprint = attached(toy_agent.own_tool, run_options={"deps": {"db": {1, 2}}})
    with pytest.raises(UsageError) as caught:
        await hosted("toy_agent:Attached", ToyWorld(), blueprint)

    assert (
        "The option 'deps' in run_options cannot be sent to a fresh process: db: {1, 2} (set) is not a JSON value; "
        "pass a function of a module that makes all options there, run_options=make_options, or its name as "
        "'module:function'"
    ) == str(caught.value)
