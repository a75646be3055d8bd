"""Secrets never reach a file."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest

from pytest_approvals.conversations.recording.redaction import PLACEHOLDER, find_credentials, redact

TOKEN = base64.urlsafe_b64encode(json.dumps({"sub": "1234567890", "name": "Ada"}).encode()).decode().rstrip("=")
LETTERS = string.ascii_letters + string.digits
LONG = "".join(random.Random(7).choices(LETTERS, k=40)) + "aA1"

KEYS = {
    "openai": "sk-proj-" + LONG[:24],
    "anthropic": "sk-ant-api03-" + LONG[:24],
    "stripe": "sk_live_" + LONG[:24],
    "github": "ghp_" + LONG[:36],
    "github fine-grained": "github_pat_" + LONG[:30],
    "gitlab": "glpat-" + LONG[:20],
    "slack": "xoxb-1234567890-" + LONG[:16],
    "hugging face": "hf_" + LONG[:30],
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + LONG[:35],
    "web token": f"eyJhbGciOiJIUzI1NiJ9.{TOKEN}.{LONG[:30]}",
    "without a prefix": LONG,
    "hexadecimal": "0123456789abcdef" * 4,
    "private": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("text", ["{}", "use {} for it", '{{"key": "{}"}}', "a={}&b=1", "line\n{}\nline"])
def test_what_looks_like_a_key_is_taken_out(key: str, text: str) -> None:
    """Anywhere in a text."""
    cleaned = redact(text.format(key))

    assert key not in cleaned
    assert PLACEHOLDER in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh",
        "authorization=Basic dXNlcjpwYXNz",
        "api_key=short1",
        "x-api-key: short1",
        '"client_secret": "short1"',
        "password=hunter22",
        "access_token=short1",
        "postgres://user:hunter22@localhost/db",
    ],
)
def test_what_is_called_a_secret_is_taken_out(text: str) -> None:
    """Whatever it looks like, its name tells."""
    cleaned = redact(text)

    assert PLACEHOLDER in cleaned
    assert not any(secret in cleaned for secret in ("abcdefgh", "dXNlcjpwYXNz", "short1", "hunter22"))


def test_a_value_under_the_name_of_a_secret_is_taken_out() -> None:
    """In objects, however deep."""
    assert {"one": [{"api_key": PLACEHOLDER, "to": "ada"}]} == redact({"one": [{"api_key": "x", "to": "ada"}]})


def test_what_a_client_proved_itself_with_is_taken_out() -> None:
    """The credentials of the head of a request are secret, even if they look like plain words."""
    known = find_credentials({"Authorization": "Bearer blue", "X-Api-Key": "green", "Accept": "red"})

    assert f"{PLACEHOLDER} {PLACEHOLDER} red" == redact("blue green red", known)


@pytest.mark.parametrize(
    "text",
    [
        "Pay 500 to ada for the invoice 2024-01-31",
        "call_0123456789",
        "the token of the game is a red hat",
        "src/pytest_approvals/conversations/recording/capture.py",
        "antidisestablishmentarianism",
        "https://example.org/a/long/path/to/some/page.html",
    ],
)
def test_plain_text_stays(text: str) -> None:
    """What is no secret is not touched."""
    assert text == redact(text)


def test_the_type_of_a_parameter_stays_below_the_name_of_a_secret() -> None:
    """A scenario's tool may have a parameter `password`; what a call gives for it is taken out."""
    kept = frozenset({"string", "call_" + LONG})
    document = {"parameters": {"password": "string"}, "id": "call_" + LONG, "arguments": {"password": "x"}}

    assert {**document, "arguments": {"password": PLACEHOLDER}} == redact(document, (), kept)
    assert PLACEHOLDER == redact("call_" + LONG, ["call_" + LONG], kept)
