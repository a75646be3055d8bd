"""Labels of the calls in the model's scripts, as scenario and reports name them.

The label of a call is its id, or `c1#2` for the second use of an id; calls of an agent that a tool runs are prefixed
with the label of the call that runs it: `o1/c1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool, all_decisions
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup, KeyPath

RESERVED_LABELS = ("unknown", "malformed")
"""Words that cannot be labels: they begin a decision about no call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOccurrence:
    """A call of a script in one conversation that plays it.

    Attributes:
        label: Full label.
        agent: Agent that owns the called tool.
        conversation: Label of the call that runs the agent; empty for the main agent.
        opening: First user message of the main agent's script that it belongs to; empty for the default script.
        path: Key path of the call.
    """

    label: str
    call: Call
    agent: str
    conversation: str
    opening: str
    path: KeyPath


# --- assigning labels -------------------------------------------------------------------------------------------------


def assign_labels(scenario: Scenario) -> Scenario:
    """Return the scenario with a label on every call, and an id on calls that were built without.

    Raises:
        DiagnosticGroup: An id is repeated without `repeats`, a label is repeated, or a call has neither.
    """
    diagnostics: list[Diagnostic] = []
    agents = {
        agent: Script(
            replies=_label_replies(script.replies, script_path(agent, "", script), diagnostics),
            by_prompt={
                prompt: _label_replies(replies, script_path(agent, prompt, script), diagnostics)
                for prompt, replies in script.by_prompt.items()
            },
        )
        for agent, script in scenario.agents.items()
    }
    if diagnostics:
        raise DiagnosticGroup(diagnostics)
    return replace(scenario, agents=agents)


def has_valid_labels(scenario: Scenario) -> bool:
    """Return whether ids are repeated only where calls say so, and no label is repeated."""
    try:
        assign_labels(scenario)
    except DiagnosticGroup:
        return False
    return True


def script_path(agent: str, prompt: str, script: Script) -> KeyPath:
    """Return the path of the replies to *prompt*; an empty prompt means the default replies."""
    above: KeyPath = ("model",) if agent == MAIN else ("agents", agent, "model")
    return (*above, prompt or "otherwise") if script.by_prompt else above


def _label_replies(
    replies: Iterable[ScriptedReply], path: KeyPath, diagnostics: list[Diagnostic]
) -> tuple[ScriptedReply, ...]:
    replies = tuple(replies)
    labeller = _Labeller(
        {call.id for reply in replies for call in reply.calls if call.id and not call.repeats}, diagnostics
    )
    return tuple(
        replace(reply, calls=tuple(labeller.label(call, (*path, k, "calls", j)) for j, call in enumerate(reply.calls)))
        if reply.calls
        else reply
        for k, reply in enumerate(replies)
    )


class _Labeller:
    """Labeller of the calls in one list of replies, in their order."""

    def __init__(self, taken: set[str], diagnostics: list[Diagnostic]) -> None:
        self.free = (name for name in map("c{}".format, count(1)) if name not in taken)
        self.uses: Counter[str] = Counter()
        self.labels: set[str] = set()
        self.diagnostics = diagnostics

    def label(self, call: Call, path: KeyPath) -> Call:
        name = next(self.free) if call.id == "" else call.id
        self._validate_id(call, name, path)
        if name is not None:
            self.uses[name] += 1
        label = call.label or self._derive_label(name)
        self._validate_label(label, path)
        self.labels.add(label)
        return replace(call, id=name, label=label)

    def _derive_label(self, name: str | None) -> str:
        if name is None:
            return ""
        return name if self.uses[name] == 1 else f"{name}#{self.uses[name]}"

    def _validate_id(self, call: Call, name: str | None, path: KeyPath) -> None:
        if name is None:
            if call.repeats:
                self.diagnostics.append(Diagnostic((*path, "repeats"), "a call without an id cannot have `repeats`"))
        elif self.uses[name] and not call.repeats:
            message = f"duplicate call id {name!r}; say `repeats: true` if that is meant"
            self.diagnostics.append(Diagnostic((*path, "id"), message))
        elif call.repeats and not self.uses[name]:
            message = f"no call before this one has the id {name!r} that it repeats{suggest_name(name, self.uses)}"
            self.diagnostics.append(Diagnostic((*path, "repeats"), message))

    def _validate_label(self, label: str, path: KeyPath) -> None:
        if not label:
            self.diagnostics.append(Diagnostic(path, "a call without an id needs a label: {id: null, label: x1, ...}"))
        # A repeated id also repeats its derived label; one diagnostic is enough.
        elif label in self.labels and not any(diagnostic.path[: len(path)] == path for diagnostic in self.diagnostics):
            self.diagnostics.append(Diagnostic((*path, "label"), f"duplicate label {label!r}"))
        elif label in RESERVED_LABELS or "/" in label:
            message = f"invalid label {label!r}: must not contain a slash or be {' or '.join(RESERVED_LABELS)}"
            self.diagnostics.append(Diagnostic((*path, "label"), message))


# --- looking calls and tools up ---------------------------------------------------------------------------------------


def list_occurrences(scenario: Scenario) -> tuple[CallOccurrence, ...]:
    """Return every call that the scripts can make; calls of nested agents once for each call that runs them."""
    script = scenario.agents[MAIN]
    openings = {"": script.replies, **script.by_prompt}
    edits = _list_edited_inputs(scenario)
    return tuple(
        occurrence
        for opening in openings
        for occurrence in _OccurrenceWalk(scenario, opening, edits).conversation(MAIN, opening, "", frozenset())
    )


def _list_edited_inputs(scenario: Scenario) -> dict[str, list[str]]:
    """Return by the label of a call that runs an agent the inputs that the caller gives it in place of its own."""
    edits: dict[str, list[str]] = {}
    for decision in all_decisions(scenario):
        prompt = (decision.arguments or {}).get("input")
        if decision.label is not None and isinstance(prompt, str):
            edits.setdefault(decision.label, []).append(prompt)
    return edits


def list_inner_calls(scenario: Scenario) -> tuple[CallOccurrence, ...]:
    """Return the calls of the scripts of inner agents, without the labels of the calls that run these agents."""
    return tuple(
        CallOccurrence(
            label=call.label,
            call=call,
            agent=agent,
            conversation="",
            opening="",
            path=(*script_path(agent, "", script), k, "calls", j),
        )
        for agent, script in scenario.agents.items()
        if agent != MAIN
        for k, reply in enumerate(script.replies)
        for j, call in enumerate(reply.calls)
    )


def split_owner(agent: str, name: str) -> tuple[str, str]:
    """Return agent and name of the tool that *agent*'s script calls *name*.

    After a hand-over the script prefixes a tool with its agent.

    >>> split_owner("main", "pay"), split_owner("main", "clerk/pay")
    (('main', 'pay'), ('clerk', 'pay'))
    """
    owner, _, short = name.rpartition("/")
    return owner or agent, short


def find_tool(scenario: Scenario, agent: str, name: str) -> Tool | None:
    """Return the tool that *agent*'s script calls *name*; None if there is none."""
    owner, short = split_owner(agent, name)
    return next((tool for tool in scenario.tools if tool.name == short and tool.agent == owner), None)


def list_agents(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of all agents: those with a script, and those that are handed over to."""
    targets = [tool.hands_over_to for tool in scenario.tools if tool.hands_over_to is not None]
    return tuple(dict.fromkeys([*scenario.agents, *targets]))


def find_visible_tool(scenario: Scenario, agent: str, name: str) -> Tool | None:
    """Return the tool of *agent* with that visible name; None if there is none."""
    return next((tool for tool in scenario.tools if tool.visible_name == name and tool.agent == agent), None)


@dataclass(frozen=True, slots=True)
class _OccurrenceWalk:
    scenario: Scenario
    opening: str
    edits: Mapping[str, Sequence[str]]

    def conversation(self, agent: str, prompt: str, outer: str, above: frozenset[str]) -> Iterator[CallOccurrence]:
        script = self.scenario.agents.get(agent)
        # An agent that runs itself is reported by the validation; the walk must still end.
        if script is None or agent in above:
            return
        replies = script.by_prompt.get(prompt, script.replies)
        path = script_path(agent, prompt if prompt in script.by_prompt else "", script)
        for k, reply in enumerate(replies):
            for j, call in enumerate(reply.calls):
                label = f"{outer}/{call.label}" if outer else call.label
                yield CallOccurrence(
                    label=label,
                    call=call,
                    agent=split_owner(agent, call.tool)[0],
                    conversation=outer,
                    opening=self.opening,
                    path=(*path, k, "calls", j),
                )
                yield from self._inside(call, agent, label, above | {agent})

    def _inside(self, call: Call, agent: str, label: str, above: frozenset[str]) -> Iterator[CallOccurrence]:
        tool = find_tool(self.scenario, agent, call.tool)
        if tool is not None and tool.runs is not None:
            prompt = call.arguments.get("input", "") if not isinstance(call.arguments, str) else ""
            # An input of another type is reported by the validation.
            prompt = prompt if isinstance(prompt, str) else ""
            yield from self.conversation(tool.runs, prompt, label, above)
            script = self.scenario.agents.get(tool.runs)
            for edited in dict.fromkeys(self.edits.get(label, ())):
                if script is not None and edited != prompt and edited in script.by_prompt:
                    yield from self.conversation(tool.runs, edited, label, above)
