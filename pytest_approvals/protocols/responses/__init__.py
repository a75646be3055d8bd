"""OpenAI's Responses."""

from __future__ import annotations

from .protocol import Responses

__all__ = ["Responses"]
