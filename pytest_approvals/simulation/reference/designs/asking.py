"""Legitimate designs: requests, and the ids of requests and calls."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract.types import (
    Decision,
    ModelCall,
    Outcome,
    Paused,
    Request,
)
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.persistence import (
    AlreadySettled,
    UnknownRequest,
)
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    waiting_calls,
)


@design
class RequestsAreListedBackwards(ReferenceAgent):
    """The request of the last call comes first."""

    def list_open_requests(self) -> list[Request]:
        return super().list_open_requests()[::-1]


@design
class RequestsHideTheCallId(ReferenceAgent):
    """Requests do not show the id of their call."""

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        return replace(super().build_request(conversation, call), call_id=None)


@design
class RequestIdsAreOpaque(ReferenceAgent):
    """Request ids are digests, which say nothing about order or call."""

    def assign_request_ids(self) -> None:
        for _, call in waiting_calls(self.state.main):
            if call.request is None:
                self.state.asked += 1
                call.request = self._opaque_id(self.state.asked)

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except UnknownRequest:
            if request in [self._opaque_id(number) for number in range(1, self.state.asked + 1)]:
                raise AlreadySettled(str(request)) from None
            raise

    def _opaque_id(self, number: int) -> str:
        return hashlib.sha256(f"request {number}".encode()).hexdigest()[:20]


@design
class CallIdsAreTheAgentsOwn(ReferenceAgent):
    """A call has an id of the agent's own, in the model's input, too; a provider's call keeps its id."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        conversation.named += 1
        opening = next((item.text for item in conversation.items if item.kind == "user"), "")
        made = f"{conversation.agent} {conversation.named} {conversation.messages} {opening}"
        return f"call_{hashlib.sha256(made.encode()).hexdigest()[:16]}"


@design
class RequestIdsChangeAndAllCount(ReferenceAgent):
    """A request has another id after each turn, and a decision may name any of them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._turns = 0

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._turns += 1
        return await super().turn(text, decisions, stream=stream)

    def list_open_requests(self) -> list[Request]:
        return [replace(one, id=f"{one.id}.{self._turns}") for one in super().list_open_requests()]

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        return super().find_call(request.partition(".")[0] if isinstance(request, str) else request)

    async def pending(self) -> Sequence[Request]:
        listed = await super().pending()
        staged = {decision.request for decision in self.state.staged}
        return tuple(request for request in listed if request.id.partition(".")[0] not in staged)


@design
class RequestIdsChangeAndTheLastCounts(ReferenceAgent):
    """Each turn that ends with open requests gives them new ids, and refuses the earlier ones."""

    def build_outcome(self, turn: TurnContext) -> Outcome:
        for _, call in waiting_calls(self.state.main):
            call.request = None
        self.assign_request_ids()
        return super().build_outcome(turn)


@design
class RequestsAreShownOneByOne(ReferenceAgent):
    """One request is open at a time; the next call is asked about when that one is decided."""

    capabilities = ReferenceAgent.capabilities - {"concurrent_tools", "partial_answers", "runs_beside_pending"}
    missing: ClassVar = {
        "concurrent_tools": "an approved call has run when the next one is asked about",
        "partial_answers": "one request is open at a time",
    }

    def assign_request_ids(self) -> None:
        waiting = [*waiting_calls(self.state.main)]
        # What is asked already comes first.
        first = next((pair for pair in waiting if pair[1].request is not None), waiting[0] if waiting else None)
        later = [
            call
            for conversation, call in waiting
            if first is None or not self.is_asked_with(conversation, call, *first)
        ]
        for call in later:
            call.request = ""
        super().assign_request_ids()
        for call in later:
            call.request = None

    def is_asked_with(
        self, conversation: ConversationState, call: CallState, asked_in: ConversationState, asked: CallState
    ) -> bool:
        """Return whether a call is asked about together with one that is."""
        return call is asked

    def list_open_requests(self) -> list[Request]:
        waiting = waiting_calls(self.state.main)
        return [self.build_request(conversation, call) for conversation, call in waiting if call.request is not None]

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        # Those that have no request yet are covered by standing decisions, too.
        for conversation, call in list(waiting_calls(self.state.main)):
            self.apply_standing_decision(conversation, call, turn)


@design
class OneToolIsAskedAboutAtATime(RequestsAreShownOneByOne):
    """Requests about calls of one tool are open together; the next tool is asked about when those are decided."""

    missing: ClassVar = {
        "concurrent_tools": "an approved call has run when the next tool is asked about",
        "partial_answers": "requests about one tool are open at a time",
    }

    def is_asked_with(
        self, conversation: ConversationState, call: CallState, asked_in: ConversationState, asked: CallState
    ) -> bool:
        return conversation is asked_in and call.tool == asked.tool


@design
class RequestsHideTheCallIdAndComeBackwards(RequestsAreListedBackwards, RequestsHideTheCallId):
    """Requests do not show the id of their call, and the request of the last call comes first."""


@design
class CallIdsAreCounted(ReferenceAgent):
    """Calls are numbered in each conversation, so that two of them have calls with equal ids."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        conversation.named += 1
        return f"call_{conversation.named}"


@design
class CallIdsAreDigests(ReferenceAgent):
    """The id of a call is a digest of the model's, nine letters and digits long, and comes again when that does."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        name = model_call.id
        if name is None:
            conversation.named += 1
            name = f"{conversation.named} {conversation.messages}"
        digests = (hashlib.sha256(f"{name} {number}".encode()).hexdigest()[:9] for number in range(len(taken) + 1))
        return next(made for made in digests if made not in taken)


@design
class InnerCallIdsNameTheOuterCall(ReferenceAgent):
    """The id of a call that an agent inside makes begins with the id of the call that runs the agent."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        outer = _find_outer_call(self.state.main, conversation)
        prefix = "" if outer is None else f"{outer.id}."
        inner = None if model_call.id is None else f"{prefix}{model_call.id}"
        made = super().assign_call_id(conversation, replace(model_call, id=inner), taken)
        return made if inner is not None else f"{prefix}{made}"


def _find_outer_call(outer: ConversationState, inner: ConversationState) -> CallState | None:
    for call in outer.calls:
        if call.inner is inner:
            return call
        found = None if call.inner is None else _find_outer_call(call.inner, inner)
        if found is not None:
            return found
    return None


@design
class RequestsAreListedAgainOnDemand(ReferenceAgent):
    """A turn shows the requests that are new; what was open before is listed by a turn that has none, or if asked."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self.reload_state()
        before = {call.request for _, call in waiting_calls(self.state.main)}
        outcome = await super().turn(text, decisions, stream=stream)
        if not isinstance(outcome, Paused):
            return outcome
        new = tuple(request for request in outcome.requests if request.id not in before)
        return replace(outcome, requests=new or outcome.requests)


@design
class CallIdsBeginWithTheRun(ReferenceAgent):
    """The ids of calls begin with the id of the run, which is made of its first message, and of the reply."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        prefix = f"{self._run_id()}:{conversation.messages}:"
        made = super().assign_call_id(
            conversation, model_call, [name.removeprefix(prefix) for name in taken if name.startswith(prefix)]
        )
        return f"{prefix}{made}"

    def _run_id(self) -> str:
        opening = next((item.text or "" for item in self.state.main.items if item.kind == "user"), "")
        return f"run_{hashlib.sha256(opening.encode()).hexdigest()[:8]}"


@design
class RequestIdsChangeWhenRestored(ReferenceAgent):
    """A restored session has another id, which its requests bear; those of the sessions before it still count."""

    _restored = 0

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._restored += 1

    async def copy_from(self, other: Any) -> None:
        await super().copy_from(other)
        self._restored = other._restored + 1

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        request = super().build_request(conversation, call)
        return replace(request, id=f"{request.id}@session-{self._restored}")

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        return super().find_call(request.partition("@")[0] if isinstance(request, str) else request)

    async def pending(self) -> Sequence[Request]:
        listed = await super().pending()
        staged = {decision.request for decision in self.state.staged}
        return tuple(request for request in listed if request.id.partition("@")[0] not in staged)
