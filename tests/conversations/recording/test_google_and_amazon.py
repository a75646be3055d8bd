"""Gemini and Converse through the recording proxy: official clients, documented responses, keys and signatures."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

boto3 = pytest.importorskip("boto3", reason="test_other_clients.py makes a place for it")
genai = pytest.importorskip("google.genai")

from botocore.auth import SigV4Auth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

from pytest_approvals.conversations.recording import aws_signature  # noqa: E402
from pytest_approvals.conversations.recording.capture import Recorder  # noqa: E402
from pytest_approvals.conversations.recording.proxy import RecordingProxy  # noqa: E402
from pytest_approvals.model_server.conversation import ConversationOptions  # noqa: E402
from pytest_approvals.model_server.server import ScriptedModelServer  # noqa: E402
from pytest_approvals.protocols.converse.event_stream import encode_message  # noqa: E402
from pytest_approvals.scenario.load import parse_scenario  # noqa: E402
from tests.conversations.recording.clients import KEY, have, open_client  # noqa: E402

STORY = """
title: Two payments
tools:
  pay: {approval: always, parameters: {amount: integer, to: "string?"}, returns: paid}
model:
  - thinks: Both at once.
    say: I pay.
    calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6, to: Zoë}}]
  - say: Paid.
  - thinks: Nobody shows this.
    redacted: true
    say: Bye.
"""
EXPECTED = """
  pay: {approval: always, parameters: {amount: integer, to: "string?"}, returns: "done: pay"}
model:
  - thinks: Both at once.
    say: I pay.
    calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6, to: "Zoë"}}]
  - say: Paid.
  - thinks: What the provider does not show.
    redacted: true
    say: Bye.
caller:
  - send: Pay both
  - oracle: true
  - send: Thanks
"""
OWN = {"AWS_ACCESS_KEY_ID": "AKIAOWNOWNOWNOWNOWN0", "AWS_SECRET_ACCESS_KEY": "green-field", "AWS_SESSION_TOKEN": "red"}


@pytest.fixture
def own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder has credentials of AWS, which are not those of the client."""
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("protocol", ["gemini", "converse"])
@pytest.mark.usefixtures("own_credentials")
def test_a_conversation_becomes_a_scenario(tmp_path: Path, protocol: str, stream: bool) -> None:
    """Parallel calls, their results, reasoning that is shown or not, and tools that are said to be gated."""
    recorder = Recorder(tmp_path / "paid.approval.yaml", gated=["pay"])
    scenario = parse_scenario(STORY, name="a/story", path="story")
    with ScriptedModelServer().running() as server:
        url = server.url(server.begin(scenario, ConversationOptions(protocol=protocol)).name)
        with RecordingProxy(url, recorder).running() as passing:
            client = open_client(protocol, passing.url, scenario, stream=stream)
            have(client, ["Pay both", "Thanks"], 3, lambda k: (True, None))

    assert [] == recorder.problems
    assert EXPECTED == recorder.written[0].read_text().partition("tools:")[2]


# --- documented responses ---------------------------------------------------------------------------------------------

Received = list[tuple[str, str, dict[str, str], bytes]]


@contextmanager
def provider(*answers: tuple[int, str, bytes], received: Received | None = None) -> Iterator[str]:
    """Serve answers in their order, each a status, a media type and a body; note what came."""
    remaining = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if received is not None:
                received.append((self.command, self.path, dict(self.headers.items()), body))
            status, kind, answer = remaining.pop(0)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status >= 400:
                self.send_header("x-amzn-ErrorType", "ThrottlingException")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def bedrock(url: str, **options: Any) -> Any:
    """Amazon's client with credentials of its own."""
    session = boto3.Session(
        aws_access_key_id="AKIACLIENTCLIENTCLIE", aws_secret_access_key="client-secret", region_name="eu-west-1"
    )
    config = Config(retries={"total_max_attempts": 1}, proxies={}, **options)
    return session.client("bedrock-runtime", endpoint_url=url, config=config)


TOP_SONG = {
    "name": "top_song",
    "description": "Get the most popular song played on a radio station.",
    "inputSchema": {
        "json": {"type": "object", "properties": {"sign": {"type": "string"}}, "required": ["sign"]},
    },
}
ASK_SONG = {
    "modelId": "anthropic.claude-3-haiku-20240307-v1:0",
    "messages": [{"role": "user", "content": [{"text": "What is the most popular song on WZPZ?"}]}],
    "toolConfig": {"tools": [{"toolSpec": TOP_SONG}]},
}
CALL_SONG = {
    "toolUse": {"toolUseId": "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "name": "top_song", "input": {"sign": "WZPZ"}},
}
SONG = {"song": "Elemental Hotel", "artist": "8 Storey Hike"}
"""The example of "Call a tool with the Converse API", docs.aws.amazon.com/bedrock/latest/userguide (2026-11-28)."""

RECORDED_SONG = """
  top_song: {parameters: {sign: string}, returns: {artist: "8 Storey Hike", song: Elemental Hotel}}
model:
  - calls: [{id: tooluse_kZJMlvQmRJ6eAyJE5GIl7Q, tool: top_song, arguments: {sign: WZPZ}}]
  - say: Elemental Hotel by 8 Storey Hike.
caller:
  - send: What is the most popular song on WZPZ?
"""


def converse_body(*content: Any, stop: str = "end_turn") -> bytes:
    """A response of Converse."""
    message = {"role": "assistant", "content": list(content)}
    return json.dumps({"output": {"message": message}, "stopReason": stop}).encode()


def converse_events(*events: tuple[str, dict[str, Any]]) -> bytes:
    """A stream of Converse."""
    return b"".join(encode_message(name, json.dumps({**facts, "p": "abc"}).encode()) for name, facts in events)


SONG_EVENTS = converse_events(
    ("messageStart", {"role": "assistant"}),
    ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {
        "toolUseId": "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "name": "top_song"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"si'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": 'gn": "WZPZ"}'}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 412, "outputTokens": 58, "totalTokens": 470}, "metrics": {"latencyMs": 9}}),
)  # fmt: skip
FINAL = {"text": "Elemental Hotel by 8 Storey Hike."}
EVENTS = "application/vnd.amazon.eventstream"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.usefixtures("own_credentials")
def test_the_documented_conversation_of_converse_is_recorded(tmp_path: Path, stream: bool) -> None:
    """A result that is JSON is an object in the scenario, and ids stay although they look like secrets."""
    first = (200, EVENTS, SONG_EVENTS) if stream else (200, "application/json", converse_body(CALL_SONG))
    recorder = Recorder(tmp_path / "song.approval.yaml")
    with (
        provider(first, (200, "application/json", converse_body(FINAL))) as url,
        RecordingProxy(url, recorder).running() as passing,
    ):
        client = bedrock(passing.url)
        if stream:
            events = list(client.converse_stream(**ASK_SONG)["stream"])
            assert {"messageStop": {"stopReason": "tool_use"}} in events
        else:
            client.converse(**ASK_SONG)
        call = {"role": "assistant", "content": [CALL_SONG]}
        block = {"toolResult": {"toolUseId": CALL_SONG["toolUse"]["toolUseId"], "content": [{"json": SONG}]}}
        messages = [*ASK_SONG["messages"], call, {"role": "user", "content": [block]}]
        client.converse(**{**ASK_SONG, "messages": messages})

    assert [] == recorder.problems
    assert RECORDED_SONG == recorder.written[0].read_text().partition("tools:")[2]


TEMPERATURE = {"name": "get_current_temperature", "parameters": {
    "type": "OBJECT", "properties": {"location": {"type": "STRING"}}, "required": ["location"]}}  # fmt: skip
CITIES = ["Paris", "London"]
QUESTION = "Check the temperature in Paris and London."
SIGNATURE = "EuIOCt8wnuepruEuIOCt8wnuepruEuIOCt8wnuepru=="
"""The parallel calls of "Thought signatures", ai.google.dev/gemini-api/docs/thought-signatures (2026-11-28)."""


def gemini_call(city: str, **more: Any) -> dict[str, Any]:
    """A call of one city, without an id, as the guide has it."""
    return {"functionCall": {"name": "get_current_temperature", "args": {"location": city}}, **more}


CALL_PARTS = [gemini_call("Paris", thoughtSignature=SIGNATURE), gemini_call("London")]
RESULT_PARTS = [
    {"functionResponse": {"name": "get_current_temperature", "response": {"result": f"15C in {city}"}}}
    for city in CITIES
]
RECORDED_CITIES = """
  get_current_temperature: {parameters: {location: string}, returns: "15C in {location}"}
model:
  - thinks: What the provider does not show.
    redacted: true
    calls:
      - {id: null, label: c1, tool: get_current_temperature, arguments: {location: Paris}}
      - {id: null, label: c2, tool: get_current_temperature, arguments: {location: London}}
  - say: Both 15C.
caller:
  - send: Check the temperature in Paris and London.
"""


def gemini_event(*parts: Any, finish: str | None = None) -> dict[str, Any]:
    """A response of Gemini, or a piece of one."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, **({"finishReason": finish} if finish else {})}
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro-preview"}


def as_sse(*events: Any) -> bytes:
    """A stream of server-sent events."""
    return b"".join(f"data: {json.dumps(event)}\r\n\r\n".encode() for event in events)


CALL_EVENTS = (gemini_event(CALL_PARTS[0]), gemini_event(CALL_PARTS[1]), gemini_event({"text": ""}, finish="STOP"))
GEMINI_BODIES = {
    "json": ("generateContent", "application/json", json.dumps(gemini_event(*CALL_PARTS, finish="STOP")).encode()),
    "sse": ("streamGenerateContent?alt=sse", "text/event-stream", as_sse(*CALL_EVENTS)),
    "array": ("streamGenerateContent", "application/json", json.dumps(CALL_EVENTS, indent=1).encode()),
}


def post(url: str, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
    """Post JSON, and return the status and the body."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    connection.request("POST", f"{address.path}{path}", json.dumps(body), headers)
    response = connection.getresponse()
    got = response.read()
    connection.close()
    return response.status, got


@pytest.mark.parametrize("way", GEMINI_BODIES)
def test_the_documented_parallel_calls_of_gemini_are_recorded(tmp_path: Path, way: str) -> None:
    """Calls without ids have labels, and the signature is reasoning that is not shown."""
    method, kind, body = GEMINI_BODIES[way]
    recorder = Recorder(tmp_path / "cities.approval.yaml")
    final = json.dumps(gemini_event({"text": "Both 15C."}, finish="STOP")).encode()
    said = {"role": "user", "parts": [{"text": QUESTION}]}
    asked = {"contents": [said], "tools": [{"functionDeclarations": [TEMPERATURE]}]}
    with (
        provider((200, kind, body), (200, "application/json", final)) as url,
        RecordingProxy(url, recorder).running() as passing,
    ):
        base = "/v1beta/models/gemini-3-pro-preview:"
        assert (200, body) == post(passing.url, base + method, asked)
        contents = [said, {"role": "model", "parts": CALL_PARTS}, {"role": "user", "parts": RESULT_PARTS}]
        post(passing.url, f"{base}generateContent", {**asked, "contents": contents})

    assert [] == recorder.problems
    assert RECORDED_CITIES == recorder.written[0].read_text().partition("tools:")[2]


# --- keys and signatures ----------------------------------------------------------------------------------------------

Sent = tuple[dict[str, str], str]


def record_song(tmp_path: Path, use: Callable[[str], object]) -> tuple[Received, Recorder]:
    """Let a client use the proxy of a provider, and return what the provider received."""
    received: Received = []
    recorder = Recorder(tmp_path / "song.approval.yaml")
    with (
        provider((200, "application/json", converse_body(FINAL)), received=received) as url,
        RecordingProxy(url, recorder).running() as passing,
    ):
        use(passing.url)
    return received, recorder


def signature_for(path: str, headers: Mapping[str, str], body: bytes, url: str) -> str:
    """The signature that the provider computes for what it received."""
    request = AWSRequest("POST", f"{url}{path}", data=body, headers={"content-type": headers["content-type"]})
    request.context["timestamp"] = headers["X-Amz-Date"]
    request.headers["X-Amz-Date"] = headers["X-Amz-Date"]
    request.headers["X-Amz-Security-Token"] = headers["X-Amz-Security-Token"]
    signer = SigV4Auth(Credentials(*OWN.values()), "bedrock", "eu-west-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


@pytest.mark.usefixtures("own_credentials")
def test_a_signature_is_made_again_for_the_provider(tmp_path: Path) -> None:
    """It covers the host of the provider, and is that of the credentials of the recorder's user."""
    received, recorder = record_song(tmp_path, lambda url: bedrock(url).converse(**ASK_SONG))
    ((_, path, headers, body),) = received
    headers = {"content-type": headers["Content-Type"], **headers}

    assert "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse" == path
    assert f"Credential={OWN['AWS_ACCESS_KEY_ID']}/" in headers["Authorization"]
    expected = signature_for(path, headers, body, f"http://{headers['Host']}")
    assert headers["Authorization"].endswith(f"Signature={expected}")
    assert [] == recorder.problems


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AWS clients find no credentials here."""
    for name in (*OWN, "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("no_credentials")
def test_without_credentials_a_signed_request_is_refused(tmp_path: Path) -> None:
    """The client is told what to do, once; the provider gets nothing."""
    refused: list[str] = []

    def use(url: str) -> None:
        with pytest.raises(ClientError) as caught:
            bedrock(url).converse(**ASK_SONG)
        refused.append(str(caught.value))

    received, recorder = record_song(tmp_path, use)

    assert [] == received
    assert "set AWS_BEARER_TOKEN_BEDROCK there" in refused[0]
    assert "Missing AWS credentials of the recorder: set AWS_ACCESS_KEY_ID" in recorder.problems[0]


@pytest.mark.usefixtures("no_credentials")
def test_an_api_key_of_the_recorder_takes_the_place_of_a_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon's client sends none over HTTP, so it is told to sign."""
    said = [{"role": "user", "content": [{"text": "My key is bedrock-api-key-blue"}]}]

    def use(url: str) -> None:
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-blue")
        bedrock(url, signature_version="v4").converse(**{**ASK_SONG, "messages": said})

    received, recorder = record_song(tmp_path, use)

    assert "Bearer bedrock-api-key-blue" == received[0][2]["Authorization"]
    assert "X-Amz-Date" not in received[0][2]
    assert 'send: "My key is [secret]"' in recorder.written[0].read_text()


def test_an_api_key_of_the_client_passes_as_it_is(tmp_path: Path) -> None:
    """And reaches no file."""

    def use(url: str) -> None:
        said = [{"role": "user", "content": [{"text": "My key is blue-key"}]}]
        post(url, "/model/m/converse", {"messages": said}, Authorization="Bearer blue-key")

    received, recorder = record_song(tmp_path, use)

    assert "Bearer blue-key" == received[0][2]["Authorization"]
    assert 'send: "My key is [secret]"' in recorder.written[0].read_text()


@pytest.mark.usefixtures("no_credentials")
def test_a_missing_botocore_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both ways out."""
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=A/20261128/us-east-1/bedrock/aws4_request, Signature=0"}

    with pytest.raises(aws_signature.UsageError, match="Missing package botocore.*AWS_BEARER_TOKEN_BEDROCK"):
        aws_signature.sign_again("POST", "https://x.invalid/model/m/converse", headers, b"{}")


@pytest.mark.usefixtures("own_credentials")
def test_an_error_of_bedrock_comes_back_and_is_not_recorded(tmp_path: Path) -> None:
    """With its class, which the client reads from a header."""
    recorder = Recorder(tmp_path / "song.approval.yaml")
    with (
        provider((429, "application/json", b'{"message": "Too many requests"}')) as url,
        RecordingProxy(url, recorder).running() as passing,
        pytest.raises(ClientError, match=r"\(ThrottlingException\).*Too many requests"),
    ):
        bedrock(passing.url).converse(**ASK_SONG)

    assert ([], []) == (recorder.written, recorder.problems)


@pytest.mark.usefixtures("own_credentials")
def test_no_credential_reaches_a_file(tmp_path: Path) -> None:
    """Neither those of the client nor those of the recorder, in a header, a query or a signature."""
    words = [*OWN.values(), "AKIACLIENTCLIENTCLIE", KEY]
    said = [{"role": "user", "content": [{"text": "Keep " + ", ".join(words)}]}]
    _, recorder = record_song(tmp_path, lambda url: bedrock(url).converse(**{**ASK_SONG, "messages": said}))
    text = recorder.written[0].read_text()
    google = Recorder(tmp_path / "google.approval.yaml")
    body = json.dumps(gemini_event({"text": f"Not {KEY}, and not violet."}, finish="STOP")).encode()
    with provider((200, "application/json", body)) as url, RecordingProxy(url, google).running() as passing:
        contents = [{"role": "user", "parts": [{"text": f"Keep {KEY} and violet"}]}]
        path = "/v1beta/models/m:generateContent?key=violet"
        post(passing.url, path, {"contents": contents}, **{"x-goog-api-key": KEY})
    written = google.written[0].read_text()

    assert [KEY] == [word for word in words if word in text]
    assert (False, False) == (KEY in written, "violet" in written)


# --- what scenarios have no words for ---------------------------------------------------------------------------------

PIXEL = "aGk" * 50
IMAGES = {
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": PIXEL}}, {"text": "What is it?"}]}]},
        json.dumps(gemini_event({"text": "A cat."}, finish="STOP")).encode(),
        "[image/png]",
    ),
    "converse": (
        "/model/m/converse",
        {"messages": [{"role": "user", "content": [
            {"image": {"format": "png", "source": {"bytes": PIXEL}}}, {"text": "What is it?"}]}]},
        converse_body({"text": "A cat."}),
        "[image]",
    ),
    "messages": (
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "text", "text": "What is it?"}]}]},
        json.dumps({"content": [{"type": "text", "text": "A cat."}]}).encode(),
        "[image]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("protocol", IMAGES)
def test_an_image_is_named_in_its_place(tmp_path: Path, protocol: str) -> None:
    """A scenario has no images: its bytes are not recorded."""
    path, sent, received, name = IMAGES[protocol]
    recorder = Recorder(tmp_path / "image.approval.yaml")
    recorder.record(path, json.dumps(sent).encode(), received, streamed=False, secrets=())

    assert f'send: "{name}\\n\\nWhat is it?"' in recorder.written[0].read_text()


BROKEN = {
    "not finished": converse_events(("messageStart", {"role": "assistant"})),
    "torn": SONG_EVENTS[:-20],
    "another checksum": SONG_EVENTS[:-1] + b"\0",
    "no header": bytes(16),
    "an exception": encode_message("x", b"{}").replace(b":event-type", b":other-type"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_stream_of_converse_is_a_problem(tmp_path: Path, how: str) -> None:
    """The proxy goes on, and says which exchange is in no file."""
    recorder = Recorder(tmp_path / "x.approval.yaml")
    sent = json.dumps({"messages": ASK_SONG["messages"]}).encode()
    recorder.record("/model/m/converse-stream", sent, BROKEN[how], streamed=True, secrets=())

    assert ["/model/m/converse-stream"] == [problem.partition(": ")[0] for problem in recorder.problems]
    assert [] == recorder.written
