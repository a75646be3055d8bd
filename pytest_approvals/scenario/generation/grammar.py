"""Grammar of drawn stories: what a story is made of, choice by choice.

A story is drawn from a sequence of choices, each an integer below a bound. The choice 0 is always the plainest, so
that whoever makes smaller choices draws a smaller story. Nothing here knows who chooses: Hypothesis, or a seed.

Which features a story has is drawn first. The script of the model is drawn with these features in mind, then the
caller's steps, along a dry run that knows which requests are open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Literal

from pytest_approvals.agent_side.contract import MAIN, ElicitationAnswer, Parameter
from pytest_approvals.agent_side.contract.types import Condition, Limits
from pytest_approvals.scenario.generation.caller_writer import CallerWriter
from pytest_approvals.scenario.generation.choices import REASONING_FEATURES, Choices, chance, draw_features, pick
from pytest_approvals.scenario.generation.draft import (
    BANK,
    EDGE_TYPES,
    EDGES,
    FIRST_MESSAGES,
    MESSAGES,
    POLICY,
    StoryDraft,
    is_called_plainly,
)
from pytest_approvals.scenario.generation.features import FEATURES, is_playable
from pytest_approvals.scenario.generation.reply_draws import draw_replies
from pytest_approvals.scenario.generation.tool_draws import draw_tools
from pytest_approvals.scenario.labels import assign_labels, find_tool, list_occurrences
from pytest_approvals.scenario.model import (
    RestartStep,
    RewriteStep,
    Scenario,
    Script,
    ScriptedElicitation,
    ScriptedReply,
    SignalStep,
    Step,
    TogetherStep,
    Tool,
    TurnStep,
    all_steps,
)
from pytest_approvals.scenario.vocabulary import DIMENSIONS

_SPARE_REPLIES = 8

_REJECTING_ORACLES = ("reject_all", "random:7", "allowlist:pay,refund")


def draw_story(
    choices: Choices, capabilities: frozenset[str] | None, profile: str, certain: Collection[str] = ()
) -> Scenario:
    """Return a story that an agent with *capabilities*, None for everything, can play.

    Args:
        choices: Who makes the choices.
        capabilities: What the agent claims.
        profile: A name in `PROFILES`.
        certain: Features that it has in any case, if the agent can play them.
    """
    features = draw_features(choices, capabilities, profile, certain)
    return _write(StoryDraft(choices, features, capabilities))


def _write(draft: StoryDraft) -> Scenario:
    """Draw the parts of a story, each with what was drawn before in mind."""
    draw_tools(draft)
    replies = draw_replies(draft)
    draft.core = len(replies)
    spare = (draft.draw_last_word(MESSAGES[k % len(MESSAGES)]) for k in range(_SPARE_REPLIES))
    scenario = Scenario(
        id="drawn/story",
        title="A drawn story",
        tools=tuple(draft.tools.values()),
        answer={"total": Parameter(type="integer")} if draft.has_answer else {},
        agents={MAIN: _draw_script(draft, (*replies, *spare)), **draft.agents},
        equal_arguments="equal_arguments" in draft.features,
        limits=_draw_limits(draft),
        held_back=("report",) if "held_back" in draft.features else (),
    )
    scenario = assign_labels(scenario)
    if "oracle_only" in draft.features:
        scenario = replace(scenario, agents=_shorten(scenario.agents, draft.core, [FIRST_MESSAGES[""]]))
        tools = tuple(_forget_signals(tool, frozenset()) for tool in scenario.tools)
        return _add_reasoning(draft, _draw_frame(draft, replace(scenario, tools=tools)))
    caller = CallerWriter(draft, scenario)
    steps = caller.write()
    messages = [FIRST_MESSAGES[session] for session in caller.begun]
    scripts = _shorten(scenario.agents, max(draft.core, caller.replies_needed()), messages)
    tools = tuple(_forget_signals(tool, caller.signals) for tool in scenario.tools)
    scenario = replace(scenario, caller=steps, agents=scripts, tools=tools)
    return _add_reasoning(draft, _draw_frame(draft, _add_answers(draft, scenario)))


def _draw_script(draft: StoryDraft, replies: tuple[ScriptedReply, ...]) -> Script:
    if "script_by_message" not in draft.features:
        return Script(replies=replies)
    scripts = {FIRST_MESSAGES[""]: replies}
    if {"sessions", "sessions_together"} & draft.features:
        tool = next(tool for tool in draft.tools.values() if is_called_plainly(tool))
        other = (ScriptedReply(calls=(draft.draw_call(tool),)), *(draft.draw_last_word(text) for text in MESSAGES))
        scripts[FIRST_MESSAGES["bob"]] = other
    return Script(by_prompt=scripts)


def _draw_limits(draft: StoryDraft) -> Limits:
    return Limits(
        model_replies=1 + draft.choices.below(3) if "limit_model_replies" in draft.features else None,
        tool_calls=1 + draft.choices.below(3) if "limit_tool_calls" in draft.features else None,
    )


def _draw_frame(draft: StoryDraft, scenario: Scenario) -> Scenario:
    only: dict[str, tuple[Any, ...]] = {}
    vary: list[str] = []
    if "pinned_stream" in draft.features or "pinned_chunking" in draft.features:
        only["stream"] = (True,)
    if "pinned_chunking" in draft.features:
        only["chunking"] = (pick(draft.choices, DIMENSIONS["chunking"][1:]),)
    if "pinned_store" in draft.features or _rewrites(scenario):
        only["serialize"] = ("json",)
        if draft.allows("history.append") and chance(draft.choices, 50):
            only["history"] = ("append",)
    if "varied" in draft.features:
        vary = [word for word in ("history", "resume", "chunking", "source", "protocol") if word not in only]
        vary = [pick(draft.choices, vary)]
    oracles: tuple[str, ...] = ()
    if "oracles" in draft.features:
        goes_on = draft.allows("goes_on_after_rejection")
        oracles = (pick(draft.choices, ("approve_all", *(_REJECTING_ORACLES if goes_on else ()))),)
    held_back = ("report",) if _adds_tool(scenario, "report") else ()
    servers = {"disk": "stdio"} if "mcp_stdio" in draft.features else {}
    return replace(scenario, only=only, vary=frozenset(vary), oracles=oracles, held_back=held_back, servers=servers)


def _add_answers(draft: StoryDraft, scenario: Scenario) -> Scenario:
    """Let the caller answer most of what servers ask; what is not answered is cancelled."""
    asked = _list_questions(scenario)
    turns = [step for step in all_steps(scenario) if isinstance(step, TurnStep)]
    given: dict[int, dict[str, ElicitationAnswer]] = {}
    for session in dict.fromkeys(turn.session for turn in turns) if asked else ():
        own = [k for k, turn in enumerate(turns) if turn.session == session]
        for label, question in asked.items():
            if chance(draft.choices, 12):
                continue
            # An answer holds from its turn on.
            first = own[0] if chance(draft.choices, 70) else pick(draft.choices, own)
            answer = given.setdefault(first, {})[label] = _draw_answer(draft, question)
            later = [k for k in own if k > first]
            if later and draft.takes("elicitation_answer_changes", 10):
                word: Literal["decline", "cancel"] = "cancel" if answer.action == "decline" else "decline"
                changed = _draw_answer(draft, question) if chance(draft.choices, 30) else ElicitationAnswer(action=word)
                given.setdefault(pick(draft.choices, later), {})[label] = changed
    numbers = count()

    def change(step: Step) -> Step:
        if isinstance(step, TogetherStep):
            parts = [change(part) for part in step.steps]
            return TogetherStep(steps=tuple(part for part in parts if isinstance(part, TurnStep | SignalStep)))
        return replace(step, elicitations=given.get(next(numbers), {})) if isinstance(step, TurnStep) else step

    return replace(scenario, caller=tuple(map(change, scenario.caller or ()))) if given else scenario


def _draw_answer(draft: StoryDraft, question: ScriptedElicitation) -> ElicitationAnswer:
    if draft.takes("elicitation_declined"):
        return ElicitationAnswer(action="decline")
    if draft.takes("elicitation_cancelled"):
        return ElicitationAnswer(action="cancel")
    if question.url is not None:
        return ElicitationAnswer(action="accept")
    fields = {name: field for name, field in question.form.items() if field.required or chance(draft.choices, 60)}
    content = {name: _draw_field(draft, field.type) for name, field in fields.items()}
    return ElicitationAnswer(action="accept", content=content)


def _draw_field(draft: StoryDraft, kind: str) -> Any:
    fitting = [name for name in draft.edges if EDGE_TYPES.get(name, "string") == kind]
    if fitting and chance(draft.choices, 60):
        return pick(draft.choices, EDGES[pick(draft.choices, fitting)])
    # What is zero, false or empty is an answer, too.
    empty = {"string": "", "integer": 0, "number": 0, "boolean": False}
    return empty[kind] if chance(draft.choices, 25) else draft.draw_value(kind, identifies=False)


def _add_reasoning(draft: StoryDraft, scenario: Scenario) -> Scenario:
    """Let the model reason before some of its replies, in one story of four."""
    usable = {name for name in REASONING_FEATURES if is_playable(FEATURES[name], draft.capabilities)}
    if "reasoning" not in usable or not chance(draft.choices, 25):
        return scenario
    redacted = "redacted_reasoning" in usable and chance(draft.choices, 40)
    between = "reasoning_between_calls" in usable and chance(draft.choices, 70)
    thoughts = count(1)

    def think(reply: ScriptedReply) -> ScriptedReply:
        has_content = reply.say is not None or bool(reply.calls) or reply.answer is not None
        number = next(thoughts)
        if not has_content or (number > 1 and chance(draft.choices, 40)):
            return reply
        calls = reply.calls
        if between:
            later = (replace(call, thinks=f"Then I do what comes after {number}.") for call in calls[1:])
            calls = (*calls[:1], *later)
        return replace(reply, thinks=f"I come to step {number}.", redacted=redacted, calls=calls)

    return replace(scenario, agents={name: _map_replies(script, think) for name, script in scenario.agents.items()})


def _list_questions(scenario: Scenario) -> dict[str, ScriptedElicitation]:
    """Return what servers ask in calls, by their labels."""
    asked: dict[str, ScriptedElicitation] = {}
    for occurrence in list_occurrences(scenario):
        tool = find_tool(scenario, occurrence.agent, occurrence.call.tool)
        behaviours = () if tool is None else tool.per_call.get(occurrence.label) or tool.behaviours
        questions = [behaviour.elicits for behaviour in behaviours if behaviour.elicits is not None]
        if questions:
            asked[occurrence.label] = questions[0]
    return asked


def _rewrites(scenario: Scenario) -> bool:
    """Return whether the caller changes the text of a save, which only one serialize mode has."""
    return any(isinstance(step, RewriteStep) for step in scenario.caller or ())


def _adds_tool(scenario: Scenario, name: str) -> bool:
    return any(isinstance(step, RestartStep) and name in step.with_tools for step in scenario.caller or ())


def _forget_signals(tool: Tool, given: Collection[str]) -> Tool:
    """Return the tool without waiting for signals that no step gives."""
    missing = {BANK, POLICY} - set(given)
    approval = tool.approval
    if isinstance(approval, Condition) and approval.waits_for in missing:
        approval = replace(approval, waits_for=None)
    behaviours = tuple(
        replace(behaviour, waits_for=None) if behaviour.waits_for in missing else behaviour
        for behaviour in tool.behaviours
    )
    return replace(tool, approval=approval, behaviours=behaviours)


def _map_replies(script: Script, change: Callable[[ScriptedReply], ScriptedReply]) -> Script:
    by_prompt = {prompt: tuple(map(change, replies)) for prompt, replies in script.by_prompt.items()}
    return Script(replies=tuple(map(change, script.replies)), by_prompt=by_prompt)


def _shorten(agents: Mapping[str, Script], count: int, messages: Collection[str]) -> dict[str, Script]:
    """Return the scripts with the first *count* replies of the main agent, and those for *messages* only."""
    main = agents[MAIN]
    by_prompt = {text: replies[:count] for text, replies in main.by_prompt.items() if text in messages}
    return {**agents, MAIN: replace(main, replies=main.replies[:count], by_prompt=by_prompt)}
