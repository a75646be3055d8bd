"""What must hold of every recorded run: the checks, a family a file, and how journals are judged with them."""

from __future__ import annotations

from . import (
    asking,
    asking_requests,
    execution,
    execution_arguments,
    execution_once,
    state,
    state_stream,
    telling,
    telling_inputs,
)
from .check import CHECKS, Check, Failure, check

__all__ = ["CHECKS", "Check", "Failure", "check"]
