"""Entry point of an agent process: `python FOLDER_OF_THIS_FILE [OPTIONS]`.

OPTIONS is a JSON object: `path` holds folders for the front of `sys.path`; with `control` (a descriptor) and `agent`
the process becomes a fork server, see `process/fork_server.py`. Wherever the folder was copied, it becomes the package
`pytest_approvals.agent_side`, so that an adapter's imports and names are the same everywhere.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "pytest_approvals.agent_side"


def _set_path(folders: list[str]) -> None:
    """Put *folders* first, and remove this folder, which Python has added: its modules are not top-level ones."""
    rest = [entry for entry in sys.path if entry not in folders and os.path.abspath(entry) != HERE]
    sys.path[:] = [*folders, *rest]


def _register_package() -> None:
    """Register this folder as the package, unless it can be imported as that anyway."""
    parent = find_spec("pytest_approvals")
    locations = (parent.submodule_search_locations if parent else None) or []
    if any(os.path.realpath(os.path.join(place, "agent_side")) == os.path.realpath(HERE) for place in locations):
        return
    outer = ModuleType("pytest_approvals")
    outer.__path__ = []
    spec = spec_from_file_location(PACKAGE, os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE])
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules |= {"pytest_approvals": outer, PACKAGE: package}
    spec.loader.exec_module(package)
    # Adapters of other distributions import this public name; the module behind it is not copied.
    sys.modules["pytest_approvals.adapter"] = import_module(f"{PACKAGE}.adapter")


def main() -> None:
    """Serve on standard input and output, or become a fork server."""
    options: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    _set_path(options.get("path", []))
    _register_package()
    import_module(f"{PACKAGE}.process.fork_server").start(options)


if __name__ == "__main__":
    main()
