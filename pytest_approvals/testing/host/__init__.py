"""
The conformance kit for agent processes in any language: what `docs/host-protocol.md` requires, tried on a process.

First the rules of the protocol, then the stories of the catalogue with all checks. `pytest-approvals conformance`
prints what comes out; `host_conforms` is for a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.errors import ApprovalsError
from pytest_approvals.testing.host.catalogue import FAMILIES, run_catalogue
from pytest_approvals.testing.host.rules import RULES, HostFinding, check_rules

__all__ = ["FAMILIES", "RULES", "HostConformanceError", "HostFinding", "check_host", "host_conforms"]


class HostConformanceError(ApprovalsError, AssertionError):
    """A process does not do what the host protocol requires; *found* says what."""

    def __init__(self, command: Sequence[str], found: Sequence[HostFinding]) -> None:
        self.found = tuple(found)
        lines = [f"  {one}" for one in found]
        super().__init__("\n".join([f"{' '.join(command)} does not keep the host protocol:", *lines]))


def check_host(
    command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES
) -> list[HostFinding]:
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
    broken = check_rules(command, agent)
    return broken or run_catalogue(command, agent, scenarios)


def host_conforms(command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES) -> None:
    """
    Passes if a process keeps the host protocol; see `check_host`.

    Errors:
        HostFails: It does not.
    """
    found = check_host(command, agent=agent, scenarios=scenarios)
    if found:
        raise HostConformanceError(command, found)
