"""
The function-invoking client of Microsoft.Extensions.AI, simulated: how the .NET releases deal with approvals.

The bug that dotnet/extensions#7468 mended can be seen here: a request and its response share one call object until a
store makes two copies of it; one copy is flagged as dealt with, the other is not, and a later request fails.

    messages ──► Binding ──► FunctionInvokingClient ──► model
                (agent)      behaves as 10.2 … 10.9, or as `robust`

`python -m pytest_approvals.simulation.meai < case.json > outcome.json` plays one case.
"""

from .behaviours import BEHAVIOURS, Behaviour
from .binding import Binding, BoundClient
from .cases import Case, read_case, run_case
from .client import FunctionInvokingClient, Model
from .contents import FunctionCall, FunctionResult, Message, Text, ToolApprovalRequest, ToolApprovalResponse
from .failures import ClientFailure, DuplicateKey, InvalidOperation, ToolError
from .invoking import Tool
from .json_text import read_json, write_json
from .reading import Note, Reader, read_messages
from .writing import written_messages

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "Binding",
    "BoundClient",
    "Case",
    "ClientFailure",
    "DuplicateKey",
    "FunctionCall",
    "FunctionInvokingClient",
    "FunctionResult",
    "InvalidOperation",
    "Message",
    "Model",
    "Note",
    "Reader",
    "Text",
    "Tool",
    "ToolApprovalRequest",
    "ToolApprovalResponse",
    "ToolError",
    "read_case",
    "read_json",
    "read_messages",
    "run_case",
    "write_json",
    "written_messages",
]
