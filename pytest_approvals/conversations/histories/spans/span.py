"""Spans in a document, whoever exported them.

{"resourceSpans": [{"scopeSpans": [{"spans": [...]}]}]}           OTLP in JSON, of an exporter or a collector
{"name", "context": {"trace_id", "span_id"}, "attributes": {}}    `ConsoleSpanExporter` and `span.to_json()`
{"trace_id", "span_id", "attributes": {}}                         rows of stores such as Logfire's
{"object": "trace.span", "span_data": {"type", ...}}              the tracing of OpenAI Agents
{"run_type", "trace_id", "inputs", "outputs"}                     runs of LangSmith
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pytest_approvals.conversations.histories.conversation import JsonPath
from pytest_approvals.conversations.histories.reader_kit import expected_error, is_object_list
from pytest_approvals.errors import HistoryError

_LISTS = ("spans", "data", "rows", "runs", "observations")
"""The names under which services return lists of spans."""

_LANGFUSE = "langfuse"
_OBSERVATION = "langfuse.observation."
_OBSERVATION_TYPE = "langfuse.observation.type"

_SCALARS = ("stringValue", "intValue", "doubleValue", "boolValue", "string_value", "int_value", "bool_value")
_MAX_VALUE_DEPTH = 60

_NESTED = ("openinference", "gen_ai")
"""Names of which one is an object if attributes were taken apart at the dots of their names."""

_ROOTS = (*_NESTED, "llm", "tool", "input", "output", "session")
"""The first parts of the names that are put together again."""


@dataclass(slots=True, kw_only=True)
class Span:
    """One span.

    Attributes:
        path: Its place in the document.
        start: Nanoseconds since 1970; 0 if it is unknown.
        attributes: By name; of OpenAI Agents the `span_data`, of LangSmith the whole run.
        events: The names and attributes of its events.
        source: What wrote it: the name of its scope, `openai_agents`, `langsmith` or `langfuse`.
        process: What tells processes, and so clocks, apart.
        is_cut: It says that attributes or events were dropped.
    """

    path: JsonPath
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    attributes: Mapping[str, Any]
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    source: str = ""
    process: str = ""
    has_failed: bool = False
    is_cut: bool = False


def holds_spans(document: Any) -> bool:
    """Return whether a document is a span, or holds some."""
    if type(document) is not dict:
        return False
    if _resource_spans(document) is not None or _is_span(document) or document.get("object") == "trace":
        return True
    return any(is_object_list(document.get(name)) and _is_span(document[name][0]) for name in _LISTS)


def read_spans(document: dict[str, Any]) -> Iterator[Span]:
    """Yield the spans of a document.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    name = _resource_spans(document)
    if name is not None:
        yield from _read_otlp(document, name)
    elif _is_span(document):
        yield _read_span(document, ())
    else:
        session = _session_of_trace(document)
        for name in _LISTS:
            for place, span in enumerate(document[name] if is_object_list(document.get(name)) else ()):
                read = _read_span(_require_object(span, (name, place)), (name, place))
                if session is not None and read.source == _LANGFUSE:
                    read.attributes = {"session.id": session, **read.attributes}
                yield read


def _resource_spans(document: dict[str, Any]) -> str | None:
    return next((name for name in ("resourceSpans", "resource_spans") if type(document.get(name)) is list), None)


def _is_span(value: dict[str, Any]) -> bool:
    context = value.get("context")
    if type(context) is dict and "trace_id" in context and "span_id" in context:
        return True
    if (
        value.get("object") == "trace.span"
        or _is_observation(value)
        or ("run_type" in value and "inputs" in value and "id" in value)
    ):
        return True
    return any(trace in value and span in value for trace, span in (("traceId", "spanId"), ("trace_id", "span_id")))


def _is_observation(value: dict[str, Any]) -> bool:
    """Return whether it is an observation of Langfuse, as its API or its export to a bucket writes it."""
    parent = any(name in value for name in ("parentObservationId", "parent_observation_id"))
    return parent and "type" in value and "id" in value and any(name in value for name in ("traceId", "trace_id"))


def _session_of_trace(document: dict[str, Any]) -> str | None:
    """Return the session of a trace of Langfuse, which holds its observations, or stands beside them."""
    trace = document.get("trace")
    for held in (document, trace if type(trace) is dict else {}):
        session = held.get("sessionId") or held.get("session_id")
        if type(session) is str:
            return session
    return None


def _require_object(value: Any, at: JsonPath) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise HistoryError(expected_error("an object", value), at=at)


def _objects(value: Any, at: JsonPath) -> Iterator[tuple[JsonPath, dict[str, Any]]]:
    if value is not None and type(value) is not list:
        raise HistoryError(expected_error("an array", value), at=at)
    for place, item in enumerate(value or ()):
        yield (*at, place), _require_object(item, (*at, place))


def _read_otlp(document: dict[str, Any], name: str) -> Iterator[Span]:
    for at, group in _objects(document[name], (name,)):
        resource = read_attributes((group.get("resource") or {}).get("attributes"))
        process = "/".join(
            str(resource.get(each, "")) for each in ("service.name", "service.instance.id", "host.name", "process.pid")
        )
        scopes = next((each for each in ("scopeSpans", "scope_spans") if each in group), "scopeSpans")
        for inner, scoped in _objects(group.get(scopes), (*at, scopes)):
            scope = scoped.get("scope")
            source = str(scope.get("name", "")) if type(scope) is dict else ""
            for place, span in _objects(scoped.get("spans"), (*inner, "spans")):
                read = _read_span(span, place)
                read.source, read.process = read.source or source, process
                yield read


def _read_span(span: dict[str, Any], path: JsonPath) -> Span:
    if span.get("object") in ("trace", "trace.span"):
        return _read_openai_agents(span, path)
    if "run_type" in span:
        return _read_langsmith(span, path)
    if _is_observation(span):
        return _read_observation(span, path)
    context = span["context"] if type(span.get("context")) is dict else span
    scope = span.get("instrumentation_scope") or span.get("instrumentationScope") or span.get("scope")
    status = span.get("status")
    status = status if type(status) is dict else {}
    resource = span.get("resource")
    resource = read_attributes(resource.get("attributes")) if type(resource) is dict else {}
    read = Span(
        path=path,
        trace_id=_read_id(context, path, "traceId", "trace_id"),
        span_id=_read_id(context, path, "spanId", "span_id"),
        parent_id=_plain_id(
            next((span[n] for n in ("parentSpanId", "parent_span_id", "parent_id") if span.get(n)), "")
        ),
        name=str(span.get("name") or span.get("span_name") or ""),
        start=read_time(
            next(
                (span[n] for n in ("startTimeUnixNano", "start_time", "start_timestamp", "startTime") if span.get(n)), 0
            )
        ),
        attributes=read_attributes(span.get("attributes")),
        events=list(_read_events(span.get("events") or span.get("otel_events"))),
        source=str(scope.get("name", "")) if type(scope) is dict else str(span.get("otel_scope_name") or ""),
        process=str(resource.get("service.name", "")),
        has_failed="ERROR" in str(status.get("code", status.get("status_code", ""))) or status.get("code") == 2,
        is_cut=any(span.get(n) for n in ("droppedAttributesCount", "droppedEventsCount", "dropped_attributes_count")),
    )
    return _to_observation(read) if _OBSERVATION_TYPE in read.attributes else read


def _read_openai_agents(span: dict[str, Any], path: JsonPath) -> Span:
    data = span.get("span_data")
    attributes = dict(data) if type(data) is dict else {}
    if span.get("object") == "trace":
        attributes = {"type": "trace", "group_id": span.get("group_id")}
    trace_id = span.get("id") if span.get("object") == "trace" else span.get("trace_id")
    return Span(
        path=path,
        trace_id=str(trace_id or ""),
        span_id=str(span.get("id") or ""),
        parent_id=str(span.get("parent_id") or ""),
        name=str(attributes.get("name") or attributes.get("type") or ""),
        start=read_time(span.get("started_at")),
        attributes=attributes,
        source="openai_agents",
        has_failed=span.get("error") is not None,
    )


def _read_langsmith(run: dict[str, Any], path: JsonPath) -> Span:
    run_id = str(run.get("id") or "")
    # An export to a bucket holds JSON as text.
    texts = {name: parse_json(run[name]) for name in ("inputs", "outputs", "extra") if type(run.get(name)) is str}
    run = {**run, **{name: value for name, value in texts.items() if value is not None}}
    return Span(
        path=path,
        trace_id=str(run.get("trace_id") or run_id),
        span_id=run_id,
        parent_id=str(run.get("parent_run_id") or ""),
        name=str(run.get("name") or ""),
        start=read_time(run.get("start_time")),
        attributes=run,
        source="langsmith",
        has_failed=bool(run.get("error")),
    )


def _to_observation(span: Span) -> Span:
    """Return a span of Langfuse's SDK as the observation that its service makes of it."""
    attributes = {
        name.removeprefix(_OBSERVATION): value for name, value in span.attributes.items() if not name.startswith("_")
    }
    for name in ("input", "output"):
        parsed = parse_json(attributes.get(name))
        attributes[name] = attributes.get(name) if parsed is None else parsed
    attributes |= {"type": str(attributes["type"]).upper(), "statusMessage": attributes.get("status_message")}
    return replace(span, attributes=attributes, source=_LANGFUSE, has_failed=attributes.get("level") == "ERROR")


def _read_observation(observation: dict[str, Any], path: JsonPath) -> Span:
    def first(*names: str) -> Any:
        return next((observation[name] for name in names if observation.get(name) is not None), None)

    attributes = {**observation, "statusMessage": first("statusMessage", "status_message")}
    session = first("sessionId", "session_id")
    # A bucket holds JSON as text.
    for name in ("input", "output"):
        parsed = parse_json(observation.get(name))
        attributes[name] = observation.get(name) if parsed is None else parsed
    return Span(
        path=path,
        trace_id=str(first("traceId", "trace_id") or ""),
        span_id=str(observation.get("id") or ""),
        parent_id=str(first("parentObservationId", "parent_observation_id") or ""),
        name=str(observation.get("name") or ""),
        start=read_time(first("startTime", "start_time")),
        attributes=attributes if session is None else {**attributes, "session.id": session},
        source=_LANGFUSE,
        has_failed=observation.get("level") == "ERROR",
    )


def _read_id(context: dict[str, Any], path: JsonPath, *names: str) -> str:
    for name in names:
        value = context.get(name)
        if type(value) is str and value:
            return _plain_id(value)
    raise HistoryError(f"missing: expected the span's {names[0]}", at=path)


def _plain_id(value: Any) -> str:
    return str(value).removeprefix("0x")


def read_attributes(value: Any) -> dict[str, Any]:
    """Return attributes by name, from an object or from the list of OTLP."""
    if type(value) is str:
        value = parse_json(value)
    if type(value) is dict:
        return _flatten(value) if any(type(value.get(name)) is dict for name in _NESTED) else value
    pairs = (each for each in value if type(each) is dict) if type(value) is list else ()
    return {str(each.get("key")): _read_value(each.get("value")) for each in pairs}


def _flatten(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes by their whole names, which Phoenix takes apart at their dots."""
    flat = {name: value for name, value in attributes.items() if name not in _ROOTS}
    waiting = [(name, attributes[name], 0) for name in reversed(_ROOTS) if name in attributes]
    while waiting:
        name, value, depth = waiting.pop()
        inner = value.items() if type(value) is dict else enumerate(value) if is_object_list(value) else None
        if inner is None or depth > _MAX_VALUE_DEPTH:
            flat[name] = value
        else:
            waiting += [(f"{name}.{step}", each, depth + 1) for step, each in inner]
    return flat


def _read_value(value: Any, depth: int = 0) -> Any:
    """Return a value of OTLP, which names its type."""
    if type(value) is not dict or depth > _MAX_VALUE_DEPTH:
        return value
    for name in _SCALARS:
        if name in value:
            return value[name]
    for name in ("arrayValue", "array_value"):
        if type(value.get(name)) is dict:
            return [_read_value(each, depth + 1) for each in value[name].get("values") or ()]
    for name in ("kvlistValue", "kvlist_value"):
        if type(value.get(name)) is dict:
            pairs = (each for each in value[name].get("values") or () if type(each) is dict)
            return {str(each.get("key")): _read_value(each.get("value"), depth + 1) for each in pairs}
    return None


def _read_events(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    value = parse_json(value) if type(value) is str else value
    for event in value if type(value) is list else ():
        if type(event) is dict:
            name = event.get("name") or event.get("event_name") or ""
            yield str(name), read_attributes(event.get("attributes"))


def parse_json(text: Any) -> Any:
    """Return the value of JSON text; None if it is not JSON, and what is no text as it is."""
    if type(text) is not str:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_time(value: Any) -> int:
    """Return a time in nanoseconds since 1970; 0 if it is none.

    >>> read_time("1970-01-01T00:00:01Z"), read_time("1764041977"), read_time(None)
    (1000000000, 1764041977000000000, 0)
    """
    # What is in no range of a clock is no time.
    moment = _read_time(value)
    return moment if 0 <= moment < 1 << 63 else 0


def _read_time(value: Any) -> int:
    if type(value) is str and not value.isdigit():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000) * 1_000
    try:
        number = float(value or 0)
        exact = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0
    # Seconds, milliseconds, microseconds or nanoseconds: the numbers of this century do not overlap.
    for limit, factor in ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000)):
        if number < limit:
            return int(number * factor)
    return exact
