"""No text of an input acts on a terminal, a CI system or a reader of reports, whatever command prints it.

A marker is planted in every text of every kind of input, and looked for in everything that is printed or written.
"""

# ruff: noqa: T201 -- what is printed is tested

from __future__ import annotations

import copy
import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast
from urllib.error import HTTPError
from xml.etree import ElementTree as ET

import pytest
import yaml
from pydantic import ValidationError

import pytest_approvals.devtools
from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.environments.cache import COMPLETION_MARK
from pytest_approvals.cli import COMMANDS
from pytest_approvals.cli.output import PrintableStream, print_command, printable_output
from pytest_approvals.errors import ScenarioError
from pytest_approvals.journal.files import Journal
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.reporting.ci_formats import render_junit
from pytest_approvals.reporting.compact import encode_report
from pytest_approvals.reporting.comparison import compare_reports
from pytest_approvals.reporting.files import LINE_ADAPTER
from pytest_approvals.reporting.findings import format_summary
from pytest_approvals.reporting.html import render_html
from pytest_approvals.reporting.markdown import render_markdown
from pytest_approvals.reporting.matrix import format_matrix
from pytest_approvals.reporting.report import (
    AbsentLine,
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    StaleLine,
    TraitsLine,
    TranscriptLine,
    VerdictLine,
    dump_line,
)
from pytest_approvals.scenario.load import load_scenario

if TYPE_CHECKING:
    from .conftest import CommandLine, Said

MARK = (
    "Q\x1b]52;c;eA==\x07\x1b[31m\x9b1m\x7f\u202e\u2066\u2028\r\n::error file=a::injected\n  ::set-output name=a::b\n"
    "##[error]c ##vso[task.complete]d ##teamcity[message]<script>alert(1)</script>|a|`![b](javascript:c)"
)
"""What terminals, CI systems, browsers and Markdown would act on."""

MARK_IN_JSON = json.dumps(MARK)[1:-1]

SURROGATE = "\ud800"
"""A lone surrogate, which JSON can hold, and no file and no terminal."""

LONG = "y" * 60_000

SPECIMENS = Path(pytest_approvals.devtools.__file__).parent / "fuzz" / "specimens"

SCENARIO = """\
title: A gated call is rejected
about: What is rejected does not run.
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: "deleted {path}"}
model:
  - calls: [{id: c1, tool: delete_file, arguments: {path: a.txt}}]
  - say: Done.
caller:
  - send: Delete a.txt
  - decide: {c1: {reject: keep it}}
expect: {runs: [], output: Done.}
"""

JOURNAL = """
tool pay(amount: integer) always
send Pay 5
model c1 pay(amount=5)
pause c1
reject c1
go
run c1 -> paid 5
run c1 !! too much
model Done.
done
"""


def acts(text: str) -> list[str]:
    """Return what in a text a terminal or a CI system acts on."""
    lines = text.split("\n")
    found = [repr(line[:200]) for line in lines if not line.isprintable() or re.match(r"\s*::[a-z]", line)]
    return found + [command for command in ("##[", "##vso[", "##teamcity[") if command in text]


def assert_harmless(*several: Said) -> None:
    """Fail if what a command printed acts, or is the traceback of a crash."""
    for said in several:
        assert [] == acts(said.out) + acts(said.err)
        assert "Traceback" not in said.err


def plant(value: Any, mark: str) -> Any:
    """Return a document with a mark at the end of all its texts, keys excluded."""
    match value:
        case str():
            return value + mark
        case dict():
            return {name: plant(inner, mark) for name, inner in value.items()}
        case list():
            return [plant(inner, mark) for inner in value]
        case _:
            return value


def plantings(document: Any, mark: str) -> Iterator[Any]:
    """Yield a document with a mark in each of its texts, keys included, one after the other.

    Of the elements of a list that are of the same kind, only the first one with a text at the same place has the mark.
    """
    places: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def visit(value: Any, above: tuple[Any, ...]) -> None:
        for key, inner in [*value.items()] if isinstance(value, dict) else [*enumerate(value)]:
            kinds = [
                inner[name] for name in ("event", "type", "$type", "role") if isinstance(inner, dict) and name in inner
            ]
            path = (*above, key if isinstance(value, dict) else f"*{kinds[:1]}")
            if isinstance(inner, dict | list):
                visit(inner, path)
            if isinstance(inner, str) or isinstance(value, dict):
                places.setdefault(path, (value, key))

    visit(document, ())
    for holder, key in places.values():
        before = copy.copy(holder)
        if isinstance(holder[key], str):
            holder[key] += mark
            yield document
            holder[key] = before[key]
        if isinstance(holder, dict):
            holder.clear()
            holder.update({f"{name}{mark}" if name == key else name: inner for name, inner in before.items()})
            yield document
            holder.clear()
            holder.update(before)


def marked_scenario() -> Any:
    """Return a scenario with marks in its title, its messages, its call and what that returns."""
    document = yaml.safe_load(SCENARIO)
    for key in ("title", "about"):
        document[key] += MARK
    document["tools"]["delete_file"]["returns"] += MARK
    document["model"][0]["calls"][0]["arguments"]["path"] += MARK
    document["caller"][0]["send"] += MARK
    document["caller"][1]["decide"]["c1"]["reject"] += MARK
    return document


def write_json(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="ascii")


def write_journal(path: Path) -> list[Any]:
    """Write a journal that breaks requirements, and return its lines."""
    journal = Journal(path)
    for event in parse_notation(JOURNAL):
        journal.record(event)
    journal.close()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="ascii")


# --- the point that all output passes through -------------------------------------------------------------------------


def test_a_print_that_forgets_to_escape_does_not_act(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither on standard output nor on standard error, also if it prints a command in pieces."""
    with printable_output():
        print(MARK + SURROGATE)
        print(MARK + SURROGATE, file=sys.stderr)
        for piece in (" ", ":", ":err", "or::a\n", "##", "vs", "o[", "a]\n", " " * 90, "::", "error::b\n"):
            print(piece, end="")
    printed = capsys.readouterr()

    assert "Q\\x1b]52;c;eA==\\x07" in printed.out
    assert "Q\\x1b]52;c;eA==\\x07" in printed.err
    assert [] == acts(printed.out) + acts(printed.err)


def test_annotations_of_github_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """They are the only commands."""
    with printable_output():
        print_command("::error file=a.json,line=1::A mistake")

    assert "::error file=a.json,line=1::A mistake\n" == capsys.readouterr().out


def test_marked_colours_pass_and_others_do_not() -> None:
    """pytest colours its own words; a text that has a colour is escaped."""
    target = StringIO()
    stream = PrintableStream(target)
    stream.write(f"{stream.mark_colours(chr(27) + '[31m')}FAILED\x1b[32m\n")

    assert "\x1b[31mFAILED\\x1b[32m\n" == target.getvalue()


def test_an_encoding_without_a_character_ends_no_command() -> None:
    """The character is escaped, as in a terminal of Latin-1."""

    class Latin(StringIO):
        encoding = "latin-1"

        def write(self, text: str) -> int:
            text.encode(self.encoding)
            return super().write(text)

    target = Latin()
    PrintableStream(target).write("5 € → é")

    assert "5 \\u20ac \\u2192 é" == target.getvalue()


# --- every field of every input ---------------------------------------------------------------------------------------


def test_no_text_of_a_scenario_acts(command_line: CommandLine) -> None:
    """It is in an error, or shown: by `show` together with all others that can be anything."""
    path = command_line.folder / "scenarios" / "a" / "b.approval.yaml"
    whole, texts, refused = json.dumps(yaml.safe_load(SCENARIO)), [], []
    for document in plantings(json.loads(whole), MARK):
        write_json(path, document)
        try:
            load_scenario(path, root=path.parent.parent)
        except ScenarioError as error:
            refused.append(str(error))
        else:
            texts += [
                text for text in re.findall(r'"[^"]*"', whole) if f"{text[:-1]}{MARK_IN_JSON}" in json.dumps(document)
            ]
    for text in texts:
        whole = whole.replace(text, f'{text[:-1]}{MARK_IN_JSON}"', 1)
    write_json(path, json.loads(whole))
    said = command_line("show", str(path))

    assert_harmless(said)
    assert said.out.count("]52;c;eA==") > 6
    assert [] == [found for text in refused for found in acts(text)]
    assert len(refused) > 10


@pytest.mark.parametrize("mark", [MARK, SURROGATE, LONG], ids=["mark", "surrogate", "long"])
def test_no_title_of_a_scenario_acts_in_a_list(command_line: CommandLine, mark: str) -> None:
    """It is read without the rest of the file."""
    write_json(command_line.folder / "scenarios" / "a" / "b.approval.yaml", yaml.safe_load(SCENARIO))
    text = command_line.write("scenarios/a/c.approval.yaml", f"title: {json.dumps('x' + mark)}\n")

    assert_harmless(command_line("list", "a/*"))
    assert_harmless(command_line("show", str(text)))


def test_no_text_of_a_journal_acts(command_line: CommandLine) -> None:
    """In findings, verdicts, errors, and as a stored conversation; no line is long."""
    path = command_line.folder / "run.jsonl"
    judged = 0
    for lines in plantings(write_journal(path), MARK + SURROGATE + LONG):
        write_lines(path, lines)
        said = [command_line("check", "--all", "run.jsonl"), command_line("lint", "run.jsonl")]
        judged += "1 journal judged" in said[0].out

        assert_harmless(*said)
        assert max(len(line) for one in said for line in (one.out + one.err).splitlines()) < 1_500
    assert judged > 20


def formats() -> list[Path]:
    """Return the specimens of stored conversations."""
    return sorted(SPECIMENS.glob("history.*/*.json"))


@pytest.mark.parametrize("specimen", formats(), ids=lambda path: f"{path.parent.suffix[1:]}-{path.stem}")
def test_no_text_of_a_stored_conversation_acts(command_line: CommandLine, specimen: Path) -> None:
    """In findings, notices and errors."""
    for planted in plantings(json.loads(specimen.read_text(encoding="utf-8")), MARK + SURROGATE):
        write_json(command_line.folder / "stored.json", planted)
        said = command_line("lint", "stored.json", "--gated", "*")

        assert_harmless(said)


@pytest.mark.parametrize("specimen", formats(), ids=lambda path: f"{path.parent.suffix[1:]}-{path.stem}")
def test_a_finding_is_one_line_of_json_and_one_annotation(command_line: CommandLine, specimen: Path) -> None:
    """Whatever its texts are, no second annotation begins in them."""
    document = json.loads(specimen.read_text(encoding="utf-8"))
    for number, planted in enumerate((plant(document, MARK), [plant(document, MARK), 3])):
        write_json(command_line.folder / f"stored{number}{MARK[:20]}.json", planted)
    annotated = command_line("lint", ".", "--gated", "*", "--output", "github")
    lines = command_line("lint", ".", "--gated", "*", "--output", "jsonl")

    assert [] == acts(annotated.err) + acts(lines.out) + acts(lines.err)
    assert all(json.loads(line)["event"] in ("finding", "notice") for line in lines.out.splitlines())
    assert len(annotated.out.splitlines()) == len(lines.out.splitlines()) > 0
    for line in annotated.out.splitlines():
        assert re.match("::(error|notice) file=", line)
        assert [] == acts(line[2:])


def test_no_text_of_a_conversation_acts_in_its_reproduction(command_line: CommandLine) -> None:
    """The scenario that is printed can be read, and has the texts."""
    document = json.loads((SPECIMENS / "history.meai" / "session.json").read_text(encoding="utf-8"))
    marked = re.sub(
        r'("(?:text|reason|result)": ")', lambda found: found[1] + json.dumps(MARK)[1:-1], json.dumps(document)
    )
    command_line.write("stored.json", marked)
    said = command_line("reproduce", "stored.json", "--agent", "meai==robust", "--most-trials", "1")

    assert_harmless(said)
    assert plain(yaml.load(said.out, yaml.CSafeLoader)).count("Q\x1b]52;c;eA==\x07") > 3
    assert "##[error]c ##vso[task.complete]d" in plain(yaml.load(said.out, yaml.CSafeLoader))


def plain(value: Any) -> str:
    """Return all texts of a document in one."""
    match value:
        case dict():
            return " ".join(map(plain, [*value, *value.values()]))
        case list():
            return " ".join(map(plain, value))
        case _:
            return str(value)


def test_no_text_of_a_report_acts(command_line: CommandLine) -> None:
    """In its lines, the summary, matrices, HTML, Markdown, JUnit's XML, and in what differs from another report."""
    lines = [REPORT.header, *REPORT.body()]
    read = 0
    for number, line in enumerate(lines):
        for document in plantings(line.to_dict(with_defaults=True), MARK + SURROGATE):
            with suppress(ValidationError):
                others = [*lines[:number], LINE_ADAPTER.validate_python(document), *lines[number + 1 :]]
                report = Report(header=cast("ReportHeader", others[0]))
                for other in others[1:]:
                    report.add(other)
                read += 1
                for written in (encode_report(report).decode(), *map(dump_line, report.body())):
                    assert [] == acts(written), document
                for render in (format_summary, format_matrix):
                    assert [] == acts(render(report)), document
                check_page(render_html(report))
                check_markdown(render_markdown(report))
                check_markdown(compare_reports(REPORT, report).render())
                check_xml(render_junit(report))
    assert read > 40


def check_page(page: str) -> None:
    """Fail if a page of HTML has a tag of a text."""
    assert [] == acts(page)
    assert "<script" not in page
    assert all(re.match("https?://|#", address) for address in re.findall('href="([^"]*)', page))


def check_markdown(text: str) -> None:
    """Fail if a text of Markdown has an element of a text of the report."""
    assert [] == acts(text)
    fence, columns, is_code = "", set(), False
    for before, line in pairwise(["", *text.splitlines()]):
        ticks = re.match("(`{3,})", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks:
            fence = ticks[1]
        elif is_code := line.startswith("    ") and (is_code or not before):
            # An indented block after an empty line shows everything as it is.
            pass
        else:
            # Code spans show everything as it is.
            shown = re.sub(r"\\\\", "", re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
            assert not re.search(r"(?<!\\)<(?!https?://[^\s<>]+>)|(?<!\\)!?(?<!\\)\[", shown), line
            columns |= {len(re.findall(r"(?<!\\)\|", shown))} if shown.startswith("|") else set()
    assert not fence
    assert len(columns) <= 1


def check_xml(text: str) -> None:
    """Fail if a text of XML cannot be read, or has a text that acts."""
    for element in ET.fromstring(text).iter():
        assert [] == [found for one in (element.text, *element.attrib.values()) for found in acts(one or "")]


REPORT = Report(
    header=ReportHeader(
        package="1",
        python="3",
        agents=(ReportedAgent(agent="a==1", framework="f", version="1", where="here", issues="https://example.org/"),),
        checks={"runs-at-most-once": ReportedCheck(requirement="A call must not run twice.")},
        scenarios={"a/b": "A title"},
    ),
    verdicts=[
        VerdictLine.from_dict(
            {
                "scenario": "a/b",
                "agent": "a==1",
                "version": "1",
                "variant": "none",
                "check": "runs-at-most-once",
                "call": "c1 pay()",
                "expected": "1 run",
                "actual": "2 runs",
                "witness": [{"n": 3, "text": "tool    c1 runs"}],
                "mode": "none, held",
                "rerun": "pytest-approvals run a/b",
                **special,
            }
        )
        for special in (
            {"status": "fail", "label": "c1"},
            {"status": "waived", "label": "c2", "waiver": "a.waivers.yaml:3: known"},
            {"status": "fail", "label": "c3", "implied_by": "runs-at-most-once"},
        )
    ],
    transcripts=[TranscriptLine(scenario="a/b", agent="a==1", variant="none", lines=("turn 1", "  tool    c1 runs"))],
    not_applicable=[NotApplicableLine(scenario="a/c", agent="a==1", missing=("stream",))],
    stale=[StaleLine(agent="a==1", waiver="a.waivers.yaml:4: gone")],
    absent=[AbsentLine(agent="b", why="no uv")],
    traits=[TraitsLine(agent="a==1", traits={"order": ("as asked",)})],
)


def test_no_text_of_a_table_of_known_bugs_acts(command_line: CommandLine) -> None:
    """Nor its errors."""
    row = {
        "id": "one",
        "title": "A rejected call runs",
        "source": "owner/repository#1",
        "bad": {"agent": "nobody", "with": ["other==1"], "python": "3.12"},
        "good": {"agent": "reference"},
        "checks": ["rejected-never-runs"],
    }
    for table in plantings([row], MARK):
        write_json(command_line.folder / "table.yaml", table)
        said = command_line("recall", "table.yaml")

        assert_harmless(said)
        assert said.code


def test_no_text_of_an_agent_acts_in_the_results_of_recall(command_line: CommandLine) -> None:
    """Printed, and in the file of its report, which holds the text."""
    command_line.write("raising_adapter.py", f"raise ImportError({MARK + SURROGATE!r})")
    row = {"id": "one", "title": f"T{MARK}", "source": "owner/repository#1", "bad": {"agent": "raising"}, "good": None}
    write_json(command_line.folder / "table.yaml", [{**row, "checks": ["rejected-never-runs"]}])
    said = command_line("recall", "table.yaml", "--report", "recall.jsonl")
    written = (command_line.folder / "recall.jsonl").read_text(encoding="utf-8")

    assert_harmless(said)
    assert f"T{MARK}" == json.loads(written.splitlines()[0])["title"]
    assert "ImportError: Q\\x1b]52" in json.loads(written.splitlines()[0])["why"]
    assert [] == acts(written)


RELEASED = """\
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.simulation.faults import FAMILIES, build_faulty_agent

FAULT = next(one for one in FAMILIES["execution"].values() if one.caught_by == "rejected-never-runs")
GOOD = type("Good", (ReferenceAgent,), {{"release": "1"}})
BAD = type("Bad", (build_faulty_agent(FAULT),), {{"release": "3"}})

class Lost(ReferenceAgent):
    release = "2"
    def __init__(self, *args):
        raise RuntimeError({mark!r})

FLAVOURS = {{"": type("Released", (ReferenceAgent,), {{"releases": (GOOD, Lost, BAD)}})}}
"""


def test_no_text_acts_while_releases_are_compared(command_line: CommandLine) -> None:
    """In a matrix of a project's scenarios, whose report quotes an agent that cannot be built, and in a bisection."""
    write_json(command_line.folder / "scenarios" / "a" / "b.approval.yaml", marked_scenario())
    command_line.write("released_adapter.py", RELEASED.format(mark=MARK))
    chosen = ("--agent", "released", "--scenario", "a/b")
    said = command_line("bisect", *chosen, "--check", "rejected-never-runs", "--good", "1", "--bad", "3")
    refused = command_line("bisect", *chosen, "--check", f"x{MARK}", "--good", f"1{MARK}", "--bad", "3")
    matrix = command_line("matrix", *chosen, "--versions", ">=1", "--report", "report.jsonl")

    assert "came with released==3" in said.out
    assert "released==2" in matrix.out
    assert_harmless(said, refused, matrix)
    assert [] == acts((command_line.folder / "report.jsonl").read_text(encoding="utf-8"))


def test_no_text_acts_while_a_state_is_stored(command_line: CommandLine) -> None:
    """Neither what an agent lacks, nor why it does not pause."""
    write_json(command_line.folder / "scenarios" / "a" / "b.approval.yaml", marked_scenario())
    command_line.write("marked_adapter.py", ADAPTER.format(mark=MARK))
    command_line.write("failing_adapter.py", FAILING.format(mark=MARK))
    said = [
        command_line("keep-state", "a/b", "--agent", f"{agent}==1", "--serialize", mode)
        for agent, mode in (("failing", f"native.{MARK}"), ("failing", "json"), (f"marked{MARK}", "json"))
    ]

    assert "lacks native.Q\\x1b]52;c;eA==\\x07" in said[0].out
    assert_harmless(*said)


FAILING = """\
from pytest_approvals.simulation import ReferenceAgent

class Failing(ReferenceAgent):
    release = "1"
    async def turn(self, text, decisions, *, stream):
        raise ValueError({mark!r})

class Several(ReferenceAgent):
    releases = (Failing,)

FLAVOURS = {{"": Several}}
"""


def test_no_text_of_an_environment_acts(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of its folder and its recipe, in the list and while it is removed."""
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(command_line.folder / "cache"))
    for name, record in (("whole", {"recipe": f"frame=={MARK}{SURROGATE}"}), (MARK.replace("/", "-")[:90], "{")):
        folder = command_line.folder / "cache" / "environments" / name
        write_json(folder / COMPLETION_MARK, record)
        os.utime(folder / COMPLETION_MARK, (1000, 1000))
        os.utime(folder, (1000, 1000))
    said = command_line("environments"), command_line("environments", "--prune", "--yes")

    assert "frame==Q\\x1b]52;c;eA==\\x07" in said[0].out
    assert "2 removed" in said[1].out
    assert_harmless(*said)


def test_no_text_of_an_adapter_acts(command_line: CommandLine) -> None:
    """In what `agents` says of it, and in the exception of its import."""
    command_line.write("marked_adapter.py", ADAPTER.format(mark=MARK))
    command_line.write("raising_adapter.py", f"raise ImportError({MARK + SURROGATE!r})")
    said = [command_line("agents"), command_line("agents", "marked"), command_line("agents", "raising")]
    said += [command_line("run", "basics/approved", "--agent", f"marked{MARK}"), command_line("show", MARK)]

    assert "Q\\x1b]52" in said[1].out
    assert "Q\\x1b]52" in said[0].out + said[2].err
    assert_harmless(*said)


ADAPTER = """\
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.simulation.faults import FAMILIES, build_faulty_agent

MARK = {mark!r}
FAULT = next(one for one in FAMILIES["execution"].values() if one.caught_by == "rejected-never-runs")

class Marked(build_faulty_agent(FAULT)):
    issues = "https://example.org/" + MARK
    missing = {{"streaming": MARK}}
    capabilities = ReferenceAgent.capabilities - {{"streaming"}}

    async def turn(self, text, decisions, *, stream):
        print(MARK)
        return await super().turn(text, decisions, stream=stream)

FLAVOURS = {{"": Marked}}
"""


def test_no_output_of_an_agent_process_acts(command_line: CommandLine) -> None:
    """A line that is no message is quoted."""
    command_line.write("host.py", f"import os\nos.write(1, {MARK.encode()!r})\n")
    said = command_line("conformance", "--", sys.executable, "host.py")

    assert "Q\\x1b]52;c;eA==\\x07" in said.out
    assert_harmless(said)


def test_no_name_of_a_file_acts(command_line: CommandLine) -> None:
    """Of a file that is not there, that cannot be read, and that holds nothing of use."""
    name = MARK.replace("/", "-")[:100]
    for file in (f"{name}.json", f"{name}.jsonl", f"scenarios/{name}.approval.yaml", "\udcff.json"):
        command_line.write(file, "{")
        for command in ("lint", "check", "reproduce", "list"):
            assert_harmless(command_line(command, file))
    for command in ("lint", "check", "show"):
        assert_harmless(command_line(command, f"{name}.not-there"))
    assert command_line("show").code


@pytest.fixture
def signals() -> Iterator[None]:
    """Commands that serve take the signal with which they are ended."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("new-adapter", "conformance")])
def test_no_word_of_the_command_line_acts(command_line: CommandLine, signals: None, command: str) -> None:
    """Nor makes it a long message."""
    for words in ((command, f"{MARK}\udcff"), (command, f"--{MARK}"), (command, LONG), (f"{command}{MARK}",)):
        said = command_line(*words)

        assert_harmless(said)
        assert 2 == said.code
        assert len(said.err) < 3_000


def test_a_crash_is_no_verdict(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code is 2, and the text of its exception is escaped, too."""

    def crash(args: object) -> int:
        raise RuntimeError(MARK)

    command = ModuleType("pytest_approvals.cli.crashing")
    vars(command).update(add_crash_arguments=lambda parser: None, execute_crash=crash)
    monkeypatch.setitem(sys.modules, "pytest_approvals.cli.crashing", command)
    monkeypatch.setitem(COMMANDS, "crash", ("crashing", "crash"))
    said = command_line("crash")

    assert 2 == said.code
    assert "RuntimeError: Q\\x1b]52" in said.err
    assert [] == acts(said.out) + acts(said.err)


# --- long text --------------------------------------------------------------------------------------------------------


def test_a_long_line_of_a_scenario_gives_a_short_error(command_line: CommandLine) -> None:
    """Wherever the mistake is in it, and if the mistake is the long text."""
    path = command_line.folder / "scenarios" / "a" / "b.approval.yaml"
    document = yaml.safe_load(SCENARIO)
    for mistake in (
        {"titel": "x"},
        {LONG: "x"},
        {"about": {LONG: LONG}},
        {"model": LONG},
        {"expect": {"runs": [LONG]}},
    ):
        write_json(path, {**plant(document, ""), "about": LONG, **mistake})
        said = command_line("show", str(path))

        assert_harmless(said)
        assert 2 == said.code
        assert 0 < len(said.err) < 3_000


def test_a_line_of_20_megabytes_gives_a_short_error(command_line: CommandLine) -> None:
    """In a journal, in a scenario and in a stored conversation."""
    command_line.write("long.jsonl", '{"event": "' + "x" * 20_000_000 + '"}\n')
    for command in ("check", "lint", "reproduce"):
        said = command_line(command, "long.jsonl")

        assert 0 < len(said.out + said.err) < 3_000
        assert said.code


# --- what pytest prints -----------------------------------------------------------------------------------------------


def run_process(folder: Path, *words: str) -> str:
    """Run a module of Python in a folder, and return all that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, capture_output=True, encoding="utf-8", timeout=100, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture
def project(command_line: CommandLine) -> Path:
    """A folder with a scenario full of marks, an agent that fails with a mark, and its waivers."""
    write_json(command_line.folder / "scenarios" / "a" / "b.approval.yaml", marked_scenario())
    command_line.write(
        "scenarios/a/approved.approval.yaml", SCENARIO.replace("{reject: keep it}", "approve").partition("expect:")[0]
    )
    command_line.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    command_line.write("marked_adapter.py", ADAPTER.format(mark=MARK))
    command_line.write(f"scenarios/evil{MARK.replace('/', '-')[:60]}.approval.yaml", SCENARIO)
    waiver = {"scenario": "a/*", "check": "rejected-never-runs", "reason": MARK, "issue": "https://example.org/1"}
    write_json(command_line.folder / "marked.waivers.yaml", [waiver])
    return Path.cwd()


def check_files(folder: Path) -> None:
    """Fail if a report or a JUnit file has what acts, or cannot be read."""
    check_page((folder / "report.html").read_text(encoding="utf-8"))
    check_xml((folder / "junit.xml").read_text(encoding="utf-8"))


MODES = ("--serialize", "none", "--stream", "off", "--answer", "held")


def test_nothing_of_a_project_acts_when_its_scenarios_run(project: Path) -> None:
    """Findings, errors, captured output, transcripts and files; only the colours of pytest are left."""
    words = ("--agent", "reference", "--agent", "marked", "--fault", "RejectedCallRuns", *MODES)
    shown = ("--tb=long", "-rA", "-v", "--junitxml=junit.xml", "--report", "report.html", "--color=yes")
    printed = run_process(project, "pytest_approvals.cli", "run", "a/b", *words, *shown)

    assert "rejected-never-runs: " in printed
    assert "Q\\x1b]52;c;eA==\\x07\\x1b[31m\\x9b1m" in printed
    assert "\x1b[31mFAILED\x1b[0m" in printed
    assert [] == acts(re.sub(r"\x1b\[\d*(?:;\d+)*m(?!\\x9b)", "", printed))
    check_files(project)


def test_pytest_can_rewrite_a_line_of_a_terminal(command_line: CommandLine) -> None:
    """While it collects, it begins the line anew; that is not escaped."""
    master, slave = pty.openpty()
    words = (
        "-m",
        "pytest_approvals.cli",
        "run",
        "basics/approved",
        "--agent",
        "reference",
        "--collect-only",
    )
    with os.fdopen(master, "rb", buffering=0) as terminal:
        process = subprocess.Popen([sys.executable, *words], cwd=command_line.folder, stdout=slave, stderr=slave)
        os.close(slave)
        printed = b""
        # Linux tells the end of the other side by an error.
        with suppress(OSError):
            while data := terminal.read(4096):
                printed += data
        process.wait()

    assert b"\r\x1b[1mcollect" in printed
    assert b"\\r" not in printed
    assert b"\\x1b" not in printed


def test_nothing_of_our_items_acts_in_a_run_of_pytest(project: Path) -> None:
    """Without the command line, which escapes all that pytest prints."""
    (project / "test_user.py").write_text(USER_TEST.format(mark=MARK), encoding="utf-8")
    options = [f"--approvals-{name[2:]}={value}" for name, value in zip(MODES[::2], MODES[1::2], strict=True)]
    options += ["--approvals-agents=marked", "--approvals-report=report.html"]
    shown = ("-rA", "-v", "--tb=long", "--junitxml=junit.xml", "--continue-on-collection-errors")
    printed = run_process(project, "pytest", "scenarios", "test_user.py", *options, *shown)

    # A waived finding, what an agent prints, a user's test with its warning, and the name of a file.
    for text in ("XFAIL .*", "Captured stdout call -+\nQ", "last turn of Q", "RequirementWarning: Q", "ERROR .*evilQ"):
        assert re.search(rf"{text}\\x1b\]52", printed), text
    assert [] == acts(printed)
    check_files(project)


USER_TEST = """\
import warnings

from pytest_approvals.errors import AgentFailed, RequirementWarning

MARK = {mark!r}

def test_refund():
    warnings.warn(RequirementWarning(MARK))
    raise AgentFailed(MARK, "ValueError", MARK)
"""


DYING = """\
import os, sys
from pytest_approvals.simulation import ReferenceAgent

class Dying(ReferenceAgent):
    async def load(self, parts):
        # Only the process of an agent has no pytest.
        if "pytest" not in sys.modules:
            os.write(2, {mark!r}.encode())
            os._exit(3)
        await super().load(parts)

FLAVOURS = {{"": Dying}}
"""


def test_no_last_word_of_an_agent_process_acts(project: Path) -> None:
    """What it wrote to its standard error before it died is shown with the run that it broke."""
    (project / "dying_adapter.py").write_text(DYING.format(mark=MARK), encoding="utf-8")
    words = ("a/b", "--agent", "dying", "--serialize", "json", "--resume", "fresh", "--stream", "off")
    printed = run_process(
        project, "pytest_approvals.cli", "run", *words, "-rA", "--report", "report.html", "--junitxml=junit.xml"
    )

    assert "exit code 3" in printed
    assert "Q\\x1b]52;c;eA==\\x07\\x1b[31m\\x9b1m" in printed.partition("exit code 3")[2]
    assert [] == acts(printed)
    check_files(project)


# --- commands that serve ----------------------------------------------------------------------------------------------


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[str, list[str]]]:
    """Run a command that serves; yield the address that it prints, and a list that gets all its output at its end."""
    said: list[str] = []
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest_approvals.cli", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    try:
        assert started.stdout is not None
        lines = iter(started.stdout.readline, "")
        for line in lines:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                yield found[0], said
                break
    finally:
        started.send_signal(signal.SIGTERM)
        said.append(started.communicate(timeout=20)[0])


def post(url: str, content: object) -> bytes:
    """Send a request in which every text has a mark, and return what is answered, an error included."""
    body = {"model": f"m{MARK}", "messages": [{"role": "user", "content": content}], MARK: MARK}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"x-mark": MARK.encode("unicode_escape").decode()})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        return bytes(answer.read())


def test_no_text_of_a_request_acts_while_a_scenario_is_served(project: Path) -> None:
    """Nor of the scenario."""
    with serving(project, "serve", "a/b", "--lenient") as (url, said):
        assert MARK_IN_JSON[:20].encode() in post(f"{url}/chat/completions", MARK)
        with pytest.raises(HTTPError):
            post(f"{url}/%1b]52;c;eA==%07", MARK)

    assert "stopped\n" == said[-1]
    assert [] == acts("".join(said))


def test_no_text_of_an_exchange_acts_while_it_is_recorded(project: Path) -> None:
    """Nor in what is said of requests that are not recorded, nor in the file, which holds the texts."""
    with ScriptedModelServer().running() as server:
        scenario = load_scenario(project / "scenarios" / "a" / "b.approval.yaml", root=project / "scenarios")
        upstream = server.url(server.begin(scenario, ConversationOptions(lenient=True)).name)
        with serving(project, "record", "--upstream", upstream, "--out", "kept") as (url, said):
            post(f"{url}/chat/completions", MARK)
            with pytest.raises(HTTPError):
                post(f"{url}/%1b]52;c;eA==%07", MARK)
            post(f"{url}/chat/completions", {MARK: MARK})
    written = (project / "kept.approval.yaml").read_text(encoding="utf-8")

    assert "wrote kept.approval.yaml\n" in said[-1]
    assert [] == acts("".join(said))
    assert written.replace("\n", "").isprintable()
    assert "Q\x1b]52;c;eA==\x07" in plain(yaml.load(written, yaml.CSafeLoader))
