"""MCP servers whose tools are given, and where clients find them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from .tools import OfferedTool

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """
    Where a server is; a client takes either.

    Attributes:
        url: For streamable HTTP.
        command: For stdio: the program to start, and its arguments.
    """

    url: str
    command: tuple[str, ...]


class McpServers:
    """The servers that belong together, those of one run; they end together."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def open(self, name: str, tools: Iterable[OfferedTool]) -> Address:
        """
        Serves *tools* as the server called *name*.

        Errors:
            UsageError: The MCP SDK is not installed.
        """
        from .house import house
        from .protocol import server_of

        there = house()
        key = there.take_in(server_of(name, tuple(tools)))
        self._keys.append(key)
        relay = Path(__file__).with_name("relay.py")
        return Address(
            url=f"http://127.0.0.1:{there.http}/{key}/mcp",
            command=(sys.executable, "-I", str(relay), "--connect", f"127.0.0.1:{there.lines}/{key}"),
        )

    def close(self) -> None:
        """Ends all servers and the connections to them; what still runs is cancelled."""
        from .house import house

        while self._keys:
            house().let_go(self._keys.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
