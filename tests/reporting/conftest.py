from __future__ import annotations

import pytest

from pytest_approvals.checks import Verdict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.reporting.findings import to_verdict_line
from pytest_approvals.reporting.report import (
    AbsentLine,
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    StaleLine,
    TranscriptLine,
    VerdictLine,
)
from pytest_approvals.reporting.subject import Subject, agent_location, format_mode, format_rerun_command
from pytest_approvals.scenario.model import Variant

TWICE = """
    tool pay(amount: integer) always
    tool mail(to: string) always
    send Pay <5> & mail
    model c1 pay(amount=5); c2 mail(to=ann)
    pause c1, c2
    approve c1
    go
    run c1 -> paid
    pause c2
    save
    restore
    approve c2
    go
    run c1 -> paid
    run c2 -> sent
    model Done.
    finish Done.
"""

AGENTS = {"reference": None, "pydantic_ai": "2.68.0", "openai_agents==0.24.0": "0.24.0"}
BASE = Variant()
PLAIN = Variant(serialize="json")
STREAMED = Variant(serialize="json", stream=True, source="restored")


@pytest.fixture
def history() -> History:
    """A run in which an approved call ran twice."""
    return read_history(parse_notation(TWICE))


@pytest.fixture
def twice(history: History) -> Verdict:
    """What a check says of it."""
    witness = tuple(
        event.n for event in history.events if event.kind in ("tool.start", "store.restore", "model.answer")
    )
    return Verdict(
        check="runs-at-most-once",
        status="fail",
        label="c1",
        call="c1 pay(amount=5)",
        expected="1 run of c1 pay(amount=5)",
        actual="2 runs",
        witness=witness[:4],
    )


def subject(scenario: str, agent: str, variant: Variant) -> Subject:
    return Subject(
        scenario=scenario,
        agent=agent,
        version=AGENTS[agent],
        where=agent_location(agent),
        variant=variant.id,
        mode=format_mode(variant),
        rerun=format_rerun_command(scenario, agent, variant),
    )


@pytest.fixture
def report(history: History, twice: Verdict) -> Report:
    """Four scenarios on three agents: what passes, fails, warns, is waived, stale or absent."""
    header = ReportHeader(
        package="0.1.0",
        python="3.11.7",
        agents=(
            ReportedAgent(agent="reference", where="simulation"),
            ReportedAgent(
                agent="pydantic_ai", framework="pydantic-ai-slim", version="2.68.0", issues="https://a.test/x"
            ),
            ReportedAgent(agent="openai_agents==0.24.0", framework="openai-agents", version="0.24.0"),
        ),
        checks={
            "runs-at-most-once": ReportedCheck(
                requirement="An approved call must not run more than once.", severity="double-effect"
            ),
            "result-delivered-once": ReportedCheck(
                requirement="A result must reach the model once.", severity="lost-effect"
            ),
            "reason-told": ReportedCheck(
                requirement="The model should be told the reason.", level="should", severity="mistold"
            ),
            "same-outcome-in-every-mode": ReportedCheck(requirement="All variants must end alike.", severity="mistold"),
        },
        scenarios={
            "basics/pay": "One gated call",
            "parallel/partial-answer": "One of two calls is answered",
            "parallel/two": "Two calls <at once>",
            "hosted/approve": "A hosted call",
        },
    )
    whole = Report(header=header)
    for agent in AGENTS:
        for scenario in ("basics/pay", "parallel/partial-answer", "parallel/two"):
            for variant in (BASE, PLAIN, STREAMED):
                about = subject(scenario, agent, variant)
                fails = agent == "openai_agents==0.24.0" and scenario != "basics/pay" and variant is not BASE
                whole.add(
                    to_verdict_line(
                        twice if fails else Verdict(check="runs-at-most-once", status="pass"), about, history
                    )
                )
                whole.add(to_verdict_line(Verdict(check="reason-told", status="not-applicable"), about))
    _add_more(whole, history, twice)
    return whole


def _add_more(whole: Report, history: History, twice: Verdict) -> None:
    streamed = subject("parallel/two", "openai_agents==0.24.0", STREAMED)
    implied = Verdict(check="result-delivered-once", status="fail", label="c1", implied_by="runs-at-most-once")
    whole.add(to_verdict_line(implied, streamed, history))
    plain = subject("parallel/partial-answer", "openai_agents==0.24.0", PLAIN)
    whole.add(to_verdict_line(implied, plain, history))
    reason = Verdict(
        check="reason-told", status="warning", label="c2", expected="the reason no", actual="nothing of it"
    )
    whole.verdicts = [
        line
        for line in whole.verdicts
        if (line.scenario, line.agent, line.variant, line.check)
        != ("parallel/two", "pydantic_ai", STREAMED.id, "reason-told")
    ]
    whole.add(to_verdict_line(reason, subject("parallel/two", "pydantic_ai", STREAMED), history))
    together = Verdict(check="same-outcome-in-every-mode", status="fail", expected="one outcome", actual="2 outcomes")
    whole.add(
        to_verdict_line(
            together, Subject(scenario="basics/pay", agent="pydantic_ai", version="2.68.0"), None, waiver="known (a#1)"
        )
    )
    whole.add(NotApplicableLine(scenario="hosted/approve", agent="pydantic_ai", missing=("hosted_mcp",)))
    whole.add(StaleLine(agent="pydantic_ai", waiver="pydantic_ai.waivers.yaml:3: asked-once on basics/*: gone (a#2)"))
    why = "agent 'frame==9.9' cannot be started: uv cannot provide frame==9.9; name other requirements"
    whole.add(AbsentLine(agent="frame==9.9", why=why))
    lines = Transcript.of_history(history).lines
    whole.add(TranscriptLine(scenario="parallel/two", agent="openai_agents==0.24.0", variant=STREAMED.id, lines=lines))


@pytest.fixture
def failing(report: Report) -> VerdictLine:
    """The line of a failure."""
    return next(line for line in report.verdicts if line.status == "fail" and line.witness)
