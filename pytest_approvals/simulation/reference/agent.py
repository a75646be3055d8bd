"""
The caller's side of the reference agent: messages, decisions, requests.

Every decision is judged before any takes effect, so that a submission is taken as a whole or refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, get_args

from pytest_approvals.agent_side.neutral import Decision, Finished, Outcome, Paused, Request, Verdict

from . import wording
from .arguments import Misfit, fitted
from .conversing import Turn
from .refusals import AlreadySettled, Contradiction, MalformedDecision, NothingToGoOn, UnknownRequest
from .state import Answer, Call, Conversation, Standing, detached
from .working import Working, waiting

VERDICTS = frozenset(get_args(Verdict)) - {"raw"}
"""What a decision can say."""


class ReferenceAgent(Working):
    """
    An agent with approvals as it should be.

    A call that needs approval waits, and its request surfaces when everything that may run has run. A request is open
    until it is decided, or closed by a new message or by giving up; from then on, decisions about it are refused.
    """

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        with self.one_at_a_time():
            answers = self.judge_all(decisions)
            if text is None and not self.has_something_to_do():
                raise NothingToGoOn
            turn = Turn(stream)
            self.settle(self.with_staged(answers), turn)
            if text is not None:
                self.close_open(wording.SUPERSEDED, turn)
                self.state.main.inbox.append(text)
            self.keep()
            try:
                await self.go_on(self.state.main, turn)
            finally:
                self.number_requests()
            return self.outcome(turn)

    async def stage(self, decisions: Sequence[Decision]) -> None:
        with self.one_at_a_time():
            self.state.staged = self.with_staged(self.judge_all(decisions))

    async def cancel(self) -> None:
        with self.one_at_a_time():
            self.state.staged = []
            self.close_open(wording.CANCELLED, Turn(stream=False))

    async def pending(self) -> Sequence[Request]:
        if not self.running:
            self.catch_up()
        staged = {answer.request for answer in self.state.staged}
        return tuple(request for request in self.open_requests() if request.id not in staged)

    def has_something_to_do(self) -> bool:
        """Says whether a turn without a message has anything to do, be it to ask again."""
        main = self.state.main
        return bool(main.calls or main.inbox or main.asks_model)

    # --- requests -----------------------------------------------------------------------------------------------------

    def number_requests(self) -> None:
        """Gives every call that waits a request of its own, in the order of the calls."""
        for _, call in waiting(self.state.main):
            if call.request is None:
                self.state.asked += 1
                call.request = f"req-{self.state.asked}"

    def open_requests(self) -> list[Request]:
        """Gives the open requests."""
        return [self.request_for(conversation, call) for conversation, call in waiting(self.state.main)]

    def request_for(self, conversation: Conversation, call: Call) -> Request:
        """Shows a call as it is going to run."""
        return Request(
            id=call.request or "",
            call_id=call.id,
            tool=call.tool,
            arguments=detached(call.arguments),
            kind=call.kind,
            server=call.server,
            agent=conversation.agent,
        )

    def outcome(self, turn: Turn) -> Outcome:
        """Says how the turn ended."""
        requests, said = self.open_requests(), self.state.main.output
        if turn.stream:
            for request in requests:
                self.world.shown("request", id=request.id)
            self.world.shown("end")
        return Paused(requests=tuple(requests), text=said) if requests else Finished(output=said)

    # --- decisions: judging -------------------------------------------------------------------------------------------

    def judge_all(self, decisions: Sequence[Decision]) -> list[Answer]:
        """
        Finds out what the decisions of one submission say, and changes nothing.

        Errors:
            Refused: One of them cannot be taken, so none is.
        """
        answers: list[Answer] = []
        for decision in decisions:
            answer = self.judge(decision)
            self.judge_repetition(answer, answers)
            answers.append(answer)
        return answers

    def judge(self, decision: Decision) -> Answer:
        """
        Finds out what one decision says. Only the request's id counts: what runs is what this agent remembers, and not
        what the caller's copy of the request holds.
        """
        conversation, call = self.find(decision.address if decision.request is None else decision.request.id)
        verdict = decision.raw if decision.verdict == "raw" else decision.verdict
        if not self.is_verdict(verdict):
            raise MalformedDecision(f"the verdict is {verdict!r}")
        answer = Answer(request=call.request or "", verdict=verdict, reason=decision.reason)
        if verdict == "edit":
            self.judge_edit(conversation, call, decision, answer)
        return answer

    def is_verdict(self, verdict: object) -> bool:
        """Says whether this is a verdict: nothing counts as one for being true, or not empty."""
        return isinstance(verdict, str) and verdict in VERDICTS

    def find(self, request: object) -> tuple[Conversation, Call]:
        """
        Finds the call that an open request is about.

        Errors:
            MalformedDecision, UnknownRequest, AlreadySettled: There is no such call.
        """
        if not isinstance(request, str):
            raise MalformedDecision(f"the request is {request!r}")
        for conversation, call in waiting(self.state.main):
            if call.request == request:
                return conversation, call
        if request in (f"req-{number}" for number in range(1, self.state.asked + 1)):
            raise AlreadySettled(request)
        raise UnknownRequest(request)

    def judge_edit(self, conversation: Conversation, call: Call, decision: Decision, answer: Answer) -> None:
        """Finds out whether the edited call could run, and what would."""
        tool = decision.tool or call.tool
        spec = self.spec_named(conversation, tool, call.server)
        if call.kind == "hosted_mcp" or spec is None or spec.kind == "hosted_mcp":
            raise MalformedDecision(f"the call cannot be changed to {tool!r}")
        arguments = call.arguments if decision.arguments is None else decision.arguments
        if not isinstance(arguments, Mapping):
            raise MalformedDecision(f"the changed arguments are {arguments!r}")
        try:
            answer.tool, answer.arguments = tool, detached(fitted(spec, arguments))
        except Misfit as error:
            raise MalformedDecision(f"the changed arguments do not fit {tool!r}: {error}") from None

    def judge_repetition(self, answer: Answer, before: Sequence[Answer]) -> None:
        """Refuses a second decision about one request in one submission, whatever it says."""
        if any(answer.request == other.request for other in before):
            raise Contradiction(answer.request)

    def with_staged(self, answers: list[Answer]) -> list[Answer]:
        """Puts the staged decisions in front; until they are submitted, the last one about a request stands."""
        newer = {answer.request for answer in answers}
        return [answer for answer in self.state.staged if answer.request not in newer] + answers

    # --- decisions: taking effect -------------------------------------------------------------------------------------

    def settle(self, answers: Sequence[Answer], turn: Turn) -> None:
        """
        Lets the decisions of one submission take effect: each on its own call, then the standing ones among them on
        the other calls that they are about and that nobody decided.
        """
        self.state.staged = []
        undecided = {call.request: (conversation, call) for conversation, call in waiting(self.state.main)}
        for answer in answers:
            conversation, call = undecided.pop(answer.request)
            if answer.verdict in ("always", "never"):
                self.let_stand(conversation, call, answer)
            self.apply(conversation, call, answer, turn)
        for conversation, call in undecided.values():
            self.apply_standing(conversation, call, turn)

    def let_stand(self, conversation: Conversation, call: Call, answer: Answer) -> None:
        """Remembers a decision for all further calls like this one."""
        about = self.stands_for(conversation, call)
        self.state.standing.append(Standing(about=about, verdict=answer.verdict, reason=answer.reason))

    def apply(self, conversation: Conversation, call: Call, answer: Answer, turn: Turn) -> None:
        """Lets a decision take effect on its call."""
        if answer.verdict in ("reject", "never"):
            return self.refuse(call, wording.rejected(answer.reason), turn)
        if answer.verdict == "edit":
            self.change(conversation, call, answer)
        return self.approve(call)

    def change(self, conversation: Conversation, call: Call, answer: Answer) -> None:
        """Puts what the human wrote in the place of what the model wrote, and notes to tell the model."""
        call.tool, call.arguments = answer.tool or call.tool, answer.arguments
        spec = self.spec_of(conversation, call)
        if spec is not None:
            call.kind, call.server = spec.kind, spec.server
        call.note = wording.edited(call.tool, call.arguments)

    def close_open(self, text: str, turn: Turn) -> None:
        """Closes every open request as not approved; an agent that waits for one is not gone on with."""
        for call in self.state.main.calls:
            if call.stage == "waiting" or (call.inner is not None and any(waiting(call.inner))):
                call.inner = None
                self.refuse(call, text, turn)


class ReferenceAgentOverChat(ReferenceAgent):
    """The same agent on a provider that knows no hosted calls, and wants results right behind their calls."""

    capabilities = ReferenceAgent.capabilities - {"hosted_mcp"}
    missing: ClassVar = {"hosted_mcp": "chat completions have no items for hosted calls"}
    wire_rules = "chat"
