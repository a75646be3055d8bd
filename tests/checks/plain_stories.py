"""Stories by a generator that shares nothing with `scenario/generation`: documents, written as somebody else would.

It draws from what the page about scenarios says, and knows no feature, no profile and no grammar of the package, whose
blind spots it would share. So a story of it may be invalid, or go another way than it says.
"""

from __future__ import annotations

from random import Random
from typing import Any

Document = dict[str, Any]

RESULTS: list[Any] = [0, 1, -1, 5.5, True, False, 2**53 + 1, 2**63, [], {}, [1, [2]], {"k": {"v": None}}]
TEXTS = ["", "x", "ü", "e\u0301", "שלום", "a'b\"c", "{x}", "null", "true", "lorem " * 200, "line\nline", "100%"]
NOTES: dict[str, list[Any]] = {
    "string?": TEXTS,
    "array?": [[], [1, [2]], [None, ""], [True, 1, 1.5]],
    "object?": [{}, {"a": {"b": []}}, {"k": None}],
    "number?": [0, 1.5, -3, 2**53 + 1, 10**15],
    "boolean?": [True, False],
}
FAILURES: list[Document] = [
    *({"fails": what} for what in (500, 429, "disconnect", "timeout", "truncated", "garbled")),
    {"say": "It breaks here", "breaks_after": 1},
]


def write_story(seed: int) -> Document:
    """Return the document of a story; equal seeds, equal stories."""
    return _Writer(Random(seed)).write()


class _Writer:
    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.number = 100
        self.calls = 0
        self.tools: Document = {}
        self.labels: list[str] = []
        self.ids: list[str] = []
        self.saves: list[str] = []
        self.inner: list[Document] = []

    def write(self) -> Document:
        names = ["pay", "look", "wipe", "mail"][: self.draw.randint(1, 4)]
        self.tools = {name: self.tool(name) for name in names}
        self.names = names
        if self.happens(0.2):
            self.tools["ask_aide"] = {"runs": "aide", **({"approval": "always"} if self.happens(0.3) else {})}
            self.tools["aide/dig"] = self.tool("dig", is_inner=True)
            self.inner = [
                {"id": f"n{at}", "tool": "dig", "arguments": {"amount": self.fresh()}}
                for at in range(self.draw.randint(1, 2))
            ]
        script = [{"calls": [self.call() for _ in range(self.draw.choice([1, 1, 2, 3]))]}]
        script += [self.reply() for _ in range(self.draw.randint(0, 4))]
        script += [{"say": f"End {self.fresh()}."} for _ in range(self.draw.randint(1, 3))]
        story = {"title": f"Story {self.fresh()}", "tools": self.tools, "model": script, "caller": self.steps()}
        if self.inner:
            story["agents"] = {"aide": {"model": [{"calls": self.inner}, {"say": f"Dug {self.fresh()}."}]}}
        return self.vary(story)

    def happens(self, chance: float) -> bool:
        return self.draw.random() < chance

    def fresh(self) -> int:
        self.number += self.draw.randint(1, 3)
        return self.number

    # --- tools and the model ---

    def tool(self, name: str, *, is_inner: bool = False) -> Document:
        tool: Document = {"parameters": {"amount": "integer"}}
        if self.happens(0.4):
            tool["parameters"]["note"] = self.draw.choice([*NOTES])
        limit = {
            "argument": "amount",
            self.draw.choice(["greater_than", "less_than"]): self.draw.choice([105, 110, 120]),
        }
        answers = {"answers": [self.happens(0.5) for _ in range(self.draw.randint(1, 3))]}
        gates: list[Any] = [*["always"] * 12, limit, limit, answers, {"raises": "the policy is down"}, "never", "never"]
        tool["approval"] = self.draw.choice(gates)
        result = self.draw.choice([*RESULTS, f"{name} did {{amount}}", {"done": name, "n": "{amount}"}])
        behaviours: list[Document] = [
            *[{"returns": result}] * 6,
            {},
            {"raises": f"{name} broke"},
            {"does": [{"raises": "busy"}, {"returns": "late {amount}"}]},
        ]
        tool |= self.draw.choice(behaviours)
        if self.happens(0.1) and not is_inner and "does" not in tool and "raises" not in tool:
            tool |= {"asks_again": "Sure?", "returns": f"{name} sure {{amount}}"}
        elif self.happens(0.2) and not is_inner and "does" not in tool:
            kind = self.draw.choice(["hosted_mcp", "hosted_mcp", "mcp"])
            tool |= {"kind": kind, "server": self.draw.choice(["web", "papers"])}
            if tool["approval"] != "never":
                tool["approval"] = "always"
        return tool

    def call(self) -> Document:
        self.calls += 1
        label = f"c{self.calls}"
        if self.inner and self.happens(0.35) and not any(known.startswith("o") for known in self.labels):
            self.labels += [f"o{self.calls}", *(f"o{self.calls}/{inner['id']}" for inner in self.inner)]
            return {"id": f"o{self.calls}", "tool": "ask_aide", "arguments": {"input": f"dig {self.fresh()}"}}
        name = self.draw.choice(self.names)
        arguments: Document = {"amount": self.fresh()}
        note = self.tools[name]["parameters"].get("note")
        if note and self.happens(0.7):
            arguments["note"] = self.draw.choice(NOTES[note])
        call: Document = {"id": label, "tool": name, "arguments": arguments}
        odd = self.draw.random()
        if odd < 0.04:
            call |= {"tool": f"{name}x", "unknown_tool": True}
        elif odd < 0.09:
            call |= {"arguments": {"amount": self.draw.choice(["much", [], None])}, "invalid": True}
        elif odd < 0.12:
            call["arguments"] = self.draw.choice(['{"amount": ', "[]", "", "nonsense"])
        elif odd < 0.15 and self.ids:
            call |= {"id": self.draw.choice(self.ids), "repeats": True, "label": label}
        elif odd < 0.17:
            call |= {"id": None, "label": label}
        else:
            self.ids.append(label)
        self.labels.append(label)
        return call

    def reply(self) -> Document:
        kind = self.draw.random()
        if kind >= 0.85:
            return dict(self.draw.choice(FAILURES))
        if kind >= 0.62:
            reply: Document = {"say": f"{self.draw.choice(['Well.', 'Done.', 'Hm: {x}'])} {self.fresh()}"}
        else:
            reply = {"calls": [self.call() for _ in range(self.draw.choice([1, 1, 1, 2, 2, 3]))]}
            if self.happens(0.2):
                reply["say"] = f"Now {self.fresh()}."
        if self.happens(0.12):
            reply["thinks"] = f"Thought {self.fresh()}."
        return reply

    # --- the caller ---

    def answer(self, label: str) -> Any:
        raw = {"raw": self.draw.choice(["yes", 1, None, {}, [], "true", 0, False])}
        copy = {"verdict": "approve", "source": self.draw.choice(["held", "rebuilt", "restored"])}
        answers: list[Any] = [*["approve"] * 8, "reject", "reject", {"reject": f"no {self.fresh()}"}]
        answers += [{"reject": f"no {self.fresh()}"}, "always", "never", raw, copy]
        if label.startswith("c"):
            answers += [{"edit": {"amount": self.fresh()}}] * 2
        return self.draw.choice(answers)

    def decisions(self) -> Any:
        labels = self.draw.sample(self.labels, self.draw.randint(1, min(3, len(self.labels))))
        if not self.happens(0.15):
            return {label: self.answer(label) for label in labels}
        listed: list[Document] = [{label: self.answer(label)} for label in labels]
        others: list[Document] = [
            {labels[0]: self.answer(labels[0])},
            {"unknown": f"r-{self.fresh()}", "verdict": "approve"},
            {"malformed": self.draw.choice([[], "x", {"id": 1}]), "verdict": "approve"},
        ]
        return listed + [other for other in others if self.happens(0.35)]

    def turn(self) -> Document:
        turns: list[Document] = [
            *[{"decide": self.decisions()}] * 5,
            *[{"send": f"More {self.fresh()}"}] * 2,
            {"go_on": True},
            {"send": f"With {self.fresh()}", "decide": self.decisions()},
        ]
        return dict(self.draw.choice(turns))

    def step(self) -> Document:
        kind = self.draw.random()
        if kind < 0.6:
            turn = self.turn()
            if self.happens(0.07):
                turn["hangs_up"] = self.draw.choice(["model", f"started {self.draw.choice(self.labels)}"])
            return turn
        if kind < 0.68:
            return {"oracle": self.draw.choice([True, 1, 2])}
        if kind < 0.8 and self.saves and self.happens(0.5):
            return {"restore": self.draw.choice(self.saves)}
        if kind < 0.8:
            self.saves.append(f"s{len(self.saves)}")
            return {"save": self.saves[-1]}
        old, new = str(self.draw.randint(101, self.number)), str(self.fresh())
        steps: list[Document] = [
            *[{"stage": self.decisions()}] * 3,
            *[{"restart": True}] * 2,
            {"restart": {"without": [self.names[0]]}},
            {"restart": {"parameters": {self.names[0]: {"amount": "string"}}}},
            *[{"cancel": True}] * 2,
            {"together": [self.turn(), self.turn()]},
            {"rewrite": {"old": old, "new": new}},
            {"trim": self.draw.randint(1, 4)},
        ]
        return self.draw.choice(steps)

    def steps(self) -> list[Document]:
        steps: list[Document] = [{"send": f"Go {self.fresh()}"}]
        steps += [self.step() for _ in range(self.draw.randint(1, 6))]
        if self.happens(0.15):
            for step in steps[1:]:
                if step.keys() & {"send", "go_on", "decide"} and self.happens(0.5):
                    step["session"] = "bob"
        return [*steps, {"leave": True}] if self.happens(0.12) else steps

    # --- other shapes ---

    def vary(self, story: Document) -> Document:
        kind = self.draw.random()
        if kind < 0.1:
            self.end_with_objects(story)
        elif kind < 0.2:
            self.hand_over(story)
        elif kind < 0.26:
            del story["caller"]
            story["prompt"] = f"Go {self.fresh()}"
        elif kind < 0.31:
            limit = self.draw.choice(["model_replies", "tool_calls"])
            story["limits"] = {limit: self.draw.randint(1, 3)}
        return story

    def end_with_objects(self, story: Document) -> None:
        story["answer"] = {"total": "integer", "note": "string?"}
        wrong = {"answer": {"total": "much"}, "invalid": True}
        for at, reply in enumerate(story["model"]):
            if "say" in reply and not reply.keys() & {"calls", "breaks_after"}:
                right = {"answer": {"total": self.fresh()}}
                story["model"][at] = self.draw.choice([right, right, wrong])
        story["model"] += [{"answer": {"total": self.fresh()}}, {"answer": {"total": self.fresh()}}]

    def hand_over(self, story: Document) -> None:
        self.tools["to_clerk"] = {"hands_over_to": "clerk"} | ({"approval": "always"} if self.happens(0.4) else {})
        self.tools["clerk/fix"] = self.tool("fix", is_inner=True)
        calls = [
            {"id": f"k{at}", "tool": "clerk/fix", "arguments": {"amount": self.fresh()}}
            for at in range(self.draw.randint(1, 2))
        ]
        story["model"].insert(0, {"calls": [{"id": "t1", "tool": "to_clerk"}]})
        story["model"][-1:] = [{"calls": calls}, {"say": f"Fixed {self.fresh()}."}, {"say": f"End {self.fresh()}."}]
