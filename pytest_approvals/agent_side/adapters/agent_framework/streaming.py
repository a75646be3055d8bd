"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .requests import REQUEST


class Shown:
    """
    What one stream shows, piece by piece.

    Arguments:
        answer: The fields of a structured answer, which is streamed as text and is none.
    """

    def __init__(self, answer: Iterable[str] = ()) -> None:
        self._answer = frozenset(answer)
        self._calls: set[str] = set()

    def seen(self, update: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Gives what one update shows, as arguments for `World.shown`."""
        from .contents import carries, result_text

        for content in update.contents:
            if content.type == "text":
                # At its end some clients give a text once more as a whole.
                again = getattr(content, "merge_mode", None) == "replace"
                if content.text and not again and not carries(content.text, self._answer):
                    yield "text", {"text": content.text}
            elif content.type == "function_call":
                yield from self._call(content)
            elif content.type == "function_result":
                yield "result", {"id": content.call_id, "text": result_text(content)}
            elif content.type == REQUEST:
                yield "request", {"id": content.id}

    def _call(self, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        # A call comes in several pieces, of which the first has the name.
        key = getattr(content, "id", None) or content.call_id
        if content.name and key not in self._calls:
            self._calls.add(key)
            yield "call", {"id": content.call_id, "tool": content.name}
