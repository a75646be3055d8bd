"""
Writes what LangChain traces of one story: as spans of OpenInference, and as runs of LangSmith.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.2 --with langgraph==1.2.22 \
      --with openinference-instrumentation-langchain --with opentelemetry-sdk \
      --with opentelemetry-exporter-otlp-proto-common python make_langchain.py
"""

import json

from exporting import CALLS, PROMPT, Recorder, write
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import Client
from openinference.instrumentation.langchain import LangChainInstrumentor


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool
def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


class Keeping(Client):
    """A client of LangSmith that keeps each run as it would be sent."""

    def __init__(self):
        super().__init__(api_url="http://localhost:1", api_key="none", auto_batch_tracing=False)
        self.kept = {}

    def create_run(self, name, inputs, run_type, **run):
        run = {"name": name, "inputs": inputs, "run_type": run_type, **run}
        self.kept[str(run["id"])] = json.loads(json.dumps(run, default=plain))

    def update_run(self, run_id, **run):
        run = {name: value for name, value in run.items() if value is not None}
        self.kept[str(run_id)].update(json.loads(json.dumps(run, default=plain)))


def plain(value):
    """Return what JSON cannot hold as the client serializes it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return vars(value) if hasattr(value, "__dict__") else str(value)


def play(write_all, callbacks=()):
    calls = [{"id": call_id, "name": name, "args": given, "type": "tool_call"} for call_id, name, given in CALLS]
    model = Scripted(messages=iter([AIMessage("Let me see.", tool_calls=calls), AIMessage("Done.")]))
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    agent = create_agent(model, [pay, read], middleware=[gate], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "thread-7"}, "callbacks": list(callbacks)}
    agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
    write_all("paused")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}, {"type": "reject", "message": "no 6"}]}), thread)
    write_all("done")


def main():
    client = Keeping()

    def write_runs(how):
        lines = (json.dumps(run, default=str) for run in client.kept.values())
        write(f"langsmith_{how}.jsonl", "".join(f"{line}\n" for line in lines))

    play(write_runs, [LangChainTracer(project_name="shop", client=client)])
    recorder = Recorder("langchain_openinference")
    LangChainInstrumentor().instrument(tracer_provider=recorder.provider)
    play(recorder.write_otlp)


main()
