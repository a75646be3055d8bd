"""Caller: plays the caller's script, and lets the oracle answer what the script leaves open.

It knows only what a caller can know: what surfaced, what is pending, what it answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Decision, Request
from pytest_approvals.agent_side.process.load_clock import wait_until_done
from pytest_approvals.journal.events import (
    NOT_SAVED,
    CallerStuck,
    DecisionMade,
    Event,
    SignalSent,
    StepSkipped,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.approval_requests import TrackedRequest
from pytest_approvals.runner.oracles import Oracle
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.script import EditedCall
from pytest_approvals.runner.session import Session
from pytest_approvals.runner.timeouts import SharedDeadline
from pytest_approvals.scenario.labels import list_inner_calls, list_occurrences
from pytest_approvals.scenario.model import (
    AnswerSource,
    CancelStep,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    ScriptedDecision,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    TrimStep,
    TurnStep,
    all_steps,
)

QUEUE_TIMEOUT = 6.0
"""Seconds after which a turn is taken to wait for the one before it, or for a stopped process: longer than stores wait
for a lock."""

# Given again if the same call surfaces once more; a `raw` verdict is malformed on purpose and sent once.
_REPEATABLE_VERDICTS = ("approve", "reject", "edit", "always", "never")


class Caller:
    """Player of one scenario's caller script.

    Attributes:
        has_left: The caller left on purpose; what is pending stays unanswered.
        step: The step that is played; None before the first one, and while the oracle ends the run.
        sessions: The sessions that were opened, by name.
    """

    def __init__(self, context: RunContext, source: AgentSource, oracle: Oracle, directory: str) -> None:
        self.context = context
        self.has_left = False
        self.step: Step | None = None
        self.sessions: dict[str, Session] = {}
        self._source = source
        self._oracle = oracle
        self._directory = directory
        self._answers: dict[tuple[str, str], ScriptedDecision] = {}
        outer = {occurrence.label for occurrence in list_occurrences(context.scenario)}
        inner = {occurrence.label for occurrence in list_inner_calls(context.scenario)}
        self._short_labels = inner - outer

    async def play(self) -> None:
        """Play the whole script; then the oracle answers until the end, unless the caller left."""
        scenario = self.context.scenario
        steps: Sequence[Step] = (TurnStep(text=scenario.prompt),) if scenario.caller is None else scenario.caller
        # The journal begins with what the first agent is, whatever the first step does.
        await self._open_session(next((step.session for step in all_steps(scenario) if hasattr(step, "session")), ""))
        for self.step in steps:
            await self._play_step(self.step)
        self.step = None
        if not self.has_left:
            for session in list(self.sessions.values()):
                await self._let_oracle(session, None)

    async def close(self, seconds: float) -> None:
        """Close all sessions, within about that many seconds."""
        closing = SharedDeadline(seconds)
        for session in self.sessions.values():
            await session.close(closing)

    def last_output(self) -> Any:
        """Return the output of the last turn that finished; None if none did."""
        ends = (event for event in reversed(self.context.journal.events) if isinstance(event, TurnEnd))
        return next((event.output for event in ends if event.outcome == "finished"), None)

    def last_saves(self) -> dict[str, tuple[str, ...]]:
        """Return what the agent of each session dumped last."""
        latest = {name: session.states.latest for name, session in self.sessions.items()}
        return {name: save.parts for name, save in latest.items() if save is not None and save.parts}

    # --- steps ---

    async def _play_step(self, step: Step) -> None:
        if isinstance(step, LeaveStep):
            self.has_left = True
        elif isinstance(step, SignalStep):
            self._send_signal(step)
        elif isinstance(step, TogetherStep):
            await self._play_together(step)
        else:
            await self._play_in_session(step, await self._open_session(step.session))

    async def _play_in_session(self, step: Step, session: Session) -> None:
        handler = STEP_HANDLERS[type(step)]
        if isinstance(step, TurnStep) and self._may_lose(step) and session.states.latest is None:
            # What the turn leaves behind is found by the name of its session.
            await session.save()
        if isinstance(step, TurnStep) and step.reads:
            session.roll_back("stale")
        if handler.needs_agent and not await self._has_agent(step, session):
            return
        before = self.context.counters.turn
        await handler.play(self, session, step)
        if isinstance(step, TurnStep) and step.loses and self.context.counters.turn > before:
            session.roll_back("lost")
        if handler.changes_state:
            await self._save_state(session)

    def _may_lose(self, turn: TurnStep) -> bool:
        """Return whether what a turn stores may be lost, or be read again later as it was before."""
        return self.context.rolls_back or any((turn.crashes, turn.disk_full, turn.fails_once))

    async def _has_agent(self, step: Step, session: Session) -> bool:
        """Return whether a session has its agent; a step that is left out without one is recorded."""
        if await session.ensure_agent():
            return True
        # Journals name steps without the suffix of the class.
        name = type(step).__name__.removesuffix("Step")
        self._skip(name, "the session's state could not be restored", session.name)
        return False

    async def _open_session(self, name: str) -> Session:
        """Return the session of that name, opened at its first use."""
        if name not in self.sessions:
            first = next(iter(self.sessions.values()), None)
            session = Session(self.context, self._source, self._directory, name)
            await session.start(first)
            self.sessions[name] = session
        return self.sessions[name]

    async def _save_state(self, session: Session) -> None:
        if not session.states.saves_after_turns or session.is_lost or session.is_dead:
            return
        # A request that is in no saved state goes on in its process.
        if self._source.facts.stores_requests or not await session.list_answerable():
            await session.save()

    def _send_signal(self, step: SignalStep) -> None:
        self.context.journal.record(SignalSent(name=step.name))
        self.context.signals.send(step.name)

    def _skip(self, step: str, why: str, session: str, label: str | None = None) -> None:
        self.context.journal.record(StepSkipped(session=session, step=step, why=why, label=label))

    # --- turns ---

    async def _take_turn(self, session: Session, step: TurnStep) -> None:
        self.context.elicitations.set_answers(session.name, step.elicitations)
        step = replace(step, answers=self._complete_labels(session, step.answers))
        now, later = self._split_answers(session, step.answers)
        decisions, positions = self._decide(session, now)
        if step.answers and not decisions and step.text is None:
            return
        await session.turn(step.text, decisions, positions, script=step)
        if session.last_outcome == "failed":
            self._forget_edits(session, step.answers)
        if later:
            # An agent may ask about the calls of a reply one after the other; its next request has its answer here.
            await self._save_state(session)
            if await session.ensure_agent():
                await self._take_turn(session, replace(step, text=None, answers=tuple(later)))

    def _complete_labels(self, session: Session, answers: Sequence[ScriptedDecision]) -> tuple[ScriptedDecision, ...]:
        """Replace the short labels of calls of inner agents by the labels of the requests about them."""
        requests = self.context.requests
        # Agents inside a user's agent may take their replies from its own script, so that any call may be theirs.
        is_any = self.context.is_attached
        return tuple(
            replace(answer, label=requests.complete_label(session.name, answer.label))
            if answer.label is not None and (is_any or answer.label in self._short_labels)
            else answer
            for answer in answers
        )

    def _split_answers(
        self, session: Session, answers: Sequence[ScriptedDecision]
    ) -> tuple[Sequence[ScriptedDecision], Sequence[ScriptedDecision]]:
        """Split off the answers to requests that have not surfaced yet, if others can be given now."""
        later = [answer for answer in answers if self._is_early(session, answer)]
        now = [answer for answer in answers if answer not in later]
        return (now, later) if now and session.last_outcome == "paused" else (answers, ())

    def _is_early(self, session: Session, answer: ScriptedDecision) -> bool:
        if answer.label is None or answer.unknown_id is not None or answer.malformed_address:
            return False
        if self.context.requests.find_about(session.name, answer.label) is not None:
            return False
        call = session.world.state.find_call(answer.label)
        return call is not None and call.declared is not None and call.declared.approval == "always"

    def _forget_edits(self, session: Session, answers: Sequence[ScriptedDecision]) -> None:
        """Forget edits without effect: the closing oracle must not hand in again what was refused."""
        for answer in answers:
            if answer.verdict == "edit":
                self._answers.pop((session.name, answer.label or ""), None)

    async def _play_together(self, step: TogetherStep) -> None:
        """Begin each turn when the one before is held in a tool, is stopped, waits for another or has ended.

        The order is fixed. A process that is stopped goes on when all other turns have ended, or wait for it.
        """
        running: list[asyncio.Task[None]] = []
        stopped: list[tuple[Session, asyncio.Task[None]]] = []
        sessions: list[Session] = []
        used: set[str] = set()
        try:
            for part in step.steps:
                if isinstance(part, SignalStep):
                    self._send_signal(part)
                    continue
                session = await self._open_session(part.session)
                if not await self._has_agent(part, session):
                    continue
                # One that was saved after its last turn, as between two answers of a part, goes on by itself.
                if part.session in used and session.has_unsaved_turn:
                    session = await session.fork()
                before = len(self.context.journal.events)
                await self._begin_turn(session, part, running)
                if session.world.is_stopped:
                    stopped.append((session, running[-1]))
                # A turn that was left out has used nothing: the session goes on with the next one.
                if any(isinstance(event, TurnStart) for event in self.context.journal.events[before:]):
                    sessions.append(session)
                    used.add(part.session)
            await _wake_stopped(stopped, running)
            await asyncio.gather(*running)
        # If one turn raises, the others must not go on without anybody waiting for them.
        finally:
            for task in running:
                task.cancel()
        for session in sessions:
            if session.has_unsaved_turn:
                await self._save_state(session)

    async def _begin_turn(self, session: Session, step: TurnStep, running: list[asyncio.Task[None]]) -> None:
        # Listens before the turn begins, so that a tool that is held at once is not missed.
        held = asyncio.ensure_future(self.context.signals.wait_for_waiter())
        task = asyncio.create_task(self._take_turn(session, step))
        running.append(task)
        first = asyncio.wait({held, task}, return_when=asyncio.FIRST_COMPLETED)
        if len(running) == 1:
            await first
        else:
            # It may wait for a turn that runs or whose process is stopped, as for the lock of the session.
            await wait_until_done(asyncio.ensure_future(first), QUEUE_TIMEOUT)
        held.cancel()

    # --- state ---

    async def _stage(self, session: Session, step: StageStep) -> None:
        answers = self._complete_labels(session, step.answers)
        decisions, positions = self._decide(session, answers)
        labels = [answer.label for answer in answers if answer.label is not None]
        await session.stage(decisions, positions, labels)

    async def _restore(self, session: Session, step: RestoreStep) -> None:
        if not await session.restore(step.name):
            self._skip("Restore", f"nothing was saved as {step.name!r}", session.name)

    async def _rewrite(self, session: Session, step: RewriteStep) -> None:
        if not await session.tamper(step):
            self._skip("Rewrite", f"{NOT_SAVED} {step.old!r}", session.name)

    async def _restart(self, session: Session, step: RestartStep) -> None:
        self.context.held_back = (self.context.held_back | set(step.without)) - set(step.with_tools)
        self.context.parameters |= step.parameters
        names = {**self.context.names, **step.renamed}
        self.context.names = {agent: name for agent, name in names.items() if name != agent}
        self.context.annotate(step.annotations)
        await session.restart(fresh=step.fresh)

    # --- decisions ---

    def _decide(self, session: Session, answers: Sequence[ScriptedDecision]) -> tuple[list[Decision], list[int]]:
        """Make decisions of the script's answers and record them; skip those without a request."""
        decisions, positions = [], []
        for answer in answers:
            tracked = self.context.requests.find_about(session.name, answer.label) if answer.label else None
            request = self._find_request(session, answer, tracked)
            if request is None and not answer.malformed_address:
                self._skip("decide", "no request about this call has surfaced", session.name, answer.label)
                continue
            source = self._resolve_source(answer.source or self.context.variant.source, tracked)
            if tracked is not None:
                request = _tamper_request(tracked.get_copy(source), answer)
            if answer.label is not None and answer.verdict in _REPEATABLE_VERDICTS:
                self._answers[session.name, answer.label] = answer
            decisions.append(self._build_decision(answer, request))
            positions.append(self._record_decision(session, answer, tracked, request, source, "script").n)
        return decisions, positions

    def _build_decision(self, answer: ScriptedDecision, request: Request | None) -> Decision:
        decision = _build_decision(answer, request)
        if decision.verdict not in self.context.answers:
            return decision
        value = self.context.answers[decision.verdict]
        raw = value(decision) if callable(value) else value
        return replace(decision, verdict="raw", raw=raw, meant=decision.verdict)

    def _find_request(
        self, session: Session, answer: ScriptedDecision, tracked: TrackedRequest | None
    ) -> Request | None:
        if answer.unknown_id is not None:
            unknown = Request(id=answer.unknown_id, call_id=answer.unknown_id, tool="", arguments={})
            return _tamper_request(unknown, answer)
        if answer.malformed_address or answer.label is None:
            return None
        if tracked is not None:
            return tracked.latest
        return self._forge_request(session, answer.label)

    def _forge_request(self, session: Session, label: str) -> Request | None:
        """Return a request about a call that needs no approval: the approval of what was never asked."""
        call = session.world.state.find_call(label)
        if call is None or call.declared is None or call.declared.approval == "always":
            return None
        return Request(
            id=call.id or label,
            call_id=call.id,
            tool=call.tool,
            arguments=call.arguments,
            kind=call.kind,
            server=call.server,
            agent=call.agent,
        )

    def _resolve_source(self, wanted: AnswerSource, tracked: TrackedRequest | None) -> AnswerSource:
        if tracked is None:
            return "rebuilt"
        # An agent lists only open requests after a restore, so there is no restored copy of a closed one.
        if wanted == "restored" and not tracked.open:
            return "rebuilt"
        return wanted

    def _is_in_own_words(self, answer: ScriptedDecision) -> bool:
        """Return whether the agent is told a decision in its own words, with all that it says."""
        words = self.context.answers.get(answer.verdict)
        # A constant has no place for a reason.
        return answer.verdict in self.context.answers and (answer.reason is None or callable(words))

    def _record_decision(
        self,
        session: Session,
        answer: ScriptedDecision,
        tracked: TrackedRequest | None,
        request: Request | None,
        source: AnswerSource,
        oracle: str,
        missing: bool | None = None,
    ) -> Event:
        label = answer.label or (tracked.label if tracked else None)
        session.world.state.note_decision(label, request.call_id if request is not None else None)
        if label is not None and answer.verdict in ("approve", "edit", "always"):
            session.world.state.released.add(label)
        if label is not None and answer.verdict == "edit":
            edits = session.world.state.edits
            edits[label] = (*edits.get(label, ()), EditedCall(tool=answer.tool, arguments=answer.arguments))
        return self.context.journal.record(
            DecisionMade(
                session=session.name,
                verdict=answer.verdict,
                q=tracked.q if tracked else None,
                id=request.id if request else None,
                label=label,
                reason=answer.reason,
                arguments=dict(answer.arguments) if answer.arguments is not None else None,
                tool=answer.tool,
                raw=_describe_raw(answer),
                shows=_describe_shown(answer),
                source=source,
                oracle=oracle,
                missing=missing,
                own=self._is_in_own_words(answer) or None,
            )
        )

    # --- the oracle ---

    async def _play_let_oracle(self, session: Session, step: LetOracleStep) -> None:
        await self._let_oracle(session, step.rounds)

    async def _let_oracle(self, session: Session, rounds: int | None) -> None:
        """Answer what is pending until nothing is, the rounds are over, or the same requests stay open."""
        unmoved, played = 0, 0
        before: list[str] = []
        while session.last_outcome in ("paused", "failed") and (rounds is None or played < rounds):
            # What a user's own code raises, it would raise again, and do again what it did before.
            is_own = self.context.fails_in_tool or (played and self.context.fails_by_itself)
            if session.last_outcome == "failed" and is_own:
                return
            if not await session.ensure_agent():
                return
            listed = await session.list_answerable()
            # Nobody answers again what is answered in the state; what is answered there is taken by the next turn.
            staged = session.world.state.staged
            requests = [request for request in listed if request.label not in staged]
            if not requests and not staged:
                return
            numbers = [request.q for request in requests]
            unmoved = unmoved + 1 if numbers == before else 0
            # Requests that come back under new numbers always move; the limit of model calls ends them, too.
            if unmoved >= self.context.limit.rounds or played >= self.context.limit.model_calls:
                stuck = CallerStuck(session=session.name, rounds=unmoved or played, requests=numbers)
                self.context.journal.record(stuck)
                return
            before, played = numbers, played + 1
            await self._answer_all(session, requests)
            await self._save_state(session)

    async def _answer_all(self, session: Session, requests: Sequence[TrackedRequest]) -> None:
        decisions, positions = [], []
        for tracked in requests:
            answer, oracle, missing = self._ask_oracle(session, tracked)
            source = self._resolve_source(self.context.variant.source, tracked)
            request = tracked.get_copy(source)
            decisions.append(self._build_decision(answer, request))
            positions.append(self._record_decision(session, answer, tracked, request, source, oracle, missing).n)
        await session.turn(None, decisions, positions)

    def _ask_oracle(self, session: Session, tracked: TrackedRequest) -> tuple[ScriptedDecision, str, bool | None]:
        """Return an answer of the script or else the oracle, its author, and whether it was missing."""
        scripted = self._answers.get((session.name, tracked.label)) if tracked.label else None
        if scripted is not None:
            return scripted, "script", None
        answer = self._oracle.answer(tracked.latest, tracked.label)
        missing = True if answer is None else None
        answer = answer or ScriptedDecision(verdict="reject", reason="the oracle has no answer")
        if "reject_reason" not in self._source.facts.capabilities:
            # An oracle decides for any agent; what this one takes is a rejection alone.
            answer = replace(answer, reason=None)
        return answer, self._oracle.name, missing

    # --- steps without logic of their own ---

    async def _save(self, session: Session, step: SaveStep) -> None:
        await session.save(step.name)

    async def _cancel(self, session: Session, step: CancelStep) -> None:
        await session.cancel()

    async def _trim(self, session: Session, step: TrimStep) -> None:
        await session.trim(step.keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHandler:
    """How a step of one session is played.

    Attributes:
        play: Plays the step in the session.
        needs_agent: The step needs a live agent with the session's state; if there is none, it is skipped.
        changes_state: The state is saved after it, if the variant saves states.
    """

    play: Callable[[Caller, Session, Any], Awaitable[None]]
    needs_agent: bool = True
    changes_state: bool = False


STEP_HANDLERS: Mapping[type, StepHandler] = {
    TurnStep: StepHandler(play=Caller._take_turn, changes_state=True),
    LetOracleStep: StepHandler(play=Caller._play_let_oracle),
    StageStep: StepHandler(play=Caller._stage, changes_state=True),
    SaveStep: StepHandler(play=Caller._save),
    RestoreStep: StepHandler(play=Caller._restore, needs_agent=False),
    RestartStep: StepHandler(play=Caller._restart, needs_agent=False),
    RewriteStep: StepHandler(play=Caller._rewrite, needs_agent=False),
    CancelStep: StepHandler(play=Caller._cancel, changes_state=True),
    TrimStep: StepHandler(play=Caller._trim, changes_state=True),
}
"""Handlers of the steps that belong to one session; the others change the caller itself."""


def _build_decision(answer: ScriptedDecision, request: Request | None) -> Decision:
    return Decision(
        request=request,
        verdict=answer.verdict,
        reason=answer.reason,
        arguments=answer.arguments,
        tool=answer.tool,
        raw=answer.raw,
        address=answer.address,
    )


async def _wake_stopped(
    stopped: Sequence[tuple[Session, asyncio.Task[None]]], running: Sequence[asyncio.Task[None]]
) -> None:
    """Let stopped processes go on when the turns of the others have ended, or wait for them."""
    if not stopped:
        return
    held = [turn for _, turn in stopped]
    others = asyncio.gather(*(turn for turn in running if turn not in held), return_exceptions=True)
    await wait_until_done(others, QUEUE_TIMEOUT)
    for session, _ in stopped:
        session.wake()


def _tamper_request(request: Request, answer: ScriptedDecision) -> Request:
    """Return the request as the caller hands it over; a changed copy has no handle."""
    if answer.shows is None and answer.shows_tool is None:
        return request
    arguments = request.arguments if answer.shows is None else answer.shows
    return replace(request, arguments=arguments, tool=answer.shows_tool or request.tool, handle=None)


def _describe_shown(answer: ScriptedDecision) -> dict[str, Any] | None:
    shown = {"tool": answer.shows_tool, "arguments": answer.shows}
    return {name: value for name, value in shown.items() if value is not None} or None


def _describe_raw(answer: ScriptedDecision) -> Any:
    if answer.malformed_address:
        return {"address": answer.address}
    return {"verdict": answer.raw} if answer.verdict == "raw" else None
