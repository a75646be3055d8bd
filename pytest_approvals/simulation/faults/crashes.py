"""Faults of crashes: what a process that dies leaves behind is repeated, lost, told wrongly, or locked.

They show only if the process is killed, because what a turn stores while it runs is not read after its normal end.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pytest_approvals.agent_side.contract.types import Item, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import Busy
from pytest_approvals.simulation.reference.state import CallState, ConversationState, SessionState, waiting_calls


class CrashedCallRunsAgain(Fault):
    """A call that was executed when the process died is executed again."""

    source = ("microsoft/agent-framework#3938", "MervinPraison/PraisonAI#2994")
    caught_by = "runs-at-most-once"
    dies = True

    def close_interrupted_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            call.stage = "approved" if call.stage == "running" else call.stage


class CrashedCallHasNoResult(Fault):
    """A call that was executed when the process died goes to the model without a result."""

    source = ("Ultimate-Multisite/superdav-ai-agent#2026",)
    caught_by = "model-input-well-formed"
    dies = True

    def close_interrupted_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        kept = [call for call in conversation.calls if call.stage != "running"]
        conversation.asks_model = conversation.asks_model or not kept
        conversation.calls = kept


class CrashedCallIsToldAsNothing(Fault):
    """The model is told an empty text about a call that was executed when the process died."""

    source = ("vertz-dev/vertz#2841",)
    caught_by = "cancelled-calls-told"
    dies = True

    def close_interrupted_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            if call.stage == "running":
                self.finish_call(call, "", turn)


class CrashLosesTheApproval(Fault):
    """A call that was approved and had not begun when the process died is forgotten."""

    source = ("mastra-ai/mastra#20492", "renjian-pro/AgentTrail#114")
    caught_by = "cancelled-calls-told"
    dies = True

    def encode(self, state: SessionState) -> str:
        lost = {call.id for call in state.main.calls if call.stage == "approved" and self.is_running}
        calls = [call for call in state.main.calls if call.id not in lost]
        items = [item for item in state.main.items if item.id not in lost]
        return super().encode(replace(state, main=replace(state.main, calls=calls, items=items)))


class _StoresCallsWrongly(Fault):
    """The base of faults in what is stored of calls that have ended, while their turn runs."""

    dies = True

    def encode(self, state: SessionState) -> str:
        if not self.is_running or any(call.stage == "waiting" for call in state.main.calls):
            return super().encode(state)
        calls = [self._stored(call) if call.stage == "done" else call for call in state.main.calls]
        return super().encode(replace(state, main=replace(state.main, calls=calls)))

    def _stored(self, call: CallState) -> CallState:
        return call


class CrashUndoesTheRejection(_StoresCallsWrongly):
    """A call that was rejected runs if the process dies before the model is told."""

    source = ("renjian-pro/AgentTrail#114",)
    caught_by = "rejected-never-runs"

    def _stored(self, call: CallState) -> CallState:
        return call if call.entered else replace(call, stage="approved")


class CrashRunsDoneCallsAgain(_StoresCallsWrongly):
    """A call that has returned runs again if the process dies before the model is told."""

    source = ("renjian-pro/AgentTrail#114", "n8n-io/n8n#33845")
    caught_by = "runs-at-most-once"

    def _stored(self, call: CallState) -> CallState:
        return replace(call, stage="approved") if call.entered else call


class CrashLosesTheResult(_StoresCallsWrongly):
    """The model is told nothing of what a call returned if the process dies before."""

    source = ("MervinPraison/PraisonAI#2994",)
    caught_by = "result-matches-its-call"

    def _stored(self, call: CallState) -> CallState:
        return replace(call, result="No result provided") if call.entered else call


class CrashLeavesTheSessionBusy(Fault):
    """A session whose process died counts as running, so that no further input is accepted."""

    source = ("tomcounsell/ai#822", "NeoLabs-Systems/NeoAgent#86")
    caught_by = "usable-after-hang-up"
    dies = True

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        marker = Path(self.blueprint.directory or ".") / f"{self.open_store().name}.busy" if self.is_durable else None
        if marker is not None and marker.exists():
            raise Busy
        with super().exclusive_input():
            if marker is not None:
                marker.touch()
            yield
        if marker is not None:
            marker.unlink()


class _RecoversWrongly(Fault):
    """The base of faults in what a new process makes of a turn in which another one died.

    A file beside the store names the process whose turn runs, and is removed when the turn ends.
    """

    dies = True

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        with super().exclusive_input():
            if self.is_durable:
                self._marker().write_text(str(os.getpid()))
            yield
        if self.is_durable:
            self._marker().unlink()

    def reload_state(self) -> None:
        super().reload_state()
        marker = self._marker() if self.is_durable else None
        if marker is not None and marker.exists() and marker.read_text() != str(os.getpid()):
            self._recover(self.state)

    def _marker(self) -> Path:
        return Path(self.blueprint.directory) / f"{self.open_store().name}.turn"

    def _recover(self, state: SessionState) -> None:
        raise NotImplementedError


class RecoveryApprovesOpenRequests(_RecoversWrongly):
    """A request that was open when the process died counts as approved after that."""

    source = ("mastra-ai/mastra#20492",)
    caught_by = "approval-before-execution"

    def _recover(self, state: SessionState) -> None:
        for _, call in waiting_calls(state.main):
            call.stage, call.request = "approved", None


class RecoveryForgetsOpenRequests(_RecoversWrongly):
    """A request that was open when the process died is forgotten with its call."""

    source = ("mastra-ai/mastra#20492", "tomcounsell/ai#822")
    caught_by = "model-input-well-formed"

    def _recover(self, state: SessionState) -> None:
        state.main.calls = [call for call in state.main.calls if call.stage != "waiting"]


class RecoveryTellsResultsTwice(_RecoversWrongly):
    """What a call returned before the process died is told to the model twice."""

    source = ("MervinPraison/PraisonAI#2994",)
    caught_by = "model-input-well-formed"

    def _recover(self, state: SessionState) -> None:
        main = state.main
        done = [call for call in main.calls if call.stage == "done"]
        main.items += [Item(kind="result", id=call.id, text=call.result, message=main.messages) for call in done]


class RecoveryLosesTheEdit(_RecoversWrongly):
    """A call that was changed and had not begun when the process died runs as the model wrote it."""

    source = ("mastra-ai/mastra#20492",)
    caught_by = "arguments-as-approved"

    def _recover(self, state: SessionState) -> None:
        written = {item.id: item.arguments for item in state.main.items if item.kind == "call"}
        for call in state.main.calls:
            if call.stage == "running" and call.note is not None:
                call.stage, call.arguments = "approved", written[call.id]


class RecoveryAsksAboutDoneCalls(_RecoversWrongly):
    """A call that has returned waits for an approval again if the process dies before the model is told."""

    source = ("agno-agi/agno#10461", "strands-agents/harness-sdk#3615")
    caught_by = "runs-at-most-once"

    def _recover(self, state: SessionState) -> None:
        for call in state.main.calls:
            if call.entered and call.stage == "done":
                call.stage, call.result = "waiting", None
        self.assign_request_ids()


class RecoverySkipsTheGate(_RecoversWrongly):
    """A process that goes on for one that died does not ask about calls."""

    source = ("mastra-ai/mastra#20492",)
    caught_by = "every-gated-call-asked"
    _has_recovered = False

    def _recover(self, state: SessionState) -> None:
        self._has_recovered = True

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        return not self._has_recovered and await super().needs_approval(conversation, call, spec)


class RecoveryStartsAnew(_RecoversWrongly):
    """A conversation in which the process died begins anew."""

    source = ("tomcounsell/ai#822",)
    caught_by = "caller-messages-kept"

    def _recover(self, state: SessionState) -> None:
        state.main = ConversationState()


class RecoveryLocksTheSubAgent(_RecoversWrongly):
    """A sub-agent in whose call the process died is never asked again, and its caller waits for it."""

    source = ("crewAIInc/crewAI#6859",)
    caught_by = "pending-survives"

    def _recover(self, state: SessionState) -> None:
        if any(call.inner is not None for call in state.main.calls):
            raise Busy


class _OverwritesAFile(Fault):
    """The base of faults in a store that overwrites its file in place: a write that is cut leaves half of it."""

    dies = True

    def store_state(self) -> None:
        if self.is_durable:
            self._file().write_text(self.encode(self.state), encoding="utf-8")

    def reload_state(self) -> None:
        if self.is_durable and self._file().exists():
            self.state = self._read(self._file().read_text(encoding="utf-8"))
        self.assign_request_ids()

    def _file(self) -> Path:
        return Path(self.blueprint.directory) / f"{self.open_store().name}.json"

    def _read(self, written: str) -> SessionState:
        return self.decode(written)


class HalfWrittenStateCannotBeRead(_OverwritesAFile):
    """A session whose process died while it stored something cannot be restored."""

    source = ("agent-of-empires/agent-of-empires#1207", "HKUDS/nanobot#3312")
    caught_by = "pending-survives"


class HalfWrittenStateCountsAsNone(_OverwritesAFile):
    """A session whose process died while it stored something begins anew."""

    source = ("juliensimon/canopy#24",)
    caught_by = "caller-messages-kept"

    def _read(self, written: str) -> SessionState:
        try:
            return self.decode(written)
        except ValueError:
            return SessionState()


class TwoWorkersRunOneCall(Fault):
    """A decision is stored at the end of its turn, so that two processes on one session both run the call."""

    source = ("curie-eng/curie#2832", "Robert-Velhorst/015-Weggeefkastje.nl-automation#19")
    caught_by = "runs-at-most-once"
    dies = True

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        if self.is_running:
            raise Busy
        self.is_running = True
        try:
            self.reload_state()
            self.mark_turn_start()
            yield
        finally:
            super().store_state()
            self.is_running = False

    def store_state(self) -> None:
        if not self.is_running:
            super().store_state()


class StoppedWorkerCountsAsDead(Fault):
    """A process that finds a call running takes it for one that was cut off by a crash, and runs it again."""

    source = ("Robert-Velhorst/015-Weggeefkastje.nl-automation#19", "gagan114662/openbot#95")
    caught_by = "runs-at-most-once"
    dies = True

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        if self.is_running:
            raise Busy
        self.is_running = True
        try:
            self.reload_state()
            for call in self.state.main.calls:
                call.stage = "approved" if call.stage == "running" else call.stage
            self.mark_turn_start()
            yield
        finally:
            self.store_state()
            self.is_running = False


class FullDiskIsIgnored(Fault):
    """A state that cannot be stored is forgotten, and the turn ends as if it had been stored."""

    source = ("anomalyco/opencode#7607", "NousResearch/hermes-agent#944")
    caught_by = "pending-survives"
    dies = True

    def store_state(self) -> None:
        with suppress(sqlite3.OperationalError):
            super().store_state()
