"""Every format: it is recognised, and its reader gives the one story that each library stored."""

from __future__ import annotations

import pytest

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    TextEntry,
)
from pytest_approvals.conversations.histories.journal import build_journal
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, detect_format, get_reader
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.errors import HistoryError, UnknownName
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.journal.validation import find_violations

STORIES = [
    ("meai", "meai", "paused"),
    ("meai", "meai", "done"),
    ("meai", "meai", "session"),
    ("meai", "meai", "earlier"),
    ("agent_framework", "agent_framework", "paused"),
    ("agent_framework", "agent_framework", "done"),
    ("openai_agents", "openai_agents", "paused"),
    ("openai_agents", "openai_agents", "decided"),
    ("openai_agents", "openai_agents", "done"),
    ("openai_agents_js", "openai_agents", "paused"),
    ("openai_agents_js", "openai_agents", "decided"),
    ("openai_agents_js", "openai_agents", "done"),
    ("openai_agents", "responses", "input_list"),
    ("pydantic_ai", "pydantic_ai", "paused"),
    ("pydantic_ai", "pydantic_ai", "done"),
    ("google_adk", "google_adk", "paused"),
    ("google_adk", "google_adk", "done"),
    ("langgraph_state", "langgraph", "paused"),
    ("langgraph_state", "langgraph", "done"),
    ("langgraph_checkpoints", "langgraph", "paused"),
    ("langgraph_checkpoints", "langgraph", "done"),
    ("langchain_dict", "langchain", "paused"),
    ("langchain_dict", "langchain", "done"),
    ("langchain_dumpd", "langchain", "done"),
    ("langchain_model", "langchain", "done"),
    ("ai_sdk", "ai_sdk", "paused"),
    ("ai_sdk", "ai_sdk", "done"),
    ("ai_sdk_ui", "ai_sdk_ui", "paused"),
    ("ai_sdk_ui", "ai_sdk_ui", "decided"),
    ("ai_sdk_ui", "ai_sdk_ui", "done"),
    ("autogen_run", "autogen", "done"),
    ("autogen", "autogen", "done"),
    ("claude_code", "claude_code", "done"),
    ("acp_claude_code", "acp", "done"),
    ("acp_opencode", "acp", "done"),
    ("opencode", "opencode", "done"),
    ("opencode", "opencode", "paused"),
    ("chat", "chat", "sent"),
    ("messages", "messages", "sent"),
    ("responses", "responses", "sent"),
]
"""What stored the story, the format that it is of, and how far the story is."""

FINISHED = ("done", "session", "earlier")
ANSWERED = (
    "meai",
    "agent_framework",
    "openai_agents",
    "openai_agents_js",
    "google_adk",
    "langgraph_checkpoints",
    "ai_sdk",
    "ai_sdk_ui",
    "claude_code",
    "acp_claude_code",
    "acp_opencode",
)
"""What stores requests and decisions, too."""
WITHOUT_REASONS = ("agent_framework", "google_adk", "acp_claude_code", "acp_opencode")

stories = pytest.mark.parametrize(("stored", "name", "how"), STORIES, ids=lambda word: word)


def test_every_format_has_a_story() -> None:
    """No reader is without something that a library wrote; those of many files are in tests of their own."""
    assert set(FORMATS) - {"agno", "spans", "strands"} == {name for _, name, _ in STORIES}


@stories
def test_is_recognised(document, stored, name, how) -> None:
    """A document says by its structure what it is."""
    reader = detect_format(document(stored, how))

    assert get_reader(name) is reader


@stories
def test_only_its_own_reader_is_sure(document, stored, name, how) -> None:
    """No two readers claim the same document for sure."""
    sure = [other for other in FORMATS if get_reader(other).matches(document(stored, how))]

    assert sure in ([name], [])


@stories
def test_calls_are_those_of_the_story(document, stored, name, how) -> None:
    """Id, tool and arguments of each call are there, whether it is a call or a request in place of one."""
    read = FormatDetector().read(document(stored, how))
    calls = {
        # OpenCode names a tool by its server, too.
        entry.id if isinstance(entry, CallEntry) else entry.call_id: (
            entry.tool.removeprefix("bank_"),
            parse_arguments(entry.arguments),
        )
        for entry in read.entries
        if isinstance(entry, CallEntry | RequestEntry)
    }

    assert {"c1": ("pay", {"amount": 5}), "c2": ("pay", {"amount": 6}), "c3": ("read", {"path": "x"})} == calls


@stories
def test_texts_are_those_of_the_story(document, stored, name, how) -> None:
    """What user and model say is there, in order."""
    read = FormatDetector().read(document(stored, how))
    said = [(entry.role, entry.text) for entry in read.of(TextEntry)]
    end = [("assistant", "Done.")] if how in FINISHED else []

    assert [("user", "Pay 5 and 6"), ("assistant", "Let me see."), *end] == said[: 3 if end else 2]


@pytest.mark.parametrize(
    ("stored", "name", "how"), [each for each in STORIES if each[0] in ANSWERED and each[2] != "input_list"]
)
def test_requests_are_those_of_the_story(document, stored, name, how) -> None:
    """Both gated calls were asked about; where the story continues, one was approved and one rejected with a reason."""
    read = FormatDetector().read(document(stored, how))
    asked = {entry.id: entry.call_id for entry in read.of(RequestEntry) if entry.call_id != "c3"}
    decided = {asked[entry.id]: entry.verdict for entry in read.of(DecisionEntry) if entry.id in asked}

    assert {"c1", "c2"} == set(asked.values())
    assert ({} if how == "paused" else {"c1": "approve", "c2": "reject"}) == decided


@pytest.mark.parametrize("stored", [each for each in ANSWERED if each not in WITHOUT_REASONS])
def test_a_reason_is_kept(document, stored) -> None:
    """What a user said when they rejected a call is there, where the format has a place for it."""
    read = FormatDetector().read(document(stored, "done"))

    assert ["no 6"] == [entry.reason for entry in read.of(DecisionEntry) if entry.verdict == "reject"]


@pytest.mark.parametrize(("stored", "name", "how"), [each for each in STORIES if each[2] in (*FINISHED, "sent")])
def test_results_are_those_of_the_story(document, stored, name, how) -> None:
    """Each call has one result."""
    read = FormatDetector().read(document(stored, how))
    results = {entry.call_id: entry.value for entry in read.of(ResultEntry)}

    assert ["c1", "c2", "c3"] == sorted(entry.call_id for entry in read.of(ResultEntry))
    assert ("paid 5", "text of x") == (results["c1"], results["c3"])


@stories
def test_what_a_library_stored_has_no_mistake(document, stored, name, how) -> None:
    """Lint finds nothing in it; what waits for a user is told."""
    found = lint_conversation(FormatDetector().read(document(stored, how)))

    assert [] == [(each.rule, each.text) for each in found if each.is_mistake]
    assert (how in (*FINISHED, "sent", "input_list")) == (not found)


@stories
def test_its_journal_keeps_the_grammar(document, stored, name, how) -> None:
    """What it tells as a journal is a journal."""
    assert [] == find_violations(build_journal(FormatDetector().read(document(stored, how))))


@stories
def test_places_lead_back_to_the_document(document, stored, name, how) -> None:
    """The path of every entry leads to a value of the document."""
    whole = document(stored, how)
    read = FormatDetector().read(whole)

    for entry in read.entries:
        value = whole
        for step in read.path(entry):
            value = value[step]


def test_a_format_can_be_named(document) -> None:
    """Nothing is recognised then."""
    assert "chat" == FormatDetector("chat").read([{"role": "user", "content": "hi"}]).format


def test_the_nearest_format_is_named() -> None:
    """A format that does not exist is answered with one that does."""
    with pytest.raises(UnknownName, match="did you mean 'pydantic_ai'"):
        FormatDetector("pydantic-ai").read([])


def test_what_is_of_no_format_is_refused() -> None:
    """The formats are listed."""
    with pytest.raises(HistoryError, match="unknown format"):
        FormatDetector().read({"name": "a package"})


def test_a_ui_message_may_hold_a_decision_of_its_own() -> None:
    """Clients of agent servers send the answer as a message, as it is among the messages of the model."""
    asked = {
        "type": "tool-delete",
        "toolCallId": "c1",
        "state": "approval-requested",
        "input": {},
        "approval": {"id": "a1"},
    }
    answer = {"type": "tool-approval-response", "approvalId": "a1", "approved": True, "reason": "fine"}
    read = FormatDetector().read([{"role": "assistant", "parts": [asked]}, {"role": "tool", "parts": [answer]}])

    assert [("a1", "approve", "fine")] == [(each.id, each.verdict, each.reason) for each in read.of(DecisionEntry)]


@pytest.mark.parametrize("is_nested", [True, False])
def test_an_invocation_of_ai_sdk_4_names_its_tool(is_nested: bool) -> None:
    """In a part of one type for all tools, which once held an object of its own."""
    held = {"toolCallId": "c1", "toolName": "look", "state": "result", "args": {"at": "x"}, "result": "seen"}
    part = {"type": "tool-invocation", **({"toolInvocation": held} if is_nested else held)}
    read = FormatDetector().read([{"role": "assistant", "parts": [part]}])

    assert [("c1", "look", {"at": "x"})] == [(each.id, each.tool, each.arguments) for each in read.of(CallEntry)]
    assert [("c1", "seen", "returned")] == [(each.call_id, each.value, each.outcome) for each in read.of(ResultEntry)]


def test_a_dynamic_tool_without_a_name_is_still_a_call() -> None:
    """It has its approval and its result, and what is missing is told once, with its place."""
    part = {
        "type": "dynamic-tool",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"at": "x"},
        "output": "seen",
        "approval": {"id": "a1", "approved": True},
    }
    read = FormatDetector().read([{"role": "user", "parts": []}, {"role": "assistant", "parts": [part]}])

    assert [("c1", "dynamic-tool")] == [(each.id, each.tool) for each in read.of(CallEntry)]
    assert [("a1", "approve")] == [(each.id, each.verdict) for each in read.of(DecisionEntry)]
    assert ["seen"] == [each.value for each in read.of(ResultEntry)]
    (note,) = read.notes
    assert "[1].parts[0]: a dynamic tool has no toolName, and is called 'dynamic-tool' here" == str(note)


@pytest.mark.parametrize("approved", ["yes", 1, [], {}], ids=str)
def test_a_ui_answer_that_is_neither_yes_nor_no_approves_nothing(approved: object) -> None:
    """The library stores whatever a client has sent; a call that ran after it ran without an approval."""
    part = {
        "type": "tool-delete",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {},
        "output": "deleted",
        "approval": {"id": "a1", "approved": approved},
    }
    read = FormatDetector().read([{"role": "assistant", "parts": [part]}])

    assert ["raw"] == [each.verdict for each in read.of(DecisionEntry)]
    assert ["rejected-never-runs"] == [finding.rule for finding in lint_conversation(read)]
