"""How a journal's models and tools are read: what was asked, answered, run and gated, and whose call it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .arguments import settled
from .calls import CallSeen, Declared, Execution
from .conversations import tell
from .events import Gate, ModelAnswer, ModelExhausted, ModelFailure, ModelRefusal, ModelRequest, ToolEnd, ToolStart
from .lines import Line
from .reader_state import ReaderState
from .turns import Exchange, TurnSeen


class SideReader(ReaderState):
    """Reads what happens on the sides of models and tools."""

    # --- models ---

    def question(self, event: ModelRequest) -> None:
        turn = self._turn_of_question(event)
        line = self.all_lines[event.session, turn.fork] if turn is not None else self.line(event.session)
        conversation = line.conversation(event.conversation)
        exchange = Exchange(
            n=event.n,
            m=event.m,
            session=event.session,
            fork=line.fork.number,
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
        elif exchange.before is not None and exchange.before.agent != exchange.agent:
            self._hand_over(line, exchange)

    def _turn_of_question(self, event: ModelRequest) -> TurnSeen | None:
        """Of several open turns those that wait in a tool do not ask; of the rest the one that asked least does."""
        turns = self.open.get(event.session)
        if not turns:
            return None
        if len(turns) == 1:
            return turns[0]
        free = [turn for turn in turns if all(run.how != "open" or run.start is None for run in turn.executions)]
        return min(free or turns, key=lambda turn: len(turn.exchanges))

    def _hand_over(self, line: Line, exchange: Exchange) -> None:
        """Another agent's first question in a conversation stands for the execution of the call that handed it over."""
        for call in line.conversation(exchange.conversation).calls:
            if call.declared is not None and call.declared.hands_over_to == exchange.agent and not call.runs:
                run = self._inferred(line, exchange, call, {})
                run.how, run.ended = "returned", exchange.n
                return self._add(run)
        return None

    def _enter_agent(self, line: Line, exchange: Exchange) -> None:
        """The first question of a nested conversation stands for the execution of the call that runs the agent."""
        call = line.by_label.get(exchange.conversation.rpartition("/")[0])
        if call is None or any(run.how == "open" for run in call.runs):
            return
        before = exchange.before
        goes_on = any(item["kind"] in ("call", "say") for item in exchange.items)
        if before is not None and (goes_on or before.answer is None):
            return
        self._add(self._inferred(line, exchange, call, _input_of(call, exchange)))

    def _inferred(self, line: Line, exchange: Exchange, call: CallSeen, arguments: Any) -> Execution:
        return Execution(
            n=exchange.n,
            x=0,
            session=exchange.session,
            fork=line.fork.number,
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
        line = self.all_lines[event.session, exchange.fork]
        for written in event.calls:
            self._call(line, exchange, event, written)
        for hosted in event.hosted:
            self._report(line, event, hosted)
        if not event.calls and "/" in event.conversation:
            self._leave_agent(line, event)

    def _call(self, line: Line, exchange: Exchange, event: ModelAnswer, written: Mapping[str, Any]) -> None:
        conversation = line.conversation(exchange.conversation)
        seen = written.get("id")
        occurrence = len(conversation.by_id.get(seen, ())) + 1
        call = CallSeen(
            label=written.get("label") or _label(exchange.conversation, seen, written["tool"], occurrence),
            session=event.session,
            fork=line.fork.number,
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
            declared=self._declared(exchange.agent, written["tool"], written.get("server")),
            turn=exchange.turn,
        )
        line.add(call, conversation)
        self.history.calls.append(call)
        if call.kind == "hosted_mcp":
            self._take_early(call)

    def _take_early(self, call: CallSeen) -> None:
        """A provider runs what needs no approval before it replies, and reports call and result together."""
        for run in self.history.executions:
            early = run.call is None and run.by == "provider" and run.session == call.session
            if early and run.tool == call.tool and run.call_id in (None, call.id):
                run.call = call
                call.runs.append(run)

    def _declared(self, agent: str, tool: str, server: str | None) -> Declared | None:
        """Of several tools with one name, the one of this agent and server."""
        known = self.declared.get(tool, ())
        if len(known) == 1:
            return known[0]
        return max(known, key=lambda each: (each.agent == agent, each.server == server), default=None)

    def _report(self, line: Line, event: ModelAnswer, hosted: Mapping[str, Any]) -> None:
        """The provider reports a hosted call that it ran: the model knows its result."""
        call = line.by_label.get(hosted.get("label") or "")
        if call is not None:
            told = hosted.get("output")
            tell(call, event.n, hosted.get("error") if told is None else told, None)

    def _leave_agent(self, line: Line, event: ModelAnswer) -> None:
        call = line.by_label.get(event.conversation.rpartition("/")[0])
        if call is not None and call.runs and call.runs[-1].start is None and call.runs[-1].how == "open":
            call.runs[-1].how, call.runs[-1].ended = "returned", event.n

    def reply(self, event: ModelFailure | ModelRefusal | ModelExhausted) -> None:
        exchange = self.exchanges.get((event.session, event.m))
        if exchange is not None:
            exchange.reply = event

    # --- tools ---

    def gate(self, event: Gate) -> None:
        call = self.line(event.session).call_of_gate(event)
        if call is not None:
            call.gates.append(event)
        self.history.of_kind.setdefault(Gate, []).append(event)

    def tool_start(self, event: ToolStart) -> None:
        turn, line, call = self._place(event)
        run = Execution(
            n=event.n,
            x=event.x,
            session=event.session,
            fork=line.fork.number,
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
            run.call.runs.append(run)

    def _place(self, event: ToolStart) -> tuple[TurnSeen | None, Line, CallSeen | None]:
        """Finds turn, line and call of an execution; of several open turns the first whose line has the best fit."""
        turns = self.open.get(event.session)
        if not turns:
            line = self.line(event.session)
            return None, line, line.call_of_execution(event)[1]
        if len(turns) == 1:
            line = self.all_lines[event.session, turns[0].fork]
            return turns[0], line, line.call_of_execution(event)[1]
        found = []
        for turn in turns:
            line = self.all_lines[event.session, turn.fork]
            rank, call = line.call_of_execution(event)
            found.append((rank, not _brings(turn, call), turn.number, turn, line, call))
        *_, chosen, line, call = min(found, key=lambda each: each[:3])
        return chosen, line, call

    def tool_end(self, event: ToolEnd) -> None:
        run = self.executions.get((event.session, event.x))
        if run is not None:
            run.end, run.ended, run.how = event, event.n, event.how


def _brings(turn: TurnSeen, call: CallSeen | None) -> bool:
    """Whether the turn came with a decision about the call and has not run it yet."""
    decided = any(given.call is not None and given.call is call for given in turn.decisions)
    return decided and all(run.call is not call for run in turn.executions)


def _label(conversation: str, seen: str | None, tool: str, occurrence: int) -> str:
    """The label of a call in a journal that has none: `c1`, `c1#2`, `o1/c1`."""
    outer = conversation.rpartition("/")[0]
    name = (seen if seen is not None else tool) + (f"#{occurrence}" if occurrence > 1 else "")
    return f"{outer}/{name}" if outer else name


def _input_of(call: CallSeen, exchange: Exchange) -> Any:
    """
    The arguments with which an agent was run: the message that its model got is its one text parameter.

    That is the first one, or the last one where the agent keeps what it was told before.
    """
    arguments = call.wanted_at(exchange.n)[1]
    wanted = settled(arguments, call.parameters)
    texts = exchange.texts
    if not texts or not isinstance(wanted, Mapping) or list(wanted) != ["input"]:
        return arguments
    return {"input": texts[-1] if texts[-1] == wanted["input"] else texts[0]}
