"""Families of checks, in the order in which pages and reports list them."""

from __future__ import annotations

from types import ModuleType

from pytest_approvals.checks._families import (
    asking,
    asking_elicitations,
    decisions,
    ending,
    ending_limits,
    execution,
    execution_arguments,
    harness,
    state,
    state_outcome,
    telling,
    telling_inputs,
    telling_offers,
    telling_reasoning,
    telling_results,
)

FAMILIES: tuple[ModuleType, ...] = (
    execution,
    execution_arguments,
    asking,
    asking_elicitations,
    telling,
    telling_results,
    telling_inputs,
    telling_offers,
    telling_reasoning,
    state,
    state_outcome,
    decisions,
    ending,
    ending_limits,
    harness,
)
"""The modules; the part of a module's name before `_` is the family of its checks."""
