"""The OpenAI Agents SDK for Python (`openai-agents`).

A paused run is a `RunState`: decisions go into it with `approve` and `reject`, and `Runner.run(agent, state)` goes on
with it. What the caller keeps between turns follows the SDK's guides "Human-in-the-loop", "Running agents" and
"Sessions":

- A new message starts a run of its own: with the input list of the last result and the message behind it
  (`to_input_list()`), or, if a session is in use, with the message alone. A message that comes together with
  decisions is put into the paused run (`RunState.add_input`).
- After a resumed run failed, the same `RunState` is resumed again: the runner has written into it what was done. After
  a run that began with a message failed, its input is handed in again.
- A finished run's state is kept, so that a decision that comes late can be handed in. With a session, paused runs
  are kept together with newer ones, because each of them may be resumed on the stored history; without one, a newer run
  takes the place of the older.
"""

from __future__ import annotations

from ...contract import Agent
from .session import ChatAgents, OpenAIAgents, SessionAgents

__all__ = ["FLAVOURS", "ChatAgents", "OpenAIAgents", "SessionAgents"]

FLAVOURS: dict[str, type[Agent]] = {"": OpenAIAgents, "session": SessionAgents, "chat": ChatAgents}
"""
The flavours: the caller keeps the input list; a session keeps the history; a session, and the model is reached over
Chat Completions.
"""
