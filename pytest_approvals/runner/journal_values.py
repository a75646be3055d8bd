"""Values of a run as journals hold them: header, tools, items, calls, requests, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.types import MAIN, Condition, Item, Parameter, Request, Thought, ToolSpec
from pytest_approvals.agent_side.rpc.remote_errors import read_message
from pytest_approvals.journal.arguments import describe_parameters
from pytest_approvals.journal.events import Header
from pytest_approvals.runner.script import ScriptedCall
from pytest_approvals.scenario.model import Scenario, Tool, Variant

if TYPE_CHECKING:
    from pytest_approvals.processes.agent_source import AgentSource

MAX_ERROR_LENGTH = 2000
"""Error messages are cut to this many characters."""


def build_header(scenario: Scenario, variant: Variant, source: AgentSource, seed: int) -> Header:
    """Return the header of a run's journal."""
    facts = source.facts
    attachment = getattr(source, "attachment", None)
    expect: Mapping[str, Any] = {"runs": scenario.expect.runs, "output": scenario.expect.output}
    return Header(
        scenario=scenario.id,
        agent=source.name,
        framework=facts.framework,
        version=facts.version,
        where=facts.where,
        variant={name: getattr(variant, name) for name in variant.__slots__},
        tools=describe_tools(scenario.tools),
        answer=describe_parameters(scenario.answer) or None,
        wire_rules=facts.wire_rules if variant.protocol == "native" else variant.protocol,
        capabilities=sorted(facts.capabilities),
        reaches=dict(scenario.reaches),
        expect={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in expect.items()
            if value is not None
        },
        fakes=dict(scenario.fakes),
        limits=_describe_limits(scenario),
        sync=attachment is not None and attachment.sync,
        holds_requests=not facts.stores_requests,
        seed=seed,
    )


def build_tool_spec(tool: Tool) -> ToolSpec:
    """Return a scenario's tool as adapters see it: what it is, not what it does."""
    return ToolSpec(
        name=tool.visible_name,
        parameters=tool.parameters,
        description=tool.description or f"The tool {tool.name}.",
        approval=tool.approval,
        kind=tool.kind,
        server=tool.server,
        agent=tool.agent,
        runs=tool.runs,
        hands_over_to=tool.hands_over_to,
        asks_again=any(behaviour.asks_again for behaviour in tool.all_behaviours),
        elicits=any(behaviour.elicits for behaviour in tool.all_behaviours),
    )


def describe_tools(tools: Iterable[Tool]) -> dict[str, Any]:
    """Return a scenario's tools, by key."""
    return {
        tool.key: describe_tool(build_tool_spec(tool)) | ({"called": tool.called} if tool.called else {})
        for tool in tools
    }


def describe_tool(spec: ToolSpec) -> dict[str, Any]:
    """Return the fields of a tool except its name."""
    described: dict[str, Any] = {
        "approval": describe_approval(spec.approval),
        "parameters": describe_parameters(spec.parameters),
        "kind": spec.kind,
    }
    if spec.agent != MAIN:
        described["agent"] = spec.agent
    if spec.place:
        described["place"] = spec.place
    if spec.guarded:
        described["guarded"] = True
    if spec.screened:
        described["screened"] = True
    return described | {
        name: value
        for name in ("server", "runs", "hands_over_to", "effects")
        if (value := getattr(spec, name)) is not None
    }


def tool_key(spec: ToolSpec) -> str:
    """Return the key of a tool: its name, behind the name of its agent unless that is the main one."""
    return spec.name if spec.agent == MAIN else f"{spec.agent}/{spec.name}"


def describe_approval(approval: str | Condition) -> str | dict[str, Any]:
    """Return an approval: a word, or the fields of a condition that are set."""
    if isinstance(approval, str):
        return approval
    fields_of_condition = ((name, getattr(approval, name)) for name in Condition.__slots__)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields_of_condition
        if value not in (None, ())
    }


def describe_tool_parameters(tools: Mapping[str, Mapping[str, Parameter]]) -> dict[str, Any] | None:
    """Return the parameters of tools, by key; None if there are no tools."""
    return {key: describe_parameters(parameters) for key, parameters in tools.items()} or None


def _describe_limits(scenario: Scenario) -> dict[str, int] | None:
    limits = {"model_replies": scenario.limits.model_replies, "tool_calls": scenario.limits.tool_calls}
    return {name: limit for name, limit in limits.items() if limit is not None} or None


def item_to_dict(item: Item) -> dict[str, Any]:
    """Return one element of a model input."""
    return {name: value for name, value in zip(_ITEM_FIELDS, _item_values(item), strict=True) if value is not None}


# One getter for all fields: every model request goes through here, item by item.
_ITEM_FIELDS = tuple(field.name for field in fields(Item))
_item_values = attrgetter(*_ITEM_FIELDS)


def call_to_dict(call: ScriptedCall) -> dict[str, Any]:
    """Return a call of the model."""
    described = {"label": call.label, "id": call.id, "tool": call.tool, "arguments": call.arguments, "kind": call.kind}
    return described | ({"server": call.server} if call.server else {})


def thought_to_dict(thought: Thought, labels: Sequence[str], *, signed: bool) -> dict[str, Any]:
    """Return a piece of reasoning.

    Args:
        thought: The reasoning.
        labels: The labels of the calls of its reply.
        signed: Whether the agent is sent the signature.
    """
    before = None if thought.before is None else labels[thought.before]
    signature = thought.signature if signed else None
    described = {"id": thought.id, "text": thought.text, "signature": signature, "before": before}
    return {name: value for name, value in described.items() if value is not None}


def request_to_dict(request: Request) -> dict[str, Any]:
    """Return the fields of an approval request that the framework has set."""
    described = {
        "id": request.id,
        "call_id": request.call_id,
        "tool": request.tool,
        "arguments": request.arguments,
        "kind": request.kind,
        "server": request.server,
        "agent": request.agent,
    }
    return {name: value for name, value in described.items() if value is not None}


def describe_error(error: BaseException) -> list[str]:
    """Return the type of an error (the original one if it is remote) and its message."""
    name = getattr(error, "original_type", None) or type(error).__name__
    return [name, read_message(error)[:MAX_ERROR_LENGTH]]
