"""
Writes what Google ADK traces of one story: with the newest attributes, with its legacy ones, and without content.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with google-adk==2.13.0 --with opentelemetry-exporter-otlp-proto-common \
      python make_google_adk.py
"""

import asyncio
import os
import subprocess
import sys

from exporting import CALLS, PROMPT, Recorder
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

REPLIES = [
    [
        types.Part(text="Let me see."),
        *(
            types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=given))
            for call_id, name, given in CALLS
        ),
    ],
    [types.Part(text="Done.")],
]


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=REPLIES.pop(0)))


def pay(amount: int) -> str:
    return f"paid {amount}"


def read(path: str) -> str:
    return f"text of {path}"


async def run(runner, *parts):
    message, waiting = types.Content(role="user", parts=parts), {}
    async for event in runner.run_async(user_id="user", session_id="thread-7", new_message=message):
        for call in event.get_function_calls():
            if call.name == "adk_request_confirmation":
                waiting[call.args["originalFunctionCall"]["id"]] = call.id
    return waiting


def answer(request_id, confirmed):
    response = types.FunctionResponse(id=request_id, name="adk_request_confirmation", response={"confirmed": confirmed})
    return types.Part(function_response=response)


async def play(name):
    recorder = Recorder(name, is_global=True)
    tools = [FunctionTool(pay, require_confirmation=True), FunctionTool(read)]
    agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=tools)
    runner = InMemoryRunner(agent, app_name="shop")
    await runner.session_service.create_session(app_name="shop", user_id="user", session_id="thread-7")
    waiting = await run(runner, types.Part(text=PROMPT))
    recorder.write_otlp("paused")
    one, other = waiting.values()
    await run(runner, answer(one, True), answer(other, False))
    recorder.write_otlp("done")


NEWEST = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}
LEGACY = {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"}

if len(sys.argv) > 1:
    asyncio.run(play(sys.argv[1]))
else:
    # The attributes are chosen when the library is imported.
    for name, chosen in (("", NEWEST), ("_legacy", LEGACY), ("_without_content", {})):
        subprocess.run([sys.executable, __file__, f"google_adk{name}"], env=os.environ | chosen, check=True)
