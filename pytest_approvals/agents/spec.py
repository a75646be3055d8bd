"""Agent specs: `NAME[.FLAVOUR][==VERSION|@PATH]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_approvals.errors import UsageError

ALL_AGENTS = "all"
"""Name that selects all agents on the command line."""

_SPEC_PATTERN = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\.(?P<flavour>\w+))?(?:==(?P<version>[^\s@=]+)|@(?P<checkout>.+))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Spec of an agent: `NAME`, `NAME.FLAVOUR`, either with `==VERSION` or `@PATH` of a checkout.

    >>> str(AgentSpec.parse("langgraph.per_call==1.2.0"))
    'langgraph.per_call==1.2.0'
    """

    name: str
    flavour: str = ""
    version: str | None = None
    checkout: str | None = None

    @classmethod
    def parse(cls, text: str) -> AgentSpec:
        """Parse a spec, whether or not such an agent exists.

        Raises:
            UsageError: The text is not a spec.
        """
        match = _SPEC_PATTERN.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"Invalid agent spec {text!r}: expected NAME[.FLAVOUR][==VERSION|@PATH]")
        parts = match.groupdict()
        return cls(
            name=parts["name"],
            flavour=parts["flavour"] or "",
            version=parts["version"],
            checkout=parts["checkout"],
        )

    @property
    def base(self) -> str:
        """Name and flavour, without version and checkout."""
        return f"{self.name}.{self.flavour}" if self.flavour else self.name

    def __str__(self) -> str:
        if self.version is not None:
            return f"{self.base}=={self.version}"
        return f"{self.base}@{self.checkout}" if self.checkout is not None else self.base
