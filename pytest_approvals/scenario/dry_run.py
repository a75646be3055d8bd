"""Dry run of a scenario: which requests are open when a decision comes, as far as its scripts tell.

The model's scripts are followed without any framework. Where the behaviour of a framework is unknowable (a call with
broken arguments, a turn that fails), nothing is concluded, so that no capability is required without need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.contract.types import Approval, Condition, needs_approval
from pytest_approvals.scenario.labels import find_tool
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TurnStep,
    decide_by,
)
from pytest_approvals.scenario.vocabulary import AT_MODEL, AT_OUTCOME, AT_STREAM, AT_WRITE, CRASHES_IN_CALLS

_MAX_ORACLE_ROUNDS = 50  # ends the simulation of a scenario whose requests never run out


@dataclass(slots=True, kw_only=True)
class _DryConversation:
    """A simulated conversation: script position, open calls, inner conversations that have to end first."""

    agent: str
    outer: str
    replies: tuple[ScriptedReply, ...]
    position: int = 0
    open: list[str] = field(default_factory=list)
    inner: list[_DryConversation] = field(default_factory=list)

    @property
    def paused(self) -> bool:
        return bool(self.open) or any(conversation.paused for conversation in self.inner)

    def copy(self) -> _DryConversation:
        """Return a conversation that goes on without this one."""
        return replace(self, open=[*self.open], inner=[conversation.copy() for conversation in self.inner])


@dataclass(slots=True, kw_only=True)
class _DrySession:
    """A simulated session.

    Attributes:
        unsure: It is unknowable which requests are open.
        asked: How often a model was asked.
        ungated: The calls that needed no approval when they were made.
        places: The places in calls, for `crashes`, that it came to, in that order.
        rejects: All that was decided since the last turn was rejected; None if nothing was decided.
        rejected: The last turn rejected all that it decided, and left nothing open; an agent may end it there.
    """

    main: _DryConversation
    calls: dict[str, tuple[str, Call]] = field(default_factory=dict)
    ungated: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    staged: bool = False
    standing: set[tuple[str, str]] = field(default_factory=set)
    runs: Counter[str] = field(default_factory=Counter)
    begun: bool = False
    unsure: bool = False
    asked: int = 0
    places: list[str] = field(default_factory=list)
    rejects: bool | None = None
    rejected: bool = False

    def copy(self) -> _DrySession:
        """Return a session that goes on without this one."""
        return replace(
            self,
            main=self.main.copy(),
            calls={**self.calls},
            ungated={*self.ungated},
            settled={*self.settled},
            standing={*self.standing},
            runs=self.runs.copy(),
            places=[*self.places],
        )


def find_step_capabilities(scenario: Scenario) -> frozenset[str]:
    """Return the capabilities that the caller's steps need because of the requests open at that point."""
    run = DryRun(scenario)
    names = {name for step in scenario.caller or () for name in run.step(step)}
    expects_more = scenario.expect.output is not None or any(map(run.is_hosted, scenario.expect.runs or ()))
    if expects_more and any(session.rejected for session in run.sessions.values()):
        names.add("goes_on_after_rejection")
    return frozenset(names)


def keeps_requests(scenario: Scenario) -> bool:
    """Return whether a step of the caller keeps the state, or builds the agent anew, while a request may be open."""
    run = DryRun(scenario)
    for step in scenario.caller or ():
        if isinstance(step, (SaveStep, RestoreStep, RestartStep, RewriteStep)):
            session = run.sessions.get(step.session)
            if session is not None and (session.unsure or session.main.paused):
                return True
        for _ in run.step(step):
            pass
    return False


def resumes_without_requests(scenario: Scenario) -> bool:
    """Return whether a turn takes up a session in which no request may be open, so that a saved state has none."""
    run = DryRun(scenario)
    for step in scenario.caller or ():
        for turn in step.steps if isinstance(step, TogetherStep) else (step,):
            session = run.sessions.get(turn.session) if isinstance(turn, TurnStep) else None
            if session is not None and session.begun and (session.unsure or not session.main.paused):
                return True
        for _ in run.step(step):
            pass
    return False


class DryRun:
    """Simulator of the caller's steps."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.sessions: dict[str, _DrySession] = {}
        self.saves: dict[tuple[str, str], _DrySession] = {}
        self._before_last_turn: dict[str, _DrySession] = {}
        self._approvals: dict[str, Approval] = {}

    def open_labels(self, session: str = "") -> list[str]:
        """Return the calls of a session whose requests are open."""
        return _open_labels(self._session(session).main)

    def settled_labels(self, session: str = "") -> list[str]:
        """Return the calls of a session that were decided and are not open again."""
        state = self._session(session)
        still_open = _open_labels(state.main)
        # In the order in which the calls were made: the order of a set differs between processes.
        return [label for label in state.calls if label in state.settled and label not in still_open]

    def ungated_labels(self, session: str = "") -> list[str]:
        """Return the calls of a session that were made and needed no approval."""
        state = self._session(session)
        return [label for label in state.calls if label in state.ungated]

    def is_unsure(self, session: str = "") -> bool:
        """Return whether it is unknowable which requests of a session are open."""
        return self._session(session).unsure

    def tool_of(self, label: str, session: str = "") -> Tool | None:
        """Return the tool of a call that a session has made; None for a tool that does not exist."""
        made = self._session(session).calls.get(label)
        return None if made is None else find_tool(self.scenario, made[0], made[1].tool)

    def is_hosted(self, label: str) -> bool:
        """Return whether a provider runs a call of the first session; it does so when its model is asked."""
        tool = self.tool_of(label)
        return tool is not None and tool.kind == "hosted_mcp"

    def position(self, session: str = "") -> int:
        """Return how many replies of its main script a session has played."""
        return self._session(session).main.position

    def replies_played(self) -> int:
        """Return how many replies of its main script the session that got furthest has played."""
        return max((state.main.position for state in self.sessions.values()), default=0)

    def crash_places(self, turn: TurnStep) -> list[str]:
        """Return the places that a turn comes to, for `crashes`.

        They are the end, what it streams, its first write to a store, the model, and its calls.
        """
        session = self._session(turn.session).copy()
        asked, before = session.asked, len(session.places)
        self._play_turn(turn, session)
        return [
            AT_OUTCOME,
            AT_STREAM,
            AT_WRITE,
            *([AT_MODEL] if session.asked > asked else []),
            *session.places[before:],
        ]

    def step(self, step: Step) -> Iterator[str]:
        """Simulate a step and yield the capabilities that it needs."""
        match step:
            case TogetherStep(steps=steps):
                yield from self._together([turn for turn in steps if isinstance(turn, TurnStep)])
            case TurnStep():
                yield from self._turn_on_store(step)
            case StageStep(answers=answers):
                session = self._session(step.session)
                session.staged = True
                yield from self._inspect_decisions(answers, session)
                self._settle(answers, session)
            case LetOracleStep(rounds=rounds):
                self._let_oracle(self._session(step.session), rounds)
            case SaveStep(name=name):
                self.saves[step.session, name] = self._session(step.session).copy()
            case RestoreStep(name=name):
                self.sessions[step.session] = self.saves[step.session, name].copy()
            # Which requests are open after these depends on the framework.
            case CancelStep() | RewriteStep():
                self._session(step.session).unsure = True
            case RestartStep() if step != RestartStep(fresh=step.fresh, session=step.session):
                self._session(step.session).unsure = True
                self._approvals |= {tool: decide_by(said) for tool, said in step.annotations.items()}

    def _session(self, name: str) -> _DrySession:
        if name not in self.sessions:
            replies = self.scenario.agents[MAIN].replies
            self.sessions[name] = _DrySession(main=_DryConversation(agent=MAIN, outer="", replies=replies))
        return self.sessions[name]

    # --- turns ---

    def _turn_on_store(self, turn: TurnStep) -> Iterator[str]:
        """Simulate a turn on what its store holds, and what is left of it there."""
        name = turn.session
        if turn.reads is not None and name in self._before_last_turn:
            self.sessions[name] = self._before_last_turn[name].copy()
        before = self._before_last_turn[name] = self._session(name).copy()
        yield from self._turn(turn, self._session(name))
        if turn.loses is not None:
            self.sessions[name] = before.copy()

    def _together(self, turns: list[TurnStep]) -> Iterator[str]:
        """Simulate turns that start from the same state; afterwards everything that they settled is settled."""
        for name in dict.fromkeys(turn.session for turn in turns):
            in_session = [turn for turn in turns if turn.session == name]
            if len(in_session) > 1:
                yield "simultaneous"
            for turn in in_session:
                # Inspect each turn on a copy of the common state, and only then play all of them on it.
                yield from self._turn(turn, self._session(name).copy())
            session = self._session(name)
            session.unsure = session.unsure or len(in_session) > 1
            for turn in in_session:
                self._play_turn(turn, session)

    def _turn(self, turn: TurnStep, session: _DrySession) -> Iterator[str]:
        pending = session.main.paused and not session.unsure
        if turn.text is not None and not turn.answers and pending:
            yield "message_while_pending"
        if turn.text is not None and turn.answers:
            yield "message_with_answers"
        if turn.text is None and not turn.answers and session.begun and not session.staged:
            yield "go_on_without_answer"
        yield from self._inspect_decisions(turn.answers, session)
        is_open, decided = set(_open_labels(session.main)), {decision.label for decision in turn.answers}
        if pending and is_open & decided and is_open - decided:
            yield "partial_answers"
            if _is_cut_off_in(turn, decided):
                yield "runs_beside_pending"
        if pending and {"/" in label for label in is_open & decided} == {True, False}:
            yield "runs_beside_pending"
        if session.rejected:
            yield "goes_on_after_rejection"
        replies = session.main.replies[session.main.position :]
        self._play_turn(turn, session)
        if session.rejected and replies and (replies[0].calls or replies[0].invalid or replies[0].failure is not None):
            yield "goes_on_after_rejection"

    def _play_turn(self, turn: TurnStep, session: _DrySession) -> None:
        was_paused = session.main.paused
        cuts = (turn.hangs_up, turn.crashes, turn.disk_full, turn.fails_once)
        session.unsure = session.unsure or any(cut is not None for cut in cuts)
        # Frameworks differ on whether a message closes open requests or is refused.
        if turn.text is not None and was_paused:
            session.unsure = session.unsure or not turn.answers
        self._settle(turn.answers, session)
        session.rejected = turn.text is None and bool(session.rejects) and (session.unsure or not session.main.paused)
        session.staged, session.rejects = False, None
        # Without a first message there is nothing to resume.
        if not session.begun and turn.text is None:
            return
        if not session.begun:
            script = self.scenario.agents[MAIN]
            session.main.replies = script.by_prompt.get(turn.text or "", script.replies)
        session.begun = True
        # A process that dies or fails before its turn ends comes no further; its successor does.
        if turn.crashes not in (None, AT_OUTCOME) or turn.disk_full is not None or turn.fails_once is not None:
            return
        if not session.main.paused and (was_paused or turn.text is not None or session.unsure):
            self._play_on(session.main, session)

    def _let_oracle(self, session: _DrySession, rounds: int | None) -> None:
        for _ in range(rounds if rounds is not None else _MAX_ORACLE_ROUNDS):
            if not session.main.paused:
                return
            self._settle([ScriptedDecision(label=label) for label in _open_labels(session.main)], session)
            self._play_on(session.main, session)

    # --- decisions ---

    def _inspect_decisions(self, decisions: tuple[ScriptedDecision, ...], session: _DrySession) -> Iterator[str]:
        """Yield the capabilities that decisions need because of the state of their calls."""
        labels = [decision.label for decision in decisions if decision.label is not None]
        if len(labels) > len(set(labels)):
            yield "contradiction"
        if session.unsure:
            return
        is_open = set(_open_labels(session.main))
        for label in labels:
            if label in session.settled and label not in is_open:
                yield "repeated_decision" if session.main.paused else "late_decision"
            elif label in session.ungated and label not in is_open:
                yield "unknown_request"

    def _settle(self, decisions: tuple[ScriptedDecision, ...] | list[ScriptedDecision], session: _DrySession) -> None:
        for decision in decisions:
            rejects = decision.verdict in ("reject", "never")
            session.rejects = rejects and session.rejects is not False
            conversation = _find_holder(session.main, decision.label)
            if conversation is None or decision.verdict == "raw":
                continue
            label = str(decision.label)
            agent, call = session.calls[label]
            if decision.verdict in ("always", "never"):
                self._add_standing((agent, call.tool), conversation, session)
            if rejects:
                conversation.open.remove(label)
            else:
                self._run(label, conversation, session)
            session.settled.add(label)

    def _add_standing(self, key: tuple[str, str], conversation: _DryConversation, session: _DrySession) -> None:
        session.standing.add(key)
        # Frameworks differ on whether a standing decision settles requests that are already open.
        session.unsure = session.unsure or any(
            session.calls[label][1].tool == key[1] for label in conversation.open[1:]
        )

    def _run(self, label: str, conversation: _DryConversation, session: _DrySession) -> None:
        agent, call = session.calls[label]
        tool = find_tool(self.scenario, agent, call.tool)
        behaviour = tool.behaviour_at(label, session.runs[label]) if tool is not None else ToolBehaviour()
        session.runs[label] += 1
        self._note_places(label, tool, behaviour, session)
        # The label stays open, now for the second approval.
        if behaviour.asks_again is not None:
            return
        conversation.open.remove(label)
        if tool is not None and tool.runs is not None:
            self._enter(tool.runs, call, label, conversation, session)

    # --- the model's scripts ---

    def _play_on(self, conversation: _DryConversation, session: _DrySession) -> None:
        """Play replies until one pauses, has no calls, or the script ends."""
        for inner in conversation.inner:
            if not inner.paused:
                self._play_on(inner, session)
        while not conversation.paused and conversation.position < len(conversation.replies):
            reply = conversation.replies[conversation.position]
            conversation.position += 1
            session.asked += 1
            if reply.failure is not None:
                session.unsure = True
                return
            for call in reply.calls:
                self._make(call, conversation, session)
            # A structured answer next to calls may end the run, or wait for the calls.
            session.unsure = session.unsure or (bool(reply.calls) and reply.answer is not None and not reply.invalid)
            if not reply.calls and not reply.invalid:
                return

    def _make(self, call: Call, conversation: _DryConversation, session: _DrySession) -> None:
        label = f"{conversation.outer}/{call.label}" if conversation.outer else call.label
        session.calls[label] = (conversation.agent, call)
        tool = find_tool(self.scenario, conversation.agent, call.tool)
        gated = self._gate(tool, call)
        if gated is False:
            session.ungated.add(label)
        if gated and (conversation.agent, call.tool) not in session.standing:
            conversation.open.append(label)
        elif gated is None:
            session.unsure = True
        elif tool is not None and tool.runs is not None:
            self._enter(tool.runs, call, label, conversation, session)
        else:
            behaviour = tool.behaviour_at(label, 0) if tool is not None else ToolBehaviour()
            self._note_places(label, tool, behaviour, session)
            if behaviour.asks_again is not None:
                session.runs[label] += 1
                conversation.open.append(label)

    def _note_places(self, label: str, tool: Tool | None, behaviour: ToolBehaviour, session: _DrySession) -> None:
        """Note the places in a call that the agent executes; a provider executes its own."""
        if tool is None or tool.kind == "hosted_mcp" or tool.runs is not None or tool.hands_over_to is not None:
            return
        call = session.calls[label][1]
        # Whether a call runs that does not fit, and which of two with one id, depends on the framework.
        if call.invalid or call.repeats or call.id is None or isinstance(call.arguments, str):
            return
        returns = behaviour.raises is None and behaviour.asks_again is None
        words = CRASHES_IN_CALLS if returns else CRASHES_IN_CALLS[:2]
        session.places += [f"{word} {label}" for word in words if tool.key not in self.scenario.held_back]

    def _enter(self, agent: str, call: Call, label: str, above: _DryConversation, session: _DrySession) -> None:
        script = self.scenario.agents[agent]
        prompt = call.arguments.get("input", "") if isinstance(call.arguments, Mapping) else ""
        inner = _DryConversation(agent=agent, outer=label, replies=script.by_prompt.get(prompt, script.replies))
        above.inner.append(inner)
        self._play_on(inner, session)

    def _gate(self, tool: Tool | None, call: Call) -> bool | None:
        """Return whether a call needs approval; None if that depends on the framework."""
        # An agent that does not have the tool, or not yet, has no gate for it.
        if tool is None or tool.key in self.scenario.held_back:
            return False
        approval = self._approvals.get(tool.key, tool.approval) if tool.by_annotations else tool.approval
        if approval == "never":
            return False
        # Frameworks differ on whether such a call is refused before anybody is asked.
        if call.invalid or call.repeats or isinstance(call.arguments, str):
            return None
        # The answer depends on how often the framework asks, and on what it makes of an error.
        if isinstance(approval, Condition) and (approval.raises is not None or approval.answers):
            return None
        return needs_approval(approval, call.arguments)


def _is_cut_off_in(turn: TurnStep, labels: Iterable[str | None]) -> bool:
    """Return whether a turn is cut off at a place in one of the calls."""
    places = [place.partition(" ") for place in (turn.hangs_up, turn.crashes) if place is not None]
    return any(label in labels for _, _, label in places)


def _open_labels(conversation: _DryConversation) -> list[str]:
    return [*conversation.open, *(label for inner in conversation.inner for label in _open_labels(inner))]


def _find_holder(conversation: _DryConversation, label: str | None) -> _DryConversation | None:
    if label in conversation.open:
        return conversation
    return next((holder for inner in conversation.inner if (holder := _find_holder(inner, label)) is not None), None)
