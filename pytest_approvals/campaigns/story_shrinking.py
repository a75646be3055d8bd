"""Shrinking of stories: everything is removed that a failure does not need.

A story shrinks as a value, not as the choices that it was drawn from, so a scenario of any origin can be shrunk. The
largest pieces are tried first, and the same story always shrinks to the same one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from pytest_approvals.agent_side.contract import MAIN, Limits, Parameter
from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.labels import find_tool, has_valid_labels
from pytest_approvals.scenario.model import (
    DEFAULT_PROMPT,
    Call,
    CancelStep,
    Expect,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    all_replies,
    all_steps,
)
from pytest_approvals.scenario.validation import validate_scenario
from pytest_approvals.scenario.vocabulary import TURN_KEYS

Predicate = Callable[[Scenario], bool]
"""Return whether a smaller story still fails as the whole one does."""

T = TypeVar("T")


def minimize(items: Sequence[T], still_fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return as few items as suffice: remove halves, then quarters, and so on to single ones.

    >>> minimize("abcdefgh", lambda left: "b" in left and "g" in left)
    ('b', 'g')
    """
    left = tuple(items)
    size = len(left)
    while size:
        size = (size + 1) // 2 if size > 1 else 1
        at = len(left) - size
        while at > -size:
            without = left[: max(at, 0)] + left[at + size :]
            if len(without) < len(left) and still_fails(without):
                left = without
            at -= size
        size = size // 2 if size > 1 else 0
    return left


def shrink_story(story: Scenario, still_fails: Predicate, *, max_trials: int) -> Scenario:
    """Return the smallest story that is found by repeating the passes until none of them changes anything.

    Args:
        story: A story that fails.
        still_fails: Whether a valid smaller one does.
        max_trials: How many of them are tried at most.
    """
    trials = 0
    tried: set[str] = set()

    def holds(candidate: Scenario) -> bool:
        nonlocal trials
        # A repeated pass proposes what an earlier one has seen fail.
        key = repr(candidate)
        if trials >= max_trials or key in tried or not is_valid(candidate):
            return False
        # A caller who decides before anything was said leaves most steps unplayed.
        if _begins_with_text(story) and not _begins_with_text(candidate):
            return False
        tried.add(key)
        trials += 1
        return still_fails(candidate)

    before: Scenario | None = None
    while story != before and trials < max_trials:
        before = story
        for shrink in _PASSES:
            story = shrink(story, holds)
    return story


def is_valid(story: Scenario) -> bool:
    """Return whether a story can be played as it is, and written to a file."""
    try:
        return has_valid_labels(story) and next(validate_scenario(story), None) is None
    except (LookupError, ValueError):
        # A removed agent or tool that others still name.
        return False


def _begins_with_text(story: Scenario) -> bool:
    first = next(iter(story.caller or ()), None)
    return first is None or (isinstance(first, TurnStep) and first.text is not None)


def _accept(story: Scenario, candidates: Iterable[Scenario], still_fails: Predicate) -> Scenario:
    """Return the first candidate that differs from the story and still fails, else the story."""
    return next((each for each in map(_tidy, candidates) if each != story and still_fails(each)), story)


def _tidy(story: Scenario) -> Scenario:
    """Return the story without what refers to removed calls, and without the turns that are then empty."""
    labels = {call.label for _, reply in all_replies(story) for call in reply.calls}
    asking = {
        call.label
        for agent, _, call in _calls(story)
        for tool in [find_tool(story, agent, call.tool)]
        if tool is not None and any(each.elicits for each in tool.per_call.get(call.label) or tool.behaviours)
    }

    def keeps(label: str | None) -> bool:
        return label is None or all(part in labels for part in label.split("/"))

    def tidy_step(step: Step) -> Step | None:
        match step:
            case TogetherStep():
                parts = tuple(part for part in map(tidy_step, step.steps) if isinstance(part, TurnStep | SignalStep))
                return TogetherStep(steps=parts) if len(parts) > 1 else next(iter(parts), None)
            case TurnStep() | StageStep():
                answers = tuple(answer for answer in step.answers if keeps(answer.label))
                if step.answers and not answers and (isinstance(step, StageStep) or step.text is None):
                    return None
                if isinstance(step, StageStep):
                    return replace(step, answers=answers)
                elicitations = {
                    label: answer
                    for label, answer in step.elicitations.items()
                    if keeps(label) and label.rpartition("/")[2] in asking
                }
                return replace(step, answers=answers, elicitations=elicitations)
        return step

    steps = None if story.caller is None else tuple(step for step in map(tidy_step, story.caller) if step is not None)
    tools = tuple(
        replace(tool, per_call={label: each for label, each in tool.per_call.items() if keeps(label)})
        for tool in story.tools
    )
    runs = story.expect.runs
    expect = story.expect if runs is None else replace(story.expect, runs=tuple(filter(keeps, runs)))
    return _mark_repeated_ids(replace(story, caller=steps, tools=tools, expect=expect))


def _mark_repeated_ids(story: Scenario) -> Scenario:
    """Return the story in which a call repeats an id if, and only if, an earlier one that is left has it."""

    def mark(replies: tuple[ScriptedReply, ...]) -> tuple[ScriptedReply, ...]:
        used: set[str | None] = set()
        marked = []
        for reply in replies:
            calls = []
            for call in reply.calls:
                calls.append(replace(call, repeats=call.id is not None and call.id in used))
                used.add(call.id)
            marked.append(replace(reply, calls=tuple(calls)))
        return tuple(marked)

    agents = {
        agent: Script(
            replies=mark(script.replies),
            by_prompt={prompt: mark(replies) for prompt, replies in script.by_prompt.items()},
        )
        for agent, script in story.agents.items()
    }
    return replace(story, agents=agents)


# --- removal ----------------------------------------------------------------------------------------------------------


def _drop_frame(story: Scenario, still_fails: Predicate) -> Scenario:
    """Remove what stands around the story."""
    plain: dict[str, Any] = {
        "only": {}, "vary": frozenset(), "oracles": (), "limits": Limits(), "options": {}, "servers": {},
        "equal_arguments": False, "requires": frozenset(), "reaches": {}, "expect": Expect(), "answer": {},
        "held_back": (), "prompt": DEFAULT_PROMPT, "about": "", "sources": (),
    }  # fmt: skip
    story = _accept(story, [replace(story, **plain)], still_fails)
    for name, value in plain.items():
        story = _accept(story, [replace(story, **{name: value})], still_fails)
    return story


def _drop_steps(story: Scenario, still_fails: Predicate) -> Scenario:
    if story.caller is None:
        return story

    def with_steps(steps: tuple[Step, ...]) -> Scenario:
        return _tidy(replace(story, caller=steps))

    story = with_steps(minimize(story.caller, lambda steps: bool(steps) and still_fails(with_steps(steps))))
    for k, step in reversed([*enumerate(story.caller or ())]):
        if isinstance(step, TogetherStep):
            story = _accept(story, (_replace_step(story, k, *parts) for parts in _parts_of(step)), still_fails)
    return story


def _parts_of(step: TogetherStep) -> Iterator[tuple[Step, ...]]:
    """Yield what can stand in place of simultaneous steps: one of them, or all in turn."""
    yield from ((part,) for part in step.steps)
    yield step.steps


def _replace_step(story: Scenario, at: int, *steps: Step) -> Scenario:
    caller = story.caller or ()
    return replace(story, caller=(*caller[:at], *steps, *caller[at + 1 :]))


def _drop_signals(story: Scenario, still_fails: Predicate) -> Scenario:
    """Remove signals together with what waits for them."""
    names = [step.name for step in all_steps(story) if isinstance(step, SignalStep)]
    for name in dict.fromkeys(names):
        story = _accept(story, [_without_signal(story, name)], still_fails)
    return story


def _without_signal(story: Scenario, name: str) -> Scenario:
    def without_waiting(behaviours: tuple[ToolBehaviour, ...]) -> tuple[ToolBehaviour, ...]:
        return tuple(replace(each, waits_for=None) if each.waits_for == name else each for each in behaviours)

    def change_tool(tool: Tool) -> Tool:
        approval = tool.approval
        if isinstance(approval, Condition) and approval.waits_for == name:
            approval = replace(approval, waits_for=None)
        per_call = {label: without_waiting(each) for label, each in tool.per_call.items()}
        return replace(tool, approval=approval, behaviours=without_waiting(tool.behaviours), per_call=per_call)

    def is_kept(step: Step) -> bool:
        return not (isinstance(step, SignalStep) and step.name == name)

    steps: list[Step] = []
    for step in filter(is_kept, story.caller or ()):
        if isinstance(step, TogetherStep) and not all(map(is_kept, step.steps)):
            steps += filter(is_kept, step.steps)
        else:
            steps.append(step)
    return replace(story, caller=tuple(steps), tools=tuple(map(change_tool, story.tools)))


def _drop_held_back(story: Scenario, still_fails: Predicate) -> Scenario:
    """Let all tools be there from the start."""

    def change_step(step: Step) -> Step:
        return replace(step, with_tools=()) if isinstance(step, RestartStep) else step

    if story.caller is None:
        return story
    steps = tuple(map(change_step, story.caller))
    return _accept(story, [replace(story, held_back=(), caller=steps)], still_fails)


def _drop_replies(story: Scenario, still_fails: Predicate) -> Scenario:
    for agent, script in story.agents.items():
        if script.by_prompt:
            joined = Script(replies=script.all_replies)
            story = _accept(story, [_with_script(story, agent, joined)], still_fails)
    for agent, script in story.agents.items():
        story = _drop_replies_of(story, agent, script, still_fails)
    return story


def _drop_replies_of(story: Scenario, agent: str, script: Script, still_fails: Predicate) -> Scenario:
    def with_replies(replies: tuple[ScriptedReply, ...]) -> Scenario:
        return _tidy(_with_script(story, agent, replace(script, replies=replies)))

    if not script.replies:
        return story
    return with_replies(minimize(script.replies, lambda left: bool(left) and still_fails(with_replies(left))))


def _with_script(story: Scenario, agent: str, script: Script) -> Scenario:
    return replace(story, agents={**story.agents, agent: script})


def _drop_calls(story: Scenario, still_fails: Predicate) -> Scenario:
    keys = [(agent, k, call.label) for agent, k, call in _calls(story)]

    def with_calls(left: Sequence[tuple[str, int, str]]) -> Scenario:
        return _tidy(_map_replies(story, partial(_keep_calls, {*left})))

    return with_calls(minimize(keys, lambda left: still_fails(with_calls(left))))


def _calls(story: Scenario) -> Iterator[tuple[str, int, Call]]:
    """Yield the calls, each with its agent and the number of its reply."""
    for agent, script in story.agents.items():
        for k, reply in enumerate(script.all_replies):
            yield from ((agent, k, call) for call in reply.calls)


def _keep_calls(keys: set[tuple[str, int, str]], agent: str, k: int, reply: ScriptedReply) -> ScriptedReply:
    calls = tuple(call for call in reply.calls if (agent, k, call.label) in keys)
    # A reply says something, since the caller may wait for it.
    is_empty = bool(reply.calls) and not calls and reply.say is None and reply.failure is None
    return replace(reply, calls=calls, say="Done." if is_empty and reply.answer is None else reply.say)


def _map_replies(story: Scenario, change: Callable[[str, int, ScriptedReply], ScriptedReply]) -> Scenario:
    agents: dict[str, Script] = {}
    for agent, script in story.agents.items():
        changed = iter([change(agent, k, reply) for k, reply in enumerate(script.all_replies)])
        replies = tuple(next(changed) for _ in script.replies)
        by_prompt = {prompt: tuple(next(changed) for _ in each) for prompt, each in script.by_prompt.items()}
        agents[agent] = Script(replies=replies, by_prompt=by_prompt)
    return replace(story, agents=agents)


def _drop_decisions(story: Scenario, still_fails: Predicate) -> Scenario:
    for k, step in reversed([*enumerate(story.caller or ())]):
        if isinstance(step, TurnStep | StageStep) and len(step.answers) > 1:
            story = _drop_decisions_of(story, k, step, still_fails)
    return story


def _drop_decisions_of(story: Scenario, k: int, step: TurnStep | StageStep, still_fails: Predicate) -> Scenario:
    def with_decisions(answers: tuple[ScriptedDecision, ...]) -> Scenario:
        return _replace_step(story, k, replace(step, answers=answers))

    return with_decisions(minimize(step.answers, lambda left: bool(left) and still_fails(with_decisions(left))))


def _drop_tools(story: Scenario, still_fails: Predicate) -> Scenario:
    """Remove tools, and agents that no tool is left for."""

    def with_tools(tools: tuple[Tool, ...]) -> Scenario:
        named = {MAIN, *(tool.runs for tool in tools), *(tool.hands_over_to for tool in tools)}
        agents = {name: script for name, script in story.agents.items() if name in named}
        return _tidy(replace(story, tools=tools, agents=agents))

    return with_tools(minimize(story.tools, lambda tools: still_fails(with_tools(tools))))


def _drop_parameters(story: Scenario, still_fails: Predicate) -> Scenario:
    for key, name in [(tool.key, name) for tool in story.tools for name in tool.parameters]:
        story = _accept(story, [_without_parameter(story, key, name)], still_fails)
    return story


def _without_parameter(story: Scenario, key: str, name: str) -> Scenario:
    """Return the story without a parameter, and without that argument in calls and decisions."""
    tool = next(tool for tool in story.tools if tool.key == key)

    def without(arguments: Any) -> Any:
        is_object = isinstance(arguments, Mapping)
        return {each: value for each, value in arguments.items() if each != name} if is_object else arguments

    def change_reply(agent: str, _: int, reply: ScriptedReply) -> ScriptedReply:
        names = {tool.visible_name, tool.key}
        calls = (
            replace(call, arguments=without(call.arguments)) if call.tool in names else call for call in reply.calls
        )
        return replace(reply, calls=tuple(calls))

    def change_decision(decision: ScriptedDecision) -> ScriptedDecision:
        return replace(decision, arguments=without(decision.arguments), shows=without(decision.shows))

    tools = tuple(
        replace(
            each,
            parameters=without(each.parameters),
            behaviours=tuple(_forget_parameter(behaviour, name) for behaviour in each.behaviours),
        )
        if each is tool
        else each
        for each in story.tools
    )
    return _map_decisions(_map_replies(replace(story, tools=tools), change_reply), change_decision)


def _forget_parameter(behaviour: ToolBehaviour, name: str) -> ToolBehaviour:
    returns = behaviour.returns
    return replace(behaviour, returns="ok") if isinstance(returns, str) and f"{{{name}}}" in returns else behaviour


def _map_decisions(story: Scenario, change: Callable[[ScriptedDecision], ScriptedDecision]) -> Scenario:
    def change_step(step: Any) -> Any:
        if isinstance(step, TogetherStep):
            return replace(step, steps=tuple(map(change_step, step.steps)))
        if isinstance(step, TurnStep | StageStep):
            return replace(step, answers=tuple(map(change, step.answers)))
        return step

    return replace(story, caller=None if story.caller is None else tuple(map(change_step, story.caller)))


# --- simplification ---------------------------------------------------------------------------------------------------


def _simplify_tools(story: Scenario, still_fails: Predicate) -> Scenario:
    for k, tool in enumerate(story.tools):
        for changes in _tool_simplifications(tool):
            current = story.tools[k]
            tools = (*story.tools[:k], replace(current, **changes), *story.tools[k + 1 :])
            story = _accept(story, [replace(story, tools=tools)], still_fails)
    return story


def _tool_simplifications(tool: Tool) -> Iterator[dict[str, Any]]:
    yield {"per_call": {}}
    yield {"behaviours": (ToolBehaviour(),)}
    if len(tool.behaviours) > 1:
        yield {"behaviours": tool.behaviours[:1]}
    yield {"behaviours": tuple(replace(each, waits_for=None) for each in tool.behaviours)}
    yield {"behaviours": tuple(replace(each, elicits=None, returns="ok") for each in tool.behaviours)}
    if any(each.raises for each in tool.behaviours):
        yield {"behaviours": tuple(replace(each, raises=each.raises and "failed") for each in tool.behaviours)}
    plain = {"by_annotations": False, "annotations": {}, "structured_only": False, "misfits_are_errors": False}
    yield {"approval": "never", "by_annotations": False}
    yield {"approval": "always", "by_annotations": False}
    yield {"called": None, "kind": "function", "server": None, **plain}
    if not tool.by_annotations:
        yield {"annotations": {}}
    yield {"structured_only": False}
    yield {"misfits_are_errors": False}
    yield {"description": ""}
    for name, parameter in tool.parameters.items():
        yield {"parameters": {**tool.parameters, name: Parameter(type=parameter.type)}}


def _simplify_replies(story: Scenario, still_fails: Predicate) -> Scenario:
    places = [(agent, k) for agent, script in story.agents.items() for k, _ in enumerate(script.all_replies)]
    for place in places:
        for simplify in _REPLY_SIMPLIFICATIONS:
            changed = _map_replies(story, partial(_change_reply_at, place, simplify))
            story = _accept(story, [changed], still_fails)
    return story


def _change_reply_at(
    place: tuple[str, int], change: Callable[[ScriptedReply], ScriptedReply], agent: str, k: int, reply: ScriptedReply
) -> ScriptedReply:
    return change(reply) if (agent, k) == place else reply


def _drop_reply_text(reply: ScriptedReply) -> ScriptedReply:
    return replace(reply, say=None) if reply.calls else reply


def _shorten_reply_text(reply: ScriptedReply) -> ScriptedReply:
    return reply if reply.say is None else replace(reply, say="Done.")


def _mend_reply(reply: ScriptedReply) -> ScriptedReply:
    is_empty = reply.failure is not None and not reply.calls and reply.say is None and reply.answer is None
    return replace(reply, failure=None, say="Done." if is_empty else reply.say)


def _hurry_reply(reply: ScriptedReply) -> ScriptedReply:
    return replace(reply, takes=0.0)


def _plain_failure(reply: ScriptedReply) -> ScriptedReply:
    return reply if reply.failure is None else replace(reply, failure=type(reply.failure)())


def _drop_reasoning(reply: ScriptedReply) -> ScriptedReply:
    return replace(reply, thinks=None, redacted=False, calls=tuple(replace(call, thinks=None) for call in reply.calls))


def _show_reasoning(reply: ScriptedReply) -> ScriptedReply:
    return replace(reply, redacted=False)


_REPLY_SIMPLIFICATIONS: tuple[Callable[[ScriptedReply], ScriptedReply], ...] = (
    _drop_reasoning,
    _show_reasoning,
    _drop_reply_text,
    _mend_reply,
    _plain_failure,
    _hurry_reply,
    _shorten_reply_text,
)


def _simplify_steps(story: Scenario, still_fails: Predicate) -> Scenario:
    caller = story.caller or ()
    if len({getattr(step, "session", "") for step in all_steps(story)} - {""}):
        merged = tuple(map(_in_one_session, caller))
        story = _accept(story, [replace(story, caller=merged)], still_fails)
    for k, _ in enumerate(story.caller or ()):
        for simplify in _STEP_SIMPLIFICATIONS:
            step = (story.caller or ())[k]
            candidates = [_replace_step(story, k, simpler) for simpler in simplify(step)]
            # Candidates of another length would shift the steps behind this one.
            story = _accept(story, [each for each in candidates if len(_tidy(each).caller or ()) > k], still_fails)
            if k >= len(story.caller or ()):
                return story
    return story


def _in_one_session(step: Any) -> Any:
    if isinstance(step, TogetherStep):
        return replace(step, steps=tuple(map(_in_one_session, step.steps)))
    return replace(step, session="") if hasattr(step, "session") else step


def _simpler_turns(step: Step) -> Iterator[Step]:
    if isinstance(step, TurnStep):
        yield from (replace(step, **{key: None}) for key in TURN_KEYS)  # type: ignore[arg-type]
        for label in step.elicitations:
            rest = {other: answer for other, answer in step.elicitations.items() if other != label}
            yield replace(step, elicitations=rest)
        if step.answers:
            yield replace(step, text=None)
        if step.text is not None:
            yield replace(step, text=DEFAULT_PROMPT)


def _simpler_others(step: Step) -> Iterator[Step]:
    match step:
        case RestartStep():
            yield RestartStep(session=step.session)
            yield replace(step, fresh=False)
            yield replace(step, renamed={})
        case LetOracleStep():
            yield replace(step, rounds=None)
        case StageStep():
            yield TurnStep(answers=step.answers, session=step.session)
        case RewriteStep():
            yield replace(step, where="every")


def _simpler_decisions(step: Step) -> Iterator[Step]:
    if isinstance(step, TurnStep | StageStep):
        for k, answer in enumerate(step.answers):
            for simpler in (
                ScriptedDecision(label=answer.label, unknown_id=answer.unknown_id,
                                 malformed_address=answer.malformed_address, address=answer.address),
                replace(answer, reason=None),
                replace(answer, shows=None),
                replace(answer, shows_tool=None),
                replace(answer, source=None),
            ):  # fmt: skip
                yield replace(step, answers=(*step.answers[:k], simpler, *step.answers[k + 1 :]))


_STEP_SIMPLIFICATIONS: tuple[Callable[[Step], Iterator[Step]], ...] = (
    _simpler_turns,
    _simpler_others,
    _simpler_decisions,
)


def _simplify_values(story: Scenario, still_fails: Predicate) -> Scenario:
    """Replace arguments by small ones that still differ from call to call."""
    for number, (agent, k, call) in enumerate([*_calls(story)], start=1):
        if isinstance(call.arguments, Mapping):
            for name in call.arguments:
                story = _accept(story, [_with_argument(story, (agent, k, call.label), name, number)], still_fails)
    return story


def _with_argument(story: Scenario, key: tuple[str, int, str], name: str, number: int) -> Scenario:
    def change(agent: str, k: int, reply: ScriptedReply) -> ScriptedReply:
        calls = tuple(
            replace(call, arguments={**call.arguments, name: _small_value(call.arguments[name], number)})
            if (agent, k, call.label) == key and isinstance(call.arguments, Mapping)
            else call
            for call in reply.calls
        )
        return replace(reply, calls=calls)

    return _map_replies(story, change)


def _small_value(value: Any, number: int) -> Any:
    match value:
        case bool() | None:
            return value
        case int() | float():
            return number
        case str():
            return f"a{number}"
        case list():
            return []
        case Mapping():
            return {}
    return value


_PASSES = (
    _drop_steps,
    _drop_signals,
    _drop_held_back,
    _drop_replies,
    _drop_calls,
    _drop_frame,
    _drop_tools,
    _drop_decisions,
    _drop_parameters,
    _simplify_tools,
    _simplify_replies,
    _simplify_steps,
    _simplify_values,
)


# --- what a story is like ---------------------------------------------------------------------------------------------


def describe_shape(story: Scenario) -> str:
    """Return what stories of one cause share: steps, decisions, replies and tools without names and values."""
    steps = [_step_shape(step) for step in story.caller or ()]
    replies = [
        f"{len(reply.calls)} calls{' fails' if reply.failure else ''}{' answer' if reply.answer is not None else ''}"
        for _, reply in all_replies(story)
    ]
    tools = sorted(
        f"{tool.kind} {'never' if tool.approval == 'never' else 'gated'}"
        f"{' runs' if tool.runs else ''}{' hands over' if tool.hands_over_to else ''}"
        f"{' by annotations' if tool.by_annotations else ''}"
        f"{' elicits' if any(each.elicits for each in tool.all_behaviours) else ''}"
        for tool in story.tools
    )
    return json.dumps([steps, replies, tools])


def _step_shape(step: Step) -> str:
    words = [type(step).__name__]
    if isinstance(step, TogetherStep):
        words += map(_step_shape, step.steps)
    if isinstance(step, TurnStep | StageStep):
        words += sorted({answer.verdict for answer in step.answers})
        words += [word for word in ("text", *TURN_KEYS) if getattr(step, word, None) is not None]
    if isinstance(step, TurnStep):
        words += sorted({f"elicited {answer.action}" for answer in step.elicitations.values()})
    return " ".join(words)


_PAST = {"approve": "approved", "reject": "rejected", "edit": "edited", "always": "approved for good",
         "never": "rejected for good", "raw": "answered with something invalid"}  # fmt: skip


def describe_story(story: Scenario) -> str:
    """Return a title: what the caller does, in a sentence."""
    phrases = [phrase for step in story.caller or () for phrase in _describe_step(step, story)]
    if phrases[:1] == ["a message is sent"] and len(phrases) > 1:
        phrases = phrases[1:]
    text = ", ".join(_count_phrase(phrase, len([*alike])) for phrase, alike in groupby(phrases))
    return text[:1].upper() + text[1:] if text else "A message is sent, and the oracle answers"


def _count_phrase(phrase: str, count: int) -> str:
    return phrase if count == 1 else f"{phrase} {'twice' if count == 2 else f'{count} times'}"


def _describe_step(step: Step, story: Scenario) -> Iterator[str]:
    match step:
        case TurnStep() | StageStep():
            yield from (_describe_decision(answer, story) for answer in step.answers)
            text, hangs_up = getattr(step, "text", None), getattr(step, "hangs_up", None)
            if text is not None:
                yield "a message is sent"
            elif not step.answers:
                yield "the agent resumes without an answer"
            if hangs_up is not None:
                yield "the caller disconnects"
            if getattr(step, "crashes", None) is not None:
                yield "the process is killed"
            if getattr(step, "stops", None) is not None:
                yield "the process is stopped"
            if getattr(step, "disk_full", None) is not None:
                yield "the disk is full"
            if getattr(step, "fails_once", None) is not None:
                yield "a write fails"
            if getattr(step, "loses", None) is not None:
                yield "what the turn stored is lost"
            if getattr(step, "reads", None) is not None:
                yield "the state before last is read"
            if isinstance(step, StageStep):
                yield "nothing runs yet"
        case TogetherStep():
            parts = [phrase for part in step.steps for phrase in _describe_step(part, story)]
            yield f"at the same time {' and '.join(parts)}"
        case _:
            yield _STEP_PHRASES.get(type(step), "the caller leaves")


_STEP_PHRASES: dict[type, str] = {
    LetOracleStep: "the oracle answers",
    SaveStep: "the state is saved",
    RestoreStep: "the save is restored",
    RestartStep: "the agent restarts",
    CancelStep: "the requests are cancelled",
    TrimStep: "the history is trimmed",
    RewriteStep: "the saved state is tampered with",
    SignalStep: "a signal is given",
}


def _describe_decision(decision: ScriptedDecision, story: Scenario) -> str:
    done = _PAST[decision.verdict]
    if decision.label is None:
        return f"what was never asked is {done}"
    name = decision.label.rpartition("/")[2]
    tools = (call.tool for _, _, call in _calls(story) if call.label == name)
    return f"a call of {next(tools, 'a tool')} is {done}"
