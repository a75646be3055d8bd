"""What is shared holds nothing of the conversation: neither its texts nor the values of its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faker.providers.lorem.en_US import Provider
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pytest_approvals.conversations import lint
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.made_up_values import SECRET, MadeUpValues, hide_secrets, letter_runs
from pytest_approvals.conversations.reproduce.anonymize import anonymize, hide_draft_secrets
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import GENERATED_TEXTS, build_draft
from pytest_approvals.errors import ApprovalsError
from pytest_approvals.journal.arguments import parse_arguments

CONVERSATIONS = Path(__file__).parents[1]
FILES = sorted((CONVERSATIONS / "histories/stored").glob("*.json")) + sorted((CONVERSATIONS / "corpus").glob("*.json*"))


def words_of(value: Any) -> Iterator[str]:
    """Yield the runs of five or more letters in the texts of a value, without names of fields."""
    match value:
        case dict():
            yield from (word for inner in value.values() for word in words_of(inner))
        case list() | tuple():
            yield from (word for inner in value for word in words_of(inner))
        case str() if value not in GENERATED_TEXTS:
            yield from re.findall(r"[^\W\d_]{5,}", value.lower())


def stored_words(conversation: StoredConversation) -> set[str]:
    """Return the words in the texts and the arguments of a conversation."""
    values: list[Any] = []
    for entry in conversation.entries:
        if isinstance(entry, TextEntry):
            values.append(entry.text)
        elif isinstance(entry, CallEntry | RequestEntry):
            values.append(parse_arguments(entry.arguments))
        elif isinstance(entry, DecisionEntry):
            values += [entry.reason, entry.arguments]
        elif isinstance(entry, ResultEntry):
            values.append(entry.value)
    return set(words_of(values))


def draft_values(draft: ScenarioDraft) -> list[Any]:
    """Return the values of a draft but the texts that are not from its conversation."""
    values: list[Any] = []
    for turn in draft.turns:
        values += [turn.send, *(value for each in turn.decisions for value in (each.text, each.arguments))]
        values += [reply.say for reply in turn.replies]
    for call in draft.calls():
        values += [call.arguments, None if call.result is None else call.result.value]
    return [value for value in values if value not in GENERATED_TEXTS]


def left_words(draft: ScenarioDraft) -> set[str]:
    """Return the words in the values of a draft."""
    return set(words_of(draft_values(draft)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_word_of_a_stored_conversation_survives(path: Path) -> None:
    """Of texts and arguments no word of five or more letters is left; of names they are."""
    for stored in read_conversations([str(path)]):
        if isinstance(stored, LocatedConversation):
            try:
                draft = build_draft(stored.conversation)
            except ApprovalsError:
                continue
            made_up = anonymize(draft, GENERATED_TEXTS, stored.conversation.values())
            assert set() == left_words(made_up) & stored_words(stored.conversation)


def test_lengths_shapes_and_equality_are_kept() -> None:
    """What a bug may depend on stays: how long a value is, what it looks like, and which values are equal."""
    values = MadeUpValues()
    given = ["Alexandra", "INV-20451", 4711, "Alexandra", "a text of some length", "https://example.org/a?b=12"]

    made = values.replace(given)

    assert [len(str(each)) for each in given] == [len(str(each)) for each in made]
    assert made[0] == made[3]
    assert made[0] != given[0]
    assert re.fullmatch(r"[A-Z]{3}-\d{5}", made[1])
    assert made[5].startswith("https://")


def test_the_value_of_a_secrets_name_is_never_shown() -> None:
    """Whether or not other values are made up."""
    given = {"api_key": "sk-12345", "amount": 5, "inner": [{"password": "hunter2", "Token": 77}]}
    expected = {"api_key": SECRET, "amount": 5, "inner": [{"password": SECRET, "Token": SECRET}]}

    assert expected == hide_secrets(given)
    assert SECRET == MadeUpValues().replace(given)["api_key"]


def test_secrets_are_hidden_in_scenarios(written: Any) -> None:
    """A reproduction without made-up values has none of them, either."""
    call = written.call("login", "c1", {"password": "hunter2", "user": "ada"})
    draft = hide_draft_secrets(written.draft(written.message("user", "go"), written.message("assistant", call)))

    assert [{"password": SECRET, "user": "ada"}] == [call.arguments for call in draft.calls()]


def test_lint_shows_made_up_values(tmp_path: Path) -> None:
    """A finding still says that two values differ, and not which."""
    told = (
        '[{"role": "user", "contents": [{"$type": "text", "text": "Refund"}]}, {"role": "assistant", "contents": [%s]}]'
    )
    call = (
        '{"$type": "functionCall", "callId": "c1", "name": "refund", "arguments": {"to": "Alexandra", "password": "x"}}'
    )
    path = tmp_path / "stored.json"
    path.write_text(told % f"{call}, {call}")
    (stored,) = read_conversations([str(path)])
    assert isinstance(stored, LocatedConversation)

    shown = [finding.text for finding in lint_conversation(stored.conversation)]
    redacted = [finding.text for finding in lint_conversation(stored.conversation, (), MadeUpValues())]

    assert any('refund(password="[secret]", to="Alexandra")' in text for text in shown)
    assert not any("Alexandra" in text for text in redacted)
    assert [text.partition("(")[0] for text in shown] == [text.partition("(")[0] for text in redacted]


LETTERS = st.text(st.characters(categories=("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Nd")), min_size=1, max_size=12)
ENGLISH = st.sampled_from([word for word in Provider.word_list if len(word) > 4])
SENTENCES = st.lists(ENGLISH, min_size=4, max_size=40).map(" ".join)
WORDS = LETTERS | st.text("abcdeABCDE", min_size=3, max_size=9) | ENGLISH
"""What a made-up word may be by accident, too."""

GAPS = st.sampled_from(list(" .,-_/@:?=#\n'\"{}[]%"))
PHRASES = st.builds("{}{}{}{}{}".format, WORDS, GAPS, WORDS, GAPS, WORDS)
FORMS = st.sampled_from(
    [
        "{}@{}.org",
        "https://{}/{}?q=1",
        "{}/{}.xlsx",
        "{} {}",
        "C:\\{}\\{}",
        "[{}]({})",
        "{}://{}",
        '{{"{}": "{}"}}',
        "{}.{}",
    ]
)
"""What a text may look like, with two words in it."""

TEXTS = (
    WORDS
    | PHRASES
    | SENTENCES
    | st.builds(lambda form, one, other: form.format(one, other), FORMS, WORDS, WORDS)
    | st.text()
)
NAMES = st.sampled_from(["to", "n", "note", "password", "api_key", "items"])
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)

LINT = Path(lint.__file__).parent
OUR_WORDS = {run for path in LINT.glob("*.py") for run in letter_runs(path.read_text(encoding="utf-8"))} | {"false"}
"""What lint may say itself, and JSON's `false`: Hypothesis draws words of our code, too."""

# Without shrinking, which takes minutes on texts of this kind.
private = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)


def given_runs(*values: Any) -> set[str]:
    """Return all runs of five letters in the texts of values, without the schemes of web addresses."""
    texts = [re.sub(r"\bhttps?://", "//", text, flags=re.IGNORECASE) for value in values for text in texts_of(value)]
    return {run for text in texts for run in letter_runs(text)}


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts in a value, without the names of fields."""
    match value:
        case dict():
            yield from (text for inner in value.values() for text in texts_of(inner))
        case list() | tuple():
            yield from (text for inner in value for text in texts_of(inner))
        case str():
            yield value.replace(SECRET, "")


@private
@given(said=TEXTS, arguments=ARGUMENTS, other=ARGUMENTS, result=VALUES, reason=TEXTS)
def test_no_five_letters_of_any_conversation_are_left(
    said: str, arguments: dict[str, Any], other: dict[str, Any], result: Any, reason: str
) -> None:
    """In the scenario that is shared, whatever the texts, arguments, results and reasons look like."""
    shown = {"$type": "functionCall", "name": "pay", "arguments": arguments, "callId": "c1"}
    answer = {"approved": False, "reason": reason, "toolCall": shown | {"arguments": other}}
    document = [
        {"role": "user", "contents": [{"$type": "text", "text": said}]},
        {"role": "assistant", "contents": [{"$type": "toolApprovalRequest", "requestId": "r1", "toolCall": shown}]},
        {"role": "user", "contents": [{"$type": "toolApprovalResponse", "requestId": "r1", **answer}]},
        {"role": "assistant", "contents": [shown]},
        {"role": "tool", "contents": [{"$type": "functionResult", "callId": "c1", "result": result}]},
        {"role": "assistant", "contents": [{"$type": "text", "text": said}]},
    ]
    conversation = FormatDetector().read(document)
    own = given_runs(said, arguments, other, result, reason) - given_runs(list(GENERATED_TEXTS))

    draft = anonymize(build_draft(conversation), GENERATED_TEXTS, conversation.values())
    assert set() == own & given_runs(*draft_values(draft))

    told = [finding.text for finding in lint_conversation(conversation, (), MadeUpValues())]
    assert set() == (own - OUR_WORDS) & given_runs(told)
