"""Branch of a session's history while it is built: its calls, requests and standing decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.journal.conversation import ConversationAligner, Rewrite
from pytest_approvals.journal.correlation import (
    APPROVED,
    OTHER_ARGUMENTS,
    REPEATED,
    UNDECIDED,
    find_call_of_execution,
    find_call_of_gate,
    find_call_of_request,
    is_judged,
)
from pytest_approvals.journal.events import DecisionMade, PolicyAsked, ToolStart
from pytest_approvals.journal.history import (
    Branch,
    Execution,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
    SurfacedRequest,
)

DecisionScope = tuple[str, str, str | None]
"""What a standing decision reaches: agent, tool and server, within one session."""


class BranchBuilder:
    """The state of one branch while a journal is read.

    Attributes:
        record: The branch as histories show it.
        last_turn: The turn that began last in it, or before it.
        changed_at: Where its state was changed last: by a turn, a staged decision, a cancel or a trimming.
        staged: Decisions that were put into the state and take effect with the next turn.
        standing: Standing decisions by what they cover.
        rewrites: How the text of its save was changed: what was replaced by what.
    """

    __slots__ = (
        "by_id",
        "by_label",
        "by_q",
        "by_tool",
        "calls",
        "changed_at",
        "conversations",
        "last_turn",
        "record",
        "rewrites",
        "staged",
        "standing",
    )

    def __init__(self, branch: Branch) -> None:
        self.record = branch
        self.last_turn: RecordedTurn | None = None
        self.changed_at = 0
        self.conversations: dict[str, ConversationAligner] = {}
        self.calls: list[RecordedCall] = []
        self.by_id: dict[str | None, list[RecordedCall]] = {}
        self.by_tool: dict[str, list[RecordedCall]] = {}
        self.by_label: dict[str, RecordedCall] = {}
        self.by_q: dict[str, SurfacedRequest] = {}
        self.standing: dict[DecisionScope, list[RecordedDecision]] = {}
        self.staged: list[RecordedDecision] = []
        self.rewrites: list[Rewrite] = []

    def conversation(self, name: str) -> ConversationAligner:
        """Return the conversation of that name, a new one if there is none."""
        conversation = self.conversations.get(name)
        if conversation is None:
            conversation = self.conversations[name] = ConversationAligner(rewrites=self.rewrites)
        return conversation

    # --- calls --------------------------------------------------------------------------------------------------------

    def add(self, call: RecordedCall, conversation: ConversationAligner) -> None:
        """Add a call that the model made."""
        conversation.add(call)
        self._index(call)

    def _index(self, call: RecordedCall) -> None:
        self.calls.append(call)
        self.by_id.setdefault(call.id, []).append(call)
        self.by_tool.setdefault(call.tool, []).append(call)
        self.by_label[call.label] = call
        self._set_standing_decisions(call, call.tool)

    def _set_standing_decisions(self, call: RecordedCall, tool: str) -> None:
        call.standing_decisions = self.standing.setdefault((call.agent, tool, call.server), [])

    def rename(self, seen: str, call: RecordedCall) -> None:
        """Record another id under which a call is known, also where inputs of its model show it."""
        self.conversation(call.conversation).by_id.setdefault(seen, [call])
        known = self.by_id.setdefault(seen, [])
        if not any(other is call for other in known):
            known.append(call)

    def call_of_execution(self, event: ToolStart, *, is_alone: bool = True) -> tuple[int, RecordedCall | None]:
        """Return the call that an execution belongs to; see `correlation.find_call_of_execution`.

        Args:
            event: The start of the execution.
            is_alone: No other turn can have executed it, so that the rank of the match does not count.
        """
        same_tool = self.by_tool.get(event.tool, [])
        if event.call_id is None:
            return find_call_of_execution(same_tool, event)
        same_id = self.by_id.get(event.call_id)
        if same_id:
            # The usual case, without ranking: the only call of that id, executed for the first time.
            is_given = any(call.id == event.call_id for call in same_id)
            is_only = is_given and is_alone and len(same_id) == 1
            if is_only and not same_id[0].executions and same_id[0].tool == event.tool:
                return APPROVED, same_id[0]
            if is_given:
                return find_call_of_execution(same_id, event)
            return self._find_call_by_own_id(same_id, event)
        rank, call = find_call_of_execution(self._drop_renamed_calls(same_tool), event)
        if call is None or rank >= OTHER_ARGUMENTS:
            rank, call = find_call_of_execution(same_tool, event)
        # A provider runs each call under the call's own id.
        is_other = event.by == "provider" and call is not None and bool(call.executions)
        if call is None or rank >= OTHER_ARGUMENTS or is_other:
            return find_call_of_execution((), event)
        self.rename(event.call_id, call)
        return rank, call

    def _find_call_by_own_id(
        self, same_id: Sequence[RecordedCall], event: ToolStart
    ) -> tuple[int, RecordedCall | None]:
        """Return the call that was executed under an id of the agent's own, by which *same_id* are known.

        An agent may count its ids in each conversation. So if none of them is of the same agent, with this tool and
        these arguments, it may be a call of another conversation that is. And if the model gives an id once more, one
        that is made of it comes again, too.
        """
        rank, call = find_call_of_execution([call for call in same_id if call.agent == event.agent], event)
        if call is None or rank >= REPEATED:
            own = [call for call in self.by_tool.get(event.tool, []) if call.agent == event.agent]
            taken = {call.conversation for call in same_id} if call is None or rank >= OTHER_ARGUMENTS else None
            others = [
                other
                for other in self._drop_renamed_calls(own)
                if (taken is not None and other.conversation not in taken)
                or any(other.id == known.id and other.n > known.n for known in same_id)
            ]
            new_rank, new = find_call_of_execution(others, event)
            if new is not None and new_rank <= UNDECIDED:
                self.rename(str(event.call_id), new)
                return new_rank, new
        return find_call_of_execution(same_id, event)

    def _drop_renamed_calls(self, calls: Sequence[RecordedCall]) -> Sequence[RecordedCall]:
        """Return the calls without those that are known by an id of the agent's own, which are less likely."""
        renamed = {id(call) for seen, known in self.by_id.items() for call in known if seen != call.id}
        return [call for call in calls if id(call) not in renamed]

    def call_of_gate(self, event: PolicyAsked) -> RecordedCall | None:
        """Return the call that the policy was asked about."""
        same_id = self.by_id.get(event.call_id, []) if event.call_id is not None else []
        pool = same_id or self.by_tool.get(event.tool, [])
        if event.call_id is not None and not same_id:
            own = [call for call in pool if any(gate.call_id == event.call_id for gate in call.gates)]
            # An id of the agent's own is of a call that no other one has named: of equal ones in a reply, of the first.
            free = [call for call in reversed(self._drop_renamed_calls(pool)) if not call.gates]
            pool = own or sorted(free, key=lambda call: call.n) or pool
        if not any(is_judged(call, event) for call in pool):
            # An id of the agent's own that counts the calls of a conversation comes again in another one.
            unnamed = self._drop_renamed_calls(self.by_tool.get(event.tool, []))
            pool = [call for call in reversed(unnamed) if not call.gates and is_judged(call, event)] or pool
        return find_call_of_gate(pool, event)

    def rewrite(self, old: str, new: str) -> None:
        """Note that the text of its save was changed: the model's input says what the changed save says."""
        self.rewrites.append((old, new))
        for call in self.calls:
            self._trust_ids(call)

    def _trust_ids(self, call: RecordedCall) -> None:
        """Let only the ids of a call tell where model inputs show it, since they may show it changed."""
        conversation = self.conversation(call.conversation)
        for seen, calls in self.by_id.items():
            if seen != call.id and any(other is call for other in calls):
                conversation.by_id.setdefault(seen, [call])

    # --- requests -----------------------------------------------------------------------------------------------------

    def list_request(
        self, n: int, entry: Mapping[str, Any], taken: Sequence[RecordedCall]
    ) -> tuple[SurfacedRequest, bool]:
        """Add a request that is listed at position *n*; return it and whether it surfaced for the first time."""
        q = entry.get("q") or f"{entry.get('agent')}/{entry.get('id')}"
        request = self.by_q.get(q)
        fresh = request is None
        if request is None:
            call = self._call_of_request(entry, taken)
            request = SurfacedRequest(
                q=q, n=n, session=self.record.session, branch=self.record.number, entry=entry, call=call
            )
            self.by_q[q] = request
            if call is not None:
                call.requests.append(request)
                if entry.get("call_id") not in (None, call.id):
                    self.rename(entry["call_id"], call)
        request.listings.append((n, entry))
        if request.call is not None and self.rewrites:
            # Standing decisions are about the tool that the changed save shows, but only from now on.
            before = request.call.standing_decisions
            self._set_standing_decisions(request.call, entry.get("tool") or request.call.tool)
            if request.call.standing_decisions is not before:
                request.call.former_standing.append((n, before))
        return request, fresh

    def _call_of_request(self, entry: Mapping[str, Any], taken: Sequence[RecordedCall]) -> RecordedCall | None:
        call = self.by_label.get(entry.get("label") or "")
        if call is not None:
            return call
        shown = entry.get("call_id")
        by_id = self.by_id.get(shown, []) if shown is not None else []
        found = find_call_of_request(by_id, self.by_tool.get(entry.get("tool") or "", []), entry, taken)
        if found is not None or not self.rewrites:
            return found
        same = self._call_of_same_request(entry)
        if same is None:
            return None
        for conversation in self.conversations.values():
            # The model's input says what the changed save says, so only the id tells which call that is.
            if any(call is same for call in conversation.calls):
                conversation.by_id.setdefault(shown, [same])
        return same

    def _call_of_same_request(self, entry: Mapping[str, Any]) -> RecordedCall | None:
        """Return the call of an earlier request with the same id: a changed save may show another call."""
        agent, seen = entry.get("agent"), entry.get("id")
        return next(
            (
                request.call
                for request in reversed(self.by_q.values())
                if request.call is not None and (request.entry.get("agent"), request.entry.get("id")) == (agent, seen)
            ),
            None,
        )

    # --- decisions ----------------------------------------------------------------------------------------------------

    def decide(self, event: DecisionMade) -> RecordedDecision:
        """Add a decision; it has no effect yet."""
        request = self.by_q.get(event.q) if event.q is not None else None
        call = request.call if request is not None else None
        if call is None and event.q is not None:
            call = self.by_label.get(event.label or "")
        decision = RecordedDecision(event=event, n=event.n, verdict=event.verdict, request=request, call=call)
        if call is None:
            return decision
        call.decisions.append(decision)
        if event.verdict in ("always", "never"):
            self._find_standing_decisions(call, request).append(decision)
        if event.verdict == "edit":
            self._trust_ids(call)
        # An edit that names another tool: its execution must find this call, too.
        if event.tool is not None and event.tool != call.tool:
            self.by_tool.setdefault(event.tool, []).append(call)
        return decision

    def _find_standing_decisions(self, call: RecordedCall, request: SurfacedRequest | None) -> list[RecordedDecision]:
        """Return the standing decisions of what a request shows: an edit may have given the call another tool."""
        shown = request.listings[-1][1] if request is not None else {}
        tool = shown.get("tool") or call.tool
        if tool == call.tool or self.rewrites:
            return call.standing_decisions
        return self.standing.setdefault((call.agent, tool, shown.get("server")), [])

    # --- copies -------------------------------------------------------------------------------------------------------

    def fork_at(self, n: int, branch: Branch) -> BranchBuilder:
        """Return a builder of *branch* that knows what this one knew at position *n*."""
        builder = BranchBuilder(branch)
        builder.rewrites.extend(self.rewrites)
        builder.last_turn = self.last_turn
        while builder.last_turn is not None and builder.last_turn.start.n > n:
            builder.last_turn = builder.last_turn.previous
        # By identity: a call of this branch maps to its copy, and a shared decision is copied once.
        copies: dict[int, RecordedCall] = {}
        copied_decisions: dict[int, RecordedDecision] = {}
        for scope, decisions in self.standing.items():
            earlier = [decision for decision in decisions if decision.n <= n]
            builder.standing[scope] = [_copy_decision(decision, n, copied_decisions) for decision in earlier]
        for call in self.calls:
            if call.n <= n:
                copies[id(call)] = _copy_call(call, n, branch.number, copied_decisions)
                builder._index(copies[id(call)])
        for seen, calls in self.by_id.items():
            for call in calls:
                if id(call) in copies and seen != call.id:
                    builder.rename(str(seen), copies[id(call)])
        for name, conversation in self.conversations.items():
            builder.conversations[name] = _copy_conversation(conversation, n, copies, builder.rewrites)
        for request in self.by_q.values():
            if request.n <= n:
                builder._take(_copy_request(request, n, branch.number), copies)
        builder.staged = [
            copy
            for copy in copied_decisions.values()
            if copy.staged and copy.turn is None and copy.withdrawn_at is None
        ]
        return builder

    def _take(self, request: SurfacedRequest, copies: Mapping[int, RecordedCall]) -> None:
        self.by_q[request.q] = request
        if request.call is not None:
            request.call = copies.get(id(request.call))
        if request.call is not None:
            request.call.requests.append(request)


def _copy_call(call: RecordedCall, n: int, branch: int, copied_decisions: dict[int, RecordedDecision]) -> RecordedCall:
    return replace(
        call,
        branch=branch,
        gates=[gate for gate in call.gates if gate.n <= n],
        requests=[],
        decisions=[_copy_decision(old, n, copied_decisions) for old in call.decisions if old.n <= n],
        former_standing=[
            (until, [_copy_decision(old, n, copied_decisions) for old in decisions if old.n <= n])
            for until, decisions in call.former_standing
            if until <= n
        ],
        executions=[_copy_execution(execution, n) for execution in call.executions if execution.n <= n],
        deliveries=[delivery for delivery in call.deliveries if delivery.n <= n],
        approval_responses=[sent for sent in call.approval_responses if sent[0] <= n],
    )


def _copy_execution(execution: Execution, n: int) -> Execution:
    """Copy the work of an agent inside of a call that had not ended at the save: in the new branch it goes on."""
    if execution.start is None and (execution.ended is None or execution.ended > n):
        return replace(execution, how="open", ended=None)
    return execution


def _copy_decision(decision: RecordedDecision, n: int, copies: dict[int, RecordedDecision]) -> RecordedDecision:
    """Copy a decision that was staged before the save but not used: it takes effect again in the new branch."""
    if id(decision) not in copies:
        unused = decision.turn is None or decision.turn.start.n > n
        withdrawn_at = decision.withdrawn_at if (decision.withdrawn_at or 0) <= n else None
        copies[id(decision)] = (
            replace(decision, turn=None, withdrawn_at=withdrawn_at) if decision.staged and unused else decision
        )
    return copies[id(decision)]


def _copy_request(request: SurfacedRequest, n: int, branch: int) -> SurfacedRequest:
    return replace(request, branch=branch, listings=[listing for listing in request.listings if listing[0] <= n])


def _copy_conversation(
    conversation: ConversationAligner, n: int, copies: Mapping[int, RecordedCall], rewrites: list[Rewrite]
) -> ConversationAligner:
    copied = ConversationAligner(rewrites=rewrites)
    for call in conversation.calls:
        if id(call) in copies:
            copied.add(copies[id(call)])
    for seen, calls in conversation.by_id.items():
        for call in calls:
            if id(call) in copies and seen != call.id:
                copied.by_id.setdefault(seen, []).append(copies[id(call)])
    copied.exchanges = [exchange for exchange in conversation.exchanges if exchange.n <= n]
    return copied
