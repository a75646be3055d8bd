"""
Writes what Langfuse traces of one story of LangChain: as OTLP, and as its API exports it.

The service maps spans to observations; that is done here by its documented attributes, with the types of its own SDK.
Run it from this folder; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.7 --with langfuse==5.0.4 python make_langfuse.py
"""

import json
from datetime import UTC, datetime

from exporting import CALLS, PROMPT, Recorder, write
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langfuse import Langfuse, propagate_attributes
from langfuse.api import ObservationV2
from langfuse.langchain import CallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


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


def to_observation(span):
    """Return a span as the API gives it."""
    attributes = dict(span.attributes)

    def value(name):
        text = attributes.get(f"langfuse.observation.{name}")
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            return text

    observation = ObservationV2(
        id=f"{span.context.span_id:016x}",
        trace_id=f"{span.context.trace_id:032x}",
        start_time=datetime.fromtimestamp(span.start_time / 1e9, UTC),
        end_time=datetime.fromtimestamp(span.end_time / 1e9, UTC),
        project_id="project",
        parent_observation_id=f"{span.parent.span_id:016x}" if span.parent else None,
        type=str(attributes.get("langfuse.observation.type", "span")).upper(),
        is_root_observation=span.parent is None,
        name=span.name,
        level=attributes.get("langfuse.observation.level", "DEFAULT"),
        status_message=attributes.get("langfuse.observation.status_message"),
        session_id=attributes.get("session.id"),
        input=value("input"),
        output=value("output"),
        metadata=value("metadata") if isinstance(value("metadata"), dict) else {},
    )
    return json.loads(observation.model_dump_json(by_alias=True))


def main():
    recorder = Recorder("langfuse")
    keys = {"public_key": "pk-lf-1", "secret_key": "sk-lf-1", "base_url": "http://localhost:1"}
    Langfuse(**keys, tracer_provider=recorder.provider, span_exporter=recorder.exporter)
    calls = [{"id": call_id, "name": name, "args": given, "type": "tool_call"} for call_id, name, given in CALLS]
    model = Scripted(messages=iter([AIMessage("Let me see.", tool_calls=calls), AIMessage("Done.")]))
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    agent = create_agent(model, [pay, read], middleware=[gate], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "thread-7"}, "callbacks": [CallbackHandler(public_key="pk-lf-1")]}
    with propagate_attributes(session_id="thread-7"):
        agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
        save(recorder, "paused")
        decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
        agent.invoke(Command(resume={"decisions": decisions}), thread)
        save(recorder, "done")


def save(recorder, how):
    recorder.provider.force_flush()
    recorder.write_otlp(how)
    observations = {}
    for span in recorder.exporter.get_finished_spans():
        observations.setdefault(span.context.span_id, to_observation(span))
    write(f"langfuse_api_{how}.json", json.dumps({"data": list(observations.values()), "meta": {}}, indent=1) + "\n")


main()
