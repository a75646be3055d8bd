"""PostgreSQL server of the installed package, which tests start on the loopback interface."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class PostgresServer:
    """A server that runs, to which anybody on this machine may connect."""

    address: str
    binaries: Path
    user: str | None

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the package, as the user that the server belongs to."""
        subprocess.run(
            [str(self.binaries / program), *arguments],
            check=True,
            cwd="/",
            user=self.user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )

    def create_database(self, name: str) -> str:
        """Create a database, and return its address."""
        self.run("createdb", "--maintenance-db", f"{self.address}/postgres", name)
        return f"{self.address}/{name}"

    def drop_database(self, name: str) -> None:
        """Remove a database, also one to which somebody is connected."""
        self.run("dropdb", "--force", "--maintenance-db", f"{self.address}/postgres", name)


def find_binaries() -> Path | None:
    """Return the folder of the server's programs, which Debian keeps off the path."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server, and stop it in the end; the test is skipped where the package is missing."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not on this machine")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        user = None
        # The server refuses to run as root.
        if os.getuid() == 0:
            user = "postgres" if "postgres" in {each.pw_name for each in pwd.getpwall()} else "nobody"
            shutil.chown(folder, user)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        data = f"{folder}/data"
        server = PostgresServer(f"postgresql://postgres@127.0.0.1:{port}", binaries, user)
        server.run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-instructions")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        server.run("pg_ctl", "-D", data, "start", "-w", "-l", f"{folder}/log", "-o", options)
        try:
            yield server
        finally:
            server.run("pg_ctl", "-D", data, "stop", "-m", "immediate")
