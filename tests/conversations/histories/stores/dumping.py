"""The story that the scripts `make_*` next to this one play, and the dump of the database that a framework wrote."""

import sqlite3
import subprocess
from pathlib import Path

STORED = Path(__file__).parent / "stored"

PROMPT = "Pay 5 and 6"
CALLS = (("c1", "pay", {"amount": 5}), ("c2", "pay", {"amount": 6}), ("c3", "read", {"path": "x"}))


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


def dump(database, name):
    """Write a database as SQL: text that a repository can compare."""
    connection = sqlite3.connect(database)
    (STORED / f"{name}.sql").write_text("".join(f"{line}\n" for line in connection.iterdump()))
    connection.close()


def dump_server(url, name):
    """Write a PostgreSQL database as SQL, with a statement for each row."""
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    text = subprocess.run(["pg_dump", *options, url], check=True, capture_output=True, text=True).stdout
    # The first and the last line have a word that differs from dump to dump.
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\"))]
    (STORED / f"{name}.postgres.sql").write_text("".join(f"{line}\n" for line in lines))
