"""A request to a model, as every protocol says it in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.neutral import Item

from .complaints import Complaint
from .rules import BrokenRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    One request of a client.

    Attributes:
        body: The request as it came.
        items: The complete input of the model, with what the provider kept of the conversation.
        stream: The client wants the answer as a stream.
        tools: The names of the tools that the model is offered.
        parameters: The parameters of each offered function, by the function's name.
        formatted: The client wants text in a format of its own, which is where a structured answer goes.
        complaints: What is wrong with the body itself.
        broken: All that the provider refuses: the complaints, or else the rules that the items break, once judged.
        readable: Whether the body has the shape of a request at all; if not, there are no items.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    model: str = ""
    stream: bool = False
    tools: tuple[str, ...] = ()
    parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    formatted: bool = False
    complaints: tuple[Complaint, ...] = ()
    broken: tuple[BrokenRule, ...] = ()
    readable: bool = True

    def place(self, kind: str, item_id: str) -> int:
        """Gives the number of the message with the last item of that kind and id; 0 where there is none."""
        return next((item.message for item in reversed(self.items) if item.kind == kind and item.id == item_id), 0)
