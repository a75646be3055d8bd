"""Simulated agents: the reference agent, seeded faults, and the client of Microsoft.Extensions.AI (`meai`)."""

from pytest_approvals.simulation.reference import ReferenceAgent, ReferenceAgentOverChat

FLAVOURS = {"": ReferenceAgent, "chat": ReferenceAgentOverChat}
"""Flavours of the agent `reference`: on a provider with hosted calls, and on one without."""

__all__ = ["FLAVOURS", "ReferenceAgent", "ReferenceAgentOverChat"]
