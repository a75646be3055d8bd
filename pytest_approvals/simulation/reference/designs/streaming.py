"""Legitimate designs: what a stream shows, and what becomes of a model that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown, ModelRefused
from pytest_approvals.agent_side.contract.types import (
    Chunk,
    Decision,
    Outcome,
    Reply,
)
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    CallState,
    ConversationState,
    PartialCall,
)


@design
class FailedModelsAreAskedAgain(ReferenceAgent):
    """A model that fails is asked once more in the same turn; what a broken stream has shown stays shown."""

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelRefused:
            raise
        except ModelDown:
            turn.replies -= 1
            await super().ask_model(conversation, turn)


@design
class RequestsAreStreamedAtOnce(ReferenceAgent):
    """A stream shows a request as soon as its call waits, and not at the end of the turn."""

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        self._show(call, turn)

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().execute_tool(conversation, call, turn)
        self._show(call, turn)

    def _show(self, call: CallState, turn: TurnContext) -> None:
        if turn.stream and call.stage == "waiting":
            self.assign_request_ids()
            self._shown.add(call.request or "")
            self.world.shown("request", id=call.request)

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._shown: set[str] = set()
        return await super().turn(text, decisions, stream=stream)

    def build_outcome(self, turn: TurnContext) -> Outcome:
        if turn.stream:
            for request in self.list_open_requests():
                if request.id not in self._shown:
                    self.world.shown("request", id=request.id)
            self.world.shown("end")
        return super().build_outcome(TurnContext(stream=False))


@design
class StreamedResultsHaveNoText(ReferenceAgent):
    """A stream shows that a call has ended, and not with what."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, text, TurnContext(stream=False))
        if turn.stream:
            self.store_state()
            self.world.shown("result", id=call.id)


@design
class TextsAreStreamedWhole(ReferenceAgent):
    """A stream shows the text of a reply as a whole, once the reply is there."""

    def assemble_reply(self, reply: Reply) -> Reply:
        shown, self.world = self.world, _Silent(self.world)
        try:
            whole = super().assemble_reply(reply)
        finally:
            self.world = shown
        if whole.say:
            self.world.shown("text", text=whole.say)
        return whole


class _Silent:
    """A world to which nothing is shown."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def shown(self, what: str, **facts: Any) -> None:
        pass


@design
class CallsAreStreamedEarly(ReferenceAgent):
    """A stream shows a call when its first piece with an id arrives, and not when the reply is there."""

    def add_chunk(self, partial: dict[int, PartialCall], chunk: Chunk) -> None:
        super().add_chunk(partial, chunk)
        assert chunk.call is not None
        call = partial[chunk.call]
        if call.id and call.tool and chunk.call not in self._shown:
            self._shown.add(chunk.call)
            self.world.shown("call", id=call.id, tool=call.tool)

    def assemble_reply(self, reply: Reply) -> Reply:
        self._shown: set[int] = set()
        return super().assemble_reply(reply)

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        super().record_reply(conversation, reply, TurnContext(stream=False))
        if turn.stream:
            for place, call in enumerate(conversation.calls):
                if place not in self._shown:
                    self.world.shown("call", id=call.id, tool=call.tool)


@design
class StreamsHideInnerAgents(ReferenceAgent):
    """A stream shows the caller's agent only, and of agents inside their requests."""

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        if conversation is self.state.main:
            return await super().run_conversation(conversation, turn)
        inner = TurnContext(stream=False, replies=turn.replies, executions=turn.executions)
        try:
            return await super().run_conversation(conversation, inner)
        finally:
            turn.replies, turn.executions = inner.replies, inner.executions


@design
class StreamsAreShownAtTheEnd(ReferenceAgent):
    """A stream shows nothing while a turn runs, and all of it when the turn ends, pieces of a text as one."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if not stream:
            return await super().turn(text, decisions, stream=stream)
        shown, self.world = self.world, _Collecting(self.world)
        try:
            return await super().turn(text, decisions, stream=stream)
        finally:
            pieces, self.world = self.world.pieces, shown
            for what, facts in _join_texts(pieces):
                self.world.shown(what, **facts)


class _Collecting(_Silent):
    """A world that keeps what is shown to it."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.pieces: list[tuple[Any, dict[str, Any]]] = []

    def shown(self, what: str, **facts: Any) -> None:
        self.pieces.append((what, facts))


def _join_texts(pieces: Sequence[tuple[Any, dict[str, Any]]]) -> list[tuple[Any, dict[str, Any]]]:
    joined: list[tuple[Any, dict[str, Any]]] = []
    for what, facts in pieces:
        if what == "text" and joined and joined[-1][0] == "text":
            joined[-1] = (what, {"text": f"{joined[-1][1]['text']}{facts['text']}"})
        else:
            joined.append((what, facts))
    return joined
