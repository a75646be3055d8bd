"""Build hook that puts the catalogue into the wheel; an editable installation reads it from the checkout."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hook that adds the scenarios to standard wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the scenarios to what is built.

        Args:
            version: `standard` or `editable`.
            build_data: What the builder will do; changed in place.
        """
        if version == "standard":
            build_data["force_include"]["scenarios"] = "pytest_approvals/catalogue"
