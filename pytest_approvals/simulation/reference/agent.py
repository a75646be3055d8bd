"""The reference agent: turns, decisions, calls, and the dialogue with the model.

Every decision is validated before any takes effect, so that a submission is accepted or refused as a whole. Calls are
processed at the same time: what may run does not wait for what has to be approved; the model waits for all.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args
from zlib import crc32

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import AsksAgain, Elicits, ModelDown
from pytest_approvals.agent_side.contract.types import (
    Chunk,
    Decision,
    ElicitationAnswer,
    Finished,
    Item,
    ModelCall,
    Outcome,
    Paused,
    Reply,
    Request,
    Thought,
    ToolSpec,
    Verdict,
    needs_approval_by_annotations,
)
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.arguments import Misfit, fit_arguments
from pytest_approvals.simulation.reference.persistence import (
    AlreadySettled,
    Contradiction,
    LimitReached,
    MalformedDecision,
    NothingToGoOn,
    StatefulAgent,
    UnknownRequest,
)
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    PartialCall,
    StandingDecision,
    build_call_item,
    build_hosted_item,
    copy_json,
    has_approved_call,
    waiting_calls,
)

DECISION_VERDICTS = frozenset(get_args(Verdict)) - {"raw"}
"""Verdicts that a decision can have."""


_REQUEST_ID = re.compile(r"req-([0-9]{1,9})(?:-[0-9]{6})?")


@dataclass(slots=True)
class TurnContext:
    """Counters of one turn."""

    stream: bool
    replies: int = 0
    executions: int = 0


class ReferenceAgent(StatefulAgent):
    """An agent with approvals as it should be.

    A call that needs approval waits, and its request surfaces when everything that may run has run. A request is open
    until it is decided, or closed by a new message or a cancellation; from then on, decisions about it are refused.
    """

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.specs: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in blueprint.tools:
            self.specs.setdefault((spec.agent, spec.name), []).append(spec)

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """Run a turn."""
        with self.exclusive_input():
            accepted = self.validate_decisions(decisions)
            if text is None and not self.has_work():
                raise NothingToGoOn
            turn = TurnContext(stream)
            self.apply_decisions(self.merge_staged(accepted), turn)
            if text is not None:
                self.close_open_requests(feedback.SUPERSEDED, turn)
                self.state.main.inbox.append(text)
            # Stored before anything runs, so that a crash cannot open a settled request again.
            self.store_state()
            try:
                await self.run_conversation(self.state.main, turn)
            finally:
                # Also after an error, since calls that wait by then must have requests to answer.
                self.assign_request_ids()
            return self.build_outcome(turn)

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """Put decisions into the state without running."""
        with self.exclusive_input():
            self.state.staged = self.merge_staged(self.validate_decisions(decisions))

    async def cancel(self) -> None:
        """Cancel the open requests."""
        with self.exclusive_input():
            self.state.staged = []
            self.close_open_requests(feedback.CANCELLED, TurnContext(stream=False))

    async def pending(self) -> Sequence[Request]:
        """Return the open requests without a staged decision."""
        # While a turn runs, the state in memory is newer than the stored one.
        if not self.is_running:
            self.reload_state()
        staged = {decision.request for decision in self.state.staged}
        return tuple(request for request in self.list_open_requests() if request.id not in staged)

    def reload_state(self) -> None:
        """Read the present state from the store; a process that died gave the calls that wait no requests."""
        super().reload_state()
        self.assign_request_ids()

    def has_work(self) -> bool:
        """Return whether a turn without a message has anything to do, even if only to ask again."""
        main = self.state.main
        return bool(main.calls or main.inbox or main.asks_model)

    # --- requests -----------------------------------------------------------------------------------------------------

    def assign_request_ids(self) -> None:
        """Give every waiting call a request of its own, in the order of the calls.

        The same number may be given in two copies of a state. The digest of the call keeps an answer that was meant for
        one of them from another call in the other.
        """
        for conversation, call in waiting_calls(self.state.main):
            if call.request is None:
                self.state.asked += 1
                meant = json.dumps(
                    [conversation.agent, call.id, call.server, call.tool, call.arguments], sort_keys=True
                )
                call.request = f"req-{self.state.asked}-{crc32(meant.encode()) % 1_000_000:06}"

    def list_open_requests(self) -> list[Request]:
        """Return the open requests."""
        return [self.build_request(conversation, call) for conversation, call in waiting_calls(self.state.main)]

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        """Build the request for a call, as it is going to be executed."""
        return Request(
            id=call.request or "",
            call_id=call.id,
            tool=call.tool,
            arguments=copy_json(call.arguments),
            kind=call.kind,
            server=call.server,
            agent=conversation.agent,
        )

    def build_outcome(self, turn: TurnContext) -> Outcome:
        """Build the outcome of the turn."""
        requests, output = self.list_open_requests(), self.state.main.output
        if turn.stream:
            for request in requests:
                self.world.shown("request", id=request.id)
            self.world.shown("end")
        if not requests:
            return Finished(output=output)
        # A structured answer beside the request is no text, and it is no answer yet.
        return Paused(requests=tuple(requests), text=output if isinstance(output, str) else None)

    # --- validating decisions -----------------------------------------------------------------------------------------

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        """Return what the decisions of one submission say, without changing anything.

        Raises:
            Refused: One of them is invalid, so none is accepted.
        """
        accepted: list[AcceptedDecision] = []
        for submitted in decisions:
            decision = self.validate_decision(submitted)
            self.reject_repetition(decision, accepted)
            accepted.append(decision)
        return accepted

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        """Return what one decision says.

        Only the id of the request counts: what is executed is what this agent remembers, and not what the caller's
        copy of the request holds.
        """
        conversation, call = self.find_call(decision.address if decision.request is None else decision.request.id)
        verdict = decision.raw if decision.verdict == "raw" else decision.verdict
        if not self.is_verdict(verdict):
            raise MalformedDecision(f"the verdict is {verdict!r}")
        accepted = AcceptedDecision(request=call.request or "", verdict=verdict, reason=decision.reason)
        if verdict == "edit":
            self.validate_edit(conversation, call, decision, accepted)
        return accepted

    def is_verdict(self, verdict: object) -> bool:
        """Return whether a value is a verdict; truthy or non-empty values do not count as one."""
        return isinstance(verdict, str) and verdict in DECISION_VERDICTS

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        """Return the call of an open request, with its conversation.

        Raises:
            MalformedDecision, UnknownRequest, AlreadySettled: There is no such call.
        """
        if not isinstance(request, str):
            raise MalformedDecision(f"the request is {request!r}")
        for conversation, call in waiting_calls(self.state.main):
            if call.request == request:
                return conversation, call
        # Ids count up, so a settled request needs no record of its own.
        number = _REQUEST_ID.fullmatch(request)
        if number is not None and 1 <= int(number[1]) <= self.state.asked:
            raise AlreadySettled(request)
        raise UnknownRequest(request)

    def validate_edit(
        self, conversation: ConversationState, call: CallState, decision: Decision, accepted: AcceptedDecision
    ) -> None:
        """Put the edited call into *accepted*, if it could be executed."""
        tool = decision.tool or call.tool
        spec = self.find_spec_by_name(conversation, tool, call.server)
        # A provider executes its own call as the model made it.
        if call.kind == "hosted_mcp" or spec is None or spec.kind == "hosted_mcp":
            raise MalformedDecision(f"the call cannot be changed to {tool!r}")
        arguments = call.arguments if decision.arguments is None else decision.arguments
        if not isinstance(arguments, Mapping):
            raise MalformedDecision(f"the changed arguments are {arguments!r}")
        try:
            accepted.tool, accepted.arguments = tool, copy_json(fit_arguments(spec, arguments))
        except Misfit as error:
            raise MalformedDecision(f"the changed arguments do not fit {tool!r}: {error}") from None

    def reject_repetition(self, decision: AcceptedDecision, before: Sequence[AcceptedDecision]) -> None:
        """Refuse a second decision about one request in one submission, even an equal one."""
        if any(decision.request == other.request for other in before):
            raise Contradiction(decision.request)

    def merge_staged(self, accepted: list[AcceptedDecision]) -> list[AcceptedDecision]:
        """Prepend the staged decisions; until they are submitted, the last one about a request counts."""
        replaced = {decision.request for decision in accepted}
        return [decision for decision in self.state.staged if decision.request not in replaced] + accepted

    # --- applying decisions -------------------------------------------------------------------------------------------

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        """Apply the decisions of one submission.

        Each applies to its own call, then the standing ones among them to other calls in their scope that nobody
        decided.
        """
        self.state.staged = []
        undecided = {call.request: (conversation, call) for conversation, call in waiting_calls(self.state.main)}
        for decision in accepted:
            conversation, call = undecided.pop(decision.request)
            if decision.verdict in ("always", "never"):
                self.add_standing_decision(conversation, call, decision)
            self.apply_decision(conversation, call, decision, turn)
        for conversation, call in undecided.values():
            self.apply_standing_decision(conversation, call, turn)

    def add_standing_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision
    ) -> None:
        """Remember a decision for all further calls like this one."""
        scope = self.standing_scope(conversation, call)
        self.state.standing.append(StandingDecision(about=scope, verdict=decision.verdict, reason=decision.reason))

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        """Apply a decision to its call."""
        if decision.verdict in ("reject", "never"):
            return self.close_call(call, feedback.rejection_text(decision.reason), turn)
        if decision.verdict == "edit":
            self.apply_edit(conversation, call, decision)
        return self.approve_call(call)

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        """Replace the model's call by the human's, and note that for the model."""
        call.tool, call.arguments = decision.tool or call.tool, decision.arguments
        spec = self.find_spec(conversation, call)
        if spec is not None:
            call.kind, call.server = spec.kind, spec.server
        call.note = feedback.edit_note(call.tool, call.arguments)

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        """Close every open request as not approved; a nested agent that waits for one is abandoned.

        A nested agent with an approved call that has not run yet continues: an approval is never lost.
        """
        self.close_requests_of(self.state.main, text, turn)

    def close_requests_of(self, conversation: ConversationState, text: str, turn: TurnContext) -> None:
        """Close the open requests of a conversation and of those that its calls run."""
        for call in conversation.calls:
            if call.stage == "waiting":
                self.close_call(call, text, turn)
            elif call.inner is not None and any(waiting_calls(call.inner)):
                if has_approved_call(call.inner):
                    self.close_requests_of(call.inner, text, turn)
                else:
                    call.inner = None
                    self.close_call(call, text, turn)

    # --- processing calls ---------------------------------------------------------------------------------------------

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        """Run a conversation until it has an output or waits for decisions.

        After an exception, completed work stays done, and a later turn continues from there.

        Returns:
            Whether the conversation has an output.
        """
        while True:
            if conversation.calls:
                self.close_interrupted_calls(conversation, turn)
                await self.process_calls(conversation, turn)
                if any(call.stage != "done" for call in conversation.calls):
                    return False
                self.deliver_results(conversation)
            for text in conversation.inbox:
                self.add_user_message(conversation, text)
            conversation.inbox = []
            if not conversation.asks_model:
                return True
            await self.ask_model(conversation, turn)

    def close_interrupted_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        """Close the calls that a process was executing when it died: nobody knows how far they got."""
        for call in conversation.calls:
            if call.stage == "running":
                self.finish_call(call, feedback.INTERRUPTED, turn)

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        """Process all calls that can proceed, at the same time; the first error is raised when all have ended."""
        todo = [call for call in conversation.calls if call.stage in ("new", "approved")]
        if len(todo) == 1:
            await self.process_call(conversation, todo[0], turn)
        elif todo:
            tasks = [self.process_call(conversation, call, turn) for call in todo]
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Process one call as far as possible without a decision."""
        if call.stage == "new":
            await self.examine_call(conversation, call, turn)
        if call.stage == "approved":
            await self.execute_call(conversation, call, turn)

    # --- gating ------------------------------------------------------------------------------------------------------

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Examine a new call once: close it if it cannot be executed, let it proceed, or let it wait."""
        if call.kind == "hosted_mcp":
            spec = self.find_spec(conversation, call)
        elif (spec := self.resolve_tool(conversation, call, turn)) is None:
            return None
        if await self.needs_approval(conversation, call, spec):
            call.stage = "waiting"
            return self.apply_standing_decision(conversation, call, turn)
        # A standing rejection also covers calls that the policy would let through.
        standing = self.find_standing_decision(conversation, call)
        if standing is not None and standing.verdict == "never":
            return self.close_call(call, feedback.rejection_text(standing.reason), turn)
        call.stage = "approved"
        return None

    def resolve_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        """Return the tool that accepts a call as it is; without one, close the call and tell the model why.

        A call is checked against its tool when it arrives and again before its execution: what was saved, and the
        tools, may have changed by then.
        """
        spec = self.find_spec(conversation, call)
        if spec is None:
            self.finish_call(call, feedback.unknown_tool_text(call.tool), turn)
            return None
        try:
            call.arguments = fit_arguments(spec, call.arguments)
        except Misfit as error:
            self.finish_call(call, feedback.misfit_text(call.tool, str(error)), turn)
            return None
        return spec

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        """Return whether a call needs approval; it does if the policy fails."""
        if spec is None:
            return True
        if spec.by_annotations:
            return needs_approval_by_annotations(self.read_annotations(conversation, spec))
        if spec.approval == "always" or spec.approval == "never":
            return spec.approval == "always"
        try:
            if spec.approval.waits_for:
                return await self.world.gate_slowly(call.tool, call.arguments, call.id, agent=conversation.agent)
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            return True

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        """Return what its server says about a tool; None if it says nothing."""
        return spec.annotations

    def apply_standing_decision(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Apply a standing decision to a call; it does not answer a question in the middle of a tool."""
        standing = self.find_standing_decision(conversation, call)
        if standing is None or call.entered:
            return
        if standing.verdict == "never":
            self.close_call(call, feedback.rejection_text(standing.reason), turn)
        else:
            self.approve_call(call)

    def find_standing_decision(self, conversation: ConversationState, call: CallState) -> StandingDecision | None:
        """Return the last standing decision whose scope holds a call; None if there is none."""
        scope = self.standing_scope(conversation, call)
        return next((each for each in reversed(self.state.standing) if self.is_in_scope(each.about, scope)), None)

    def is_in_scope(self, about: list[str | None], scope: list[str | None]) -> bool:
        """Return whether a standing decision of the scope *about* holds for a call of another *scope*."""
        return about == scope

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        """Return the scope of a standing decision about a call: agent, server and tool."""
        return [conversation.agent, call.server, call.tool]

    def approve_call(self, call: CallState) -> None:
        """Approve a call."""
        call.stage, call.request = "approved", None

    # --- execution ----------------------------------------------------------------------------------------------------

    async def execute_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Execute a call, or have it executed by another agent or by the provider."""
        if call.kind == "hosted_mcp":
            call.approved, call.stage = True, "done"
            return
        spec = self.resolve_tool(conversation, call, turn)
        if spec is None:
            return
        if spec.runs is not None:
            await self.execute_agent(spec.runs, call, turn)
        elif spec.hands_over_to is not None:
            call.hands_over_to = spec.hands_over_to
            self.finish_call(call, feedback.hand_off_text(spec.hands_over_to), turn)
        else:
            await self.execute_tool(conversation, call, turn)

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Execute a tool's body; it may ask for a second approval in its middle.

        A cancelled execution is not repeated: nobody knows how far it got, and the model is told so. The state is
        stored before and after the effect, so that a process that dies neither repeats nor hides it.
        """
        self.count_execution(turn)
        call.entered, call.stage = True, "running"
        self.store_state()
        try:
            value = await self.run_body(conversation, call)
        except AsksAgain:
            call.stage = "waiting"
        except asyncio.CancelledError:
            self.finish_call(call, feedback.INTERRUPTED, turn)
            raise
        except Exception as error:
            self.finish_call(call, feedback.error_text(error), turn)
        else:
            self.finish_call(call, feedback.result_text(value), turn)
        self.store_state()

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        """Run a tool's body; what its MCP server asks meanwhile is asked of the caller."""
        try:
            return await self.world.run(call.tool, copy_json(call.arguments), call.id, agent=conversation.agent)
        except Elicits as question:
            answer = replace(await self.answer_elicitation(question), execution=question.number)
        return await self.world.run(
            call.tool, copy_json(call.arguments), call.id, agent=conversation.agent, elicited=answer
        )

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        """Return the caller's answer to a question of an MCP server."""
        return await self.world.elicit(question.message, form=question.form, url=question.url)

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        """Run another agent, or resume it."""
        if call.inner is None:
            self.count_execution(turn)
            call.inner = ConversationState(agent=agent)
            self.add_user_message(call.inner, str(call.arguments.get("input", "")))
        if await self.run_conversation(call.inner, turn):
            self.finish_call(call, call.inner.output or "", turn)
            call.inner = None

    def count_execution(self, turn: TurnContext) -> None:
        """Count an execution before it begins.

        Raises:
            LimitReached: The turn has no executions left.
        """
        limit = self.blueprint.limits.tool_calls
        if limit is not None and turn.executions >= limit:
            raise LimitReached("tool calls", limit)
        turn.executions += 1

    # --- results ------------------------------------------------------------------------------------------------------

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        """End a call with the text that the model gets as its result."""
        has_run = call.stage == "running"
        call.result = f"{call.note}\n{text}" if call.note else text
        call.stage, call.request = "done", None
        if turn.stream:
            if has_run:
                # A result that was shown is not taken back by a crash.
                self.store_state()
            self.world.shown("result", id=call.id, text=call.result)

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        """End a call that must not be executed: the model is told, or for a hosted call the provider."""
        if call.kind == "hosted_mcp":
            call.approved = False
        self.finish_call(call, text, turn)

    def deliver_results(self, conversation: ConversationState) -> None:
        """Add the results of all calls to the model's input in their order, decisions about hosted ones last."""
        for call in conversation.calls:
            if call.kind != "hosted_mcp":
                self.add_message(conversation, [self.build_result_item(call, conversation.messages)])
        hosted = [call for call in conversation.calls if call.kind == "hosted_mcp"]
        self.add_message(conversation, [self.build_response_item(call, conversation.messages) for call in hosted])
        # A hand-over takes effect with the next model request, once all results are in.
        conversation.agent = next(
            (call.hands_over_to for call in conversation.calls if call.hands_over_to), conversation.agent
        )
        conversation.calls = []
        conversation.asks_model = True

    def build_result_item(self, call: CallState, message: int) -> Item:
        """Build the item with the result of a call."""
        return Item(kind="result", id=call.id, tool=call.tool, text=call.result, message=message)

    def build_response_item(self, call: CallState, message: int) -> Item:
        """Build the item with the decision about a hosted call."""
        return Item(kind="approval_response", id=call.id, approved=call.approved, text=call.result, message=message)

    # --- asking the model ---------------------------------------------------------------------------------------------

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        """Ask the model once; if it fails, the conversation is unchanged, and it can be asked again.

        Raises:
            LimitReached: The turn has no replies left.
            ModelDown: The model failed, or its stream broke.
        """
        limit = self.blueprint.limits.model_replies
        if limit is not None and turn.replies >= limit:
            raise LimitReached("model replies", limit)
        turn.replies += 1
        reply = await self.world.model(
            self.model_input(conversation),
            agent=conversation.agent,
            stream=turn.stream,
            tools=self.list_offered_tools(conversation.agent),
        )
        self.record_reply(conversation, self.assemble_reply(reply) if turn.stream else reply, turn)
        self.store_state()

    def model_input(self, conversation: ConversationState) -> list[Item]:
        """Return the complete input of the model."""
        return list(conversation.items)

    def find_spec(self, conversation: ConversationState, call: CallState) -> ToolSpec | None:
        """Return the tool of a call, by agent and name; among tools of several servers, by the server too."""
        spec = self.find_spec_by_name(conversation, call.tool, call.server)
        # A provider's call names its server: that another one still has a tool of the name says nothing about it.
        if spec is not None and spec.kind == call.kind == "hosted_mcp" and not self.is_tool_of_server(spec, call):
            return None
        return spec

    def is_tool_of_server(self, spec: ToolSpec, call: CallState) -> bool:
        """Return whether a tool is of the server that a call names."""
        return spec.server == call.server

    def find_spec_by_name(self, conversation: ConversationState, tool: str, server: str | None) -> ToolSpec | None:
        """Return the tool of that name; None if there is none, or several and none of that server."""
        specs = self.specs.get((conversation.agent, tool), [])
        return specs[0] if len(specs) == 1 else next((spec for spec in specs if spec.server == server), None)

    def list_offered_tools(self, agent: str) -> tuple[str, ...]:
        """Return the names of the tools of an agent."""
        return tuple(name for owner, name in self.specs if owner == agent)

    # --- streams ------------------------------------------------------------------------------------------------------

    def assemble_reply(self, reply: Reply) -> Reply:
        """Assemble a streamed reply from its chunks, and show its text as it arrives.

        Raises:
            ModelDown: The stream broke; a partial reply does not count.
        """
        text, partial = "", dict[int, PartialCall]()
        thoughts: dict[int, list[str]] = {}
        for chunk in reply.chunks:
            if chunk.thought is not None:
                thoughts.setdefault(chunk.thought, []).append(chunk.text or "")
            elif chunk.text:
                self.world.shown("text", text=chunk.text)
                text += chunk.text
            if chunk.call is not None:
                self.add_chunk(partial, chunk)
        # Text that was shown stays shown; the calls of the broken reply are dropped.
        if reply.breaks:
            raise ModelDown(0, reply.how)
        calls = tuple(partial[place].complete(reply.calls[place]) for place in sorted(partial))
        return Reply(
            say=text or None,
            calls=calls,
            answer=reply.answer,
            thoughts=tuple(
                self.complete_thought(reply.thoughts[place], "".join(thoughts[place])) for place in sorted(thoughts)
            ),
            hosted=reply.hosted,
        )

    def complete_thought(self, whole: Thought, text: str) -> Thought:
        """Return streamed reasoning; id and signature come with its end, from *whole*."""
        return Thought(
            id=whole.id, text=None if whole.text is None else text, signature=whole.signature, before=whole.before
        )

    def add_chunk(self, partial: dict[int, PartialCall], chunk: Chunk) -> None:
        """Add a chunk to its call, found by position: the id need not be repeated, nor be unique."""
        assert chunk.call is not None
        call = partial.get(chunk.call)
        if call is None:
            call = partial[chunk.call] = PartialCall()
        call.id = chunk.id or call.id
        call.tool = chunk.tool or call.tool
        if chunk.arguments:
            call.arguments.append(chunk.arguments)

    # --- recording messages -------------------------------------------------------------------------------------------

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        """Record a reply as one message, with its calls to process."""
        calls = self.build_calls(conversation, reply)
        number = conversation.messages
        items = [build_hosted_item(result, number) for result in reply.hosted]
        items += self.build_reasoning_items(reply, None, number)
        items += [Item(kind="say", text=reply.say, message=number)] if reply.say else []
        for position, call in enumerate(calls):
            items += [*self.build_reasoning_items(reply, position, number), build_call_item(call, number)]
        self.add_message(conversation, items)
        conversation.calls = calls
        conversation.output = reply.say
        conversation.asks_model = False
        if reply.answer is not None:
            self.record_answer(conversation, reply.answer)
        if turn.stream:
            for call in calls:
                self.world.shown("call", id=call.id, tool=call.tool)

    def build_reasoning_items(self, reply: Reply, before: int | None, number: int) -> list[Item]:
        """Build the items of the reasoning before a call; None for that before the text and all calls."""
        return [
            Item(kind="reasoning", id=thought.id, text=thought.text, signature=thought.signature, message=number)
            for thought in reply.thoughts
            if thought.before == before
        ]

    def record_answer(self, conversation: ConversationState, answer: Mapping[str, Any]) -> None:
        """Record a structured answer as the output; if it does not fit, the model is told and asked again."""
        self.add_message(conversation, [Item(kind="other", text=json.dumps(answer), message=conversation.messages)])
        try:
            conversation.output = fit_arguments(ToolSpec(name="the answer", parameters=self.blueprint.answer), answer)
        except Misfit as error:
            text = feedback.misfit_text("the answer", str(error))
            self.add_message(conversation, [Item(kind="other", text=text, message=conversation.messages)])
            conversation.asks_model = True

    def build_calls(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        """Build the calls of a reply, each with a unique id."""
        calls: list[CallState] = []
        for model_call in reply.calls:
            call_id = self.assign_call_id(conversation, model_call, [call.id for call in calls])
            arguments = model_call.arguments if isinstance(model_call.arguments, str) else dict(model_call.arguments)
            calls.append(
                CallState(
                    id=call_id,
                    tool=model_call.tool,
                    arguments=arguments,
                    kind=model_call.kind,
                    server=model_call.server,
                )
            )
        return calls

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        """Return the id of a call: the model's, unless it gave none or repeated it in this reply."""
        if model_call.id is None:
            conversation.named += 1
            return f"call-{conversation.named}"
        # The provider recognizes its call by the id, so that of a hosted call is never changed.
        if model_call.id not in taken or model_call.kind == "hosted_mcp":
            return model_call.id
        return next(name for n in range(2, len(taken) + 3) if (name := f"{model_call.id}-{n}") not in taken)

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        """Record a message of the user, which the model has to answer."""
        self.add_message(conversation, [Item(kind="user", text=text, message=conversation.messages)])
        conversation.asks_model = True

    def add_message(self, conversation: ConversationState, items: Sequence[Item]) -> None:
        """Add one message to the conversation, unless it is empty."""
        if items:
            conversation.items += items
            conversation.messages += 1


class ReferenceAgentOverChat(ReferenceAgent):
    """The same agent on a provider that knows no hosted calls, and wants results right behind their calls."""

    capabilities = ReferenceAgent.capabilities - {"hosted_mcp"}
    missing: ClassVar = {"hosted_mcp": "chat completions have no items for hosted calls"}
    wire_rules = "chat"
