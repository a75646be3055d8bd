"""Hostile histories: each becomes a conversation or a clear error, and nothing else."""

from __future__ import annotations

import copy
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_approvals.conversations.histories.files import LocatedConversation, TextPlace, _read_file
from pytest_approvals.conversations.histories.journal import build_journal
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, get_reader
from pytest_approvals.conversations.histories.spans.collector import SpanCollector
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.linter import FORMATTERS, error_message, finding_messages
from pytest_approvals.errors import HistoryError
from pytest_approvals.journal.validation import find_violations

STORED = {
    "meai": "done",
    "agent_framework": "done",
    "openai_agents": "done",
    "openai_agents_js": "done",
    "pydantic_ai": "done",
    "langgraph_checkpoints": "done",
    "langchain_dict": "done",
    "ai_sdk": "done",
    "ai_sdk_ui": "done",
    "chat": "sent",
    "messages": "sent",
    "responses": "sent",
}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)

calm = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def places(value, path=()):
    """Return the paths to all values of a document."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inside:
        yield from places(part, (*path, step))


def changed(document, path, value):
    """Return a document with another value at a path."""
    if not path:
        return value
    whole = copy.deepcopy(document)
    held = whole
    for step in path[:-1]:
        held = held[step]
    held[path[-1]] = value
    return whole


def form_of(name):
    """Return the format of what is stored under a name."""
    return max((each for each in FORMATS if name.startswith(each)), key=len)


def looked_at(name, document):
    """Goes the whole way that a conversation goes."""
    try:
        read = FormatDetector(name).read(document)
    except HistoryError:
        return
    assert [] == find_violations(build_journal(read))
    for finding in lint_conversation(read, ["p*"]):
        assert finding.text
        assert finding.where is not None
    for entry in read.entries:
        assert read.where(entry)


@pytest.mark.parametrize("name", STORED)
@calm
@given(data=st.data())
def test_any_change_is_read_or_refused(document, name, data) -> None:
    """A value anywhere in a document may be anything."""
    whole = document(name, STORED[name])
    path = data.draw(st.sampled_from(list(places(whole))))
    looked_at(form_of(name), changed(whole, path, data.draw(values)))


@pytest.mark.parametrize("name", STORED)
@calm
@given(data=st.data())
def test_anything_may_be_missing_or_repeated(document, name, data) -> None:
    """Messages may be lost, repeated, and come in any order."""
    whole = copy.deepcopy(document(name, STORED[name]))
    lists = [held for path in places(whole) if isinstance(held := at(whole, path), list) and held]
    held = data.draw(st.sampled_from(lists))
    held[:] = data.draw(st.lists(st.sampled_from(list(held)), max_size=6))
    looked_at(form_of(name), whole)


def at(document, path):
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


@pytest.mark.parametrize("name", FORMATS)
@calm
@given(value=values)
def test_anything_at_all_is_read_or_refused(name, value) -> None:
    """With a named format, too."""
    get_reader(name).matches(value)
    looked_at(name, value)


@calm
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(str.encode), start=st.integers(0, 80))
def test_any_bytes_are_a_conversation_or_a_mistake(data, start) -> None:
    """Anywhere in a file; every way of writing it is harmless."""
    whole = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]).encode()
    file = io.BytesIO(whole[:start] + data + whole[start:])
    for stored in _read_file(file, "a.json", FormatDetector(), SpanCollector(), in_folder=False):
        is_mistake = isinstance(stored, HistoryError)
        messages = (
            [error_message(stored)] if is_mistake else finding_messages(lint_conversation(stored.conversation), stored)
        )
        for each in messages:
            assert all(write(each).isprintable() for write in FORMATTERS.values())


@calm
@given(text=st.text())
def test_what_is_shown_is_harmless(text) -> None:
    """Names and arguments may hold anything; a line stays a line, and a terminal does nothing."""
    made = {"$type": "functionCall", "callId": text, "name": text, "arguments": {text: text}}
    call = [{"role": "assistant", "contents": [made, {"$type": text}]}]
    conversation = FormatDetector("meai").read([*call, *call])
    stored = LocatedConversation(conversation, text, 1, lambda paths: [TextPlace(text, 1)] * len(paths))
    for message in finding_messages(lint_conversation(conversation), stored):
        assert all(write(message).isprintable() for write in FORMATTERS.values())
