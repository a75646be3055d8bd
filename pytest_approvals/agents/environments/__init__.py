"""
Environments for agents whose framework is not here in the release that is asked for: made by uv or npm, once, and kept.

A recipe says what an environment consists of; the cache makes it and keeps it under a name made from the recipe; the
agent's side of this package is copied beside it.
"""

from __future__ import annotations

from pytest_approvals.agents.environments.cache import CachedEnvironment, EnvironmentCache
from pytest_approvals.agents.environments.recipe import Recipe, create_recipe

__all__ = ["CachedEnvironment", "EnvironmentCache", "Recipe", "create_recipe"]
