"""Agents of a conversation, inferred from what is stored: which call hands it over, and which runs an agent.

A stored conversation rarely says so. A hand-off shows in its result, an agent that a tool runs in requests about calls
that the conversation's own model never made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
)
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftReply,
    DraftTool,
    DraftTurn,
    ScenarioDraft,
)

_HELPER = "helper"


def infer_agents(draft: ScenarioDraft, conversation: StoredConversation, last_reply: str) -> ScenarioDraft:
    """Return the draft with the agents that the conversation implies.

    Args:
        draft: The draft, all of whose calls are the main agent's.
        conversation: The conversation.
        last_reply: What an agent says at its end if that is not stored.
    """
    return _infer_hand_offs(_infer_inner_agent(draft, conversation, last_reply), conversation)


# --- hand-offs --------------------------------------------------------------------------------------------------------


def _infer_hand_offs(draft: ScenarioDraft, conversation: StoredConversation) -> ScenarioDraft:
    targets = {
        entry.call_id: entry.hands_over_to
        for entry in conversation.of(ResultEntry)
        if entry.hands_over_to is not None and entry.call_id is not None
    }
    if not targets:
        return draft
    agents = _AgentNames()
    tools: dict[str, DraftTool] = {}
    current = MAIN
    turns: list[DraftTurn] = []
    for turn in draft.turns:
        replies = []
        for reply in turn.replies:
            calls = []
            following = current
            for call in reply.calls:
                name = call.tool if current == MAIN else f"{current}/{call.tool}"
                if call.id in targets:
                    following = agents.find(targets[call.id], current)
                    tools[name] = DraftTool(hands_over_to=following)
                    calls.append(replace(call, tool=name, arguments={}, result=None))
                else:
                    tools[name] = draft.tools[call.tool]
                    calls.append(replace(call, tool=name))
            current = following
            replies.append(replace(reply, calls=tuple(calls)))
        turns.append(replace(turn, replies=tuple(replies)))
    inner = {name: tool for name, tool in draft.tools.items() if "/" in name}
    return replace(draft, tools={**tools, **inner}, turns=tuple(turns))


class _AgentNames:
    """The names of the agents in a scenario, where the first one is `main`."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def find(self, stored: str, current: str) -> str:
        """Return the name of the agent that *current* hands over to.

        The first agent's name is not stored with its messages. An agent that was never named, and that another one
        hands back to, is taken for it.
        """
        if stored not in self._known:
            is_first = current != MAIN and MAIN not in self._known.values()
            self._known[stored] = MAIN if is_first else _to_agent_name(stored)
        return self._known[stored]


def _to_agent_name(stored: str) -> str:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in stored.lower()).strip("_")
    return plain if plain and plain[0].isalpha() and plain != MAIN else f"agent_{plain}".rstrip("_")


# --- agents that a tool runs ------------------------------------------------------------------------------------------


def _infer_inner_agent(draft: ScenarioDraft, conversation: StoredConversation, last_reply: str) -> ScenarioDraft:
    """Put calls that the conversation's own model never made into an agent that one of its calls runs."""
    made = {entry.id for entry in conversation.of(CallEntry)}
    foreign = {
        entry.call_id
        for entry in conversation.of(RequestEntry)
        if entry.call_id not in made and entry.kind == "function" and not entry.replaces_call
    } - {None}
    outer = _find_outer(draft, foreign)
    if outer is None:
        return draft
    inner: list[DraftReply] = []
    seen: set[str | None] = set()
    turns: list[DraftTurn] = []
    for turn in draft.turns:
        replies = []
        for reply in turn.replies:
            moved = [call for call in reply.calls if call.id in foreign]
            fresh = tuple(_to_inner(call) for call in moved if call.id not in seen)
            seen.update(call.id for call in moved)
            inner += [DraftReply(calls=fresh)] if fresh else []
            kept = tuple(_give_task(call, outer) for call in reply.calls if call.id not in foreign)
            replies.append(replace(reply, calls=kept))
        turns.append(replace(turn, replies=tuple(replies)))
    tools = dict(draft.tools)
    for reply in inner:
        for call in reply.calls:
            tools[call.tool] = draft.tools[call.tool.removeprefix(f"{_HELPER}/")]
    tools[outer.tool] = DraftTool(runs=_HELPER)
    kept_names = {call.tool for turn in turns for reply in turn.replies for call in reply.calls}
    tools = {name: tool for name, tool in tools.items() if name in kept_names or "/" in name}
    agents = {_HELPER: (*inner, DraftReply(say=last_reply))}
    return replace(draft, tools=tools, turns=tuple(turns), agents=agents).tidy()


def _find_outer(draft: ScenarioDraft, foreign: set[str | None]) -> DraftCall | None:
    """Return the call without a result that was made last before the first foreign one, with a task for an agent."""
    last = None
    for call in draft.calls():
        if call.id in foreign:
            return last
        tool = draft.tools[call.tool]
        if call.result is None and not tool.gated and tool.kind == "function" and _texts(call):
            last = call
    return None


def _texts(call: DraftCall) -> list[str]:
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    return [value for value in given.values() if isinstance(value, str)]


def _give_task(call: DraftCall, outer: DraftCall) -> DraftCall:
    """Return a call with the one argument of a tool that runs an agent, if it is of that tool."""
    if call.tool != outer.tool:
        return call
    return replace(call, arguments={"input": max(_texts(call), key=len, default="Go on")}, result=None)


def _to_inner(call: DraftCall) -> DraftCall:
    # Somebody was asked about it, so the model's arguments could be read, whatever became of them since.
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    return replace(call, tool=f"{_HELPER}/{call.tool}", arguments=arguments)
