"""The scripted model of a person's test: its replies, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.build import call, calls, fails, say
from pytest_approvals.scenario.parts import Call, Reply

if TYPE_CHECKING:
    from typing import Any, Literal

    from pytest_approvals.journal.turns import Exchange
    from pytest_approvals.pytest_side.own_run import OwnRun


class ScriptedModel(Sequence[Reply]):
    """
    A script, written line by line.

    Each method adds a reply and gives the model, so that lines can be chained; `approvals.run(model=...)` plays them.

    Attributes:
        runs: The runs that played it.
    """

    def __init__(self) -> None:
        self.runs: list[OwnRun] = []
        self._replies: list[Reply] = []

    def calls(self, tool: str | Call, *others: Call, **arguments: Any) -> ScriptedModel:
        """Adds a reply that calls a tool, or several made by `call(...)`; see `pytest_approvals.calls`."""
        return self.replies(calls(tool, **arguments) if isinstance(tool, str) else calls(tool, *others, **arguments))

    def says(self, text: str) -> ScriptedModel:
        """Adds a reply of text."""
        return self.replies(say(text))

    def fails(self, how: Literal[500, 429, "disconnect"] = 500) -> ScriptedModel:
        """Adds a failure in place of a reply."""
        return self.replies(fails(how))

    def replies(self, *replies: Reply) -> ScriptedModel:
        """Adds replies made by `calls`, `say` and `fails`."""
        self._replies += replies
        return self

    call = staticmethod(call)

    @property
    def requests(self) -> list[Exchange]:
        """Everything that it was asked in its latest run, with what it answered."""
        if not self.runs:
            raise UsageError("the scripted model was not asked yet: hand it to approvals.run(model=...)")
        return list(self.runs[-1].history.exchanges)

    def __getitem__(self, place: Any) -> Any:
        return self._replies[place]

    def __len__(self) -> int:
        return len(self._replies)

    def __iter__(self) -> Iterator[Reply]:
        return iter(self._replies)
