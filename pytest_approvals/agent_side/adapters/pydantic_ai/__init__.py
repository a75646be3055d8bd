"""
Pydantic AI (`pydantic-ai-slim`).

A run that needs approval ends, with `DeferredToolRequests` as its output; a decision is a second run, given the message
history and `DeferredToolResults`. There is no paused object and no record of requests: what the caller keeps is all.

Flavours: by default gates are declared; in `raised` the tools ask from within.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import Agent
from .session import PydanticAI, Raised

FLAVOURS: Mapping[str, type[Agent]] = {"": PydanticAI, "raised": Raised}
