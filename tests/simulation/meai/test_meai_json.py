"""Messages in JSON: both generations, to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_approvals.errors import ContentError
from pytest_approvals.simulation.meai import MessageReader, ToolApprovalResponse, read_json, write_json, write_messages
from pytest_approvals.simulation.meai.contents import McpServerToolCall, OpaqueContent, UnknownContent

NOW = (
    '[{"authorName":"Bo","role":"assistant","contents":['
    '{"$type":"toolApprovalRequest","toolCall":{"$type":"functionCall","name":"pay","arguments":{"sum":1.50,"to":"Zoë"},'
    '"informationalOnly":true,"callId":"c1"},"requiresConfirmation":false,"requestId":"ficc_c1"},'
    '{"$type":"mcpServerToolCall","name":"find","serverName":"s","arguments":{"q":[1e5,-0,null]},"callId":"m"},'
    '{"$type":"mcpServerToolResult","outputs":[{"$type":"text","text":"tab\\tquote\\" \\u0007 ü"}],"callId":"m"},'
    '{"$type":"codeInterpreterToolCall","inputs":[{"$type":"data","uri":"data:,x"}],"callId":"p"},'
    '{"$type":"codeInterpreterToolResult","outputs":[],"callId":"p"},'
    '{"$type":"imageGenerationToolCall","callId":"i"},{"$type":"imageGenerationToolResult","callId":"i"},'
    '{"$type":"webSearchToolCall","queries":["x"],"callId":"w"},{"$type":"webSearchToolResult","callId":"w"},'
    '{"$type":"toolCall","callId":"t"},{"$type":"toolResult","callId":"t"},'
    '{"$type":"inputRequest","requestId":"r"},{"$type":"inputResponse","requestId":"r"},'
    '{"$type":"reasoning","text":"hm","protectedData":"zz"},{}],"messageId":"m1","additionalProperties":{"b":1,"a":2}},'
    '{"role":"user","contents":[{"$type":"toolApprovalResponse","approved":false,"toolCall":{"$type":"functionCall",'
    '"name":"pay","callId":"c1"},"reason":"no","requestId":"ficc_c1"}]},'
    '{"role":"tool","contents":[{"$type":"functionResult","result":{"ok":true},"callId":"c1"},'
    '{"$type":"functionResult","callId":"c2","result":null}],"createdAt":"2026-01-02T03:04:05Z"}]'
)

EARLIER = (
    '[{"role":"assistant","contents":['
    '{"$type":"functionApprovalRequest","functionCall":{"callId":"c1","name":"pay","arguments":{"sum":7}},"id":"c1"},'
    '{"$type":"mcpServerToolApprovalRequest","toolCall":{"callId":"m1","toolName":"find","serverName":"s"},"id":"m1"}],'
    '"messageId":"a1"},{"role":"user","contents":['
    '{"$type":"functionApprovalResponse","approved":true,"functionCall":{"callId":"c1","name":"pay","arguments":'
    '{"sum":7}},"reason":"fine","id":"c1"},{"$type":"mcpServerToolApprovalResponse","approved":true,"id":"m1"}]},'
    '{"role":"assistant","contents":[{"$type":"mcpServerToolCall","callId":"m9","toolName":"find"},'
    '{"$type":"mcpServerToolResult","callId":"m9","output":[{"$type":"text","text":"found"}]}]}]'
)


def rewritten(text: str, notation: Any = None) -> str:
    return write_json(write_messages(MessageReader().messages(read_json(text)), notation))


@pytest.mark.parametrize("document", [NOW, EARLIER])
def test_what_is_read_is_written_to_the_byte(document: str) -> None:
    """Order of names, digits of numbers, escapes, what is missing and what is not modelled: all stay."""
    assert document == rewritten(document)


def test_the_earlier_generation_can_be_written_as_the_current_one() -> None:
    """The call of an MCP decision is that of its request; flags and confirmation say what their absence meant."""
    assert [
        {"$type": "functionCall", "name": "pay", "arguments": {"sum": 7}, "callId": "c1"},
        {"$type": "mcpServerToolCall", "name": "find", "serverName": "s", "callId": "m1"},
    ] == [
        {name: value for name, value in content["toolCall"].items() if name != "informationalOnly"}
        for content in json.loads(rewritten(EARLIER, "current"))[1]["contents"]
    ]
    assert [
        "toolApprovalRequest",
        "toolApprovalRequest",
        "toolApprovalResponse",
        "toolApprovalResponse",
        "mcpServerToolCall",
        "mcpServerToolResult",
    ] == [content["$type"] for message in json.loads(rewritten(EARLIER, "current")) for content in message["contents"]]


def test_translating_there_and_back_loses_nothing() -> None:
    """Both generations say the same about functions and MCP servers."""
    assert json.loads(EARLIER) == json.loads(rewritten(rewritten(EARLIER, "current"), "earlier"))


def test_what_is_not_modelled_survives_a_translation() -> None:
    """Additional properties stay with their content."""
    given = (
        '[{"role":"user","contents":[{"$type":"mcpServerToolCall","callId":"m","toolName":"f",'
        '"additionalProperties":{"k":1}}]}]'
    )
    content = json.loads(rewritten(given, "current"))[0]["contents"][0]
    assert ("f", {"k": 1}, False) == (content["name"], content["additionalProperties"], "toolName" in content)


def test_an_unknown_type_is_kept_and_noted(meai: Any) -> None:
    """Nobody knows what it means, so it stays as it is."""
    reader = MessageReader()
    given = [meai.user({"$type": "functionCal", "x": [1]})]
    messages = reader.messages(given)
    assert [UnknownContent(kind="functionCal")] == list(messages[0].contents)
    assert given == write_messages(messages)
    assert ["messages[0].contents[0]: unknown $type 'functionCal', kept as it is; did you mean 'functionCall'?"] == [
        str(note) for note in reader.notes
    ]


def test_a_type_that_is_not_first_is_read_and_noted(meai: Any) -> None:
    """.NET refuses it unless it is told not to; some stores put names in another order."""
    reader = MessageReader()
    reader.messages([meai.user({"callId": "a", "name": "wipe", "$type": "functionCall"})])
    assert ["messages[0].contents[0]: $type is not the first name, which .NET refuses by default"] == [
        str(note) for note in reader.notes
    ]


def test_a_content_without_a_type_is_kept(meai: Any) -> None:
    """An empty one is what remains of a provider's own object; one with names in it is noted."""
    reader = MessageReader()
    messages = reader.messages([meai.user({}, {"text": "x"})])
    assert [OpaqueContent(), OpaqueContent()] == list(messages[0].contents)
    assert ["messages[0].contents[1]"] == [note.where for note in reader.notes]


def test_a_call_of_an_unknown_kind_can_be_asked_about(meai: Any) -> None:
    """The request is read, and is none about a function."""
    request = meai.ask({"$type": "robotArmCall", "callId": "r"}, "r1")
    messages = MessageReader().messages([meai.assistant(request)])
    assert [meai.assistant(request)] == write_messages(messages)
    assert messages[0].contents[0].function is None  # type: ignore[attr-defined]


def test_a_decision_of_the_earlier_generation_gets_its_requests_call() -> None:
    """It does not hold its call; if no request does, that is noted."""
    reader = MessageReader()
    found = reader.messages(read_json(EARLIER))[1].contents[1]
    assert isinstance(found, ToolApprovalResponse)
    assert McpServerToolCall(call_id="m1", name="find", server_name="s") == found.tool_call
    reader.messages(
        [{"role": "user", "contents": [{"$type": "mcpServerToolApprovalResponse", "approved": True, "id": "z"}]}]
    )
    assert ["no earlier request has the id 'z', so its call is unknown"] == [note.text for note in reader.notes]


def test_a_missing_flag_is_false_and_a_missing_confirmation_true(meai: Any) -> None:
    """They came with later releases."""
    call = {"$type": "functionCall", "callId": "a", "name": "wipe"}
    request = {"$type": "toolApprovalRequest", "requestId": "r", "toolCall": call}
    found = MessageReader().messages([meai.assistant(request)])[0].contents[0]
    assert (True, False) == (found.requires_confirmation, found.function.informational_only)  # type: ignore[attr-defined]


def test_a_client_answers_in_the_notation_it_was_asked_in(meai: Any) -> None:
    """A caller with messages of the earlier generation gets requests and calls in it."""
    call = {"callId": "a", "name": "wipe"}
    outcome = meai.play(
        meai.assistant({"$type": "functionApprovalRequest", "functionCall": call, "id": "a"}),
        meai.user({"$type": "functionApprovalResponse", "approved": True, "functionCall": call, "id": "a"}),
        model=[[meai.assistant({"$type": "functionCall", "callId": "b", "name": "wipe"})]],
        behaviour="10.2",
    )
    assert [
        {"$type": "functionCall", **call},
        {"$type": "functionResult", "result": "wiped", "callId": "a"},
        {"$type": "functionApprovalRequest", "functionCall": {"callId": "b", "name": "wipe"}, "id": "b"},
    ] == [message["contents"][0] for message in outcome["messages"]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("x", "messages[0].contents[0]: must be an object, and is a text"),
        ({"$type": 3}, "messages[0].contents[0].$type: must be a text, and is a number"),
        ({"$type": "functionCall", "name": "n"}, "messages[0].contents[0].callId: is missing"),
        (
            {"$type": "functionCall", "name": "n", "callId": None},
            "messages[0].contents[0].callId: is null, and must not be",
        ),
        (
            {"$type": "functionCall", "name": "n", "callId": "c", "informationalOnly": 1},
            "messages[0].contents[0].informationalOnly: must be true or false, and is a number",
        ),
        (
            {"$type": "functionCall", "name": "n", "callId": "c", "arguments": []},
            "messages[0].contents[0].arguments: must be an object, and is a list",
        ),
        (
            {"$type": "inputRequest", "requestId": " "},
            "messages[0].contents[0].requestId: is blank; Microsoft.Extensions.AI refuses a content without it",
        ),
        (
            {"$type": "mcpServerToolCall", "name": "", "callId": "c"},
            "messages[0].contents[0].name: is blank; Microsoft.Extensions.AI refuses a content without it",
        ),
        (
            {
                "$type": "toolApprovalResponse",
                "requestId": "r",
                "approved": True,
                "toolCall": {"$type": "functionCall"},
            },
            "messages[0].contents[0].toolCall.name: is missing",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(meai: Any, content: Any, complaint: str) -> None:
    """Where, what, and what was expected."""
    with pytest.raises(ContentError) as caught:
        MessageReader().messages([{"role": "user", "contents": [content]}])
    assert complaint == str(caught.value)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b"", "invalid JSON: line 1, column 1: Expecting value"),
        (b'{"a": 1,\n}', "invalid JSON: line 2, column 1: Expecting property name enclosed in double quotes"),
        (b'{"a": 1, "a": 2}', "duplicate name 'a' in an object"),
        (b'["\xff"]', "invalid UTF-8 at byte 2"),
        (b"[NaN]", "invalid JSON number NaN"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64 levels, which Microsoft.Extensions.AI does not read"),
        (b"[" * 100_000, "nested deeper than 64 levels, which Microsoft.Extensions.AI does not read"),
    ],
    ids=["empty", "broken", "twice", "encoding", "nan", "deep", "abyss"],
)
def test_a_document_that_is_none_is_refused(document: bytes, complaint: str) -> None:
    """Truncated, ambiguous, wrongly encoded and bottomless documents are named as such."""
    with pytest.raises(ContentError) as caught:
        read_json(document)
    assert complaint in str(caught.value)


def test_odd_texts_and_numbers_are_read_and_written() -> None:
    """A byte order mark is no mistake; lone surrogates, line separators and a thousand digits come out as they were."""
    digits = "9" * 5000
    document = f'["\\uD800","\\u2028","😀",{digits},1E400,64]'
    assert document == write_json(read_json(b"\xef\xbb\xbf" + document.encode()))
