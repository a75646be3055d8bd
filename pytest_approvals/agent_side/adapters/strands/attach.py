"""A person's own agent."""

from __future__ import annotations

from typing import Any


def attached_crew(attachment: Any) -> Any:
    raise NotImplementedError
