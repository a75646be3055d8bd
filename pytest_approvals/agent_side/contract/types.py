"""Approval conditions: data that says when a call needs approval, and the one function that answers them.

A condition is data and not a callable, so that it can be judged afterwards, cross a process, and be told apart from a
policy that was never asked.

The neutral types: what harness and agent say to each other.

Plain frozen values, the same for every framework and on both sides of a process boundary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """
    When a call needs approval.

    The call needs it if the *argument* passes the one comparison that is given. *answers* replaces the comparison: the
    k-th time one call is asked about, the k-th answer is given, the last one for ever. *raises* fails instead of
    answering. *waits_for* names a signal that comes before the answer.
    """

    argument: str | None = None
    greater_than: float | None = None
    less_than: float | None = None
    equals: Any = None
    starts_with: str | None = None
    one_of: tuple[Any, ...] = ()
    answers: tuple[bool, ...] = ()
    raises: str | None = None
    waits_for: str | None = None


Approval = Union[Literal["always", "never"], Condition]


def needs_approval(approval: Approval, arguments: Any, asked_before: int = 0) -> bool:
    """
    Says whether a call with *arguments* needs approval; *asked_before* counts the earlier questions about the same
    call.

    Arguments that are not an object, or lack the compared argument, need approval: a policy that cannot judge does not
    open the gate. A condition that raises counts as needing approval here; raising is the caller's business.
    """
    if approval == "always" or approval == "never":
        return approval == "always"
    if approval.raises is not None:
        return True
    if approval.answers:
        return approval.answers[min(asked_before, len(approval.answers) - 1)]
    if not isinstance(arguments, Mapping) or approval.argument not in arguments:
        return True
    return _condition_holds(approval, arguments[approval.argument])


def _condition_holds(condition: Condition, value: Any) -> bool:
    try:
        if condition.greater_than is not None:
            return bool(float(value) > condition.greater_than)
        if condition.less_than is not None:
            return bool(float(value) < condition.less_than)
    except (TypeError, ValueError):
        return True
    if condition.starts_with is not None:
        return str(value).startswith(condition.starts_with)
    if condition.one_of:
        return value in condition.one_of
    return bool(value == condition.equals)


Kind = Literal["function", "mcp", "hosted_mcp"]
"""Who runs a tool: the framework itself, a server that the framework connects to, or the model's provider."""

Verdict = Literal["approve", "reject", "edit", "always", "never", "raw"]
"""What a caller answers. `raw` is for misbehaviour: the value goes verbatim where the framework takes a decision."""

MAIN = "main"
"""The name of the agent that the caller talks to; every other agent is run by a tool, or handed over to by one."""


# --- what the agent is made of ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool; *type* is a JSON Schema type name."""

    type: str = "string"
    required: bool = True
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """
    One tool of one agent.

    Attributes:
        approval: Whether its calls are gated: always, never, or on a condition; ask `World.gate`, never evaluate it in
            an adapter.
        server: The MCP server that offers it, for the kinds `mcp` and `hosted_mcp`.
        agent: The agent that has it.
        runs: The agent that its calls run, for a tool that is an agent; the tool then has one string parameter,
            `input`.
        hands_over_to: The agent that its calls hand the conversation over to: from then on that agent's model is asked,
            in later turns, too. Such a tool has no body and no parameters.
        asks_again: Its calls raise `AsksAgain` in their middle, until a second approval was given.
    """

    name: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    description: str = ""
    approval: Approval = "never"
    kind: Kind = "function"
    server: str | None = None
    agent: str = MAIN
    runs: str | None = None
    hands_over_to: str | None = None
    asks_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where the framework itself must stop a turn; None leaves the framework's default."""

    model_replies: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """
    A person's own agent instead of one made from tool specs.

    Attributes:
        subject: The framework's agent object, or a callable that takes the framework's model and returns one.
        gated: The tools whose calls must wait for a person; None means: what the framework marks.
        stubs: The tools whose body is replaced by `World.run`; the others run for real, with `World.run(real=...)`
            around them.
        run_options: Keyword arguments for the framework's own run call.
    """

    subject: Any
    gated: frozenset[str] | None = None
    stubs: frozenset[str] = frozenset()
    run_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """
    Where the scripted model is reached over a provider's protocol.

    The model that a request names is the agent that asks.

    Attributes:
        protocol: `chat`, `responses` or `messages`.
        url: The base address as clients of that provider take it; on the loopback.
    """

    protocol: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """
    Where an MCP server is that offers tools of an agent; *url* or *command* is given, not both.

    Attributes:
        name: The server, as `ToolSpec.server` names it.
        agent: The agent that has the tools.
        url: For streamable HTTP; on the loopback.
        command: For stdio: the program to start, and its arguments.
    """

    name: str
    agent: str = MAIN
    url: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """
    Everything an agent is built from.

    Attributes:
        tools: The tools of all its agents.
        answer: The fields of the answer that the main agent has to end with, through the framework's own structured
            output; empty where it ends with text.
        serialize: What its state goes through between turns: `none`, `copy`, `json` or `native.NAME`.
        history: `whole`, or `append` where `dump` gives only what the last turn added.
        directory: A folder of this run's own, for native stores; empty where there is none.
        model: Where the model is reached with the framework's own client; None where the world is asked.
        servers: Where the MCP servers of its tools are, for an agent that `connects`.
        options: Options of the flavour, as the scenario or the person gives them.
        attachment: Set where a person's own agent is driven; *tools* is then empty.
    """

    tools: tuple[ToolSpec, ...] = ()
    answer: Mapping[str, Parameter] = field(default_factory=dict)
    limits: Limits = Limits()
    serialize: str = "none"
    history: Literal["whole", "append"] = "whole"
    directory: str = ""
    model: ModelAddress | None = None
    servers: tuple[ServerAddress, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    attachment: Attachment | None = None


# --- what the model says and is told ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """
    One tool call in a reply of the model.

    Attributes:
        id: The call id; None where the model gives none.
        arguments: An object, or the raw text that the model sent where that is not a JSON object.
    """

    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str
    kind: Kind = "function"
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedResult:
    """What the provider reports of a hosted call that it ran: *call_id* is the id of the approved request."""

    call_id: str
    tool: str
    server: str | None
    arguments: Mapping[str, Any]
    output: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """
    One piece of a streamed reply.

    `text` chunks have no *call*; the others add to the call with that position in the reply. *id* and *tool* come with
    the first chunk of a call, or alone before it; *arguments* is a piece of the JSON text. A chunk may be empty.
    """

    text: str | None = None
    call: int | None = None
    id: str | None = None
    tool: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """
    One answer of the model.

    Attributes:
        answer: The structured answer, in whatever form the framework expects it of a model; it may not fit what was
            asked for. In what the model is sent later, it and whatever answers it are `other` items.
        chunks: Text and calls in pieces, in the order to stream them; always given. An answer comes after them.
        breaks: The stream ends with `ModelDown` after the last chunk; only ever set where a stream was asked for.
        how: A name in `failures.BREAKS`: how the stream ends, where it breaks.
    """

    say: str | None = None
    calls: tuple[ModelCall, ...] = ()
    answer: Mapping[str, Any] | None = None
    hosted: tuple[HostedResult, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    breaks: bool = False
    how: str = "disconnect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    One element of what the model is sent.

    Attributes:
        kind: `user`, `say` (the model's own text), `call`, `result`, `approval_request` and `approval_response` (hosted
            MCP on the wire), `hosted_result` (the provider's report of a hosted call), or `other`.
        id: The call id for `call` and `result`; the request's id for the approval kinds and for `hosted_result`.
        arguments: As the framework sends them: parsed where they are a JSON object, else the raw text.
        text: What a message says; for a result, what the model reads.
        approved: For `approval_response`.
        message: The number of the message that the item came from, so that text beside a call is told from text after
            it.
    """

    kind: str
    id: str | None = None
    tool: str | None = None
    arguments: Any = None
    text: str | None = None
    approved: bool | None = None
    message: int = 0


# --- what the caller sees and says ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    An approval request, as the framework shows it to the human.

    Attributes:
        id: The framework's own id of the request, whatever it uses.
        call_id: The call id that it shows; None where it shows none.
        arguments: Parsed where they are a JSON object, else the raw text.
        agent: Who asks, as the framework names it.
        handle: The framework's own object. It never leaves its process, is not compared, and is None in a request that
            was rebuilt from JSON.
    """

    id: str
    call_id: str | None
    tool: str
    arguments: Mapping[str, Any] | str
    kind: Kind = "function"
    server: str | None = None
    agent: str = MAIN
    handle: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    A caller's answer to a request.

    Attributes:
        request: The copy of the request that the answer is made from; None only where *address* stands in its place.
        arguments: For `edit`: all arguments that the call shall have.
        tool: For `edit`: another tool that shall run instead.
        raw: For `raw`: put verbatim where the framework takes a decision.
        address: Put verbatim where the framework takes a request, where *request* is None.
    """

    request: Request | None
    verdict: Verdict
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    tool: str | None = None
    raw: Any = None
    address: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """
    The turn ended with these requests open; *text* is what the agent said besides, where the framework shows it.

    A framework that says that it is paused and shows no request gives none: that nobody can answer is a finding.
    """

    requests: tuple[Request, ...]
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The turn ended with an output."""

    output: Any = None


Outcome = Union[Paused, Finished]
