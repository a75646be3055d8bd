"""The requests that were read last: a body that comes again is not read and judged anew."""

from __future__ import annotations

from .asked import Asked

MANY = 16
LARGE = 16 * 1024


class RecentRequests:
    """The last `MANY` requests of a conversation, by their bodies; those larger than `LARGE` are left out."""

    def __init__(self) -> None:
        self._read: dict[bytes, Asked] = {}

    def get(self, raw: bytes) -> Asked | None:
        """Gives what a body was read as; None where it has to be read."""
        return self._read.get(raw)

    def keep(self, raw: bytes, asked: Asked) -> None:
        """Keeps what a body was read as, in place of what was read longest ago."""
        if len(raw) > LARGE:
            return
        while len(self._read) >= MANY:
            del self._read[next(iter(self._read))]
        self._read[raw] = asked

    def forget(self) -> None:
        """Forgets everything: the same body is to be read in another way from now on."""
        self._read.clear()
