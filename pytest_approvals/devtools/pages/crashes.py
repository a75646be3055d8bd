"""Page `docs/crashes.md`: what is left of an approval when the agent's process dies, for each store.

`python -m pytest_approvals.devtools.pages.crashes`, in a checkout, plays a story for each point at which a process can
die, on each agent and store, and writes the page. With `--agent SPEC` it prints the rows of that agent only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.devtools.pages.forgetting_stores import LOSSES, Loss, describe_loss, format_losses, write_loss
from pytest_approvals.devtools.pages.two_workers import (
    MEETINGS,
    Meeting,
    describe_meeting,
    format_meetings,
    write_meeting,
)
from pytest_approvals.errors import ApprovalsError
from pytest_approvals.journal.events import AgentKilled
from pytest_approvals.journal.history import Exchange, History, RecordedCall
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, is_cut_write
from pytest_approvals.scenario.variants import allowed_variants
from pytest_approvals.scenario.vocabulary import SERVER_STORES

PAGE = Path("docs/crashes.md")
"""The page, from the root of a checkout."""

AGENTS = (
    "reference",
    "google_adk",
    "google_adk.resumable",
    "langgraph",
    "strands",
    "agno",
    "agent_framework",
    "agent_framework.workflow",
    "agent_framework.hosted",
    "agent_framework.hosted_conversation",
    "openai_agents",
    "pydantic_ai",
    "pydantic_ai.dbos",
    "autogen",
    "claude_agent_sdk",
    "claude_agent_sdk_js",
    "mastra",
    "mastra.durable",
    "openai_agents_js",
    "ai_sdk",
)
"""The agents on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSetting:
    """A store as an application sets it up, by options of the adapter.

    Attributes:
        serialize: `json`, or the serialize mode of a store.
        words: What the page says of it besides the name of the store.
        options: The options of the stories.
    """

    serialize: str
    words: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name of the store on the page."""
        return ", ".join(filter(None, (self.serialize.removeprefix("native."), self.words)))


SETTINGS: Mapping[str, Sequence[StoreSetting]] = {
    "langgraph": (
        StoreSetting(
            serialize="native.sqlite",
            words='`durability="async"`, each write takes 0.25 s',
            options={"durability": "async", "write_delay": 0.25},
        ),
        StoreSetting(serialize="native.sqlite", words='`durability="exit"`', options={"durability": "exit"}),
        StoreSetting(
            serialize="native.sqlite", words="`SqliteSaver` and `invoke`", options={"checkpointer": "blocking"}
        ),
        StoreSetting(
            serialize="native.postgres", words="`PostgresSaver` and `invoke`", options={"checkpointer": "blocking"}
        ),
    ),
    "pydantic_ai.dbos": (
        StoreSetting(serialize="native.sqlite", words="tools are no steps", options={"steps": False}),
    ),
}
"""Other settings of stores than those that an adapter chooses, by agent."""

TIME_LIMIT = 60.0
"""Seconds for one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashPoint:
    """A point at which the process dies.

    Attributes:
        title: The heading of its column.
        first: Where it dies in the turn that asks; empty if that ends.
        second: Where it dies in the turn with the decision.
        rejected: The decision is a rejection.
    """

    title: str
    first: str = ""
    second: str = ""
    rejected: bool = False


POINTS = (
    CrashPoint(title="the request is stored, nobody has seen it", first="outcome"),
    CrashPoint(title="in the middle of the first write after the approval", second="write"),
    CrashPoint(title="approved, the call is about to run", second="before c1"),
    CrashPoint(title="in the middle of the call", second="started c1"),
    CrashPoint(title="between the effect and its record", second="ended c1"),
    CrashPoint(title="in the middle of the first write after the call", second="write c1"),
    CrashPoint(title="the model is told the result", second="model"),
    CrashPoint(title="all is done, nobody has seen it", second="outcome"),
    CrashPoint(title="rejected, the model is told", second="model", rejected=True),
)
"""The points, in the order of a turn's life."""

WAYS: Mapping[str, str] = {
    "answer": "  - oracle: true\n",
    "resume": "  - go_on: true\n",
    "message": "  - send: How is it?\n",
}
"""How the application goes on, as steps of a story."""

_NO_STORE, _NOT_REACHED, _UNPLAYED = "no store", "not reached", "cannot be played"

_INTRODUCTION = """\
# Crashes

What is left of an approval when the process of the agent dies depends on what its store has by then. Each cell is a
played run: the agent's process is killed (SIGKILL) at that point, and a new process goes on from the same store, as the
documentation of the framework says. `json` is the state that an application keeps between turns. In the middle of a
write, the kernel ends the process: half of a file is there, or a transaction without its end.

[Approvals that survive](durable-approvals.md) says what follows for an application. The scenarios `crashes/*` of the
[catalogue](catalogue.md#crashes) judge these runs and more; what fails in them has a [page](findings/README.md).

`langgraph` waits for each checkpoint (`durability="sync"`) unless its row says something else. By default it does not
(`async`), so that chance decides which checkpoints a crash leaves; that row shows a store that takes its time. `exit`
stores in the end, and when a run pauses. Its documentation names [both risks](durable-approvals.md#by-framework).

`agent_framework` keeps its session in a file between runs, and `agent_framework.workflow` runs the agent in a workflow
that writes checkpoints. `hosted` and `hosted_conversation` are clients of its server, which stores responses in files:
the one keeps the id of the last response that it has seen, the other one that of a conversation.

A run of `pydantic_ai.dbos` is a workflow of DBOS, and the bodies of its tools are steps unless its row says something
else. The new process takes the place of the dead one, and DBOS resumes the workflow that was cut off.

The CLI of `claude_agent_sdk` and `claude_agent_sdk_js` writes its transcript [a moment
later](findings/claude-agent-sdk-model-is-told-before-the-transcript.md), so that chance decides what is left if the
process dies as soon as the model is told. The CLI is killed together with the process that has started it.

`python -m pytest_approvals.devtools.pages.crashes` plays all of it and regenerates this page in a checkout. PostgreSQL
is played if `PYTEST_APPROVALS_POSTGRES` is the address of a server.
"""

_FIRST = """\
## The application answers, or resumes

The new process lists what waits for an answer. The application answers that ("asked again"), and if nothing is listed,
it resumes without an answer, or sends a message where a framework cannot resume.
"""

_SECOND = """\
## The application sends a new message

The person writes something else, whatever waits.
"""

_WORDS = """\
| cell | meaning |
|---|---|
| runs once | the call has had one effect, or may have had it, and the model was told of it |
| runs again | a person was asked as if it had not run, and has approved it again: two effects |
| **runs twice** | the call has had two effects, or may have had them, and nobody has approved the second one |
| not run, told | the call has not run, and the model was told so |
| unknown, told | the call has had one effect, or may have had it, and the model was told that this is unknown |
| waits | the call has not run, and its request can still be answered |
| **forgotten** | nothing waits, and the model was not told of the call |
| **stuck** | the model's provider refuses the conversation |
| refused | the agent refuses what the application sends, and nothing is lost |
| not reached | the process has written no file there: it stores nothing, or another process writes, as of a database |
| no store | the framework has no store, and the application stores its state after the turn |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRow:
    """What one agent does on one store.

    Attributes:
        agent: The agent spec.
        store: `json`, or the name of a store of its framework, with its setting.
        recovered: For each point, what happens if the application answers or resumes.
        messaged: For each point, what happens if it sends a message.
        met: For each of `MEETINGS`, what two workers do; empty for `json`, of which each worker has a copy, and if the
            adapter plays no two workers.
        forgotten: For each of `LOSSES`, what a store that forgets leaves.
    """

    agent: str
    store: str
    recovered: tuple[str, ...]
    messaged: tuple[str, ...]
    met: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


def write_story(point: CrashPoint, way: str) -> Scenario:
    """Return the story of a point, after which the application goes on in one of the `WAYS`."""
    first = f"    crashes: {point.first}\n" if point.first else ""
    verdict = "{reject: too much}" if point.rejected else "approve"
    second = f"  - decide: {{c1: {verdict}}}\n    crashes: {point.second}\n" if point.second else ""
    oracle = "oracles: [reject_all]\n" if point.rejected else ""
    text = f"""\
title: {point.title}
tools:
  pay: {{approval: always, parameters: {{amount: integer}}, returns: "paid {{amount}}"}}
model:
  - calls: [{{id: c1, tool: pay, arguments: {{amount: 5}}}}]
  - say: So it is.
  - say: Not at all.
{oracle}caller:
  - send: Pay 5
{first}{second}{WAYS[way]}  - leave: true
"""
    return parse_scenario(text, name=_name(point, way), path=f"{way}.approval.yaml")


def describe_run(history: History) -> str:
    """Return what became of the call after the crash, in the words of the page."""
    killed = next((event.n for event in history.events if isinstance(event, AgentKilled)), None)
    if killed is None:
        return _NOT_REACHED
    # After a restore of what the application kept, the same call is one of another branch.
    calls = [call for call in history.calls if call.label == history.calls[0].label]
    later = [turn for turn in history.turns if turn.start.n > killed]
    waits = history.end is not None and bool(history.end.pending)
    exchanges = [exchange for exchange in history.exchanges if exchange.n > killed]
    told = (
        any(_has_result(exchange, call) for exchange in exchanges for call in calls)
        if exchanges
        else not waits and any(call.deliveries for call in calls)
    )
    words = _describe_effect(calls, waits=waits, told=told)
    if later and later[-1].failed:
        return f"{words}, refused" if later[-1].refused else f"{words}, **stuck**"
    return words


def _has_result(exchange: Exchange, call: RecordedCall) -> bool:
    placed = any(each is call for _, each in exchange.placed_calls)
    return placed and not any(each is call for each in exchange.unanswered)


def _describe_effect(calls: Sequence[RecordedCall], *, waits: bool, told: bool) -> str:
    runs = sum(len(call.executions) for call in calls)
    if runs > 1:
        approvals = [decision for call in calls for decision in call.decisions if decision.approves]
        return "runs again" if len(approvals) >= runs else "**runs twice**"
    if runs == 0:
        return "waits" if waits else "not run, told" if told else "**forgotten**"
    if not told:
        return "waits, as if it had not run" if waits else "**forgotten**"
    return "runs once" if any(call.first_return is not None for call in calls) else "unknown, told"


def is_asked_again(history: History) -> bool:
    """Return whether the process after the crash lists the request about the call."""
    killed = next((event.n for event in history.events if isinstance(event, AgentKilled)), 0)
    return any(restore.event.n > killed and restore.requested_calls for restore in history.restores)


class StorePlayer:
    """Player of the stories on one agent and store."""

    def __init__(self, agent: str, setting: StoreSetting) -> None:
        stories = {_name(point, way): write_story(point, way) for point in POINTS for way in WAYS}
        stories |= {meeting.title: write_meeting(meeting) for meeting in MEETINGS}
        stories |= {loss.title: write_loss(loss) for loss in LOSSES}
        catalogue = {name: replace(story, options=setting.options) for name, story in stories.items()}
        self._runs = AgentRuns(AgentRelease(spec=AgentSpec.parse(agent)), catalogue, TIME_LIMIT)
        self._catalogue = catalogue
        self._serialize = setting.serialize

    @property
    def source(self) -> AgentSource:
        """The source of the agent."""
        return self._runs.source

    def story(self, point: CrashPoint, way: str) -> Scenario:
        """Return the story of a point, with the options of the setting."""
        return self._catalogue[_name(point, way)]

    def play(self, point: CrashPoint, way: str) -> History | None:
        """Play the story of a point in the plainest variant on the store; None if the agent cannot."""
        return self._play(_name(point, way))

    def _play(self, name: str) -> History | None:
        asked_for = {"serialize": (self._serialize,), "protocol": ("native",)}
        variants = allowed_variants(self._catalogue[name], self.source.facts, asked_for)
        return self._runs.history(name, variants[0]) if variants else None

    def describe_recovery(self, point: CrashPoint) -> str:
        """Return what happens if the application answers what is asked again, and resumes if nothing is."""
        answered = self.play(point, "answer")
        if answered is None:
            return self._describe_unplayed(point)
        if (words := describe_run(answered)) == _NOT_REACHED:
            return words
        if is_asked_again(answered):
            return f"asked again, {words}"
        for way in ("resume", "message"):
            history = self.play(point, way)
            # An agent may resume without an answer only while something waits.
            if history is not None and not _is_broken(history):
                return f"{way}: {describe_run(history)}"
        return _UNPLAYED

    def describe_message(self, point: CrashPoint) -> str:
        """Return what happens if the application sends a message."""
        history = self.play(point, "message")
        return self._describe_unplayed(point) if history is None else describe_run(history)

    def _describe_unplayed(self, point: CrashPoint) -> str:
        if not is_cut_write(point.second):
            return _UNPLAYED
        return _NO_STORE if self._serialize == "json" else _NOT_REACHED

    def describe_meeting(self, meeting: Meeting) -> str:
        """Return what happens if two workers take up one session."""
        history = self._play(meeting.title)
        return _UNPLAYED if history is None else describe_meeting(history) or _NOT_REACHED

    def describe_loss(self, loss: Loss) -> str:
        """Return what is left if the store forgets."""
        history = self._play(loss.title)
        if history is None:
            return _NOT_REACHED if self._serialize in SERVER_STORES else _UNPLAYED
        return describe_loss(history) or _NOT_REACHED


def _is_broken(history: History) -> bool:
    return history.end is not None and history.end.how == "broken"


def _name(point: CrashPoint, way: str) -> str:
    return f"{point.title}: {way}"


def list_stores(source: AgentSource) -> list[str]:
    """Return the serialize modes with which a state leaves the process: those of stores, or `json`."""
    stores = [f"native.{name}" for name in source.facts.stores if f"native.{name}" in source.facts.capabilities]
    return stores or ["json"]


def list_settings(agent: str) -> list[StoreSetting]:
    """Return the stores of an agent, and after each the other settings of it."""
    stores = list_stores(StorePlayer(agent, StoreSetting(serialize="json")).source)
    others = SETTINGS.get(agent, ())
    return [
        setting
        for serialize in stores
        for setting in (StoreSetting(serialize=serialize), *(one for one in others if one.serialize == serialize))
    ]


def examine_agent(agent: str) -> Iterator[StoreRow]:
    """Play all stories on each store of an agent."""
    with warnings.catch_warnings():
        # Frameworks warn about themselves in every run.
        warnings.simplefilter("ignore")
        for setting in list_settings(agent):
            player = StorePlayer(agent, setting)
            yield StoreRow(
                agent=agent,
                store=setting.title,
                recovered=tuple(player.describe_recovery(point) for point in POINTS),
                messaged=tuple(player.describe_message(point) for point in POINTS),
                met=tuple(player.describe_meeting(meeting) for meeting in MEETINGS)
                if setting.serialize != "json" and "simultaneous" in player.source.facts.capabilities
                else (),
                forgotten=tuple(player.describe_loss(loss) for loss in LOSSES),
            )


def format_crashes_page(rows: Sequence[StoreRow]) -> str:
    """Return the text of `docs/crashes.md`."""
    recovered = _format_table((row.agent, row.store, row.recovered) for row in rows)
    messaged = _format_table((row.agent, row.store, row.messaged) for row in rows)
    met = format_meetings([(row.agent, row.store, row.met) for row in rows if row.met])
    lost = format_losses([(row.agent, row.store, row.forgotten) for row in rows if row.forgotten])
    return "\n".join([_INTRODUCTION, _WORDS, _FIRST, *recovered, "", _SECOND, *messaged, "", *met, "", *lost, ""])


def _format_table(rows: Iterator[tuple[str, str, tuple[str, ...]]]) -> Iterator[str]:
    yield f"| agent | store | {' | '.join(point.title for point in POINTS)} |"
    yield f"|---|---|{'---|' * len(POINTS)}"
    for agent, store, cells in rows:
        yield f"| `{agent}` | {store} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print the rows of the agents that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.pages.crashes")
    parser.add_argument("--agent", action="append", metavar="SPEC", help="an agent, without writing the page")
    args = parser.parse_args(arguments)
    rows: list[StoreRow] = []
    try:
        for agent in args.agent or AGENTS:
            for row in examine_agent(agent):
                rows.append(row)
                parts = (row.recovered, row.messaged, row.met, row.forgotten)
                print(f"{row.agent} {row.store}: {' / '.join('; '.join(cells) for cells in parts)}", flush=True)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if not args.agent:
        PAGE.write_text(format_crashes_page(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
