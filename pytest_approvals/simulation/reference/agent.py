"""What is kept between turns, and the ways it can be kept: as JSON, as what each turn added, in a store, as a copy.

Asking the model, and taking its reply in: streams put together, ids made unique, everything said remembered.

Working off the calls of a reply: look at each, ask where approval is needed, run what may run, tell the model.

Calls are worked on at the same time. What may run does not wait for what has to be asked; the model waits for all.

The caller's side of the reference agent: messages, decisions, requests.

Every decision is judged before any takes effect, so that a submission is taken as a whole or refused as a whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract.exceptions import AsksAgain, ModelDown
from pytest_approvals.agent_side.contract.types import (
    Chunk,
    Decision,
    Finished,
    HostedResult,
    Item,
    ModelCall,
    Outcome,
    Paused,
    Reply,
    Request,
    ToolSpec,
    Verdict,
)
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.arguments import Misfit, fit_arguments
from pytest_approvals.simulation.reference.refusals import (
    AlreadySettled,
    Busy,
    Contradiction,
    LimitReached,
    MalformedDecision,
    NothingToGoOn,
    UnknownRequest,
)
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    SessionState,
    StandingDecision,
    copy_json,
    session_from_fields,
    state_fields,
    state_to_json,
)
from pytest_approvals.simulation.reference.store import Store


class Keeping(Agent):
    """
    The layer that holds the state.

    Attributes:
        state: All that there is to remember.
        running: A turn is going on.
    """

    stores: ClassVar = {"sqlite": "one SQLite file with all sessions of a folder"}
    capabilities = frozenset(CAPABILITIES) | {"native.sqlite"}
    wire_rules = "responses"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.state = SessionState()
        self.running = False
        self._first_new = 0
        self._dumped = False
        self._store: Store | None = None

    @property
    def durable(self) -> bool:
        """Whether the state lives in the store and not in this object."""
        return self.blueprint.serialize == "native.sqlite"

    # --- one at a time ------------------------------------------------------------------------------------------------

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """
        Lets one input be worked on at a time, on the present state, and keeps what came of it, also when it failed.

        Errors:
            Busy: Another one is being worked on.
        """
        if self.running:
            raise Busy
        with self.store().hold() if self.durable else nullcontext():
            self.running = True
            try:
                self.catch_up()
                self.note_where_the_turn_begins()
                yield
            finally:
                self.keep()
                self.running = False

    def catch_up(self) -> None:
        """Takes the present state out of the store, in case it went on elsewhere."""
        if self.durable:
            written = self.store().read()
            self.state = self.decode(written) if written else SessionState()

    def keep(self) -> None:
        """Puts the present state into the store."""
        if self.durable:
            self.store().write(self.encode(self.state))

    def store(self) -> Store:
        """Gives the open store, with a session of our own in it."""
        if self._store is None:
            self._store = Store(self.blueprint.directory)
        return self._store

    # --- to text and back ---------------------------------------------------------------------------------------------

    def encode(self, state: SessionState) -> str:
        """Writes a state."""
        return state_to_json(state)

    def decode(self, written: str) -> SessionState:
        """Reads what `encode` wrote."""
        return session_from_fields(json.loads(written))

    async def dump(self) -> str:
        if self.durable:
            return self.store().name
        self._dumped = True
        if self.blueprint.history == "append":
            return self.encode_addition()
        return self.encode(self.state)

    async def load(self, parts: Sequence[str]) -> None:
        if self.durable:
            self._store = Store(self.blueprint.directory, parts[-1])
            self.catch_up()
        elif self.blueprint.history == "append":
            self.state = self.fold([json.loads(part) for part in parts])
        else:
            self.state = self.decode(parts[-1])

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, Keeping)
        self.state = self.decode(self.encode(other.state))

    async def another_session(self, world: World) -> Agent:
        return type(self)(world, self.blueprint)

    async def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- only what a turn added ---------------------------------------------------------------------------------------

    def note_where_the_turn_begins(self) -> None:
        """Remembers that everything said so far was given away by `dump`, if it was."""
        if self._dumped:
            self._first_new = self.state.main.trimmed + len(self.state.main.items)
            self._dumped = False

    def encode_addition(self) -> str:
        """Writes what was said since the turn before, with its position, and all the rest, which is small."""
        main = self.state.main
        first = max(self._first_new, main.trimmed)
        rest = {**state_fields(self.state), "main": {**state_fields(main), "items": []}}
        return state_to_json({"first": first, "items": main.items[first - main.trimmed :], "rest": rest})

    def fold(self, additions: Sequence[dict[str, Any]]) -> SessionState:
        """Makes the state of all additions, in order; each item has its place, so a repeated addition is harmless."""
        last = additions[-1]
        said = {place: item for part in additions for place, item in enumerate(part["items"], part["first"])}
        main = last["rest"]["main"]
        end = last["first"] + len(last["items"])
        main["items"] = [said[place] for place in range(main["trimmed"], end)]
        self._first_new, self._dumped = last["first"], True
        return session_from_fields(last["rest"])

    # --- forgetting ---------------------------------------------------------------------------------------------------

    async def trim(self, keep: int) -> None:
        with self.one_at_a_time():
            forget_items(self.state.main, self.items_to_forget(self.state.main, keep))

    def items_to_forget(self, conversation: ConversationState, keep: int) -> int:
        """
        Counts the items before the last *keep* messages that can go: up to a message of the user, because every call
        stays with its result, and what is pending with its call.
        """
        numbers = sorted({item.message for item in conversation.items})
        if not 0 < keep < len(numbers):
            return 0
        oldest = numbers[-keep]
        heads = [
            place for place, item in enumerate(conversation.items) if item.kind == "user" and item.message <= oldest
        ]
        return heads[-1] if heads else 0


def forget_items(conversation: ConversationState, count: int) -> None:
    """Takes the first *count* items away."""
    del conversation.items[:count]
    conversation.trimmed += count


@dataclass(slots=True)
class TurnContext:
    """What is counted in one turn."""

    stream: bool
    replies: int = 0
    executions: int = 0


@dataclass(slots=True)
class PartialCall:
    """A call of which not all chunks have come."""

    id: str | None = None
    tool: str = ""
    arguments: list[str] = field(default_factory=list)


class Conversing(Keeping):
    """The layer that talks with the model."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.specs: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in blueprint.tools:
            self.specs.setdefault((spec.agent, spec.name), []).append(spec)

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        """
        Asks the model once. If it fails, the conversation is what it was, and the model can be asked again.

        Errors:
            LimitReached: The turn has had its replies.
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
            tools=self.offered(conversation.agent),
        )
        self.take_reply(conversation, self.play(reply) if turn.stream else reply, turn)

    def model_input(self, conversation: ConversationState) -> list[Item]:
        """Gives what the model is sent: all that was said."""
        return list(conversation.items)

    def spec_of(self, conversation: ConversationState, call: CallState) -> ToolSpec | None:
        """Gives the tool that a call is about, by agent and name; among tools of several servers, by the server too."""
        return self.spec_named(conversation, call.tool, call.server)

    def spec_named(self, conversation: ConversationState, tool: str, server: str | None) -> ToolSpec | None:
        """Gives the tool of that name; None where there is none, or none of that server among several."""
        named = self.specs.get((conversation.agent, tool), [])
        return named[0] if len(named) == 1 else next((spec for spec in named if spec.server == server), None)

    def offered(self, agent: str) -> tuple[str, ...]:
        """Gives the names of the tools that an agent has."""
        return tuple(name for owner, name in self.specs if owner == agent)

    # --- streams ------------------------------------------------------------------------------------------------------

    def play(self, reply: Reply) -> Reply:
        """
        Puts a streamed reply together from its chunks, showing its text as it comes.

        Errors:
            ModelDown: The stream broke; what came of it is not a reply.
        """
        text, partial = "", dict[int, PartialCall]()
        for chunk in reply.chunks:
            if chunk.text:
                self.world.shown("text", text=chunk.text)
                text += chunk.text
            if chunk.call is not None:
                self.add_chunk(partial, chunk)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        calls = tuple(complete_call(partial[place], reply.calls[place]) for place in sorted(partial))
        return Reply(say=text or None, calls=calls, answer=reply.answer, hosted=reply.hosted)

    def add_chunk(self, partial: dict[int, PartialCall], chunk: Chunk) -> None:
        """Adds a chunk to the call that it belongs to, by position: the id need not be repeated, nor be unique."""
        assert chunk.call is not None
        call = partial.setdefault(chunk.call, PartialCall())
        call.id = chunk.id or call.id
        call.tool = chunk.tool or call.tool
        if chunk.arguments:
            call.arguments.append(chunk.arguments)

    # --- remembering what was said ------------------------------------------------------------------------------------

    def take_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        """Remembers a reply as one message, and its calls as what is to be worked off."""
        calls = self.calls_of(conversation, reply)
        number = conversation.messages
        said = [build_hosted_item(result, number) for result in reply.hosted]
        said += [Item(kind="say", text=reply.say, message=number)] if reply.say else []
        said += [build_call_item(call, number) for call in calls]
        self.remember(conversation, said)
        conversation.calls = calls
        conversation.output = reply.say
        conversation.asks_model = False
        if reply.answer is not None:
            self.take_answer(conversation, reply.answer)
        if turn.stream:
            for call in calls:
                self.world.shown("call", id=call.id, tool=call.tool)

    def take_answer(self, conversation: ConversationState, answer: Mapping[str, Any]) -> None:
        """Takes a structured answer as the output; where it does not fit, the model is told and asked again."""
        self.remember(conversation, [Item(kind="other", text=json.dumps(answer), message=conversation.messages)])
        try:
            conversation.output = fit_arguments(ToolSpec(name="the answer", parameters=self.blueprint.answer), answer)
        except Misfit as error:
            told = feedback.misfit_text("the answer", str(error))
            self.remember(conversation, [Item(kind="other", text=told, message=conversation.messages)])
            conversation.asks_model = True

    def calls_of(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        """Makes the calls of a reply, each with an id of its own."""
        calls: list[CallState] = []
        for given in reply.calls:
            call_id = self.own_id(conversation, given, [call.id for call in calls])
            arguments = given.arguments if isinstance(given.arguments, str) else dict(given.arguments)
            calls.append(
                CallState(id=call_id, tool=given.tool, arguments=arguments, kind=given.kind, server=given.server)
            )
        return calls

    def own_id(self, conversation: ConversationState, given: ModelCall, taken: Sequence[str]) -> str:
        """Gives the id of a call: the model's, if it gave one and did not give it twice in this reply."""
        if given.id is None:
            conversation.named += 1
            return f"call-{conversation.named}"
        if given.id not in taken or given.kind == "hosted_mcp":
            return given.id
        return next(name for n in range(2, len(taken) + 3) if (name := f"{given.id}-{n}") not in taken)

    def hear(self, conversation: ConversationState, text: str) -> None:
        """Remembers a message of the user, which the model has to answer."""
        self.remember(conversation, [Item(kind="user", text=text, message=conversation.messages)])
        conversation.asks_model = True

    def remember(self, conversation: ConversationState, said: Sequence[Item]) -> None:
        """Adds one message to the conversation, where there is anything in it."""
        if said:
            conversation.items += said
            conversation.messages += 1


def complete_call(partial: PartialCall, whole: ModelCall) -> ModelCall:
    """Gives a call whose chunks have all come; kind and server are not streamed."""
    arguments = parse_arguments("".join(partial.arguments))
    return ModelCall(id=partial.id, tool=partial.tool, arguments=arguments, kind=whole.kind, server=whole.server)


def parse_arguments(text: str) -> dict[str, Any] | str:
    """Gives arguments as an object, or as the text that they are where that is not a JSON object."""
    try:
        value = json.loads(text, parse_constant=_reject_constant)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def build_call_item(call: CallState, message: int) -> Item:
    """Gives a call as it stands in the model's own reply; a hosted one stands there as the provider's question."""
    kind = "approval_request" if call.kind == "hosted_mcp" else "call"
    return Item(kind=kind, id=call.id, tool=call.tool, arguments=call.arguments, message=message)


def build_hosted_item(result: HostedResult, message: int) -> Item:
    """Gives the provider's report of a call that it ran."""
    return Item(
        kind="hosted_result",
        id=result.call_id,
        tool=result.tool,
        arguments=dict(result.arguments),
        text=result.output if result.error is None else result.error,
        message=message,
    )


class Working(Conversing):
    """The layer that works."""

    async def go_on(self, conversation: ConversationState, turn: TurnContext) -> bool:
        """
        Goes on with a conversation until it has an output or waits for decisions; says whether it has an output.

        Whatever is raised, what was done until then stays done, and a later turn goes on from there.
        """
        while True:
            if conversation.calls:
                await self.work_off(conversation, turn)
                if any(call.stage != "done" for call in conversation.calls):
                    return False
                self.tell(conversation)
            for text in conversation.inbox:
                self.hear(conversation, text)
            conversation.inbox = []
            if not conversation.asks_model:
                return True
            await self.ask_model(conversation, turn)

    async def work_off(self, conversation: ConversationState, turn: TurnContext) -> None:
        """Works on all calls that can be worked on, at the same time; the first error is raised when all have ended."""
        todo = [call for call in conversation.calls if call.stage in ("new", "approved")]
        if len(todo) == 1:
            await self.work_on(conversation, todo[0], turn)
        elif todo:
            works = [self.work_on(conversation, call, turn) for call in todo]
            for ended in await asyncio.gather(*works, return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended

    async def work_on(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Takes one call as far as it gets without a decision."""
        if call.stage == "new":
            await self.look_at(conversation, call, turn)
        if call.stage == "approved":
            await self.carry_out(conversation, call, turn)

    # --- may it run? --------------------------------------------------------------------------------------------------

    async def look_at(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Looks at a new call, once: answers it where it cannot run, lets it run, or lets it wait for a decision."""
        if call.kind == "hosted_mcp":
            spec = self.spec_of(conversation, call)
        elif (spec := self.tool_for(conversation, call, turn)) is None:
            return None
        if not await self.needs_approval(conversation, call, spec):
            call.stage = "approved"
            return None
        call.stage = "waiting"
        return self.apply_standing(conversation, call, turn)

    def tool_for(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> ToolSpec | None:
        """
        Gives the tool that takes a call as it is; without one the model is told why.

        A call is held against its tool when it comes and again before it runs: what was saved, and the tools, may be
        others by then.
        """
        spec = self.spec_of(conversation, call)
        if spec is None:
            self.finish(call, feedback.unknown_tool_text(call.tool), turn)
            return None
        try:
            call.arguments = fit_arguments(spec, call.arguments)
        except Misfit as error:
            self.finish(call, feedback.misfit_text(call.tool, str(error)), turn)
            return None
        return spec

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        """Asks the policy whether a call needs approval; where it cannot answer, the call does."""
        if spec is None:
            return True
        if spec.approval == "always" or spec.approval == "never":
            return spec.approval == "always"
        try:
            if spec.approval.waits_for:
                return await self.world.gate_slowly(call.tool, call.arguments, call.id, agent=conversation.agent)
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            return True

    def apply_standing(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Lets what was decided for all calls like this one take effect; a question in the middle of a tool is none."""
        about = self.stands_for(conversation, call)
        standing = next((one for one in reversed(self.state.standing) if one.about == about), None)
        if standing is None or call.entered:
            return
        if standing.verdict == "never":
            self.refuse(call, feedback.rejection_text(standing.reason), turn)
        else:
            self.approve(call)

    def stands_for(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        """Says which calls a standing decision about this one is about: of the same agent, server and tool."""
        return [conversation.agent, call.server, call.tool]

    def approve(self, call: CallState) -> None:
        """Lets a call run."""
        call.stage, call.request = "approved", None

    # --- running ------------------------------------------------------------------------------------------------------

    async def carry_out(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """Runs a call that may run, or has it run: by another agent, or by the provider."""
        if call.kind == "hosted_mcp":
            call.approved, call.stage = True, "done"
            return
        spec = self.tool_for(conversation, call, turn)
        if spec is None:
            return
        if spec.runs is not None:
            await self.run_agent(spec.runs, call, turn)
        elif spec.hands_over_to is not None:
            call.hands_over_to = spec.hands_over_to
            self.finish(call, feedback.hand_off_text(spec.hands_over_to), turn)
        else:
            await self.run_tool(conversation, call, turn)

    async def run_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        """
        Runs a tool's body; it may ask for a second approval in its middle.

        One that is cancelled is not run again: nobody knows how far it got, and that is what the model is told.
        """
        self.count_execution(turn)
        call.entered = True
        try:
            value = await self.world.run(call.tool, copy_json(call.arguments), call.id, agent=conversation.agent)
        except AsksAgain:
            call.stage = "waiting"
        except asyncio.CancelledError:
            self.finish(call, feedback.INTERRUPTED, turn)
            raise
        except Exception as error:
            self.finish(call, feedback.error_text(error), turn)
        else:
            self.finish(call, feedback.result_text(value), turn)

    async def run_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        """Runs another agent, or goes on with it where it stopped."""
        if call.inner is None:
            self.count_execution(turn)
            call.inner = ConversationState(agent=agent)
            self.hear(call.inner, str(call.arguments.get("input", "")))
        if await self.go_on(call.inner, turn):
            self.finish(call, call.inner.output or "", turn)
            call.inner = None

    def count_execution(self, turn: TurnContext) -> None:
        """
        Counts an execution before it begins.

        Errors:
            LimitReached: The turn has had its executions.
        """
        limit = self.blueprint.limits.tool_calls
        if limit is not None and turn.executions >= limit:
            raise LimitReached("tool calls", limit)
        turn.executions += 1

    # --- telling ------------------------------------------------------------------------------------------------------

    def finish(self, call: CallState, text: str, turn: TurnContext) -> None:
        """Ends a call with what the model is told about it."""
        call.result = f"{call.note}\n{text}" if call.note else text
        call.stage, call.request = "done", None
        if turn.stream:
            self.world.shown("result", id=call.id, text=call.result)

    def refuse(self, call: CallState, text: str, turn: TurnContext) -> None:
        """Ends a call that must not run: the model is told, or for a hosted call the provider."""
        if call.kind == "hosted_mcp":
            call.approved = False
        self.finish(call, text, turn)

    def tell(self, conversation: ConversationState) -> None:
        """Tells the model what came of its calls, in their order, decisions about hosted ones last."""
        for call in conversation.calls:
            if call.kind != "hosted_mcp":
                self.remember(conversation, [self.result_item(call, conversation.messages)])
        hosted = [call for call in conversation.calls if call.kind == "hosted_mcp"]
        self.remember(conversation, [self.response_item(call, conversation.messages) for call in hosted])
        conversation.agent = next(
            (call.hands_over_to for call in conversation.calls if call.hands_over_to), conversation.agent
        )
        conversation.calls = []
        conversation.asks_model = True

    def result_item(self, call: CallState, message: int) -> Item:
        """Gives what the model reads as the result of its call."""
        return Item(kind="result", id=call.id, tool=call.tool, text=call.result, message=message)

    def response_item(self, call: CallState, message: int) -> Item:
        """Gives what the provider is answered about a call that it wants to run."""
        return Item(kind="approval_response", id=call.id, approved=call.approved, text=call.result, message=message)


def waiting_calls(conversation: ConversationState) -> Iterator[tuple[ConversationState, CallState]]:
    """Goes through the calls that wait for a decision, in the order of the model's calls, nested agents' in place."""
    for call in conversation.calls:
        if call.stage == "waiting":
            yield conversation, call
        elif call.inner is not None:
            yield from waiting_calls(call.inner)


DECISION_VERDICTS = frozenset(get_args(Verdict)) - {"raw"}
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
            turn = TurnContext(stream)
            self.settle(self.with_staged(answers), turn)
            if text is not None:
                self.close_open(feedback.SUPERSEDED, turn)
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
            self.close_open(feedback.CANCELLED, TurnContext(stream=False))

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
        for _, call in waiting_calls(self.state.main):
            if call.request is None:
                self.state.asked += 1
                call.request = f"req-{self.state.asked}"

    def open_requests(self) -> list[Request]:
        """Gives the open requests."""
        return [self.request_for(conversation, call) for conversation, call in waiting_calls(self.state.main)]

    def request_for(self, conversation: ConversationState, call: CallState) -> Request:
        """Shows a call as it is going to run."""
        return Request(
            id=call.request or "",
            call_id=call.id,
            tool=call.tool,
            arguments=copy_json(call.arguments),
            kind=call.kind,
            server=call.server,
            agent=conversation.agent,
        )

    def outcome(self, turn: TurnContext) -> Outcome:
        """Says how the turn ended."""
        requests, said = self.open_requests(), self.state.main.output
        if turn.stream:
            for request in requests:
                self.world.shown("request", id=request.id)
            self.world.shown("end")
        return Paused(requests=tuple(requests), text=said) if requests else Finished(output=said)

    # --- decisions: judging -------------------------------------------------------------------------------------------

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        """
        Finds out what the decisions of one submission say, and changes nothing.

        Errors:
            Refused: One of them cannot be taken, so none is.
        """
        answers: list[AcceptedDecision] = []
        for decision in decisions:
            answer = self.judge(decision)
            self.judge_repetition(answer, answers)
            answers.append(answer)
        return answers

    def judge(self, decision: Decision) -> AcceptedDecision:
        """
        Finds out what one decision says. Only the request's id counts: what runs is what this agent remembers, and not
        what the caller's copy of the request holds.
        """
        conversation, call = self.find(decision.address if decision.request is None else decision.request.id)
        verdict = decision.raw if decision.verdict == "raw" else decision.verdict
        if not self.is_verdict(verdict):
            raise MalformedDecision(f"the verdict is {verdict!r}")
        answer = AcceptedDecision(request=call.request or "", verdict=verdict, reason=decision.reason)
        if verdict == "edit":
            self.judge_edit(conversation, call, decision, answer)
        return answer

    def is_verdict(self, verdict: object) -> bool:
        """Says whether this is a verdict: nothing counts as one for being true, or not empty."""
        return isinstance(verdict, str) and verdict in DECISION_VERDICTS

    def find(self, request: object) -> tuple[ConversationState, CallState]:
        """
        Finds the call that an open request is about.

        Errors:
            MalformedDecision, UnknownRequest, AlreadySettled: There is no such call.
        """
        if not isinstance(request, str):
            raise MalformedDecision(f"the request is {request!r}")
        for conversation, call in waiting_calls(self.state.main):
            if call.request == request:
                return conversation, call
        if request in (f"req-{number}" for number in range(1, self.state.asked + 1)):
            raise AlreadySettled(request)
        raise UnknownRequest(request)

    def judge_edit(
        self, conversation: ConversationState, call: CallState, decision: Decision, answer: AcceptedDecision
    ) -> None:
        """Finds out whether the edited call could run, and what would."""
        tool = decision.tool or call.tool
        spec = self.spec_named(conversation, tool, call.server)
        if call.kind == "hosted_mcp" or spec is None or spec.kind == "hosted_mcp":
            raise MalformedDecision(f"the call cannot be changed to {tool!r}")
        arguments = call.arguments if decision.arguments is None else decision.arguments
        if not isinstance(arguments, Mapping):
            raise MalformedDecision(f"the changed arguments are {arguments!r}")
        try:
            answer.tool, answer.arguments = tool, copy_json(fit_arguments(spec, arguments))
        except Misfit as error:
            raise MalformedDecision(f"the changed arguments do not fit {tool!r}: {error}") from None

    def judge_repetition(self, answer: AcceptedDecision, before: Sequence[AcceptedDecision]) -> None:
        """Refuses a second decision about one request in one submission, whatever it says."""
        if any(answer.request == other.request for other in before):
            raise Contradiction(answer.request)

    def with_staged(self, answers: list[AcceptedDecision]) -> list[AcceptedDecision]:
        """Puts the staged decisions in front; until they are submitted, the last one about a request stands."""
        newer = {answer.request for answer in answers}
        return [answer for answer in self.state.staged if answer.request not in newer] + answers

    # --- decisions: taking effect -------------------------------------------------------------------------------------

    def settle(self, answers: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        """
        Lets the decisions of one submission take effect: each on its own call, then the standing ones among them on
        the other calls that they are about and that nobody decided.
        """
        self.state.staged = []
        undecided = {call.request: (conversation, call) for conversation, call in waiting_calls(self.state.main)}
        for answer in answers:
            conversation, call = undecided.pop(answer.request)
            if answer.verdict in ("always", "never"):
                self.let_stand(conversation, call, answer)
            self.apply(conversation, call, answer, turn)
        for conversation, call in undecided.values():
            self.apply_standing(conversation, call, turn)

    def let_stand(self, conversation: ConversationState, call: CallState, answer: AcceptedDecision) -> None:
        """Remembers a decision for all further calls like this one."""
        about = self.stands_for(conversation, call)
        self.state.standing.append(StandingDecision(about=about, verdict=answer.verdict, reason=answer.reason))

    def apply(
        self, conversation: ConversationState, call: CallState, answer: AcceptedDecision, turn: TurnContext
    ) -> None:
        """Lets a decision take effect on its call."""
        if answer.verdict in ("reject", "never"):
            return self.refuse(call, feedback.rejection_text(answer.reason), turn)
        if answer.verdict == "edit":
            self.change(conversation, call, answer)
        return self.approve(call)

    def change(self, conversation: ConversationState, call: CallState, answer: AcceptedDecision) -> None:
        """Puts what the human wrote in the place of what the model wrote, and notes to tell the model."""
        call.tool, call.arguments = answer.tool or call.tool, answer.arguments
        spec = self.spec_of(conversation, call)
        if spec is not None:
            call.kind, call.server = spec.kind, spec.server
        call.note = feedback.edit_note(call.tool, call.arguments)

    def close_open(self, text: str, turn: TurnContext) -> None:
        """Closes every open request as not approved; an agent that waits for one is not gone on with."""
        for call in self.state.main.calls:
            if call.stage == "waiting" or (call.inner is not None and any(waiting_calls(call.inner))):
                call.inner = None
                self.refuse(call, text, turn)


class ReferenceAgentOverChat(ReferenceAgent):
    """The same agent on a provider that knows no hosted calls, and wants results right behind their calls."""

    capabilities = ReferenceAgent.capabilities - {"hosted_mcp"}
    missing: ClassVar = {"hosted_mcp": "chat completions have no items for hosted calls"}
    wire_rules = "chat"
