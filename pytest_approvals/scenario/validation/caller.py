"""Mistakes in the caller's script."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import CallOccurrence
from pytest_approvals.scenario.model import (
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    ScriptedDecision,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    TrimStep,
    TurnStep,
)
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.validation.model import describe_unknown_tool, find_edited_tool
from pytest_approvals.scenario.validation.tools import validate_arguments, validate_parameters
from pytest_approvals.scenario.vocabulary import AT_MODEL
from pytest_approvals.yaml_files import Diagnostic, KeyPath, with_opt_in_hint


def validate_caller(view: ScenarioIndex) -> Iterator[Diagnostic]:
    """Gives the mistakes of the caller's steps and answers."""
    steps = view.scenario.caller
    if steps is not None and not steps:
        yield Diagnostic(("caller",), "the caller does nothing; leave it out, and the oracle answers until the end")
    for answer, path in view.answers():
        yield from _validate_decision(view, answer, path)
    for step, path in view.steps():
        yield from _validate_step(step, path)
    yield from _validate_saves(view)
    yield from _validate_disconnects(view)
    yield from _validate_tool_changes(view)
    yield from _validate_signals(view)
    for k, step in enumerate((steps or ())[:-1]):
        if isinstance(step, LeaveStep):
            yield Diagnostic(("caller", k + 1), "the caller left in the step before; nothing can follow")


# --- answers ----------------------------------------------------------------------------------------------------------


def _validate_decision(view: ScenarioIndex, answer: ScriptedDecision, path: KeyPath) -> Iterator[Diagnostic]:
    about = [answer.label is not None, answer.unknown_id is not None, answer.malformed_address]
    if sum(about) != 1:
        yield Diagnostic(path, "an answer is about one thing: a label, an unknown id, or a malformed address")
    if answer.label is not None:
        path = (*path, answer.label)
        yield from view.unknown_label(answer.label, path, "the answer is about")
    if answer.verdict == "edit":
        yield from _validate_edit(view, answer, path)
    elif answer.arguments is not None or answer.tool is not None:
        yield Diagnostic(path, f"only an edit has other arguments or another tool, not {answer.verdict!r}")
    shown = answer.shows is not None or answer.shows_tool is not None
    if shown and answer.malformed_address:
        yield Diagnostic((*path, "shows"), "a malformed address is no request that could show something")
    if answer.reason is not None and answer.verdict not in ("reject", "never"):
        yield Diagnostic(path, f"only a rejection has a reason, not {answer.verdict!r}")


def _validate_edit(view: ScenarioIndex, answer: ScriptedDecision, path: KeyPath) -> Iterator[Diagnostic]:
    if answer.arguments is None:
        yield Diagnostic(path, "an edit says all arguments that the call shall have: {edit: {...}}")
        return
    if view.attached:
        return
    # Two scripts of the main agent may have a call with this label; the edit has to fit one of them.
    found = [list(_validate_edit_of(view, answer, one, path)) for one in view.calls if one.label == answer.label]
    if all(found):
        yield from found[0] if found else ()


def _validate_edit_of(
    view: ScenarioIndex, answer: ScriptedDecision, one: CallOccurrence, path: KeyPath
) -> Iterator[Diagnostic]:
    tool = find_edited_tool(view.scenario, one, answer)
    if tool is not None:
        yield from validate_arguments(answer.arguments or {}, tool, (*path, "edit"), invalid=answer.invalid)
    elif not answer.unknown_tool and not one.call.unknown_tool:
        what = describe_unknown_tool(view, one.agent, answer.tool or one.call.tool)
        yield Diagnostic((*path, "tool"), with_opt_in_hint(what, "unknown_tool"))


# --- steps ------------------------------------------------------------------------------------------------------------


def _validate_step(step: Step, path: KeyPath) -> Iterator[Diagnostic]:
    match step:
        case LetOracleStep(rounds=int(rounds)) if rounds < 1:
            yield Diagnostic((*path, "oracle"), f"{rounds} rounds of the oracle mean nothing; 1 is the least")
        case TrimStep(keep=keep) if keep < 1:
            yield Diagnostic((*path, "trim"), f"a history of {keep} messages is none; 1 is the least")
        case RewriteStep(old=old, new=new) if not old or old == new:
            yield Diagnostic((*path, "rewrite"), f"{new!r} in place of {old!r} changes nothing")
        case StageStep(answers=()):
            yield Diagnostic((*path, "stage"), "there is nothing to stage; give answers by label")
        case TogetherStep(steps=steps) if len(steps) < 2 or not any(isinstance(one, TurnStep) for one in steps):
            yield Diagnostic((*path, "together"), "two or more steps can be simultaneous, one of them a turn at least")


def _validate_saves(view: ScenarioIndex) -> Iterator[Diagnostic]:
    made: dict[str, list[str]] = {}
    for step, path in view.steps():
        if isinstance(step, SaveStep):
            if step.name in made.setdefault(step.session, []):
                yield Diagnostic((*path, "save"), f"a save before this one is called {step.name!r}, too")
            made[step.session].append(step.name)
        elif isinstance(step, RestoreStep):
            names = made.get(step.session, [])
            if step.name not in names:
                what = f"no save before this step is called {step.name!r}{suggest_name(step.name, names)}"
                yield Diagnostic((*path, "restore"), what)


def _validate_disconnects(view: ScenarioIndex) -> Iterator[Diagnostic]:
    """Gives the mistakes of the places at which the caller hangs up."""
    for step, path in view.steps():
        place = step.hangs_up if isinstance(step, TurnStep) else None
        if place is None or place == AT_MODEL:
            continue
        word, _, label = place.partition(" ")
        if word == "started" and label:
            yield from view.unknown_label(label, (*path, "hangs_up"), "the caller hangs up in")
        else:
            near = suggest_name(word, (AT_MODEL, "started"))
            yield Diagnostic(
                (*path, "hangs_up"), f"a caller hangs up at 'model' or 'started LABEL', not {place!r}{near}"
            )


def _validate_tool_changes(view: ScenarioIndex) -> Iterator[Diagnostic]:
    if view.attached:
        return
    names = [tool.key for tool in view.scenario.tools]
    held_back = view.scenario.held_back
    for k, name in enumerate(held_back):
        if name not in names:
            yield Diagnostic(("held_back", k), f"no tool is called {name!r}{suggest_name(name, names)}")
    given: set[str] = set()
    for step, path in view.steps():
        if isinstance(step, RestartStep):
            given.update(step.with_tools)
            yield from _validate_restart(step, names, held_back, (*path, "restart"))
            yield from _validate_new_parameters(view, step, (*path, "restart", "parameters"))
    for k, name in enumerate(held_back):
        if name in names and name not in given:
            yield Diagnostic(
                ("held_back", k), f"{name!r} is held back for ever; `restart: {{with: [{name}]}}` gives it"
            )


def _validate_restart(
    step: RestartStep, names: list[str], held_back: tuple[str, ...], path: KeyPath
) -> Iterator[Diagnostic]:
    for k, name in enumerate(step.without):
        if name not in names:
            yield Diagnostic((*path, "without", k), f"no tool is called {name!r}{suggest_name(name, names)}")
    for k, name in enumerate(step.with_tools):
        if name not in held_back:
            what = f"{name!r} is not held back, so a restart cannot add it{suggest_name(name, held_back)}"
            yield Diagnostic((*path, "with", k), what)


def _validate_new_parameters(view: ScenarioIndex, step: RestartStep, path: KeyPath) -> Iterator[Diagnostic]:
    tools = {tool.key: tool for tool in view.scenario.tools}
    for name, parameters in step.parameters.items():
        tool = tools.get(name)
        if tool is None:
            yield Diagnostic((*path, name), f"no tool is called {name!r}{suggest_name(name, tools)}")
        elif tool.runs is not None or tool.hands_over_to is not None:
            yield Diagnostic((*path, name), f"{name!r} leads to another agent; its parameters do not change")
        else:
            yield from validate_parameters(parameters, (*path, name))


def _validate_signals(view: ScenarioIndex) -> Iterator[Diagnostic]:
    waits = {signal for signal in _awaited_signals(view) if signal is not None}
    for step, path in view.steps():
        if isinstance(step, SignalStep) and step.name not in waits:
            yield Diagnostic(
                (*path, "signal"), f"nobody waits for the signal {step.name!r}{suggest_name(step.name, waits)}"
            )


def _awaited_signals(view: ScenarioIndex) -> Iterator[str | None]:
    for tool in view.scenario.tools:
        yield getattr(tool.approval, "waits_for", None)
        for behaviours in (tool.behaviours, *tool.per_call.values()):
            yield from (behaviour.waits_for for behaviour in behaviours)
