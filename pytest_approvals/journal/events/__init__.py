"""
The events of a journal.

An event says what was seen on one of the four sides of the agent under test; it holds facts only. Turn number, fork and
occurrence of a call are derived by `calls.py`, never stored. Events are slotted and write themselves: they are made in
the hot path of every run.

`n` is the position in the journal, from 1. `session` is empty but in scenarios with several sessions. `x` numbers
executions, `q` numbers requests as they surface (`q1`, `q2`, ...), `label` is what the scenario calls a call.
"""

from __future__ import annotations

from .caller import Cancelled, Decide, HungUp, Shown, Signalled, Skipped, Staged, Stuck, TurnEnd, TurnStart
from .event import EVENTS, FORMAT, Event, event_from_dict
from .frame import AgentLost, AgentStart, Header, RunEnd
from .model import ModelAnswer, ModelExhausted, ModelFailure, ModelRefusal, ModelRequest
from .store import Restored, Rewritten, Saved, Trimmed
from .tools import Gate, ToolEnd, ToolStart

__all__ = [
    "EVENTS",
    "FORMAT",
    "AgentLost",
    "AgentStart",
    "Cancelled",
    "Decide",
    "Event",
    "Gate",
    "Header",
    "HungUp",
    "ModelAnswer",
    "ModelExhausted",
    "ModelFailure",
    "ModelRefusal",
    "ModelRequest",
    "Restored",
    "Rewritten",
    "RunEnd",
    "Saved",
    "Shown",
    "Signalled",
    "Skipped",
    "Staged",
    "Stuck",
    "ToolEnd",
    "ToolStart",
    "Trimmed",
    "TurnEnd",
    "TurnStart",
    "event_from_dict",
]
