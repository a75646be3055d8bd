"""The file of a scenario's transcripts: what is written once, and that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_approvals.errors import TranscriptError
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.journal.transcript_file import format_transcripts, parse_transcripts
from pytest_approvals.scenario.catalogue import stock_folder

PAID = 'turn 1\n  caller  sends "Pay"\n\nend\n  run     ends\n'
REFUSED = 'turn 1\n  caller  sends "Pay"\n\nturn 2\n  caller  rejects c1\n\nend\n  run     ends\n'
FAILED = 'turn 1\n  caller  sends "Pay"\n\nend\n  run     fails\n'


def write(**texts: str) -> str:
    return format_transcripts({name.replace("_", "-"): Transcript.parse(text) for name, text in texts.items()})


class TestWriting:
    def test_a_turn_that_is_the_same_is_named(self) -> None:
        """Only what differs from the reference agent is repeated."""
        mine = "# mine\n\nturn 1: as reference\n\nend\n  run     fails\n"

        assert f"# reference\n\n{PAID}\n{mine}" == write(reference=PAID, mine=FAILED)

    def test_an_agent_that_tells_the_same_takes_one_line(self) -> None:
        """The whole transcript is named."""
        assert write(reference=PAID, mine=PAID).endswith("\n\n# mine: as reference\n")

    def test_a_turn_more_or_less_is_no_difference_of_the_others(self) -> None:
        """Turns are compared by what they are called, not by their place."""
        told = write(reference=REFUSED, mine=PAID)

        assert told.endswith("# mine\n\nturn 1: as reference\n\nend: as reference\n")

    def test_what_an_oracle_decides_is_compared_with_the_same(self) -> None:
        """If the reference agent has no transcript of that oracle, with its other one."""
        told = write(reference=PAID, reference_reject_all=REFUSED, mine_reject_all_chat=REFUSED, mine_allow=PAID)

        assert ["# mine-allow: as reference", "# mine-reject-all-chat: as reference-reject-all"] == [
            line for line in told.splitlines() if line.startswith("# mine")
        ]

    def test_agents_without_the_reference_agent_are_whole(self) -> None:
        """A project's own scenarios need not run on it."""
        assert f"# mine\n\n{PAID}\n# yours\n\n{PAID}" == write(yours=PAID, mine=PAID)

    def test_the_order_does_not_matter(self) -> None:
        """The file is the same whoever was added last."""
        assert write(reference=PAID, b=PAID, a=FAILED) == write(a=FAILED, b=PAID, reference=PAID)


class TestReading:
    @given(
        st.dictionaries(
            st.sampled_from(["reference", "reference-allow", "a", "b-allow", "b.flavour-allow-chat"]),
            st.lists(
                st.tuples(
                    st.sampled_from(["turn 1", "turn 2", "end", "calls"]),
                    st.lists(st.sampled_from(["  told", "  told\u2028more", "  told\x85"])),
                )
            ),
            min_size=1,
        )
    )
    def test_what_was_written_is_read(self, drawn: dict[str, list[tuple[str, list[str]]]]) -> None:
        """Also if paragraphs have equal titles, a transcript is empty, or a text has a line separator of Unicode."""
        texts = {
            name: "\n\n".join("\n".join([title, *lines]) for title, lines in paragraphs)
            for name, paragraphs in drawn.items()
        }
        transcripts = {name: Transcript.parse(text) for name, text in texts.items()}

        assert transcripts == parse_transcripts(format_transcripts(transcripts), "file")

    def test_a_heading_alone_is_an_empty_transcript(self) -> None:
        """So a protocol gets a transcript of its own: by hand, before it is updated."""
        assert {"mine-chat": Transcript([])} == parse_transcripts("# mine-chat\n", "file")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("turn 1\n", "file:1: a file of transcripts begins with a heading `# NAME`"),
            ("# a b\n", "file:1: '# a b' is no heading `# NAME` or `# NAME: as OTHER`"),
            ("# a\n\nturn 1\n\n# a\n", "file:5: a second transcript 'a'"),
            ("# a\n\nturn 1\n\n# b: as c\n", "file:5: no 'c' stands above 'b'"),
            ("# a\n\nend\n\n# b\n\nturn 1: as a\n", "file:5: no 'turn 1' stands above 'b'"),
        ],
        ids=["no-heading", "no-name", "twice", "unknown-other", "unknown-turn"],
    )
    def test_a_damaged_file_says_where(self, text: str, message: str) -> None:
        """Such as one with the marks of a merge, or whose other transcript was removed by hand."""
        with pytest.raises(TranscriptError) as caught:
            parse_transcripts(text, "file")

        assert message == str(caught.value)


@pytest.mark.parametrize(
    "path", sorted(stock_folder().glob("*/__snapshots__/*.transcripts")), ids=lambda path: path.stem
)
def test_a_file_of_the_catalogue_is_as_it_is_written(path: Path) -> None:
    """What was merged or edited by hand is in its shortest form, so an update of an agent changes nothing else."""
    text = path.read_text(encoding="utf-8")

    assert text == format_transcripts(parse_transcripts(text, str(path)))
