"""
The caller's script in Python: answers and steps.

An answer says what a decision is (`approve("c1")`), a step what the caller does (`decide(approve("c1"))`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from pytest_approvals.agent_side.contract import Parameter
from pytest_approvals.errors import UsageError
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
)

# --- answers ----------------------------------------------------------------------------------------------------------


def approve(label: str | None = None, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Approves the call with that label; without one, the answer is for `unknown` or `malformed`."""
    return ScriptedDecision(label=label, verdict="approve", source=source)


def reject(
    label: str | None = None, reason: str | None = None, *, source: AnswerSource | None = None
) -> ScriptedDecision:
    """Rejects the call with that label."""
    return ScriptedDecision(label=label, verdict="reject", reason=reason, source=source)


def edit(
    label: str | None,
    arguments: Mapping[str, Any],
    *,
    tool: str | None = None,
    invalid: bool = False,
    unknown_tool: bool = False,
    source: AnswerSource | None = None,
) -> ScriptedDecision:
    """Approves the call with that label with other arguments, all of them given, and perhaps another tool."""
    return ScriptedDecision(
        label=label,
        verdict="edit",
        arguments=dict(arguments),
        tool=tool,
        invalid=invalid,
        unknown_tool=unknown_tool,
        source=source,
    )


def always(label: str | None = None, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Approves the call with that label and all further calls of its tool."""
    return ScriptedDecision(label=label, verdict="always", source=source)


def never(
    label: str | None = None, reason: str | None = None, *, source: AnswerSource | None = None
) -> ScriptedDecision:
    """Rejects the call with that label and all further calls of its tool."""
    return ScriptedDecision(label=label, verdict="never", reason=reason, source=source)


def raw(label: str | None, value: Any, *, source: AnswerSource | None = None) -> ScriptedDecision:
    """Puts *value* verbatim where the framework takes a decision."""
    return ScriptedDecision(label=label, verdict="raw", raw=value, source=source)


def unknown(request_id: str, answer: ScriptedDecision | None = None) -> ScriptedDecision:
    """Makes *answer*, by default an approval, one about a request id that was never given."""
    return replace(answer or approve(), label=None, unknown_id=request_id)


def malformed(address: Any, answer: ScriptedDecision | None = None) -> ScriptedDecision:
    """Puts *address* verbatim where the framework takes a request, with *answer*, by default an approval."""
    return replace(answer or approve(), label=None, malformed_address=True, address=address)


def showing(
    answer: ScriptedDecision, arguments: Mapping[str, Any] | None = None, *, tool: str | None = None
) -> ScriptedDecision:
    """Makes *answer* one that hands over a request with these arguments, or this tool, in place of the real ones."""
    return replace(answer, shows=None if arguments is None else dict(arguments), shows_tool=tool)


# --- steps ------------------------------------------------------------------------------------------------------------


def send(text: str, *answers: ScriptedDecision, session: str = "", hangs_up: str | None = None) -> TurnStep:
    """Sends a message, together with answers where some are given; perhaps the caller hangs up at a place."""
    return TurnStep(text=text, answers=answers, session=session, hangs_up=hangs_up)


def decide(*answers: ScriptedDecision, session: str = "", hangs_up: str | None = None) -> TurnStep:
    """Hands in answers; perhaps the caller hangs up at a place."""
    return TurnStep(answers=answers, session=session, hangs_up=hangs_up)


def go_on(*, session: str = "", hangs_up: str | None = None) -> TurnStep:
    """Resumes the agent without text and without answers; perhaps the caller hangs up at a place."""
    return TurnStep(session=session, hangs_up=hangs_up)


def let_oracle(rounds: int | None = None, *, session: str = "") -> LetOracleStep:
    """Lets the oracle answer what is pending, until nothing is or *rounds* are over."""
    return LetOracleStep(rounds=rounds, session=session)


def stage(*answers: ScriptedDecision, session: str = "") -> StageStep:
    """Puts answers into the state, without going on."""
    return StageStep(answers=answers, session=session)


def save(name: str, *, session: str = "") -> SaveStep:
    """Saves the state under a name."""
    return SaveStep(name=name, session=session)


def restore(name: str, *, session: str = "") -> RestoreStep:
    """Takes up the state that was saved under that name."""
    return RestoreStep(name=name, session=session)


def restart(
    *,
    fresh: bool = False,
    without: Iterable[str] = (),
    with_tools: Iterable[str] = (),
    parameters: Mapping[str, Mapping[str, str | Parameter]] | None = None,
    session: str = "",
) -> RestartStep:
    """
    Builds the agent anew from the saved state.

    Arguments:
        parameters: By tool, all that it takes from now on.
    """
    return RestartStep(
        fresh=fresh,
        without=tuple(without),
        with_tools=tuple(with_tools),
        parameters={name: build_parameters(one) for name, one in (parameters or {}).items()},
        session=session,
    )


def cancel(*, session: str = "") -> CancelStep:
    """Gives up what is pending."""
    return CancelStep(session=session)


def trim(keep: int, *, session: str = "") -> TrimStep:
    """Lets the framework's own trimming keep the last *keep* messages."""
    return TrimStep(keep=keep, session=session)


def rewrite(
    old: str, new: str, *, where: Literal["every", "shown", "hidden"] = "every", session: str = ""
) -> RewriteStep:
    """Lets what was saved say *new* in place of *old* when it is taken up, everywhere or in some places."""
    return RewriteStep(old=old, new=new, where=where, session=session)


def signal(name: str) -> SignalStep:
    """Gives a signal, for the tools and conditions that wait for it."""
    return SignalStep(name=name)


def together(*steps: TurnStep | SignalStep) -> TogetherStep:
    """Takes turns at the same time."""
    return TogetherStep(steps=steps)


def leave() -> LeaveStep:
    """Leaves: nobody answers what is pending now."""
    return LeaveStep()


def build_parameters(given: Mapping[str, str | Parameter]) -> dict[str, Parameter]:
    """Gives parameters with their shorthands written out."""
    return {name: _build_parameter(one) for name, one in given.items()}


def _build_parameter(given: str | Parameter) -> Parameter:
    if isinstance(given, Parameter):
        return given
    return Parameter(type=given.removesuffix("?"), required=not given.endswith("?"))


def to_steps(given: Iterable[Any]) -> tuple[Step, ...]:
    """
    Gives the steps of a caller, where a text may stand for sending it, and answers for deciding.

    Errors:
        UsageError: Something is no step.
    """
    if isinstance(given, (str, ScriptedDecision)):
        raise UsageError(f"caller= is a list of steps, and not {given!r}")
    return tuple(map(_to_step, given))


def _to_step(given: Any) -> Step:
    match given:
        case str():
            return send(given)
        case ScriptedDecision():
            return decide(given)
        case list() | tuple() if given and all(isinstance(one, ScriptedDecision) for one in given):
            return decide(*given)
    if isinstance(given, Step):
        return given
    raise UsageError(f"a step of the caller is a text, an answer, a list of answers or a step, and not {given!r}")
