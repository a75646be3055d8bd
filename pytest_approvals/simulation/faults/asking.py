"""Faults of asking: policies that are ignored, requests that do not surface or show something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pytest_approvals.agent_side.contract.types import Condition, Finished, Outcome, Reply, Request, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault, map_values, round_integer
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.feedback import rejection_text
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState, waiting_calls


class RaisingPolicyOpensTheGate(Fault):
    """A condition that raises lets the call run."""

    source = ("crewAIInc/crewAI#6859",)
    caught_by = "policy-fails-closed"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if spec is None or not isinstance(spec.approval, Condition):
            return await super().needs_approval(conversation, call, spec)
        try:
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            return False


class SlowPolicyThatRaisesOpensTheGate(Fault):
    """A condition that waits and then raises lets the call run; one that raises at once does not."""

    source = ("kirodotdev/KiroCrew#7339", "anthropics/claude-code#84302")
    caught_by = "policy-fails-closed"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if spec is None or not isinstance(spec.approval, Condition) or not spec.approval.waits_for:
            return await super().needs_approval(conversation, call, spec)
        try:
            return await self.world.gate_slowly(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            return False


class BrokenArgumentsOpenTheGate(Fault):
    """A call whose arguments are not an object runs without arguments and without approval."""

    source = ("NousResearch/hermes-agent#80498",)
    caught_by = "approval-before-execution"

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        if isinstance(call.arguments, Mapping):
            return await super().examine_call(conversation, call, turn)
        call.arguments = {}
        return await self.execute_tool(conversation, call, turn)


class PolicyJudgesWhatTheModelWrote(Fault):
    """A condition judges the arguments as the model wrote them, and the tool gets them coerced to its types."""

    source = ("openai/openai-agents-python#5077",)
    caught_by = "approval-before-execution"

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        spec, written = self.find_spec(conversation, call), call.arguments
        compares = spec is not None and isinstance(spec.approval, Condition) and spec.approval.argument is not None
        await super().examine_call(conversation, call, turn)
        coerced = compares and isinstance(written, Mapping) and call.arguments != written
        if not coerced or call.stage != "waiting":
            return
        if not self.world.gate(call.tool, written, call.id, agent=conversation.agent):
            call.stage = "approved"


class PolicyIsAskedAgainAfterApproval(Fault):
    """The condition is evaluated again for an approved call, which then waits again."""

    source = ("openai/openai-agents-js#1418",)
    caught_by = "asked-once"

    async def execute_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(conversation, call)
        conditional = spec is not None and isinstance(spec.approval, Condition)
        if conditional and not call.entered and await self.needs_approval(conversation, call, spec):
            call.stage = "waiting"
            return None
        return await super().execute_call(conversation, call, turn)


class PolicyReleasesAWaitingCall(Fault):
    """A waiting call runs when its condition changes its mind, though nobody decided."""

    source = ("openai/openai-agents-python#3259",)
    caught_by = "unanswered-stays-pending"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            spec = self.find_spec(conversation, call)
            conditional = spec is not None and isinstance(spec.approval, Condition)
            if call.stage == "waiting" and conditional and not await self.needs_approval(conversation, call, spec):
                self.approve_call(call)
        await super().process_calls(conversation, turn)


class UngatedSiblingsAreAskedToo(Fault):
    """Ungated calls next to a gated one need approval, too."""

    source = ("dotnet/extensions#7549",)
    caught_by = "only-gated-asked"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        specs = [self.find_spec(conversation, other) for other in conversation.calls]
        if any(other is not None and other.approval == "always" for other in specs):
            return True
        return await super().needs_approval(conversation, call, spec)


class RequestShowsTheFirstSibling(Fault):
    """The requests of two calls of one tool both show the arguments of the first."""

    source = ("BloopAI/vibe-kanban#977",)
    caught_by = "request-shows-the-call"

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        first = next(other for other in conversation.calls if other.tool == call.tool)
        return replace(super().build_request(conversation, call), arguments=first.arguments)


class RequestHidesTheArguments(Fault):
    """A request shows the tool, and not what it is called with."""

    source = ("deepset-ai/haystack#12060",)
    caught_by = "request-shows-the-call"

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        return replace(super().build_request(conversation, call), arguments={})


class RequestIdIsTheNameOfTheTool(Fault):
    """Two open requests about one tool have the same id."""

    source = ("pydantic/pydantic-ai#5761",)
    caught_by = "request-ids-unique"

    def assign_request_ids(self) -> None:
        super().assign_request_ids()
        for _, call in waiting_calls(self.state.main):
            call.request = call.tool


class RequestIdIsTheCallId(Fault):
    """Two nested agents whose models use one call id make two requests with one id."""

    source = ("mastra-ai/mastra#24733",)
    caught_by = "request-ids-unique"

    def assign_request_ids(self) -> None:
        super().assign_request_ids()
        for _, call in waiting_calls(self.state.main):
            call.request = call.id


class OnlyTheLastRequestSurfaces(Fault):
    """Of several requests in one pause the caller sees the last, and never the others."""

    source = ("letta-ai/letta-code#101", "mastra-ai/mastra#19435")
    caught_by = "every-gated-call-asked"

    def list_open_requests(self) -> list[Request]:
        newest = f"req-{self.state.asked}-"
        return [request for request in super().list_open_requests() if request.id.startswith(newest)]


class TextBesideACallEndsTheTurn(Fault):
    """If the model says something next to a gated call, that text is the output and nobody is asked."""

    source = ("microsoft/agent-framework#5535",)
    caught_by = "nothing-left-pending"

    def build_outcome(self, turn: TurnContext) -> Outcome:
        outcome = super().build_outcome(turn)
        return outcome if self.state.main.output is None else Finished(output=self.state.main.output)


class ApprovedCallIsAskedAgain(Fault):
    """An approval gets lost, and the call comes back with a new request."""

    source = ("openai/openai-agents-python#2487", "lvndry/jazz#521")
    caught_by = "asked-once"

    def approve_call(self, call: CallState) -> None:
        call.request = None


class PartialAnswerLooksFinished(Fault):
    """A turn that answers some of the requests ends as finished, with the others still open."""

    source = ("microsoft/agent-framework#5666",)
    caught_by = "unanswered-stays-pending"
    _partial = False

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        self._partial = bool(accepted)

    def build_outcome(self, turn: TurnContext) -> Outcome:
        partial, self._partial = self._partial, False
        return Finished(output=None) if partial and self.list_open_requests() else super().build_outcome(turn)


class CallWithoutArgumentsIsDropped(Fault):
    """A call without arguments is not taken as a call."""

    source = ("ogx-ai/ogx#6570",)
    caught_by = "every-gated-call-asked"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        calls = tuple(call for call in reply.calls if call.arguments)
        super().record_reply(conversation, replace(reply, calls=calls), turn)


class EmptyTextIsNoArguments(Fault):
    """A call whose arguments are an empty text is refused, though its tool needs none."""

    source = ("brave/brave-browser#56601",)
    caught_by = "every-gated-call-asked"

    def resolve_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        if call.arguments == "":
            self.finish_call(call, "Error: the arguments are not JSON.", turn)
            return None
        return super().resolve_tool(conversation, call, turn)


class CallsOfOneToolCollapse(Fault):
    """Of several calls of one tool in one reply only the last is processed."""

    source = ("generative-computing/mellea#1431",)
    caught_by = "every-gated-call-asked"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        last = {(call.tool, call.server): call for call in reply.calls}
        calls = tuple(call for call in reply.calls if last[call.tool, call.server] is call)
        super().record_reply(conversation, replace(reply, calls=calls), turn)


class LaterRequestsAreRejected(Fault):
    """Of several gated calls in one reply only the first surfaces, and the others are rejected."""

    source = ("supabase/supabase#47008",)
    caught_by = "every-gated-call-asked"

    def assign_request_ids(self) -> None:
        for _, call in list(waiting_calls(self.state.main))[1:]:
            if call.request is None:
                self.close_call(call, rejection_text(None), TurnContext(stream=False))
        super().assign_request_ids()


class DisplayTextReachesTheTool(Fault):
    """What is added to the arguments for display in a request reaches the tool."""

    source = ("google-gemini/gemini-cli#7369",)
    caught_by = "arguments-as-approved"

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        request = super().build_request(conversation, call)
        if isinstance(call.arguments, dict):
            call.arguments = {
                name: f"{value} (shown)" if isinstance(value, str) else value for name, value in call.arguments.items()
            }
        return request


class RequestShowsRoundedIntegers(Fault):
    """Integers are rounded to doubles when the arguments are parsed, before the request is built."""

    source = ("earendil-works/pi#8943",)
    caught_by = "request-shows-the-call"

    def assemble_reply(self, reply: Reply) -> Reply:
        whole = super().assemble_reply(reply)
        calls = (replace(call, arguments=map_values(call.arguments, round_integer)) for call in whole.calls)
        return replace(whole, calls=tuple(calls))


class RequestCutsLongArguments(Fault):
    """The request shows the first 2,000 characters of a long argument."""

    source = ("block/buzz#4502", "NousResearch/hermes-agent#1649")
    caught_by = "request-shows-the-call"

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        request = super().build_request(conversation, call)
        return replace(request, arguments=map_values(request.arguments, _cut_text))


def _cut_text(value: object) -> object:
    return value[:2000] if isinstance(value, str) else value


class GateIsThatOfTheFirstServer(Fault):
    """Of two servers' tools with one name, the policy of the first counts for both."""

    source = ("archestra-ai/archestra#2751", "Cloudgeni-ai/opengeni#2537")
    caught_by = "approval-before-execution"

    def find_spec_by_name(self, conversation: ConversationState, tool: str, server: str | None) -> ToolSpec | None:
        return next(iter(self.specs.get((conversation.agent, tool), ())), None)

    def is_tool_of_server(self, spec: ToolSpec, call: CallState) -> bool:
        return True


class ConditionOfAConnectedToolIsIgnored(Fault):
    """A condition on a connected server's tool is never evaluated, and its calls run."""

    source = ("openai/openai-agents-python#2807",)
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if call.kind == "mcp" and spec is not None and spec.approval not in ("always", "never"):
            return False
        return await super().needs_approval(conversation, call, spec)


class UngatedConditionalCallAsksInBatch(Fault):
    """A call that its condition lets through needs approval beside a call that always does."""

    source = ("microsoft/agent-framework#4879",)
    caught_by = "only-gated-asked"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        needs = await super().needs_approval(conversation, call, spec)
        if spec is None or isinstance(spec.approval, str):
            return needs
        others = [self.find_spec(conversation, other) for other in conversation.calls]
        return needs or any(other is not None and other.approval == "always" for other in others)


class UnknownCallOpensTheGate(Fault):
    """A call of an unknown tool lets the calls behind it run without approval."""

    source = ("microsoft/agent-framework#8079",)
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        place = next(at for at, other in enumerate(conversation.calls) if other is call)
        is_open = any(self.find_spec(conversation, other) is None for other in conversation.calls[:place])
        return not is_open and await super().needs_approval(conversation, call, spec)


class GatedCallRunsBesideItsQuestion(Fault):
    """A call runs while it is asked about, and again when it is approved."""

    source = ("google/adk-go#876",)
    caught_by = "approval-before-execution"

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        spec = self.find_spec(conversation, call)
        if call.stage == "waiting" and spec is not None and spec.kind == "function" and spec.runs is None:
            with suppress(Exception):
                await self.run_body(conversation, call)


class LostAnnotationsLetAllRun(Fault):
    """What the servers say does not reach the policy, which lets all tools run about which it knows nothing."""

    source = ("lobu-ai/lobu#688",)
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return {"readOnlyHint": True}


class SilenceIsTakenForHarmless(Fault):
    """A tool that its server does not call destructive runs without a question, though it is by default."""

    source = ("openai/codex#15519", "simonx1/ruby-mcp-client#140", "truefoundry/trueforge#318")
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return {"destructiveHint": False, **(spec.annotations or {})}


class HarmlessToolsAreTakenForDestructive(Fault):
    """The default of an annotation replaces what the server says, so that harmless calls wait, too."""

    source = ("patvice/ruby_llm-mcp#143",)
    caught_by = "only-gated-asked"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        said = spec.annotations or {}
        return {**said, "destructiveHint": said.get("destructiveHint") or True}


class AnnotationsAreKnownByName(Fault):
    """Of two servers that offer a tool of one name, what the first one says counts for both."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return next(tool.annotations for tool in self.blueprint.tools if tool.name == spec.name)


class TwoRequestsFailTheTurn(Fault):
    """A turn in which two calls wait for approval fails."""

    source = ("cloudflare/agents#477",)
    caught_by = "run-ends"

    def build_outcome(self, turn: TurnContext) -> Outcome:
        if len(self.list_open_requests()) > 1:
            raise RuntimeError("only one request at a time is supported")
        return super().build_outcome(turn)


class RaisingPolicyOrphansTheCall(Fault):
    """If a condition raises, the turn fails, and its call is neither asked about nor answered."""

    source = ("mindroom-ai/mindroom#1804",)
    caught_by = "model-input-well-formed"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if spec is None or isinstance(spec.approval, str) or spec.by_annotations or spec.approval.waits_for:
            return await super().needs_approval(conversation, call, spec)
        try:
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            conversation.calls = []
            raise


class WaitingConnectedCallAsksTheModel(Fault):
    """A connected server's call that needs approval is told as an error, and the model goes on."""

    source = ("google/adk-python#6987",)
    caught_by = "every-gated-call-asked"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        await super().process_calls(conversation, turn)
        for call in conversation.calls:
            if call.stage == "waiting" and call.kind == "mcp":
                self.finish_call(call, "Error: this tool call requires confirmation.", turn)


class SlowConditionOpensTheGate(Fault):
    """A condition that does not answer at once counts as passed."""

    source = ("sipyourdrink-ltd/bernstein#5051",)
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        needed = await super().needs_approval(conversation, call, spec)
        is_slow = spec is not None and isinstance(spec.approval, Condition) and spec.approval.waits_for is not None
        return needed and not is_slow


class ParallelQuestionsShareAnId(Fault):
    """Tools of one reply that ask in their middle make requests with one id."""

    source = ("langchain-ai/langgraph#6542",)
    caught_by = "request-ids-unique"

    def assign_request_ids(self) -> None:
        super().assign_request_ids()
        asking = [call for call in self.state.main.calls if call.stage == "waiting" and call.entered]
        for call in asking:
            call.request = asking[0].request
