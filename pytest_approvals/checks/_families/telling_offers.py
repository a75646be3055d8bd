"""Family `telling`, offers: a model is offered the tools of its own agent."""

from __future__ import annotations

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.history import Exchange, History


@check(
    "own-tools-offered",
    severity="mistold",
    needs=("model.request",),
    sources=("MervinPraison/PraisonAI#1842", "microsoft/autogen#6859"),
)
def own_tools_offered(history: History) -> Evaluations:
    """A model must be offered no tool that only another agent has, and should be offered some of its own.

    An agent is what its tools let it do. After a hand-off, or in a sub-agent, a model with the tools of another agent
    calls what its agent was not given, and cannot do its own work. Which of its own tools an agent offers at a time is
    up to it, and after a restart they may be others; one that offers none of them cannot act, which is a warning. A
    tool that was rejected for good need not be offered. Which of a user's agents has which tool is not known, so theirs
    are not judged.

    Passes:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper Which account?
        tell o1 Which account?
        done

    Passes, some of its tools:
        tool pay(amount: integer) always
        tool read(path) never
        offers read
        send Read a
        model c1 read(path=a)
        run c1 -> text
        done

    Passes, its only tool is gone after a restart:
        tool pay(amount: integer) always
        send Hi
        model Hello.
        finish Hello.
        save
        without pay
        restore save-1:
        send Pay 5
        done

    Passes, its only tool was rejected for good:
        tool pay(amount: integer) always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        never c1
        go
        tell c1 rejected
        offers
        done

    Fails, a sub-agent is offered the tools of its caller:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 ask(input="Pay 5")
        offers ask
        model @o1/helper Which account?
        tell o1 Which account?
        done

    Fails, the agent that takes over is offered the tools of the first one:
        tool to_clerk() never to clerk
        tool pay(amount: integer) always of clerk
        send Pay 5
        model t1 to_clerk()
        tell t1 clerk takes over
        agent clerk
        offers to_clerk, pay
        done

    Warns, it is offered none:
        tool pay(amount: integer) always
        tool read(path) never
        send Read a
        model c1 read(path=a)
        run c1 -> text
        offers
        done
    """
    # A recorder that does not see the tools writes none down, and nobody knows which agent of a user has which tool.
    is_attached = history.header is not None and history.header.attached
    if is_attached or not any(exchange.tools for exchange in history.exchanges):
        return
    owners: dict[str, set[str]] = {}
    for tool in history.declarations.values():
        owners.setdefault(tool.name, set()).add(tool.agent)
    for exchange in history.exchanges:
        foreign = [name for name in exchange.tools if exchange.agent not in owners.get(name, {exchange.agent})]
        present = _list_present_tools(history, exchange)
        closed = _list_closed_tools(history, exchange)
        own = [
            name
            for name in present
            # Of several agents with a tool of that name, the list does not say which one it is gone from.
            if exchange.agent in owners.get(name, ())
            and present.count(name) >= len(owners[name])
            and name not in closed
        ]
        failure: Failure | None = OK
        if foreign:
            whose = ", ".join(sorted(owners[foreign[0]]))
            failure = Failure(
                expected=f"the tools of {exchange.agent}",
                actual=f"{foreign[0]}, which only {whose} has",
                witness=(exchange.n,),
                session=exchange.session,
            )
        elif own and not any(name in exchange.tools for name in own):
            expected = f"some of {', '.join(own)}"
            failure = Failure(
                expected=expected, actual="none", witness=(exchange.n,), session=exchange.session, level="should"
            )
        yield failure


def _list_present_tools(history: History, exchange: Exchange) -> list[str]:
    """Return the names of the tools that the agents of a session have when a model is asked."""
    build = history.agent_start_at(exchange.n, exchange.session)
    return list(build.tools) if build is not None else []


def _list_closed_tools(history: History, exchange: Exchange) -> set[str]:
    """Return the names of the tools that were rejected for good in a session before a model is asked."""
    return {
        decision.call.tool
        for decision in history.decisions
        if decision.verdict == "never"
        and decision.call is not None
        and decision.event.session == exchange.session
        and decision.is_in_force(exchange.n)
    }
