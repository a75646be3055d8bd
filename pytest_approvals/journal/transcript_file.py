"""File of the transcripts of a scenario: one whole, and of each other one what differs from it.

    # reference

    turn 1
      caller  sends "Delete a.txt"
      ...

    turn 2
      caller  rejects c1
      model   is told c1: "Not executed: the user rejected this call."
      ...

    # langgraph: as reference

    # openai_agents

    turn 1: as reference

    turn 2
      caller  rejects c1
      model   is told c1: "Tool execution was not approved."
      ...

A heading names a transcript: an agent, and after a hyphen what else its transcripts depend on, such as an oracle. A
paragraph that is the same as in the transcript of the reference agent is named instead of repeated, and so is a whole
transcript. So a review shows an agent's own part alone, and only a change of the reference agent changes the lines of
others. A heading with nothing below it is an empty transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_approvals.errors import TranscriptError
from pytest_approvals.journal.transcript import Transcript

BASE = "reference"
"""The agent whose transcripts are whole."""

_HEADING = re.compile(r"# (?P<name>[^\s:]+)(?:: as (?P<base>\S+))?")
_REPEATED = re.compile(r"(?P<title>[^\n]+): as (?P<base>\S+)")


def format_transcripts(transcripts: Mapping[str, Transcript]) -> str:
    """Return the text of a file, which depends on the transcripts alone, not on their order.

    Args:
        transcripts: The transcripts by their names.
    """
    return "\n\n".join(_format_all(transcripts)) + "\n"


def parse_transcripts(text: str, path: str) -> dict[str, Transcript]:
    """Return the transcripts of a file by their names.

    Args:
        text: The text of the file.
        path: The file, for the error.

    Raises:
        TranscriptError: The text is no file of transcripts.
    """
    found: dict[str, Transcript] = {}
    for line, heading, paragraphs in _split(text, path):
        match = _HEADING.fullmatch(heading)
        if match is None:
            raise TranscriptError(path, line, f"{heading!r} is no heading `# NAME` or `# NAME: as OTHER`")
        if match["name"] in found:
            raise TranscriptError(path, line, f"a second transcript {match['name']!r}")
        try:
            restored = [_restore(paragraph, found) for paragraph in paragraphs]
            if match["base"] is not None:
                restored = ["\n".join(found[match["base"]].lines), *restored]
        except KeyError as error:
            raise TranscriptError(path, line, f"no {error.args[0]!r} stands above {match['name']!r}") from None
        found[match["name"]] = Transcript.parse("\n\n".join(restored))
    return found


def _format_all(transcripts: Mapping[str, Transcript]) -> Iterator[str]:
    for name in sorted(transcripts, key=lambda name: (_split_name(name)[0] != BASE, name)):
        transcript = transcripts[name]
        base = _find_base(name, transcripts)
        if base is None:
            yield f"# {name}"
            yield from _paragraphs(transcript)
        elif transcripts[base] == transcript:
            yield f"# {name}: as {base}"
        else:
            yield f"# {name}"
            known = _by_title(transcripts[base])
            for paragraph in _paragraphs(transcript):
                title = paragraph.partition("\n")[0]
                yield f"{title}: as {base}" if known.get(title) == paragraph else paragraph


def _find_base(name: str, names: Mapping[str, Transcript]) -> str | None:
    """Return the transcript of the reference agent that depends on most of what *name* does, if there is one."""
    agent, words = _split_name(name)
    if agent != BASE:
        for count in range(len(words), -1, -1):
            base = "-".join([BASE, *words[:count]])
            if base in names:
                return base
    return None


def _split_name(name: str) -> tuple[str, list[str]]:
    agent, *words = name.split("-")
    return agent, words


def _paragraphs(transcript: Transcript) -> list[str]:
    text = "\n".join(transcript.lines)
    return text.split("\n\n") if text else []


def _by_title(transcript: Transcript) -> dict[str, str]:
    return {paragraph.partition("\n")[0]: paragraph for paragraph in _paragraphs(transcript)}


def _restore(paragraph: str, found: Mapping[str, Transcript]) -> str:
    match = _REPEATED.fullmatch(paragraph)
    return paragraph if match is None else _by_title(found[match["base"]])[match["title"]]


def _split(text: str, path: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line, the heading and the paragraphs of each transcript."""
    heading, begin, paragraphs = "", 0, list[str]()
    line = 1
    for paragraph in text.rstrip("\n").split("\n\n"):
        if paragraph.startswith("#"):
            if begin:
                yield begin, heading, paragraphs
            heading, begin, paragraphs = paragraph, line, []
        elif begin:
            paragraphs.append(paragraph)
        elif paragraph:
            raise TranscriptError(path, line, "a file of transcripts begins with a heading `# NAME`")
        line += paragraph.count("\n") + 2
    if begin:
        yield begin, heading, paragraphs
