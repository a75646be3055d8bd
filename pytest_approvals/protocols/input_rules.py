"""A model input read once, so that each rule of a provider has only to look at what is odd about it.

What a provider refuses in the input of its model.

A real provider answers status 400 to an input that breaks one of these rules, whatever the agent had run before; so
does the scripted model. The rules work on neutral items and are pure.

`chat` is OpenAI chat completions, `responses` OpenAI responses, `messages` Anthropic messages; `none` has no rules.
Results settle by position: a result belongs to the earliest call of its id that stands before it without one, so that
ids which come again are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.errors import UnknownName


class InputAnalysis:
    """
    An input, read once: how calls and results, requests and responses settle each other, and what is odd about it.

    Everything is empty for an input that every provider takes, but *closed*, *requests* and *responses*.
    """

    __slots__ = (
        "_message",
        "blank",
        "closed",
        "doubled",
        "first",
        "interrupted",
        "items",
        "nameless",
        "open",
        "orphans",
        "repeated",
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
        self.doubled: list[int] = []
        self.repeated: list[int] = []
        self.nameless: list[int] = []
        self.blank: list[int] = []
        self.textual: list[int] = []
        self.requests: dict[str | None, int] = {}
        self.responses: list[int] = []
        self.interrupted = False
        self.first = ""
        self._message: int | None = None

    def read(self, items: Sequence[Mapping[str, Any]], start: int = 0) -> InputAnalysis:
        """Reads *items* from *start* on, where what stands before was read already."""
        self.items = items
        for index in range(start, len(items)):
            item = items[index]
            kind = item["kind"]
            if kind == "other":
                continue
            if not self.first:
                self.first = kind
            if kind == "result":
                self._result(index, item.get("id"))
                self._message = None
            elif kind != "hosted_result":
                self._other(index, kind, item)
        return self

    def _other(self, index: int, kind: str, item: Mapping[str, Any]) -> None:
        if self.open and (kind == "user" or self._message is None or item.get("message") != self._message):
            self.interrupted = True
        if kind == "call":
            self._call(index, item)
            self._message = item.get("message")
        elif kind == "approval_request":
            self.requests[item.get("id")] = index
        elif kind == "approval_response":
            self.responses.append(index)
        elif not str(item.get("text") or "").strip():
            self.blank.append(index)

    def _call(self, index: int, item: Mapping[str, Any]) -> None:
        call_id = item.get("id")
        if not call_id:
            self.nameless.append(index)
        if not isinstance(item.get("arguments"), Mapping | None):
            self.textual.append(index)
        if call_id in self.open:
            self.doubled.append(index)
            self.open[call_id].append(index)
            return
        if call_id in self.closed:
            self.repeated.append(index)
        self.open[call_id] = [index]

    def _result(self, index: int, call_id: str | None) -> None:
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
        """Whether there is nothing in it that any provider may refuse."""
        if self.open or self.orphans or self.seconds or self.doubled or self.repeated or self.nameless:
            return False
        if self.blank or self.textual or self.requests or self.responses or self.interrupted:
            return False
        return self.first == "user" or self.first == "result"

    @property
    def is_empty(self) -> bool:
        return not self.first

    @property
    def has_approvals(self) -> bool:
        return bool(self.requests or self.responses)

    def id(self, index: int) -> str:
        return str(self.items[index].get("id") or "")

    def ids(self, indexes: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.id(index) for index in indexes))


PROVIDERS = ("chat", "responses", "messages", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleViolation:
    """One rule that an input breaks; *ids* are the call or request ids concerned, *text* is in a provider's words."""

    rule: str
    ids: tuple[str, ...]
    text: str


_Rule = Callable[[InputAnalysis], Iterable[RuleViolation]]

RULES: dict[str, tuple[tuple[str, ...], _Rule]] = {}
"""Every rule by its name: the providers that have it, and the function, whose docstring says what they answer."""

_RULES_BY_PROVIDER: dict[str, list[tuple[str, _Rule]]] = {provider: [] for provider in PROVIDERS}
"""The rules of each provider, with what of the input must be there for a rule to have anything to say."""


def check_items(items: Sequence[Item] | Sequence[Mapping[str, Any]], wire_rules: str) -> list[RuleViolation]:
    """
    Lists what the provider whose rules are *wire_rules* refuses in *items*; empty for an input that it takes.

    Arguments:
        items: Neutral items, or the mappings that stand for them in a journal.

    Errors:
        UnknownName: No provider has such a name.
    """
    return check_input(
        InputAnalysis().read([item if isinstance(item, Mapping) else _to_mapping(item) for item in items]), wire_rules
    )


def check_input(read: InputAnalysis, wire_rules: str) -> list[RuleViolation]:
    """Lists what the provider refuses in an input that was read already; see `check_items`."""
    rules = _RULES_BY_PROVIDER.get(wire_rules)
    if rules is None:
        raise UnknownName("set of wire rules", wire_rules, PROVIDERS)
    if read.is_valid_everywhere:
        return []
    return [broken for concerns, rule in rules if getattr(read, concerns) for broken in rule(read)]


def _to_mapping(item: Item) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "id": item.id,
        "arguments": item.arguments,
        "text": item.text,
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


@_register_rule("is_empty", "chat", "responses", "messages")
def empty_input(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses an input without a message: OpenAI as too short an array, Anthropic as a missing one."""
    yield _violation(empty_input, "the input holds no message")


@_register_rule("first", "messages")
def first_not_user(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic refuses a conversation whose first message is not the user's."""
    if read.first not in ("user", "result"):
        yield _violation(first_not_user, "the first message must use the user role")


@_register_rule("blank", "messages")
def empty_text(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic refuses text blocks that hold only white space."""
    for _ in read.blank:
        yield _violation(empty_text, "text content blocks must contain non-whitespace text")


# --- calls and their results ------------------------------------------------------------------------------------------


@_register_rule("open", "chat", "responses", "messages")
def call_without_result(read: InputAnalysis) -> Iterator[RuleViolation]:
    """
    Every provider refuses a call that has no result.

    OpenAI chat: the tool call ids "did not have response messages"; OpenAI responses: "no tool output found for
    function call"; Anthropic: tool use ids "were found without tool_result blocks".
    """
    ids = read.ids(index for indexes in read.open.values() for index in indexes)
    yield _violation(call_without_result, f"no result for the calls {', '.join(ids)}", *ids)


@_register_rule("orphans", "chat", "responses", "messages")
def result_without_call(read: InputAnalysis) -> Iterator[RuleViolation]:
    """
    Every provider refuses a result whose call does not stand before it.

    OpenAI chat: a tool message "must be a response to a preceding message with tool_calls"; OpenAI responses: "no tool
    call found for function call output"; Anthropic: "unexpected tool_use_id found in tool_result blocks".
    """
    for index in read.orphans:
        yield _violation(result_without_call, f"no call before the result of {read.id(index)}", read.id(index))


@_register_rule("seconds", "chat", "responses", "messages")
def second_result(read: InputAnalysis) -> Iterator[RuleViolation]:
    """
    Every provider refuses a second result of one call.

    OpenAI: "duplicate value for tool_call_id"; Anthropic: "each tool_use must have a single result".
    """
    for index in read.seconds:
        yield _violation(second_result, f"another result of {read.id(index)} stands before this one", read.id(index))


@_register_rule("doubled", "chat", "responses", "messages")
def duplicate_call_id(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider refuses two unanswered calls with one id, since no result can be told to be whose."""
    for index in read.doubled:
        yield _violation(duplicate_call_id, f"two calls have the id {read.id(index)}", read.id(index))


@_register_rule("repeated", "messages")
def repeated_call_id(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic refuses an id that comes again anywhere in the conversation: "tool_use ids must be unique"."""
    for index in read.repeated:
        yield _violation(repeated_call_id, f"the call id {read.id(index)} was used before", read.id(index))


@_register_rule("nameless", "chat", "responses", "messages")
def call_without_id(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Every provider requires an id of every call; an agent whose model gave none has to make one up."""
    for index in read.nameless:
        yield _violation(call_without_id, f"the call of {read.items[index].get('tool')} has no id")


@_register_rule("textual", "messages")
def arguments_not_an_object(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Anthropic carries arguments as an object and refuses anything else; OpenAI carries any text."""
    for index in read.textual:
        yield _violation(arguments_not_an_object, "the input of a call should be an object", read.id(index))


@_register_rule("interrupted", "chat", "messages")
def result_not_adjacent(read: InputAnalysis) -> Iterator[RuleViolation]:
    """
    Chat completions and Anthropic want the results of a message's calls right after it, before any other message.

    A result that comes later is, to OpenAI, a call without a response and a tool message without a call; to Anthropic a
    tool use "without tool_result blocks immediately after". OpenAI responses takes them anywhere after the call.
    """
    late = _late_results(read)
    if late:
        ids = tuple(dict.fromkeys(late))
        yield _violation(
            result_not_adjacent, f"the results of {', '.join(ids)} do not follow their calls at once", *ids
        )


def _late_results(read: InputAnalysis) -> list[str]:
    """The ids of results that come after something other than results followed their calls."""
    waiting: dict[str, bool] = {}
    message: int | None = None
    late: list[str] = []
    for index, item in enumerate(read.items):
        kind = item["kind"]
        if kind == "result":
            if waiting.pop(read.id(index), False):
                late.append(read.id(index))
            message = None
            continue
        if kind in ("other", "hosted_result"):
            continue
        if waiting and (kind == "user" or message is None or item.get("message") != message):
            waiting = dict.fromkeys(waiting, True)
        if kind == "call":
            message = item.get("message")
            waiting[read.id(index)] = False
    return late


# --- approvals of hosted calls ----------------------------------------------------------------------------------------


@_register_rule("has_approvals", "chat", "messages")
def approval_item_unknown(read: InputAnalysis) -> Iterator[RuleViolation]:
    """Chat completions and Anthropic have no approval items; a client library refuses them before it sends."""
    ids = read.ids([*read.requests.values(), *read.responses])
    yield _violation(approval_item_unknown, "approval items are not part of this protocol", *ids)


@_register_rule("requests", "responses")
def request_without_response(read: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses approval requests that the input leaves open: they "do not have an approval"."""
    answered = {read.items[index].get("id") for index in read.responses}
    ids = read.ids(index for seen, index in read.requests.items() if seen not in answered)
    if ids:
        yield _violation(request_without_response, f"no approval response for {', '.join(ids)}", *ids)


@_register_rule("responses", "responses")
def unknown_approval_id(read: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses an approval response to a request that does not stand before it."""
    for index in read.responses:
        seen = read.items[index].get("id")
        if read.requests.get(seen, index) >= index:
            yield _violation(unknown_approval_id, f"no approval request has the id {seen}", str(seen))


@_register_rule("responses", "responses")
def second_response(read: InputAnalysis) -> Iterator[RuleViolation]:
    """OpenAI responses refuses a second response to one approval request."""
    seen: set[str] = set()
    for index in read.responses:
        if read.id(index) in seen:
            yield _violation(second_response, f"the request {read.id(index)} is answered twice", read.id(index))
        seen.add(read.id(index))
