"""
Writes what OpenAI Agents traces of one story: by its own tracing, and as spans of OpenInference.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with openai-agents==0.24.0 --with openinference-instrumentation-openai-agents \
      --with opentelemetry-sdk --with opentelemetry-exporter-otlp-proto-common python make_openai_agents.py
"""

import asyncio
import json

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    Usage,
    function_tool,
    generation_span,
    set_trace_processors,
    trace,
)
from agents.tracing import TracingProcessor
from exporting import CALLS, PROMPT, Recorder, write
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor


def said(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)


def call(call_id, tool, given):
    return ResponseFunctionToolCall(
        type="function_call", id=f"fc_{call_id}", call_id=call_id, name=tool, arguments=json.dumps(given)
    )


class Scripted(Model):
    """A model that traces as the library's own for chat completions does."""

    def __init__(self):
        self.replies = iter([[said("Let me see."), *(call(*each) for each in CALLS)], [said("Done.")]])

    async def get_response(self, system_instructions, input, *args, **kwargs):  # noqa: A002
        from agents.models.chatcmpl_converter import Converter

        with generation_span(model="scripted") as span:
            output = next(self.replies)
            produced = [item.model_dump(exclude_none=True) for item in output]
            span.span_data.input = Converter.items_to_messages(input)
            span.span_data.output = Converter.items_to_messages(produced)
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


class Exports(TracingProcessor):
    """The lines that the backend exporter sends."""

    def __init__(self):
        self.lines = []

    def on_trace_start(self, trace):
        self.lines.append(trace.export())

    def on_span_end(self, span):
        self.lines.append(span.export())

    def on_trace_end(self, trace): ...

    def on_span_start(self, span): ...

    def shutdown(self): ...

    def force_flush(self): ...


def pay(amount: int) -> str:
    return f"paid {amount}"


def read(path: str) -> str:
    return f"text of {path}"


async def play(write_all):
    tools = [function_tool(pay, needs_approval=True), function_tool(read)]
    agent = Agent(name="clerk", model=Scripted(), tools=tools)
    with trace("Shop", group_id="thread-7"):
        state = (await Runner.run(agent, PROMPT)).to_state()
    write_all("paused")
    one, other = state.get_interruptions()
    state.approve(one)
    state.reject(other, rejection_message="no 6")
    with trace("Shop", group_id="thread-7"):
        await Runner.run(agent, state)
    write_all("done")


async def main():
    exports = Exports()
    set_trace_processors([exports])
    await play(
        lambda how: write(f"openai_agents_{how}.jsonl", "".join(f"{json.dumps(each)}\n" for each in exports.lines))
    )
    recorder = Recorder("openai_agents_openinference")
    OpenAIAgentsInstrumentor().instrument(tracer_provider=recorder.provider)
    await play(recorder.write_otlp)


asyncio.run(main())
