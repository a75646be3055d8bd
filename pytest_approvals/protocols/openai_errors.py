"""
The errors of OpenAI's protocols: their body, and the sentences about a request's shape that all of them share.

The shape is the one of the published API reference ("error codes"); the client libraries read `message`, `type`,
`param` and `code` from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .complaints import Complaint
from .text import mappings, name_of

NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
"""What a function may be called."""

_FAILURES = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", None, "Invalid URL"),
    413: ("invalid_request_error", None, "The request is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for the model. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
    529: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


def error_body(complaint: Complaint) -> dict[str, Any]:
    """Gives the body of an answer that refuses or fails."""
    told = {"message": complaint.text, "type": complaint.kind, "param": complaint.param, "code": complaint.code}
    return {"error": told}


def failure(status: int) -> Complaint:
    """Gives what OpenAI says when it fails with that status."""
    kind, code, text = _FAILURES.get(status, _FAILURES[500] if status >= 500 else ("invalid_request_error", None, ""))
    return Complaint(text=text or f"The request failed with status {status}.", status=status, kind=kind, code=code)


def not_json() -> Complaint:
    """Gives what OpenAI says to a body that is not JSON."""
    text = (
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The API expects a JSON payload, but what was sent was not valid JSON.)"
    )
    return Complaint(rule="not-json", text=text)


def missing(param: str) -> Complaint:
    """Complains of a parameter that is not there."""
    return Complaint(text=f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def wrong_type(param: str, expected: str, value: Any) -> Complaint:
    """Complains of a parameter of another type."""
    text = f"Invalid type for '{param}': expected {expected}, but got {name_of(value)} instead."
    return Complaint(text=text, param=param, code="invalid_type")


def wrong_value(param: str, value: Any, valid: tuple[str, ...]) -> Complaint:
    """Complains of a word that is none of the valid ones."""
    named = ", ".join(f"'{word}'" for word in valid[:-1])
    text = f"Invalid value: '{value}'. Supported values are: {named}, and '{valid[-1]}'."
    return Complaint(text=text, param=param, code="invalid_value")


def empty_array(param: str) -> Complaint:
    """Complains of an array without elements."""
    text = f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Complaint(text=text, param=param, code="empty_array")


def wrong_pattern(param: str) -> Complaint:
    """Complains of a name with other characters."""
    text = (
        f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'."
    )
    return Complaint(text=text, param=param, code="invalid_value")


def wrong_names(tools: Any, *path: str) -> Iterator[Complaint]:
    """Complains of functions whose names have other characters; *path* leads from a tool to what has the name."""
    for index, tool in enumerate(mappings(tools)):
        held: Any = tool
        for step in path:
            held = held.get(step) if isinstance(held, Mapping) else None
        name = held.get("name") if isinstance(held, Mapping) else None
        if isinstance(name, str) and not NAME.match(name):
            yield wrong_pattern(".".join([f"tools[{index}]", *path, "name"]))
