"""Realistic agents of each framework, in a folder with the name of its adapter, tested as the docs say.

Those of frameworks that have an environment of their own are run by `tools/adapter_tests.py`.
"""

from __future__ import annotations

from pathlib import Path

from pytest_approvals.agents.adapters import get_adapter, is_installed
from pytest_approvals.agents.spec import AgentSpec

collect_ignore = [
    folder.name
    for folder in sorted(Path(__file__).parent.iterdir())
    if folder.is_dir() and folder.name != "__pycache__" and not is_installed(get_adapter(AgentSpec.parse(folder.name)))
]
