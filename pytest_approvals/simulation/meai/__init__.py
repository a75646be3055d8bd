"""Simulation of the function-invoking client of Microsoft.Extensions.AI, as its .NET releases handle approvals.

It shows the bug that dotnet/extensions#7468 fixed: a request and its response share one call object until a store
makes two copies of it; one copy is flagged as settled, the other is not, and a later request fails.

    messages ──► ApprovalBinding ──► FunctionInvokingClient ──► model
                 (agent framework)   behaves as 10.2 … 10.9, or as `robust`

`python -m pytest_approvals.simulation.meai < case.json > outcome.json` plays one case.
"""

from pytest_approvals.simulation.meai.approvals import ClientFailure, DuplicateKey, InvalidOperation, ToolError
from pytest_approvals.simulation.meai.binding import ApprovalBinding, BoundClient
from pytest_approvals.simulation.meai.cases import Case, read_case, run_case
from pytest_approvals.simulation.meai.client import ChatModel, FunctionInvokingClient, FunctionTool
from pytest_approvals.simulation.meai.contents import (
    FunctionCall,
    FunctionResult,
    Message,
    Text,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from pytest_approvals.simulation.meai.json_messages import (
    MessageReader,
    ReadNote,
    read_json,
    read_messages,
    write_json,
    write_messages,
)
from pytest_approvals.simulation.meai.releases import BEHAVIOURS, ReleaseBehaviour

__all__ = [
    "BEHAVIOURS",
    "ApprovalBinding",
    "BoundClient",
    "Case",
    "ChatModel",
    "ClientFailure",
    "DuplicateKey",
    "FunctionCall",
    "FunctionInvokingClient",
    "FunctionResult",
    "FunctionTool",
    "InvalidOperation",
    "Message",
    "MessageReader",
    "ReadNote",
    "ReleaseBehaviour",
    "Text",
    "ToolApprovalRequest",
    "ToolApprovalResponse",
    "ToolError",
    "read_case",
    "read_json",
    "read_messages",
    "run_case",
    "write_json",
    "write_messages",
]
