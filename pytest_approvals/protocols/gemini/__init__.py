"""Google's Gemini API: `generateContent`."""

from __future__ import annotations

from pytest_approvals.protocols.gemini.codec import GeminiCodec

__all__ = ["GeminiCodec"]
