"""
The caller: plays the caller's script, and lets the oracle answer what it leaves open.

The caller knows only what a caller can know: what surfaced, what is pending, what it answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Decision, Request
from pytest_approvals.journal.events import CallerStuck, DecisionMade, Event, SignalSent, StepSkipped, TurnEnd
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.approval_requests import TrackedRequest
from pytest_approvals.runner.oracles import Oracle
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.session import Session
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
)

_REPEATABLE_VERDICTS = ("approve", "reject", "edit", "always", "never")


class Caller:
    """
    Plays one scenario's caller.

    Attributes:
        left: The caller left on purpose; nobody answers what is pending.
    """

    def __init__(self, play: RunContext, source: AgentSource, oracle: Oracle, directory: str) -> None:
        self.play = play
        self.left = False
        self.sessions: dict[str, Session] = {}
        self._source = source
        self._oracle = oracle
        self._directory = directory
        self._said: dict[tuple[str, str], ScriptedDecision] = {}

    async def play_all(self) -> None:
        """Plays the whole script; then the oracle answers until the end, unless the caller left."""
        scenario = self.play.scenario
        steps: Sequence[Step] = (TurnStep(text=scenario.prompt),) if scenario.caller is None else scenario.caller
        for step in steps:
            await self._step(step)
        if not self.left:
            for session in list(self.sessions.values()):
                await self._let_oracle(session, None)

    async def close(self) -> None:
        """Closes all sessions."""
        for session in self.sessions.values():
            await session.close()

    async def session(self, name: str) -> Session:
        """Gives the session of that name, opening it at its first use."""
        if name not in self.sessions:
            first = next(iter(self.sessions.values()), None)
            session = Session(self.play, self._source, self._directory, name)
            await session.start(first)
            self.sessions[name] = session
        return self.sessions[name]

    async def _step(self, step: Step) -> None:
        match step:
            case LeaveStep():
                self.left = True
            case SignalStep():
                self._give(step)
            case TogetherStep():
                await self._together(step)
            case _:
                session = await self.session(step.session)
                if isinstance(step, (RestoreStep, RestartStep, RewriteStep)) or await session.ready():
                    await self._step_of(session, step)
                else:
                    self._skip(type(step).__name__.removesuffix("Step"), "the session's state could not be restored", step.session)

    async def _step_of(
        self,
        session: Session,
        step: TurnStep
        | LetOracleStep
        | StageStep
        | SaveStep
        | RestoreStep
        | RestartStep
        | CancelStep
        | TrimStep
        | RewriteStep,
    ) -> None:
        match step:
            case TurnStep():
                await self._take(session, step)
                await self._save_after(session)
            case LetOracleStep():
                await self._let_oracle(session, step.rounds)
            case RestoreStep():
                await self._rewind(session, step)
            case RestartStep():
                await self._restart(session, step)
            case SaveStep():
                await session.save(step.name)
            case RewriteStep():
                await self._rewrite(session, step)
            case _:
                await self._change(session, step)
                await self._save_after(session)

    async def _change(self, session: Session, step: StageStep | CancelStep | TrimStep) -> None:
        match step:
            case StageStep():
                decisions, positions = self._decided(session, step.answers)
                await session.stage(decisions, positions)
            case CancelStep():
                await session.cancel()
            case TrimStep():
                await session.trim(step.keep)

    # --- turns ---

    async def _take(self, session: Session, step: TurnStep) -> None:
        now, later = self._askable(session, step.answers)
        decisions, positions = self._decided(session, now)
        if step.answers and not decisions and step.text is None:
            return
        await session.turn(step.text, decisions, positions, hangs_up=step.hangs_up)
        if session.ended == "failed":
            self._forget_edits(session, step.answers)
        if later:
            # An agent may ask about one call of a reply after the other; what it asks next has its answer.
            await self._save_after(session)
            if await session.ready():
                await self._take(session, replace(step, text=None, answers=tuple(later)))

    def _askable(
        self, session: Session, answers: Sequence[ScriptedDecision]
    ) -> tuple[Sequence[ScriptedDecision], Sequence[ScriptedDecision]]:
        """Tells answers that can be given now from those to requests that have not surfaced yet, if some can."""
        later = [answer for answer in answers if self._comes_later(session, answer)]
        now = [answer for answer in answers if answer not in later]
        return (now, later) if now and session.ended == "paused" else (answers, ())

    def _comes_later(self, session: Session, answer: ScriptedDecision) -> bool:
        if answer.label is None or answer.unknown_id is not None or answer.malformed_address:
            return False
        if self.play.requests.about(session.name, answer.label) is not None:
            return False
        call = session.world.progress.call(answer.label)
        return call is not None and call.declared is not None and call.declared.approval == "always"

    def _forget_edits(self, session: Session, answers: Sequence[ScriptedDecision]) -> None:
        """Forgets edits that came to nothing: the closing oracle must not hand in again what was refused."""
        for answer in answers:
            if answer.verdict == "edit":
                self._said.pop((session.name, answer.label or ""), None)

    async def _save_after(self, session: Session) -> None:
        if session.saves_itself and not session.lost:
            await session.save()

    async def _together(self, step: TogetherStep) -> None:
        """Begins each turn when the one before it is held in a tool or has ended; so every run has the same order."""
        running: list[asyncio.Task[None]] = []
        twins: list[Session] = []
        used: set[str] = set()
        try:
            for part in step.steps:
                if isinstance(part, SignalStep):
                    self._give(part)
                    continue
                session = await self.session(part.session)
                await session.ready()
                if part.session in used:
                    session = await session.twin()
                twins.append(session)
                used.add(part.session)
                await self._begin(session, part, running)
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
        for session in twins:
            await self._save_after(session)

    async def _begin(self, session: Session, step: TurnStep, running: list[asyncio.Task[None]]) -> None:
        held = asyncio.ensure_future(self.play.signals.something_is_held())
        task = asyncio.create_task(self._take(session, step))
        running.append(task)
        await asyncio.wait({held, task}, return_when=asyncio.FIRST_COMPLETED)
        held.cancel()

    def _give(self, step: SignalStep) -> None:
        self.play.journal.record(SignalSent(name=step.name))
        self.play.signals.give(step.name)

    # --- state ---

    async def _rewind(self, session: Session, step: RestoreStep) -> None:
        if not await session.rewind(step.name):
            self._skip("Restore", f"nothing was saved as {step.name!r}", session.name)

    async def _rewrite(self, session: Session, step: RewriteStep) -> None:
        if not await session.rewrite(step):
            self._skip("Rewrite", f"nothing that was saved says {step.old!r}", session.name)

    async def _restart(self, session: Session, step: RestartStep) -> None:
        self.play.held_back = (self.play.held_back | set(step.without)) - set(step.with_tools)
        self.play.parameters |= step.parameters
        await session.restart(fresh=step.fresh)

    # --- decisions ---

    def _decided(self, session: Session, answers: Sequence[ScriptedDecision]) -> tuple[list[Decision], list[int]]:
        """Makes decisions of the script's answers and records them; those that cannot be addressed are skipped."""
        decisions, positions = [], []
        for answer in answers:
            surfaced = self.play.requests.about(session.name, answer.label) if answer.label else None
            request = self._addressed(session, answer, surfaced)
            if request is None and not answer.malformed_address:
                self._skip("decide", "no request about this call has surfaced", session.name, answer.label)
                continue
            source = self._source_of(answer.source or self.play.variant.source, surfaced)
            if surfaced is not None:
                request = _tamper_request(surfaced.copy_from(source), answer)
            if answer.label is not None and answer.verdict in _REPEATABLE_VERDICTS:
                self._said[session.name, answer.label] = answer
            decisions.append(_build_decision(answer, request))
            positions.append(self._recorded(session, answer, surfaced, request, source, "script").n)
        return decisions, positions

    def _addressed(self, session: Session, answer: ScriptedDecision, surfaced: TrackedRequest | None) -> Request | None:
        if answer.unknown_id is not None:
            made = Request(id=answer.unknown_id, call_id=answer.unknown_id, tool="", arguments={})
            return _tamper_request(made, answer)
        if answer.malformed_address or answer.label is None:
            return None
        if surfaced is not None:
            return surfaced.latest
        return self._forged(session, answer.label)

    def _forged(self, session: Session, label: str) -> Request | None:
        """Makes a request of a call that needs no approval: the approval of what was never asked."""
        call = session.world.progress.call(label)
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

    def _source_of(self, wanted: AnswerSource, surfaced: TrackedRequest | None) -> AnswerSource:
        if surfaced is None:
            return "rebuilt"
        if wanted == "restored" and not surfaced.open:
            return "rebuilt"
        return wanted

    def _recorded(
        self,
        session: Session,
        answer: ScriptedDecision,
        surfaced: TrackedRequest | None,
        request: Request | None,
        source: AnswerSource,
        oracle: str,
        missing: bool | None = None,
    ) -> Event:
        return self.play.journal.record(
            DecisionMade(
                session=session.name,
                verdict=answer.verdict,
                q=surfaced.q if surfaced else None,
                id=request.id if request else None,
                label=answer.label or (surfaced.label if surfaced else None),
                reason=answer.reason,
                arguments=dict(answer.arguments) if answer.arguments is not None else None,
                tool=answer.tool,
                raw=_describe_raw(answer),
                shows=_describe_shown(answer),
                source=source,
                oracle=oracle,
                missing=missing,
            )
        )

    # --- the oracle ---

    async def _let_oracle(self, session: Session, rounds: int | None) -> None:
        """Answers what is pending until nothing is, the rounds are over, or nothing moves any more."""
        still, played = 0, 0
        before: list[str] = []
        while session.ended in ("paused", "failed") and (rounds is None or played < rounds):
            open_now = await session.still_open() if await session.ready() else []
            if not open_now:
                return
            names = [one.q for one in open_now]
            still = still + 1 if names == before else 0
            if still >= self.play.limit.rounds or played >= self.play.limit.model_calls:
                self.play.journal.record(CallerStuck(session=session.name, rounds=still or played, requests=names))
                return
            before, played = names, played + 1
            await self._answer_all(session, open_now)
            await self._save_after(session)

    async def _answer_all(self, session: Session, open_now: Sequence[TrackedRequest]) -> None:
        decisions, positions = [], []
        for one in open_now:
            answer, oracle, missing = self._answer_of(session, one)
            source = self._source_of(self.play.variant.source, one)
            request = one.copy_from(source)
            decisions.append(_build_decision(answer, request))
            positions.append(self._recorded(session, answer, one, request, source, oracle, missing).n)
        await session.turn(None, decisions, positions)

    def _answer_of(self, session: Session, one: TrackedRequest) -> tuple[ScriptedDecision, str, bool | None]:
        said = self._said.get((session.name, one.label)) if one.label else None
        if said is not None:
            return said, "script", None
        given = self._oracle.answer(one.latest, one.label)
        if given is None:
            return ScriptedDecision(verdict="reject", reason="the oracle has no answer"), self._oracle.name, True
        return given, self._oracle.name, None

    def _skip(self, step: str, why: str, session: str, label: str | None = None) -> None:
        self.play.journal.record(StepSkipped(session=session, step=step, why=why, label=label))

    def last_output(self) -> Any:
        """Gives the output of the last turn that finished; None where none did."""
        ends = (event for event in reversed(self.play.journal.events) if isinstance(event, TurnEnd))
        return next((event.output for event in ends if event.outcome == "finished"), None)


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


def _tamper_request(request: Request, answer: ScriptedDecision) -> Request:
    """Gives the request as the caller hands it over; a copy that was tampered with has no handle any more."""
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
