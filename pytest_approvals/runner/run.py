"""
The run loop: one scenario, in one variant, on one agent, recorded.

Whatever happens on the agent's side ends up in the journal, and the journal ends with how the run ended. Only what is
the harness' or the person's own business is raised: an interrupt, a mistake in the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AdapterError, HostError
from pytest_approvals.journal.events import AgentLost, Event, RunEnd, ToolEnd, ToolStart, TurnEnd, TurnStart
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_source import AgentSource, InProcessSource
from pytest_approvals.runner.caller import Caller
from pytest_approvals.runner.mcp.endpoints import RunMcpServers
from pytest_approvals.runner.oracles import Oracle, create_oracle
from pytest_approvals.runner.run_context import RunContext, RunLimits, build_header, describe_error
from pytest_approvals.runner.stored_state_agent import StoredStateSource
from pytest_approvals.runner.timeouts import AgentBlocks
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.runner.model_endpoint import ModelEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """
    A recorded run.

    Attributes:
        output: The output of the last turn that finished; the agent's own object where it runs in this process.
    """

    scenario: Scenario
    variant: Variant
    agent: str
    journal: Journal
    output: Any = None

    @property
    def events(self) -> list[Event]:
        """All that was recorded."""
        return self.journal.events


async def run_scenario(
    scenario: Scenario,
    variant: Variant,
    source: AgentSource,
    *,
    journal: Journal | None = None,
    oracle: Oracle | None = None,
    limit: RunLimits | None = None,
    lenient: bool = False,
    seed: int = 0,
) -> RecordedRun:
    """
    Plays a scenario and records it.

    Arguments:
        journal: Where to record; in memory by default. It is closed at the end.
        oracle: Who answers what the story leaves open, in place of the variant's oracle.
        lenient: Record what a real provider would refuse, but answer it.
        seed: Written into the header, for whoever derives values from it.
    """
    if variant.saved_by:
        source = StoredStateSource(source, scenario, variant, AgentSpec.parse(source.name).base)
    play = RunContext(
        scenario=scenario,
        variant=variant,
        journal=journal or Journal(),
        header=build_header(scenario, variant, source, seed),
        limit=limit or RunLimits(),
        lenient=lenient,
        gated=source.attachment.gated if isinstance(source, InProcessSource) and source.attachment else None,
    )
    with (
        _connect_servers(scenario, source) as play.connected,
        _create_store_folder(variant) as directory,
        _serve_model(variant, source) as play.served,
    ):
        caller = Caller(play, source, oracle or create_oracle(variant.oracle), directory)
        try:
            await _play_to_end(play, caller)
        finally:
            play.journal.close()
    return RecordedRun(
        scenario=scenario, variant=variant, agent=source.name, journal=play.journal, output=caller.last_output()
    )


async def _play_to_end(play: RunContext, caller: Caller) -> None:
    how, error = "completed", None
    try:
        async with play.deadline.running():
            await caller.play_all()
    except TimeoutError as raised:
        how, error = "timeout", [type(raised).__name__, f"the run took longer than {play.limit.seconds:g} s"]
    except AgentBlocks as raised:
        how, error = "timeout", describe_error(raised)
    except (AdapterError, Unsupported) as raised:
        how, error = "broken", describe_error(raised)
        stderr = raised.stderr if isinstance(raised, HostError) else ""
        play.begin()
        play.journal.record(AgentLost(what=str(raised), stderr=stderr))
    except (KeyboardInterrupt, asyncio.CancelledError) as raised:
        await _record_end(play, caller, "interrupted", describe_error(raised))
        raise
    except Exception as raised:
        how, error = "broken", describe_error(raised)
    await _record_end(play, caller, "left" if how == "completed" and caller.left else how, error)


async def _record_end(play: RunContext, caller: Caller, how: str, error: list[str] | None) -> None:
    play.begin()
    _close_open_events(play, how)
    pending = await _list_pending(caller) if how in ("completed", "left") else []
    play.journal.record(RunEnd(how=how, pending=pending, error=error))
    play.journal.flush()
    with contextlib.suppress(Exception):
        await caller.close()


async def _list_pending(caller: Caller) -> list[dict[str, Any]]:
    """Asks every session once more what is pending; one that cannot say counts as having nothing."""
    pending: list[dict[str, Any]] = []
    for session in caller.sessions.values():
        if not session.lost:
            with contextlib.suppress(Exception):
                pending += [one.written() for one in await session.pending()]
    return pending


def _close_open_events(play: RunContext, how: str) -> None:
    """Ends in the journal what a run that was cut off left open, so that its grammar holds."""
    turns: dict[int, TurnStart] = {}
    executions: dict[int, ToolStart] = {}
    for event in play.journal.events:
        match event:
            case TurnStart():
                turns[event.turn] = event
            case TurnEnd():
                turns.pop(event.turn, None)
            case ToolStart():
                executions[event.x] = event
            case ToolEnd():
                executions.pop(event.x, None)
    for start in executions.values():
        play.journal.record(ToolEnd(session=start.session, x=start.x, how="cancelled"))
    for turn in turns.values():
        outcome = "timeout" if how == "timeout" else "failed"
        play.journal.record(TurnEnd(session=turn.session, turn=turn.turn, outcome=outcome, error=[how, ""]))


@contextlib.contextmanager
def _serve_model(variant: Variant, source: AgentSource) -> Iterator[ModelEndpoint | None]:
    """Serves the model for as long as the run takes, where the variant or the agent reaches it over a protocol."""
    protocol = source.facts.native if variant.protocol == "native" else variant.protocol
    if not protocol:
        yield None
        return
    from pytest_approvals.runner.model_endpoint import ModelEndpoint

    with contextlib.closing(ModelEndpoint(protocol)) as served:
        yield served


@contextlib.contextmanager
def _connect_servers(scenario: Scenario, source: AgentSource) -> Iterator[RunMcpServers | None]:
    """Serves the tools of MCP servers for as long as the run takes, where the agent connects to them."""
    if not source.facts.connects or all(tool.kind != "mcp" for tool in scenario.tools):
        yield None
        return
    with contextlib.closing(RunMcpServers(scenario.servers)) as connected:
        yield connected


@contextlib.contextmanager
def _create_store_folder(variant: Variant) -> Iterator[str]:
    """Gives a folder for native stores, for as long as the run takes; empty where the variant has none."""
    if not variant.serialize.startswith("native."):
        yield ""
        return
    path = Path(tempfile.mkdtemp(prefix="approvals-"))
    try:
        yield str(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
