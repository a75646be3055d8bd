"""
Agents behind `ResponsesHostServer` (`agent-framework-foundry-hosting`), reached as a client of the Responses API would.

The server runs in this process, on its own files below one folder. A gated call comes to the client as an
`mcp_approval_request`, and an `mcp_approval_response` in the next input decides. A response that failed is none to go
on from: the client goes on from the last one that did not, as clients do that raise on a failure.
"""

from __future__ import annotations

from .session import Hosted, HostedChat, HostedConversation, HostedWorkflow

__all__ = ["Hosted", "HostedChat", "HostedConversation", "HostedWorkflow"]
