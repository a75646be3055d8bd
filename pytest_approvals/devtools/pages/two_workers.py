"""Section of `docs/crashes.md` about two workers: what a store keeps apart when two processes take up one session.

The first process is stopped at a point of the turn with its decision, the second one takes its turn, and then the first
one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_approvals.journal.events import AgentStopped
from pytest_approvals.journal.history import History
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario

INTRODUCTION = """\
## Two workers take up one session

Two processes have restored the same session, as two workers of a web server do. The first one is stopped (SIGSTOP) at
a point of the turn with the approval, the second one takes its turn, and then the first one goes on with what it knew
(SIGCONT).

| cell | meaning |
|---|---|
| refused | the second worker is refused, and nothing is lost |
| runs once, **runs twice** | how many effects the call has had in the end |
| **rejected, but runs** | the second worker has taken the rejection, and the call has had an effect |
| answered, **forgotten** | the second worker has answered the message; later model inputs do not hold it |
"""

_MESSAGE = "Is it paid?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Where the first worker is stopped, and what the second one does meanwhile.

    Attributes:
        title: The heading of its column.
        stops: The place where the first one is stopped.
        second: The step of the second one.
    """

    title: str
    stops: str
    second: str


MEETINGS = (
    Meeting(title="before the call; it is approved again", stops="before c1", second="decide: {c1: approve}"),
    Meeting(title="before the call; it is rejected", stops="before c1", second="decide: {c1: reject}"),
    Meeting(title="after the effect; it is approved again", stops="ended c1", second="decide: {c1: approve}"),
    Meeting(title="the model is told; a message", stops="model", second=f"send: {_MESSAGE}"),
)
"""The columns, in the order of a turn's life."""


def write_meeting(meeting: Meeting) -> Scenario:
    """Return the story of a column."""
    text = f"""\
title: {meeting.title}
tools:
  pay: {{approval: always, parameters: {{amount: integer}}, returns: "paid {{amount}}"}}
model:
  - calls: [{{id: c1, tool: pay, arguments: {{amount: 5}}}}]
  - say: So it is.
  - say: Not at all.
  - say: Bye.
caller:
  - send: Pay 5
  - together:
      - decide: {{c1: approve}}
        stops: {meeting.stops}
      - {meeting.second}
  - send: Thank you
  - leave: true
"""
    return parse_scenario(text, name=meeting.title, path="meeting.approval.yaml")


def describe_meeting(history: History) -> str:
    """Return what the two workers did to the call, in the words of the page; empty if none was stopped."""
    stops = history.events_of(AgentStopped)
    if not stops:
        return ""
    second = next(turn for turn in history.turns if turn.start.n > stops[0].n)
    runs = sum(len(call.executions) for call in history.calls)
    effect = {0: "not run", 1: "runs once"}.get(runs, "**runs twice**")
    if second.failed:
        return f"refused, {effect}"
    if second.start.text is not None:
        return f"answered, {effect}" if _is_remembered(history) else f"answered, **forgotten**, {effect}"
    if any(decision.rejects for decision in second.decisions):
        return f"rejected, {effect}" if runs == 0 else f"**rejected, but {effect.strip('*')}**"
    return effect


def _is_remembered(history: History) -> bool:
    last = history.turns[-1]
    return any(_MESSAGE in str(item.get("text")) for exchange in last.exchanges for item in exchange.items)


def format_meetings(rows: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[str]:
    """Return the lines of the section: agent, store, and a cell for each of `MEETINGS`."""
    return [
        INTRODUCTION,
        f"| agent | store | {' | '.join(meeting.title for meeting in MEETINGS)} |",
        f"|---|---|{'---|' * len(MEETINGS)}",
        *(f"| `{agent}` | {store} | {' | '.join(cells)} |" for agent, store, cells in rows),
    ]
