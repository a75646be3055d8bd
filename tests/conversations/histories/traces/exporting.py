"""
A tracer whose spans are written as files, for the scripts `make_*` next to this one.

Ids are drawn from a seed, so that a file changes only if the instrumentation does, and with the clock.
"""

import json
import random
import re
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

STORED = Path(__file__).parent / "stored"

PROMPT = "Pay 5 and 6"
CALLS = (
    ("call_A7kQ2mZ9xWpay5", "pay", {"amount": 5}),
    ("call_B3nR8tY1vUpay6", "pay", {"amount": 6}),
    ("call_C5jL4sH6eDread", "read", {"path": "x"}),
)
"""Calls with ids as random as those of providers: the traces of a conversation are put together by them."""


class SeededIds(IdGenerator):
    def __init__(self, seed):
        self.random = random.Random(seed)

    def generate_span_id(self):
        return self.random.getrandbits(64) | 1

    def generate_trace_id(self):
        return self.random.getrandbits(128) | 1


class Recorder:
    """A tracer provider, and what its spans are written as."""

    def __init__(self, name, *, is_global=False):
        self.name = name
        self.exporter = InMemorySpanExporter()
        resource = Resource({"service.name": "shop"})
        self.provider = TracerProvider(id_generator=SeededIds(name), resource=resource)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        if is_global:
            trace.set_tracer_provider(self.provider)

    def write_otlp(self, how):
        """Write one request of OTLP, as the file exporter of the collector does."""
        request = MessageToDict(encode_spans(self.exporter.get_finished_spans()))
        write(f"{self.name}_{how}.json", json.dumps(with_hexadecimal_ids(request), indent=1) + "\n")

    def write_console(self, how):
        """Write a line for each span, as `ConsoleSpanExporter` does."""
        lines = (span.to_json(indent=None) for span in self.exporter.get_finished_spans())
        write(f"{self.name}_{how}.jsonl", "".join(f"{line}\n" for line in lines))


def with_hexadecimal_ids(value):
    """Return the ids of OTLP in JSON as its specification writes them: hexadecimal, and not in base64."""
    import base64

    if isinstance(value, list):
        return [with_hexadecimal_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64decode(inner).hex()
        if name in ("traceId", "spanId", "parentSpanId")
        else with_hexadecimal_ids(inner)
        for name, inner in value.items()
    }


def write(name, text):
    """Write a file, without the folders of this machine, which stack traces name."""
    (STORED / name).write_text(re.sub(r'File \\"/[^"\\]*/', r'File \\"/app/', text))
