"""How the stories of this adapter's tests are played."""

from __future__ import annotations

import pytest

from pytest_approvals.scenario.model import Variant


@pytest.fixture(params=["", "inline", "rules"])
def flavour(request: pytest.FixtureRequest) -> str:
    """The flavours, each once."""
    given: str = request.param
    return given


@pytest.fixture(
    params=[
        Variant(),
        Variant(stream=True),
        Variant(serialize="copy", source="restored"),
        Variant(serialize="json", source="rebuilt"),
        Variant(serialize="native.home", source="restored"),
    ],
    ids=lambda variant: variant.id,
)
def variant(request: pytest.FixtureRequest) -> Variant:
    """The ways in which a story can be played on the flavour that defers."""
    given: Variant = request.param
    return given
