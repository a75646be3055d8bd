"""Normalization of transcripts: one reading order, and placeholders for made-up values.

It makes the transcripts of all variants of a correct agent equal. Calls of one reply may run at the same time, and so
may the agents that they run. Which of them comes first is chance; a transcript tells them in the order in which the
model made them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_approvals.journal.history import History, RecordedCall

CallPosition = tuple[int, ...]
"""The position of a call: its number in its conversation, after the position of the call that runs its agent."""

LAST_POSITION: CallPosition = (1 << 30,)
"""The place of what belongs to no known call: behind all others."""


class CallPositions:
    """The positions of the calls of one journal among each other."""

    def __init__(self, history: History) -> None:
        self._labelled = {(call.session, call.branch, call.label): call for call in history.calls}
        self._numbers: dict[int, int] = {}
        counts: dict[tuple[str, int, str], int] = {}
        for call in history.calls:
            key = (call.session, call.branch, call.conversation)
            self._numbers[id(call)] = counts[key] = counts.get(key, 0) + 1

    def of_call(self, call: RecordedCall) -> CallPosition:
        """Return the position of a call."""
        return (*self.of_conversation(call.session, call.branch, call.conversation), self._numbers[id(call)])

    def of_conversation(self, session: str, fork: int, conversation: str) -> CallPosition:
        """Return the position of the call in which a conversation is nested; empty for the main one."""
        label = conversation.rpartition("/")[0]
        if not label:
            return ()
        outer = self._labelled.get((session, fork, label))
        return self.of_call(outer) if outer is not None else LAST_POSITION


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPassage:
    """Sentences with the position of their call.

    Those with the empty position stay where they are, and separate what comes before from what comes after.
    """

    place: CallPosition
    sentences: tuple[str, ...]


def sort_passages(passages: Sequence[TranscriptPassage]) -> list[TranscriptPassage]:
    """Return passages that happened at the same time in the order of the calls that they belong to."""
    return _sort_from_depth(passages, 0)


def _sort_from_depth(passages: Sequence[TranscriptPassage], depth: int) -> list[TranscriptPassage]:
    ordered: list[TranscriptPassage] = []
    concurrent: dict[int, list[TranscriptPassage]] = {}
    for passage in passages:
        if len(passage.place) > depth:
            concurrent.setdefault(passage.place[depth], []).append(passage)
        else:
            ordered += _sort_concurrent(concurrent, depth)
            concurrent = {}
            ordered.append(passage)
    return ordered + _sort_concurrent(concurrent, depth)


def _sort_concurrent(concurrent: Mapping[int, Sequence[TranscriptPassage]], depth: int) -> list[TranscriptPassage]:
    return [passage for number in sorted(concurrent) for passage in _sort_from_depth(concurrent[number], depth + 1)]


def build_placeholder_replacer(fakes: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces made-up values in text by their placeholders.

    >>> build_placeholder_replacer({"Ann Lee": "<name 1>"})('say(to="Ann Lee")')
    'say(to="<name 1>")'
    """
    known = dict(fakes)
    # A transcript also shows values in JSON, where quotes and line feeds are escaped.
    for value, placeholder in fakes.items():
        known.setdefault(json.dumps(value, ensure_ascii=False)[1:-1], placeholder)
    if not known:
        return lambda text: text
    # The longest first, in case one value is the beginning of another.
    values = re.compile("|".join(re.escape(value) for value in sorted(known, key=len, reverse=True)))
    return lambda text: values.sub(lambda match: known[match[0]], text)
