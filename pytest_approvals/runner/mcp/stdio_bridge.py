"""
The command of a server over stdio: hands lines on between its own standard streams and a server on the loopback.

It runs in the interpreter of whoever serves, needs the standard library only, and is started as a file.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from threading import Thread

READ_SIZE = 65536


def main() -> None:
    """Connects, says which server is meant, and relays until either side ends."""
    parser = argparse.ArgumentParser(description="relay an MCP server of pytest-approvals over stdio")
    parser.add_argument("--connect", metavar="HOST:PORT/NAME", required=True, help="the server's address")
    place, _, name = parser.parse_args().connect.partition("/")
    host, _, port = place.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: no server listens at {place!r}: {error}\n")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"{name}\n".encode())
    Thread(target=_send, args=(connection,), daemon=True).start()
    while piece := connection.recv(READ_SIZE):
        os.write(sys.stdout.fileno(), piece)


def _send(connection: socket.socket) -> None:
    while piece := os.read(sys.stdin.fileno(), READ_SIZE):
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
