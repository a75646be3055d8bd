"""
The conformance kit for adapters: what every adapter must do, as tests to inherit.

    class TestToyAdapter(AdapterTests):
        adapter = Toy

The tests stand on the contract alone; what a framework makes of approvals is the catalogue's business. There is no test
about a capability that the adapter does not claim. A test that needs a framework which is not installed is skipped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import Unsupported
from pytest_approvals.testing.kit import DELETES, DONE, TOOLS
from pytest_approvals.testing.protocols import ProtocolTests
from pytest_approvals.testing.state import StateTests
from pytest_approvals.testing.story import Story, approve
from pytest_approvals.testing.turns import TurnTests

WIRE_RULES = ("chat", "responses", "messages", "none")


class AdapterTests(TurnTests, StateTests, ProtocolTests):
    """
    The tests that every adapter passes; set `adapter` in a subclass.

    Attributes:
        adapter: The class under test.
        options: Options of the flavour that its tests need.
    """

    # --- what it says of itself ---

    def test_its_facts_are_complete(self) -> None:
        """It says whose rules its inputs follow, and an adapter of a framework which, and where bugs go."""
        adapter = self.adapter

        assert adapter.wire_rules in WIRE_RULES
        assert bool(adapter.framework) == bool(adapter.packages), "framework and packages come together"
        assert not adapter.framework or adapter.issues.startswith("http"), "issues must be an address"

    def test_what_is_missing_says_why(self) -> None:
        """Each capability that is not claimed names the API that is missing or refuses."""
        assert [] == [name for name, why in self.adapter.missing.items() if not why.strip()]

    def test_importing_it_imports_no_framework(self) -> None:
        """What it says of itself can be read where its framework is not installed."""
        names = (*self.adapter.packages, "pydantic", "yaml")
        found = f"print(*[name for name in {names!r} if name in sys.modules])"
        code = f"import sys; sys.path[:] = {sys.path!r}; import {self.adapter.__module__}; {found}"
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        assert "" == printed.stdout.strip()

    # --- the rest of the contract ---

    @classmethod
    def parameters(cls) -> dict[str, list[Any]]:
        """Add the capabilities whose steps it must refuse, as it does not claim them."""
        steps = ["stage", "cancel", "trim", "serialize.copy", "sessions"]
        if not cls.adapter.stores:  # a save into a store is one that is dumped, too
            steps.append("serialize.json")
        return {**super().parameters(), "capability": [name for name in steps if name not in cls.adapter.capabilities]}

    def test_what_it_does_not_claim_it_refuses(self, story: Callable[..., Story], capability: str) -> None:
        """A step without its capability raises `Unsupported`, and nothing else."""
        session = story(DONE)
        steps: dict[str, Callable[[], Awaitable[Any]]] = {
            "stage": lambda: session.agent.stage(()),
            "cancel": session.agent.cancel,
            "trim": lambda: session.agent.trim(1),
            "serialize.json": session.agent.dump,
            "serialize.copy": lambda: session.agent.copy_from(session.agent),
            "sessions": lambda: session.agent.another_session(session.world),
        }

        with pytest.raises(Unsupported):
            session.wait(steps[capability]())

    def test_it_has_the_tools_it_was_given(self, story: Callable[..., Story]) -> None:
        """`tools` names those of the blueprint."""
        assert [spec.name for spec in TOOLS] == [spec.name for spec in story().agent.tools()]

    def test_it_can_be_closed_twice(self, story: Callable[..., Story]) -> None:
        """Closing lets go of what is open; there is nothing left the second time."""
        session = story(DELETES)
        session.paused("Delete a.txt.")
        session.wait(session.agent.close())
        session.wait(session.agent.close())

    def test_it_prints_nothing(self, story: Callable[..., Story], capfd: pytest.CaptureFixture[str]) -> None:
        """Standard output is nobody's place for messages; a whole story leaves it empty."""
        session = story(DELETES, DONE)
        session.finished(None, approve(session.paused("Delete a.txt.")[0]))

        assert "" == capfd.readouterr().out
