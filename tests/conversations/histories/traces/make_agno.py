"""
Writes what the instrumentation that Agno uses, that of OpenInference, traces of one story.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with agno==3.1.10 --with openai --with openinference-instrumentation-agno \
      --with opentelemetry-sdk --with opentelemetry-exporter-otlp-proto-common python make_agno.py
"""

import httpx
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.tools import tool
from exporting import PROMPT, Recorder
from openinference.instrumentation.agno import AgnoInstrumentor
from provider import transport


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool
def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


def main():
    recorder = Recorder("agno_openinference")
    AgnoInstrumentor().instrument(tracer_provider=recorder.provider)
    model = OpenAIChat(id="m", api_key="none", http_client=httpx.Client(transport=transport()))
    agent = Agent(name="clerk", model=model, tools=[pay, read], db=InMemoryDb(), telemetry=False)
    paused = agent.run(PROMPT, session_id="thread-7")
    recorder.write_otlp("paused")
    one, other = paused.requirements
    one.confirm()
    other.reject("no 6")
    agent.continue_run(run_id=paused.run_id, requirements=[one, other], session_id="thread-7")
    recorder.write_otlp("done")


main()
