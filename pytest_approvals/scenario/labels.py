"""
Labels: what scenario and reports call the calls of the model's scripts.

A call is called after its id, the second use of an id `c1#2`; a call of an agent that a tool runs is called after the
call that runs it, too: `o1/c1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup, KeyPath

RESERVED_LABELS = ("unknown", "malformed")
"""Words that no label may be: they begin an answer about no call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOccurrence:
    """
    A call of a script, as often as conversations play it.

    Attributes:
        label: Its full label.
        agent: The agent whose model makes it.
        conversation: The label of the call that runs that agent; empty for the main one.
        opening: Which of the main agent's scripts it belongs to: the first user message, empty for all others.
        path: Where it stands.
    """

    label: str
    call: Call
    agent: str
    conversation: str
    opening: str
    path: KeyPath


# --- giving labels ----------------------------------------------------------------------------------------------------


def assign_labels(scenario: Scenario) -> Scenario:
    """
    Gives the scenario with a label on every call, and an id on those that were built without.

    Errors:
        Mistakes: An id comes twice and not on purpose, a label comes twice, or a call has neither.
    """
    wrong: list[Diagnostic] = []
    agents = {
        agent: Script(
            replies=_label_replies(script.replies, script_path(agent, "", script), wrong),
            by_prompt={
                prompt: _label_replies(replies, script_path(agent, prompt, script), wrong)
                for prompt, replies in script.by_prompt.items()
            },
        )
        for agent, script in scenario.agents.items()
    }
    if wrong:
        raise DiagnosticGroup(wrong)
    return replace(scenario, agents=agents)


def script_path(agent: str, prompt: str, script: Script) -> KeyPath:
    """Gives the place of the replies to *prompt*, empty for those to all others."""
    above: KeyPath = ("model",) if agent == MAIN else ("agents", agent, "model")
    return (*above, prompt or "otherwise") if script.by_prompt else above


def _label_replies(
    replies: Iterable[ScriptedReply], path: KeyPath, wrong: list[Diagnostic]
) -> tuple[ScriptedReply, ...]:
    replies = tuple(replies)
    labeller = _Labeller({call.id for reply in replies for call in reply.calls if call.id and not call.repeats}, wrong)
    return tuple(
        replace(reply, calls=tuple(labeller.label(call, (*path, k, "calls", j)) for j, call in enumerate(reply.calls)))
        for k, reply in enumerate(replies)
    )


class _Labeller:
    """Labels the calls of one list of replies, in their order."""

    def __init__(self, taken: set[str], wrong: list[Diagnostic]) -> None:
        self.free = (name for name in map("c{}".format, range(1, 10_000)) if name not in taken)
        self.uses: Counter[str] = Counter()
        self.labels: set[str] = set()
        self.wrong = wrong

    def label(self, call: Call, path: KeyPath) -> Call:
        name = next(self.free) if call.id == "" else call.id
        self._judge_id(call, name, path)
        if name is not None:
            self.uses[name] += 1
        label = call.label or self._derived(name)
        self._judge_label(label, path)
        self.labels.add(label)
        return replace(call, id=name, label=label)

    def _derived(self, name: str | None) -> str:
        if name is None:
            return ""
        return name if self.uses[name] == 1 else f"{name}#{self.uses[name]}"

    def _judge_id(self, call: Call, name: str | None, path: KeyPath) -> None:
        if name is None:
            if call.repeats:
                self.wrong.append(Diagnostic((*path, "repeats"), "a call without an id repeats none"))
        elif self.uses[name] and not call.repeats:
            what = f"the call id {name!r} was used before; say `repeats: true` if that is meant"
            self.wrong.append(Diagnostic((*path, "id"), what))
        elif call.repeats and not self.uses[name]:
            what = f"no call before this one has the id {name!r} that it repeats{suggest_name(name, self.uses)}"
            self.wrong.append(Diagnostic((*path, "repeats"), what))

    def _judge_label(self, label: str, path: KeyPath) -> None:
        if not label:
            self.wrong.append(Diagnostic(path, "a call without an id needs a label: {id: null, label: x1, ...}"))
        elif label in self.labels and not any(mistake.path[: len(path)] == path for mistake in self.wrong):
            self.wrong.append(Diagnostic((*path, "label"), f"another call before this one has the label {label!r}"))
        elif label in RESERVED_LABELS or "/" in label:
            what = f"{label!r} cannot be a label: it must not hold a slash, nor be {' or '.join(RESERVED_LABELS)}"
            self.wrong.append(Diagnostic((*path, "label"), what))


# --- reading them -----------------------------------------------------------------------------------------------------


def list_occurrences(scenario: Scenario) -> tuple[CallOccurrence, ...]:
    """Gives every call that the scripts can make, those of nested agents once for each call that runs them."""
    script = scenario.agents[MAIN]
    openings = {"": script.replies, **script.by_prompt}
    return tuple(
        occurrence
        for opening in openings
        for occurrence in _OccurrenceWalk(scenario, opening).conversation(MAIN, opening, "", frozenset())
    )


def split_owner(agent: str, name: str) -> tuple[str, str]:
    """
    Gives agent and name of the tool that *agent*'s script calls *name*; after a hand-over it says whose tool that is.

    >>> owned("main", "pay"), owned("main", "clerk/pay")
    (('main', 'pay'), ('clerk', 'pay'))
    """
    owner, _, short = name.rpartition("/")
    return owner or agent, short


def find_tool(scenario: Scenario, agent: str, name: str) -> Tool | None:
    """Gives the tool that *agent*'s script calls by that name."""
    owner, short = split_owner(agent, name)
    return next((tool for tool in scenario.tools if tool.name == short and tool.agent == owner), None)


def list_agents(scenario: Scenario) -> tuple[str, ...]:
    """Gives the names of all agents: those that have a script, and those that are handed over to."""
    given = [tool.hands_over_to for tool in scenario.tools if tool.hands_over_to is not None]
    return tuple(dict.fromkeys([*scenario.agents, *given]))


def find_visible_tool(scenario: Scenario, agent: str, name: str) -> Tool | None:
    """Gives the tool that *agent* calls by that name."""
    return next((tool for tool in scenario.tools if tool.visible_name == name and tool.agent == agent), None)


@dataclass(frozen=True, slots=True)
class _OccurrenceWalk:
    scenario: Scenario
    opening: str

    def conversation(self, agent: str, prompt: str, outer: str, above: frozenset[str]) -> Iterator[CallOccurrence]:
        script = self.scenario.agents.get(agent)
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
            yield from self.conversation(tool.runs, prompt, label, above)
