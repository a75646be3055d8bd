"""Read the bounds of requests from the providers' OpenAPI documents into the tables of `pytest_approvals/protocols/`.

    python tests/protocols/published_bounds.py OPENAI.json "openai/openai-openapi, f85dbe2" ANTHROPIC.yaml "…, 8b42a21e"

writes `published_bounds.json` of each protocol: what lengths, numbers and patterns the document states of the fields
that `published_types.json` has. Numbers and patterns are facts of the providers' interfaces; descriptions are left out.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "pytest_approvals" / "protocols"

ROOTS = {
    "chat": ["CreateChatCompletionRequest"],
    "responses": ["CreateResponse"],
    "messages": ["BetaCreateMessageParams", "CreateMessageParams"],
}

_NAMES = {
    "minimum": "minimum",
    "exclusiveMinimum": "minimum",
    "maximum": "maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_items",
    "maxProperties": "max_items",
    "pattern": "pattern",
}

_TAGS = ("type", "role")
_JSON_TYPES = ("string", "integer", "number")


class Reader:
    """Walks through a table of types and an OpenAPI document at the same time.

    Alternatives belong together if the words of their tags and one of their fields do.
    """

    def __init__(self, types: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        self.types = types
        self.schemas = schemas
        self.found: dict[str, list[dict[str, Any]]] = {}
        self._seen: set[tuple[str, str]] = set()

    def read(self, kind: Any, schema: Mapping[str, Any], field: str = "") -> None:
        for one in self.alternatives(schema):
            for part in kind["any_of"] if isinstance(kind, Mapping) and "any_of" in kind else [kind]:
                self._read_pair(part, one, field)

    def _read_pair(self, kind: Any, schema: Mapping[str, Any], field: str) -> None:
        json_type = schema.get("type")
        if isinstance(kind, str):
            if kind in _JSON_TYPES and kind == json_type:
                self._add(field, schema)
        elif "type" in kind and self._belong_together(kind["type"], schema):
            self._read_object(kind["type"], schema)
        elif "list" in kind and json_type == "array":
            self._add(field, schema)
            self.read(kind["list"], schema.get("items", {}))
        elif "map" in kind and json_type == "object":
            self._add(field, schema)

    def _read_object(self, name: str, schema: Mapping[str, Any]) -> None:
        key = (name, json.dumps(schema, sort_keys=True, default=str))
        if key in self._seen:
            return
        self._seen.add(key)
        for field, kind in self.types[name]["fields"].items():
            if field in schema["properties"]:
                self.read(kind, schema["properties"][field], f"{name}.{field}")

    def _add(self, field: str, schema: Mapping[str, Any]) -> None:
        bounds = {}
        for word, name in _NAMES.items():
            if word in schema:
                # An integer above zero is at least one.
                bounds[name] = schema[word] + 1 if word == "exclusiveMinimum" else schema[word]
        if bounds and field:
            self.found.setdefault(field, []).append(bounds)

    def _belong_together(self, name: str, schema: Mapping[str, Any]) -> bool:
        properties, fields = schema.get("properties", {}), self.types[name]["fields"]
        for tag in _TAGS:
            ours, theirs = set(self._words_of_type(fields.get(tag))), set(self._words(properties.get(tag)))
            if ours and theirs and not ours & theirs:
                return False
        return bool(properties.keys() & fields.keys())

    def _words_of_type(self, kind: Any) -> Iterator[str]:
        for part in kind["any_of"] if isinstance(kind, Mapping) and "any_of" in kind else [kind]:
            yield from part.get("values", ()) if isinstance(part, Mapping) else ()

    def _words(self, schema: Mapping[str, Any] | None) -> Iterator[str]:
        for one in self.alternatives(schema) if schema is not None else ():
            yield from [one["const"]] if "const" in one else one.get("enum", ())

    def alternatives(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        whole = self.resolve(schema)
        for word in ("anyOf", "oneOf"):
            if word in whole:
                return [one for part in whole[word] for one in self.alternatives(part)]
        return [whole]

    def resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema with what it refers to and consists of."""
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if "allOf" not in schema:
            return schema
        whole = {"properties": {}, **{word: value for word, value in schema.items() if word != "allOf"}}
        for part in map(self.resolve, schema["allOf"]):
            whole = {**part, **whole, "properties": {**whole["properties"], **part.get("properties", {})}}
        return whole


def make_table(protocol: str, schemas: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the table of a protocol; of several bounds of one field, the loosest counts."""
    table = json.loads((FOLDER / protocol / "published_types.json").read_text())
    roots = table["request"].get("any_of", [table["request"]])
    reader = Reader(table["types"], schemas)
    for root, name in zip(roots, ROOTS[protocol], strict=True):
        reader.read(root, {"$ref": name})
    bounds = {field: merged for field, all_of_it in sorted(reader.found.items()) if (merged := loosest(all_of_it))}
    return {"source": source, "read": dt.datetime.now(tz=dt.UTC).date().isoformat(), "bounds": bounds}


def loosest(several: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bounds that keep nothing out which one of *several* lets in."""
    merged = {}
    for name in dict.fromkeys(name for one in several for name in one):
        values = [one.get(name) for one in several]
        if None in values:
            continue
        if name == "pattern":
            if len({*values}) == 1:
                re.compile(values[0])
                merged[name] = values[0]
        else:
            merged[name] = min(values) if name.startswith("min") else max(values)
    return {} if merged in ({"min_items": 0}, {"min_length": 0}) else merged


def encode(table: Mapping[str, Any]) -> str:
    """Return a table as text, a line a field."""
    lines = [f"  {json.dumps(field)}: {json.dumps(one)}" for field, one in table["bounds"].items()]
    head = "".join(f"{json.dumps(key)}: {json.dumps(table[key])},\n" for key in ("source", "read"))
    return "{" + head + '"bounds": {\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    openai, openai_source, anthropic, anthropic_source = sys.argv[1:]
    for file, source, protocols in (
        (openai, openai_source, ("chat", "responses")),
        (anthropic, anthropic_source, ("messages",)),
    ):
        document = yaml.load(Path(file).read_text(), Loader=yaml.CSafeLoader)
        for protocol in protocols:
            made = make_table(protocol, document["components"]["schemas"], source)
            (FOLDER / protocol / "published_bounds.json").write_text(encode(made))
