"""
The page about options says what there is.

`python tests/docs/test_options_page.py` writes its generated part anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest_approvals
from pytest_approvals.cli import COMMANDS
from pytest_approvals.plugin.options import OPTIONS
from pytest_approvals.plugin.run_options import RUN_OPTION_DEFAULTS

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
ADAPTERS = Path(pytest_approvals.__file__).parent / "agent_side" / "adapters"
_ASKED = re.compile(r"(?<=blueprint\.options)(?:\.get\(|\[)\"(\w+)\"")
_PART = re.compile(r"(<!-- options: .*? -->\n).*?(<!-- end -->)", re.DOTALL)


def table() -> str:
    """Gives the options as a table."""
    lines = ["| pytest | pytest-approvals run | what it does |", "|---|---|---|"]
    for option in OPTIONS:
        value = f" {option.metavar}" if option.metavar else ""
        lines.append(f"| `{option.flag}` | `{option.command}{value}` | {option.help} |".replace("|off", "\\|off"))
    return "\n".join(line.replace("1|2|3|full", "1\\|2\\|3\\|full") for line in lines) + "\n"


def page() -> str:
    """Gives the page as it should be."""
    return _PART.sub(lambda found: found[1] + table() + found[2], PAGE.read_text(encoding="utf-8"))


def test_the_options_are_those_that_there_are() -> None:
    """The generated part is what the table of options gives."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_command_is_named() -> None:
    """None is forgotten."""
    text = PAGE.read_text(encoding="utf-8")

    assert [] == [name for name in COMMANDS if f"`pytest-approvals {name}" not in text]


def test_every_setting_is_named() -> None:
    """What the marker and the call know."""
    text = PAGE.read_text(encoding="utf-8")

    assert [] == [name for name in RUN_OPTION_DEFAULTS if f"`{name}`" not in text]


def test_every_option_of_an_adapter_is_named() -> None:
    """What an adapter asks for in the options of a scenario."""
    text = PAGE.read_text(encoding="utf-8")
    sources = (path.read_text(encoding="utf-8") for path in ADAPTERS.rglob("*.py"))
    asked = {name for source in sources for name in _ASKED.findall(source)}

    assert "item_ids" in asked
    assert [] == [name for name in sorted(asked) if f"| `{name}: " not in text and f", `{name}: " not in text]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
