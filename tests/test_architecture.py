"""docs/architecture.md is the picture of the package, and the package keeps to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pytest_approvals
from pytest_approvals.devtools.import_graph import (
    Graph,
    find_cycles,
    find_problems,
    graph_of_rooms,
    read_import_graph,
    read_rooms,
)

PACKAGE = Path(pytest_approvals.__file__).parent
ROOT = PACKAGE.parent
PAGE = ROOT / "docs" / "architecture.md"

MODULES = {
    "demo/__init__.py": "",
    "demo/runner/__init__.py": "",
    "demo/runner/run.py": "from demo.errors import Failure\n",
    "demo/errors.py": "",
}
TABLE = """\
| room | sentence | imports |
|---|---|---|
| `__init__` | Public API. | |
| `runner` | One run. | `errors` |
| `errors` | The errors. | |
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The import graph of the package."""
    return read_import_graph(PACKAGE)


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    return PAGE.read_text(encoding="utf-8")


def problems_of(folder: Path, changed: dict[str, str] | None = None, table: str = TABLE) -> list[str]:
    """Return what is wrong with a package of two rooms after files were *changed* or added."""
    for name, text in (MODULES | (changed or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return find_problems(read_import_graph(folder / "demo"), read_rooms(table))


def test_the_page_draws_the_rooms_and_their_arrows(graph: Graph, page: str) -> None:
    """Each room is in the table, with exactly the rooms that it imports."""
    assert [] == find_problems(graph, read_rooms(page))


def test_no_modules_import_each_other(graph: Graph) -> None:
    """Neither at the top nor in functions nor for types."""
    assert [] == find_cycles(graph)


def test_no_rooms_import_each_other(graph: Graph) -> None:
    """Arrows between rooms run one way."""
    assert [] == find_cycles(graph_of_rooms(graph))


def test_arrows_run_down_the_table(page: str) -> None:
    """A room imports only rooms that stand below it."""
    rooms = read_rooms(page)
    order = list(rooms)

    assert [] == [
        (room, imported) for room in rooms for imported in rooms[room] if order.index(imported) < order.index(room)
    ]


def test_there_are_few_rooms_and_modules(graph: Graph) -> None:
    """A newcomer can keep 22 rooms in mind."""
    assert 22 >= len(graph_of_rooms(graph))
    assert 545 >= len(graph)


def test_each_path_of_the_page_exists(page: str) -> None:
    """What the page names in backticks as a path is a file or a folder."""
    paths = re.findall(r"`([\w.-]+/[\w./-]*)`", page)

    assert [] == [path for path in paths if not (ROOT / path).exists() and not (PACKAGE / path).exists()]
    assert len(paths) > 25


def test_the_table_of_changes_has_a_row_for_each_common_change(page: str) -> None:
    """At least 25 of them."""
    rows = page.partition("## I want to change")[2].partition("\n## ")[0]

    assert 25 <= rows.count("\n| ") - 1


def test_a_package_as_drawn_has_no_problem(tmp_path: Path) -> None:
    """The counterpart of the tests below."""
    assert [] == problems_of(tmp_path)


@pytest.mark.parametrize(
    "import_",
    [
        pytest.param("from demo.runner import run\n", id="at-the-top"),
        pytest.param("def fail():\n    from demo.runner.run import Failure\n", id="in-a-function"),
        pytest.param("if TYPE_CHECKING:\n    import demo.runner.run\n", id="for-types"),
        pytest.param("from .runner import run\n", id="relative"),
    ],
)
def test_an_added_arrow_is_a_problem(tmp_path: Path, import_: str) -> None:
    """Wherever the import stands."""
    assert ["arrow errors -> runner is not drawn: demo.errors imports demo.runner.run"] == problems_of(
        tmp_path, {"demo/errors.py": import_}
    )


def test_an_arrow_that_nothing_needs_is_a_problem(tmp_path: Path) -> None:
    """The page draws no more than there is."""
    assert ["the page draws runner -> errors, which nothing needs"] == problems_of(tmp_path, {"demo/runner/run.py": ""})


def test_a_room_that_the_page_does_not_name_is_a_problem(tmp_path: Path) -> None:
    """A new folder needs a row."""
    assert ["room 'attic' is not on the page"] == problems_of(tmp_path, {"demo/attic/__init__.py": ""})


def test_a_room_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    """A row needs its folder."""
    table = TABLE + "| `attic` | Old things. | |\n"

    assert ["the page names room 'attic', which does not exist"] == problems_of(tmp_path, table=table)


@pytest.mark.parametrize(
    "import_",
    [
        pytest.param("from demo.runner.run import Run\n", id="at-the-top"),
        pytest.param("def play():\n    import demo.runner.run\n", id="in-a-function"),
        pytest.param("if TYPE_CHECKING:\n    from .run import Run\n", id="for-types"),
    ],
)
def test_modules_that_import_each_other_are_a_cycle(tmp_path: Path, import_: str) -> None:
    """Lazy and type-only imports included."""
    problems_of(tmp_path, {"demo/runner/run.py": "from demo.runner import turn\n", "demo/runner/turn.py": import_})

    assert [["demo.runner.run", "demo.runner.turn"]] == find_cycles(read_import_graph(tmp_path / "demo"))
