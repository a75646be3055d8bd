"""The releases of a distribution, asked of the registry that uv is set up for."""

from __future__ import annotations

import shutil

import pytest

from pytest_approvals.agents.releases import find_releases
from pytest_approvals.errors import UsageError


def test_the_releases_that_fit_are_listed() -> None:
    """The oldest comes first."""
    assert ("0.20.0", "0.21.0") == find_releases("openai-agents", ">=0.20,<0.21.1")


def test_pre_releases_count_where_the_specifier_names_one() -> None:
    """Else only finished releases do."""
    found = find_releases("agent-framework-foundry-hosting", ">=1.0.0b261015,<=1.0.0b261022")

    assert ("1.0.0b261015", "1.0.0b261022") == found


def test_the_releases_of_a_javascript_framework_are_npms() -> None:
    """Pre-releases with words of npm's own are left out."""
    if not shutil.which("npm"):
        pytest.skip("Node is not on this machine")

    assert ("0.4.3", "0.4.4") == find_releases("@openai/agents", ">=0.4.3,<0.4.5", registry="npm")


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ("0.8", "Invalid version range '0.8': expected '>=0.8', '>=1.0,<2' or '==1.*', say"),
        (">=99", "no release of openai-agents fits '>=99', as far as uv can see"),
    ],
)
def test_what_cannot_be_found_is_refused(wanted: str, what: str) -> None:
    """The error says what was asked for."""
    with pytest.raises(UsageError) as error:
        find_releases("openai-agents", wanted)

    assert what == str(error.value)
