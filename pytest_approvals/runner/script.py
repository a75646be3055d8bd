"""How far the story of one session has got.

Progress is saved and restored together with the agent's state, so that the model and the tools of a session that was
rewound say again what they said then, and a fresh process needs no cursor of its own.

The scripted model: plays the replies that the scenario wrote, each conversation from the start of its own script.

A conversation is told by its agent and its first user message, so that sub-agents that run side by side do not steal
each other's replies. Where a sub-agent keeps what it was told before, the last message tells it. The conversation of a
sub-agent belongs to the call that runs it, and the labels of its calls begin with that call's label.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract.types import MAIN, Item, Kind, ModelCall
from pytest_approvals.journal.arguments import arguments_match, parse_arguments
from pytest_approvals.runner.probe_tools import ProbeTools
from pytest_approvals.scenario.labels import split_owner
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """
    A call that the model made.

    Attributes:
        label: The full one, with the path of the calls that run its agent.
        reply: The number of the question to the model that it answers.
        declared: The tool that it calls; None where there is no such tool.
    """

    label: str
    reply: int
    agent: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str
    kind: Kind = "function"
    server: str | None = None
    declared: Tool | None = None


@dataclass(slots=True, kw_only=True)
class ScriptState:
    """
    What one session went through so far.

    Attributes:
        opening: The first message that its main conversation began with.
        positions: How many replies each conversation has played.
        calls: What the model has asked for, in order.
        delegated: The conversation that each call of an agent-running tool opened, by the call's label.
        executions: How often each call was executed.
        gates: How often the policy was asked about each call.
        provided: The labels of the hosted calls that the provider has run.
        rewritten: What was changed in the text of the save that the session goes on from: the old text and the new one.
    """

    opening: str | None = None
    positions: Counter[str] = field(default_factory=Counter)
    calls: list[ScriptedCall] = field(default_factory=list)
    delegated: dict[str, tuple[str, str]] = field(default_factory=dict)
    executions: Counter[str] = field(default_factory=Counter)
    gates: Counter[str] = field(default_factory=Counter)
    provided: set[str] = field(default_factory=set)
    rewritten: tuple[tuple[str, str], ...] = ()

    def copy(self) -> ScriptState:
        """Gives an independent copy."""
        return ScriptState(
            opening=self.opening,
            positions=self.positions.copy(),
            calls=self.calls.copy(),
            delegated=self.delegated.copy(),
            executions=self.executions.copy(),
            gates=self.gates.copy(),
            provided=self.provided.copy(),
            rewritten=self.rewritten,
        )

    def candidates(
        self, tool: str, arguments: Any, call_id: str | None, agent: str | None = None
    ) -> Iterator[ScriptedCall]:
        """
        Gives the calls that something seen with these facts may belong to, the likeliest first.

        The same agent, id, tool and arguments come first, then the same id and tool, then (for ids that the framework
        renamed or made up) the same tool and arguments; calls of a later reply before those of an earlier one.
        """
        tiers: tuple[list[ScriptedCall], ...] = ([], [], [], [])
        for call in sorted(self.calls, key=lambda call: -call.reply):
            if call.tool != tool:
                continue
            same_id = call.id is not None and call.id == call_id
            equal = any(arguments_match(known, arguments) for known in self._known(call.arguments))
            own = agent is None or call.agent == agent
            if same_id and equal and own:
                tiers[0].append(call)
            elif same_id and equal:
                tiers[1].append(call)
            elif same_id:
                tiers[2].append(call)
            elif equal:
                tiers[3].append(call)
        for tier in tiers:
            yield from tier

    def _known(self, arguments: Mapping[str, Any] | str) -> Iterator[Any]:
        """Gives the arguments of a call, and what they are where the save has been changed."""
        yield arguments
        text = json.dumps(arguments, ensure_ascii=False)
        for old, new in self.rewritten:
            text = text.replace(old, new)
            yield json.loads(text)

    def call(self, label: str) -> ScriptedCall | None:
        """Gives the call with that label, the latest one where a rewound story made it twice."""
        return next((call for call in reversed(self.calls) if call.label == label), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConversation:
    """
    One conversation with a model.

    Attributes:
        name: As it stands in the journal: `main`, or `o1/helper` for the helper that call `o1` runs.
        outer: The label of the call that runs it; empty for the main conversation.
    """

    name: str
    agent: str
    outer: str
    replies: tuple[ScriptedReply, ...]

    def label(self, call: Call) -> str:
        """Gives the full label of one of its calls."""
        return f"{self.outer}/{call.label}" if self.outer else call.label


def find_conversation(
    scenario: Scenario, agent: str, items: Sequence[Item], progress: ScriptState
) -> ModelConversation:
    """
    Tells which conversation a model input belongs to, and notes in *progress* where a new one begins.

    An agent that the scenario has no script for (one that was handed over to, say) speaks in the main conversation.
    """
    prompt = next((item.text or "" for item in items if item.kind == "user"), "")
    if agent == MAIN or agent not in scenario.agents:
        # The first message may be trimmed away later on, so the session remembers what it began with.
        progress.opening = prompt if progress.opening is None else progress.opening
        replies = _select_replies(scenario.agents[MAIN], progress.opening)
        return ModelConversation(name=MAIN, agent=agent, outer="", replies=replies)
    outer = _find_outer_call(agent, items, progress)
    name = f"{outer}/{agent}" if outer else agent
    _, opening = progress.delegated.get(outer, (agent, prompt))
    return ModelConversation(
        name=name, agent=agent, outer=outer, replies=_select_replies(scenario.agents[agent], opening)
    )


def take_next_reply(conversation: ModelConversation, progress: ScriptState) -> ScriptedReply | None:
    """Gives the conversation's next reply and moves on; None where its script has no further one."""
    position = progress.positions[conversation.name]
    if position >= len(conversation.replies):
        return None
    progress.positions[conversation.name] += 1
    return conversation.replies[position]


def build_calls(
    conversation: ModelConversation, reply: ScriptedReply, number: int, tools: ProbeTools
) -> list[tuple[ScriptedCall, ModelCall]]:
    """Gives the calls of a reply, each as the harness remembers it and as the agent gets it."""
    return [_build_call(conversation, call, number, tools.named(conversation.agent, call.tool)) for call in reply.calls]


def _build_call(
    conversation: ModelConversation, call: Call, number: int, tool: Tool | None
) -> tuple[ScriptedCall, ModelCall]:
    made = ModelCall(
        id=call.id,
        tool=tool.visible_name if tool else split_owner(MAIN, call.tool)[1],
        arguments=call.arguments,
        kind=tool.kind if tool else "function",
        server=tool.server if tool else None,
    )
    remembered = ScriptedCall(
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


def _select_replies(script: Script, prompt: str) -> tuple[ScriptedReply, ...]:
    return script.by_prompt.get(prompt, script.replies)


def _find_outer_call(agent: str, items: Sequence[Item], progress: ScriptState) -> str:
    """Finds the call that runs this conversation: the one that opened it, or for a new one the first to open none."""
    said = [item for item in items if item.kind != "other"]
    begins = not said or said[-1].kind == "user"
    for key in ((agent, prompt) for prompt in _possible_prompts(said)):
        free = [
            call.label for call in progress.calls if call.label not in progress.delegated and _starts_agent(call, *key)
        ]
        if begins and free:
            progress.delegated[free[0]] = key
            return free[0]
        known = [label for label, opened in progress.delegated.items() if opened == key]
        if known:
            return known[-1]
    return _find_call_behind_items(agent, items, progress)


def _possible_prompts(said: Sequence[Item]) -> list[str]:
    """Gives what a conversation can have begun with: the last message, behind what the agent keeps, or the first."""
    prompts = [item.text or "" for item in said if item.kind == "user"] or [""]
    return [prompts[-1], prompts[0]]


def _find_call_behind_items(agent: str, items: Sequence[Item], progress: ScriptState) -> str:
    """Finds the call that runs the conversation in which the calls of *items* were made, though it begins otherwise."""
    for item in items:
        for call in reversed(progress.calls) if item.kind == "call" else ():
            outer = call.label.rpartition("/")[0]
            made = progress.delegated.get(outer, ("", ""))[0] == agent and call.id == item.id and call.tool == item.tool
            if made and arguments_match(call.arguments, item.arguments):
                return outer
    return ""


def _starts_agent(call: ScriptedCall, agent: str, prompt: str) -> bool:
    arguments = parse_arguments(call.arguments)
    runs = call.declared.runs if call.declared else None
    return runs == agent and isinstance(arguments, dict) and arguments.get("input") == prompt
