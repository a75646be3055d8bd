"""Pages of `docs/findings/`: one of each cause, their index, and drafts of issues about the gravest ones.

`python -m pytest_approvals.devtools.pages.findings [ID…]`, in a checkout, plays the stories of these causes (all of
them without an ID) and writes their pages, the index and the drafts. `--index` leaves the pages as they are, and
`--keep` takes their transcripts as they are, without playing anything.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.causes import CLASSES, Cause, Documentation
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.checks import CHECKS, parse_severity, rank_severity
from pytest_approvals.devtools.cause_runs import (
    list_waived_scenarios,
    play_cause,
)
from pytest_approvals.errors import UnknownName
from pytest_approvals.reporting.upstream import (
    format_upstream_issue,
    get_script_language,
    load_every_cause,
    write_cause_script,
)

FOLDER = Path("docs/findings")

_DRAFTS = 10
_SCENARIOS = 12
"""How many scenarios of the catalogue a page names."""

_CLASS_MEANINGS = {
    "bug": "breaks what the documentation says, or what cannot be meant",
    "by-design": "meant by the framework's authors",
    "documented-limit": "a limit that the documentation names",
    "undocumented": "nothing that was read says whether it is meant",
    "provider-only": "shown only by what no known provider sends",
    "ours": "made by the adapter or the harness",
}

_INTRODUCTION = """\
# Findings

What the catalogue found in the frameworks, at the releases that this project pins. Each page is about one cause: its
class, when it happens, what happens and what should, with a minimal scenario and its transcript. The pages are made
from the records in `causes/` beside the adapters, to which the waivers refer, by
`python -m pytest_approvals.devtools.pages.findings`; a test plays them, so that a page whose framework was fixed is
noticed.

A record says what nobody has looked at yet: documentation that is not read for it, a tracker that is not searched, and
a native script that is missing. A cause is of class `undocumented` unless it was judged otherwise. Trackers were
searched in a stored copy of their public threads, by meaning, so that a thread can have been missed.
"""


def format_cause_page(cause: Cause, transcript: str) -> str:
    """Return the page of a cause."""
    story = cause.story.strip("\n")
    parts = [
        f"# {cause.title}",
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in _list_rows(cause))]),
        f"## Scenario\n\n```yaml\n{story}\n```",
        f"## What happens\n\n{cause.happens}",
        f"```text\n{transcript}\n```",
        f"## What should happen\n\n{cause.should}",
    ]
    if cause.native is not None:
        fence = get_script_language(cause).fence
        parts.append(f"## Without this package\n\n{_introduce_script(cause)}\n\n```{fence}\n{_get_script(cause)}\n```")
    return "\n\n".join(parts) + "\n"


def _get_script(cause: Cause) -> str:
    return write_cause_script(cause).strip("\n")


def _introduce_script(cause: Cause) -> str:
    ends = f"It ends with `BUG` and exit code 1 with {cause.releases.seen}"
    good = cause.native.good if cause.native is not None else ""
    return f"{get_script_language(cause).command}. {ends}" + (f", and with `OK` with {good}." if good else ".")


def _list_rows(cause: Cause) -> Iterator[tuple[str, str]]:
    framework = get_adapter(AgentSpec.parse(cause.agent)).framework
    yield "agent", f"`{cause.agent}`"
    yield "release", f"{framework} {cause.releases.seen}"
    for name, release in (
        ("first bad release", cause.releases.first_bad),
        ("last good release", cause.releases.last_good),
        ("fixed in", cause.releases.fixed),
    ):
        if release:
            yield name, release
    yield "class", f"{cause.cause_class}: {_CLASS_MEANINGS[cause.cause_class]}"
    yield "severity", cause.severity
    yield "check", f"`{cause.check}` ({cause.status}): {CHECKS[cause.check].requirement}"
    yield "variant", ", ".join(f"{name}: {value}" for name, value in cause.variant.items()) or "base"
    yield "when", " ".join(cause.condition.split())
    if cause.sometimes:
        yield "seen", f"sometimes: {' '.join(cause.sometimes.split())}"
    yield "documentation", _describe_documentation(cause)
    yield "reported", _link_threads(cause.reported) or "not that we know of"
    yield "tracker", _describe_search(cause)
    if scenarios := sorted({scenario for scenario, _ in list_waived_scenarios(cause)}):
        few = [f"`{scenario}`" for scenario in scenarios[:_SCENARIOS]]
        others = [f"{len(scenarios) - len(few)} more"] if len(scenarios) > len(few) else []
        yield "in the catalogue", ", ".join([*few, *others])


def _describe_documentation(cause: Cause) -> str:
    if isinstance(cause.documentation, Documentation):
        return f"“{' '.join(cause.documentation.says.split())}” ([source]({cause.documentation.source}))"
    return {"undocumented": "says nothing about it", "unread": "not read for it yet"}[cause.documentation]


def _describe_search(cause: Cause) -> str:
    search = cause.searched
    if search is None:
        return "not searched yet"
    queries = ", ".join(f"“{query}”" for query in search.queries)
    found = _link_threads(search.found) or "nothing about it"
    return f"{search.tracker}, searched on {search.on} for {queries}: {found}"


def _link_threads(addresses: Iterable[str]) -> str:
    return ", ".join(f"[{_shorten(address)}]({address})" for address in addresses)


def _shorten(address: str) -> str:
    """Return an address of a GitHub thread as people write it.

    >>> _shorten("https://github.com/owner/name/issues/7")
    'owner/name#7'
    """
    thread = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull|discussions)/(\d+)", address)
    return f"{thread[1]}#{thread[2]}" if thread else address


def read_transcript(page: str) -> str:
    r"""Return the transcript of a page.

    >>> read_transcript("a\n```text\nturn 1\n```\n")
    'turn 1'
    """
    found = re.search(r"^```text\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


# --- the index --------------------------------------------------------------------------------------------------------


def format_index(causes: Iterable[Cause]) -> str:
    """Return the index: how many causes there are, and their pages, the gravest first."""
    ordered = sorted(causes, key=lambda cause: (cause.name, rank_severity(parse_severity(cause.severity)), cause.id))
    by_name: dict[str, list[Cause]] = {}
    for cause in ordered:
        by_name.setdefault(cause.name, []).append(cause)
    lines = [_INTRODUCTION, *_format_counts(by_name), ""]
    lines += [
        "## Drafts of issues",
        "",
        "Of the gravest bugs that we know no report of, by `pytest-approvals report-upstream`:",
        "",
    ]
    lines += [f"- [{cause.title}](issues/{cause.id}.md)" for cause in list_drafts(ordered)] + [""]
    for name, few in by_name.items():
        lines += [f"## {name}", ""]
        lines += [f"- [{cause.title}]({cause.id}.md): {cause.cause_class}, {cause.severity}" for cause in few]
        lines += [""]
    return "\n".join(lines)


def list_drafts(causes: Iterable[Cause]) -> list[Cause]:
    """Return the gravest bugs that nobody reported and that a native script shows: those whose issues are drafted."""
    new = [cause for cause in causes if cause.cause_class == "bug" and cause.native is not None and not cause.reported]
    return sorted(new, key=lambda cause: (rank_severity(parse_severity(cause.severity)), cause.id))[:_DRAFTS]


def _format_counts(by_name: Mapping[str, Sequence[Cause]]) -> Iterator[str]:
    columns = [*CLASSES, "all", "with a native script", "tracker searched", "documentation read"]
    yield "| agent | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    every = [cause for few in by_name.values() for cause in few]
    for name, few in [*by_name.items(), ("all", every)]:
        classes = Counter(cause.cause_class for cause in few)
        numbers = [
            *(classes[cause_class] for cause_class in CLASSES),
            len(few),
            sum(cause.native is not None for cause in few),
            sum(cause.searched is not None for cause in few),
            sum(cause.documentation != "unread" for cause in few),
        ]
        yield f"| {name} | " + " | ".join(map(str, numbers)) + " |"


def main(words: Sequence[str]) -> None:
    """Write pages and the index."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.pages.findings")
    parser.add_argument("causes", nargs="*", metavar="ID", help="the causes whose pages are written (default: all)")
    parser.add_argument("--index", action="store_true", help="write the index only")
    parser.add_argument("--keep", action="store_true", help="keep the transcripts, without playing anything")
    args = parser.parse_args(words)
    causes = load_every_cause()
    for name in args.causes:
        if name not in causes:
            raise UnknownName("cause", name, causes)
    for name in [] if args.index else args.causes or causes:
        path = FOLDER / f"{name}.md"
        kept = read_transcript(path.read_text(encoding="utf-8")) if args.keep and path.exists() else ""
        path.write_text(format_cause_page(causes[name], kept or _play(causes[name])), encoding="utf-8")
    (FOLDER / "README.md").write_text(format_index(causes.values()), encoding="utf-8")
    _write_drafts(FOLDER / "issues", list_drafts(causes.values()))


def _write_drafts(folder: Path, causes: Sequence[Cause]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        path.unlink()
    for cause in causes:
        (folder / f"{cause.id}.md").write_text(format_upstream_issue(cause), encoding="utf-8")


def _play(cause: Cause) -> str:
    played = play_cause(cause)
    for problem in [played.problem, *(["its check does not fail as it says"] if not played.shows(cause) else [])]:
        if problem:
            print(f"{cause.id}: {problem}", file=sys.stderr)
    return played.transcript


if __name__ == "__main__":
    main(sys.argv[1:])
