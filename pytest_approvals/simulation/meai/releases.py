"""Releases of Microsoft.Extensions.AI: what each did with approvals, as facts that the one algorithm consults.

Sources: dotnet/extensions#7140, #7261, #7299, #7314, #7468, #7538, #7549, #7617.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBehaviour:
    """What one range of releases did.

    Attributes:
        name: `10.4`: as 10.4.0 did it.
        request_id_prefix: Prefix of the call id in the id of a request.
        found_by: How a response finds its request: by the request id, or by the call id.
        has_flags: Calls have a flag; flagged ones, and the requests and responses that hold them, are left alone. A
            call whose result the provider sends along is flagged.
        marks_requests: The call of a settled request is flagged, too, not only that of its response.
        accepts_flagged_responses: A flagged response still closes its request: for sessions that 10.4 has stored.
        tells_confirmation: A request says whether its own tool is gated.
        anchored: Calls and results go where the last response stood, not to the end.
        holds_every_call: Updates from the first call on wait for the end of the stream even if no tool is gated.
        later_tools_win: Of two tools with the same name the later one is found, otherwise the first; the caller's
            tools come before the client's in both cases.
        by_position: Settlement is derived from the order of messages, not from flags or call ids; a request is closed
            once, by its own unique id, and executed as it was shown. If a model repeats a call id in one reply, the
            second call gets a new id.
    """

    name: str
    request_id_prefix: str = "ficc_"
    found_by: Literal["request", "call"] = "request"
    has_flags: bool = True
    marks_requests: bool = True
    accepts_flagged_responses: bool = False
    tells_confirmation: bool = False
    anchored: bool = False
    holds_every_call: bool = True
    later_tools_win: bool = False
    by_position: bool = False

    @property
    def request_type(self) -> str:
        """Name of a request's type in errors."""
        return "ToolApprovalRequestContent" if self.has_flags else "FunctionApprovalRequestContent"

    @property
    def response_type(self) -> str:
        """Name of a response's type in errors."""
        return "ToolApprovalResponseContent" if self.has_flags else "FunctionApprovalResponseContent"


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        ReleaseBehaviour(
            name="10.2",
            request_id_prefix="",
            found_by="call",
            has_flags=False,
            marks_requests=False,
            holds_every_call=False,
            later_tools_win=True,
        ),
        ReleaseBehaviour(name="10.4", marks_requests=False),
        ReleaseBehaviour(name="10.6", accepts_flagged_responses=True),
        ReleaseBehaviour(name="10.7"),
        ReleaseBehaviour(name="10.9", tells_confirmation=True, anchored=True),
        ReleaseBehaviour(name="robust", tells_confirmation=True, anchored=True, by_position=True),
    )
}
"""Known behaviours: the releases, oldest first, and `robust`, which was never released."""
