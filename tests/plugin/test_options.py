"""Options and their ini twins."""

from __future__ import annotations

import json

import pytest

from pytest_approvals.plugin.options import OPTIONS
from pytest_approvals.reporting.compact import encode_report
from pytest_approvals.reporting.comparison import merge_named_reports
from pytest_approvals.reporting.files import read_report


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--approvals-agents=refrence", "--approvals-agents: Unknown agent 'refrence'; did you mean 'reference'?"),
        ("--approvals-serialize=jsn", "--approvals-serialize: Unknown serialize mode 'jsn'; did you mean 'json'?"),
        (
            "--approvals-fail-on=stuk",
            "--approvals-fail-on: Unknown severity 'stuk'; did you mean 'stuck'?",
        ),
        ("--approvals-resume=frsh", "--approvals-resume: Unknown resume 'frsh'; did you mean 'fresh'?"),
        ("--approvals-history=apend", "--approvals-history: Unknown history 'apend'; did you mean 'append'?"),
        (
            "--approvals-shard=3/2",
            "--approvals-shard: Invalid shard '3/2': expected I/N, as 1/8 for the first of eight",
        ),
        ("--approvals-shard=2", "--approvals-shard: Invalid shard '2': expected I/N, as 1/8 for the first of eight"),
        (
            "--approvals-stream=maybe",
            "--approvals-stream: Unknown switch position 'maybe'; valid: 0, 1, false, no, off, on, true, yes",
        ),
        ("--approvals-answer=rebuild", "--approvals-answer: Unknown answer 'rebuild'; did you mean 'rebuilt'?"),
        (
            "--approvals-oracle=random:x",
            "--approvals-oracle: Invalid seed 'x' of the oracle random: expected a number, as in random:7",
        ),
        ("--approvals-strength=5", "--approvals-strength: Unknown strength '5'; valid: 1, 2, 3, full"),
        (
            "--approvals-fault=RejectedCallRun",
            "--approvals-fault: Unknown fault 'RejectedCallRun'; did you mean 'RejectedCallRuns'?",
        ),
        ("--approvals-fault=json:loads", "--approvals-fault: Invalid fault 'json:loads': expected a subclass of *"),
        ("--approvals-seed=-1", "--approvals-seed: Invalid number -1: too small"),
        ("--approvals-time-limit=soon", "--approvals-time-limit: Invalid number 'soon'"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(project, option: str, error: str) -> None:
    """Before anything is collected, with the option, the value and what is valid."""
    result = project.run(option, agents="")

    assert 4 == result.ret
    result.stderr.fnmatch_lines([f"ERROR: {error.replace('[', '[[]')}"])


def test_an_ini_entry_is_as_good_as_an_option(project) -> None:
    """The twins have the same names, with underscores."""
    project.scenario()
    project.ini("approvals_agents = reference", "approvals_serialize = none copy", "approvals_stream = off")

    assert {"none-held", "none-rebuilt", "copy-restored", "copy-rebuilt"} >= {
        item.partition("[")[2].rstrip("]") for item in project.items("scenarios", agents="")
    }


def test_an_option_counts_more_than_the_ini_entry(project) -> None:
    """The command line has the last word."""
    project.scenario()
    project.ini("approvals_serialize = copy")
    items = project.items("scenarios", "--approvals-serialize=none")

    assert items
    assert all("[none-" in item for item in items)


def test_a_mistake_in_the_ini_file_is_refused_too(project) -> None:
    """It is named as the option that it stands for."""
    project.ini("approvals_strength = 9")
    result = project.run(agents="")

    assert 4 == result.ret
    result.stderr.fnmatch_lines(["ERROR: --approvals-strength: Unknown strength '9'; valid: 1, 2, 3, full"])


def test_every_option_has_an_ini_twin(project) -> None:
    """None of them needs a command line."""
    text = project.run("--help", agents="").stdout.str()

    assert [] == [option.ini for option in OPTIONS if f"  {option.ini} (" not in text]


def test_folders_outside_of_the_usual_collection_are_collected(project) -> None:
    """The ini entry `approvals_scenarios` adds them where nobody names files."""
    project.scenario("stories/one")
    project.write("tests/test_of_somebody.py", "def test_something(): pass")
    project.ini("testpaths = tests", "approvals_scenarios = stories")
    items = project.items()

    assert items[0] == "tests/test_of_somebody.py::test_something"
    assert items[1] == "stories/one.approval.yaml::reference[none-held]"
    assert [] == [item for item in project.items("tests") if "stories" in item]


def test_an_agent_that_cannot_run_here_is_an_error(project) -> None:
    """Collecting says why, and what to do."""
    project.scenario()
    result = project.run("scenarios", agents="reference==1.0.0")

    assert 2 == result.ret
    result.stdout.fnmatch_lines(["agent 'reference==1.0.0' cannot be started: it has no framework, * use reference"])


def test_the_other_agents_go_on(project) -> None:
    """An agent that cannot be started is named at the end and fails the session; the others are judged."""
    project.scenario()
    result = project.run("scenarios", agents="reference,reference==1.0.0")

    assert 1 == result.ret
    assert 0 < result.parseoutcomes()["passed"]
    result.stdout.fnmatch_lines(["not judged: agent 'reference==1.0.0' cannot be started: *", "* pass * 1 absent"])


def test_requirements_without_an_environment_are_refused(project) -> None:
    """They would do nothing."""
    project.scenario()
    result = project.run("scenarios", "--approvals-with=openai<3,>=2")

    assert 2 == result.ret
    result.stdout.fnmatch_lines(["--with and --python are for environments; name an agent with its release: *"])


def test_journals_can_be_kept(project) -> None:
    """One file a run, readable, complete."""
    from pytest_approvals.journal.files import read_journal

    project.scenario()
    project.run("scenarios", "--approvals-journals=kept", "--approvals-serialize=none", "--approvals-stream=off")
    journals = sorted((project.path / "kept").iterdir())

    assert "mine-one__reference__none-held.jsonl" == journals[0].name
    assert all(read_journal(path).complete for path in journals)


def test_scenarios_of_similar_names_have_their_own_journals(project) -> None:
    """`a/b-c` and `a-b/c` do not overwrite each other, and a long name does not fail."""
    for name in ("a/b-c", "a-b/c", f"{'x' * 120}/{'y' * 120}/z"):
        project.scenario(f"scenarios/{name}")
    words = ("--approvals-serialize=none", "--approvals-stream=off", "--approvals-answer=held", "--snapshot-update")
    result = project.run("scenarios", "--approvals-journals=kept", "--approvals-resume=same", *words)

    assert result.parseoutcomes()["passed"] == len(list((project.path / "kept").iterdir()))
    assert 0 == result.ret


def test_runs_of_one_test_have_their_own_journals(project) -> None:
    """A test that runs its agent twice leaves two."""
    project.write("test_twice.py", TWICE)
    project.run("--approvals-journals=kept", agents="")

    assert 2 == len(list((project.path / "kept").iterdir()))


TWICE = """
from pytest_approvals import say
from pytest_approvals.simulation import ReferenceAgent

def test_twice(approvals):
    for _ in range(2):
        approvals.run(ReferenceAgent, "Hi", model=[say("Done.")], agent="reference")
"""


def test_a_journal_that_cannot_be_written_fails_its_run(project) -> None:
    """The verdict is in the report all the same."""
    project.scenario()
    project.write("kept", "")
    result = project.run("scenarios", "--approvals-journals=kept", "-k", "none-held", "--approvals-report=r.jsonl")

    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*one.approval.yaml:2: */kept/*.jsonl: cannot be written: Not a directory; name *"])
    assert '"pass"' in (project.path / "r.jsonl").read_text()


def test_the_report_is_written(project) -> None:
    """All verdicts, header and footer; the same with workers."""
    project.scenario()
    words = ("scenarios", "--approvals-serialize=none", "--snapshot-update")
    project.run(*words, "--approvals-report=alone.jsonl")
    project.run(*words, "--approvals-report=spread.jsonl", "-n", "2", fresh=True)
    alone, spread = (read_report(project.path / f"{name}.jsonl") for name in ("alone", "spread"))

    assert alone.complete
    assert {"reference"} == {line.agent for line in alone.verdicts}
    assert list(alone.body()) == list(spread.body())
    assert (project.path / "alone.jsonl").read_bytes() == (project.path / "spread.jsonl").read_bytes()


GATED = """
title: Two calls that need approval
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6}}]
  - say: Done.
caller: [{send: Pay}, {decide: {c1: approve, c2: approve}}]
"""


def test_the_catalogue_is_told_whatever_is_selected(project) -> None:
    """Reports of parts of one catalogue have the same digest, and those of a changed one another."""
    project.scenario()
    project.scenario("scenarios/mine/two")
    words = ("--approvals-serialize=none", "--approvals-stream=off", "--snapshot-update")
    digests = []
    for selected, text in (("mine/one", "Done"), ("mine/two", "Done"), ("mine/one", "Gone")):
        project.scenario("scenarios/mine/two", Done=text)
        project.run(f"scenarios/{selected}.approval.yaml", "--approvals-report=r.jsonl", *words)
        digests.append(read_report(project.path / "r.jsonl").header.catalogue)

    assert (2, True, 16) == (len(set(digests)), digests[0] == digests[1], len(digests[0]))


def test_shards_are_disjoint_and_together_whole(project) -> None:
    """Their reports merge into that of a session without shards; a group of variants is never split."""
    for name in "abc":
        project.scenario(f"scenarios/mine/{name}")
    words = ("scenarios", "--approvals-serialize=none", "--snapshot-update")
    project.run(*words, "--approvals-report=all.jsonl")
    for number in (1, 2):
        project.run(*words, f"--approvals-shard={number}/2", f"--approvals-report={number}.jsonl")
    parts = {name: read_report(project.path / name) for name in ("1.jsonl", "2.jsonl")}
    merged = merge_named_reports(parts)

    assert ["1/2", "2/2"] == [part.header.shard for part in parts.values()]
    assert [2, 1] == [len({line.scenario for line in part.verdicts}) for part in parts.values()]
    assert ((), ()) == (merged.overlaps, merged.lacks)
    assert encode_report(read_report(project.path / "all.jsonl")) == encode_report(merged.report)


def test_shards_are_balanced_by_times(project) -> None:
    """A session of all parts writes them; a scenario without a time counts as an average one."""
    for name in "abc":
        project.scenario(f"scenarios/mine/{name}")
    words = ("scenarios", "--approvals-serialize=none", "--snapshot-update", "--approvals-times=times.json")
    project.run(*words)
    times = project.path / "times.json"
    written = json.loads(times.read_text())["seconds"]
    times.write_text(json.dumps({"seconds": {"reference": {"mine/a": 1, "mine/c": 5}}}))
    parts = []
    for number in (1, 2):
        project.run(*words, f"--approvals-shard={number}/2", f"--approvals-report={number}.jsonl")
        parts.append({line.scenario for line in read_report(project.path / f"{number}.jsonl").verdicts})

    assert ["mine/a", "mine/b", "mine/c"] == [*written["reference"]]
    assert [{"mine/c"}, {"mine/a", "mine/b"}] == parts


@pytest.mark.parametrize("text", ["[]", "{", '{"seconds": {"a": {"b": -1}}}', '{"seconds": {"a": 1}}', "\0"])
def test_a_file_of_other_things_than_times_is_refused(project, text: str) -> None:
    """Before anything is collected."""
    project.write("times.json", text)
    result = project.run("--approvals-times=times.json")

    assert 4 == result.ret
    result.stderr.fnmatch_lines(["ERROR: --approvals-times: */times.json: no times of scenarios; delete it, *"])


def test_traits_stand_in_the_report(project) -> None:
    """What the runs of an agent show is merged; the same with workers."""
    project.scenario(text=GATED)
    words = ("scenarios", "--approvals-serialize=none", "--snapshot-update")
    project.run(*words, "--approvals-report=alone.jsonl")
    project.run(*words, "--approvals-report=spread.jsonl", "-n", "2", fresh=True)
    alone, spread = (read_report(project.path / f"{name}.jsonl") for name in ("alone", "spread"))

    assert [("reference", ("together",))] == [(line.agent, line.traits["requests-surface"]) for line in alone.traits]
    assert alone.traits == spread.traits


def test_the_seed_is_in_every_header(project) -> None:
    """What was made up can be made up again."""
    from pytest_approvals.journal.files import read_journal

    project.scenario()
    project.run("scenarios", "--approvals-journals=kept", "--approvals-seed=7", "-k", "none-held")

    assert {7} == {read_journal(path).header.seed for path in (project.path / "kept").iterdir()}


def test_a_should_that_fails_is_a_warning(project) -> None:
    """It fails the run only with `--approvals-strict`, or if its severity does."""
    project.scenario(text=BOTH)
    project.write("conftest.py", TALKATIVE)
    project.ini("filterwarnings = default")
    usual = project.run("scenarios", "-k", "none-held", "--snapshot-update", agents="talkative")
    strict = project.run("scenarios", "-k", "none-held", "--approvals-strict", agents="talkative")
    project.ini("approvals_fail_on = cosmetic")
    severe = project.run("scenarios", "-k", "none-held", agents="talkative")

    usual.assert_outcomes(passed=1, warnings=1)
    usual.stdout.fnmatch_lines(["*RequirementWarning: warning: only-gated-asked: *"])
    strict.assert_outcomes(failed=1)
    severe.assert_outcomes(failed=1)


TALKATIVE = """
from dataclasses import replace
from pytest_approvals.simulation import ReferenceAgent

class Talkative(ReferenceAgent):
    '''Asks about every call, gated or not.'''

    def __init__(self, world, blueprint):
        self.given = blueprint.tools
        asking = tuple(replace(tool, approval="always") for tool in blueprint.tools)
        super().__init__(world, replace(blueprint, tools=asking))

    def tools(self):
        return self.given

def pytest_approvals_adapters():
    return {"talkative": {"": Talkative}}
"""

BOTH = """
title: A call that needs no approval
tools:
  read_file: {approval: never, parameters: {path: string}}
model:
  - calls: [{id: c1, tool: read_file, arguments: {path: a.txt}}]
  - say: Done.
"""
