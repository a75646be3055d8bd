"""The framework of a factory that does not import it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pytest_approvals.errors import UsageError
from pytest_approvals.plugin.user_agent import resolve_user_agent

pytest.importorskip("pydantic_ai")
pytest.importorskip("agents")


def write_module(monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = f"{name}.py"
    exec(code, module.__dict__)
    monkeypatch.setitem(sys.modules, name, module)
    return module


SHOP = """
from pydantic_ai import Agent

def build(model, url):
    return Agent(model)
"""


@pytest.mark.parametrize(
    "code",
    [
        "from shop_of_test import build\nmake = lambda model: build(model, 'url')",
        "import shop_of_test\nmake = lambda model: shop_of_test.build(model, 'url')",
    ],
)
def test_it_is_that_of_the_function_that_is_called(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Several are imported, and a test that adds an argument names none of them."""
    write_module(monkeypatch, "shop_of_test", SHOP)
    make: Callable[..., Any] = write_module(monkeypatch, "test_of_shop", code).make

    assert "pydantic_ai" == resolve_user_agent(make).spec.name


def test_a_factory_that_names_nothing_is_asked_for_its_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell."""
    make: Callable[..., Any] = write_module(monkeypatch, "test_of_shop", "make = lambda model: model.build()").make

    with pytest.raises(UsageError, match="say which: agent="):
        resolve_user_agent(make)
