"""World of a session: records the model, the tools and the policy that the agent uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import (
    AsksAgain,
    ConditionRaised,
    Elicits,
    ModelDown,
    ModelRefused,
    ScriptExhausted,
    ToolRaised,
    WaitsForAnswer,
)
from pytest_approvals.agent_side.contract.types import (
    MAIN,
    Approval,
    Condition,
    ElicitationAnswer,
    HostedResult,
    Item,
    ModelAddress,
    Reply,
    ToolSpec,
    needs_approval,
)
from pytest_approvals.journal.events import (
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PolicyAsked,
    StreamShown,
    ToolEnd,
    ToolStart,
)
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation, check_items
from pytest_approvals.runner.elicitations import OpenElicitation, build_question, complete
from pytest_approvals.runner.hosted_mcp import execute_approved, execute_ungated
from pytest_approvals.runner.journal_values import call_to_dict, describe_error, item_to_dict, thought_to_dict
from pytest_approvals.runner.probe_tools import execute_behaviour
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.script import (
    ModelConversation,
    ScriptedCall,
    ScriptState,
    build_calls,
    build_thoughts,
    find_conversation,
    repeat_unstored_reply,
    take_next_reply,
)
from pytest_approvals.runner.stream_chunks import split_reply
from pytest_approvals.scenario.labels import list_agents
from pytest_approvals.scenario.model import Scenario, ScriptedFailure, ScriptedReply, ToolBehaviour
from pytest_approvals.scenario.vocabulary import AT_MODEL, AT_STREAM, AT_WRITE

if TYPE_CHECKING:
    from pytest_approvals.runner.cancellation import Crash, Disconnect, FullDisk, Stop
    from pytest_approvals.runner.mcp.servers import ExecuteCall

_CURRENT_TURN: ContextVar[int] = ContextVar("turn", default=0)

_CURRENT_CALL: ContextVar[str] = ContextVar("call", default="")
"""The label of the call whose own body runs; a model that is asked there is that of an agent inside the body."""


_MAX_SAID = 256


def _describe_request(
    session: str,
    number: int,
    conversation: str,
    agent: str,
    items: Sequence[Item],
    *,
    tools: Sequence[str],
    stream: bool,
) -> ModelRequest:
    return ModelRequest(
        session=session,
        m=number,
        conversation=conversation,
        agent=agent,
        items=[item_to_dict(item) for item in items],
        tools=list(tools),
        stream=stream,
    )


def _describe_text(
    session: str, number: int, conversation: str, say: str | None, answer: Mapping[str, Any] | None
) -> ModelAnswer:
    return ModelAnswer(
        session=session,
        m=number,
        conversation=conversation,
        say=say,
        answer=None if answer is None else dict(answer),
    )


class RecordingWorld:
    """Implementation of `contract.World` for one agent object in one session.

    Attributes:
        state: How far the session's script has got.
        sharing: The worlds of all sessions on the agent object, this one among them.
        disconnect: The caller's disconnect in the turn that runs; None if there is none.
        crash: The crash of the agent's process in the turn that runs; None if there is none.
        stop: The stop of the agent's process in the turn that runs; None if there is none.
        full_disk: The full disk in the turn that runs; None if there is none.
    """

    def __init__(self, context: RunContext, session: str, state: ScriptState | None = None) -> None:
        self.context = context
        self.session = session
        self.state = state or ScriptState(parameters=context.parameters)
        self.sharing = [self]
        self.disconnect: Disconnect | None = None
        self.crash: Crash | None = None
        self.stop: Stop | None = None
        self.full_disk: FullDisk | None = None
        self._turns: list[int] = []
        # A scripted reply is kept with its number, which another object would have later.
        self._said: dict[int, tuple[ScriptedReply, Reply]] = {}
        self._agents: tuple[Scenario | None, tuple[str, ...]] = None, ()
        self._address: ModelAddress | None = None
        self._record = context.journal.record

    def reset(self) -> None:
        """Forget all that happened in the run, as if nothing had been requested yet."""
        self.context.reset()
        # Without a call only two things were set, and a new state takes several times as long.
        if self.state.calls or self.state.answered:
            self.state = ScriptState(parameters=self.context.parameters)
        else:
            self.state.opening = None
            self.state.positions.clear()

    # --- turns ---

    @property
    def is_in_turn(self) -> bool:
        """Whether a turn of the session runs now."""
        return bool(self._turns)

    @property
    def is_stopped(self) -> bool:
        """Whether the agent's process is stopped now."""
        return self.stop is not None and self.stop.has_happened and not self.stop.is_over

    async def _wait_until_woken(self) -> None:
        if self.stop is not None:
            await self.stop.wait_until_woken()

    async def _hold_at(self, place: str) -> None:
        """Wait at a place where the agent's process is stopped."""
        if self.stop is not None:
            await self.stop.hold(place)

    async def _hold_in(self, word: str, call: ScriptedCall | None) -> None:
        if call is not None:
            await self._hold_at(f"{word} {call.label}")

    @contextmanager
    def during_turn(self, number: int) -> Iterator[None]:
        """Attribute what streams show inside to the turn with that number."""
        self._turns.append(number)
        token = _CURRENT_TURN.set(number)
        try:
            yield
        finally:
            _CURRENT_TURN.reset(token)
            self._turns.remove(number)
            if not self._turns:
                self._cancel_elicitations()

    def shown(self, what: str, **facts: Any) -> None:
        """See `contract.World.shown`."""
        if self.crash is not None and self.crash.has_happened:
            return
        # Two turns at the same time are distinguished by the context that each runs in; what comes from another process
        # has none, but belongs to a world with one turn.
        current = _CURRENT_TURN.get()
        turn = current if current in self._turns else self._turns[-1] if self._turns else 0
        self._record(StreamShown(session=self.session, turn=turn, what=what, **facts))
        if self.crash is not None:
            self.crash.reach(AT_STREAM)

    # --- the model ---

    def address(self) -> ModelAddress | None:
        """See `contract.World.address`."""
        if self._address is None and self.context.model_endpoint is not None:
            self._address = self.context.model_endpoint.open_address(self.answer_request)
        return self._address

    # No coroutine of its own around that of `model`, because that takes time with every request.
    def answer_request(self, items: Sequence[Item], request: ParsedRequest) -> Coroutine[Any, Any, Reply]:
        """Answer a request over a protocol; its model is named after the agent that asks."""
        scenario = self.context.scenario
        if scenario is not self._agents[0]:
            self._agents = scenario, list_agents(scenario)
        agent = request.model if request.model in self._agents[1] else MAIN
        return self.model(
            items,
            agent=agent,
            stream=request.stream,
            tools=request.tools,
            violations=request.violations,
            is_readable=request.is_readable,
            has_signatures=request.has_signatures,
            is_parsed=True,
        )

    async def model(
        self,
        items: Sequence[Item],
        *,
        agent: str = MAIN,
        stream: bool = False,
        tools: Sequence[str] = (),
        violations: Sequence[RuleViolation] | None = None,
        is_readable: bool = True,
        has_signatures: bool = True,
        is_parsed: bool = False,
    ) -> Reply:
        """See `contract.World.model`.

        Args:
            items: The complete input.
            agent: The agent whose model is asked.
            stream: Whether the framework asked for a stream.
            tools: The names of the tools that the model is offered.
            violations: What the provider refuses in the items; None if they are still to be checked.
            is_readable: Whether the request could be read; if not, it is refused, however lenient the provider.
            has_signatures: Whether the agent is sent the signatures of reasoning.
            is_parsed: Whether the items were parsed from a body, so that nobody changes them.
        """
        self._stop_if_dead()
        self._note_point()
        # Nothing is awaited without need: a coroutine for each question takes a tenth of the time of an answer.
        if self.stop is not None:
            await self.stop.wait_until_woken()
        is_attached = self.context.is_attached
        conversation = find_conversation(
            self.context.scenario,
            agent,
            items,
            self.state,
            inside=_CURRENT_CALL.get(),
            is_attached=is_attached,
            heirs=self.context.heirs if is_attached else (),
        )
        number = self.context.counters.next_model()
        describe = partial(
            _describe_request, self.session, number, conversation.name, agent, items, tools=tools, stream=stream
        )
        if is_parsed:
            self.context.journal.record_later(describe)
        else:
            self._record(describe())
        if violations is None:
            violations = check_items(items, self.context.wire_rules)
        if violations and not (self.context.lenient and is_readable):
            raise self._record_refusal(violations, number, conversation)
        if self.disconnect is not None or self.crash is not None:
            await self._cut_off_at_model(number, conversation)
        if self.stop is not None:
            await self.stop.hold(AT_MODEL)
        if self.context.loses_state:
            repeat_unstored_reply(conversation, items, self.state)
        reply = self._take_reply(number, conversation)
        if reply.takes:
            await _sleep(reply.takes)
        if reply.failure is not None and reply.failure.after_chunks is None:
            raise self._record_failure(reply.failure, number, conversation)
        hosted = await execute_approved(items, self.state, self.execute_hosted) if self.state.calls else []
        if not reply.calls and not hosted and reply.failure is None and not reply.has_reasoning:
            return self._say(reply, number, conversation)
        return await self._answer(reply, number, conversation, hosted, stream=stream, has_signatures=has_signatures)

    def _record_refusal(
        self, violations: Sequence[RuleViolation], number: int, conversation: ModelConversation
    ) -> ModelRefused:
        broken = [
            {"rule": violation.rule, "ids": list(violation.ids), "text": violation.text} for violation in violations
        ]
        self._record(ModelRefusal(session=self.session, m=number, conversation=conversation.name, broken=broken))
        return ModelRefused("; ".join(violation.text for violation in violations))

    async def _cut_off_at_model(self, number: int, conversation: ModelConversation) -> None:
        """Cut off a request at which the caller disconnects or the agent dies; its reply is not used up."""
        if self.disconnect is not None and self.disconnect.trigger(AT_MODEL):
            name = conversation.name
            self._record(ModelFailure(session=self.session, m=number, conversation=name, status=0, how="hung_up"))
            await self.disconnect.hold()
            raise ModelDown(0)
        if self.crash is not None and self.crash.reach(AT_MODEL):
            name = conversation.name
            self._record(ModelFailure(session=self.session, m=number, conversation=name, status=0, how="hung_up"))
            raise ModelDown(0)

    def _take_reply(self, number: int, conversation: ModelConversation) -> ScriptedReply:
        # All scripts are only counted once that may matter.
        is_over = number > self.context.limit.model_calls and number > self.context.most_model_calls
        reply = None if is_over else take_next_reply(conversation, self.state)
        if reply is None:
            limit = self.context.most_model_calls if is_over else None
            self._record(ModelExhausted(session=self.session, m=number, conversation=conversation.name, limit=limit))
            raise ScriptExhausted(conversation.agent)
        return reply

    def _record_failure(
        self, failure: ScriptedFailure, number: int, conversation: ModelConversation, shown: int | None = None
    ) -> ModelDown:
        self._record(
            ModelFailure(
                session=self.session,
                m=number,
                conversation=conversation.name,
                status=failure.status,
                shown=shown,
                how=failure.how if failure.how != "disconnect" else None,
                retry_after=failure.retry_after,
            )
        )
        return ModelDown(failure.status, failure.how, failure.retry_after)

    async def _answer(
        self,
        reply: ScriptedReply,
        number: int,
        conversation: ModelConversation,
        hosted: list[tuple[str, HostedResult]],
        *,
        stream: bool,
        has_signatures: bool,
    ) -> Reply:
        calls = build_calls(conversation, reply, number, self.context.tools, self.context.header.tools)
        remembered = [scripted for scripted, _ in calls]
        self.state.calls += remembered
        hosted = [*hosted, *await execute_ungated(remembered, self.state, self.execute_hosted)]
        # Calls that the provider has executed itself are reported as results; the agent must not see them as calls.
        shown_calls = [(scripted, call) for scripted, call in calls if scripted.label not in self.state.provided]
        sent = tuple(call for _, call in shown_calls)
        sent_labels = [scripted.label for scripted, _ in shown_calls]
        thoughts = build_thoughts(reply, [scripted.label for scripted, _ in calls], sent_labels, number)
        chunks = split_reply(reply.say, sent, self.context.variant.chunking, thoughts, sent_labels)
        if reply.failure is not None:
            shown = reply.failure.after_chunks or 0
            # A reply that breaks off was never received as a whole, so its calls do not exist.
            self.state.calls = self.state.calls[: len(self.state.calls) - len(calls)]
            # The provider has executed its calls by then, whether it streams or not.
            if not stream:
                raise self._record_failure(reply.failure, number, conversation)
            self._record_failure(reply.failure, number, conversation, shown)
            broken = Reply(
                say=reply.say, calls=sent, answer=reply.answer, thoughts=thoughts, chunks=chunks[:shown], breaks=True
            )
            return replace(broken, how=reply.failure.how)
        if stream:
            self.state.note_streamed_ids(sent_labels, chunks)
        self._record(
            ModelAnswer(
                session=self.session,
                m=number,
                conversation=conversation.name,
                thoughts=[thought_to_dict(thought, sent_labels, signed=has_signatures) for thought in thoughts] or None,
                say=reply.say,
                calls=[call_to_dict(call) for call in remembered],
                answer=None if reply.answer is None else dict(reply.answer),
                hosted=[{"label": label, "output": result.output, "error": result.error} for label, result in hosted],
            )
        )
        for call in remembered:
            if (answer := self.context.ask_gate(call.tool, call.arguments)) is not None:
                self.record_gate(call.tool, call.arguments, call.id, agent=call.agent, answer=answer)
        results = tuple(result for _, result in hosted)
        return Reply(say=reply.say, calls=sent, answer=reply.answer, thoughts=thoughts, hosted=results, chunks=chunks)

    def _say(self, reply: ScriptedReply, number: int, conversation: ModelConversation) -> Reply:
        """Answer with a reply that has neither calls nor reasoning: the fields of most replies."""
        self.context.journal.record_later(
            partial(_describe_text, self.session, number, conversation.name, reply.say, reply.answer)
        )
        known = self._said.get(id(reply))
        if known is None or known[0] is not reply:
            if len(self._said) >= _MAX_SAID:
                self._said.clear()
            chunks = split_reply(reply.say, (), self.context.variant.chunking)
            known = self._said[id(reply)] = reply, Reply(say=reply.say, answer=reply.answer, chunks=chunks)
        return known[1]

    # --- the tools ---

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
        elicited: ElicitationAnswer | None = None,
    ) -> Any:
        """See `contract.World.run`."""
        await self._wait_until_woken()
        if elicited is not None:
            return await self._go_on(elicited)
        call = self.state.find_match(tool, arguments, call_id, agent)
        self.state.note_id(call, call_id)
        self._stop_if_dead("before", call)
        self._note_point()
        await self._hold_in("before", call)
        number = self._record_tool_start(tool, arguments, call_id, agent=agent, real=real is not None, call=call)
        try:
            self._stop_if_dead("started", call)
            await self._disconnect_in(call)
            await self._hold_in("started", call)
            if real is not None:
                result = await self._run_inside(call, real)
            else:
                result = await self._execute_probe(tool, agent, call, arguments, call_id)
            # The effect has happened; its result reaches nobody.
            self._stop_if_dead("ended", call)
            await self._hold_in("ended", call)
        except _Asks as asking:
            raise self._ask(number, asking.behaviour, arguments, call) from None
        # Cancellation is an end of the execution, too.
        except BaseException as error:
            if real is not None:
                self.context.errors.tools.append((tool, error))
            self._record_tool_end(number, error=error, call=call)
            raise
        self._complete(number, result, call)
        return result

    def _complete(self, number: int, result: Any, call: ScriptedCall | None) -> None:
        self._record_tool_end(number, result=result, call=call)
        for incident in (self.crash, self.full_disk):
            if incident is not None and call is not None:
                incident.reach(f"{AT_WRITE} {call.label}")

    # --- what servers ask the caller ---

    def _ask(
        self, number: int, behaviour: ToolBehaviour, arguments: Mapping[str, Any], call: ScriptedCall | None
    ) -> Elicits:
        """Let an execution wait for the answer to its question, and return the question."""
        question = build_question(behaviour, arguments)
        question.number = number
        self.context.elicitations.open(
            OpenElicitation(
                question=question, session=self.session, call=call, behaviour=behaviour, arguments=arguments
            )
        )
        self._record(
            ElicitationAsked(
                session=self.session, x=number, message=question.message, form=question.form, url=question.url
            )
        )
        return question

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        """See `contract.World.elicit`."""
        await self._wait_until_woken()
        self._stop_if_dead()
        asked = self.context.elicitations.find(message)
        answer = self.context.elicitations.answer(asked)
        self._record(
            ElicitationShown(
                # Clients have one connection for all sessions of an agent object.
                session=self.session if asked is None else asked.session,
                x=None if asked is None else asked.question.number,
                message=message,
                form=None if form is None else dict(form),
                url=url,
                action=answer.action,
                content=None if answer.content is None else dict(answer.content),
            )
        )
        return answer

    async def _go_on(self, answer: ElicitationAnswer) -> Any:
        """Go on with an execution that has got its answer."""
        asked = self.context.elicitations.close(answer.execution)
        if asked is None:
            raise ToolRaised("nothing waits for this answer")
        number, call = asked.question.number, asked.call
        content = None if answer.content is None else dict(answer.content)
        self._record(
            ElicitationAnswered(
                session=asked.session, x=number, action=answer.action, content=content, error=answer.error
            )
        )
        try:
            self._stop_if_dead()
            result = complete(asked, answer)
            self._stop_if_dead("ended", call)
            await self._hold_in("ended", call)
        except BaseException as error:
            self._record_tool_end(number, error=error, call=call)
            raise
        self._complete(number, result, call)
        return result

    def _cancel_elicitations(self) -> None:
        """End the executions whose question nobody has answered by the end of the turn."""
        for asked in self.context.elicitations.close_all(self.session):
            self._record_tool_end(asked.question.number, error=_Unanswered(), call=asked.call)

    async def _run_inside(self, call: ScriptedCall | None, body: Callable[[], Awaitable[Any]]) -> Any:
        """Run the own body of a tool, for whose agents the model is asked in conversations of their own."""
        label = call.label if call is not None else ""
        # A restore meanwhile replaces the state.
        bodies = self.state.bodies
        token = _CURRENT_CALL.set(label)
        bodies.append(label)
        try:
            return await body()
        finally:
            bodies.remove(label)
            _CURRENT_CALL.reset(token)

    async def execute_hosted(self, call: ScriptedCall, arguments: Mapping[str, Any]) -> Any:
        """Execute a hosted call as the provider does, without the agent."""
        number = self._record_tool_start(call.tool, arguments, call.id, agent=call.agent, by="provider", call=call)
        try:
            result = await self._execute_probe(call.tool, call.agent, call, arguments)
        except Exception as error:
            self._record_tool_end(number, error=error, call=call)
            raise
        self._record_tool_end(number, result=result, call=call)
        return result

    def _note_point(self) -> None:
        """Note that the turn has come to a call or a model request, after which a write that failed once works."""
        if self.full_disk is not None:
            self.full_disk.come_to_a_point()

    async def _disconnect_in(self, call: ScriptedCall | None) -> None:
        """Hold an execution in which the caller disconnects; it continues unless it is cancelled."""
        if call is not None and self.disconnect is not None and self.disconnect.trigger(f"started {call.label}"):
            await self.disconnect.hold()

    def _stop_if_dead(self, word: str = "", call: ScriptedCall | None = None) -> None:
        """Go no further if the agent's process is dead, or dies at this place of a call.

        Raises:
            CancelledError: It is.
        """
        if self.crash is not None:
            self.crash.stop_if_dead(f"{word} {call.label}" if call is not None else "")

    async def _execute_probe(
        self,
        tool: str,
        agent: str,
        call: ScriptedCall | None,
        arguments: Mapping[str, Any],
        call_id: str | None = None,
    ) -> Any:
        known_as = call.label if call is not None else call_id
        if call is not None and call.tool != tool:
            # A person has changed it to another tool: how that behaves is not scripted for the call.
            call = None
        declared = call.declared if call else None
        # A stub replaces the tools of its name of all agents of a user.
        if declared is None and (call is None or self.context.is_attached):
            declared = self.context.tools.find_visible(agent, tool)
        if declared is None:
            return None
        label = call.label if call else None
        counted = label if label is not None or known_as is None else f"{tool} as {known_as}"
        if counted is None:
            return await execute_behaviour(declared.behaviour_at(label, 0), arguments, self.context.signals)
        # A body whose question nobody has answered asks again.
        before = self.state.executions[counted] - (counted in self.state.asking)
        self.state.executions[counted] = before + 1
        self.state.asking.discard(counted)
        behaviour = declared.behaviour_at(label, before)
        if behaviour.elicits is not None:
            if behaviour.waits_for is not None:
                await self.context.signals.wait(behaviour.waits_for)
            raise _Asks(behaviour)
        try:
            return await execute_behaviour(behaviour, arguments, self.context.signals)
        except AsksAgain:
            self.state.asking.add(counted)
            raise

    def _record_tool_start(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str,
        by: str = "agent",
        real: bool = False,
        call: ScriptedCall | None,
    ) -> int:
        number = self.context.counters.next_execution()
        self._record(
            ToolStart(
                session=self.session,
                x=number,
                tool=tool,
                arguments=dict(arguments),
                call_id=call_id,
                agent=agent,
                by=by,
                real=real or None,
                resumes=self.state.waiting.pop(call.label, None) if call is not None and real else None,
            )
        )
        if real:
            # The user's own tool may end this process; the journal must show that it was entered.
            self.context.journal.flush()
        if call is not None:
            self.context.signals.send(f"started {call.label}")
        return number

    def _record_tool_end(
        self, number: int, *, result: Any = None, error: BaseException | None = None, call: ScriptedCall | None
    ) -> None:
        if number in self.context.cut_off:
            return
        how = "returned" if error is None else _describe_end(error)
        described = None if error is None else describe_error(error)
        self._record(ToolEnd(session=self.session, x=number, how=how, result=result, error=described))
        if call is not None:
            if isinstance(error, WaitsForAnswer):
                self.state.waiting[call.label] = number
            if how == "asked":
                self.context.requests.close(self.session, call.label)
            self.context.signals.send(f"ended {call.label}")

    # --- the policy ---

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate`."""
        approval, call = self._find_approval(tool, arguments, call_id, agent)
        key = call.label if call else f"{tool} {call_id}"
        before = self.state.gates[key]
        self.state.gates[key] += 1
        if isinstance(approval, Condition) and approval.raises is not None:
            self.record_gate(tool, arguments, call_id, agent=agent, raised=approval.raises)
            raise ConditionRaised(approval.raises)
        answer = needs_approval(approval, arguments, before)
        self.record_gate(tool, arguments, call_id, agent=agent, answer=answer)
        return answer

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate_slowly`."""
        # The answer about a user's tool was recorded when the model made the call.
        if self.context.is_attached:
            return self.context.needs_approval(tool, arguments)
        approval, _ = self._find_approval(tool, arguments, call_id, agent)
        if isinstance(approval, Condition) and approval.waits_for is not None:
            await self.context.signals.wait(approval.waits_for)
        return self.gate(tool, arguments, call_id, agent=agent)

    def record_gate(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = MAIN,
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        """Record the answer of a policy about a call, evaluated here or in the agent's process."""
        if self.crash is not None and self.crash.has_happened:
            return
        self._record(
            PolicyAsked(
                session=self.session,
                tool=tool,
                arguments=arguments,
                call_id=call_id,
                agent=agent,
                answer=answer,
                raised=raised,
            )
        )

    def _find_approval(
        self, tool: str, arguments: Any, call_id: str | None, agent: str
    ) -> tuple[Approval, ScriptedCall | None]:
        """Return what is declared for a call that the policy is asked about, and the call."""
        call = self.state.find_match(tool, arguments, call_id, agent)
        self.state.note_id(call, call_id)
        declared = call.declared if call else self.context.tools.find_visible(agent, tool)
        return (declared.approval if declared else "always"), call


def create_world_dispatcher(world: RecordingWorld) -> ExecuteCall:
    """Return the function that executes the calls of an agent object's MCP servers.

    A server gets neither the id of a call nor the session that made it: if several sessions share the agent object, it
    is the one whose turn runs and whose model made such a call.
    """
    return partial(_dispatch_call, world.sharing)


async def _dispatch_call(
    worlds: Sequence[RecordingWorld],
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    elicited: ElicitationAnswer | None = None,
) -> Any:
    callers = (world for world in worlds if world.is_in_turn and world.state.find_match(spec.name, arguments, None))
    return await next(callers, worlds[0]).run(spec.name, arguments, None, agent=spec.agent, elicited=elicited)


class _Asks(Exception):
    """An execution asks the caller."""

    def __init__(self, behaviour: ToolBehaviour) -> None:
        super().__init__()
        self.behaviour = behaviour


class _Unanswered(BaseException):
    """The turn of an execution ended before its question was answered."""


async def _sleep(seconds: float) -> None:
    # Importing asyncio takes longer than the model server's first answer may.
    from asyncio import sleep

    await sleep(seconds)


def _describe_end(error: BaseException) -> str:
    if isinstance(error, AsksAgain):
        return "asked"
    return "raised" if isinstance(error, Exception) else "cancelled"
