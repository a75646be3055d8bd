"""The JSON Schema of scenario files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_approvals.scenario.schema import json_schema
from pytest_approvals.yaml_files.document import parse_yaml

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "scenario.schema.json"
PLAIN = "title: x\nmodel: [{say: y}]\n"


VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def complaints(text: str) -> list[str]:
    """What the schema says against a scenario file."""
    return [error.message for error in VALIDATOR.iter_errors(parse_yaml(text).value)]


def test_the_published_schema_is_current() -> None:
    """The committed file is what the models say: `pytest-approvals schema > docs/scenario.schema.json` renews it."""
    assert json_schema() == json.loads(PUBLISHED.read_text(encoding="utf-8"))


def test_the_schema_is_a_schema() -> None:
    """It follows the JSON Schema draft that it names."""
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_scenario_of_the_catalogue_is_valid() -> None:
    """Schema and loader agree about what is right."""
    files = sorted((ROOT / "scenarios").rglob("*.approval.yaml"))

    assert files
    assert {} == {file.name: found for file in files if (found := complaints(file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize(
    "text",
    [
        "title: x\n",
        f"{PLAIN}modell: []\n",
        f"{PLAIN}tools: {{pay: {{approval: allways}}}}\n",
        f"{PLAIN}tools: {{pay: {{parameters: {{amount: int}}}}}}\n",
        f"{PLAIN}caller: [{{decide: {{c1: aprove}}}}]\n",
        f"{PLAIN}caller: [{{trim: 0}}]\n",
        f"{PLAIN}reaches: {{pausd: 1}}\n",
        f"{PLAIN}only: {{serialise: json}}\n",
        "title: x\nmodel: [{say: y, fails: 501}]\n",
        "title: x\nmodel: [{calls: [{tool: pay}]}]\n",
    ],
)
def test_what_is_wrong_in_an_editor_is_wrong_there(text: str) -> None:
    """The schema refuses wrong keys, types and words."""
    assert complaints(text)


def described(schema: Any) -> list[str]:
    """Return the properties without a description, for which an editor would show nothing."""
    parts = {"": schema, **schema["$defs"]}
    return [
        f"{part}.{name}"
        for part, one in parts.items()
        for name, field in one.get("properties", {}).items()
        if not field.get("description")
    ]


def test_every_key_is_described() -> None:
    """Each key says what it means, but for comparisons that say so themselves."""
    assert ["greater_than", "less_than", "equals", "starts_with"] == [
        name.rpartition(".")[2] for name in described(json_schema())
    ]
