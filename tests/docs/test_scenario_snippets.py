"""The scenarios that the docs show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.matrix import candidate_variants
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.schema import STEP_KEYS, ScenarioFile
from pytest_approvals.scenario.vocabulary import DIMENSIONS, REACHES

PAGE = Path(__file__).parents[2] / "docs" / "writing-scenarios.md"
FENCE = re.compile(r"^(?P<above>[^\n]*)\n```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FRAGMENT = "<!-- fragment -->"


def snippets(language: str) -> list[str]:
    """The complete snippets of the page in one language."""
    found = FENCE.finditer(PAGE.read_text(encoding="utf-8"))
    return [one["text"] for one in found if one["language"] == language and one["above"] != FRAGMENT]


def test_the_page_shows_scenarios() -> None:
    """None of the snippets is overlooked: each fence that opens YAML is read."""
    page = PAGE.read_text(encoding="utf-8")

    assert page.count("```yaml") - page.count(FRAGMENT) == len(snippets("yaml")) > 10


def titles() -> list[str]:
    """The first line of each scenario on the page."""
    return [text.partition("\n")[0] for text in snippets("yaml")]


@pytest.mark.parametrize("text", snippets("yaml"), ids=titles())
def test_a_scenario_that_the_docs_show_can_be_run(text: str) -> None:
    """Each snippet is a scenario as it stands, and some variant is left to run it in."""
    story = parse_scenario(text, name="docs/snippet", path="docs/snippet.approval.yaml")

    assert next(candidate_variants(story, Facts(capabilities=frozenset(CAPABILITIES)), {}), None) is not None


def test_the_scenario_that_the_docs_build_is_the_first_one_that_they_show() -> None:
    """The Python snippet makes the calls and answers of the file at the top of the page."""
    names: dict[str, object] = {}
    exec(snippets("python")[0], names)
    built, shown = names["story"], parse_scenario(snippets("yaml")[0], name="built/x", path="x")

    assert isinstance(built, Scenario)
    assert isinstance(shown, Scenario)
    assert built.tools == shown.tools
    assert built.agents["main"].replies[0] == shown.agents["main"].replies[0]
    assert built.caller == shown.caller


@pytest.mark.parametrize(
    "words",
    [
        [field.alias or name for name, field in ScenarioFile.model_fields.items()],
        STEP_KEYS,
        list(DIMENSIONS),
        list(REACHES),
        [str(value) for values in DIMENSIONS.values() for value in values if isinstance(value, str)],
    ],
    ids=["keys", "steps", "dimensions", "reaches", "values"],
)
def test_every_word_of_the_language_is_on_the_page(words: list[str]) -> None:
    """No key, step, dimension or value is left out."""
    page = PAGE.read_text(encoding="utf-8")

    assert [] == [word for word in words if not re.search(rf"`{word}\b", page)]


def test_links_inside_the_page_lead_somewhere() -> None:
    """Each anchor that the page links to is one of its headings."""
    page = PAGE.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    }

    assert set() == set(re.findall(r"\]\(#([^)]*)\)", page)) - headings
