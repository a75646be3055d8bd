"""
The conformance kit on every flavour of the adapters of this package whose framework is written in Python: it drives an
adapter in this process. Those in other languages prove themselves with the kit for processes of agents.
"""

from __future__ import annotations

from pytest_approvals.agents import adapter_names, flavours
from pytest_approvals.registries import PYPI
from pytest_approvals.testing import AdapterTests


def _class_name(name: str, flavour: str) -> str:
    return "Test" + "".join(word.title() for word in f"{name}_{flavour}".split("_"))


for _name in adapter_names():
    for _flavour, _adapter in flavours(_name).items():
        if _adapter.registry != PYPI.name:
            continue
        _tests = type(
            _class_name(_name, _flavour), (AdapterTests,), {"adapter": _adapter, "__doc__": f"{_name}.{_flavour}"}
        )
        globals()[_tests.__name__] = _tests
del _tests
