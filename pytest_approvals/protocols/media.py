"""Images and files in OpenAI's requests: addresses and data URLs, and what the provider refuses in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_approvals.protocols.provider_errors import ProviderError

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_DATA = re.compile(r"data:([^;,]*)[^,]*,(.*)", re.IGNORECASE | re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]*\Z")

_IMAGE = (
    "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
)
_FILE = (
    "Expected a base64-encoded data URL with a valid file MIME type (e.g. "
    "'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ==')"
)
_NO_FILES = ("audio/", "video/")


def find_image_errors(url: str, param: str) -> Iterator[ProviderError]:
    """Yield the error for an image that is neither at an address nor in a data URL of an image.

    "but got a value without the 'data:' prefix", quoted in Alibaba-NLP/OmniSearch#3, and "but got empty base64-encoded
    bytes" in anomalyco/opencode#23983; "unsupported MIME type" is that of files (2026-11-26).
    """
    problem = None if _ADDRESS.match(url) else _find_problem(url, "image/")
    if problem is not None:
        yield ProviderError(text=f"Invalid '{param}'. {_IMAGE}, but got {problem}.", param=param, code="invalid_value")


def find_file_errors(data: str, param: str) -> Iterator[ProviderError]:
    """Yield the error for a file that is not in a data URL, or is audio or video.

    "but got an invalid base64-encoded value" for an address, quoted in vercel/ai#7266 and vercel/ai#7776; base64 alone
    is refused, too (strands-agents/harness-sdk#3576), and "unsupported MIME type 'audio/mpeg'" is in cassettes of
    pydantic/pydantic-ai, `test_multimodal_tool_return_matrix` (2026-11-26).
    """
    problem = _find_problem(data, None)
    if problem is not None:
        yield ProviderError(
            text=f"Invalid file data: '{param}'. {_FILE}, but got {problem}.", param=param, code="invalid_value"
        )


def _find_problem(url: str, wanted: str | None) -> str | None:
    found = _DATA.match(url)
    if found is None:
        return "a value without the 'data:' prefix"
    kind, data = found[1].lower(), found[2]
    # A data URL without a type is accepted: nobody says what happens to it.
    if kind and (not kind.startswith(wanted) if wanted else kind.startswith(_NO_FILES)):
        return f"unsupported MIME type '{found[1]}'"
    if kind and not data:
        return "empty base64-encoded bytes"
    return None if _BASE64.match(data) else "an invalid base64-encoded value"
