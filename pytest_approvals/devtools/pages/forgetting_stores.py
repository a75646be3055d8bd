"""Section of `docs/crashes.md` about stores that forget: what is left of an approval when a turn is lost or not read.

The store is put back as it was before a turn, which is lost or does not show yet, and the application goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_approvals.checks import judge
from pytest_approvals.journal.events import StoreRolledBack
from pytest_approvals.journal.history import History
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario

INTRODUCTION = """\
## The store forgets

The turn with the answer has ended, and its caller has seen how. Then the store is as it was before that turn: what was
written is lost, as by a power cut before it was flushed, or the next turn is read from a replica that lags behind. The
application does not know of it, and answers again or sends a message. What the call has done stays done.

| cell | meaning |
|---|---|
| runs once | the call has had its effect in the forgotten turn, and none after it |
| runs again | it was approved again, and has had a second effect |
| **runs unapproved** | a call has had an effect after the loss, which nobody has approved since |
| not run | no call has had an effect |
| refused | the agent refuses what the application sends first, and nothing is lost by that |
| waits | in the end its request can be answered |
| **stuck** | the last turn fails |
| not reached | the store is not in files of the process that could be put back, as on a PostgreSQL server |
| cannot be played | the agent takes no message while a request is open |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a store forgets, and what the application does then.

    Attributes:
        title: The heading of its column.
        answer: The answer in the turn that is forgotten.
        is_lost: It is lost; else the next turn does not read it.
        then: The step that follows.
    """

    title: str
    answer: str
    is_lost: bool
    then: str


_AGAIN = "decide: {c1: approve}"
_NEXT = "decide: {c2: approve}"
_MESSAGE = "send: Thank you"

LOSSES = (
    Loss(title="an approval is lost; approved again", answer="approve", is_lost=True, then=_AGAIN),
    Loss(title="an approval is lost; a message", answer="approve", is_lost=True, then=_MESSAGE),
    Loss(title="a rejection is lost; a message", answer="reject", is_lost=True, then=_MESSAGE),
    Loss(title="the next request is lost; it is approved", answer="approve", is_lost=True, then=_NEXT),
    Loss(title="an approval is not read; approved again", answer="approve", is_lost=False, then=_AGAIN),
    Loss(title="a rejection is not read; a message", answer="reject", is_lost=False, then=_MESSAGE),
    Loss(title="the next request is not read; it is approved", answer="approve", is_lost=False, then=_NEXT),
)
"""The columns."""


def write_loss(loss: Loss) -> Scenario:
    """Return the story of a column."""
    asks_next = loss.then == _NEXT
    second = "calls: [{id: c2, tool: pay, arguments: {amount: 7}}]" if asks_next else "say: So it is."
    key = "    loses: write\n" if loss.is_lost else ""
    reads = "" if loss.is_lost else "    reads: stale\n"
    text = f"""\
title: {loss.title}
tools:
  pay: {{approval: always, parameters: {{amount: integer}}, returns: "paid {{amount}}"}}
model:
  - calls: [{{id: c1, tool: pay, arguments: {{amount: 5}}}}]
  - {second}
  - say: Not at all.
  - say: Bye.
caller:
  - send: Pay 5
  - decide: {{c1: {loss.answer}}}
{key}  - {loss.then}
{reads}  - leave: true
"""
    return parse_scenario(text, name=loss.title, path="loss.approval.yaml")


def describe_loss(history: History) -> str:
    """Return what became of the call, in the words of the page; empty if the store has forgotten nothing."""
    forgotten = history.events_of(StoreRolledBack)
    if not forgotten:
        return ""
    n = forgotten[0].n
    later = [turn for turn in history.turns if turn.start.n > n]
    words = ["refused"] if later and later[0].refused else []
    if any(execution.n > n for execution in history.executions):
        failing = {verdict.check for verdict in judge(history) if verdict.status == "fail"}
        words.append("**runs unapproved**" if "approval-before-execution" in failing else "runs again")
    else:
        words.append("runs once" if history.executions else "not run")
    if history.end is not None and history.end.pending:
        words.append("waits")
    if later and later[-1].failed and not later[-1].refused:
        words.append("**stuck**")
    return ", ".join(words)


def format_losses(rows: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[str]:
    """Return the lines of the section: agent, store, and a cell for each of `LOSSES`."""
    return [
        INTRODUCTION,
        f"| agent | store | {' | '.join(loss.title for loss in LOSSES)} |",
        f"|---|---|{'---|' * len(LOSSES)}",
        *(f"| `{agent}` | {store} | {' | '.join(cells)} |" for agent, store, cells in rows),
    ]
