"""Reader of sessions of OpenCode: what `opencode export SESSION` prints, and the messages that its server returns.

    {"info": {"id": "ses_...", ...}, "messages": [{"info": {"role", ...}, "parts": [{"type": "tool", ...}]}, ...]}

A tool part goes through the whole life of a call: its state is `pending` or `running`, then `completed` or `error`. Who
allowed a call is not stored; a rejection is told in the error. A call that never left `running` although a prompt came
after it belongs to a process that ended: OpenCode tells the model so and keeps the state.

Sources: the types of `@opencode-ai/sdk`, and exports of release 1.18.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    OpaqueEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    iter_messages,
    may_be_refusal,
    optional_text,
    require_messages,
    require_object,
    require_text,
)

NAME = "opencode"

INTERRUPTED = "[Tool execution was interrupted]"
"""What OpenCode tells the model of a call whose process ended."""

_TOLD_OF_REJECTION = re.compile(
    r"(?:Error: )?The user rejected permission to use this specific tool call"
    r"|The user rejected permission with feedback"
    r"|The user has specified a rule which prevents you from using this specific tool call"
    r"|The user dismissed this question"
)
_ABORTED = re.compile(r"Tool execution (?:was )?aborted")


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    message: Any = None
    for message in iter_messages(document):
        info = message.get("info")
        if type(info) is not dict or type(info.get("role")) is not str or type(message.get("parts")) is not list:
            return False
    if message is not None:
        return True
    # A session in which nothing was said.
    return type(document) is dict and type(document.get("info")) is dict and document.get("messages") == []


def read(document: Any) -> StoredConversation:
    """Read a session.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    path, messages = require_messages(document)
    prompts = [number for number, each in enumerate(messages) if _role(each) == "user"]
    reader = _MessageReader(builder, prompts[-1] if prompts else -1)
    builder.read_messages(path, messages, reader.message, contents=("parts",))
    return builder.conversation


def _role(message: Any) -> str | None:
    info = message.get("info") if type(message) is dict else None
    role = info.get("role") if type(info) is dict else None
    return role if type(role) is str else None


class _MessageReader:
    """Reader of messages.

    Args:
        last_prompt: The number of the user's last message; -1 if there is none.
    """

    def __init__(self, builder: ConversationBuilder, last_prompt: int) -> None:
        self.builder = builder
        self.last_prompt = last_prompt
        self.role = ""
        # The results of a step follow its calls.
        self.results: list[ConversationEntry] = []

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message."""
        with errors_within(("info",)):
            self.role = require_text(require_object({"info": item.get("info")}, "info"), "role")
        self.builder.read_groups(("parts",), item.get("parts"), number, self.part)
        self._end_step()

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
        """Read one part."""
        kind = require_text(part, "type")
        if kind in ("step-start", "step-finish"):
            self._end_step()
        elif kind == "text":
            # What OpenCode adds to a prompt, such as the text of a file that it names.
            role = "system" if part.get("synthetic") is True or part.get("ignored") is True else self.role
            return (TextEntry(message, place, role, require_text(part, "text")),)
        elif kind == "tool":
            return (self._call(part, message, place),)
        return (OpaqueEntry(message, place, kind),)

    def _call(self, part: dict[str, Any], message: int, place: int) -> CallEntry:
        call_id, tool, state = require_text(part, "callID"), require_text(part, "tool"), require_object(part, "state")
        with errors_within(("state",)):
            status = require_text(state, "status")
            if status == "completed":
                output = state.get("output")
                self.results.append(ResultEntry(message, place, call_id, tool, output, "returned"))
            elif status == "error":
                error = optional_text(state, "error") or ""
                self.results.append(ResultEntry(message, place, call_id, tool, error, _read_outcome(state, error)))
            elif message < self.last_prompt:
                self.results.append(ResultEntry(message, place, call_id, tool, INTERRUPTED, "interrupted"))
        return CallEntry(message, place, call_id, tool, state.get("input"))

    def _end_step(self) -> None:
        self.builder.entries += self.results
        self.results = []


def _read_outcome(state: dict[str, Any], error: str) -> ResultOutcome:
    metadata = state.get("metadata")
    if _TOLD_OF_REJECTION.match(error):
        return "denied"
    if _ABORTED.match(error) or (type(metadata) is dict and metadata.get("interrupted") is True):
        return "interrupted"
    return "unknown" if may_be_refusal(error) else "failed"


READERS = {NAME: FormatReader(matches, read)}
