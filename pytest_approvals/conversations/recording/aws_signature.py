"""Signatures of AWS: a request that was signed for the proxy is signed again for the provider.

A signature covers the host that a request is sent to, so that of a client who was given the address of the proxy holds
for nothing else. The credentials are those of the user, found as every AWS client finds them: an API key of Bedrock, or
those that botocore signs with. Amazon's client for Python sends an API key over HTTPS only, and the proxy speaks HTTP;
so the recorder has the key, and the client signs with whatever it has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_approvals.errors import UsageError

_SCOPE = re.compile(r"AWS4-HMAC-SHA256\s+Credential=[^/\s]+/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
_SIGNED_ANEW = ("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256")
_API_KEY = "AWS_BEARER_TOKEN_BEDROCK"
_REMEDY = f"or set {_API_KEY} there to an API key of Bedrock"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """The header fields of a request that was signed anew, and the credentials that it was signed with."""

    headers: Mapping[str, str]
    secrets: frozenset[str]


def is_signed(headers: Mapping[str, str]) -> bool:
    """Return whether a request has a signature of AWS.

    >>> is_signed({"Authorization": "AWS4-HMAC-SHA256 Credential=A/20261128/us-east-1/bedrock/aws4_request, ..."})
    True
    >>> is_signed({"Authorization": "Bearer abc"})
    False
    """
    return _find_scope(headers) is not None


def sign_again(method: str, url: str, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    """Sign a request for another host, with the credentials of the user and for the same region and service.

    Args:
        method: The method of the request.
        url: Where it is sent, with its query.
        headers: Its header fields with the signature of the client.
        body: Its body.

    Raises:
        UsageError: botocore is not installed, or it finds no credentials.
    """
    scope = _find_scope(headers)
    assert scope is not None
    kept = {name: value for name, value in headers.items() if name.lower() not in _SIGNED_ANEW}
    if api_key := os.environ.get(_API_KEY):
        return SignedRequest(headers={**kept, "Authorization": f"Bearer {api_key}"}, secrets=frozenset({api_key}))
    try:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from botocore.session import get_session
    except ImportError:
        raise UsageError(
            f"Missing package botocore, which signs for the provider: install it where the recorder runs, {_REMEDY}"
        ) from None
    try:
        credentials = get_session().get_credentials()
        frozen = credentials.get_frozen_credentials() if credentials is not None else None
    except BotoCoreError as error:
        raise UsageError(
            f"Invalid AWS credentials of the recorder: {error}; correct them where it runs, {_REMEDY}"
        ) from None
    if frozen is None:
        raise UsageError(
            "Missing AWS credentials of the recorder: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE "
            f"where it runs, {_REMEDY}"
        )
    # Others may be changed on their way.
    covered = {name: value for name, value in kept.items() if name.lower() == "content-type"}
    request = AWSRequest(method=method, url=url, data=body, headers=covered)
    SigV4Auth(frozen, scope["service"], scope["region"]).add_auth(request)
    secrets = frozenset(filter(None, (frozen.access_key, frozen.secret_key, frozen.token)))
    return SignedRequest(headers={**kept, **dict(request.headers.items())}, secrets=secrets)


def _find_scope(headers: Mapping[str, str]) -> re.Match[str] | None:
    value = next((value for name, value in headers.items() if name.lower() == "authorization"), "")
    return _SCOPE.match(value)
