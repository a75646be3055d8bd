"""The scripted model behind a server, as any client of any language sees it."""

from __future__ import annotations

import gc
import http.client
import json
import socket
import threading
import tracemalloc
from contextlib import closing

import pytest

from pytest_approvals.agent_side.contract.types import Approval, Parameter
from pytest_approvals.errors import UsageError
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedFailure, ScriptedReply, Tool, ToolBehaviour

openai = pytest.importorskip("openai")

GO = [{"role": "user", "content": "go"}]
PAY = Call(label="c1", id="c1", tool="pay", arguments={"amount": 5})


def scenario(*replies, approval: Approval = "always", **tool):
    own = Tool(name="pay", parameters={"amount": Parameter(type="integer")}, approval=approval, **tool)
    return Scenario(id="own/pay", title="Pays.", tools=(own,), agents={"main": Script(replies=replies)})


STORY = scenario(ScriptedReply(calls=(PAY,)), ScriptedReply(say="Done."))


@pytest.fixture
def server():
    with ScriptedModelServer().running() as running:
        yield running


def client(server, name):
    return openai.OpenAI(api_key="none", base_url=server.url(name), max_retries=0)


def ask(server, method, path, body=None, address=0):
    """Send a request and return the status and the body of the answer."""
    place = server.addresses[address]
    connection = http.client.HTTPConnection(place.host, place.port, timeout=10)
    try:
        raw = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, raw, {"content-type": "application/json"} if raw else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def told(answer):
    status, text = answer
    return status, json.loads(text)


def test_official_client_plays_a_story(server):
    """A client plays the script of a scenario, and the journal holds what was asked and answered."""
    begun = server.begin(STORY)
    with client(server, begun.name) as asking:
        first = asking.chat.completions.create(model="m", messages=GO).choices[0].message
        call = first.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "paid 5"}
        said = first.model_dump(exclude_none=True, include={"role", "tool_calls"})
        second = asking.chat.completions.create(model="m", messages=[*GO, said, result])
    assert ("pay", '{"amount": 5}') == (call.function.name, call.function.arguments)
    assert "Done." == second.choices[0].message.content
    kinds = [event.kind for event in begun.events]
    assert ["header", "model.request", "model.answer", "model.request", "model.answer"] == kinds


@pytest.mark.parametrize("style", ["plain", "bytes", "torn"])
@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_streams(server, protocol, style):
    """A stream arrives whole, in one write or in many small ones."""
    begun = server.begin(STORY, ConversationOptions(protocol=protocol, chunking="tokens", style=style))
    with client(server, begun.name) as asking:
        if protocol == "chat":
            with asking.chat.completions.stream(model="m", messages=GO) as stream:
                call = stream.get_final_completion().choices[0].message.tool_calls[0].function
        else:
            with asking.responses.stream(model="m", input="go") as stream:
                call = stream.get_final_response().output[0]
    assert '{"amount": 5}' == call.arguments


def test_both_addresses(server):
    """The server listens on IPv4, and on IPv6 where the machine has it, under one port."""
    assert ["127.0.0.1", "::1"][: len(server.addresses)] == [place.host for place in server.addresses]
    assert 1 == len({place.port for place in server.addresses})
    for number in range(len(server.addresses)):
        assert (200, {"ok": True, "conversations": 0}) == told(ask(server, "GET", "/health", address=number))


def test_conversations_are_apart(server):
    """Each prefix has a script, a protocol and a journal of its own."""
    one, two = server.begin(STORY), server.begin(STORY, ConversationOptions(protocol="messages"), name="second")
    ask(server, "POST", f"/{one.name}/v1/chat/completions", {"model": "m", "messages": GO})
    status, body = told(ask(server, "POST", "/second/v1/messages", {"model": "m", "max_tokens": 9, "messages": GO}))
    assert (200, "tool_use") == (status, body["stop_reason"])
    assert [1, 1] == [one.status["answered"], two.status["answered"]]
    assert ("chat", "messages") == (one.status["protocol"], two.status["protocol"])


def test_another_conversation_under_the_same_name(server):
    """After the first has ended, requests to the same path are answered by the second."""
    path = "/same/v1/chat/completions"
    answers = []
    for said in ("One.", "Two."):
        server.begin(scenario(ScriptedReply(say=said)), name="same")
        _, answer = told(ask(server, "POST", path, {"model": "m", "messages": GO}))
        answers.append(answer["choices"][0]["message"]["content"])
        server.end("same")

    assert ["One.", "Two.", 404] == [*answers, ask(server, "POST", path, {"model": "m", "messages": GO})[0]]


def test_refusal_is_recorded(server):
    """What the provider refuses is answered with its error and is an event, with what is wrong with the body, too."""
    begun = server.begin(STORY)
    lone = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    statuses = [
        ask(server, "POST", f"/{begun.name}/v1/chat/completions", body)[0]
        for body in ({"model": "m", "messages": [*GO, lone]}, {"model": "m"}, {"messages": GO})
    ]
    refused = [[one["rule"] for one in event.broken] for event in begun.events if event.kind == "model.refusal"]
    assert [400, 400, 400] == statuses
    assert [["result-without-call"], ["messages-not-a-list"], ["model-missing"]] == refused


def test_lenient_answers_what_can_be_read(server):
    """A lenient conversation answers a history that the provider would refuse, but not what is no request at all."""
    begun = server.begin(STORY, ConversationOptions(lenient=True))
    lone = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    path = f"/{begun.name}/v1/chat/completions"
    assert 200 == ask(server, "POST", path, {"model": "m", "messages": [*GO, lone]})[0]
    assert [] == refusals(begun)
    assert 400 == ask(server, "POST", path, {"model": "m"})[0]
    assert ["messages-not-a-list"] == refusals(begun)


@pytest.mark.parametrize(("status", "error"), [(429, "RateLimitError"), (500, "InternalServerError")])
def test_failure_of_the_model(server, status, error):
    """A failure of the script is the client's own error, and is recorded."""
    begun = server.begin(scenario(ScriptedReply(failure=ScriptedFailure(status=status)), ScriptedReply(say="Done.")))
    with client(server, begun.name) as asking:
        with pytest.raises(getattr(openai, error)):
            asking.chat.completions.create(model="m", messages=GO)
        assert "Done." == asking.chat.completions.create(model="m", messages=GO).choices[0].message.content
    assert [status] == [event.status for event in begun.events if event.kind == "model.failure"]


def test_connection_that_breaks(server):
    """A broken connection, before an answer or in its middle, is the client's own error; the next request is served."""
    broken = ScriptedReply(say="Well, well.", failure=ScriptedFailure(status=0, after_chunks=2))
    begun = server.begin(
        scenario(ScriptedReply(failure=ScriptedFailure(status=0)), broken, ScriptedReply(say="Done.")),
        ConversationOptions(chunking="tokens"),
    )
    shown = []
    with client(server, begun.name) as asking:
        with pytest.raises(openai.APIConnectionError):
            asking.chat.completions.create(model="m", messages=GO)
        stream = asking.chat.completions.create(model="m", messages=GO, stream=True)
        with pytest.raises(openai.APIConnectionError):
            shown.extend(stream)
        assert "Done." == asking.chat.completions.create(model="m", messages=GO).choices[0].message.content
    assert "Well, we" == "".join(chunk.choices[0].delta.content or "" for chunk in shown)


def test_conversations_of_responses(server):
    """A client of Responses begins a conversation of the provider and continues in it."""
    begun = server.begin(
        scenario(ScriptedReply(say="one"), ScriptedReply(say="two")), ConversationOptions(protocol="responses")
    )
    with client(server, begun.name) as asking:
        kept = asking.conversations.create()
        asking.responses.create(model="m", input="go", conversation=kept.id)
        got = asking.responses.create(model="m", input="more", conversation=kept.id)
    asked = [event for event in begun.events if event.kind == "model.request"][-1]
    assert "two" == got.output_text
    assert ["go", "one", "more"] == [item["text"] for item in asked.items]


@pytest.mark.parametrize("approve", [True, False], ids=["approved", "rejected"])
def test_provider_runs_what_was_approved(server, approve):
    """The provider runs a hosted call when it was approved and not when it was rejected; the journal holds the run."""
    tool = {"kind": "hosted_mcp", "server": "bank", "behaviours": (ToolBehaviour(returns="paid {amount}"),)}
    begun = server.begin(
        scenario(ScriptedReply(calls=(PAY,)), ScriptedReply(say="Done."), **tool),
        ConversationOptions(protocol="responses"),
    )
    tools = [{"type": "mcp", "server_label": "bank", "server_url": "https://bank.invalid", "allowed_tools": ["pay"]}]
    with client(server, begun.name) as asking:
        first = asking.responses.create(model="m", input="go", tools=tools)
        asks = first.output[-1]
        answer = {"type": "mcp_approval_response", "approval_request_id": asks.id, "approve": approve}
        got = asking.responses.create(model="m", input=[answer], previous_response_id=first.id, tools=tools)
    ran = [(event.tool, event.arguments, event.by) for event in begun.events if event.kind == "tool.start"]
    assert ("mcp_approval_request", "pay", '{"amount": 5}') == (asks.type, asks.name, asks.arguments)
    assert ([("pay", {"amount": 5}, "provider")] if approve else []) == ran
    assert (["paid 5"] if approve else []) == [item.output for item in got.output if item.type == "mcp_call"]
    assert "Done." == got.output_text


# --- the interface ----------------------------------------------------------------------------------------------------

TEXT = """
title: Pays.
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
"""


def test_interface(server):
    """Any language begins a conversation, asks, reads the journal and ends it, over HTTP alone."""
    status, begun = told(ask(server, "POST", "/conversations", {"text": TEXT, "protocol": "messages", "name": "mine"}))
    path = begun["base_url"].removeprefix(str(server.addresses[0]))
    ask(server, "POST", f"{path}/messages", {"model": "m", "max_tokens": 9, "messages": GO})
    journal = ask(server, "GET", "/conversations/mine/journal")[1].splitlines()
    assert (201, "/mine/v1") == (status, path)
    assert ["header", "model.request", "model.answer"] == [json.loads(line)["event"] for line in journal]
    assert ["mine"] == [one["name"] for one in told(ask(server, "GET", "/conversations"))[1]]
    assert 1 == told(ask(server, "DELETE", "/conversations/mine"))[1]["answered"]
    assert (200, []) == told(ask(server, "GET", "/conversations"))


WRONG = [
    ({"scenario": "a/b"}, "Invalid `scenario`: this server has no catalogue; send the `text` of a scenario"),
    ({}, "Missing scenario: expected `scenario` (an id) or `text` (YAML)"),
    ({"text": TEXT, "protocl": "chat"}, "Unknown field of a conversation 'protocl'; did you mean 'protocol'?"),
    ({"text": TEXT, "protocol": "chats"}, "Unknown protocol 'chats'; did you mean 'chat'?"),
    (
        {"text": TEXT, "name": "a b"},
        "Invalid name 'a b': expected letters, digits, dashes and underscores",
    ),
    ({"text": TEXT, "name": "health"}, "Invalid name 'health': it is taken"),
    ({"text": TEXT, "chunking": "token"}, "Unknown chunking 'token'; did you mean 'tokens'?"),
    ({"text": TEXT, "style": []}, "Invalid style []: expected str, such as 'plain'"),
    ({"text": TEXT, "lenient": "no"}, "Invalid lenient 'no': expected bool, such as False"),
    ([], "Invalid body: expected an object"),
    (b"{", "Invalid body: expected JSON"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_wrong_wish(server, body, message):
    """A conversation that cannot be begun is answered with what is wrong and the nearest valid word."""
    assert (400, {"error": {"message": message}}) == told(ask(server, "POST", "/conversations", body))


def test_mistake_in_a_text(server):
    """A mistake in the text of a scenario is reported with its line."""
    status, body = told(ask(server, "POST", "/conversations", {"text": "title: x\nmodle: []\n"}))
    assert (400, True) == (status, body["error"]["message"].startswith("text:2: "))


def test_protocol_is_that_of_the_first_request(server):
    """A conversation without a protocol speaks the one that is asked for first, and no other from then on."""
    begun = server.begin(STORY, ConversationOptions(protocol="any"))
    assert "any" == begun.status["protocol"]
    assert 200 == ask(server, "POST", "/c1/v1/messages", {"model": "m", "max_tokens": 9, "messages": GO})[0]
    status, body = told(ask(server, "POST", "/c1/v1/chat/completions", {"model": "m", "messages": GO}))
    assert (404, "Invalid URL (POST /v1/chat/completions); this conversation speaks messages") == (
        status,
        body["error"]["message"],
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/c9/v1/chat/completions", "Unknown conversation 'c9'; valid: c1"),
        ("/c1/v1/messages", "Invalid URL (POST /v1/messages); this conversation speaks chat"),
        ("/c1/v1/embeddings", "Invalid URL (POST /v1/embeddings); this conversation speaks chat"),
    ],
)
def test_wrong_path(server, path, message):
    """A path that is not served is answered with status 404, in the shape of the provider whose path it is."""
    server.begin(STORY)
    status, body = told(ask(server, "POST", path, {"model": "m", "messages": GO}))
    assert (404, message, "messages" in path) == (status, body["error"]["message"], "type" in body)


def refusals(conversation):
    """Return the rules that the recorded refusals name."""
    return [rule["rule"] for event in conversation.events if event.kind == "model.refusal" for rule in event.broken]


@pytest.mark.parametrize("lenient", [False, True])
def test_request_that_cannot_be_read_is_recorded(server, lenient):
    """What is no JSON, or is no request at all, is refused, recorded, and uses up no reply, however lenient."""
    begun = server.begin(STORY, ConversationOptions(lenient=lenient))
    for body in (b"{", []):
        ask(server, "POST", "/c1/v1/chat/completions", body)
    said = told(ask(server, "POST", "/c1/v1/chat/completions", {"model": "m", "messages": GO}))
    assert ["not-json", "body-not-an-object"] == refusals(begun)
    assert "pay" == said[1]["choices"][0]["message"]["tool_calls"][0]["function"]["name"]


def test_wrong_path_is_recorded(server):
    """A request to a path that a conversation does not serve is in its journal; one to no conversation is listed."""
    begun = server.begin(STORY)
    ask(server, "POST", "/c1/v1/embeddings", {})
    ask(server, "POST", "/c9/v1/chat/completions", {})
    assert ["wrong-path"] == refusals(begun)
    assert [{"method": "POST", "path": "/c9/v1/chat/completions"}] == told(ask(server, "GET", "/astray"))[1]


def test_body_that_is_too_large(server):
    """A body that is too large is refused before it is read, and the server continues."""
    begun = server.begin(STORY)
    place = server.addresses[0]
    with socket.create_connection((place.host, place.port), timeout=10) as raw:
        raw.sendall(b"POST /c1/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert (200, ["too-large"]) == (ask(server, "GET", "/health")[0], refusals(begun))


def chunked(*chunks):
    head = b"POST /c1/v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)


def test_body_in_chunks(server):
    """A body in chunks is read, and the next request comes over the same connection."""
    begun = server.begin(scenario(ScriptedReply(say="one"), ScriptedReply(say="two")))
    place = server.addresses[0]
    text = json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]})
    connection = http.client.HTTPConnection(place.host, place.port, timeout=10)
    said = []
    for _ in range(2):
        connection.request("POST", f"/{begun.name}/v1/chat/completions", iter([text[:9].encode(), text[9:].encode()]))
        said.append(json.loads(connection.getresponse().read())["choices"][0]["message"]["content"])
    connection.close()
    assert ["one", "two"] == said


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (chunked() + b"2000001\r\n" + b"x" * 0x2000001, b"HTTP/1.1 413 "),
        (chunked(b"{}") + b"what\r\n\r\n", b""),
    ],
    ids=["too-large", "no-chunks"],
)
def test_chunks_that_cannot_be_taken(server, raw, answer):
    """Chunks that are too many are refused, those that are none end the connection, and the server continues."""
    server.begin(STORY)
    place = server.addresses[0]
    with socket.create_connection((place.host, place.port), timeout=10) as asking:
        asking.sendall(raw)
        assert answer == asking.recv(65536)[: len(answer) or None]
    assert 200 == ask(server, "GET", "/health")[0]


def test_client_that_disconnects(server):
    """A client that goes away in the middle of its request does no harm to the next one."""
    server.begin(STORY)
    place = server.addresses[0]
    with socket.create_connection((place.host, place.port), timeout=10) as raw:
        raw.sendall(b'POST /c1/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n{"mod')
    assert 200 == ask(server, "POST", "/c1/v1/chat/completions", {"model": "m", "messages": GO})[0]


def test_again(server):
    """A conversation for load tests begins anew with every request that has no reply in it, and does not grow."""
    begun = server.begin(STORY, ConversationOptions(again=True))
    for _ in range(50):
        assert 200 == ask(server, "POST", f"/{begun.name}/v1/chat/completions", {"model": "m", "messages": GO})[0]
    assert 3 == len(begun.events)


def test_again_forgets_what_the_provider_kept(server):
    """A conversation for load tests does not gather responses, either."""
    begun = server.begin(STORY, ConversationOptions(protocol="responses", again=True))
    path = f"/{begun.name}/v1/responses"
    first, second = (told(ask(server, "POST", path, {"model": "m", "input": "go"}))[1]["id"] for _ in range(2))
    kept = begun.responses.store
    assert (False, True) == (kept.has_response(first), kept.has_response(second))


@pytest.mark.parametrize(("protocol", "stream"), [("chat", False), ("responses", True)])
def test_thousands_of_requests_leave_nothing_behind(server, protocol, stream):
    """What the server holds after thousands of requests is what it held after some hundred."""
    begun = server.begin(STORY, ConversationOptions(protocol=protocol, again=True))
    asked = {"messages": GO} if protocol == "chat" else {"input": "go"}
    path = f"/{begun.name}/v1/{'chat/completions' if protocol == 'chat' else 'responses'}"
    place = server.addresses[0]
    with closing(http.client.HTTPConnection(place.host, place.port, timeout=10)) as kept:

        def ask_often(times):
            for _ in range(times):
                kept.request("POST", path, json.dumps({"model": "m", "stream": stream, **asked}))
                kept.getresponse().read()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before, after = ask_often(200), ask_often(2000)
        finally:
            tracemalloc.stop()
    assert after - before < 100 * 1024


def test_hundreds_of_connections_leave_nothing_behind(server):
    """A connection that has ended leaves neither a thread nor a socket."""
    before = threading.active_count()
    for _ in range(300):
        ask(server, "GET", "/health")
    ended = [thread for thread in threading.enumerate() if thread.name.endswith("(process_request_thread)")]
    for thread in ended:
        thread.join(10)
    assert before == threading.active_count()


# --- its life ---------------------------------------------------------------------------------------------------------


def test_stops_cleanly():
    """A stopped server leaves no thread and no port behind, though a client keeps its connection open."""
    before = set(threading.enumerate())
    server = ScriptedModelServer().start()
    place = server.addresses[0]
    kept = http.client.HTTPConnection(place.host, place.port, timeout=10)
    kept.request("GET", "/health")
    kept.getresponse().read()
    server.stop()
    kept.close()
    assert set() == set(threading.enumerate()) - before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((place.host, place.port), timeout=10)


def test_answer_that_waits_is_given_up():
    """A server that stops does not wait for a hosted call that waits for a signal which never comes."""
    tool = {"kind": "hosted_mcp", "server": "web", "behaviours": (ToolBehaviour(waits_for="never"),)}
    server = ScriptedModelServer().start()
    begun = server.begin(
        scenario(ScriptedReply(calls=(PAY,)), approval="never", **tool), ConversationOptions(protocol="responses")
    )
    asking = threading.Thread(target=_asked_in_vain, args=(server, begun.name))
    asking.start()
    while "tool.start" not in [event.kind for event in begun.events]:
        pass
    server.stop()
    asking.join(10)
    assert not asking.is_alive()


def _asked_in_vain(server, name):
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(server, "POST", f"/{name}/v1/responses", {"model": "m", "input": "go"})


def test_port_that_is_taken(server):
    """A port that somebody else listens on is named."""
    with pytest.raises(UsageError) as caught:
        ScriptedModelServer(port=server.addresses[0].port).start()
    assert f"Cannot listen on port {server.addresses[0].port}: Address already in use" == str(caught.value)


# --- what clients ask beside the model --------------------------------------------------------------------------------


def responses_client(server, *replies):
    begun = server.begin(scenario(*replies), ConversationOptions(protocol="responses"))
    return client(server, begun.name)


def test_stored_response_is_retrieved_and_deleted(server):
    """A response comes back as it was answered, lists what it was given, and is gone once it is deleted."""
    asking = responses_client(server, ScriptedReply(say="Done."))
    told_items = [{"role": "user", "content": "go"}, {"role": "user", "content": "now"}]
    first = asking.responses.create(model="m", input=told_items)
    again = asking.responses.retrieve(first.id)
    listed = asking.responses.input_items.list(first.id, order="asc", limit=1)
    given = [item.content[0].text for item in listed]
    asking.responses.delete(first.id)

    assert first.model_dump() == again.model_dump()
    assert ["go", "now"] == given
    with pytest.raises(openai.NotFoundError):
        asking.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError, match="not found"):
        asking.responses.create(model="m", input="go", previous_response_id=first.id)


def test_response_in_the_background(server):
    """It is queued first and completed when it is asked for; only such a response can be cancelled."""
    asking = responses_client(server, ScriptedReply(say="one"), ScriptedReply(say="two"), ScriptedReply(say="three"))
    queued = [asking.responses.create(model="m", input="go", background=True) for _ in range(2)]
    plain = asking.responses.create(model="m", input="go")
    done, stopped = asking.responses.retrieve(queued[0].id), asking.responses.cancel(queued[1].id)

    assert ["queued", "queued"] == [one.status for one in queued]
    assert (("completed", "one"), ("cancelled", "")) == (
        (done.status, done.output_text),
        (stopped.status, stopped.output_text),
    )
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        asking.responses.cancel(plain.id)


def test_conversation_and_its_items(server):
    """A conversation holds what was given and answered; items are added, listed, retrieved and deleted."""
    asking = responses_client(server, ScriptedReply(say="Done."))
    begun = asking.conversations.create(items=[{"role": "user", "content": "be kind"}], metadata={"a": "b"})
    asking.responses.create(model="m", input="go", conversation=begun.id)
    added = asking.conversations.items.create(begun.id, items=[{"role": "user", "content": "more"}])
    texts = [item.content[0].text for item in asking.conversations.items.list(begun.id, order="asc", limit=2)]
    held = asking.conversations.items.retrieve(added.data[0].id, conversation_id=begun.id)
    asking.conversations.items.delete(held.id, conversation_id=begun.id)
    left = [item.content[0].text for item in asking.conversations.items.list(begun.id)]
    changed = asking.conversations.update(begun.id, metadata={"a": "c"})

    assert ["be kind", "go", "Done.", "more"] == texts
    assert ("more", ["Done.", "go", "be kind"]) == (held.content[0].text, left)
    assert ({"a": "b"}, {"a": "c"}, changed) == (
        begun.metadata,
        changed.metadata,
        asking.conversations.retrieve(begun.id),
    )
    assert asking.conversations.delete(begun.id).deleted
    with pytest.raises(openai.NotFoundError):
        asking.conversations.items.list(begun.id)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "responses/resp_9"),
        ("DELETE", "responses/resp_9"),
        ("POST", "responses/resp_9/cancel"),
        ("GET", "responses/resp_9/input_items"),
        ("GET", "conversations/conv_9"),
        ("GET", "conversations/conv_9/items"),
        ("POST", "conversations/conv_9/items"),
        ("DELETE", "conversations/conv_9/items/msg_1"),
        ("GET", "conversations/conv_9/other"),
        ("POST", "responses/compact"),
        ("GET", "chat/completions/chatcmpl-1"),
    ],
)
def test_what_is_not_stored_is_not_found(server, method, path):
    """Unknown ids, and paths that are not served, are status 404 in the shape of the provider."""
    begun = server.begin(STORY, ConversationOptions(protocol="responses"))
    status, body = told(ask(server, method, f"/{begun.name}/v1/{path}", {} if method == "POST" else None))

    assert (404, "invalid_request_error") == (status, body["error"]["type"])


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x"])
def test_limit_of_a_list(server, query):
    """A list has one to a hundred items."""
    begun = server.begin(STORY, ConversationOptions(protocol="responses"))
    ask(server, "POST", f"/{begun.name}/v1/conversations", {})
    status, body = told(ask(server, "GET", f"/{begun.name}/v1/conversations/conv_1/items?{query}"))

    assert (400, "limit") == (status, body["error"]["param"])


def test_tokens_are_counted(server):
    """Both providers' clients get about a token for every four characters; a body with a wrong type is refused."""
    anthropic = pytest.importorskip("anthropic")
    begun = server.begin(STORY, ConversationOptions(protocol="messages"))
    asking = anthropic.Anthropic(api_key="none", base_url=f"{server.addresses[0]}/{begun.name}", max_retries=0)
    few, many = (
        asking.messages.count_tokens(model="m", messages=[{"role": "user", "content": "go" * times}]).input_tokens
        for times in (1, 101)
    )
    counted = responses_client(server).responses.input_tokens.count(model="m", input="go" * 100)

    assert 50 == many - few
    assert 50 < counted.input_tokens < 70
    with pytest.raises(anthropic.BadRequestError):
        asking.messages.count_tokens(model=5, messages=GO)
    assert [] == [event.kind for event in begun.events if event.kind != "header"]


@pytest.mark.parametrize(("protocol", "header"), [("chat", "x-request-id"), ("messages", "request-id")])
def test_requests_have_ids(server, protocol, header):
    """Each answer has the header field in which the provider's client looks for the id of its request."""
    begun = server.begin(STORY, ConversationOptions(protocol=protocol))
    path = {"chat": "chat/completions", "messages": "messages"}[protocol]
    connection = http.client.HTTPConnection(server.addresses[0].host, server.addresses[0].port, timeout=10)
    seen = []
    with closing(connection):
        for body in ({"model": "m", "messages": GO, "max_tokens": 5}, {}):
            connection.request("POST", f"/{begun.name}/v1/{path}", json.dumps(body))
            answer = connection.getresponse()
            answer.read()
            seen.append((answer.status, answer.getheader(header)))

    assert [(200, "req_1"), (400, "req_2")] == seen


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [("http://localhost:5173", True), ("https://evil.example", False), ("http://localhost.evil", False)],
)
def test_page_of_this_machine_may_ask(server, origin, allowed):
    """A browser lets pages of this machine send requests and read responses, and no others."""
    connection = http.client.HTTPConnection(server.addresses[0].host, server.addresses[0].port, timeout=10)
    seen = []
    with closing(connection):
        for method in ("OPTIONS", "GET", "HEAD"):
            asked = {"Origin": origin, "Access-Control-Request-Headers": "authorization,x-stainless-os"}
            connection.request(method, "/health", headers=asked)
            answer = connection.getresponse()
            body = answer.read()
            seen.append((answer.status, bool(body), answer.getheader("access-control-allow-origin")))
            if method == "OPTIONS":
                named = answer.getheader("access-control-allow-headers")

    shown = origin if allowed else None
    assert [(204, False, shown), (200, True, shown), (200, False, shown)] == seen
    assert ("authorization,x-stainless-os" if allowed else None) == named
