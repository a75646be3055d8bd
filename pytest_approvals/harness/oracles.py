"""
Approval oracles: who answers requests where no script does.

Oracles are plain values: they compose, compare and print as the call that makes them. An oracle that has no answer says
nothing, and the harness then rejects (it fails closed) and records that.

>>> first_of(on("delete_*", reject_all("keep files")), approve_all())
first_of(on('delete_*', reject_all('keep files')), approve_all())
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Protocol

from pytest_approvals import extensions
from pytest_approvals.agent_side.neutral import Request
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.parts import Answer


class Oracle(Protocol):
    """Answers approval requests."""

    @property
    def name(self) -> str:
        """What stands on its decisions in the journal."""

    def answer(self, request: Request, label: str | None) -> Answer | None:
        """Gives the answer to one request, or None where it has none; *label* is what the scenario calls the call."""


@dataclass(frozen=True, slots=True, repr=False)
class _Oracle:
    """What all oracles share: the name and the repr are the call that makes the oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class _Constant(_Oracle):
    given: Answer

    def answer(self, request: Request, label: str | None) -> Answer | None:
        return self.given


@dataclass(frozen=True, slots=True, repr=False)
class _Scripted(_Oracle):
    answers: Mapping[str, Answer]

    def answer(self, request: Request, label: str | None) -> Answer | None:
        by_label = self.answers.get(label) if label is not None else None
        return by_label or self.answers.get(request.tool)


@dataclass(frozen=True, slots=True, repr=False)
class _Policy(_Oracle):
    decide: Callable[[Request], Any]

    def answer(self, request: Request, label: str | None) -> Answer | None:
        return _as_answer(self.decide(request), self.name)


@dataclass(frozen=True, slots=True, repr=False)
class _Random(_Oracle):
    seed: int

    def answer(self, request: Request, label: str | None) -> Answer | None:
        # Keyed on the call and not on the order of requests, so that every variant of a run decides alike.
        key = json.dumps([self.seed, request.agent, request.tool, request.arguments], sort_keys=True, default=repr)
        return Answer() if Random(key).random() < 0.5 else Answer(verdict="reject", reason="by chance")


@dataclass(frozen=True, slots=True, repr=False)
class _FirstOf(_Oracle):
    oracles: tuple[Oracle, ...]

    def answer(self, request: Request, label: str | None) -> Answer | None:
        answers = (oracle.answer(request, label) for oracle in self.oracles)
        return next((answer for answer in answers if answer is not None), None)


@dataclass(frozen=True, slots=True, repr=False)
class _On(_Oracle):
    tool: str
    arguments: Mapping[str, Any]
    then: Oracle

    def answer(self, request: Request, label: str | None) -> Answer | None:
        return self.then.answer(request, label) if self._matches(request) else None

    def _matches(self, request: Request) -> bool:
        given = request.arguments if isinstance(request.arguments, Mapping) else {}
        return fnmatchcase(request.tool, self.tool) and all(
            name in given and _fits(given[name], pattern) for name, pattern in self.arguments.items()
        )


def approve_all() -> Oracle:
    """Approves every request."""
    return _Constant("approve_all()", Answer())


def reject_all(reason: str | None = None) -> Oracle:
    """Rejects every request."""
    return _Constant(_call("reject_all", reason), Answer(verdict="reject", reason=reason))


def edit(**arguments: Any) -> Oracle:
    """Approves every request with these arguments in place of the model's."""
    return _Constant(_call("edit", **arguments), Answer(verdict="edit", arguments=arguments))


def always() -> Oracle:
    """Approves every request together with all further calls of its tool."""
    return _Constant("always()", Answer(verdict="always"))


def never(reason: str | None = None) -> Oracle:
    """Rejects every request together with all further calls of its tool."""
    return _Constant(_call("never", reason), Answer(verdict="never", reason=reason))


def allowlist(*tools: str, otherwise: Oracle | None = None) -> Oracle:
    """
    Approves requests of tools that match one of the patterns; *otherwise* answers the rest, by default with a
    rejection.
    """
    rest = otherwise or reject_all("not on the allowlist")
    name = _call("allowlist", *tools, **({"otherwise": rest} if otherwise else {}))
    return _FirstOf(name, (*(_On(tool, tool, {}, approve_all()) for tool in tools), rest))


def scripted(answers: Mapping[str, Answer | str | bool]) -> Oracle:
    """Answers by the label of the call or else by the tool: an `Answer`, a verdict (`approve`, `reject`), or a bool."""
    name = _call("scripted", dict(answers))
    return _Scripted(name, {key: _required(given, name) for key, given in answers.items()})


def policy(decide: Callable[[Request], Answer | str | bool | None]) -> Oracle:
    """Asks a function of the request; it gives an `Answer`, a verdict, a bool, or None where it has no answer."""
    return _Policy(_call("policy", _Named(getattr(decide, "__name__", "function"))), decide)


def random(seed: int) -> Oracle:
    """Approves or rejects by chance; one seed always decides one call alike."""
    return _Random(_call("random", seed), seed)


def first_of(*oracles: Oracle) -> Oracle:
    """Asks one oracle after the other and takes the first answer."""
    return _FirstOf(_call("first_of", *oracles), oracles)


def on(tool: str, then: Oracle, **arguments: Any) -> Oracle:
    """
    Lets *then* answer requests of matching tools with matching arguments, and has no answer to others.

    Arguments:
        tool: A pattern with `*` and `?`.
        arguments: By name: a pattern for text, or the value itself.
    """
    return _On(_call("on", tool, then, **arguments), tool, arguments, then)


def oracle_named(name: str) -> Oracle:
    """
    Gives the oracle that a variant or a command line names: `approve_all`, `reject_all`, `random:SEED`,
        `allowlist:TOOL,TOOL`, or one that others bring, with what they want behind the colon.

    Errors:
        UnknownName: No oracle is called so.
    """
    word, _, rest = name.partition(":")
    match word:
        case "script" | "approve_all" | "approve-all":
            return approve_all()
        case "reject_all" | "reject-all":
            return reject_all(rest or "not allowed")
        case "random":
            return random(_seed(rest))
        case "allowlist":
            return allowlist(*rest.split(","))
    others = extensions.names_of("oracles")
    if word not in others:
        raise UnknownName("oracle", name, ["approve_all", "reject_all", "random:SEED", "allowlist:TOOL,TOOL", *others])
    oracle: Oracle = extensions.brought("oracles", word)(rest)
    return oracle


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"the oracle random needs a number for its seed: random:7, not random:{text}")
    return int(text)


def _as_answer(given: Any, who: str) -> Answer | None:
    match given:
        case None | Answer():
            return given
        case bool():
            return Answer(verdict="approve" if given else "reject")
        case "approve" | "reject" | "always" | "never":
            return Answer(verdict=given)
    raise UsageError(f"{who} answered {given!r}; valid: an Answer, approve, reject, always, never, True, False, None")


def _required(given: Any, who: str) -> Answer:
    answer = _as_answer(given, who)
    if answer is None:
        raise UsageError(f"{who} holds None; leave the entry out where there is no answer")
    return answer


def _fits(value: Any, pattern: Any) -> bool:
    if isinstance(value, str) and isinstance(pattern, str):
        return fnmatchcase(value, pattern)
    return bool(value == pattern)


@dataclass(frozen=True, slots=True, repr=False)
class _Named:
    """Prints as a bare name inside the call that makes an oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


def _call(function: str, *arguments: Any, **named: Any) -> str:
    given = [repr(argument) for argument in arguments if argument is not None]
    given += [f"{name}={value!r}" for name, value in named.items()]
    return f"{function}({', '.join(given)})"
