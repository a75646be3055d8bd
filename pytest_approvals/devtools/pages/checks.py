"""The page about the checks, made of what each check says of itself.

`python -m pytest_approvals.checks`, in a checkout: writes `docs/checks.md` anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_approvals.checks import CHECKS
from pytest_approvals.checks._check import Check, Example

_INTRODUCTION = """\
# The checks

Each check is one requirement with a slug that never changes. It is a pure function of recorded journals, so its verdict
can be taken again from a file: `pytest-approvals check JOURNAL`. `pytest-approvals check --explain SLUG` prints what
stands here. A `must` that does not hold fails the run, a `should` warns; with `--strict` it fails, too.

The journals in the examples are written in short lines, and every example is a test. [The faults](faults.md) are what
the checks are tested on besides. This page is made by `python -m pytest_approvals.checks`.
"""

_VERBS = {"pass": "Passes", "fail": "Fails", "warning": "Warns"}


def render_checks_page() -> str:
    """Gives the whole page, as Markdown."""
    families = dict.fromkeys(check.family for check in CHECKS.values())
    parts = [_INTRODUCTION, *(_render_family(family) for family in families)]
    return "\n".join(parts)


def _render_family(family: str) -> str:
    own = [check for check in CHECKS.values() if check.family == family]
    listed = "\n".join(f"- [{check.slug}](#{check.slug}): {check.requirement}" for check in own)
    return "\n".join([f"## {family.capitalize()}\n", f"{listed}\n", *(_render_check(check) for check in own)])


def _render_check(check: Check) -> str:
    facts = "; ".join(_render_facts(check))
    parts = [f"### {check.slug}", f"**{check.requirement}**", check.why, f"*{facts}.*" if facts else ""]
    parts += [_render_example(example) for example in check.examples]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_facts(check: Check) -> Iterator[str]:
    yield check.level
    if check.implies:
        yield "implies " + ", ".join(f"[{slug}](#{slug})" for slug in check.implies)
    if check.needs:
        yield "needs " + ", ".join(f"`{kind}`" for kind in check.needs)
    if check.sources:
        yield "sources: " + ", ".join(check.sources)


def _render_example(example: Example) -> str:
    caption = f", {example.caption}" if example.caption else ""
    return f"{_VERBS[example.status]}{caption}:\n\n```text\n{example.lines.rstrip()}\n```"


if __name__ == "__main__":
    Path("docs/checks.md").write_text(render_checks_page(), encoding="utf-8")
