"""Public API for authors of adapters: the contract with the harness, and helpers for writing an adapter.

An adapter is a subclass of `Agent`; what it is given is a `World`. See `docs/writing-an-adapter.md`.
"""

from __future__ import annotations

from pytest_approvals.agent_side import adapter
from pytest_approvals.agent_side.adapter import *  # noqa: F403 -- the names are those of `adapter.__all__`

__all__ = adapter.__all__
