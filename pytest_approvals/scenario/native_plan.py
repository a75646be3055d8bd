"""What a native script does: a scenario, played without an agent, and what has to come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pytest_approvals.scenario.model import (
    Call,
    LeaveStep,
    LetOracleStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
    all_replies,
)


class Names(Protocol):
    """What a language can name."""

    def is_tool_name(self, name: str) -> bool:
        """Return whether a tool can have a name: the language takes it, and the scripts have no other use for it."""

    def is_parameter_name(self, name: str) -> bool:
        """Return whether a parameter of a tool can have a name."""


class Inexpressible(Exception):
    """A feature of a scenario that no native script has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A turn of the caller with a decision about every open request, by the id of the call."""

    decisions: Mapping[str, ScriptedDecision]
    text: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A turn of the caller with a text, when no request is open."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """A turn of the caller without a text and without a decision, while requests are open."""


Turn: TypeAlias = Answers | Message | GoOn


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a script does, and what has to come of it.

    Attributes:
        turns: The caller's turns.
        replies: The model's replies that are reached.
        ran: Calls that have to run, with their arguments.
        asked: Ids of calls that have to be asked about, in the order of the script; again after a turn that answers
            nothing.
        told: By id of a settled call, words that have to be in what the model is told about it; about the last one with
            this id.
    """

    turns: list[Turn] = field(default_factory=list)
    replies: list[ScriptedReply] = field(default_factory=list)
    ran: list[tuple[Call, Mapping[str, Any]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)


def plan_script(scenario: Scenario, names: Names, rejection: str | None = None) -> Plan:
    """Play a scenario without an agent.

    Args:
        scenario: The scenario.
        names: What the language of the script can name.
        rejection: What a framework tells the model of every rejected call; None if it tells the reason.

    Raises:
        Inexpressible: The scenario has something that scripts do not.
    """
    _refuse_features(scenario, names)
    tools = {tool.name: tool for tool in scenario.tools}
    plan = Plan()
    waiting = list(scenario.agents["main"].replies)
    pending: list[Call] = []

    def play_replies() -> None:
        while waiting and not pending:
            reply = waiting.pop(0)
            plan.replies.append(reply)
            for call in reply.calls:
                if tools[call.tool].approval == "always":
                    pending.append(call)
                    plan.asked.append(str(call.id))
                else:
                    _run(plan, tools[call.tool], call, call.arguments)
            if not reply.calls:
                return
        if not pending:
            raise Inexpressible("a model that has nothing more to say")

    def answer(decisions: Mapping[str, ScriptedDecision]) -> None:
        if set(decisions) != {call.label for call in pending}:
            raise Inexpressible("an answer to some of the open requests")
        if len({call.id for call in pending}) < len(pending):
            raise Inexpressible("two open requests about calls with one id")
        ids = {call.label: str(call.id) for call in pending}
        plan.turns.append(Answers(decisions={ids[label]: decision for label, decision in decisions.items()}))
        for call in pending:
            _settle(plan, tools[call.tool], call, decisions[call.label], rejection)
        pending.clear()
        play_replies()

    def approve(rounds: int | None) -> None:
        while pending and rounds != 0:
            answer({call.label: ScriptedDecision(label=call.label) for call in pending})
            rounds = None if rounds is None else rounds - 1

    steps = scenario.caller if scenario.caller is not None else (TurnStep(text=scenario.prompt),)
    for step in steps:
        if isinstance(step, LeaveStep):
            return plan
        if isinstance(step, LetOracleStep) and not step.session:
            approve(step.rounds)
        elif isinstance(step, TurnStep) and not step.session and step.is_plain:
            if step.text is not None and (step.answers or pending):
                raise Inexpressible("a message while a request is open")
            if step.text is not None:
                plan.turns.append(Message(text=step.text))
                play_replies()
            elif not step.answers:
                if not pending:
                    raise Inexpressible("a turn without a message when no request is open")
                plan.turns.append(GoOn())
                plan.asked += [str(call.id) for call in pending]
            else:
                decisions = {str(decision.label): decision for decision in step.answers}
                if len(decisions) < len(step.answers):
                    raise Inexpressible("two decisions about one call in one answer")
                answer(decisions)
        else:
            raise Inexpressible(_describe_step(step))
    approve(None)
    return plan


def _describe_step(step: Any) -> str:
    if getattr(step, "session", ""):
        return "a second session"
    if getattr(step, "hangs_up", None) is not None:
        return "a caller that disconnects"
    if getattr(step, "crashes", None) is not None:
        return "a process that is killed"
    if getattr(step, "disk_full", None) is not None:
        return "a disk that is full"
    if any(getattr(step, key, None) is not None for key in ("fails_once", "loses", "reads")):
        return "a store that fails"
    return f"the step {type(step).__name__.removesuffix('Step').lower()!r}"


def _settle(plan: Plan, tool: Tool, call: Call, decision: ScriptedDecision, rejection: str | None) -> None:
    if decision.verdict == "reject":
        plan.told[str(call.id)] = (decision.reason or "") if rejection is None else rejection
    elif decision.verdict in ("approve", "edit"):
        _run(plan, tool, call, decision.arguments if decision.verdict == "edit" else call.arguments)


def _run(plan: Plan, tool: Tool, call: Call, given: Any) -> None:
    defaults = {name: parameter.default for name, parameter in tool.parameters.items() if not parameter.required}
    # In the order of the parameters, in which a function notes them.
    arguments = {name: {**defaults, **given}[name] for name in tool.parameters if name in {**defaults, **given}}
    plan.ran.append((call, arguments))
    returns = str(tool.behaviours[0].returns)
    for name, value in arguments.items():
        returns = returns.replace(f"{{{name}}}", str(value))
    plan.told[str(call.id)] = returns


def _refuse_features(scenario: Scenario, names: Names) -> None:
    """Refuse what native scripts do not have.

    Raises:
        Inexpressible: It is named.
    """
    script = scenario.agents["main"]
    for name, value in (
        ("a structured answer", scenario.answer),
        ("several agents", set(scenario.agents) - {"main"}),
        ("replies for each first message", script.by_prompt),
        ("limits", (scenario.limits.model_replies, scenario.limits.tool_calls) != (None, None)),
        ("tools that are held back", scenario.held_back),
        ("options of an adapter", scenario.options),
        ("an oracle that does more than approve", set(scenario.oracles) - {"approve_all"}),
        ("made-up values", scenario.fakes),
        ("a state that is saved", "none" not in scenario.only.get("serialize", ("none",))),
    ):
        if value:
            raise Inexpressible(name)
    for tool in scenario.tools:
        _refuse_tool(tool, names)
    known = {tool.name for tool in scenario.tools}
    for _, reply in all_replies(scenario):
        if reply.has_reasoning:
            raise Inexpressible("reasoning of the model")
        if reply.failure is not None or reply.answer is not None or reply.takes:
            raise Inexpressible("a model that fails, takes its time, or gives a structured answer")
        for call in reply.calls:
            if call.id is None or call.unknown_tool or call.invalid or isinstance(call.arguments, str):
                raise Inexpressible(f"the call {call.label}: an id, a known tool and valid arguments only")
            if call.tool not in known:
                raise Inexpressible(f"the tool {call.tool!r}")
    for step in scenario.caller or ():
        for decision in getattr(step, "answers", ()):
            _refuse_decision(decision)


def _does_more(behaviour: ToolBehaviour) -> bool:
    """Return whether an execution does something before it returns, or raises."""
    return any((behaviour.waits_for, behaviour.raises, behaviour.elicits))


def _refuse_tool(tool: Tool, names: Names) -> None:
    behaviour = tool.behaviours[0]
    for name, value in (
        (f"the tool {tool.name!r} of kind {tool.kind}", tool.kind != "function"),
        (f"the tool {tool.name!r}, which is an agent or hands over to one", tool.runs or tool.hands_over_to),
        (f"a condition on the tool {tool.name!r}", not isinstance(tool.approval, str)),
        (f"the tool {tool.name!r}, which does something else each time", tool.per_call or len(tool.behaviours) > 1),
        (f"the tool {tool.name!r}, which waits, asks or raises", _does_more(behaviour)),
        (f"the tool {tool.name!r}, whose result is not text", not isinstance(behaviour.returns, str)),
        (f"the name {tool.name!r} of a tool", not names.is_tool_name(tool.visible_name) or tool.called is not None),
        (f"a parameter of {tool.name!r} with this name", not all(map(names.is_parameter_name, tool.parameters))),
    ):
        if value:
            raise Inexpressible(name)


def _refuse_decision(decision: ScriptedDecision) -> None:
    plain = ScriptedDecision(
        label=decision.label, verdict=decision.verdict, reason=decision.reason, arguments=decision.arguments
    )
    if decision != plain or decision.label is None or decision.verdict not in ("approve", "reject", "edit"):
        raise Inexpressible(f"a decision other than approve, reject or edit of arguments on {decision.label}")
