"""Which agents have transcripts of the catalogue."""

from __future__ import annotations

import pytest

from pytest_approvals.agents.adapters import LocalAgent, get_adapter
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.plugin.agents import has_stored_transcripts


@pytest.mark.parametrize(
    ("name", "version", "has"),
    [
        ("agno", get_pinned_release("agno", PYPI.name), True),
        ("agno", "0.0.1", False),
        ("ai_sdk", get_pinned_release("ai", NPM.name), True),
        ("ai_sdk", "0.0.1", False),
        ("reference", None, True),
    ],
)
def test_the_pinned_release_has_transcripts(name: str, version: str | None, has: bool) -> None:
    """Of PyPI or of npm; those of other releases would differ."""
    spec = AgentSpec.parse(name)

    assert has is has_stored_transcripts(LocalAgent(spec=spec, adapter=get_adapter(spec), version=version, where=None))
