"""What the flavours behind a web client can express, and for the rest the part of the protocol that is missing."""

from __future__ import annotations

from collections.abc import Mapping

from .facts import CLAIMED, MISSING

_WHOLE = "the client holds the conversation, and sends all of it"
_METADATA = "an answer carries no metadata, in which the recipe for delegation brings the inner answers back"

_MISSING_WEB: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name not in ("partial_answers", "tampered_request")},
    "always": "an answer is about one call; nothing in it approves further ones",
    "never": "an answer is about one call; nothing in it rejects further ones",
    "trim": _WHOLE,
    "hang_up": "what a run did whose stream the client has left is known to nobody: the server keeps nothing",
    "nested": _METADATA,
    "nested_parallel": _METADATA,
    "nested_gate": _METADATA,
}

MISSING_VERCEL: Mapping[str, str] = {
    **_MISSING_WEB,
    "edit": "the approval in a UI message has `approved` and `reason`, and no arguments",
    "edit_tool": "the approval in a UI message has `approved` and `reason`, and no tool",
    "contradiction": "the answer stands in the part of its call, which holds one",
    "cancel": "no state of a part says that its call was given up",
    "history.append": "`dump_messages` puts a result into the part of its call; in new messages alone it finds none",
}
"""Behind a client of the Vercel AI SDK."""

MISSING_AGUI: Mapping[str, str] = {
    **{name: why for name, why in _MISSING_WEB.items() if name != "contradiction"},
    "edit_tool": "`editedArgs` of a resume payload overrides arguments, and nothing names a tool",
    "stage": "answers are part of a run's input; no message holds one",
    "cancel": "an entry of `resume` that is `cancelled` rejects its call, and the run goes on",
    "history.append": _WHOLE,
}
"""Behind a client of AG-UI."""

_WEB = CLAIMED | {"partial_answers", "tampered_request"}

CLAIMED_VERCEL = _WEB - frozenset(MISSING_VERCEL)

CLAIMED_AGUI = (_WEB | {"contradiction"}) - frozenset(MISSING_AGUI)
