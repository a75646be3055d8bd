"""Legitimate designs: the reference agent built differently, and still right.

Each is an agent that a maintainer could defend. No check may fail on one: `python -m
pytest_approvals.devtools.pages.designs` runs the catalogue and drawn stories on each and writes `docs/designs.md`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from pytest_approvals.agent_side.contract.exceptions import AsksAgain
from pytest_approvals.agent_side.contract.types import Decision, Item, ModelCall, Outcome, Request, ToolSpec
from pytest_approvals.errors import UnknownName
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.arguments import Misfit, fit_arguments
from pytest_approvals.simulation.reference.persistence import (
    AlreadySettled,
    Contradiction,
    NothingToGoOn,
    Refused,
    UnknownRequest,
)
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    SessionState,
    state_fields,
    waiting_calls,
)

DESIGNS: dict[str, type[ReferenceAgent]] = {}
"""All designs by name; the first line of each docstring states how it differs."""

_Design = TypeVar("_Design", bound=type[ReferenceAgent])


def _design(cls: _Design) -> _Design:
    DESIGNS[cls.__name__] = cls
    return cls


def load_design(name: str) -> type[ReferenceAgent]:
    """Return the design of that name.

    Raises:
        UnknownName: There is none.
    """
    if name not in DESIGNS:
        raise UnknownName("design", name, DESIGNS)
    return DESIGNS[name]


# --- when calls run ---------------------------------------------------------------------------------------------------


def _any_waits(conversation: ConversationState) -> bool:
    return any(call.stage == "waiting" for call in conversation.calls)


_ONE_BY_ONE: Mapping[str, str] = {
    "concurrent_tools": "its calls run one after the other",
    "slow_conditions": "a policy that waits holds up the other calls of its reply",
}


class _PhasedAgent(ReferenceAgent):
    """Examines all new calls before it executes any."""

    capabilities = ReferenceAgent.capabilities - frozenset(_ONE_BY_ONE)
    missing: ClassVar = _ONE_BY_ONE

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        new = [call for call in conversation.calls if call.stage == "new"]
        for call in new:
            await self.examine_call(conversation, call, turn)
        runnable = [
            call for call in conversation.calls if call.stage == "approved" and self._may_run(conversation, call, new)
        ]
        for call in runnable:
            await self.execute_call(conversation, call, turn)

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        return True


@_design
class CallsRunOneAfterTheOther(ReferenceAgent):
    """Calls of one reply run one after the other; an error leaves the rest for a later turn."""

    capabilities = ReferenceAgent.capabilities - frozenset(_ONE_BY_ONE)
    missing: ClassVar = _ONE_BY_ONE

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            if call.stage in ("new", "approved"):
                await self.process_call(conversation, call, turn)


@_design
class PoliciesAreAskedFirst(_PhasedAgent):
    """All policies of a reply are asked before any of its calls runs."""


@_design
class PoliciesAreAskedLast(ReferenceAgent):
    """Calls of tools that are never gated run before any policy is asked."""

    capabilities = ReferenceAgent.capabilities - {"concurrent_tools"}
    missing: ClassVar = {"concurrent_tools": "its calls run one after the other"}

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for is_free in (True, False):
            for call in conversation.calls:
                if call.stage in ("new", "approved") and is_free == self._is_free(conversation, call):
                    await self.process_call(conversation, call, turn)

    def _is_free(self, conversation: ConversationState, call: CallState) -> bool:
        spec = self.find_spec(conversation, call)
        return spec is not None and spec.approval == "never"


@_design
class PoliciesAreAskedTwice(ReferenceAgent):
    """A policy is asked twice about each call, and the call waits if either answer says so."""

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        first = await super().needs_approval(conversation, call, spec)
        return await super().needs_approval(conversation, call, spec) or first


@_design
class PoliciesJudgeRawArguments(ReferenceAgent):
    """A policy judges what the model wrote, and a call whose arguments do not fit its tool as they are waits, too."""

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(conversation, call)
        if spec is not None and await self.needs_approval(conversation, call, spec):
            call.stage = "waiting"
            return self.apply_standing_decision(conversation, call, turn)
        if spec is None or not await self._is_rejected(conversation, call, turn):
            return await self._let_proceed(conversation, call, turn)
        return None

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        return await super().needs_approval(conversation, call, spec) or not self._fits(call, spec)

    def _fits(self, call: CallState, spec: ToolSpec | None) -> bool:
        """Return whether what the policy judged is what would run; it may be ungated by its declaration."""
        if spec is None or spec.approval == "never":
            return True
        try:
            fitted = fit_arguments(spec, call.arguments)
        except Misfit:
            return False
        return all(
            json.dumps(value) == json.dumps(fitted.get(name)) for name, value in dict(call.arguments or {}).items()
        )

    async def _is_rejected(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> bool:
        standing = self.find_standing_decision(conversation, call)
        if standing is None or standing.verdict != "never":
            return False
        self.close_call(call, feedback.rejection_text(standing.reason), turn)
        return True

    async def _let_proceed(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        if call.kind == "hosted_mcp":
            return await super().examine_call(conversation, call, turn)
        if self.resolve_tool(conversation, call, turn) is not None:
            call.stage = "approved"
        return None


_WAITS: Mapping[str, str] = {**_ONE_BY_ONE, "runs_beside_pending": "calls wait for the siblings of their reply"}


@_design
class EveryCallWaitsForItsSiblings(_PhasedAgent):
    """No call of a reply runs while another one waits for a decision."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        return not _any_waits(conversation)


@_design
class ApprovedCallsWaitForTheirSiblings(_PhasedAgent):
    """Ungated calls run at once, approved ones when no call of the reply waits any more."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        return call in new or call.inner is not None or not _any_waits(conversation)


@_design
class FreeCallsWaitForTheirSiblings(_PhasedAgent):
    """Approved calls run at once, calls of tools that are never gated when no call of the reply waits any more."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        spec = self.find_spec(conversation, call)
        is_free = spec is not None and spec.approval == "never" and call.inner is None
        return not (is_free and _any_waits(conversation))


@_design
class ToolErrorsFailTheTurn(ReferenceAgent):
    """The error of a tool fails the turn; the model is told of it in the next one."""

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        self.count_execution(turn)
        call.entered, call.stage = True, "running"
        self.store_state()
        try:
            value = await self.world.run(call.tool, dict(call.arguments), call.id, agent=conversation.agent)
        except AsksAgain:
            call.stage = "waiting"
        except Exception as error:
            self.finish_call(call, feedback.error_text(error), turn)
            raise
        except BaseException:
            self.finish_call(call, feedback.INTERRUPTED, turn)
            raise
        else:
            self.finish_call(call, feedback.result_text(value), turn)
        self.store_state()


# --- what the model is told -------------------------------------------------------------------------------------------


@_design
class ResultsInCompletionOrder(ReferenceAgent):
    """The model gets the results of a reply in the order in which the calls ended."""

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().process_call(conversation, call, turn)
        if call.stage == "done":
            conversation.calls.remove(call)
            ended = sum(other.stage == "done" for other in conversation.calls)
            conversation.calls.insert(ended, call)


@_design
class ResultsInOneMessage(ReferenceAgent):
    """All results of a reply are one message."""

    def deliver_results(self, conversation: ConversationState) -> None:
        start = len(conversation.items)
        super().deliver_results(conversation)
        delivered = conversation.items[start:]
        results = [item for item in delivered if item.kind == "result"]
        if results:
            first = results[0].message
            others = [item for item in delivered if item.kind != "result"]
            conversation.items[start:] = [
                *(replace(item, message=first) for item in results),
                *(replace(item, message=first + 1) for item in others),
            ]
            conversation.messages = first + (2 if others else 1)


@_design
class ResultsAreJsonObjects(ReferenceAgent):
    """What the model is told about a call is the text of a JSON object."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps({"output": text}), turn)


@_design
class ResultsAreTypedBlocks(ReferenceAgent):
    """What the model is told about a call is a list of content blocks, with letters beyond ASCII as they are."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps([{"type": "text", "text": text}], ensure_ascii=False), turn)


@_design
class RejectionsAreJsonObjects(ReferenceAgent):
    """A rejected call has a JSON object with a status and a message in place of a result."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, json.dumps({"status": "rejected", "message": text}), turn)


@_design
class RejectionsAreShort(ReferenceAgent):
    """A rejected call has one word in place of a result, and the reason if there is one."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        _, _, reason = text.partition(" Reason: ")
        super().close_call(call, f"Denied: {reason}" if reason else "Denied.", turn)


@_design
class EditsRewriteTheCall(ReferenceAgent):
    """After an edit the model sees the edited call as its own, without a note."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "an edit changes what an earlier turn has added"}

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, decision)
        call.note = None
        place = max(n for n, item in enumerate(conversation.items) if item.kind == "call" and item.id == call.id)
        conversation.items[place] = replace(conversation.items[place], tool=call.tool, arguments=call.arguments)


@_design
class SystemMessageChanges(ReferenceAgent):
    """Each model request begins with a system message that says something else each time."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        text = f"You have seen {conversation.messages} messages."
        return [Item(kind="other", text=text, message=-1), *conversation.items]


# --- requests ---------------------------------------------------------------------------------------------------------


@_design
class RequestsAreListedBackwards(ReferenceAgent):
    """The request of the last call comes first."""

    def list_open_requests(self) -> list[Request]:
        return super().list_open_requests()[::-1]


@_design
class RequestsHideTheCallId(ReferenceAgent):
    """Requests do not show the id of their call."""

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        return replace(super().build_request(conversation, call), call_id=None)


@_design
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


@_design
class CallIdsAreTheAgentsOwn(ReferenceAgent):
    """A call has an id of the agent's own, in the model's input, too; a provider's call keeps its id."""

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        if model_call.kind == "hosted_mcp":
            return super().assign_call_id(conversation, model_call, taken)
        conversation.named += 1
        opening = next((item.text for item in conversation.items if item.kind == "user"), "")
        made = f"{conversation.agent} {conversation.named} {conversation.messages} {opening}"
        return f"call_{hashlib.sha256(made.encode()).hexdigest()[:16]}"


@_design
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


@_design
class RequestIdsChangeAndTheLastCounts(ReferenceAgent):
    """Each turn that ends with open requests gives them new ids, and refuses the earlier ones."""

    def build_outcome(self, turn: TurnContext) -> Outcome:
        for _, call in waiting_calls(self.state.main):
            call.request = None
        self.assign_request_ids()
        return super().build_outcome(turn)


# --- decisions and messages -------------------------------------------------------------------------------------------


@_design
class MessagesAreRefusedWhilePending(ReferenceAgent):
    """A message is refused while a request is open that the same input does not decide."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and not self.is_running:
            self.reload_state()
            decided = {decision.request for decision in self.merge_staged(self.validate_decisions(decisions))}
            if any(call.request not in decided for _, call in waiting_calls(self.state.main)):
                raise Refused("decide about the open approval requests before sending a message")
        return await super().turn(text, decisions, stream=stream)


@_design
class MessagesWaitWhilePending(ReferenceAgent):
    """A message that comes while requests are open reaches the model after their results."""

    capabilities = ReferenceAgent.capabilities - {"message_while_pending"}
    missing: ClassVar = {"message_while_pending": "a message waits until the open requests are decided"}

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        if text != feedback.SUPERSEDED:
            super().close_open_requests(text, turn)


@_design
class LateDecisionsAreUnknownRequests(ReferenceAgent):
    """A decision about a settled request is refused like one about a request that never was."""

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            raise UnknownRequest(request) from None


@_design
class LateDecisionsHaveNothingToDecide(ReferenceAgent):
    """A decision is refused without a look at its request if no request is open."""

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        if not any(waiting_calls(self.state.main)):
            raise NothingToGoOn
        return super().validate_decision(decision)


@_design
class LateDecisionsAreLookupErrors(ReferenceAgent):
    """A decision about a settled request raises one of Python's own errors."""

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled as error:
            raise LookupError(str(error)) from None


@_design
class LateDecisionsAreUnknownAfterARestart(ReferenceAgent):
    """What is saved does not say which requests were settled: decisions about these are then about unknown ones."""

    _was_loaded = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._was_loaded = True

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            if self._was_loaded:
                raise UnknownRequest(request) from None
            raise


@_design
class EqualDecisionsCountOnce(ReferenceAgent):
    """Two equal decisions about one request in one submission count as one; different ones are refused."""

    def reject_repetition(self, decision: AcceptedDecision, before: Sequence[AcceptedDecision]) -> None:
        if any(decision.request == other.request and decision != other for other in before):
            raise Contradiction(decision.request)

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        unique: list[AcceptedDecision] = []
        for decision in super().validate_decisions(decisions):
            if decision not in unique:
                unique.append(decision)
        return unique


# --- what is kept -----------------------------------------------------------------------------------------------------


@_design
class SavedKeysAreSorted(ReferenceAgent):
    """What is saved is indented, with its keys in alphabetical order."""

    def encode(self, state: SessionState) -> str:
        return json.dumps(state, default=state_fields, sort_keys=True, indent=1)

    def encode_addition(self) -> str:
        return json.dumps(json.loads(super().encode_addition()), sort_keys=True, indent=1)


@_design
class NothingIsTrimmedWhilePending(ReferenceAgent):
    """Trimming leaves the history alone while a request is open."""

    def count_trimmable_items(self, conversation: ConversationState, keep: int) -> int:
        return 0 if any(waiting_calls(conversation)) else super().count_trimmable_items(conversation, keep)
