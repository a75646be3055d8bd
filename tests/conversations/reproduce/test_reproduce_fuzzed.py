"""Any conversation becomes a scenario that loads, or is refused with a sentence."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.anonymize import anonymize
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import build_scenario
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.errors import ApprovalsError
from pytest_approvals.scenario.to_file import format_yaml
from pytest_approvals.yaml_files.document import parse_yaml

ODD = [
    "",
    " ",
    "no",
    "1e3",
    "{{fake name}}",
    "{x}",
    "fake",
    "from",
    "a: b",
    "- a",
    "#",
    "!!str",
    "\x1b[0m",
    "\u2028",
    "'",
    '"',
    "integer?",
]
TEXTS = st.sampled_from(ODD) | st.text(max_size=12)
NAMES = st.sampled_from(["pay", "look", "2much", "from", "fake", "ä", "x y"]) | TEXTS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
IDS = st.sampled_from(["a", "b", "c"])


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    arguments = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    return {"$type": "functionCall", "callId": draw(IDS), "name": draw(NAMES), "arguments": arguments}


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    call = draw(calls())
    return draw(
        st.sampled_from(
            [
                {"$type": "text", "text": draw(TEXTS)},
                call,
                {"$type": "toolApprovalRequest", "requestId": f"r_{call['callId']}", "toolCall": call},
                {
                    "$type": "toolApprovalResponse",
                    "requestId": f"r_{draw(IDS)}",
                    "approved": draw(st.booleans()),
                    "toolCall": call,
                    "reason": draw(TEXTS),
                },
                {"$type": "functionResult", "callId": draw(IDS), "result": draw(VALUES)},
            ]
        )
    )


CONVERSATIONS = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "contents": st.lists(contents(), max_size=3)}
    ),
    min_size=1,
    max_size=6,
)


def drafted(messages: list[Any]) -> ScenarioDraft | None:
    try:
        return build_draft(FormatDetector("meai").read(messages))
    except ApprovalsError:
        return None


@settings(deadline=None, max_examples=150)
@given(messages=CONVERSATIONS)
def test_every_draft_is_a_scenario(messages: list[Any]) -> None:
    """Whatever tools, parameters and values are called, nothing of it can be misread."""
    draft = drafted(messages)
    if draft is not None:
        text = format_yaml(build_document(draft))
        assert text.replace("\n", "").isprintable()
        assert {} == build_scenario(draft).fakes


@settings(deadline=None, max_examples=100)
@given(messages=CONVERSATIONS)
def test_every_anonymous_draft_is_a_scenario(messages: list[Any]) -> None:
    """With other values in all places."""
    draft = drafted(messages)
    if draft is not None:
        build_scenario(anonymize(draft))


@settings(deadline=None, max_examples=200)
@given(value=VALUES)
def test_what_is_written_is_what_is_read(value: Any) -> None:
    """As plain values, without guessing."""
    document = {"title": "T", "model": [{"say": "x", "inside": value}]}
    assert _plain(document) == _plain(parse_yaml(format_yaml(document)).value)


@settings(deadline=None, max_examples=100)
@given(value=VALUES)
def test_what_is_written_is_read_alike_with_and_without_libyaml(value: Any) -> None:
    """PyYAML itself refuses some of what libyaml reads."""
    tools = {"pay": {"parameters": {"a": "integer?"}}}
    text = format_yaml({"title": "T", "tools": tools, "model": [{"inside": value}]})

    assert yaml.load(text, yaml.CSafeLoader) == yaml.load(text, yaml.SafeLoader)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case str():
            return str(value)
        case _:
            return value
