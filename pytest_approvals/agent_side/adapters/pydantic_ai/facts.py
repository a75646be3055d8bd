"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ...capabilities import CAPABILITIES

MISSING: Mapping[str, str] = {
    "partial_answers": "`Agent.run` refuses a `DeferredToolResults` that does not answer every call with `UserError`",
    "edit_tool": "`ToolApproved` has `override_args` and nothing for another tool",
    "always": "`DeferredToolResults` answers single calls; nothing approves further ones",
    "never": "`DeferredToolResults` answers single calls; nothing rejects further ones",
    "contradiction": "`DeferredToolResults.approvals` is a dict by call id: one answer a call",
    "slow_conditions": "`approval_required` takes a plain function; an awaitable that it returns counts as true",
    "mcp": "`MCPToolset` comes with the extra `mcp` only, which the extra of this package does not bring",
    "hosted_mcp": "`MCPServerTool` has no approval setting; the OpenAI model sends `require_approval: never`",
}
"""Where gates are declared."""

CLAIMED = frozenset(CAPABILITIES) - frozenset(MISSING)

MISSING_RAISED: Mapping[str, str] = {name: why for name, why in MISSING.items() if name != "slow_conditions"}
"""Where tools ask from within; their bodies may be asynchronous."""

CLAIMED_RAISED = frozenset(CAPABILITIES) - frozenset(MISSING_RAISED)
