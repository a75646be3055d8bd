"""The clients of providers, as frameworks make them."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.clients import openai_options
from pytest_approvals.agent_side.neutral import ModelAddress


def test_a_framework_may_close_its_client_after_each_request() -> None:
    """What the next one stands on is still open."""
    openai = pytest.importorskip("openai")
    options = openai_options(ModelAddress(protocol="chat", url="http://127.0.0.1:1/v1"))
    asyncio.run(openai.AsyncOpenAI(**options).close())

    assert not openai.AsyncOpenAI(**options).is_closed()
