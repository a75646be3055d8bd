"""Reasoning over the protocols: how it is sent, and what providers want back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import chain

import anthropic
import httpx2
import openai
import pytest

from pytest_approvals.agent_side.contract.types import Reply, Thought
from pytest_approvals.protocols.chat.requests import REASONING_RULES as CHAT_RULES
from pytest_approvals.protocols.gemini.requests import REASONING_RULES as GEMINI_RULES
from pytest_approvals.protocols.messages.reasoning_rules import REASONING_RULES as MESSAGES_RULES
from pytest_approvals.protocols.reasoning import RULES_ABOUT_REASONING, read_thought_id, sign_reasoning
from pytest_approvals.protocols.responses.requests import RULES as RESPONSES_RULES
from pytest_approvals.runner.stream_chunks import CHUNKINGS, split_reply

USER = {"role": "user", "content": "Pay"}
ENABLED = {"type": "enabled", "budget_tokens": 1024}
THINKS = {"model": "m", "max_tokens": 4096, "thinking": ENABLED}


def thought(text="It is small", number=0, before=None):
    thought_id = f"rs_1_{number}"
    return Thought(id=thought_id, text=text, signature=sign_reasoning(thought_id, text), before=before)


def thinking_reply(making, *thoughts, calls=None, say=None, style="whole"):
    calls = (making.call("c1", amount=5),) if calls is None else calls
    return Reply(say=say, calls=calls, thoughts=thoughts, chunks=split_reply(say, calls, style, thoughts))


def post(wire, **body):
    answer = asyncio.run(wire.endpoint.post(json.dumps({"model": "m", **body}).encode()))
    return answer.status, json.loads(b"".join(answer.pieces))


def chat_result(call_id="c1"):
    return {"role": "tool", "tool_call_id": call_id, "content": "paid"}


def messages_results(*ids):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "paid"} for one in ids]}


def responses_result(call_id="c1"):
    return {"type": "function_call_output", "call_id": call_id, "output": "paid"}


def without(items, kind):
    return [item for item in items if item["type"] != kind]


# --- sent -------------------------------------------------------------------------------------------------------------


def test_a_signature_names_its_reasoning_and_depends_on_the_text():
    """It is another one for another text, and those of others name nothing."""
    assert "rs_1_0" == read_thought_id(thought().signature)
    assert thought("a").signature != thought("b").signature
    assert read_thought_id("EqQBCgIYAhIM") is None


@pytest.mark.parametrize("style", CHUNKINGS)
def test_reasoning_is_streamed_in_front_of_what_it_leads_to(making, style):
    """The pieces of each thought are together, and come before those of its call."""
    calls = (making.call("c1", amount=5), making.call("c2", amount=6))
    chunks = thinking_reply(making, thought(), thought("Then", 1, before=1), calls=calls, style=style).chunks
    order = [("t", chunk.thought) if chunk.thought is not None else ("c", chunk.call) for chunk in chunks]

    assert "It is small" == "".join(chunk.text for chunk in chunks if chunk.thought == 0)
    assert "Then" == "".join(chunk.text for chunk in chunks if chunk.thought == 1)
    assert ("t", 0) == order[0]
    assert order.index(("t", 1)) < order.index(("c", 1))


def test_chat_sends_reasoning_content(making):
    """The field is beside `content`, and in the deltas of a stream."""
    wire = making.Wire("chat", *2 * [thinking_reply(making, thought(), style="tokens")])
    client = openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=httpx2.Client(transport=wire.transport()))
    asked = {"model": "m", "messages": [USER]}
    message = client.chat.completions.create(**asked).choices[0].message
    deltas = [chunk.choices[0].delta for chunk in client.chat.completions.create(**asked, stream=True)]

    assert "It is small" == message.reasoning_content
    assert "It is small" == "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)


def test_chat_has_no_place_for_reasoning_between_calls(making):
    """A message has one field of plain text."""
    between = thinking_reply(making, thought(before=0))
    status, answer = post(making.Wire("chat", between), messages=[USER])

    assert (400, "unsupported") == (status, answer["error"]["code"])
    assert 400 == post(making.Wire("chat", thinking_reply(making, thought(None))), messages=[USER])[0]


@pytest.mark.parametrize("style", CHUNKINGS)
def test_responses_sends_reasoning_items(making, style):
    """They precede their calls, with a summary; a stream ends with the same items."""
    calls = (making.call("c1", amount=5), making.call("c2", amount=6))
    said = thinking_reply(making, thought(), thought("Then", 1, before=1), calls=calls, say="Yes.", style=style)
    wire = making.Wire("responses", said, replace(said, thoughts=said.thoughts))
    client = openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=httpx2.Client(transport=wire.transport()))
    whole = client.responses.create(model="m", input="Pay")
    with client.responses.stream(model="m", input="Pay") as stream:
        events = list(stream)
        streamed = stream.get_final_response()

    kinds = ["reasoning", "message", "function_call", "reasoning", "function_call"]
    assert kinds == [item.type for item in whole.output] == [item.type for item in streamed.output]
    assert ["It is small", "Then"] == [item.summary[0].text for item in streamed.output if item.type == "reasoning"]
    deltas = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    assert "It is smallThen" == "".join(deltas)


def test_responses_includes_encrypted_content_if_asked(making):
    """Without `include` there is none; reasoning that is not shown has no summary."""
    wire = making.Wire("responses", *2 * [thinking_reply(making, thought(None))])
    plain = post(wire, input="Pay")[1]["output"][0]
    encrypted = post(wire, input="Pay", include=["reasoning.encrypted_content"])[1]["output"][0]

    assert {"id": "rs_1_0", "type": "reasoning", "summary": []} == plain
    assert {**plain, "encrypted_content": thought(None).signature} == encrypted


@pytest.mark.parametrize("style", CHUNKINGS)
def test_messages_sends_thinking_blocks_with_signatures(making, style):
    """Whole and streamed are the same; encrypted thinking is one block without deltas."""
    calls = (making.call("c1", amount=5), making.call("c2", amount=6))
    said = thinking_reply(making, thought(), thought(None, 1, before=1), calls=calls, style=style)
    wire = making.Wire("messages", said, said)
    transport = httpx2.Client(transport=wire.transport())
    client = anthropic.Anthropic(api_key="k", base_url="http://x", http_client=transport)
    asked = {**THINKS, "messages": [USER]}
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()

    assert ["thinking", "tool_use", "redacted_thinking", "tool_use"] == [block.type for block in whole.content]
    assert ("It is small", thought().signature) == (streamed.content[0].thinking, streamed.content[0].signature)
    dumped = [[block.to_dict() for block in message.content] for message in (whole, streamed)]
    assert dumped[0] == dumped[1]


def test_a_stream_can_break_in_reasoning(making):
    """Clients have seen its beginning then, and neither signature nor end."""
    broken = thinking_reply(making, thought(), style="tokens")
    wire = making.Wire("messages", replace(broken, chunks=broken.chunks[:2], breaks=True, how="garbled"))
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [USER]}
    answer = asyncio.run(wire.endpoint.post(json.dumps(body).encode()))
    text = b"".join(answer.pieces).decode()

    assert '"thinking_delta"' in text
    assert "signature_delta" not in text
    assert "content_block_stop" not in text


# --- read -------------------------------------------------------------------------------------------------------------


def run_chat(making, change=lambda message: message, *more):
    wire = making.Wire("chat", thinking_reply(making, thought()), making.reply(say="done"))
    message = post(wire, messages=[USER])[1]["choices"][0]["message"]
    kept = {name: value for name, value in message.items() if name not in ("annotations", "refusal")}
    status, answer = post(wire, messages=[USER, change(kept), chat_result(), *more])
    return wire, status, answer


def run_messages(making, change=lambda blocks: blocks, *thoughts, thinking=ENABLED, calls=None, more=()):
    said = thinking_reply(making, *(thoughts or [thought()]), calls=calls)
    wire = making.Wire("messages", said, making.reply(say="done"))
    asked = {"max_tokens": 4096, "thinking": thinking}
    blocks = post(wire, messages=[USER], **asked)[1]["content"]
    results = messages_results(*(call.id for call in said.calls))
    history = [USER, {"role": "assistant", "content": change(blocks)}, results, *more]
    status, answer = post(wire, messages=history, **asked)
    return wire, status, answer


def run_responses(making, change=lambda items: items, *thoughts, calls=None, **asked):
    said = thinking_reply(making, *(thoughts or [thought()]), calls=calls)
    wire = making.Wire("responses", said, making.reply(say="done"))
    items = post(wire, input=[USER], **asked)[1]["output"]
    results = [responses_result(call.id) for call in said.calls]
    status, answer = post(wire, input=[USER, *change(items), *results], **asked)
    return wire, status, answer


@pytest.mark.parametrize("run", [run_chat, run_messages, run_responses])
def test_reasoning_that_comes_back_is_an_item_before_its_call(making, run):
    """It is no message of its own."""
    wire, status, _ = run(making)
    items = wire.items

    assert 200 == status
    assert ["user", "reasoning", "call", "result"] == [item.kind for item in items]
    assert "It is small" == items[1].text
    assert items[1].message == items[2].message


# --- refused ----------------------------------------------------------------------------------------------------------


def swap(items):
    """The first two change places."""
    return [items[1], items[0], *items[2:]]


def reworded(blocks):
    return [{**blocks[0], "thinking": "It is smaller"}, *blocks[1:]]


TWO = [thought(), thought("Then", 1, before=1)]

REFUSED = [
    (
        run_chat,
        {"change": lambda m: {**m, "reasoning_content": ""}},
        "reasoning-content-missing",
        "must be passed back",
    ),
    (
        run_messages,
        {"change": lambda blocks: without(blocks, "thinking")},
        "thinking-missing",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    ),
    (
        run_messages,
        {"change": reworded},
        "signature-invalid",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        run_messages,
        {"change": lambda blocks: [{**blocks[0], "signature": "other"}, *blocks[1:]]},
        "signature-invalid",
        "Invalid `signature` in `thinking` block",
    ),
    (
        run_messages,
        {"change": swap, "thinking": {"type": "adaptive"}},
        "thinking-modified",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ),
    (
        run_responses,
        {"change": lambda items: without(items, "reasoning")},
        "item-without-reasoning",
        "Item 'fc_1_0' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1_0'.",
    ),
    (
        run_responses,
        {"change": swap},
        "reasoning-without-item",
        "Item 'rs_1_0' of type 'reasoning' was provided without its required following item.",
    ),
    (
        run_responses,
        {"store": False},
        "reasoning-not-stored",
        "Item with id 'rs_1_0' not found. Items are not persisted when `store` is set to false.",
    ),
    (
        run_responses,
        {
            "change": lambda items: [{**items[0], "encrypted_content": "gAAAother"}, *items[1:]],
            "include": ["reasoning.encrypted_content"],
        },
        "encrypted-content-changed",
        "The encrypted content gAAA...ther could not be verified.",
    ),
]


@pytest.mark.parametrize(("run", "how", "rule", "text"), REFUSED, ids=[rule for _, _, rule, _ in REFUSED])
def test_a_provider_refuses_what_lacks_its_reasoning(making, run, how, rule, text):
    """In its own words, and under a name that the check of reasoning knows."""
    wire, status, answer = run(making, **how)

    assert (404 if rule == "reasoning-not-stored" else 400) == status
    assert text in answer["error"]["message"]
    assert rule in [violation.rule for violation in wire.script.asked[-1][1].violations]
    assert rule in RULES_ABOUT_REASONING


def test_responses_refuses_reasoning_before_another_call(making):
    """Two calls change places, and their reasoning does not."""
    calls = (making.call("c1", amount=5), making.call("c2", amount=6))
    moved = {"change": lambda items: [items[0], items[3], items[2], items[1]], "calls": calls}
    wire, status, _ = run_responses(making, moved["change"], *TWO, calls=calls)

    assert 400 == status
    assert "reasoning-with-other-item" in [violation.rule for violation in wire.script.asked[-1][1].violations]


def test_every_rule_about_reasoning_is_shown():
    """The rules that are only about reasoning are all above, and all of them are known to the check."""
    shown = {rule for _, _, rule, _ in REFUSED} | {"reasoning-with-other-item"}
    # Those of Gemini are in `test_gemini_clients.py`; Converse has those of Messages.
    shown |= set(GEMINI_RULES.rules)
    own = {*CHAT_RULES.rules, *MESSAGES_RULES.rules, *(rule for rule in RESPONSES_RULES.rules if "reasoning" in rule)}

    assert RULES_ABOUT_REASONING == shown
    assert own <= shown
    assert all(rule.__doc__ for rule in chain(CHAT_RULES.rules.values(), MESSAGES_RULES.rules.values()))


# --- taken ------------------------------------------------------------------------------------------------------------


def no_ids(items):
    return [{name: value for name, value in item.items() if name != "id"} for item in without(items, "reasoning")]


TAKEN = {
    "an older turn without reasoning_content": lambda making: run_chat(
        making, lambda m: {**m, "reasoning_content": None}, {"role": "assistant", "content": "Paid."}, USER
    ),
    "the name of other servers": lambda making: run_chat(
        making, lambda m: {**m, "reasoning_content": None, "reasoning": m["reasoning_content"]}
    ),
    "another text of reasoning_content": lambda making: run_chat(making, lambda m: {**m, "reasoning_content": "So"}),
    "no thinking, as it is not enabled": lambda making: run_messages(
        making, lambda blocks: without(blocks, "thinking"), thinking={"type": "disabled"}
    ),
    "no thinking, as it is adaptive": lambda making: run_messages(
        making, lambda blocks: without(blocks, "thinking"), thinking={"type": "adaptive"}
    ),
    "no thinking in an older turn": lambda making: run_messages(
        making, lambda blocks: without(blocks, "thinking"), more=[{"role": "assistant", "content": "Paid."}, USER]
    ),
    "encrypted thinking": lambda making: run_messages(making, lambda blocks: blocks, thought(None)),
    "thinking of another provider": lambda making: run_messages(
        making, lambda blocks: [{"type": "thinking", "thinking": "x", "signature": "y"}, *blocks]
    ),
    "thinking between calls": lambda making: run_messages(
        making, lambda blocks: blocks, *TWO, calls=(making.call("c1"), making.call("c2"))
    ),
    "calls without ids and reasoning": lambda making: run_responses(making, no_ids),
    "encrypted content, not stored": lambda making: run_responses(
        making, store=False, include=["reasoning.encrypted_content"]
    ),
    "references": lambda making: run_responses(
        making, lambda items: [{"type": "item_reference", "id": item["id"]} for item in items]
    ),
    "reasoning between calls": lambda making: run_responses(
        making, lambda items: items, *TWO, calls=(making.call("c1"), making.call("c2"))
    ),
}


@pytest.mark.parametrize("run", TAKEN.values(), ids=TAKEN)
def test_a_provider_takes_what_nothing_says_it_refuses(making, run):
    """What is uncertain is accepted."""
    _, status, answer = run(making)

    assert (200, None) == (status, answer.get("error"))


def test_responses_continues_from_a_response_with_reasoning(making):
    """What is stored is not sent again."""
    wire = making.Wire("responses", thinking_reply(making, thought()), making.reply(say="done"))
    first = post(wire, input=[USER])[1]["id"]

    assert 200 == post(wire, input=[responses_result()], previous_response_id=first)[0]
    assert ["user", "reasoning", "call", "result"] == [item.kind for item in wire.items]
