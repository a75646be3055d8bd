"""Builder of a `History`: reads a journal once, event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_approvals.journal.arguments import normalize_arguments
from pytest_approvals.journal.branch import BranchBuilder
from pytest_approvals.journal.conversation import record_delivery
from pytest_approvals.journal.events import (
    AgentStart,
    CallerHungUp,
    DecisionMade,
    DecisionsStaged,
    Event,
    Header,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PolicyAsked,
    RunEnd,
    StateRestored,
    StateSaved,
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
        unsaved: The turns of each session that no save has followed.
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
        self.exchanges: dict[tuple[str, int], Exchange] = {}
        self.declared: dict[str, list[ToolDeclaration]] = {}
        self.unsaved: dict[str, list[RecordedTurn]] = {}

    def current_branch(self, session: str) -> BranchBuilder:
        found = self.current_branches.get(session)
        if found is None:
            found = self._add_branch(BranchBuilder(Branch(number=0, session=session)))
        return found

    def _add_branch(self, line: BranchBuilder) -> BranchBuilder:
        fork = line.branch
        self.history.branches.append(fork)
        self.current_branches[fork.session] = self.all_branches[fork.session, fork.number] = line
        self.history.calls.extend(line.calls)
        return line

    def build(self) -> History:
        for event in self.history.events:
            reads = _HANDLERS.get(type(event))
            if reads is None:
                self.history.events_by_class.setdefault(type(event), []).append(event)
            else:
                reads(self, event)
        return self.history

    # --- the frame ---

    def header(self, event: Header) -> None:
        self.history.header = event
        self.history.declarations = {name: ToolDeclaration.of(name, tool) for name, tool in event.tools.items()}
        for tool in self.history.declarations.values():
            self.declared.setdefault(tool.name, []).append(tool)

    def end(self, event: RunEnd) -> None:
        self.history.end = event
        for entry in event.pending:
            known = next((line for line in self.current_branches.values() if entry.get("q") in line.by_q), None)
            line = known or self.current_branch(event.session)
            self._list(line, event.n, (entry,), [])

    def agent_start(self, event: AgentStart) -> None:
        self.history.agent_starts.append(event)

    # --- the caller's side ---

    def turn_start(self, event: TurnStart) -> None:
        line = self.current_branch(event.session)
        turn = RecordedTurn(
            number=event.turn, session=event.session, branch=line.branch.number, start=event, previous=line.last_turn
        )
        others = self.open.setdefault(event.session, [])
        for other in others:
            other.overlaps = turn.overlaps = True
        others.append(turn)
        self.unsaved.setdefault(event.session, []).append(turn)
        line.last_turn = self.turns[event.session, event.turn] = turn
        self.history.turns.append(turn)
        self._hand_in(line, turn, event)

    def _hand_in(self, line: BranchBuilder, turn: RecordedTurn, event: TurnStart) -> None:
        for given in line.staged:
            given.turn = turn
            turn.decisions.append(given)
        line.staged = []
        for n in event.decisions:
            given_now = self.decisions.get(n)
            if given_now is not None:
                given_now.handed_in_at, given_now.turn = event.n, turn
                turn.decisions.append(given_now)

    def turn_end(self, event: TurnEnd) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is None:
            return
        turn.end = event
        self.open[event.session] = [each for each in self.open[event.session] if each is not turn]
        line = self.current_branches[event.session] = self.all_branches[event.session, turn.branch]
        self._list(line, event.n, event.requests, turn.requested_calls)

    def _list(
        self, line: BranchBuilder, n: int, entries: Sequence[Mapping[str, Any]], taken: list[RecordedCall]
    ) -> None:
        for entry in entries:
            asked, fresh = line.list_request(n, entry, taken)
            if asked.call is not None:
                taken.append(asked.call)
            if fresh:
                self.history.requests.append(asked)

    def decide(self, event: DecisionMade) -> None:
        given = self.current_branch(event.session).decide(event)
        self.decisions[event.n] = given
        self.history.decisions.append(given)

    def stage(self, event: DecisionsStaged) -> None:
        line = self.current_branch(event.session)
        for n in event.decisions:
            given = self.decisions.get(n)
            if given is not None:
                given.handed_in_at, given.staged, given.staging_failed = event.n, True, event.error is not None
                line.staged.append(given)
        self.history.events_by_class.setdefault(DecisionsStaged, []).append(event)

    def hang_up(self, event: CallerHungUp) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.hung_up_at = event.n

    def shown(self, event: StreamShown) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.stream.append(event)

    # --- the store's side ---

    def save(self, event: StateSaved) -> None:
        """Turns on two copies of one state are saved after both of them, in their order."""
        unsaved = self.unsaved.get(event.session, [])
        if event.mode == "none":
            unsaved.clear()
        turn = unsaved.pop(0) if unsaved else None
        line = self.all_branches[event.session, turn.branch] if turn is not None else self.current_branch(event.session)
        seen = RecordedSave(event=event, branch=line.branch.number, turn=line.last_turn)
        self.history.saves.append(seen)
        if event.error is None:
            self.saves[event.session, event.name] = seen

    def restore(self, event: StateRestored) -> None:
        seen = RecordedRestore(event=event, save=self.saves.get((event.session, event.name)))
        self.history.restores.append(seen)
        if event.error is None:
            self._list(self._line_of_save(event, seen.save), event.n, event.pending, seen.requested_calls)

    def _line_of_save(self, event: StateRestored, saved: RecordedSave | None) -> BranchBuilder:
        """A restore of a save after which a turn ran is a rewind: it forks the line that was saved."""
        if saved is None:
            return self.current_branch(event.session)
        number, n = saved.branch, saved.event.n
        line = self.all_branches[event.session, number]
        if line.last_turn is None or line.last_turn.start.n < n:
            self.current_branches[event.session] = line
            return line
        new = Branch(
            number=sum(1 for fork in self.history.branches if fork.session == event.session),
            session=event.session,
            parent=number,
            save=n,
            n=event.n,
            mode=event.mode,
        )
        return self._add_branch(line.fork_at(n, new))

    # --- models ---

    def question(self, event: ModelRequest) -> None:
        turn = self._turn_of_question(event)
        line = self.all_branches[event.session, turn.branch] if turn is not None else self.current_branch(event.session)
        conversation = line.conversation(event.conversation)
        exchange = Exchange(
            n=event.n,
            m=event.m,
            session=event.session,
            branch=line.branch.number,
            conversation=event.conversation,
            agent=event.agent,
            items=event.items,
            tools=event.tools,
            turn=turn,
        )
        for seen, call in conversation.align(exchange):
            line.rename(seen, call)
        self.exchanges[event.session, event.m] = exchange
        self.history.exchanges.append(exchange)
        if turn is not None:
            turn.exchanges.append(exchange)
        if "/" in event.conversation:
            self._enter_agent(line, exchange)
        elif exchange.previous is not None and exchange.previous.agent != exchange.agent:
            self._hand_over(line, exchange)

    def _turn_of_question(self, event: ModelRequest) -> RecordedTurn | None:
        """Of several open turns those that wait in a tool do not ask; of the rest the one that asked least does."""
        turns = self.open.get(event.session)
        if not turns:
            return None
        if len(turns) == 1:
            return turns[0]
        free = [turn for turn in turns if all(run.how != "open" or run.start is None for run in turn.executions)]
        return min(free or turns, key=lambda turn: len(turn.exchanges))

    def _hand_over(self, line: BranchBuilder, exchange: Exchange) -> None:
        """Another agent's first question in a conversation stands for the execution of the call that handed it over."""
        for call in line.conversation(exchange.conversation).calls:
            if (
                call.declaration is not None
                and call.declaration.hands_over_to == exchange.agent
                and not call.executions
            ):
                run = self._inferred(line, exchange, call, {})
                run.how, run.ended = "returned", exchange.n
                return self._add(run)
        return None

    def _enter_agent(self, line: BranchBuilder, exchange: Exchange) -> None:
        """The first question of a nested conversation stands for the execution of the call that runs the agent."""
        call = line.by_label.get(exchange.conversation.rpartition("/")[0])
        if call is None or any(run.how == "open" for run in call.executions):
            return
        before = exchange.previous
        goes_on = any(item["kind"] in ("call", "say") for item in exchange.items)
        if before is not None and (goes_on or before.answer is None):
            return
        self._add(self._inferred(line, exchange, call, _agent_input(call, exchange)))

    def _inferred(self, line: BranchBuilder, exchange: Exchange, call: RecordedCall, arguments: Any) -> Execution:
        return Execution(
            n=exchange.n,
            x=0,
            session=exchange.session,
            branch=line.branch.number,
            tool=call.tool,
            arguments=arguments,
            call_id=call.id,
            agent=call.agent,
            call=call,
            turn=exchange.turn,
        )

    def answer(self, event: ModelAnswer) -> None:
        exchange = self.exchanges.get((event.session, event.m))
        if exchange is None:
            return
        exchange.reply = event
        line = self.all_branches[event.session, exchange.branch]
        for written in event.calls:
            self._call(line, exchange, event, written)
        for hosted in event.hosted:
            self._report(line, event, hosted)
        if not event.calls and "/" in event.conversation:
            self._leave_agent(line, event)

    def _call(self, line: BranchBuilder, exchange: Exchange, event: ModelAnswer, written: Mapping[str, Any]) -> None:
        conversation = line.conversation(exchange.conversation)
        seen = written.get("id")
        occurrence = len(conversation.by_id.get(seen, ())) + 1
        call = RecordedCall(
            label=written.get("label") or _make_label(exchange.conversation, seen, written["tool"], occurrence),
            session=event.session,
            branch=line.branch.number,
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
            declaration=self._declared(exchange.agent, written["tool"], written.get("server")),
            turn=exchange.turn,
        )
        line.add(call, conversation)
        self.history.calls.append(call)
        if call.kind == "hosted_mcp":
            self._take_early(call)

    def _take_early(self, call: RecordedCall) -> None:
        """A provider runs what needs no approval before it replies, and reports call and result together."""
        for run in self.history.executions:
            early = run.call is None and run.by == "provider" and run.session == call.session
            if early and run.tool == call.tool and run.call_id in (None, call.id):
                run.call = call
                call.executions.append(run)

    def _declared(self, agent: str, tool: str, server: str | None) -> ToolDeclaration | None:
        """Of several tools with one name, the one of this agent and server."""
        known = self.declared.get(tool, ())
        if len(known) == 1:
            return known[0]
        return max(known, key=lambda each: (each.agent == agent, each.server == server), default=None)

    def _report(self, line: BranchBuilder, event: ModelAnswer, hosted: Mapping[str, Any]) -> None:
        """The provider reports a hosted call that it ran: the model knows its result."""
        call = line.by_label.get(hosted.get("label") or "")
        if call is not None:
            told = hosted.get("output")
            record_delivery(call, event.n, hosted.get("error") if told is None else told, None)

    def _leave_agent(self, line: BranchBuilder, event: ModelAnswer) -> None:
        call = line.by_label.get(event.conversation.rpartition("/")[0])
        if (
            call is not None
            and call.executions
            and call.executions[-1].start is None
            and call.executions[-1].how == "open"
        ):
            call.executions[-1].how, call.executions[-1].ended = "returned", event.n

    def reply(self, event: ModelFailure | ModelRefusal | ModelExhausted) -> None:
        exchange = self.exchanges.get((event.session, event.m))
        if exchange is not None:
            exchange.reply = event

    # --- tools ---

    def gate(self, event: PolicyAsked) -> None:
        call = self.current_branch(event.session).call_of_gate(event)
        if call is not None:
            call.gates.append(event)
        self.history.events_by_class.setdefault(PolicyAsked, []).append(event)

    def tool_start(self, event: ToolStart) -> None:
        turn, line, call = self._place(event)
        run = Execution(
            n=event.n,
            x=event.x,
            session=event.session,
            branch=line.branch.number,
            tool=event.tool,
            arguments=event.arguments,
            call_id=event.call_id,
            agent=event.agent,
            by=event.by,
            start=event,
            call=call,
            turn=turn,
        )
        self.executions[event.session, event.x] = run
        self._add(run)

    def _add(self, run: Execution) -> None:
        self.history.executions.append(run)
        if run.turn is not None:
            run.turn.executions.append(run)
        if run.call is not None:
            run.call.executions.append(run)

    def _place(self, event: ToolStart) -> tuple[RecordedTurn | None, BranchBuilder, RecordedCall | None]:
        """Finds turn, line and call of an execution; of several open turns the first whose line has the best fit."""
        turns = self.open.get(event.session)
        if not turns:
            line = self.current_branch(event.session)
            return None, line, line.call_of_execution(event)[1]
        if len(turns) == 1:
            line = self.all_branches[event.session, turns[0].branch]
            return turns[0], line, line.call_of_execution(event)[1]
        found = []
        for turn in turns:
            line = self.all_branches[event.session, turn.branch]
            rank, call = line.call_of_execution(event)
            found.append((rank, not _decides_unexecuted(turn, call), turn.number, turn, line, call))
        *_, chosen, line, call = min(found, key=lambda each: each[:3])
        return chosen, line, call

    def tool_end(self, event: ToolEnd) -> None:
        run = self.executions.get((event.session, event.x))
        if run is not None:
            run.end, run.ended, run.how = event, event.n, event.how


_HANDLERS: dict[type[Event], Callable[[Any, Any], None]] = {
    Header: HistoryBuilder.header,
    AgentStart: HistoryBuilder.agent_start,
    RunEnd: HistoryBuilder.end,
    TurnStart: HistoryBuilder.turn_start,
    TurnEnd: HistoryBuilder.turn_end,
    DecisionMade: HistoryBuilder.decide,
    DecisionsStaged: HistoryBuilder.stage,
    CallerHungUp: HistoryBuilder.hang_up,
    StreamShown: HistoryBuilder.shown,
    ModelRequest: HistoryBuilder.question,
    ModelAnswer: HistoryBuilder.answer,
    ModelFailure: HistoryBuilder.reply,
    ModelRefusal: HistoryBuilder.reply,
    ModelExhausted: HistoryBuilder.reply,
    PolicyAsked: HistoryBuilder.gate,
    ToolStart: HistoryBuilder.tool_start,
    ToolEnd: HistoryBuilder.tool_end,
    StateSaved: HistoryBuilder.save,
    StateRestored: HistoryBuilder.restore,
}
"""What each event does to the reading; the others are kept as they are (skips, signals, cancels, losses, trims)."""


def _decides_unexecuted(turn: RecordedTurn, call: RecordedCall | None) -> bool:
    """Whether the turn came with a decision about the call and has not run it yet."""
    decided = any(given.call is not None and given.call is call for given in turn.decisions)
    return decided and all(run.call is not call for run in turn.executions)


def _make_label(conversation: str, seen: str | None, tool: str, occurrence: int) -> str:
    """The label of a call in a journal that has none: `c1`, `c1#2`, `o1/c1`."""
    outer = conversation.rpartition("/")[0]
    name = (seen if seen is not None else tool) + (f"#{occurrence}" if occurrence > 1 else "")
    return f"{outer}/{name}" if outer else name


def _agent_input(call: RecordedCall, exchange: Exchange) -> Any:
    """
    The arguments with which an agent was run: the message that its model got is its one text parameter.

    That is the first one, or the last one where the agent keeps what it was told before.
    """
    arguments = call.effective_call_at(exchange.n)[1]
    wanted = normalize_arguments(arguments, call.parameters)
    texts = exchange.texts
    if not texts or not isinstance(wanted, Mapping) or list(wanted) != ["input"]:
        return arguments
    return {"input": texts[-1] if texts[-1] == wanted["input"] else texts[0]}
