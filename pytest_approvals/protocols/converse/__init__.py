"""Amazon Bedrock's Converse API."""

from __future__ import annotations

from pytest_approvals.protocols.converse.codec import ConverseCodec

__all__ = ["ConverseCodec"]
