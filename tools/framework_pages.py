"""Write the examples of `docs/frameworks` into their pages: whole files of `tests/own_agents`, which are run there.

python tools/framework_pages.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "frameworks"

_EXAMPLE = re.compile(r"^<!-- example: (?P<path>\S+) -->\n```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def fill(page: str, root: Path = ROOT) -> str:
    """Return the text of a page with the files that it names as its examples.

    Args:
        page: The text.
        root: The folder in which the paths begin.
    """

    def write(found: re.Match[str]) -> str:
        path = found["path"]
        return f"<!-- example: {path} -->\n```python\n{(root / path).read_text(encoding='utf-8')}```"

    return _EXAMPLE.sub(write, page)


def main() -> None:
    """Write all pages."""
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
