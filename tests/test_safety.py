"""The package runs nothing that it reads: no pickles, no marshalled code, no eval or exec, no YAML objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_approvals

PACKAGE = Path(pytest_approvals.__file__).parent
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "__import__"}
UNSAFE_YAML = {"load", "load_all", "unsafe_load", "full_load", "unsafe_load_all", "full_load_all"}


def find_unsafe(source: str) -> Iterator[str]:
    """Yield each way in which *source* could run what it reads, with its line."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Import(names=names):
                imported = (alias.name for alias in names)
                yield from (f"{line}: {name}" for name in imported if name.partition(".")[0] in UNSAFE_MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in UNSAFE_MODULES:
                yield f"{line}: {module}"
            case ast.ImportFrom(module="yaml", names=names):
                yield from (f"{line}: yaml.{alias.name}" for alias in names if alias.name in UNSAFE_YAML)
            case ast.Call(func=ast.Name(id=name)) if name in UNSAFE_CALLS:
                yield f"{line}: {name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr=name)) if name in UNSAFE_YAML:
                yield f"{line}: yaml.{name}"
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                if name.partition(".")[0] in UNSAFE_MODULES:
                    yield f"{line}: {name}"


def test_the_package_runs_nothing_that_it_reads() -> None:
    """In no module."""
    unsafe = [
        f"{path.relative_to(PACKAGE)}:{place}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for place in find_unsafe(path.read_text(encoding="utf-8"))
    ]

    assert [] == unsafe


@pytest.mark.parametrize(
    ("source", "place"),
    [
        pytest.param("import pickle", "1: pickle", id="import"),
        pytest.param("def load():\n    from pickle import loads", "2: pickle", id="lazy-import"),
        pytest.param("import_module('marshal')", "1: marshal", id="import-by-name"),
        pytest.param("value = eval(text)", "1: eval", id="eval"),
        pytest.param("exec(code)", "1: exec", id="exec"),
        pytest.param("import yaml\nyaml.load(text, Loader)", "2: yaml.load", id="yaml"),
        pytest.param("from yaml import unsafe_load", "1: yaml.unsafe_load", id="yaml-by-name"),
    ],
)
def test_an_unsafe_reader_is_found(source: str, place: str) -> None:
    """Wherever it stands."""
    assert [place] == list(find_unsafe(source))
