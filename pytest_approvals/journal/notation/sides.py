"""The lines of the other sides: what models are asked and say, and what tools do."""

from __future__ import annotations

import copy
import re
from typing import Any

from pytest_approvals.journal import events as ev

from .scribe import Scribe
from .words import CALL, arguments_of, value_of


class SideLines(Scribe):
    """Writes what models and tools do, and what the next input of a model holds."""

    # --- the model ---

    def on_model(self, rest: str) -> None:
        conversation = "main"
        if rest.startswith("@"):
            conversation, _, rest = rest[1:].partition(" ")
        m = self._question(conversation)
        texts, calls = [], []
        for part in re.split(r";\s*", rest):
            if CALL.match(part):
                calls.append(self._call(part, conversation=conversation))
            elif part:
                texts.append(part)
        say = "; ".join(texts) or None
        hosted, self.reported = self.reported, []
        written = [call.facts | self._kind(call.tool) for call in calls]
        self.add(ev.ModelAnswer(m=m, conversation=conversation, say=say, calls=written, hosted=hosted))
        self.state.message += 1
        if say is not None:
            self.item(conversation, {"kind": "say", "text": say})
        for call in calls:
            kind = "approval_request" if self._kind(call.tool)["kind"] == "hosted_mcp" else "call"
            item = {"kind": kind, "id": call.id, "tool": call.tool, "arguments": call.arguments}
            self.item(conversation, item)

    def on_answers(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelAnswer(m=m, conversation="main", answer=arguments_of(rest)))

    def _kind(self, tool: str) -> dict[str, Any]:
        declared = self.header.tools.get(tool, {})
        server = {"server": declared["server"]} if declared.get("server") else {}
        return {"kind": declared.get("kind", "function"), **server}

    def _question(self, conversation: str) -> int:
        m, agent = self.count("m"), conversation.rpartition("/")[2]
        if conversation not in self.state.items and "/" in conversation:
            outer = self.state.calls[conversation.rpartition("/")[0]]
            self.item(conversation, {"kind": "user", "text": outer.arguments["input"]})
        items = copy.deepcopy(self.state.items.get(conversation, []))
        tools = list(self.available)
        self.add(ev.ModelRequest(m=m, conversation=conversation, agent=agent, items=items, tools=tools))
        return m

    def on_down(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelFailure(m=m, conversation="main", status=int(rest)))

    def on_refusal(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelRefusal(m=m, conversation="main", broken=[{"rule": rest, "ids": [], "text": rest}]))

    def on_exhausted(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelExhausted(m=m, conversation="main", limit=int(rest) if rest else None))

    def on_hosted(self, rest: str) -> None:
        call, _, output = rest.partition(" -> ")
        seen = self._call(call)
        x = self.count("x")
        self.add(ev.ToolStart(x=x, tool=seen.tool, arguments=seen.arguments, call_id=seen.id, by="provider"))
        self.add(ev.ToolEnd(x=x, result=output))
        self.reported.append({"label": seen.label, "output": output})

    def on_respond(self, rest: str) -> None:
        label, _, approved = rest.partition(" ")
        self.state.message += 1
        item = {"kind": "approval_response", "id": self._call(label).id, "approved": approved == "yes"}
        self.item("main", item)

    def on_tell(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        call = self._call(label)
        self.state.message += 1
        self.item(self._conversation(call.label), {"kind": "result", "id": call.id, "text": text})

    def on_untell(self, rest: str) -> None:
        self._drop(rest, ("result",))

    def on_forget(self, rest: str) -> None:
        self._drop(rest, ("call", "result"))

    def _drop(self, label: str, kinds: tuple[str, ...]) -> None:
        items = self.state.items[self._conversation(label)]
        seen = self._id(label)
        items[:] = [item for item in items if not (item["kind"] in kinds and item.get("id") == seen)]

    def on_rename(self, rest: str) -> None:
        label, _, seen = rest.partition(" ")
        call = self.state.calls[label]
        for item in self.state.items[self._conversation(label)]:
            if item["kind"] == "call" and (item.get("id"), item["arguments"]) == (call.id, call.arguments):
                item["id"] = seen
        self.state.names[label] = seen

    def on_twice(self, rest: str) -> None:
        call = self._call(rest)
        item = {"kind": "call", "id": call.id, "tool": call.tool, "arguments": call.arguments}
        self.item(self._conversation(rest), item)

    def on_split(self, rest: str) -> None:
        self.state.message += 1
        for item in self.state.items[self._conversation(rest)]:
            if item["kind"] == "call" and item.get("id") == self._id(rest):
                item["message"] = self.state.message

    def on_drop(self, rest: str) -> None:
        kind, _, text = rest.partition(" ")
        items = self.state.items["main"]
        items[:] = [item for item in items if (item["kind"], item.get("text")) != (kind, text)]

    def on_change(self, rest: str) -> None:
        label, _, arguments = rest.partition(" ")
        for item in self.state.items[self._conversation(label)]:
            if item["kind"] == "call" and item.get("id") == self._id(label):
                item["arguments"] = arguments_of(arguments)

    def on_user(self, rest: str) -> None:
        self.state.message += 1
        self.item("main", {"kind": "user", "text": rest})

    def on_say(self, rest: str) -> None:
        self.state.message += 1
        self.item("main", {"kind": "say", "text": rest})

    # --- tools ---

    def on_run(self, rest: str) -> None:
        if rest.endswith("??"):
            self._end_tool(self.on_start(rest[:-2]), how="asked")
            self.state.open = [label for label in self.state.open if label != rest.split(" ")[0]]
        elif " !! " in rest:
            call, _, text = rest.partition(" !! ")
            self._end_tool(self.on_start(call), how="raised", error=["ToolRaised", text])
        else:
            call, _, text = rest.partition(" -> ")
            self.on_returns(f"{self.on_start(call)} {text}")

    def on_start(self, rest: str) -> str:
        call = self._call(rest)
        x = self.count("x")
        self.running.setdefault(call.label, []).append(x)
        agent = self.header.tools.get(call.tool, {}).get("agent", "main")
        self.add(ev.ToolStart(x=x, tool=call.tool, arguments=call.arguments, call_id=call.id, agent=agent))
        return call.label

    def on_returns(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, result=text)
        if label in self.state.calls:
            self.on_tell(f"{label} {text}")

    def on_gives(self, rest: str) -> None:
        label, _, value = rest.partition(" ")
        self._end_tool(label, result=value_of(value))

    def on_raises(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, how="raised", error=["ToolRaised", text])

    def _end_tool(self, label: str, **facts: Any) -> None:
        self.add(ev.ToolEnd(x=self.running[label].pop(), **facts))

    def on_gate(self, rest: str) -> None:
        label, _, said = rest.partition(" ")
        call = self._call(label)
        facts: dict[str, Any] = {"raised": "no"} if said == "raises" else {"answer": said == "yes"}
        self.add(ev.Gate(tool=call.tool, arguments=call.arguments, call_id=call.id, **facts))
