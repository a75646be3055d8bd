"""
Environments for agents whose framework is not here in the release that is asked for: made by uv or npm, once, and kept.

A recipe says what an environment consists of; the cache makes it and keeps it under a name made from the recipe; the
agent's side of this package is copied beside it.
"""

from __future__ import annotations

from .cache import Built, EnvironmentCache
from .recipe import Recipe, recipe_for

__all__ = ["Built", "EnvironmentCache", "Recipe", "recipe_for"]
