"""Validation of the caller's script: steps and decisions."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import CallOccurrence, find_tool, list_agents
from pytest_approvals.scenario.model import (
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    ScriptedDecision,
    ScriptedElicitation,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    TrimStep,
    TurnStep,
    session_names,
)
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.validation.model import describe_unknown_tool, find_edited_tool
from pytest_approvals.scenario.validation.tools import (
    describe_argument,
    matches_type,
    validate_arguments,
    validate_parameters,
)
from pytest_approvals.scenario.vocabulary import (
    ANNOTATIONS,
    AT_MODEL,
    AT_OUTCOME,
    AT_STREAM,
    AT_WRITE,
    CRASHES_IN_CALLS,
    STOPS_IN_CALLS,
)
from pytest_approvals.yaml_files import Diagnostic, KeyPath, with_opt_in_hint


def validate_caller(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the caller's steps and decisions."""
    steps = index.scenario.caller
    if steps is not None and not steps:
        yield Diagnostic(("caller",), "the caller does nothing; leave it out, and the oracle answers until the end")
    for decision, path in index.decisions():
        yield from _validate_decision(index, decision, path)
    for step, path in index.steps():
        yield from _validate_step(step, path)
    yield from _validate_saves(index)
    yield from _validate_places(index)
    yield from _validate_stops(index)
    yield from _validate_stored(index)
    yield from _validate_tool_changes(index)
    yield from _validate_signals(index)
    yield from _validate_elicitations(index)
    for k, step in enumerate((steps or ())[:-1]):
        if isinstance(step, LeaveStep):
            yield Diagnostic(("caller", k + 1), "the caller left in the step before; nothing can follow")


# --- decisions --------------------------------------------------------------------------------------------------------


def _validate_decision(index: ScenarioIndex, decision: ScriptedDecision, path: KeyPath) -> Iterator[Diagnostic]:
    targets = [decision.label is not None, decision.unknown_id is not None, decision.malformed_address]
    if sum(targets) != 1:
        yield Diagnostic(path, "an answer is about one thing: a label, an unknown id, or a malformed address")
    if decision.label is not None:
        path = (*path, decision.label)
        yield from index.validate_label(decision.label, path, "the answer is about")
    if decision.verdict == "edit":
        yield from _validate_edit(index, decision, path)
    elif decision.arguments is not None or decision.tool is not None:
        yield Diagnostic(path, f"only an edit has other arguments or another tool, not {decision.verdict!r}")
    is_tampered = decision.shows is not None or decision.shows_tool is not None
    if is_tampered and decision.malformed_address:
        yield Diagnostic((*path, "shows"), "a malformed address cannot show arguments or a tool")
    if decision.reason is not None and decision.verdict not in ("reject", "never"):
        yield Diagnostic(path, f"only a rejection has a reason, not {decision.verdict!r}")


def _validate_edit(index: ScenarioIndex, decision: ScriptedDecision, path: KeyPath) -> Iterator[Diagnostic]:
    if decision.arguments is None:
        yield Diagnostic(path, "an edit says all arguments that the call shall have: {edit: {...}}")
        return
    if index.attached:
        return
    # Two scripts of the main agent may have a call with this label; the edit has to fit one of them.
    diagnostics = [
        list(_validate_edit_of(index, decision, occurrence, path))
        for occurrence in index.calls
        if occurrence.label == decision.label
    ]
    if all(diagnostics):
        yield from diagnostics[0] if diagnostics else ()


def _validate_edit_of(
    index: ScenarioIndex, decision: ScriptedDecision, occurrence: CallOccurrence, path: KeyPath
) -> Iterator[Diagnostic]:
    tool = find_edited_tool(index.scenario, occurrence, decision)
    if tool is not None:
        yield from validate_arguments(decision.arguments or {}, tool, (*path, "edit"), invalid=decision.invalid)
    elif not decision.unknown_tool and not occurrence.call.unknown_tool:
        message = describe_unknown_tool(index, occurrence.agent, decision.tool or occurrence.call.tool)
        yield Diagnostic((*path, "tool"), with_opt_in_hint(message, "unknown_tool"))


# --- steps ------------------------------------------------------------------------------------------------------------


def _validate_step(step: Step, path: KeyPath) -> Iterator[Diagnostic]:
    match step:
        case LetOracleStep(rounds=int(rounds)) if rounds < 1:
            yield Diagnostic((*path, "oracle"), f"invalid number of rounds {rounds}: must be at least 1")
        case TrimStep(keep=keep) if keep < 1:
            yield Diagnostic((*path, "trim"), f"invalid number of messages {keep}: must be at least 1")
        case RewriteStep(old=old, new=new) if not old or old == new:
            yield Diagnostic((*path, "rewrite"), f"{new!r} in place of {old!r} changes nothing")
        case StageStep(answers=()):
            yield Diagnostic((*path, "stage"), "there is nothing to stage; give answers by label")
        case TogetherStep(steps=steps) if len(steps) < 2 or not any(isinstance(inner, TurnStep) for inner in steps):
            yield Diagnostic((*path, "together"), "two or more steps can be simultaneous, one of them a turn at least")


def _validate_saves(index: ScenarioIndex) -> Iterator[Diagnostic]:
    saved: dict[str, list[str]] = {}
    for step, path in index.steps():
        if isinstance(step, SaveStep):
            if step.name in saved.setdefault(step.session, []):
                yield Diagnostic((*path, "save"), f"duplicate save {step.name!r}")
            saved[step.session].append(step.name)
        elif isinstance(step, RestoreStep):
            names = saved.get(step.session, [])
            if step.name not in names:
                message = f"unknown save {step.name!r}{suggest_name(step.name, names)}"
                yield Diagnostic((*path, "restore"), message)


@dataclass(frozen=True, slots=True)
class _PlaceKey:
    """A key of a turn that names a place in it.

    Attributes:
        name: The key.
        what: What happens there, to begin a message with.
        in_calls: The first words of a place in a call.
        others: The other places.
    """

    name: str
    what: str
    in_calls: tuple[str, ...]
    others: tuple[str, ...]


_PLACE_KEYS = (
    _PlaceKey("hangs_up", "the caller hangs up", ("started",), (AT_MODEL,)),
    _PlaceKey("crashes", "the process is killed", CRASHES_IN_CALLS, (AT_MODEL, AT_STREAM, AT_WRITE, AT_OUTCOME)),
    _PlaceKey("stops", "the process is stopped", STOPS_IN_CALLS, (AT_MODEL,)),
    _PlaceKey("disk_full", "the disk is full", (AT_WRITE,), (AT_WRITE,)),
    _PlaceKey("fails_once", "a write fails", (AT_WRITE,), (AT_WRITE,)),
)


def _validate_places(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the points at which something happens to a turn."""
    for step, path in index.steps():
        for key in _PLACE_KEYS if isinstance(step, TurnStep) else ():
            place = getattr(step, key.name)
            if place is not None:
                yield from _validate_place(index, key, place, (*path, key.name))


def _validate_place(index: ScenarioIndex, key: _PlaceKey, place: str, path: KeyPath) -> Iterator[Diagnostic]:
    # Sessions share an agent object, and so its process.
    if key.name != "hangs_up" and len(session_names(index.scenario)) > 1:
        yield Diagnostic(path, f"{key.what} only in a scenario with one session")
    word, _, label = place.partition(" ")
    if place in key.others:
        return
    if word in key.in_calls and label:
        yield from index.validate_label(label, path, f"{key.what} in")
    else:
        valid = [*(f"'{each} LABEL'" for each in key.in_calls), *map(repr, key.others)]
        near = suggest_name(word, dict.fromkeys((*key.in_calls, *key.others)))
        expected = " or ".join([", ".join(valid[:-1]), valid[-1]])
        yield Diagnostic(path, f"{key.what} at {expected}, not {place!r}{near}")


def _validate_stops(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each turn whose process is stopped over nothing."""
    for k, step in enumerate(index.scenario.caller or ()):
        path: KeyPath = ("caller", k)
        if isinstance(step, TurnStep) and step.stops is not None:
            yield Diagnostic((*path, "stops"), "a process is stopped over other turns: put both into `together`")
        turns = (
            [(part, at) for at, part in enumerate(step.steps) if isinstance(part, TurnStep)]
            if isinstance(step, TogetherStep)
            else []
        )
        for part, at in turns[-1:]:
            if part.stops is not None:
                message = "no turn follows over which the process could be stopped; the last turn goes on"
                yield Diagnostic((*path, "together", at, "stops"), message)


def _validate_elicitations(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the answers to what servers ask in the middle of calls."""
    for step, path in index.steps():
        for label, answer in step.elicitations.items() if isinstance(step, TurnStep) else ():
            at = (*path, "elicitations", label)
            yield from index.validate_label(label, at, "the answer is about")
            occurrence = index.by_label.get(label)
            if occurrence is None or index.attached:
                continue
            tool = find_tool(index.scenario, occurrence.agent, occurrence.call.tool)
            behaviours = () if tool is None else tool.per_call.get(label) or tool.behaviours
            asked = [behaviour.elicits for behaviour in behaviours if behaviour.elicits is not None]
            if not asked:
                yield Diagnostic(at, f"the call {label!r} elicits nothing; its tool needs `elicits`")
            elif answer.action == "accept":
                yield from _validate_content(answer.content, asked[0], at)


def _validate_content(
    content: Mapping[str, Any] | None, asked: ScriptedElicitation, path: KeyPath
) -> Iterator[Diagnostic]:
    given = content or {}
    if asked.url is not None and content is not None:
        yield Diagnostic(path, "an address is opened or not, which has no content: write `accept`")
    for name in given if asked.url is None else ():
        if name not in asked.form:
            yield Diagnostic((*path, name), f"unknown field {name!r}{suggest_name(name, asked.form)}")
    for name, parameter in asked.form.items():
        if parameter.required and name not in given:
            yield Diagnostic(path, f"the field {name!r} is missing; write {{accept: {{{name}: ...}}}}")
        elif name in given and not matches_type(parameter.type, given[name]):
            message = f"{name!r} is of type {parameter.type}, not {describe_argument(given[name])}"
            yield Diagnostic((*path, name), message)


def _validate_stored(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each turn of which nothing can be lost, or before which nothing was stored."""
    has_begun = False
    for step, path in index.steps():
        if not isinstance(step, TurnStep):
            continue
        for key in ("loses", "reads"):
            if getattr(step, key) is not None and len(session_names(index.scenario)) > 1:
                yield Diagnostic((*path, key), f"a turn {key} what is stored only in a scenario with one session")
        if step.reads is not None and not has_begun:
            message = "nothing was stored before the first turn; let a later turn read the state before last"
            yield Diagnostic((*path, "reads"), message)
        has_begun = True


def _validate_tool_changes(index: ScenarioIndex) -> Iterator[Diagnostic]:
    if index.attached:
        return
    names = [tool.key for tool in index.scenario.tools]
    held_back = index.scenario.held_back
    for k, name in enumerate(held_back):
        if name not in names:
            yield Diagnostic(("held_back", k), f"unknown tool {name!r}{suggest_name(name, names)}")
    added: set[str] = set()
    names_of = {agent: {agent} for agent in list_agents(index.scenario)}
    for step, path in index.steps():
        if isinstance(step, RestartStep):
            added.update(step.with_tools)
            yield from _validate_restart(step, names, held_back, (*path, "restart"))
            yield from _validate_new_parameters(index, step, (*path, "restart", "parameters"))
            yield from _validate_new_names(step, names_of, (*path, "restart", "renamed"))
            yield from _validate_new_annotations(index, step, (*path, "restart", "annotations"))
    for k, name in enumerate(held_back):
        if name in names and name not in added:
            yield Diagnostic(
                ("held_back", k), f"{name!r} is held back and never added; add it with `restart: {{with: [{name}]}}`"
            )


def _validate_restart(
    step: RestartStep, names: list[str], held_back: tuple[str, ...], path: KeyPath
) -> Iterator[Diagnostic]:
    for k, name in enumerate(step.without):
        if name not in names:
            yield Diagnostic((*path, "without", k), f"unknown tool {name!r}{suggest_name(name, names)}")
    for k, name in enumerate(step.with_tools):
        if name not in held_back:
            message = f"{name!r} is not held back, so a restart cannot add it{suggest_name(name, held_back)}"
            yield Diagnostic((*path, "with", k), message)


def _validate_new_parameters(index: ScenarioIndex, step: RestartStep, path: KeyPath) -> Iterator[Diagnostic]:
    tools = {tool.key: tool for tool in index.scenario.tools}
    for name, parameters in step.parameters.items():
        tool = tools.get(name)
        if tool is None:
            yield Diagnostic((*path, name), f"unknown tool {name!r}{suggest_name(name, tools)}")
        elif tool.runs is not None or tool.hands_over_to is not None:
            yield Diagnostic((*path, name), f"{name!r} leads to another agent; its parameters do not change")
        else:
            yield from validate_parameters(parameters, (*path, name))


def _validate_new_names(step: RestartStep, names_of: dict[str, set[str]], path: KeyPath) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each new name that no agent can have; the others are added to what the agents had."""
    for agent, name in step.renamed.items():
        place = (*path, agent)
        if agent not in names_of:
            yield Diagnostic(place, f"unknown agent {agent!r}{suggest_name(agent, names_of)}")
            continue
        if any(name in names for other, names in names_of.items() if other != agent):
            yield Diagnostic(place, f"{name!r} is or was the name of another agent; an old request would be ambiguous")
        elif not name.isidentifier() or keyword.iskeyword(name):
            yield Diagnostic(place, f"{name!r} cannot be the name of an agent: it must be a name in Python")
        names_of[agent].add(name)


def _validate_new_annotations(index: ScenarioIndex, step: RestartStep, path: KeyPath) -> Iterator[Diagnostic]:
    tools = {tool.key: tool for tool in index.scenario.tools}
    for name, said in step.annotations.items():
        tool = tools.get(name)
        if tool is None:
            yield Diagnostic((*path, name), f"unknown tool {name!r}{suggest_name(name, tools)}")
        elif tool.kind != "mcp":
            yield Diagnostic((*path, name), f"a tool of kind {tool.kind} has no annotations; say `kind: mcp`")
        for annotation in said:
            if annotation not in ANNOTATIONS:
                message = f"unknown annotation {annotation!r}{suggest_name(annotation, ANNOTATIONS)}"
                yield Diagnostic((*path, name), message)


def _validate_signals(index: ScenarioIndex) -> Iterator[Diagnostic]:
    waits = {signal for signal in _awaited_signals(index) if signal is not None}
    for step, path in index.steps():
        if isinstance(step, SignalStep) and step.name not in waits:
            yield Diagnostic(
                (*path, "signal"), f"nothing waits for the signal {step.name!r}{suggest_name(step.name, waits)}"
            )


def _awaited_signals(index: ScenarioIndex) -> Iterator[str | None]:
    for tool in index.scenario.tools:
        yield getattr(tool.approval, "waits_for", None)
        yield from (behaviour.waits_for for behaviour in tool.all_behaviours)
