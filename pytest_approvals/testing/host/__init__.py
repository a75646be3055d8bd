"""Conformance tests for agent processes in any language: the requirements of `docs/host-protocol.md`.

First the rules of the protocol are tested, then the scenarios of the catalogue with all checks.
`pytest-approvals conformance` prints the result; `host_conforms` is for a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.errors import ApprovalsError
from pytest_approvals.testing.host.catalogue import FAMILIES, run_catalogue
from pytest_approvals.testing.host.rules import RULES, HostFinding, check_rules

__all__ = ["FAMILIES", "RULES", "HostConformanceError", "HostFinding", "check_host", "host_conforms"]


class HostConformanceError(ApprovalsError, AssertionError):
    """A process that breaks the host protocol; *found* has the findings."""

    def __init__(self, command: Sequence[str], found: Sequence[HostFinding]) -> None:
        self.found = tuple(found)
        lines = [f"  {finding}" for finding in found]
        super().__init__("\n".join([f"{' '.join(command)} does not conform to the host protocol:", *lines]))


def check_host(
    command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES
) -> list[HostFinding]:
    """Return the findings about a process: the rules that it breaks, or else the scenarios that fail.

    Args:
        command: The program of the process, with its arguments.
        agent: The agent that it is to drive, as `hello` names it.
        scenarios: The scenarios, by id or family.

    Raises:
        UnknownName: There is no such scenario.
        AgentUnavailable: The process cannot be started.
    """
    broken = check_rules(command, agent)
    return broken or run_catalogue(command, agent, scenarios)


def host_conforms(command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES) -> None:
    """Assert that a process conforms to the host protocol; see `check_host`.

    Raises:
        HostConformanceError: It does not.
    """
    findings = check_host(command, agent=agent, scenarios=scenarios)
    if findings:
        raise HostConformanceError(command, findings)
