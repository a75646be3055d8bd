"""Report files: written line by line or as a whole, and read back with exact errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from pytest_approvals.errors import ReportError, suggest_name
from pytest_approvals.reporting.html import render_html
from pytest_approvals.reporting.markdown import render_markdown
from pytest_approvals.reporting.report import (
    FORMAT,
    LINE_ADAPTER,
    LINE_TYPES,
    Report,
    ReportCounter,
    ReportFooter,
    ReportHeader,
    ReportLine,
    dump_line,
)


class ReportWriter:
    """Writes a report line by line, as verdicts come.

    Args:
        path: The file, which is overwritten.
        header: The first line.
    """

    def __init__(self, path: Path, header: ReportHeader) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8", newline="\n")
        self._counts = ReportCounter()
        self._file.write(dump_line(header) + "\n")

    def add(self, line: ReportLine) -> None:
        """Write a line that is neither header nor footer."""
        self._counts.add(line)
        self._file.write(dump_line(line) + "\n")

    def close(self, *, complete: bool = True) -> None:
        """Write the footer, unless the run was cut off."""
        if complete:
            self._file.write(dump_line(self._counts.footer()) + "\n")
        self._file.close()


def write_report(path: Path, report: Report) -> None:
    """Write a whole report, in a fixed order.

    The file is Markdown if it is called `*.md`, a page if it is called `*.html`, else JSON lines. A report that is not
    complete gets no footer.
    """
    forms: dict[str, Callable[[Report], str]] = {".md": render_markdown, ".html": render_html}
    form = forms.get(path.suffix)
    if form is not None:
        path.write_text(form(report), encoding="utf-8")
        return
    writer = ReportWriter(path, report.header)
    for line in report.body():
        writer.add(line)
    writer.close(complete=report.complete)


def read_report(path: Path) -> Report:
    """Read a report; one that was cut off is not complete, and a cut last line is left out.

    Raises:
        ReportError: A line is damaged, or the header is missing.
    """
    try:
        # As bytes: `str.splitlines` also splits at U+2028, which JSON need not escape.
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise ReportError(str(path), None, f"it cannot be read: {error.strerror}") from None
    report: Report | None = None
    for number, text in enumerate(lines, 1):
        line = _parse_line(path, number, text)
        if line is None:
            break
        # The first line, and no other, must be a header.
        if isinstance(line, ReportHeader) == (report is not None):
            mistake = "a second header" if report is not None else f"a header must come first, not {line.event!r}"
            raise ReportError(str(path), number, mistake)
        if isinstance(line, ReportHeader):
            if line.format != FORMAT:
                mistake = f"the report has format {line.format}; this version reads format {FORMAT}"
                raise ReportError(str(path), number, mistake)
            report = Report(header=line, complete=False)
        elif report is not None and isinstance(line, ReportFooter):
            report.complete = True
        elif report is not None:
            report.add(line)
    if report is None:
        raise ReportError(str(path), None, "it holds no line")
    return report


def _parse_line(path: Path, number: int, text: bytes) -> ReportLine | None:
    try:
        line: ReportLine = LINE_ADAPTER.validate_json(text)
        return line
    except ValidationError as error:
        first = error.errors()[0]
    if first["type"] == "json_invalid":
        # Only the last line can lack its line feed: its writer was cut off in it.
        if not text.endswith(b"\n"):
            return None
        raise ReportError(str(path), number, "this line is no JSON") from None
    raise ReportError(str(path), number, _describe_mistake(first, text)) from None


def _describe_mistake(error: Any, text: bytes) -> str:
    if error["type"] == "union_tag_invalid":
        event = str(error["ctx"]["tag"])
        return f"unknown line {event!r}{suggest_name(event, LINE_TYPES)}"
    if not error["loc"]:
        return "this line is no JSON object with an event"
    # The location begins with the tag that pydantic chose the model by.
    where = ".".join(str(part) for part in error["loc"][1:])
    if error["type"] == "extra_forbidden":
        known = LINE_TYPES[str(error["loc"][0])].model_fields
        return f"unknown field {where!r}{suggest_name(where, known)}"
    return f"field {where!r}: {error['msg'][:1].lower()}{error['msg'][1:]}"
