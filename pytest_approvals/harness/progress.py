"""
How far the story of one session has got.

Progress is saved and restored together with the agent's state, so that the model and the tools of a session that was
rewound say again what they said then, and a fresh process needs no cursor of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.neutral import Kind
from pytest_approvals.journal.arguments import same_arguments
from pytest_approvals.scenario.parts import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCall:
    """
    A call that the model made.

    Attributes:
        label: The full one, with the path of the calls that run its agent.
        reply: The number of the question to the model that it answers.
        declared: The tool that it calls; None where there is no such tool.
    """

    label: str
    reply: int
    agent: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str
    kind: Kind = "function"
    server: str | None = None
    declared: Tool | None = None


@dataclass(slots=True, kw_only=True)
class Progress:
    """
    What one session went through so far.

    Attributes:
        opening: The first message that its main conversation began with.
        positions: How many replies each conversation has played.
        calls: What the model has asked for, in order.
        delegated: The conversation that each call of an agent-running tool opened, by the call's label.
        executions: How often each call was executed.
        gates: How often the policy was asked about each call.
        provided: The labels of the hosted calls that the provider has run.
        rewritten: What was changed in the text of the save that the session goes on from: the old text and the new one.
    """

    opening: str | None = None
    positions: Counter[str] = field(default_factory=Counter)
    calls: list[PlayedCall] = field(default_factory=list)
    delegated: dict[str, tuple[str, str]] = field(default_factory=dict)
    executions: Counter[str] = field(default_factory=Counter)
    gates: Counter[str] = field(default_factory=Counter)
    provided: set[str] = field(default_factory=set)
    rewritten: tuple[tuple[str, str], ...] = ()

    def copy(self) -> Progress:
        """Gives an independent copy."""
        return Progress(
            opening=self.opening,
            positions=self.positions.copy(),
            calls=self.calls.copy(),
            delegated=self.delegated.copy(),
            executions=self.executions.copy(),
            gates=self.gates.copy(),
            provided=self.provided.copy(),
            rewritten=self.rewritten,
        )

    def candidates(
        self, tool: str, arguments: Any, call_id: str | None, agent: str | None = None
    ) -> Iterator[PlayedCall]:
        """
        Gives the calls that something seen with these facts may belong to, the likeliest first.

        The same agent, id, tool and arguments come first, then the same id and tool, then (for ids that the framework
        renamed or made up) the same tool and arguments; calls of a later reply before those of an earlier one.
        """
        tiers: tuple[list[PlayedCall], ...] = ([], [], [], [])
        for call in sorted(self.calls, key=lambda call: -call.reply):
            if call.tool != tool:
                continue
            same_id = call.id is not None and call.id == call_id
            equal = any(same_arguments(known, arguments) for known in self._known(call.arguments))
            own = agent is None or call.agent == agent
            if same_id and equal and own:
                tiers[0].append(call)
            elif same_id and equal:
                tiers[1].append(call)
            elif same_id:
                tiers[2].append(call)
            elif equal:
                tiers[3].append(call)
        for tier in tiers:
            yield from tier

    def _known(self, arguments: Mapping[str, Any] | str) -> Iterator[Any]:
        """Gives the arguments of a call, and what they are where the save has been changed."""
        yield arguments
        text = json.dumps(arguments, ensure_ascii=False)
        for old, new in self.rewritten:
            text = text.replace(old, new)
            yield json.loads(text)

    def call(self, label: str) -> PlayedCall | None:
        """Gives the call with that label, the latest one where a rewound story made it twice."""
        return next((call for call in reversed(self.calls) if call.label == label), None)
