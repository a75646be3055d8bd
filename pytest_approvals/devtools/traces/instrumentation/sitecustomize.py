"""Instrumentation of the framework of an agent process: each span is a line of the file that a variable names.

The folder of this file is on the import path of the process, so that Python imports it at the start. It knows nothing
of this package, and calls what an application calls to have its agents traced.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

_FILE = os.environ.get("PYTEST_APPROVALS_SPANS", "")
_FRAMEWORK = os.environ.get("PYTEST_APPROVALS_INSTRUMENT", "")
_SESSION = os.environ.get("PYTEST_APPROVALS_SESSION", "")


def _write(line: dict[str, Any]) -> None:
    # Forked processes write to the same file; a short append is one write.
    with open(_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, default=str) + "\n")


# --- OpenTelemetry ---


def _create_provider(*, is_global: bool) -> Any:
    """Return a tracer provider whose spans are written as OTLP, as the file exporter of the collector does."""
    sdk: Any = import_module("opentelemetry.sdk.trace")
    export: Any = import_module("opentelemetry.sdk.trace.export")
    encode = import_module("opentelemetry.exporter.otlp.proto.common.trace_encoder").encode_spans
    to_dict = import_module("google.protobuf.json_format").MessageToDict
    resource = import_module("opentelemetry.sdk.resources").Resource({"service.name": "shop"})

    class Exporter(export.SpanExporter):  # type: ignore[misc]
        def export(self, spans: Any) -> Any:
            for span in spans:
                _write(_with_hexadecimal_ids(to_dict(encode([span]))))
            return export.SpanExportResult.SUCCESS

    class SessionProcessor(sdk.SpanProcessor):  # type: ignore[misc]
        """Names the conversation, as a processor of baggage does."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.set_attribute("session.id", _SESSION)

    class Ids(import_module("opentelemetry.sdk.trace.id_generator").IdGenerator):  # type: ignore[misc]
        """Forked processes share the state of the generator that is the default."""

        def generate_span_id(self) -> int:
            return random.SystemRandom().getrandbits(64) | 1

        def generate_trace_id(self) -> int:
            return random.SystemRandom().getrandbits(128) | 1

    provider = sdk.TracerProvider(id_generator=Ids(), resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SessionProcessor())
    provider.add_span_processor(export.SimpleSpanProcessor(Exporter()))
    if is_global:
        import_module("opentelemetry.trace").set_tracer_provider(provider)
    return provider


def _with_hexadecimal_ids(value: Any) -> Any:
    """Return the ids of OTLP in JSON as its specification writes them: hexadecimal, and not in base64."""
    if isinstance(value, list):
        return [_with_hexadecimal_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64decode(inner).hex()
        if name in ("traceId", "spanId", "parentSpanId")
        else _with_hexadecimal_ids(inner)
        for name, inner in value.items()
    }


def _instrument_pydantic_ai() -> None:
    provider = _create_provider(is_global=True)
    settings = import_module("pydantic_ai.models.instrumented").InstrumentationSettings
    options: dict[str, Any] = {"tracer_provider": provider}
    import_module("pydantic_ai").Agent.instrument_all(settings(**options))


def _instrument_agent_framework() -> None:
    _create_provider(is_global=True)
    import_module("agent_framework.observability").enable_instrumentation(enable_sensitive_data=True)


def _instrument_langgraph() -> None:
    provider = _create_provider(is_global=False)
    import_module("openinference.instrumentation.langchain").LangChainInstrumentor().instrument(
        tracer_provider=provider
    )


def _instrument_agno() -> None:
    provider = _create_provider(is_global=False)
    import_module("openinference.instrumentation.agno").AgnoInstrumentor().instrument(tracer_provider=provider)


def _instrument_globally() -> None:
    """Trace a framework that asks for the tracer of the process."""
    _create_provider(is_global=True)


# --- OpenAI Agents ---


def _instrument_openai_agents() -> None:
    tracing: Any = import_module("agents.tracing")
    config = import_module("agents").RunConfig
    initialize = config.__init__

    def with_tracing(self: Any, *given: Any, **options: Any) -> None:
        initialize(self, *given, **options)
        # The adapter turns it off, since the exporter of the SDK needs a network.
        self.tracing_disabled = False

    class Exports(tracing.TracingProcessor):  # type: ignore[misc]
        """Writes what the exporter of the SDK sends."""

        def on_trace_start(self, trace: Any) -> None:
            trace.group_id = _SESSION
            self._write(trace)

        def on_span_end(self, span: Any) -> None:
            self._write(span)

        def _write(self, exported: Any) -> None:
            line = exported.export()
            if line is not None:
                _write(line)

        def on_trace_end(self, trace: Any) -> None: ...

        def on_span_start(self, span: Any) -> None: ...

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    config.__init__ = with_tracing
    import_module("agents").set_trace_processors([Exports()])


_INSTRUMENTS: dict[str, Callable[[], None]] = {
    "pydantic_ai": _instrument_pydantic_ai,
    "openai_agents": _instrument_openai_agents,
    "agent_framework": _instrument_agent_framework,
    "langgraph": _instrument_langgraph,
    "agno": _instrument_agno,
    "strands": _instrument_globally,
    "google_adk": _instrument_globally,
}

if __name__ == "sitecustomize" and _FILE:
    _INSTRUMENTS[_FRAMEWORK]()
