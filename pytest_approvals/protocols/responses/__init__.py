"""OpenAI's Responses."""

from __future__ import annotations

from pytest_approvals.protocols.responses.codec import ResponsesCodec

__all__ = ["ResponsesCodec"]
