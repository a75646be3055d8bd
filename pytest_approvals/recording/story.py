"""
A conversation as it passed, as the draft of a scenario.

The wire shows what the model said and what it was told. Who approved what is not on it: a call that was rejected has a
result that says so, and that is what its tool gives in the scenario.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.reproduce.document import document_of
from pytest_approvals.reproduce.draft import Call, Draft, Reply, Result, Tool, Turn
from pytest_approvals.reproduce.stored import literal, parameter_name, tool_name
from pytest_approvals.scenario.words import PARAMETER_TYPES

Schemas = Mapping[str, Mapping[str, Any]]
"""The JSON Schemas of the parameters of the tools that a model was offered, by the tools' names."""

_MADE = ("say", "call", "approval_request", "hosted_result")


@dataclass(slots=True)
class Conversation:
    """
    One conversation, exchange by exchange.

    Attributes:
        model: The model that its requests name.
        opening: The first message of the caller, by which its further requests are known.
    """

    model: str
    opening: str
    turns: list[Turn] = field(default_factory=list)
    results: dict[str | None, list[str]] = field(default_factory=dict)
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def goes_on_with(self, model: str, items: Sequence[Item]) -> bool:
        """Says whether a request belongs to it: one that repeats what the model said in it."""
        return self.turns != [] and (self.model, self.opening) == (model, opening_of(items)) and _is_begun(items)

    def took(self, items: Sequence[Item], answer: Sequence[Item], schemas: Schemas) -> None:
        """Takes in a request and its answer."""
        self.schemas |= schemas
        new = _behind(items)
        message = "\n\n".join(item.text or "" for item in new if item.kind == "user")
        if message or not self.turns:
            self.turns.append(Turn(send=literal(message) or "Go on."))
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

    def _reply(self, answer: Sequence[Item]) -> Reply:
        said = "".join(item.text or "" for item in answer if item.kind == "say")
        number = sum(len(reply.calls) for turn in self.turns for reply in turn.replies)
        asked = [item for item in answer if item.kind in ("call", "approval_request")]
        calls = tuple(_call(item, f"k{number + place}") for place, item in enumerate(asked))
        return Reply(say=literal(said) if said or not calls else None, calls=calls)

    def document(self, gated: Collection[str], about: str) -> dict[str, Any]:
        """
        Gives it as the document of a scenario file.

        Arguments:
            gated: The tools whose calls need approval, which the wire does not show.
        """
        draft = self._draft({tool_name(name) for name in gated})
        document = document_of(draft, about=about)
        document["title"] = f"Recorded: {draft.turns[0].send or 'a conversation'}".partition("\n")[0][:100]
        for name, tool in document.get("tools", {}).items():
            given = [call.arguments for call in draft.calls() if call.tool == name]
            declared = _declared(self.schemas.get(name, {}), given)
            if declared:
                tool["parameters"] = {**tool.get("parameters", {}), **declared}
        return document

    def _draft(self, gated: Collection[str]) -> Draft:
        left = {call_id: iter(texts) for call_id, texts in self.results.items()}

        def known(call: Call) -> Call:
            text = next(left.get(call.id, iter(())), None)
            return call if text is None else replace(call, result=Result(value=literal(text)))

        turns = [
            replace(turn, replies=tuple(replace(one, calls=tuple(map(known, one.calls))) for one in turn.replies))
            for turn in self.turns
        ]
        names = dict.fromkeys(call.tool for turn in turns for reply in turn.replies for call in reply.calls)
        tools = {name: Tool(gated=name in gated) for name in names}
        return Draft(tools=tools, turns=tuple(_answered(turns, tools)))


def opening_of(items: Sequence[Item]) -> str:
    """Gives the first message of the caller."""
    return next((item.text or "" for item in items if item.kind == "user"), "")


def _is_begun(items: Sequence[Item]) -> bool:
    return any(item.kind in _MADE for item in items)


def _behind(items: Sequence[Item]) -> Sequence[Item]:
    """Gives what stands behind all that the model said and that it was told about its calls."""
    places = [place for place, item in enumerate(items) if item.kind in (*_MADE, "result", "approval_response")]
    return items[places[-1] + 1 :] if places else items


def _call(item: Item, key: str) -> Call:
    given = item.arguments
    arguments = (
        {parameter_name(name): literal(value) for name, value in given.items() if value is not None}
        if isinstance(given, Mapping)
        else str(given or "")
    )
    return Call(key=key, id=item.id, tool=tool_name(item.tool or ""), arguments=arguments)


def _answered(turns: Sequence[Turn], tools: Mapping[str, Tool]) -> Iterator[Turn]:
    """Gives the turns with a step of the oracle where calls wait for an approval."""
    for turn in turns:
        yield turn
        if any(tools[call.tool].gated for reply in turn.replies for call in reply.calls):
            yield Turn(oracle=True)


# --- parameters -------------------------------------------------------------------------------------------------------


def _declared(schema: Mapping[str, Any], given: Sequence[Any]) -> dict[str, str]:
    """Gives the parameters that a tool was offered with, as far as all calls fit them."""
    properties = schema.get("properties")
    required = schema.get("required") or ()
    found: dict[str, str] = {}
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        kind = _type(one)
        values = [call[name] for call in given if isinstance(call, Mapping) and name in call]
        missing = any(isinstance(call, Mapping) and name not in call for call in given)
        if kind and all(_fits(value, kind) for value in values):
            found[parameter_name(name)] = kind if name in required and not missing else f"{kind}?"
    return found


def _type(schema: Any) -> str:
    """Gives the type of a parameter, or of its first choice that is one; empty where it has none."""
    if not isinstance(schema, Mapping):
        return ""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    kinds += [choice.get("type") for choice in schema.get("anyOf") or () if isinstance(choice, Mapping)]
    return next((one for one in kinds if one in PARAMETER_TYPES), "")


_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _fits(value: Any, kind: str) -> bool:
    return isinstance(value, _PYTHON[kind]) and isinstance(value, bool) is (kind == "boolean")
