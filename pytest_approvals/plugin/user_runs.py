"""The fixture `approvals`: runs a user's own agent on a scripted model, records it and judges it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest

from pytest_approvals.agent_side.contract import ANY_AGENT, MAIN, Attachment
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.metadata import import_object
from pytest_approvals.agent_side.contract.types import Verdict
from pytest_approvals.agent_side.kit.store_check import find_store_remedy, is_database_error
from pytest_approvals.agent_side.kit.tool_schema import show_place
from pytest_approvals.agents.sources import create_source
from pytest_approvals.checks import CheckFailed, is_failing, judge, root_findings
from pytest_approvals.errors import AgentFailed, ApprovalsError, UnknownName, UsageError, suggest_name
from pytest_approvals.errors.printable import escape_value, quote, shorten
from pytest_approvals.journal.arguments import find_unmet_constraint
from pytest_approvals.journal.events import (
    AgentStart,
    Event,
    Header,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRequest,
    StepSkipped,
    ToolStart,
)
from pytest_approvals.journal.history import History, RecordedCall
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.plugin.drawn_stories import MAX_ENDINGS, find_failing_story
from pytest_approvals.plugin.model_script import ScriptedModel
from pytest_approvals.plugin.run_options import (
    CheckMode,
    Chunking,
    Gates,
    HistoryMode,
    OptionLayer,
    ResumePlace,
    RunOptions,
    SerializeMode,
    build_variant,
    list_layers,
    merge_layers,
    options_from_call,
    read_gates,
    require_supported,
    validate_oracle,
)
from pytest_approvals.plugin.run_result import RunResult
from pytest_approvals.plugin.user_agent import (
    CheckedFactory,
    check_factory,
    check_run_options,
    find_user_error,
    is_factory,
    require_synchronous,
    resolve_user_agent,
)
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.runner.event_loops import require_asyncio, run_coroutine
from pytest_approvals.runner.oracles import Oracle, approve_all, create_oracle
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import Gate, RunLimits, fails_on_purpose
from pytest_approvals.scenario.build import say, scenario, tool
from pytest_approvals.scenario.model import (
    DEFAULT_PROMPT,
    AnswerSource,
    Scenario,
    Script,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    Variant,
)
from pytest_approvals.scenario.requirements import all_decisions
from pytest_approvals.scenario.validation.tools import describe_argument, matches_type

if TYPE_CHECKING:
    from pytest_approvals.plugin.state import PluginState

Stub = ToolBehaviour | Sequence[ToolBehaviour]
Model = Sequence[ScriptedReply] | Mapping[str, Sequence[ScriptedReply]]
Endings = str | ScriptedReply | Mapping[str, str | ScriptedReply]
RunOptionsSource = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | str


class Approvals:
    """Run agents for one test.

    Attributes:
        runs: All runs so far, also those that failed.
    """

    def __init__(
        self,
        state: PluginState,
        item: pytest.Item,
        config: Mapping[str, Any],
        oracle: Oracle | str,
        mode: str | None = None,
    ) -> None:
        validate_oracle(oracle, "the fixture approval_oracle")
        self.runs: list[RunResult] = []
        self._state = state
        self._item = item
        self._oracle = oracle
        self._mode = mode
        self._layers = list_layers(item, config, state.settings, mode)

    def run(
        self,
        subject: Any,
        prompt: str = DEFAULT_PROMPT,
        *,
        model: Model | Mapping[str, Model],
        agents: Mapping[str, Model] | None = None,
        gated: Gates | None = None,
        tools: Mapping[str, Stub] | None = None,
        run_options: RunOptionsSource | None = None,
        caller: Iterable[Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        equal_arguments: bool = False,
        unused: bool = False,
        agent: str | None = None,
        oracle: Oracle | str | None = None,
        serialize: SerializeMode | None = None,
        resume: ResumePlace | None = None,
        history: HistoryMode | None = None,
        stream: bool | None = None,
        sync: bool | None = None,
        answer: AnswerSource | None = None,
        chunking: Chunking | None = None,
        checks: CheckMode | None = None,
        seed: int | None = None,
        time_limit: float | None = None,
    ) -> RunResult:
        """Run an agent on a scripted model, from the prompt to the end, and judge what happened.

        This waits for the end, in an event loop of its own. If an event loop runs in this thread already, the agent
        runs in another thread meanwhile: in asynchronous tests, rather `await approvals.arun(...)`.

        The options from `agent` on are optional. What is left out is taken from the marker `approvals(...)`, the
        fixture `approvals_config` and the command line, in that order.

        Args:
            subject: The framework's agent object, or a callable that takes the framework's model and returns one;
                `serialize` other than `none` needs the callable.
            prompt: The first message; not needed with *caller*.
            model: The replies of the model, made by `calls`, `say` and `fails`, or a `scripted_model`. If tools run
                other agents, or the conversation is handed over to them: their replies by the agent's name, with those
                of the agent itself under `main`; else all agents take their replies from the one script, in order.
            agents: The same as further entries of *model*.
            gated: The tools whose calls must wait for a decision, as names; or, by name, which of their calls:
                `{"pay": when("amount", greater_than=100)}`, or a function of the call's arguments. By default, those
                that the framework asks about.
            tools: The tools that do not run for real, and what they do instead: `{"send_mail": returns("ok")}`.
            run_options: Keyword arguments for the framework's own run call; or a function that returns them, or its
                name as `module:function`, which each fresh process calls anew, so that it can hold any objects.
            caller: The caller's script if the prompt and an oracle are not enough: messages, answers, steps.
            answers: What the agent's own gate takes for a decision, if it is not the framework's own format: by
                `approve`, `reject`, `edit`, `always` and `never` a value, or a function of the decision (with
                `.arguments`, `.reason` and `.request`) that returns one.
            equal_arguments: The model calls a tool twice with equal arguments, on purpose.
            unused: Replies, scripts of other agents and the oracle may stay unused, on purpose; otherwise a reply that
                is never asked for, and an *oracle* without a request, are errors.
            agent: The spec of the agent if the framework cannot be told from *subject*.
            oracle: Who answers approval requests, as an oracle or its name; by default the fixture `approval_oracle`.
            serialize: What the state goes through between turns: `none`, `copy`, `json` or `native.NAME`.
            resume: The process that goes on after a save: `same`, `fresh` or `cold`.
            history: What the caller keeps of the state: `whole`, or what it can `append`.
            stream: Whether the model's replies are streamed.
            sync: Whether the agent is run by the framework's synchronous methods, if it has any of its own.
            answer: The copy of a request that decisions are made from: `held`, `restored` or `rebuilt`; by default
                `held` if *serialize* is `none`, else `restored`.
            chunking: How streamed replies are cut.
            checks: `raise` what breaks a requirement (the default), or `collect` it in `run.verdicts`.
            seed: The seed of generated values.
            time_limit: Seconds for the run.

        Raises:
            CheckFailed: The run broke a requirement, and *checks* is `raise`.
            AgentFailed: The agent's last turn failed, nothing lets it fail on purpose, and *checks* is `raise`.
            UsageError: An argument is invalid.
            ScenarioError: Model and caller do not fit each other.
        """
        __tracebackhide__ = True
        options = RunOptions(
            agent=agent,
            oracle=oracle,
            serialize=serialize,
            resume=resume,
            history=history,
            stream=stream,
            sync=sync,
            answer=answer,
            chunking=chunking,
            checks=checks,
            seed=seed,
            time_limit=time_limit,
        )
        prepared = self._prepare(
            subject, prompt, model, agents, gated, tools, run_options, caller, answers, equal_arguments, unused, options
        )
        return self._judge(prepared, run_coroutine(prepared.record()))

    async def arun(
        self,
        subject: Any,
        prompt: str = DEFAULT_PROMPT,
        *,
        model: Model | Mapping[str, Model],
        agents: Mapping[str, Model] | None = None,
        gated: Gates | None = None,
        tools: Mapping[str, Stub] | None = None,
        run_options: RunOptionsSource | None = None,
        caller: Iterable[Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        equal_arguments: bool = False,
        unused: bool = False,
        agent: str | None = None,
        oracle: Oracle | str | None = None,
        serialize: SerializeMode | None = None,
        resume: ResumePlace | None = None,
        history: HistoryMode | None = None,
        stream: bool | None = None,
        sync: bool | None = None,
        answer: AnswerSource | None = None,
        chunking: Chunking | None = None,
        checks: CheckMode | None = None,
        seed: int | None = None,
        time_limit: float | None = None,
    ) -> RunResult:
        """Do what `run` does, with the same arguments, in the running event loop."""
        __tracebackhide__ = True
        require_asyncio()
        options = RunOptions(
            agent=agent,
            oracle=oracle,
            serialize=serialize,
            resume=resume,
            history=history,
            stream=stream,
            sync=sync,
            answer=answer,
            chunking=chunking,
            checks=checks,
            seed=seed,
            time_limit=time_limit,
        )
        prepared = self._prepare(
            subject, prompt, model, agents, gated, tools, run_options, caller, answers, equal_arguments, unused, options
        )
        return self._judge(prepared, await prepared.record())

    def explore(
        self,
        subject: Any,
        prompt: str = DEFAULT_PROMPT,
        *,
        stories: int | None = None,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        ending: Endings = "Done.",
        gated: Gates | None = None,
        tools: Mapping[str, Stub] | None = None,
        run_options: RunOptionsSource | None = None,
        answers: Mapping[str, Any] | None = None,
        agent: str | None = None,
        oracle: Oracle | str | None = None,
        serialize: SerializeMode | None = None,
        stream: bool | None = None,
        time_limit: float | None = None,
    ) -> None:
        """Play stories that Hypothesis draws: which tools the model calls, with what, and what the caller decides.

        The tools and the types of their arguments are read from the agent. The smallest story that fails is run as if
        it were an `approvals.run` of the test, which the error shows. Each story runs in an event loop of its own.
        An agent whose turn takes several replies, such as a team that speaks in turn, gets as many at the end of each
        story. A story in which the model would call something when it is offered no tools is left out, since no
        provider does so.

        Args:
            subject: A callable that takes the framework's model and returns a new agent, or the agent itself.
            prompt: The first message.
            stories: How many stories to play; by default `max_examples` of the profile of Hypothesis.
            arguments: By tool and argument, strategies of Hypothesis for values that follow from more than their JSON
                Schema; and for tools of an MCP server, which are called only if they are named here.
            ending: The model's last reply: its text, such as the word with which a team ends, or a structured answer
                as `calls("final_result", text="Done.")`. A mapping gives those of agents that tools run by their names,
                beside that of `main`.
            gated: See `run`.
            tools: See `run`.
            run_options: See `run`; rather a function, which is called for each story.
            answers: See `run`.
            agent: See `run`.
            oracle: Who answers all approval requests; by default, each call is approved or rejected as drawn.
            serialize: See `run`.
            stream: See `run`.
            time_limit: Seconds for each story.

        Raises:
            CheckFailed: A story broke a requirement.
            AgentFailed: A story made the agent fail.
            UsageError: An argument is invalid, the agent has no tools, Hypothesis is not installed, or a story that
                failed did not fail again.
        """
        __tracebackhide__ = True
        options = RunOptions(agent=agent, serialize=serialize, stream=stream, time_limit=time_limit, checks="raise")
        given = ending if isinstance(ending, Mapping) else {MAIN: ending}
        # Agents inside tools only end their runs: which tools they have is known when they run.
        inner_ending = ending if isinstance(ending, str) else "Done."
        replies = {name: _to_reply(one) for name, one in {MAIN: "Done.", ANY_AGENT: inner_ending, **given}.items()}
        inner = {name: [reply] for name, reply in replies.items() if name != MAIN}
        last = replies[MAIN]

        def prepare(model: Sequence[ScriptedReply], decides: Oracle | str) -> _PreparedRun:
            chosen = RunOptions(**{**options, "oracle": decides})
            return self._prepare(
                subject, prompt, model, inner, gated, tools, run_options, None, answers, False, True, chosen
            )

        def find_failure(model: Sequence[ScriptedReply], decides: Oracle | str) -> str | None:
            prepared = prepare(model, decides)
            recorded = run_coroutine(prepared.record(kept=False))
            return None if _calls_without_offer(recorded) else prepared.find_failure(recorded)

        endings: tuple[ScriptedReply, ...] = (last,)
        plainest = prepare(endings, approve_all())
        while _is_exhausted(recorded := run_coroutine(plainest.record(kept=False))):
            if last.calls:
                raise UsageError(
                    f"the agent asks its model again after {_show_ending(last)}, the ending of this exploration: name "
                    "the tool that takes its answer, and arguments that fit"
                )
            endings = (*endings, last)
            if len(endings) > MAX_ENDINGS:
                raise UsageError(
                    f"the agent asks its model for one message {len(endings)} times, which answers "
                    f'{_show_ending(last)}; if it waits for a text, name it: explore(..., ending="TERMINATE")'
                )
            plainest = prepare(endings, approve_all())
        try:
            plainest.raise_failure(RunResult(recorded, ()))
        except AgentFailed as error:
            error.add_note(
                f"it fails without any call, when its model ends with {_show_ending(last)}; if it takes a structured "
                'answer, name one: explore(..., ending=calls("final_result", text="Done.")), or the text of its JSON'
            )
            raise
        found = plainest.read_tools(arguments or {})
        story = find_failing_story(
            found, find_failure, stories=stories, arguments=arguments or {}, oracle=oracle, endings=endings
        )
        if story is None:
            return
        prepared = replace(prepare(story.model, story.oracle), drawn=True)
        try:
            self._judge(prepared, run_coroutine(prepared.record()))
        except ApprovalsError as error:
            error.add_note(f"the smallest story that fails so:\n{story.format_run(prompt)}")
            if isinstance(error, AgentFailed) and (names := _list_inner_agents(self.runs[-1])):
                error.add_note(
                    f"in it, agents that tools run end with a text ({', '.join(names)}); if one takes a structured "
                    f'answer, name one: explore(..., ending={{{names[0]!r}: calls("final_result", text="Done.")}})'
                )
            raise
        raise UsageError(
            f"A story failed, and did not fail again; give a function that builds a new agent:\n"
            f"{story.format_run(prompt)}"
        )

    async def aexplore(self, subject: Any, prompt: str = DEFAULT_PROMPT, **options: Any) -> None:
        """Do what `explore` does, with the same arguments, in another thread while the event loop goes on."""
        __tracebackhide__ = True
        require_asyncio()
        await asyncio.to_thread(self.explore, subject, prompt, **options)

    def require_mode(self) -> None:
        """Fail a test that uses the fixture `serialize_mode`, and none of whose runs had the mode.

        Raises:
            UsageError: The calls or markers of the test say another mode, or it made no run.
        """
        __tracebackhide__ = True
        modes = {run.variant.serialize for run in self.runs}
        if self._mode is not None and self._mode not in modes:
            ran = f"its runs had {', '.join(sorted(map(repr, modes)))}" if modes else "it made no run"
            raise UsageError(
                f"the test asks for serialize={self._mode!r} by the fixture serialize_mode, but {ran}; "
                "leave `serialize` to the fixture, or do not use the fixture"
            )

    def _prepare(
        self,
        subject: Any,
        prompt: str,
        model: Model | Mapping[str, Model],
        agents: Mapping[str, Model] | None,
        gated: Gates | None,
        stubs: Mapping[str, Stub] | None,
        run_options: RunOptionsSource | None,
        caller: Iterable[Any] | None,
        answers: Mapping[str, Any] | None,
        equal_arguments: bool,
        unused: bool,
        arguments: RunOptions,
    ) -> _PreparedRun:
        __tracebackhide__ = True
        layers = [*self._layers, OptionLayer("approvals.run", options_from_call(arguments, "approvals.run"))]
        options = merge_layers(layers)
        local = resolve_user_agent(subject, options["agent"])
        check_factory(subject, local)
        if options["sync"]:
            require_synchronous(local)
        model, agents, script = _split_by_agent(model, agents)
        gates = read_gates(gated)
        attachment = Attachment(
            subject=CheckedFactory(subject, local) if is_factory(subject, local) else subject,
            gated=None if gates is None else frozenset(name for name, gate in gates.items() if gate != "never"),
            stubs=frozenset(stubs or ()),
            run_options=_make_run_options(run_options),
            options_factory=None if isinstance(run_options, Mapping) else run_options,
            scripted=frozenset(agents or ()),
            sync=options["sync"],
        )
        check_run_options(attachment.run_options, local)
        built = scenario(
            id=self._item.nodeid,
            title=self._item.name,
            model=model,
            agents=agents,
            tools=[_build_stub(name, behaviour) for name, behaviour in (stubs or {}).items()],
            caller=caller,
            prompt=prompt,
            attached=True,
            equal_arguments=equal_arguments,
        )
        variant = build_variant(options)
        source = create_source(local, attachment)
        lacks = local.adapter.attached_missing
        facts = replace(
            source.facts,
            capabilities=source.facts.capabilities - lacks.keys(),
            missing={**source.facts.missing, **lacks},
        )
        require_supported(built, variant, source.name, facts, layers)
        return _PreparedRun(
            scenario=built,
            variant=variant,
            source=source,
            oracle=_resolve_oracle(options["oracle"] or self._oracle),
            gates=gates,
            answers=_read_answers(answers),
            limit=RunLimits(seconds=options["time_limit"]),
            seed=options["seed"],
            raises=options["checks"] == "raise",
            unused=unused,
            names_oracle=arguments.get("oracle") is not None,
            script=script,
            subject=subject,
            root=self._item.config.rootpath,
            state=self._state,
        )

    def _judge(self, prepared: _PreparedRun, recorded: RecordedRun) -> RunResult:
        __tracebackhide__ = True
        judged = self._state.judge(self._item, recorded, prepared.source, is_user_run=True)
        result = RunResult(recorded, judged.verdicts)
        self.runs.append(result)
        self._state.note_gates(self._item, *prepared.find_gates(result))
        if prepared.script is not None:
            prepared.script.runs.append(result)
        # Before the findings, which a misspelled name of a tool may cause.
        prepared.refuse_unknown_tools(result)
        if prepared.raises:
            prepared.raise_user_error(recorded)
            prepared.refuse_unknown_calls(result)
            prepared.refuse_misfits(result)
            # A script that is too short is the test's, and no error of the harness.
            if {finding.verdict.check for finding in judged.failing} == {"scenario-exercised"}:
                prepared.raise_failure(result)
            prepared.raise_findings(judged)
            prepared.raise_failure(result)
            prepared.refuse_unused(result)
        if recorded.journal.failure is not None:
            raise recorded.journal.failure
        if prepared.raises:
            # From here through `run` or `arun` to the line of the test; a warning may be an error there.
            judged.warn(stacklevel=3)
        return result


def _name_speaker(agent: str) -> str:
    return "the first agent" if agent in ("", MAIN) else f"agent {agent!r}"


def _to_reply(ending: str | ScriptedReply) -> ScriptedReply:
    return say(ending) if isinstance(ending, str) else ending


def _show_ending(ending: ScriptedReply) -> str:
    return (
        repr(ending.say) if ending.say is not None else " and ".join(f"a call of {one.tool!r}" for one in ending.calls)
    )


def _list_inner_agents(run: RunResult) -> list[str]:
    """Return the names of the agents that tools have run, in their order."""
    exchanges = run.history.exchanges
    return list(dict.fromkeys(each.agent for each in exchanges if each.conversation != MAIN and each.agent != MAIN))


def _is_exhausted(recorded: RecordedRun) -> bool:
    """Return whether the model was asked more often than the script has replies."""
    return any(isinstance(event, ModelExhausted) for event in recorded.events)


def _calls_without_offer(recorded: RecordedRun) -> bool:
    """Return whether the model has called something when it was offered no tools, or that tool at other times only.

    Frameworks ask so for a last text: `reflect_on_tool_use` of AutoGen does. An agent that has taken the conversation
    over has other tools.
    """
    offers = {event.m: frozenset(event.tools) for event in recorded.events if isinstance(event, ModelRequest)}
    known: frozenset[str] = frozenset().union(*offers.values())
    return any(
        not offers.get(event.m) or not known.isdisjoint({call["tool"] for call in event.calls} - offers[event.m])
        for event in recorded.events
        if isinstance(event, ModelAnswer) and event.calls
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedRun:
    """A run with all that it needs."""

    scenario: Scenario
    variant: Variant
    source: AgentSource
    oracle: Oracle
    gates: Mapping[str, Gate] | None
    answers: Mapping[str, Any]
    limit: RunLimits
    seed: int
    raises: bool
    unused: bool
    names_oracle: bool
    script: ScriptedModel | None
    subject: object
    root: Path
    state: PluginState
    drawn: bool = False

    async def record(self, *, kept: bool = True) -> RecordedRun:
        """Run it, and write its journal where the session keeps them unless it is not *kept*."""
        return await run_scenario(
            self.scenario,
            self.variant,
            self.source,
            journal=self.state.begin_run(self.scenario, self.source, self.variant) if kept else None,
            oracle=self.oracle,
            limit=self.limit,
            seed=self.seed,
            gates=self.gates,
            answers=self.answers,
        )

    def find_failure(self, recorded: RecordedRun) -> str | None:
        """Return what fails in a run, as a word that runs with the same failure share; None if nothing does.

        Raises:
            UsageError: The run was asked for something that the agent or its framework cannot do.
        """
        verdicts = judge(read_history(recorded.events))
        settings = self.state.settings
        try:
            self.raise_user_error(recorded)
            for finding in root_findings(verdicts):
                if is_failing(
                    finding.verdict.status, finding.severity, strict=settings.strict, fail_on=settings.fail_on
                ):
                    return finding.verdict.check
            self.raise_failure(RunResult(recorded, verdicts))
        except AgentFailed as error:
            return type(error).__name__
        return None

    def read_tools(self, arguments: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Run it, and return the parameters of the agent's own tools by name.

        Args:
            arguments: Arguments by tool, also of tools of servers, which only the model is told of.

        Raises:
            UsageError: It has none, or not all that the test names.
        """
        __tracebackhide__ = True
        recorded = run_coroutine(self.record(kept=False))
        self.raise_user_error(recorded)
        self.refuse_unknown_tools(RunResult(recorded, ()))
        header = recorded.events[0]
        assert isinstance(header, Header)
        present = {name for event in recorded.events if isinstance(event, AgentStart) for name in event.tools}
        # An agent may hide tools from its model.
        offers = [set(event.tools) for event in recorded.events if isinstance(event, ModelRequest)]
        if offers and not present.isdisjoint(offers[0]):
            present &= offers[0]
        found = {
            name: declared.get("parameters") or {}
            for name, declared in header.tools.items()
            if name in present and declared.get("kind", "function") == "function"
        }
        listed = frozenset[str]().union(*offers)
        found |= {
            name: {argument: {"required": True} for argument in given}
            for name, given in arguments.items()
            if name in listed and name not in found
        }
        if not found:
            others = sorted(listed - header.tools.keys())
            advice = (
                f"; say with what it could call {', '.join(others)}: arguments={{{others[0]!r}: {{...}}}}"
                if others
                else ""
            )
            raise UsageError(f"{recorded.agent} has no tools of its own that a story could call{advice}")
        return found

    def find_gates(self, run: RunResult) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
        """Return what the end of the session says about gates.

        Returns:
            Whether anything needed an approval, or the test says what does; otherwise the tools that have effects, by
            their annotations or else by their names, and before which nothing asks, also those of other agents that
            are run; and the tools that a person was asked about.
        """
        asked = {request.tool for request in run.requests}
        end = run.history.end
        # Of an agent that was never built it is unknown what it marks.
        if self.gates is not None or (end is not None and end.how == "broken"):
            return True, (), tuple(sorted(asked))
        tools = run.history.header.tools if run.history.header is not None else {}
        # Of a tool that the framework does not mark it is unknown whether it asks.
        free = {key: declared for key, declared in tools.items() if declared.get("approval") in ("never", {})}
        effects = set()
        for key, declared in free.items():
            name = key.removeprefix(f"{declared.get('agent')}/")
            if declared.get("effects", _EFFECTS.match(name) is not None):
                effects.add(name)
        return bool(asked) or len(free) < len(tools), tuple(sorted(effects - asked)), tuple(sorted(asked))

    def refuse_unknown_tools(self, run: RunResult) -> None:
        """Check that the agent has all the tools that the test names.

        Raises:
            UnknownName: It lacks one; the message suggests the nearest one that it has.
        """
        __tracebackhide__ = True
        present = _list_tools(run)
        requests = [event for event in run.events if isinstance(event, ModelRequest)]
        inner = {call.tool: call.agent for call in run.history.calls if call.agent not in ("", MAIN)}
        if present:
            present |= {name for name, agent in inner.items() if agent in self.scenario.agents}
            # Some tools are there only while the agent runs, such as those that a function gives.
            present |= {name for request in requests if request.agent == MAIN for name in request.tools}
        gated = set(self.gates or ())
        for name in sorted(gated & set(inner) - present):
            raise UsageError(
                f"the gated tool {name!r} belongs to the agent {inner[name]!r} inside a tool of {run.agent}, which "
                f"takes its replies from the script of the main agent; give it its own: model={{'main': [...], "
                f"{inner[name]!r}: [...]}}"
            )
        for argument, names in (("gated", gated), ("tools", {stub.name for stub in self.scenario.tools})):
            # Of an agent that never started no tools are known, and of one that asked no model not all of them.
            for name in sorted(names - present if present and requests else ()):
                raise UnknownName("tool", name, present, f"{argument}= for {run.agent}")

    def refuse_unknown_calls(self, run: RunResult) -> None:
        """Check that the script of the main agent calls tools that the agent has.

        Raises:
            UnknownName: The model calls another one, and the script does not say `unknown_tool=True`.
            UsageError: It calls one that only another agent of a team has.
        """
        __tracebackhide__ = True
        replies = [reply for script in self.scenario.agents.values() for reply in script.replies]
        meant = {call.tool for reply in replies for call in reply.calls if call.unknown_tool}
        present = _list_tools(run)
        by_agent: dict[str, set[str]] = {}
        for event in run.events:
            if isinstance(event, ModelRequest):
                by_agent.setdefault(event.agent, set()).update(event.tools)
        offered = {name for names in by_agent.values() for name in names}
        # An agent that tells neither has tools that nobody knows of.
        if not offered:
            return
        for call in run.history.calls:
            is_known = call.tool in present | offered | meant or call.executions or call.requests
            if not is_known and not _may_be_answer(run.history, call):
                if "hosted_mcp" in offered:
                    raise UsageError(
                        f"{run.agent} does not say which tools its hosted MCP server has; if {call.tool!r} is one of "
                        f"them, say what the server returns: tools={{{call.tool!r}: returns(...)}}"
                    )
                raise UnknownName("tool", call.tool, present | offered, f"the script of the model of {run.agent}")
            own = by_agent.get(call.agent, offered)
            if own and call.tool in offered - own - meant and not (call.executions or call.requests):
                owner = next(name for name, names in by_agent.items() if call.tool in names)
                raise UsageError(
                    f"the script of the model of {run.agent} calls {call.tool!r} ({call.label}) where "
                    f"{_name_speaker(call.agent)} speaks, whose tools are {', '.join(sorted(own))}; "
                    f"{_name_speaker(owner)} has {call.tool!r}, and has its own replies in the order of the team"
                )

    def refuse_misfits(self, run: RunResult) -> None:
        """Check that the arguments in the script fit the tools that it calls.

        Raises:
            UsageError: Some do not, and the call does not say `invalid=True`.
        """
        __tracebackhide__ = True
        header = run.history.header
        observes = None if header is None else header.observes
        # What the run failed with is told first, and a body that cannot be seen may have run.
        if self.drawn or run.failure is not None or (observes is not None and ToolStart.kind not in observes):
            return
        replies = [reply for script in self.scenario.agents.values() for reply in script.all_replies]
        meant = [(call.tool, call.arguments) for reply in replies for call in reply.calls if call.invalid]
        meant_edits = {decision.label for decision in all_decisions(self.scenario) if decision.invalid}
        for call in run.history.calls:
            # An inner agent's body may run unseen.
            is_own = call.agent in ("", MAIN) and call.kind == "function"
            if is_own and isinstance(call.arguments, Mapping) and (call.tool, call.arguments) not in meant:
                misfit = _find_misfit(call)
                if misfit is not None:
                    raise UsageError(
                        f"the script of the model of {run.agent} calls {call.tool!r} with arguments that do not fit "
                        f"({call.label}): {misfit}; if that is meant, write calls(call({call.tool!r}, ..., "
                        "invalid=True))"
                    )
            if call.label not in meant_edits and not any(run.how != "asked" for run in call.executions):
                self._refuse_misfit_edit(run, call)

    def _refuse_misfit_edit(self, run: RunResult, call: RecordedCall) -> None:
        __tracebackhide__ = True
        for decision in call.decisions:
            edited = decision.event.arguments
            # What an answer of one's own holds is for the agent to read.
            if decision.verdict == "edit" and isinstance(edited, Mapping) and "edit" not in self.answers:
                misfit = _find_wrong_argument(edited, call.parameters or {})
                if misfit is not None:
                    raise UsageError(
                        f"edit({call.label!r}, ...) has arguments that do not fit {call.tool!r} of {run.agent}: "
                        f"{misfit}; an edit takes all arguments of the call; if that is meant, write edit(..., "
                        "invalid=True)"
                    )

    def refuse_unused(self, run: RunResult) -> None:
        """Check that all that the test hands over was asked for: the replies of each agent, and the oracle of the call.

        A run that ends with a failure or with a request that nobody answered was cut short, and leaves replies over.

        Raises:
            UsageError: Something was never asked for, and the test does not say `unused=True`.
        """
        __tracebackhide__ = True
        turns = run.history.turns
        if self.unused or run.failure is not None or not turns or turns[-1].outcome != "finished":
            return
        for agent, script in self.scenario.agents.items():
            asked = _count_replies(run.events, agent, self.scenario.agents)
            # Replies by first message are alternatives, of which one run plays one.
            if script.by_prompt or asked >= len(script.replies):
                continue
            of_model = "" if agent == MAIN else f" of {agent!r}"
            rest = len(script.replies) - asked
            left = f"the last {rest} replies" if rest > 1 else "the last reply"
            which = left if asked else "any reply"
            raise UsageError(
                f"{run.agent} never asked the model{of_model} for {which} in model=, from {_show_reply(script, asked)} "
                "on; remove what is left over, or write approvals.run(..., unused=True) if it is meant"
            )
        # A gate that asks about some calls only rightly leaves the oracle alone.
        conditional = {name for name, gate in (self.gates or {}).items() if gate not in ("always", "never")}
        called = {call.tool for call in run.history.calls}
        if self.names_oracle and not run.requests and not conditional & called:
            raise UsageError(
                f"oracle={self.oracle.name} of the call was never asked: {run.agent} made no approval request; "
                "remove it, or say which calls need approval, gated={'pay': when('amount', greater_than=100)}, or "
                "write approvals.run(..., unused=True) if it is meant"
            )

    def raise_findings(self, judged: JudgedRun) -> None:
        """Raise what fails the run, with the place of the factory where no finding names a line of the user's code.

        Raises:
            CheckFailed: A finding fails the run.
        """
        __tracebackhide__ = True
        try:
            judged.raise_findings()
        except CheckFailed as error:
            place = show_place(self.subject) if callable(self.subject) else ""
            if place and not any(judged.verdict_line(finding.verdict).tool for finding in judged.failing):
                error.add_note(f"the agent is built at {place}")
            if judged.history is not None and (hint := _name_asked_calls(judged.history)):
                error.add_note(hint)
            raise

    def raise_user_error(self, recorded: RecordedRun) -> None:
        """Raise what the user's own code raised, if the run or its last turn failed with it.

        Raises:
            AgentFailed: A tool, the factory, a condition or an oracle raised.
            UsageError: The run was asked for something that the agent or its framework cannot do.
        """
        __tracebackhide__ = True
        broken = recorded.errors.broken
        if isinstance(broken, UsageError):
            raise broken.with_traceback(None)
        if isinstance(broken, Unsupported):
            raise UsageError(f"{recorded.agent} cannot do this: {broken.why}")
        error = find_user_error(recorded.agent, recorded.errors, self.subject, self.root)
        if error is not None:
            raise error

    def raise_failure(self, run: RunResult) -> None:
        """Raise the failure that a run ended with, if neither its script nor its stubs fail on purpose.

        Raises:
            AgentFailed: The agent's last turn failed.
        """
        __tracebackhide__ = True
        if run.failure is not None and not fails_on_purpose(self.scenario) and not _is_refused_answer(run.history):
            kind, message = run.failure
            if any(isinstance(event, ModelExhausted) and event.limit is None for event in run.events):
                message += f"; in turn {len(run.turns)} the agent asks its model once more: add a reply to model="
            if is_database_error(kind) and (remedy := find_store_remedy(message)):
                # What SQLAlchemy says further on is the statement.
                message = f"{message.partition(chr(10))[0].rstrip()}; if that is its store, {remedy}"
            raise AgentFailed(run.agent, kind, message)


def _may_be_answer(history: History, call: RecordedCall) -> bool:
    """Return whether a call may be the model's answer, in a framework that gives it a tool of its own for that.

    It ends the turn, or the run of an agent inside a tool, and nothing is told of it.
    """
    if call.turn is None or call.deliveries:
        return False
    is_last = not any(
        (each.session, each.conversation) == (call.session, call.conversation) and each.n > call.n
        for each in history.exchanges
    )
    return call.turn.outcome == "finished" or (call.conversation != MAIN and is_last and not call.turn.failed)


def _list_tools(run: RunResult) -> set[str]:
    """Return the names of the tools that an agent lists itself."""
    header = run.history.header
    unlisted = {name for name, tool in header.tools.items() if tool.get("unlisted")} if header is not None else set()
    return {name for event in run.events if isinstance(event, AgentStart) for name in event.tools} - unlisted


_EFFECTS = re.compile(
    r"(?i:book|buy|cancel|charge|create|delete|deploy|destroy|drop|erase|exec|execute|grant|kill|move|overwrite|pay|post|"
    r"publish|purchase|purge|push|refund|remove|rename|reset|revoke|send|shutdown|submit|terminate|transfer(?!_to_)|update|upload|"
    r"wipe|wire|withdraw|write)(?![a-z])"
)
"""How the name of a tool with an effect begins: `delete_file`, `sendMail`. `transfer_to_NAME` is a hand-over."""


def _find_misfit(call: RecordedCall) -> str | None:
    """Return what in the arguments of a call does not fit its tool, as far as its fate shows that it does not.

    The declared type is the first one of several that a schema allows, and a schema may allow further arguments. What
    ran or was rejected is therefore not judged by them.
    """
    declared = call.parameters
    if not declared:
        return None
    ran = [execution.arguments for execution in call.executions if isinstance(execution.arguments, Mapping)]
    approved = any(decision.verdict in ("approve", "always") for decision in call.decisions)
    never_came_up = not call.executions and (approved or not call.requests)
    is_edited = any(decision.verdict == "edit" for decision in call.decisions)
    for name in call.arguments:
        is_dropped = bool(ran) and not is_edited and all(name not in arguments for arguments in ran)
        if name not in declared and (is_dropped or never_came_up):
            return f"it has no parameter {name!r}{suggest_name(name, declared)}"
    for name, parameter in declared.items():
        if parameter.get("required") and name not in call.arguments and not call.executions:
            return f"the argument {name!r} is missing"
    wrong_type = _find_wrong_type(call.arguments, declared) if never_came_up else None
    return wrong_type or (None if call.executions else _find_unmet_constraint(call.arguments, declared))


def _find_wrong_argument(arguments: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return what in *arguments*, which no body was entered with, does not fit the declared parameters."""
    if not declared:
        return None
    for name in arguments:
        if name not in declared:
            return f"it has no parameter {name!r}{suggest_name(name, declared)}"
    for name, parameter in declared.items():
        if parameter.get("required") and name not in arguments:
            return f"the argument {name!r} is missing"
    return _find_wrong_type(arguments, declared) or _find_unmet_constraint(arguments, declared)


def _find_wrong_type(arguments: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> str | None:
    for name, value in arguments.items():
        kind = declared[name].get("type", "object")
        # `object` also stands for types that the journal does not know.
        if kind != "object" and value is not None and not _fits_type(kind, value):
            return f"{name!r} is of type {kind}, not {describe_argument(value)}"
    return None


def _find_unmet_constraint(arguments: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> str | None:
    for name, value in arguments.items():
        unmet = find_unmet_constraint(value, declared.get(name, {}).get("constraints"))
        if unmet is not None:
            keyword, demand = unmet
            return f"{name!r} is {_show(value)}, and the schema of the tool says {keyword}: {_show(demand)}"
    return None


def _show(value: Any) -> str:
    return escape_value(shorten(json.dumps(value, ensure_ascii=False)))


def _fits_type(kind: str, value: Any) -> bool:
    """Return whether a value has a type of JSON Schema, in which 5.0 is an integer, too."""
    return matches_type(kind, value) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _count_replies(events: Sequence[Event], agent: str, scripted: Mapping[str, Any]) -> int:
    """Return how many replies of an agent's script were taken, in the session that took the most.

    Agents without a script of their own take those of the main one.
    """
    asking: dict[tuple[str, int], str] = {}
    taken: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ModelRequest):
            asking[event.session, event.m] = event.agent if event.agent in scripted else MAIN
        elif isinstance(event, ModelAnswer) or (
            # A caller that hangs up while the model thinks leaves the reply for the next request.
            isinstance(event, ModelFailure) and (event.how != "hung_up" or event.shown is not None)
        ):
            taken[event.session] += asking.get((event.session, event.m)) == agent
    return max(taken.values(), default=0)


def _show_reply(script: Script, place: int) -> str:
    """Return a reply as the test writes it, for messages."""
    reply = script.replies[place]
    if reply.calls:
        return "calls(" + ", ".join(repr(call.tool) for call in reply.calls) + ", ...)"
    if reply.say is not None:
        return f"say({quote(reply.say)})"
    return "fails(...)" if reply.failure is not None else "the structured answer"


def _is_refused_answer(history: History) -> bool:
    """Return whether the last turn is a refusal of an answer that the agent need not take.

    That is an answer to what was answered before or was never asked, or one that is malformed on purpose.
    """
    if not history.turns:
        return False
    turn = history.turns[-1]
    taken = {
        id(decision.request) for earlier in history.turns[:-1] for decision in earlier.decisions if not earlier.refused
    }
    return turn.refused and any(
        decision.request is None or id(decision.request) in taken or decision.verdict == "raw"
        for decision in turn.decisions
    )


def _split_by_agent(
    model: Model | Mapping[str, Model], agents: Mapping[str, Model] | None
) -> tuple[Model, dict[str, Model], ScriptedModel | None]:
    """Return the script of the main agent, those of the others by name, and the first one as the fixture, if it is."""
    others = dict(agents or {})
    if isinstance(model, Mapping) and MAIN in model:
        scripts: Mapping[str, Any] = model
        others |= {name: replies for name, replies in scripts.items() if name != MAIN}
        model = scripts[MAIN]
    main = cast("Model", model)
    if others and not isinstance(main, Mapping):
        others = _number_calls(main, others)
    return main, others, main if isinstance(main, ScriptedModel) else None


def _number_calls(main: Sequence[ScriptedReply], others: Mapping[str, Model]) -> dict[str, Model]:
    """Let the ids of calls go on from script to script: after a hand-off, one conversation has calls of both."""
    free = count(1 + sum(call.id == "" for reply in main for call in reply.calls))
    numbered: dict[str, Model] = {}
    for name, replies in others.items():
        if isinstance(replies, Mapping):
            numbered[name] = replies
            continue
        numbered[name] = [
            replace(
                reply,
                calls=tuple(call if call.id != "" else replace(call, id=f"c{next(free)}") for call in reply.calls),
            )
            for reply in replies
        ]
    return numbered


def _name_asked_calls(history: History) -> str:
    """Return which calls were asked about, if the test decides about others; empty if it does not."""
    missed = [event.label for event in history.events_of(StepSkipped) if event.step == "decide" and event.label]
    asked = [request.call.label for request in history.requests if request.call is not None]
    if not missed or not asked:
        return ""
    return f"the test decides about {', '.join(missed)}; what is asked about is {', '.join(dict.fromkeys(asked))}"


def _read_answers(answers: Mapping[str, Any] | None) -> Mapping[str, Any]:
    __tracebackhide__ = True
    verdicts = [verdict for verdict in get_args(Verdict) if verdict != "raw"]
    for name in answers or {}:
        if name not in verdicts:
            raise UnknownName("decision", name, verdicts, "answers=")
    return dict(answers or {})


def _build_stub(name: str, stub: Stub) -> Tool:
    behaviours = [stub] if isinstance(stub, ToolBehaviour) else list(stub)
    if not behaviours or not all(isinstance(behaviour, ToolBehaviour) for behaviour in behaviours):
        raise UsageError(f"tools={{{name!r}: ...}} takes what returns(), raises() or asks_again() make, not {stub!r}")
    return tool(name, *behaviours)


def _make_run_options(source: RunOptionsSource | None) -> dict[str, Any]:
    __tracebackhide__ = True
    if source is None or isinstance(source, Mapping):
        return dict(source or {})
    if isinstance(source, str):
        if ":" not in source:
            raise UsageError(f"Invalid run_options {source!r}: expected 'module:function'")
        source = _import_factory(source)
    options = source()
    if not isinstance(options, Mapping):
        raise UsageError(
            f"Invalid run_options {source!r}: it returned {options!r}, and not a mapping of keyword arguments"
        )
    return dict(options)


def _import_factory(name: str) -> Callable[[], Any]:
    __tracebackhide__ = True
    try:
        factory = import_object(name)
    except LookupError as error:
        raise UsageError(f"Invalid run_options {name!r}: {error}") from error
    if not callable(factory):
        raise UsageError(f"Invalid run_options {name!r}: expected the name of a function, got {factory!r}")
    return cast("Callable[[], Any]", factory)


def _resolve_oracle(oracle: Oracle | str) -> Oracle:
    return create_oracle(oracle) if isinstance(oracle, str) else oracle
