"""Draft of a drawn story: its features, and values, arguments and calls that no other part of it has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.scenario.generation.choices import IMPLIED_FEATURES, NEEDS_REQUESTS, Choices, chance, pick
from pytest_approvals.scenario.generation.features import can_stand_together
from pytest_approvals.scenario.model import Call, Script, ScriptedReply, Tool
from pytest_approvals.scenario.vocabulary import ANY_STORE

FIRST_MESSAGES = {"": "Go ahead.", "bob": "Hello."}
"""First message of each session."""

MESSAGES = ("Thank you.", "And now?", "One more thing.", "Is it done?", "What is next?", "Go on.")

BANK, POLICY = "the bank opens", "the policy"
"""Signals that tools and policies wait for."""

WORDS = ("ann", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy")

EDGES: dict[str, tuple[Any, ...]] = {
    "beyond_2_53": (2**53 + 1, 2**53 + 3, -(2**53) - 1),
    "beyond_2_63": (2**63, 2**64 + 1, -(2**63) - 1, 10**30),
    "negative_number": (-1, -7),
    "fraction": (0.1, 1e-7, 2.5),
    "decomposed_letters": ("Zoe\u0308", "e\u0301te\u0301"),
    "right_to_left": ("\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627"),
    "astral_letters": ("\U0001f642", "\U0001d54f"),
    "control_characters": ("a\tb", "a\x00b", "a\u2028b"),
    "quotes_and_braces": ('say "hi"', "a\\b", '{"a": 1}', "it's </tool>"),
    "long_text": ("long " * 1000,),
    "empty_text": ("",),
    "text_like_a_value": ("false", "1e5", "null", "[1]", "no"),
    "true_beside_1": (True,),
    "nested_object": ({"deep": {"deeper": {"deepest": [1, {"x": "y"}]}}},),
    "null": ({"note": None},),
    "array": ([1, "two", [3]], []),
}
"""Values by feature, the plainest first."""

EDGE_TYPES: dict[str, str] = {
    "beyond_2_53": "integer",
    "beyond_2_63": "integer",
    "negative_number": "integer",
    "fraction": "number",
    "true_beside_1": "boolean",
    "nested_object": "object",
    "null": "object",
    "array": "array",
}
"""Types of the parameters that take a feature's values; all others are texts."""

_SCALARS = ("boolean", "integer", "number")


class StoryDraft:
    """Story while it is written: what it has to have, and what it has already.

    Attributes:
        due: Features that the story does not have yet.
        core: How many replies of the main agent the whole story needs.
        inner: The name of the gated tool of the agent that a tool runs.
    """

    def __init__(self, choices: Choices, features: Sequence[str], capabilities: frozenset[str] | None) -> None:
        self.choices = choices
        # Where a limit keeps the second call from being made, the first one would wait for ever.
        limited = {"limit_model_replies", "limit_tool_calls"} & set(features)
        features = [name for name in features if not (limited and name == "waits_for_call")]
        if "crashes" in features:
            features = [name for name in features if can_stand_together(name, "crashes")]
        features = list(dict.fromkeys(name for one in features for name in (one, *IMPLIED_FEATURES.get(one, ()))))
        self.features = frozenset(features)
        self.due = dict.fromkeys(features)
        self.capabilities = capabilities
        self.tools: dict[str, Tool] = {}
        self.agents: dict[str, Script] = {}
        self.numbers = 0
        self.identities: set[Any] = set()
        self.broken_texts = ['{"amount": ', "not json", "[1, 2]", "", "null"]
        self.ids = 0
        self.edges = [name for name in features if name in EDGES]
        self.core = 0
        self.inner = "wire"

    def allows(self, capability: str) -> bool:
        """Return whether the agent has a capability."""
        return self.capabilities is None or capability in self.capabilities

    @property
    def has_store(self) -> bool:
        """Whether the agent has a durable store, and the story does not keep its state elsewhere."""
        if {"pinned_store", "rewrite"} & {*self.features}:
            return False
        return self.capabilities is None or any(name.startswith(f"{ANY_STORE}.") for name in self.capabilities)

    def takes(self, feature: str, percent: int = 30) -> bool:
        """Return whether to use a feature here: the first time if it is wanted, then by chance."""
        if feature not in self.features:
            return False
        if feature in self.due:
            del self.due[feature]
            return True
        return chance(self.choices, percent)

    def next_number(self) -> int:
        """Return a number that no argument has yet."""
        self.numbers += 1
        return self.numbers

    def draw_arguments(self, tool: Tool) -> dict[str, Any]:
        """Return arguments that fit a tool and that no other call has."""
        arguments: dict[str, Any] = {}
        for position, (name, parameter) in enumerate(tool.parameters.items()):
            if not parameter.required and not chance(self.choices, 40):
                continue
            value = self.draw_value(parameter.type, identifies=position == 0)
            if position == 0:
                # Edge values with a number may meet others, and an edit may take what no call has.
                while value in self.identities:
                    number = self.next_number()
                    value = value + number if isinstance(value, (int, float)) else f"{value}{number}"
                self.identities.add(value)
            arguments[name] = value
        return arguments

    def draw_value(self, kind: str, *, identifies: bool) -> Any:
        """Return a value of a type.

        Args:
            kind: The type of the parameter or field.
            identifies: Whether the value tells its call apart.
        """
        edge = next((name for name in self.edges if EDGE_TYPES.get(name, "string") == kind and name in self.due), None)
        fitting = [name for name in self.edges if EDGE_TYPES.get(name, "string") == kind]
        if edge is None and fitting and chance(self.choices, 40):
            edge = pick(self.choices, fitting)
        # One empty text tells a call apart, a second one does not.
        if edge is not None and not (identifies and edge == "empty_text" and edge not in self.due):
            self.due.pop(edge, None)
            value = pick(self.choices, EDGES[edge])
            if not identifies:
                return value
            number = self.next_number()
            if edge == "text_like_a_value":
                return f"00{number}"
            if kind == "integer":
                return value + number if value > 0 else value - number
            return f"{value}{number}" if value else value
        if kind == "integer" and "true_beside_1" in self.features and 1 not in self.identities:
            return 1
        number = self.next_number()
        match kind:
            case "integer":
                return number
            case "number":
                return number
            case "boolean":
                return chance(self.choices, 50)
            case "object":
                return {"name": WORDS[number % len(WORDS)]}
            case "array":
                return [WORDS[number % len(WORDS)]]
        round_, place = divmod(number - 1, len(WORDS))
        return f"{WORDS[place]}{round_ + 1 if round_ else ''}"

    def draw_call(self, tool: Tool, *, prefix: str = "c") -> Call:
        """Return a call of a tool with the next id."""
        self.ids += 1
        prefix = "mcpr_" if tool.kind == "hosted_mcp" else prefix
        name = tool.name if tool.agent in (MAIN, "helper") else tool.key
        fitting = self.draw_arguments(tool)
        arguments: Mapping[str, Any] | str = fitting
        invalid = False
        if tool.name == "restart_server":
            arguments = ""
        elif tool.kind == "function" and tool.parameters:
            # The request about the first call can be counted on.
            is_spoilt = self.ids > 1 or not self.features & NEEDS_REQUESTS
            if is_spoilt and self.broken_texts and self.takes("broken_arguments", 20):
                arguments = pick(self.choices, self.broken_texts)
                self.broken_texts.remove(arguments)
            elif is_spoilt and self.takes("invalid_arguments", 20):
                arguments, invalid = self._spoil(tool, fitting), True
            elif (scalars := [name for name in _scalars_of(tool) if name in fitting]) and self.takes(
                "arguments_as_text", 20
            ):
                written = pick(self.choices, scalars)
                arguments, invalid = {**fitting, written: json.dumps(fitting[written])}, True
        return Call(label="", id=f"{prefix}{self.ids}", tool=name, arguments=arguments, invalid=invalid)

    def _spoil(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments that do not fit: of another type, one missing, or one too many."""
        first = next(iter(tool.parameters))
        match self.choices.below(3):
            case 0:
                number = self.next_number()
                arguments[first] = f"no number {number}" if tool.parameters[first].type == "integer" else number
            case 1:
                arguments["surplus"] = self.next_number()
            case _:
                del arguments[first]
                arguments["surplus"] = self.next_number()
        return arguments

    @property
    def has_answer(self) -> bool:
        """Whether the agent gives a structured answer."""
        return bool({"structured_answer", "invalid_answer"} & self.features)

    def draw_last_word(self, text: str) -> ScriptedReply:
        """Return a reply without calls: *text*, or an answer where the agent gives one."""
        if self.has_answer:
            return ScriptedReply(answer={"total": 0 if chance(self.choices, 20) else self.next_number()})
        return ScriptedReply(say=text)


def is_called_plainly(tool: Tool) -> bool:
    """Return whether a tool of the main agent is an ordinary one: it runs no agent and hands over to none."""
    return tool.agent == MAIN and tool.runs is None and tool.hands_over_to is None


def can_run(call: Call) -> bool:
    """Return whether the arguments of a call fit its tool."""
    return not call.invalid and not isinstance(call.arguments, str)


def _scalars_of(tool: Tool) -> list[str]:
    return [name for name, parameter in tool.parameters.items() if parameter.type in _SCALARS]
