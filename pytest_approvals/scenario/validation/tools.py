"""Validation of tools (parameters, conditions, behaviours) and of the arguments of their calls."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import list_agents
from pytest_approvals.scenario.model import SignalStep, Tool, ToolBehaviour
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.vocabulary import ANNOTATIONS, ELICITED_TYPES, PARAMETER_TYPES
from pytest_approvals.yaml_files import Diagnostic, KeyPath, with_opt_in_hint


def matches_type(kind: str, value: Any) -> bool:
    """Return whether *value* has that JSON Schema type."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            # `bool` is a subclass of `int`, but a different type in JSON.
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "array":
            return isinstance(value, (list, tuple))
    return isinstance(value, Mapping)


def describe_argument(value: Any) -> str:
    """Return a value with its type, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {value!r}"
        case Mapping():
            return "an object"
    return "an array"


def find_misfits(arguments: Mapping[str, Any], tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each argument that does not fit the parameters of *tool*."""
    for name, value in arguments.items():
        parameter = tool.parameters.get(name)
        if parameter is None:
            message = f"unknown parameter {name!r} of {tool.name}{suggest_name(name, tool.parameters)}"
            yield Diagnostic((*path, name), message)
        elif not matches_type(parameter.type, value):
            message = f"{name!r} of {tool.name} is of type {parameter.type}, not {describe_argument(value)}"
            yield Diagnostic((*path, name), message)
    for name, parameter in tool.parameters.items():
        if parameter.required and name not in arguments:
            yield Diagnostic(path, f"the argument {name!r} of {tool.name} is missing")


def validate_arguments(
    arguments: Mapping[str, Any], tool: Tool, path: KeyPath, *, invalid: bool
) -> Iterator[Diagnostic]:
    """Yield the first misfit of arguments, or the diagnostic of fitting ones that are marked *invalid*."""
    misfits = list(find_misfits(arguments, tool, path))
    if invalid and not misfits:
        yield Diagnostic(path, f"these arguments fit {tool.name}; leave out `invalid: true`")
    elif misfits and not invalid:
        yield Diagnostic(misfits[0].path, with_opt_in_hint(misfits[0].message, "invalid"))


def canonical_arguments(arguments: Mapping[str, Any] | str, tool: Tool | None) -> str:
    """Return arguments, with defaults, as text that is equal for equal arguments."""
    if isinstance(arguments, str):
        return arguments
    parameters = tool.parameters if tool is not None else {}
    defaults = {name: parameter.default for name, parameter in parameters.items() if parameter.default is not None}
    return json.dumps({**defaults, **arguments}, sort_keys=True, default=repr)


_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_COMPARISONS = ("greater_than", "less_than", "equals", "starts_with", "one_of")


def validate_tools(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the tools."""
    seen: set[tuple[str, str, str | None]] = set()
    for tool in index.scenario.tools:
        path = index.tool_path(tool)
        # Two servers may offer tools of one visible name; the scenario still needs a name for each.
        names = {(tool.agent, tool.name, ""), (tool.agent, tool.visible_name, tool.server)}
        if names & seen:
            yield Diagnostic(path, f"the agent {tool.agent!r} has two tools that are called {tool.visible_name!r}")
        seen |= names
        yield from _validate_identity(index, tool, path)
        yield from validate_parameters(tool.parameters, (*path, "parameters"))
        if isinstance(tool.approval, Condition):
            yield from _validate_condition(index, tool.approval, tool, (*path, "approval"))
        yield from _validate_behaviours(index, tool.behaviours, tool, (*path, "does"))
        own = {call.label for call in index.calls if (call.agent, call.call.tool) == (tool.agent, tool.name)}
        yield from _validate_own_end(tool.behaviours, own - tool.per_call.keys(), (*path, "does"))
        yield from _validate_per_call(index, tool, (*path, "calls"))


def _validate_identity(index: ScenarioIndex, tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    agents = list_agents(index.scenario)
    for name in sorted({tool.name, tool.visible_name}):
        if not _TOOL_NAME.fullmatch(name):
            yield Diagnostic(path, f"invalid tool name {name!r}: expected letters, digits, _ and -, at most 64")
    if tool.agent not in agents:
        yield Diagnostic((*path, "agent"), f"unknown agent {tool.agent!r}{suggest_name(tool.agent, agents)}")
    if tool.kind == "function" and tool.server is not None:
        yield Diagnostic(
            (*path, "server"), "a tool of kind function has no server; say `kind: mcp` or `kind: hosted_mcp`"
        )
    if tool.kind != "mcp" and tool.annotations:
        yield Diagnostic((*path, "annotations"), f"a tool of kind {tool.kind} has no annotations; say `kind: mcp`")
    for key in ("structured_only", "misfits_are_errors"):
        if tool.kind != "mcp" and getattr(tool, key):
            yield Diagnostic((*path, key), f"a tool of kind {tool.kind} is answered by no server; say `kind: mcp`")
    if tool.kind != "mcp" and tool.by_annotations:
        message = f"a tool of kind {tool.kind} has no annotations to decide by; say `kind: mcp`"
        yield Diagnostic((*path, "approval"), message)
    for name in tool.annotations:
        if name not in ANNOTATIONS:
            yield Diagnostic((*path, "annotations"), f"unknown annotation {name!r}{suggest_name(name, ANNOTATIONS)}")
    if tool.kind != "function" and tool.server is None:
        yield Diagnostic((*path, "kind"), f"a tool of kind {tool.kind} needs the server that offers it: `server: NAME`")
    if tool.runs is not None:
        yield from _validate_agent_tool(index, tool, path)
    if tool.hands_over_to is not None:
        yield from _validate_hand_over(tool, path)


def _validate_hand_over(tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    message = f"{tool.name!r} hands over to {tool.hands_over_to!r}"
    if tool.hands_over_to == tool.agent:
        yield Diagnostic((*path, "hands_over_to"), f"{message}, the agent that has it")
    if tool.runs is not None:
        yield Diagnostic((*path, "runs"), f"{message}, so it cannot run an agent, too")
    if tool.parameters:
        yield Diagnostic((*path, "parameters"), f"{message}, and such a tool has no parameters")
    if tool.behaviours != (ToolBehaviour(),) or tool.per_call:
        yield Diagnostic(path, f"{message}, and does nothing else; give it no other behaviour")
    if tool.kind != "function":
        yield Diagnostic((*path, "kind"), f"{message}; such a tool is of kind function, not {tool.kind}")


def _validate_agent_tool(index: ScenarioIndex, tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    others = [agent for agent in index.scenario.agents if agent != MAIN]
    if tool.runs not in others:
        message = (
            f"{tool.name!r} runs the agent {tool.runs!r}, which has no script{suggest_name(str(tool.runs), others)}"
        )
        yield Diagnostic((*path, "runs"), message)
    if list(tool.parameters.items()) != [("input", Parameter())]:
        yield Diagnostic((*path, "parameters"), "a tool that runs an agent has one parameter, `input: string`")
    if tool.behaviours != (ToolBehaviour(),) or tool.per_call:
        yield Diagnostic(
            path, f"{tool.name!r} runs an agent, so that agent's script says what it does; give it no other"
        )
    if tool.kind != "function":
        yield Diagnostic((*path, "kind"), f"a tool that runs an agent is of kind function, not {tool.kind}")


def validate_parameters(parameters: Mapping[str, Parameter], path: KeyPath) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the parameters at *path*."""
    for name, parameter in parameters.items():
        parameter_path = (*path, name)
        if not name.isidentifier() or keyword.iskeyword(name):
            yield Diagnostic(parameter_path, f"invalid parameter name {name!r}: must be a Python identifier")
        if parameter.type not in PARAMETER_TYPES:
            message = f"unknown parameter type {parameter.type!r}{suggest_name(parameter.type, PARAMETER_TYPES)}"
            yield Diagnostic(parameter_path, message)
        elif parameter.default is not None and not matches_type(parameter.type, parameter.default):
            described = describe_argument(parameter.default)
            yield Diagnostic(
                (*parameter_path, "default"), f"the default of {name!r} is {described}; its type is {parameter.type}"
            )
        if parameter.required and parameter.default is not None:
            yield Diagnostic((*parameter_path, "required"), f"{name!r} has a default, so it cannot be required")


# --- conditions -------------------------------------------------------------------------------------------------------


def _validate_condition(index: ScenarioIndex, condition: Condition, tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    if condition.waits_for is not None:
        yield from _validate_signal(index, condition.waits_for, (*path, "waits_for"))
    compared = [name for name in _COMPARISONS if getattr(condition, name) not in (None, ())]
    if condition.raises is not None or condition.answers:
        if compared or (condition.raises is not None and condition.answers):
            yield Diagnostic(path, "a condition compares an argument, answers from a list, or raises: one of the three")
        return
    if len(compared) > 1:
        yield Diagnostic((*path, compared[1]), f"a condition makes one comparison, not {' and '.join(compared)}")
    yield from _validate_compared_argument(condition, compared, tool, path)


def _validate_compared_argument(
    condition: Condition, compared: list[str], tool: Tool, path: KeyPath
) -> Iterator[Diagnostic]:
    if condition.argument is None:
        yield Diagnostic(
            path, f"the condition does not say which argument it compares; write `argument: {_first_parameter(tool)}`"
        )
    elif condition.argument not in tool.parameters:
        hint = suggest_name(condition.argument, tool.parameters)
        message = f"unknown parameter {condition.argument!r} of {tool.name}{hint}"
        yield Diagnostic((*path, "argument"), message)
    elif {"greater_than", "less_than"} & set(compared):
        kind = tool.parameters[condition.argument].type
        if kind not in ("integer", "number"):
            yield Diagnostic((*path, compared[0]), f"{condition.argument!r} is of type {kind} and has no size")


def _first_parameter(tool: Tool) -> str:
    return next(iter(tool.parameters), "NAME")


# --- behaviours -------------------------------------------------------------------------------------------------------


def _validate_per_call(index: ScenarioIndex, tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    # An edit can bring another tool to a call, so that its own behaviour for that call makes sense, too.
    edited = {decision.label for decision, _ in index.decisions() if decision.tool == tool.visible_name}
    own = {call.label for call in index.calls if (call.agent, call.call.tool) == (tool.agent, tool.name)} | edited
    for label, behaviours in tool.per_call.items():
        if label not in own:
            message = f"no script makes a call {label!r} of {tool.name}{suggest_name(label, filter(None, own))}"
            yield Diagnostic((*path, label), message)
        yield from _validate_behaviours(index, behaviours, tool, (*path, label))
        yield from _validate_own_end(behaviours, {label}, (*path, label))


def _validate_own_end(
    behaviours: tuple[ToolBehaviour, ...], labels: Collection[str], path: KeyPath
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the first execution of one of those calls waits for its own end."""
    word, _, label = ((behaviours[0].waits_for if behaviours else None) or "").partition(" ")
    if word == "ended" and label in labels:
        message = f"{label} waits for its own end, so that it never ends; name another call"
        yield Diagnostic((*path, 0, "waits_for"), message)


def _validate_behaviours(
    index: ScenarioIndex, behaviours: tuple[ToolBehaviour, ...], tool: Tool, path: KeyPath
) -> Iterator[Diagnostic]:
    if not behaviours:
        yield Diagnostic(path, f"{tool.name!r} has no behaviour; a tool returns or raises")
    for k, behaviour in enumerate(behaviours):
        if behaviour.waits_for is not None:
            yield from _validate_signal(index, behaviour.waits_for, (*path, k, "waits_for"))
        if behaviour.asks_again is not None and behaviour.raises is not None:
            yield Diagnostic(
                (*path, k, "raises"), "an execution that asks again ends there; what follows is the next one"
            )
        fields = {*tool.parameters}
        if behaviour.elicits is not None:
            yield from _validate_elicitation(behaviour, tool, (*path, k, "elicits"))
            fields |= {*behaviour.elicits.form}
        yield from _validate_placeholders(behaviour.returns, tool, fields, (*path, k, "returns"))
    if behaviours and behaviours[-1].asks_again is not None:
        message = "asks_again must not come last; say what the call does after the second approval"
        yield Diagnostic((*path, len(behaviours) - 1, "asks_again"), message)


def _validate_elicitation(behaviour: ToolBehaviour, tool: Tool, path: KeyPath) -> Iterator[Diagnostic]:
    asked = behaviour.elicits
    assert asked is not None
    if tool.kind != "mcp":
        yield Diagnostic(path, f"a tool of kind {tool.kind} does not elicit, MCP servers do; say `kind: mcp`")
    if bool(asked.form) == (asked.url is not None):
        yield Diagnostic(path, "a server asks for a form or for an address to be opened: say `form` or `url`")
    if behaviour.asks_again is not None:
        yield Diagnostic(path, "an execution that asks again ends there; what it elicits belongs to the next one")
    for name, parameter in asked.form.items():
        if parameter.type not in ELICITED_TYPES:
            message = f"a form has no field of type {parameter.type}; valid: {', '.join(ELICITED_TYPES)}"
            yield Diagnostic((*path, "form", name), message)
        if name in tool.parameters:
            message = f"{name!r} is a parameter of {tool.name}, too; a field needs a name of its own"
            yield Diagnostic((*path, "form", name), message)
    yield from _validate_placeholders(asked.message, tool, {*tool.parameters}, (*path, "message"))


def _validate_placeholders(value: Any, tool: Tool, known: set[str], path: KeyPath) -> Iterator[Diagnostic]:
    match value:
        case str():
            for name in _PLACEHOLDER.findall(value):
                if name not in known:
                    yield Diagnostic(path, f"unknown parameter {{{name}}} of {tool.name}{suggest_name(name, known)}")
        case Mapping():
            for inner in value.values():
                yield from _validate_placeholders(inner, tool, known, path)
        case list() | tuple():
            for inner in value:
                yield from _validate_placeholders(inner, tool, known, path)


def _validate_signal(index: ScenarioIndex, name: str, path: KeyPath) -> Iterator[Diagnostic]:
    word, _, label = name.partition(" ")
    if word in ("started", "ended") and label:
        yield from index.validate_label(label, path, f"`{word}` waits for")
        return
    signals = {step.name for step, _ in index.steps() if isinstance(step, SignalStep)}
    if name not in signals:
        message = f"no step gives the signal {name!r}{suggest_name(name, signals)}; add a step `signal: {name}`"
        yield Diagnostic(path, message)
