"""Short words for messages of Microsoft.Extensions.AI, and a way to play cases made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_approvals.simulation.meai import read_case, read_json, run_case, write_json

Json = dict[str, Any]


def text(said: str) -> Json:
    return {"$type": "text", "text": said}


def call(call_id: str, name: str = "wipe", flagged: bool = False, **arguments: Any) -> Json:
    inside: Json = {"$type": "functionCall", "name": name}
    if arguments:
        inside["arguments"] = arguments
    return {**inside, "informationalOnly": flagged, "callId": call_id}


def result(call_id: str, value: Any) -> Json:
    return {"$type": "functionResult", "result": value, "callId": call_id}


def ask(call: Json, request_id: str | None = None, confirm: bool = True) -> Json:
    named = request_id or f"ficc_{call['callId']}"
    return {"$type": "toolApprovalRequest", "toolCall": call, "requiresConfirmation": confirm, "requestId": named}


def answer(call: Json, approved: bool = True, reason: str | None = None, request_id: str | None = None) -> Json:
    inside: Json = {"$type": "toolApprovalResponse", "approved": approved, "toolCall": call}
    if reason is not None:
        inside["reason"] = reason
    return {**inside, "requestId": request_id or f"ficc_{call['callId']}"}


def reject(call: Json, reason: str | None = None) -> Json:
    return answer(call, False, reason)


def user(*contents: Json | str) -> Json:
    return {"role": "user", "contents": [text(each) if isinstance(each, str) else each for each in contents]}


def assistant(*contents: Json | str, **more: Any) -> Json:
    return {**user(*contents), "role": "assistant", **more}


def tool(*contents: Json) -> Json:
    return {**user(*contents), "role": "tool"}


def mcp(call_id: str = "m1") -> Json:
    return {"$type": "mcpServerToolCall", "name": "search", "serverName": "docs", "callId": call_id}


WIPE = {"name": "wipe", "approval_required": True, "returns": "wiped"}
LOOK = {"name": "look", "returns": "saw {what}"}


def play(*messages: Json, model: Any = None, behaviour: str = "10.9", tools: Any = (WIPE, LOOK), **more: Any) -> Json:
    """Play a case, through JSON on both ends; a model without a script says ok."""
    answers = {} if "model_updates" in more else {"model": [[assistant("ok")]] if model is None else model}
    case = {"behaviour": behaviour, "tools": list(tools), "messages": list(messages), **answers, **more}
    outcome = json.loads(write_json(run_case(read_case(read_json(json.dumps(case))))))
    assert isinstance(outcome, dict)
    return outcome


def told(messages: list[Json]) -> list[str]:
    """Each message in a line: who, and what it holds; a flagged call has a `!`, a request about one too."""
    return [f"{message['role']}: {', '.join(map(_word, message['contents']))}" for message in messages]


def _word(content: Json) -> str:
    match content.get("$type"):
        case "text":
            return str(content["text"])
        case "functionCall":
            return f"call {content['callId']}{'!' if content['informationalOnly'] else ''}"
        case "functionResult":
            return f"result {content['callId']} {content['result']}"
        case "toolApprovalRequest":
            return f"ask {_word(content['toolCall'])}"
        case "toolApprovalResponse":
            return f"{'yes' if content['approved'] else 'no'} {_word(content['toolCall'])}"
        case other:
            return str(other)


def ran(outcome: Json) -> list[Any]:
    return [each["name"] for each in outcome["invocations"]]


class Kit:
    """What the tests write their cases with."""

    WIPE, LOOK = WIPE, LOOK
    text, call, result, ask, answer, reject = map(staticmethod, (text, call, result, ask, answer, reject))
    user, assistant, tool, mcp = map(staticmethod, (user, assistant, tool, mcp))
    play, told, ran = map(staticmethod, (play, told, ran))


@pytest.fixture
def meai() -> type[Kit]:
    return Kit
