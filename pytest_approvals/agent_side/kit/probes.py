"""Probes in a user's own objects, put in once and taken out with the last session that uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Undo = Callable[[], None]


@dataclass(slots=True)
class _Patch:
    # The reference keeps the object alive, and so its id from being given to another one.
    owner: Any
    before: dict[str, Any]
    place: Callable[[Any, str, Any], None] = object.__setattr__
    users: int = 0


_PATCHES: dict[int, _Patch] = {}


def patch_shared(
    owner: Any,
    build: Callable[[], Mapping[str, Any]],
    *,
    place: Callable[[Any, str, Any], None] = object.__setattr__,
) -> Undo:
    """Replace attributes of one object for as long as somebody uses it.

    The attributes bypass `__setattr__` of the class, because pydantic models refuse attributes that are no fields.

    Args:
        owner: The object; equal calls with the same object share one patch.
        build: Returns the new attributes by name. It is only called if the object is not patched yet.
        place: Sets an attribute; `setattr` for a class.

    Returns:
        A function that gives the patch up. The last one that is called restores the object.
    """
    patch = _PATCHES.get(id(owner))
    if patch is None:
        attributes = build()
        patch = _PATCHES[id(owner)] = _Patch(
            owner, {name: vars(owner).get(name, _ABSENT) for name in attributes}, place
        )
        for name, value in attributes.items():
            place(owner, name, value)
    patch.users += 1

    def undo() -> None:
        patch.users -= 1
        if patch.users == 0:
            _restore(patch)

    return undo


_ABSENT = object()


def _restore(patch: _Patch) -> None:
    del _PATCHES[id(patch.owner)]
    for name, value in patch.before.items():
        if value is _ABSENT and isinstance(patch.owner, type):
            delattr(patch.owner, name)
        elif value is _ABSENT:
            object.__delattr__(patch.owner, name)
        else:
            patch.place(patch.owner, name, value)


def undo_all(undos: list[Undo]) -> Undo:
    """Return a function that calls *undos* in reverse order."""

    def undo() -> None:
        for step in reversed(undos):
            step()

    return undo


def _do_nothing() -> None:
    """Release nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAgents:
    """Base of agent graphs that several sessions share.

    Attributes:
        release: Undoes what was done to a user's own agents.
        sessions: The sessions that use the agents, by identity.
    """

    release: Undo = _do_nothing
    sessions: set[int] = field(default_factory=set)

    def add_session(self, session: object) -> None:
        """Add *session* to those that use the agents."""
        self.sessions.add(id(session))

    def remove_session(self, session: object) -> None:
        """Remove *session*, and release the agents if it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()
