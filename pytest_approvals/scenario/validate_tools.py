"""Mistakes in the tools of a scenario: their parameters, conditions and behaviours."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.conditions import Condition
from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.errors import nearest
from pytest_approvals.scenario.labels import agents_of
from pytest_approvals.scenario.mistakes import Mistake, Path
from pytest_approvals.scenario.parts import Behaviour, Signal, Tool
from pytest_approvals.scenario.validate_arguments import fits, kind_of
from pytest_approvals.scenario.view import View
from pytest_approvals.scenario.words import PARAMETER_TYPES

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_COMPARISONS = ("greater_than", "less_than", "equals", "starts_with", "one_of")


def tool_mistakes(view: View) -> Iterator[Mistake]:
    """Gives the mistakes of the tools."""
    seen: set[tuple[str, str, str | None]] = set()
    for tool in view.scenario.tools:
        path = view.tool_path(tool)
        names = {(tool.agent, tool.name, ""), (tool.agent, tool.visible_name, tool.server)}
        if names & seen:
            yield Mistake(path, f"the agent {tool.agent!r} has two tools that are called {tool.visible_name!r}")
        seen |= names
        yield from _identity(view, tool, path)
        yield from parameter_mistakes(tool.parameters, (*path, "parameters"))
        if isinstance(tool.approval, Condition):
            yield from _condition(view, tool.approval, tool, (*path, "approval"))
        yield from _behaviours(view, tool.behaviours, tool, (*path, "does"))
        yield from _per_call(view, tool, (*path, "calls"))


def _identity(view: View, tool: Tool, path: Path) -> Iterator[Mistake]:
    agents = agents_of(view.scenario)
    for name in sorted({tool.name, tool.visible_name}):
        if not _NAME.fullmatch(name):
            yield Mistake(path, f"{name!r} cannot be the name of a tool: letters, digits, _ and -, 64 at most")
    if tool.agent not in agents:
        yield Mistake((*path, "agent"), f"no agent is called {tool.agent!r}{nearest(tool.agent, agents)}")
    if tool.kind == "function" and tool.server is not None:
        yield Mistake((*path, "server"), "a tool of kind function has no server; say `kind: mcp` or `kind: hosted_mcp`")
    if tool.kind != "function" and tool.server is None:
        yield Mistake((*path, "kind"), f"a tool of kind {tool.kind} needs the server that offers it: `server: NAME`")
    if tool.runs is not None:
        yield from _runs(view, tool, path)
    if tool.hands_over_to is not None:
        yield from _hands_over(tool, path)


def _hands_over(tool: Tool, path: Path) -> Iterator[Mistake]:
    what = f"{tool.name!r} hands over to {tool.hands_over_to!r}"
    if tool.hands_over_to == tool.agent:
        yield Mistake((*path, "hands_over_to"), f"{what}, the agent that has it")
    if tool.runs is not None:
        yield Mistake((*path, "runs"), f"{what}, so it cannot run an agent, too")
    if tool.parameters:
        yield Mistake((*path, "parameters"), f"{what}, and such a tool has no parameters")
    if tool.behaviours != (Behaviour(),) or tool.per_call:
        yield Mistake(path, f"{what}, and does nothing else; give it no other behaviour")
    if tool.kind != "function":
        yield Mistake((*path, "kind"), f"{what}; such a tool is of kind function, not {tool.kind}")


def _runs(view: View, tool: Tool, path: Path) -> Iterator[Mistake]:
    others = [agent for agent in view.scenario.agents if agent != MAIN]
    if tool.runs not in others:
        what = f"{tool.name!r} runs the agent {tool.runs!r}, which has no script{nearest(str(tool.runs), others)}"
        yield Mistake((*path, "runs"), what)
    if list(tool.parameters.items()) != [("input", Parameter())]:
        yield Mistake((*path, "parameters"), "a tool that runs an agent has one parameter, `input: string`")
    if tool.behaviours != (Behaviour(),) or tool.per_call:
        yield Mistake(path, f"{tool.name!r} runs an agent, so that agent's script says what it does; give it no other")
    if tool.kind != "function":
        yield Mistake((*path, "kind"), f"a tool that runs an agent is of kind function, not {tool.kind}")


def parameter_mistakes(parameters: Mapping[str, Parameter], path: Path) -> Iterator[Mistake]:
    """Gives the mistakes of the parameters of a tool, which stand at *path*."""
    for name, parameter in parameters.items():
        place = (*path, name)
        if not name.isidentifier() or keyword.iskeyword(name):
            yield Mistake(place, f"{name!r} cannot be the name of a parameter: it must be a name in Python")
        if parameter.type not in PARAMETER_TYPES:
            what = f"no type of a parameter is called {parameter.type!r}{nearest(parameter.type, PARAMETER_TYPES)}"
            yield Mistake(place, what)
        elif parameter.default is not None and not fits(parameter.type, parameter.default):
            given = kind_of(parameter.default)
            yield Mistake((*place, "default"), f"the default of {name!r} is {given}; its type is {parameter.type}")
        if parameter.required and parameter.default is not None:
            yield Mistake((*place, "required"), f"{name!r} has a default, so it cannot be required")


# --- conditions -------------------------------------------------------------------------------------------------------


def _condition(view: View, condition: Condition, tool: Tool, path: Path) -> Iterator[Mistake]:
    if condition.waits_for is not None:
        yield from _signal(view, condition.waits_for, (*path, "waits_for"))
    compared = [name for name in _COMPARISONS if getattr(condition, name) not in (None, ())]
    if condition.raises is not None or condition.answers:
        if compared or (condition.raises is not None and condition.answers):
            yield Mistake(path, "a condition compares an argument, answers from a list, or raises: one of the three")
        return
    if len(compared) > 1:
        yield Mistake((*path, compared[1]), f"a condition makes one comparison, not {' and '.join(compared)}")
    yield from _compared_argument(condition, compared, tool, path)


def _compared_argument(condition: Condition, compared: list[str], tool: Tool, path: Path) -> Iterator[Mistake]:
    if condition.argument is None:
        yield Mistake(path, f"the condition does not say which argument it compares; write `argument: {_one_of(tool)}`")
    elif condition.argument not in tool.parameters:
        what = f"{condition.argument!r} is no parameter of {tool.name}{nearest(condition.argument, tool.parameters)}"
        yield Mistake((*path, "argument"), what)
    elif {"greater_than", "less_than"} & set(compared):
        kind = tool.parameters[condition.argument].type
        if kind not in ("integer", "number"):
            yield Mistake((*path, compared[0]), f"{condition.argument!r} is of type {kind} and has no size")


def _one_of(tool: Tool) -> str:
    return next(iter(tool.parameters), "NAME")


# --- behaviours -------------------------------------------------------------------------------------------------------


def _per_call(view: View, tool: Tool, path: Path) -> Iterator[Mistake]:
    # An edit can bring another tool to a call, so that its own behaviour for that call makes sense, too.
    edited = {answer.label for answer, _ in view.answers() if answer.tool == tool.visible_name}
    own = {one.label for one in view.calls if (one.agent, one.call.tool) == (tool.agent, tool.name)} | edited
    for label, behaviours in tool.per_call.items():
        if label not in own:
            what = f"no script makes a call {label!r} of {tool.name}{nearest(label, filter(None, own))}"
            yield Mistake((*path, label), what)
        yield from _behaviours(view, behaviours, tool, (*path, label))


def _behaviours(view: View, behaviours: tuple[Behaviour, ...], tool: Tool, path: Path) -> Iterator[Mistake]:
    if not behaviours:
        yield Mistake(path, f"{tool.name!r} does nothing at all; a tool returns or raises")
    for k, behaviour in enumerate(behaviours):
        if behaviour.waits_for is not None:
            yield from _signal(view, behaviour.waits_for, (*path, k, "waits_for"))
        if behaviour.asks_again is not None and behaviour.raises is not None:
            yield Mistake((*path, k, "raises"), "an execution that asks again ends there; what follows is the next one")
        yield from _placeholders(behaviour.returns, tool, (*path, k, "returns"))
    if behaviours and behaviours[-1].asks_again is not None:
        what = "asks_again comes last, so the call would ask for ever; say what it does after the second approval"
        yield Mistake((*path, len(behaviours) - 1, "asks_again"), what)


def _placeholders(value: Any, tool: Tool, path: Path) -> Iterator[Mistake]:
    match value:
        case str():
            for name in _PLACEHOLDER.findall(value):
                if name not in tool.parameters:
                    yield Mistake(path, f"{{{name}}} is no parameter of {tool.name}{nearest(name, tool.parameters)}")
        case Mapping():
            for inner in value.values():
                yield from _placeholders(inner, tool, path)
        case list() | tuple():
            for inner in value:
                yield from _placeholders(inner, tool, path)


def _signal(view: View, name: str, path: Path) -> Iterator[Mistake]:
    word, _, label = name.partition(" ")
    if word in ("started", "ended") and label:
        yield from view.unknown_label(label, path, f"`{word}` waits for")
        return
    given = {step.name for step, _ in view.steps() if isinstance(step, Signal)}
    if name not in given:
        what = f"nobody gives the signal {name!r}{nearest(name, given)}; a step `signal: {name}` would"
        yield Mistake(path, what)
