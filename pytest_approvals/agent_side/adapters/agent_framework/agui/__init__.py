"""
Agents behind the AG-UI protocol (`agent-framework-ag-ui`), as a user interface would drive them.

A run is a stream of events. A gated call ends it with an interrupt, and the next run's `resume` has to say something
about every interrupt. The interface keeps the messages of the thread, as the last snapshot gave them; what is open is
kept in the memory of the process.
"""

from __future__ import annotations

from .session import Interface, InterfaceChat

__all__ = ["Interface", "InterfaceChat"]
