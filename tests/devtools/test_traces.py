"""Traces of known bugs: what is taken from a process that is traced, and what is not."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from pytest_approvals.devtools import traces
from pytest_approvals.devtools.traces import REQUIREMENTS, trace_id_of

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests/conversations/corpus").glob("*-trace.jsonl"))

OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab", "spanId": "1"}]}]}]}


@pytest.mark.parametrize(
    ("line", "trace"),
    [
        (OTLP, "ab"),
        ({"object": "trace", "id": "trace_1"}, "trace_1"),
        ({"object": "trace.span", "id": "span_1", "trace_id": "trace_1"}, "trace_1"),
    ],
)
def test_each_line_belongs_to_a_trace(line: dict[str, object], trace: str) -> None:
    """Of spans in OTLP, and of traces and spans of OpenAI Agents."""
    assert trace == trace_id_of(line)


def test_each_framework_with_requirements_can_be_instrumented() -> None:
    """The module that a traced process imports knows it."""
    module = runpy.run_path(str(Path(traces.__file__).parent / "instrumentation" / "sitecustomize.py"))

    assert set(REQUIREMENTS) == set(module["_INSTRUMENTS"])


def test_an_import_of_the_instrumentation_alone_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file for the spans nothing is imported, so that other processes are left alone."""
    monkeypatch.delenv("PYTEST_APPROVALS_SPANS", raising=False)
    path = Path(traces.__file__).parent / "instrumentation" / "sitecustomize.py"

    assert "" == runpy.run_path(str(path), run_name="sitecustomize")["_FILE"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_trace_names_no_folder_of_the_machine(path: Path) -> None:
    """Stack traces in it show folders of the environment under another name."""
    folders = set(re.findall(r'File \\+"(/[^/\\"]+)', path.read_text(encoding="utf-8")))

    assert folders <= {"/app", "/usr"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_trace_holds_nothing_of_the_warm_up(path: Path) -> None:
    """The flow that warms a process up has a tool of its own."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    assert lines
    assert not [line for line in lines if "practise" in json.dumps(line)]
