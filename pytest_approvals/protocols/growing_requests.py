"""Requests that extend earlier ones: only the messages that are new are parsed and checked.

A client sends the whole conversation with every request. Of an accepted request, the text up to its last message is
kept with what was parsed of it; if a later body begins with the same text, only the rest of its messages is read. What
surrounds the messages (the model, the tools, ...) is kept by its text, too, because it is the same for most requests.

Only requests without a violation are kept, and only such are returned from here: if anything is unusual, the whole body
is read as if it were the first one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import MoreMessages, ParsedRequest, ProtocolCodec
from pytest_approvals.protocols.input_rules import InputAnalysis, check_input, is_plain_talk, item_to_mapping
from pytest_approvals.protocols.provider_errors import list_words

MAX_HEADS = 8
MAX_HISTORIES = 8
MAX_FRAMES = 32
MAX_SIZE = 256 * 1024
"""Bytes of a body; larger ones are not kept."""

_WHITESPACE = " \t\n\r"
_INSTRUCTION_ROLES = ("system", "developer")

# The scanner of `json.loads`, so that both read the same.
_scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class _NotPlain(Exception):
    """A body is not written as it must be to be read in parts."""


_ERRORS = (_NotPlain, StopIteration, IndexError, ValueError, RecursionError)
"""What reading a body in parts may raise; reading it as a whole shows what it means to the client."""


@dataclass(slots=True, eq=False)
class _Frame:
    """A request without its messages.

    Attributes:
        request: The request.
        leading: Its items that come before those of the messages.
    """

    request: ParsedRequest
    leading: tuple[Item, ...]


@dataclass(slots=True, eq=False)
class _History:
    """Messages that were accepted.

    Attributes:
        text: Their text, from the bracket that opens the list to the end of the last message.
        tail: The text behind the list when they were last asked with.
        frame: What that tail and the head belong to.
        items: The items of the messages.
        speaker: What `is_plain_talk` is told of them; empty if there is none but an instruction.
        words: Their words.
        analysis: What the rules of the input know of the items; None if they are only texts, the first of the user.
    """

    text: str
    messages: list[Any]
    words: frozenset[str]
    items: tuple[Item, ...]
    speaker: str = "user"
    tail: str = ""
    frame: _Frame | None = None
    analysis: InputAnalysis | None = None

    def accepts(self, items: tuple[Item, ...], provider: str) -> bool:
        """Add items; return whether the provider accepts all of them."""
        # Texts change nothing of what the analysis knows as long as no call waits for its result.
        is_settled = self.analysis is None or (self.analysis.first and not self.analysis.open)
        if is_settled and is_plain_talk(items, self.speaker):
            self.items += items
            self.speaker = "user"
            return True
        if self.analysis is None:
            self.analysis = InputAnalysis().read([item_to_mapping(item) for item in self.items])
        known = [*self.analysis.items, *map(item_to_mapping, items)]
        self.items += items
        self.speaker = "user"
        return not check_input(self.analysis.read(known, len(known) - len(items)), provider)


class GrowingRequests:
    """Accepted requests of a conversation.

    Args:
        codec: The protocol; nothing is kept of one without `ProtocolCodec.messages_field`.
    """

    def __init__(self, codec: ProtocolCodec) -> None:
        self._codec = codec
        self._field = codec.messages_field
        # By the text before the messages and the text behind them.
        self._frames: dict[tuple[str, str], _Frame] = {}
        # By the text before the messages; in each, the history that was extended last comes last.
        self._histories: dict[str, list[_History]] = {}
        # By the text before the messages, the instruction with which the last conversation began.
        self._instructions: dict[str, _History] = {}

    def clear(self) -> None:
        """Remove all requests: the same text has another meaning from now on."""
        self._frames.clear()
        self._histories.clear()
        self._instructions.clear()

    def read(self, raw: bytes) -> ParsedRequest | None:
        """Return the request in a body that has no violation; None if the body must be read as a whole."""
        if not self._histories or len(raw) > MAX_SIZE:
            return None
        try:
            text = raw.decode()
            for head, histories in tuple(self._histories.items()):
                if text.startswith(head) and text.startswith("[", len(head)):
                    return self._read(text, head, histories)
        except _ERRORS:
            pass
        return None

    def _read(self, text: str, head: str, histories: list[_History]) -> ParsedRequest | None:
        start = len(head)
        known = _take_history(text, start, histories) or self._begin_history(text, head)
        new: list[Any] = []
        end, after = _scan_messages(text, start, len(known.text), new)
        tail = text[after:]
        # Comparing with the last one takes less time than hashing.
        frame = known.frame if tail == known.tail else self._frames.get((head, tail))
        # An instruction alone was not accepted as a request.
        if frame is None or not (new or known.speaker):
            return None
        known.frame, known.tail = frame, tail
        messages = [*known.messages, *new]
        body = {**frame.request.body, self._field: messages}
        if new:
            read = self._codec.read_more(MoreMessages(body, len(known.messages), new, known.words))
            if read is None or not known.accepts(read[0], self._codec.name):
                return None
            known.text, known.messages, known.words = text[start:end], messages, read[1]
        self._keep(head, known)
        items = (*frame.leading, *known.items) if frame.leading else known.items
        return frame.request.with_messages(body, items)

    def _begin_history(self, text: str, head: str) -> _History:
        """Return the history of a new conversation: its instruction, if the last conversation had the same."""
        known = self._instructions.get(head)
        if known is None or not text.startswith(known.text, len(head)):
            return _History("", [], frozenset(), (), "")
        return _History(known.text, known.messages, known.words, known.items, "", known.tail, known.frame)

    def parse(self, raw: bytes) -> tuple[Any, tuple[str, int, int] | None]:
        """Return the value in a body, and where its messages are: the text, and the ends of the list in it.

        Raises:
            ValueError, RecursionError: It is not JSON.
        """
        if len(raw) <= MAX_SIZE:
            try:
                text = raw.decode()
                return _parse_fields(text, self._codec.messages_field)
            except _ERRORS:
                pass
        return json.loads(raw), None

    def add(self, place: tuple[str, int, int], request: ParsedRequest) -> None:
        """Keep a request that has no violation, and whose meaning does not depend on others."""
        text, start, after = place
        messages = request.body[self._codec.messages_field]
        count = self._codec.count_leading_items(request.body)
        items = request.items[count:]
        analysis = None if is_plain_talk(items) else InputAnalysis().read([item_to_mapping(item) for item in items])
        known = text[start : text.rindex("}", start, after) + 1]
        self._keep(text[:start], _History(known, messages, frozenset(list_words(messages)), items, analysis=analysis))
        _limit(self._frames, MAX_FRAMES)
        frame = self._frames[text[:start], text[after:]] = _Frame(request, request.items[:count])
        # Conversations of one agent begin with the same instruction, and only the first message of the user differs.
        is_instruction = bool(messages) and messages[0].get("role") in _INSTRUCTION_ROLES
        if is_instruction and len(items) > 1 and items[0].kind == "other" and items[1].message == 1:
            end = _scan(text, _skip(text, start + 1))[1]
            words = frozenset(list_words(messages[:1]))
            instruction = _History(text[start:end], messages[:1], words, items[:1], "", text[after:], frame)
            _limit(self._instructions, MAX_HEADS)
            self._instructions[text[:start]] = instruction

    def _keep(self, head: str, history: _History) -> None:
        histories = self._histories.get(head)
        if histories is None:
            _limit(self._histories, MAX_HEADS)
            histories = self._histories[head] = []
        histories.append(history)
        del histories[:-MAX_HISTORIES]


def _take_history(text: str, start: int, histories: list[_History]) -> _History | None:
    """Remove and return the history with which the messages of a body begin; None if there is none."""
    for known in reversed(histories):
        if text.startswith(known.text, start):
            # Removed, so that no other thread extends it meanwhile.
            try:
                histories.remove(known)
            except ValueError:
                return None
            return known
    return None


def _limit(table: dict[Any, Any], most: int) -> None:
    """Remove the oldest entry of a full table."""
    while len(table) >= most:
        table.pop(next(iter(table)), None)


def _skip(text: str, at: int) -> int:
    while text[at] in _WHITESPACE:
        at += 1
    return at


def _scan_messages(text: str, start: int, known: int, found: list[Any]) -> tuple[int, int]:
    """Parse the messages of a list behind those that are known.

    Args:
        text: The text of a body.
        start: Where the bracket is that opens the list.
        known: How many characters of it are known, up to the end of a message; 0 for none.
        found: Takes the messages.

    Returns:
        The ends of the last message and of the list.

    Raises:
        _NotPlain, StopIteration, IndexError, ValueError, RecursionError: It is not a list of objects.
    """
    end = start + known
    if not known:
        value, end = _scan(text, _skip(text, start + 1))
        if type(value) is not dict:
            raise _NotPlain
        found.append(value)
    at = _skip(text, end)
    while text[at] == ",":
        value, end = _scan(text, _skip(text, at + 1))
        if type(value) is not dict:
            raise _NotPlain
        found.append(value)
        at = _skip(text, end)
    if text[at] != "]":
        raise _NotPlain
    return end, at + 1


def _parse_fields(text: str, field: str) -> tuple[dict[str, Any], tuple[str, int, int] | None]:
    """Return the object in a text, and the text with the ends of the value of *field*; None if that is not once in it.

    Raises:
        _NotPlain, StopIteration, IndexError, ValueError, RecursionError: It is not an object with fields.
    """
    body: dict[str, Any] = {}
    place: tuple[str, int, int] | None = None
    is_once = True
    if text[0] != "{":
        raise _NotPlain
    at = 0
    while True:
        at = _skip(text, at + 1)
        if text[at] != '"':
            raise _NotPlain
        name, at = _scan(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise _NotPlain
        begin = _skip(text, at + 1)
        body[name], at = _scan(text, begin)
        if name == field:
            is_once, place = place is None, (text, begin, at)
        at = _skip(text, at)
        if text[at] == "}":
            break
        if text[at] != ",":
            raise _NotPlain
    if text[at + 1 :].strip(_WHITESPACE):
        raise _NotPlain
    return body, place if is_once else None
