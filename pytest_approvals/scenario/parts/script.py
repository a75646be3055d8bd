"""The model's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call in the model's script.

    Attributes:
        label: What scenario and reports call it: its id, `c1#2` for the second use of an id; unique in its agent's
            script.
        id: The call id that the model gives; None where it gives none.
        arguments: An object, or raw text where the model sends something else.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the declared parameters, on purpose.
    """

    label: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    repeats: bool = False
    unknown_tool: bool = False
    invalid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """
    The model fails instead of answering.

    With *after_chunks*, a streamed reply breaks after so many pieces; a reply that is not streamed fails as a whole.

    Attributes:
        status: 429, 500, 503, 529, or 0 where there is no status.
        how: A name in `failures.BREAKS`: what happens, where there is no status or a stream breaks.
        retry_after: The seconds after which the provider wants to be asked again.
    """

    status: int = 500
    after_chunks: int | None = None
    how: str = "disconnect"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """
    One reply in the model's script: text, calls, a structured answer, or a failure (which may come in the middle of
    text and calls).

    Attributes:
        invalid: The answer does not fit what is asked for, on purpose.
        takes: The seconds that pass before its first piece comes.
    """

    say: str | None = None
    calls: tuple[Call, ...] = ()
    answer: Mapping[str, Any] | None = None
    invalid: bool = False
    failure: Failure | None = None
    takes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """
    What one agent's model replies.

    Every conversation plays its own script from the start. *by_prompt* holds the replies of conversations that begin
    with that user message; all others play *replies*.
    """

    replies: tuple[Reply, ...] = ()
    by_prompt: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)

    @property
    def all_replies(self) -> tuple[Reply, ...]:
        """The replies to whatever a conversation begins with."""
        return (*self.replies, *chain.from_iterable(self.by_prompt.values()))
