"""JSON Schema of the host protocol, generated from the tables that both ends use."""

from __future__ import annotations

from typing import Any

from pytest_approvals.agent_side.rpc.messages import CALLBACKS, COMMANDS, NOTICES, NOTICES_TO_AGENT, PROTOCOL_VERSION
from pytest_approvals.agent_side.rpc.remote_errors import RemoteFailure
from pytest_approvals.agent_side.rpc.serialization import get_codec

_NUMBER_SCHEMA = {"type": "integer"}


def build_protocol_schema() -> dict[str, Any]:
    """Return the schema of one line; below `$defs`, what each side sends and answers.

    >>> build_protocol_schema()["$defs"]["answer-to-dump"]["properties"]["ok"]
    {'$ref': '#/$defs/State'}
    """
    named: dict[str, Any] = {}
    to_agent = [
        *_call_schemas(COMMANDS, named),
        *_notice_schemas(NOTICES_TO_AGENT, named),
        *_answer_schemas(CALLBACKS, named),
    ]
    to_harness = [
        *_call_schemas(CALLBACKS, named, blocking=True),
        *_notice_schemas(NOTICES, named),
        *_answer_schemas(COMMANDS, named),
    ]
    get_codec(RemoteFailure).schema(named)
    # The published name of the record; hosts in other languages refer to it, so the name of the class must not leak.
    named["Failure"] = named.pop(RemoteFailure.__name__)
    failed = _add_message(named, "failed", {"re": _NUMBER_SCHEMA, "err": {"$ref": "#/$defs/Failure"}})
    named["to-agent"] = {"anyOf": [*to_agent, failed]}
    named["to-harness"] = {"anyOf": [*to_harness, failed]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of the host protocol, version {PROTOCOL_VERSION}",
        "anyOf": [{"$ref": "#/$defs/to-agent"}, {"$ref": "#/$defs/to-harness"}],
        "$defs": dict(sorted(named.items())),
    }


def _call_schemas(
    methods: dict[str, tuple[type[Any], type[Any]]], named: dict[str, Any], *, blocking: bool = False
) -> list[dict[str, Any]]:
    optional = {"blocks": {"const": True}} if blocking else {}
    return [
        _add_message(
            named,
            f"call-{name}",
            {"id": _NUMBER_SCHEMA, "m": {"const": name}, "p": get_codec(params).schema(named)},
            optional,
        )
        for name, (params, _) in methods.items()
    ]


def _answer_schemas(methods: dict[str, tuple[type[Any], type[Any]]], named: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _add_message(named, f"answer-to-{name}", {"re": _NUMBER_SCHEMA, "ok": get_codec(answer).schema(named)})
        for name, (_, answer) in methods.items()
    ]


def _notice_schemas(notices: dict[str, type[Any]], named: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _add_message(named, f"notice-{name}", {"m": {"const": name}, "p": get_codec(params).schema(named)})
        for name, params in notices.items()
    ]


def _add_message(
    named: dict[str, Any], name: str, properties: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    named[name] = {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"$ref": f"#/$defs/{name}"}
