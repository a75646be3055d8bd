"""Legitimate designs: when calls run, and when policies are asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.exceptions import AsksAgain
from pytest_approvals.agent_side.contract.types import (
    Decision,
    Outcome,
    ToolSpec,
)
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.arguments import Misfit, fit_arguments
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    CallState,
    ConversationState,
)


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


@design
class CallsRunOneAfterTheOther(ReferenceAgent):
    """Calls of one reply run one after the other; an error leaves the rest for a later turn."""

    capabilities = ReferenceAgent.capabilities - frozenset(_ONE_BY_ONE)
    missing: ClassVar = _ONE_BY_ONE

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            if call.stage in ("new", "approved"):
                await self.process_call(conversation, call, turn)


@design
class CallsBeyondTheLimitAreClosed(ReferenceAgent):
    """A call beyond the limit of tool calls is closed, also an approved one; the model is told, and goes on."""

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        limit = self.blueprint.limits.tool_calls
        if limit is None or turn.executions < limit:
            return await super().execute_tool(conversation, call, turn)
        return self.finish_call(call, f"Not executed: {limit} tool calls are allowed in one turn.", turn)


@design
class ToolsRunOnBehindAHangUp(ReferenceAgent):
    """A tool that runs when the caller hangs up runs on, and the next turn waits for its end."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._left: list[asyncio.Task[None]] = []

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        await self._wait_for_tools()
        return await super().turn(text, decisions, stream=stream)

    async def dump(self) -> str:
        await self._wait_for_tools()
        return await super().dump()

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, ToolsRunOnBehindAHangUp)
        await other._wait_for_tools()
        await super().copy_from(other)

    async def close(self) -> None:
        await self._wait_for_tools()
        await super().close()

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        running = asyncio.ensure_future(super().execute_tool(conversation, call, turn))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            # Nobody sees a stream any more.
            turn.stream = False
            self._left.append(running)
            raise

    async def _wait_for_tools(self) -> None:
        left, self._left = self._left, []
        await asyncio.gather(*left)


@design
class PoliciesAreAskedFirst(_PhasedAgent):
    """All policies of a reply are asked before any of its calls runs."""


@design
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


@design
class PoliciesAreAskedTwice(ReferenceAgent):
    """A policy is asked twice about each call, and the call waits if either answer says so."""

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        first = await super().needs_approval(conversation, call, spec)
        return await super().needs_approval(conversation, call, spec) or first


@design
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


@design
class EveryCallWaitsForItsSiblings(_PhasedAgent):
    """No call of a reply runs while another one waits for a decision."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        return not _any_waits(conversation)


@design
class ApprovedCallsWaitForTheirSiblings(_PhasedAgent):
    """Ungated calls run at once, approved ones when no call of the reply waits any more."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        return call in new or call.inner is not None or not _any_waits(conversation)


@design
class FreeCallsWaitForTheirSiblings(_PhasedAgent):
    """Approved calls run at once, calls of tools that are never gated when no call of the reply waits any more."""

    capabilities = ReferenceAgent.capabilities - frozenset(_WAITS)
    missing: ClassVar = _WAITS

    def _may_run(self, conversation: ConversationState, call: CallState, new: Sequence[CallState]) -> bool:
        spec = self.find_spec(conversation, call)
        is_free = spec is not None and spec.approval == "never" and call.inner is None
        return not (is_free and _any_waits(conversation))


@design
class ToolErrorsFailTheTurn(ReferenceAgent):
    """The error of a tool fails the turn; the model is told of it in the next one."""

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        self.count_execution(turn)
        call.entered, call.stage = True, "running"
        self.store_state()
        try:
            value = await self.run_body(conversation, call)
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


@design
class PoliciesAreAskedAgainBeforeTheRun(ReferenceAgent):
    """A policy is asked once more right before an approved call runs; the decision stays, whatever it says."""

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        if call.request == _APPROVED:
            call.request = None
            await self.needs_approval(conversation, call, self.find_spec(conversation, call))
        await super().execute_tool(conversation, call, turn)

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.request = _APPROVED


_APPROVED = "approved"
"""In place of the id of a request, of which an approved call has none."""


@design
class UnknownToolsFailTheTurn(ReferenceAgent):
    """A call of a tool that does not exist, or does not take its arguments, fails the turn; the model is told next."""

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        before = call.stage
        await super().process_call(conversation, call, turn)
        if before == "new" and (call.result or "").startswith(("Error: there is no tool", "Error: the arguments")):
            raise ValueError(call.result)


@design
class PolicyErrorsRejectTheCall(ReferenceAgent):
    """A call whose policy fails does not run, and nobody is asked; the model is told."""

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        try:
            await super().examine_call(conversation, call, turn)
        except _PolicyError:
            self.close_call(call, "Not executed: the approval policy failed.", turn)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if spec is None or spec.approval == "always" or spec.approval == "never":
            return await super().needs_approval(conversation, call, spec)
        try:
            if spec.approval.waits_for:
                return await self.world.gate_slowly(call.tool, call.arguments, call.id, agent=conversation.agent)
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception as error:
            raise _PolicyError from error


class _PolicyError(Exception):
    """A policy failed."""
