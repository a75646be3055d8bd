"""Recorded conversation, and its draft of a scenario.

The wire shows the input and the replies of the model. It does not show who approved a call of a function: a rejected
one has a result that says so, which its tool returns in the scenario. Of hosted MCP servers it shows everything: what
the provider asked, what the caller decided, and what the server returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftResult,
    DraftTool,
    DraftTurn,
    DraftVerdict,
    ScenarioDraft,
)
from pytest_approvals.conversations.reproduce.from_conversation import (
    DEFAULT_MESSAGE,
    to_literal,
    to_parameter_name,
    to_tool_name,
)
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.protocols.gemini.requests import is_unnamed
from pytest_approvals.scenario.validation.tools import matches_type
from pytest_approvals.scenario.vocabulary import PARAMETER_TYPES

Schemas = Mapping[str, Mapping[str, Any]]
"""The JSON Schemas of the parameters of the tools that a model was offered, by tool name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response.

    Attributes:
        items: The complete input of the model.
        answer: What the model says.
        schemas: The schemas of the offered tools.
        servers: The servers of the hosted calls in the response, by the ids of their items.
        failed: The ids of the hosted calls that the response reports as failed.
    """

    items: Sequence[Item]
    answer: Sequence[Item]
    schemas: Schemas = field(default_factory=dict)
    servers: Mapping[str, str] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()


_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_NOT_SHOWN = "What the provider does not show."

_MODEL_ITEMS = ("say", "call", "approval_request", "hosted_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTool:
    """A tool that was called.

    Attributes:
        name: What the model calls it.
        server: The hosted MCP server that offers it; None for a function.
        is_asked_about: The provider asks before it calls it.
    """

    name: str
    server: str | None = None
    is_asked_about: bool = False

    def to_draft(self, gated: Collection[str]) -> DraftTool:
        """Return the tool of a draft; *gated* are the functions whose calls need approval."""
        if self.server is not None:
            return DraftTool(gated=self.is_asked_about, kind="hosted_mcp", server=self.server)
        return DraftTool(gated=self.name in gated)


@dataclass(slots=True)
class RecordedConversation:
    """One conversation, exchange by exchange.

    Attributes:
        model: The model that its requests name.
        opening: The first message of the caller, by which further requests are recognized.
        turns: The turns so far.
        results: The results by call id, in order.
        schemas: The schemas of the offered tools.
        tools: The tools that were called, by their names in the scenario.
        failed: The ids of hosted calls that failed.
        hosted: By the id of an approval request, the keys of its calls, in order.
        decided: By the id of an approval request, how many decisions about it were recorded.
    """

    model: str
    opening: str
    turns: list[DraftTurn] = field(default_factory=list)
    results: dict[str | None, list[str]] = field(default_factory=dict)
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    tools: dict[str, RecordedTool] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    hosted: dict[str | None, list[str]] = field(default_factory=dict)
    decided: dict[str | None, int] = field(default_factory=dict)

    def is_continued_by(self, model: str, items: Sequence[Item]) -> bool:
        """Return whether a request belongs to it because it repeats what the model said."""
        if not self.turns or (self.model, self.opening) != (model, opening_text(items)):
            return False
        return any(item.kind in _MODEL_ITEMS for item in items)

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of its calls."""
        return frozenset(call.id for turn in self.turns for reply in turn.replies for call in reply.calls if call.id)

    def add_exchange(self, exchange: Exchange) -> None:
        """Add a request and its response."""
        self.schemas |= exchange.schemas
        self.failed |= exchange.failed
        items, answer = exchange.items, exchange.answer
        message = to_literal("\n\n".join(item.text or "" for item in _new_items(items) if item.kind == "user"))
        decisions = tuple(self._read_decisions(items))
        if message or decisions or not self.turns:
            send = message or (None if decisions else DEFAULT_MESSAGE)
            self.turns.append(DraftTurn(send=send, decisions=decisions))
        self._add_results([*items, *answer])
        last = self.turns[-1]
        self.turns[-1] = replace(last, replies=(*last.replies, self._to_reply(exchange)))

    def _read_decisions(self, items: Sequence[Item]) -> Iterator[DraftDecision]:
        """Yield the decisions about hosted calls that no earlier request held."""
        seen: dict[str | None, int] = {}
        for item in items:
            if item.kind != "approval_response":
                continue
            seen[item.id] = number = seen.get(item.id, 0) + 1
            keys = self.hosted.get(item.id, [])
            # A request repeats the earlier decisions; one about nothing that was asked is refused by the provider.
            if number > self.decided.get(item.id, 0) and number <= len(keys):
                self.decided[item.id] = number
                reason = to_literal(item.text) if item.text and not item.approved else None
                verdict: DraftVerdict = "approve" if item.approved else "reject"
                yield DraftDecision(call=keys[number - 1], verdict=verdict, text=reason)

    def _add_results(self, items: Sequence[Item]) -> None:
        by_call: dict[str | None, list[str]] = {}
        for item in items:
            if item.kind == "result" or (item.kind == "hosted_result" and item.text is not None):
                by_call.setdefault(item.id, []).append(item.text or "")
        for call_id, texts in by_call.items():
            known = self.results.setdefault(call_id, [])
            # A request repeats the earlier results, so only those beyond them are new.
            known += texts[len(known) :]

    def _to_reply(self, exchange: Exchange) -> DraftReply:
        text = "".join(item.text or "" for item in exchange.answer if item.kind == "say")
        number = sum(len(reply.calls) for turn in self.turns for reply in turn.replies)
        calls: list[DraftCall] = []
        thoughts: list[str] = []
        thinks, redacted, said = None, False, False
        for item in exchange.answer:
            if item.kind == "reasoning":
                redacted = redacted or not item.text
                thoughts.append(to_literal(item.text or _NOT_SHOWN))
                continue
            said = said or item.kind == "say"
            server = exchange.servers.get(item.id or "")
            if item.kind not in ("say", "call", "approval_request") and not self._is_unasked(item, server):
                continue
            thought = "\n\n".join(thoughts) or None
            thoughts = []
            # What is reasoned before the text and the first call belongs to the reply.
            if thinks is None and not calls and (item.kind == "say" or not said):
                thinks, thought = thought, None
            if item.kind == "say":
                continue
            tool = self._find_tool(item, server)
            call = replace(_to_call(item, f"k{number + len(calls)}"), tool=tool, thinks=thought)
            calls.append(call)
            if item.kind == "approval_request":
                self.hosted.setdefault(item.id, []).append(call.key)
        say = to_literal(text) if text or not calls else None
        thinks = "\n\n".join(filter(None, (thinks, *thoughts))) or None
        return DraftReply(say=say, calls=tuple(calls), thinks=thinks, redacted=redacted)

    def _is_unasked(self, item: Item, server: str | None) -> bool:
        """Return whether an item is a hosted call that nobody was asked about, of a tool of which nobody ever was."""
        if item.kind != "hosted_result" or item.id in self.hosted:
            return False
        called = (item.tool, server)
        return not any((tool.name, tool.server) == called and tool.is_asked_about for tool in self.tools.values())

    def _find_tool(self, item: Item, server: str | None) -> str:
        """Return the name in the scenario of the tool that a call is of."""
        visible = item.tool or ""
        tool = RecordedTool(name=visible, server=server, is_asked_about=item.kind == "approval_request")
        known = next((name for name, each in self.tools.items() if (each.name, each.server) == (visible, server)), None)
        if known is None:
            plain = visible if _TOOL_NAME.fullmatch(visible) else to_tool_name(visible)
            numbered = (f"{plain[:60]}_{number}" for number in count(2))
            known = next(name for name in chain([plain], numbered) if name not in self.tools)
        if known not in self.tools or tool.is_asked_about:
            self.tools[known] = tool
        return known

    def build_document(self, gated: Collection[str], about: str) -> dict[str, Any]:
        """Build the document of a scenario file.

        Args:
            gated: The tools whose calls need approval, which the wire does not show.
            about: The text below the title.
        """
        draft = self._build_draft(gated)
        document = build_document(draft, about=about)
        document["title"] = f"Recorded: {draft.turns[0].send or 'a conversation'}".partition("\n")[0][:100]
        tools: dict[str, dict[str, Any]] = document.get("tools", {})
        for name, tool in tools.items():
            visible = self.tools[name].name
            if visible != name and _TOOL_NAME.fullmatch(visible):
                tools[name] = tool = {"called": visible, **tool}
            arguments = [call.arguments for call in draft.calls() if call.tool == name]
            declared = _declared_parameters(self.schemas.get(visible, {}), arguments)
            if declared:
                tool["parameters"] = {**tool.get("parameters", {}), **declared}
        written = [call for reply in document["model"] for call in reply.get("calls", ())]
        for call, entry in zip(draft.calls(), written, strict=True):
            _write_arguments(entry, call.arguments, tools[call.tool].get("parameters", {}))
        return document

    def _build_draft(self, gated: Collection[str]) -> ScenarioDraft:
        remaining = {call_id: iter(texts) for call_id, texts in self.results.items()}

        def finish_call(call: DraftCall) -> DraftCall:
            # An item of a hosted call that nobody was asked about has an id that is made of that of the call.
            key = f"mcp_{call.id}" if call.id not in remaining else call.id
            text = next(remaining.get(key, iter(())), None)
            is_error = key in self.failed
            result = None if text is None else DraftResult(value=_to_result(text, is_error), is_error=is_error)
            # What names a call without an id is no id.
            call_id = None if call.id is None or is_unnamed(call.id) else call.id
            return replace(call, id=call_id, result=result)

        turns = [
            replace(
                turn,
                replies=tuple(replace(reply, calls=tuple(map(finish_call, reply.calls))) for reply in turn.replies),
            )
            for turn in self.turns
        ]
        names = dict.fromkeys(call.tool for turn in turns for reply in turn.replies for call in reply.calls)
        tools = {name: self.tools[name].to_draft(gated) for name in names}
        return ScenarioDraft(tools=tools, turns=tuple(_add_oracle_turns(turns, tools)), keeps_ids=True)


def _to_result(text: str, is_error: bool) -> Any:
    """Return the value of a result: the object or the list that its text is the JSON of, or the text."""
    if not is_error and text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return to_literal(text)
        if json.dumps(value) == text:
            return to_literal(value)
    return to_literal(text)


def _write_arguments(entry: dict[str, Any], arguments: Mapping[str, Any] | str, parameters: Mapping[str, str]) -> None:
    """Write the arguments of a call as the model sent them, marked if they do not fit the parameters."""
    if arguments or isinstance(arguments, str):
        entry["arguments"] = arguments
    if isinstance(arguments, str):
        return
    types = {name: kind.removesuffix("?") for name, kind in parameters.items()}
    needed = {name for name, kind in parameters.items() if not kind.endswith("?")}
    if needed - set(arguments) or not all(matches_type(types[name], value) for name, value in arguments.items()):
        entry["invalid"] = True


def opening_text(items: Sequence[Item]) -> str:
    """Return the first message of the caller."""
    return next((item.text or "" for item in items if item.kind == "user"), "")


def _new_items(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items after the last one of the model, or about its calls."""
    known = (*_MODEL_ITEMS, "result", "approval_response")
    indexes = [index for index, item in enumerate(items) if item.kind in known]
    return items[indexes[-1] + 1 :] if indexes else items


def _to_call(item: Item, key: str) -> DraftCall:
    arguments: Mapping[str, Any] | str
    if isinstance(item.arguments, Mapping):
        arguments = {to_parameter_name(name): to_literal(value) for name, value in item.arguments.items()}
    else:
        arguments = str(item.arguments or "")
    call_id = item.id or None
    if item.kind == "hosted_result" and call_id is not None:
        # The provider's item has an id of its own, which is made of that of the call.
        call_id = call_id.removeprefix("mcp_")
    return DraftCall(key=key, id=call_id, tool=item.tool or "", arguments=arguments)


def _add_oracle_turns(turns: Sequence[DraftTurn], tools: Mapping[str, DraftTool]) -> Iterator[DraftTurn]:
    """Yield the turns, with a step of the oracle after those whose calls of functions wait for an approval.

    Decisions that were recorded, which are about hosted calls, come before it.
    """
    is_waiting = False
    for turn in turns:
        if is_waiting and turn.send is not None:
            yield DraftTurn(oracle=True)
            is_waiting = False
        yield turn
        if is_waiting:
            yield DraftTurn(oracle=True)
        called = [tools[call.tool] for reply in turn.replies for call in reply.calls]
        is_waiting = any(tool.gated and tool.kind == "function" for tool in called)
    if is_waiting:
        yield DraftTurn(oracle=True)


# --- parameters -------------------------------------------------------------------------------------------------------


def _declared_parameters(schema: Mapping[str, Any], calls: Sequence[Any]) -> dict[str, str]:
    """Return the declared parameters of a tool; one that a call lacks is optional."""
    properties = schema.get("properties")
    required = schema.get("required")
    required = required if isinstance(required, list) else ()
    types: dict[str, str] = {}
    for name, declaration in properties.items() if isinstance(properties, Mapping) else ():
        kind, known = _parameter_type(declaration), to_parameter_name(name)
        missing = any(isinstance(call, Mapping) and known not in call for call in calls)
        if kind:
            types[known] = kind if name in required and not missing else f"{kind}?"
    return types


def _parameter_type(schema: Any) -> str:
    """Return the first type of a parameter that scenarios have; empty if there is none."""
    if not isinstance(schema, Mapping):
        return ""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    kinds += [choice.get("type") for choice in schema.get("anyOf") or () if isinstance(choice, Mapping)]
    # Google's types have capital letters.
    names = [name.lower() for name in kinds if isinstance(name, str)]
    return next((name for name in names if name in PARAMETER_TYPES), "")
