"""Stdio bridge: command that connects its standard streams to an MCP server.

It runs in the interpreter of the server, needs the standard library only, and is started as a file.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from threading import Thread

READ_SIZE = 65536


def main() -> None:
    """Connect, name the server, and copy data until either side ends."""
    parser = argparse.ArgumentParser(description="relay an MCP server of pytest-approvals over stdio")
    parser.add_argument("--connect", metavar="HOST:PORT/NAME", required=True, help="the server's address")
    place, _, name = parser.parse_args().connect.partition("/")
    host, _, port = place.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: no server listens at {place!r}: {error}\n")
    # Messages are small, and the client waits for each: buffering would delay all of them.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"{name}\n".encode())
    Thread(target=_copy_input, args=(connection,), daemon=True).start()
    while data := connection.recv(READ_SIZE):
        os.write(sys.stdout.fileno(), data)


def _copy_input(connection: socket.socket) -> None:
    while data := os.read(sys.stdin.fileno(), READ_SIZE):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
