"""Gates that the user names: tools, or patterns of them, whose calls need approval, perhaps under a condition.

wipe_*              every call of a tool with such a name
refund:amount>100   calls of `refund` with a higher amount
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pytest_approvals.errors import UsageError
from pytest_approvals.errors.printable import quote
from pytest_approvals.journal.arguments import parse_arguments

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"([\w.-]+?)\s*(>=|<=|==|!=|>|<)\s*(.+)")


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate.

    Attributes:
        tool: The name of a tool, or a pattern.
        parameter: The parameter that the condition is about; empty if every call is gated.
    """

    tool: str
    parameter: str = ""
    comparison: str = "=="
    value: Any = None

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Return the gate that a text names.

        Raises:
            UsageError: The condition is none.
        """
        tool, colon, condition = text.partition(":")
        if not colon:
            return cls(text)
        found = _CONDITION.fullmatch(condition.strip())
        if found is None or not tool:
            example = "refund:amount>100"
            raise UsageError(f"Invalid gate {quote(text)}: expected TOOL or TOOL:PARAMETER>VALUE, such as {example}")
        try:
            value = json.loads(found[3])
        except ValueError:
            value = found[3]
        return cls(tool, found[1], found[2], value)

    def applies(self, tool: str, arguments: Any) -> bool:
        """Return whether a call needs approval; one whose arguments do not show that does."""
        if not fnmatchcase(tool, self.tool):
            return False
        given = parse_arguments(arguments)
        if not self.parameter or not isinstance(given, Mapping) or self.parameter not in given:
            return True
        try:
            return bool(_OPERATORS[self.comparison](given[self.parameter], self.value))
        # Values of two types have no order.
        except TypeError:
            return True
