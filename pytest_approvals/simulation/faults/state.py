"""Faults of state: what gets lost, shared or restored twice between two turns."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import Decision
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.types import MAIN, Finished, Outcome, Request, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault, map_values, round_integer
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import Refused, StatefulAgent
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    SessionState,
    state_fields,
    state_to_json,
    waiting_calls,
)


class PendingIsLostInTheDump(Fault):
    """The state is saved without the calls that wait."""

    source = ("pydantic/pydantic-ai#4830",)
    caught_by = "pending-survives"

    def encode(self, state: SessionState) -> str:
        return super().encode(replace(state, main=replace(state.main, calls=[])))


class StagedDecisionIsLostInTheDump(Fault):
    """A decision that was put into the state is not saved with it."""

    source = ("objectstack-ai/objectstack#4420",)
    caught_by = "decision-survives"

    def encode(self, state: SessionState) -> str:
        return super().encode(replace(state, staged=[]))


class StagedEditIsSavedAsAnApproval(Fault):
    """An edit that was put into the state is saved without its arguments, and the call runs as the model wrote it."""

    source = ("Agenta-AI/agenta#4897",)
    caught_by = "arguments-as-approved"

    def encode(self, state: SessionState) -> str:
        staged = [replace(each, verdict="approve") if each.verdict == "edit" else each for each in state.staged]
        return super().encode(replace(state, staged=staged))


class ReasonOfAStandingRejectionIsNotSaved(Fault):
    """A standing rejection is saved without its reason, which the model is told for the first call only."""

    source = ("openai/openai-agents-python#3359",)
    caught_by = "reason-told"

    def encode(self, state: SessionState) -> str:
        return super().encode(replace(state, standing=[replace(each, reason=None) for each in state.standing]))


class StandingDecisionIsLostInTheDump(Fault):
    """Standing decisions hold only until the state is saved."""

    source = ("lvndry/jazz#521",)
    caught_by = "same-outcome-in-every-mode"

    def encode(self, state: SessionState) -> str:
        return super().encode(replace(state, standing=[]))


class ResultsAreLostInTheDump(Fault):
    """The state is saved without the results of the calls that ran, so they run again."""

    source = ("openai/openai-agents-python#4827",)
    caught_by = "ungated-runs-once"

    def encode(self, state: SessionState) -> str:
        calls = [self._forgotten(call) if call.stage == "done" else call for call in state.main.calls]
        return super().encode(replace(state, main=replace(state.main, calls=calls)))

    def _forgotten(self, call: CallState) -> CallState:
        return replace(call, stage="new", result=None, entered=False)


class NestedConversationIsLostInTheDump(Fault):
    """A nested agent that waits is saved without its conversation."""

    source = ("strands-agents/harness-sdk#3076",)
    caught_by = "pending-survives"

    def encode(self, state: SessionState) -> str:
        calls = [replace(call, inner=None) for call in state.main.calls]
        return super().encode(replace(state, main=replace(state.main, calls=calls)))


class DumpIsNeverTheSame(Fault):
    """Saving the state that was just loaded changes it."""

    source = ("microsoft/agent-framework#5189",)
    caught_by = "round-trip-stable"

    def encode(self, state: SessionState) -> str:
        return super().encode(replace(state, asked=state.asked + 1))


class CopySharesTheState(Fault):
    """A copy of a paused session shares its state, so that a decision in one counts in the other."""

    source = ("openai/openai-agents-python#4413", "openai/openai-agents-python#4409")
    caught_by = "pending-survives"

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, StatefulAgent)
        self.state = other.state


class AdditionsLackTheResults(Fault):
    """The additions of a turn lack the results that the turn began with."""

    source = ("openai/openai-agents-python#4827",)
    caught_by = "model-input-well-formed"

    def encode_addition(self) -> str:
        addition: dict[str, Any] = json.loads(super().encode_addition())
        # Another kind keeps the positions of the items that follow.
        if addition["items"] and addition["items"][0]["kind"] == "result":
            addition["items"][0] = {**addition["items"][0], "kind": "other"}
        return state_to_json(addition)


class AdditionsRepeatTheHistory(Fault):
    """The additions of a turn begin too early, so messages are duplicated when they are merged."""

    source = ("microsoft/agent-framework#7267",)
    caught_by = "history-not-rewritten"

    def merge_additions(self, additions: Sequence[dict[str, Any]]) -> SessionState:
        session = super().merge_additions(additions)
        session.main.items = [item for part in additions for item in self._items(part, session)]
        return session

    def _items(self, part: dict[str, Any], session: SessionState) -> list[Any]:
        end = part["first"] + len(part["items"])
        return session.main.items[max(0, part["first"] - 1) : end]


class StoreLetsTwoCopiesAnswer(Fault):
    """Two copies of a stored session both accept the same decision."""

    source = ("agno-agi/agno#9448", "mastra-ai/mastra#20443")
    caught_by = "runs-at-most-once"

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        if self.is_durable:
            yield
            super().store_state()
        else:
            with super().exclusive_input():
                yield

    def store_state(self) -> None:
        if not self.is_durable:
            super().store_state()

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._loaded = True

    _loaded = False

    def reload_state(self) -> None:
        if not self._loaded:
            super().reload_state()


class OldReferenceBringsBackTheOldState(Fault):
    """A store reference names a moment, so an older one accepts decisions that were already made."""

    source = ("langchain-ai/langgraph#7256", "langchain-ai/langgraph#6663")
    caught_by = "runs-at-most-once"

    async def dump(self) -> str:
        return self.encode(self.state) if self.is_durable else await super().dump()

    async def load(self, parts: Sequence[str]) -> None:
        if not self.is_durable:
            return await super().load(parts)
        self.state = self.decode(parts[-1])
        return self.store_state()

    def reload_state(self) -> None:
        """Keep what was loaded."""


class SavedIntegersAreRounded(Fault):
    """Large integers are rounded to doubles in the saved state."""

    source = ("earendil-works/pi#8943",)
    caught_by = "request-shows-the-call"

    def encode(self, state: SessionState) -> str:
        return json.dumps(map_values(json.loads(super().encode(state)), round_integer))


class SavedLettersAreComposed(Fault):
    """Letters that are written in two parts are composed when the state is saved."""

    source = ("Yeachan-Heo/gajae-code#4352",)
    caught_by = "request-shows-the-call"

    def encode(self, state: SessionState) -> str:
        return unicodedata.normalize("NFC", json.dumps(json.loads(super().encode(state)), ensure_ascii=False))


class SecondPauseForgetsTheResults(Fault):
    """If a turn pauses again, the results of the calls that it ran are not saved with their calls."""

    source = ("openai/openai-agents-python#4827", "vercel/eve#2594")
    caught_by = "model-input-well-formed"

    def encode(self, state: SessionState) -> str:
        if not state.main.calls:
            return super().encode(state)
        last = max((item.message for item in state.main.items if item.kind == "user"), default=0)
        items = [item for item in state.main.items if item.kind != "result" or item.message < last]
        return super().encode(replace(state, main=replace(state.main, items=items)))


class RejectionNeedsTheTool(Fault):
    """A rejection looks up its tool, and fails each time if a restart has left that out."""

    source = ("agno-agi/agno#9197",)
    caught_by = "usable-after-refusal"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        accepted = super().validate_decision(decision)
        if accepted.verdict == "reject" and self.find_spec(*self.find_call(accepted.request)) is None:
            raise LookupError("function call not found")
        return accepted


class RestoredRequestNamesTheCaller(Fault):
    """After restoring, every request names the main agent as the one that asks."""

    source = ("openai/openai-agents-js#996",)
    caught_by = "same-outcome-in-every-mode"
    _loaded = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._loaded = True

    async def copy_from(self, other: Agent) -> None:
        await super().copy_from(other)
        self._loaded = True

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        request = super().build_request(conversation, call)
        return replace(request, agent=MAIN) if self._loaded else request


class TrimmingDropsTheWaitingCall(Fault):
    """Trimming removes the calls that wait from the history."""

    source = ("anthropics/anthropic-sdk-python#1846",)
    caught_by = "model-input-well-formed"

    async def trim(self, keep: int) -> None:
        await super().trim(keep)
        waiting = {call.id for _, call in waiting_calls(self.state.main)}
        with self.exclusive_input():
            main = self.state.main
            main.items = [item for item in main.items if item.kind != "call" or item.id not in waiting]


class MessagesAreRefusedAfterACancellation(Fault):
    """A request counts as open after it was cancelled, so that messages are refused."""

    source = ("letta-ai/letta#3156",)
    caught_by = "same-outcome-in-every-mode"
    _is_blocked = False

    async def cancel(self) -> None:
        self._is_blocked = any(waiting_calls(self.state.main)) or self._is_blocked
        await super().cancel()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if self._is_blocked:
            raise Refused("approve or deny the pending request first")
        return await super().turn(text, decisions, stream=stream)


class _KnowsAgentsByName(Fault):
    """Saves the names that its agents have, as if the state were theirs."""

    _saved_names: Mapping[str, str] | None = None

    def encode(self, state: SessionState) -> str:
        return state_to_json({**state_fields(state), "names": dict(self.blueprint.names)})

    def decode(self, written: str) -> SessionState:
        self._saved_names = json.loads(written)["names"]
        return super().decode(written)

    def _is_renamed(self, agent: str) -> bool:
        """Return whether an agent had another name when what was loaded last was saved."""
        names = self._saved_names
        return names is not None and names.get(agent, agent) != self.blueprint.names.get(agent, agent)


class DecisionForARenamedAgentIsDropped(_KnowsAgentsByName):
    """A decision about a call of an agent that was renamed since is taken, and nothing follows."""

    source = ("TauricResearch/TradingAgents#1089",)
    caught_by = "approved-runs"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is None and any(self._is_renamed(each.agent) for each, _ in waiting_calls(self.state.main)):
            return Finished()
        return await super().turn(text, decisions, stream=stream)


class GateIsKnownByTheOldName(_KnowsAgentsByName):
    """The tools of an agent that was renamed are not found among the gated ones, and run unasked."""

    source = ("TauricResearch/TradingAgents#1089",)
    caught_by = "every-gated-call-asked"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        if conversation.agent in self.blueprint.names:
            return False
        return await super().needs_approval(conversation, call, spec)


class RenamedTargetLosesTheConversation(_KnowsAgentsByName):
    """If the agent that the conversation was handed over to was renamed since, the main agent has it again."""

    source = ("TauricResearch/TradingAgents#1089",)
    caught_by = "approved-runs"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        if self._is_renamed(state.main.agent):
            state.main.agent = MAIN
        return state


class RenamedSubAgentStartsOver(_KnowsAgentsByName):
    """A sub-agent that was renamed since is not found in the saved state, and begins its task anew."""

    source = ("TauricResearch/TradingAgents#1089",)
    caught_by = "pending-survives"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        state.main.calls = [self._without_conversation(call) for call in state.main.calls]
        return state

    def _without_conversation(self, call: CallState) -> CallState:
        inner: Any = call.inner
        return replace(call, inner=None) if inner is not None and self._is_renamed(inner.agent) else call


class RestoringDeniesWhatWaits(Fault):
    """What waits when a state is restored counts as denied."""

    source = ("letta-ai/letta-code#2578",)
    caught_by = "pending-survives"

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self.close_open_requests("Denied: stale approval from an interrupted session.", TurnContext(stream=False))


class RestoringDoublesTheResults(Fault):
    """A state that was restored holds each result twice."""

    source = ("google-gemini/gemini-cli#29365",)
    caught_by = "result-delivered-once"

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        main = self.state.main
        main.items = [item for each in main.items for item in ([each, each] if each.kind == "result" else [each])]


class RestoringReopensCancelledRequests(Fault):
    """A request that was cancelled is open again when the state was restored."""

    source = ("letta-ai/letta-code#1521",)
    caught_by = "only-gated-asked"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        for call in state.main.calls:
            if call.stage == "done" and call.result == feedback.CANCELLED:
                call.stage, call.result = "waiting", None
        return state
