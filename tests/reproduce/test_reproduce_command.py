"""The command `reproduce`: from a stored conversation to a scenario that fails as it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_approvals.cli import main
from pytest_approvals.reproduce.trial import Tried
from pytest_approvals.reproduce.yaml_text import yaml_text
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.parts import Scenario

SMALL = """\
title: A call of refund is rejected, two messages follow
about: >
  Made from a stored conversation (meai). The check usable-after-refusal fails on meai==10.4, and holds on
  meai==robust.
tools:
  refund: {approval: always}
model:
  - calls: [{id: c1, tool: refund}]
  - say: I have not refunded it.
  - say: Done.
  - say: Done.
caller:
  - send: Please refund order 4711 to bob@example.org, ...
  - decide: {c1: reject}
  - send: Yes, look first.
  - send: And now?
reaches: {paused: 1, rejected: 1, finished: 3}
"""
"""The story of dotnet/extensions#7468, and nothing else."""

AGENTS = ("--agent", "meai==10.4", "--agent", "meai==robust")


def failing_on(agent: str, scenario: Scenario) -> set[str]:
    """The checks that fail on an agent in any variant of a scenario."""
    tried = Tried(agent, 10)
    return set(tried.failing_in(scenario))


def test_a_paused_session_becomes_the_bug_that_it_has(
    paused_session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fails on 10.4, whose store made two copies of a call, holds where settlement goes by position."""
    target = tmp_path / "found" / "session.approval.yaml"
    code = main(["reproduce", str(paused_session), "-o", str(target), *AGENTS])

    assert 0 == code
    assert SMALL == target.read_text(encoding="utf-8")
    scenario = load_scenario(target, root=tmp_path)
    assert ({"usable-after-refusal"}, set()) == (
        failing_on("meai==10.4", scenario),
        failing_on("meai==robust", scenario),
    )
    told = capsys.readouterr().err.splitlines()
    assert ["meai==10.4: usable-after-refusal fails", "meai==robust: nothing fails"] == told[:2]


def test_where_nothing_fails_the_whole_story_is_told(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a scenario all the same, and the exit code says that it does not fail."""
    code = main(["reproduce", str(paused_session), "--agent", "meai==robust"])
    said = capsys.readouterr()

    assert (1, "no check fails") == (code, said.err.splitlines()[-1])
    assert "  - decide: {c1: {reject: not this month}}" in said.out.splitlines()


def test_what_is_shared_can_be_anonymous(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bug is the same, and nobody learns what it was about."""
    code = main(["reproduce", str(paused_session), "--anonymise", *AGENTS])
    said = capsys.readouterr()

    assert 0 == code
    assert "title: A call of refund is rejected, two messages follow" == said.out.splitlines()[0]
    assert [] == [secret for secret in ("4711", "bob@", "Rome", "flight", "look first") if secret in said.out]


def test_a_check_can_be_named(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another one than the first that fails; here it does not."""
    code = main(["reproduce", str(paused_session), "--check", "runs-at-most-once", *AGENTS])

    assert (1, "no check fails") == (code, capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize(
    ("content", "words", "complaint"),
    [
        (b"{", (), "history.json:1: truncated"),
        (b"\xff\xfe", (), "UTF-16"),
        (b"[" * 100_000, (), "nested"),
        (b'{"a": 1}', (), "no known format"),
        (b'[{"role": "user", "contents": []}]', ("--conversation", "3"), "holds 1, so there is no number 3"),
        (b"[]", ("--check", "asked-onc"), "did you mean 'asked-once'?"),
        (b"[]", ("--format", "mea"), "did you mean 'meai'?"),
        (b"[]", ("--time-limit", "0"), "too small"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: tuple[str, ...], complaint: str
) -> None:
    """Exit code 2, nothing on standard output, no traceback."""
    path = tmp_path / "history.json"
    path.write_bytes(content)
    code = main(["reproduce", str(path), *words])
    said = capsys.readouterr()

    assert (2, "") == (code, said.out)
    assert said.err.startswith("pytest-approvals: ")
    assert complaint in said.err


def test_one_of_several_conversations_is_chosen(paused_session: Path, tmp_path: Path) -> None:
    """By its number in the file."""
    other = {"messages": [{"role": "user", "contents": [{"$type": "text", "text": "Hello"}]}]}
    lines = tmp_path / "many.jsonl"
    session = json.dumps(json.loads(paused_session.read_text()))
    lines.write_text(f"{json.dumps(other)}\n{session}\n", encoding="utf-8")
    target = tmp_path / "second.approval.yaml"

    assert 0 == main(["reproduce", str(lines), "--conversation", "2", "-o", str(target), *AGENTS])
    assert "A call of refund is rejected" in target.read_text(encoding="utf-8")


def test_a_document_is_written_in_the_order_of_its_keys() -> None:
    """Short things in a line, long ones in a block."""
    long = {f"parameter_{n}": "string" for n in range(9)}
    text = yaml_text({"title": "T", "tools": {"a": {"parameters": long}}, "reaches": {"paused": 1}})
    assert ["title: T", "tools:", "  a:", "    parameters:"] == text.splitlines()[:4]
    assert "reaches: {paused: 1}" == text.splitlines()[-1]
