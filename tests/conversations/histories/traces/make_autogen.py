"""
Writes what AutoGen traces of one story: its own spans of agents and tools, and with them those of the instrumentation
of the OpenAI client that its guide "Tracing and Observability" names.

AutoGen has no approvals of its own: the tool itself refuses. Run it from this folder; the file next to it is written
anew:

    uv run --no-project --with autogen-agentchat==0.7.5 --with 'autogen-ext[openai]==0.7.5' \
      --with opentelemetry-instrumentation-openai --with opentelemetry-sdk \
      --with opentelemetry-exporter-otlp-proto-common python make_autogen.py
"""

import asyncio

import httpx
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient
from exporting import PROMPT, Recorder
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from provider import transport


async def pay(amount: int) -> str:
    """Pays."""
    if amount == 6:
        raise PermissionError("no 6")
    return f"paid {amount}"


async def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


async def main():
    recorder = Recorder("autogen", is_global=True)
    OpenAIInstrumentor().instrument(tracer_provider=recorder.provider)
    info = {"function_calling": True, "json_output": False, "vision": False, "family": ModelFamily.UNKNOWN,
            "structured_output": False, "multiple_system_messages": True}  # fmt: skip
    client = httpx.AsyncClient(transport=transport())
    model = OpenAIChatCompletionClient(model="m", api_key="none", http_client=client, model_info=info)
    agent = AssistantAgent("clerk", model_client=model, tools=[pay, read], reflect_on_tool_use=True)
    with recorder.provider.get_tracer("shop").start_as_current_span("request"):
        await agent.run(task=PROMPT)
    recorder.write_otlp("done")


asyncio.run(main())
