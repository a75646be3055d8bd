"""Rules of what a provider refuses in the input of its model.

A real provider answers status 400 to an input that breaks one of these rules, even if the agent has executed tools
before; so does the scripted model. The rules work on neutral items and are pure. An input is read once into an
`InputAnalysis`, so that each rule only looks at its irregularities.

`chat` is OpenAI chat completions, `responses` OpenAI responses, `messages` Anthropic messages, `gemini` Google's
`generateContent`, `converse` Converse of Amazon Bedrock; `none` has no rules.
Results settle by position: a result belongs to the earliest call of its id before it that has none, so that ids which
come again are distinguished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.errors import UnknownName


class InputAnalysis:
    """How calls and results, requests and responses of an input settle each other, and its irregularities.

    The lists hold indexes of items. For an input that every provider takes, all are empty but *closed*, *requests* and
    *responses*.

    Attributes:
        open: By id, the calls without a result.
        closed: The ids of calls that have a result.
        orphans: Results without a call before them.
        seconds: Results of calls that have one already.
        late: Results that follow something else than the other results of their message.
        late_for_turns: Those of them that are late even if messages of the model in a row are one turn.
        doubled: Calls with the id of an open call.
        nameless: Calls without an id.
        blank: Texts that hold only white space.
        textual: Calls whose arguments are not an object.
        requests: By id, the approval requests; a provider may name several alike.
        responses: The approval responses.
        first: The kind of the first item that is not `other`.
    """

    __slots__ = (
        "_delayed",
        "_delayed_for_turns",
        "_has_results",
        "_message",
        "blank",
        "closed",
        "doubled",
        "first",
        "items",
        "late",
        "late_for_turns",
        "nameless",
        "open",
        "orphans",
        "requests",
        "responses",
        "seconds",
        "textual",
    )

    def __init__(self) -> None:
        self.items: Sequence[Mapping[str, Any]] = ()
        self.open: dict[str | None, list[int]] = {}
        self.closed: set[str | None] = set()
        self.orphans: list[int] = []
        self.seconds: list[int] = []
        self.late: list[int] = []
        self.late_for_turns: list[int] = []
        self.doubled: list[int] = []
        self.nameless: list[int] = []
        self.blank: list[int] = []
        self.textual: list[int] = []
        self.requests: dict[str | None, list[int]] = {}
        self.responses: list[int] = []
        self.first = ""
        self._message: int | None = None
        # By id of a call: whether something other than results has followed it.
        self._delayed: dict[str | None, bool] = {}
        # By id of a call: whether its turn and then something other than results has followed it.
        self._delayed_for_turns: dict[str | None, bool] = {}
        self._has_results = False

    def read(self, items: Sequence[Mapping[str, Any]], start: int = 0) -> InputAnalysis:
        """Read *items* from *start* on; those before it were read already."""
        self.items = items
        for index in range(start, len(items)):
            item = items[index]
            kind = item["kind"]
            if kind == "other" or kind == "reasoning":
                continue
            if not self.first:
                self.first = kind
            if kind == "result":
                self._read_result(index, item.get("id"))
                self._message = None
                self._has_results = True
            elif kind != "hosted_result":  # the provider made it itself, so it is never wrong
                self._read_other(index, kind, item)
        return self

    def _read_other(self, index: int, kind: str, item: Mapping[str, Any]) -> None:
        # Several calls of one message, and the results of them in a row, are no interruption.
        if self.open and (kind == "user" or self._message is None or item.get("message") != self._message):
            self._delayed = dict.fromkeys(self._delayed, True)
        if self.open and (kind == "user" or self._has_results):
            self._delayed_for_turns = dict.fromkeys(self._delayed_for_turns, True)
        self._has_results = False
        if kind == "call":
            self._read_call(index, item)
            self._message = item.get("message")
        elif kind == "approval_request":
            self.requests.setdefault(item.get("id"), []).append(index)
        elif kind == "approval_response":
            self.responses.append(index)
        elif not str(item.get("text") or "").strip():
            self.blank.append(index)

    def _read_call(self, index: int, item: Mapping[str, Any]) -> None:
        call_id = item.get("id")
        self._delayed[call_id] = self._delayed_for_turns[call_id] = False
        if not call_id:
            self.nameless.append(index)
        if not isinstance(item.get("arguments"), Mapping | None):
            self.textual.append(index)
        if call_id in self.open:
            self.doubled.append(index)
            self.open[call_id].append(index)
            return
        self.open[call_id] = [index]

    def _read_result(self, index: int, call_id: str | None) -> None:
        if self._delayed.pop(call_id, False):
            self.late.append(index)
        if self._delayed_for_turns.pop(call_id, False):
            self.late_for_turns.append(index)
        waiting = self.open.get(call_id)
        if waiting:
            waiting.pop(0)
            if not waiting:
                del self.open[call_id]
            self.closed.add(call_id)
        else:
            (self.seconds if call_id in self.closed else self.orphans).append(index)

    @property
    def is_valid_everywhere(self) -> bool:
        """Whether no provider may refuse the input."""
        if self.open or self.orphans or self.seconds or self.late or self.doubled or self.nameless:
            return False
        if self.blank or self.textual or self.requests or self.responses:
            return False
        return self.first == "user" or self.first == "result"

    @property
    def is_empty(self) -> bool:
        """Whether it has no item at all."""
        return not self.items

    @property
    def has_no_message(self) -> bool:
        """Whether it has instructions, or other items, and no item of a message."""
        return bool(self.items) and not self.first

    @property
    def has_approvals(self) -> bool:
        """Whether it has approval requests or responses."""
        return bool(self.requests or self.responses)

    def id(self, index: int) -> str:
        """Return the id of an item; empty if it has none."""
        return str(self.items[index].get("id") or "")

    def ids(self, indexes: Iterable[int]) -> tuple[str, ...]:
        """Return the ids of items, each once."""
        return tuple(dict.fromkeys(self.id(index) for index in indexes))


PROVIDERS = ("chat", "responses", "messages", "gemini", "converse", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleViolation:
    """A rule that an input breaks; *ids* are those of the calls or requests concerned."""

    rule: str
    ids: tuple[str, ...]
    text: str


_Rule = Callable[[InputAnalysis], Iterable[RuleViolation]]

RULES: dict[str, tuple[tuple[str, ...], _Rule]] = {}
"""Every rule by its name: the providers that have it, and the function; its docstring quotes their answers."""

_RULES_BY_PROVIDER: dict[str, list[tuple[str, _Rule]]] = {provider: [] for provider in PROVIDERS}
"""The rules of each provider, each with the attribute of `InputAnalysis` that is falsy if the rule holds."""


def check_items(items: Sequence[Item] | Sequence[Mapping[str, Any]], wire_rules: str) -> list[RuleViolation]:
    """Return what a provider refuses in *items*; empty for an input that it takes.

    Args:
        items: Neutral items, or their mappings in a journal.
        wire_rules: The provider.

    Raises:
        UnknownName: No provider has such a name.
    """
    if wire_rules in _RULES_BY_PROVIDER and is_plain_talk(items):
        return []
    mappings = [item_to_mapping(item) if isinstance(item, Item) else item for item in items]
    return check_input(InputAnalysis().read(mappings), wire_rules)


def check_input(analysis: InputAnalysis, wire_rules: str) -> list[RuleViolation]:
    """Return what a provider refuses in an input that was read already; see `check_items`."""
    rules = _RULES_BY_PROVIDER.get(wire_rules)
    if rules is None:
        raise UnknownName("set of wire rules", wire_rules, PROVIDERS)
    # Nearly every input is valid for all providers, and one look at it costs less than the rules.
    if analysis.is_valid_everywhere:
        return []
    return [violation for concerns, rule in rules if getattr(analysis, concerns) for violation in rule(analysis)]


def is_plain_talk(items: Sequence[Item] | Sequence[Mapping[str, Any]], speaker: str = "") -> bool:
    """Return whether items are only texts, of which the first is the user's, and none is blank.

    Every provider accepts those, and to see it takes a fraction of the time of the analysis.

    Args:
        items: The items.
        speaker: The kind of the first text before them; empty if there is none.
    """
    for item in items:
        if type(item) is not Item or item.kind not in ("user", "say", "other"):
            return False
        if item.kind != "other":
            if not item.text or item.text.isspace():
                return False
            speaker = speaker or item.kind
    return speaker == "user"


def item_to_mapping(item: Item) -> dict[str, Any]:
    """Return an item as `InputAnalysis` reads it."""
    return {
        "kind": item.kind,
        "id": item.id,
        "arguments": item.arguments,
        "text": item.text,
        "approved": item.approved,
        "message": item.message,
    }


def _register_rule(concerns: str, *providers: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        RULES[_rule_name(rule)] = (providers, rule)
        for provider in providers:
            _RULES_BY_PROVIDER[provider].append((concerns, rule))
        return rule

    return register


def _rule_name(rule: _Rule) -> str:
    return str(getattr(rule, "__name__", "")).replace("_", "-")


def _violation(rule: _Rule, text: str, *ids: str) -> RuleViolation:
    return RuleViolation(rule=_rule_name(rule), ids=ids, text=text)


# --- the whole input --------------------------------------------------------------------------------------------------


@_register_rule("is_empty", "chat", "responses", "messages", "gemini", "converse")
def empty_input(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses an input without a message.

    To OpenAI the array is too short, to Anthropic a message is missing.
    """
    yield _violation(empty_input, "the input holds no message")


@_register_rule("has_no_message", "messages", "converse")
def no_message(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic and Bedrock refuse instructions without a message: "at least one message is required".

    OpenAI answers a system or developer message that stands alone (published types, 2026-11-22).
    """
    yield _violation(no_message, "at least one message is required")


@_register_rule("first", "converse")
def first_not_user(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Bedrock refuses a conversation whose first message is not the user's: "must start with a user message".

    It does so for most models; those of Anthropic and Qwen are excused (pydantic/pydantic-ai, `providers/bedrock.py`,
    and its cassette `test_bedrock_anthropic_message_history_starting_with_response`, 2026-11-26). Anthropic itself
    refused it for models of 2024, and accepts it now (cassette `test_anthropic_model_empty_message_on_history`).
    """
    if analysis.first not in ("user", "result"):
        yield _violation(first_not_user, "the first message must use the user role")


@_register_rule("blank", "messages")
def empty_text(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic refuses text blocks that hold only white space."""
    for _ in analysis.blank:
        yield _violation(empty_text, "text content blocks must contain non-whitespace text")


@_register_rule("blank", "converse")
def blank_text(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Bedrock refuses text blocks without a character; white space is accepted."""
    for index in analysis.blank:
        if not analysis.items[index].get("text"):
            yield _violation(blank_text, "text content blocks must not be blank")


# --- calls and their results ------------------------------------------------------------------------------------------


@_register_rule("open", "chat", "responses", "messages", "gemini", "converse")
def call_without_result(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses a call that has no result.

    OpenAI chat: the tool call ids "did not have response messages"; OpenAI responses: "no tool output found for
    function call"; Anthropic: tool use ids "were found without tool_result blocks".
    """
    ids = analysis.ids(index for indexes in analysis.open.values() for index in indexes)
    yield _violation(call_without_result, f"no result for the calls {', '.join(ids)}", *ids)


@_register_rule("orphans", "chat", "responses", "messages", "gemini", "converse")
def result_without_call(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses a result without a call before it.

    OpenAI chat: a tool message "must be a response to a preceding message with tool_calls"; OpenAI responses: "no tool
    call found for function call output"; Anthropic: "unexpected tool_use_id found in tool_result blocks".
    """
    for index in analysis.orphans:
        yield _violation(result_without_call, f"no call before the result of {analysis.id(index)}", analysis.id(index))


@_register_rule("seconds", "chat", "responses", "messages", "gemini", "converse")
def second_result(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses a second result of one call.

    OpenAI: "duplicate value for tool_call_id"; Anthropic: "each tool_use must have a single result".
    """
    for index in analysis.seconds:
        yield _violation(
            second_result, f"another result of {analysis.id(index)} stands before this one", analysis.id(index)
        )


@_register_rule("doubled", "chat", "responses", "messages", "converse")
def duplicate_call_id(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses two open calls with one id, since a result could belong to either.

    An id that comes again after its result is accepted: Anthropic's "tool_use ids must be unique" is about the calls of
    one turn (pydantic/pydantic-ai, cassettes of `test_cross_provider_capability_replay`, 2026-11-26).
    """
    for index in analysis.doubled:
        yield _violation(duplicate_call_id, f"two calls have the id {analysis.id(index)}", analysis.id(index))


@_register_rule("nameless", "chat", "responses", "messages", "converse")
def call_without_id(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider requires an id of every call; if the model gave none, the agent has to make one up."""
    for index in analysis.nameless:
        yield _violation(call_without_id, f"the call of {analysis.items[index].get('tool')} has no id")


@_register_rule("textual", "messages", "converse")
def arguments_not_an_object(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic and Bedrock carry arguments as an object and refuse anything else; OpenAI carries any text."""
    for index in analysis.textual:
        yield _violation(arguments_not_an_object, "the input of a call should be an object", analysis.id(index))


@_register_rule("late", "chat", "converse")
def result_not_adjacent(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Chat completions and Bedrock require the results of a message's calls right after it.

    A result that comes later is, to OpenAI, a call without a response and a tool message without a call; to Bedrock
    "Expected toolResult blocks at messages.N.content". OpenAI responses takes them anywhere after the call.
    """
    ids = analysis.ids(analysis.late)
    yield _violation(result_not_adjacent, f"the results of {', '.join(ids)} do not follow their calls at once", *ids)


@_register_rule("late_for_turns", "messages", "gemini")
def result_not_in_next_turn(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic and Gemini require the results of a turn's calls right after it.

    Messages of the model in a row are one turn (anthropic 2.12.0, documentation of `messages`; Gemini accepts the same:
    pydantic/pydantic-ai, cassettes of `test_cross_provider_capability_replay`, 2026-11-26). To Anthropic a result that
    comes later is a tool use "without tool_result blocks immediately after".
    """
    ids = analysis.ids(analysis.late_for_turns)
    text = f"the results of {', '.join(ids)} do not follow the turn of their calls at once"
    yield _violation(result_not_in_next_turn, text, *ids)


# --- approvals of hosted calls ----------------------------------------------------------------------------------------


@_register_rule("has_approvals", "chat", "messages", "gemini", "converse")
def approval_item_unknown(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """Chat completions, Anthropic, Gemini and Bedrock have no approval items; client libraries do not send them."""
    ids = analysis.ids([*chain.from_iterable(analysis.requests.values()), *analysis.responses])
    yield _violation(approval_item_unknown, "approval items are not part of this protocol", *ids)


@_register_rule("requests", "responses")
def request_without_response(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses open approval requests: they "do not have an approval"."""
    answered = {analysis.items[index].get("id") for index in analysis.responses}
    ids = analysis.ids(indexes[0] for request_id, indexes in analysis.requests.items() if request_id not in answered)
    if ids:
        yield _violation(request_without_response, f"no approval response for {', '.join(ids)}", *ids)


@_register_rule("responses", "responses")
def unknown_approval_id(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses an approval response without a request before it."""
    for index in analysis.responses:
        seen = analysis.items[index].get("id")
        if analysis.requests.get(seen, [index])[0] >= index:
            yield _violation(unknown_approval_id, f"no approval request has the id {seen}", str(seen))


@_register_rule("responses", "responses")
def second_response(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses a second response to one approval request."""
    seen: Counter[str | None] = Counter()
    for index in analysis.responses:
        name = analysis.items[index].get("id")
        seen[name] += 1
        requests = sum(before < index for before in analysis.requests.get(name, ()))
        if seen[name] > max(requests, 1):
            yield _violation(second_response, f"the request {analysis.id(index)} is answered twice", analysis.id(index))


@_register_rule("responses", "responses")
def approval_not_boolean(analysis: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses requires a boolean as the decision of an approval response (published types, 2026-11-22)."""
    for index in analysis.responses:
        if not isinstance(analysis.items[index].get("approved"), bool):
            seen = analysis.id(index)
            yield _violation(approval_not_boolean, f"the answer to the request {seen} is neither true nor false", seen)
