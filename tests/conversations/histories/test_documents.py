"""Documents of a text: however it is cut, whatever is wrong with it."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc

import pytest

from pytest_approvals.conversations.histories.documents import CHUNK_SIZE, DocumentReader
from pytest_approvals.conversations.histories.positions import find_offsets
from pytest_approvals.errors import HistoryError

TWO = [{"m": 1}, {"m": [2, "a\nb"]}]


def documents(text: str, size: int | None = None):
    """Return what is found in a text that is taken in pieces of that many characters."""
    file = io.StringIO(text, newline="")
    return list(DocumentReader(lambda wanted: file.read(size or wanted), known))


def known(value):
    """A document of the tests is an object with an m."""
    return "known" if isinstance(value, dict) and "m" in value else None


def told(found):
    """Return the value and the line of each document, or what is wrong and the line."""
    return [(each.what, each.line) if isinstance(each, HistoryError) else (each.value, each.line) for each in found]


@pytest.mark.parametrize("size", [1, 2, 7, None])
def test_lines_are_documents(size) -> None:
    """Each has its line; empty lines count and are left out."""
    text = json.dumps(TWO[0]) + "\n\n" + json.dumps(TWO[1])

    assert [(TWO[0], 1), (TWO[1], 3)] == told(documents(text, size))


@pytest.mark.parametrize("size", [1, 2, 7, None])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_documents_is_taken_apart(size, indent) -> None:
    """Each element is a document, with its number and its line."""
    found = documents(json.dumps(TWO, indent=indent), size)

    assert TWO == [each.value for each in found]
    assert [0, 1] == [each.element for each in found]
    assert ([1, 1] if indent is None else [2, 5]) == [each.line for each in found]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("end", ["", "\n"])
def test_elements_of_a_list_may_look_alike_and_differ(indent, end) -> None:
    """Where one ends is not guessed wrongly."""
    whole = [{"m": 1}, {"m": [{"m": 1}, {"m": 1}]}, {"m": '},{"m":1'}, {"m": 1}, {"m": {"m": 1}}, {"m": 2}]
    separators = None if indent else (",", ":")
    found = documents(json.dumps(whole, indent=indent, separators=separators) + end)

    assert whole == [each.value for each in found]


@pytest.mark.parametrize("size", [1, 7, None])
def test_a_list_of_anything_else_is_one_document(size) -> None:
    """It is for a reader to say what it is."""
    assert [([1, {"a": 2}], 1)] == told(documents('[1, {"a": 2}]', size))


@pytest.mark.parametrize("size", [7, None])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_list_of_known_documents_that_is_known_itself_is_one_document(size, end) -> None:
    """As a history of states is one conversation, whatever its size."""
    file = io.StringIO(json.dumps(TWO) + end)
    found = list(DocumentReader(lambda wanted: file.read(size or wanted), lambda value: "any"))

    assert [(TWO, None)] == [(each.value, each.element) for each in found]


def test_the_first_document_of_a_list_may_be_larger_than_a_chunk() -> None:
    """The list is taken apart all the same."""
    large = {"m": "x" * (CHUNK_SIZE + 10)}

    assert [0, 1] == [each.element for each in documents(json.dumps([large, {"m": 1}]))]


def test_documents_may_follow_each_other() -> None:
    """They need not be on separate lines."""
    assert [({"m": 1}, 1), ({"m": 2}, 1)] == told(documents('{"m": 1} {"m": 2}'))


def test_the_line_of_a_place_is_found() -> None:
    """A path leads to its line."""
    (document,) = documents('\n{"m": [\n1,\n{"a": "\\n", "b":\n2}]}')

    assert [2, 2, 3, 4, 5] == document.lines_of([(), ("m",), ("m", 0), ("m", 1, "a"), ("m", 1, "b")])


def test_a_path_that_leads_nowhere_ends_on_the_way() -> None:
    """The last value on the way is told."""
    text = '{"a": {"b": 1}}'

    assert [text.index('{"b"')] == find_offsets(text, 0, [("a", "c", 7)])


WRONG = {
    "truncated": ('{"m": [1, 2', "truncated: the text ends within a document", 1),
    "truncated text": ('{"m": "abc', "truncated: the text ends within a document", 1),
    "truncated list": ('[{"m": 1}, {"m": 2}', "truncated: the text ends where ',' or ']' is expected", 1),
    "no JSON": ('{"m": 1,}' + " " * 20, "not JSON: ", 1),
    "YAML": ("!!python/object/apply:os.system ['true']", "not JSON: a conversation begins with { or [", 1),
    "a name twice": ('{"m":\n1, "a": {"b": 1,\n"b": 2}}', "one object has the name 'b' twice", 3),
    "a name twice in a line": ('{"m": 1, "m": 2}\n', "one object has the name 'm' twice", 1),
    "a name twice, escaped": ('{"m": 1, "\\u006d": 2}\n', "one object has the name 'm' twice", 1),
    "a name twice, and colons": ('{"m": "\\u003a", "a": 1, "a": 2}\n', "one object has the name 'a' twice", 1),
    "a control character": ('{"m": "a\x1b[31m"}' + " " * 20, "not JSON: invalid control character", 1),
    "deep": ("[" * 100_000 + "]" * 100_000, "nested too deep", 1),
    "endless": ('{"m":' * 100_000, "nested too deep", 1),
    "digits": ('{"m": ' + "1" * 10_000 + "}", "a number has too many digits", 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_reported_with_its_line(name) -> None:
    """A clear sentence, and nothing else."""
    text, what, line = WRONG[name]
    *_, mistake = documents(text)

    assert isinstance(mistake, HistoryError)
    assert mistake.what.startswith(what) or what in mistake.what
    assert line == mistake.line


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize("bad", ["{bad}", '{"m": 1, "m": 2}', '{"m": [}', "nonsense"])
def test_a_bad_line_does_not_stop_the_others(bad, size) -> None:
    """The next line is read."""
    found = documents(f'{{"m": 1}}\n{bad}{" " * 20}\n{{"m": 2}}\n', size)

    assert [({"m": 1}, 1), ({"m": 2}, 3)] == [told([each])[0] for each in found if not isinstance(each, HistoryError)]
    assert [2] == [each.line for each in found if isinstance(each, HistoryError)]


def test_big_numbers_keep_their_digits() -> None:
    """Arguments are compared; two account numbers that differ in the last digit are two."""
    (document,) = documents('{"m": 123456789012345678901234567890}\n')

    assert 123456789012345678901234567890 == document.value["m"]


def test_what_is_no_number_of_json_is_a_text() -> None:
    """Python writes NaN; it equals itself here."""
    (document,) = documents('{"m": NaN}\n')

    assert {"m": "NaN"} == document.value


def test_memory_is_bounded_by_the_largest_document() -> None:
    """A list that is many times larger than a piece is never whole in memory."""
    one = json.dumps({"m": "x" * 50_000})
    pieces = iter(["[" + one, *[f",{one}"] * 2_000, "]"])
    kept = ""

    def take(size: int) -> str:
        nonlocal kept
        while len(kept) < size and (piece := next(pieces, "")):
            kept += piece
        given, kept = kept[:size], kept[size:]
        return given

    tracemalloc.start()
    count = sum(1 for _ in DocumentReader(take, known))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 2_001 == count
    assert peak < 12_000_000 < 2_001 * len(one) // 8


def test_an_enormous_document_is_refused(monkeypatch) -> None:
    """Before memory ends; what came before it is read."""
    monkeypatch.setattr("pytest_approvals.conversations.histories.documents.MAX_DOCUMENT_SIZE", 1_000)
    text = '{"m": 1}\n{"m": "' + "x" * 5_000 + '"}'
    one, mistake = documents(text, 100)

    assert ({"m": 1}, 2) == (one.value, mistake.line)
    assert mistake.what.startswith("one document has more than")


def test_deep_nesting_does_not_depend_on_the_stack() -> None:
    """What is read is nested less deep than Python can go."""
    depth = sys.getrecursionlimit() // 2
    (document,) = documents('{"m": ' + "[" * depth + "]" * depth + "}")

    assert [1] == document.lines_of([("m",)])
