"""The pages about findings are made from records, and what the records say is what the frameworks do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.causes import Cause
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.spec import AgentSpec, is_in_range
from pytest_approvals.devtools.cause_runs import (
    find_transcript_problem,
    load_every_waiver,
    play_cause,
    run_cause_script,
)
from pytest_approvals.devtools.framework_stories import load_results
from pytest_approvals.devtools.pages import findings
from pytest_approvals.devtools.pages.findings import format_cause_page, format_index, list_drafts, read_transcript
from pytest_approvals.errors import CauseError, UnknownName
from pytest_approvals.reporting.upstream import (
    format_upstream_issue,
    get_script_language,
    load_every_cause,
    parse_story,
    write_cause_script,
)

FOLDER = Path(__file__).parents[2] / "docs" / "findings"
CAUSES = load_every_cause()
RACES = [cause.id for cause in CAUSES.values() if cause.sometimes]
"""What a run may show or not, as the framework's event loop has it."""

NOT_IN_THE_CATALOGUE = frozenset(
    {
        "acp-gemini-command-is-shown-in-place-of-the-tool",
        "acp-gemini-standing-approval-counts-in-other-sessions",
        "claude-agent-sdk-deferred-call-runs-in-a-fork-again",
        "claude-agent-sdk-js-deferred-call-of-a-server-in-the-process-is-lost",
        "claude-agent-sdk-js-deferred-call-runs-in-a-fork-again",
        "claude-agent-sdk-resume-runs-a-call-before-its-hook",
        "hosted-agent-framework-message-stands-before-the-result",
        "langgraph-durability-forgets-a-call-that-ran",
        "mastra-function-gate-is-lost-when-a-run-is-resumed",
        "mastra-stale-answer-settles-the-next-call-of-a-sub-agent",
        "openai-agents-state-with-a-reused-id-cannot-be-read",
    }
)
"""Causes that only their own stories show."""

UNSTEADY = frozenset(
    {"acp-codex-cancellation-is-told-in-the-users-name", "acp-opencode-rejection-takes-other-calls-with-it"}
)
"""Causes whose transcripts differ from run to run; their checks fail in each.

Here the model is told how long a call ran before it was cancelled, or the agent asks its model while the question that
it has settled is still on its way to the caller.
"""

every_cause = pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)


def read_page(cause: Cause) -> str:
    return (FOLDER / f"{cause.id}.md").read_text(encoding="utf-8")


def skip_without_node(cause: Cause) -> None:
    if get_adapter(AgentSpec.parse(cause.agent)).registry == NPM.name and not installers.is_npm_available():
        pytest.skip("Node is not on this machine")


def count_before(causes: Sequence[Cause], at: int) -> int:
    """Return how many causes of the same framework stand before one."""
    return sum(one.name == causes[at].name for one in causes[:at])


def test_each_cause_has_a_page_and_each_page_a_cause() -> None:
    """Nothing is written by hand in the folder."""
    assert sorted([*CAUSES, "README"]) == sorted(path.stem for path in FOLDER.glob("*.md"))


@every_cause
def test_a_page_is_made_from_its_record(cause: Cause) -> None:
    """`python -m pytest_approvals.devtools.pages.findings --keep` would change nothing."""
    page = read_page(cause)

    assert format_cause_page(cause, read_transcript(page)) == page


def test_the_index_is_made_from_the_records() -> None:
    """It has the counts and all pages."""
    assert format_index(CAUSES.values()) == (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_gravest_new_bugs_have_drafts_of_issues() -> None:
    """Each is what `report-upstream` writes."""
    drafts = {f"{cause.id}.md": format_upstream_issue(cause) for cause in list_drafts(CAUSES.values())}

    assert 10 == len(drafts)
    assert drafts == {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / "issues").glob("*.md")}


@every_cause
def test_documentation_is_no_package_index(cause: Cause) -> None:
    """What a framework promises stands in its pages or its repository, where a reader can see its history."""
    source = getattr(cause.documentation, "source", "")

    assert re.search(r"\b(pypi|npmjs|pythonhosted)\b", source) is None


@every_cause
def test_a_cause_has_a_scenario(cause: Cause) -> None:
    """Its story is valid."""
    assert parse_story(cause).caller != ()


@every_cause
def test_only_a_cause_with_a_waiver_or_a_warning_has_a_record(cause: Cause) -> None:
    """A failure without a waiver would fail the catalogue, and a record without a failure is about nothing."""
    waived = {waiver.cause for waiver in load_every_waiver()}
    # Stories that nobody wrote show some that no scenario of the catalogue does.
    drawn = {found.record for played in load_results().values() for found in played.causes}

    assert cause.id in waived | drawn or cause.status == "warning" or cause.id in NOT_IN_THE_CATALOGUE


@every_cause
def test_a_cause_was_seen_at_the_release_that_is_tested(cause: Cause) -> None:
    """A pin that moves makes somebody look again."""
    adapter = get_adapter(AgentSpec.parse(cause.agent))
    assert adapter.framework is not None
    assert get_pinned_release(adapter.framework, adapter.registry) == cause.releases.seen


def test_waivers_of_frameworks_refer_to_causes() -> None:
    """The others refer to public issues, and are few."""
    others = [waiver for waiver in load_every_waiver() if not waiver.cause and Path(waiver.path).parent.name != "meai"]

    assert 34 > len(others)
    assert [] == [waiver for waiver in others if not waiver.issue.startswith("https://")]


def test_a_waiver_ends_where_its_cause_was_fixed() -> None:
    """Behind the release that is without the failure, the failure is a new one."""
    fixed = {cause.id: cause.releases.fixed for cause in CAUSES.values() if cause.releases.fixed}
    late = [
        waiver
        for waiver in load_every_waiver()
        if waiver.cause in fixed and (not waiver.version or is_in_range(fixed[waiver.cause], waiver.version))
    ]

    assert [] == late


def test_few_findings_are_races() -> None:
    """What cannot be shown at will is an exception."""
    assert [
        "acp-codex-cancelled-call-is-told-in-two-ways",
        "claude-agent-sdk-model-is-told-before-the-transcript",
        "claude-agent-sdk-resume-runs-a-call-before-its-hook",
        "claude-agent-sdk-two-rule-updates-race-with-their-file",
        "claude-agent-sdk-js-model-is-told-before-the-transcript",
        "claude-agent-sdk-js-runs-calls-of-a-reply-that-broke-off",
        "claude-agent-sdk-js-two-rule-updates-race-with-their-file",
        "strands-paused-sub-agent-stays-locked",
    ] == RACES


@every_cause
def test_a_transcript_is_of_a_run_that_shows_something(cause: Cause) -> None:
    """A run that timed out, or whose model ran out of replies, shows nothing about a framework."""
    # A run that does not end, or whose model is asked too often, can be the failure itself.
    is_failure = cause.check in ("run-ends", "scenario-exercised")
    assert is_failure or "" == find_transcript_problem(read_transcript(read_page(cause)))


@pytest.mark.parametrize(
    ("transcript", "problem"),
    [
        ("turn 1\n  agent   takes too long", "agent   takes too long"),
        ("turn 1\n  model   helper has no further reply", "model   helper has no further reply"),
        ('turn 1\n  agent   finishes with "takes too long"', ""),
    ],
)
def test_a_run_that_shows_nothing_is_found(transcript: str, problem: str) -> None:
    """By the lines of its transcript."""
    assert problem == find_transcript_problem(transcript)


STEADY = [cause for cause in CAUSES.values() if cause.id not in RACES]
PLAYED = [
    # `-m slow` plays those of all pages, and other runs the first of each framework.
    pytest.param(cause, id=cause.id, marks=[pytest.mark.slow] if count_before(STEADY, at) else [])
    for at, cause in enumerate(STEADY)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cause", PLAYED)
def test_the_story_shows_the_cause(cause: Cause) -> None:
    """Played in the variant of the record, it fails the check of the record, and its transcript is that of the page."""
    skip_without_node(cause)
    played = play_cause(cause)

    assert played.shows(cause)
    if cause.id not in UNSTEADY:
        assert read_transcript(read_page(cause)) == played.transcript


NATIVE = [cause for cause in CAUSES.values() if cause.native is not None]
RELEASES = [
    # One of each framework by default. A good release has an environment of its own.
    *(
        pytest.param(cause, None, id=cause.id, marks=[pytest.mark.slow] if count_before(NATIVE, at) else [])
        for at, cause in enumerate(NATIVE)
    ),
    *(
        pytest.param(cause, cause.native.good, id=f"{cause.id}-{cause.native.good}", marks=[pytest.mark.slow])
        for cause in NATIVE
        if cause.native is not None and cause.native.good
    ),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("cause", "good"), RELEASES)
def test_the_native_script_shows_the_cause(cause: Cause, good: str | None, tmp_path: Path) -> None:
    """Without this package: it ends with `BUG` and exit code 1, and on a good release with `OK` and 0."""
    skip_without_node(cause)
    run = run_cause_script(cause, tmp_path, good)

    assert ((1, "BUG: ") if good is None else (0, "OK")) == (run.code, run.last_line[: 2 if good else 5]), run.output


@pytest.mark.parametrize("cause", NATIVE, ids=lambda one: one.id)
def test_a_native_script_is_short_and_uses_the_framework_only(cause: Cause) -> None:
    """It pins its release, and fits on a page."""
    script = write_cause_script(cause)

    assert "pytest_approvals" not in script
    is_python = get_script_language(cause).suffix == ".py"
    head = script.partition("# /// script\n")[2].partition("# ///\n")[0] if is_python else script.partition("\n")[0]
    assert cause.releases.seen in head
    assert len(script.splitlines()) <= 120
    assert max(map(len, script.splitlines())) <= 120


EXAMPLE = CAUSES["openai-agents-rejected-call-runs-after-always"]


def test_a_mistake_in_a_story_is_named_with_the_line_of_the_record() -> None:
    """Not with that in the story."""
    broken = replace(EXAMPLE, story=EXAMPLE.story.replace("tools:", "tolls:", 1))
    with pytest.raises(CauseError) as error:
        parse_story(broken)

    assert EXAMPLE.story_line + 1 == error.value.line


def test_an_unknown_cause_has_no_page() -> None:
    """The nearest id is named."""
    with pytest.raises(UnknownName, match="Unknown cause 'agno-json-looses-the-approval'; did you mean"):
        findings.main(["agno-json-looses-the-approval"])


def test_a_page_that_shows_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without the failure is said to be one."""
    (tmp_path / "docs" / "findings").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(findings, "load_every_cause", lambda: {"it": replace(EXAMPLE, id="it", check="run-ends")})
    findings.main(["it"])

    assert "it: its check does not fail as it says\n" == capsys.readouterr().err
    assert (tmp_path / "docs" / "findings" / "it.md").exists()
