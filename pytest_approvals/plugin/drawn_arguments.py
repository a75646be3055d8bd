"""Values that Hypothesis draws for the parameters of tools, as their JSON Schemas demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_approvals.journal.arguments import find_unmet_constraint

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_MAX_ITEMS = 3
"""How many more items than the fewest a list has at most."""

_MAX_DEPTH = 5
"""How deep values are drawn; below, what may be left out is."""

_MAX_INTEGER = 2**31

_FORMATS = frozenset(("date-time", "date", "time", "uuid", "email", "uri", "ipv4", "ipv6"))


def draw_values(parameter: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Return a strategy of values for a parameter.

    Args:
        parameter: Its `type`, and in `constraints` what else its JSON Schema demands, as `Header.tools` has it.
    """
    constraints = parameter.get("constraints") or {}
    drawn = _draw({"type": parameter["type"], **constraints}, 0)
    # Keywords that are not drawn by, and schemas that are drawn by one of several of their keywords.
    return drawn.filter(lambda value: find_unmet_constraint(value, constraints) is None)


def _draw(schema: Any, depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if not isinstance(schema, Mapping):
        return _draw_text({})
    if "const" in schema:
        return st.just(schema["const"])
    if schema.get("enum"):
        return st.sampled_from(list(schema["enum"]))
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            # A parameter of several types has the first of them as its own type, too.
            beside = {name: part for name, part in schema.items() if name not in (keyword, "type")}
            known = [choice for choice in schema[keyword] if _is_known(choice)] or schema[keyword]
            return st.one_of([_draw({**beside, **choice}, depth) for choice in known])
    if schema.get("allOf"):
        joined: dict[str, Any] = {}
        for part in ({name: part for name, part in schema.items() if name != "allOf"}, *schema["allOf"]):
            joined = _join_schemas(joined, part)
        return _draw(joined, depth)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    return st.one_of([_draw_type(kind.lower(), schema, depth) for kind in kinds])


def _join_schemas(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    joined = {**first, **second}
    if "properties" in first and "properties" in second:
        joined["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        joined["required"] = [*first["required"], *second["required"]]
    return joined


def _draw_type(kind: str, schema: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return _draw_number(kind, schema)
        case "array":
            return _draw_list(schema, depth)
        case "object":
            return _draw_object(schema, depth)
        case _:
            return _draw_text(schema)


def _draw_number(kind: str, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    lowest, highest = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    if kind == "integer" or step is not None:
        step = step or 1
        bounds = [bound for bound in (lowest, above) if bound is not None]
        first = max(bounds) if bounds else None
        bounds = [bound for bound in (highest, below) if bound is not None]
        last = min(bounds) if bounds else None
        first = -_MAX_INTEGER if first is None and last is None else first
        least = None if first is None else -int(-first // step)
        most = None if last is None else int(last // step)
        least = most - _MAX_INTEGER if least is None and most is not None else least
        most = least + _MAX_INTEGER * 2 if most is None and least is not None else most
        exclusive = [bound for bound in (above, below) if bound is not None]
        return st.integers(least, most).map(lambda number: number * step).filter(lambda value: value not in exclusive)
    return st.floats(
        lowest if above is None else above,
        highest if below is None else below,
        exclude_min=above is not None,
        exclude_max=below is not None,
        allow_nan=False,
        allow_infinity=False,
        width=64 if {lowest, highest, above, below} != {None} else 32,
    )


def _draw_text(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if schema.get("format") in _FORMATS:
        return _draw_format(schema["format"])
    if isinstance(schema.get("pattern"), str):
        # Libraries disagree about a line break at the end, and about digits and letters beyond ASCII.
        drawn = st.from_regex(schema["pattern"], alphabet=st.characters(min_codepoint=32, max_codepoint=126))
        return drawn.filter(lambda text: not text.endswith("\n"))
    characters = st.characters(codec="utf-8", exclude_characters="\x00")
    fewest = schema.get("minLength", 0)
    return st.text(characters, min_size=fewest, max_size=schema.get("maxLength", fewest + 20))


def _draw_format(name: str) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    match name:
        case "date-time":
            return st.datetimes().map(lambda value: f"{value.replace(microsecond=0).isoformat()}Z")
        case "date":
            return st.dates().map(str)
        case "time":
            return st.times().map(lambda value: f"{value.replace(microsecond=0).isoformat()}Z")
        case "uuid":
            return st.uuids().map(str)
        case "email":
            return st.integers(1, 999).map("person{}@example.org".format)
        case "uri":
            return st.integers(1, 999).map("https://example.org/{}".format)
        case _:
            return st.ip_addresses(v=4 if name == "ipv4" else 6).map(str)


def _draw_list(schema: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if isinstance(schema.get("prefixItems"), list):
        return st.tuples(*(_draw(part, depth + 1) for part in schema["prefixItems"])).map(list)
    fewest = schema.get("minItems", 0)
    most = min(schema.get("maxItems", fewest + _MAX_ITEMS), fewest + _MAX_ITEMS)
    # Of items of an unknown kind none is drawn that need not be.
    if depth >= _MAX_DEPTH or not _is_known(schema.get("items")):
        most = fewest
    items = _draw(schema.get("items"), depth + 1) if most else st.nothing()
    unique_by = repr if schema.get("uniqueItems") else None
    return st.lists(items, min_size=fewest, max_size=most, unique_by=unique_by)


def _draw_object(schema: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    described = schema.get("properties") or {}
    needed = {name: _draw(part, depth + 1) for name, part in described.items() if name in schema.get("required", ())}
    others = {
        name: _draw(part, depth + 1)
        for name, part in described.items()
        if name not in needed and depth < _MAX_DEPTH and _is_known(part)
    }
    return st.fixed_dictionaries(needed, optional=others)


def _is_known(schema: Any) -> bool:
    """Return whether something is said of values: a reference that is left is one of a type to itself."""
    return isinstance(schema, Mapping) and "$ref" not in schema
