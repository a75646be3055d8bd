"""The server in front of an agent, or of a factory of agents."""

from __future__ import annotations

import warnings
from typing import Any

from .root import Root


def made_server(agent: Any, root: Root) -> Any:
    """
    Makes the server, which keeps what it has to keep below *root*.

    Arguments:
        agent: An agent, or a function that makes one for each request.
    """
    from agent_framework_foundry_hosting import ResponsesHostServer

    # That agents made of workflows are deprecated here is no news to whoever chose them; it is said with a request.
    warnings.filterwarnings("ignore", message="Hosting WorkflowAgent ", category=DeprecationWarning)
    with root.used(), root.as_current_folder():
        # Telemetry would be written to stdout.
        return ResponsesHostServer(agent, configure_observability=None)


def keeps_files() -> bool:
    """Says whether this release keeps all it has in files; early ones keep requests and responses in memory."""
    import agent_framework_foundry_hosting as hosting

    return hasattr(hosting, "AgentSessionStoreProvider")


def takes_factories() -> bool:
    """Says whether this release takes a function that makes an agent for each request."""
    import importlib.util

    return importlib.util.find_spec("agent_framework_foundry_hosting._agent_source") is not None
