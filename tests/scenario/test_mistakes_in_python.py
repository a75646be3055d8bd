"""What only Python can get wrong: parts that no file could hold."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import Condition, Limits
from pytest_approvals.errors import ScenarioError, UsageError
from pytest_approvals.scenario.build import calls, elicits, returns, say, scenario, tool
from pytest_approvals.scenario.build_steps import send
from pytest_approvals.scenario.model import (
    LetOracleStep,
    RewriteStep,
    ScriptedDecision,
    ScriptedFailure,
    ScriptedReply,
    StageStep,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
)

PAY = tool("pay", parameters={"amount": "integer"}, approval="always")
PAYS = [calls("pay", amount=5), say("Paid.")]


def paying(**more: Any) -> dict[str, Any]:
    """The parts of a scenario of one payment, some of them replaced."""
    return {"title": "A payment", "tools": [PAY], "model": PAYS} | more


def gated(condition: Condition) -> dict[str, Any]:
    """A payment that is gated on this condition."""
    return paying(tools=[tool("pay", parameters={"amount": "integer"}, approval=condition)])


def asked(answer: Any, *, url: str | None = None) -> dict[str, Any]:
    """A payment whose server asks for an account, or for an address to be opened, and is answered so."""
    question = elicits("From where?", form=None if url else {"account": "string"}, url=url)
    pay = tool("pay", returns("paid", elicits=question), parameters={"amount": "integer"}, kind="mcp", server="bank")
    return paying(tools=[pay], caller=[send("Pay", elicitations={"c1": answer})])


def answered(answer: ScriptedDecision) -> dict[str, Any]:
    """A payment that is answered so."""
    return paying(caller=["Pay", answer])


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (paying(title=" "), "the title is empty; describe in one sentence what happens"),
        (paying(sources=["PR 5"]), "invalid source 'PR 5': expected OWNER/REPO#NUMBER or a URL"),
        (paying(servers={"bank": "pipe"}), "no tool of kind mcp is offered by a server 'bank'"),
        (
            paying(tools=[PAY, tool("find", kind="mcp", server="bank")], servers={"bank": "pipe"}),
            "invalid transport 'pipe': expected http or stdio",
        ),
        (paying(reaches={"paused": 0}), "invalid count 0 of 'paused': must be at least 1"),
        (paying(limits=Limits(tool_calls=0)), "invalid limit 0: must be at least 1"),
        (paying(only={"stream": []}), "'stream' is pinned to an empty list"),
        (
            paying(vary=["stream"]),
            "'stream' cannot be varied on request; valid: chunking, history, protocol, resume, source",
        ),
        (paying(tools=[PAY, PAY]), "the agent 'main' has two tools that are called 'pay'"),
        (
            paying(tools=[tool("pay", parameters={"amount": "int"})]),
            "unknown parameter type 'int'; did you mean 'integer'?",
        ),
        (paying(tools=[PAY, Tool(name="look", behaviours=())]), "'look' has no behaviour; a tool returns or raises"),
        (
            paying(tools=[PAY, tool("look", ToolBehaviour(asks_again="Sure?", raises="no"), ToolBehaviour())]),
            "an execution that asks again ends there; what follows is the next one",
        ),
        (
            paying(
                tools=[
                    PAY,
                    tool("look", returns(elicits=elicits("Sure?")), kind="mcp", server="bank"),
                ]
            ),
            "a server asks for a form or for an address to be opened: say `form` or `url`",
        ),
        (
            paying(
                tools=[
                    PAY,
                    tool(
                        "look",
                        ToolBehaviour(asks_again="Sure?", elicits=elicits("Why?", form={"why": "string"})),
                        ToolBehaviour(),
                        kind="mcp",
                        server="bank",
                    ),
                ]
            ),
            "an execution that asks again ends there; what it elicits belongs to the next one",
        ),
        (asked({"accept": {"acount": "x"}}), "unknown field 'acount'; did you mean 'account'?"),
        (asked("accept"), "the field 'account' is missing; write {accept: {account: ...}}"),
        (asked({"accept": {"account": 5}}), "'account' is of type string, not the number 5"),
        (
            asked({"accept": {"account": "x"}}, url="https://bank.invalid"),
            "an address is opened or not, which has no content: write `accept`",
        ),
        (
            gated(Condition(answers=(True,), raises="down")),
            "a condition compares an argument, answers from a list, or raises: one of the three",
        ),
        (
            gated(Condition(argument="amount", greater_than=1, less_than=9)),
            "a condition makes one comparison, not greater_than and less_than",
        ),
        (paying(model=[]), "the model of 'main' has no reply"),
        (
            paying(model=[*PAYS, ScriptedReply(failure=ScriptedFailure(status=501))]),
            "a model fails with 429, 500, 503, 529, disconnect, timeout, truncated or garbled, not 501",
        ),
        (
            paying(model=[*PAYS, ScriptedReply(failure=ScriptedFailure(status=0, how="late"))]),
            "a model fails with 429, 500, 503, 529, disconnect, timeout, truncated or garbled, not late",
        ),
        (
            paying(model=[*PAYS, ScriptedReply(failure=ScriptedFailure(status=0, retry_after=1))]),
            "a provider says so with a status; write `fails: 429`, or 500, 503, 529",
        ),
        (
            paying(model=[*PAYS, ScriptedReply(say="x", failure=ScriptedFailure(status=0, after_chunks=-1))]),
            "invalid number of pieces -1: must be at least 0",
        ),
        (paying(caller=[]), "the caller does nothing; leave it out, and the oracle answers until the end"),
        (answered(ScriptedDecision()), "an answer is about one thing: a label, an unknown id, or a malformed address"),
        (
            answered(ScriptedDecision(label="c1", unknown_id="r9")),
            "an answer is about one thing: a label, an unknown id, or a malformed address",
        ),
        (
            answered(ScriptedDecision(label="c1", verdict="edit")),
            "an edit says all arguments that the call shall have: {edit: {...}}",
        ),
        (answered(ScriptedDecision(label="c1", reason="fine")), "only a rejection has a reason, not 'approve'"),
        (paying(caller=["Pay", StageStep(answers=())]), "there is nothing to stage; give answers by label"),
        (paying(caller=["Pay", LetOracleStep(rounds=0)]), "invalid number of rounds 0: must be at least 1"),
        (paying(caller=["Pay", TrimStep(keep=0)]), "invalid number of messages 0: must be at least 1"),
        (paying(caller=["Pay", RewriteStep(old="a", new="a")]), "'a' in place of 'a' changes nothing"),
        (
            paying(caller=["Pay", TogetherStep(steps=(TurnStep(),))]),
            "two or more steps can be simultaneous, one of them a turn at least",
        ),
        (
            paying(model=[calls("pay", {"amount": [1]}), say("Paid.")]),
            "'amount' of pay is of type integer, not an array; say `invalid: true` if that is meant",
        ),
    ],
)
def test_a_part_that_cannot_be_meant_is_named(parts: dict[str, Any], what: str) -> None:
    """Parts are validated however they were made."""
    with pytest.raises(ScenarioError) as refused:
        scenario(**parts)

    assert what == refused.value.what


@pytest.mark.parametrize(
    "answer", ["approve", {"decline": {}}, {"accept": {}, "cancel": {}}, {"accept": "savings"}, None]
)
def test_an_answer_to_a_server_is_a_word_or_fields(answer: Any) -> None:
    """Anything else is none."""
    with pytest.raises(UsageError, match='to what \'c1\' elicits: expected "accept", "decline", "cancel" or '):
        asked(answer)
