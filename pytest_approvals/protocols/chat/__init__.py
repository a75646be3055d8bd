"""OpenAI's Chat Completions."""

from __future__ import annotations

from pytest_approvals.protocols.chat.codec import ChatCodec

__all__ = ["ChatCodec"]
