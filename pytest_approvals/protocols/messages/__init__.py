"""Anthropic's Messages."""

from __future__ import annotations

from pytest_approvals.protocols.messages.codec import MessagesCodec

__all__ = ["MessagesCodec"]
