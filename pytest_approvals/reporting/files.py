"""Report files: written while a session runs, replaced as a whole at its end, and read back with exact errors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from errno import EACCES, EBUSY, ENOSPC, EPERM
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from pytest_approvals.errors import ReportError, suggest_name
from pytest_approvals.reporting.ci_formats import render_report_sarif
from pytest_approvals.reporting.compact import (
    COMPACT_ADAPTER,
    COMPACT_TYPES,
    CompactFooter,
    CompactHeader,
    Mistake,
    ReportDecoder,
    ReportEncoder,
    RunKey,
    encode_report,
)
from pytest_approvals.reporting.html import render_html
from pytest_approvals.reporting.markdown import render_markdown
from pytest_approvals.reporting.report import (
    LINE_TYPES,
    Report,
    ReportCounter,
    ReportedAgent,
    ReportFooter,
    ReportHeader,
    ReportLine,
    VerdictLine,
)

LINE_ADAPTER: TypeAdapter[Any] = TypeAdapter(Annotated[ReportLine, Field(discriminator="event")])
"""Adapter that reads a line of format 1 of any kind."""

_FORMS: Mapping[str, Callable[[Report], str]] = {
    ".md": render_markdown,
    ".html": render_html,
    ".sarif": render_report_sarif,
}
"""What makes the text of a report, by the suffix of its file; all other files are JSON lines."""


# --- writing ----------------------------------------------------------------------------------------------------------


class ReportStream:
    """Report file of a session that runs: what was judged is in it, from the first verdict on.

    The file is new from the beginning, so that a session that is killed leaves what it has judged, and never the report
    of an earlier one. It has no footer until `finish` replaces it. Beside a report in another form than JSON lines the
    lines are in a file of their own, whose name has `.jsonl` at its end, until the report is there.

    Args:
        path: The file, which is replaced.
        header: What is known at the beginning.

    Attributes:
        failure: Why a line could not be written; those after it are not in the file either.

    Raises:
        ReportError: The file cannot be written.
    """

    def __init__(self, path: Path, header: ReportHeader) -> None:
        self.path = path
        self.failure: ReportError | None = None
        self._encoder = ReportEncoder(header)
        self._lines_path: Path | None = None
        self._file: FileIO | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                return  # a pipe or a terminal gets the report at the end
            form = _FORMS.get(path.suffix)
            if form is None:
                self._lines_path = path
            else:
                self._lines_path = path.with_name(f"{path.name}.jsonl")
                replace_file(path, _encode_text(form(Report(header=header, complete=False))))
            replace_file(self._lines_path, self._encoder.begin())
            # Unbuffered: what was judged must survive the end of this process.
            self._file = self._lines_path.open("ab", buffering=0)
        except OSError as error:
            raise _write_error(path, error) from None

    def add(
        self,
        key: RunKey,
        lines: Iterable[VerdictLine],
        *,
        transcript: Sequence[str] | None = None,
        title: str = "",
        remembered: bool = False,
    ) -> None:
        """Write a run, or what was judged of all variants together."""
        parts = [self._encoder.add_scenario(key[0], title)] if title else []
        self._write(b"".join([*parts, self._encoder.add_run(key, lines, transcript, remembered=remembered)]))

    def add_agent(self, agent: ReportedAgent) -> None:
        """Write what is known of an agent, unless that was written before."""
        self._write(self._encoder.add_agent(agent))

    def finish(self, report: Report) -> None:
        """Replace the file by the whole report.

        Raises:
            ReportError: The file cannot be written; what was judged stays where it is.
        """
        self.close()
        write_report(self.path, report)
        if self._lines_path is not None and self._lines_path != self.path:
            self._lines_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is None or not data:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            # The report at the end may be smaller, or the disk have room again.
            self.failure = _write_error(self.path, error)
            self.close()


def write_report(path: Path, report: Report) -> None:
    """Write a whole report, in a fixed order; the file is replaced at once.

    The file is Markdown if it is called `*.md`, a page if it is called `*.html`, SARIF if it is called `*.sarif`, else
    JSON lines. A report that is not complete gets no footer.

    Raises:
        ReportError: The file cannot be written.
    """
    form = _FORMS.get(path.suffix)
    if form is not None:
        write_text(path, form(report))
    else:
        write_data(path, encode_report(report))


def write_text(path: Path, text: str) -> None:
    """Write a text that is made from a report; the file is replaced at once.

    Raises:
        ReportError: The file cannot be written.
    """
    write_data(path, _encode_text(text))


def write_data(path: Path, data: bytes) -> None:
    """Write a file.

    Raises:
        ReportError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise _write_error(path, error) from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file by another one, so that no reader and no kill finds a part of it.

    A link stays a link. What is no regular file, or stands in a folder that takes no new file, is written in place.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(data)
        return
    other = target.with_name(f".report-{os.getpid()}-{token_hex(4)}.tmp")
    try:
        try:
            with other.open("xb") as file:
                file.write(data)
            if mode is not None:
                other.chmod(stat.S_IMODE(mode))
            other.replace(target)
        except BaseException:
            other.unlink(missing_ok=True)
            raise
    except OSError as error:
        # A file that is mounted into a container can be written and not replaced.
        if mode is None or error.errno not in (EACCES, EPERM, EBUSY):
            raise
        target.write_bytes(data)


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _write_error(path: Path, error: OSError) -> ReportError:
    remedy = "free some space, or write the report elsewhere" if error.errno == ENOSPC else "name another file"
    return ReportError(str(path), None, f"cannot be written: {error.strerror}; {remedy}")


# --- reading ----------------------------------------------------------------------------------------------------------


def read_report(path: Path) -> Report:
    """Read a report; one that was cut off is not complete, and a cut last line is left out.

    Raises:
        ReportError: A line is damaged, is missing or was moved, or the header is missing.
    """
    try:
        # As bytes: `str.splitlines` also splits at U+2028, which JSON need not escape.
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise ReportError(str(path), None, f"it cannot be read: {error.strerror}") from None
    if not lines:
        raise ReportError(str(path), None, "it holds no line")
    header = _parse_json(path, 1, lines[0])
    if header is None:
        raise ReportError(str(path), 1, "its writer was cut off in the header")
    version = header.get("format", 1) if header.get("event") == "header" else 1
    if version == 2 and type(version) is int:
        return _read_format_2(path, header, lines)
    if version != 1 or type(version) is not int:
        raise ReportError(str(path), 1, f"the report has format {version}; this version reads formats 1 and 2")
    return _read_format_1(path, lines)


def _read_format_2(path: Path, header: dict[str, Any], lines: Sequence[bytes]) -> Report:
    decoder = ReportDecoder(_validate(path, 1, header, COMPACT_ADAPTER, COMPACT_TYPES))
    digest = hashlib.sha256(lines[0])
    for number, text in enumerate(lines[1:], 2):
        value = _parse_json(path, number, text)
        if value is None:
            break
        line = _validate(path, number, value, COMPACT_ADAPTER, COMPACT_TYPES)
        if isinstance(line, CompactHeader):
            raise ReportError(str(path), number, "a second header")
        if decoder.report.complete:
            raise ReportError(str(path), number, "a line behind the footer")
        if isinstance(line, CompactFooter):
            _check_footer(path, number, line, digest.hexdigest())
            decoder.report.complete = True
        else:
            try:
                decoder.add(line)
            except Mistake as mistake:
                raise ReportError(str(path), number, mistake.what) from None
        digest.update(text)
    return decoder.finish()


def _check_footer(path: Path, number: int, footer: CompactFooter, digest: str) -> None:
    if footer.lines != number - 1:
        mistake = f"the footer counts {footer.lines} lines, but there are {number - 1}"
        raise ReportError(str(path), number, mistake)
    if footer.sha256 != digest:
        raise ReportError(str(path), number, "the lines are not those that were written: their digest is another one")


def _read_format_1(path: Path, lines: Sequence[bytes]) -> Report:
    report: Report | None = None
    counts = ReportCounter()
    for number, text in enumerate(lines, 1):
        value = _parse_json(path, number, text)
        if value is None:
            break
        line = _validate(path, number, value, LINE_ADAPTER, LINE_TYPES)
        # The first line, and no other, must be a header.
        if isinstance(line, ReportHeader) == (report is not None):
            mistake = "a second header" if report is not None else f"a header must come first, not {line.event!r}"
            raise ReportError(str(path), number, mistake)
        if report is None:
            report = Report(header=line, complete=False)
        elif report.complete:
            raise ReportError(str(path), number, "a line behind the footer")
        elif isinstance(line, ReportFooter):
            if line != counts.footer():
                raise ReportError(str(path), number, _describe_difference(line, counts.footer()))
            report.complete = True
        else:
            report.add(line)
            counts.add(line)
    assert report is not None
    return report


def _describe_difference(footer: ReportFooter, counted: ReportFooter) -> str:
    if footer.runs != counted.runs:
        return f"the footer counts {footer.runs} runs, but there are {counted.runs}"
    statuses = sorted(footer.counts.keys() | counted.counts.keys())
    status = next(each for each in statuses if footer.counts.get(each, 0) != counted.counts.get(each, 0))
    return f"the footer counts {footer.counts.get(status, 0)} {status}, but there are {counted.counts.get(status, 0)}"


def _parse_json(path: Path, number: int, text: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None if its writer was cut off in it."""
    try:
        value = json.loads(text, object_pairs_hook=_collect_pairs)
    except _NameTwice as error:
        raise ReportError(str(path), number, f"field {error.args[0]!r} is named twice") from None
    except (ValueError, RecursionError):
        # Only the last line can lack its line feed: its writer was cut off in it.
        if not text.endswith(b"\n"):
            return None
        raise ReportError(str(path), number, "this line is no JSON") from None
    if not isinstance(value, dict) or "event" not in value:
        raise ReportError(str(path), number, "this line is no JSON object with an event")
    return value


class _NameTwice(Exception):
    """A name that a JSON object has twice."""


def _collect_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise _NameTwice(next(name for name in names if names.count(name) > 1))
    return value


def _validate(
    path: Path, number: int, value: dict[str, Any], adapter: TypeAdapter[Any], types: Mapping[str, type[Any]]
) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
    raise ReportError(str(path), number, _describe_mistake(first, types)) from None


def _describe_mistake(error: Any, types: Mapping[str, type[Any]]) -> str:
    if error["type"] == "union_tag_invalid":
        event = str(error["ctx"]["tag"])
        return f"unknown line {event!r}{suggest_name(event, types)}"
    if not error["loc"]:
        return "this line is no JSON object with an event"
    # The location begins with the tag that pydantic chose the model by.
    where = ".".join(str(part) for part in error["loc"][1:])
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        kind = types[str(error["loc"][0])]
        known = [each.name for each in fields(kind)] if is_dataclass(kind) else kind.model_fields
        return f"unknown field {where!r}{suggest_name(where, known)}"
    return f"field {where!r}: {error['msg'][:1].lower()}{error['msg'][1:]}"
