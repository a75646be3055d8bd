"""
The flavours that the agent of a row stands for.

A report names a release, and seldom all that stood around the gate there. So a row that names no flavour means every
flavour of that distribution, and one that names `hosted` means `hosted_chat` and `hosted_workflow`, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_approvals.agents import AgentSpec, flavours
from pytest_approvals.errors import ApprovalsError

from .table import Release, Row

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Agent


def kinds(row: Row) -> Iterator[tuple[Release, Release | None]]:
    """Gives the bad and the good agent of *row* in each flavour that is meant; those that it names come first."""
    yield row.bad, row.good
    for flavour in _further(row.bad.spec):
        alike = row.good is not None and row.good.spec.base == row.bad.spec.base
        yield _in(flavour, row.bad), _in(flavour, row.good) if row.good is not None and alike else row.good


def _further(spec: AgentSpec) -> tuple[str, ...]:
    try:
        known = flavours(spec.name)
        named = known[spec.flavour]
    except (ApprovalsError, KeyError):
        return ()
    prefix = f"{spec.flavour}_" if spec.flavour else ""
    others: dict[type[Agent], str] = {}
    for flavour, adapter in known.items():
        if flavour.startswith(prefix) and adapter.framework == named.framework and adapter is not named:
            others.setdefault(adapter, flavour)
    return tuple(others.values())


def _in(flavour: str, release: Release) -> Release:
    return replace(release, spec=replace(release.spec, flavour=flavour))
