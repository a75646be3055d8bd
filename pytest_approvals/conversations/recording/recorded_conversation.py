"""Recorded conversation, and its draft of a scenario.

The wire shows the input and the replies of the model. It does not show who approved a call of a function: a rejected
one has a result that says so, which its tool returns in the scenario. Of hosted MCP servers it shows everything: what
the provider asked, what the caller decided, and what the server returned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from pytest_approvals.scenario.vocabulary import PARAMETER_TYPES

Schemas = Mapping[str, Mapping[str, Any]]
"""The JSON Schemas of the parameters of the tools that a model was offered, by tool name."""

_MODEL_ITEMS = ("say", "call", "approval_request", "hosted_result")


@dataclass(slots=True)
class RecordedConversation:
    """One conversation, exchange by exchange.

    Attributes:
        model: The model that its requests name.
        opening: The first message of the caller, by which further requests are recognized.
        turns: The turns so far.
        results: The results by call id, in order.
        schemas: The schemas of the offered tools.
        servers: The hosted MCP servers of tools, by tool name.
        hosted: By the id of an approval request, the keys of its calls, in order.
        decided: By the id of an approval request, how many decisions about it were recorded.
    """

    model: str
    opening: str
    turns: list[DraftTurn] = field(default_factory=list)
    results: dict[str | None, list[str]] = field(default_factory=dict)
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    hosted: dict[str | None, list[str]] = field(default_factory=dict)
    decided: dict[str | None, int] = field(default_factory=dict)

    def is_continued_by(self, model: str, items: Sequence[Item]) -> bool:
        """Return whether a request belongs to it because it repeats what the model said."""
        if not self.turns or (self.model, self.opening) != (model, opening_text(items)):
            return False
        return any(item.kind in _MODEL_ITEMS for item in items)

    def add_exchange(
        self,
        items: Sequence[Item],
        answer: Sequence[Item],
        schemas: Schemas,
        servers: Mapping[str, str] | None = None,
    ) -> None:
        """Add a request and its response; *servers* are those of the hosted tools that the response asks about."""
        self.schemas |= schemas
        self.servers |= {to_tool_name(name): server for name, server in (servers or {}).items()}
        new = _new_items(items)
        message = to_literal("\n\n".join(item.text or "" for item in new if item.kind == "user"))
        decisions = tuple(self._read_decisions(items))
        if message or decisions or not self.turns:
            send = message or (None if decisions else DEFAULT_MESSAGE)
            self.turns.append(DraftTurn(send=send, decisions=decisions))
        self._add_results([*items, *answer])
        last = self.turns[-1]
        self.turns[-1] = replace(last, replies=(*last.replies, self._to_reply(answer)))

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

    def _to_reply(self, answer: Sequence[Item]) -> DraftReply:
        text = "".join(item.text or "" for item in answer if item.kind == "say")
        number = sum(len(reply.calls) for turn in self.turns for reply in turn.replies)
        call_items = [item for item in answer if item.kind in ("call", "approval_request")]
        calls = tuple(_to_call(item, f"k{number + index}") for index, item in enumerate(call_items))
        for item, call in zip(call_items, calls, strict=True):
            if item.kind == "approval_request":
                self.hosted.setdefault(item.id, []).append(call.key)
        return DraftReply(say=to_literal(text) if text or not calls else None, calls=calls)

    def build_document(self, gated: Collection[str], about: str) -> dict[str, Any]:
        """Build the document of a scenario file.

        Args:
            gated: The tools whose calls need approval, which the wire does not show.
            about: The text below the title.
        """
        draft = self._build_draft({to_tool_name(name) for name in gated})
        document = build_document(draft, about=about)
        document["title"] = f"Recorded: {draft.turns[0].send or 'a conversation'}".partition("\n")[0][:100]
        for name, tool in document.get("tools", {}).items():
            arguments = [call.arguments for call in draft.calls() if call.tool == name]
            declared = _declared_parameters(self.schemas.get(name, {}), arguments)
            if declared:
                tool["parameters"] = {**tool.get("parameters", {}), **declared}
        return document

    def _build_draft(self, gated: Collection[str]) -> ScenarioDraft:
        remaining = {call_id: iter(texts) for call_id, texts in self.results.items()}

        def add_result(call: DraftCall) -> DraftCall:
            text = next(remaining.get(call.id, iter(())), None)
            return call if text is None else replace(call, result=DraftResult(value=to_literal(text)))

        turns = [
            replace(
                turn, replies=tuple(replace(reply, calls=tuple(map(add_result, reply.calls))) for reply in turn.replies)
            )
            for turn in self.turns
        ]
        names = dict.fromkeys(call.tool for turn in turns for reply in turn.replies for call in reply.calls)
        tools = {name: self._build_tool(name, gated) for name in names}
        return ScenarioDraft(tools=tools, turns=tuple(_add_oracle_turns(turns, tools)))

    def _build_tool(self, name: str, gated: Collection[str]) -> DraftTool:
        if name in self.servers:
            return DraftTool(gated=True, kind="hosted_mcp", server=to_tool_name(self.servers[name]))
        return DraftTool(gated=name in gated)


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
        present = {name: value for name, value in item.arguments.items() if value is not None}
        arguments = {to_parameter_name(name): to_literal(value) for name, value in present.items()}
    else:
        arguments = str(item.arguments or "")
    return DraftCall(key=key, id=item.id, tool=to_tool_name(item.tool or ""), arguments=arguments)


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
    """Return the declared parameters of a tool, as far as the arguments of all calls fit them."""
    properties = schema.get("properties")
    required = schema.get("required")
    required = required if isinstance(required, list) else ()
    types: dict[str, str] = {}
    for name, declaration in properties.items() if isinstance(properties, Mapping) else ():
        kind = _parameter_type(declaration)
        values = [call[name] for call in calls if isinstance(call, Mapping) and name in call]
        missing = any(isinstance(call, Mapping) and name not in call for call in calls)
        if kind and all(_is_of_type(value, kind) for value in values):
            types[to_parameter_name(name)] = kind if name in required and not missing else f"{kind}?"
    return types


def _parameter_type(schema: Any) -> str:
    """Return the first type of a parameter that scenarios have; empty if there is none."""
    if not isinstance(schema, Mapping):
        return ""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    kinds += [choice.get("type") for choice in schema.get("anyOf") or () if isinstance(choice, Mapping)]
    return next((name for name in kinds if name in PARAMETER_TYPES), "")


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _is_of_type(value: Any, kind: str) -> bool:
    # A boolean is an integer in Python, but not in JSON Schema.
    return isinstance(value, _PYTHON_TYPES[kind]) and isinstance(value, bool) is (kind == "boolean")
