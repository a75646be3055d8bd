"""Corpus of conversations that bad releases of frameworks really stored, linted and reproduced.

    known bug ──► scenario that shows it ──► bad release ──► what it stored ──► lint, reproduce ──► case, table

In a checkout, `python -m pytest_approvals.devtools.corpus` reproduces what was not reproduced yet, and writes the page;
with `--capture` it plays the bad releases of rows of `docs/known-bugs.yaml` without a case first. A row that has a good
release may have several cases, each of a story of another family. With `--trace` it plays them once more, traced by the
instrumentation of the framework: what that writes is a case, too.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns, CampaignMemory
from pytest_approvals.checks import CHECKS
from pytest_approvals.conversations.histories.conversation import CallEntry, RequestEntry, StoredConversation
from pytest_approvals.conversations.histories.files import SkippedFile, read_conversations
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import Reproducer, Reproduction, find_symptoms
from pytest_approvals.devtools.known_bugs import KnownBug, load_known_bugs
from pytest_approvals.devtools.known_bugs.search import find_citing, flavour_pairs
from pytest_approvals.devtools.traces import REQUIREMENTS, capture_trace
from pytest_approvals.errors import ApprovalsError, HistoryError, UnknownName
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import LetOracleStep, SaveStep, Scenario, TurnStep, Variant

MAX_SCENARIOS = 400
"""How many runs are tried for one row and flavour."""

_STORES = ("json", "native.sqlite")
_SQLITE_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCase:
    """What a bad release stored in a run that shows a known bug.

    Attributes:
        row: The id of the known bug.
        agent, requirements: The bad release, and further requirements of its environment.
        good, good_requirements: A release without the bug; empty if none is known.
        scenario, variant: The run.
        checks: The checks of the row that failed in it.
        suffix: That of the file: `.json`, or `.sql` for the dump of a database.
        text: The text of the file.
    """

    row: str
    agent: str
    requirements: tuple[str, ...]
    good: str
    good_requirements: tuple[str, ...]
    scenario: str
    variant: str
    checks: tuple[str, ...]
    suffix: str
    text: str


class Capture:
    """Captures what bad releases stored.

    Args:
        catalogue: The scenarios, by id.
        memory: The journals of earlier campaigns.
        limit: The limits of one run.
    """

    def __init__(self, catalogue: Mapping[str, Scenario], memory: CampaignMemory | None, limit: float = 10.0) -> None:
        self._catalogue = catalogue
        self._memory = memory
        self._limit = limit

    def capture(self, row: KnownBug, skipped: Collection[str] = ()) -> StoredCase | str:
        """Return what was stored in the first run that shows the bug of a row, or why there is nothing.

        Args:
            row: The row.
            skipped: Families of scenarios that are not played.
        """
        why = "no run of the catalogue that stores something shows it"
        for bad_release, good_release in flavour_pairs(row):
            bad = AgentRuns(bad_release, self._catalogue, self._limit, self._memory)
            good = None
            if good_release is not None:
                good = AgentRuns(good_release, self._catalogue, self._limit, self._memory)
            for runs in (bad, good):
                if runs is not None and runs.unavailable:
                    why = runs.unavailable
                    break
            else:
                for name, variant, checks in self._find_runs(row, bad, good, skipped):
                    stored = self._store(bad, name, variant)
                    if stored is not None:
                        suffix, text = stored
                        return StoredCase(
                            row=row.id,
                            agent=str(bad_release.spec),
                            requirements=bad_release.requirements,
                            good="" if good_release is None else str(good_release.spec),
                            good_requirements=() if good_release is None else good_release.requirements,
                            scenario=name,
                            variant=variant.id,
                            checks=checks,
                            suffix=suffix,
                            text=text,
                        )
        return why

    def _find_runs(
        self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None, skipped: Collection[str]
    ) -> Iterator[tuple[str, Variant, tuple[str, ...]]]:
        """Yield the runs with something stored in which a check of the row fails, and not on the good release."""
        citing = find_citing(self._catalogue, row)
        others = [name for name in self._catalogue if name not in citing]
        plan = [(name, variant) for name in citing for variant in _stored_variants(bad.variants(name))]
        ranks = zip_longest(*(_stored_variants(bad.variants(name))[:2] for name in others))
        plan += [
            (name, variant) for rank in ranks for name, variant in zip(others, rank, strict=True) if variant is not None
        ]
        plan = [(name, variant) for name, variant in plan if _get_family(name) not in skipped]
        for name, variant in plan[:MAX_SCENARIOS]:
            symptoms = {each for each in bad.symptoms(name, variant) if each.check in row.checks}
            if symptoms and good is not None:
                if variant not in good.variants(name) or good.why_unplayed(name, variant) is not None:
                    continue
                symptoms -= good.symptoms(name, variant)
            if symptoms:
                found = {each.check for each in symptoms}
                yield name, variant, tuple(slug for slug in row.checks if slug in found)

    def _store(self, bad: AgentRuns, name: str, variant: Variant) -> tuple[str, str] | None:
        """Play a run again, and return the suffix and the text of what the framework stored."""
        loop = get_session_loop()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            limit = RunLimits(seconds=self._limit)
            scenario = self._catalogue[name]
            # What the last turn left is saved by a step of its own only.
            played = scenario.caller or (TurnStep(text=scenario.prompt), LetOracleStep())
            scenario = replace(scenario, caller=(*played, SaveStep(name="end")), reaches={})
            run = loop.run(run_scenario(scenario, variant, bad.source, limit=limit, store_folder=Path(folder)))
            return read_store(bad.release.spec.name, run.saved, Path(folder))


def _get_family(scenario: str) -> str:
    return scenario.partition("/")[0]


def _stored_variants(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that leave something readable, the plainest first."""
    return [
        variant
        for variant in variants
        if variant.serialize in _STORES and variant.history == "whole" and not variant.saved_by
    ]


def read_store(agent: str, saved: Mapping[str, tuple[str, ...]], folder: Path) -> tuple[str, str] | None:
    """Return the suffix and the text of what a framework stored, without what the adapter adds to it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[: len(_SQLITE_MAGIC)] == _SQLITE_MAGIC:
            return ".sql", dump_database(path)
    documents = [parts[-1] for parts in saved.values()]
    extract = _EXTRACTS.get(agent)
    if not documents or extract is None:
        return None
    found = [extract(json.loads(text)) for text in documents]
    held = [document for document in found if document]
    if not held:
        return None
    texts = [json.dumps(document, ensure_ascii=False, sort_keys=False) for document in held]
    # Several sessions are several conversations: one on each line.
    return (".json", _pretty(held[0])) if len(held) == 1 else (".jsonl", "".join(f"{text}\n" for text in texts))


def _pretty(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def dump_database(path: Path) -> str:
    """Return a database as SQL, which a repository can compare."""
    with closing(sqlite3.connect(path)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


def _extract_pydantic_ai(state: Any) -> Any:
    messages = state.get("messages") if isinstance(state, dict) else state
    return json.loads(messages) if isinstance(messages, str) else messages


def _extract_openai_agents(state: Any) -> Any:
    """Return the state of the newest run, else the items that the application keeps."""
    runs = state.get("runs") or ()
    return runs[-1] if runs else state.get("items") or state.get("history")


def _extract_openai_agents_js(state: Any) -> Any:
    return state.get("state") or state.get("history")


def _extract_strands(state: Any) -> Any:
    return state


def _extract_autogen(state: Any) -> Any:
    return state.get("state")


def _extract_agno(state: Any) -> Any:
    return state.get("runs")


_EXTRACTS: dict[str, Callable[[Any], Any]] = {
    "pydantic_ai": _extract_pydantic_ai,
    "openai_agents": _extract_openai_agents,
    "openai_agents_js": _extract_openai_agents_js,
    "agent_framework": lambda state: state,
    "google_adk": lambda state: state,
    "ai_sdk": lambda state: state,
    "strands": _extract_strands,
    "autogen": _extract_autogen,
    "agno": _extract_agno,
}


# --- cases ---

FOLDER = Path("tests/conversations/corpus")
"""Where the cases are, in a checkout."""

_LIMIT = RunLimits(seconds=5.0)
_MAX_TRIALS = 24
_MAX_NEIGHBOURS = 160
_SECONDS = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case.

    Attributes:
        row: The id of the known bug.
        number: Which of the cases of the row, from 1.
        is_trace: The file holds spans, and not what is stored.
        bad, bad_with: The release that stored the conversation, and further requirements of its environment.
        good, good_with: A release without the bug; empty if none is known.
        scenario, variant: What was played on the bad release.
        checks: The checks of the row that failed then.
        file: The name of the stored file.
        format: The format of the conversation; empty if it is not read.
        gated: The tools that were named with `--gated`, if the conversation shows no requests.
        findings: The rules that lint finds broken, in their order.
        check: The check that fails in the reproduced scenario; empty if there is none.
        is_neighbour: The scenario is a neighbour of the conversation.
        why: Why there is none.
        reason: The same as somebody has found out, for the page; it stays when the case is evaluated anew.
    """

    row: str
    bad: str
    good: str = ""
    bad_with: tuple[str, ...] = ()
    good_with: tuple[str, ...] = ()
    scenario: str
    variant: str
    checks: tuple[str, ...] = ()
    file: str
    format: str = ""
    gated: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    check: str = ""
    is_neighbour: bool = False
    why: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)
    number: int = 1
    is_trace: bool = False

    @property
    def name(self) -> str:
        """The name of the case, with which the names of its files begin."""
        if self.is_trace:
            return f"{self.row}-trace"
        return self.row if self.number == 1 else f"{self.row}-{self.number}"

    @property
    def bad_release(self) -> AgentRelease:
        """The release that has the bug."""
        return AgentRelease(spec=AgentSpec.parse(self.bad), requirements=self.bad_with)

    @property
    def good_release(self) -> AgentRelease | None:
        """The release that does not have it; None if none is known."""
        return AgentRelease(spec=AgentSpec.parse(self.good), requirements=self.good_with) if self.good else None

    @property
    def is_same(self) -> bool:
        """Whether the scenario fails a check by which the bug is known."""
        return self.check in self.checks


def load_cases(folder: Path = FOLDER) -> dict[str, Case]:
    """Return the cases by their names, those of a row in a sequence."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.case.json"))]
    cases = [Case(**{name: _freeze(value) for name, value in document.items()}) for document in documents]
    return {case.name: case for case in sorted(cases, key=_get_order)}


def _get_order(case: Case) -> tuple[str, bool, int]:
    return case.row, case.is_trace, case.number


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def save_case(case: Case, folder: Path = FOLDER) -> None:
    """Write a case."""
    text = json.dumps(asdict(case), indent=1, ensure_ascii=False) + "\n"
    (folder / f"{case.name}.case.json").write_text(text, encoding="utf-8")


def scenario_path(case: Case, folder: Path = FOLDER) -> Path:
    """Return the file of the reproduced scenario."""
    return folder / f"{case.name}.reproduced.yaml"


@contextmanager
def open_stored(path: Path) -> Iterator[Path]:
    """Yield the file that a framework wrote: a database is kept as SQL, which a repository can compare."""
    if path.suffix != ".sql":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / f"{path.stem}.sqlite"
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(path.read_text(encoding="utf-8"))
        yield database


def read_case(case: Case, folder: Path = FOLDER) -> list[StoredConversation]:
    """Return the conversations that were stored.

    Raises:
        HistoryError: The file cannot be read.
    """
    found = []
    with open_stored(folder / case.file) as path:
        for stored in read_conversations([str(path)]):
            if isinstance(stored, HistoryError):
                raise stored
            if isinstance(stored, SkippedFile):
                raise HistoryError("no conversation of a known format")
            found.append(stored.conversation)
    return found


def lint_case(case: Case, folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the rules that lint finds broken in a case."""
    return tuple(
        finding.rule
        for conversation in read_case(case, folder)
        for finding in lint_conversation(conversation, _gates_for_lint(conversation, case.gated))
        if finding.is_mistake
    )


def _gates_for_lint(conversation: StoredConversation, gated: Sequence[str]) -> Sequence[str]:
    # Without decisions every execution of a gated tool would be one.
    return gated if conversation.shows_decisions else ()


def evaluate(
    case: Case, catalogue: Mapping[str, Scenario], folder: Path, report_progress: Callable[[str], None]
) -> Case:
    """Return the case with what lint finds and what is reproduced; the scenario is written next to it."""
    case = replace(case, check="", is_neighbour=False, why="", findings=(), format="")
    scenario_path(case, folder).unlink(missing_ok=True)
    try:
        conversations = read_case(case, folder)
        case = replace(
            case,
            format=conversations[0].format,
            gated=_list_unshown_gates(conversations, catalogue[case.scenario]),
        )
        case = replace(case, findings=lint_case(case, folder))
        found = _reproduce(case, conversations, report_progress)
    except ApprovalsError as error:
        return replace(case, why=str(error).replace(str(folder), ""))
    if found is None or found.failing_check is None:
        return replace(case, why="no check fails, and none on a neighbour")
    scenario_path(case, folder).write_text(found.text, encoding="utf-8")
    return replace(case, check=found.failing_check.check, is_neighbour=found.neighbour is not None)


def _reproduce(
    case: Case, conversations: Sequence[StoredConversation], report_progress: Callable[[str], None]
) -> Reproduction | None:
    found = _reproduce_by(case, conversations, case.checks, _MAX_NEIGHBOURS, report_progress)
    # Another check may tell the releases apart on the conversation itself.
    return found if found is not None else _reproduce_by(case, conversations, (), 0, report_progress)


def _reproduce_by(
    case: Case,
    conversations: Sequence[StoredConversation],
    checks: Sequence[str],
    most_neighbours: int,
    report_progress: Callable[[str], None],
) -> Reproduction | None:
    releases = [release for release in (case.bad_release, case.good_release) if release is not None]
    reproducer = Reproducer(
        releases,
        limit=_LIMIT,
        most_trials=_MAX_TRIALS,
        report_progress=report_progress,
        most_neighbours=most_neighbours,
        neighbour_seconds=_SECONDS,
    )
    for conversation in conversations:
        names = {call.tool for call in conversation.of(CallEntry)}
        gated = [name for name in case.gated if name in names]
        draft = build_draft(conversation, gated)
        symptoms = find_symptoms(conversation, _gates_for_lint(conversation, gated))
        origin = f"Made from what {case.bad} stored ({conversation.format})."
        found = reproducer.reproduce(draft, origin, checks, symptoms)
        # What fails on both releases shows nothing of the bug.
        if found.failing_check is not None and (case.good_release is None or found.holding):
            return found
    return None


def _list_unshown_gates(conversations: Sequence[StoredConversation], scenario: Scenario) -> tuple[str, ...]:
    """Return the gated tools, which whoever has the agent knows, if the conversations do not show them."""
    if any(True for conversation in conversations for _ in conversation.of(RequestEntry)):
        return ()
    names = {call.tool for conversation in conversations for call in conversation.of(CallEntry)}
    return tuple(tool.name for tool in scenario.tools if tool.approval != "never" and tool.name in names)


# --- the command ---

TABLE = Path("docs/known-bugs.yaml")
PAGE = Path("docs/corpus.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture what is missing, reproduce what was not, and write the page; return 1 if something is left."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.corpus")
    parser.add_argument("--only", nargs="+", action="extend", metavar="ID", help="only the rows with these ids")
    parser.add_argument("--capture", action="store_true", help="play bad releases whose rows have no case yet")
    parser.add_argument(
        "--cases", type=int, default=1, metavar="NUMBER", help="how many cases to capture of a row with a good release"
    )
    parser.add_argument("--trace", action="store_true", help="play cases again, traced, whose rows have no trace yet")
    parser.add_argument("--fresh", action="store_true", help="reproduce cases anew that were reproduced before")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N disjoint parts of the rows")
    args = parser.parse_args(arguments)
    try:
        return _execute(args)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _execute(args: argparse.Namespace) -> int:
    rows = load_known_bugs(TABLE, CHECKS)
    known = {row.id: row for row in rows}
    for name in args.only or ():
        if name not in known:
            raise UnknownName("row", name, known)
    if not args.page:
        part, parts = map(int, args.shard.split("/"))
        chosen = [row for row in rows if not args.only or row.id in args.only][part - 1 :: parts]
        catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()])}
        for row in chosen:
            _renew(row, catalogue, args)
    cases = load_cases()
    PAGE.write_text(format_page(rows, cases), encoding="utf-8")
    return int(any(not case.check for case in cases.values()))


def _renew(row: KnownBug, catalogue: Mapping[str, Scenario], args: argparse.Namespace) -> None:
    known = [case for case in load_cases().values() if case.row == row.id]
    cases, traces = ([case for case in known if case.is_trace == is_trace] for is_trace in (False, True))
    wanted = args.cases if row.good is not None else 1
    if args.capture and len(cases) < wanted:
        capture = Capture(catalogue, CampaignMemory.of_user())
        while len(cases) < wanted:
            captured = capture.capture(row, {_get_family(case.scenario) for case in cases})
            if isinstance(captured, str):
                print(f"{row.id}: {captured}", flush=True)
                break
            cases.append(add_case(captured, number=len(cases) + 1))
    if args.trace and not traces:
        traces = list(_trace_first(cases, catalogue))
    for case in (*cases, *traces):
        if args.fresh or not (case.check or case.why):
            began = time.monotonic()
            renewed = evaluate(case, catalogue, FOLDER, lambda text: print(f"  {text}", flush=True))
            save_case(renewed)
            print(f"{renewed.name}: {renewed.check or renewed.why} ({time.monotonic() - began:.0f} s)", flush=True)


def _trace_first(cases: Sequence[Case], catalogue: Mapping[str, Scenario]) -> Iterator[Case]:
    """Yield the trace of the first of the cases that can be traced, if there is one."""
    for case in cases:
        if case.bad_release.spec.name not in REQUIREMENTS:
            continue
        trace = capture_trace(case.bad_release, catalogue[case.scenario], case.checks, case.row)
        if isinstance(trace, str):
            print(f"{case.name}: {trace}", flush=True)
            continue
        traced = replace(case, variant=trace.variant, checks=trace.checks, is_trace=True, number=1, reason="")
        traced = replace(traced, file=f"{traced.name}.jsonl", gated=(), findings=(), format="", check="", why="")
        (FOLDER / traced.file).write_text(trace.text, encoding="utf-8")
        save_case(traced)
        yield traced
        return


def add_case(captured: StoredCase, folder: Path = FOLDER, *, number: int = 1) -> Case:
    """Keep what was captured as one of the cases of its row, and return the case."""
    case = Case(
        row=captured.row,
        number=number,
        bad=captured.agent,
        bad_with=captured.requirements,
        good=captured.good,
        good_with=captured.good_requirements,
        scenario=captured.scenario,
        variant=captured.variant,
        checks=captured.checks,
        file="",
    )
    case = replace(case, file=f"{case.name}{captured.suffix}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / case.file).write_text(captured.text, encoding="utf-8")
    save_case(case, folder)
    return case


def format_page(rows: Sequence[KnownBug], cases: Mapping[str, Case]) -> str:
    """Return the text of `docs/corpus.md`."""
    kept = [case for row in rows for case in cases.values() if case.row == row.id]
    shown = {case.row for case in kept}
    reproduced = [case for case in kept if case.check]
    same = [case for case in reproduced if case.is_same]
    near = [case for case in reproduced if case.is_neighbour]
    compared = [case for case in reproduced if case.good]
    traces = [case for case in kept if case.is_trace]
    lines = [
        "# Reproduced conversations",
        "",
        "Each case is a conversation that a release of a framework with a [known bug](known-bugs.md) stored at",
        "the end of a run in which the bug showed, or the [trace](stored-conversations.md#traces) of such a run that",
        "the framework's own instrumentation wrote on that release (`-trace`). From that file alone, and the names of",
        "gated tools if it does not show them, [`reproduce`](reproducing.md) made a scenario that fails on that",
        "release, and neither on the release without the bug nor on the reference agent. The checks by which the bug",
        "is known were named with `--check`.",
        "",
        f"Of {len(rows)} known bugs {len(shown)} left something that is stored, in {len(kept) - len(traces)}",
        f"conversations, and {len(traces)} of them were traced, on {_count_frameworks(traces)} frameworks.",
        f"Of these {len(kept)} cases {len(reproduced)} are reproduced, {len(compared)} of those against a good",
        f"release; {len(same)} fail a check by which the bug is known, the others another one. In {len(near)} cases it",
        "is a neighbour of the conversation that fails, since the file does not show what a client did.",
        "",
        "In a checkout, `python -m pytest_approvals.devtools.corpus` reproduces what was not reproduced yet,",
        "and writes this page; with `--capture` it plays the bad releases of rows without a case, with `--cases 2` it",
        "looks for a second story of each bug, and with `--trace` it plays cases again, traced. The files are in",
        "`tests/conversations/corpus`.",
        "",
        "| known bug | stored by | format | lint finds | reproduced as |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| `{case.name}` | `{case.bad}` | {_format_case(case)} |" for case in kept]
    lacking = [row.id for row in rows if row.id not in shown]
    if lacking:
        lines += ["", "No run of the catalogue that stores a readable conversation shows these:", ""]
        lines += [f"- `{name}`" for name in lacking]
    return "\n".join(lines) + "\n"


def _count_frameworks(cases: Sequence[Case]) -> int:
    return len({case.bad_release.spec.name for case in cases})


def _format_case(case: Case) -> str:
    findings = ", ".join(f"`{rule}`" for rule in dict.fromkeys(case.findings)) or "nothing"
    if not case.check:
        what = f"not reproduced: {case.reason or case.why}" if case.why else "not tried"
        return f"{case.format or 'not read'} | {findings} | {what}"
    how = f"[`{case.check}`](checks.md#{case.check})"
    how += "" if case.is_same else ", another check"
    how += ", on a neighbour" if case.is_neighbour else ""
    return f"`{case.format}` | {findings} | {how}"


if __name__ == "__main__":
    raise SystemExit(main())
