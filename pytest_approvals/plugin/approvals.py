"""The fixture `approvals`: runs a person's own agent on a scripted model, records it and judges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.agent_side.contract import Attachment
from pytest_approvals.agents.sources import create_source
from pytest_approvals.errors import AgentFailed, UnknownName, UsageError
from pytest_approvals.journal.events import AgentStart
from pytest_approvals.plugin.run_options import build_variant, resolve_options, validate_options
from pytest_approvals.plugin.run_result import RunResult
from pytest_approvals.plugin.scripted_model import ScriptedModel
from pytest_approvals.plugin.user_agent import resolve_user_agent
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.event_loops import require_asyncio, run_coroutine
from pytest_approvals.runner.oracles import Oracle, create_oracle
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.build import scenario, tool
from pytest_approvals.scenario.model import DEFAULT_PROMPT, Scenario, ScriptedReply, Tool, ToolBehaviour, Variant

if TYPE_CHECKING:
    from pytest_approvals.plugin.session import ApprovalsSession

Stub = ToolBehaviour | Sequence[ToolBehaviour]
Model = Sequence[ScriptedReply] | Mapping[str, Sequence[ScriptedReply]]


class Approvals:
    """
    Runs agents for one test.

    Attributes:
        runs: All runs so far, also those that failed.
    """

    def __init__(self, bench: ApprovalsSession, item: pytest.Item, config: Mapping[str, Any], oracle: Oracle) -> None:
        self.runs: list[RunResult] = []
        self._bench = bench
        self._item = item
        self._oracle = oracle
        self._wishes = resolve_options(item, config, bench.settings)

    def run(
        self,
        subject: Any,
        prompt: str = DEFAULT_PROMPT,
        *,
        model: Model,
        agents: Mapping[str, Model] | None = None,
        gated: Iterable[str] | None = None,
        tools: Mapping[str, Stub] | None = None,
        run_options: Mapping[str, Any] | None = None,
        caller: Iterable[Any] | None = None,
        **wishes: Any,
    ) -> RunResult:
        """
        Runs an agent on a scripted model, from the prompt to the end, and judges what happened.

        It waits for the end, in an event loop of its own. Where an event loop runs in this thread already, the agent
        runs in another thread meanwhile: in asynchronous tests, rather `await approvals.arun(...)`.

        Arguments:
            subject: The framework's agent object, or a callable that takes the framework's model and returns one;
                `serialize` other than `none` needs the callable.
            prompt: The first message; not needed with *caller*.
            model: The replies of the model, made by `calls`, `say` and `fails`, or a `scripted_model`.
            agents: The replies of the models of agents that tools run, by the agent's name.
            gated: The tools whose calls must wait for a person; left out: those that the framework marks.
            tools: The tools that do not run for real, and what they do instead: `{"send_mail": returns("ok")}`.
            run_options: Keyword arguments for the framework's own run call.
            caller: The caller's script, where the prompt and an oracle are not enough: messages, answers, steps.
            wishes: How the run is made: `oracle`, `serialize`, `resume`, `history`, `stream`, `answer`, `chunking`,
                `seed`, `time_limit`; `agent`, a spec, where the framework cannot be told from *subject*; `checks`:
                `raise` (the default) or `collect`.

        Errors:
            CheckFailed: The run broke a requirement, and *checks* is `raise`.
            AgentFailed: The agent's last turn failed, nobody let it fail on purpose, and *checks* is `raise`.
            UsageError: An argument cannot be used.
            ScenarioError: Model and caller do not fit each other.
        """
        __tracebackhide__ = True
        made = self._made(subject, prompt, model, agents, gated, tools, run_options, caller, wishes)
        return self._judged(made, run_coroutine(made.play()))

    async def arun(
        self,
        subject: Any,
        prompt: str = DEFAULT_PROMPT,
        *,
        model: Model,
        agents: Mapping[str, Model] | None = None,
        gated: Iterable[str] | None = None,
        tools: Mapping[str, Stub] | None = None,
        run_options: Mapping[str, Any] | None = None,
        caller: Iterable[Any] | None = None,
        **wishes: Any,
    ) -> RunResult:
        """Does what `run` does, in the running event loop."""
        __tracebackhide__ = True
        require_asyncio()
        made = self._made(subject, prompt, model, agents, gated, tools, run_options, caller, wishes)
        return self._judged(made, await made.play())

    def _made(
        self,
        subject: Any,
        prompt: str,
        model: Model,
        agents: Mapping[str, Model] | None,
        gated: Iterable[str] | None,
        stubs: Mapping[str, Stub] | None,
        run_options: Mapping[str, Any] | None,
        caller: Iterable[Any] | None,
        wishes: Mapping[str, Any],
    ) -> _PreparedRun:
        __tracebackhide__ = True
        held = {**self._wishes, **validate_options(wishes, "approvals.run")}
        local = resolve_user_agent(subject, held["agent"])
        attachment = Attachment(
            subject=subject,
            gated=None if gated is None else frozenset(_require_names("gated", gated)),
            stubs=frozenset(stubs or ()),
            run_options=dict(run_options or {}),
        )
        played = scenario(
            id=self._item.nodeid,
            title=self._item.name,
            model=model,
            agents=agents,
            tools=[_build_stub(name, does) for name, does in (stubs or {}).items()],
            caller=caller,
            prompt=prompt,
            attached=True,
        )
        return _PreparedRun(
            scenario=played,
            variant=build_variant(held),
            source=create_source(local, attachment),
            oracle=_resolve_oracle(held["oracle"]) or self._oracle,
            gated=attachment.gated or frozenset(),
            limit=RunLimits(seconds=held["time_limit"]),
            seed=held["seed"],
            raises=held["checks"] == "raise",
            script=model if isinstance(model, ScriptedModel) else None,
            bench=self._bench,
            item=self._item,
        )

    def _judged(self, made: _PreparedRun, run: RecordedRun) -> RunResult:
        __tracebackhide__ = True
        judged = self._bench.judge(self._item, run, made.source, own=True)
        own = RunResult(run, judged.verdicts)
        self.runs.append(own)
        if made.script is not None:
            made.script.runs.append(own)
        made.refuse_unknown_tools(own)
        if made.raises:
            judged.raise_findings()
            made.raise_failure(own)
        judged.warn(stacklevel=3)
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedRun:
    """A run, all made to be played."""

    scenario: Scenario
    variant: Variant
    source: AgentSource
    oracle: Oracle
    gated: frozenset[str]
    limit: RunLimits
    seed: int
    raises: bool
    script: ScriptedModel | None
    bench: ApprovalsSession
    item: pytest.Item

    async def play(self) -> RecordedRun:
        """Plays it."""
        with self.bench.journal(self.scenario, self.source, self.variant) as journal:
            return await run_scenario(
                self.scenario,
                self.variant,
                self.source,
                journal=journal,
                oracle=self.oracle,
                limit=self.limit,
                seed=self.seed,
            )

    def refuse_unknown_tools(self, run: RunResult) -> None:
        """
        Sees that the agent has all the tools that the test names.

        Errors:
            UnknownName: It lacks one; the nearest one that it has is named.
        """
        __tracebackhide__ = True
        there = {name for event in run.events if isinstance(event, AgentStart) for name in event.tools}
        for argument, names in (("gated", self.gated), ("tools", {stub.name for stub in self.scenario.tools})):
            for name in sorted(names - there if there else ()):
                raise UnknownName(f"tool of {run.agent} (in {argument}=)", name, there)

    def raise_failure(self, run: RunResult) -> None:
        """
        Raises the failure that a run ended with, where neither its script nor its stubs fail on purpose.

        Errors:
            AgentFailed: The agent's last turn failed.
        """
        __tracebackhide__ = True
        scripts = [reply for script in self.scenario.agents.values() for reply in script.replies]
        stubs = [one for stub in self.scenario.tools for one in stub.behaviours]
        if run.failure is None or any(reply.failure for reply in scripts) or any(stub.raises for stub in stubs):
            return
        raise AgentFailed(run.agent, *run.failure)


def _build_stub(name: str, does: Stub) -> Tool:
    several = [does] if isinstance(does, ToolBehaviour) else list(does)
    if not several or not all(isinstance(one, ToolBehaviour) for one in several):
        raise UsageError(f"tools={{{name!r}: ...}} takes what returns(), raises() or asks_again() make, not {does!r}")
    return tool(name, *several)


def _require_names(argument: str, given: Iterable[str]) -> Iterable[str]:
    if isinstance(given, str):
        raise UsageError(f"{argument}= is a set of names: {argument}={{{given!r}}}")
    return given


def _resolve_oracle(wanted: Any) -> Oracle | None:
    return create_oracle(wanted) if isinstance(wanted, str) else wanted
