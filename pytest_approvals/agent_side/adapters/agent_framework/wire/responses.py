"""
The Responses API.

The id of a response is what the provider keeps of it: the whole conversation up to there, so that a conversation can be
gone on with from any response and in any process.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from ....contract import Item, ModelDown, Reply
from ...openai_agents.items import from_responses
from ...openai_agents.output import output_items, response
from ...openai_agents.stream import events


class Responses:
    """Speaks the Responses API; see `provider.Speaks`."""

    def items(self, body: dict[str, Any]) -> list[Item]:
        """Gives what was kept and what is new."""
        return from_responses(_conversation(body))

    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Gives a response."""
        key = _key(body)
        told = response(key, output_items(reply, key)).model_dump(mode="json")
        return {**told, "id": _id(body, told["output"])}

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[str]:
        """Gives the events of a streamed response."""
        key = _key(body)
        items = output_items(reply, key)
        response_id = _id(body, [item.model_dump(mode="json") for item in items])
        for number, told in enumerate(_one_by_one(events(reply, items, key))):
            if "response" in told:
                told["response"]["id"] = response_id
            yield json.dumps({**told, "sequence_number": number})


def _one_by_one(told: Iterator[Any]) -> Iterator[dict[str, Any]]:
    """Gives events in the provider's order: an item begins when the one before it has ended."""
    written: list[dict[str, Any]] = []
    broken: list[ModelDown] = []
    try:
        written.extend(event.model_dump(mode="json") for event in told)
    except ModelDown as down:
        broken.append(down)
    last = len(written)
    yield from sorted(written, key=lambda one: one.get("output_index", last if "completed" in one["type"] else -1))
    if broken:
        raise broken[0]


def _conversation(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input") or []
    new = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else list(given)
    return [*_kept(body.get("previous_response_id")), *new]


def _key(body: dict[str, Any]) -> str:
    """Gives a key for the reply to *body*, the same in every run and another one for every input."""
    return sha256(json.dumps(_conversation(body), sort_keys=True).encode()).hexdigest()[:12]


def _id(body: dict[str, Any], output: list[dict[str, Any]]) -> str:
    if body.get("store") is False:
        return f"resp_{_key(body)}"
    said = [{name: value for name, value in item.items() if value is not None} for item in output]
    packed = zlib.compress(json.dumps([*_conversation(body), *said]).encode())
    return "resp_" + base64.urlsafe_b64encode(packed).decode()


def _kept(response_id: str | None) -> list[dict[str, Any]]:
    if response_id is None:
        return []
    packed = base64.urlsafe_b64decode(response_id.removeprefix("resp_"))
    kept: list[dict[str, Any]] = json.loads(zlib.decompress(packed))
    return kept
