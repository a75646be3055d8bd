"""What an installed framework has, read from its sources."""

import socket
import sys
from pathlib import Path

import pytest

from pytest_approvals.agent_side.kit.feature_detection import explain_missing_postgres, has_source


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a package that cannot be imported, and need not be; each has a name of its own."""
    package = tmp_path / f"{tmp_path.name}_framework"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package


def test_a_name_is_looked_for_in_the_sources(here: Path) -> None:
    """A file that is not there has no names."""
    (here / "tools.py").write_text("class Tool: ...\n")

    looked_for = [("tools.py", "class Tool"), ("tools.py", "class Approval"), ("mcp.py", "class Tool")]
    assert [True, False, False] == [has_source(here.name, file, text) for file, text in looked_for]


def test_a_file_is_looked_for(here: Path) -> None:
    """Its name is enough."""
    (here / "mcp.py").touch()

    assert (True, False) == (has_source(here.name, "mcp.py"), has_source(here.name, "stores.py"))


def test_a_package_in_a_namespace_is_found(here: Path) -> None:
    """The namespace is not imported for it."""
    below = here.parent / f"{here.name}_namespace" / "inner"
    below.mkdir(parents=True)
    for name in ("__init__.py", "tools.py"):
        (below / name).touch()
    package = f"{below.parent.name}.inner"

    assert (True, False) == (has_source(package, "tools.py"), has_source(package, "mcp.py"))
    assert below.parent.name not in sys.modules


@pytest.mark.parametrize("package", ["no_such_framework", "no_such_namespace.framework"])
def test_where_there_is_no_framework_nothing_is_missing(package: str) -> None:
    """The facts are those of the latest release then."""
    assert has_source(package, "tools.py", "anything")


def test_a_store_on_a_server_needs_the_server_and_its_packages(here: Path) -> None:
    """What is missing is named with what to install, unless the framework is not installed either."""
    needed = {here.name: "present", f"{here.name}_driver": "driver[binary]"}

    without_server = explain_missing_postgres(here.name, "", needed)
    without_driver = explain_missing_postgres(here.name, "postgresql://", needed)

    assert {"native.postgres": "no server is given: `PYTEST_APPROVALS_POSTGRES` is its address"} == without_server
    assert {"native.postgres": "driver[binary] not installed: pip install 'driver[binary]'"} == without_driver
    assert {} == explain_missing_postgres(here.name, "postgresql://", {here.name: "present"})
    assert {} == explain_missing_postgres(f"{here.name}_framework", "postgresql://", needed)


def test_a_server_that_does_not_answer_is_named(here: Path) -> None:
    """Its runs would fail, some of them as if the framework had lost what it stored."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = explain_missing_postgres(here.name, f"postgresql://postgres@127.0.0.1:{port}/one", {})

    assert found["native.postgres"].startswith(
        f"no server answers at 127.0.0.1:{port}, where `PYTEST_APPROVALS_POSTGRES` says: "
    )


def test_a_server_that_answers_is_used(here: Path) -> None:
    """Whether it is PostgreSQL, its driver says."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert {} == explain_missing_postgres(here.name, f"postgresql://postgres@127.0.0.1:{port}/one", {})


def test_an_address_that_is_none_is_named(here: Path) -> None:
    """A port is a number."""
    found = explain_missing_postgres(here.name, "postgresql://127.0.0.1:many/one", {})

    assert found["native.postgres"].startswith("`PYTEST_APPROVALS_POSTGRES` is no address of a server: ")
