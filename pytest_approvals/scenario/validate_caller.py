"""Mistakes in the caller's script."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.labels import Occurrence
from pytest_approvals.scenario.mistakes import Mistake, Path, unless_meant
from pytest_approvals.scenario.parts import (
    Answer,
    Leave,
    LetOracle,
    Restart,
    Restore,
    Rewrite,
    Save,
    Signal,
    Stage,
    Step,
    Together,
    Trim,
    Turn,
)
from pytest_approvals.scenario.validate_arguments import judged
from pytest_approvals.scenario.validate_model import edited_tool, no_such_tool
from pytest_approvals.scenario.validate_tools import parameter_mistakes
from pytest_approvals.scenario.view import View
from pytest_approvals.scenario.words import AT_THE_MODEL


def caller_mistakes(view: View) -> Iterator[Mistake]:
    """Gives the mistakes of the caller's steps and answers."""
    steps = view.scenario.caller
    if steps is not None and not steps:
        yield Mistake(("caller",), "the caller does nothing; leave it out, and the oracle answers until the end")
    for answer, path in view.answers():
        yield from _answer(view, answer, path)
    for step, path in view.steps():
        yield from _step(step, path)
    yield from _saves(view)
    yield from _places(view)
    yield from _tools(view)
    yield from _signals(view)
    for k, step in enumerate((steps or ())[:-1]):
        if isinstance(step, Leave):
            yield Mistake(("caller", k + 1), "the caller left in the step before; nothing can follow")


# --- answers ----------------------------------------------------------------------------------------------------------


def _answer(view: View, answer: Answer, path: Path) -> Iterator[Mistake]:
    about = [answer.label is not None, answer.unknown_id is not None, answer.malformed_address]
    if sum(about) != 1:
        yield Mistake(path, "an answer is about one thing: a label, an unknown id, or a malformed address")
    if answer.label is not None:
        path = (*path, answer.label)
        yield from view.unknown_label(answer.label, path, "the answer is about")
    if answer.verdict == "edit":
        yield from _edit(view, answer, path)
    elif answer.arguments is not None or answer.tool is not None:
        yield Mistake(path, f"only an edit has other arguments or another tool, not {answer.verdict!r}")
    shown = answer.shows is not None or answer.shows_tool is not None
    if shown and answer.malformed_address:
        yield Mistake((*path, "shows"), "a malformed address is no request that could show something")
    if answer.reason is not None and answer.verdict not in ("reject", "never"):
        yield Mistake(path, f"only a rejection has a reason, not {answer.verdict!r}")


def _edit(view: View, answer: Answer, path: Path) -> Iterator[Mistake]:
    if answer.arguments is None:
        yield Mistake(path, "an edit says all arguments that the call shall have: {edit: {...}}")
        return
    if view.attached:
        return
    # Two scripts of the main agent may have a call with this label; the edit has to fit one of them.
    found = [list(_edit_of(view, answer, one, path)) for one in view.calls if one.label == answer.label]
    if all(found):
        yield from found[0] if found else ()


def _edit_of(view: View, answer: Answer, one: Occurrence, path: Path) -> Iterator[Mistake]:
    tool = edited_tool(view.scenario, one, answer)
    if tool is not None:
        yield from judged(answer.arguments or {}, tool, (*path, "edit"), invalid=answer.invalid)
    elif not answer.unknown_tool and not one.call.unknown_tool:
        what = no_such_tool(view, one.agent, answer.tool or one.call.tool)
        yield Mistake((*path, "tool"), unless_meant(what, "unknown_tool"))


# --- steps ------------------------------------------------------------------------------------------------------------


def _step(step: Step, path: Path) -> Iterator[Mistake]:
    match step:
        case LetOracle(rounds=int(rounds)) if rounds < 1:
            yield Mistake((*path, "oracle"), f"{rounds} rounds of the oracle mean nothing; 1 is the least")
        case Trim(keep=keep) if keep < 1:
            yield Mistake((*path, "trim"), f"a history of {keep} messages is none; 1 is the least")
        case Rewrite(old=old, new=new) if not old or old == new:
            yield Mistake((*path, "rewrite"), f"{new!r} in place of {old!r} changes nothing")
        case Stage(answers=()):
            yield Mistake((*path, "stage"), "there is nothing to stage; give answers by label")
        case Together(steps=steps) if len(steps) < 2 or not any(isinstance(one, Turn) for one in steps):
            yield Mistake((*path, "together"), "two or more steps can be simultaneous, one of them a turn at least")


def _saves(view: View) -> Iterator[Mistake]:
    made: dict[str, list[str]] = {}
    for step, path in view.steps():
        if isinstance(step, Save):
            if step.name in made.setdefault(step.session, []):
                yield Mistake((*path, "save"), f"a save before this one is called {step.name!r}, too")
            made[step.session].append(step.name)
        elif isinstance(step, Restore):
            names = made.get(step.session, [])
            if step.name not in names:
                what = f"no save before this step is called {step.name!r}{nearest(step.name, names)}"
                yield Mistake((*path, "restore"), what)


def _places(view: View) -> Iterator[Mistake]:
    """Gives the mistakes of the places at which the caller hangs up."""
    for step, path in view.steps():
        place = step.hangs_up if isinstance(step, Turn) else None
        if place is None or place == AT_THE_MODEL:
            continue
        word, _, label = place.partition(" ")
        if word == "started" and label:
            yield from view.unknown_label(label, (*path, "hangs_up"), "the caller hangs up in")
        else:
            near = nearest(word, (AT_THE_MODEL, "started"))
            yield Mistake((*path, "hangs_up"), f"a caller hangs up at 'model' or 'started LABEL', not {place!r}{near}")


def _tools(view: View) -> Iterator[Mistake]:
    if view.attached:
        return
    names = [tool.key for tool in view.scenario.tools]
    held_back = view.scenario.held_back
    for k, name in enumerate(held_back):
        if name not in names:
            yield Mistake(("held_back", k), f"no tool is called {name!r}{nearest(name, names)}")
    given: set[str] = set()
    for step, path in view.steps():
        if isinstance(step, Restart):
            given.update(step.with_tools)
            yield from _restart(step, names, held_back, (*path, "restart"))
            yield from _parameters(view, step, (*path, "restart", "parameters"))
    for k, name in enumerate(held_back):
        if name in names and name not in given:
            yield Mistake(("held_back", k), f"{name!r} is held back for ever; `restart: {{with: [{name}]}}` gives it")


def _restart(step: Restart, names: list[str], held_back: tuple[str, ...], path: Path) -> Iterator[Mistake]:
    for k, name in enumerate(step.without):
        if name not in names:
            yield Mistake((*path, "without", k), f"no tool is called {name!r}{nearest(name, names)}")
    for k, name in enumerate(step.with_tools):
        if name not in held_back:
            what = f"{name!r} is not held back, so a restart cannot add it{nearest(name, held_back)}"
            yield Mistake((*path, "with", k), what)


def _parameters(view: View, step: Restart, path: Path) -> Iterator[Mistake]:
    tools = {tool.key: tool for tool in view.scenario.tools}
    for name, parameters in step.parameters.items():
        tool = tools.get(name)
        if tool is None:
            yield Mistake((*path, name), f"no tool is called {name!r}{nearest(name, tools)}")
        elif tool.runs is not None or tool.hands_over_to is not None:
            yield Mistake((*path, name), f"{name!r} leads to another agent; its parameters do not change")
        else:
            yield from parameter_mistakes(parameters, (*path, name))


def _signals(view: View) -> Iterator[Mistake]:
    waits = {signal for signal in _awaited(view) if signal is not None}
    for step, path in view.steps():
        if isinstance(step, Signal) and step.name not in waits:
            yield Mistake((*path, "signal"), f"nobody waits for the signal {step.name!r}{nearest(step.name, waits)}")


def _awaited(view: View) -> Iterator[str | None]:
    for tool in view.scenario.tools:
        yield getattr(tool.approval, "waits_for", None)
        for behaviours in (tool.behaviours, *tool.per_call.values()):
            yield from (behaviour.waits_for for behaviour in behaviours)
