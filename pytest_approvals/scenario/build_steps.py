"""Builders of the caller's script in Python: decisions and steps.

A decision says what the caller decides (`approve("c1")`), a step what the caller does (`decide(approve("c1"))`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import methodcaller
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from pytest_approvals.agent_side.contract import ElicitationAnswer, Parameter
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.scenario.model import (
    AnswerSource,
    CancelStep,
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
    parse_parameter,
)

__tracebackhide__ = methodcaller("errisinstance", ApprovalsError)
"""pytest leaves the lines of this module out of a traceback that ends in a mistake of the test."""

Elicitations: TypeAlias = Mapping[str, str | Mapping[str, Mapping[str, Any]]]
"""Answers to what MCP servers ask in the middle of calls, by label."""

# --- decisions --------------------------------------------------------------------------------------------------------


def approve(label: str | None = None, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Approve the call with that label; without one, the decision is for `unknown` or `malformed`."""
    return ScriptedDecision(label=label, verdict="approve", source=source)


def reject(
    label: str | None = None, reason: str | None = None, *, source: AnswerSource | None = None
) -> ScriptedDecision:
    """Reject the call with that label."""
    return ScriptedDecision(label=label, verdict="reject", reason=reason, source=source)


def edit(
    label: str | None,
    arguments: Mapping[str, Any] | None = None,
    *,
    tool: str | None = None,
    invalid: bool = False,
    unknown_tool: bool = False,
    source: AnswerSource | None = None,
    **by_name: Any,
) -> ScriptedDecision:
    """Approve the call with other arguments, which must be complete, and perhaps another tool.

    `edit("c1", amount=5)`; arguments with the names of parameters go into a mapping: `edit("c1", {"tool": "saw"})`.

    Raises:
        UsageError: There is neither a mapping nor an argument by name, or there are both.
    """
    if (arguments is None) == (not by_name):
        said = "no arguments" if arguments is None else "arguments by name and a mapping"
        raise UsageError(f"edit({label!r}) has {said}; write edit({label!r}, amount=5) or edit({label!r}, {{...}})")
    return ScriptedDecision(
        label=label,
        verdict="edit",
        arguments=dict(by_name if arguments is None else arguments),
        tool=tool,
        invalid=invalid,
        unknown_tool=unknown_tool,
        source=source,
    )


def always(label: str | None = None, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Approve the call with that label and all further calls of its tool."""
    return ScriptedDecision(label=label, verdict="always", source=source)


def never(
    label: str | None = None, reason: str | None = None, *, source: AnswerSource | None = None
) -> ScriptedDecision:
    """Reject the call with that label and all further calls of its tool."""
    return ScriptedDecision(label=label, verdict="never", reason=reason, source=source)


def raw(label: str | None, value: Any, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Submit *value* verbatim in place of a decision."""
    return ScriptedDecision(label=label, verdict="raw", raw=value, source=source)


def unknown(request_id: str, answer: ScriptedDecision | None = None) -> ScriptedDecision:
    """Turn *answer*, by default an approval, into one for a request id that was never given."""
    return replace(answer or approve(), label=None, unknown_id=request_id)


def malformed(address: Any, answer: ScriptedDecision | None = None) -> ScriptedDecision:
    """Submit *address* verbatim in place of a request, with *answer*, by default an approval."""
    return replace(answer or approve(), label=None, malformed_address=True, address=address)


# --- steps ------------------------------------------------------------------------------------------------------------


def send(
    text: str,
    *answers: ScriptedDecision,
    session: str = "",
    hangs_up: str | None = None,
    crashes: str | None = None,
    stops: str | None = None,
    disk_full: str | None = None,
    elicitations: Elicitations = MappingProxyType({}),
    fails_once: str | None = None,
    loses: Literal["write"] | None = None,
    reads: Literal["stale"] | None = None,
) -> TurnStep:
    """Send a message, perhaps with decisions.

    The caller may disconnect at the point *hangs_up*, or the agent's process be killed at the point *crashes*. Among
    turns at the same time, it may be stopped at the point *stops*, over the turns that follow. From *disk_full*
    on, nothing can be stored until the turn has ended; from *fails_once* on, until it comes to its next call or model
    request. What it has stored may be lost afterwards (*loses*), and it may begin with the state as it was stored
    before the last turn (*reads*).

    *elicitations* says what the caller answers, from this turn on, to what MCP servers ask in the middle of calls, by
    the label of the call: `accept`, `decline`, `cancel`, or `{"accept": {...}}` with the fields of the form.
    """
    return TurnStep(
        text=text,
        answers=answers,
        session=session,
        hangs_up=hangs_up,
        crashes=crashes,
        stops=stops,
        disk_full=disk_full,
        elicitations=_build_answers(elicitations),
        fails_once=fails_once,
        loses=loses,
        reads=reads,
    )


def decide(
    *answers: ScriptedDecision,
    session: str = "",
    hangs_up: str | None = None,
    crashes: str | None = None,
    stops: str | None = None,
    disk_full: str | None = None,
    elicitations: Elicitations = MappingProxyType({}),
    fails_once: str | None = None,
    loses: Literal["write"] | None = None,
    reads: Literal["stale"] | None = None,
) -> TurnStep:
    """Submit decisions; the turn may be cut off or held up, or its store may fail, as in `send`."""
    return TurnStep(
        answers=answers,
        session=session,
        hangs_up=hangs_up,
        crashes=crashes,
        stops=stops,
        disk_full=disk_full,
        elicitations=_build_answers(elicitations),
        fails_once=fails_once,
        loses=loses,
        reads=reads,
    )


def go_on(
    *,
    session: str = "",
    hangs_up: str | None = None,
    crashes: str | None = None,
    stops: str | None = None,
    disk_full: str | None = None,
    elicitations: Elicitations = MappingProxyType({}),
    fails_once: str | None = None,
    loses: Literal["write"] | None = None,
    reads: Literal["stale"] | None = None,
) -> TurnStep:
    """Resume the agent without text or decisions; the turn or its store may fail, as in `send`."""
    return TurnStep(
        session=session,
        hangs_up=hangs_up,
        crashes=crashes,
        stops=stops,
        disk_full=disk_full,
        fails_once=fails_once,
        loses=loses,
        reads=reads,
        elicitations=_build_answers(elicitations),
    )


def _build_answers(written: Elicitations) -> dict[str, ElicitationAnswer]:
    return {label: _build_answer(label, answer) for label, answer in written.items()}


def _build_answer(label: str, answer: Any) -> ElicitationAnswer:
    match answer:
        case "accept" | "decline" | "cancel":
            return ElicitationAnswer(action=answer)
        case {"accept": Mapping() as content, **others} if not others:
            return ElicitationAnswer(action="accept", content=dict(content))
    message = 'expected "accept", "decline", "cancel" or {"accept": {...}}'
    raise UsageError(f"Invalid answer {answer!r} to what {label!r} elicits: {message}")


def let_oracle(rounds: int | None = None, *, session: str = "") -> LetOracleStep:
    """Let the oracle answer pending requests until none is left, or for *rounds* rounds."""
    return LetOracleStep(rounds=rounds, session=session)


def stage(*answers: ScriptedDecision, session: str = "") -> StageStep:
    """Put decisions into the state without resuming."""
    return StageStep(answers=answers, session=session)


def save(name: str, *, session: str = "") -> SaveStep:
    """Save the state under a name."""
    return SaveStep(name=name, session=session)


def restore(name: str, *, session: str = "") -> RestoreStep:
    """Restore the state that was saved under that name."""
    return RestoreStep(name=name, session=session)


def restart(
    *,
    fresh: bool = False,
    without: Iterable[str] = (),
    with_tools: Iterable[str] = (),
    parameters: Mapping[str, Mapping[str, str | Parameter]] | None = None,
    renamed: Mapping[str, str] | None = None,
    session: str = "",
    annotations: Mapping[str, Mapping[str, bool]] | None = None,
) -> RestartStep:
    """Rebuild the agent from the saved state.

    Args:
        fresh: In a fresh process.
        without: Tools that are missing from now on.
        with_tools: Held-back tools that are present from now on.
        parameters: New parameters by tool, all of them.
        renamed: New names of agents, by the names that they have in the scenario.
        session: The session.
        annotations: What servers say about tools from now on, all of it, by tool.
    """
    return RestartStep(
        fresh=fresh,
        without=tuple(without),
        with_tools=tuple(with_tools),
        parameters={tool: build_parameters(types) for tool, types in (parameters or {}).items()},
        renamed=dict(renamed or {}),
        annotations={tool: dict(said) for tool, said in (annotations or {}).items()},
        session=session,
    )


def cancel(*, session: str = "") -> CancelStep:
    """Cancel the pending requests."""
    return CancelStep(session=session)


def trim(keep: int, *, session: str = "") -> TrimStep:
    """Trim the history to the last *keep* messages with the framework's own function."""
    return TrimStep(keep=keep, session=session)


def rewrite(
    old: str, new: str, *, where: Literal["every", "shown", "hidden"] = "every", session: str = ""
) -> RewriteStep:
    """Replace *old* by *new* in the saved state before it is restored, everywhere or in some places."""
    return RewriteStep(old=old, new=new, where=where, session=session)


def signal(name: str) -> SignalStep:
    """Give a signal to the tools and conditions that wait for it."""
    return SignalStep(name=name)


def together(*steps: TurnStep | SignalStep) -> TogetherStep:
    """Run turns at the same time."""
    return TogetherStep(steps=steps)


def leave() -> LeaveStep:
    """Leave with requests unanswered."""
    return LeaveStep()


def build_parameters(types: Mapping[str, str | Parameter]) -> dict[str, Parameter]:
    """Return parameters with their shorthands expanded."""
    return {
        name: parse_parameter(parameter) if isinstance(parameter, str) else parameter
        for name, parameter in types.items()
    }


def to_steps(steps: Iterable[Any]) -> tuple[Step, ...]:
    """Return the steps of a caller; a text is sent, decisions are submitted.

    Raises:
        UsageError: A value cannot be a step.
    """
    if isinstance(steps, (str, ScriptedDecision)):
        raise UsageError(f"Invalid caller {steps!r}: expected a list of steps")
    return tuple(map(_to_step, steps))


def _to_step(value: Any) -> Step:
    match value:
        case str():
            return send(value)
        case ScriptedDecision():
            return decide(value)
        case list() | tuple() if value and all(isinstance(decision, ScriptedDecision) for decision in value):
            return decide(*value)
    if isinstance(value, Step):
        return value
    raise UsageError(f"Invalid step {value!r}: expected a text, a decision, a list of decisions or a step")
