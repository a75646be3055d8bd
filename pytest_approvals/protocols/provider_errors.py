"""Errors of model providers, and the sentences that OpenAI's protocols share.

Neutral rules (`input_rules.py`) check the conversation; body rules of a protocol check what only its bodies show.

OpenAI's error body is the one of the published API reference ("error codes"); the client libraries read `message`,
`type`, `param` and `code` from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar, cast

from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.text import json_type_name, list_objects, object_or_empty

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError(RuleViolation):
    """A rule violation in the words of a provider.

    Attributes:
        status: The HTTP status of the response.
        kind: The provider's class of the error: `invalid_request_error`, `not_found_error`, `rate_limit_error`, ...
        param: What is wrong in the request, as OpenAI names it.
        code: OpenAI's code of the error.
    """

    rule: str = ""
    ids: tuple[str, ...] = ()
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


_BodyRule = Callable[[Body], Iterable[ProviderError]]


class BodyRules(Generic[Body]):
    """The rules of one protocol about its own bodies; the name of a rule is that of its function.

    Args:
        parts: Sets of rules that it joins, in this order.

    Attributes:
        rules: The rules by their names.
    """

    def __init__(self, *parts: BodyRules[Body]) -> None:
        self.rules: dict[str, _BodyRule[Body]] = {}
        self._general: list[tuple[str, _BodyRule[Body]]] = []
        self._by_field: list[tuple[frozenset[str], str, _BodyRule[Body]]] = []
        self._by_word: list[tuple[frozenset[str], str, _BodyRule[Body]]] = []
        self._fields: set[str] = set()
        self._implied: set[str] = set()
        self._each: set[str] = set()
        self._breaks_at: dict[str, frozenset[str]] = {}
        self._reading: list[tuple[frozenset[str], str, _BodyRule[Body]]] = []
        self._read_at: set[str] = set()
        for part in parts:
            self._include(part)

    def _include(self, part: BodyRules[Body]) -> None:
        self.rules |= part.rules
        self._general += part._general
        self._by_field += part._by_field
        self._by_word += part._by_word
        self._fields |= part._fields
        self._implied |= part._implied
        self._each |= part._each
        self._breaks_at |= part._breaks_at
        self._reading += part._reading
        self._read_at |= part._read_at

    def __call__(self, rule: _BodyRule[Body]) -> _BodyRule[Body]:
        """Add a rule, as a decorator."""
        name = _name_of_rule(rule)
        self.rules[name] = rule
        self._general.append((name, rule))
        return rule

    def each_message(self, rule: _BodyRule[Body]) -> _BodyRule[Body]:
        """Add a rule that looks at each message alone, as a decorator."""
        self._each.add(_name_of_rule(rule))
        return self(rule)

    def about(self, *fields: str, reads_messages: bool = False) -> Callable[[_BodyRule[Body]], _BodyRule[Body]]:
        """Add a rule about some fields of the body, as a decorator; it is left out for a body with none of them.

        Args:
            fields: The fields.
            reads_messages: It looks at the messages, too.
        """

        def add(rule: _BodyRule[Body]) -> _BodyRule[Body]:
            name = _name_of_rule(rule)
            self.rules[name] = rule
            if reads_messages:
                self._reading.append((frozenset(fields), name, rule))
                self._read_at |= set(fields)
            self._by_field.append((frozenset(fields), name, rule))
            self._fields |= set(fields)
            return rule

        return add

    def about_messages(
        self, *words: str, each: bool = False, at: Collection[str] = ()
    ) -> Callable[[_BodyRule[Body]], _BodyRule[Body]]:
        """Add a rule about some messages, as a decorator; it is left out for a body without them.

        Args:
            words: What one of them has: a field, a role, or the type of a part; see `list_words`.
            each: It looks at each message alone.
            at: What a message has at which it is broken; left out, any message may break it.
        """

        def add(rule: _BodyRule[Body]) -> _BodyRule[Body]:
            name = _name_of_rule(rule)
            if each:
                self._each.add(name)
            if at:
                self._breaks_at[name] = frozenset(at)
            self.rules[name] = rule
            self._by_word.append((frozenset(words), name, rule))
            return rule

        return add

    def implied_by_types(self, rule: _BodyRule[Body]) -> _BodyRule[Body]:
        """Add a rule that a body of the published types cannot break, as a decorator."""
        self._implied.add(_name_of_rule(rule))
        return self(rule)

    def check(
        self, request: Body, fields: Iterable[str] = (), *, words: Collection[str] | None = None, fits: bool = False
    ) -> tuple[ProviderError, ...]:
        """Return what the provider refuses in *request*.

        Args:
            request: The request.
            fields: The fields of its body.
            words: The words of its messages; None runs the rules about any.
            fits: The body has the published types, so that some rules need not be asked.
        """
        errors: list[ProviderError] = []
        for name, rule in self._general:
            if fits and name in self._implied:
                continue
            errors.extend([replace(error, rule=name) for error in rule(request)])
        for concerned, name, rule in self._by_word:
            if words is None or not concerned.isdisjoint(words):
                errors += [replace(error, rule=name) for error in rule(request)]
        for concerned, name, rule in () if self._fields.isdisjoint(fields) else self._by_field:
            if not concerned.isdisjoint(fields):
                errors += [replace(error, rule=name) for error in rule(request)]
        return tuple(errors)

    def breaks_more(
        self, whole: Mapping[str, Any], new: Mapping[str, Any], *, words: AbstractSet[str], new_words: AbstractSet[str]
    ) -> bool:
        """Return whether messages that follow accepted ones break a rule, in a body that has the published types.

        Args:
            whole: The body.
            new: The body with the new messages alone.
            words: The words of all messages.
            new_words: The words of the new messages.
        """
        whole_body, new_body = cast("Body", whole), cast("Body", new)
        for name, rule in self._general:
            if name not in self._implied and any(rule(new_body if name in self._each else whole_body)):
                return True
        for concerned, name, rule in self._by_word:
            if name in self._each:
                if not concerned.isdisjoint(new_words) and any(rule(new_body)):
                    return True
            elif (
                not concerned.isdisjoint(words)
                and not self._breaks_at.get(name, new_words).isdisjoint(new_words)
                and any(rule(whole_body))
            ):
                return True
        return any(not concerned.isdisjoint(whole) and any(rule(whole_body)) for concerned, _, rule in self._reading)

    def reads_messages(self, body: Mapping[str, Any]) -> bool:
        """Return whether a body has a field that brings about a rule about its messages."""
        return not self._read_at.isdisjoint(body)


def list_words(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the fields of messages, their roles, and the types of their parts.

    >>> sorted(list_words([{"role": "user", "content": [{"type": "image_url"}]}]))
    ['content', 'image_url', 'role', 'user']
    """
    words: set[str] = set()
    for message in messages:
        words.update(message)
        role, content = message.get("role"), message.get("content")
        if type(role) is str:
            words.add(role)
        if type(content) is list:
            words.update(kind for part in content if type(part) is dict and type(kind := part.get("type")) is str)
    return words


def _name_of_rule(rule: Callable[..., Any]) -> str:
    return str(getattr(rule, "__name__", "")).replace("_", "-")


# `\Z` and not `$`, which would allow a line break at the end.
OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
"""The allowed names of functions."""

_OPENAI_FAILURES = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", None, "Invalid URL"),
    413: ("invalid_request_error", None, "The request is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for the model. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
    529: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


def openai_error_body(error: ProviderError) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"error": {"message": error.text, "type": error.kind, "param": error.param, "code": error.code}}


def openai_failure(status: int) -> ProviderError:
    """Return OpenAI's error of a status."""
    kind, code, text = _OPENAI_FAILURES.get(
        status, _OPENAI_FAILURES[500] if status >= 500 else ("invalid_request_error", None, "")
    )
    return ProviderError(text=text or f"The request failed with status {status}.", status=status, kind=kind, code=code)


def openai_invalid_json() -> ProviderError:
    """Return OpenAI's error for a body that is not JSON."""
    text = (
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The API expects a JSON payload, but what was sent was not valid JSON.)"
    )
    return ProviderError(rule="not-json", text=text)


def missing_parameter(param: str) -> ProviderError:
    """Return the error for a missing parameter."""
    return ProviderError(text=f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def invalid_type(param: str, expected: str, value: Any) -> ProviderError:
    """Return the error for a parameter of another type."""
    text = f"Invalid type for '{param}': expected {expected}, but got {json_type_name(value)} instead."
    return ProviderError(text=text, param=param, code="invalid_type")


def invalid_value(param: str, value: Any, valid: tuple[str, ...]) -> ProviderError:
    """Return the error for a word that is not one of the valid ones."""
    words = ", ".join(f"'{word}'" for word in valid[:-1])
    text = f"Invalid value: '{value}'. Supported values are: {words}, and '{valid[-1]}'."
    return ProviderError(text=text, param=param, code="invalid_value")


def empty_array(param: str) -> ProviderError:
    """Return the error for an array without elements."""
    text = f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return ProviderError(text=text, param=param, code="empty_array")


def invalid_name(param: str, pattern: str = "^[a-zA-Z0-9_-]+$") -> ProviderError:
    """Return the error for a name with other characters."""
    text = f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern '{pattern}'."
    return ProviderError(text=text, param=param, code="invalid_value")


def invalid_names(tools: Any, *path: str) -> Iterator[ProviderError]:
    """Yield errors for function names with other characters; *path* leads from a tool to its function."""
    for index, tool in enumerate(list_objects(tools)):
        function = tool
        for step in path:
            function = object_or_empty(function.get(step))
        name = function.get("name")
        if isinstance(name, str) and not OPENAI_NAME.match(name):
            yield invalid_name(".".join([f"tools[{index}]", *path, "name"]))


def invalid_metadata(metadata: Any) -> Iterator[ProviderError]:
    """Yield errors for names of metadata above 64 characters, and for values above 512.

    openai 3.52.0, documentation of the parameter (2026-11-23).
    """
    for name, value in object_or_empty(metadata).items():
        for what, text, most in ((f"metadata.{name}", value, 512), ("metadata", name, 64)):
            if isinstance(text, str) and len(text) > most:
                yield openai_limit_error(what, text, Limit(field="metadata", max_length=most, source="", date=""))


def json_not_mentioned(where: str, field: str, param: str) -> ProviderError:
    """Return the error for a request that wants a JSON object and does not say so to the model."""
    text = f"{where} must contain the word 'json' in some form, to use '{field}' of type 'json_object'."
    return ProviderError(text=text, param=param)


# --- published types --------------------------------------------------------------------------------------------------

TYPE_RULE = "published-types"
"""Name of the rule that a request must have the published types."""

_Check = Callable[[Any], bool]

_SIMPLE_CHECKS: dict[str, _Check] = {
    "any": lambda value: True,
    "null": lambda value: value is None,
    "boolean": lambda value: value is True or value is False,
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) is int or type(value) is float,
}

_PLAIN_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int, "null": type(None)}

_TAGS = ("type", "role")
"""The fields that distinguish the alternatives of a union."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A bound that the published types do not state.

    Attributes:
        field: The type and its field.
        source: Where the provider says so, or is quoted.
        date: When the source was read.
    """

    field: str
    source: str
    date: str
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    pattern: str | None = None

    def is_kept(self, value: Any) -> bool:
        """Return whether a value of the published type is within the bound."""
        if type(value) is str:
            if len(value) < (self.min_length or 0) or (self.max_length is not None and len(value) > self.max_length):
                return False
            return self.pattern is None or _compile_pattern(self.pattern).search(value) is not None
        if isinstance(value, list | Mapping):
            return (self.min_items or 0) <= len(value) and (self.max_items is None or len(value) <= self.max_items)
        if type(value) is not int and type(value) is not float:
            return True
        return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""Return a published pattern; its `$` is the end of the text, while Python's would allow a line break there.

    >>> _compile_pattern("^a$").search("a\n")
    """
    return re.compile(pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeProblem:
    """What is wrong with one value of a request.

    Attributes:
        path: The steps to it: names of fields, numbers of elements, and tags of unions as `(tag,)`.
        how: `unknown` (field), `missing` (field), `type`, `word` (not one of the expected ones), `limit`, or `keys` (of
            an object that has one of the expected fields, it has none or several).
        expected: The JSON types or words that fit.
    """

    path: tuple[Any, ...]
    how: str
    value: Any = None
    expected: tuple[str, ...] = ()
    limit: Limit | None = None

    def param(self) -> str:
        """Return the path as OpenAI writes it.

        >>> TypeProblem(path=("input", 1, ("function_call",), "name"), how="missing").param()
        'input[1].name'
        """
        text = ""
        for step in self.path:
            if isinstance(step, int):
                text += f"[{step}]"
            elif isinstance(step, str):
                text += f".{step}" if text else step
        return text

    def location(self) -> str:
        """Return the path as Anthropic writes it.

        >>> TypeProblem(path=("messages", 1, "content", 0, ("tool_use",), "id"), how="missing").location()
        'messages.1.content.0.tool_use.id'
        """
        return ".".join(str(step[0] if isinstance(step, tuple) else step) for step in self.path)


class PublishedTypes:
    """The types of a provider's requests, read from its official client, as checks.

    A body is first checked as a whole; only one that does not fit is walked through for its problems.

    Args:
        file: The table: named types with their fields, made by `tests/protocols/published_types.py`.
        limits: Bounds that neither the types nor the table of *bounds* state, or not as the provider keeps them.
        bounds: The table of the bounds in the provider's OpenAPI, made by `tests/protocols/published_bounds.py`.
        open_types: Types whose unknown and empty fields are accepted, because no source says that they are refused.
        null_types: Types whose optional fields may be null, for the same reason.
        optional: By type, fields that the provider does not require though the published types do.
        more: By type, fields that it takes though the published types lack them, with their types.
    """

    def __init__(
        self,
        file: str,
        limits: Iterable[Limit] = (),
        *,
        bounds: str | None = None,
        open_types: Iterable[str] = (),
        null_types: Iterable[str] = (),
        optional: Mapping[str, Iterable[str]] | None = None,
        more: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        with open(file, encoding="utf-8") as opened:
            table = json.load(opened)
        self.source: list[str] = table["source"]
        self.types: dict[str, dict[str, Any]] = table["types"]
        for name, fields in (optional or {}).items():
            self.types[name]["required"] = [field for field in self.types[name]["required"] if field not in fields]
        for name, added in (more or {}).items():
            self.types[name]["fields"] = {**self.types[name]["fields"], **added}
        self.limits = {limit.field: limit for limit in (*_read_bounds(bounds), *limits)}
        self.request = table["request"]
        self._open = frozenset(open_types)
        self._null = self._open.union(null_types)
        self._named: dict[str, _Check] = {}
        self._of_elements: dict[str, list[tuple[_Check, Limit | None]]] = {}
        self._is_request = self._compile(self.request)

    def fits(self, body: Mapping[str, Any]) -> bool:
        """Return whether a body has the published types."""
        return self._is_request(body)

    def fits_more(self, field: str, body: Mapping[str, Any], new: list[Any]) -> bool:
        """Return whether a body has the published types, in whose list *field* elements follow accepted ones.

        Args:
            field: The field.
            body: The body.
            new: The new elements.
        """
        checks = self._of_elements.get(field)
        if checks is None:
            # Which of several types the elements before have is not known, so that new ones have to have each.
            names = [one["type"] for one in _alternatives(self.request)]
            checks = self._of_elements[field] = [
                (self._compile(self.types[name]["fields"][field]), self.limits.get(f"{name}.{field}")) for name in names
            ]
        return all(check(new) and (limit is None or limit.is_kept(body[field])) for check, limit in checks)

    def takes_any(self, field: str, word: str, content: str, kind: str) -> bool:
        """Return whether the elements of a list need nothing but a tag and a content, and take any value of a type.

        Args:
            field: The field of a body that has the list.
            word: The tag of the elements.
            content: The field of an element.
            kind: The type of its value.
        """
        names = [
            one["type"]
            for one in _alternatives(self.types[self.request["type"]]["fields"][field]["list"])
            if word in self._words(one["type"], "role")
        ]
        return all(
            {"role", content}.issuperset(self.types[name]["required"])
            and kind in _alternatives(self.types[name]["fields"][content])
            and not _bounds_text(self.limits.get(f"{name}.{content}"))
            for name in names
        )

    def find_problems(self, body: Mapping[str, Any]) -> list[TypeProblem]:
        """Return what does not fit the published types; empty for a body that does."""
        return [] if self._is_request(body) else list(self._explain(body, self.request, ()))

    def words_of(self, kind: str, tag: str) -> tuple[str, ...]:
        """Return the words that distinguish the alternatives of a field's list, such as the types of items."""
        name, _, field = kind.rpartition(".")
        return tuple(dict.fromkeys(self._tag_words(self.types[name]["fields"][field], tag)))

    def _tag_words(self, kind: Any, tag: str) -> Iterator[str]:
        for one in _alternatives(kind):
            if isinstance(one, Mapping) and "list" in one:
                yield from self._tag_words(one["list"], tag)
            elif isinstance(one, Mapping) and "type" in one:
                for word_type in _alternatives(self.types[one["type"]]["fields"].get(tag, "any")):
                    yield from word_type.get("values", ()) if isinstance(word_type, Mapping) else ()

    # --- checks ---

    def _compile(self, kind: Any) -> _Check:
        if isinstance(kind, str):
            return _SIMPLE_CHECKS[kind]
        if "values" in kind:
            return _check_values(kind["values"])
        if "type" in kind:
            return self._compile_named(kind["type"])
        if "list" in kind:
            return _check_list(self._compile(kind["list"]))
        if "map" in kind:
            return _check_map(self._compile(kind["map"]))
        return self._compile_union(kind["any_of"])

    def _compile_named(self, name: str) -> _Check:
        if name not in self._named:
            # Types refer to themselves, and most requests need few of them, so each is compiled when it is first met.
            def compile_first(value: Any) -> bool:
                # Another thread may have compiled it meanwhile; the result is the same.
                check = self._compile_object(name)
                self._named[name] = check
                return check(value)

            self._named[name] = compile_first
        named = self._named
        return lambda value: named[name](value)

    def _compile_object(self, name: str) -> _Check:
        required = frozenset(self.types[name]["required"])
        is_open, may_be_null = name in self._open, name in self._null
        has_one_field = self.types[name].get("one_of", False)
        checks: dict[str, _Check] = {}
        for field, kind in self.types[name]["fields"].items():
            check = self._compile(kind)
            limit = self.limits.get(f"{name}.{field}")
            checks[field] = check if limit is None else _check_limited(check, limit)

        is_text = _SIMPLE_CHECKS["string"]

        def check_object(value: Any) -> bool:
            if type(value) is not dict or (has_one_field and len(value) != 1):
                return False
            for field, held in value.items():
                check = checks.get(field)
                if check is is_text and type(held) is str:  # most fields, so the call is saved
                    continue
                if check is None:
                    if not is_open:
                        return False
                elif not check(held) and not (may_be_null and held is None and field not in required):
                    return False
            return required <= value.keys()

        return check_object

    def _compile_union(self, kinds: list[Any]) -> _Check:
        tag = self._tag_of(kinds)
        objects = [kind for kind in kinds if isinstance(kind, Mapping) and "type" in kind]
        others = [self._compile(kind) for kind in kinds if kind not in objects]
        names = [kind["type"] for kind in objects]
        by_word: dict[Any, list[str]] = {}
        for name in names:
            self._compile_named(name)
            for word in self._words(name, tag):
                by_word.setdefault(word, []).append(name)
        accepted = frozenset(_PLAIN_TYPES[kind] for kind in kinds if isinstance(kind, str) and kind in _PLAIN_TYPES)
        named = self._named

        def check_union(value: Any) -> bool:
            if type(value) in accepted:
                return True
            if type(value) is dict:
                word = value.get(tag) if tag else None
                fitting = (by_word.get(word) if word is None or type(word) is str else None) if tag else names
                for name in fitting or ():
                    if named[name](value):
                        return True
            return any(check(value) for check in others)

        return check_union

    def _tag_of(self, kinds: list[Any]) -> str | None:
        """Return the field whose words distinguish the alternatives that are objects; None if there is none."""
        names = [kind["type"] for kind in kinds if isinstance(kind, Mapping) and "type" in kind]
        for tag in _TAGS:
            if names and all(self._words(name, tag) for name in names):
                return tag
        return None

    def _words(self, name: str, tag: str | None) -> list[str | None]:
        """Return the words of a type's tag; None stands for a tag that is left out."""
        if tag is None:
            return []
        words: list[str | None] = []
        for kind in _alternatives(self.types[name]["fields"].get(tag, "any")):
            if kind == "null":
                words.append(None)
            elif not isinstance(kind, Mapping) or "values" not in kind:
                return []
            else:
                words += kind["values"]
        if tag not in self.types[name]["required"] and None not in words:
            words.append(None)
        return words

    # --- problems ---

    def _explain(self, value: Any, kind: Any, path: tuple[Any, ...]) -> Iterator[TypeProblem]:
        if self._compile(kind)(value):
            return
        if isinstance(kind, Mapping) and "any_of" in kind:
            yield from self._explain_union(value, kind["any_of"], path)
        elif isinstance(kind, Mapping) and "type" in kind and isinstance(value, Mapping):
            yield from self._explain_object(value, kind["type"], path)
        elif isinstance(kind, Mapping) and "list" in kind and isinstance(value, list):
            for index, element in enumerate(value):
                yield from self._explain(element, kind["list"], (*path, index))
        elif isinstance(kind, Mapping) and "map" in kind and isinstance(value, Mapping):
            for name, element in value.items():
                yield from self._explain(element, kind["map"], (*path, name))
        elif isinstance(kind, Mapping) and "values" in kind and isinstance(value, str):
            yield TypeProblem(path=path, how="word", value=value, expected=tuple(map(str, kind["values"])))
        else:
            yield TypeProblem(path=path, how="type", value=value, expected=(_json_type(kind),))

    def _explain_object(self, value: Mapping[str, Any], name: str, path: tuple[Any, ...]) -> Iterator[TypeProblem]:
        fields, required = self.types[name]["fields"], self.types[name]["required"]
        if self.types[name].get("one_of") and len(value) != 1:
            yield TypeProblem(path=path, how="keys", value=value, expected=tuple(fields))
            return
        for field in required:
            if field not in value:
                yield TypeProblem(path=(*path, field), how="missing")
        for field, held in value.items():
            if field not in fields:
                if name not in self._open:
                    yield TypeProblem(path=(*path, field), how="unknown", value=held)
                continue
            if held is None and name in self._null and field not in required:
                continue
            problems = list(self._explain(held, fields[field], (*path, field)))
            limit = self.limits.get(f"{name}.{field}")
            if not problems and limit is not None and not limit.is_kept(held):
                problems = [TypeProblem(path=(*path, field), how="limit", value=held, limit=limit)]
            yield from problems

    def _explain_union(self, value: Any, kinds: list[Any], path: tuple[Any, ...]) -> Iterator[TypeProblem]:
        objects = [kind for kind in kinds if isinstance(kind, Mapping) and "type" in kind]
        tag = self._tag_of(kinds)
        if isinstance(value, Mapping) and objects:
            word = value.get(tag) if tag else None
            fitting = [kind for kind in objects if not tag or word in self._words(kind["type"], tag)]
            if not fitting and tag:
                known = dict.fromkeys(word for kind in objects for word in self._words(kind["type"], tag) if word)
                how = "word" if isinstance(word, str) else "missing" if word is None else "type"
                yield TypeProblem(path=(*path, tag), how=how, value=word, expected=tuple(map(str, known)))
                return
            inside = (*path, (word or "custom",)) if tag == "type" else path
            tried = [list(self._explain(value, kind, inside)) for kind in fitting]
            yield from min(tried, key=len)
            return
        lists = [kind for kind in kinds if isinstance(kind, Mapping) and "list" in kind]
        if isinstance(value, list) and lists:
            yield from min((list(self._explain(value, kind, path)) for kind in lists), key=len)
            return
        maps = [kind for kind in kinds if isinstance(kind, Mapping) and "map" in kind]
        if isinstance(value, Mapping) and maps:
            yield from self._explain(value, maps[0], path)
            return
        words = tuple(str(word) for kind in kinds if isinstance(kind, Mapping) for word in kind.get("values", ()))
        if isinstance(value, str) and words:
            yield TypeProblem(path=path, how="word", value=value, expected=words)
            return
        expected = dict.fromkeys(_json_type(kind) for kind in kinds if kind != "null")
        yield TypeProblem(path=path, how="type", value=value, expected=tuple(expected))


def _bounds_text(limit: Limit | None) -> bool:
    return limit is not None and (limit.min_length, limit.max_length, limit.pattern) != (None, None, None)


def _read_bounds(file: str | None) -> Iterator[Limit]:
    if file is None:
        return
    with open(file, encoding="utf-8") as opened:
        table = json.load(opened)
    for field, bounds in table["bounds"].items():
        yield Limit(field=field, source=table["source"], date=table["read"], **bounds)


def _alternatives(kind: Any) -> list[Any]:
    return list(kind["any_of"]) if isinstance(kind, Mapping) and "any_of" in kind else [kind]


def _check_values(values: list[Any]) -> _Check:
    # Compared with their types, since `True == 1`.
    if all(type(value) is str for value in values):
        words = frozenset(values)
        return lambda value: type(value) is str and value in words
    known = frozenset((type(value), value) for value in values)
    return lambda value: type(value) in (str, bool, int) and (type(value), value) in known


def _check_list(check: _Check) -> _Check:
    def check_list(value: Any) -> bool:
        if type(value) is not list:
            return False
        return all(map(check, value))

    return check_list


def _check_map(check: _Check) -> _Check:
    if check is _SIMPLE_CHECKS["any"]:
        return lambda value: type(value) is dict
    return lambda value: type(value) is dict and all(map(check, value.values()))


def _check_limited(check: _Check, limit: Limit) -> _Check:
    is_kept = limit.is_kept
    return lambda value: check(value) and is_kept(value)


def _json_type(kind: Any) -> str:
    """Return the JSON type that a published type expects, as OpenAI names it."""
    if isinstance(kind, str):
        return {"string": "a string", "integer": "an integer", "number": "a decimal", "boolean": "a boolean"}.get(
            kind, "null"
        )
    if "values" in kind:
        return json_type_name(kind["values"][0])
    return "an array" if "list" in kind else "an object"


def openai_type_error(problem: TypeProblem, *, unknown: str = "Unknown parameter: '{param}'.") -> ProviderError:
    """Return OpenAI's error for a value that does not fit; *unknown* is the sentence for an unknown parameter."""
    param = problem.param()
    if problem.how == "unknown":
        code = "unknown_parameter" if "'" in unknown else None
        return ProviderError(text=unknown.format(param=param), param=param if code else None, code=code)
    if problem.how == "missing":
        return missing_parameter(param)
    if problem.how == "word":
        return invalid_value(param, problem.value, problem.expected)
    if problem.limit is not None:
        return openai_limit_error(param, problem.value, problem.limit)
    expected = " or ".join(problem.expected)
    return invalid_type(param, f"one of {expected}" if len(problem.expected) > 1 else expected, problem.value)


def openai_limit_error(param: str, value: Any, limit: Limit) -> ProviderError:
    """Return OpenAI's error for a value that is not within a bound."""
    if value == []:
        return empty_array(param)
    if value == "" and limit.min_length:
        text = (
            f"Invalid '{param}': empty string. Expected a string with minimum length {limit.min_length}, but got an "
            "empty string instead."
        )
        return ProviderError(text=text, param=param, code="empty_string")
    if isinstance(value, str) and limit.pattern and len(value) <= (limit.max_length or len(value)):
        return invalid_name(param, limit.pattern)
    if isinstance(value, str):
        kind, what = "string", "above_max_length"
        text = (
            f"string too long. Expected a string with maximum length {limit.max_length}, but got a string with length "
            f"{len(value)} instead."
        )
    elif isinstance(value, list | Mapping):
        kind = "array" if isinstance(value, list) else "object"
        is_long = len(value) > (limit.min_items or 0)
        what = "above_max_length" if is_long else "below_min_length"
        bound = f"maximum length {limit.max_items}" if is_long else f"minimum length {limit.min_items}"
        text = (
            f"{kind} too {'long' if is_long else 'short'}. Expected an {kind} with {bound}, but got an {kind} with "
            f"length {len(value)} instead."
        )
    else:
        kind = "integer" if isinstance(value, int) else "decimal"
        is_below = limit.minimum is not None and value < limit.minimum
        what = "below_min_value" if is_below else "above_max_value"
        bound = f">= {limit.minimum:g}" if limit.minimum is not None and is_below else f"<= {limit.maximum:g}"
        text = (
            f"{kind} {'below minimum' if is_below else 'above maximum'} value. Expected a value {bound}, but got "
            f"{value} instead."
        )
    return ProviderError(text=f"Invalid '{param}': {text}", param=param, code=f"{kind}_{what}")


def anthropic_type_error(problem: TypeProblem) -> ProviderError:
    """Return Anthropic's error for a value that does not fit."""
    if problem.limit is not None:
        text = _anthropic_limit(problem.value, problem.limit)
    elif problem.how == "unknown":
        text = "Extra inputs are not permitted"
    elif problem.how == "missing":
        text = "Field required"
    elif problem.how == "word":
        words = [f"'{word}'" for word in problem.expected]
        text = f"Input should be {', '.join(words[:-1])}{' or ' if words[:-1] else ''}{words[-1]}"
    else:
        names = {"a decimal": "number", "an array": "list", "an object": "dictionary", "null": "null"}
        text = f"Input should be a valid {names.get(problem.expected[0], problem.expected[0].partition(' ')[2])}"
    return ProviderError(text=f"{problem.location()}: {text}")


def _anthropic_limit(value: Any, limit: Limit) -> str:
    if isinstance(value, str) and len(value) < (limit.min_length or 0):
        return f"String should have at least {limit.min_length} character{'s' if limit.min_length != 1 else ''}"
    if isinstance(value, str) and limit.pattern and len(value) <= (limit.max_length or len(value)):
        return f"String should match pattern '{limit.pattern}'"
    if isinstance(value, str):
        return f"String should have at most {limit.max_length} characters"
    if isinstance(value, list | Mapping):
        if len(value) < (limit.min_items or 0):
            return f"List should have at least {limit.min_items} item after validation, not {len(value)}"
        return f"List should have at most {limit.max_items} items after validation, not {len(value)}"
    if limit.minimum is not None and value < limit.minimum:
        return f"Input should be greater than or equal to {limit.minimum:g}"
    return f"Input should be less than or equal to {limit.maximum:g}"
