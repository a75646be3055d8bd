"""Feature detection in installed packages: their sources are read, never imported.

Names are looked for, not version numbers: a checkout has no number that says what is in it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


@cache
def find_package_folder(package: str) -> Path | None:
    """Return the folder of a package, which may be part of a namespace package; None if it is not installed."""
    top, *below = package.split(".")
    spec = find_spec(top)
    folders = (Path(place, *below) for place in (spec.submodule_search_locations or () if spec else ()))
    return next((folder for folder in folders if (folder / "__init__.py").is_file()), None)


def has_source(package: str, path: str, text: str = "") -> bool:
    """Return whether a package has a file or folder, and whether that file contains a text.

    A package that is not installed counts as having everything: an adapter then describes its newest release.

    Args:
        package: The import name of the package.
        path: The path of the file or folder below the package.
        text: The text that the file must contain; empty to look for the path alone.
    """
    folder = find_package_folder(package)
    return folder is None or (text in _read_source(folder / path) if text else (folder / path).exists())


def find_missing_imports(package: str, path: str, modules: Iterable[str]) -> list[str]:
    """Return those of *modules* that a source file of a package imports and that are not installed.

    Args:
        package: The import name of the package; one that is not installed lacks nothing.
        path: The path of the file below the package.
        modules: The optional modules to look for.
    """
    folder = find_package_folder(package)
    text = "" if folder is None else _read_source(folder / path)
    return [name for name in modules if f"from {name} " in text.replace(".", " ") and find_spec(name) is None]


def explain_missing_postgres(framework: str, address: str, packages: Mapping[str, str]) -> dict[str, str]:
    """Return the store on a PostgreSQL server with the reason why there is none; nothing if it can be used.

    Args:
        framework: The import name of a package of the framework; one that is not installed lacks nothing.
        address: The address of the server; empty if there is none.
        packages: The packages that the store needs, by import name with their requirements.
    """
    if not address:
        return {"native.postgres": "no server is given: `PYTEST_APPROVALS_POSTGRES` is its address"}
    is_installed = find_package_folder(framework) is not None
    absent = [text for name, text in packages.items() if is_installed and find_package_folder(name) is None]
    install = " ".join(f"'{text}'" if "[" in text else text for text in absent)
    if absent:
        return {"native.postgres": f"{' and '.join(absent)} not installed: pip install {install}"}
    why = _find_unreachable(address) if is_installed else ""
    return {"native.postgres": why} if why else {}


@cache
def _find_unreachable(address: str) -> str:
    """Return why no server can be reached at an address; empty if one can, or if the address names no host."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _POSTGRES_PORT
    except ValueError as error:
        return f"`PYTEST_APPROVALS_POSTGRES` is no address of a server: {error}"
    if host is None:
        return ""
    user = unquote(parts.username or "postgres")
    try:
        with socket.create_connection((host, port), timeout=_SECONDS_TO_CONNECT) as connection:
            refusal = _open_database(connection, user, unquote(parts.path.removeprefix("/")) or user)
    except OSError as error:
        return f"no server answers at {host}:{port}, where `PYTEST_APPROVALS_POSTGRES` says: {error.strerror or error}"
    return f"the server at {host}:{port}, where `PYTEST_APPROVALS_POSTGRES` says, refuses: {refusal}" if refusal else ""


def _open_database(connection: socket.socket, user: str, database: str) -> str:
    """Return why the server refuses a session, in its words; empty if it goes on, as to ask for a password.

    A framework may log that and go on without its store. The messages are those of the frontend/backend protocol
    (https://www.postgresql.org/docs/current/protocol-message-formats.html).
    """
    fields = b"".join(text.encode() + b"\0" for text in ("user", user, "database", database))
    connection.sendall(struct.pack("!ii", len(fields) + 9, _PROTOCOL_3) + fields + b"\0")
    with connection.makefile("rb") as answers:
        while head := answers.read(5):
            kind, size = struct.unpack("!ci", head)
            body = answers.read(size - 4)
            if kind == b"E":
                told = {field[:1]: field[1:] for field in body.split(b"\0") if field}
                return told.get(b"M", b"without a reason").decode(errors="replace")
            if kind == b"Z" or (kind == b"R" and body != _AUTHENTICATED):
                return ""
    return "it closes the connection"


_POSTGRES_PORT = 5432
_PROTOCOL_3 = 196608
_AUTHENTICATED = bytes(4)
_SECONDS_TO_CONNECT = 3.0


@cache
def _read_source(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""
