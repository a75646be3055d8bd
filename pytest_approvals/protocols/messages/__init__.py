"""Anthropic's Messages."""

from __future__ import annotations

from .protocol import Messages

__all__ = ["Messages"]
