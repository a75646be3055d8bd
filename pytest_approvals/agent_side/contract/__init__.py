"""Contract between the harness and the agent under test.

`Agent` is what an adapter implements; `World` is what it is given. Everything the two exchange is one of the types
below: plain values without behaviour, the same whether the agent lives in this process or in another one.

An adapter is thin on purpose. It keeps no memory of decisions, retries nothing, and hides nothing: whatever the
framework raises it lets propagate, because a failure that the caller can see is a result, too. If a framework
documents how its users recover (from a failed turn, for example), the adapter does that and names the place.
"""

from __future__ import annotations

from .agent import Agent, World
from .capabilities import RENAMED
from .exceptions import (
    AsksAgain,
    ConditionRaised,
    ContractError,
    Elicits,
    ModelDown,
    ModelRefused,
    ScriptExhausted,
    ToolRaised,
    Unsupported,
    WaitsForAnswer,
)
from .types import (
    ANY_AGENT,
    MAIN,
    Approval,
    Attachment,
    Blueprint,
    Chunk,
    Condition,
    Decision,
    ElicitationAnswer,
    Finished,
    HostedResult,
    Item,
    Kind,
    Limits,
    ModelAddress,
    ModelCall,
    Outcome,
    Parameter,
    Paused,
    Reply,
    Request,
    ServerAddress,
    Thought,
    ToolSpec,
    Verdict,
    needs_approval,
    needs_approval_by_annotations,
)

__all__ = [
    "ANY_AGENT",
    "MAIN",
    "RENAMED",
    "Agent",
    "Approval",
    "AsksAgain",
    "Attachment",
    "Blueprint",
    "Chunk",
    "Condition",
    "ConditionRaised",
    "ContractError",
    "Decision",
    "ElicitationAnswer",
    "Elicits",
    "Finished",
    "HostedResult",
    "Item",
    "Kind",
    "Limits",
    "ModelAddress",
    "ModelCall",
    "ModelDown",
    "ModelRefused",
    "Outcome",
    "Parameter",
    "Paused",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ServerAddress",
    "Thought",
    "ToolRaised",
    "ToolSpec",
    "Unsupported",
    "Verdict",
    "WaitsForAnswer",
    "World",
    "needs_approval",
    "needs_approval_by_annotations",
]
