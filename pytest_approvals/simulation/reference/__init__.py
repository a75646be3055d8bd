"""The reference agent: how an agent with approvals works when nothing is wrong with it.

It is meant to be read:

    agent.py          turns, decisions, calls, and the dialogue with the model
    persistence.py    one input at a time, what is refused, the durable store, and the ways to save the state
    state.py          the state of a session
    arguments.py      whether arguments fit a tool
    feedback.py       texts that the model gets in place of results
    designs.py        the same agent built differently, and still right
"""

from pytest_approvals.simulation.reference.agent import ReferenceAgent, ReferenceAgentOverChat

__all__ = ["ReferenceAgent", "ReferenceAgentOverChat"]
