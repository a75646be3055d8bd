"""What the simulated client fails with, as .NET does."""

from __future__ import annotations

from collections.abc import Sequence


class ClientFailure(Exception):
    """
    A request to the client has failed.

    Attributes:
        type: The word for the kind of failure in an outcome.
    """

    type = ""


class InvalidOperation(ClientFailure):
    """A request without a response, or a model that gave nothing: InvalidOperationException."""

    type = "InvalidOperation"


class DuplicateKey(ClientFailure):
    """Two open requests with one id: ArgumentException."""

    type = "DuplicateKey"


class ToolError(ClientFailure):
    """
    Tools failed too often in a row, and the last failures come out.

    Arguments:
        failures: Tool, call id and message of each.
    """

    type = "ToolError"

    def __init__(self, failures: Sequence[tuple[str, str, str]]) -> None:
        self.failures = tuple(failures)
        super().__init__("; ".join(f"{message} ({tool}, call {call_id})" for tool, call_id, message in failures))
