"""Guard of Python processes that a test starts: this folder is on their import path, and Python imports this module.

It loads the network guard on the first use of a socket only, and then imports the `sitecustomize` that it hides.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_GUARD_FILE = os.path.join(os.path.dirname(_HERE), "network_guard.py")
_loaded: list[ModuleType | None] = []


def _guard_on_first_use(event: str, facts: tuple[Any, ...]) -> None:
    if _loaded or not event.startswith(("socket.", "http.client.send")):
        return
    # While the guard is being imported, what it imports raises events, too.
    _loaded.append(None)
    spec = spec_from_file_location("_approvals_network_guard", _GUARD_FILE)
    if spec is None or spec.loader is None:
        return
    # Dataclasses look their module up by its name.
    guard = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(guard)
        guard.guard_from_environment()
    except Exception as error:  # such as a Python that is too old for it
        sys.stderr.write(f"pytest-approvals cannot guard this process: {type(error).__name__}: {error}\n")
        return
    # The hook that it has added does not get the event that is being handled.
    guard._audit(event, facts)


def _import_hidden_module() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    own = sys.modules.pop("sitecustomize")
    try:
        import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own


if __name__ == "sitecustomize":
    if "PYTEST_APPROVALS_TEST" in os.environ:
        sys.addaudithook(_guard_on_first_use)
    _import_hidden_module()
