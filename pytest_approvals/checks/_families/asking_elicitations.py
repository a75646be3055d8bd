"""Family `asking`, elicitations: what an MCP server asks in the middle of a call is answered by the caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.events import ElicitationAnswered, ElicitationAsked, ElicitationShown
from pytest_approvals.journal.formatting import format_value
from pytest_approvals.journal.history import History, RecordedCall, RecordedElicitation


@check(
    "elicitation-shown",
    severity="lost-request",
    needs=("tool.elicit", "caller.elicited"),
    sources=(
        "https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation",
        "https://modelcontextprotocol.io/specification/draft/basic/patterns/mrtr",
        "anthropics/claude-code#89858",
        "agentfront/frontmcp#279",
    ),
)
def elicitation_shown(history: History) -> Evaluations:
    """What an MCP server asks in the middle of a call must be shown to the caller once, as the server asks it.

    A client that says that it can ask and answers by itself makes up the will of somebody who was never asked. A
    question that is shown twice may be answered twice, and one that shows something else is answered as something else.
    A turn that is cut off need not come to it.

    Passes:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> accept account=savings
        elicited c1 accept account=savings
        returns c1 paid 5
        done

    Passes, the process is killed meanwhile:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        crash started c1

    Passes, nobody knows which of two equal questions is shown first:
        tool pay(amount: integer) never mcp bank
        send Pay
        model c1 pay(amount=5); c2 pay(amount=7)
        start c1
        start c2
        elicit c1 Which account?
        elicit c2 Which account?
        asked c1 Which account? -> decline
        elicited c2 decline
        returns c2 not done
        asked c1 Which account? -> decline
        elicited c1 decline
        returns c1 not done
        done

    Fails, one answer is sent to two equal questions:
        tool pay(amount: integer) never mcp bank
        send Pay
        model c1 pay(amount=5); c2 pay(amount=7)
        start c1
        start c2
        elicit c1 Which account?
        elicit c2 Which account?
        asked c1 Which account? -> decline
        elicited c2 decline
        elicited c1 decline
        returns c1 not done
        returns c2 not done
        done

    Fails, the client declines by itself:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        elicited c1 decline
        returns c1 not done
        done

    Fails, it is asked once more after its answer:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> accept account=savings
        asked c1 Which account? -> accept account=savings
        elicited c1 accept account=savings
        returns c1 paid 5
        done

    Fails, it is shown when its server has an answer:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        elicited c1 decline
        asked c1 Which account? -> decline
        returns c1 not done
        done

    Fails, it is shown at another address:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Confirm at https://bank.invalid
        asked c1 Confirm at https://other.invalid -> decline
        elicited c1 decline
        returns c1 not done
        done

    Fails, the caller is asked what no server asks:
        send Hello
        asked ? Which account? -> cancel
        model Hello.
        finish Hello.
    """
    for elicitation in history.elicitations:
        asked, shown, answered = elicitation.asked, elicitation.shown, elicitation.answered
        if asked is None:
            yield _report(elicitation, "only what a server asks is shown", f"{_format(shown[0])} is shown", shown[0].n)
        elif not shown:
            yield OK if _is_cut_off(elicitation) else _report_unshown(elicitation, asked)
        elif len(shown) > 1:
            yield _report(elicitation, "it is shown once", f"{len(shown)} times", *(each.n for each in shown))
        elif answered is not None and answered.n < shown[0].n:
            yield _report(elicitation, "it is shown before it is answered", "afterwards", answered.n, shown[0].n)
        elif _question(shown[0]) != _question(asked):
            yield _report(elicitation, _format(asked), f"{_format(shown[0])} is shown", asked.n, shown[0].n)
        else:
            yield OK


@check(
    "elicitation-answered-as-given",
    severity="unapproved-effect",
    needs=("tool.elicit", "caller.elicited", "tool.elicited"),
    sources=(
        "https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation",
        "aaif-goose/goose#9024",
        "MCPJam/inspector#433",
        "modelcontextprotocol/python-sdk#2986",
    ),
)
def elicitation_answered_as_given(history: History) -> Evaluations:
    """A server that asks in the middle of a call must get the answer that the caller gave to its question.

    To accept, to decline and to cancel are three answers, and the fields of a form are the caller's own. An acceptance
    that the caller did not give to this question is none: not the approval of the call, not the answer to the question
    of another call, and not an earlier one.

    Passes:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> decline
        elicited c1 decline
        returns c1 not done
        done

    Passes, two questions are open at the same time:
        tool pay(amount: integer) never mcp bank
        send Pay
        model c1 pay(amount=5); c2 pay(amount=7)
        start c1
        start c2
        elicit c1 Pay 5?
        elicit c2 Pay 7?
        asked c2 Pay 7? -> decline
        asked c1 Pay 5? -> accept account=savings
        elicited c1 accept account=savings
        elicited c2 decline
        returns c1 paid 5
        returns c2 not done
        done

    Passes, the caller disconnects before the answer is sent:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> decline
        hangup c1

    Fails, an approval counts as the answer:
        tool pay(amount: integer) always mcp bank
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        elicit c1 Which account?
        elicited c1 accept account=savings
        returns c1 paid 5
        done

    Fails, answers are mixed up:
        tool pay(amount: integer) never mcp bank
        send Pay
        model c1 pay(amount=5); c2 pay(amount=7)
        start c1
        start c2
        elicit c1 Pay 5?
        elicit c2 Pay 7?
        asked c1 Pay 5? -> accept account=savings
        asked c2 Pay 7? -> decline
        elicited c1 decline
        elicited c2 accept account=savings
        returns c1 not done
        returns c2 paid 7
        done

    Fails, a field is lost:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> accept account=savings, rush=false
        elicited c1 accept account=savings
        returns c1 paid 5
        done

    Fails, the server gets no answer:
        tool pay(amount: integer) never mcp bank
        send Pay 5
        model c1 pay(amount=5)
        start c1
        elicit c1 Which account?
        asked c1 Which account? -> accept account=savings
        raises c1 timed out
        done
    """
    for elicitation in history.elicitations:
        asked, answered = elicitation.asked, elicitation.answered
        if asked is None:
            continue
        given = [each for each in elicitation.shown if answered is None or each.n < answered.n]
        if answered is None:
            if given and not _is_cut_off(elicitation):
                yield _report(elicitation, f"the server gets: {_format_answer(given[-1])}", "nothing", given[-1].n)
            else:
                yield OK
        elif not given:
            # Whoever declines without asking keeps a question from the caller, which another check says.
            is_made_up = answered.action == "accept"
            expected, actual = "the caller accepts", f"{_format_answer(answered)}, and the caller is not asked"
            yield _report(elicitation, expected, actual, asked.n, answered.n) if is_made_up else OK
        elif _answer(answered) != _answer(given[-1]):
            expected = f"the server gets: {_format_answer(given[-1])}"
            yield _report(elicitation, expected, _format_answer(answered), given[-1].n, answered.n)
        else:
            yield OK


def _report_unshown(elicitation: RecordedElicitation, asked: ElicitationAsked) -> Failure:
    answered = elicitation.answered
    actual = "the server gets no answer" if answered is None else f"the server gets: {_format_answer(answered)}"
    return _report(elicitation, f"{_format(asked)} is shown", actual, asked.n, 0 if answered is None else answered.n)


def _report(elicitation: RecordedElicitation, expected: str, actual: str, *witness: int) -> Failure:
    execution = elicitation.execution
    call: RecordedCall | None = None if execution is None else execution.call
    session = elicitation.shown[0].session if execution is None else execution.session
    return Failure(expected=expected, actual=actual, witness=witness, call=call, session=session)


def _is_cut_off(elicitation: RecordedElicitation) -> bool:
    """Return whether the turn of an execution was cut off, so that nobody waits for the answer."""
    execution = elicitation.execution
    return execution is not None and execution.turn is not None and execution.turn.cut_off_at is not None


def _question(event: ElicitationAsked | ElicitationShown) -> tuple[str, str, str | None]:
    return event.message, json.dumps(event.form, sort_keys=True), event.url


def _answer(event: ElicitationShown | ElicitationAnswered) -> tuple[str, str]:
    """Return an answer in a form that is equal for equal answers; only an acceptance has content."""
    content: Mapping[str, Any] = (event.content or {}) if event.action == "accept" else {}
    return event.action, json.dumps(content, sort_keys=True)


def _format(event: ElicitationAsked | ElicitationShown) -> str:
    return format_value(event.message) + ("" if event.url is None else f" at {event.url}")


def _format_answer(event: ElicitationShown | ElicitationAnswered) -> str:
    if isinstance(event, ElicitationAnswered) and event.error is not None:
        return f"{event.action}, {event.error}"
    return event.action if not event.content else f"{event.action} {format_value(event.content)}"
