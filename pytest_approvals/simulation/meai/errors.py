"""Errors of the simulated client, as in .NET."""

from __future__ import annotations

from collections.abc import Sequence


class ClientFailure(Exception):
    """A failed request to the client.

    Attributes:
        type: Kind of failure in an outcome.
    """

    type = ""


class InvalidOperation(ClientFailure):
    """A request without a response, or a model that returned null: InvalidOperationException."""

    type = "InvalidOperation"


class DuplicateKey(ClientFailure):
    """Two open requests with the same id: ArgumentException."""

    type = "DuplicateKey"


class ToolError(ClientFailure):
    """Tools failed too often in a row.

    Args:
        failures: Tool, call id and message of each last failure.
    """

    type = "ToolError"

    def __init__(self, failures: Sequence[tuple[str, str, str]]) -> None:
        self.failures = tuple(failures)
        super().__init__("; ".join(f"{message} ({tool}, call {call_id})" for tool, call_id, message in failures))
