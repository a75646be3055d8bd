"""Threads of Messages: conversations that the provider holds, and what a request that continues one may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.protocols.messages.bodies import is_continued
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.text import object_or_empty

_CREATE_ONLY = ("system", "tools")


@dataclass(slots=True)
class StoredThread:
    """A conversation up to a response of the provider, which holds it.

    Attributes:
        fields: What the request that created it said, which the following ones do not repeat.
        messages: The messages up to the response, with it.
        is_continued: Whether a request has continued from the response.
    """

    fields: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    is_continued: bool = False


Threads = dict[str, StoredThread]
"""The threads by the ids of the responses that they can be continued from."""


def previous_of(body: Mapping[str, Any]) -> str | None:
    """Return the id of the response that a request continues from; None if it continues no thread."""
    return str(object_or_empty(body["thread"]).get("previous_message_id")) if is_continued(body) else None


def find_thread_errors(body: Mapping[str, Any], threads: Threads) -> Iterator[ProviderError]:
    """Yield what is wrong with the thread that a request continues.

    The codes and what they mean are those of `ThreadNotFoundError` and `ThreadAlreadyContinuedError` of anthropic
    2.12.0; its `CREATE_ONLY_FIELDS` are what "the server takes from the thread on a `continue` and rejects if the
    request repeats them" (2026-11-23).
    """
    previous = previous_of(body)
    if previous is None:
        return
    thread = threads.get(previous)
    if thread is None:
        text = f"thread: No usable Thread state was found for `previous_message_id` {previous}."
        code = "thread_not_found"
        yield ProviderError(rule="thread-not-found", text=text, status=404, kind="not_found_error", code=code)
    elif thread.is_continued:
        text = f"thread: The response {previous} has already been continued, and each can be continued only once."
        yield ProviderError(rule="thread-already-continued", text=text, code="thread_already_continued")
    for name in _CREATE_ONLY:
        if name in body:
            text = f"{name}: cannot be set on a request that continues a thread"
            yield ProviderError(rule="thread-repeats-fields", text=text)


def resolve_thread(body: Mapping[str, Any], threads: Threads) -> Mapping[str, Any]:
    """Return a body with what the provider holds of its conversation."""
    thread = threads.get(previous_of(body) or "")
    if thread is None:
        return body
    return {**body, **thread.fields, "messages": [*thread.messages, *body["messages"]]}


def store_thread(body: Mapping[str, Any], threads: Threads, message: Mapping[str, Any]) -> None:
    """Hold the conversation of a resolved body under the id of its response, if it asks for that."""
    if not body.get("thread"):
        return
    previous = previous_of(body)
    if previous in threads:
        threads[previous].is_continued = True
    fields = {name: body[name] for name in _CREATE_ONLY if name in body}
    said = {"role": "assistant", "content": message["content"]}
    threads[message["id"]] = StoredThread(fields, (*body["messages"], *([said] if said["content"] else [])))
