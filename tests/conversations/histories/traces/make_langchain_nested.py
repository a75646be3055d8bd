"""
Writes what OpenInference traces of an agent of LangChain that a tool of another one runs: paused inside, and finished.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.7 --with openinference-instrumentation-langchain \
      --with opentelemetry-sdk --with opentelemetry-exporter-otlp-proto-common python make_langchain_nested.py
"""

from exporting import Recorder
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from openinference.instrumentation.langchain import LangChainInstrumentor


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


def call(call_id, name, **given):
    return {"id": call_id, "name": name, "args": given, "type": "tool_call"}


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def build():
    calls = [call("call_A7kQ2mZ9xWpay5", "pay", amount=5)]
    model = Scripted(messages=iter([AIMessage("I pay.", tool_calls=calls), AIMessage("It is paid.")]))
    inner = create_agent(model, [pay], middleware=[HumanInTheLoopMiddleware(interrupt_on={"pay": True})])

    def cashier(task: str) -> str:
        """Asks the cashier."""
        return inner.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content

    asks = AIMessage("Let me see.", tool_calls=[call("call_D9mN3xK7zVcashier", "cashier", task="pay 5")])
    model = Scripted(messages=iter([asks, AIMessage("Done.")]))
    return create_agent(model, [cashier], checkpointer=InMemorySaver())


def main():
    recorder = Recorder("langchain_nested")
    LangChainInstrumentor().instrument(tracer_provider=recorder.provider)
    agent = build()
    thread = {"configurable": {"thread_id": "thread-7"}}
    agent.invoke({"messages": [HumanMessage("Pay 5")]}, thread)
    recorder.write_otlp("waiting")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    recorder.write_otlp("finished")


main()
