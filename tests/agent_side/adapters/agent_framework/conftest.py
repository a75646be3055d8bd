"""How the stories of this adapter's tests are played."""

from __future__ import annotations

import pytest

from pytest_approvals.scenario.model import Variant


@pytest.fixture(params=["", "approval_middleware", "openai", "openai_unstored", "openai_chat", "replayed"])
def flavour(request: pytest.FixtureRequest) -> str:
    """The flavours in which the caller keeps the session, each once."""
    given: str = request.param
    return given


@pytest.fixture(
    params=[
        Variant(),
        Variant(stream=True),
        Variant(serialize="copy", source="restored"),
        Variant(serialize="json", source="rebuilt"),
        Variant(serialize="native.file", source="restored", stream=True),
    ],
    ids=lambda variant: variant.id,
)
def variant(request: pytest.FixtureRequest) -> Variant:
    """The ways in which a story can be played."""
    given: Variant = request.param
    return given
