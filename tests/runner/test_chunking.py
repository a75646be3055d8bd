from __future__ import annotations

import json

import pytest

from pytest_approvals.agent_side.contract.types import ModelCall
from pytest_approvals.errors import UnknownName
from pytest_approvals.runner.stream_chunks import CHUNKINGS, split_reply

CALLS = (
    ModelCall(id="c1", tool="write", arguments={"text": 'ünï\n"quoted"', "times": 12}),
    ModelCall(id="c2", tool="read", arguments={"path": "a.txt"}),
    ModelCall(id=None, tool="read", arguments="{broken"),
)


@pytest.mark.parametrize("style", CHUNKINGS)
class TestEveryStyle:
    def test_the_text_is_whole_again(self, style: str) -> None:
        """However a reply is cut, its text chunks add up to what the model says."""
        chunks = split_reply("Let me see.", CALLS, style)

        assert "Let me see." == "".join(chunk.text or "" for chunk in chunks)

    def test_the_calls_are_whole_again(self, style: str) -> None:
        """However a reply is cut, each call gets its id, its tool and all of its arguments."""
        chunks = split_reply("Let me see.", CALLS, style)
        mine = [[chunk for chunk in chunks if chunk.call == index] for index in range(len(CALLS))]

        assert ["c1", "c2", None] == [next((c.id for c in some if c.id), None) for some in mine]
        assert ["write", "read", "read"] == [next(c.tool for c in some if c.tool) for some in mine]
        texts = ["".join(chunk.arguments or "" for chunk in some) for some in mine]
        assert [CALLS[0].arguments, CALLS[1].arguments] == [json.loads(text) for text in texts[:2]]
        assert "{broken" == texts[2]

    def test_the_name_comes_before_the_arguments(self, style: str) -> None:
        """The first chunk of each call carries its tool, as every provider does."""
        chunks = split_reply(None, CALLS, style)
        first = {}
        for chunk in chunks:
            if chunk.call is not None:
                first.setdefault(chunk.call, chunk)

        assert ["write", "read", "read"] == [first[index].tool for index in range(3)]


class TestStyles:
    def test_ids_first_gives_all_ids_before_any_arguments(self) -> None:
        """With `ids_first`, no arguments come before the last call was opened."""
        chunks = split_reply(None, CALLS, "ids_first")

        assert [0, 1, 2] == [chunk.call for chunk in chunks[:3]]
        assert all(chunk.arguments is None for chunk in chunks[:3])

    def test_interleaved_mixes_the_calls(self) -> None:
        """With `interleaved`, pieces of one call come between pieces of another."""
        order = [chunk.call for chunk in split_reply(None, CALLS[:2], "interleaved")]

        assert [0, 1, 0, 1, 0, 1] == order[:6]

    def test_empty_has_empty_pieces(self) -> None:
        """With `empty`, there are chunks that say nothing."""
        assert any(chunk.arguments == "" for chunk in split_reply(None, CALLS, "empty"))

    def test_an_unknown_style_names_the_nearest(self) -> None:
        """A misspelt style is refused with the nearest valid one."""
        with pytest.raises(UnknownName, match="Unknown chunking 'interleave'; did you mean 'interleaved'?"):
            split_reply(None, CALLS, "interleave")

    def test_repeated_ids_gives_the_id_in_each_chunk(self) -> None:
        """With `repeated_ids`, each chunk of a call has the id of the call."""
        chunks = split_reply(None, CALLS[:2], "repeated_ids")

        assert ["c1", "c2"] == [next(iter({chunk.id for chunk in chunks if chunk.call == index})) for index in (0, 1)]
        assert {"c1", "c2"} == {chunk.id for chunk in chunks}

    @pytest.mark.parametrize(
        ("style", "ids"),
        [
            ("late_ids", [None, "c2", None, None, None, None]),
            ("blank_ids", ["c2", "", "", "", "", ""]),
            ("changing_ids", ["c2", "c2-1", "c2-2", "c2-3", "c2-4", "c2-5"]),
        ],
    )
    def test_ids_that_are_not_only_in_the_first_chunk(self, style: str, ids: list[str | None]) -> None:
        """The id comes with the first arguments, is blank after the first chunk, or is another one in each chunk."""
        assert ids == [chunk.id for chunk in split_reply(None, CALLS[1:2], style)]

    def test_changing_ids_are_those_of_one_call(self) -> None:
        """The ids of a second call to which the model gives the id of the first are not those of the first."""
        first = split_reply(None, CALLS[1:2], "changing_ids", labels=["c2"])
        second = split_reply(None, CALLS[1:2], "changing_ids", labels=["c2#2"])

        assert ["c2", "c2-2-1", "c2-2-2"] == [chunk.id for chunk in second][:3]
        assert {"c2"} == {chunk.id for chunk in first} & {chunk.id for chunk in second}

    @pytest.mark.parametrize("style", ["repeated_ids", "late_ids", "blank_ids", "changing_ids"])
    def test_a_call_without_arguments_has_its_id_in_its_only_chunk(self, style: str) -> None:
        """Where no arguments follow, the id is in the opening."""
        call = ModelCall(id="c1", tool="pay", arguments="")

        assert ["c1"] == [chunk.id for chunk in split_reply(None, (call,), style)]

    @pytest.mark.parametrize("style", ["repeated_ids", "late_ids", "blank_ids", "changing_ids"])
    def test_a_hosted_call_keeps_its_id(self, style: str) -> None:
        """The id of a hosted call is in its first chunk only, however those of function calls come."""
        call = ModelCall(id="m1", tool="search", arguments={"q": "a"}, kind="hosted_mcp", server="web")

        assert ["m1", None, None, None] == [chunk.id for chunk in split_reply(None, (call,), style)]

    @pytest.mark.parametrize("style", ["repeated_ids", "late_ids", "blank_ids", "changing_ids"])
    def test_a_call_without_an_id_gets_none(self, style: str) -> None:
        """No style gives an id to a call that has none."""
        assert {None} == {chunk.id for chunk in split_reply(None, CALLS[2:], style)}
