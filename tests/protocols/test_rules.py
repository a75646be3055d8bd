"""What each provider refuses in the input of its model."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.errors import UnknownName
from pytest_approvals.protocols.input_rules import RULES, RuleViolation, check_items

REAL = ("chat", "responses", "messages", "converse")


def user(text="go", message=0):
    return {"kind": "user", "text": text, "message": message}


def say(text="so", message=1):
    return {"kind": "say", "text": text, "message": message}


def call(call_id, message=1, **more):
    return {"kind": "call", "id": call_id, "tool": "pay", "arguments": {}, "message": message, **more}


def result(call_id, message=2):
    return {"kind": "result", "id": call_id, "text": "ok", "message": message}


def request(request_id):
    return {"kind": "approval_request", "id": request_id, "tool": "pay"}


def response(request_id):
    return {"kind": "approval_response", "id": request_id, "approved": True}


def names(items, wire_rules):
    return [broken.rule for broken in check_items(items, wire_rules)]


CLEAN = [
    ("one message", [user()]),
    ("instructions and a message", [{"kind": "other", "text": "be kind"}, user()]),
    ("a call and its result", [user(), call("c1"), result("c1")]),
    ("text beside a call", [user(), say("wait"), call("c1"), result("c1")]),
    ("text after a call in one message", [user(), call("c1"), say("wait"), result("c1")]),
    ("two calls, results in the other order", [user(), call("c1"), call("c2"), result("c2"), result("c1", 3)]),
    ("an id that comes again", [user(), call("c1"), result("c1"), call("c1", 3), result("c1", 4)]),
    ("text after the results", [user(), call("c1"), result("c1"), say("done", 3), user("more", 4)]),
]


@pytest.mark.parametrize("wire_rules", REAL)
@pytest.mark.parametrize("items", [items for _, items in CLEAN], ids=[name for name, _ in CLEAN])
def test_every_provider_takes_it(items, wire_rules):
    """A well-formed input breaks no rule of any provider."""
    assert [] == names(items, wire_rules)


REFUSED = [
    ("nothing", [], "empty-input", REAL),
    ("only instructions", [{"kind": "other", "text": "be kind"}], "no-message", ["messages", "converse"]),
    ("the model speaks first", [say("hi"), user()], "first-not-user", ["converse"]),
    ("a blank text", [user(" ")], "empty-text", ["messages"]),
    ("an empty text", [user("")], "blank-text", ["converse"]),
    ("a call without a result", [user(), call("c1")], "call-without-result", REAL),
    ("an unanswered call before a message", [user(), call("c1"), user("so?", 2)], "call-without-result", REAL),
    ("a result without a call", [user(), result("c1")], "result-without-call", REAL),
    ("a result before its call", [user(), result("c1"), call("c1")], "result-without-call", REAL),
    ("a second result", [user(), call("c1"), result("c1"), result("c1", 3)], "second-result", REAL),
    ("one id twice", [user(), call("c1"), call("c1"), result("c1"), result("c1", 3)], "duplicate-call-id", REAL),
    ("a call without an id", [user(), call(None), result(None)], "call-without-id", REAL),
    (
        "text as arguments",
        [user(), call("c1", arguments="{oops"), result("c1")],
        "arguments-not-an-object",
        ["messages", "converse"],
    ),
    (
        "a message between call and result",
        [user(), call("c1"), user("so?", 2), result("c1", 3)],
        "result-not-adjacent",
        ["chat", "converse"],
    ),
    (
        "a message between call and result, where messages in a row are one turn",
        [user(), call("c1"), user("so?", 2), result("c1", 3)],
        "result-not-in-next-turn",
        ["messages"],
    ),
    (
        "a text of another message between call and result",
        [user(), call("c1"), say("hm", 2), result("c1", 3)],
        "result-not-adjacent",
        ["chat", "converse"],
    ),
    (
        "calls of one reply split in two messages",
        [user(), call("c1"), call("c2", 2), result("c1", 3), result("c2", 4)],
        "result-not-adjacent",
        ["chat", "converse"],
    ),
    (
        "a message between two results",
        [user(), call("c1"), call("c2"), result("c1"), user("so?", 3), result("c2", 4)],
        "result-not-adjacent",
        ["chat", "converse"],
    ),
    (
        "another turn of the model between two results",
        [user(), call("c1"), call("c2"), result("c1"), say("so", 3), result("c2", 4)],
        "result-not-in-next-turn",
        ["messages"],
    ),
    (
        "approval items",
        [user(), request("r1"), response("r1")],
        "approval-item-unknown",
        ["chat", "messages", "converse"],
    ),
    ("an open approval request", [user(), request("r1")], "request-without-response", ["responses"]),
    ("an answer to no request", [user(), response("r1")], "unknown-approval-id", ["responses"]),
    ("an answer before its request", [user(), response("r1"), request("r1")], "unknown-approval-id", ["responses"]),
    ("two answers", [user(), request("r1"), response("r1"), response("r1")], "second-response", ["responses"]),
    (
        "an answer that is no boolean",
        [user(), request("r1"), response("r1") | {"approved": "no"}],
        "approval-not-boolean",
        ["responses"],
    ),
    (
        "an answer without a decision",
        [user(), request("r1"), response("r1") | {"approved": None}],
        "approval-not-boolean",
        ["responses"],
    ),
]


@pytest.mark.parametrize(("name", "items", "rule", "refusing"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_some_providers_refuse_it(name, items, rule, refusing):
    """A rule is broken for exactly those providers that have it."""
    assert list(refusing) == [provider for provider in REAL if rule in names(items, provider)]


def test_every_rule_refuses_something():
    """Every rule has an example that breaks it."""
    assert set(RULES) == {rule for _, _, rule, _ in REFUSED}


def test_every_rule_names_its_provider():
    """The docstring of a rule says which provider refuses it."""
    named = {
        "chat": "OpenAI|Every provider|Chat completions",
        "responses": "OpenAI|Every",
        "messages": "Anthropic|Every",
        "gemini": "Gemini|Every",
        "converse": "Bedrock|Every",
    }

    assert [] == [
        (name, provider)
        for name, (providers, rule) in RULES.items()
        for provider in providers
        if not any(word in (rule.__doc__ or "") for word in named[provider].split("|"))
    ]


def test_no_rules():
    """An agent that follows no provider's rules is refused nothing."""
    assert [] == check_items([result("c1")], "none")


def test_the_calls_concerned_are_named():
    """A broken rule says which calls it is about, in words."""
    items = [user(), call("c1"), call("c2"), result("c1")]

    assert [
        RuleViolation(rule="call-without-result", ids=("c2",), text="no result for the calls c2"),
    ] == check_items(items, "chat")


def test_items_are_read_like_their_written_form():
    """Neutral items and what a journal holds of them are judged alike."""
    items = [Item(kind="user", text="go"), Item(kind="call", id="c1", tool="pay", arguments={}, message=1)]

    assert ["call-without-result"] == names(items, "chat")


def test_decisions_of_neutral_items_are_judged():
    """The decision of an item counts, and not only that of its written form."""
    asked = Item(kind="approval_request", id="r1", tool="pay", arguments={})
    for approved, expected in ((True, []), (False, []), ("no", ["approval-not-boolean"])):
        answer = Item(kind="approval_response", id="r1", approved=approved)
        assert expected == names([Item(kind="user", text="go"), asked, answer], "responses")


def test_unknown_wire_rules():
    """A set of rules that no provider has is refused, with the nearest one named."""
    with pytest.raises(UnknownName, match="Unknown set of wire rules 'chats'; did you mean 'chat'"):
        check_items([], "chats")
