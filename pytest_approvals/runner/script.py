"""Scripted model: which reply of a scenario's scripts comes next, and how far one session has got.

A conversation is identified by its agent and its first user message, so that sub-agents that run side by side do not
steal each other's replies. If a sub-agent keeps what it was told before, its last message identifies it. The
conversation of a sub-agent belongs to the call that runs it, and the labels of its calls begin with that call's label.

The state of the script is saved and restored together with the agent's state, so that the model and the tools of a
session that was rewound repeat what they said then, and a fresh process needs no cursor of its own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pytest_approvals.agent_side.contract.types import (
    ANY_AGENT,
    MAIN,
    Approval,
    Chunk,
    Item,
    Kind,
    ModelCall,
    Parameter,
    Thought,
)
from pytest_approvals.journal.arguments import (
    are_same_values,
    arguments_match,
    describe_parameters,
    parse_arguments,
)
from pytest_approvals.protocols.reasoning import sign_reasoning
from pytest_approvals.runner.probe_tools import ProbeTools
from pytest_approvals.scenario.labels import split_owner
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A call that the model made.

    Attributes:
        label: The full label, with the path of the calls that run its agent.
        reply: Number of the model request that it answers.
        declared: The tool that it calls; None if the scenario declares no such tool.
        runs: The agent that the call of a user's own tool runs; None if it runs none, or one that nobody knows of.
        gated: Whether it needs an approval whatever its arguments are.
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
    runs: str | None = None
    gated: bool = False

    def equals(self, other: ScriptedCall) -> bool:
        """Return whether nothing but its id tells a call from another one."""
        return (self.agent, self.tool, self.arguments) == (other.agent, other.tool, other.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCall:
    """What an edit made of a call.

    Attributes:
        tool: The other tool that it names; None for the call's own.
        arguments: The arguments that it gives; None for the call's own.
    """

    tool: str | None
    arguments: Mapping[str, Any] | None


# A `Counter` takes ten times as long to create, and a load test creates a state for every conversation.
_count_from_0: Callable[[], defaultdict[str, int]] = partial(defaultdict, int)


@dataclass(slots=True, kw_only=True)
class ScriptState:
    """How far the scripts of one session have got.

    Attributes:
        opening: The first message of its main conversation.
        positions: How many replies each conversation has played.
        calls: The calls that the model has made, in order.
        delegated: The conversation that each call of an agent-running tool opened, by the call's label.
        edits: What edits have made of each call, by the call's label; one of them may have been refused.
        executions: How often each call was executed.
        released: Labels of the calls that a decision lets run.
        asking: The calls whose bodies have asked in their middle, and that nobody has decided since.
        gates: How often the policy was asked about each call.
        provided: Labels of the hosted calls that the provider has executed.
        staged: Labels of the calls with a decision that was put into the state, until a turn takes it.
        waiting: The execution of each call whose own body waits for an answer, by the call's label.
        bodies: The labels of the calls whose own bodies run.
        rewritten: What was changed in the text of the saved state that the session resumed from: old text, new text.
        answered: The position of the reply to each model input, by script and input; only where state is lost.
        unstored: The same for the inputs from before a loss: the replies may not have been stored.
        given_ids: The id under which the agent asked about, ran or judged each call, by the call's label; only an id
            of the agent's own.
        kept_ids: The labels of the calls that the agent asked about, ran or judged under the model's id.
        streamed_ids: The label of the call that a stream has given each other id than the model's.
        parameters: Parameters of tools that differ by now from what the scenario declares, by the tool's key.
    """

    opening: str | None = None
    positions: defaultdict[str, int] = field(default_factory=_count_from_0)
    calls: list[ScriptedCall] = field(default_factory=list)
    delegated: dict[str, tuple[str, str]] = field(default_factory=dict)
    edits: dict[str, tuple[EditedCall, ...]] = field(default_factory=dict)
    executions: defaultdict[str, int] = field(default_factory=_count_from_0)
    released: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)
    gates: defaultdict[str, int] = field(default_factory=_count_from_0)
    provided: set[str] = field(default_factory=set)
    staged: set[str] = field(default_factory=set)
    rewritten: tuple[tuple[str, str], ...] = ()
    answered: dict[tuple[str, str], int] = field(default_factory=dict)
    unstored: dict[tuple[str, str], int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    given_ids: dict[str, str] = field(default_factory=dict)
    kept_ids: set[str] = field(default_factory=set)
    streamed_ids: dict[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)

    def copy(self) -> ScriptState:
        """Return an independent copy."""
        return ScriptState(
            opening=self.opening,
            positions=self.positions.copy(),
            calls=self.calls.copy(),
            delegated=self.delegated.copy(),
            edits=self.edits.copy(),
            executions=self.executions.copy(),
            released=self.released.copy(),
            asking=self.asking.copy(),
            gates=self.gates.copy(),
            provided=self.provided.copy(),
            staged=self.staged.copy(),
            rewritten=self.rewritten,
            answered=self.answered.copy(),
            unstored=self.unstored.copy(),
            waiting=self.waiting.copy(),
            given_ids=self.given_ids.copy(),
            kept_ids=self.kept_ids.copy(),
            streamed_ids=self.streamed_ids.copy(),
            parameters=self.parameters,
        )

    def after(self, later: ScriptState) -> ScriptState:
        """Return a copy with what *later* has done to the world: a store that loses a state loses no effects."""
        copy = self.copy()
        copy.executions = later.executions.copy()
        return copy

    def note_id(self, call: ScriptedCall | None, call_id: str | None) -> None:
        """Note the id that the agent has for a call."""
        if call is None or call_id is None:
            return
        if call_id == call.id:
            self.kept_ids.add(call.label)
        else:
            self.given_ids[call.label] = call_id

    def note_streamed_ids(self, labels: Sequence[str], chunks: Sequence[Chunk]) -> None:
        """Note the ids that a stream gives the calls of those labels beside the model's."""
        known = {call.id for call in self.calls}
        for chunk in chunks:
            if chunk.call is not None and chunk.id and chunk.id not in known:
                self.streamed_ids[chunk.id] = labels[chunk.call]

    def note_decision(self, label: str | None, call_id: str | None) -> None:
        """Note that a call is decided, so that its body goes on behind what it has asked; None if it is not known.

        A request that does not show the id of its call may be about any equal one.
        """
        known = [name for name in (label, call_id) if name is not None]
        decided = self.find_call(label) if label is not None and call_id is None else None
        if decided is not None and self.asking:
            known += [call.label for call in self.calls if call.equals(decided)]
        ends = tuple(f" as {name}" for name in known)
        self.asking = {name for name in self.asking if known and name not in known and not name.endswith(ends)}

    def note_loss(self) -> None:
        """Note that the agent was killed, or could not store anything, so that it may not know of replies any more."""
        self.unstored, self.answered = self.answered, {}

    def match_calls(
        self, tool: str, arguments: Any, call_id: str | None, agent: str | None = None, *, rewritten: bool = False
    ) -> Iterator[ScriptedCall]:
        """Yield the calls that an observation may belong to, the likeliest first.

        The same agent, id, tool and arguments come first, then the same id and tool, then (for ids that the framework
        renamed or made up) the same tool and arguments, then those with null for what the model left out, or with
        values as the tool takes them, then those that an edit gave this tool or these arguments, and then those to
        which the agent gave that id before; calls of a later reply before those of an earlier one. Of equal calls, the
        one to which the agent gave that id before comes first, and one to which it gave another id last; those of an
        agent inside that has given its answer come behind all others.

        Args:
            tool: The name of its tool.
            arguments: Its arguments.
            call_id: Its id; None if it has none.
            agent: Its agent, if that is known.
            rewritten: Its tool may have the name that a change of the saved state gave it.
        """
        tiers: tuple[list[ScriptedCall], ...] = ([], [], [], [], [], [], [])
        for call in sorted(self.calls, key=lambda call: -call.reply):
            edits = self.edits.get(call.label, ())
            if call.tool != tool and not (rewritten and self._rename(call.tool) == tool):
                if any(edit.tool == tool and _gives_arguments(edit, call, arguments) for edit in edits):
                    tiers[5].append(call)
                continue
            same_id = call_id is not None and (call.id == call_id or self.streamed_ids.get(call_id) == call.label)
            possible = list(self._possible_arguments(call.arguments))
            equal = any(arguments_match(known, arguments) for known in possible)
            own = agent is None or call.agent == agent
            if same_id and equal and own:
                tiers[0].append(call)
            elif same_id and equal:
                tiers[1].append(call)
            elif same_id:
                tiers[2].append(call)
            elif equal:
                tiers[3].append(call)
            elif not all(_count_differences(known, arguments) for known in possible) or self._reads_as(call, arguments):
                tiers[4].append(call)
            elif self._is_edited_to(call, arguments):
                tiers[5].append(call)
            elif call_id is not None and self.given_ids.get(call.label) == call_id:
                tiers[6].append(call)
        # A framework may show a value that was left out as null, and may have given one of two calls another id; of two
        # calls with one id, that which an edit gave these arguments is likelier than the other one.
        tiers[2].sort(
            key=lambda call: (
                self._rank_given_id(call, call_id) == 2,
                not self._is_edited_to(call, arguments),
                _count_differences(call.arguments, arguments),
            )
        )
        # A made up id is that of a call without one, if the reply has any.
        for tier in tiers[3:]:
            over = {call.label for call in tier if len(tier) > 1 and self._is_over(call)}
            tier.sort(
                key=lambda call: (
                    call.label in over,
                    self._rank_given_id(call, call_id),
                    -call.reply,
                    call.id is not None,
                )
            )
        for tier in tiers:
            yield from tier

    def find_match(
        self, tool: str, arguments: Any, call_id: str | None, agent: str | None = None
    ) -> ScriptedCall | None:
        """Return the likeliest call for an observation; None if there is none."""
        return next(self.match_calls(tool, arguments, call_id, agent), None)

    def find_call(self, label: str) -> ScriptedCall | None:
        """Return the call with that label, the latest one if a rewound story made it twice."""
        return next((call for call in reversed(self.calls) if call.label == label), None)

    def _is_edited_to(self, call: ScriptedCall, arguments: Any) -> bool:
        edits = self.edits.get(call.label, ())
        return any(edit.arguments is not None and arguments_match(edit.arguments, arguments) for edit in edits)

    def _reads_as(self, call: ScriptedCall, arguments: Any) -> bool:
        """Return whether the arguments of a call are *arguments* by the types and defaults of its tool, then or now."""
        if call.declared is None:
            return False
        declared = call.declared.parameters
        types = (declared, self.parameters.get(call.declared.key, declared))
        return any(arguments_match(call.arguments, arguments, describe_parameters(each)) for each in types)

    def _is_over(self, call: ScriptedCall) -> bool:
        """Return whether a call is of an agent inside, and the model outside has replied since."""
        outer = call.label.rpartition("/")[0]
        return bool(outer) and any(
            other.reply > call.reply and outer.startswith(_owner_prefix(other.label)) for other in self.calls
        )

    def _rank_given_id(self, call: ScriptedCall, call_id: str | None) -> int:
        given = self.given_ids.get(call.label)
        if given is None and call_id is not None and call.id is not None:
            namesakes = [other for other in self.calls if other.id == call.id and other is not call]
            if any(self.given_ids.get(other.label) == call_id for other in namesakes):
                # An agent that makes its ids of the model's makes the same one, if the model gives an id once more.
                given = call_id
            elif namesakes and call.label in self.kept_ids:
                # Of calls with one id, that under which one is known already is not another one's.
                given = call.id
        return 1 if given is None or call_id is None else 0 if given == call_id else 2

    def _rename(self, tool: str) -> str:
        """Return the name that a tool has after the changes of the saved state."""
        for old, new in self.rewritten:
            tool = tool.replace(old, new)
        return tool

    def _possible_arguments(self, arguments: Mapping[str, Any] | str) -> Iterator[Any]:
        """Yield the arguments of a call, and what they became by changes of the saved state."""
        yield arguments
        # Most states are restored as they were saved.
        text = json.dumps(arguments, ensure_ascii=False) if self.rewritten else ""
        for old, new in self.rewritten:
            text = text.replace(old, new)
            # A change of quotes or braces in the state need not leave JSON of the arguments.
            with suppress(ValueError):
                yield json.loads(text)


def _owner_prefix(label: str) -> str:
    """Return the labels of the calls around a call, with the slash behind them."""
    owner, slash, _ = label.rpartition("/")
    return f"{owner}{slash}"


# Not frozen, because that makes it cost four times as much, and there is one for every request.
@dataclass(slots=True, kw_only=True)
class ModelConversation:
    """One conversation with a model, which nobody changes.

    Attributes:
        name: As journals name it: `main`, or `o1/helper` for the helper that call `o1` runs.
        outer: The label of the call that runs it; empty for the main conversation.
        script: The name under which its position is counted, if it shares its script; empty: its own name.
        repeats: Its last reply is given again and again.
    """

    name: str
    agent: str
    outer: str
    replies: tuple[ScriptedReply, ...]
    script: str = ""
    repeats: bool = False

    def full_label(self, call: Call) -> str:
        """Return the full label of one of its calls."""
        return f"{self.outer}/{call.label}" if self.outer else call.label


def find_conversation(
    scenario: Scenario,
    agent: str,
    items: Sequence[Item],
    state: ScriptState,
    *,
    inside: str = "",
    is_attached: bool = False,
    heirs: Collection[str] = (),
) -> ModelConversation:
    """Return the conversation that a model input belongs to; a new one is recorded in *state*.

    An agent that the scenario has no script for (one that was handed over to, say) speaks in the main conversation.

    Args:
        scenario: What is played.
        agent: The agent that asks.
        items: What it asks.
        state: How far the session has got.
        inside: The label of the call in whose body it asks; empty if that is not known.
        is_attached: It is a user's agent, which plays each script once, however often the agent is run.
        heirs: The agents to which tools of a user's agent hand over.
    """
    if is_attached and (inside or agent != MAIN):
        return _find_attached_conversation(scenario, agent, items, state, inside, heirs)
    if agent == MAIN or agent not in scenario.agents:
        # The first message may be trimmed away later on, so the session remembers what it began with.
        if state.opening is None:
            state.opening = _find_prompt(items)
        replies = _select_replies(scenario.agents[MAIN], state.opening)
        return ModelConversation(name=MAIN, agent=agent, outer="", replies=replies)
    # One agent may run for several calls at a time; each of them has a conversation of its own.
    outer = _find_outer_call(agent, items, state)
    name = f"{outer}/{agent}" if outer else agent
    opening = state.delegated[outer][1] if outer in state.delegated else _find_prompt(items)
    return ModelConversation(
        name=name, agent=agent, outer=outer, replies=_select_replies(scenario.agents[agent], opening)
    )


def _find_prompt(items: Sequence[Item]) -> str:
    """Return the first message of the user."""
    for item in items:
        if item.kind == "user":
            return item.text or ""
    return ""


def _find_attached_conversation(
    scenario: Scenario, agent: str, items: Sequence[Item], state: ScriptState, inside: str, heirs: Collection[str]
) -> ModelConversation:
    """Return the conversation of another agent than the main one: with a script of its own, or on the main one."""
    # A body in another process does not say what it asks for; of several bodies, the last one may run the agent.
    outer = inside or _find_running_call(agent, items, state) or (state.bodies[-1] if state.bodies else "")
    # Without a call that runs it, the agent was handed over to, and speaks in the main conversation; or the user's code
    # runs it, with a history of its own.
    handed_over = agent in heirs or (ANY_AGENT in heirs and any(_has_argument(call, agent) for call in state.calls))
    name = f"{outer}/{agent}" if outer else MAIN if handed_over else agent
    if ANY_AGENT in scenario.agents and name != MAIN:
        replies = scenario.agents[agent if agent in scenario.agents else ANY_AGENT].replies
        return ModelConversation(name=name, agent=agent, outer=outer, replies=replies, repeats=True)
    script = agent if agent in scenario.agents else MAIN
    replies = _select_replies(scenario.agents[script], state.opening or "")
    return ModelConversation(name=name, agent=agent, outer=outer, replies=replies, script=script)


def _find_running_call(agent: str, items: Sequence[Item], state: ScriptState) -> str:
    """Return the call that runs the agent: the one that its conversation began with, or a new one; empty if none."""
    known = _find_outer_call(agent, items, state)
    if known or any(item.kind not in ("user", "other") for item in items):
        return known
    # The text that the agent is run with need not be the argument `input`.
    free = [call for call in state.calls if _names_agent(call, agent) and call.label not in state.delegated]
    if not free:
        return ""
    outer = _find_first_to_run(free, state)
    state.delegated[outer] = (agent, _possible_prompts(items)[0])
    return outer


def _find_first_to_run(free: Sequence[ScriptedCall], state: ScriptState) -> str:
    """Return the label of the call that runs its agent first: of several, not one that has to wait for an approval."""
    return min(free, key=lambda call: call.gated and call.label not in state.released).label


def _count_differences(first: Any, second: Any) -> int:
    """Return how many values differ; a value that is null is like one that is missing."""
    one, other = parse_arguments(first), parse_arguments(second)
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return int(one != other)
    return sum(not are_same_values(one.get(name), other.get(name)) for name in one.keys() | other.keys())


def repeat_unstored_reply(conversation: ModelConversation, items: Sequence[Item], state: ScriptState) -> None:
    """Move the script back to the reply that an input had before state was lost, if it had one.

    A process that dies may not have stored a reply, and its successor asks the same once more. Positions alone would
    let the model go on as if the reply had arrived.
    """
    script = conversation.script or conversation.name
    key = script, json.dumps([[item.kind, item.tool, item.text] for item in items], ensure_ascii=False)
    if key in state.unstored:
        state.positions[script] = state.unstored.pop(key)
    state.answered[key] = state.positions[script]


def take_next_reply(conversation: ModelConversation, state: ScriptState) -> ScriptedReply | None:
    """Return the conversation's next reply and move on; None if its script is exhausted."""
    script = conversation.script or conversation.name
    position = state.positions[script]
    if position >= len(conversation.replies):
        return conversation.replies[-1] if conversation.repeats else None
    state.positions[script] += 1
    return conversation.replies[position]


def build_calls(
    conversation: ModelConversation,
    reply: ScriptedReply,
    number: int,
    tools: ProbeTools,
    attached: Mapping[str, Mapping[str, Any]],
) -> list[tuple[ScriptedCall, ModelCall]]:
    """Return the calls of a reply, each as the harness remembers it and as the agent gets it.

    Args:
        conversation: The conversation that the reply belongs to.
        reply: The reply.
        number: The number of the model request.
        tools: The tools of the scenario.
        attached: What the journal says of the agent's tools, by key.
    """
    return [
        _build_call(
            conversation,
            call,
            number,
            tools.find_scripted(conversation.agent, call.tool),
            attached.get(call.tool if conversation.agent == MAIN else f"{conversation.agent}/{call.tool}", {}),
        )
        for call in reply.calls
    ]


def _build_call(
    conversation: ModelConversation, call: Call, number: int, tool: Tool | None, attached: Mapping[str, Any]
) -> tuple[ScriptedCall, ModelCall]:
    if attached.get("kind") == "hosted_mcp" and (tool is None or tool.kind != "hosted_mcp"):
        tool = _as_hosted(tool or Tool(name=call.tool), attached)
    sent = ModelCall(
        id=call.id,
        tool=tool.visible_name if tool else split_owner(MAIN, call.tool)[1],
        arguments=call.arguments,
        kind=tool.kind if tool else attached.get("kind", "function"),
        server=tool.server if tool else attached.get("server"),
    )
    remembered = ScriptedCall(
        label=conversation.full_label(call),
        reply=number,
        agent=tool.agent if tool else conversation.agent,
        id=sent.id,
        tool=sent.tool,
        arguments=sent.arguments,
        kind=sent.kind,
        server=sent.server,
        declared=tool,
        runs=attached.get("runs"),
        gated=(attached.get("approval") if tool is None else tool.approval) == "always",
    )
    return remembered, sent


def _as_hosted(tool: Tool, attached: Mapping[str, Any]) -> Tool:
    """Return the tool of a hosted server that a user's agent has, with the results of its stub."""
    approval: Approval = "never" if attached.get("approval") == "never" else "always"
    return replace(tool, kind="hosted_mcp", server=attached.get("server"), approval=approval)


def build_thoughts(
    reply: ScriptedReply, labels: Sequence[str], sent: Sequence[str], number: int
) -> tuple[Thought, ...]:
    """Return the reasoning of a reply.

    Args:
        reply: The reply.
        labels: The labels of its calls.
        sent: Those of the calls that the agent is sent.
        number: The number of the model request.
    """
    texts: list[tuple[str, int | None]] = [] if reply.thinks is None else [(reply.thinks, None)]
    for label, call in zip(labels, reply.calls, strict=True):
        if call.thinks is not None:
            texts.append((call.thinks, sent.index(label) if label in sent else None))
    thoughts = []
    for place, (text, before) in enumerate(texts):
        thought_id = f"rs_{number}_{place}"
        signature = sign_reasoning(thought_id, None if reply.redacted else text)
        thoughts.append(
            Thought(id=thought_id, text=None if reply.redacted else text, signature=signature, before=before)
        )
    return tuple(thoughts)


def _select_replies(script: Script, prompt: str) -> tuple[ScriptedReply, ...]:
    return script.by_prompt.get(prompt, script.replies)


def _find_outer_call(agent: str, items: Sequence[Item], state: ScriptState) -> str:
    """Return the call that opened this conversation, or for a new one the first free call."""
    messages = [item for item in items if item.kind != "other"]
    begins = not messages or messages[-1].kind == "user"
    for key in ((agent, prompt) for prompt in _possible_prompts(messages)):
        free = [
            call
            for call in state.calls
            if call.label not in state.delegated and _starts_agent(call, state.edits.get(call.label, ()), *key)
        ]
        if begins and free:
            outer = _find_first_to_run(free, state)
            state.delegated[outer] = key
            return outer
        known = [label for label, opened in state.delegated.items() if opened == key]
        if known:
            return known[-1]
    return _find_call_behind_items(agent, items, state)


def _possible_prompts(messages: Sequence[Item]) -> list[str]:
    """Return the user messages that may have opened the conversation: the last and the first."""
    prompts = [item.text or "" for item in messages if item.kind == "user"] or [""]
    return [prompts[-1], prompts[0]]


def _find_call_behind_items(agent: str, items: Sequence[Item], state: ScriptState) -> str:
    """Return the call whose conversation made the calls of *items*, however it begins."""
    for item in items:
        for call in reversed(state.calls) if item.kind == "call" else ():
            outer = call.label.rpartition("/")[0]
            same = state.delegated.get(outer, ("", ""))[0] == agent and call.id == item.id and call.tool == item.tool
            if same and arguments_match(call.arguments, item.arguments):
                return outer
    return ""


def _names_agent(call: ScriptedCall, agent: str) -> bool:
    """Return whether a call of an attached agent's tool runs *agent*."""
    if call.runs != ANY_AGENT:
        return call.runs == agent
    return _has_argument(call, agent)


def _has_argument(call: ScriptedCall, value: str) -> bool:
    arguments = parse_arguments(call.arguments)
    return isinstance(arguments, dict) and value in arguments.values()


def _gives_arguments(edit: EditedCall, call: ScriptedCall, arguments: Any) -> bool:
    """Return whether *arguments* are those of an edit, with what it leaves out filled in."""
    given = parse_arguments(call.arguments) if edit.arguments is None else edit.arguments
    if not isinstance(given, Mapping) or not isinstance(arguments, Mapping):
        return False
    return arguments_match(given, {name: value for name, value in arguments.items() if name in given})


def _starts_agent(call: ScriptedCall, edits: Sequence[EditedCall], agent: str, prompt: str) -> bool:
    # An edit may have been refused, so that the call runs as the model made it.
    possible = [parse_arguments(call.arguments), *(edit.arguments for edit in edits)]
    inputs = [given.get("input") for given in possible if isinstance(given, Mapping)]
    runs = call.declared.runs if call.declared else call.runs
    return runs == agent and prompt in inputs
