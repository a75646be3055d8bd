"""What an installed framework has, read from its sources."""

import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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


@pytest.fixture
def answer_startup() -> Iterator[Callable[[bytes], str]]:
    """Start a server that answers the startup message with these bytes; returns the address of a database."""
    with ExitStack() as at_the_end, ThreadPoolExecutor() as threads:

        def serve(answer: bytes) -> str:
            server = at_the_end.enter_context(socket.create_server(("127.0.0.1", 0)))

            def accept() -> None:
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

            threads.submit(accept)
            return f"postgresql://ann@127.0.0.1:{server.getsockname()[1]}/approvals"

        yield serve


def test_a_server_that_goes_on_is_used(here: Path, answer_startup: Callable[[bytes], str]) -> None:
    """It asks for a password, or is ready for queries."""
    asks, ready = b"R\0\0\0\x08\0\0\0\x03", b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"

    assert {} == explain_missing_postgres(here.name, answer_startup(asks), {})
    assert {} == explain_missing_postgres(here.name, answer_startup(ready), {})


def test_a_server_that_refuses_is_named_with_its_reason(here: Path, answer_startup: Callable[[bytes], str]) -> None:
    """A framework may log that, and go on without its store."""
    refusal = b'E\0\0\0\x40SFATAL\0C3D000\0Mdatabase "approvals" does not exist\0\0'
    found = explain_missing_postgres(here.name, answer_startup(refusal), {})

    assert found["native.postgres"].endswith(
        ', where `PYTEST_APPROVALS_POSTGRES` says, refuses: database "approvals" does not exist'
    )


def test_a_server_of_something_else_is_named(here: Path, answer_startup: Callable[[bytes], str]) -> None:
    """It closes the connection."""
    found = explain_missing_postgres(here.name, answer_startup(b""), {})

    assert found["native.postgres"].endswith(", refuses: it closes the connection")


def test_an_address_that_is_none_is_named(here: Path) -> None:
    """A port is a number."""
    found = explain_missing_postgres(here.name, "postgresql://127.0.0.1:many/one", {})

    assert found["native.postgres"].startswith("`PYTEST_APPROVALS_POSTGRES` is no address of a server: ")
