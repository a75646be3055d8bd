"""Errors of model providers, and the sentences that OpenAI's protocols share.

Neutral rules (`input_rules.py`) check the conversation; body rules of a protocol check what only its bodies show.

OpenAI's error body is the one of the published API reference ("error codes"); the client libraries read `message`,
`type`, `param` and `code` from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.text import json_type_name, list_objects

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError(RuleViolation):
    """A rule violation in the words of a provider.

    Attributes:
        status: The HTTP status of the response.
        kind: The provider's class of the error: `invalid_request_error`, `not_found_error`, `rate_limit_error`, ...
        param: What is wrong in the request, as OpenAI names it.
        code: OpenAI's code of the error.
    """

    rule: str = ""
    ids: tuple[str, ...] = ()
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class BodyRules(Generic[Body]):
    """The rules of one protocol about its own bodies; the name of a rule is that of its function.

    Attributes:
        rules: The rules by their names.
    """

    def __init__(self) -> None:
        self.rules: dict[str, Callable[[Body], Iterable[ProviderError]]] = {}

    def __call__(self, rule: Callable[[Body], Iterable[ProviderError]]) -> Callable[[Body], Iterable[ProviderError]]:
        """Add a rule, as a decorator."""
        self.rules[str(getattr(rule, "__name__", "")).replace("_", "-")] = rule
        return rule

    def check(self, request: Body) -> tuple[ProviderError, ...]:
        """Return what the provider refuses in *request*, in the order of the rules."""
        return tuple(replace(error, rule=name) for name, rule in self.rules.items() for error in rule(request))


# `\Z` and not `$`, which would allow a line break at the end.
OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
"""The allowed names of functions."""

_OPENAI_FAILURES = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", None, "Invalid URL"),
    413: ("invalid_request_error", None, "The request is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for the model. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
    529: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


def openai_error_body(error: ProviderError) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"error": {"message": error.text, "type": error.kind, "param": error.param, "code": error.code}}


def openai_failure(status: int) -> ProviderError:
    """Return OpenAI's error of a status."""
    kind, code, text = _OPENAI_FAILURES.get(
        status, _OPENAI_FAILURES[500] if status >= 500 else ("invalid_request_error", None, "")
    )
    return ProviderError(text=text or f"The request failed with status {status}.", status=status, kind=kind, code=code)


def openai_invalid_json() -> ProviderError:
    """Return OpenAI's error for a body that is not JSON."""
    text = (
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The API expects a JSON payload, but what was sent was not valid JSON.)"
    )
    return ProviderError(rule="not-json", text=text)


def missing_parameter(param: str) -> ProviderError:
    """Return the error for a missing parameter."""
    return ProviderError(text=f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def invalid_type(param: str, expected: str, value: Any) -> ProviderError:
    """Return the error for a parameter of another type."""
    text = f"Invalid type for '{param}': expected {expected}, but got {json_type_name(value)} instead."
    return ProviderError(text=text, param=param, code="invalid_type")


def invalid_value(param: str, value: Any, valid: tuple[str, ...]) -> ProviderError:
    """Return the error for a word that is not one of the valid ones."""
    words = ", ".join(f"'{word}'" for word in valid[:-1])
    text = f"Invalid value: '{value}'. Supported values are: {words}, and '{valid[-1]}'."
    return ProviderError(text=text, param=param, code="invalid_value")


def empty_array(param: str) -> ProviderError:
    """Return the error for an array without elements."""
    text = f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return ProviderError(text=text, param=param, code="empty_array")


def invalid_name(param: str) -> ProviderError:
    """Return the error for a name with other characters."""
    text = (
        f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'."
    )
    return ProviderError(text=text, param=param, code="invalid_value")


def invalid_names(tools: Any, *path: str) -> Iterator[ProviderError]:
    """Yield errors for function names with other characters; *path* leads from a tool to its function."""
    for index, tool in enumerate(list_objects(tools)):
        function: Any = tool
        for step in path:
            function = function.get(step) if isinstance(function, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str) and not OPENAI_NAME.match(name):
            yield invalid_name(".".join([f"tools[{index}]", *path, "name"]))
