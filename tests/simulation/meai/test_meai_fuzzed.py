"""The program is given anything at all: an outcome or a sentence, never a traceback."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_approvals.simulation.meai.__main__ import main
from pytest_approvals.simulation.meai.json_messages import known_types
from pytest_approvals.simulation.meai.releases import BEHAVIOURS

KEYS = st.sampled_from(
    ["$type", "callId", "name", "arguments", "informationalOnly", "requestId", "id", "toolCall", "functionCall",
     "approved", "reason", "result", "outputs", "text", "role", "contents", "messageId", "requiresConfirmation"]
)  # fmt: skip
WORDS = st.sampled_from([*known_types(), "a", "b", "wipe", "user", "assistant", "", " ", "\ud800"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | WORDS, inner, max_size=5),
    max_leaves=12,
)


@st.composite
def contents(draw: st.DrawFn) -> Any:
    call = {
        "$type": "functionCall",
        "callId": draw(st.sampled_from("ab")),
        "name": "wipe",
        "informationalOnly": draw(BOOLS),
    }
    asked = {"requestId": draw(st.sampled_from("rs")), "toolCall": call}
    made = [
        call,
        {"$type": "toolApprovalRequest", **asked},
        {"$type": "toolApprovalResponse", "approved": draw(BOOLS), **asked},
        {"$type": "functionResult", "callId": call["callId"], "result": draw(VALUES)},
        {"$type": "text", "text": "x"},
        draw(VALUES),
    ]
    return draw(st.sampled_from(made))


BOOLS = st.booleans()
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "contents": st.lists(contents(), max_size=4)}
    )
    | VALUES,
    max_size=5,
)
CASES = st.fixed_dictionaries(
    {
        "behaviour": st.sampled_from([*BEHAVIOURS]),
        "streaming": BOOLS,
        "conversation_id": st.sampled_from([None, "conv"]),
        "tools": st.just([{"name": "wipe", "approval_required": True}]),
        "model": st.lists(MESSAGES, min_size=3, max_size=5),
        "messages": MESSAGES,
    }
)


def run(given_bytes: bytes) -> tuple[int, str, str]:
    out, complaints = io.BytesIO(), io.StringIO()
    return main(io.BytesIO(given_bytes), out, complaints), out.getvalue().decode(), complaints.getvalue()


def judge(code: int, out: str, complaints: str) -> None:
    """An outcome that is JSON, or one line that is no traceback and does nothing to a terminal."""
    if code == 0:
        assert {"messages", "model_inputs", "invocations", "messages_after", "error", "pulled"} == set(json.loads(out))
    else:
        assert (2, "") == (code, out)
        assert complaints.startswith("meai: ")
    assert complaints.replace("\n", "").isprintable()


@settings(deadline=None, max_examples=200)
@given(case=CASES)
def test_any_case_has_an_outcome_or_a_sentence(case: Any) -> None:
    """With any contents in its messages."""
    judge(*run(json.dumps(case).encode()))


@settings(deadline=None, max_examples=100)
@given(value=VALUES)
def test_any_document_has_a_sentence(value: Any) -> None:
    """Of any shape."""
    judge(*run(json.dumps(value).encode()))


@settings(deadline=None, max_examples=100)
@given(value=st.binary(max_size=60))
def test_any_bytes_have_a_sentence(value: bytes) -> None:
    """In any encoding."""
    judge(*run(value))
