"""
The reference agent: how an agent with approvals works when nothing is wrong with it.

It is meant to be read. Four layers, each a module that knows only those above it:

    keeping.py      what is kept between turns, and the ways it can be kept
    conversing.py   asking the model, and taking its reply in
    working.py      working off the calls of a reply: judge, ask, run, tell
    agent.py        the caller's side: messages, decisions, requests

Beside them: `state.py`, what there is to keep; `arguments.py`, what fits a tool; `refusals.py`, what is refused;
`wording.py`, what the model is told; `store.py`, the durable store.
"""

from pytest_approvals.simulation.reference.agent import ReferenceAgent, ReferenceAgentOverChat

__all__ = ["ReferenceAgent", "ReferenceAgentOverChat"]
