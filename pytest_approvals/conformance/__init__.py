"""
The conformance kit for agent processes in any language: what `docs/host-protocol.md` requires, tried on a process.

First the rules of the protocol, then the stories of the catalogue with all checks. `pytest-approvals conformance`
prints what comes out; `host_conforms` is for a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.errors import ApprovalsError

from .rules import RULES, Finding, judged
from .stories import FAMILIES, played

__all__ = ["FAMILIES", "RULES", "Finding", "HostFails", "findings", "host_conforms"]


class HostFails(ApprovalsError, AssertionError):
    """A process does not do what the host protocol requires; *found* says what."""

    def __init__(self, command: Sequence[str], found: Sequence[Finding]) -> None:
        self.found = tuple(found)
        lines = [f"  {one}" for one in found]
        super().__init__("\n".join([f"{' '.join(command)} does not keep the host protocol:", *lines]))


def findings(command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES) -> list[Finding]:
    """
    Lists what is wrong with a process: the rules that it breaks, or else the stories that fail.

    Arguments:
        command: What starts it, with its arguments.
        agent: What it is to drive; it is named so in `hello`.
        scenarios: The stories, by id or family.

    Errors:
        UnknownName: There is no such scenario.
        AgentUnavailable: It cannot be started.
    """
    broken = judged(command, agent)
    return broken or played(command, agent, scenarios)


def host_conforms(command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES) -> None:
    """
    Passes if a process keeps the host protocol; see `findings`.

    Errors:
        HostFails: It does not.
    """
    found = findings(command, agent=agent, scenarios=scenarios)
    if found:
        raise HostFails(command, found)
