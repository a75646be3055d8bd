"""
Writes what Pydantic AI traces of one story, in each version of its instrumentation.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with pydantic-ai-slim==2.68.0 --with opentelemetry-sdk \
      --with opentelemetry-exporter-otlp-proto-common python make_pydantic_ai.py
"""

import asyncio
from importlib.metadata import version

from exporting import CALLS, PROMPT, Recorder
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolDenied,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings


async def play(settings):
    calls = [ToolCallPart(tool, given, tool_call_id=call_id) for call_id, tool, given in CALLS]
    replies = iter([[TextPart("Let me see."), *calls], [TextPart("Done.")]])
    model = FunctionModel(lambda messages, info: ModelResponse(parts=next(replies)))
    agent = Agent(model, name="clerk", output_type=[str, DeferredToolRequests])
    Agent.instrument_all(settings)

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    @agent.tool_plain
    def read(path: str) -> str:
        return f"text of {path}"

    paused = await agent.run(PROMPT)
    yield "paused"
    answers = DeferredToolResults(approvals={CALLS[0][0]: True, CALLS[1][0]: ToolDenied("no 6")})
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
    yield "done"


async def main():
    versions = (1,) if version("pydantic-ai-slim").startswith("1.") else (2, 6)
    for number in versions:
        recorder = Recorder(f"pydantic_ai_{number}")
        settings = InstrumentationSettings(version=number, tracer_provider=recorder.provider, **attributes(number))
        async for how in play(settings):
            recorder.write_otlp(how)
    if versions == (1,):
        return
    recorder = Recorder("pydantic_ai_without_content")
    settings = InstrumentationSettings(include_content=False, tracer_provider=recorder.provider)
    async for how in play(settings):
        recorder.write_otlp(how)
    recorder = Recorder("pydantic_ai_console")
    settings = InstrumentationSettings(tracer_provider=recorder.provider)
    async for how in play(settings):
        recorder.write_console(how)


def attributes(number):
    """Return the settings of the first version, which writes messages as events unless it is told otherwise."""
    return {"event_mode": "attributes"} if number == 1 else {}


asyncio.run(main())
