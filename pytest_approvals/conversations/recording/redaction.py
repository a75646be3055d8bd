"""Redaction: what is secret in a recorded conversation, and the credentials of a request."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from pytest_approvals.conversations.made_up_values import SECRET_NAMES

_LONG = 8

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

_SECRET_PATTERN = re.compile("|".join(_SHAPES), re.DOTALL)
_BEARER = re.compile(r"\b(bearer|basic|token)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(rf"""\b({SECRET_NAMES})(["']?\s*[:=]\s*["']?)[^\s"',;&}}\]]{{4,}}""", re.IGNORECASE)
_IN_URL = re.compile(r"(://)[^/\s:@]+:[^/\s@]+(@)")
_SECRET_NAME = re.compile(rf"(?:{SECRET_NAMES})", re.IGNORECASE)

_CREDENTIAL_HEADERS = (
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-amz-security-token",
    "cookie",
)
_CREDENTIAL_PARAMETERS = ("key", "api_key", "api-key", "access_token", "x-amz-credential", "x-amz-signature")
_SIGNED = re.compile(r"AWS4-\S+ .*?Credential=(?P<id>[^/,\s]+).*Signature=(?P<signature>\w+)", re.DOTALL)


def find_credentials(headers: Mapping[str, str], query: str = "") -> frozenset[str]:
    """Return the credentials of a client, as they may turn up elsewhere.

    Args:
        headers: The header fields of its request.
        query: What follows the `?` of its path.

    >>> find_credentials({"Authorization": "Bearer abc", "Accept": "text/plain"})
    frozenset({'abc'})
    >>> find_credentials({}, "alt=sse&key=abc")
    frozenset({'abc'})
    """
    return frozenset(_iter_credentials(headers, query))


def _iter_credentials(headers: Mapping[str, str], query: str) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() in _CREDENTIAL_HEADERS and value.strip():
            signed = _SIGNED.match(value)
            yield from signed.groups() if signed else (value.split()[-1],)
    yield from (value for name, value in parse_qsl(query) if name.lower() in _CREDENTIAL_PARAMETERS)


def redact(value: Any, known: Collection[str] = (), kept: Collection[str] = ()) -> Any:
    """Return a JSON value without secrets in its texts and names.

    Args:
        value: The value.
        known: Secrets that need not look like one.
        kept: Texts that are no secrets even if they look like one, such as ids.

    >>> redact({"text": "my key is sk-abcdefgh1234", "api_key": "x"}, ["blue"])
    {'text': 'my key is [secret]', 'api_key': '[secret]'}
    """
    match value:
        case str():
            is_kept = value in kept and not any(secret in value for secret in known)
            return value if is_kept else _redact_text(value, known)
        case Mapping():
            return {
                # A short word may be a part of what everything is called here.
                redact(str(name), [word for word in known if len(word) >= _LONG], kept): (
                    PLACEHOLDER if _is_secret(name, inner) and inner not in kept else redact(inner, known, kept)
                )
                for name, inner in value.items()
            }
        case list() | tuple():
            return [redact(inner, known, kept) for inner in value]
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
