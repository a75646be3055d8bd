"""
The parts of a scenario.

Plain frozen values. The loader makes them from YAML, the builders from Python; the harness plays them. Nothing here
knows a framework.
"""

from __future__ import annotations

from .script import Call, Failure, Reply, Script
from .steps import (
    Answer,
    AnswerSource,
    Cancel,
    Leave,
    LetOracle,
    Restart,
    Restore,
    Rewrite,
    Save,
    Signal,
    Stage,
    Step,
    Together,
    Trim,
    Turn,
)
from .story import PROMPT, Expect, Scenario
from .tools import Behaviour, Tool, behaviours
from .variant import Variant

__all__ = [
    "PROMPT",
    "Answer",
    "AnswerSource",
    "Behaviour",
    "Call",
    "Cancel",
    "Expect",
    "Failure",
    "Leave",
    "LetOracle",
    "Reply",
    "Restart",
    "Restore",
    "Rewrite",
    "Save",
    "Scenario",
    "Script",
    "Signal",
    "Stage",
    "Step",
    "Together",
    "Tool",
    "Trim",
    "Turn",
    "Variant",
    "behaviours",
]
