"""Notation of journals in short lines, for examples and tests.

    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done

This is a whole journal: numbers, model inputs, requests and the end are filled in. If no tool is declared, there are
`pay(amount: integer)`, which is always gated, and `read(path)`, which never is. A line is an event, or a few that
belong together:

    tool NAME(PARAMETER: TYPE, ...) APPROVAL    declares a tool; `always`, `never`, `when ARGUMENT > NUMBER`,
                                                `sometimes` (the framework's own condition), then
                                                `hosted SERVER`, `mcp SERVER`, `of AGENT`, `runs AGENT`, `to AGENT`,
                                                and `guarded` or `screened` by the user's own code
    rules, reaches, expect, fresh, streaming, limits NAME=NUMBER, variant NAME=VALUE    what the header says
    remembers NUMBER                            the agent's settings limit how many earlier messages its model sees
    attached                                    a user's own agent runs
    wants NAME: TYPE, ...                       the agent must end with such an answer
    send TEXT, go                               a turn begins, with the decisions made since the last one
    pause CALLS, finish TEXT, fail TYPE: TEXT   it ends; `2: finish` ends turn 2 of several that are open; `done` is
                                                `model Done.` and `finish Done.`; `shows CALLS` is a pause with
                                                requests that the harness has not matched with calls, `hides CALLS` one
                                                with requests that do not show the ids of their calls
    model [@o1/helper] [TEXT] [CALL; CALL]      the model is asked and answers; `agent NAME`: that of another agent
                                                in the same conversation
    think ID [before c2]: TEXT                  its next answer begins with this reasoning, or has it before that call;
                                                the text `...` stands for reasoning that is shown encrypted only;
                                                over Chat Completions (`variant protocol=chat`) it has no signature
    offers TOOL, ...                            the tools that its next input offers; by default those of the agent
    answers NAME=VALUE, ..., outputs NAME=VALUE, ...    the model gives such an answer, and a turn ends with one
    down [@o1/helper] STATUS, refusal RULE, exhausted  it is asked and does not answer; `down broken`: its stream breaks
    hangup [c1 [runs|ends]]                     the caller disconnects while the call runs, or the model is asked; the
                                                turn is over; a call that `runs` on can return later; if it `ends`,
                                                the turn is not over before `fail CallerGone`
    crash [PLACE]                               the agent's process is killed, while the model is asked or at a place
                                                such as `before c1`; the turn is over
    full [c1]                                   nothing can be stored from here on, or after that call
    stop PLACE, wake TURN                       the agent's process is stopped at a place, and goes on in that turn
    hosted CALL -> TEXT                         its next answer reports a hosted call
    run CALL -> TEXT | !! ERROR | ??            a tool runs and returns, raises, or asks again
    asks CALL                                   a body of a user's own is entered, and asks
    reenter CALL -> TEXT | ??                   its body asked, and is entered again with the answer
    start CALL, returns c1 TEXT, raises c1 ERROR    the same in two parts; `gives c1 JSON` returns and tells nothing
    elicit c1 TEXT [at URL]                     the server of a call that runs asks the caller
    asked c1 TEXT [at URL] -> ACTION [NAME=VALUE, ...]    the caller is shown that and answers; `asked ?` is what no
                                                server asks
    elicited c1 ACTION [NAME=VALUE, ...]        the server gets the answer `accept`, `decline`, `cancel` or `refuse WHY`
    gate c1 yes|no|raises                       the policy is asked
    approve, reject, edit, always, never, raw   a decision about a call, or about an unknown request `?ID`; `own edit`
                                                is one that the agent was told in words of its own, and `approve c1 as
                                                NAME=VALUE` is made from a copy of the request that shows this
    stage, cancel, trim N, signal NAME          other steps of the caller; what a stream shows: `show text TEXT`,
                                                `show call|request c1`, `show result c1 [TEXT]`
    save NAME, restore NAME [: CALLS]           the store; `digest TEXT` after a save, `again TEXT` after a restore,
                                                `without TOOL` before one, and `takes TOOL(PARAMETER: TYPE, ...)` for
                                                a tool with other parameters from then on, `renamed AGENT NAME` for an
                                                agent with another name; `unsaved TYPE: TEXT`,
                                                `unrestored NAME TYPE: TEXT`; `mode MODE`
    rewrite OLD NEW [shown|hidden]              the text of the last save is changed; what it shows of calls, or not
    tell c1 TEXT, untell c1, forget c1, change c1 NAME=VALUE, say TEXT,
    user|remind [@o1/helper] TEXT, drop [@o1/helper] say|user|other TEXT,
    respond c1 yes|no REASON, rename c1 ID, split c1,
    twice c1, instruct TEXT, unthink ID, rethink ID TEXT, unsign ID, resign ID SIGNATURE, unname ID, repeat ID,
    defer ID, advance ID
                                                changes what the model's next input holds
    session NAME, lost WHAT, skip WHY, stuck, end HOW [: CALLS]; `: none` if nothing is listed at the end
    unclosed WHAT                               an agent does not close after the end

A CALL is `LABEL TOOL(NAME=VALUE, ...)`, or the label alone for the call as the model made it; its id is the last part
of its label, or given as `LABEL@ID`, `LABEL@-` for none.
"""

from __future__ import annotations

from pytest_approvals.errors import JournalError, suggest_name
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.notation.builder import JournalBuilder

__all__ = ["parse_notation"]


def parse_notation(text: str) -> list[Event]:
    """Return the events of a journal in short lines.

    Raises:
        JournalError: A line is none of those above.
    """
    builder = JournalBuilder()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(" #")[0].strip()
        if words and not words.startswith("#"):
            _parse_line(builder, number, words)
    return builder.finish()


def _parse_line(builder: JournalBuilder, number: int, line: str) -> None:
    turn, colon, rest = line.partition(": ")
    if colon and turn.isdigit():
        builder.ending, line = int(turn), rest
    verb, _, rest = line.partition(" ")
    # The methods of the builder are the list of verbs.
    write = getattr(builder, f"_on_{verb}", None)
    if write is None:
        verbs = [name.removeprefix("_on_") for name in dir(builder) if name.startswith("_on_")]
        raise JournalError("notation", number, f"no line begins with {verb!r}{suggest_name(verb, verbs)}")
    try:
        write(rest.strip())
    except (KeyError, ValueError, AttributeError, IndexError) as error:
        raise JournalError("notation", number, f"cannot read {line!r}: {error!r}") from error
