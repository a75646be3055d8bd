"""
A flow for practice: one gated call, asked for, approved and run, with a world that records nothing.

Frameworks build much on first use. A process that has done this once is worth forking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from .contract import Agent
from .neutral import (
    MAIN,
    Blueprint,
    Chunk,
    Decision,
    Item,
    ModelAddress,
    ModelCall,
    Parameter,
    Paused,
    Reply,
    ToolSpec,
)

TOOL = ToolSpec(name="practise", parameters={"what": Parameter()}, description="Practises.", approval="always")

CLIENTS = ("mcp.client.streamable_http", "mcp.client.stdio")
"""What clients of MCP servers stand on; most frameworks import it where they connect, which takes seconds."""


NOWHERE = "http://127.0.0.1:1/v1"
"""Where no model is reached."""


class PracticeWorld:
    """Implements `contract.World`: asks for the tool once, then says that it is done."""

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """See `contract.World.model`."""
        if any(item.kind == "result" for item in items):
            return Reply(say="Done.", chunks=(Chunk(text="Done."),))
        call = ModelCall(id="p1", tool=TOOL.name, arguments={"what": "this"})
        return Reply(calls=(call,), chunks=(Chunk(call=0, id="p1", tool=TOOL.name, arguments='{"what": "this"}'),))

    def address(self) -> ModelAddress | None:
        """See `contract.World.address`."""
        return None

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """See `contract.World.run`."""
        return "practised"

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate`."""
        return True

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate_slowly`."""
        return True

    def shown(self, what: str, **facts: Any) -> None:
        """See `contract.World.shown`."""


async def practise(adapter: type[Agent]) -> None:
    """
    Drives the flow on *adapter*, streamed and not, with a new agent after the pause where its state can be saved.

    Where its model is always reached over a protocol, the flow ends with the first request, which reaches nobody.
    """
    for module in CLIENTS if adapter.connects else ():
        with suppress(ImportError):
            import_module(module)
    saves = "serialize.json" in adapter.capabilities
    for stream in (False, True) if "streaming" in adapter.capabilities else (False,):
        blueprint = Blueprint(tools=(TOOL,), serialize="json" if saves else "none")
        if adapter.native:
            await _ask_in_vain(adapter, blueprint, stream=stream)
        else:
            await _drive(adapter, blueprint, saves=saves, stream=stream)


async def _drive(adapter: type[Agent], blueprint: Blueprint, *, saves: bool, stream: bool) -> None:
    world = PracticeWorld()
    agent = adapter(world, blueprint)
    outcome = await agent.turn("Practise this.", (), stream=stream)
    if saves:
        before, agent = agent, adapter(world, blueprint)
        await agent.load((await before.dump(),))
        await before.close()
    requests = await agent.pending() if isinstance(outcome, Paused) else ()
    if requests:
        decisions = [Decision(request=request, verdict="approve") for request in requests]
        await agent.turn(None, decisions, stream=stream)
    await agent.close()


async def _ask_in_vain(adapter: type[Agent], blueprint: Blueprint, *, stream: bool) -> None:
    agent = adapter(PracticeWorld(), replace(blueprint, model=ModelAddress(protocol=adapter.native, url=NOWHERE)))
    with suppress(Exception):
        await agent.turn("Practise this.", (), stream=stream)
    await agent.close()
