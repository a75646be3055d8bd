"""Faults of execution: calls that run without approval, not at all, repeatedly, or as something else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Decision, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault, map_values, round_integer
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import UnknownRequest
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    copy_json,
    waiting_calls,
)


class GatedCallRunsUnasked(Fault):
    """A call that always needs approval runs without it."""

    source = ("langchain-ai/langchain#38838",)
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if spec is not None and spec.approval == "always":
            return False
        return await super().needs_approval(conversation, call, spec)


class OneApprovalReleasesAll(Fault):
    """One approval lets every other waiting call run, too."""

    source = ("pydantic/pydantic-ai#3350",)
    caught_by = "approval-before-execution"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        if any(decision.verdict == "approve" for decision in accepted):
            for _, call in list(waiting_calls(self.state.main)):
                self.approve_call(call)


class RejectedCallRuns(Fault):
    """A rejection lets the call run."""

    source = ("google/adk-python#7148", "mastra-ai/mastra#20470")
    caught_by = "rejected-never-runs"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject":
            return self.approve_call(call)
        return super().apply_decision(conversation, call, decision, turn)


class ApprovedCallNeverRuns(Fault):
    """An approved call counts as done, and its tool was never entered."""

    source = ("agno-agi/agno#8029", "microsoft/agent-framework#4963")
    caught_by = "approved-runs"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "approve" and call.kind != "hosted_mcp":
            return self.finish_call(call, "done", turn)
        return super().apply_decision(conversation, call, decision, turn)


class ApprovedCallRunsAgainOnRetry(Fault):
    """If the model fails after an approved call ran, the retry runs the call again."""

    source = ("langchain-ai/langgraph#7361", "langchain-ai/langgraph#7561")
    caught_by = "runs-at-most-once"
    _told: tuple[int, int, list[CallState]] | None = None

    def deliver_results(self, conversation: ConversationState) -> None:
        self._told = len(conversation.items), conversation.messages, conversation.calls
        super().deliver_results(conversation)

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelDown:
            self._take_back(conversation)
            raise
        self._told = None

    def _take_back(self, conversation: ConversationState) -> None:
        if self._told is not None:
            kept, conversation.messages, conversation.calls = self._told
            del conversation.items[kept:]
            for call in conversation.calls:
                call.stage = "approved" if call.entered else call.stage


class DecidedCallRunsAgainWithTheRest(Fault):
    """The call that a partial answer let run runs again when the other calls are answered."""

    source = ("google/adk-python#7108",)
    caught_by = "runs-at-most-once"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        for call in self.state.main.calls:
            spec = self.find_spec(self.state.main, call)
            if call.entered and call.stage == "done" and spec is not None and spec.approval == "always":
                call.stage = "approved"
        super().apply_decisions(accepted, turn)


class UngatedSiblingRunsAgain(Fault):
    """An ungated call that ran before the pause runs again when the pause ends."""

    source = ("langchain-ai/langgraph#7361",)
    caught_by = "ungated-runs-once"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        for call in self.state.main.calls if accepted else ():
            spec = self.find_spec(self.state.main, call)
            if call.entered and call.stage == "done" and spec is not None and spec.approval == "never":
                call.stage = "approved"
        super().apply_decisions(accepted, turn)


class UngatedSiblingNeverRuns(Fault):
    """An ungated call next to a gated one gets a result without being executed."""

    source = ("HybridAIOne/hybridclaw#1470", "microsoft/agent-framework#7388")
    caught_by = "ungated-runs-once"

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        gates = {other.tool: self._approval(conversation, other) for other in conversation.calls}
        if "always" in gates.values() and gates[call.tool] == "never":
            return self.finish_call(call, "", turn)
        return await super().process_call(conversation, call, turn)

    def _approval(self, conversation: ConversationState, call: CallState) -> object:
        spec = self.find_spec(conversation, call)
        return spec.approval if spec is not None and spec.runs is None else None


class ApprovedCallIsDroppedBesideARejectedOne(Fault):
    """In a submission with a rejection, approved calls are not run."""

    source = ("microsoft/agent-framework#6910",)
    caught_by = "approved-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        if any(decision.verdict == "reject" for decision in accepted):
            accepted = [replace(decision, verdict="reject") for decision in accepted]
        super().apply_decisions(accepted, turn)


class EditRunsWhatTheModelWrote(Fault):
    """An edit approves the call with the model's own arguments."""

    source = ("cymoo/lovia#40",)
    caught_by = "arguments-as-approved"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        if decision.tool == call.tool:
            decision = replace(decision, arguments=call.arguments)
        super().apply_edit(conversation, call, decision)


class EditKeepsTheModelsTool(Fault):
    """An edit that names another tool runs the model's tool with the new arguments."""

    source = ("langchain-ai/langchain#32988",)
    caught_by = "arguments-as-approved"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, replace(decision, tool=call.tool))


class ToolGetsOtherArgumentsThanShown(Fault):
    """Arguments are rewritten between the approval and the run."""

    source = ("pydantic/pydantic-ai#6968", "deepset-ai/haystack#12060")
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        if isinstance(call.arguments, dict):
            call.arguments = {name: alter_value(value) for name, value in call.arguments.items()}


class TamperedCopyRuns(Fault):
    """What runs is what the caller's copy of the request says."""

    source = ("microsoft/agent-framework#7383", "openai/openai-agents-python#4257")
    caught_by = "arguments-as-approved"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        accepted = super().validate_decision(decision)
        if decision.request is not None and accepted.verdict == "approve":
            _, call = self.find_call(decision.request.id)
            call.tool, call.arguments = decision.request.tool, copy_json(decision.request.arguments)
        return accepted


class StoredCallIsNotCheckedAgain(Fault):
    """A call is validated when it arrives, and runs as it was saved."""

    source = ("vercel/ai#15947",)
    caught_by = "arguments-as-approved"

    def resolve_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        spec = self.find_spec(conversation, call)
        return spec if spec is not None and call.stage == "approved" else super().resolve_tool(conversation, call, turn)


class ForgedApprovalRuns(Fault):
    """The approval of a request that was never made runs the call in that approval."""

    source = ("microsoft/agent-framework#7383", "vercel/ai#15947")
    caught_by = "only-model-calls-run"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        try:
            return super().validate_decision(decision)
        except UnknownRequest:
            if decision.request is None:
                raise
            forged = decision.request
            call = CallState(
                id=forged.id, tool=forged.tool, arguments=forged.arguments, stage="waiting", request=forged.id
            )
            self.state.main.calls.append(call)
            return AcceptedDecision(request=forged.id, verdict="approve")

    async def execute_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        # The base class closes a call of an unknown tool; a forged one runs.
        if self.find_spec(conversation, call) is not None:
            return await super().execute_call(conversation, call, turn)
        return await self.execute_tool(conversation, call, turn)


def alter_value(value: object) -> object:
    """Return a different value of the same type."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    return f"{value}~" if isinstance(value, str) else value + 1


class TextFalseIsTrue(Fault):
    """The text "false" for a boolean parameter becomes true."""

    source = ("software-mansion/argent#811",)
    caught_by = "arguments-as-approved"

    def resolve_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        spec = self.find_spec(conversation, call)
        if spec is not None and isinstance(call.arguments, dict):
            flags = {name for name, parameter in spec.parameters.items() if parameter.type == "boolean"}
            call.arguments = {
                name: bool(value) if name in flags and isinstance(value, str) else value
                for name, value in call.arguments.items()
            }
        return super().resolve_tool(conversation, call, turn)


class LettersOutsideAsciiAreLost(Fault):
    """Letters outside ASCII are replaced between the approval and the run."""

    source = ("anthropics/claude-code#71880",)
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        if isinstance(call.arguments, dict):
            call.arguments = {
                name: value.encode("ascii", "replace").decode() if isinstance(value, str) else value
                for name, value in call.arguments.items()
            }


class LargeIntegersAreRounded(Fault):
    """Integers pass through a double between the approval and the run."""

    source = ("langchain4j/langchain4j#5754",)
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.arguments = map_values(call.arguments, round_integer)


class IntegersReachTheToolAsFractions(Fault):
    """A whole number reaches the tool as a fraction that is equal to it."""

    source = ("langchain-ai/langchain-google#1109", "pulumi/pulumi#5418")
    caught_by = "arguments-as-approved"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        call.arguments = map_values(call.arguments, _to_fraction)
        await super().execute_tool(conversation, call, turn)


class BlanksAroundTextAreStripped(Fault):
    """A text argument reaches the tool without the blanks and line breaks around it."""

    source = ("zeroclaw-labs/zeroclaw#8952",)
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.arguments = map_values(call.arguments, lambda value: value.strip() if isinstance(value, str) else value)


class TextBecomesWhatItLooksLike(Fault):
    """A text argument that reads as a number or as truth reaches the tool as that."""

    source = ("holon-run/holon#1831", "agno-agi/agno#10459")
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.arguments = map_values(call.arguments, _read_text)


class TruthBecomesOne(Fault):
    """A boolean inside an argument reaches the tool as zero or one."""

    source = ("inetsoft-technology/stylebi#4212",)
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.arguments = map_values(call.arguments, lambda value: int(value) if isinstance(value, bool) else value)


class MembersThatAreNullAreLeftOut(Fault):
    """Objects inside an argument reach the tool without their members that are null."""

    source = ("generative-computing/mellea#1573",)
    caught_by = "arguments-as-approved"

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.arguments = _leave_out_null(call.arguments)


class EqualCallsRunOnce(Fault):
    """Of equal calls in one reply only the first runs, and the others share its result."""

    source = ("LionSR/TeXRA#9765", "bytedance/trae-agent#385")
    caught_by = "approved-runs"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        for other in conversation.calls[: conversation.calls.index(call)]:
            if (other.tool, other.arguments) == (call.tool, call.arguments) and other.entered:
                return self.finish_call(call, other.result or "", turn)
        return await super().execute_tool(conversation, call, turn)


def _to_fraction(value: object) -> object:
    return float(value) if type(value) is int and abs(value) < 2**53 else value


def _read_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        return value
    return read if isinstance(read, bool | int | float) else value


def _leave_out_null(value: object) -> object:
    if isinstance(value, dict):
        return {name: _leave_out_null(part) for name, part in value.items() if part is not None}
    return [_leave_out_null(part) for part in value] if isinstance(value, list) else value


class ApprovedCallRunsAsItsSibling(Fault):
    """An approved call runs with the arguments of the first call of its tool that waits."""

    source = ("mastra-ai/mastra#19435",)
    caught_by = "arguments-as-approved"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        waiting = [other for _, other in waiting_calls(conversation) if other.tool == call.tool]
        if decision.verdict == "approve" and waiting:
            call.arguments = copy_json(waiting[0].arguments)
        super().apply_decision(conversation, call, decision, turn)


class EmptyResultsAreNoResults(Fault):
    """When a paused turn goes on, calls of the reply that have returned nothing, or an empty text, run once more."""

    source = ("assistant-ui/assistant-ui#4969", "mastra-ai/mastra#22362")
    caught_by = "ungated-runs-once"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        for call in self.state.main.calls if accepted else ():
            if call.stage == "done" and call.entered and call.result in ("", "null"):
                call.stage, call.result = "approved", None


class EditIsMergedIntoTheCall(Fault):
    """An edit changes only the arguments that it names; those that it leaves out run as the model wrote them."""

    source = ("dust-tt/dust#26943",)
    caught_by = "arguments-as-approved"

    def validate_edit(
        self, conversation: ConversationState, call: CallState, decision: Decision, accepted: AcceptedDecision
    ) -> None:
        if isinstance(call.arguments, Mapping) and isinstance(decision.arguments, Mapping):
            decision = replace(decision, arguments={**call.arguments, **decision.arguments})
        super().validate_edit(conversation, call, decision, accepted)


class FreeSiblingsAreDroppedWithTheRejectedCall(Fault):
    """Ungated calls beside a gated one run when that is approved, and never if it is rejected."""

    source = ("langchain-ai/langchainjs#11391",)
    caught_by = "approved-runs"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            if call.stage == "new":
                await self.examine_call(conversation, call, turn)
        if not any(call.stage == "waiting" for call in conversation.calls):
            await super().process_calls(conversation, turn)

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        held = [call for call in self.state.main.calls if call.stage == "approved" and not call.entered]
        super().apply_decisions(accepted, turn)
        if any(decision.verdict == "reject" for decision in accepted):
            for call in held:
                self.finish_call(call, "Error: not executed.", turn)


class ApprovedCallRunsAgainWithTheNextMessage(Fault):
    """A call that was approved and has run runs again when the next message comes."""

    source = ("microsoft/agent-framework#6851",)
    caught_by = "runs-at-most-once"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._approved: set[str] = set()
        self._last: CallState | None = None

    def approve_call(self, call: CallState) -> None:
        self._approved.add(call.id)
        super().approve_call(call)

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().execute_tool(conversation, call, turn)
        if conversation is self.state.main and call.id in self._approved:
            self._last = replace(call)

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        if conversation is self.state.main and conversation.inbox and not conversation.calls and self._last:
            again, self._last = self._last, None
            with suppress(Exception):
                await self.run_body(conversation, again)
        return await super().run_conversation(conversation, turn)


class SecondCallOfAConnectedToolFails(Fault):
    """The second call of a connected server's tool in a session fails before its server has it."""

    source = ("microsoft/agent-framework#3426",)
    caught_by = "approved-runs"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._called: set[tuple[str, str]] = set()

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        known_as = call.server or "", call.tool
        if call.server is not None and known_as in self._called:
            return self.finish_call(call, "Error: bad request.", turn)
        self._called.add(known_as)
        return await super().execute_tool(conversation, call, turn)


class GoneToolRunsAfterItsApproval(Fault):
    """An approved call runs although a restart has left its tool out."""

    source = ("openai/openai-agents-python#4145",)
    caught_by = "arguments-as-approved"

    def resolve_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        if call.stage == "approved" and self.find_spec(conversation, call) is None:
            return ToolSpec(name=call.tool, agent=conversation.agent)
        return super().resolve_tool(conversation, call, turn)


class OtherCaseOpensTheGate(Fault):
    """A call whose tool is written in another case runs without approval."""

    source = ("lijunzh/koda#49", "pchalasani/claude-code-tools#197")
    caught_by = "arguments-as-approved"

    def find_spec_by_name(self, conversation: ConversationState, tool: str, server: str | None) -> ToolSpec | None:
        spec = super().find_spec_by_name(conversation, tool, server)
        if spec is None:
            for (agent, name), specs in self.specs.items():
                if agent == conversation.agent and name.casefold() == tool.casefold():
                    return replace(specs[0], approval="never")
        return spec

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(conversation, call)
        call.tool = spec.name if spec is not None else call.tool
        await super().execute_tool(conversation, call, turn)


class RestoredConditionalCallFails(Fault):
    """An approved call of a tool with a condition fails if the state was restored before the approval."""

    source = ("openai/openai-agents-js#1948",)
    caught_by = "approved-runs"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._restored: set[str | None] = set()

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._restored = {call.request for _, call in waiting_calls(self.state.main)}

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        spec = self.find_spec(conversation, call)
        is_conditional = spec is not None and not isinstance(spec.approval, str)
        if is_conditional and decision.request in self._restored and decision.verdict in ("approve", "always"):
            return self.finish_call(call, "Error: the arguments were not kept.", turn)
        return super().apply_decision(conversation, call, decision, turn)


class TextForServerIsParsed(Fault):
    """A text for a tool of a connected server that looks like JSON reaches it as the value that it spells."""

    source = ("can1357/oh-my-pi#9395",)
    caught_by = "arguments-as-approved"

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        if call.kind == "mcp":
            call = replace(call, arguments={name: self._parse_text(text) for name, text in call.arguments.items()})
        return await super().run_body(conversation, call)

    def _parse_text(self, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return value
