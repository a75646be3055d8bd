"""
The names of tools as the framework has them.

The framework wants the tools of one agent to have different names. Where two servers offer tools of one name, they get
the server's name as a prefix, as the framework advises; towards the world they keep their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_approvals.agent_side.contract import MAIN, ToolSpec

ANSWER = "final_result"
"""The tool by which a model gives a structured answer, as the framework calls it."""

Specs = Mapping[tuple[str, str], ToolSpec]
"""Tools by agent and by the name that the framework has for them."""

Renamed = tuple[tuple[str, str, str | None], ...]
"""The tools of one agent that are renamed: the framework's name, their own, and their server."""


def named(specs: Iterable[ToolSpec]) -> dict[tuple[str, str], ToolSpec]:
    """Gives the tools by agent and by the name that the framework has for them."""
    listed = list(specs)
    return {(spec.agent, f"{spec.server}_{spec.name}" if _shared(spec, listed) else spec.name): spec for spec in listed}


def own_name(name: str, specs: Specs) -> str:
    """Gives a tool's own name, by the name that the framework has for it on the main agent."""
    spec = specs.get((MAIN, name))
    return spec.name if spec else name


def renamed(specs: Iterable[ToolSpec]) -> Renamed:
    """Gives those tools of one agent that the framework has under another name."""
    pairs = ((name, spec) for (_, name), spec in named(specs).items())
    return tuple((name, spec.name, spec.server) for name, spec in pairs if name != spec.name)


def _shared(spec: ToolSpec, specs: Iterable[ToolSpec]) -> bool:
    """Another tool of the same agent has the same name as this tool of a server."""
    same = [other for other in specs if (other.agent, other.name) == (spec.agent, spec.name)]
    return spec.server is not None and len(same) > 1
