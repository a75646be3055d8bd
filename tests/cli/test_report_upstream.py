"""`pytest-approvals report-upstream`: the issue about a cause, and what is not reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_approvals.cli import main
from pytest_approvals.errors import UsageError
from pytest_approvals.reporting.upstream import format_upstream_issue, load_every_cause

CAUSES = load_every_cause()
MEANT = (
    "strands-session-is-answered-twice is of class 'by-design', which is not reported: the framework's authors mean it"
)
LIMITED = (
    "google-adk-sub-agent-forgets-its-task is of class 'documented-limit', which is not reported: "
    "the framework's documentation says so"
)
EXAMPLE = CAUSES["agno-json-loses-the-approval"]
REPORTED = [
    cause
    for cause in CAUSES.values()
    if cause.native is not None and cause.cause_class not in ("by-design", "documented-limit", "ours", "provider-only")
]


def test_an_issue_has_what_the_template_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The title, the versions, a script, what the documentation says, and what happens."""
    assert 0 == main(["report-upstream", "openai-agents-approved-call-is-dropped-before-never"])
    text = capsys.readouterr().out
    head, _, rest = text.partition("```python\n")
    script, _, end = rest.partition("\n```\n")

    assert (
        "# reject(always_reject=True) overrides an approval of another call that was given before it\n\n"
        "### Describe the bug\n\n"
        "Both calls of one tool wait; the approval of one is given before the standing rejection of the other.\n\n"
        "Related: https://github.com/openai/openai-agents-python/issues/4429, "
        "https://github.com/openai/openai-agents-python/pull/4430, "
        "https://github.com/openai/openai-agents-js/pull/1694\n\n"
        "### Debug information\n\n"
        "openai-agents 0.24.0\n\n"
        "### Repro steps\n\n"
        "`uv run script.py` exits with 1:\n\n"
    ) == head
    assert script.startswith("# /// script\n")
    assert "\n### Expected behavior\n\n> Per-call approvals are scoped to the specific call ID; " in end
    assert "\n### Actual behavior\n\n`state.approve(c1)` is followed by " in end


@pytest.mark.parametrize("cause", REPORTED, ids=lambda cause: cause.id)
def test_each_cause_with_a_script_can_be_reported(cause: object) -> None:
    """Nothing of this package is in the text."""
    assert "pytest" not in format_upstream_issue(cause)  # type: ignore[arg-type]


def test_an_issue_can_be_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the same text."""
    path = tmp_path / "issue.md"
    assert 0 == main(["report-upstream", "agno-json-loses-the-approval", "-o", str(path)])

    assert f"{path} has the issue about agno-json-loses-the-approval\n" == capsys.readouterr().out
    assert format_upstream_issue(CAUSES["agno-json-loses-the-approval"]) == path.read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "agno-json-looses-the-approval",
            "Unknown cause 'agno-json-looses-the-approval'; did you mean 'agno-json-loses-the-approval'?",
        ),
        (
            "strands-session-is-answered-twice",
            MEANT,
        ),
        (
            "google-adk-sub-agent-forgets-its-task",
            LIMITED,
        ),
    ],
)
def test_what_cannot_be_reported_is_refused(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason."""
    assert 2 == main(["report-upstream", name])

    assert f"pytest-approvals: {message}\n" == capsys.readouterr().err


def test_a_cause_without_a_script_is_not_reported() -> None:
    """The record in which it is missing is named."""
    with pytest.raises(UsageError, match=f"has no script in the framework's own API yet: `native:` in {EXAMPLE.path}"):
        format_upstream_issue(replace(EXAMPLE, native=None))


def test_an_issue_about_a_javascript_framework_says_how_to_run_its_script() -> None:
    """With npm and node, as the first line of the script says."""
    text = format_upstream_issue(CAUSES["openai-agents-js-rejected-call-runs-after-always"])

    assert (
        "The `npm install` of its first line, then `node script.mjs` exits with 1:\n\n```js\n"
        "// npm install @openai/agents@0.20.0 zod@4.3.5\n"
    ) in text


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is none."""
    assert 2 == main(["report-upstream", "agno-json-loses-the-approval", "-o", str(tmp_path)])

    assert f"pytest-approvals: {tmp_path}: cannot write file: Is a directory\n" == capsys.readouterr().err
