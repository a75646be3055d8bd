"""The program: a case on standard input, an outcome on standard output."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from pytest_approvals.simulation.meai.__main__ import main


def run(document: Any) -> tuple[int, str, str]:
    given = document if isinstance(document, bytes) else json.dumps(document).encode()
    out, complaints = io.BytesIO(), io.StringIO()
    code = main(io.BytesIO(given), out, complaints)
    return code, out.getvalue().decode(), complaints.getvalue()


def test_the_program_plays_a_case(meai: Any) -> None:
    """As anybody would call it."""
    case = {
        "behaviour": "10.4",
        "streaming": False,
        "conversation_id": None,
        "tools": [{**meai.WIPE, "raises": None, "terminates": False, "additional": False, "declaration_only": False}],
        "model": [[meai.assistant(meai.call("ä"))]],
        "messages": [meai.user("go")],
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest_approvals.simulation.meai"],
        input=json.dumps(case).encode(),
        capture_output=True,
        check=True,
    )
    assert {
        "messages": [meai.assistant(meai.ask(meai.call("ä")))],
        "model_inputs": [[meai.user("go")]],
        "invocations": [],
        "messages_after": [meai.user("go")],
        "error": None,
        "pulled": None,
    } == json.loads(done.stdout)
    assert b"" == done.stderr


def test_a_failure_of_the_client_is_an_outcome(meai: Any) -> None:
    """The program has done what it was asked to."""
    code, out, _ = run({"behaviour": "10.9", "messages": [meai.assistant(meai.ask(meai.call("a")))]})
    assert (0, "InvalidOperation") == (code, json.loads(out)["error"]["type"])


def test_notes_are_written_apart_from_the_outcome(meai: Any) -> None:
    """The outcome is not disturbed; what a terminal would act on is shown harmless."""
    odd = {"$type": "odd\x1b[2J", "x": 1}
    code, out, complaints = run({"behaviour": "10.9", "messages": [meai.user(odd)], "model": [[meai.assistant("ok")]]})
    assert (0, True) == (code, out.endswith("}\n"))
    assert "meai: note: messages[0].contents[0]: unknown $type 'odd\\x1b[2J', kept as it is\n" == complaints


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b"", "invalid JSON: line 1, column 1: Expecting value"),
        ([], "the case: must be an object, and is a list"),
        ({"messages": []}, "behaviour: is missing"),
        (
            {"behaviour": "10.5", "messages": []},
            "behaviour: unknown value '10.5'; valid: 10.2, 10.4, 10.6, 10.7, 10.9, robust",
        ),
        ({"behaviour": "10.9"}, "messages: is missing"),
        ({"behaviour": "10.9", "mesages": []}, "mesages: is unknown; did you mean 'messages'?"),
        (
            {"behaviour": "10.9", "messages": [], "tools": [{"name": "x", "return": ""}]},
            "tools[0].return: is unknown; did you mean 'returns'?",
        ),
        ({"behaviour": "10.9", "messages": [], "tools": [{}]}, "tools[0].name: is missing"),
        (
            {"behaviour": "10.9", "messages": [], "streaming": "yes"},
            "streaming: must be true or false, and is a text",
        ),
        (
            {"behaviour": "10.9", "messages": [], "model": [], "model_updates": []},
            "model_updates: cannot be combined with model; the model answers either in messages or in updates",
        ),
        (
            {"behaviour": "10.9", "messages": []},
            "model: has 0 turns, and the client calls the model once more; add a turn",
        ),
    ],
)
def test_a_case_that_cannot_be_used_is_refused(document: Any, complaint: str) -> None:
    """Exit code 2, nothing on standard output, and one line that says where and what."""
    assert (2, "", f"meai: {complaint}\n") == run(document)
