"""Import graph of the package, and the rooms that docs/architecture.md draws.

`python -m pytest_approvals.devtools.import_graph` prints the arrows between rooms and every cycle.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, frozenset[str]]
"""The modules that each module imports, by dotted name."""

_ROW = re.compile(r"^\| `(?P<room>\w+)` \| [^|]+ \|(?P<imports>[^|]*)\|$", re.MULTILINE)


def read_import_graph(package: Path) -> Graph:
    """Return what each module below the folder *package* imports of it: at the top, in functions and for types."""
    paths = {_module_name(package, path): path for path in package.rglob("*.py")}
    return {
        module: frozenset(_imported_modules(module, path, paths)) - {module} for module, path in sorted(paths.items())
    }


def read_rooms(page: str) -> dict[str, frozenset[str]]:
    """Return the rooms of the page's table, each with the rooms that it may import."""
    return {row["room"]: frozenset(re.findall(r"`(\w+)`", row["imports"])) for row in _ROW.finditer(page)}


def room_of(module: str) -> str:
    """Return the top-level entry of the package that *module* belongs to; the package itself is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def find_arrows(graph: Graph) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the arrows between rooms, each with the imports that make it."""
    arrows = defaultdict(list)
    for module, imported_modules in graph.items():
        for imported in sorted(imported_modules):
            if room_of(module) != room_of(imported):
                arrows[room_of(module), room_of(imported)].append((module, imported))
    return dict(arrows)


def find_problems(graph: Graph, rooms: Mapping[str, frozenset[str]]) -> list[str]:
    """Return a line for each difference between the rooms and arrows of the graph and those of the page."""
    arrows = find_arrows(graph)
    existing = {room_of(module) for module in graph}
    problems = [f"room '{room}' is not on the page" for room in sorted(existing - rooms.keys())]
    problems += [f"the page names room '{room}', which does not exist" for room in sorted(rooms.keys() - existing)]
    for (room, imported_room), imports in sorted(arrows.items()):
        if room in rooms and imported_room not in rooms[room]:
            problems.append(f"arrow {room} -> {imported_room} is not drawn: {imports[0][0]} imports {imports[0][1]}")
    for room, imported_rooms in sorted(rooms.items()):
        problems += [
            f"the page draws {room} -> {imported_room}, which nothing needs"
            for imported_room in sorted(imported_rooms)
            if (room, imported_room) not in arrows
        ]
    return problems


def find_cycles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other (Tarjan's strongly connected components of two or more)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for successor in sorted(graph.get(node, ())):
            if successor not in index:
                visit(successor)
                low[node] = min(low[node], low[successor])
            elif successor in stack:
                low[node] = min(low[node], index[successor])
        # No node of the component reaches one that was visited before it.
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                cycles.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return cycles


def graph_of_rooms(graph: Graph) -> dict[str, frozenset[str]]:
    """Return the graph of the rooms."""
    successors: dict[str, set[str]] = {room_of(module): set() for module in graph}
    for room, imported_room in find_arrows(graph):
        successors[room].add(imported_room)
    return {room: frozenset(imported) for room, imported in successors.items()}


def _module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported_modules(module: str, path: Path, paths: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute_name(node, module, is_package=path.name == "__init__.py")
            for alias in node.names:
                # `from package import name` may import a module or a name of the package.
                if f"{source}.{alias.name}" in paths:
                    yield f"{source}.{alias.name}"
                elif source in paths:
                    yield source


def _absolute_name(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parents = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*parents, node.module] if node.module else parents)


def main() -> int:
    """Print the arrows between rooms and every cycle; return 1 if there is a cycle."""
    graph = read_import_graph(Path(__file__).parents[1])
    rooms = graph_of_rooms(graph)
    for room, imported_rooms in sorted(rooms.items()):
        sys.stdout.write(f"{room}: {', '.join(sorted(imported_rooms))}\n")
    cycles = [*find_cycles(graph), *find_cycles(rooms)]
    for cycle in cycles:
        sys.stdout.write(f"cycle: {' <-> '.join(cycle)}\n")
    sys.stdout.write(f"{len(graph)} modules in {len(rooms)} rooms\n")
    return 1 if cycles else 0


if __name__ == "__main__":
    sys.exit(main())
