"""Exceptions that the two sides of the contract raise at each other.

ContractError
├── Unsupported         the adapter cannot express a step
├── ModelDown           the model failed
│   └── ModelRefused    the model refused its input as a real provider would
├── ScriptExhausted     the model's script has no further reply
├── ToolRaised          a tool failed, as the scenario wrote it
├── AsksAgain           a tool asks for a second approval while it runs
├── Elicits             a tool of an MCP server asks the caller something while it runs
└── ConditionRaised     an approval condition failed, as the scenario wrote it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ContractError(Exception):
    """Base class of the exceptions that the two sides raise at each other."""


class Unsupported(ContractError):
    """An adapter cannot express this step; *capability* is the one that it should not have claimed."""

    def __init__(self, capability: str, why: str = "") -> None:
        self.capability = capability
        self.why = why
        super().__init__(f"{capability}: {why or 'this adapter cannot express it'}")


MODEL_FAILURES = {
    "disconnect": "the connection to the model broke",
    "timeout": "the model did not answer in time",
    "truncated": "the answer of the model ends in its middle",
    "garbled": "the answer of the model cannot be read",
}
"""The ways in which a model fails without a status, with their messages."""


class ModelDown(ContractError):
    """The model failed.

    Attributes:
        status: An HTTP status; 0 if there is none.
        how: A name in `MODEL_FAILURES`: what happened if there is no status.
        retry_after: After how many seconds the provider wants to be asked again; None if it does not say.
    """

    def __init__(self, status: int, how: str = "disconnect", retry_after: float | None = None) -> None:
        self.status = status
        self.how = how
        self.retry_after = retry_after
        super().__init__(f"the model answered with status {status}" if status else MODEL_FAILURES[how])


class ModelRefused(ModelDown):
    """The model refused its input as a real provider would, with status 400."""

    def __init__(self, reason: str) -> None:
        super().__init__(400)
        self.reason = reason
        self.args = (f"the model refused its input with status 400: {reason}",)


class ScriptExhausted(ContractError):
    """The model was asked once more than its script has replies."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        super().__init__(f"the script of agent {agent!r} has no further reply")


class ToolRaised(ContractError):
    """A tool failed, as the scenario wrote it; an adapter lets it out of the tool's body."""


class AsksAgain(ContractError):
    """A tool asks for a second approval while it runs; an adapter turns it into the framework's own way to ask."""


class WaitsForAnswer(AsksAgain):
    """The body of a user's tool asks and waits; the framework enters it again with the answer, whatever it says."""


class Elicits(ContractError):
    """A tool of an MCP server asks the caller something in the middle of an execution, which goes on with the answer.

    Attributes:
        number: The execution.
        message: What the caller is asked.
        form: The JSON Schema of the object to fill in; None for an address.
        url: The address to open; None for a form.
    """

    def __init__(self, message: str, form: Mapping[str, Any] | None = None, url: str | None = None) -> None:
        self.number = 0
        self.message = message
        self.form = None if form is None else dict(form)
        self.url = url
        super().__init__(f"the server asks: {message}")


class ConditionRaised(ContractError):
    """An approval condition failed, as the scenario wrote it; an adapter lets it out of the framework's policy."""
