"""Environments for agents whose framework is not installed in the wanted release.

They are built by uv or npm, once, and cached. A recipe describes an environment; the cache builds it and keeps it under
a name made from the recipe; the agent side of this package is copied next to it.
"""

from __future__ import annotations

from pytest_approvals.agents.environments.cache import CachedEnvironment, EnvironmentCache
from pytest_approvals.agents.environments.recipe import Recipe, create_recipe

__all__ = ["CachedEnvironment", "EnvironmentCache", "Recipe", "create_recipe"]
