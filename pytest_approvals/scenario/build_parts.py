"""Parts of a scenario in Python: what the model replies, what the tools are and do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from pytest_approvals.agent_side.conditions import Approval, Condition
from pytest_approvals.agent_side.contract import MAIN, Kind, Parameter
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.parts import Behaviour, Call, Failure, Reply, Tool, behaviours

# --- the model --------------------------------------------------------------------------------------------------------


def call(
    tool: str,
    given: Mapping[str, Any] | str | None = None,
    /,
    *,
    id: str | None = "",  # noqa: A002 - the word of the file
    label: str = "",
    repeats: bool = False,
    unknown_tool: bool = False,
    invalid: bool = False,
    **arguments: Any,
) -> Call:
    """
    Makes one call of the model.

    Arguments:
        given: The arguments as one value: an object, or text that is sent in place of one; needed where an argument has
            the name of a keyword of this function.
        id: The call id; None for a call without one, which needs a label. Left out: the next free one of `c1`, `c2`.
        label: What scenario and reports call it.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the tool, on purpose.
    """
    if given is not None and arguments:
        raise UsageError(f"call({tool!r}) has arguments twice: as one value, and by name ({', '.join(arguments)})")
    value = given if isinstance(given, str) else dict(given if given is not None else arguments)
    return Call(
        label=label, id=id, tool=tool, arguments=value, repeats=repeats, unknown_tool=unknown_tool, invalid=invalid
    )


@overload
def calls(tool: str, given: Mapping[str, Any] | str | None = None, /, **arguments: Any) -> Reply: ...


@overload
def calls(*made: Call, say: str | None = None, breaks_after: int | None = None) -> Reply: ...


def calls(*made: Any, **named: Any) -> Reply:
    """
    Makes a reply that calls tools: `calls("refund", order=42)` for one call, `calls(call(...), call(...))` for several.

    Arguments:
        named: The arguments of the one call; or, beside several, the text that comes with them (`say`) and after how
            many pieces the stream breaks (`breaks_after`).
    """
    if made and isinstance(made[0], str):
        return Reply(calls=(_one_call(*made, arguments=named),))
    unknown = set(named) - {"say", "breaks_after"}
    if unknown or not made or not all(isinstance(one, Call) for one in made):
        raise UsageError(
            "calls() takes a tool with its arguments, or several call(...), perhaps with say= or breaks_after="
        )
    return Reply(say=named.get("say"), calls=made, failure=_broken(named.get("breaks_after")))


def _one_call(name: str, given: Mapping[str, Any] | str | None = None, *, arguments: Mapping[str, Any]) -> Call:
    return call(name, given) if given is not None and not arguments else call(name, dict(arguments))


def say(text: str, *, breaks_after: int | None = None, takes: float = 0.0) -> Reply:
    """
    Makes a reply of text.

    Arguments:
        breaks_after: Its stream breaks after so many pieces.
        takes: The seconds that pass before its first piece comes.
    """
    return Reply(say=text, failure=_broken(breaks_after), takes=takes)


Fails = Literal[429, 500, 503, 529, "disconnect", "timeout", "truncated", "garbled"]
"""How a model fails: with a status; no connection, no answer in time, an answer cut off, an answer that is none."""


def fails(how: Fails = 500, *, retry_after: float | None = None) -> Reply:
    """
    Makes the model fail instead of answering.

    Arguments:
        retry_after: Beside a status: the seconds after which the provider wants to be asked again.
    """
    if isinstance(how, str):
        return Reply(failure=Failure(status=0, how=how, retry_after=retry_after))
    return Reply(failure=Failure(status=how, retry_after=retry_after))


def _broken(after: int | None) -> Failure | None:
    return None if after is None else Failure(status=0, after_chunks=after)


# --- tools ------------------------------------------------------------------------------------------------------------


def returns(value: Any = "ok", *, waits_for: str | None = None) -> Behaviour:
    """Lets an execution return *value*, any JSON value; in text, `{parameter}` stands for that argument."""
    return Behaviour(returns=value, waits_for=waits_for)


def raises(text: str, *, waits_for: str | None = None) -> Behaviour:
    """Lets an execution fail with *text*."""
    return Behaviour(raises=text, waits_for=waits_for)


def asks_again(question: str, *, waits_for: str | None = None) -> Behaviour:
    """Lets an execution ask for a second approval; what follows it is the next behaviour."""
    return Behaviour(asks_again=question, waits_for=waits_for)


def when(argument: str | None = None, /, **condition: Any) -> Condition:
    """
    Makes an approval condition: `when("amount", greater_than=100)`, `when(answers=(True, False))`,
    `when(raises="policy is down")`.
    """
    known: dict[str, Any] = {
        name: tuple(value) if name in ("one_of", "answers") else value for name, value in condition.items()
    }
    try:
        return Condition(argument=argument, **known)
    except TypeError:
        valid = ", ".join(name for name in Condition.__slots__ if name != "argument")
        raise UsageError(f"when() does not know {', '.join(condition)}; valid: {valid}") from None


def tool(
    name: str,
    *does: Behaviour,
    parameters: Mapping[str, str | Parameter] | None = None,
    approval: Approval = "never",
    description: str = "",
    kind: Kind = "function",
    server: str | None = None,
    called: str | None = None,
    agent: str = MAIN,
    runs: str | None = None,
    hands_over_to: str | None = None,
    per_call: Mapping[str, Behaviour | Sequence[Behaviour]] | None = None,
) -> Tool:
    """
    Makes a tool.

    Arguments:
        does: What successive executions of one call do, the last one for ever; by default they return `ok`.
        called: What the model calls it, where that is not *name*.
        parameters: The type of each, with `?` where the model may leave it out: `{"path": "string"}`.
        per_call: What single calls do instead, by label.
    """
    return Tool(
        name=name,
        called=called,
        description=description,
        parameters=parameters_of(parameters or {}),
        approval=approval,
        kind=kind,
        server=server,
        agent=agent,
        runs=runs,
        hands_over_to=hands_over_to,
        behaviours=does or behaviours(),
        per_call={label: _listed(one) for label, one in (per_call or {}).items()},
    )


def parameters_of(given: Mapping[str, str | Parameter]) -> dict[str, Parameter]:
    """Gives parameters with their shorthands written out."""
    return {name: _parameter(one) for name, one in given.items()}


def _parameter(given: str | Parameter) -> Parameter:
    if isinstance(given, Parameter):
        return given
    return Parameter(type=given.removesuffix("?"), required=not given.endswith("?"))


def _listed(given: Behaviour | Sequence[Behaviour]) -> tuple[Behaviour, ...]:
    return (given,) if isinstance(given, Behaviour) else tuple(given)


def fake(name: str, *, named: str | None = None, **arguments: Any) -> dict[str, Any]:
    """
    Asks for a value made up by Faker: by a provider (`fake("file_name")`), or the *named* one again (`fake("doc")`).

    Arguments:
        arguments: For the provider.
    """
    return {"fake": name, **({"as": named} if named else {}), **({"with": arguments} if arguments else {})}
