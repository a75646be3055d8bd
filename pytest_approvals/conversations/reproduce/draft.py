"""Draft of a scenario while it is minimized: turns, each with the model's replies in it.

Drafts are values. Parameters and results of a tool are not written down in them, but derived from the calls that are
left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

DraftVerdict = Literal["approve", "reject", "edit", "always", "never", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftResult:
    """The result of a call: a value, or the text of what its tool raised."""

    value: Any = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCall:
    """A call of the model.

    Attributes:
        key: The name of the call within the draft, which stays when other calls are removed.
        id: The stored id of the model, if any.
        arguments: An object, or text that is not one.
        thinks: The reasoning between the call before it and this one.
        result: None if the conversation does not show it, or it does not matter.
    """

    key: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    thinks: str | None = None
    result: DraftResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftReply:
    """A reply of the model; *redacted* if only the encrypted form of its reasoning is shown."""

    say: str | None = None
    calls: tuple[DraftCall, ...] = ()
    thinks: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftDecision:
    """A decision.

    Attributes:
        call: The key of the call that it is about; None for a decision without a request.
        unknown: The id that it names, if it is about no request.
        text: The reason of a rejection.
        arguments: Of an edit, or the raw value.
        shows: The arguments that its copy of the request has in place of those that were asked about.
        shows_tool: The tool that its copy of the request has, likewise.
    """

    call: str | None
    verdict: DraftVerdict
    unknown: str = ""
    text: str | None = None
    arguments: Any = None
    shows: Mapping[str, Any] | None = None
    shows_tool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTurn:
    """A step of the caller, with the replies of the model that follow.

    Attributes:
        send: The message of the caller.
        decisions: The decisions of the caller.
        oracle: Pending requests are left to the oracle.
        goes_on: The caller goes on without a message and without a decision.
        replies: The replies of the model.
    """

    send: str | None = None
    decisions: tuple[DraftDecision, ...] = ()
    oracle: bool = False
    goes_on: bool = False
    replies: tuple[DraftReply, ...] = ()

    @property
    def is_step(self) -> bool:
        """Whether the caller does anything."""
        return self.send is not None or bool(self.decisions) or self.oracle or self.goes_on


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTool:
    """A tool.

    Attributes:
        gated: Its calls are gated.
        kind, server: Who executes it.
        runs: The agent that a call runs.
        hands_over_to: The agent that a call hands the conversation over to.
    """

    gated: bool = False
    kind: str = "function"
    server: str | None = None
    runs: str | None = None
    hands_over_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioDraft:
    """A scenario.

    Attributes:
        tools: The tools by name; those of another agent as `AGENT/TOOL`.
        turns: The steps of the caller with the replies of the model.
        agents: The replies of the models of agents that tools run, by name.
        vary: The additional dimensions of the matrix.
        keeps_ids: The calls have the ids that the model gave, and not those that people give.
    """

    tools: Mapping[str, DraftTool]
    turns: tuple[DraftTurn, ...]
    agents: Mapping[str, tuple[DraftReply, ...]] = field(default_factory=dict)
    vary: tuple[str, ...] = ()
    keeps_ids: bool = False

    def replies(self) -> Iterator[DraftReply]:
        """Iterate over the main agent's replies in order."""
        return (reply for turn in self.turns for reply in turn.replies)

    def calls(self) -> Iterator[DraftCall]:
        """Iterate over the calls in order: the main agent's, then those of agents that these run."""
        called = set()
        for reply in self.replies():
            for call in reply.calls:
                called.add(call.tool)
                yield call
        for name, replies in self.agents.items():
            if any(tool.runs == name for key, tool in self.tools.items() if key in called):
                yield from (call for reply in replies for call in reply.calls)

    def values(self) -> Iterator[Any]:
        """Iterate over what the conversation says: texts, arguments, reasons and results."""
        inner = (reply for replies in self.agents.values() for reply in replies)
        for turn in self.turns:
            yield turn.send
            yield from (value for each in turn.decisions for value in (each.text, each.unknown, each.arguments))
        for reply in (*self.replies(), *inner):
            yield reply.say
            yield from (call.arguments for call in reply.calls)
            yield from (call.result.value for call in reply.calls if call.result is not None)

    def tidy(self) -> ScenarioDraft:
        """Return the draft without decisions about removed calls and without empty steps."""
        keys = {call.key for call in self.calls()}
        turns: list[DraftTurn] = []
        for turn in self.turns:
            decisions = tuple(decision for decision in turn.decisions if decision.call is None or decision.call in keys)
            replies = tuple(reply for reply in turn.replies if reply.calls or reply.say is not None)
            tidied = replace(turn, decisions=decisions, replies=replies)
            if tidied.is_step or not turns:
                turns.append(tidied)
            else:
                turns[-1] = replace(turns[-1], replies=(*turns[-1].replies, *replies))
        return replace(self, turns=tuple(turns))
