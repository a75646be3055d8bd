"""
What cannot be meant in a scenario, whether it was loaded or built.

Each function gives the mistakes of one part. A scenario that comes through means something: every word in it is known,
every label is that of a call, every signal is given, and what looks like a slip is marked as being on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.scenario.mistakes import Mistake
from pytest_approvals.scenario.parts import Scenario
from pytest_approvals.scenario.validate_caller import caller_mistakes
from pytest_approvals.scenario.validate_frame import frame_mistakes
from pytest_approvals.scenario.validate_model import model_mistakes
from pytest_approvals.scenario.validate_tools import tool_mistakes
from pytest_approvals.scenario.view import View


def mistakes_in(scenario: Scenario, *, attached: bool = False) -> Iterator[Mistake]:
    """
    Gives every mistake in a scenario that has its labels.

    Arguments:
        attached: A person's own agent plays it: which tools there are, and what their arguments are, is not known here.
    """
    view = View.of(scenario, attached=attached)
    yield from frame_mistakes(view)
    yield from tool_mistakes(view)
    yield from model_mistakes(view)
    yield from caller_mistakes(view)
