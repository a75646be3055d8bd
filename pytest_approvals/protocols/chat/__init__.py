"""OpenAI's Chat Completions."""

from __future__ import annotations

from .protocol import Chat

__all__ = ["Chat"]
