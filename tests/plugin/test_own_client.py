"""What comes of a test whose agent asks the scripted model by a client of its own."""

from __future__ import annotations

import pytest

from pytest_approvals.reporting.files import read_report

TEST = """
import pytest
import httpx

def asks(model, *more):
    body = {{"model": "m", "messages": [{{"role": "user", "content": "go"}}, *more]}}
    with httpx.Client(transport=model.transport()) as client:
        return client.post("https://api.openai.com/v1/chat/completions", json=body).json()

{mark}
def test_it(scripted_model):
    scripted_model.calls("refund", order=42).says("Refunded.")
    said = asks(scripted_model)["choices"][0]["message"]
    told = {{"role": "tool", "tool_call_id": "c1", "content": "ok"}}
    asks(scripted_model, said, *[told] * {results})
"""


@pytest.mark.parametrize("results", [0, 2])
def test_refused_request_fails_the_test(project, results):
    """What the provider refuses is a finding at the end of the test, though its client takes no notice."""
    project.write("test_own.py", TEST.format(mark="", results=results))
    result = project.run(agents="")
    result.assert_outcomes(failed=1)
    rule = "call-without-result" if results == 0 else "second-result"
    result.stdout.fnmatch_lines(
        ["*model-input-well-formed: *", f"*  actual    {rule}: *", "*  rerun  pytest test_own.py*"]
    )


def test_right_requests_pass(project):
    """Nothing is found where the provider takes everything, though nobody sees turns, tools and requests."""
    project.write("test_own.py", TEST.format(mark="", results=1))
    result = project.run("--approvals-report=report.jsonl", agents="")
    result.assert_outcomes(passed=1)
    verdicts = read_report(project.path / "report.jsonl").verdicts
    assert ("model-input-well-formed", "pass") in {(line.check, line.status) for line in verdicts}


def test_verdicts_may_be_collected(project):
    """A test that says so gets findings in the report alone."""
    project.write("test_own.py", TEST.format(mark='@pytest.mark.approvals(checks="collect")', results=2))
    project.run(agents="").assert_outcomes(passed=1)


def test_test_that_asks_nothing_passes(project):
    """A scripted model that nobody asked is no finding, if it has no replies."""
    project.write("test_own.py", "def test_it(scripted_model):\n    scripted_model.transport()\n")
    project.run(agents="").assert_outcomes(passed=1)
