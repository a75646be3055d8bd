"""
Scenarios in Python: the same parts that a scenario file has, made by calls that read like it.

>>> from pytest_approvals.scenario.build_caller import reject
>>> story = scenario(
...     title="A refund is rejected",
...     tools=[tool("refund", returns("refunded"), parameters={"order": "integer"}, approval="always")],
...     model=[calls("refund", order=42), say("Not refunded.")],
...     caller=["Refund order 42", reject("c1", "over the limit")],
... )
>>> [answer.verdict for answer in story.caller[1].answers]
['reject']

What is built goes through the same validation as what is loaded. Calls get the ids `c1`, `c2`, ... in the order of the
script where they have none of their own. Made-up values are asked for as in a file: `fake("file_name")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.neutral import Limits
from pytest_approvals.errors import UsageError, nearest
from pytest_approvals.scenario.build_caller import as_steps
from pytest_approvals.scenario.build_parts import asks_again, call, calls, fails, fake, raises, returns, say, tool, when
from pytest_approvals.scenario.fakes import with_fakes
from pytest_approvals.scenario.finish import finished
from pytest_approvals.scenario.mistakes import Mistake, Mistakes, scenario_error
from pytest_approvals.scenario.parts import PROMPT, Expect, Reply, Scenario, Script, Tool

__all__ = [
    "More",
    "asks_again",
    "call",
    "calls",
    "fails",
    "fake",
    "raises",
    "returns",
    "say",
    "scenario",
    "tool",
    "when",
]

Replies = Sequence[Reply]
Model = Replies | Mapping[str, Replies]


class More(TypedDict, total=False):
    """What else a scenario can have; see `Scenario`."""

    about: str
    sources: Sequence[str]
    requires: Iterable[str]
    reaches: Mapping[str, int]
    expect: Expect
    limits: Limits
    only: Mapping[str, Any]
    vary: Iterable[str]
    oracles: Sequence[str]
    held_back: Sequence[str]
    servers: Mapping[str, str]
    options: Mapping[str, Any]
    equal_arguments: bool


def scenario(
    *,
    title: str,
    model: Model,
    tools: Iterable[Tool] = (),
    agents: Mapping[str, Model] | None = None,
    caller: Iterable[Any] | None = None,
    prompt: str = PROMPT,
    id: str = "",  # noqa: A002 - the word of the file
    attached: bool = False,
    **more: Unpack[More],
) -> Scenario:
    """
    Makes a scenario.

    Arguments:
        model: The replies of the main agent's model; as a mapping, by first user message, and under `otherwise`.
        agents: Likewise for the agents that tools run.
        caller: The steps, as `build_caller` makes them; a text is sent, an answer or a list of answers decides. Left
            out: the prompt is sent, and the oracle answers until the end.
        id: By default made of the title.
        attached: A person's own agent plays it, with tools that the scenario does not know.

    Errors:
        ScenarioError: It has a mistake.
        UsageError: Something is given that cannot be a part of it.
    """
    built = Scenario(
        id=id or f"built/{_slug(title)}",
        title=title,
        tools=tuple(tools),
        agents={agent: _script(given) for agent, given in {MAIN: model, **(agents or {})}.items()},
        caller=None if caller is None else as_steps(caller),
        prompt=prompt,
        **_converted(more),
    )
    return _finished(built, attached=attached)


def _values(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


_KINDS: dict[str, tuple[type, ...]] = {
    "about": (str,),
    "sources": (tuple, list),
    "requires": (tuple, list, set, frozenset),
    "reaches": (Mapping,),
    "expect": (Expect,),
    "limits": (Limits,),
    "only": (Mapping,),
    "vary": (tuple, list, set, frozenset),
    "oracles": (tuple, list),
    "held_back": (tuple, list),
    "servers": (Mapping,),
    "options": (Mapping,),
    "equal_arguments": (bool,),
}

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "sources": tuple,
    "requires": frozenset,
    "only": lambda given: {dimension: _values(values) for dimension, values in given.items()},
    "vary": frozenset,
    "oracles": tuple,
    "held_back": tuple,
}


def _converted(more: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in more.items():
        if key not in _KINDS:
            raise UsageError(f"scenario() has no argument {key!r}{nearest(key, _KINDS)}")
        if not isinstance(value, _KINDS[key]):
            raise UsageError(f"scenario({key}=...) cannot be {value!r}")
    return {key: _CONVERSIONS.get(key, _as_it_is)(value) for key, value in more.items()}


def _as_it_is(given: Any) -> Any:
    return given


def _finished(built: Scenario, *, attached: bool) -> Scenario:
    try:
        filled, fakes = with_fakes(built, built.id)
        return finished(replace(filled, fakes=fakes), attached=attached)
    except Mistake as mistake:
        raise scenario_error(built.id, [mistake], {}) from None
    except Mistakes as mistakes:
        raise scenario_error(built.id, mistakes.found, {}) from None


def _script(given: Model) -> Script:
    if isinstance(given, Mapping):
        by_prompt = {prompt: _replies(replies) for prompt, replies in given.items() if prompt != "otherwise"}
        return Script(replies=_replies(given.get("otherwise", ())), by_prompt=by_prompt)
    return Script(replies=_replies(given))


def _replies(given: Replies) -> tuple[Reply, ...]:
    for reply in given:
        if not isinstance(reply, Reply):
            raise UsageError(f"a reply of the model is made by calls(), say() or fails(), and is not {reply!r}")
    return tuple(given)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"
