"""Dry runs: the places at which the process of an agent can be killed in a turn."""

from __future__ import annotations

import pytest

from pytest_approvals.scenario.dry_run import DryRun
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import ScriptedDecision, TurnStep

TOOLS = """
  pay: {approval: always, parameters: {amount: integer}, returns: 'paid {amount}'}
  fail: {approval: always, raises: no}
  look: {}
  search: {kind: hosted_mcp, server: web}
  ask: {runs: helper, parameters: {input: string}}
  helper/wire: {approval: always}
"""
IN_CALL = ["before c1", "started c1", "ended c1", "write c1"]
SEND = TurnStep(text="Go ahead.")


def dry_run(*calls: str) -> DryRun:
    """The dry run of a story in which the model makes these calls in its first reply."""
    helper = "agents: {helper: {model: [{calls: [{id: h1, tool: wire}]}, {say: Wired.}]}}\n"
    reply = f"model: [{{calls: [{', '.join(calls)}]}}, {{say: Done.}}]"
    return DryRun(parse_scenario(f"title: Go\ntools:{TOOLS}{helper}{reply}\n", name="a/b", path="b.approval.yaml"))


def find_places(*calls: str, turn: TurnStep, before: tuple[TurnStep, ...] = ()) -> list[str]:
    """The places of a turn, without its end, its stream and its first write, to which each turn comes."""
    run = dry_run(*calls)
    for step in before:
        list(run.step(step))
    first, second, third, *places = run.crash_places(turn)
    assert ("outcome", "shown", "write") == (first, second, third)
    return places


PAY = "{id: c1, tool: pay, arguments: {amount: 5}}"


def decide(**verdicts: str) -> TurnStep:
    answers = (ScriptedDecision(label=label, verdict=verdict) for label, verdict in verdicts.items())  # type: ignore[arg-type]
    return TurnStep(answers=tuple(answers))


@pytest.mark.parametrize(
    ("calls", "turn", "expected"),
    [
        ((PAY,), decide(c1="approve"), ["model", *IN_CALL]),
        ((PAY,), decide(c1="reject"), ["model"]),
        ((PAY, "{id: c2, tool: pay, arguments: {amount: 6}}"), decide(c1="approve"), IN_CALL),
        (("{id: c1, tool: fail}",), decide(c1="approve"), ["model", *IN_CALL[:2]]),
    ],
    ids=["approved", "rejected", "another one waits", "raises"],
)
def test_a_turn_comes_to_the_calls_that_it_runs(calls: tuple[str, ...], turn: TurnStep, expected: list[str]) -> None:
    """And to the model, if no other request is open; a call that raises has no end with a result."""
    assert expected == find_places(*calls, turn=turn, before=(SEND,))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{id: c1, tool: look}", ["model", *IN_CALL]),
        (PAY, ["model"]),
        ("{id: c1, tool: search}", ["model"]),
        ("{id: c1, tool: look, arguments: 'no JSON'}", ["model"]),
        ("{id: c1, tool: ask, arguments: {input: Wire}}", ["model"]),
    ],
    ids=["ungated", "gated", "run by its provider", "with broken arguments", "runs an agent"],
)
def test_a_message_comes_to_the_model(call: str, expected: list[str]) -> None:
    """And to the calls that need no approval; those of a provider, and what depends on a framework, do not count."""
    assert expected == find_places(call, turn=SEND)


def test_asking_for_the_places_plays_nothing() -> None:
    """The turn can still be taken."""
    run = dry_run(PAY)
    run.crash_places(SEND)

    assert ([], 0) == (run.open_labels(), run.position())


def test_a_process_that_dies_comes_no_further() -> None:
    """The decision counts, and the model is asked by the successor."""
    run = dry_run(PAY)
    played = []
    for step in (SEND, TurnStep(answers=(ScriptedDecision(label="c1"),), crashes="before c1"), TurnStep()):
        list(run.step(step))
        played.append(run.position())

    assert [1, 1, 2] == played


def test_other_annotations_count_for_the_calls_after_them() -> None:
    """A call that ran at once was not asked about, and the next call of its tool waits."""
    text = """\
title: Go
equal_arguments: true
tools:
  wipe: {kind: mcp, server: disks, approval: by_annotations, annotations: {readOnlyHint: true}}
model:
  - calls: [{id: c1, tool: wipe}]
  - say: Done.
  - calls: [{id: c2, tool: wipe}]
  - say: Done.
caller:
  - send: Go
  - restart: {annotations: {wipe: {}}}
  - send: And again
"""
    story = parse_scenario(text, name="a/b", path="b.approval.yaml")
    run = DryRun(story)
    for step in story.caller or ():
        list(run.step(step))

    assert (["c1"], ["c2"]) == (run.ungated_labels(), run.open_labels())
