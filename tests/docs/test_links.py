"""Links between pages lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\((?P<place>[^)\s]+)\)")


def links(page: Path) -> Iterator[str]:
    """Yield the places that a page links to in this repository."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    yield from (found["place"] for found in _LINK.finditer(text) if "://" not in found["place"])


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(page: Path, place: str) -> bool:
    """Return whether there is no such file, or no such heading in it."""
    path, _, anchor = place.partition("#")
    target = (page.parent / path).resolve() if path else page
    return not target.exists() or bool(anchor and target.suffix == ".md" and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    """Of this repository; nobody asks the network about the others."""
    assert [] == [place for place in links(page) if leads_nowhere(page, place)]


def test_every_page_is_in_the_index() -> None:
    """But for the findings and the frameworks, which have indexes of their own."""
    listed = {place.partition("#")[0] for place in links(ROOT / "docs" / "README.md")}

    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} == {
        name for name in listed if name.endswith(".md")
    } - {"findings/README.md", "frameworks/README.md"}


def test_every_framework_is_in_its_index() -> None:
    """Each page of `docs/frameworks`."""
    folder = ROOT / "docs" / "frameworks"

    assert {page.name for page in folder.glob("*.md")} - {"README.md"} == {
        place for place in links(folder / "README.md") if "/" not in place
    }


def test_the_paths_that_the_contribution_guide_names_exist() -> None:
    """A guide that sends people to folders of yesterday is worse than none."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:pytest_approvals|tests|docs|tools|requirements)/[\w./-]*)`", text)

    assert len(named) > 20
    assert [] == [path for path in named if not (ROOT / path).exists()]
