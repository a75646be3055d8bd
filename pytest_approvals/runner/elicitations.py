"""Elicitations: what MCP servers ask the caller in the middle of executions, and what comes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import Elicits, ToolRaised
from pytest_approvals.agent_side.contract.types import ElicitationAnswer, Parameter
from pytest_approvals.runner.mcp.arguments import find_argument_errors
from pytest_approvals.runner.probe_tools import format_result
from pytest_approvals.runner.script import ScriptedCall
from pytest_approvals.scenario.model import ToolBehaviour

NOT_DONE = {"decline": "not done: the caller declined", "cancel": "not done: the caller cancelled"}
"""Results of executions whose question was not accepted."""

_CANCELLED = ElicitationAnswer(action="cancel")


@dataclass(slots=True, kw_only=True)
class OpenElicitation:
    """A question of an execution that waits for its answer.

    Attributes:
        session: The session that made the call.
        call: The call; None if the execution is of no call of the script.
        shown: The caller was shown it.
    """

    question: Elicits
    behaviour: ToolBehaviour
    arguments: Mapping[str, Any]
    session: str = ""
    call: ScriptedCall | None = None
    shown: bool = False


class Elicitations:
    """The elicitations of one run."""

    def __init__(self) -> None:
        self._open: dict[int, OpenElicitation] = {}
        self._answers: dict[tuple[str, str], ElicitationAnswer] = {}

    def set_answers(self, session: str, answers: Mapping[str, ElicitationAnswer]) -> None:
        """Answer so from now on, by the labels of calls."""
        self._answers |= {(session, label): answer for label, answer in answers.items()}

    def open(self, elicitation: OpenElicitation) -> None:
        """Let an execution wait."""
        self._open[elicitation.question.number] = elicitation

    def close(self, number: int) -> OpenElicitation | None:
        """Return the question of an execution, which waits no longer; None if it does not wait."""
        closed = self._open.pop(number, None)
        if closed is not None and not closed.shown:
            # The answer to an equal question was its answer: the other one has yet to be shown.
            self._forget_shown(closed)
        return closed

    def _forget_shown(self, closed: OpenElicitation) -> None:
        for each in self._open.values():
            if each.shown and each.session == closed.session and each.question.message == closed.question.message:
                each.shown = False
                return

    def close_all(self, session: str) -> list[OpenElicitation]:
        """Return the questions of a session, which wait no longer."""
        numbers = [number for number, each in self._open.items() if each.session == session]
        return [self._open.pop(number) for number in numbers]

    def find(self, message: str) -> OpenElicitation | None:
        """Return the question with that message, if it is open: the oldest that the caller was not shown yet.

        A client does not say which call it is asked about.
        """
        asked = [each for each in self._open.values() if each.question.message == message]
        return min(asked, key=lambda each: (each.shown, each.question.number), default=None)

    def answer(self, elicitation: OpenElicitation | None) -> ElicitationAnswer:
        """Return what the caller answers; a caller whose script says nothing cancels."""
        label = elicitation.call.label if elicitation is not None and elicitation.call is not None else None
        if elicitation is None or label is None:
            return _CANCELLED
        elicitation.shown = True
        return self._answers.get((elicitation.session, label), _CANCELLED)


def build_question(behaviour: ToolBehaviour, arguments: Mapping[str, Any]) -> Elicits:
    """Return the question that an execution asks with these arguments."""
    asked = behaviour.elicits
    assert asked is not None
    form = _build_form(asked.form) if asked.url is None else None
    return Elicits(format_result(asked.message, arguments), form, asked.url)


def complete(elicitation: OpenElicitation, answer: ElicitationAnswer) -> Any:
    """Return the result of an execution that has got its answer.

    Raises:
        ToolRaised: The tool fails, the client did not ask, or what was filled in does not fit the form, which the
            server validates.
    """
    if answer.action == "refuse":
        raise ToolRaised(f"the client did not ask the caller: {answer.error}")
    if answer.action != "accept":
        return NOT_DONE[answer.action]
    behaviour, content = elicitation.behaviour, dict(answer.content or {})
    assert behaviour.elicits is not None
    error = next(find_argument_errors(content, behaviour.elicits.form), None)
    if error is not None:
        raise ToolRaised(f"the answer does not fit the form: {error}")
    if behaviour.raises is not None:
        raise ToolRaised(behaviour.raises)
    return format_result(behaviour.returns, {**elicitation.arguments, **content})


def _build_form(fields: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": field.type} for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
    }
