"""What an installation brings: extras for frameworks, and no more plugins of pytest than needed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import get_adapter, list_adapter_names, resolve_local_agent
from pytest_approvals.agents.package_registries import PYPI
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentUnavailable

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOCKS = sorted((ROOT / "requirements").rglob("*.txt"))


def distributions(requirements: list[str]) -> set[str]:
    """Returns the names in requirements, as package indexes write them."""
    return {re.split(r"[^\w.-]", text, maxsplit=1)[0].lower().replace("_", "-") for text in requirements}


def python_frameworks() -> dict[str, str]:
    """Returns the distribution of each Python framework, by the name of its extra."""
    found = {}
    for name in list_adapter_names():
        adapter = get_adapter(AgentSpec.parse(name))
        if adapter.framework is not None and adapter.registry == PYPI.name:
            found[name.replace("_", "-")] = adapter.framework
    return found


def test_every_python_framework_has_an_extra() -> None:
    """It is called like the agent and brings the framework."""
    frameworks = python_frameworks()

    assert 8 <= len(frameworks)
    assert [] == [name for name, framework in frameworks.items() if framework not in distributions(EXTRAS[name])]


def test_one_extra_has_all_others() -> None:
    """`all` names each of them."""
    named = {name for text in EXTRAS["all"] for name in text.partition("[")[2].rstrip("]").split(",")}

    assert set(EXTRAS) - {"all"} == named


def test_a_base_installation_brings_three_plugins_of_pytest() -> None:
    """Other plugins come with the extra that needs them, so that no project pays for them unasked."""
    plugins = {point.dist.name.lower() for point in entry_points(group="pytest11") if point.dist is not None}

    assert {"faker", "respx", "syrupy"} == distributions(PROJECT["dependencies"]) & plugins
    assert "pytest-httpx2" in distributions(EXTRAS["httpx2"]) & plugins


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_name_no_host(lock: Path) -> None:
    """Packages come from where the installer is configured to look."""
    assert [] == re.findall(r".*(?:://|index-url|find-links).*", lock.read_text(encoding="utf-8"))


def test_a_missing_framework_is_named_with_its_extra() -> None:
    """Its message says what to install."""
    with pytest.raises(AgentUnavailable, match=r"pip install 'pytest-approvals\[autogen\]'"):
        resolve_local_agent(AgentSpec.parse("autogen"))
