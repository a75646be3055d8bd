"""
The scripted model as routes of respx, for people whose tests use it already.

The mocker of `httpx2` hands requests over as those of `httpx` and takes such responses, so that one route serves both;
what is raised must be of the library that the client is made on.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from .transport import Served, answered

PROVIDERS = ("https://api.openai.com/v1", "https://api.anthropic.com/v1")
"""Where the clients of the providers ask, unless they are told otherwise; with the version that is in every path."""


def mount(router: Any, served: Served, *bases: str) -> Any:
    """
    Adds a route for all that is asked below the base addresses; one, because respx wants every route to be called.

    Arguments:
        router: A router of respx: `respx_mock`, or `httpx2_mock` of pytest-httpx2.
        bases: `https://api.openai.com/v1` and `https://api.anthropic.com/v1` where none is given.

    Returns:
        The route.
    """

    errors = import_module("httpx2" if getattr(router, "_using", None) == "httpcore2" else "httpx")

    def play(request: Any) -> Any:
        return answered(served, request, request.read(), errors)

    places = "|".join(re.escape(base.rstrip("/")) for base in bases or PROVIDERS)
    return router.route(url__regex=f"^(?:{places})/").mock(side_effect=play)
