"""
The scripted model: plays the replies that the scenario wrote, each conversation from the start of its own script.

A conversation is told by its agent and its first user message, so that sub-agents that run side by side do not steal
each other's replies. Where a sub-agent keeps what it was told before, the last message tells it. The conversation of a
sub-agent belongs to the call that runs it, and the labels of its calls begin with that call's label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_approvals.agent_side.neutral import MAIN, Item, ModelCall
from pytest_approvals.journal.arguments import parsed, same_arguments
from pytest_approvals.scenario.labels import owned
from pytest_approvals.scenario.parts import Call, Reply, Scenario, Script, Tool

from .progress import PlayedCall, Progress
from .tools import ProbeTools


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """
    One conversation with a model.

    Attributes:
        name: As it stands in the journal: `main`, or `o1/helper` for the helper that call `o1` runs.
        outer: The label of the call that runs it; empty for the main conversation.
    """

    name: str
    agent: str
    outer: str
    replies: tuple[Reply, ...]

    def label(self, call: Call) -> str:
        """Gives the full label of one of its calls."""
        return f"{self.outer}/{call.label}" if self.outer else call.label


def conversation_of(scenario: Scenario, agent: str, items: Sequence[Item], progress: Progress) -> Conversation:
    """
    Tells which conversation a model input belongs to, and notes in *progress* where a new one begins.

    An agent that the scenario has no script for (one that was handed over to, say) speaks in the main conversation.
    """
    prompt = next((item.text or "" for item in items if item.kind == "user"), "")
    if agent == MAIN or agent not in scenario.agents:
        # The first message may be trimmed away later on, so the session remembers what it began with.
        progress.opening = prompt if progress.opening is None else progress.opening
        replies = _replies(scenario.agents[MAIN], progress.opening)
        return Conversation(name=MAIN, agent=agent, outer="", replies=replies)
    outer = _outer_call(agent, items, progress)
    name = f"{outer}/{agent}" if outer else agent
    _, opening = progress.delegated.get(outer, (agent, prompt))
    return Conversation(name=name, agent=agent, outer=outer, replies=_replies(scenario.agents[agent], opening))


def next_reply(conversation: Conversation, progress: Progress) -> Reply | None:
    """Gives the conversation's next reply and moves on; None where its script has no further one."""
    position = progress.positions[conversation.name]
    if position >= len(conversation.replies):
        return None
    progress.positions[conversation.name] += 1
    return conversation.replies[position]


def played(
    conversation: Conversation, reply: Reply, number: int, tools: ProbeTools
) -> list[tuple[PlayedCall, ModelCall]]:
    """Gives the calls of a reply, each as the harness remembers it and as the agent gets it."""
    return [_played(conversation, call, number, tools.named(conversation.agent, call.tool)) for call in reply.calls]


def _played(conversation: Conversation, call: Call, number: int, tool: Tool | None) -> tuple[PlayedCall, ModelCall]:
    made = ModelCall(
        id=call.id,
        tool=tool.visible_name if tool else owned(MAIN, call.tool)[1],
        arguments=call.arguments,
        kind=tool.kind if tool else "function",
        server=tool.server if tool else None,
    )
    remembered = PlayedCall(
        label=conversation.label(call),
        reply=number,
        agent=tool.agent if tool else conversation.agent,
        id=made.id,
        tool=made.tool,
        arguments=made.arguments,
        kind=made.kind,
        server=made.server,
        declared=tool,
    )
    return remembered, made


def _replies(script: Script, prompt: str) -> tuple[Reply, ...]:
    return script.by_prompt.get(prompt, script.replies)


def _outer_call(agent: str, items: Sequence[Item], progress: Progress) -> str:
    """Finds the call that runs this conversation: the one that opened it, or for a new one the first to open none."""
    said = [item for item in items if item.kind != "other"]
    begins = not said or said[-1].kind == "user"
    for key in ((agent, prompt) for prompt in _prompts(said)):
        free = [call.label for call in progress.calls if call.label not in progress.delegated and _runs(call, *key)]
        if begins and free:
            progress.delegated[free[0]] = key
            return free[0]
        known = [label for label, opened in progress.delegated.items() if opened == key]
        if known:
            return known[-1]
    return _made_in(agent, items, progress)


def _prompts(said: Sequence[Item]) -> list[str]:
    """Gives what a conversation can have begun with: the last message, behind what the agent keeps, or the first."""
    prompts = [item.text or "" for item in said if item.kind == "user"] or [""]
    return [prompts[-1], prompts[0]]


def _made_in(agent: str, items: Sequence[Item], progress: Progress) -> str:
    """Finds the call that runs the conversation in which the calls of *items* were made, though it begins otherwise."""
    for item in items:
        for call in reversed(progress.calls) if item.kind == "call" else ():
            outer = call.label.rpartition("/")[0]
            made = progress.delegated.get(outer, ("", ""))[0] == agent and call.id == item.id and call.tool == item.tool
            if made and same_arguments(call.arguments, item.arguments):
                return outer
    return ""


def _runs(call: PlayedCall, agent: str, prompt: str) -> bool:
    arguments = parsed(call.arguments)
    runs = call.declared.runs if call.declared else None
    return runs == agent and isinstance(arguments, dict) and arguments.get("input") == prompt
