"""Stories that Hypothesis draws for a person's own agent: what its model calls, and what the caller decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.plugin.drawn_arguments import draw_values
from pytest_approvals.runner.oracles import Oracle, approve_all, reject_all, scripted
from pytest_approvals.scenario.build import call, calls, say
from pytest_approvals.scenario.model import DEFAULT_PROMPT, ScriptedReply

MAX_REPLIES = 3
MAX_CALLS = 3
"""The most calls of one reply."""

MAX_ENDINGS = 10
"""The most replies without calls that may end a turn."""

MAX_SHRINKING_RUNS = 100
"""How many smaller stories are played once one has failed: each takes as long as the agent does."""

Parameters = Mapping[str, Mapping[str, Any]]
"""By tool, its parameters by name."""

FindFailure = Callable[[Sequence[ScriptedReply], "Oracle | str"], "str | None"]
"""Plays a script; returns a word that runs with the same failure share, or None."""


@dataclass(frozen=True, slots=True)
class DrawnStory:
    """The calls of the model, reply by reply, and who decides about them.

    Attributes:
        replies: The name and the arguments of each call.
        approves: Whether each call is approved, in their order; there may be more than calls.
        named: An oracle that decides instead.
        endings: The replies without calls that end a turn: one for each agent of a team that speaks in turn.
    """

    replies: tuple[tuple[tuple[str, Mapping[str, Any]], ...], ...]
    approves: tuple[bool, ...]
    named: Oracle | str | None
    endings: tuple[ScriptedReply, ...] = (say("Done."),)

    @property
    def model(self) -> list[ScriptedReply]:
        """The script of the model."""
        called = [calls(*(call(name, values) for name, values in reply)) for reply in self.replies]
        return [*called, *self.endings]

    @property
    def oracle(self) -> Oracle | str:
        """Who decides."""
        if self.named is not None:
            return self.named
        decided = self.approves[: sum(len(reply) for reply in self.replies)]
        if all(decided):
            return approve_all()
        if not any(decided):
            return reject_all()
        return scripted({f"c{number}": approves for number, approves in enumerate(decided, 1)})

    def format_run(self, prompt: str) -> str:
        """Return the call of `approvals.run` that plays it, as Python."""
        lines = [*map(_format_reply, self.replies), *map(_format_ending, self.endings)]
        model = "".join(f"        {line},\n" for line in lines)
        first = "" if prompt == DEFAULT_PROMPT else f"    {prompt!r},\n"
        return f"approvals.run(\n    build_agent,\n{first}    model=[\n{model}    ],\n    oracle={self.oracle!r},\n)"


def _format_ending(ending: ScriptedReply) -> str:
    if ending.calls:
        return _format_reply([(one.tool, dict(parse_arguments(one.arguments))) for one in ending.calls])
    return f"say({json.dumps(ending.say or '')})"


def _format_reply(reply: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    if len(reply) == 1:
        [(name, values)] = reply
        return f"calls({name!r}{f', {dict(values)!r}' if values else ''})"
    return f"calls({', '.join(f'call({name!r}, {dict(values)!r})' for name, values in reply)})"


class _StoryFails(Exception):
    """A drawn story fails; there is a subclass for each failure, so that Hypothesis keeps them apart."""


class _EnoughRuns(BaseException):
    """Ends the search for a smaller story. Hypothesis would take an `Exception` for another failure."""


def find_failing_story(
    tools: Parameters,
    find_failure: FindFailure,
    *,
    stories: int | None,
    arguments: Mapping[str, Mapping[str, Any]],
    oracle: Oracle | str | None,
    endings: tuple[ScriptedReply, ...] = (say("Done."),),
) -> DrawnStory | None:
    """Play stories until one fails, and return the smallest that was found to fail in the same way; None if none fails.

    Args:
        tools: The tools that the model may call.
        find_failure: Plays one story.
        stories: How many; by default `max_examples` of the profile of Hypothesis.
        arguments: By tool and argument, strategies of Hypothesis for its values.
        oracle: Who decides; None if that is drawn.
        endings: The replies without calls that end a turn.

    Raises:
        UsageError: Hypothesis is not installed, or an argument is invalid.
    """
    __tracebackhide__ = True
    try:
        import hypothesis
    except ImportError:
        raise UsageError("Hypothesis is missing; install it with `pip install 'pytest-approvals[explore]'`.") from None
    if stories is not None and stories < 1:
        raise UsageError(f"Invalid stories={stories}: must be at least 1")
    drawn = _build_stories(tools, arguments, oracle, endings)
    kinds: dict[str, type[_StoryFails]] = {}
    played: dict[str, str | None] = {}
    failing: dict[str, DrawnStory] = {}
    left = MAX_SHRINKING_RUNS

    def play(story: DrawnStory) -> None:
        nonlocal left
        shown = story.format_run("")
        if shown not in played:
            if failing and not left:
                raise _EnoughRuns
            left -= bool(failing)
            played[shown] = find_failure(story.model, story.oracle)
        kind = played[shown]
        if kind is not None:
            # Hypothesis plays only smaller ones once one has failed.
            failing[kind] = story
            raise kinds.setdefault(kind, type(kind, (_StoryFails,), {}))

    profile = hypothesis.settings.default
    assert profile is not None
    settings = hypothesis.settings(
        profile,
        max_examples=stories or profile.max_examples,
        # A run takes as long as its agent does, and all tests would share the one function.
        deadline=None,
        database=None,
        # To explain a failure, Hypothesis would play a story for each part of it.
        phases=[phase for phase in profile.phases if phase is not hypothesis.Phase.explain],
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    given: Any = hypothesis.given(drawn)
    run_all: Callable[[], None] = settings(given(play))
    try:
        run_all()
    except (_StoryFails, _EnoughRuns):
        return next(iter(failing.values()))
    return None


def _build_stories(
    tools: Parameters,
    arguments: Mapping[str, Mapping[str, Any]],
    oracle: Oracle | str | None,
    endings: tuple[ScriptedReply, ...],
) -> Any:
    """Return a strategy of stories that shrink towards one approved call of the first tool."""
    __tracebackhide__ = True
    from hypothesis import strategies

    for tool_name, given in arguments.items():
        if tool_name not in tools:
            raise UnknownName("tool", tool_name, tools, "arguments=")
        for name in given:
            if name not in tools[tool_name]:
                raise UnknownName("argument", name, tools[tool_name], f"arguments={{{tool_name!r}: ...}}")
    drawn_calls = []
    for tool_name, parameters in tools.items():
        required: dict[str, Any] = {}
        optional: dict[str, Any] = {}
        for name, parameter in parameters.items():
            given = arguments.get(tool_name, {})
            value = given[name] if name in given else draw_values(parameter)
            (required if parameter.get("required", True) else optional)[name] = value
        values = strategies.fixed_dictionaries(required, optional=optional)
        drawn_calls.append(strategies.tuples(strategies.just(tool_name), values))
    reply = strategies.lists(strategies.one_of(drawn_calls), min_size=1, max_size=MAX_CALLS).map(tuple)
    replies = strategies.lists(reply, min_size=1, max_size=MAX_REPLIES).map(tuple).filter(have_different_calls)
    # Approval comes first in the order of Hypothesis.
    decision = strategies.sampled_from([True, False])
    decisions = strategies.tuples(*(decision for _ in range(MAX_REPLIES * MAX_CALLS)))
    return strategies.builds(DrawnStory, replies, decisions, strategies.just(oracle), strategies.just(endings))


def have_different_calls(replies: Sequence[Sequence[tuple[str, Mapping[str, Any]]]]) -> bool:
    """Return whether no two calls are equal: only the arguments tell which of them a tool runs for."""
    made = [one for reply in replies for one in reply]
    return all(first != second for first, second in combinations(made, 2))
