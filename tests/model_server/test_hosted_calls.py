"""Hosted calls over the wire, with the official client: asked, answered, run by the provider, told, and judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_approvals.agent_side.contract.types import Parameter
from pytest_approvals.checks import judge
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool, ToolBehaviour

openai = pytest.importorskip("openai")

MCP = [{"type": "mcp", "server_label": "web", "server_url": "https://web.invalid/mcp", "allowed_tools": ["search"]}]
SEARCH = Call(label="r1", id="mcpr_1", tool="search", arguments={"q": "price"})


def story(*behaviours):
    own = Tool(
        name="search",
        parameters={"q": Parameter()},
        approval="always",
        kind="hosted_mcp",
        server="web",
        behaviours=behaviours or (ToolBehaviour(returns="found {q}"),),
    )
    replies = (ScriptedReply(calls=(SEARCH,)), ScriptedReply(say="Done."), ScriptedReply(say="Bye."))
    return Scenario(id="own/search", title="Searches.", tools=(own,), agents={"main": Script(replies=replies)})


@pytest.fixture
def server():
    with ScriptedModelServer().running() as running:
        yield running


@pytest.fixture(params=["previous_response_id", "conversation"])
def link(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request):
    return request.param


class Talk:
    """One conversation of the official client with the provider, which keeps it."""

    def __init__(self, server, told, *, link, streamed):
        self.begun = server.begin(told, ConversationOptions(protocol="responses"))
        self.client = openai.OpenAI(api_key="none", base_url=server.url(self.begun.name), max_retries=0)
        self.streamed = streamed
        self.kept = {"conversation": self.client.conversations.create().id} if link == "conversation" else {}
        self.link = link
        self.events = []

    def say(self, given):
        options = {"model": "m", "input": given, "tools": MCP, **self.kept}
        if self.streamed:
            with self.client.responses.stream(**options) as stream:
                self.events = [event.type for event in stream]
                got = stream.get_final_response()
        else:
            got = self.client.responses.create(**options)
        if self.link == "previous_response_id":
            self.kept = {"previous_response_id": got.id}
        return got

    def answer(self, approve, **more):
        return self.say(
            [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve, **more}]
        )

    @property
    def ran(self):
        return [(event.tool, event.arguments, event.by) for event in self.begun.events if event.kind == "tool.start"]

    @property
    def asked(self):
        return [item for event in self.begun.events if event.kind == "model.request" for item in event.items]

    @property
    def broken(self):
        return [(one.check, one.status) for one in judge(self.begun.events) if one.status in ("fail", "harness-error")]


@pytest.fixture
def talk(server, link, streamed):
    """Begin a conversation; its client is closed at the end."""
    begun = []

    def begin(*behaviours):
        begun.append(Talk(server, story(*behaviours), link=link, streamed=streamed))
        return begun[-1]

    yield begin
    for one in begun:
        one.client.close()


def test_an_approved_call_is_run_and_reported(talk):
    """The provider runs it once, and its `mcp_call` says what came of it; no check finds anything."""
    one = talk()
    first = one.say("go")
    second = one.answer(True)
    one.say("thanks")
    (call,) = [item for item in second.output if item.type == "mcp_call"]

    assert ["mcp_list_tools", "mcp_approval_request"] == [item.type for item in first.output]
    assert ("found price", None, "mcpr_1", "completed") == (
        call.output, call.error, call.approval_request_id, call.status
    )  # fmt: skip
    assert [("search", {"q": "price"}, "provider")] == one.ran
    assert [] == one.broken


def test_the_run_is_streamed(server, link):
    """A stream shows the call as it begins, its arguments and its end, before the text."""
    one = Talk(server, story(), link=link, streamed=True)
    with one.client:
        one.say("go")
        one.answer(True)
    shown = [event for event in one.events if "mcp_call" in event or event == "response.output_text.done"]

    assert [
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_text.done",
    ] == shown


def test_a_rejected_call_is_not_run_and_the_reason_is_kept(talk):
    """The reason reaches the provider with the answer, and stays in what it keeps; nothing runs."""
    one = talk()
    one.say("go")
    second = one.answer(False, reason="not on the web")
    one.say("thanks")
    answers = [(item["approved"], item.get("text")) for item in one.asked if item["kind"] == "approval_response"]

    assert ["message"] == [item.type for item in second.output]
    assert [(False, "not on the web")] * 2 == answers
    assert ([], []) == (one.ran, one.broken)


def test_a_call_that_fails_says_so(talk):
    """The `mcp_call` has the error in place of an output, the stream says `failed`, and the model is told later."""
    one = talk(ToolBehaviour(raises="the site is down"))
    one.say("go")
    second = one.answer(True)
    seen = one.events
    one.say("thanks")
    (call,) = [item for item in second.output if item.type == "mcp_call"]
    told = [item["text"] for item in one.asked if item["kind"] == "hosted_result"]

    assert (None, [{"type": "text", "text": "the site is down"}], "failed") == (
        call.output, call.error.content, call.status
    )  # fmt: skip
    assert (["response.mcp_call.failed"] if one.streamed else []) == [name for name in seen if name.endswith(".failed")]
    assert ["the site is down"] == told
    assert [] == one.broken


@pytest.mark.parametrize("approve", ["no", "false", "true", 0, 1, None, [], {}], ids=repr)
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_an_answer_that_is_no_boolean_runs_nothing(server, approve, lenient):
    """Only `true` approves; anything else is refused, or runs nothing if the server is lenient."""
    one = Talk(server, story(), link="previous_response_id", streamed=False)
    one.begun.options = ConversationOptions(protocol="responses", lenient=lenient)
    with one.client:
        one.say("go")
        if lenient:
            one.answer(approve)
        else:
            with pytest.raises(openai.BadRequestError):
                one.answer(approve)

    assert [] == one.ran


def test_a_second_answer_is_refused_and_found(talk):
    """A request that was decided takes no other answer: the provider says 400, runs nothing, and a check finds it."""
    one = talk()
    one.say("go")
    one.answer(False)
    with pytest.raises(openai.BadRequestError):
        one.answer(True)

    assert [] == one.ran
    assert [("model-input-well-formed", "fail")] == one.broken


def test_an_unanswered_request_is_refused(talk):
    """A message in place of the answer is refused, and the request can still be answered."""
    one = talk()
    one.say("go")
    with pytest.raises(openai.BadRequestError):
        one.say("never mind")
    one.answer(True)

    assert [("search", {"q": "price"}, "provider")] == one.ran
    assert [("model-input-well-formed", "fail")] == one.broken


def test_a_call_that_nobody_was_asked_about_names_no_request(server, streamed):
    """The client may send it back, and the journal knows it by the id of the call."""
    tool = replace(story().tools[0], approval="never")
    one = Talk(server, replace(story(), tools=(tool,)), link="input", streamed=streamed)
    with one.client:
        first = one.say("go")
        (call,) = [item for item in first.output if item.type == "mcp_call"]
        again = [{"role": "user", "content": "go"}, *[item.to_dict() for item in first.output]]
        one.say([*again, {"role": "user", "content": "thanks"}])
    told = [item for item in one.asked if item["kind"] == "hosted_result"]

    assert ("mcp_mcpr_1", None, "found price") == (call.id, call.approval_request_id, call.output)
    assert ["mcpr_1"] == [item["id"] for item in told]
    assert [] == one.broken
