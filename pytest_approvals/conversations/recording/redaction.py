"""Redaction of a client's credentials, and of texts that look like keys.

Redacted text cannot be restored; a text that only looks like a key is redacted, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

PLACEHOLDER = "[secret]"
"""The text in place of a secret."""

_SHAPES = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}",  # OpenAI, Anthropic, Stripe
    r"\b(?:gh[pousr]|github_pat)_\w{16,}",
    r"\bgl(?:pat|ptt|rt)-[\w-]{16,}",
    r"\bxox[a-z]-[\w-]{8,}",
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\bAIza[\w-]{20,}",
    r"\bya29\.[\w.-]{8,}",
    r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*",  # a JSON Web Token
    # Long words of capital and small letters and digits, as keys without a prefix are.
    r"(?<![\w+/-])(?=[\w+/-]*[0-9])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])[\w+/-]{32,}={0,2}",
    r"(?<![0-9A-Fa-f])[0-9a-f]{40,}(?![0-9A-Fa-f])",
)
_SECRET_NAMES = (
    r"authorization|(?:x[-_]?)?api[-_]?key|(?:access|auth|refresh|id)[-_]?token|(?:client[-_]?)?secret|passw(?:or)?d"
)

_SECRET_PATTERN = re.compile("|".join(_SHAPES), re.DOTALL)
_BEARER = re.compile(r"\b(bearer|basic|token)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(rf"""\b({_SECRET_NAMES})(["']?\s*[:=]\s*["']?)[^\s"',;&}}\]]{{4,}}""", re.IGNORECASE)
_IN_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+(@)")
_SECRET_NAME = re.compile(rf"(?:{_SECRET_NAMES})", re.IGNORECASE)

_CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")


def find_credentials(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the credentials of a client, as they may turn up elsewhere.

    >>> find_credentials({"Authorization": "Bearer abc", "Accept": "text/plain"})
    frozenset({'abc'})
    """
    values = (value for name, value in headers.items() if name.lower() in _CREDENTIAL_HEADERS)
    return frozenset(value.split()[-1] for value in values if value.strip())


def redact(value: Any, known: Collection[str] = ()) -> Any:
    """Return a JSON value without secrets in its texts and names.

    Args:
        value: The value.
        known: Secrets that need not look like one.

    >>> redact({"text": "my key is sk-abcdefgh1234", "api_key": "x"}, ["blue"])
    {'text': 'my key is [secret]', 'api_key': '[secret]'}
    """
    match value:
        case str():
            return _redact_text(value, known)
        case Mapping():
            return {
                _redact_text(str(name), known): PLACEHOLDER if _is_secret(name, inner) else redact(inner, known)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [redact(inner, known) for inner in value]
        case _:
            return value


def _is_secret(name: str, value: Any) -> bool:
    return isinstance(value, str) and _SECRET_NAME.fullmatch(str(name)) is not None


def _redact_text(text: str, known: Collection[str]) -> str:
    # The longest first, because one secret may contain another.
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, PLACEHOLDER)
    text = _IN_URL.sub(rf"\1{PLACEHOLDER}\2", text)
    text = _BEARER.sub(rf"\1\2{PLACEHOLDER}", text)
    return _ASSIGNED.sub(rf"\1\2{PLACEHOLDER}", _SECRET_PATTERN.sub(PLACEHOLDER, text))
