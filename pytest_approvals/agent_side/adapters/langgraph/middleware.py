"""Middleware of a user's graph: what its hooks are, and what they may do to the messages."""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType
from typing import Any


def read_cell(cell: Any) -> Any:
    """Return the content of a cell of a closure; None if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        # The cell is of a name that has no value yet.
        return None


def find_owners(function: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the middleware whose methods a wrapper of tool calls is made of."""
    if not callable(function) or id(function) in seen:
        return
    seen.add(id(function))
    if hasattr(function, "__self__"):
        yield function.__self__
    held = [getattr(function, "__wrapped__", None), *(getattr(function, "__closure__", None) or ())]
    for value in held:
        yield from find_owners(read_cell(value) if isinstance(value, CellType) else value, seen)


def must_block(graph: Any) -> bool:
    """Return whether `invoke` alone can run *graph*: its middleware has hooks that block, without awaitable ones."""
    nodes = [node.bound for node in graph.nodes.values()]
    hooked = [getattr(node, name, None) for node in nodes for name in ("_awrap_tool_call", "afunc")]
    owners = [owner for function in hooked for owner in find_owners(function, set())]
    kinds = {_read_hook_kind(owner, hook) for owner in owners for hook in ("wrap_tool_call", "wrap_model_call")}
    inner = [subgraph for node in graph.nodes.values() for subgraph in getattr(node, "subgraphs", None) or ()]
    # With hooks of both kinds, no run reaches the end, which is for the framework to say.
    return ("blocking" in kinds or any(map(must_block, inner))) and "awaitable" not in kinds


def _read_hook_kind(middleware: Any, hook: str) -> str:
    """Return whether a middleware has one form of a hook only, and which."""
    base = next((kind for kind in type(middleware).__mro__ if kind.__name__ == "AgentMiddleware"), type(middleware))
    forms = {"blocking": hook, "awaitable": f"a{hook}"}
    own = [
        form for form, name in forms.items() if getattr(type(middleware), name, None) is not getattr(base, name, None)
    ]
    return own[0] if len(own) == 1 else ""


def is_of_user(middleware: Any) -> bool:
    """Return whether a user wrote a middleware: LangChain makes those of decorated functions in `types`."""
    module = type(middleware).__module__
    return not module.startswith("langchain.agents.middleware.") or module.endswith(".types")


_EDITING = ("summarization", "pii", "context_editing")
"""Modules of LangChain's own middleware that leave messages out, or say them in other words."""

_HOOKS = ("before_agent", "before_model", "after_model", "after_agent", "wrap_model_call")


def edits_history(graph: Any) -> bool:
    """Return whether the user's own settings or code may change what the model is told of earlier turns.

    These are some middleware of LangChain, hooks around the model, and nodes of a graph of the user's own.
    """
    functions = [getattr(node.bound, name, None) for node in graph.nodes.values() for name in ("func", "afunc")]
    if any(_is_of_node(function) for function in functions):
        return True
    owners = [owner for function in functions for owner in find_owners(function, set())]
    return any(_may_edit(owner) for owner in owners)


def _is_of_node(function: Any) -> bool:
    """Return whether a function is one that the user wrote as a node."""
    if function is None or hasattr(function, "__self__"):
        return False
    return (getattr(function, "__module__", None) or "").partition(".")[0] not in ("langchain", "langgraph")


def _may_edit(owner: Any) -> bool:
    base = next((kind for kind in type(owner).__mro__ if kind.__name__ == "AgentMiddleware"), None)
    if base is None:
        return False
    if not is_of_user(owner):
        return type(owner).__module__.rpartition(".")[2] in _EDITING
    names = [name for hook in _HOOKS for name in (hook, f"a{hook}")]
    return any(getattr(type(owner), name, None) is not getattr(base, name, None) for name in names)
