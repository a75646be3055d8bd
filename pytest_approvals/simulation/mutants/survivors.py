"""
The mutants that no check notices, in classes, each with the reason why that is right or has to be borne.

A survivor that belongs to no class is a hole in the checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivors:
    """
    A class of mutants that may live.

    Attributes:
        why: Why no check notices them.
        mutants: Patterns of operator and change: `drop caller.shown`.
    """

    name: str
    why: str
    mutants: tuple[str, ...]

    def holds(self, operator: str, what: str) -> bool:
        """Says whether a mutant belongs to the class."""
        return any(fnmatchcase(f"{operator} {what}", pattern) for pattern in self.mutants)


CLASSES = (
    Survivors(
        name="the last question of a turn",
        why="A turn may end without asking its model again: after a rejection, at a limit, or because a tool "
        "ends it. So a last exchange that is missing, or a failed one that is there twice, makes another "
        "story, not a wrong one.",
        mutants=("drop model.request + model.*", "duplicate model.request + model.*", "duplicate model.request"),
    ),
    Survivors(
        name="what streams show of calls",
        why="Streams differ in the calls that they show: those of other agents, hosted ones, those whose ids "
        "come twice; and in the order of what they show. Nothing is compared in a turn that failed or "
        "overlaps another one.",
        mutants=("* caller.shown*", "swap caller.shown, *", "swap *, caller.shown"),
    ),
    Survivors(
        name="turns that fail or finish instead",
        why="Refusing a decision, failing visibly and finishing with nothing left to do are all acceptable "
        "where a decision was not in order; which of them was seen is a trait.",
        mutants=("change turn.end failed", "change turn.end finished"),
    ),
    Survivors(
        name="decisions without effect",
        why="A decision that was refused, came too late, repeats another one or contradicts it has no effect, "
        "so that nothing tells whether it was another one, about another call, or was made at all.",
        mutants=(
            "forge a decision, *",
            "* caller.decide*",
            "swap caller.decide, *",
            "* turn.start decisions",
            "swap caller.stage, *",
        ),
    ),
    Survivors(
        name="requests that come later",
        why="An agent may ask for several approvals one after the other, in a later turn; and a request that "
        "the outcome of a turn does not list may stand in its stream or in the saved state.",
        mutants=("change turn.end requests: *", "change store.restore pending: *", "change run.end pending: *"),
    ),
    Survivors(
        name="shorter stories",
        why="A run that ends after a settled turn, and one that was not saved or restored at its end, are runs "
        "like others.",
        mutants=(
            "truncate after a turn",
            "drop turn",
            "duplicate turn",
            "drop store.save",
            "drop agent.start + store.restore",
            "drop store.restore",
            "change store.restore failed",
        ),
    ),
    Survivors(
        name="overlapping turns and conversations",
        why="Turns may overlap, agents may run beside each other, an agent may leave a tool running when it "
        "ends a turn, and a policy may be asked early; so neighbours of this kind may change places.",
        mutants=(
            "swap turn.end, *",
            "swap *, turn.end",
            "swap model.*, model.*",
            "swap model.*, tool.*",
            "swap tool.*, model.*",
            "swap tool.*, tool.*",
            "swap tool.start, *",
            "swap *, caller.signal",
            "swap caller.signal, *",
            "swap store.save, *",
            "swap *, store.*",
            "swap *, caller.decide",
        ),
    ),
    Survivors(
        name="inputs that nothing is compared with",
        why="After a failed turn, a rewind, a trimming or an edit an input of the model may differ from the "
        "one before. Hosted results are the provider's own words.",
        mutants=("* model.request items: *",),
    ),
    Survivors(
        name="words that nobody relies on",
        why="What an agent says beside a request, or to another agent, and the reason of a rejection that has "
        "no effect.",
        mutants=(
            "change turn.start text",
            "change turn.end text",
            "change turn.end output",
            "change model.answer say",
            "* model.answer hosted: *",
        ),
    ),
    Survivors(
        name="policies",
        why="When a policy is asked, and how often, is the framework's business; only its answers bind.",
        mutants=("* tool.gate", "* tool.gate *"),
    ),
    Survivors(
        name="ids that arguments make up for",
        why="Calls are recognised by id, tool and arguments together; where the arguments are unmistakable, "
        "the body of a tool may be told another id, or a save that holds the same may be taken up.",
        mutants=(
            "retarget tool.start call_id",
            "retarget store.restore name",
            "change store.restore again",
            "change agent.start tools: *",
        ),
    ),
    Survivors(
        name="what a failed turn leaves behind",
        why="A call in a reply whose turn failed need not be asked about, run or answered; an execution whose "
        "turn is tried again may be missing the first time; and what it returned is told to nobody.",
        mutants=(
            "forge model.answer calls: *",
            "drop tool.start + tool.end",
            "change tool.end result",
            "drop tool.end",
            "* tool.end how",
        ),
    ),
    Survivors(
        name="steps of the caller",
        why="What the caller does twice, or not at all, between two turns changes nothing that the agent did.",
        mutants=(
            "swap caller.cancel, turn.start",
            "* caller.cancel",
            "* caller.signal",
            "* caller.stage",
            "* caller.skip",
            "* caller.stuck",
            "* store.trim",
            "duplicate store.rewrite",
        ),
    ),
    Survivors(
        name="the moment of a hang-up",
        why="What the caller hangs up on ends by itself a moment before or after: a question to the model that is "
        "on its way, a tool that is cancelled.",
        mutants=(
            "swap model.request, caller.hang_up",
            "swap caller.hang_up, model.failure",
            "swap caller.hang_up, tool.end",
        ),
    ),
)
"""All classes, the largest first."""


def class_of(operator: str, what: str) -> Survivors | None:
    """Gives the first class that a mutant belongs to; None where there is none."""
    return next((each for each in CLASSES if each.holds(operator, what)), None)
