"""A person's own agent with its own client, on the scripted model of the test."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from pytest_approvals.errors import UsageError

httpx = pytest.importorskip("httpx")
httpx2 = pytest.importorskip("httpx2")
openai = pytest.importorskip("openai")

GO = [{"role": "user", "content": "go"}]
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "refunded"}
RUNS_AGENT = """
import openai
asking = openai.OpenAI()
first = asking.responses.create(model="m", input="go")
told = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "refunded"}
print(asking.responses.create(model="m", input=[told], previous_response_id=first.id).output_text)
"""


def agent(client):
    """Does what an agent does: asks, runs the call, tells its result, and gives the text."""
    said = client.chat.completions.create(model="m", messages=GO).choices[0].message
    assert "refund" == said.tool_calls[0].function.name
    history = [*GO, said.model_dump(exclude_none=True), TOLD]
    return client.chat.completions.create(model="m", messages=history).choices[0].message.content


async def async_agent(client):
    """Does the same in a stream."""
    async with client.chat.completions.stream(model="m", messages=GO) as stream:
        said = (await stream.get_final_completion()).choices[0].message
    fields = {"id": True, "type": True, "function": {"name", "arguments"}}
    calls = [call.model_dump(include=fields) for call in said.tool_calls]
    history = [*GO, {"role": "assistant", "tool_calls": calls}, TOLD]
    return (await client.chat.completions.create(model="m", messages=history)).choices[0].message.content


@pytest.fixture
def story(scripted_model):
    """A script in which a call is made and its result is told."""
    return scripted_model.calls("refund", order=42).says("Refunded.")


def kinds(model):
    return [[item["kind"] for item in asked.items] for asked in model.requests]


def test_transport(story):
    """A client with the transport plays the script, and what it asked can be looked at."""
    client = openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=story.transport()))
    assert "Refunded." == agent(client)
    assert [["user"], ["user", "call", "result"]] == kinds(story)


def test_transport_of_an_asynchronous_client(story):
    """The same transport serves asynchronous clients, and streams are cut as the test wishes."""
    story.speaks("chat", chunking="split", style="torn")

    async def run():
        async with httpx2.AsyncClient(transport=story.transport()) as http:
            return await async_agent(openai.AsyncOpenAI(api_key="none", http_client=http))

    assert "Refunded." == asyncio.run(run())


def test_transport_of_the_older_library(story):
    """The same transport serves clients of `httpx`."""
    with httpx.Client(transport=story.transport()) as asking:
        got = asking.post("https://api.anthropic.com/v1/messages", json={"model": "m", "max_tokens": 9, "messages": GO})
    assert ("refund", {"order": 42}) == (got.json()["content"][0]["name"], got.json()["content"][0]["input"])


def test_routes(story, httpx2_mock):
    """A client that is left as it is asks the routes, at the provider's own address."""
    route = story.mount(httpx2_mock)
    assert "Refunded." == agent(openai.OpenAI(api_key="none"))
    assert 2 == route.call_count


def test_routes_in_an_asynchronous_test(story, httpx2_mock):
    """Routes answer asynchronous clients, too."""
    story.mount(httpx2_mock)
    assert "Refunded." == asyncio.run(async_agent(openai.AsyncOpenAI(api_key="none")))


def test_routes_of_the_older_library(story, respx_mock):
    """Stock respx has the routes for clients of `httpx`; another base address is named."""
    story.mount(respx_mock, "https://gateway.example/v1")
    got = httpx.post("https://gateway.example/v1/chat/completions", json={"model": "m", "messages": GO})
    assert "refund" == got.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"]


def test_server(story, model_server):
    """A client asks the server at its address."""
    assert "Refunded." == agent(openai.OpenAI(api_key="none", base_url=model_server.openai_url))


def test_server_for_another_process(story, model_server):
    """An agent in another process finds the server by the environment variables of the official clients."""
    words = [sys.executable, "-c", RUNS_AGENT]
    environment = os.environ | model_server.environment
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ("Refunded.\n", "") == (ran.stdout, ran.stderr)


def test_script_is_written_while_it_is_played(scripted_model):
    """A test may go on with the script after the agent has asked."""
    with httpx.Client(transport=scripted_model.transport(), base_url="https://api.openai.com/v1") as asking:
        history = list(GO)
        for text in ("one", "two"):
            scripted_model.says(text)
            answer = asking.post("/chat/completions", json={"model": "m", "messages": history})
            history += [answer.json()["choices"][0]["message"], *GO]
    assert ["one", "two"] == [said["content"] for said in history if said["role"] == "assistant"]


def test_one_script_for_all_ways(story, model_server):
    """A reply is played once, whichever way it is asked for."""
    body = {"model": "m", "messages": GO}
    with httpx.Client(transport=story.transport()) as asking:
        asking.post("https://api.openai.com/v1/chat/completions", json=body)
    history = [*GO, {"role": "assistant", "tool_calls": [_call("c1")]}, TOLD]
    got = httpx.post(f"{model_server.openai_url}/chat/completions", json={**body, "messages": history}).json()
    assert "Refunded." == got["choices"][0]["message"]["content"]


def _call(call_id):
    return {"id": call_id, "type": "function", "function": {"name": "refund", "arguments": '{"order": 42}'}}


def test_model_that_was_not_asked(scripted_model):
    """The requests of a model that nobody asked are not empty, but a mistake."""
    scripted_model.transport()
    with pytest.raises(UsageError, match=r"not asked yet: hand it to approvals\.run\(model=\.\.\.\) or to a client"):
        scripted_model.requests  # noqa: B018


def test_wish_that_comes_too_late(story):
    """What is wished for after the first request is refused."""
    agent(openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=story.transport())))
    with pytest.raises(UsageError, match="asked already; say how it speaks before a client is used"):
        story.speaks("messages")


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"protocol": "chats"}, "Unknown protocol 'chats'; did you mean 'chat'?"),
        ({"chunking": "token"}, "Unknown chunking 'token'; did you mean 'tokens'?"),
        ({"style": "crfl"}, "Unknown style of a stream 'crfl'; did you mean 'crlf'?"),
    ],
)
def test_wish_that_does_not_exist(scripted_model, wish, message):
    """What cannot be wished for is named, with the nearest valid word."""
    with pytest.raises(UsageError) as caught:
        scripted_model.speaks(**wish)
    assert message == str(caught.value)
