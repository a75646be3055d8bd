"""The fixture `approvals`: runs a user's own agent on a scripted model, records it and judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest

from pytest_approvals.agent_side.contract import ANY_AGENT, MAIN, Attachment
from pytest_approvals.agent_side.contract.metadata import import_object
from pytest_approvals.agent_side.contract.types import Verdict
from pytest_approvals.agents.sources import create_source
from pytest_approvals.errors import AgentFailed, ApprovalsError, UnknownName, UsageError
from pytest_approvals.journal.events import ModelAnswer, ModelExhausted, ModelRequest
from pytest_approvals.plugin.drawn_stories import MAX_ENDINGS, find_failing_story
from pytest_approvals.plugin.model_script import ScriptedModel
from pytest_approvals.plugin.prepared_run import PreparedRun
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
    is_factory,
    require_synchronous,
    resolve_user_agent,
)
from pytest_approvals.runner.event_loops import require_asyncio, run_coroutine
from pytest_approvals.runner.oracles import Oracle, approve_all, create_oracle
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.build import say, scenario, tool
from pytest_approvals.scenario.model import DEFAULT_PROMPT, AnswerSource, ScriptedReply, Tool, ToolBehaviour

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

        def prepare(model: Sequence[ScriptedReply], decides: Oracle | str) -> PreparedRun:
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
    ) -> PreparedRun:
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
        return PreparedRun(
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

    def _judge(self, prepared: PreparedRun, recorded: RecordedRun) -> RunResult:
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
