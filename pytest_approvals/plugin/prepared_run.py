"""A run of a user's agent with all that it needs, and what the test has got wrong about it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.kit.store_check import find_store_remedy, is_database_error
from pytest_approvals.agent_side.kit.tool_schema import show_place
from pytest_approvals.checks import CheckFailed, is_failing, judge, root_findings
from pytest_approvals.errors import AgentFailed, UnknownName, UsageError, suggest_name
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
from pytest_approvals.plugin.model_script import ScriptedModel
from pytest_approvals.plugin.run_result import RunResult
from pytest_approvals.plugin.user_agent import find_user_error
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.runner.oracles import Oracle
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import Gate, RunLimits, fails_on_purpose
from pytest_approvals.scenario.model import Scenario, Script, Variant, all_decisions
from pytest_approvals.scenario.validation.tools import describe_argument, matches_type

if TYPE_CHECKING:
    from pytest_approvals.plugin.state import PluginState


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run with all that it needs.

    Attributes:
        scenario: What is played.
        variant: How it is played.
        source: Builds the agent.
        oracle: Answers what the test does not decide by itself.
        gates: The tools that need approval, and for which calls; None for those that the framework marks.
        answers: The values that the agent takes for decisions, by verdict.
        limit: How far the run may go.
        seed: Recorded in the journal.
        raises: Whether what fails in the run fails the test.
        unused: Whether replies may be left over.
        names_oracle: Whether the test has named the oracle itself.
        script: The script of the fixture `scripted_model` that is played, if it is.
        subject: What the test has given as its agent.
        root: The folder of the project, from which places in files are shown.
        state: The state of the session.
        drawn: Whether the story was drawn, so that it need not fit the agent.
    """

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


def _name_speaker(agent: str) -> str:
    return "the first agent" if agent in ("", MAIN) else f"agent {agent!r}"


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


def _name_asked_calls(history: History) -> str:
    """Return which calls were asked about, if the test decides about others; empty if it does not."""
    missed = [event.label for event in history.events_of(StepSkipped) if event.step == "decide" and event.label]
    asked = [request.call.label for request in history.requests if request.call is not None]
    if not missed or not asked:
        return ""
    return f"the test decides about {', '.join(missed)}; what is asked about is {', '.join(dict.fromkeys(asked))}"
