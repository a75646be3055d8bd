"""Specs, adapters, and what can run here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_approvals import extensions
from pytest_approvals.agent_side.contract.metadata import load_agent_class
from pytest_approvals.agents.adapters import (
    find_local_agent,
    get_adapter,
    list_adapter_names,
    list_all_agents,
    list_default_agents,
    load_flavours,
    resolve_local_agent,
)
from pytest_approvals.agents.launch import resolve_recipe
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AdapterError, AgentUnavailable, UnknownName, UsageError
from pytest_approvals.simulation import ReferenceAgent

ADAPTER = """\
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract import Agent

class Toy(Agent):
    framework = {framework!r}
    packages = {packages!r}
    missing = dict.fromkeys(CAPABILITIES, "a toy")

    async def turn(self, text, decisions, *, stream): ...
    async def pending(self): ...

FLAVOURS = {{"": Toy, "loud": Toy}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project as the current folder; what it imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.endswith("_adapter") or name == "offered":
            del sys.modules[name]


def write_adapter(path: Path, framework: str | None = None, packages: tuple[str, ...] = ()) -> None:
    path.write_text(ADAPTER.format(framework=framework, packages=packages))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("toy", AgentSpec(name="toy")),
        ("toy.loud", AgentSpec(name="toy", flavour="loud")),
        ("toy==1.2.0rc1", AgentSpec(name="toy", version="1.2.0rc1")),
        ("toy.loud==1.2", AgentSpec(name="toy", flavour="loud", version="1.2")),
        ("toy.loud@../a folder", AgentSpec(name="toy", flavour="loud", checkout="../a folder")),
    ],
)
def test_a_spec_reads_back_as_it_is_written(text: str, spec: AgentSpec) -> None:
    """Name, flavour, version and checkout are what a spec says."""
    assert (spec, text) == (AgentSpec.parse(text), str(spec))


@pytest.mark.parametrize("text", ["", "1toy", "toy=1.0", "toy==", "toy.", "toy@", "toy loud"])
def test_what_is_no_spec_is_refused(text: str) -> None:
    """The error quotes the text and says what to write."""
    with pytest.raises(UsageError) as error:
        AgentSpec.parse(text)

    assert f"Invalid agent spec {text!r}: expected NAME[.FLAVOUR][==VERSION|@PATH]" == str(error.value)


def test_the_reference_agent_comes_first() -> None:
    """The adapters of this package are named in a fixed order."""
    names = list_adapter_names()

    assert "reference" == names[0]
    assert sorted(names[1:]) == list(names[1:])


def test_all_agents_are_all_flavours() -> None:
    """Each once, also where it has two names; the reference agent is the first."""
    every = list_all_agents()

    assert every[:2] == ("reference", "reference.chat")
    assert {"pydantic_ai", "pydantic_ai.inline", "openai_agents", "langgraph.per_call"} <= set(every)
    assert len(every) == len({get_adapter(AgentSpec.parse(spec)) for spec in every})


def test_an_unknown_agent_gets_the_nearest_name() -> None:
    """A slip of the pen is answered with the word that was meant."""
    with pytest.raises(UnknownName) as error:
        find_local_agent(AgentSpec.parse("refernce"))

    assert "Unknown agent 'refernce'; did you mean 'reference'?" == str(error.value)


def test_an_unknown_flavour_gets_the_nearest_name(project: Path) -> None:
    """The flavours of the named agent are what is valid."""
    write_adapter(project / "toy_adapter.py")

    with pytest.raises(UnknownName) as error:
        find_local_agent(AgentSpec.parse("toy.laud"))

    assert "Unknown flavour of toy 'laud'; did you mean 'loud'?" == str(error.value)


@pytest.mark.parametrize(
    ("name", "flavour"), [("langgraph", ""), ("langgraph.batched", ""), ("langgraph.per_call", "per_call")]
)
def test_waivers_know_the_default_flavour_without_a_name(name: str, flavour: str) -> None:
    """So that a run that names it has the same waivers as one that does not."""
    assert flavour == find_local_agent(AgentSpec.parse(name)).flavour


def test_the_reference_agent_can_always_run() -> None:
    """It is part of the package, and has no version of its own."""
    found = resolve_local_agent(AgentSpec.parse("reference"))

    assert (ReferenceAgent, None, True) == (found.adapter, found.version, found.available)


def test_a_version_of_an_agent_without_framework_is_refused() -> None:
    """Nothing could be installed for it."""
    with pytest.raises(AgentUnavailable) as error:
        resolve_local_agent(AgentSpec.parse("reference==1.0"))

    assert (
        "agent 'reference==1.0' cannot be started: it has no framework, so neither releases nor checkouts; "
        "use reference"
    ) == str(error.value)


def test_an_agent_may_play_releases_itself() -> None:
    """Each is a class of its own, and nothing has to be installed; without a version it is the newest one released."""
    newest, older, bound = (
        resolve_local_agent(AgentSpec.parse(spec)) for spec in ("meai", "meai==10.4", "meai.binding==robust")
    )

    assert ["10.9", "10.4", "robust"] == [newest.version, older.version, bound.version]
    assert [None, None, None] == [resolve_recipe(found.spec) for found in (newest, older, bound)]
    assert older.adapter in load_flavours("meai")[""].releases


@pytest.mark.parametrize("spec", ["meai==10.4", "meai.binding==robust"])
def test_another_process_finds_the_class_for_a_release(spec: str) -> None:
    """By its module and its path in there."""
    adapter = get_adapter(AgentSpec.parse(spec))

    assert adapter is load_agent_class(f"{adapter.__module__}:{adapter.__qualname__}")


def test_a_release_that_is_not_played_is_refused() -> None:
    """With the nearest one that is."""
    with pytest.raises(UnknownName) as error:
        resolve_local_agent(AgentSpec.parse("meai==10.40"))

    assert "Unknown release of meai '10.40'; did you mean '10.4'?" == str(error.value)


def test_an_agent_that_plays_releases_has_no_checkout() -> None:
    """There is nothing that could be checked out."""
    with pytest.raises(AgentUnavailable, match="it has no framework"):
        resolve_local_agent(AgentSpec.parse("meai@../extensions"))


def test_an_agent_that_plays_releases_runs_where_it_is_named() -> None:
    """If no agent is named, the frameworks that are here run."""
    assert "reference" in list_default_agents()
    assert "meai" not in list_default_agents()


def test_a_module_of_the_project_is_an_adapter(project: Path) -> None:
    """`NAME_adapter.py` in the current folder is the adapter NAME, after those of the package."""
    write_adapter(project / "toy_adapter.py")

    assert "toy" == list_adapter_names()[-1]
    assert ["", "loud"] == list(load_flavours("toy"))


def test_an_entry_point_is_an_adapter(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an installed distribution offers in the group can be named, too."""
    info = project / "offering-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_approvals.adapters]\nbrought = offered\n")
    write_adapter(project / "offered.py")
    monkeypatch.syspath_prepend(project)
    extensions._entry_points.cache_clear()

    try:
        assert ["", "loud"] == list(load_flavours("brought"))
    finally:
        extensions._entry_points.cache_clear()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import no_such_framework", "importing it fails: ModuleNotFoundError: No module named 'no_such_framework'"),
        ("FLAVOUR = {}", "its module needs FLAVOURS, a dictionary of Agent classes, the default one under ''"),
    ],
)
def test_a_broken_adapter_is_named(project: Path, text: str, what: str) -> None:
    """An adapter that cannot be used is an error with its name, not a traceback."""
    (project / "toy_adapter.py").write_text(text)

    with pytest.raises(AdapterError) as error:
        load_flavours("toy")

    assert what == error.value.what


def test_a_missing_framework_is_named_with_what_to_do(project: Path) -> None:
    """The adapter is there, its framework is not."""
    write_adapter(project / "toy_adapter.py", framework="no-such-distribution", packages=("no_such_package",))

    with pytest.raises(AgentUnavailable) as error:
        resolve_local_agent(AgentSpec.parse("toy"))

    assert (
        "agent 'toy' cannot be started: no-such-distribution is not installed; "
        "to install it here: pip install no-such-distribution"
    ) == str(error.value)


def test_the_installed_version_can_be_asked_for(project: Path) -> None:
    """A version that is installed here already needs no environment."""
    write_adapter(project / "toy_adapter.py", framework="pytest", packages=("pytest",))

    found = resolve_local_agent(AgentSpec.parse(f"toy=={version('pytest')}"))

    assert (version("pytest"), "pytest") == (found.version, Path(found.where or "").name)


@pytest.mark.parametrize(("spec", "install"), [("toy==1.0", '"pytest==1.0"'), ("toy@../checkout", "-e ../checkout")])
def test_another_version_than_the_installed_one_is_refused(project: Path, spec: str, install: str) -> None:
    """What is here is named, and how the wanted one gets here."""
    write_adapter(project / "toy_adapter.py", framework="pytest", packages=("pytest",))

    with pytest.raises(AgentUnavailable) as error:
        resolve_local_agent(AgentSpec.parse(spec))

    assert str(error.value).endswith(f"; to install it here: pip install {install}")


def test_a_checkout_that_is_imported_can_be_asked_for(project: Path) -> None:
    """A framework that is installed in place runs from its folder."""
    write_adapter(project / "toy_adapter.py", framework="pytest", packages=("pytest",))
    where = Path(resolve_local_agent(AgentSpec.parse("toy")).where or "").parent

    assert resolve_local_agent(AgentSpec.parse(f"toy@{where}")).available


def test_an_agent_that_the_user_has_to_describe_first() -> None:
    """It is none of all agents, and the error says how it is described."""
    remedy = "name its command with --command, or set PYTEST_APPROVALS_ACP_PROGRAM to a JSON file that describes one"

    assert "acp.program" not in list_all_agents()
    with pytest.raises(AgentUnavailable, match=remedy):
        resolve_recipe(AgentSpec.parse("acp.program"))
