"""Changes of what no framework stores with a conversation.

A stored conversation shows what the model and the tools said, and often who approved what. It does not show what a
client sent in place of a decision, how the application configured its gate, which agent a tool ran, or what happened to
the state between two turns. Each change assumes one such thing, in all its forms, the plainest first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.generation.grafts import finalize_for, release
from pytest_approvals.scenario.labels import find_tool
from pytest_approvals.scenario.model import (
    Call,
    LetOracleStep,
    RestartStep,
    RewriteStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedFailure,
    ScriptedReply,
    StageStep,
    Step,
    Tool,
    ToolBehaviour,
    TurnStep,
)

Forms = Callable[[Scenario], Iterator[Scenario]]

_HELPER = "helper"
_INNER_TOOL = "act"
_REASON = "not like this"
_MALFORMED: tuple[Any, ...] = (None, "yes", {"approved": "maybe"}, "done by hand", 1, "no", [])
"""What clients send in place of a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredChange:
    """A change.

    Attributes:
        forms: Yields the changed stories, none if the story has no place for it.
        shows: The checks that fail on agents that cannot stand it.
    """

    forms: Forms
    shows: frozenset[str]


def change_unstored(
    scenario: Scenario, capabilities: frozenset[str] | None, wanted: Collection[str] = ()
) -> Iterator[Scenario]:
    """Yield the stories that one change leads to, those first that may fail a wanted check.

    The first forms of all changes come before the second ones.

    Args:
        scenario: The story.
        capabilities: What the agent claims; None for everything.
        wanted: The checks that have to fail; if there are any, changes that show none of them are left out.
    """
    checks = frozenset(wanted)
    story = release(scenario, f"{scenario.title}, changed")
    chosen = [change for change in UNSTORED.values() if not checks or change.shows & checks]
    pending = [change.forms(story) for change in chosen]
    while pending:
        for forms in list(pending):
            form = next(forms, None)
            if form is None:
                pending.remove(forms)
                continue
            grown = finalize_for(form, story, capabilities)
            if grown is not None:
                yield grown


# --- places -----------------------------------------------------------------------------------------------------------


def _with_steps(story: Scenario, *steps: Step) -> Scenario:
    return replace(story, caller=steps)


def _deciding(story: Scenario) -> Iterator[tuple[int, TurnStep]]:
    """Yield the turns that decide about calls, with their places."""
    for place, step in enumerate(story.caller or ()):
        if isinstance(step, TurnStep) and any(answer.label is not None for answer in step.answers):
            yield place, step


def _replies(story: Scenario) -> tuple[ScriptedReply, ...]:
    return story.agents[MAIN].replies


def _with_replies(story: Scenario, *replies: ScriptedReply) -> Scenario:
    return replace(story, agents={**story.agents, MAIN: replace(story.agents[MAIN], replies=replies)})


def _calls(story: Scenario) -> Iterator[tuple[int, int, Call, Tool]]:
    """Yield the main agent's calls of known tools, each with its reply and its place there."""
    for number, reply in enumerate(_replies(story)):
        for place, call in enumerate(reply.calls):
            tool = find_tool(story, MAIN, call.tool)
            if tool is not None:
                yield number, place, call, tool


def _is_plain(tool: Tool) -> bool:
    return tool.agent == MAIN and tool.runs is None and tool.hands_over_to is None


def _is_gated(tool: Tool) -> bool:
    return tool.approval != "never"


def _with_call(story: Scenario, number: int, place: int, *calls: Call) -> Scenario:
    """Return the story with calls in place of one."""
    replies = list(_replies(story))
    kept = replies[number].calls
    replies[number] = replace(replies[number], calls=(*kept[:place], *calls, *kept[place + 1 :]))
    return _with_replies(story, *replies)


def _with_tool(story: Scenario, tool: Tool) -> Scenario:
    return replace(story, tools=tuple(tool if other.key == tool.key else other for other in story.tools))


def _with_oracle(story: Scenario) -> Scenario:
    """Let the oracle answer after every turn what the steps leave open."""
    steps = [part for step in story.caller or () for part in ((step, LetOracleStep()) if _pauses(step) else (step,))]
    return _with_steps(story, *steps)


def _pauses(step: Step) -> bool:
    return isinstance(step, TurnStep) and not step.session


# --- what the client sent ---------------------------------------------------------------------------------------------


def _malformed_answers(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which a client sends something else in place of a decision, and rejects the call after that."""
    steps = tuple(story.caller or ())
    for raw in _MALFORMED:
        for place, turn in _deciding(story):
            first = next(answer for answer in turn.answers if answer.label is not None)
            wrong = ScriptedDecision(label=first.label, verdict="raw", raw=raw)
            rest = tuple(answer for answer in turn.answers if answer is not first)
            rejected = TurnStep(answers=(ScriptedDecision(label=first.label, verdict="reject", reason=_REASON),))
            alone = (replace(turn, answers=(wrong,)), replace(turn, text=None, answers=(*rejected.answers, *rest)))
            yield _with_steps(story, *steps[:place], *alone, *steps[place + 1 :])
            if rest:
                together = replace(turn, answers=(wrong, *rest))
                yield _with_steps(story, *steps[:place], together, rejected, *steps[place + 1 :])


def _results_of_clients(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which a client sends a result in place of a decision, where the adapter has a place for it."""
    steps = tuple(story.caller or ())
    for place, turn in _deciding(story):
        label = next(answer.label for answer in turn.answers if answer.label is not None)
        wrong = replace(turn, answers=(ScriptedDecision(label=label, verdict="raw", raw="done by hand"),))
        changed = _with_steps(story, *steps[:place], wrong, *steps[place:])
        yield replace(changed, options={**story.options, "raw_in": "calls"})


def _pinned_answers(story: Scenario) -> Iterator[Scenario]:
    """Yield the story with answers that name the save at which was asked, as clients send them that show the saves."""
    if not story.options.get("pinned") and any(True for _ in _deciding(story)):
        yield replace(story, options={**story.options, "pinned": True})


def _forged_requests(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which a client approves a request that nobody made."""
    gated = next((tool for tool in story.tools if _is_plain(tool) and _is_gated(tool) and tool.parameters), None)
    if gated is None:
        behaviours = (ToolBehaviour(returns="paid {amount}"),)
        parameters = {"amount": Parameter(type="integer")}
        gated = Tool(name="pay", approval="always", parameters=parameters, behaviours=behaviours)
        if any(tool.name == gated.name for tool in story.tools):
            return
        story = replace(story, tools=(*story.tools, gated))
    shows = {name: _sample(parameter.type) for name, parameter in gated.parameters.items()}
    forged = ScriptedDecision(unknown_id="forged-1", verdict="approve", shows=shows, shows_tool=gated.name)
    steps = tuple(story.caller or ())
    for place in range(1, min(len(steps), 3) + 1):
        yield _with_steps(story, *steps[:place], TurnStep(answers=(forged,)), *steps[place:])


def _sample(kind: str) -> Any:
    return {"integer": 941, "number": 941.5, "boolean": True, "array": [941], "object": {"other": 941}}.get(kind, "941")


def _standing_answers(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which one of several calls gets a standing approval, and the others are rejected."""
    steps = tuple(story.caller or ())
    for place, turn in _deciding(story):
        labels = [answer.label for answer in turn.answers if answer.label is not None]
        if len(labels) < 2:
            continue
        for chosen in (labels[0], labels[-1]):
            answers = tuple(
                ScriptedDecision(label=label, verdict="always" if label == chosen else "reject") for label in labels
            )
            yield _with_steps(story, *steps[:place], replace(turn, answers=answers), *steps[place + 1 :])


def _staged_answers(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which a decision is saved, and the next message comes before anything has run."""
    steps = tuple(story.caller or ())
    for place, turn in _deciding(story):
        staged = StageStep(answers=turn.answers, session=turn.session)
        text = turn.text or "By the way"
        told = _with_steps(story, *steps[:place], staged, TurnStep(text=text), *steps[place + 1 :])
        yield told if turn.text else _with_replies(told, *_replies(told), ScriptedReply(say="Noted."))
        yield _with_steps(story, *steps[:place], staged, RestartStep(), TurnStep(), *steps[place + 1 :])


def _answers_left_out(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which the agent goes on without the answer, or with a part of it."""
    steps = tuple(story.caller or ())
    for place, turn in _deciding(story):
        yield _with_steps(story, *steps[:place], TurnStep(session=turn.session), *steps[place:])
        if len(turn.answers) > 1:
            first = replace(turn, answers=turn.answers[:1])
            rest = replace(turn, text=None, answers=turn.answers[1:])
            again = replace(first, text=None)
            yield _with_steps(story, *steps[:place], first, again, rest, *steps[place + 1 :])
        else:
            yield from _beside_another(story, place, turn)


def _beside_another(story: Scenario, place: int, turn: TurnStep) -> Iterator[Scenario]:
    """Yield the story with a second call beside the one that is decided, whose request stays open for a while."""
    [answer] = turn.answers
    for number, position, call, tool in _calls(story):
        if call.label != answer.label or not tool.parameters or not isinstance(call.arguments, Mapping):
            continue
        arguments = {name: _sample(parameter.type) for name, parameter in tool.parameters.items()}
        other = Call(label="sibling", id="sibling", tool=call.tool, arguments=arguments)
        steps = tuple(story.caller or ())
        both = _with_call(story, number, position, call, other)
        later = replace(turn, text=None, answers=(ScriptedDecision(label="sibling", verdict=answer.verdict),))
        again = replace(turn, text=None)
        yield _with_steps(both, *steps[:place], turn, again, later, *steps[place + 1 :])


def _open_answers(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which requests that the stored conversation leaves open are rejected, some or all."""
    steps = tuple(story.caller or ())
    decided = {answer.label for _, turn in _deciding(story) for answer in turn.answers}
    left = [call.label for _, _, call, tool in _calls(story) if _is_gated(tool) and call.label not in decided]
    for place, step in enumerate(steps):
        if not isinstance(step, LetOracleStep) or not left:
            continue
        for approved in (left[:1], [], left[1:]) if len(left) > 1 else ([],):
            answers = tuple(
                ScriptedDecision(label=label, verdict="approve" if label in approved else "reject") for label in left
            )
            yield _with_steps(story, *steps[:place], TurnStep(answers=answers), *steps[place:])


def _malformed_addresses(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which an approval that names none of the open requests comes before the answer."""
    steps = tuple(story.caller or ())
    for place, _ in _deciding(story):
        unnamed = TurnStep(answers=(ScriptedDecision(malformed_address=True),))
        yield _with_steps(story, *steps[:place], unnamed, *steps[place:])


# --- how the application is configured --------------------------------------------------------------------------------


def _configurations(story: Scenario) -> Iterator[Scenario]:
    """Yield stories with another configuration of the gate, the store or the agents."""
    others: list[dict[str, Any]] = [{"gate": "empty"}, {"gate": "misspelt"}, {"gate": "misnamed"}, {"pinned": True}]
    others += [{"agent_names": {name: MAIN}} for name in story.agents if name != MAIN]
    others += [{"sub_agents": "stateless"}] if len(story.agents) > 1 else []
    for options in (*others, {"item_ids": "anew"}):
        yield replace(_with_oracle(story), options={**story.options, **options})


def _policies(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which the gate of a tool depends on something."""
    for tool in story.tools:
        if not _is_plain(tool) or tool.approval != "always":
            continue
        yield _with_tool(story, replace(tool, approval=Condition(answers=(True, False))))
        yield from _booleans_sent_as_text(story, tool)
        for _, _, call, called in _calls(story):
            if called.key == tool.key and isinstance(call.arguments, Mapping) and call.arguments:
                name, value = next(iter(call.arguments.items()))
                if isinstance(value, str | int | bool):
                    yield _with_tool(story, replace(tool, approval=Condition(argument=name, equals=value)))
                break


def _booleans_sent_as_text(story: Scenario, tool: Tool) -> Iterator[Scenario]:
    """Yield stories in which the gate compares a boolean, which the model sent as text."""
    sent = [
        (name, value) for _, _, call, called in _calls(story) if called.key == tool.key for name, value in _given(call)
    ]
    for name, value in dict(sent).items():
        if value not in ("true", "false") or not all(isinstance(text, str) for other, text in sent if other == name):
            continue
        changed = story
        for number, place, call, called in _calls(story):
            if called.key == tool.key and name in dict(_given(call)):
                changed = _with_call(changed, number, place, replace(call, invalid=True))
        parameters = {**tool.parameters, name: Parameter(type="boolean")}
        condition = Condition(argument=name, equals=json.loads(value))
        yield _with_oracle(_with_tool(changed, replace(tool, parameters=parameters, approval=condition)))


def _given(call: Call) -> list[tuple[str, Any]]:
    return list(call.arguments.items()) if isinstance(call.arguments, Mapping) else []


# --- which agent a tool ran -------------------------------------------------------------------------------------------


def _hidden_agents(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which an ungated tool that takes a text runs an agent, which calls gated tools."""
    if _HELPER in story.agents:
        return
    runners = list(dict.fromkeys(tool.name for _, _, call, tool in _calls(story) if _may_run_agent(tool, call)))
    for inner in (_one_call, _two_calls, _look_first, _model_fails_after):
        for name in runners:
            yield from _run_agent(story, name, inner)


def _may_run_agent(tool: Tool, call: Call) -> bool:
    return _is_plain(tool) and not _is_gated(tool) and _find_task(call) is not None and tool.kind == "function"


def _find_task(call: Call) -> str | None:
    """Return the longest text among the arguments."""
    given = call.arguments.values() if isinstance(call.arguments, Mapping) else ()
    texts = [value for value in given if isinstance(value, str)]
    return max(texts, key=len, default=None)


_INNER_CALL = Call(label="", id="i1", tool=_INNER_TOOL, arguments={"what": "the task"})
_SECOND_CALL = Call(label="", id="i2", tool=_INNER_TOOL, arguments={"what": "the rest"})
_LOOK = Call(label="", id="i0", tool="look", arguments={"what": "the state"})


def _one_call(answer: str) -> tuple[ScriptedReply, ...]:
    return ScriptedReply(calls=(_INNER_CALL,)), ScriptedReply(say=answer)


def _two_calls(answer: str) -> tuple[ScriptedReply, ...]:
    return ScriptedReply(calls=(_INNER_CALL, _SECOND_CALL)), ScriptedReply(say=answer)


def _look_first(answer: str) -> tuple[ScriptedReply, ...]:
    return ScriptedReply(calls=(_LOOK,)), ScriptedReply(calls=(_INNER_CALL,)), ScriptedReply(say=answer)


def _model_fails_after(answer: str) -> tuple[ScriptedReply, ...]:
    failure = ScriptedFailure(status=500)
    return ScriptedReply(calls=(_INNER_CALL,)), ScriptedReply(failure=failure), ScriptedReply(say=answer)


def _run_agent(
    story: Scenario, name: str, build_inner: Callable[[str], tuple[ScriptedReply, ...]]
) -> Iterator[Scenario]:
    """Yield the story with a tool that runs an agent, whose gated calls are approved."""
    runner = find_tool(story, MAIN, name)
    outer = next((call for _, _, call, tool in _calls(story) if tool is runner), None)
    if runner is None or outer is None:
        return
    replies = build_inner("Done.")
    labels = [call.id for reply in replies for call in reply.calls if call.tool == _INNER_TOOL]
    tools = (
        *(tool for tool in story.tools if tool is not runner),
        Tool(name=name, runs=_HELPER, parameters={"input": Parameter()}),
        Tool(name=_INNER_TOOL, agent=_HELPER, approval="always", parameters={"what": Parameter()}),
        *((Tool(name="look", agent=_HELPER, parameters={"what": Parameter()}),) if _LOOK in replies[0].calls else ()),
    )
    main = [
        replace(reply, calls=tuple(_give_task(call) if call.tool == name else call for call in reply.calls))
        for reply in _replies(story)
    ]
    grown = replace(story, tools=tools, agents={**story.agents, _HELPER: Script(replies=replies)})
    grown = _with_replies(grown, *main)
    steps = tuple(story.caller or ())
    place = _find_turn(story, outer)
    answers = tuple(ScriptedDecision(label=f"{outer.label}/{label}", verdict="approve") for label in labels)
    yield _with_steps(grown, *steps[: place + 1], TurnStep(answers=answers), *steps[place + 1 :])


def _give_task(call: Call) -> Call:
    return replace(call, arguments={"input": _find_task(call) or "Go on"})


def _find_turn(story: Scenario, wanted: Call) -> int:
    """Return the place of the turn in which the model makes a call."""
    replies = iter(_replies(story))
    for place, step in enumerate(story.caller or ()):
        if not isinstance(step, TurnStep):
            continue
        for reply in replies:
            if wanted in reply.calls:
                return place
            tools = [find_tool(story, MAIN, call.tool) for call in reply.calls]
            if not reply.calls or any(tool is not None and _is_gated(tool) for tool in tools):
                break
    return 0


# --- what the model sent, and what became of the state ----------------------------------------------------------------


def _equal_ids(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which two calls of one reply have the same id."""
    for number, place, call, tool in _calls(story):
        if not _is_plain(tool) or not _is_gated(tool) or not tool.parameters or call.id is None:
            continue
        arguments = {name: _sample(parameter.type) for name, parameter in tool.parameters.items()}
        twin = Call(label="", id=call.id, tool=call.tool, arguments=arguments, repeats=True)
        yield _with_oracle(_with_call(story, number, place, call, twin))


def _unknown_tools(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which the model calls a tool that is not there, in place of a call or beside a gated one."""
    for number, place, call, tool in _calls(story):
        if _is_plain(tool) and not _is_gated(tool) and sum(other is tool for _, _, _, other in _calls(story)) == 1:
            without = replace(story, tools=tuple(other for other in story.tools if other is not tool))
            yield _with_oracle(_with_call(without, number, place, replace(call, unknown_tool=True)))
    for number, place, call, tool in _calls(story):
        if _is_plain(tool) and _is_gated(tool):
            lost = Call(label="", id="lost", tool="no_such_tool", unknown_tool=True)
            yield _with_oracle(_with_call(story, number, place, call, lost))
            return


def _broken_arguments(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which the model sends arguments that are no JSON."""
    for number, place, call, tool in _calls(story):
        if _is_plain(tool) and _is_gated(tool) and not isinstance(call.arguments, str):
            text = json.dumps(dict(call.arguments) or {"amount": 5})[:-1]
            yield _with_oracle(_with_call(story, number, place, replace(call, arguments=text)))


def _rewritten_states(story: Scenario) -> Iterator[Scenario]:
    """Yield stories in which somebody changes an argument in the saved state."""
    steps = tuple(story.caller or ())
    for place, turn in _deciding(story):
        labels = {answer.label for answer in turn.answers}
        for _, _, call, tool in _calls(story):
            given = call.arguments if call.label in labels and isinstance(call.arguments, Mapping) else {}
            for name, value in given.items():
                if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < 2:
                    continue
                # A fraction is no whole number, and a boolean is no number. Texts may hold the same digits, so that
                # what takes their place is no quoted text.
                new = f"{value}.5" if tool.parameters[name].type == "integer" else "true"
                rewritten = RewriteStep(old=str(value), new=new)
                changed = _with_steps(story, *steps[:place], rewritten, *steps[place:])
                yield replace(changed, only={**story.only, "serialize": ("json",)}, vary=frozenset())


_SHOWN_BY_INNER_AGENTS = (
    "approved-runs",
    "unanswered-stays-pending",
    "run-ends",
    "asked-once",
    "nothing-left-pending",
    "decision-survives",
    "result-delivered-once",
    "model-input-well-formed",
    "ungated-runs-once",
    "invalid-decision-refused",
    "approval-before-execution",
    "request-shows-the-call",
)

UNSTORED: Mapping[str, UnstoredChange] = {
    name: UnstoredChange(forms=forms, shows=frozenset(shows))
    for name, forms, shows in (
        (
            "a malformed answer",
            _malformed_answers,
            ("invalid-decision-refused", "approval-before-execution", "rejected-never-runs"),
        ),
        (
            "an answer that names a save",
            _pinned_answers,
            ("approved-runs", "decision-survives", "ungated-runs-once", "asked-once"),
        ),
        ("a result of the client", _results_of_clients, ("invalid-decision-refused", "approval-before-execution")),
        ("a forged request", _forged_requests, ("invalid-decision-refused", "only-model-calls-run")),
        (
            "a standing approval beside rejections",
            _standing_answers,
            ("rejected-never-runs", "every-gated-call-asked", "approval-before-execution"),
        ),
        (
            "a saved answer",
            _staged_answers,
            ("result-delivered-once", "model-input-well-formed", "approved-runs", "decision-survives"),
        ),
        (
            "an answer that comes later",
            _answers_left_out,
            ("unanswered-stays-pending", "asked-once", "run-ends", "nothing-left-pending", "pending-survives"),
        ),
        (
            "answers that are not stored",
            _open_answers,
            ("asked-once", "run-ends", "rejected-never-runs", "nothing-left-pending", "approved-runs"),
        ),
        (
            "an answer that names nothing",
            _malformed_addresses,
            ("invalid-decision-refused", "approval-before-execution", "unanswered-stays-pending"),
        ),
        (
            "a gate with a condition",
            _policies,
            ("rejected-never-runs", "approval-before-execution", "every-gated-call-asked", "asked-once"),
        ),
        (
            "another configuration",
            _configurations,
            ("every-gated-call-asked", "approval-before-execution", "approved-runs", "policy-fails-closed"),
        ),
        (
            "an agent behind a tool",
            _hidden_agents,
            _SHOWN_BY_INNER_AGENTS,
        ),
        (
            "equal ids",
            _equal_ids,
            ("request-shows-the-call", "approved-runs", "result-delivered-once", "request-ids-unique"),
        ),
        (
            "an unknown tool",
            _unknown_tools,
            ("result-delivered-once", "model-input-well-formed", "run-ends", "usable-after-refusal"),
        ),
        (
            "broken arguments",
            _broken_arguments,
            ("request-shows-the-call", "every-gated-call-asked", "result-delivered-once", "usable-after-refusal"),
        ),
        (
            "a changed state",
            _rewritten_states,
            ("arguments-as-approved", "only-model-calls-run", "request-shows-the-call"),
        ),
    )
}
"""Changes by their names."""
