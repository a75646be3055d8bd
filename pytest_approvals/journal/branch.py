"""
One line of a session's history: what a fork knows of calls, requests and standing decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.journal.conversation import ConversationAligner
from pytest_approvals.journal.correlation import find_call_of_execution, find_call_of_gate, find_call_of_request
from pytest_approvals.journal.events import DecisionMade, PolicyAsked, ToolStart
from pytest_approvals.journal.history import Branch, RecordedCall, RecordedDecision, RecordedTurn, SurfacedRequest

DecisionScope = tuple[str, str, str | None]
"""What a standing decision reaches: agent, tool and server, within one session."""


class BranchBuilder:
    """The state of one fork while a journal is read."""

    __slots__ = (
        "by_id",
        "by_label",
        "by_q",
        "by_tool",
        "calls",
        "conversations",
        "branch",
        "last_turn",
        "staged",
        "standing",
    )

    def __init__(self, fork: Branch) -> None:
        self.branch = fork
        self.last_turn: RecordedTurn | None = None
        self.conversations: dict[str, ConversationAligner] = {}
        self.calls: list[RecordedCall] = []
        self.by_id: dict[str | None, list[RecordedCall]] = {}
        self.by_tool: dict[str, list[RecordedCall]] = {}
        self.by_label: dict[str, RecordedCall] = {}
        self.by_q: dict[str, SurfacedRequest] = {}
        self.standing: dict[DecisionScope, list[RecordedDecision]] = {}
        self.staged: list[RecordedDecision] = []

    def conversation(self, name: str) -> ConversationAligner:
        """Gives the conversation of that name, a new one where there is none."""
        found = self.conversations.get(name)
        if found is None:
            found = self.conversations[name] = ConversationAligner()
        return found

    # --- calls --------------------------------------------------------------------------------------------------------

    def add(self, call: RecordedCall, conversation: ConversationAligner) -> None:
        """Takes in a call that the model made."""
        conversation.add(call)
        self._index(call)

    def _index(self, call: RecordedCall) -> None:
        self.calls.append(call)
        self.by_id.setdefault(call.id, []).append(call)
        self.by_tool.setdefault(call.tool, []).append(call)
        self.by_label[call.label] = call
        call.standing_decisions = self.standing.setdefault((call.agent, call.tool, call.server), [])

    def rename(self, seen: str, call: RecordedCall) -> None:
        """Notes another id under which a call is known."""
        known = self.by_id.setdefault(seen, [])
        if not any(each is call for each in known):
            known.append(call)

    def call_of_execution(self, event: ToolStart) -> tuple[int, RecordedCall | None]:
        """Finds the call that an execution belongs to; see `matching.call_of_execution`."""
        same_tool = self.by_tool.get(event.tool, [])
        if event.call_id is None:
            return find_call_of_execution(same_tool, event)
        same_id = self.by_id.get(event.call_id)
        if same_id:
            if len(same_id) == 1 and not same_id[0].executions and same_id[0].tool == event.tool:
                return 0, same_id[0]
            return find_call_of_execution(same_id, event)
        rank, call = find_call_of_execution(same_tool, event)
        if call is None or rank > 5:
            return find_call_of_execution((), event)
        self.rename(event.call_id, call)
        return rank, call

    def call_of_gate(self, event: PolicyAsked) -> RecordedCall | None:
        """Finds the call that the policy was asked about."""
        same_id = self.by_id.get(event.call_id, []) if event.call_id is not None else []
        return find_call_of_gate(same_id or self.by_tool.get(event.tool, []), event)

    # --- requests -----------------------------------------------------------------------------------------------------

    def list_request(
        self, n: int, entry: Mapping[str, Any], taken: Sequence[RecordedCall]
    ) -> tuple[SurfacedRequest, bool]:
        """Takes in a request that is listed at position *n*; says whether it surfaces for the first time."""
        q = entry.get("q") or f"{entry.get('agent')}/{entry.get('id')}"
        asked = self.by_q.get(q)
        fresh = asked is None
        if asked is None:
            call = self._call_of_request(entry, taken)
            asked = SurfacedRequest(
                q=q, n=n, session=self.branch.session, branch=self.branch.number, entry=entry, call=call
            )
            self.by_q[q] = asked
            if call is not None:
                call.requests.append(asked)
                if entry.get("call_id") not in (None, call.id):
                    self.rename(entry["call_id"], call)
        asked.listings.append((n, entry))
        return asked, fresh

    def _call_of_request(self, entry: Mapping[str, Any], taken: Sequence[RecordedCall]) -> RecordedCall | None:
        call = self.by_label.get(entry.get("label") or "")
        if call is not None:
            return call
        shown = entry.get("call_id")
        by_id = self.by_id.get(shown, []) if shown is not None else []
        return find_call_of_request(by_id, self.by_tool.get(entry.get("tool") or "", []), entry, taken)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def decide(self, event: DecisionMade) -> RecordedDecision:
        """Takes in a decision; it has no effect yet."""
        asked = self.by_q.get(event.q) if event.q is not None else None
        call = asked.call if asked is not None else None
        if call is None and event.q is not None:
            call = self.by_label.get(event.label or "")
        given = RecordedDecision(event=event, n=event.n, verdict=event.verdict, request=asked, call=call)
        if call is None:
            return given
        call.decisions.append(given)
        if event.verdict in ("always", "never"):
            call.standing_decisions.append(given)
        if event.tool is not None and event.tool != call.tool:
            self.by_tool.setdefault(event.tool, []).append(call)
        return given

    # --- forks --------------------------------------------------------------------------------------------------------

    def fork_at(self, n: int, fork: Branch) -> BranchBuilder:
        """Gives a line that knows what this one knew at position *n*."""
        line = BranchBuilder(fork)
        line.last_turn = self.last_turn
        while line.last_turn is not None and line.last_turn.start.n > n:
            line.last_turn = line.last_turn.previous
        copies: dict[int, RecordedCall] = {}
        given: dict[int, RecordedDecision] = {}
        for scope, decisions in self.standing.items():
            line.standing[scope] = [_copy_decision(each, n, given) for each in decisions if each.n <= n]
        for call in self.calls:
            if call.n <= n:
                copies[id(call)] = _copy_call(call, n, fork.number, given)
                line._index(copies[id(call)])
        for seen, calls in self.by_id.items():
            for call in calls:
                if id(call) in copies and seen != call.id:
                    line.rename(str(seen), copies[id(call)])
        for name, conversation in self.conversations.items():
            line.conversations[name] = _copy_conversation(conversation, n, copies)
        for asked in self.by_q.values():
            if asked.n <= n:
                line._take(_copy_request(asked, n, fork.number), copies)
        line.staged = [each for each in given.values() if each.staged and each.turn is None]
        return line

    def _take(self, asked: SurfacedRequest, copies: Mapping[int, RecordedCall]) -> None:
        self.by_q[asked.q] = asked
        if asked.call is not None:
            asked.call = copies.get(id(asked.call))
        if asked.call is not None:
            asked.call.requests.append(asked)


def _copy_call(call: RecordedCall, n: int, fork: int, given: dict[int, RecordedDecision]) -> RecordedCall:
    return replace(
        call,
        branch=fork,
        gates=[gate for gate in call.gates if gate.n <= n],
        requests=[],
        decisions=[_copy_decision(each, n, given) for each in call.decisions if each.n <= n],
        executions=[run for run in call.executions if run.n <= n],
        deliveries=[told for told in call.deliveries if told.n <= n],
        approval_responses=[sent for sent in call.approval_responses if sent[0] <= n],
    )


def _copy_decision(given: RecordedDecision, n: int, copies: dict[int, RecordedDecision]) -> RecordedDecision:
    """A decision that was staged before the save, but not yet used, takes effect anew in the fork."""
    if id(given) not in copies:
        unused = given.turn is None or given.turn.start.n > n
        copies[id(given)] = replace(given, turn=None) if given.staged and unused else given
    return copies[id(given)]


def _copy_request(asked: SurfacedRequest, n: int, fork: int) -> SurfacedRequest:
    return replace(asked, branch=fork, listings=[each for each in asked.listings if each[0] <= n])


def _copy_conversation(
    conversation: ConversationAligner, n: int, copies: Mapping[int, RecordedCall]
) -> ConversationAligner:
    copied = ConversationAligner()
    for call in conversation.calls:
        if id(call) in copies:
            copied.add(copies[id(call)])
    for seen, calls in conversation.by_id.items():
        for call in calls:
            if id(call) in copies and seen != call.id:
                copied.by_id.setdefault(seen, []).append(copies[id(call)])
    copied.exchanges = [each for each in conversation.exchanges if each.n <= n]
    return copied
