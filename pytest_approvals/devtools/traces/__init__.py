"""Traces of runs that show a known bug, as the instrumentation of the bad release itself writes them.

    case of the corpus ──► its scenario on the bad release, with instrumentation ──► spans ──► another case

The agent runs in an environment that also has the instrumentation. A process of it imports `instrumentation/` at its
start, which turns the tracing of the framework on and writes each span to a file.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_approvals.agents.launch import create_environment_source, resolve_recipe
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.processes.launchers import PythonLauncher
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.scenario.model import Scenario, Variant

_INSTRUMENTATION = Path(__file__).parent / "instrumentation"

_SDK = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common")

REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "pydantic_ai": _SDK,
    "openai_agents": (),
    "agent_framework": _SDK,
    "langgraph": (*_SDK, "openinference-instrumentation-langchain"),
    "agno": (*_SDK, "openinference-instrumentation-agno"),
    "strands": _SDK,
    "google_adk": _SDK,
}
"""What each framework's environment needs in addition; frameworks whose runs are traced."""

_PROTOCOLS = {"openai_agents": "chat", "agent_framework": "chat", "agno": "chat"}
"""How the model is reached in frameworks whose own model classes write the spans of models."""

_WARM_UP_TOOL = "practise"

_LATEST = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}
"""What an application sets to have the newest attributes, and messages in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The trace of a run in which checks failed."""

    variant: str
    checks: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _TracedLauncher(PythonLauncher):
    """Launcher of processes that are never forked, since a tracer may hold a lock while its process is."""

    @property
    def can_fork(self) -> bool:
        """See `Launcher.can_fork`."""
        return False


class TracedRuns(AgentRuns):
    """The runs of one release whose spans are written to a file.

    Args:
        release: The release.
        catalogue: The scenarios, by id.
        limit: The seconds of one run.
        file: The file.
        session: The id of the conversation.
    """

    def __init__(
        self, release: AgentRelease, catalogue: Mapping[str, Scenario], limit: float, file: Path, session: str
    ) -> None:
        super().__init__(release, catalogue, limit)
        self._file = file
        self._session = session
        self._pool = ProcessPool()

    @cached_property
    def source(self) -> SharedProcessSource:
        """See `AgentRuns.source`."""
        spec = self.release.spec
        requirements = (*self.release.requirements, *REQUIREMENTS[spec.name])
        recipe = resolve_recipe(spec, requirements, self.release.python)
        if recipe is None:
            raise AgentUnavailable(str(spec), "it has no environment", f"name its release: {spec}==VERSION")
        launcher = create_environment_source(spec, recipe, pool=self._pool).launcher
        assert isinstance(launcher, PythonLauncher)
        variables = {
            **_LATEST,
            "PYTHONPATH": str(_INSTRUMENTATION),
            "PYTEST_APPROVALS_INSTRUMENT": spec.name,
            "PYTEST_APPROVALS_SPANS": str(self._file),
            "PYTEST_APPROVALS_SESSION": self._session,
        }
        traced = _TracedLauncher(
            python=launcher.python,
            agent_side=launcher.agent_side,
            path=launcher.path,
            variables=tuple(variables.items()),
            environment=launcher.environment,
        )
        source = SharedProcessSource(str(spec), SubprocessFactory(agent=spec.base, launcher=traced, pool=self._pool))
        get_session_loop().run(source.fetch_facts())
        return source

    def read_spans(self) -> list[dict[str, Any]]:
        """Return the spans so far, without those of the flow that warms a process up."""
        if not self._file.exists():
            return []
        lines = [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]
        warming = {trace_id_of(line) for line in lines if _WARM_UP_TOOL in json.dumps(line)}
        return [line for line in lines if trace_id_of(line) not in warming]

    def hide_folders(self, text: str) -> str:
        """Return a text without the folders of this machine, which are in stack traces."""
        environment = Path(self.source.launcher.environment)
        for folder, shown in (
            (environment, "/app/venv"),
            (environment.parent.parent / "copies", "/app"),
            (Path(sys.base_prefix), "/usr"),
            (_INSTRUMENTATION, "/app"),
        ):
            text = text.replace(str(folder), shown)
        return text

    def forget_spans(self) -> None:
        """Remove the spans so far."""
        self._file.unlink(missing_ok=True)


def trace_id_of(line: Mapping[str, Any]) -> str:
    """Return the trace of a line, which is a span in OTLP, or a trace or a span of OpenAI Agents."""
    for resource in line.get("resourceSpans") or ():
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                return str(span["traceId"])
    return str(line["id"] if line.get("object") == "trace" else line.get("trace_id"))


def capture_trace(
    release: AgentRelease, scenario: Scenario, checks: Sequence[str], name: str, limit: float = 10.0
) -> Trace | str:
    """Return the trace of the first run of a scenario in which one of the checks fails, or why there is none.

    Args:
        release: The bad release.
        scenario: The scenario that shows the bug.
        checks: The checks by which it is known.
        name: The id of the conversation is made from it.
        limit: The seconds of one run.
    """
    session = f"thread-{hashlib.sha256(name.encode()).hexdigest()[:20]}"
    with tempfile.TemporaryDirectory() as folder:
        runs = TracedRuns(release, {scenario.id: scenario}, limit, Path(folder) / "spans.jsonl", session)
        if runs.unavailable:
            return runs.unavailable
        for variant in _order_variants(runs.variants(scenario.id), release.spec.name):
            runs.forget_spans()
            failed = runs.broken(scenario.id, variant) & set(checks)
            spans = runs.read_spans()
            if failed and spans:
                lines = (json.dumps(span, ensure_ascii=False) for span in spans)
                text = runs.hide_folders("".join(f"{line}\n" for line in lines))
                return Trace(variant=variant.id, checks=tuple(slug for slug in checks if slug in failed), text=text)
    return "no run that is traced shows it"


def _order_variants(variants: Sequence[Variant], framework: str) -> Iterator[Variant]:
    protocol = _PROTOCOLS.get(framework, "native")
    chosen = [variant for variant in variants if variant.protocol in (protocol, "native") and not variant.saved_by]
    if any(variant.protocol == protocol for variant in chosen):
        chosen = [variant for variant in chosen if variant.protocol == protocol]
    # A stream leaves nothing more in a trace.
    yield from sorted(chosen, key=lambda variant: variant.stream)
