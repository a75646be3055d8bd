"""Reasoning of the model: how a provider signs it, and what it sent out before which calls.

A signature is opaque to clients. It is made of the id and the text, so that a provider recognizes its own reasoning and
sees that it was changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract.types import Reply, Thought

RULES_ABOUT_REASONING = frozenset(
    {
        "encrypted-content-changed",
        "item-without-reasoning",
        "reasoning-content-missing",
        "reasoning-not-stored",
        "reasoning-with-other-item",
        "reasoning-without-item",
        "signature-invalid",
        "thinking-missing",
        "thinking-modified",
        "thought-signature-invalid",
        "thought-signature-missing",
    }
)
"""The names of all rules by which providers want their reasoning back."""

_PREFIX = "sig_"
_SIGNATURE = re.compile(r"sig_(?P<id>.+)_[0-9a-f]{24}")


def sign_reasoning(thought_id: str, text: str | None) -> str:
    """Return the signature of a piece of reasoning; its encrypted form if it has no *text* to show.

    >>> sign_reasoning("rs_1_0", "Who pays?") != sign_reasoning("rs_1_0", "Who pays!")
    True
    """
    # Imported late, because a model server's first answer needs no reasoning.
    from hashlib import sha256

    digest = sha256(f"{thought_id}\n{'' if text is None else text}".encode()).hexdigest()
    return f"{_PREFIX}{thought_id}_{digest[:24]}"


def read_thought_id(signature: str | None) -> str | None:
    """Return the id in a signature of `sign_reasoning`; None for one of another provider.

    >>> read_thought_id(sign_reasoning("rs_1_0", "Who pays?"))
    'rs_1_0'
    """
    found = _SIGNATURE.fullmatch(signature or "")
    return found["id"] if found is not None else None


@dataclass(slots=True)
class SentReasoning:
    """The reasoning that a provider sent in one conversation.

    Attributes:
        by_signature: The pieces by their signatures.
        by_id: The pieces by their ids.
        steps_of_call: By the id of a call, the steps of its reply: the signature of each piece of reasoning, and the id
            of each call, in their order. The latest reply counts if an id comes again.
    """

    by_signature: dict[str, Thought] = field(default_factory=dict)
    by_id: dict[str, Thought] = field(default_factory=dict)
    steps_of_call: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_signature)

    def clear(self) -> None:
        """Forget everything."""
        for table in (self.by_signature, self.by_id, self.steps_of_call):
            table.clear()

    def add(self, reply: Reply) -> None:
        """Add a reply that is sent out."""
        # An id that comes again belongs to a reply that may have no reasoning.
        if not reply.thoughts and not self.by_signature:
            return
        for thought in reply.thoughts:
            self.by_signature[thought.signature] = thought
            self.by_id[thought.id] = thought
        steps = tuple(_list_steps(reply))
        self.steps_of_call |= {call.id: steps for call in reply.calls if call.id is not None}

    def expect_steps(self, call_ids: Iterable[str]) -> list[str]:
        """Return the steps of the replies that made these calls, without those of other calls."""
        known = list(call_ids)
        expected: list[str] = []
        for steps in dict.fromkeys(self.steps_of_call[call_id] for call_id in known if call_id in self.steps_of_call):
            expected += [step for step in steps if step in self.by_signature or step in known]
        return expected

    def keep_known(self, steps: Sequence[str]) -> list[str]:
        """Return those steps that this provider sent: reasoning of others means nothing to it."""
        return [step for step in steps if step in self.by_signature or step in self.steps_of_call]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningRequest:
    """A body, and the reasoning that the provider sent before it."""

    body: Mapping[str, Any]
    sent: SentReasoning


def _list_steps(reply: Reply) -> Iterable[str]:
    yield from (thought.signature for thought in reply.thoughts if thought.before is None)
    for position, call in enumerate(reply.calls):
        yield from (thought.signature for thought in reply.thoughts if thought.before == position)
        if call.id is not None:
            yield call.id
