"""What can be imported from the package itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_approvals


@pytest.mark.parametrize("name", pytest_approvals.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """What `__all__` lists can be imported."""
    assert getattr(pytest_approvals, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    """The imports for type checkers give each public name once."""
    tree = ast.parse(Path(pytest_approvals.__file__).read_text(encoding="utf-8"))
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    seen = [
        alias.asname or alias.name
        for node in ast.walk(checking)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]

    assert sorted(pytest_approvals.__all__) == sorted(seen)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As in every module."""
    with pytest.raises(AttributeError, match="module 'pytest_approvals' has no attribute 'scenarios'"):
        pytest_approvals.scenarios  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    """Names are imported when they are first used."""
    code = "import sys, typing; before = set(sys.modules); import pytest_approvals; print(*set(sys.modules) - before)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert {"pytest_approvals", "__future__"} >= set(printed.split())


def test_a_run_of_a_scenario_needs_no_pydantic() -> None:
    """It takes longer to import than a run takes; only files that are read for the first time, and reports, need it."""
    code = "import sys, pytest_approvals.plugin.items, pytest_approvals.plugin.session_finish; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "pytest_approvals.reporting.report" in printed.split()
    assert "pydantic" not in printed.split()


def test_runs_in_one_process_need_nothing_of_others(tmp_path: Path) -> None:
    """What starts processes and talks to them is imported with the first agent that lives in one."""
    words = ["run", "basics/both-approved", "--agent", "reference", "--resume", "same", "-p", "no:cacheprovider"]
    code = f"import sys; from pytest_approvals.cli import main; print(main({words})); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    *_, code_of_run, modules = done.stdout.splitlines()

    assert "0" == code_of_run
    assert "pytest_approvals.runner.session" in modules.split()
    assert not {"pytest_approvals.processes.remote_agents", "pytest_approvals.agent_side.rpc.messages"} & {
        *modules.split()
    }
