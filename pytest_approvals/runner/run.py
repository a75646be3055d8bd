"""Run loop: one scenario, in one variant, on one agent, recorded.

Whatever happens on the agent's side ends up in the journal, and the journal ends with how the run ended. Only what
concerns the harness or the user is raised: an interrupt, an invalid argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AdapterError, HostError
from pytest_approvals.journal.events import (
    SIGNAL_MISSING,
    AgentLost,
    Event,
    RunEnd,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.caller import Caller
from pytest_approvals.runner.journal_values import build_header, describe_error
from pytest_approvals.runner.mcp.servers import RunMcpServers, build_manner
from pytest_approvals.runner.oracles import Oracle, create_oracle
from pytest_approvals.runner.run_context import Gate, RunContext, RunErrors, RunLimits
from pytest_approvals.runner.stored_state_agent import StoredStateSource
from pytest_approvals.runner.timeouts import AgentBlocks
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.runner.model_endpoint import ModelEndpoint


CUT_OFF_CLOSE_SECONDS = 3.0
"""The time that the agents of a run that was cut off have to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A recorded run.

    Attributes:
        output: The output of the last turn that finished; the agent's own object if it runs in this process.
        errors: What was raised; of a user's agent only.
        saved: What the agent of each session dumped last, if anything; see `SavedState.parts`.
    """

    # asyncio describes the result of a task for an error that nobody sees, which took longer than to start its loop.
    scenario: Scenario = field(repr=False)
    variant: Variant
    agent: str
    journal: Journal
    output: Any = field(default=None, repr=False)
    errors: RunErrors = field(default_factory=RunErrors, repr=False)
    saved: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

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
    gates: Mapping[str, Gate] | None = None,
    answers: Mapping[str, Any] | None = None,
    store_folder: Path | None = None,
) -> RecordedRun:
    """Play a scenario and record it.

    Args:
        scenario: What is played.
        variant: How it is played.
        source: Builds the agent.
        journal: Where to record; in memory by default. It is closed at the end.
        oracle: Answers what the script leaves open, in place of the variant's oracle.
        limit: How far the run may go.
        lenient: Record what a real provider would refuse, but answer it.
        seed: Recorded in the header, for what derives values from it.
        gates: The tools of a user's agent that need approval, and for which calls; by default those that the source
            names, or else those that the framework marks.
        answers: The values that a user's agent takes for decisions, by verdict; see `RunContext.answers`.
        store_folder: An empty folder for durable stores, which is left as it is; by default one that is removed.
    """
    if variant.saved_by:
        source = StoredStateSource(source, scenario, variant, AgentSpec.parse(source.name).base)
    context = RunContext(
        scenario=scenario,
        variant=variant,
        journal=journal or Journal(),
        header=build_header(scenario, variant, source, seed),
        limit=limit or RunLimits(),
        lenient=lenient,
        gates=dict.fromkeys(source.gated, "always") if gates is None and source.gated is not None else gates,
        answers=answers or {},
        is_attached=getattr(source, "attachment", None) is not None,
    )
    with (
        _connect_servers(scenario, source) as context.mcp_servers,
        _create_store_folder(variant, store_folder) as directory,
        _serve_model(variant, source) as context.model_endpoint,
    ):
        caller = Caller(context, source, oracle or create_oracle(variant.oracle), directory)
        try:
            await _play_to_end(context, caller)
        finally:
            context.journal.close()
    return RecordedRun(
        scenario=scenario,
        variant=variant,
        agent=source.name,
        journal=context.journal,
        output=caller.last_output(),
        errors=context.errors,
        saved=caller.last_saves(),
    )


async def _play_to_end(context: RunContext, caller: Caller) -> None:
    how, error = "completed", None
    try:
        async with context.deadline.running():
            await caller.play()
    except TimeoutError as raised:
        how, error = "timeout", _describe_timeout(context, caller, raised)
    except AgentBlocks as raised:
        how, error = "timeout", describe_error(raised)
    except (AdapterError, Unsupported) as raised:
        how, error = "broken", describe_error(raised)
        context.errors.broken = raised
        stderr = raised.stderr if isinstance(raised, HostError) else ""
        context.record_header()
        context.journal.record(AgentLost(what=str(raised), stderr=stderr))
    except (KeyboardInterrupt, asyncio.CancelledError) as raised:
        await _record_end(context, caller, "interrupted", describe_error(raised))
        raise
    except Exception as raised:
        how, error = "broken", describe_error(raised)
        context.errors.broken = raised
    await _record_end(context, caller, "left" if how == "completed" and caller.has_left else how, error)


def _describe_timeout(context: RunContext, caller: Caller, raised: TimeoutError) -> list[str]:
    if context.waited_for:
        # Only a story with signals needs it.
        from pytest_approvals.runner.missing_signals import find_missing_signal

        missing = find_missing_signal(caller, context.waited_for)
        if missing is not None:
            return [
                SIGNAL_MISSING,
                f"nothing gives the signal {missing!r} before the end of the turn that waits for it",
            ]
    return [type(raised).__name__, f"the run took longer than {context.limit.seconds:g} s"]


async def _record_end(context: RunContext, caller: Caller, how: str, error: list[str] | None) -> None:
    # An agent that could not be built has left no header.
    context.record_header()
    _close_open_events(context, how)
    # An agent that was cut off may be broken or still at work, so it is not asked.
    pending = await _list_pending(caller) if how in ("completed", "left") else []
    context.journal.record(RunEnd(how=how, pending=pending, error=error))
    # Before the agents are closed, which may take long or end this process.
    context.journal.flush()
    seconds = context.limit.seconds
    if how in ("timeout", "broken", "interrupted"):
        # An agent that was cut off may never close, and has used up its time.
        seconds = min(seconds, CUT_OFF_CLOSE_SECONDS)
    with contextlib.suppress(Exception):
        await caller.close(seconds)


async def _list_pending(caller: Caller) -> list[dict[str, Any]]:
    """Ask every session once more what is pending; one that cannot answer counts as having nothing."""
    pending: list[dict[str, Any]] = []
    for session in caller.sessions.values():
        if not session.is_lost:
            with contextlib.suppress(Exception):
                # A request that surfaced nowhere else has no other sign of its session.
                named = {"session": session.name} if session.name else {}
                pending += [{**request.to_dict(), **named} for request in await session.pending()]
    return pending


def _close_open_events(context: RunContext, how: str) -> None:
    """Record the missing ends of a run that was cut off, so that its journal is well-formed."""
    turns: dict[int, TurnStart] = {}
    executions: dict[int, ToolStart] = {}
    for event in context.journal.events:
        match event:
            case TurnStart():
                turns[event.turn] = event
            case TurnEnd():
                turns.pop(event.turn, None)
            case ToolStart():
                executions[event.x] = event
            case ToolEnd():
                executions.pop(event.x, None)
    # A body that waits goes on to its end when its agent is closed.
    context.cut_off.update(executions)
    for start in executions.values():
        context.journal.record(ToolEnd(session=start.session, x=start.x, how="cancelled"))
    for turn in turns.values():
        outcome = "timeout" if how == "timeout" else "failed"
        context.journal.record(TurnEnd(session=turn.session, turn=turn.turn, outcome=outcome, error=[how, ""]))


@contextlib.contextmanager
def _serve_model(variant: Variant, source: AgentSource) -> Iterator[ModelEndpoint | None]:
    """Serve the model during the run, if the variant or the agent reaches it over a protocol."""
    protocol = source.facts.native if variant.protocol == "native" else variant.protocol
    if not protocol:
        yield None
        return
    # Most runs ask the world itself, and need neither protocols nor an HTTP server.
    from pytest_approvals.runner.model_endpoint import ModelEndpoint

    with contextlib.closing(ModelEndpoint(protocol)) as endpoint:
        yield endpoint


@contextlib.contextmanager
def _connect_servers(scenario: Scenario, source: AgentSource) -> Iterator[RunMcpServers | None]:
    """Serve the tools of MCP servers during the run, if the agent connects to them."""
    if not source.facts.connects or all(tool.kind != "mcp" for tool in scenario.tools):
        yield None
        return
    manners = {(tool.agent, tool.server, tool.visible_name): build_manner(tool) for tool in scenario.tools}
    with contextlib.closing(RunMcpServers(scenario.servers, manners)) as servers:
        yield servers


@contextlib.contextmanager
def _create_store_folder(variant: Variant, kept: Path | None) -> Iterator[str]:
    """Yield a folder for native stores, which exists during the run if it is not *kept*; empty if there are none."""
    if not variant.serialize.startswith("native.") or kept is not None:
        yield str(kept or "")
        return
    path = Path(tempfile.mkdtemp(prefix="approvals-"))
    try:
        yield str(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
