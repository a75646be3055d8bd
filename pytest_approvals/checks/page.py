"""The page about the checks, made of what each check says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from . import CHECKS
from .check import Check, Example

_INTRODUCTION = """\
# The checks

Each check is one requirement with a slug that never changes. It is a pure function of recorded journals, so its verdict
can be taken again from a file: `pytest-approvals check JOURNAL`. `pytest-approvals check --explain SLUG` prints what
stands here. A `must` that does not hold fails the run, a `should` warns; with `--strict` it fails, too.

The journals in the examples are written in short lines, and every example is a test. [The faults](faults.md) are what
the checks are tested on besides. This page is made by `python -m pytest_approvals.checks`.
"""

_VERBS = {"pass": "Passes", "fail": "Fails", "warning": "Warns"}


def checks_page() -> str:
    """Gives the whole page, as Markdown."""
    families = dict.fromkeys(check.family for check in CHECKS.values())
    parts = [_INTRODUCTION, *(_family(family) for family in families)]
    return "\n".join(parts)


def _family(family: str) -> str:
    own = [check for check in CHECKS.values() if check.family == family]
    listed = "\n".join(f"- [{check.slug}](#{check.slug}): {check.requirement}" for check in own)
    return "\n".join([f"## {family.capitalize()}\n", f"{listed}\n", *(_check(check) for check in own)])


def _check(check: Check) -> str:
    facts = "; ".join(_facts(check))
    parts = [f"### {check.slug}", f"**{check.requirement}**", check.why, f"*{facts}.*" if facts else ""]
    parts += [_example(example) for example in check.examples]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(check: Check) -> Iterator[str]:
    yield check.level
    if check.implies:
        yield "implies " + ", ".join(f"[{slug}](#{slug})" for slug in check.implies)
    if check.needs:
        yield "needs " + ", ".join(f"`{kind}`" for kind in check.needs)
    if check.sources:
        yield "sources: " + ", ".join(check.sources)


def _example(example: Example) -> str:
    caption = f", {example.caption}" if example.caption else ""
    return f"{_VERBS[example.status]}{caption}:\n\n```text\n{example.lines.rstrip()}\n```"
