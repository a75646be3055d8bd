"""JSON Schemas in requests, of functions and of answers, and what providers refuse in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.text import list_objects, object_or_empty

COMBINATIONS = ("oneOf", "anyOf", "allOf")
"""Keywords that no provider accepts at the top of a function's parameters."""

_REFUSED_AT_THE_TOP = (*COMBINATIONS, "enum", "not")
_MAX_DEPTH = 100

_REFUSED_IN_STRICT = ("oneOf", "propertyNames")
"""Keywords that no strict schema of OpenAI has.

"'oneOf' is not permitted" is quoted in can1357/oh-my-pi#920 and ai-dynamo/dynamo#15153, and "'propertyNames' is not
permitted" in can1357/oh-my-pi#209 and mastra-ai/mastra#19273 (2026-11-28).
"""

_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
"""Formats of strings in strict schemas: those of the guide of structured outputs, as MervinPraison/PraisonAI#1028 has.

"'uri' is not a valid format" is quoted in can1357/oh-my-pi#206 (2026-11-28).
"""


def find_function_errors(tools: Any, *path: str) -> Iterator[ProviderError]:
    """Yield OpenAI's errors for functions whose parameters it does not accept.

    It wants the schema of an object with properties (ComposioHQ/composio#1829, alibaba/spring-ai-alibaba#4576,
    2026-11-22; decolua/9router#444, 2026-11-23), without a combination at the top (chatanywhere/GPT_API_free#403,
    2026-11-23), and in it no array without items (modelscope/ms-agent#610, sigoden/aichat#1049, 2026-11-23). A strict
    function has closed objects, too; see `find_open_objects`.

    Args:
        tools: The tools of a request.
        path: The fields that lead from a tool to its function.
    """
    for index, tool in enumerate(list_objects(tools)):
        if tool.get("type") != "function":
            continue
        function = tool
        for step in path:
            function = object_or_empty(function.get(step))
        schema = object_or_empty(function.get("parameters"))
        problem = next(_find_problems(schema, strict=function.get("strict") is True), None)
        if problem is not None:
            text = f"Invalid schema for function '{function.get('name')}': {problem}"
            param = ".".join([f"tools[{index}]", *path, "parameters"])
            yield ProviderError(text=text, param=param, code="invalid_function_parameters")


def find_answer_errors(answer: Any, param: str) -> Iterator[ProviderError]:
    """Yield OpenAI's errors for a strict schema of the answer, which is that of an object.

    "got 'type: "array"'" is quoted in podly-pure-podcasts/podly_pure_podcasts#89 and clay-good/OpenLore#52
    (2026-11-28). For the rest see `find_open_objects`.

    Args:
        answer: What has the `name`, the `schema` and `strict`.
        param: The parameter that the error names.
    """
    answer = object_or_empty(answer)
    if answer.get("strict") is True:
        schema = object_or_empty(answer.get("schema"))
        problem = next(chain(_find_other_roots(schema), _find_strict_problems(schema)), None)
        if problem is not None:
            text = f"Invalid schema for response_format '{answer.get('name')}': {problem}"
            yield ProviderError(text=text, param=param)


def _find_problems(schema: Mapping[str, Any], *, strict: bool) -> Iterator[str]:
    # An empty schema, and one of several types, are accepted: no source says that they are refused.
    kind = schema.get("type")
    if not isinstance(kind, str):
        return
    if kind != "object":
        yield from _find_other_roots(schema)
        return
    if any(word in schema for word in _REFUSED_AT_THE_TOP):
        words = "/".join(f"'{word}'" for word in _REFUSED_AT_THE_TOP)
        yield f"schema must have type 'object' and not have {words} at the top level."
    if "properties" not in schema:
        yield "In context=(), object schema missing properties."
    yield from _find_arrays_without_items(schema)
    if strict:
        yield from _find_strict_problems(schema)


def _find_other_roots(schema: Mapping[str, Any]) -> Iterator[str]:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "object":
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."


def _find_strict_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from find_open_objects(schema, ())
    for context, part in _iter_parts(schema, ()):
        for word in _REFUSED_IN_STRICT:
            if word in part:
                yield f"In context={context!r}, '{word}' is not permitted."
        wanted = part.get("format")
        if isinstance(wanted, str) and part.get("type") == "string" and wanted not in _FORMATS:
            yield f"In context={context!r}, '{wanted}' is not a valid format."


def _find_arrays_without_items(schema: Mapping[str, Any]) -> Iterator[str]:
    for context, part in _iter_parts(schema, ()):
        kind = part.get("type")
        is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
        if is_array and "items" not in part and "prefixItems" not in part:
            yield f"In context={context!r}, array schema missing items."


def find_open_objects(schema: Mapping[str, Any], context: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the objects of a strict schema.

    Each has `additionalProperties: false` and requires all its properties: dottxt-ai/outlines#844, moeru-ai/xsai#202,
    and the guide of structured outputs, as quoted in juspay/neurolink#1691 (2026-11-23).
    """
    for place, part in _iter_parts(schema, context):
        kind = part.get("type")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            continue
        if part.get("additionalProperties") is not False:
            yield f"In context={place!r}, 'additionalProperties' is required to be supplied and to be false."
        required = part.get("required")
        named = required if isinstance(required, list) else []
        missing = [name for name in object_or_empty(part.get("properties")) if name not in named]
        if missing:
            yield (
                f"In context={place!r}, 'required' is required to be supplied and to be an array including every key "
                f"in properties. Missing '{missing[0]}'."
            )


def iter_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas in a schema, itself first."""
    return (part for _, part in _iter_parts(schema, ()))


def _iter_parts(schema: Any, context: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the schemas in a schema, itself first, each with the keys that lead to it."""
    waiting = [(context, schema)]
    while waiting:
        place, part = waiting.pop(0)
        if not isinstance(part, Mapping) or len(place) > _MAX_DEPTH:
            continue
        yield place, part
        for word in ("properties", "$defs", "definitions"):
            waiting += [((*place, word, name), inner) for name, inner in object_or_empty(part.get(word)).items()]
        waiting += [((*place, "items"), part["items"])] if "items" in part else []
        for word in COMBINATIONS:
            waiting += [((*place, word, str(at)), inner) for at, inner in enumerate(list_objects(part.get(word)))]
