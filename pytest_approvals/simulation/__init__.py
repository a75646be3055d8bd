"""Agents of our own: the reference agent, and the faults that can be seeded into it."""

from .reference import ReferenceAgent

FLAVOURS = {"": ReferenceAgent}
"""The flavours of the agent `reference`."""

__all__ = ["FLAVOURS", "ReferenceAgent"]
