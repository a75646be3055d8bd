"""
Agents of our own: the reference agent, the faults that can be seeded into it, and the client of Microsoft.Extensions.AI
(`meai`), release by release.
"""

from pytest_approvals.simulation.reference import ReferenceAgent, ReferenceAgentOverChat

FLAVOURS = {"": ReferenceAgent, "chat": ReferenceAgentOverChat}
"""The flavours of the agent `reference`: on a provider with hosted calls, and on one without."""

__all__ = ["FLAVOURS", "ReferenceAgent", "ReferenceAgentOverChat"]
