"""The command `explore`."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer
from pytest_approvals.cli.explore import Schedule, format_progress
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.scenario.generation.features import list_pairs, possible_pairs
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.simulation.faults import FAULTS
from pytest_approvals.simulation.reference import ReferenceAgent
from tests.cli.conftest import CommandLine

FAULTY = ("--agent", "reference", "--fault", "RejectedCallRuns", "--check", "rejected-never-runs", "--stories", "8")

INTERRUPTING = '''
"""A fault for a test."""

from pytest_approvals.simulation.faults import Fault


class Interrupts(Fault):
    """The user presses Ctrl-C in the second turn."""

    source = "none"
    caught_by = "rejected-never-runs"

    async def turn(self, *args, **kwargs):
        raise KeyboardInterrupt
'''


KILLED = (
    INTERRUPTING.replace("Interrupts", "Ends")
    .replace("raise KeyboardInterrupt", "os._exit(3)")
    .replace("from pytest_approvals", "import os\n\nfrom pytest_approvals")
)

UNBUILDABLE = INTERRUPTING.replace("Interrupts", "CannotStart").replace(
    "async def turn(self, *args, **kwargs):\n        raise KeyboardInterrupt",
    'def __init__(self, *args, **kwargs):\n        raise RuntimeError("no licence")',
)

UNSTEADY = (
    INTERRUPTING.replace("Interrupts", "Unsteady")
    .replace(
        "        raise KeyboardInterrupt",
        """        if multiprocessing.parent_process() is not None:
            raise RuntimeError("only in a process of its own")
        return await super().turn(*args, **kwargs)""",
    )
    .replace("from pytest_approvals", "import multiprocessing\n\nfrom pytest_approvals")
)


LEAKING = (
    INTERRUPTING.replace("Interrupts", "Leaks")
    .replace(
        "        raise KeyboardInterrupt",
        """        loop = asyncio.get_running_loop()
        LEFT.extend(loop.create_task(asyncio.sleep(3600)) for _ in range(50))
        return await super().turn(*args, **kwargs)""",
    )
    .replace("from pytest_approvals", "import asyncio\n\nLEFT = []\n\nfrom pytest_approvals")
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user without earlier explorations."""
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_failing_story_is_printed(command_line: CommandLine) -> None:
    """As a finding with the story below it; the exit code is 1."""
    said = command_line("explore", *FAULTY)

    assert 1 == said.code
    assert "rejected-never-runs: a call that was rejected must not run" in said.out
    assert "    # rejected-never-runs.approval.yaml\n    title: " in said.out
    assert "reference: 8 stories · seed 0 · realistic · 1 distinct failure\n" == said.out.splitlines(keepends=True)[-1]


def test_a_written_story_fails_when_it_is_run(command_line: CommandLine) -> None:
    """The command that the finding ends with repeats the failure."""
    said = command_line("explore", *FAULTY, "-o", "found")
    [rerun] = [line for line in said.out.splitlines() if line.startswith("  rerun  pytest-approvals ")]
    text = Path("found/rejected-never-runs.approval.yaml").read_text()
    again = command_line(*rerun.split()[2:])

    assert text.startswith("# rejected-never-runs: a call that was rejected must not run\n")
    assert 1 == again.code
    assert "rejected-never-runs: a call that was rejected must not run" in again.out


def test_the_same_seed_finds_the_same(command_line: CommandLine, cache: Path) -> None:
    """To the byte."""
    first = command_line("explore", *FAULTY).out
    shutil.rmtree(cache)

    assert first == command_line("explore", *FAULTY).out
    assert first != command_line("explore", *FAULTY, "--seed", "1").out


def test_other_processes_find_the_same(command_line: CommandLine, cache: Path) -> None:
    """To the byte, whatever the number of processes, and of stories in each."""
    first = command_line("explore", *FAULTY, "--stories", "60", "--no-database").out
    said = command_line("explore", *FAULTY, "--stories", "60", "--no-database", "-n", "2", "--restart-every", "25")

    assert (1, first) == (said.code, said.out)


def test_an_agent_that_cannot_be_built_is_named(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it raised; its stories are not taken for clean."""
    Path("unbuildable_agent.py").write_text(UNBUILDABLE)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    words = ("--agent", "reference", "--fault", "unbuildable_agent:CannotStart", "--stories", "3", "--no-database")
    said = command_line("explore", *words)

    assert 1 == said.code
    assert "no licence" in said.out
    assert "3 stories · seed 0 · realistic · 1 distinct failure\n" in said.out


def test_crashes_are_for_agents_that_go_on_after_one(command_line: CommandLine) -> None:
    """Another one is named, and nothing of it is played."""
    said = command_line("explore", "--agent", "reference", "--crashes", "--stories", "2")
    other = command_line("explore", "--agent", "pydantic_ai.inline", "--crashes", "--stories", "2")

    assert (0, "reference: 2 stories · ") == (said.code, said.out[:23])
    assert 2 == other.code
    assert "--crashes: pydantic_ai.inline does not say how it goes on after its process died; leave it out" in other.err


def test_a_process_that_ends_is_named(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what can be done about it; the stories that it had are not taken for clean."""
    Path("ending_agent.py").write_text(KILLED)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    said = command_line("explore", "--agent", "reference", "--fault", "ending_agent:Ends", "--stories", "5", "-n", "1")

    assert 2 == said.code
    assert "a process that played stories on reference ended by itself, or was killed; play fewer at a time" in said.err


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_an_agent_that_leaks_is_named(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, processes: tuple[str, ...]
) -> None:
    """With what leaks, and what can be done about it; it is no failure."""
    Path("leaking_agent.py").write_text(LEAKING)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    said = command_line(
        "explore", "--agent", "reference", "--fault", "leaking_agent:Leaks", "--stories", "111",
        "--check", "rejected-never-runs", *processes,
    )  # fmt: skip
    for task in asyncio.all_tasks(get_session_loop().loop):
        task.cancel()

    assert 0 == said.code
    told = said.out.splitlines()[-1]
    assert re.fullmatch(
        r"reference: leaks [0-9,]+ tasks that have not ended more after 110 stories than after 100; "
        r"--restart-every N plays at most N stories in one process",
        told,
    )


def test_what_fails_in_another_process_only_is_counted(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be shrunk, and is not taken for a pass."""
    Path("unsteady_agent.py").write_text(UNSTEADY)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    said = command_line(
        "explore", "--agent", "reference", "--fault", "unsteady_agent:Unsteady", "--stories", "8", "-n", "1"
    )

    assert 1 == said.code
    assert "that failed once only · no distinct failures" in said.out


def test_a_clean_agent_passes(command_line: CommandLine) -> None:
    """Of the check that is looked for, nothing fails; the exit code is 0."""
    said = command_line("explore", "--agent", "reference", "--stories", "8", "--check", "no-such-call-runs-twice")

    assert 2 == said.code
    said = command_line("explore", "--agent", "reference", "--stories", "8", "--check", "rejected-never-runs")
    assert (0, "reference: 8 stories · seed 0 · realistic · no distinct failures\n") == (said.code, said.out)


def test_stories_can_be_variations_of_a_scenario(command_line: CommandLine) -> None:
    """The fault is found near a story in which it does not show."""
    said = command_line("explore", *FAULTY[:-1], "80", "--from", "basics/approved")

    assert 1 == said.code
    assert "rejected-never-runs: a call that was rejected must not run" in said.out


def test_parts_are_disjoint(command_line: CommandLine) -> None:
    """Each part plays its own stories, together all of them."""
    words = ("explore", "--agent", "reference", "--stories", "7", "--check", "rejected-never-runs", "--shard")
    said = [command_line(*words, f"{part}/3").out for part in (1, 2, 3)]

    assert ["3 stories", "2 stories", "2 stories"] == [
        text.split(" · ")[0].removeprefix("reference: ") for text in said
    ]


def test_reports_of_parts_are_merged(command_line: CommandLine) -> None:
    """A cause that two parts have met is one finding, whose story can be written and run."""
    for part in ("1", "2"):
        words = ("--seed", "8", "--no-database", "--shard", f"{part}/2", "--report", f"{part}.jsonl")
        command_line("explore", *FAULTY, *words)
    command_line("report", "merge", "1.jsonl", "2.jsonl", "-o", "whole.jsonl")
    shown = command_line("report", "show", "whole.jsonl").out
    [path] = command_line("report", "stories", "whole.jsonl").out.splitlines()

    assert "\nexplored reference: 8 stories · 1 distinct failure\n" in shown
    assert f"\n  rerun  pytest-approvals run {path} --agent reference " in shown
    assert (command_line.folder / path).read_text().startswith("title: A call of ")


def test_a_report_of_an_interrupted_exploration_is_cut_off(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how many stories were played."""
    command_line.write("interrupting_adapter.py", INTERRUPTING)
    monkeypatch.syspath_prepend(command_line.folder)
    command_line(
        "explore", "--agent", "reference", "--fault", "interrupting_adapter:Interrupts", "--report", "cut.jsonl"
    )
    said = command_line("report", "show", "cut.jsonl")

    assert "explored reference: 1 story\n\n0 runs · the report was cut off\n" in said.out


def test_failing_stories_are_played_first_next_time(command_line: CommandLine, cache: Path) -> None:
    """They are in a folder that only the user can read."""
    command_line("explore", *FAULTY)
    [story] = cache.rglob("*.approval.yaml")
    said = command_line("explore", *FAULTY[:-1], "1")

    assert 0o700 == stat.S_IMODE(os.stat(story.parent).st_mode)
    assert "reference: 2 stories · seed 0 · realistic · 1 distinct failure\n" in said.out


def test_nothing_is_kept_without_the_database(command_line: CommandLine, cache: Path) -> None:
    """Nor is anything played that is kept."""
    command_line("explore", *FAULTY, "--no-database")
    assert not cache.exists()
    command_line("explore", *FAULTY)
    said = command_line("explore", *FAULTY[:-1], "1", "--no-database")

    assert said.out.splitlines()[-1].startswith("reference: 1 story · ")


@pytest.mark.parametrize("text", ["title: [\n", "title: Of another release\nplays: [{says: Done.}]\n"])
def test_a_story_that_cannot_be_read_is_named_and_stays(command_line: CommandLine, cache: Path, text: str) -> None:
    """Another release may have written it, and read it again; the others are played."""
    command_line("explore", *FAULTY)
    [story] = cache.rglob("*.approval.yaml")
    story.write_text(f"# none-held\n{text}")
    said = command_line("explore", *FAULTY[:-1], "1")

    assert f"pytest-approvals: {story}: is not played, as it cannot be read: " in said.err
    assert "; remove it, or explore with the release that wrote it\n" in said.err
    assert text in story.read_text()
    assert said.out.splitlines()[-1].startswith("reference: 1 story · ")


def test_a_database_that_cannot_be_written_is_named(command_line: CommandLine, cache: Path) -> None:
    """What was found is printed all the same."""
    cache.write_text("no folder")
    said = command_line("explore", *FAULTY)

    assert 1 == said.code
    assert "explore/reference-rejectedcallruns: failing stories are not kept there: " in said.err
    assert "; -o FOLDER writes them\n" in said.err
    assert "    title: " in said.out


def test_an_interrupt_ends_with_what_was_found(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 2."""
    command_line.write("interrupting_adapter.py", INTERRUPTING)
    monkeypatch.syspath_prepend(command_line.folder)
    said = command_line("explore", "--agent", "reference", "--fault", "interrupting_adapter:Interrupts")

    assert 2 == said.code
    assert "reference: 1 story · seed 0 · realistic · no distinct failures · interrupted\n" == said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--agent", "refrence"), "Unknown agent 'refrence'; did you mean 'reference'?"),
        (("--agent", "reference", "--profile", "realistc"), "Unknown profile 'realistc'; did you mean 'realistic'?"),
        (("--agent", "reference", "--seed", "x"), "--seed: Invalid number 'x': expected an integer"),
        (("--agent", "reference", "--stories", "0"), "--stories: Invalid number 0: must be at least 1"),
        (("--agent", "reference", "-n", "100"), "-n: Invalid number 100: must be at most 64"),
        (("--agent", "reference", "--restart-every", "0"), "--restart-every: Invalid number 0: must be at least 1"),
        (("--agent", "reference", "--seconds", "nan"), "--seconds: Invalid number 'nan': expected more than 0 seconds"),
        (("--agent", "reference", "--seconds", "1", "--stories", "1"), "--stories and --seconds exclude each other"),
        (("--agent", "reference", "--shard", "3/2"), "--shard: Invalid part '3/2': expected I/N with I from 1 to N"),
        (("--agent", "reference", "--check", "rejected-never-run"), "Unknown check 'rejected-never-run'; did you mean"),
        (("--agent", "reference", "--fault", "RejectedCallRun"), "Unknown fault 'RejectedCallRun'; did you mean"),
        (
            ("--agent", "reference", "-o", "file/found"),
            "--output: Cannot write to the folder 'file/found': Not a direc",
        ),
        (("--agent", "reference", "--report", "file/r.jsonl"), "file/r.jsonl: cannot be written: "),
        (("--agent", "reference", "--from", "basics/*"), "--from: 'basics/*' names "),
        (("--agent", "reference", "--from", "basics/nope"), "'basics/nope'"),
        ((), "--agent"),
    ],
)
def test_a_mistake_is_named(command_line: CommandLine, words: tuple[str, ...], message: str) -> None:
    """With what to write instead; the exit code is 2."""
    command_line.write("file", "")
    said = command_line("explore", *words)

    assert message in said.err
    assert 2 == said.code
    assert "Traceback" not in said.err


def test_progress_tells_how_many_pairs_of_features_were_met() -> None:
    """Other features stand together in each story, until all that can have done so."""
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    with asyncio.Runner() as runner:
        exploration = Exploration(player=StoryPlayer(source, runner.run))
        [case] = exploration.explore(range(1))
        said = format_progress("reference", exploration, 8.2)
        list(exploration.explore(range(1, 4)))

    met = len(list_pairs(case.story))
    assert f"reference: 1 story, 8 a second, {met} of {len(possible_pairs()):,} pairs of features, no distinct " in said
    assert len(exploration.pairs) > met


def create_exploration(fault: str, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> Exploration:
    source = InProcessSource(name="reference", adapter=FAULTS[fault], facts=describe_adapter(FAULTS[fault]))
    return Exploration(player=StoryPlayer(source, run, checks=(FAULTS[fault].caught_by,)))


def test_in_a_given_time_failures_wait_for_the_second_half() -> None:
    """So that a failure of the first minute, whose reduction takes many runs, leaves time for other stories."""
    now = iter([0.0, 49.0, *([51.0] * 20)])
    with asyncio.Runner() as runner:
        exploration = create_exploration("RejectedCallRuns", runner.run)
        schedule = Schedule(exploration, 100.0, lambda: next(now))
        list(exploration.explore(range(12)))
        schedule.reduce_when_due()
        waiting = len(exploration.waiting)
        schedule.reduce_when_due()

    assert 1 == waiting
    assert [] == exploration.waiting
    assert 1 == len(exploration.causes)


def test_what_waits_when_the_time_is_over_is_reduced() -> None:
    """A finding is a small story, however short the time was."""
    now = iter([0.0, *([200.0] * 20)])
    with asyncio.Runner() as runner:
        exploration = create_exploration("RejectedCallRuns", runner.run)
        schedule = Schedule(exploration, 100.0, lambda: next(now))
        list(exploration.explore(range(12)))
        schedule.reduce_when_due()
        schedule.finish()

    [cause] = exploration.causes
    assert 12 >= len(format_scenario(cause.failure.case.story).splitlines())


def test_postponed_failures_are_grouped_as_others_are() -> None:
    """When a failure is reduced does not change what it becomes, or how often it is counted."""
    with asyncio.Runner() as runner:
        at_once = create_exploration("EditRunsWhatTheModelWrote", runner.run)
        list(at_once.explore(range(60)))
        postponed = create_exploration("EditRunsWhatTheModelWrote", runner.run)
        postponed.postpones = True
        list(postponed.explore(range(60)))
        postponed.reduce_all()

    told = [(cause.digest, cause.count, cause.first) for cause in postponed.causes]
    assert [(cause.digest, cause.count, cause.first) for cause in at_once.causes] == told
    assert [] != told


def test_an_interrupted_reduction_leaves_the_story_as_it_is() -> None:
    """What was found is shown, reduced or not."""

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        exploration = create_exploration("RejectedCallRuns", runner.run)
        exploration.player.shrink = interrupt  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            list(exploration.explore(range(12)))
        exploration.keep_waiting()

    [cause] = exploration.causes
    assert "rejected-never-runs" == cause.failure.check
