"""Read the types of requests from the official SDKs into the tables of `pytest_approvals/protocols/`.

    python tests/protocols/published_types.py --write [PYTHON ...]

writes `published_types.json` of each protocol from the SDKs that are installed, and from those of further Python
interpreters: what any supported release of an SDK sends is legal. Names of fields and words are facts of the providers'
interfaces; descriptions are left out.
"""

from __future__ import annotations

import datetime as dt
import enum
import importlib
import json
import subprocess
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typing_extensions

FOLDER = Path(__file__).parents[2] / "pytest_approvals" / "protocols"

ROOTS = {
    "chat": ("openai", ["openai.types.chat.completion_create_params:CompletionCreateParamsBase"]),
    "responses": ("openai", ["openai.types.responses.response_create_params:ResponseCreateParamsBase"]),
    "messages": (
        "anthropic",
        [
            "anthropic.types.beta.message_create_params:MessageCreateParamsBase",
            "anthropic.types.message_create_params:MessageCreateParamsBase",
        ],
    ),
    "gemini": ("google-genai", ["google.genai.types:GenerateContentConfig"]),
    "converse": ("botocore", ["botocore.loaders:ConverseStreamRequest"]),
}

_NOT_ON_THE_WIRE = ("IO", "PathLike", "Callable", "PIL", "mcp", "<class 'type'>", "GenericAlias", "UnionType", "http")
"""Parts of the names of types that the clients turn into others."""

_REQUIRED = (typing.Required, typing_extensions.Required)

# Parameters of the SDK's methods that go into headers.
_HEADERS = {"messages": ("betas", "user_profile_id", "workspace_id")}

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", object: "any"}
_SIMPLE |= {Any: "any", dt.datetime: "string", dt.date: "string", bytes: "string"}


class Reader:
    """Collects the types that a root type refers to."""

    def __init__(self) -> None:
        self.types: dict[str, Any] = {}
        self._names: dict[type, str] = {}
        self._queue: list[type] = []

    def name(self, kind: type) -> str:
        """Return the name of a type, which is the same in every release of its SDK."""
        if kind not in self._names:
            name, module = kind.__name__, kind.__module__.rpartition(".")[2]
            # A type that is not the only one of its module is called by both, as `Message` is by many.
            # The module `types` of google-genai has all of them.
            is_alone = module.replace("_", "") == name.lower() or module == "types"
            name = name if is_alone else f"{module}.{name}"
            self._names[kind] = name if name not in self._names.values() else f"{kind.__module__}.{kind.__name__}"
            self._queue.append(kind)
        return self._names[kind]

    def read_all(self) -> None:
        while self._queue:
            kind = self._queue.pop(0)
            self.types[self.name(kind)] = self.read_fields(kind)

    def read_fields(self, kind: Any) -> dict[str, Any]:
        if hasattr(kind, "model_fields"):
            fields, required = {}, []
            kind.model_rebuild()
            for name, field in kind.model_fields.items():
                fields[field.alias or name] = self.read(field.annotation)
                if field.is_required():
                    required.append(field.alias or name)
        else:
            hints = get_type_hints(kind, include_extras=True)
            aliases = {name: alias_of(hint) or name for name, hint in hints.items()}
            fields = {aliases[name]: self.read(hint) for name, hint in hints.items()}
            # `__required_keys__` does not see what annotations in strings require.
            required = [aliases[name] for name, hint in hints.items() if get_origin(hint) in _REQUIRED]
        return {"required": sorted(required), "fields": dict(sorted(fields.items()))}

    def read(self, hint: Any) -> Any:
        """Return a type as JSON; None if no JSON has it."""
        if isinstance(hint, typing.ForwardRef):
            raise TypeError(hint)
        origin, parts = get_origin(hint), get_args(hint)
        if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired):
            return self.read(parts[0])
        if origin is typing.Annotated:
            return self.read(parts[0])
        if isinstance(hint, typing_extensions.TypeAliasType):
            return self.read(hint.__value__)
        if hint in _SIMPLE:
            return _SIMPLE[hint]
        if origin is Literal:
            return {"values": list(parts)}
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            # Google's documentation writes words in small letters, too.
            words = (word for one in hint for word in (one.value, one.value.lower()))
            return {"values": list(dict.fromkeys(words))}
        if origin in (Union, types.UnionType):
            return self.read_union(parts)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"map": self.read(parts[1])}
        if hint in (dict, list):
            return {"map": "any"} if hint is dict else {"list": "any"}
        if origin is not None and getattr(origin, "__name__", "") in ("Iterable", "list", "Sequence", "SequenceNotStr"):
            return {"list": self.read(parts[0])}
        if typing_extensions.is_typeddict(hint) or hasattr(hint, "model_fields"):
            return {"type": self.name(hint)}
        if any(word in str(hint) for word in _NOT_ON_THE_WIRE):
            return None
        raise TypeError(f"{hint!r} (origin {origin!r})")

    def read_union(self, parts: tuple[Any, ...]) -> Any:
        found: list[Any] = []
        for part in parts:
            one = self.read(part)
            for alternative in one["any_of"] if isinstance(one, dict) and "any_of" in one else [one]:
                if alternative is not None and alternative not in found:
                    found.append(alternative)
        if "string" in found:  # the words that the SDK lists are then only examples
            found = [one for one in found if not is_words(one)]
        return found[0] if len(found) == 1 else {"any_of": found}


def is_words(one: Any) -> bool:
    return isinstance(one, dict) and all(isinstance(value, str) for value in one.get("values", [1]))


def alias_of(hint: Any) -> str | None:
    """Return the name of a field on the wire if it has another one."""
    for part in (hint, *get_args(hint)):
        for extra in getattr(part, "__metadata__", ()):
            if getattr(extra, "alias", None):
                return str(extra.alias)
    return None


def make_table(protocol: str) -> dict[str, Any]:
    """Return the table of a protocol, as its file has it."""
    package, places = ROOTS[protocol]
    if protocol == "converse":
        table, _ = read_service_model(places[0].partition(":")[2])
        return table
    reader = Reader()
    roots = []
    for place in places:
        module, _, name = place.partition(":")
        roots.append(reader.read(getattr(importlib.import_module(module), name)))
    if protocol == "gemini":
        roots = [read_gemini(reader, roots[0]["type"])]
    reader.read_all()
    for root in roots if protocol != "gemini" else ():
        fields = reader.types[root["type"]]["fields"]
        fields["stream"] = {"any_of": ["boolean", "null"]}
        for header in _HEADERS.get(protocol, ()):
            fields.pop(header, None)
    return {
        "source": [f"{package} {version(package)}"],
        "request": roots[0] if len(roots) == 1 else {"any_of": roots},
        "types": dict(sorted(reader.types.items())),
    }


_BESIDE_THE_CONFIG = ("cachedContent", "labels", "modelArmorConfig", "safetySettings", "serviceTier", "toolConfig")
"""What the client's configuration holds, and the request has beside its `generationConfig`."""

_OF_THE_CLIENT = ("automaticFunctionCalling", "httpOptions", "shouldReturnHttpResponse")


def read_gemini(reader: Reader, config: str) -> Any:
    """Return the type of a request to Gemini, which its client has in the parts that users write only."""
    genai = importlib.import_module("google.genai.types")
    content, tool = reader.read(genai.Content), reader.read(genai.Tool)
    reader.read(genai.GenerationConfig)
    reader.read_all()
    whole, inner = reader.types.pop(config), reader.types["GenerationConfig"]
    fields = {"contents": {"list": content}, "systemInstruction": content, "tools": {"list": tool}, "model": "string"}
    fields |= {name: whole["fields"][name] for name in _BESIDE_THE_CONFIG if name in whole["fields"]}
    left_out = {*fields, *_OF_THE_CLIENT, "responseSchema"}
    inner["fields"] = {
        **{name: kind for name, kind in whole["fields"].items() if name not in left_out},
        **inner["fields"],
    }
    fields["generationConfig"] = {"type": "GenerationConfig"}
    reader.types["GenerateContentRequest"] = {"required": ["contents"], "fields": dict(sorted(fields.items()))}
    root = {"type": "GenerateContentRequest"}
    reachable = {name for name, _ in iter_reachable(reader.types, root)}
    reader.types = {name: one for name, one in reader.types.items() if name in reachable}
    return root


# --- the service model of botocore ------------------------------------------------------------------------------------

_SHAPES = {"string": "string", "integer": "integer", "long": "integer", "float": "number", "double": "number"}
_SHAPES |= {"boolean": "boolean", "timestamp": "string", "blob": "string"}

_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def read_service_model(root: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table of a request of Bedrock, and that of its bounds: the service model states both."""
    loaders = importlib.import_module("botocore.loaders")
    shapes = loaders.Loader().load_service_model("bedrock-runtime", "service-2")["shapes"]
    found: dict[str, Any] = {}
    bounds: dict[str, Any] = {}

    def read(name: str) -> Any:
        shape = shapes[name]
        kind = shape["type"]
        if shape.get("document"):
            # Any JSON in the model; the service takes objects only (aws/aws-sdk-js-v3#7330).
            return {"map": "any"}
        if kind == "structure":
            if name not in found:
                found[name] = {}
                found[name] = read_structure(name, shape)
            return {"type": name}
        if kind == "list":
            return {"list": read(shape["member"]["shape"])}
        if kind == "map":
            return {"map": read(shape["value"]["shape"])}
        return {"values": list(shape["enum"])} if "enum" in shape else _SHAPES[kind]

    def read_structure(name: str, shape: Mapping[str, Any]) -> dict[str, Any]:
        members = {field: one["shape"] for field, one in shape["members"].items() if one.get("location") != "uri"}
        for field, member in members.items():
            if bound := read_bound(shapes[member]):
                bounds[f"{name}.{field}"] = bound
        required = sorted(set(shape.get("required", ())) & set(members))
        fields = {field: read(member) for field, member in sorted(members.items())}
        return {"required": required, "fields": fields, **({"one_of": True} if shape.get("union") else {})}

    request = read(root)
    source = f"botocore {version('botocore')}"
    table = {"source": [source], "request": request, "types": dict(sorted(found.items()))}
    return table, {"source": f"{source}, service model", "bounds": dict(sorted(bounds.items()))}


def read_bound(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound of a shape as `Limit` has it; empty if it has none, or one that says nothing."""
    kind = shape["type"]
    least, most = {"string": ("min_length", "max_length"), "list": ("min_items", "max_items")}.get(
        kind, ("min_items", "max_items") if kind == "map" else ("minimum", "maximum")
    )
    if kind == "blob":
        return {"pattern": _BASE64, "min_length": 1} if shape.get("min") else {"pattern": _BASE64}
    bound = {least: shape["min"]} if shape.get("min", 0) > 0 or (least == "minimum" and "min" in shape) else {}
    bound |= {most: shape["max"]} if "max" in shape else {}
    return bound | ({"pattern": f"^(?:{shape['pattern']})$"} if "pattern" in shape else {})


def write_bounds(protocol: str) -> None:
    table = read_service_model(ROOTS[protocol][1][0].partition(":")[2])[1]
    lines = [f"  {json.dumps(field)}: {json.dumps(bound)}" for field, bound in table["bounds"].items()]
    head = f'{{"source": {json.dumps(table["source"])},\n"read": "{dt.datetime.now(dt.UTC).date()}",\n"bounds": {{\n'
    (FOLDER / protocol / "published_bounds.json").write_text(head + ",\n".join(lines) + "\n}}\n")


def iter_reachable(table: Mapping[str, Any], root: Any) -> Iterator[tuple[str, Any]]:
    """Yield the types that a type refers to, each once."""
    seen: set[str] = set()
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, list):
            waiting += kind
        elif isinstance(kind, dict) and "type" in kind and kind["type"] not in seen:
            seen.add(kind["type"])
            yield kind["type"], table[kind["type"]]
            waiting += list(table[kind["type"]]["fields"].values())
        elif isinstance(kind, dict):
            waiting += [kind[word] for word in ("any_of", "list", "map") if word in kind]


def merge(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table that accepts what any of the tables does."""
    whole = tables[0]
    for table in tables[1:]:
        whole["source"] = sorted({*whole["source"], *table["source"]})
        for name, one in table["types"].items():
            known = whole["types"].setdefault(name, one)
            if known is one:
                continue
            known["required"] = sorted({*known["required"]} & {*one["required"]})
            for field, kind in one["fields"].items():
                known["fields"][field] = unite(known["fields"].get(field, kind), kind)
            known["fields"] = dict(sorted(known["fields"].items()))
    whole["types"] = dict(sorted(whole["types"].items()))
    return whole


def unite(one: Any, other: Any) -> Any:
    """Return a type whose values are those of both."""
    found: list[Any] = []
    for kind in (one, other):
        found += [part for part in (kind["any_of"] if is_union(kind) else [kind]) if part not in found]
    lists = [part["list"] for part in found if isinstance(part, dict) and "list" in part]
    words = [part["values"] for part in found if isinstance(part, dict) and "values" in part]
    if len(lists) > 1 or len(words) > 1:
        found = [part for part in found if not (isinstance(part, dict) and ("list" in part or "values" in part))]
        for element in lists[1:]:
            lists[0] = unite(lists[0], element)
        found += [{"list": lists[0]}] if lists else []
        found += [{"values": list(dict.fromkeys(word for some in words for word in some))}] if words else []
    if "any" in found:
        return "any"
    if "string" in found:
        found = [part for part in found if not is_words(part)]
    return found[0] if len(found) == 1 else {"any_of": found}


def is_union(kind: Any) -> bool:
    return isinstance(kind, dict) and "any_of" in kind


def encode(table: Mapping[str, Any]) -> str:
    """Return a table as text, a line a type."""
    lines = [f"  {json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in table["types"].items()]
    head = "".join(f"{json.dumps(key)}: {json.dumps(table[key])},\n" for key in ("source", "request"))
    return "{" + head + '"types": {\n' + ",\n".join(lines) + "\n}}\n"


def path_of(protocol: str) -> Path:
    return FOLDER / protocol / "published_types.json"


def read_elsewhere(python: str, protocol: str) -> list[dict[str, Any]]:
    """Return the table of another interpreter's SDK; none if it has none."""
    done = subprocess.run([python, __file__, "--print", protocol], capture_output=True, text=True, check=False)
    return [json.loads(done.stdout)] if done.returncode == 0 else []


if __name__ == "__main__" and sys.argv[1:2] == ["--print"]:
    json.dump(make_table(sys.argv[2]), sys.stdout)

if __name__ == "__main__" and sys.argv[1:2] == ["--write"]:
    for protocol in ROOTS:
        tables = [make_table(protocol)]
        for python in sys.argv[2:]:
            tables += read_elsewhere(python, protocol)
        path_of(protocol).write_text(encode(merge(tables)))
    write_bounds("converse")
