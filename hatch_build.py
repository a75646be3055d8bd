"""Puts the catalogue into the wheel; a project that is installed in place reads it where it stands."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the scenarios to wheels that are made to be kept."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built; *version* is `standard` or `editable`."""
        if version == "standard":
            build_data["force_include"]["scenarios"] = "pytest_approvals/catalogue"
