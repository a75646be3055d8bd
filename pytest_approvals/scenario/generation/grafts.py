"""Grafts: a feature put into a story that has it not, and small changes of a story.

A graft takes a story and returns another one, or None if the story has no place for it. What comes out is validated, so
that a graft need not foresee all that a story may say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.scenario.generation.choices import Choices, chance, pick
from pytest_approvals.scenario.generation.features import FEATURES, find_features, is_playable
from pytest_approvals.scenario.labels import find_tool
from pytest_approvals.scenario.model import (
    DEFAULT_PROMPT,
    Call,
    CancelStep,
    Expect,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedFailure,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    plain_turn,
)
from pytest_approvals.scenario.requirements import required_by_content
from pytest_approvals.scenario.validation import finalize
from pytest_approvals.scenario.vocabulary import AT_MODEL, AT_OUTCOME
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup

Graft = Callable[[Choices, Scenario], "Scenario | None"]

MAX_CHANGES = 3
"""Most grafts of one neighbour."""

_ATTEMPTS = 4  # a graft may find no place in a story


def cross(choices: Choices, stories: Sequence[Scenario], capabilities: frozenset[str] | None) -> Scenario:
    """Return a story with one or two features of another story.

    Args:
        choices: Who makes the choices.
        stories: The stories to choose from.
        capabilities: What the agent claims; None for everything.
    """
    story, other = pick(choices, stories), pick(choices, stories)
    story = release(story, f"{story.title}, crossed with {other.id}")
    own = find_features(story)
    missing = find_features(other) - own
    offered = [name for name in GRAFTS if name in missing] or [name for name in GRAFTS if name not in own]
    for _ in range(1 + choices.below(2)):
        name = pick(choices, offered)
        if is_playable(FEATURES[name], capabilities):
            story = try_graft(choices, story, GRAFTS[name], capabilities)
    return story


def vary(choices: Choices, scenario: Scenario, capabilities: frozenset[str] | None) -> Scenario:
    """Return a story that differs from *scenario* in one to three places."""
    story = release(scenario, f"{scenario.title}, changed")
    changes = [*_CHANGES.values()]
    changes += [graft for name, graft in GRAFTS.items() if is_playable(FEATURES[name], capabilities)]
    for _ in range(1 + choices.below(MAX_CHANGES)):
        before = story
        for _ in range(_ATTEMPTS):
            story = try_graft(choices, before, pick(choices, changes), capabilities)
            if story is not before:
                break
    return story


def change_once(choices: Choices, scenario: Scenario, capabilities: frozenset[str] | None) -> Iterator[Scenario]:
    """Yield one story for each kind of change that finds a place in *scenario*."""
    story = release(scenario, f"{scenario.title}, changed")
    playable = {name: graft for name, graft in GRAFTS.items() if is_playable(FEATURES[name], capabilities)}
    for graft in (*_CHANGES.values(), *playable.values()):
        changed = try_graft(choices, story, graft, capabilities)
        if changed is not story:
            yield changed


def release(scenario: Scenario, title: str) -> Scenario:
    """Return a story without what is true of the original only: its file, and what it is expected to reach."""
    caller = scenario.caller
    if caller is None:
        caller = (TurnStep(text=scenario.prompt), LetOracleStep())
    return replace(
        scenario, id="drawn/story", title=title, about="", sources=(), caller=caller, prompt=DEFAULT_PROMPT,
        reaches={}, expect=Expect(), path=None, lines={},
    )  # fmt: skip


def try_graft(choices: Choices, story: Scenario, graft: Graft, capabilities: frozenset[str] | None) -> Scenario:
    """Return the story with a graft; the story itself if the graft finds no place, or is nothing for the agent."""
    grown = graft(choices, story)
    finalized = None if grown is None else finalize_for(grown, story, capabilities)
    return story if finalized is None else finalized


def finalize_for(grown: Scenario, story: Scenario, capabilities: frozenset[str] | None) -> Scenario | None:
    """Return what a story has become, completed; None if it is not valid, or is nothing for the agent."""
    try:
        grown = finalize(grown)
    except (Diagnostic, DiagnosticGroup):
        return None
    # What the story needed before is no fault of the change.
    if capabilities is not None and not required_by_content(grown) <= capabilities | required_by_content(story):
        return None
    return grown


# --- places -----------------------------------------------------------------------------------------------------------


def _steps(story: Scenario) -> list[Step]:
    return list(story.caller or ())


def _with_steps(story: Scenario, steps: Sequence[Step]) -> Scenario:
    return replace(story, caller=tuple(steps))


def _insert(choices: Choices, story: Scenario, *new: Step) -> Scenario | None:
    """Return the story with new steps after one of its steps, in that step's session."""
    steps = _steps(story)
    places = [k for k, step in enumerate(steps) if not isinstance(step, LeaveStep)]
    if not places:
        return None
    place = pick(choices, places)
    session = getattr(steps[place], "session", "")
    own = [replace(step, session=session) if hasattr(step, "session") else step for step in new]  # type: ignore[arg-type]
    return _with_steps(story, [*steps[: place + 1], *own, *steps[place + 1 :]])


def _deciding(story: Scenario) -> list[int]:
    """Return the places of turns that decide."""
    return [k for k, step in enumerate(story.caller or ()) if isinstance(step, TurnStep) and step.answers]


def _change_turn(
    choices: Choices, story: Scenario, change: Callable[[TurnStep], Sequence[Step] | None]
) -> Scenario | None:
    """Return the story with other steps in place of a turn that decides."""
    places = _deciding(story)
    if not places:
        return None
    place = pick(choices, places)
    steps = _steps(story)
    turn = steps[place]
    changed = change(turn) if isinstance(turn, TurnStep) else None
    return None if changed is None else _with_steps(story, [*steps[:place], *changed, *steps[place + 1 :]])


def _change_decision(
    choices: Choices, story: Scenario, change: Callable[[ScriptedDecision], ScriptedDecision | None]
) -> Scenario | None:
    """Return the story with another decision in place of one about a call."""

    def change_one(turn: TurnStep) -> Sequence[Step] | None:
        places = [k for k, decision in enumerate(turn.answers) if decision.label is not None]
        if not places:
            return None
        place = pick(choices, places)
        changed = change(turn.answers[place])
        if changed is None:
            return None
        return [replace(turn, answers=(*turn.answers[:place], changed, *turn.answers[place + 1 :]))]

    return _change_turn(choices, story, change_one)


def _replies(story: Scenario) -> list[ScriptedReply]:
    """Return the replies of the main agent's first script."""
    main = story.agents[MAIN]
    return list(next(iter(main.by_prompt.values()), main.replies))


def _with_replies(story: Scenario, replies: Sequence[ScriptedReply]) -> Scenario:
    main = story.agents[MAIN]
    if main.by_prompt:
        first = next(iter(main.by_prompt))
        script = replace(main, by_prompt={**main.by_prompt, first: tuple(replies)})
    else:
        script = replace(main, replies=tuple(replies))
    return replace(story, agents={**story.agents, MAIN: script})


def _change_tool(choices: Choices, story: Scenario, change: Callable[[Tool], Tool]) -> Scenario | None:
    places = [k for k, tool in enumerate(story.tools) if tool.runs is None and tool.hands_over_to is None]
    if not places:
        return None
    place = pick(choices, places)
    tools = list(story.tools)
    tools[place] = change(tools[place])
    return replace(story, tools=tuple(tools))


def _tool_of(story: Scenario, label: str) -> Tool | None:
    """Return the tool of a call of the main agent."""
    for reply in story.agents[MAIN].all_replies:
        for call in reply.calls:
            if call.label == label:
                return find_tool(story, MAIN, call.tool)
    return None


def _other_arguments(choices: Choices, tool: Tool) -> dict[str, Any]:
    """Return arguments for a tool that are unlikely to be those of another call."""
    number = 900 + choices.below(50)
    samples: dict[str, Any] = {
        "string": f"other {number}", "integer": number, "number": number + 0.5, "boolean": True,
        "array": [number], "object": {"other": number},
    }  # fmt: skip
    return {name: samples[parameter.type] for name, parameter in tool.parameters.items()}


# --- grafts of the caller ---------------------------------------------------------------------------------------------


def _restart(choices: Choices, story: Scenario) -> Scenario | None:
    return _insert(choices, story, RestartStep())


def _fresh(choices: Choices, story: Scenario) -> Scenario | None:
    return _insert(choices, story, RestartStep(fresh=True))


def _rewind(choices: Choices, story: Scenario) -> Scenario | None:
    """Save after one step and restore after a later one."""
    steps = _steps(story)
    plain = [k for k, step in enumerate(steps) if isinstance(step, TurnStep)]
    if len(plain) < 2:
        return None
    first = pick(choices, plain[:-1])
    session = getattr(steps[first], "session", "")
    later = pick(choices, [k for k in plain if k > first])
    save, back = SaveStep(name="back-to-here", session=session), RestoreStep(name="back-to-here", session=session)
    return _with_steps(story, [*steps[: first + 1], save, *steps[first + 1 : later + 1], back, *steps[later:]])


def _save(choices: Choices, story: Scenario) -> Scenario | None:
    return _insert(choices, story, SaveStep(name="a-save"))


def _standing(verdict: str) -> Graft:
    def graft(choices: Choices, story: Scenario) -> Scenario | None:
        return _change_decision(
            choices,
            story,
            lambda decision: ScriptedDecision(label=decision.label, verdict=verdict),  # type: ignore[arg-type]
        )

    return graft


def _edit(choices: Choices, story: Scenario) -> Scenario | None:
    def change(decision: ScriptedDecision) -> ScriptedDecision | None:
        tool = _tool_of(story, str(decision.label))
        if tool is None or not tool.parameters or tool.runs is not None:
            return None
        return ScriptedDecision(label=decision.label, verdict="edit", arguments=_other_arguments(choices, tool))

    return _change_decision(choices, story, change)


def _tampered(choices: Choices, story: Scenario) -> Scenario | None:
    def change(decision: ScriptedDecision) -> ScriptedDecision | None:
        tool = _tool_of(story, str(decision.label))
        if tool is None or not tool.parameters:
            return None
        return replace(decision, shows=_other_arguments(choices, tool))

    return _change_decision(choices, story, change)


def _reason(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_decision(
        choices,
        story,
        lambda decision: ScriptedDecision(label=decision.label, verdict="reject", reason="over the limit"),
    )


def _source(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_decision(choices, story, lambda decision: replace(decision, source="rebuilt"))


def _contradiction(choices: Choices, story: Scenario) -> Scenario | None:
    def change(turn: TurnStep) -> Sequence[Step]:
        other = "reject" if turn.answers[0].verdict != "reject" else "approve"
        return [replace(turn, answers=(*turn.answers, ScriptedDecision(label=turn.answers[0].label, verdict=other)))]  # type: ignore[arg-type]

    return _change_turn(choices, story, change)


def _partial(choices: Choices, story: Scenario) -> Scenario | None:
    def change(turn: TurnStep) -> Sequence[Step] | None:
        if len(turn.answers) < 2:
            return None
        first, rest = replace(turn, answers=turn.answers[:1]), replace(turn, text=None, answers=turn.answers[1:])
        return [first, rest] if chance(choices, 70) else [rest, first]

    return _change_turn(choices, story, change)


def _stage(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_turn(
        choices,
        story,
        lambda turn: [
            StageStep(answers=turn.answers, session=turn.session),
            replace(turn, text=None, answers=()),
        ],
    )


def _repeated(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_turn(choices, story, lambda turn: [turn, replace(plain_turn(turn), text=None)])


def _late(choices: Choices, story: Scenario) -> Scenario | None:
    steps, places = _steps(story), _deciding(story)
    if not places or isinstance(steps[-1], LeaveStep):
        return None
    turn = steps[pick(choices, places)]
    return _with_steps(story, [*steps, turn])


def _hangs_up_at_model(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_turn(choices, story, lambda turn: [replace(plain_turn(turn), hangs_up="model")])


def _hangs_up_in_tool(choices: Choices, story: Scenario) -> Scenario | None:
    def change(turn: TurnStep) -> Sequence[Step] | None:
        labels = [decision.label for decision in turn.answers if decision.label and decision.verdict == "approve"]
        return [replace(plain_turn(turn), hangs_up=f"started {pick(choices, labels)}")] if labels else None

    return _change_turn(choices, story, change)


def _crashes(choices: Choices, story: Scenario) -> Scenario | None:
    """Kill the process while a call runs, while the model is asked, or at the end; then resume."""

    def change(turn: TurnStep) -> Sequence[Step]:
        labels = [decision.label for decision in turn.answers if decision.label and decision.verdict == "approve"]
        places = [*(f"started {label}" for label in labels), AT_OUTCOME, AT_MODEL]
        killed = replace(plain_turn(turn), crashes=pick(choices, places))
        return [killed, LetOracleStep() if chance(choices, 50) else TurnStep()]

    return _change_turn(choices, story, change)


def _simultaneous(choices: Choices, story: Scenario) -> Scenario | None:
    def change(turn: TurnStep) -> Sequence[Step] | None:
        if not turn.is_plain:
            return None
        return [TogetherStep(steps=(turn, replace(turn, text=None)))]

    return _change_turn(choices, story, change)


def _second_session(choices: Choices, story: Scenario) -> Scenario | None:
    """Play all turns again in another session: each right after the original, or all at the end."""
    steps = _steps(story)
    turns = [step for step in steps if isinstance(step, TurnStep)]
    if len(turns) != len([step for step in steps if not isinstance(step, (SignalStep, LeaveStep))]):
        return None
    if any(turn.session for turn in turns) or not turns or isinstance(steps[-1], LeaveStep):
        return None
    if chance(choices, 50):
        both = [part for step in steps for part in _with_copy(step)]
        return _with_steps(story, both)
    return _with_steps(story, [*steps, *(replace(turn, session="carol") for turn in turns)])


def _with_copy(step: Step) -> list[Step]:
    return [step, replace(step, session="carol")] if isinstance(step, TurnStep) else [step]


def _inserted(*steps: Step) -> Graft:
    def graft(choices: Choices, story: Scenario) -> Scenario | None:
        return _insert(choices, story, *steps)

    return graft


def _message_while_pending(choices: Choices, story: Scenario) -> Scenario | None:
    grown = _change_turn(choices, story, lambda turn: [TurnStep(text="By the way", session=turn.session), turn])
    return None if grown is None else _with_replies(grown, [*_replies(grown), ScriptedReply(say="Noted.")])


def _message_with_answers(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_turn(choices, story, lambda turn: [replace(turn, text="By the way")])


def _one_more_turn(choices: Choices, story: Scenario) -> Scenario | None:
    steps = _steps(story)
    if not steps or isinstance(steps[-1], LeaveStep):
        return None
    grown = _with_replies(story, [*_replies(story), ScriptedReply(say="You are welcome.")])
    return _with_steps(grown, [*steps, TurnStep(text="Thank you.", session=getattr(steps[-1], "session", ""))])


def _leave(choices: Choices, story: Scenario) -> Scenario | None:
    steps, places = _steps(story), _deciding(story)
    if not places:
        return None
    return _with_steps(story, [*steps[: pick(choices, places)], LeaveStep()]) if places[0] else None


# --- grafts of model and tools ----------------------------------------------------------------------------------------


def _failure(failure: ScriptedFailure) -> Graft:
    def graft(choices: Choices, story: Scenario) -> Scenario | None:
        replies = _replies(story)
        place = choices.below(len(replies) + 1)
        return _with_replies(story, [*replies[:place], ScriptedReply(failure=failure), *replies[place:]])

    return graft


def _broken_stream(choices: Choices, story: Scenario) -> Scenario | None:
    replies = _replies(story)
    places = [k for k, reply in enumerate(replies) if reply.failure is None]
    if not places:
        return None
    place = pick(choices, places)
    replies[place] = replace(replies[place], failure=ScriptedFailure(status=0, after_chunks=choices.below(3)))
    return _with_replies(story, replies)


def _slow_reply(choices: Choices, story: Scenario) -> Scenario | None:
    replies = _replies(story)
    place = choices.below(len(replies))
    replies[place] = replace(replies[place], takes=0.01)
    return _with_replies(story, replies)


def _text_with_calls(choices: Choices, story: Scenario) -> Scenario | None:
    replies = _replies(story)
    places = [k for k, reply in enumerate(replies) if reply.calls and reply.say is None]
    if not places:
        return None
    place = pick(choices, places)
    replies[place] = replace(replies[place], say="Let me see.")
    return _with_replies(story, replies)


def _sibling(choices: Choices, story: Scenario) -> Scenario | None:
    """Add a call to a reply with calls, and let the oracle answer what remains open."""
    replies = _replies(story)
    places = [k for k, reply in enumerate(replies) if reply.calls]
    if not places:
        return None
    place = pick(choices, places)
    tool = find_tool(story, MAIN, replies[place].calls[0].tool)
    if tool is None or not tool.parameters or tool.runs is not None or tool.agent != MAIN:
        return None
    sibling = Call(label="", id="sibling", tool=tool.name, arguments=_other_arguments(choices, tool))
    calls = (*replies[place].calls, sibling) if chance(choices, 60) else (sibling, *replies[place].calls)
    replies[place] = replace(replies[place], calls=calls)
    return _answered_by_oracle(_with_replies(story, replies))


def _failing_tool(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_tool(
        choices, story, lambda tool: replace(tool, behaviours=(ToolBehaviour(raises="the service is down"),))
    )


def _asking_tool(choices: Choices, story: Scenario) -> Scenario | None:
    grown = _change_tool(
        choices, story, lambda tool: replace(tool, behaviours=(ToolBehaviour(asks_again="Really?"), *tool.behaviours))
    )
    return None if grown is None else _answered_by_oracle(grown)


def _non_text(choices: Choices, story: Scenario) -> Scenario | None:
    value = pick(choices, ({"status": "ok"}, [1, "two"], None, 0))
    return _change_tool(choices, story, lambda tool: replace(tool, behaviours=(ToolBehaviour(returns=value),)))


def _sub_agent(choices: Choices, story: Scenario) -> Scenario | None:
    """Add a call that runs another agent, before the last reply of the first script or beside its first calls."""
    if "assistant" in story.agents or any(tool.name == "ask_assistant" for tool in story.tools):
        return None
    tools = (
        Tool(name="ask_assistant", runs="assistant", parameters={"input": Parameter()}),
        Tool(
            name="post", agent="assistant", approval="always", parameters={"note": Parameter()},
            behaviours=(ToolBehaviour(returns="posted {note}"),),
        ),
    )  # fmt: skip
    inner = Call(label="", id="i1", tool="post", arguments={"note": "a note"})
    script = Script(replies=(ScriptedReply(calls=(inner,)), ScriptedReply(say="Posted.")))
    outer = Call(label="", id="o9", tool="ask_assistant", arguments={"input": "Post a note"})
    replies = _replies(story)
    with_calls = [k for k, reply in enumerate(replies) if reply.calls]
    if with_calls and chance(choices, 50):
        place = pick(choices, with_calls)
        replies[place] = replace(replies[place], calls=(*replies[place].calls, outer))
    else:
        replies.insert(choices.below(len(replies)), ScriptedReply(calls=(outer,)))
    grown = replace(story, tools=(*story.tools, *tools), agents={**story.agents, "assistant": script})
    return _answered_by_oracle(_with_replies(grown, replies))


def _answered_by_oracle(story: Scenario) -> Scenario:
    """Let the oracle answer at the end what the steps leave open."""
    steps = _steps(story)
    if not steps or isinstance(steps[-1], (LetOracleStep, LeaveStep)):
        return story
    return _with_steps(story, [*steps, LetOracleStep()])


GRAFTS: Mapping[str, Graft] = {
    "restart": _restart,
    "fresh": _fresh,
    "save": _save,
    "rewind": _rewind,
    "always": _standing("always"),
    "never": _standing("never"),
    "reject_reason": _reason,
    "edit": _edit,
    "partial_answers": _partial,
    "stage": _stage,
    "several_turns": _one_more_turn,
    "message_while_pending": _message_while_pending,
    "message_with_answers": _message_with_answers,
    "go_on_without_answer": _inserted(TurnStep()),
    "cancel": _inserted(CancelStep()),
    "trim": _inserted(TrimStep(keep=2)),
    "oracle_step": _inserted(LetOracleStep(rounds=1)),
    "leave": _leave,
    "sessions": _second_session,
    "simultaneous": _simultaneous,
    "hangs_up_at_model": _hangs_up_at_model,
    "hangs_up_in_tool": _hangs_up_in_tool,
    "crashes": _crashes,
    "repeated_decision": _repeated,
    "late_decision": _late,
    "contradiction": _contradiction,
    "decision_source": _source,
    "tampered_arguments": _tampered,
    "malformed_verdict": lambda choices, story: _change_decision(
        choices, story, lambda decision: ScriptedDecision(label=decision.label, verdict="raw", raw="approve")
    ),
    "malformed_address": _inserted(TurnStep(answers=(ScriptedDecision(malformed_address=True),))),
    "unknown_request": _inserted(TurnStep(answers=(ScriptedDecision(unknown_id="req-unknown"),))),
    "model_failure": _failure(ScriptedFailure(status=500)),
    "retry_after": _failure(ScriptedFailure(status=429, retry_after=0.01)),
    "connection_failure": _failure(ScriptedFailure(status=0, how="timeout")),
    "broken_stream": _broken_stream,
    "slow_reply": _slow_reply,
    "text_with_calls": _text_with_calls,
    "parallel": _sibling,
    "tool_errors": _failing_tool,
    "asks_again": _asking_tool,
    "non_text_results": _non_text,
    "nested": _sub_agent,
}
"""Grafts by the feature that they bring, in the order of the plainest first."""


# --- changes ----------------------------------------------------------------------------------------------------------


def _drop_step(choices: Choices, story: Scenario) -> Scenario | None:
    steps = _steps(story)
    if len(steps) < 2:
        return None
    del steps[choices.below(len(steps))]
    return _with_steps(story, steps)


def _double_step(choices: Choices, story: Scenario) -> Scenario | None:
    steps = _steps(story)
    places = [k for k, step in enumerate(steps) if not isinstance(step, (SaveStep, LeaveStep))]
    if not places:
        return None
    place = pick(choices, places)
    return _with_steps(story, [*steps[:place], steps[place], *steps[place:]])


def _swap_steps(choices: Choices, story: Scenario) -> Scenario | None:
    steps = _steps(story)
    if len(steps) < 2:
        return None
    place = choices.below(len(steps) - 1)
    steps[place], steps[place + 1] = steps[place + 1], steps[place]
    return _with_steps(story, steps)


def _turn_verdict(choices: Choices, story: Scenario) -> Scenario | None:
    def change(decision: ScriptedDecision) -> ScriptedDecision | None:
        if decision.verdict not in ("approve", "reject"):
            return None
        return ScriptedDecision(label=decision.label, verdict="reject" if decision.verdict == "approve" else "approve")

    return _change_decision(choices, story, change)


def _drop_reply(choices: Choices, story: Scenario) -> Scenario | None:
    replies = _replies(story)
    if len(replies) < 2:
        return None
    del replies[choices.below(len(replies))]
    return _with_replies(story, replies)


def _split_reply(choices: Choices, story: Scenario) -> Scenario | None:
    """Let the model make the calls of one reply one after the other."""
    replies = _replies(story)
    places = [k for k, reply in enumerate(replies) if len(reply.calls) > 1 and reply.failure is None]
    if not places:
        return None
    place = pick(choices, places)
    reply = replies[place]
    first, rest = replace(reply, calls=reply.calls[:1]), replace(reply, say=None, calls=reply.calls[1:])
    return _with_replies(story, [*replies[:place], first, rest, *replies[place + 1 :]])


def _turn_gate(choices: Choices, story: Scenario) -> Scenario | None:
    return _change_tool(
        choices,
        story,
        lambda tool: replace(tool, approval="always" if tool.approval == "never" else "never", by_annotations=False),
    )


_CHANGES: Mapping[str, Graft] = {
    "turn a verdict": _turn_verdict,
    "swap two steps": _swap_steps,
    "double a step": _double_step,
    "drop a step": _drop_step,
    "drop a reply": _drop_reply,
    "split a reply": _split_reply,
    "turn a gate": _turn_gate,
}
"""Changes that bring no feature of their own."""
