"""`pytest-approvals lint`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from pytest_approvals.conversations.lint import RULES


def asked(**arguments):
    call = {"$type": "functionCall", "name": "pay", "arguments": arguments, "callId": "c1"}
    return {"$type": "toolApprovalRequest", "toolCall": call, "requestId": "r1"}


def conversation(*more):
    user = {"role": "user", "contents": [{"$type": "text", "text": "Pay 5"}]}
    return [user, {"role": "assistant", "contents": [asked(amount=5)]}, *more]


AGAIN = {"role": "user", "contents": [{"$type": "text", "text": "Hello?"}]}


def test_a_conversation_in_order(command_line) -> None:
    """A paused conversation is told, and the exit code is 0."""
    command_line.write("a.json", json.dumps(conversation(), indent=1))
    said = command_line("lint", "a.json")

    assert (
        0,
        "a.json:14: message 1, content 0: waits: pay(amount=5) waits for a decision\n1 conversation, 0 findings\n",
    ) == (said.code, said.out)


def test_a_finding(command_line) -> None:
    """It is told with its place, and the exit code is 1."""
    command_line.write("a.jsonl", "\n" + json.dumps(conversation(AGAIN)))
    said = command_line("lint", "a.jsonl")
    what = "nobody decided about pay(amount=5), and the conversation goes on"

    assert 1 == said.code
    assert f"a.jsonl:2: message 1, content 0: nothing-left-pending: {what}\n1 conversation, 1 finding\n" == said.out


def test_json_lines(command_line) -> None:
    """Everything that is told, for programs."""
    command_line.write("a.json", json.dumps([conversation(AGAIN)]))
    (told,) = map(json.loads, command_line("lint", "a.json", "--output", "jsonl").out.splitlines())

    assert {
        "event": "finding",
        "rule": "nothing-left-pending",
        "file": "a.json",
        "line": 1,
        "conversation": "a.json[0]",
        "format": "meai",
        "message": 1,
        "content": 0,
        "path": [1, "contents", 0],
        "what": "nobody decided about pay(amount=5), and the conversation goes on",
    } == told


def test_annotations(command_line) -> None:
    """GitHub shows them beside the file; what would end a property is escaped."""
    command_line.write("a,b.json", json.dumps(conversation(AGAIN), indent=1))
    said = command_line("lint", "a,b.json", "--output", "github")

    assert (
        "::error file=a%2Cb.json,line=14,title=nothing-left-pending::message 1, content 0: "
        "nobody decided about pay(amount=5), and the conversation goes on\n"
    ) == said.out


def test_gated_tools(command_line) -> None:
    """`--gated` may be given several times, and takes patterns."""
    call = {"$type": "functionCall", "name": "pay", "callId": "c1"}
    result = {"$type": "functionResult", "result": "paid", "callId": "c1"}
    command_line.write("a.json", json.dumps([{"role": "assistant", "contents": [call, result]}]))

    assert [0, 0, 1, 1] == [
        command_line("lint", "a.json", *words).code
        for words in ((), ("--gated", "wipe"), ("--gated", "wipe", "--gated", "pay"), ("--gated", "p*"))
    ]


def test_bad_files_are_findings_and_stop_nothing(command_line) -> None:
    """Each is told; the others are looked at."""
    command_line.write("all/a.json", "{")
    command_line.write("all/b.json", json.dumps(conversation()))
    command_line.write("all/package.json", "{}")
    said = command_line("lint", "all")
    what = "truncated: the text ends within a document (expecting property name enclosed in double quotes)"

    assert 1 == said.code
    assert [
        f"all/a.json:1: unreadable: {what}",
        "all/b.json:1: message 1, content 0: waits: pay(amount=5) waits for a decision",
        "all/package.json: skipped: no conversation of a known format",
        "1 conversation, 1 finding",
    ] == said.out.splitlines()


def test_hostile_text_is_shown_harmless(command_line) -> None:
    """A terminal does nothing, and a line stays a line."""
    hostile = "\x1b]0;owned\x07\n::error::\u202e"
    call = {"$type": "functionCall", "name": hostile, "arguments": {hostile: hostile}, "callId": hostile}
    command_line.write("a.json", json.dumps([{"role": "assistant", "contents": [call, call, {"$type": hostile}]}]))

    for output in ("text", "jsonl", "github"):
        assert all(line.isprintable() for line in command_line("lint", "a.json", "--output", output).out.splitlines())


def test_deep_arguments_are_refused(command_line) -> None:
    """They may be parsed, and be too deep for anything else."""
    for depth in (400, 900, 2_000):
        deep = "[" * depth + "]" * depth
        text = json.dumps(conversation(AGAIN)).replace("5}", f"{deep}}}")
        command_line.write("a.json", text)

        assert 1 == command_line("lint", "a.json").code


def test_rules_are_listed(command_line) -> None:
    """Each with what must hold."""
    said = command_line("lint", "--rules")

    assert list(RULES) == [line.split()[0] for line in said.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "name the stored conversations to look at: files, folders, or - for standard input"),
        (("none.json",), "file not found: none.json"),
        (("--format", "pydantic-ai", "."), "Unknown format 'pydantic-ai'; did you mean 'pydantic_ai'?"),
        (("--gate", "pay", "."), "Unknown option '--gate'; did you mean '--gated'?"),
    ],
)
def test_wrong_usage(command_line, words, what) -> None:
    """The exit code is 2."""
    said = command_line("lint", *words)

    assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


SARIF = json.loads((Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json").read_text())


def test_sarif(command_line) -> None:
    """The log fits the published schema, and has the place of each finding and all rules."""
    command_line.write("a.json", json.dumps([conversation(AGAIN)]))
    said = command_line("lint", "a.json", "--output", "sarif")
    log = json.loads(said.out)
    [result] = log["runs"][0]["results"]

    assert [] == [error.message for error in jsonschema.Draft4Validator(SARIF).iter_errors(log)]
    assert (1, "nothing-left-pending", "error") == (said.code, result["ruleId"], result["level"])
    assert {"artifactLocation": {"uri": "a.json"}, "region": {"startLine": 1}} == result["locations"][0][
        "physicalLocation"
    ]
    assert set(RULES) <= {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}


def test_sarif_of_a_conversation_in_order(command_line) -> None:
    """It has a note about what waits, which is no finding."""
    command_line.write("a b.json", json.dumps(conversation(), indent=1))
    said = command_line("lint", "a b.json", "--output", "sarif")
    [result] = json.loads(said.out)["runs"][0]["results"]

    assert (0, "waits", "note") == (said.code, result["ruleId"], result["level"])
    assert "a%20b.json" == result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_code_quality_of_gitlab(command_line) -> None:
    """A finding keeps its fingerprint when lines are added before it."""
    command_line.write("a.jsonl", json.dumps(conversation(AGAIN)))
    [before] = json.loads(command_line("lint", "a.jsonl", "--output", "gitlab").out)
    command_line.write("a.jsonl", "\n\n" + json.dumps(conversation(AGAIN)))
    [after] = json.loads(command_line("lint", "a.jsonl", "--output", "gitlab").out)

    assert ("nothing-left-pending", "major", {"path": "a.jsonl", "lines": {"begin": 1}}) == (
        before["check_name"],
        before["severity"],
        before["location"],
    )
    assert 3 == after["location"]["lines"]["begin"]
    assert before["fingerprint"] == after["fingerprint"]


def test_junit(command_line) -> None:
    """A finding is a test case that fails."""
    command_line.write("a.json", json.dumps([conversation(AGAIN)]))
    [suite] = ET.fromstring(command_line("lint", "a.json", "--output", "junit").out)
    [case] = suite

    assert ("1", "a.json", "nothing-left-pending") == (
        suite.get("failures"),
        case.get("classname"),
        case[0].get("message"),
    )


def test_what_arrives_in_a_folder_is_looked_at(tmp_path: Path) -> None:
    """One line a finding, until the user interrupts; then the exit code says whether there was one."""
    command = [sys.executable, "-m", "pytest_approvals.cli", "lint", "--watch", str(tmp_path)]
    (tmp_path / "healthy.json").write_text(json.dumps(conversation()))
    (tmp_path / "a.json").write_text(json.dumps([conversation(AGAIN)]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        first = watching.stdout.readline()
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "b.json").write_text(json.dumps([conversation(AGAIN)]))
        second = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        rest = watching.stdout.read()

    assert first.startswith(f"{tmp_path / 'a.json'}:1: message 1, content 0: nothing-left-pending: ")
    assert second.startswith(f"{tmp_path / 'later' / 'b.json'}:1: ")
    assert ("", 1) == (rest, watching.returncode)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watch", "nowhere"], "--watch: there is no folder nowhere"),
        (["--watch", ".", "a.json"], "--watch takes no files"),
        (["--watch", ".", "--output", "sarif"], "writes a line for each finding: text, jsonl or github"),
    ],
)
def test_what_cannot_be_watched(command_line, words, message) -> None:
    """The exit code is 2."""
    said = command_line("lint", *words)

    assert message in said.err
    assert 2 == said.code
