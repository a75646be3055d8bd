"""Builder of journals from short lines: numbers, model inputs, requests and the frame are filled in."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.journal import events as ev
from pytest_approvals.journal.notation.syntax import CALL_PATTERN, NotationCall, parse_pairs, parse_tool, parse_value


@dataclass(slots=True)
class NotationState:
    """What is known of one session between two turns; saved and restored.

    Attributes:
        items: The next model input of each conversation.
        calls: The calls by label.
        open: The labels of the open requests.
        names: The ids that the agent gave to calls.
        message: The number of the last message.
    """

    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    calls: dict[str, NotationCall] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    message: int = 0


class JournalBuilder:
    """Builds a journal line by line: one method `_on_VERB` for each verb of the notation.

    Attributes:
        session: The session that the next lines are about.
        ending: The turn that the next line ends; None for the one that began last.
    """

    def __init__(self) -> None:
        self.header = ev.Header(scenario="example", agent="example", wire_rules="chat")
        self.events: list[ev.Event] = []
        self.session = ""
        self.states: dict[str, NotationState] = {}
        self.saves: dict[str, NotationState] = {}
        self.turns: list[int] = []
        self.ending: int | None = None
        self.agent = "main"
        self.counts = {"turn": 0, "m": 0, "x": 0, "q": 0, "save": 0}
        self.running: dict[str, list[int]] = {}
        self.asked: dict[str, int] = {}
        self.requests: dict[tuple[str, str], str] = {}
        self.shown_ids: dict[tuple[str, str], str | None] = {}
        self.deciding: list[int] = []
        self.reported: list[dict[str, Any]] = []
        self.thoughts: list[dict[str, Any]] = []
        self.stream = False
        self.how = "restored"
        self.ended = False
        self.killed = False
        self.fails_once = False
        self.begun: list[str] = []
        self.available: list[str] = []
        self.parameters: dict[str, Any] = {}
        self.renamed: dict[str, str] = {}
        self.offered: list[str] | None = None

    @property
    def _state(self) -> NotationState:
        return self.states.setdefault(self.session, NotationState())

    def _add(self, event: ev.Event) -> ev.Event:
        # The header is written before the first other event: until then lines may add to it.
        if not self.events:
            if not self.header.tools:
                self._on_tool("pay(amount: integer) always")
                self._on_tool("read(path) never")
            self.available = list(self.header.tools)
            self.events.append(self.header)
            self.header.n = 1
        if self.session not in self.begun:
            self.begun.append(self.session)
            self._add(ev.AgentStart(tools=list(self.available), how="session" if self.begun[1:] else "built"))
        event.session = self.session
        event.n = len(self.events) + 1
        self.events.append(event)
        return event

    def _count(self, name: str) -> int:
        self.counts[name] += 1
        return self.counts[name]

    def _add_item(self, conversation: str, item: dict[str, Any]) -> None:
        """Add an item to the next input of a model."""
        items = self._state.items.setdefault(conversation, [])
        present = {name: value for name, value in item.items() if value is not None}
        items.append(present | {"message": self._state.message})

    # --- the header ---

    def _on_tool(self, rest: str) -> None:
        name, declared = parse_tool(rest)
        self.header.tools[name] = declared

    def _on_wants(self, rest: str) -> None:
        self.header.answer = parse_tool(f"answer({rest})")[1]["parameters"]

    def _on_rules(self, rest: str) -> None:
        self.header.wire_rules = rest

    def _on_remembers(self, rest: str) -> None:
        self.header.earlier_turns = int(rest)

    def _on_attached(self, _: str) -> None:
        self.header.attached = True

    def _on_reaches(self, rest: str) -> None:
        self.header.reaches = {name: int(value) for name, value in (pair.split("=") for pair in rest.split(", "))}

    def _on_limits(self, rest: str) -> None:
        self.header.limits = {name: int(value) for name, value in (pair.split("=") for pair in rest.split(", "))}

    def _on_variant(self, rest: str) -> None:
        self.header.variant.update(parse_pairs(rest))

    def _on_expect(self, rest: str) -> None:
        name, _, value = rest.partition(" ")
        self.header.expect[name] = value.split(", ") if name == "runs" else value

    def _on_streaming(self, rest: str) -> None:
        self.stream = True

    def _on_fresh(self, rest: str) -> None:
        self.how = "fresh"

    # --- calls and requests ---

    def _conversation(self, label: str) -> str:
        outer = label.rpartition("/")[0]
        names = (name for name in self._state.items if outer and name.startswith(f"{outer}/"))
        return next(names, "main")

    def _call(self, written: str, conversation: str | None = None) -> NotationCall:
        """Read a call; a label alone means the call as the model made it, with the id that the agent gave it."""
        match = CALL_PATTERN.match(written)
        if match is None:
            known = self._state.calls[written.strip()]
            return replace(known, id=self._state.names.get(known.label, known.id))
        label, seen = match["label"], match["id"]
        call_id = None if seen == "-" else (seen or self._id(label))
        call = NotationCall(label, call_id, match["tool"], parse_pairs(match["arguments"]))
        if conversation is not None:
            self._state.calls[label] = call
        return call

    def _id(self, label: str) -> str | None:
        known = self._state.calls.get(label)
        if known is None:
            return label.rpartition("/")[2].partition("#")[0]
        return self._state.names.get(label, known.id)

    def _requests(self, rest: str) -> list[dict[str, Any]]:
        entries = [self._request(part.strip()) for part in re.split(r",\s+(?![^(]*\))", rest) if part.strip()]
        self._state.open = [entry["label"] for entry in entries]
        return entries

    def _request(self, part: str) -> dict[str, Any]:
        shown = self._call(part)
        fresh = shown.label not in self._state.open
        if fresh or (self.session, shown.label) not in self.requests:
            self.requests[self.session, shown.label] = f"q{self._count('q')}"
        self.shown_ids[self.session, shown.label] = shown.id
        written = shown.facts | {"call_id": shown.id, "q": self.requests[self.session, shown.label]}
        tool = self.header.tools.get(shown.tool, {})
        server = {"server": tool["server"]} if tool.get("server") else {}
        return written | {"kind": tool.get("kind", "function"), "agent": tool.get("agent", "main"), **server}

    # --- turns ---

    def _on_send(self, rest: str) -> None:
        self._state.message += 1
        self._add_item("main", {"kind": "user", "text": rest})
        self._turn(rest)

    def _on_go(self, rest: str) -> None:
        self._turn(None)

    def _turn(self, text: str | None) -> None:
        number = self._count("turn")
        self._add(ev.TurnStart(turn=number, text=text, decisions=self.deciding, stream=self.stream))
        self.turns.append(number)
        self.deciding = []

    def _turn_end(self, outcome: str, **facts: Any) -> None:
        turn = self.ending if self.ending is not None else self.turns[-1]
        self.ending = None
        self.turns.remove(turn)
        self.killed = self.killed or (self.fails_once and outcome == "failed")
        self.fails_once = False
        self._add(ev.TurnEnd(turn=turn, outcome=outcome, **facts))

    def _on_pause(self, rest: str) -> None:
        self._turn_end("paused", requests=self._requests(rest))

    def _on_shows(self, rest: str) -> None:
        entries = self._requests(rest)
        for entry in entries:
            del entry["label"]
        self._state.open = []
        self._turn_end("paused", requests=entries)

    def _on_hides(self, rest: str) -> None:
        entries = self._requests(rest)
        for entry in entries:
            del entry["call_id"]
        self._turn_end("paused", requests=entries)

    def _on_finish(self, rest: str) -> None:
        self._state.open = []
        self._turn_end("finished", output=rest)

    def _on_outputs(self, rest: str) -> None:
        self._state.open = []
        self._turn_end("finished", output=parse_pairs(rest))

    def _on_fail(self, rest: str) -> None:
        self._turn_end("failed", error=rest.split(": ", 1))

    def _on_timeout(self, rest: str) -> None:
        self._turn_end("timeout", error=["TimeoutError", ""])

    # --- decisions ---

    def _decide(self, verdict: str, rest: str) -> None:
        label, _, rest_of_line = rest.partition(" ")
        facts: dict[str, Any] = {}
        if verdict == "edit":
            tool, _, arguments = rest_of_line.rstrip(")").partition("(")
            facts = {"arguments": parse_pairs(arguments), "tool": tool or None}
        elif verdict == "raw":
            facts = {"raw": {"verdict": parse_value(rest_of_line)}}
        elif rest_of_line.startswith("as "):
            facts = {"shows": {"arguments": parse_pairs(rest_of_line.removeprefix("as "))}}
        elif rest_of_line:
            facts = {"reason": "" if rest_of_line == '""' else rest_of_line}
        if label.startswith("?"):
            decide = ev.DecisionMade(verdict=verdict, id=label[1:], **facts)
        else:
            q = self.requests.get((self.session, label))
            known = self.shown_ids.get((self.session, label), self._call(label).id)
            decide = ev.DecisionMade(verdict=verdict, q=q, id=known, label=label, **facts)
        self.deciding.append(self._add(decide).n)

    def _on_approve(self, rest: str) -> None:
        self._decide("approve", rest)

    def _on_reject(self, rest: str) -> None:
        self._decide("reject", rest)

    def _on_edit(self, rest: str) -> None:
        self._decide("edit", rest)

    def _on_own(self, rest: str) -> None:
        verdict, _, rest_of_line = rest.partition(" ")
        self._decide(verdict, rest_of_line)
        decide = self.events[-1]
        assert isinstance(decide, ev.DecisionMade)
        decide.own = True

    def _on_always(self, rest: str) -> None:
        self._decide("always", rest)

    def _on_never(self, rest: str) -> None:
        self._decide("never", rest)

    def _on_raw(self, rest: str) -> None:
        self._decide("raw", rest)

    def _on_stage(self, rest: str) -> None:
        self._add(ev.DecisionsStaged(decisions=self.deciding, error=rest.split(": ", 1) if rest else None))
        self.deciding = []

    def _on_cancel(self, rest: str) -> None:
        self._add(ev.PendingCancelled(error=rest.split(": ", 1) if rest else None))
        if not rest:
            self._state.open = []

    def _on_signal(self, rest: str) -> None:
        self._add(ev.SignalSent(name=rest))

    def _on_show(self, rest: str) -> None:
        name, _, rest_of_line = rest.partition(" ")
        label, _, text = ("", "", rest_of_line) if name == "text" else rest_of_line.partition(" ")
        known = self._state.calls.get(label)
        seen = known.id if known else label or None
        self._add(ev.StreamShown(turn=self.turns[-1], what=name, id=seen, text=text or None))

    def _on_skip(self, rest: str) -> None:
        step, colon, why = rest.partition(": ")
        self._add(ev.StepSkipped(step=step if colon else "decide", why=why if colon else rest))

    def _on_stuck(self, rest: str) -> None:
        self._add(ev.CallerStuck(rounds=3, requests=[self.requests[self.session, label] for label in self._state.open]))

    # --- the store and the frame ---

    def _on_save(self, rest: str) -> None:
        name = rest or f"save-{self._count('save')}"
        self.saves[name] = copy.deepcopy(self._state)
        self._add(ev.StateSaved(name=name, mode=self._mode()))

    def _on_unsaved(self, rest: str) -> None:
        self._add(ev.StateSaved(name="lost", mode=self._mode(), error=rest.split(": ", 1)))

    def _on_restore(self, rest: str) -> None:
        name, colon, pending = rest.partition(":")
        name = name.strip() or list(self.saves)[-1]
        # What a killed process has left in a durable store is its present state.
        present = self.killed and self._mode().startswith("native.")
        if not present:
            self.states[self.session] = copy.deepcopy(self.saves[name])
        labels = pending if colon else ", ".join(self._state.open)
        self._restart()
        pending_requests = self._requests(labels)
        self._add(
            ev.StateRestored(name=name, mode=self._mode(), pending=pending_requests, present=True if present else None)
        )
        self.killed = False

    def _restart(self) -> None:
        parameters, renamed = dict(self.parameters) or None, dict(self.renamed) or None
        self._add(ev.AgentStart(tools=list(self.available), how=self.how, parameters=parameters, renamed=renamed))

    def _on_unrestored(self, rest: str) -> None:
        name, _, error = rest.partition(" ")
        self._restart()
        self._add(ev.StateRestored(name=name, mode=self._mode(), error=error.split(": ", 1)))

    def _on_digest(self, rest: str) -> None:
        saved = self.events[-1]
        assert isinstance(saved, ev.StateSaved)
        saved.digest = rest

    def _on_again(self, rest: str) -> None:
        restored = self.events[-1]
        assert isinstance(restored, ev.StateRestored)
        restored.again = rest

    def _on_mode(self, rest: str) -> None:
        self.header.variant["serialize"] = rest

    def _mode(self) -> str:
        return str(self.header.variant.setdefault("serialize", "json"))

    def _on_without(self, rest: str) -> None:
        self.available.remove(rest)

    def _on_takes(self, rest: str) -> None:
        name, declared = parse_tool(f"{rest} never")
        self.parameters[name] = declared["parameters"]

    def _on_renamed(self, rest: str) -> None:
        agent, name = rest.split()
        self.renamed[agent] = name

    def _on_trim(self, rest: str) -> None:
        for items in self._state.items.values():
            del items[: -int(rest)]
        self._add(ev.HistoryTrimmed(keep=int(rest)))

    def _on_rewrite(self, rest: str) -> None:
        old, new, *where = rest.split()
        self._add(
            ev.StateRewritten(name=list(self.saves)[-1], old=old, new=new, where=(where or ["every"])[0], places=1)
        )

    def _on_session(self, rest: str) -> None:
        self.session = rest

    def _on_lost(self, rest: str) -> None:
        self._add(ev.AgentLost(what=rest))

    def _on_unclosed(self, rest: str) -> None:
        self._add(ev.CloseTimeout(what=rest))

    def _on_end(self, rest: str) -> None:
        told, _, pending = rest.partition(":")
        how, _, error = (part.strip() for part in told.partition(","))
        self.session = ""
        labels = pending.strip() or ", ".join(self._state.open)
        listed = [] if labels == "none" else self._requests(labels)
        self._add(ev.RunEnd(how=how or "completed", pending=listed, error=[error, ""] if error else None))
        self.ended = True

    # --- the model ---

    def _on_model(self, rest: str) -> None:
        conversation, rest = _split_conversation(rest)
        m = self._question(conversation)
        texts, calls = [], []
        for part in re.split(r";\s*", rest):
            if CALL_PATTERN.match(part):
                calls.append(self._call(part, conversation=conversation))
            elif part:
                texts.append(part)
        say = "; ".join(texts) or None
        hosted, self.reported = self.reported, []
        thoughts, self.thoughts = self.thoughts, []
        written = [call.facts | self._kind(call.tool) for call in calls]
        self._add(
            ev.ModelAnswer(
                m=m, conversation=conversation, thoughts=thoughts or None, say=say, calls=written, hosted=hosted
            )
        )
        self._state.message += 1
        for report in hosted:
            seen = self._call(report["label"])
            item = {"kind": "hosted_result", "id": seen.id, "tool": seen.tool, "text": report["output"]}
            self._add_item(conversation, item)
        self._add_reasoning(conversation, thoughts, None)
        if say is not None:
            self._add_item(conversation, {"kind": "say", "text": say})
        for call in calls:
            self._add_reasoning(conversation, thoughts, call.label)
            kind = "approval_request" if self._kind(call.tool)["kind"] == "hosted_mcp" else "call"
            item = {"kind": kind, "id": call.id, "tool": call.tool, "arguments": call.arguments}
            self._add_item(conversation, item)

    def _on_agent(self, rest: str) -> None:
        self.agent = rest

    def _on_think(self, rest: str) -> None:
        match = re.fullmatch(r"(\w+)(?: before (\S+))?: (.*)", rest)
        assert match is not None
        thought = {"id": match[1], "text": match[3], "signature": f"signed {match[1]}", "before": match[2]}
        if match[3] == "...":
            del thought["text"]
        if self.header.variant.get("protocol") == "chat":
            del thought["signature"]
        self.thoughts.append({name: value for name, value in thought.items() if value is not None})

    def _add_reasoning(self, conversation: str, thoughts: list[dict[str, Any]], before: str | None) -> None:
        for thought in thoughts:
            if thought.get("before") == before:
                written = {name: thought.get(name) for name in ("id", "text", "signature")}
                self._add_item(conversation, {"kind": "reasoning", **written})

    def _find_reasoning(self, name: str) -> tuple[list[dict[str, Any]], int]:
        """Return the items that hold a piece of reasoning, and its index."""
        for items in self._state.items.values():
            for index, item in enumerate(items):
                if (item["kind"], item.get("id")) == ("reasoning", name):
                    return items, index
        raise KeyError(name)

    def _on_unthink(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        del items[index]

    def _on_rethink(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        items, index = self._find_reasoning(name)
        items[index]["text"] = text

    def _on_unsign(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        del items[index]["signature"]

    def _on_advance(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        items[index - 1], items[index] = items[index], items[index - 1]

    def _on_resign(self, rest: str) -> None:
        name, _, signature = rest.partition(" ")
        items, index = self._find_reasoning(name)
        items[index]["signature"] = signature

    def _on_unname(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        del items[index]["id"]

    def _on_repeat(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        items.insert(index, dict(items[index]))

    def _on_defer(self, rest: str) -> None:
        items, index = self._find_reasoning(rest)
        items[index], items[index + 1] = items[index + 1], items[index]

    def _on_answers(self, rest: str) -> None:
        m = self._question("main")
        self._add(ev.ModelAnswer(m=m, conversation="main", answer=parse_pairs(rest)))

    def _kind(self, tool: str) -> dict[str, Any]:
        declared = self.header.tools.get(tool, {})
        server = {"server": declared["server"]} if declared.get("server") else {}
        return {"kind": declared.get("kind", "function"), **server}

    def _question(self, conversation: str) -> int:
        m, agent = self._count("m"), conversation.rpartition("/")[2] if "/" in conversation else self.agent
        if conversation not in self._state.items and "/" in conversation:
            outer = self._state.calls[conversation.rpartition("/")[0]]
            self._add_item(conversation, {"kind": "user", "text": outer.arguments["input"]})
        # A copy, because later lines change the items in place.
        items = copy.deepcopy(self._state.items.get(conversation, []))
        own = [name for name in self.available if self.header.tools[name].get("agent", "main") == agent]
        tools, self.offered = [name.rpartition("/")[2] for name in own] if self.offered is None else self.offered, None
        self._add(ev.ModelRequest(m=m, conversation=conversation, agent=agent, items=items, tools=tools))
        return m

    def _on_offers(self, rest: str) -> None:
        self.offered = [name for name in rest.split(", ") if name]

    def _on_down(self, rest: str) -> None:
        conversation, rest = _split_conversation(rest)
        m = self._question(conversation)
        status, shown = (0, 1) if rest == "broken" else (int(rest), None)
        self._add(ev.ModelFailure(m=m, conversation=conversation, status=status, shown=shown))

    def _on_refusal(self, rest: str) -> None:
        m = self._question("main")
        self._add(ev.ModelRefusal(m=m, conversation="main", broken=[{"rule": rest, "ids": [], "text": rest}]))

    def _on_exhausted(self, rest: str) -> None:
        m = self._question("main")
        self._add(ev.ModelExhausted(m=m, conversation="main", limit=int(rest) if rest else None))

    def _on_hosted(self, rest: str) -> None:
        call, _, output = rest.partition(" -> ")
        seen = self._call(call)
        x = self._count("x")
        self._add(ev.ToolStart(x=x, tool=seen.tool, arguments=seen.arguments, call_id=seen.id, by="provider"))
        self._add(ev.ToolEnd(x=x, result=output))
        self.reported.append({"label": seen.label, "output": output})

    def _on_respond(self, rest: str) -> None:
        label, approved, *reason = rest.split(" ", 2)
        self._state.message += 1
        item = {"kind": "approval_response", "id": self._call(label).id, "approved": approved == "yes"}
        if reason:
            item["text"] = reason[0]
        self._add_item("main", item)

    def _on_tell(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        call = self._call(label)
        self._state.message += 1
        kind = "hosted_result" if self._kind(call.tool)["kind"] == "hosted_mcp" else "result"
        self._add_item(self._conversation(call.label), {"kind": kind, "id": call.id, "text": text})

    def _on_untell(self, rest: str) -> None:
        self._drop(rest, ("result", "hosted_result"))

    def _on_forget(self, rest: str) -> None:
        self._drop(rest, ("call", "result"))

    def _drop(self, label: str, kinds: tuple[str, ...]) -> None:
        items = self._state.items[self._conversation(label)]
        seen = self._id(label)
        items[:] = [item for item in items if not (item["kind"] in kinds and item.get("id") == seen)]

    def _on_rename(self, rest: str) -> None:
        label, _, seen = rest.partition(" ")
        call = self._state.calls[label]
        for item in self._state.items[self._conversation(label)]:
            if item["kind"] == "call" and (item.get("id"), item["arguments"]) == (call.id, call.arguments):
                item["id"] = seen
        self._state.names[label] = seen

    def _on_twice(self, rest: str) -> None:
        call = self._call(rest)
        item = {"kind": "call", "id": call.id, "tool": call.tool, "arguments": call.arguments}
        self._add_item(self._conversation(rest), item)

    def _on_split(self, rest: str) -> None:
        self._state.message += 1
        for item in self._state.items[self._conversation(rest)]:
            if item["kind"] == "call" and item.get("id") == self._id(rest):
                item["message"] = self._state.message

    def _on_drop(self, rest: str) -> None:
        conversation, rest = _split_conversation(rest)
        kind, _, text = rest.partition(" ")
        items = self._state.items[conversation]
        items[:] = [item for item in items if (item["kind"], item.get("text")) != (kind, text)]

    def _on_change(self, rest: str) -> None:
        label, _, arguments = rest.partition(" ")
        call = CALL_PATTERN.match(rest)
        for item in self._state.items[self._conversation(label)]:
            if item["kind"] in ("call", "approval_request") and item.get("id") == self._id(label):
                item["arguments"] = parse_pairs(arguments if call is None else call["arguments"])
                item["tool"] = item["tool"] if call is None else call["tool"]

    def _on_user(self, rest: str) -> None:
        self._add_message("user", rest)

    def _on_remind(self, rest: str) -> None:
        self._add_message("other", rest)

    def _add_message(self, kind: str, rest: str) -> None:
        conversation, text = _split_conversation(rest)
        self._state.message += 1
        self._add_item(conversation, {"kind": kind, "text": text})

    def _on_instruct(self, rest: str) -> None:
        items = self._state.items.setdefault("main", [])
        items[:] = [item for item in items if item["kind"] != "other"]
        if rest:
            items.insert(0, {"kind": "other", "text": rest, "message": 0})

    def _on_say(self, rest: str) -> None:
        self._state.message += 1
        self._add_item("main", {"kind": "say", "text": rest})

    # --- tools ---

    def _on_run(self, rest: str) -> None:
        if rest.endswith("??"):
            self._end_tool(self._on_start(rest[:-2]), how="asked")
            self._state.open = [label for label in self._state.open if label != rest.split(" ")[0]]
        elif " !! " in rest:
            call, _, text = rest.partition(" !! ")
            self._end_tool(self._on_start(call), how="raised", error=["ToolRaised", text])
        else:
            call, _, text = rest.partition(" -> ")
            self._on_returns(f"{self._on_start(call)} {text}")

    def _on_asks(self, rest: str) -> None:
        self._end_tool(self._on_start(rest, real=True), how="asked")
        self._state.open = [label for label in self._state.open if label != rest.split(" ")[0]]

    def _on_reenter(self, rest: str) -> None:
        call, _, text = rest.removesuffix(" ??").partition(" -> ")
        resumes = self.asked[self._call(call).label]
        if rest.endswith(" ??"):
            self._end_tool(self._on_start(call, resumes=resumes, real=True), how="asked")
        else:
            self._on_returns(f"{self._on_start(call, resumes=resumes)} {text}")

    def _on_start(self, rest: str, **facts: Any) -> str:
        call = self._call(rest)
        x = self._count("x")
        self.running.setdefault(call.label, []).append(x)
        agent = self.header.tools.get(call.tool, {}).get("agent", "main")
        self._add(ev.ToolStart(x=x, tool=call.tool, arguments=call.arguments, call_id=call.id, agent=agent, **facts))
        return call.label

    def _on_returns(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, result=text)
        if label in self._state.calls:
            self._on_tell(f"{label} {text}")

    def _on_gives(self, rest: str) -> None:
        label, _, value = rest.partition(" ")
        self._end_tool(label, result=parse_value(value))

    def _on_raises(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, how="raised", error=["ToolRaised", text])

    def _end_tool(self, label: str, **facts: Any) -> None:
        x = self.running[label].pop()
        if facts.get("how") == "asked":
            self.asked[label] = x
        self._add(ev.ToolEnd(x=x, **facts))

    def _on_elicit(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        message, _, url = text.partition(" at ")
        self._add(ev.ElicitationAsked(x=self.running[label][-1], message=message, url=url or None))

    def _on_asked(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        asked, _, answer = text.partition(" -> ")
        message, _, url = asked.partition(" at ")
        action, _, content = answer.partition(" ")
        self._add(
            ev.ElicitationShown(
                x=None if label == "?" else self.running[label][-1],
                message=message,
                url=url or None,
                action=action,
                content=parse_pairs(content) if content else None,
            )
        )

    def _on_elicited(self, rest: str) -> None:
        label, action, *more = rest.split(" ", 2)
        facts: dict[str, Any] = {}
        if more:
            facts = {"error": more[0]} if action == "refuse" else {"content": parse_pairs(more[0])}
        self._add(ev.ElicitationAnswered(x=self.running[label][-1], action=action, **facts))

    def _on_gate(self, rest: str) -> None:
        written, _, answer = rest.rpartition(" ")
        call = self._call(written)
        facts: dict[str, Any] = {"raised": "no"} if answer == "raises" else {"answer": answer == "yes"}
        self._add(ev.PolicyAsked(tool=call.tool, arguments=call.arguments, call_id=call.id, **facts))

    # --- lines that write several events ---

    def _on_done(self, rest: str) -> None:
        self._on_model("Done.")
        self._on_finish("Done.")

    def _on_hangup(self, rest: str) -> None:
        label, _, goes_on = rest.partition(" ")
        cut = ev.CallerHungUp(turn=self.turns[-1], place=f"started {label}" if label else "model")
        # A server does not notice that nobody waits for it any more.
        running, self.running = self.running, {} if goes_on == "runs" else self.running
        error = ["CallerGone", "the caller hung up"] if goes_on != "ends" else None
        self._cut_off(cut, error, asks=not label)
        self.running = running

    def _on_crash(self, rest: str) -> None:
        self.killed = True
        cut = ev.AgentKilled(turn=self.turns[-1], place=rest or "model")
        self._cut_off(cut, ["ProcessKilled", "the process of the agent was killed"], asks=not rest)

    def _on_full(self, rest: str) -> None:
        self.killed = True
        self._add(ev.DiskFull(turn=self.turns[-1], place=f"write {rest}".rstrip()))

    def _on_once(self, rest: str) -> None:
        self.fails_once = True
        self._add(ev.DiskFull(turn=self.turns[-1], place=f"write {rest}".rstrip(), once=True))

    def _on_lose(self, _: str) -> None:
        self._roll_back("lost")

    def _on_stale(self, _: str) -> None:
        self._roll_back("stale")

    def _roll_back(self, how: str) -> None:
        self.killed = False
        self._add(ev.StoreRolledBack(turn=self.counts["turn"], how=how))

    def _on_stop(self, rest: str) -> None:
        self._add(ev.AgentStopped(turn=self.turns[-1], place=rest))

    def _on_wake(self, rest: str) -> None:
        self._add(ev.AgentWoken(turn=int(rest)))

    def _cut_off(self, cut: ev.Event, error: list[str] | None, *, asks: bool) -> None:
        m = self._question("main") if asks else None
        self._add(cut)
        if m is not None:
            self._add(ev.ModelFailure(m=m, conversation="main", status=0, how="hung_up"))
        for label, running in self.running.items():
            while running:
                self._end_tool(label, how="cancelled")
        if error is not None:
            self._turn_end("failed", error=error)

    def finish(self) -> list[ev.Event]:
        """Return all events, with the end of the run if no line wrote it."""
        if not self.ended:
            self._on_end("completed")
        return self.events


def _split_conversation(rest: str) -> tuple[str, str]:
    """Return the conversation that a line names with `@NAME`, by default the main one, and the rest of the line."""
    if not rest.startswith("@"):
        return "main", rest
    conversation, _, rest = rest[1:].partition(" ")
    return conversation, rest
