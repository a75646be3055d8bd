"""Generators of documentation pages."""

from __future__ import annotations

import re

_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")


def format_source(source: str) -> str:
    """Return a public report as a Markdown link, if it is an issue on GitHub.

    >>> format_source("owner/repository#123")
    '[owner/repository#123](https://github.com/owner/repository/issues/123)'
    """
    match = _ISSUE.fullmatch(source)
    return f"[{source}](https://github.com/{match['repository']}/issues/{match['number']})" if match else source
