"""
What the release of the SDK that can be imported here lacks, read from its sources without importing it.

Names are looked for, not version numbers: a checkout has no number that says what is in it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def has(module: str, text: str) -> bool:
    """Says whether the SDK's file *module* holds *text*; yes where no SDK is here at all."""
    found = find_spec("agents")
    file = Path(found.origin).parent / module if found is not None and found.origin else None
    return file is None or not file.is_file() or text in file.read_text(encoding="utf-8")


CAN_ADD_INPUT = has("run_state.py", "def add_input")
"""Whether a message can be put into a paused run."""

LACKS: dict[str, str] = {}
"""What this release cannot do, and the name that it lacks."""

if not has("run_state.py", "rejection_message"):
    LACKS["reject_reason"] = "this release's RunState.reject takes no rejection_message"
if not CAN_ADD_INPUT:
    LACKS["message_with_answers"] = "this release's RunState has no add_input"
