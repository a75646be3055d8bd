"""Builder of a `History`: reads a journal once, event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_approvals.journal.arguments import normalize_arguments, parse_arguments
from pytest_approvals.journal.branch import BranchBuilder
from pytest_approvals.journal.conversation import record_delivery
from pytest_approvals.journal.correlation import (
    drop_lost_calls,
    exchange_equal_calls,
    find_call_of_execution,
    fits_as_first,
)
from pytest_approvals.journal.events import (
    AgentKilled,
    AgentStart,
    AgentStopped,
    AgentWoken,
    CallerHungUp,
    DecisionMade,
    DecisionsStaged,
    DiskFull,
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    Event,
    Header,
    HistoryTrimmed,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PendingCancelled,
    PolicyAsked,
    RunEnd,
    StateRestored,
    StateRewritten,
    StateSaved,
    StoreRolledBack,
    StreamShown,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.journal.history import (
    Branch,
    Exchange,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedElicitation,
    RecordedRestore,
    RecordedSave,
    RecordedTurn,
    ToolDeclaration,
)


def read_history(events: Iterable[Event]) -> History:
    """Return the history of a journal, whole or cut off; nothing that the events say is judged or refused."""
    return HistoryBuilder(events if isinstance(events, list) else list(events)).build()


class HistoryBuilder:
    """Builds the history of one journal.

    Attributes:
        current_branches: The current branch of each session.
        all_branches: All branches, by session and number.
        open: The turns of each session that have not ended.
        declared: The tools of the header, by the name that models know.
        unsaved: The turns of each session that no save has followed.
        beside: The branch that each session was restored to while a turn of it ran: the next turn is one of it, also if
            the one that ran has ended by then.
        changed_sessions: The sessions whose agent was started with other parameters than the declared ones.
        failing_once: The places from which on a write fails once, by session and number of the open turn.
        rolled_back: The turn before which the store of each session is as it was, until an agent is restored from it.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.history = History(events)
        self.current_branches: dict[str, BranchBuilder] = {}
        self.all_branches: dict[tuple[str, int], BranchBuilder] = {}
        self.saves: dict[tuple[str, str], RecordedSave] = {}
        self.open: dict[str, list[RecordedTurn]] = {}
        self.turns: dict[tuple[str, int], RecordedTurn] = {}
        self.decisions: dict[int, RecordedDecision] = {}
        self.executions: dict[tuple[str, int], Execution] = {}
        self.elicitations: dict[int, RecordedElicitation] = {}
        self.approvals: dict[str, Mapping[str, str]] = {}
        self.exchanges: dict[tuple[str, int], Exchange] = {}
        self.declared: dict[str, list[ToolDeclaration]] = {}
        self.unsaved: dict[str, list[RecordedTurn]] = {}
        self.stopped: set[int] = set()
        self.beside: dict[str, BranchBuilder] = {}
        self.changed_sessions: set[str] = set()
        self.failing_once: dict[tuple[str, int], str] = {}
        self.rolled_back: dict[str, RecordedTurn] = {}

    def current_branch(self, session: str) -> BranchBuilder:
        """Return the branch in which a session continues, a first one if there is none."""
        branch = self.current_branches.get(session)
        if branch is None:
            branch = self._add_branch(BranchBuilder(Branch(number=0, session=session)))
        return branch

    def _add_branch(self, branch: BranchBuilder) -> BranchBuilder:
        record = branch.record
        self.history.branches.append(record)
        self.current_branches[record.session] = self.all_branches[record.session, record.number] = branch
        self.history.calls.extend(branch.calls)
        return branch

    def build(self) -> History:
        """Read all events and return their history."""
        for event in self.history.events:
            handler = _HANDLERS.get(type(event))
            if handler is None:
                self.history.events_by_class.setdefault(type(event), []).append(event)
            else:
                handler(self, event)
        exchange_equal_calls(self.history)
        return self.history

    # --- the frame ---

    def _on_header(self, event: Header) -> None:
        self.history.header = event
        self.history.declarations = {name: ToolDeclaration.of(name, tool) for name, tool in event.tools.items()}
        for tool in self.history.declarations.values():
            self.declared.setdefault(tool.name, []).append(tool)

    def _on_run_end(self, event: RunEnd) -> None:
        self.history.end = event
        for entry in event.pending:
            # The end lists the requests of all sessions.
            known = next((branch for branch in self.current_branches.values() if entry.get("q") in branch.by_q), None)
            branch = known or self._branch_of_listed(entry, entry.get("session") or event.session)
            self._list(branch, event.n, (entry,), [])

    def _branch_of_listed(self, entry: Mapping[str, Any], session: str) -> BranchBuilder:
        """Return the branch whose call a listed request is about: the latest one that knows the call.

        After turns at the same time on copies of one state, the session may have gone on in another one than the last.
        """
        current, label = self.current_branch(session), entry.get("label")
        if label is None or label in current.by_label:
            return current
        own = [branch for (of, _), branch in self.all_branches.items() if of == session and label in branch.by_label]
        return own[-1] if own else current

    def _on_agent_start(self, event: AgentStart) -> None:
        self.history.agent_starts.append(event)
        self.approvals[event.session] = event.approvals or {}
        before = event.session in self.changed_sessions
        if event.parameters:
            self.changed_sessions.add(event.session)
        if event.parameters or before:
            for branch in [branch for (of, _), branch in self.all_branches.items() if of == event.session]:
                for call in branch.calls:
                    self._note_parameters(call, event.n + 1)

    def _note_parameters(self, call: RecordedCall, n: int) -> None:
        present = self.history.parameters_at(call, n)
        call.latest_parameters = None if present is call.parameters else present

    # --- the caller's side ---

    def _on_turn_start(self, event: TurnStart) -> None:
        branch = self._branch_of_next_turn(event.session)
        turn = RecordedTurn(
            number=event.turn,
            session=event.session,
            branch=branch.record.number,
            start=event,
            previous=branch.last_turn,
        )
        others = self.open.setdefault(event.session, [])
        for other in others:
            other.overlaps = turn.overlaps = True
        others.append(turn)
        self.unsaved.setdefault(event.session, []).append(turn)
        branch.last_turn = self.turns[event.session, event.turn] = turn
        branch.changed_at = event.n
        self.history.turns.append(turn)
        self._hand_in(branch, turn, event)

    def _branch_of_next_turn(self, session: str) -> BranchBuilder:
        restored = self.beside.pop(session, None)
        if restored is not None:
            self.current_branches[session] = restored
        return self.current_branch(session)

    def _hand_in(self, branch: BranchBuilder, turn: RecordedTurn, event: TurnStart) -> None:
        for decision in branch.staged:
            decision.turn = turn
            turn.decisions.append(decision)
        branch.staged = []
        for n in event.decisions:
            given_now = self.decisions.get(n)
            if given_now is not None:
                given_now.handed_in_at, given_now.turn = event.n, turn
                turn.decisions.append(given_now)

    def _on_turn_end(self, event: TurnEnd) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is None:
            return
        turn.end = event
        place = self.failing_once.pop((event.session, event.turn), None)
        if place is not None and event.outcome == "failed":
            self._note_loss(turn, place)
        self._stage_again(turn)
        self.open[event.session] = [other for other in self.open[event.session] if other is not turn]
        # After turns that overlap, the session continues in the branch of the one that ended last.
        branch = self.current_branches[event.session] = self.all_branches[event.session, turn.branch]
        self._list(branch, event.n, event.requests, turn.requested_calls)

    def _stage_again(self, turn: RecordedTurn) -> None:
        """Keep staged decisions for the next turn if this one was refused, as it may have been for its other input."""
        staged = [decision for decision in turn.decisions if decision.staged]
        has_other_input = turn.start.text is not None or len(staged) < len(turn.decisions)
        if not turn.refused or not has_other_input:
            return
        turn.decisions = [decision for decision in turn.decisions if not decision.staged]
        branch = self.all_branches[turn.session, turn.branch]
        branch.staged = staged + branch.staged

    def _list(
        self, branch: BranchBuilder, n: int, entries: Sequence[Mapping[str, Any]], taken: list[RecordedCall]
    ) -> None:
        for entry in entries:
            request, fresh = branch.list_request(n, entry, taken)
            if request.call is not None:
                taken.append(request.call)
            if fresh:
                self.history.requests.append(request)

    def _on_decide(self, event: DecisionMade) -> None:
        decision = self.current_branch(event.session).decide(event)
        self.decisions[event.n] = decision
        self.history.decisions.append(decision)

    def _on_stage(self, event: DecisionsStaged) -> None:
        branch = self.current_branch(event.session)
        for n in event.decisions:
            decision = self.decisions.get(n)
            if decision is not None:
                decision.handed_in_at, decision.staged, decision.staging_failed = event.n, True, event.error is not None
                branch.staged.append(decision)
        if event.error is None:
            branch.changed_at = event.n
        self.history.events_by_class.setdefault(DecisionsStaged, []).append(event)

    def _on_cancel(self, event: PendingCancelled) -> None:
        branch = self.current_branch(event.session)
        if event.error is None:
            for decision in branch.staged:
                decision.withdrawn_at = event.n
            branch.staged, branch.changed_at = [], event.n
        self.history.events_by_class.setdefault(PendingCancelled, []).append(event)

    def _on_trim(self, event: HistoryTrimmed) -> None:
        if event.error is None:
            self.current_branch(event.session).changed_at = event.n
        self.history.events_by_class.setdefault(HistoryTrimmed, []).append(event)

    def _on_cut(self, event: CallerHungUp | AgentKilled) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.cut_off_at, turn.crashed = event.n, isinstance(event, AgentKilled)
            turn.was_over = turn.crashed and event.place == "outcome"
            if turn.crashed:
                self._note_loss(turn, event.place)

    def _on_full(self, event: DiskFull) -> None:
        self.history.events_by_class.setdefault(DiskFull, []).append(event)
        turn = self.turns.get((event.session, event.turn))
        if turn is None:
            return
        if event.once:
            # A turn that ends without an error has stored what it needs later.
            self.failing_once[turn.session, turn.number] = event.place
        else:
            self._note_loss(turn, event.place)

    def _on_rolled_back(self, event: StoreRolledBack) -> None:
        self.history.events_by_class.setdefault(StoreRolledBack, []).append(event)
        self.unsaved[event.session] = []
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            self.rolled_back[event.session] = turn

    def _note_loss(self, turn: RecordedTurn, place: str) -> None:
        """Note that a turn may not have been stored, so that no save says that it was."""
        turn.unstored_from = _unstored_label(place)
        self.unsaved[turn.session] = [other for other in self.unsaved.get(turn.session, ()) if other is not turn]

    def _on_stopped(self, event: AgentStopped) -> None:
        self.stopped.add(event.turn)
        self.history.events_by_class.setdefault(AgentStopped, []).append(event)

    def _on_woken(self, event: AgentWoken) -> None:
        self.stopped.discard(event.turn)

    def _active_turns(self, session: str) -> list[RecordedTurn]:
        """Return the open turns of a session that can do something: those whose process is not stopped."""
        return [turn for turn in self.open.get(session, ()) if turn.number not in self.stopped]

    def _on_shown(self, event: StreamShown) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.stream.append(event)

    # --- the store's side ---

    def _on_save(self, event: StateSaved) -> None:
        """Record a save.

        Turns on two copies of one state are saved after both of them, in their order.
        """
        unsaved = self.unsaved.get(event.session, [])
        # A live state holds all of its turns, so one save covers them.
        if event.mode == "none":
            unsaved.clear()
        turn = unsaved.pop(0) if unsaved else None
        branch = (
            self.all_branches[event.session, turn.branch] if turn is not None else self.current_branch(event.session)
        )
        seen = RecordedSave(event=event, branch=branch.record.number, turn=branch.last_turn)
        self.history.saves.append(seen)
        if event.error is None:
            self.saves[event.session, event.name] = seen

    def _on_restore(self, event: StateRestored) -> None:
        saved = self.saves.get((event.session, event.name))
        forgotten = self.rolled_back.pop(event.session, None)
        if saved is not None and event.present:
            # What is restored is what the session has come to since.
            present = self.current_branch(event.session)
            saved = RecordedSave(event=saved.event, branch=present.record.number, turn=present.last_turn)
        elif saved is not None and forgotten is not None:
            saved = RecordedSave(event=saved.event, branch=forgotten.branch, turn=forgotten.previous)
        n = saved.event.n if saved is not None else 0
        if event.present or forgotten is not None:
            n = event.n if forgotten is None else _position_before(forgotten)
        seen = RecordedRestore(event=event, save=saved, n=n, forgets=forgotten is not None)
        lost = self._find_restore_of_loss(event)
        if lost is not None:
            seen.save, seen.n, seen.forgets = lost.save, lost.n, True
        self.history.restores.append(seen)
        if event.error is None:
            branch = self._branch_of_save(event, seen)
            if self.open.get(event.session):
                self.beside[event.session] = branch
            self._list(branch, event.n, event.pending, seen.requested_calls)

    def _find_restore_of_loss(self, event: StateRestored) -> RecordedRestore | None:
        """Return the restore before this one if it showed what the store had lost, and nothing has happened since.

        What is restored once more from the same place lacks the same.
        """
        before = [each for each in self.history.restores if each.event.session == event.session]
        if not before or not before[-1].forgets or before[-1].event.name != event.name or event.present:
            return None
        since = before[-1].event.n
        turns = (turn for turn in self.history.turns if turn.session == event.session)
        return before[-1] if all(turn.start.n < since for turn in turns) else None

    def _branch_of_save(self, event: StateRestored, restore: RecordedRestore) -> BranchBuilder:
        """Return the branch of a save; one after which the state has changed is rewound, which starts a new branch."""
        if restore.save is None or event.present:
            return self.current_branch(event.session)
        number, n = restore.save.branch, restore.n
        line = self.all_branches[event.session, number]
        if line.changed_at < n:
            self.current_branches[event.session] = line
            return line
        new = Branch(
            number=sum(1 for branch in self.history.branches if branch.session == event.session),
            session=event.session,
            parent=number,
            save=n,
            n=event.n,
            mode=event.mode,
            forgets=restore.forgets,
        )
        return self._add_branch(line.fork_at(n, new))

    def _on_rewrite(self, event: StateRewritten) -> None:
        saved = self.saves.get((event.session, event.name))
        # Of turns at the same time, the save that was changed need not be that of the one that ended last.
        number = saved.branch if saved is not None else self.current_branch(event.session).record.number
        self.all_branches[event.session, number].rewrite(event.old, event.new)
        self.history.events_by_class.setdefault(StateRewritten, []).append(event)

    # --- models ---

    def _on_model_request(self, event: ModelRequest) -> None:
        turn = self._turn_of_request(event)
        branch = (
            self.all_branches[event.session, turn.branch] if turn is not None else self.current_branch(event.session)
        )
        conversation = branch.conversation(event.conversation)
        exchange = Exchange(
            n=event.n,
            m=event.m,
            session=event.session,
            branch=branch.record.number,
            conversation=event.conversation,
            agent=event.agent,
            items=event.items,
            tools=event.tools,
            turn=turn,
        )
        for seen, call in conversation.align(exchange):
            branch.rename(seen, call)
        self.exchanges[event.session, event.m] = exchange
        self.history.exchanges.append(exchange)
        if turn is not None:
            turn.exchanges.append(exchange)
        if "/" in event.conversation:
            self._enter_agent(branch, exchange)
        # A conversation that was copied into another branch aligns its first input anew, but has exchanges before it.
        elif len(conversation.exchanges) > 1 and conversation.exchanges[-2].agent != exchange.agent:
            self._hand_over(branch, exchange)

    def _turn_of_request(self, event: ModelRequest) -> RecordedTurn | None:
        """Return the turn that asks.

        Of several open ones those that wait in a tool do not ask. Of the rest it is one whose conversation the input
        continues, if there is any, and of these the one that asked least.
        """
        turns = self._active_turns(event.session)
        if not turns:
            return None
        if len(turns) == 1:
            return turns[0]
        free = [
            turn
            for turn in turns
            if all(execution.how != "open" or execution.start is None for execution in turn.executions)
        ]
        return min(free or turns, key=lambda turn: (self._rank_continuation(turn, event), len(turn.exchanges)))

    def _rank_continuation(self, turn: RecordedTurn, event: ModelRequest) -> tuple[int, int]:
        """Return how well a model input continues the conversation in the branch of a turn: the least is best.

        One that goes on begins with all of the last input, and tells of calls that were made since, of which as few as
        possible have neither run nor been decided. A branch that has had no input of the conversation yet comes next.
        """
        branch = self.all_branches[turn.session, turn.branch]
        last = branch.conversation(event.conversation).last
        if last is None:
            return 1, 0
        new = event.items[len(last.items) :]
        has_made_calls = last.answer is not None and bool(last.answer.calls)
        if event.items[: len(last.items)] != last.items or (has_made_calls and not new):
            return 2, 0
        told = [branch.by_id.get(item.get("id"), [])[-1:] for item in new if item["kind"] == "result"]
        return 0, sum(not any(call.executions or call.decisions for call in calls) for calls in told)

    def _hand_over(self, branch: BranchBuilder, exchange: Exchange) -> None:
        """Record the execution of a hand-over: the first request of the other agent marks it.

        It is of the newest reply that holds one; of equal ones in a reply, of one that may run.
        """
        calls = [
            call
            for call in drop_lost_calls(branch.conversation(exchange.conversation).calls)
            if call.declaration is not None and call.declaration.hands_over_to == exchange.agent and not call.executions
        ]
        call = min(calls, key=lambda call: (-call.n, not _may_run(call, exchange.n)), default=None)
        if call is not None:
            # Nothing shows with what a framework hands over, such as the reason that it tells the application.
            arguments = parse_arguments(call.effective_call_at(exchange.n)[1])
            given = arguments if isinstance(arguments, Mapping) else {}
            execution = self._inferred(branch, exchange, call, given)
            execution.how, execution.ended = "returned", exchange.n
            self._add(execution)

    def _enter_agent(self, branch: BranchBuilder, exchange: Exchange) -> None:
        """Record the execution of a call that runs an agent: the first request of its conversation marks it."""
        call = branch.by_label.get(exchange.conversation.rpartition("/")[0])
        if call is None or any(execution.how == "open" for execution in call.executions):
            return
        # A conversation that was copied into another branch aligns its first input anew, but has exchanges before it.
        earlier = branch.conversation(exchange.conversation).exchanges[:-1]
        before = earlier[-1] if earlier else None
        goes_on = any(item["kind"] in ("call", "say") for item in exchange.items)
        if before is not None and (goes_on or before.answer is None):
            return
        self._add(self._inferred(branch, exchange, call, _agent_input(call, exchange)))

    def _inferred(self, branch: BranchBuilder, exchange: Exchange, call: RecordedCall, arguments: Any) -> Execution:
        return Execution(
            n=exchange.n,
            x=0,
            session=exchange.session,
            branch=branch.record.number,
            tool=call.tool,
            arguments=arguments,
            call_id=call.id,
            agent=call.agent,
            call=call,
            turn=exchange.turn,
        )

    def _on_model_answer(self, event: ModelAnswer) -> None:
        exchange = self.exchanges.get((event.session, event.m))
        if exchange is None:
            return
        exchange.reply = event
        branch = self.all_branches[event.session, exchange.branch]
        calls = [self._call(branch, exchange, event, written) for written in event.calls]
        self._claim_early_executions(exchange, [call for call in calls if call.kind == "hosted_mcp"])
        for hosted in event.hosted:
            self._report(branch, event, hosted)
        if not event.calls and "/" in event.conversation:
            self._leave_agent(branch, event)

    def _call(
        self, branch: BranchBuilder, exchange: Exchange, event: ModelAnswer, written: Mapping[str, Any]
    ) -> RecordedCall:
        conversation = branch.conversation(exchange.conversation)
        seen = written.get("id")
        occurrence = len(conversation.by_id.get(seen, ())) + 1
        call = RecordedCall(
            label=written.get("label") or _make_label(exchange.conversation, seen, written["tool"], occurrence),
            session=event.session,
            branch=branch.record.number,
            conversation=exchange.conversation,
            agent=exchange.agent,
            occurrence=occurrence,
            id=seen,
            tool=written["tool"],
            arguments=written.get("arguments"),
            n=event.n,
            answer=event,
            kind=written.get("kind") or "function",
            server=written.get("server"),
            declaration=self._find_declaration(exchange.agent, written["tool"], written.get("server")),
            turn=exchange.turn,
        )
        if event.session in self.changed_sessions:
            self._note_parameters(call, event.n)
        for name, approval in self.approvals.get(event.session, {}).items():
            if self.history.declarations.get(name) is call.declaration:
                call.latest_approval = "always" if approval == "always" else "never"
        branch.add(call, conversation)
        self.history.calls.append(call)
        return call

    def _claim_early_executions(self, exchange: Exchange, calls: Sequence[RecordedCall]) -> None:
        """Claim executions that came before their calls: a provider runs what needs no approval before it replies.

        One that was taken for another call of an earlier reply with the same id is claimed if it fits here only.
        """
        for execution in self.history.executions if calls else ():
            if execution.by != "provider" or execution.start is None or execution.session != exchange.session:
                continue
            earlier = execution.call
            # What ran before this reply was asked for belongs to one that broke off.
            if execution.n < exchange.n or (earlier is not None and fits_as_first(earlier, execution)):
                continue
            pool = [call for call in calls if call.tool == execution.tool and execution.call_id in (None, call.id)]
            _, call = find_call_of_execution(pool, execution.start)
            if call is None or (earlier is not None and not fits_as_first(call, execution)):
                continue
            if earlier is not None:
                earlier.executions[:] = [other for other in earlier.executions if other is not execution]
            execution.call = call
            call.executions.append(execution)

    def _find_declaration(self, agent: str, tool: str, server: str | None) -> ToolDeclaration | None:
        """Return the tool of that name; of several, the one of this agent and server."""
        known = self.declared.get(tool, ())
        if len(known) == 1:
            return known[0]
        return max(known, key=lambda declared: (declared.agent == agent, declared.server == server), default=None)

    def _report(self, branch: BranchBuilder, event: ModelAnswer, hosted: Mapping[str, Any]) -> None:
        """Record the result of a hosted call that the provider reports: the model knows it."""
        call = branch.by_label.get(hosted.get("label") or "")
        if call is not None:
            delivery = hosted.get("output")
            record_delivery(call, event.n, hosted.get("error") if delivery is None else delivery, None)

    def _leave_agent(self, branch: BranchBuilder, event: ModelAnswer) -> None:
        call = branch.by_label.get(event.conversation.rpartition("/")[0])
        if (
            call is not None
            and call.executions
            and call.executions[-1].start is None
            and call.executions[-1].how == "open"
        ):
            call.executions[-1].how, call.executions[-1].ended = "returned", event.n

    def _on_model_failure(self, event: ModelFailure | ModelRefusal | ModelExhausted) -> None:
        exchange = self.exchanges.get((event.session, event.m))
        if exchange is not None:
            exchange.reply = event

    # --- tools ---

    def _on_policy_asked(self, event: PolicyAsked) -> None:
        call = self._call_of_gate(event)
        if call is not None:
            call.gates.append(event)
        self.history.events_by_class.setdefault(PolicyAsked, []).append(event)

    def _call_of_gate(self, event: PolicyAsked) -> RecordedCall | None:
        """Return the call that the policy was asked about; of several turns, that of the one which made it."""
        turns = self._active_turns(event.session)
        branches = [self.all_branches[event.session, turn.branch] for turn in turns]
        branches = branches or [self.current_branch(event.session)]
        found = [call for branch in branches if (call := branch.call_of_gate(event)) is not None]
        named = (call for call in found if call.id == event.call_id is not None)
        return next(named, found[0] if found else None)

    def _on_tool_start(self, event: ToolStart) -> None:
        turn, branch, call = self._place(event)
        execution = Execution(
            n=event.n,
            x=event.x,
            session=event.session,
            branch=branch.record.number,
            tool=event.tool,
            arguments=event.arguments,
            call_id=event.call_id,
            agent=event.agent,
            by=event.by,
            start=event,
            call=call,
            turn=turn,
        )
        self.executions[event.session, event.x] = execution
        self._add(execution)

    def _add(self, execution: Execution) -> None:
        self.history.executions.append(execution)
        if execution.turn is not None:
            execution.turn.executions.append(execution)
        if execution.call is not None:
            execution.call.executions.append(execution)

    def _place(self, event: ToolStart) -> tuple[RecordedTurn | None, BranchBuilder, RecordedCall | None]:
        """Return turn, branch and call of an execution; of several open turns the first with the best match."""
        turns = self._active_turns(event.session)
        if not turns:
            branch = self.current_branch(event.session)
            return None, branch, branch.call_of_execution(event)[1]
        if len(turns) == 1:
            branch = self.all_branches[event.session, turns[0].branch]
            return turns[0], branch, branch.call_of_execution(event)[1]
        candidates = []
        for turn in turns:
            branch = self.all_branches[event.session, turn.branch]
            rank, call = branch.call_of_execution(event, is_alone=False)
            candidates.append((rank, not _decides_unexecuted(turn, call), turn.number, turn, branch, call))
        # Without the objects, which cannot be compared.
        *_, chosen, branch, call = min(candidates, key=lambda candidate: candidate[:3])
        return chosen, branch, call

    def _on_tool_end(self, event: ToolEnd) -> None:
        execution = self.executions.get((event.session, event.x))
        if execution is not None:
            execution.end, execution.ended, execution.how = event, event.n, event.how

    def _on_elicitation_asked(self, event: ElicitationAsked) -> None:
        execution = self.executions.get((event.session, event.x))
        elicitation = RecordedElicitation(execution=execution, asked=event)
        self.elicitations[event.x] = elicitation
        self.history.elicitations.append(elicitation)

    def _on_elicitation_shown(self, event: ElicitationShown) -> None:
        elicitation = self.elicitations.get(event.x) if event.x is not None else None
        if elicitation is None:
            elicitation = RecordedElicitation()
            self.history.elicitations.append(elicitation)
        elicitation.shown.append(event)

    def _on_elicitation_answered(self, event: ElicitationAnswered) -> None:
        elicitation = self.elicitations.get(event.x)
        if elicitation is not None:
            elicitation.answered = event
            if not elicitation.shown:
                self._take_shown_of_equal_question(elicitation)

    def _take_shown_of_equal_question(self, elicitation: RecordedElicitation) -> None:
        """Count what the caller was shown for an equal question, whose answer went to this one.

        A client does not say which of two equal questions it shows.
        """
        for other in self.elicitations.values():
            if other.answered is None and other.shown and _fits_equal_question(other.shown[0], other, elicitation):
                elicitation.shown.append(other.shown.pop(0))
                return


def _fits_equal_question(shown: ElicitationShown, other: RecordedElicitation, elicitation: RecordedElicitation) -> bool:
    """Return whether what was shown for one question may have been another one, with the answer that this one got."""
    first, second, answered = other.asked, elicitation.asked, elicitation.answered
    assert first is not None
    assert second is not None
    assert answered is not None
    return (first.session, first.message, first.form, first.url, shown.action, shown.content) == (
        second.session,
        second.message,
        second.form,
        second.url,
        answered.action,
        answered.content,
    )


def _position_before(turn: RecordedTurn) -> int:
    """Return the last position before a turn and the decisions that came with it."""
    return min((turn.start.n, *turn.start.decisions)) - 1


def _unstored_label(place: str) -> str | None:
    """Return the call after which nothing is stored, empty for a whole turn; None for another place."""
    word, _, label = place.partition(" ")
    return label if word == "write" else None


def _may_run(call: RecordedCall, n: int) -> bool:
    """Return whether a call needs no approval at a position, or has one."""
    decision = call.decision_at(n)
    return not call.is_gated_at(n) if decision is None else decision.approves


_HANDLERS: dict[type[Event], Callable[[Any, Any], None]] = {
    Header: HistoryBuilder._on_header,
    AgentStart: HistoryBuilder._on_agent_start,
    RunEnd: HistoryBuilder._on_run_end,
    TurnStart: HistoryBuilder._on_turn_start,
    TurnEnd: HistoryBuilder._on_turn_end,
    DecisionMade: HistoryBuilder._on_decide,
    DecisionsStaged: HistoryBuilder._on_stage,
    PendingCancelled: HistoryBuilder._on_cancel,
    HistoryTrimmed: HistoryBuilder._on_trim,
    CallerHungUp: HistoryBuilder._on_cut,
    AgentKilled: HistoryBuilder._on_cut,
    AgentStopped: HistoryBuilder._on_stopped,
    DiskFull: HistoryBuilder._on_full,
    StoreRolledBack: HistoryBuilder._on_rolled_back,
    AgentWoken: HistoryBuilder._on_woken,
    StreamShown: HistoryBuilder._on_shown,
    ModelRequest: HistoryBuilder._on_model_request,
    ModelAnswer: HistoryBuilder._on_model_answer,
    ModelFailure: HistoryBuilder._on_model_failure,
    ModelRefusal: HistoryBuilder._on_model_failure,
    ModelExhausted: HistoryBuilder._on_model_failure,
    PolicyAsked: HistoryBuilder._on_policy_asked,
    ToolStart: HistoryBuilder._on_tool_start,
    ToolEnd: HistoryBuilder._on_tool_end,
    ElicitationAsked: HistoryBuilder._on_elicitation_asked,
    ElicitationShown: HistoryBuilder._on_elicitation_shown,
    ElicitationAnswered: HistoryBuilder._on_elicitation_answered,
    StateSaved: HistoryBuilder._on_save,
    StateRestored: HistoryBuilder._on_restore,
    StateRewritten: HistoryBuilder._on_rewrite,
}
"""What each event does to the reading; the others are kept as they are (skips, signals, losses)."""


def _decides_unexecuted(turn: RecordedTurn, call: RecordedCall | None) -> bool:
    """Return whether the turn brought a decision about the call and has not run it yet."""
    decided = any(decision.call is not None and decision.call is call for decision in turn.decisions)
    return decided and all(execution.call is not call for execution in turn.executions)


def _make_label(conversation: str, seen: str | None, tool: str, occurrence: int) -> str:
    """Return the label of a call in a journal that has none: `c1`, `c1#2`, `o1/c1`."""
    outer = conversation.rpartition("/")[0]
    name = (seen if seen is not None else tool) + (f"#{occurrence}" if occurrence > 1 else "")
    return f"{outer}/{name}" if outer else name


def _agent_input(call: RecordedCall, exchange: Exchange) -> Any:
    """Return the arguments with which an agent was run: the message that its model got is its one text parameter.

    That is the first message, or the last one if the agent keeps what it was told before.
    """
    arguments = call.effective_call_at(exchange.n)[1]
    wanted = normalize_arguments(arguments, call.parameters)
    texts = exchange.texts
    if not texts or not isinstance(wanted, Mapping) or list(wanted) != ["input"]:
        return arguments
    return {"input": texts[-1] if texts[-1] == wanted["input"] else texts[0]}
