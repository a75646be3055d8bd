"""Pydantic AI (`pydantic-ai-slim`).

A run that needs approval ends, with `DeferredToolRequests` as its output; a decision is a second run, given the message
history and `DeferredToolResults`. There is no paused object and no record of requests: what the caller keeps is all.

Flavours: by default gates are declared; in `raised` the tools ask from within; in `inline` gates are declared, and the
run waits for the answers in a handler. In `dbos` each run is a workflow of DBOS. Behind a web client, `vercel` keeps
the messages of the Vercel AI SDK between turns and `agui` those of the AG-UI protocol.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import Agent
from .agui import AGUI
from .dbos import DBOSSession
from .inline import Inline
from .session import PydanticAI, Raised
from .vercel import Vercel

__all__ = ["AGUI", "FLAVOURS", "DBOSSession", "Inline", "PydanticAI", "Raised", "Vercel"]

FLAVOURS: Mapping[str, type[Agent]] = {
    "": PydanticAI,
    "raised": Raised,
    "inline": Inline,
    "dbos": DBOSSession,
    "vercel": Vercel,
    "agui": AGUI,
}
