"""
The conformance kit on every flavour of every adapter: simulations here, frameworks in the folders of their adapters.

The kit drives an adapter in this process, so it is for Python only; agents in other languages have the conformance
command.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import list_adapter_names, load_flavours
from pytest_approvals.agents.package_registries import PYPI
from pytest_approvals.testing import AdapterTests

FOLDERS = Path(__file__).parents[1] / "agent_side" / "adapters"
SIMULATIONS = [name for name in list_adapter_names() if load_flavours(name)[""].framework is None]
FRAMEWORKS = [
    name for name in list_adapter_names() if name not in SIMULATIONS and load_flavours(name)[""].registry == PYPI.name
]


def _class_name(name: str, flavour: str) -> str:
    return "Test" + "".join(word.title() for word in f"{name}_{flavour}".split("_"))


for _name in SIMULATIONS:
    for _flavour, _adapter in load_flavours(_name).items():
        _tests = type(
            _class_name(_name, _flavour), (AdapterTests,), {"adapter": _adapter, "__doc__": f"{_name}.{_flavour}"}
        )
        globals()[_tests.__name__] = _tests
del _tests


def test_the_simulations_are_here() -> None:
    """The reference agent, and the client of Microsoft.Extensions.AI."""
    assert {"reference", "meai"} <= set(SIMULATIONS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_flavour_of_a_framework_has_its_tests(name: str) -> None:
    """A class in the adapter's folder, where they run next to the framework."""
    modules = sorted((FOLDERS / name).glob("test_*conforms.py"))
    tested = {
        each for module in modules for each in re.findall(r"^    adapter = (\w+)$", module.read_text(), re.MULTILINE)
    }

    assert {adapter.__name__ for adapter in load_flavours(name).values()} == tested
