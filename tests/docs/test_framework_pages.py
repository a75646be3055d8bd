"""The pages of `docs/frameworks`: their examples are files that are run."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "frameworks").glob("*.md"))
AGENTS = ROOT / "tests" / "own_agents"
NO_EXAMPLES = {
    *("test_attached_and_built.py", "test_constraints.py", "test_agents_in_bodies.py", "test_hooks.py"),
    *("test_modes.py", "test_tool_idioms.py", "test_history.py", "test_gates.py", "test_loops.py"),
    *("test_drawn_orders.py", "test_own_store.py"),
}
WITHOUT_AGENTS = {"acp", "ai-sdk", "claude-agent-sdk-js", "mastra", "openai-agents-js"}
"""Pages of frameworks that only the catalogue plays."""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`tools/framework_pages.py`, imported."""
    spec = spec_from_file_location("framework_pages", ROOT / "tools" / "framework_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "framework_pages", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_is_the_file_that_it_names(tool: Any, page: Path) -> None:
    """`python tools/framework_pages.py` writes them."""
    text = page.read_text(encoding="utf-8")

    assert tool.fill(text) == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_all_code_is_an_example(page: Path) -> None:
    """No other code is on these pages, as nothing would run it."""
    text = page.read_text(encoding="utf-8")

    assert len(re.findall(r"^<!-- example: tests/own_agents/\S+ -->\n```python$", text, re.MULTILINE)) == text.count(
        "```python"
    )


def test_every_framework_has_a_page_with_all_its_agents() -> None:
    """Each agent is an example, or linked to, on one page; and each page has the agents of one framework.

    Frameworks that only the catalogue plays have none. The agents of stories of the catalogue, and those that only show
    one idiom, are no examples.
    """
    named = {page.stem: set(re.findall(r"tests/own_agents/(\w+/\w+\.py)", page.read_text())) for page in PAGES}
    files = {path.relative_to(AGENTS).as_posix() for path in AGENTS.glob("*/test_*.py") if path.name not in NO_EXAMPLES}

    assert files == set().union(*named.values())
    assert {page: int(page not in WITHOUT_AGENTS) for page in named if page != "README"} == {
        page: len({name.partition("/")[0] for name in names}) for page, names in named.items() if page != "README"
    }


def test_a_changed_example_is_noticed(tool: Any, tmp_path: Path) -> None:
    """The text of the file takes the place of what a page has."""
    tmp_path.joinpath("test_it.py").write_text("new = 1\n")
    page = "Text.\n\n<!-- example: test_it.py -->\n```python\nold = 1\n```\n\nMore.\n"

    assert "Text.\n\n<!-- example: test_it.py -->\n```python\nnew = 1\n```\n\nMore.\n" == tool.fill(page, tmp_path)


CLIENTS = {
    "agent_framework.openai": "agent-framework-openai",
    "agno.models.openai": "openai",
    "autogen_ext.models.openai": "autogen-ext[openai]",
    "langchain_openai": "langchain-openai",
    "strands.models.openai": "strands-agents[openai]",
}
"""What the modules of models need that no extra installs."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in {"README", *WITHOUT_AGENTS}], ids=lambda page: page.stem
)
def test_what_the_model_of_an_example_needs_is_said(page: Path) -> None:
    """Where the extra of the framework does not install it."""
    text = page.read_text(encoding="utf-8")
    needed = {CLIENTS[name] for name in re.findall(r"^ *from ([\w.]+) import", text, re.MULTILINE) if name in CLIENTS}

    assert needed == set(re.findall(r"its model needs `([^`]+)`", text))
