"""The releases of the frameworks that this package is developed with: its stored transcripts are theirs."""

from __future__ import annotations

PINS = {
    "openai-agents": "0.24.0",
    "pydantic-ai-slim": "2.68.0",
}


def pinned(framework: str) -> str | None:
    """Gives the pinned release of a distribution; None where it has none."""
    return PINS.get(framework)
