"""
The framework's own clients for OpenAI, on a transport in this process whose other end is the world.

Flavours: `openai` is the client for Responses, where the provider keeps the conversation and the session its id; in
`openai_unstored` it keeps nothing, and everything is sent each time; `openai_chat` is the client for Chat Completions.
"""

from __future__ import annotations

from .session import OpenAI, OpenAIChat, OpenAIUnstored

__all__ = ["OpenAI", "OpenAIChat", "OpenAIUnstored"]
