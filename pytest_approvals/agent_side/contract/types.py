"""Neutral types: what harness and agent exchange.

All are frozen values without behaviour, the same for every framework and on both sides of a process boundary. An
approval condition is such a value and not a callable, so that it can be judged afterwards, cross a process, and be told
apart from a policy that was never asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Condition under which a call needs approval.

    The call needs it if the *argument* passes the one comparison that is given. *answers* replaces the comparison: the
    k-th time one call is asked about, the k-th answer is given, and the last one from then on. *raises* fails
    instead of answering. *waits_for* names a signal that comes before the answer.
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
    """Return whether a call with *arguments* needs approval.

    Arguments that are not an object, or lack the compared argument, need approval: a policy that cannot judge does not
    open the gate. A condition that raises counts as needing approval here; raising is the caller's business.

    Args:
        approval: Whether calls of the tool are gated.
        arguments: The arguments of the call.
        asked_before: The number of earlier questions about the same call.
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


def needs_approval_by_annotations(annotations: Mapping[str, Any] | None) -> bool:
    """Return what a policy of the application makes of the annotations of a tool, with the defaults of MCP.

    A call waits unless the tool only reads, or destroys nothing. A tool is taken to write and to destroy where its
    server does not say otherwise.

    >>> needs_approval_by_annotations({"readOnlyHint": True}), needs_approval_by_annotations(None)
    (False, True)
    """
    said = annotations or {}
    return said.get("readOnlyHint") is not True and said.get("destructiveHint") is not False


def _condition_holds(condition: Condition, value: Any) -> bool:
    try:
        if condition.greater_than is not None:
            return bool(float(value) > condition.greater_than)
        if condition.less_than is not None:
            return bool(float(value) < condition.less_than)
    except (TypeError, ValueError, OverflowError):
        return True
    if condition.starts_with is not None:
        return str(value).startswith(condition.starts_with)
    if condition.one_of:
        return value in condition.one_of
    return bool(value == condition.equals)


Kind = Literal["function", "mcp", "hosted_mcp"]
"""The side that runs a tool: the framework itself, a server that the framework connects to, or the model's provider."""

Verdict = Literal["approve", "reject", "edit", "always", "never", "raw"]
"""The caller's verdict. `raw` is for misbehaviour: the value goes verbatim where the framework takes a decision."""

MAIN = "main"
"""The name of the agent that the caller talks to; every other agent is run by a tool, or handed over to by one."""

ANY_AGENT = "*"
"""Every agent, for a tool whose calls name the one that they run or hand over to."""


# --- what the agent is made of ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        type: A JSON Schema type name.
        required: Whether the model must give it.
        default: What is filled in where the model gives none.
        constraints: What else its JSON Schema demands of a value (`enum`, `maximum`, `pattern`, ...), with references
            resolved; None if it demands nothing else. Tools of scenarios have none, a person's own tools may.
    """

    type: str = "string"
    required: bool = True
    default: Any = None
    constraints: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool of one agent.

    Attributes:
        approval: Whether its calls are gated: always, never, or on a condition; ask `World.gate`, never evaluate it in
            an adapter.
        by_annotations: Whether its calls are gated is what the application decides from the annotations that its server
            has given, as the framework hands them on; *approval* is then `always`, whatever they say.
        server: The MCP server that offers it, for the kinds `mcp` and `hosted_mcp`.
        annotations: What its server says about it, for an agent that has no client of its own and connects to none.
        agent: The agent that has it.
        runs: The agent that its calls run, for a tool that is an agent; the tool then has one string parameter,
            `input`. Or `ANY_AGENT` if an argument of the calls names it.
        hands_over_to: The agent that its calls hand the conversation over to, or `ANY_AGENT` if they name it: from then
            on that agent's model is asked, also in later turns. Such a tool has no body and no parameters.
        asks_again: Its calls raise `AsksAgain` while they run, until a second approval was given.
        elicits: Its server asks the caller in the middle of its calls, which needs the client's handler for that.
        effects: Whether the annotations of an attached agent's tool say that it changes something; None if they do not
            say it.
        place: Where the function of an attached agent's tool stands, as `shop/desk.py:12`; empty if it is not known.
        guarded: Code of the user around an attached agent's tool (a guardrail, a callback, a middleware) may answer its
            calls in place of the body, or change its results.
        screened: Code of the user before an attached agent's tool (a hook, a steering handler) may refuse its calls
            without a question.
    """

    name: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    description: str = ""
    approval: Approval = "never"
    by_annotations: bool = False
    kind: Kind = "function"
    server: str | None = None
    annotations: Mapping[str, bool] | None = None
    agent: str = MAIN
    runs: str | None = None
    hands_over_to: str | None = None
    asks_again: bool = False
    elicits: bool = False
    effects: bool | None = None
    place: str = ""
    guarded: bool = False
    screened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits at which the framework itself must stop a turn; None leaves the framework's default."""

    model_replies: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A user's own agent instead of one made from tool specs.

    Attributes:
        subject: The framework's agent object, or a callable that takes the framework's model and returns one.
        gated: The tools whose calls must wait for approval; None means those that the framework marks.
        stubs: The tools whose body is replaced by `World.run`; the others run for real, with `World.run(real=...)`
            around them.
        run_options: Keyword arguments for the framework's own run call.
        scripted: The agents inside tools whose models have scripts of their own, by name.
        options_factory: What makes *run_options* in another process, where their values cannot be sent: a function
            without arguments, or its name as `module:function`; None if they are sent.
        sync: Run it by the framework's synchronous methods, which `Agent.synchronous` names.
    """

    subject: Any
    gated: frozenset[str] | None = None
    stubs: frozenset[str] = frozenset()
    run_options: Mapping[str, Any] = field(default_factory=dict)
    scripted: frozenset[str] = frozenset()
    options_factory: Any = None
    sync: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Address of the scripted model over a provider's protocol.

    The model name in a request is the name of the agent that asks.

    Attributes:
        protocol: `chat`, `responses`, `messages`, `gemini` or `converse`.
        url: The base address as clients of that provider take it; on the loopback interface.
    """

    protocol: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Address of an MCP server that offers tools of an agent; exactly one of *url* and *command* is set.

    Attributes:
        name: The server, as `ToolSpec.server` names it.
        agent: The agent that has the tools.
        url: For streamable HTTP; on the loopback interface.
        command: For stdio: the program to start, and its arguments.
    """

    name: str
    agent: str = MAIN
    url: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Blueprint of an agent: everything that it is built from.

    Attributes:
        tools: The tools of all its agents.
        answer: The fields of the answer that the main agent has to end with, through the framework's own structured
            output; empty if it ends with text.
        serialize: What is done with its state between turns: `none`, `copy`, `json` or `native.NAME`.
        history: `whole`, or `append` if `dump` returns only what the last turn added.
        directory: A folder of this run's own, for native stores; empty if there is none.
        model: Where the model is reached with the framework's own client; None if the world is asked.
        servers: Where the MCP servers of its tools are, for an agent that `connects`.
        options: Options of the flavour, as the scenario or the user sets them.
        names: By the names that agents have in the tools, those that the framework has to know them by, where an
            upgrade gave them others; see `Agent.renames`.
        reasoning: The model reasons: over a protocol, the framework's own setting for that has to be on.
        attachment: The user's own agent, if one is driven; *tools* is then empty.
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
    names: Mapping[str, str] = field(default_factory=dict)
    reasoning: bool = False
    attachment: Attachment | None = None


# --- what the model says and is told ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One tool call in a reply of the model.

    Attributes:
        id: The call id; None if the model gives none.
        arguments: An object, or the raw text that the model sent if that is not a JSON object.
    """

    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str
    kind: Kind = "function"
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedResult:
    """Report of the provider on a hosted call that it ran.

    Attributes:
        call_id: The id of the approved request, or of the call if nobody was asked.
        was_asked: Somebody was asked for approval.
    """

    call_id: str
    tool: str
    server: str | None
    arguments: Mapping[str, Any]
    output: str | None
    error: str | None = None
    was_asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A piece of the model's reasoning, which the provider wants back as it sent it.

    Attributes:
        id: The provider's id of it, unique in a run.
        text: What it says; None if the provider shows nothing but its encrypted form.
        signature: By what the provider recognizes it, or its encrypted form: opaque, and sent back with it.
        before: The position of the call in the reply that it leads to; None if the text and all calls follow it.
    """

    id: str
    text: str | None
    signature: str
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One piece of a streamed reply.

    `text` chunks have no *call*; the others add to the call with that position in the reply. *id* and *tool* come with
    the first chunk of a call, or alone before it; *arguments* is a piece of the JSON text. With *thought*, the text
    adds to the reasoning with that position. A chunk may be empty.
    """

    text: str | None = None
    thought: int | None = None
    call: int | None = None
    id: str | None = None
    tool: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply of the model.

    Attributes:
        answer: The structured answer, in the form in which the framework expects it of a model; it may not fit what
            was asked for. In later model inputs, it and the answers to it are `other` items.
        thoughts: Its reasoning, in the order of the reply.
        chunks: Reasoning, text and calls in pieces, in the order to stream them; always set. An answer comes after
            them.
        breaks: The stream ends with `ModelDown` after the last chunk; only set if a stream was asked for.
        how: A name in `MODEL_FAILURES`: how the stream ends if it breaks.
    """

    say: str | None = None
    calls: tuple[ModelCall, ...] = ()
    answer: Mapping[str, Any] | None = None
    thoughts: tuple[Thought, ...] = ()
    hosted: tuple[HostedResult, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    breaks: bool = False
    how: str = "disconnect"


# Not frozen, because that makes it cost four times as much, and each request has several new ones.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Item:
    """One element of a model input, which nobody changes.

    Attributes:
        kind: `user`, `say` (the model's own text), `reasoning`, `call`, `result`, `approval_request` and
            `approval_response` (hosted MCP on the wire), `hosted_result` (the provider's report of a hosted call), or
            `other`.
        id: The call id for `call` and `result`; the request's id for the approval kinds and for `hosted_result`; the
            provider's id of `reasoning`, if the input has it.
        arguments: As the framework sends them: parsed if they are a JSON object, else the raw text.
        text: What a message says; for a result, what the model reads.
        approved: For `approval_response`.
        signature: For `reasoning`: that of the `Thought`.
        message: The number of the message that the item came from, to distinguish text next to a call from text
            after it.
    """

    kind: str
    id: str | None = None
    tool: str | None = None
    arguments: Any = None
    text: str | None = None
    approved: bool | None = None
    signature: str | None = None
    message: int = 0


# --- what the caller sees and says ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An approval request, as the framework shows it to a human.

    Attributes:
        id: The framework's own id of the request.
        call_id: The call id that it shows; None if it shows none.
        arguments: Parsed if they are a JSON object, else the raw text.
        agent: The agent that asks, as the framework names it.
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


ElicitationAction = Literal["accept", "decline", "cancel", "refuse"]
"""What the caller does about a question of an MCP server, in the words of MCP; a client that cannot ask refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationAnswer:
    """The answer to a question that an MCP server asks in the middle of a call.

    Attributes:
        content: For `accept` of a form: its fields. For `refuse`: None; *error* says why.
        execution: The execution that asked, as `Elicits.number`; set by whoever hands the answer to the server.
    """

    action: ElicitationAction
    content: Mapping[str, Any] | None = None
    error: str | None = None
    execution: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A caller's answer to a request.

    Attributes:
        request: The copy of the request that the answer is made from; None only if *address* takes its place.
        arguments: For `edit`: all arguments that the call must have.
        tool: For `edit`: another tool that must run instead.
        raw: For `raw`: put verbatim where the framework takes a decision.
        meant: For `raw` of an attached agent: the verdict that *raw* is its own word for.
        address: Put verbatim where the framework takes a request, if *request* is None.
    """

    request: Request | None
    verdict: Verdict
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    tool: str | None = None
    raw: Any = None
    meant: Union[Verdict, None] = None
    address: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The turn ended with these requests open; *text* is what the agent also said, if the framework shows it.

    A framework that reports a pause and shows no request gives none: that nobody can answer is a finding.
    """

    requests: tuple[Request, ...]
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The turn ended with an output."""

    output: Any = None


Outcome = Union[Paused, Finished]
