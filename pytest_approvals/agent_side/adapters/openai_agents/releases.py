"""What the release of the SDK that can be imported here lacks."""

from __future__ import annotations

from functools import partial

from ...installed import has as has_source

has = partial(has_source, "agents")
"""Says whether the SDK has a file, and in it a text; yes where no SDK is here at all."""

CAN_ADD_INPUT = has("run_state.py", "def add_input")
"""Whether a message can be put into a paused run."""

LACKS: dict[str, str] = {}
"""What this release cannot do, and the name that it lacks."""

if not has("run_state.py", "rejection_message"):
    LACKS["reject_reason"] = "this release's RunState.reject takes no rejection_message"
if not CAN_ADD_INPUT:
    LACKS["message_with_answers"] = "this release's RunState has no add_input"
