"""Base of agents in JavaScript: their metadata in Python, and the host protocol in JavaScript.

The `.mjs` modules import only each other; node is started with `main.mjs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import Decision, Outcome, Request, Unsupported
from ..contract.agent import Agent

_NOT_HERE = "it is written in JavaScript and runs in a process of node"


class JavaScriptAgent(Agent):
    """Metadata of agents that are implemented in `agents.mjs` in the folder of their class; never built in Python."""

    registry = "npm"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        raise Unsupported("turn", _NOT_HERE)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        raise Unsupported("turn", _NOT_HERE)
