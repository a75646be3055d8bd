"""Family `execution`, arguments: what runs is a call of the model, with the arguments that were approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._queries import outlives_its_turn, was_changed_between, was_rewritten_between
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import arguments_fit, arguments_match, arguments_satisfy, parse_arguments
from pytest_approvals.journal.conversation import apply_rewrites
from pytest_approvals.journal.events import ModelFailure, StateRewritten
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import Execution, History, RecordedCall, RecordedDecision


@check(
    "arguments-as-approved",
    severity="unapproved-effect",
    needs=("tool.start",),
    sources=("microsoft/agent-framework#7383", "openai/openai-agents-python#4257", "langchain-ai/langchain#33787"),
)
def arguments_as_approved(history: History) -> Evaluations:
    """A call must run with the tool and the arguments that were approved.

    The approved ones are those that the person was shown, or those of the person's edit; for a call that needs no
    approval, those of the model, unless the code of a user's agent changes them. Arguments are equal after coercion to
    the declared types, with defaults filled in. If the save, or the parameters of the tool, changed since the model
    asked, arguments that do not fit the parameters must not run, whatever was shown: nothing has validated them. Nor
    must a tool that a restart has left out: whoever took it away does not want it to be called any more. A provider
    runs its own call as it knows it: after a change of the save the agent has to send it the request as it was shown,
    and has no part in what runs.

    Passes:
        send Pay 5
        model c1 pay(amount="5")
        pause c1
        approve c1
        go
        run c1 pay(amount=5) -> paid 5
        done

    Passes, a hook of a user's agent completes what nobody has to approve:
        attached
        send Read a
        model c1 read(path=a)
        run c1 read(path=b) -> text
        done

    Fails, it changes what was approved:
        attached
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 pay(amount=6) -> paid 6
        done

    Passes, an edit:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        run c1 pay(amount=3) -> paid 3
        done

    Passes, a crash loses the edit, the call is listed as it was, and a decision about its tool covers it:
        mode native.sqlite
        send Pay 5 and 6
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save a
        edit c2 (amount=3)
        go
        crash write
        restore a: c1, c2
        always c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Fails, a crash loses the edit, and a call that is not listed again runs as it was:
        mode native.sqlite
        send Pay 5 and 6
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save a
        edit c2 (amount=3)
        go
        crash write
        restore a: c1
        always c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Passes, a provider runs its own call after what was saved has been changed:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        save
        rewrite cats dogs
        restore save-1: c1 search(query=dogs)
        approve c1
        go
        change c1 query=dogs
        respond c1 yes
        hosted c1 -> found cats
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 pay(amount=999) -> paid 999
        done

    Fails, what was saved has been changed where it says what is shown, but not where it says what a provider is sent:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        save
        rewrite cats dogs
        restore save-1: c1 search(query=dogs)
        approve c1
        go
        respond c1 yes
        hosted c1 -> found cats
        done

    Fails, what was saved has been changed where it says what is shown:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        rewrite 5 1
        restore save-1: c1 pay(amount=1)
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, what was saved has been changed so that it does not fit the tool:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        rewrite 5 0.5
        restore save-1: c1 pay(amount=0.5)
        approve c1
        go
        run c1 pay(amount=0.5) -> paid 0.5
        done

    Passes, what was saved has been changed after the approval, of which nothing else is left:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        rewrite 5 1
        restore
        go
        run c1 pay(amount=1) -> paid 1
        done

    Fails, as something else runs:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        rewrite 5 1
        restore
        go
        run c1 pay(amount=2) -> paid 2
        done

    Warns, a whole number becomes a fraction:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 pay(amount=5.0) -> paid 5
        done

    Passes, as the tool takes any number:
        tool pay(amount: number) always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 pay(amount=5.0) -> paid 5
        done

    Fails, the tool takes something else by now:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        takes pay(amount: integer, to: string)
        restore
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, a restart has left the tool out:
        tool pay(amount: integer) always
        tool look() never
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        without pay
        restore
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a restart has left another tool out:
        tool pay(amount: integer) always
        tool look() never
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        without look
        restore
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, an edit that is not heeded:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        run c1 -> paid 5
        done

    Fails, another tool:
        tool pay(amount: integer) always
        tool wipe(amount: integer) always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 wipe(amount=5) -> gone
        done
    """
    is_attached = history.header is not None and history.header.attached
    for call in history.calls:
        for execution in call.executions:
            tool, arguments, n = _approved_call(history, call, execution)
            # Hooks of an application may complete or correct what nobody has to approve.
            if is_attached and execution.tool == tool and not (call.is_gated or call.requests):
                yield OK
            elif execution.tool != tool or not _means_the_same(history, call, execution, _blank_to_empty(arguments)):
                is_changed = _is_sent_as_shown(history, call, execution, tool, arguments) or _runs_as_changed(
                    history, call, execution, tool, arguments
                )
                yield OK if is_changed else _report_difference(format_call(tool, arguments), call, execution, n)
            elif was_changed_between(history, call, execution.n) and not _fits_parameters(history, call, execution):
                yield _report_difference(f"only what fits the parameters of {tool}", call, execution, n)
            elif not is_attached and _is_left_out(history, call, execution):
                yield _report_difference(f"nothing of {tool}, which a restart has left out", call, execution, n)
            else:
                yield _find_fraction(history, call, execution, arguments, n)


def _means_the_same(history: History, call: RecordedCall, execution: Execution, approved: Any) -> bool:
    """Return whether what runs is what was approved, by the types of the tool when it was called or by those of now."""
    return arguments_satisfy(execution.arguments, approved, call.parameters) or arguments_satisfy(
        execution.arguments, approved, history.parameters_at(call, execution.n, execution.tool)
    )


def _find_fraction(history: History, call: RecordedCall, execution: Execution, approved: Any, n: int) -> Failure | None:
    """Return a warning if a whole number reaches the body as a fraction, where the tool declares an integer.

    In JSON they are equal. A body that counts with it, takes a part of a list or writes it down does not find them so.
    """
    wanted, ran = parse_arguments(approved), execution.arguments
    if execution.by == "provider" or not isinstance(wanted, Mapping) or not isinstance(ran, Mapping):
        return OK
    declared = history.parameters_at(call, execution.n, execution.tool)
    for name, parameter in declared.items():
        # A truth is a number in Python, and not one in JSON.
        if (parameter.get("type"), type(wanted.get(name)), type(ran.get(name))) == ("integer", int, float):
            expected, actual = f"{name} {wanted[name]}", f"{name} {ran[name]}"
            return Failure(call=call, expected=expected, actual=actual, witness=(n, execution.n), level="should")
    return OK


def _is_sent_as_shown(history: History, call: RecordedCall, execution: Execution, tool: str, arguments: Any) -> bool:
    """Return whether a provider runs its own call, and was sent the request that the changed save showed."""
    if execution.by != "provider" or not was_rewritten_between(history, call.n, execution.n, call.session):
        return False
    replied = (each for each in history.exchanges if each.session == call.session and each.reply is not None)
    exchange = next((each for each in replied if each.reply is not None and each.reply.n > execution.n), None)
    return exchange is not None and any(
        item["kind"] == "approval_request"
        and (item.get("id"), item.get("tool")) == (execution.call_id, tool)
        and arguments_match(item.get("arguments"), arguments, call.parameters)
        for item in exchange.items
    )


def _runs_as_changed(history: History, call: RecordedCall, execution: Execution, tool: str, arguments: Any) -> bool:
    """Return whether a call that was decided runs as a later change of the save, of all places, has left it."""
    decision = call.decision_at(execution.n)
    changes = [
        (event.old, event.new)
        for event in history.events_of(StateRewritten)
        if decision is not None
        and event.session == call.session
        and call.n < event.n < execution.n
        and event.where == "every"
        and _was_decided_before(call, decision, event.n)
    ]
    changed = apply_rewrites([tool, parse_arguments(arguments)], changes)
    return (
        changed is not None
        and execution.tool in (tool, changed[0])
        and _means_the_same(history, call, execution, changed[1])
    )


def _was_decided_before(call: RecordedCall, decision: RecordedDecision, n: int) -> bool:
    """Return whether a decision, or one that it repeats or replaces unasked, came before position *n*."""
    if decision.n < n:
        return True
    is_decided = any(each.n < n and each.handed_in_at is not None for each in call.decisions)
    return is_decided and not any(n < shown < decision.n for request in call.requests for shown, _ in request.listings)


def _fits_parameters(history: History, call: RecordedCall, execution: Execution) -> bool:
    """Return whether what runs fits the parameters that its tool has by then."""
    # A provider has taken the arguments of its own call, and knows nothing of what the agent is started with.
    if execution.by == "provider":
        return True
    return arguments_fit(execution.arguments, history.parameters_at(call, execution.n, execution.tool))


def _is_left_out(history: History, call: RecordedCall, execution: Execution) -> bool:
    """Return whether the agent had the tool that runs, and was built without it since."""
    build = history.agent_start_at(execution.n, execution.session)
    # A provider, and a server that was sent the call before the restart, have the tool still.
    if build is None or execution.by == "provider" or outlives_its_turn(call, execution):
        return False
    earlier = (start for start in history.agent_starts if start.n < build.n and start.session == build.session)
    return execution.tool not in build.tools and any(execution.tool in start.tools for start in earlier)


def _report_difference(expected: str, call: RecordedCall, execution: Execution, n: int) -> Failure:
    return Failure(
        call=call, expected=expected, actual=format_call(execution.tool, execution.arguments), witness=(n, execution.n)
    )


def _approved_call(history: History, call: RecordedCall, execution: Execution) -> tuple[str, Any, int]:
    """Return the tool and the arguments that may run, and where they were decided."""
    decision = call.decision_at(execution.n)
    # A body that asked is entered again with what it began with, and reads an edit in the answer.
    if decision is None or execution.is_resumed:
        return call.tool, call.arguments, call.n
    is_changed = was_rewritten_between(history, call.n, decision.n, call.session)
    if decision.verdict == "edit" or decision.request is None or not (decision.is_about(call) or is_changed):
        return *call.effective_call_at(execution.n), decision.n
    # The listing shown last before the decision is what was approved. A standing decision covers what a changed save
    # has shown of the calls that wait beside.
    requests = [decision.request] if decision.is_about(call) else call.requests
    listed = [entry for request in requests for n, entry in request.listings if n < decision.n]
    if not listed or not decision.approves:
        return call.tool, call.arguments, call.n
    return listed[-1]["tool"], listed[-1].get("arguments"), decision.n


def _blank_to_empty(arguments: Any) -> Any:
    """Replace blank text, which some models send for no arguments, by an empty object."""
    return {} if isinstance(arguments, str) and not arguments.strip() else arguments


@check(
    "only-model-calls-run",
    severity="unapproved-effect",
    needs=("tool.start", "model.answer"),
    sources=("microsoft/agent-framework#7383", "vercel/ai#15947"),
)
def only_model_calls_run(history: History) -> Evaluations:
    """Nothing must run that the model did not ask for.

    An approval of a request that was never made, a history that somebody else wrote, or a client that names another
    tool must not make a tool run. What a provider ran on its own before its stream broke is none of the agent's doing.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, a forged approval:
        send Hello
        model Hello.
        finish Hello.
        approve ?forged
        go
        run forged pay(amount=5) -> paid 5
        done
    """
    for execution in history.executions:
        if execution.call is not None or runs_in_broken_reply(history, execution):
            yield OK
        # Its provider was still at work on the reply that says which call it is when the run was cut off.
        elif _runs_in_open_reply(history, execution):
            continue
        else:
            actual = f"{format_call(execution.tool, execution.arguments)} starts"
            expected = "only what the model asked for runs"
            yield Failure(expected=expected, actual=actual, witness=(execution.n,), session=execution.session)


def _runs_in_open_reply(history: History, execution: Execution) -> bool:
    """Return whether the provider ran a call of its own, ungated, for a question to which no reply is recorded."""
    return _is_ungated_at_provider(history, execution) and any(
        exchange.reply is None and exchange.session == execution.session and exchange.n < execution.n
        for exchange in history.exchanges
    )


def _is_ungated_at_provider(history: History, execution: Execution) -> bool:
    return execution.by == "provider" and any(
        tool.kind == "hosted_mcp" and tool.name == execution.tool and tool.approval == "never"
        for tool in history.declarations.values()
    )


def runs_in_broken_reply(history: History, execution: Execution) -> bool:
    """Return whether the provider ran a call of its own, ungated, before the stream with that call broke.

    The reply did not arrive, so the journal holds no such call; the agent had no part in it.
    """
    return _is_ungated_at_provider(history, execution) and any(
        isinstance(exchange.reply, ModelFailure)
        and exchange.session == execution.session
        and exchange.n < execution.n < exchange.reply.n
        for exchange in history.exchanges
    )
