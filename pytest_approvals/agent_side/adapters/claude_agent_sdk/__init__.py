"""Claude Agent SDK for Python (`claude-agent-sdk`), which drives the CLI of Claude Code.

The CLI is a program that the SDK starts; it asks the model over Messages, and asks the application before it runs a
tool. Tools of the application are MCP servers: in its process, or at an address. The model is shown their names with a
prefix, `mcp__SERVER__TOOL`.

Flavours: by default a hook of `PreToolUse` answers `defer`, which ends the run with what was deferred; a client that
resumes the session asks the hook again about the same call. In `inline`, `can_use_tool` waits for the answer while the
run goes on. In `rules` it does, too, but a settings file decides what is asked about, and a standing approval changes
the rules in that file. The CLI runs calls of tools that may write one after the other, so of several gated calls in
one reply it asks about the next one when the one before is settled.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import DeferredSession, InlineSession, RulesSession

__all__ = ["FLAVOURS", "DeferredSession", "InlineSession", "RulesSession"]

FLAVOURS: dict[str, type[Agent]] = {"": DeferredSession, "inline": InlineSession, "rules": RulesSession}
