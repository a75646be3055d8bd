"""Cases of the corpus: a stored conversation, what lint finds in it, and the scenario that is reproduced from it."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.conversations.histories.conversation import CallEntry, RequestEntry, StoredConversation
from pytest_approvals.conversations.histories.files import SkippedFile, read_conversations
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import Reproducer, Reproduction
from pytest_approvals.conversations.reproduce.symptoms import find_symptoms
from pytest_approvals.errors import ApprovalsError, HistoryError
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Scenario

FOLDER = Path("tests/conversations/corpus")
"""Where the cases are, in a checkout."""

_LIMIT = RunLimits(seconds=5.0)
_MAX_TRIALS = 24
_MAX_NEIGHBOURS = 90
_SECONDS = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case.

    Attributes:
        row: The id of the known bug.
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
    """Return the cases by the ids of their rows."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.case.json"))]
    cases = [Case(**{name: _freeze(value) for name, value in document.items()}) for document in documents]
    return {case.row: case for case in cases}


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def save_case(case: Case, folder: Path = FOLDER) -> None:
    """Write a case."""
    text = json.dumps(asdict(case), indent=1, ensure_ascii=False) + "\n"
    (folder / f"{case.row}.case.json").write_text(text, encoding="utf-8")


def scenario_path(case: Case, folder: Path = FOLDER) -> Path:
    """Return the file of the reproduced scenario."""
    return folder / f"{case.row}.approval.yaml"


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
    releases = [release for release in (case.bad_release, case.good_release) if release is not None]
    reproducer = Reproducer(
        releases,
        limit=_LIMIT,
        most_trials=_MAX_TRIALS,
        report_progress=report_progress,
        most_neighbours=_MAX_NEIGHBOURS,
        neighbour_seconds=_SECONDS,
    )
    for conversation in conversations:
        names = {call.tool for call in conversation.of(CallEntry)}
        gated = [name for name in case.gated if name in names]
        draft = build_draft(conversation, gated)
        symptoms = find_symptoms(conversation, _gates_for_lint(conversation, gated))
        origin = f"Made from what {case.bad} stored ({conversation.format})."
        found = reproducer.reproduce(draft, origin, case.checks, symptoms)
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
