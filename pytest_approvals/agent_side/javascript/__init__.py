"""
What agents in JavaScript share: the host protocol in JavaScript, and the facts of such an agent in Python.

Nothing here is imported by JavaScript but its own modules; `main.mjs` is what node is started with.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import Decision, Outcome, Request, Unsupported
from ..contract.agent import Agent

_NOT_HERE = "it is written in JavaScript and runs in a process of node"


class JavaScriptAgent(Agent):
    """The facts of agents that stand in `agents.mjs` beside their class; none of them is ever built in Python."""

    registry = "npm"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        raise Unsupported("turn", _NOT_HERE)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        raise Unsupported("turn", _NOT_HERE)
