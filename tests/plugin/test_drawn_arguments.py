"""Arguments that are drawn for the tools of a person's own agent."""

from __future__ import annotations

import datetime as dt
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from pytest_approvals.agent_side.kit.tool_schema import read_parameters
from pytest_approvals.plugin import drawn_stories
from pytest_approvals.plugin.drawn_arguments import draw_values


class Dose(BaseModel):
    drug: Literal["aspirin", "codeine"]
    mg: Annotated[float, Field(gt=0, le=1000)]
    times: int = Field(1, ge=1, multiple_of=2)
    notes: list[str] | None = None


class Folder(BaseModel):
    name: str = Field(min_length=1, max_length=8)
    folders: list[Folder] = Field([], max_length=2)


TYPES: dict[str, Any] = {
    "choice": Literal["mon", "tue"],
    "text": Annotated[str, Field(min_length=3, max_length=5)],
    "pattern": Annotated[str, Field(pattern=r"^[A-Z]{3}-\d+$")],
    "integer": Annotated[int, Field(ge=3, lt=9)],
    "upper-bound": Annotated[int, Field(le=-3)],
    "number": Annotated[float, Field(gt=0, lt=1)],
    "list": Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=4)],
    "pair": tuple[int, str],
    "set": Annotated[set[int], Field(min_length=1)],
    "union": int | Literal["all"] | None,
    "object": Dose,
    "objects": list[Dose],
    "itself": Folder,
    "map": dict[str, int],
}


@pytest.mark.parametrize("annotation", TYPES.values(), ids=TYPES)
def test_what_is_drawn_fits_the_annotation(annotation: Any) -> None:
    """Pydantic has described the type, and takes each value of the schema strictly."""
    fields = TypeAdapter(annotation)
    described = fields.json_schema()
    definitions = described.pop("$defs", {})
    [parameter] = read_parameters({"properties": {"value": described}, "$defs": definitions}).values()

    @settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(draw_values({"type": parameter.type, "constraints": parameter.constraints}))
    def check(value: Any) -> None:
        fields.validate_python(value)

    check()


FORMATS: dict[str, Any] = {"date-time": dt.datetime, "date": dt.date, "uuid": UUID, "ipv4": IPv4Address}


@pytest.mark.parametrize(("name", "kind"), FORMATS.items(), ids=FORMATS)
def test_texts_have_their_format(name: str, kind: Any) -> None:
    """Frameworks give a tool a date that the model has written as text."""

    @settings(max_examples=20, database=None, deadline=None)
    @given(draw_values({"type": "string", "constraints": {"format": name}}))
    def check(value: str) -> None:
        TypeAdapter(kind).validate_json(f'"{value}"')

    check()


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "array", "object"])
def test_a_type_without_demands(kind: str) -> None:
    """Nothing is known of the parts of a list or an object, so it has none."""
    python = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}[kind]

    @settings(max_examples=20, database=None, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        value = data.draw(draw_values({"type": kind}))
        assert type(value) is python
        assert not (kind in ("array", "object") and value)

    check()


def test_calls_whose_objects_differ_in_order_only_are_equal() -> None:
    """Only the arguments tell which of the calls of a tool runs, and no order of names does."""
    first, second = ("pay", {"to": {"a": 1, "b": 2}}), ("pay", {"to": {"b": 2, "a": 1}})

    assert not drawn_stories.have_different_calls([[first], [second]])
    assert drawn_stories.have_different_calls([[first], [("pay", {"to": {"a": 1}})]])
