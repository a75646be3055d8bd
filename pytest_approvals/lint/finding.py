"""What lint finds, and the rules that it looks at."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_approvals.histories.conversation import Conversation, Entry, Note, Path, shown_path

RULES = {
    "approval-before-execution": "a call that was asked about, or that a policy gates, runs only after its approval",
    "rejected-never-runs": "a rejected call has no result of a run",
    "arguments-as-approved": "what was decided, and what ran, has the tool and the arguments that were asked about",
    "request-shows-the-call": "a request shows the tool and the arguments of the call that it is about",
    "request-ids-unique": "two requests that are open at the same time have different ids",
    "call-ids-unique": "two calls that wait for their results at the same time have different ids",
    "nothing-left-pending": "a request is decided before the conversation goes on",
    "invalid-decision-refused": "a decision answers a request that was made before it",
    "contradiction-not-executed": "a request has one decision, not two that contradict each other",
    "settled-stays-settled": "what is decided is not decided again",
    "result-delivered-once": "each call has one result",
    "result-matches-its-call": "a result belongs to a call that was made before it, of the tool that it names",
    "flags-agree": "all copies of a call say the same about whether somebody has dealt with it",
}
"""By slug, what must hold; a slug that a check of the harness has means the same as there."""

WAITS = "waits"
"""What is told of calls that are open where a conversation ends: it is paused, which is no mistake."""

ODD = "odd"
"""What is told of a document that is no mistake, and that somebody may want to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that lint found.

    Attributes:
        rule: The slug of the rule; `waits` or `odd` for what is told and is no mistake.
        what: What is the matter, in one sentence.
        where: The place, for people.
        path: The place in the document.
        message, content: The numbers of the message and of the content in it; None for what stands outside of them.
    """

    rule: str
    what: str
    where: str
    path: Path
    message: int | None = None
    content: int | None = None

    @classmethod
    def at(cls, rule: str, what: str, conversation: Conversation, entry: Entry, other: Entry | None = None) -> Finding:
        """Gives a finding about an entry; *other* is the place that it is also about."""
        beside = entry.message in conversation.beside
        return cls(
            rule=rule,
            what=what if other is None else f"{what} ({conversation.where(other)})",
            where=conversation.where(entry),
            path=conversation.path(entry),
            message=None if beside else entry.message,
            content=entry.content if entry.content >= 0 and not beside else None,
        )

    @classmethod
    def of_note(cls, note: Note) -> Finding:
        """Gives what is told about something odd."""
        return cls(rule=ODD, what=note.what, where=shown_path(note.path), path=note.path)

    @property
    def is_mistake(self) -> bool:
        """Whether it lets lint fail."""
        return self.rule in RULES
