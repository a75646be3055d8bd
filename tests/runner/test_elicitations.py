"""What MCP servers ask in the middle of executions, and what comes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import ElicitationAnswer, Elicits, Parameter, ToolRaised
from pytest_approvals.journal.events import ToolEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.runner.elicitations import Elicitations, OpenElicitation, build_question, complete
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.scenario.model import (
    Call,
    Scenario,
    Script,
    ScriptedElicitation,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
)
from pytest_approvals.simulation.reference import ReferenceAgent

Played = Callable[..., RecordedRun]

ASKED = ScriptedElicitation(message="Pay {amount}?", form={"account": Parameter()})
BEHAVIOUR = ToolBehaviour(elicits=ASKED, returns="paid {amount} from {account}")


def waiting(number: int = 1, message: str = "Pay 5?", behaviour: ToolBehaviour = BEHAVIOUR) -> OpenElicitation:
    question = Elicits(message)
    question.number = number
    return OpenElicitation(question=question, behaviour=behaviour, arguments={"amount": 5})


def test_a_question_names_the_arguments() -> None:
    """Text and form are made of the call."""
    question = build_question(BEHAVIOUR, {"amount": 5})

    form = {"type": "object", "properties": {"account": {"type": "string"}}, "required": ["account"]}
    assert ("Pay 5?", form, None) == (question.message, question.form, question.url)


def test_what_is_accepted_is_done_with_its_fields() -> None:
    """The result names them as it names arguments."""
    answer = ElicitationAnswer(action="accept", content={"account": "savings"})

    assert "paid 5 from savings" == complete(waiting(), answer)


@pytest.mark.parametrize(("action", "result"), [("decline", "declined"), ("cancel", "cancelled")])
def test_what_is_not_accepted_is_not_done(action: str, result: str) -> None:
    """The result says which of the two it was."""
    assert f"not done: the caller {result}" == complete(waiting(), ElicitationAnswer(action=action))


def test_what_does_not_fit_the_form_is_an_error() -> None:
    """The server validates what was filled in."""
    with pytest.raises(ToolRaised, match="the answer does not fit the form: 'account' is a required property"):
        complete(waiting(), ElicitationAnswer(action="accept", content={}))


def test_a_client_that_does_not_ask_fails_the_tool() -> None:
    """The reason is told."""
    with pytest.raises(ToolRaised, match="the client did not ask the caller: not supported"):
        complete(waiting(), ElicitationAnswer(action="refuse", error="not supported"))


def test_a_tool_may_fail_once_it_has_its_answer() -> None:
    """An acceptance does not make it succeed."""
    failing = waiting(behaviour=ToolBehaviour(elicits=ASKED, raises="no money"))

    with pytest.raises(ToolRaised, match="no money"):
        complete(failing, ElicitationAnswer(action="accept", content={"account": "savings"}))


def test_of_two_equal_questions_the_one_that_was_not_shown_is_found() -> None:
    """A client does not say which call it is asked about."""
    elicitations = Elicitations()
    first, second = waiting(1), waiting(2)
    elicitations.open(first)
    elicitations.open(second)
    first.shown = True

    assert second is elicitations.find("Pay 5?")


def test_a_question_whose_equal_got_the_answer_is_yet_to_be_shown() -> None:
    """The caller was shown the one that was answered, then, though nobody could know that before."""
    elicitations = Elicitations()
    first, second = waiting(1), waiting(2)
    elicitations.open(first)
    elicitations.open(second)
    first.shown = True

    elicitations.close(2)

    assert (False, first) == (first.shown, elicitations.find("Pay 5?"))


def test_what_nobody_asks_is_not_found() -> None:
    """Neither is a question that is answered."""
    elicitations = Elicitations()
    elicitations.open(waiting(1))
    elicitations.close(1)

    assert None is elicitations.find("Pay 5?")


def test_a_caller_without_an_answer_cancels() -> None:
    """That is what somebody does who looks away."""
    assert "cancel" == Elicitations().answer(waiting()).action


class Forgetful(ReferenceAgent):
    """An agent that hands no answer to its server."""

    async def run_body(self, conversation: Any, call: Any) -> Any:
        try:
            return await super().run_body(conversation, call)
        except RuntimeError as error:
            return str(error)

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        raise RuntimeError("nobody is asked")


def asking(**answers: ElicitationAnswer) -> Scenario:
    """A payment whose server asks, and the caller's answers by label."""
    pay = Tool(
        name="pay", parameters={"amount": Parameter(type="integer")}, kind="mcp", server="bank", behaviours=(BEHAVIOUR,)
    )
    call = Call(label="c1", id="c1", tool="pay", arguments={"amount": 5})
    script = Script(replies=(ScriptedReply(calls=(call,)), ScriptedReply(say="Done.")))
    steps = (TurnStep(text="Pay", elicitations=answers),)
    return Scenario(id="tests/asking", title="A story.", tools=(pay,), agents={"main": script}, caller=steps)


def test_the_caller_answers_by_the_label_of_the_call(played: Played) -> None:
    """What is asked, shown and answered is recorded, with the execution."""
    run = played(asking(c1=ElicitationAnswer(action="accept", content={"account": "savings"})))

    (elicitation,) = read_history(run.events).elicitations
    assert elicitation.asked is not None
    assert elicitation.answered is not None
    assert (1, [1], 1) == (elicitation.asked.x, [each.x for each in elicitation.shown], elicitation.answered.x)
    assert {"account": "savings"} == elicitation.answered.content
    assert [] == [*find_violations(run.events)]


def test_an_execution_that_gets_no_answer_ends_with_its_turn(played: Played) -> None:
    """It is cancelled, so that the journal is like any other."""
    run = played(asking(), agent=Forgetful)

    assert ["cancelled"] == [event.how for event in run.events if isinstance(event, ToolEnd)]
    assert [] == [*find_violations(run.events)]
