"""The JSON Schema of the host protocol, made from the same tables that both ends read and write by."""

from __future__ import annotations

from typing import Any

from pytest_approvals.agent_side.codecs import codec_of
from pytest_approvals.agent_side.crossing import Failure
from pytest_approvals.agent_side.messages import CALLBACKS, COMMANDS, NOTICES, NOTICES_TO_AGENT, VERSION

NUMBER = {"type": "integer"}


def protocol_schema() -> dict[str, Any]:
    """
    Gives the schema of one line; below `$defs`, of what each side sends, and of the answer to each method.

    >>> protocol_schema()["$defs"]["answer-to-dump"]["properties"]["ok"]
    {'$ref': '#/$defs/State'}
    """
    named: dict[str, Any] = {}
    to_agent = [*_calls(COMMANDS, named), *_notices(NOTICES_TO_AGENT, named), *_answers(CALLBACKS, named)]
    to_harness = [*_calls(CALLBACKS, named, blocking=True), *_notices(NOTICES, named), *_answers(COMMANDS, named)]
    failed = _message(named, "failed", {"re": NUMBER, "err": codec_of(Failure).schema(named)})
    named["to-agent"] = {"anyOf": [*to_agent, failed]}
    named["to-harness"] = {"anyOf": [*to_harness, failed]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of the host protocol, version {VERSION}",
        "anyOf": [{"$ref": "#/$defs/to-agent"}, {"$ref": "#/$defs/to-harness"}],
        "$defs": dict(sorted(named.items())),
    }


def _calls(
    methods: dict[str, tuple[type[Any], type[Any]]], named: dict[str, Any], *, blocking: bool = False
) -> list[dict[str, Any]]:
    optional = {"blocks": {"const": True}} if blocking else {}
    return [
        _message(
            named, f"call-{name}", {"id": NUMBER, "m": {"const": name}, "p": codec_of(asked).schema(named)}, optional
        )
        for name, (asked, _) in methods.items()
    ]


def _answers(methods: dict[str, tuple[type[Any], type[Any]]], named: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _message(named, f"answer-to-{name}", {"re": NUMBER, "ok": codec_of(answered).schema(named)})
        for name, (_, answered) in methods.items()
    ]


def _notices(notices: dict[str, type[Any]], named: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _message(named, f"notice-{name}", {"m": {"const": name}, "p": codec_of(told).schema(named)})
        for name, told in notices.items()
    ]


def _message(
    named: dict[str, Any], name: str, properties: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    named[name] = {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"$ref": f"#/$defs/{name}"}
