"""What passes between a client and a provider becomes scenarios; the provider is our own server."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.recording.capture import Recorder
from pytest_approvals.conversations.recording.proxy import ExchangeOrder, RecordingProxy
from pytest_approvals.conversations.recording.received import parse_response
from pytest_approvals.conversations.recording.recorded_conversation import Exchange, RecordedConversation
from pytest_approvals.errors import UsageError
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.protocols.converse.event_stream import MEDIA_TYPE as AWS_EVENT_STREAM
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.scenario.load import load_scenario, parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

STORY = """
title: A payment
tools:
  pay: {parameters: {amount: integer, note: "string?"}, returns: paid}
model:
  - say: I pay.
    calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Paid.
  - calls: [{id: c2, tool: pay, arguments: {amount: 6, note: sk-abcdefgh12345678}}]
  - say: Paid again.
"""
KEY = "blue-sky"
SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["amount"],
}


class Chat:
    """Writes the requests of Chat Completions."""

    path = "/chat/completions"
    tools: ClassVar = [{"type": "function", "function": {"name": "pay", "parameters": SCHEMA}}]

    def __init__(self) -> None:
        self.said: list[Any] = []

    def body(self) -> dict[str, Any]:
        return {"model": "m", "messages": self.said, "tools": self.tools}

    def user(self, text: str) -> None:
        self.said.append({"role": "user", "content": text})

    def answered(self, body: dict[str, Any]) -> None:
        message = body["choices"][0]["message"]
        calls = [{**call, "type": "function"} for call in message.get("tool_calls") or ()]
        self.said.append(
            {"role": "assistant", "content": message["content"], **({"tool_calls": calls} if calls else {})}
        )

    def result(self, call_id: str, text: str) -> None:
        self.said.append({"role": "tool", "tool_call_id": call_id, "content": text})


class Responses(Chat):
    """Writes those of Responses; the provider keeps what was said."""

    path = "/responses"
    tools: ClassVar = [{"type": "function", "name": "pay", "parameters": SCHEMA}]

    def __init__(self) -> None:
        super().__init__()
        self.previous: dict[str, Any] = {}

    def body(self) -> dict[str, Any]:
        return {"model": "m", "input": self.said, "tools": self.tools, **self.previous}

    def answered(self, body: dict[str, Any]) -> None:
        self.said, self.previous = [], {"previous_response_id": body["id"]}

    def result(self, call_id: str, text: str) -> None:
        self.said.append({"type": "function_call_output", "call_id": call_id, "output": text})


class Messages(Chat):
    """Writes those of Anthropic."""

    path = "/messages"
    tools: ClassVar = [{"name": "pay", "input_schema": SCHEMA}]

    def body(self) -> dict[str, Any]:
        return {**super().body(), "max_tokens": 100}

    def answered(self, body: dict[str, Any]) -> None:
        self.said.append({"role": "assistant", "content": body["content"]})

    def result(self, call_id: str, text: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        self.said.append({"role": "user", "content": [block]})


SPOKEN = {"chat": Chat, "responses": Responses, "messages": Messages}


def post(url: str, body: Any) -> tuple[int, bytes]:
    """Post JSON with a key and return the status and what came."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    connection.request("POST", address.path, json.dumps(body), {"Authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    got = response.read()
    connection.close()
    return response.status, got


def converse(url: str, protocol: str, *, stream: bool, opening: str = "Pay 5") -> None:
    """Has the conversation of the story with the provider at *url*."""
    client = SPOKEN[protocol]()

    def ask() -> None:
        status, got = post(url + client.path, {**client.body(), "stream": stream})
        assert 200 == status, got
        client.answered(parse_response(protocol, got, streamed=stream))

    client.user(opening)
    ask()
    client.result("c1", "paid 5")
    ask()
    client.user(f"Again, with {KEY}")
    ask()
    client.result("c2", f"rejected: not with {KEY}")
    ask()


Upstream = Callable[[str], str]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Begin a conversation in a protocol on our own server, and return its address."""
    with ScriptedModelServer().running() as server:

        def begin(protocol: str) -> str:
            scenario = parse_scenario(STORY, name="a/story", path="story")
            return server.url(server.begin(scenario, ConversationOptions(protocol=protocol)).name)

        yield begin


def recorded(path: Path) -> Scenario:
    """Load what was written."""
    return load_scenario(path, root=path.parent)


def played(scenario: Scenario) -> RecordedRun:
    """Play a scenario on the reference agent."""
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    return asyncio.run(run_scenario(scenario, Variant(), source))


every_way = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
every_protocol = pytest.mark.parametrize("protocol", SPOKEN)


@every_way
@every_protocol
def test_a_conversation_becomes_a_scenario(upstream: Upstream, tmp_path: Path, protocol: str, stream: bool) -> None:
    """The model's script, the caller's messages, and the tools with their parameters and results."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream(protocol), recorder).running() as passing:
        converse(passing.url, protocol, stream=stream)

    assert [tmp_path / "paid.approval.yaml"] == recorder.written
    assert [] == recorder.problems
    assert EXPECTED == (tmp_path / "paid.approval.yaml").read_text().partition("tools:")[2]


HOSTED = """
title: A search
tools:
  search: {kind: hosted_mcp, server: web, approval: always, parameters: {q: string}, returns: "found {q}"}
model:
  - calls: [{id: mcpr_1, tool: search, arguments: {q: price}}, {id: mcpr_2, tool: search, arguments: {q: name}}]
  - say: Done.
  - say: Bye.
"""
MCP = {"type": "mcp", "server_label": "web", "server_url": "https://web.invalid"}


@pytest.mark.parametrize("keeps", [True, False], ids=["kept by the provider", "sent again"])
@every_way
def test_hosted_approvals_are_recorded(tmp_path: Path, stream: bool, keeps: bool) -> None:
    """The requests become calls, their answers decisions with reasons, and the output what the tool returns."""
    recorder = Recorder(tmp_path / "search.approval.yaml")
    answers = [
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_2", "approve": False, "reason": "too private"},
    ]
    history: list[Any] = []

    def ask(url: str, *items: Any, previous: str | None = None) -> str:
        history.extend(items)
        sent = {"previous_response_id": previous, "input": list(items)} if keeps and previous else {"input": history}
        status, got = post(url + "/responses", {"model": "m", "tools": [MCP], "stream": stream, **sent})
        assert 200 == status, got
        body = parse_response("responses", got, streamed=stream)
        history.extend(body["output"])
        return str(body["id"])

    with ScriptedModelServer().running() as server:
        scenario = parse_scenario(HOSTED, name="a/search", path="search")
        url = server.url(server.begin(scenario, ConversationOptions(protocol="responses")).name)
        with RecordingProxy(url, recorder).running() as passing:
            first = ask(passing.url, {"role": "user", "content": "Search"})
            second = ask(passing.url, *answers, previous=first)
            ask(passing.url, {"role": "user", "content": "Thanks"}, previous=second)

    assert [] == recorder.problems
    assert EXPECTED_HOSTED == (tmp_path / "search.approval.yaml").read_text().partition("tools:")[2]
    (run,) = [played(recorded(tmp_path / "search.approval.yaml"))]
    assert ["found price"] == [event.result for event in run.events if event.kind == "tool.end"]


EXPECTED_HOSTED = """
  search: {kind: hosted_mcp, server: web, approval: always, parameters: {q: string}, returns: "found {q}"}
model:
  - calls: [{id: mcpr_1, tool: search, arguments: {q: price}}, {id: mcpr_2, tool: search, arguments: {q: name}}]
  - say: Done.
  - say: Bye.
caller:
  - send: Search
  - decide: {mcpr_1: approve, mcpr_2: {reject: too private}}
  - send: Thanks
"""


def test_hosted_approvals_come_before_those_that_the_wire_does_not_show(tmp_path: Path) -> None:
    """A function of the same reply is left to the oracle, once the recorded decisions are made."""
    conversation = RecordedConversation("m", "go")
    go = Item(kind="user", text="go")
    asked = Item(kind="approval_request", id="r1", tool="search", arguments={})
    called = Item(kind="call", id="c1", tool="pay", arguments={})
    answers = Item(kind="approval_response", id="r1", approved=False), Item(kind="result", id="c1", text="paid")
    done, bye = Item(kind="say", text="Done."), Item(kind="say", text="Bye.")
    conversation.add_exchange(Exchange(items=[go], answer=[asked, called], servers={"r1": "web"}))
    conversation.add_exchange(Exchange(items=[go, asked, called, *answers], answer=[done]))
    conversation.add_exchange(Exchange(items=[go, asked, called, *answers, done, go], answer=[bye]))
    document = conversation.build_document({"pay"}, "")

    assert [{"send": "go"}, {"decide": {"r1": "reject"}}, {"oracle": True}, {"send": "go"}] == document["caller"]


EXPECTED = """
  pay:
    parameters: {amount: integer, note: "string?"}
    calls: {c1: {returns: "paid {amount}"}, c2: {returns: "rejected: not with [secret]"}}
model:
  - say: I pay.
    calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Paid.
  - calls: [{id: c2, tool: pay, arguments: {amount: 6, note: "[secret]"}}]
  - say: Paid again.
caller:
  - send: Pay 5
  - send: "Again, with [secret]"
"""


def test_what_was_recorded_can_be_played(upstream: Upstream, tmp_path: Path) -> None:
    """On any agent, from the file alone."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream("chat"), recorder).running() as passing:
        converse(passing.url, "chat", stream=False)

    assert "Paid again." == played(recorded(recorder.written[0])).output


def test_a_gated_tool_is_asked_about(upstream: Upstream, tmp_path: Path) -> None:
    """What needs approval is not on the wire; the user of the recorder says so, and the oracle decides."""
    recorder = Recorder(tmp_path / "paid.approval.yaml", gated=["pay"])
    with RecordingProxy(upstream("chat"), recorder).running() as passing:
        converse(passing.url, "chat", stream=False)
    scenario = recorded(recorder.written[0])

    assert ["always"] == [tool.approval for tool in scenario.tools]
    assert "Paid again." == played(scenario).output


@every_protocol
def test_the_key_reaches_the_provider_and_no_file(tmp_path: Path, protocol: str, upstream: Upstream) -> None:
    """The head of a request is forwarded as it is; nothing of it is written down."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream(protocol), recorder).running() as passing:
        converse(passing.url, protocol, stream=True)
    text = recorder.written[0].read_text()

    assert (KEY in text, "sk-abcdefgh" in text, "uthorization" in text) == (False, False, False)


def test_each_conversation_has_a_file(upstream: Upstream, tmp_path: Path) -> None:
    """Those that begin anew are conversations of their own, also with the same message."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream("chat"), recorder).running() as passing:
        status, _ = post(passing.url + Chat.path, {"model": "m", "messages": [{"role": "user", "content": "Pay 5"}]})
        post(passing.url + Chat.path, {"model": "m", "messages": [{"role": "user", "content": "Pay 5"}]})

    assert 200 == status
    assert ["paid.approval.yaml", "paid-2.approval.yaml"] == [path.name for path in recorder.written]


def test_what_the_provider_refuses_goes_back_and_is_not_recorded(upstream: Upstream, tmp_path: Path) -> None:
    """With its status and its words."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream("chat"), recorder).running() as passing:
        status, got = post(passing.url + Chat.path, {"model": "m", "messages": []})

    assert (400, []) == (status, recorder.written)
    assert json.loads(got)["error"]["type"] == "invalid_request_error"


def test_what_is_no_request_to_a_model_passes(upstream: Upstream, tmp_path: Path) -> None:
    """Lists of models, for example."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy(upstream("chat"), recorder).running() as passing:
        address = urlsplit(passing.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
        connection.request("GET", f"{address.path}/models")
        listed = json.loads(connection.getresponse().read())
        connection.close()

    assert ["main"] == [model["id"] for model in listed["data"]]
    assert [] == recorder.written


def test_a_provider_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    """Status 502, and why."""
    recorder = Recorder(tmp_path / "paid.approval.yaml")
    with RecordingProxy("http://127.0.0.1:9/v1", recorder).running() as passing:
        status, got = post(passing.url + Chat.path, {})

    assert 502 == status
    assert b"cannot reach the provider" in got


GEMINI = "/v1beta/models/m:streamGenerateContent"


@pytest.mark.parametrize(
    ("path", "kind", "pieces"),
    [
        ("/chat/completions", "text/event-stream", (b"data: {}\n\n", b"data: [DONE]\n\n")),
        (GEMINI, "application/json", (b"[{}", b"]")),
        (GEMINI, AWS_EVENT_STREAM, (b"[{}", b"]")),
    ],
    ids=["text", "array", "events of AWS"],
)
def test_a_stream_passes_as_it_comes(tmp_path: Path, path: str, kind: str, pieces: tuple[bytes, bytes]) -> None:
    """The client has the first piece before the provider has said the last one."""
    released = Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(pieces[0])
            released.wait(10)
            self.wfile.write(pieces[1])

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as provider:
        Thread(target=provider.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{provider.server_port}"
        with RecordingProxy(url, Recorder(tmp_path / "x.approval.yaml")).running() as passing:
            address = urlsplit(passing.url)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
            connection.request("POST", path, "{}")
            response = connection.getresponse()
            first = response.read1()
            released.set()
            rest = response.read()
            connection.close()
        provider.shutdown()

    assert pieces == (first, rest)


@pytest.mark.parametrize("upstream", ["api.openai.com", "ftp://x", ""])
def test_an_address_that_is_none_is_refused(tmp_path: Path, upstream: str) -> None:
    """With an example of one."""
    with pytest.raises(UsageError, match=r": expected a URL like https://"):
        RecordingProxy(upstream, Recorder(tmp_path / "x.approval.yaml"))


SENT = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "go"}]}),
    "responses": ("/v1/responses", {"model": "m", "input": [{"role": "user", "content": "go"}]}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "go"}]}),
    "gemini": ("/v1/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}),
    "converse": ("/model/m/converse", {"messages": [{"role": "user", "content": [{"text": "go"}]}]}),
}
ODD_RESPONSES = {
    "chat": [{"choices": [5]}, {"choices": "x"}, {"choices": [{"message": "x"}]}, {"choices": {}}],
    "responses": [{"output": ["x"]}, {"output": 5}, {}],
    "messages": [{}],
    "gemini": [{}, {"candidates": []}, {"candidates": 5}, {"candidates": ["x"]}],
    "converse": [{}, {"output": 5}, {"output": {"message": "x"}}],
}
ODD_EVENTS = {
    "chat": [{"choices": [5]}, {"choices": 5}, {"choices": [{"delta": "x"}]}],
    "responses": [{"type": "response.completed", "response": {"output": ["x"]}}],
    "gemini": [{"candidates": 5}],
    "messages": [{"type": "content_block_start", "content_block": 5}, {"index": [], "delta": {"type": "text_delta"}}],
}


@pytest.mark.parametrize(
    ("protocol", "received"),
    [
        *((name, json.dumps(body).encode()) for name, bodies in ODD_RESPONSES.items() for body in bodies),
        *((name, b"data: " + json.dumps(event).encode()) for name, events in ODD_EVENTS.items() for event in events),
        *((name, b"[" * 100_000) for name in SENT),
    ],
)
def test_a_response_of_another_shape_is_a_problem_and_nothing_is_written(
    tmp_path: Path, protocol: str, received: bytes
) -> None:
    """The proxy goes on, and says which exchange is in no file."""
    recorder = Recorder(tmp_path / "story.approval.yaml")
    path, sent = SENT[protocol]
    recorder.record(path, json.dumps(sent).encode(), received, streamed=received.startswith(b"data"), secrets=())

    assert [path] == [problem.partition(": ")[0] for problem in recorder.problems]
    assert [] == list(tmp_path.iterdir())


def test_a_request_that_is_nested_too_deep_is_a_problem(tmp_path: Path) -> None:
    """Python's parser gives up on it; the proxy goes on."""
    recorder = Recorder(tmp_path / "story.approval.yaml")
    recorder.record("/v1/messages", b"[" * 100_000, b"{}", streamed=False, secrets=())

    assert ["/v1/messages: invalid request: nested too deep"] == recorder.problems


def test_exchanges_are_recorded_in_the_order_of_their_requests() -> None:
    """One that ends before an earlier one waits for it; what never ends is left out when the proxy stops."""
    order, recorded = ExchangeOrder(), list[str]()
    first, second, third, never = (order.open() for _ in range(4))
    order.close(second, lambda: recorded.append("second"))
    assert [] == recorded
    order.close(first, lambda: recorded.append("first"))
    assert ["first", "second"] == recorded
    order.close(third)
    fifth = order.open()
    order.close(fifth, lambda: recorded.append("fifth"))
    assert ["first", "second"] == recorded
    order.flush()
    order.close(never, lambda: recorded.append("never"))

    assert ["first", "second", "fifth"] == recorded


@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0b"])
def test_a_stream_is_not_cut_where_a_text_has_another_end_of_line(tmp_path: Path, character: str) -> None:
    """Events end with the line ends of their standard only."""
    recorder = Recorder(tmp_path / "story.approval.yaml")
    path, sent = SENT["chat"]
    choice = {"index": 0, "delta": {"content": f"one{character}two"}, "finish_reason": "stop"}
    received = f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()
    recorder.record(path, json.dumps(sent).encode(), received, streamed=True, secrets=())

    assert [] == recorder.problems
    assert f"one{character}two" == recorded(recorder.written[0]).agents["main"].replies[0].say
