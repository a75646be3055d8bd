"""Schemas of functions in Gemini's requests, and what the provider refuses in them.

They are a subset of OpenAPI's, which is checked word by word; `parametersJsonSchema` is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.text import list_objects, object_or_empty

_MAX_DEPTH = 100
_STRING_FORMATS = ("enum", "date-time")


def find_schema_errors(schema: Any, path: str) -> Iterator[ProviderError]:
    """Yield the errors in the parameters of a function.

    Args:
        schema: The parameters, in the form of the published types.
        path: Where they are in the request, as the error names it.
    """
    waiting: list[tuple[str, Any, int]] = [(path, schema, 0)]
    while waiting:
        where, part, depth = waiting.pop(0)
        if not isinstance(part, Mapping) or depth > _MAX_DEPTH:
            continue
        yield from (
            ProviderError(text=f"* GenerateContentRequest.{where}{problem}\n") for problem in _find_problems(part)
        )
        properties = object_or_empty(part.get("properties"))
        waiting += [(f"{where}.properties[{name}]", inner, depth + 1) for name, inner in properties.items()]
        waiting += [(f"{where}.items", part["items"], depth + 1)] if "items" in part else []
        alternatives = list_objects(part.get("anyOf"))
        waiting += [(f"{where}.any_of[{number}]", inner, depth + 1) for number, inner in enumerate(alternatives)]


def _find_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one schema.

    Quoted in probelabs/probe#569 and iBUHub/AIStudioToAPI#154 (a required property that is not defined),
    kkrishnan90/gemini-desktop#7 (an array without items), google-gemini/gemini-cli#3178 (the format of a string),
    anomalyco/opencode#11888 (properties of something else than an object), decolua/9router#359 (an enumeration of
    something else than strings), 2026-11-26. A schema without a type is accepted, and so is an object without
    properties, which later models take (crmne/ruby_llm, cassettes of `function_calling` with gemini-2.5-flash).
    """
    kind, properties = str(schema.get("type") or "").upper(), schema.get("properties")
    required = schema.get("required")
    for number, name in enumerate(required if isinstance(required, list) else ()):
        # What is no text is for the types to refuse.
        if isinstance(name, str) and name not in object_or_empty(properties):
            yield f".required[{number}]: property is not defined"
    if kind == "ARRAY" and "items" not in schema:
        yield ".items: missing field."
    if kind == "STRING" and schema.get("format") not in (None, "", *_STRING_FORMATS):
        yield ".format: only 'enum' and 'date-time' are supported for STRING type"
    if properties and kind not in ("OBJECT", ""):
        yield ".properties: only allowed for OBJECT type"
    if schema.get("enum") and kind not in ("STRING", ""):
        yield ".enum: only allowed for STRING type"
