"""
A conversation as it passed, as the draft of a scenario.

The wire shows what the model said and what it was told. Who approved what is not on it: a call that was rejected has a
result that says so, and that is what its tool gives in the scenario.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftReply,
    DraftResult,
    DraftTool,
    DraftTurn,
    ScenarioDraft,
)
from pytest_approvals.conversations.reproduce.from_conversation import to_literal, to_parameter_name, to_tool_name
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.scenario.vocabulary import PARAMETER_TYPES

Schemas = Mapping[str, Mapping[str, Any]]
"""The JSON Schemas of the parameters of the tools that a model was offered, by the tools' names."""

_MODEL_ITEMS = ("say", "call", "approval_request", "hosted_result")


@dataclass(slots=True)
class RecordedConversation:
    """
    One conversation, exchange by exchange.

    Attributes:
        model: The model that its requests name.
        opening: The first message of the caller, by which its further requests are known.
    """

    model: str
    opening: str
    turns: list[DraftTurn] = field(default_factory=list)
    results: dict[str | None, list[str]] = field(default_factory=dict)
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def is_continued_by(self, model: str, items: Sequence[Item]) -> bool:
        """Says whether a request belongs to it: one that repeats what the model said in it."""
        return (
            self.turns != [] and (self.model, self.opening) == (model, opening_text(items)) and _has_model_items(items)
        )

    def took(self, items: Sequence[Item], answer: Sequence[Item], schemas: Schemas) -> None:
        """Takes in a request and its answer."""
        self.schemas |= schemas
        new = _new_items(items)
        message = "\n\n".join(item.text or "" for item in new if item.kind == "user")
        if message or not self.turns:
            self.turns.append(DraftTurn(send=to_literal(message) or "Go on."))
        self._note_results(items)
        last = self.turns[-1]
        self.turns[-1] = replace(last, replies=(*last.replies, self._reply(answer)))

    def _note_results(self, items: Sequence[Item]) -> None:
        told: dict[str | None, list[str]] = {}
        for item in items:
            if item.kind == "result" or (item.kind == "hosted_result" and item.text is not None):
                told.setdefault(item.id, []).append(item.text or "")
        for call_id, texts in told.items():
            known = self.results.setdefault(call_id, [])
            known += texts[len(known) :]

    def _reply(self, answer: Sequence[Item]) -> DraftReply:
        said = "".join(item.text or "" for item in answer if item.kind == "say")
        number = sum(len(reply.calls) for turn in self.turns for reply in turn.replies)
        asked = [item for item in answer if item.kind in ("call", "approval_request")]
        calls = tuple(_to_call(item, f"k{number + place}") for place, item in enumerate(asked))
        return DraftReply(say=to_literal(said) if said or not calls else None, calls=calls)

    def document(self, gated: Collection[str], about: str) -> dict[str, Any]:
        """
        Gives it as the document of a scenario file.

        Arguments:
            gated: The tools whose calls need approval, which the wire does not show.
        """
        draft = self._draft({to_tool_name(name) for name in gated})
        document = build_document(draft, about=about)
        document["title"] = f"Recorded: {draft.turns[0].send or 'a conversation'}".partition("\n")[0][:100]
        for name, tool in document.get("tools", {}).items():
            given = [call.arguments for call in draft.calls() if call.tool == name]
            declared = _declared_parameters(self.schemas.get(name, {}), given)
            if declared:
                tool["parameters"] = {**tool.get("parameters", {}), **declared}
        return document

    def _draft(self, gated: Collection[str]) -> ScenarioDraft:
        left = {call_id: iter(texts) for call_id, texts in self.results.items()}

        def known(call: DraftCall) -> DraftCall:
            text = next(left.get(call.id, iter(())), None)
            return call if text is None else replace(call, result=DraftResult(value=to_literal(text)))

        turns = [
            replace(turn, replies=tuple(replace(one, calls=tuple(map(known, one.calls))) for one in turn.replies))
            for turn in self.turns
        ]
        names = dict.fromkeys(call.tool for turn in turns for reply in turn.replies for call in reply.calls)
        tools = {name: DraftTool(gated=name in gated) for name in names}
        return ScenarioDraft(tools=tools, turns=tuple(_add_oracle_turns(turns, tools)))


def opening_text(items: Sequence[Item]) -> str:
    """Gives the first message of the caller."""
    return next((item.text or "" for item in items if item.kind == "user"), "")


def _has_model_items(items: Sequence[Item]) -> bool:
    return any(item.kind in _MODEL_ITEMS for item in items)


def _new_items(items: Sequence[Item]) -> Sequence[Item]:
    """Gives what stands behind all that the model said and that it was told about its calls."""
    places = [place for place, item in enumerate(items) if item.kind in (*_MODEL_ITEMS, "result", "approval_response")]
    return items[places[-1] + 1 :] if places else items


def _to_call(item: Item, key: str) -> DraftCall:
    given = item.arguments
    arguments = (
        {to_parameter_name(name): to_literal(value) for name, value in given.items() if value is not None}
        if isinstance(given, Mapping)
        else str(given or "")
    )
    return DraftCall(key=key, id=item.id, tool=to_tool_name(item.tool or ""), arguments=arguments)


def _add_oracle_turns(turns: Sequence[DraftTurn], tools: Mapping[str, DraftTool]) -> Iterator[DraftTurn]:
    """Gives the turns with a step of the oracle where calls wait for an approval."""
    for turn in turns:
        yield turn
        if any(tools[call.tool].gated for reply in turn.replies for call in reply.calls):
            yield DraftTurn(oracle=True)


# --- parameters -------------------------------------------------------------------------------------------------------


def _declared_parameters(schema: Mapping[str, Any], given: Sequence[Any]) -> dict[str, str]:
    """Gives the parameters that a tool was offered with, as far as all calls fit them."""
    properties = schema.get("properties")
    required = schema.get("required") or ()
    found: dict[str, str] = {}
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        kind = _parameter_type(one)
        values = [call[name] for call in given if isinstance(call, Mapping) and name in call]
        missing = any(isinstance(call, Mapping) and name not in call for call in given)
        if kind and all(_is_of_type(value, kind) for value in values):
            found[to_parameter_name(name)] = kind if name in required and not missing else f"{kind}?"
    return found


def _parameter_type(schema: Any) -> str:
    """Gives the type of a parameter, or of its first choice that is one; empty where it has none."""
    if not isinstance(schema, Mapping):
        return ""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    kinds += [choice.get("type") for choice in schema.get("anyOf") or () if isinstance(choice, Mapping)]
    return next((one for one in kinds if one in PARAMETER_TYPES), "")


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _is_of_type(value: Any, kind: str) -> bool:
    return isinstance(value, _PYTHON_TYPES[kind]) and isinstance(value, bool) is (kind == "boolean")
