"""The examples in docstrings."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import pytest_approvals

ROOT = Path(pytest_approvals.__file__).parent


def modules_with_examples() -> list[str]:
    """Names the modules that show an example."""
    paths = sorted(path for path in ROOT.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    names = (path.relative_to(ROOT.parent).with_suffix("").parts for path in paths)
    return [".".join(parts).removesuffix(".__init__") for parts in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_are_true(name: str) -> None:
    """What a docstring shows is what happens."""
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)

    assert 0 == failed
    assert tried
