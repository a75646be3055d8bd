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
from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.model import ScriptedDecision


class Oracle(Protocol):
    """Answers approval requests."""

    @property
    def name(self) -> str:
        """What stands on its decisions in the journal."""

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        """Gives the answer to one request, or None where it has none; *label* is what the scenario calls the call."""


@dataclass(frozen=True, slots=True, repr=False)
class _Oracle:
    """What all oracles share: the name and the repr are the call that makes the oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class _ConstantOracle(_Oracle):
    given: ScriptedDecision

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        return self.given


@dataclass(frozen=True, slots=True, repr=False)
class _ScriptedOracle(_Oracle):
    answers: Mapping[str, ScriptedDecision]

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        by_label = self.answers.get(label) if label is not None else None
        return by_label or self.answers.get(request.tool)


@dataclass(frozen=True, slots=True, repr=False)
class _PolicyOracle(_Oracle):
    decide: Callable[[Request], Any]

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        return _to_answer(self.decide(request), self.name)


@dataclass(frozen=True, slots=True, repr=False)
class _RandomOracle(_Oracle):
    seed: int

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        # Keyed on the call and not on the order of requests, so that every variant of a run decides alike.
        key = json.dumps([self.seed, request.agent, request.tool, request.arguments], sort_keys=True, default=repr)
        return (
            ScriptedDecision() if Random(key).random() < 0.5 else ScriptedDecision(verdict="reject", reason="by chance")
        )


@dataclass(frozen=True, slots=True, repr=False)
class _FirstOfOracle(_Oracle):
    oracles: tuple[Oracle, ...]

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        answers = (oracle.answer(request, label) for oracle in self.oracles)
        return next((answer for answer in answers if answer is not None), None)


@dataclass(frozen=True, slots=True, repr=False)
class _FilterOracle(_Oracle):
    tool: str
    arguments: Mapping[str, Any]
    then: Oracle

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        return self.then.answer(request, label) if self._matches(request) else None

    def _matches(self, request: Request) -> bool:
        given = request.arguments if isinstance(request.arguments, Mapping) else {}
        return fnmatchcase(request.tool, self.tool) and all(
            name in given and _matches_pattern(given[name], pattern) for name, pattern in self.arguments.items()
        )


def approve_all() -> Oracle:
    """Approves every request."""
    return _ConstantOracle("approve_all()", ScriptedDecision())


def reject_all(reason: str | None = None) -> Oracle:
    """Rejects every request."""
    return _ConstantOracle(_format_call("reject_all", reason), ScriptedDecision(verdict="reject", reason=reason))


def edit(**arguments: Any) -> Oracle:
    """Approves every request with these arguments in place of the model's."""
    return _ConstantOracle(_format_call("edit", **arguments), ScriptedDecision(verdict="edit", arguments=arguments))


def always() -> Oracle:
    """Approves every request together with all further calls of its tool."""
    return _ConstantOracle("always()", ScriptedDecision(verdict="always"))


def never(reason: str | None = None) -> Oracle:
    """Rejects every request together with all further calls of its tool."""
    return _ConstantOracle(_format_call("never", reason), ScriptedDecision(verdict="never", reason=reason))


def allowlist(*tools: str, otherwise: Oracle | None = None) -> Oracle:
    """
    Approves requests of tools that match one of the patterns; *otherwise* answers the rest, by default with a
    rejection.
    """
    rest = otherwise or reject_all("not on the allowlist")
    name = _format_call("allowlist", *tools, **({"otherwise": rest} if otherwise else {}))
    return _FirstOfOracle(name, (*(_FilterOracle(tool, tool, {}, approve_all()) for tool in tools), rest))


def scripted(answers: Mapping[str, ScriptedDecision | str | bool]) -> Oracle:
    """Answers by the label of the call or else by the tool: an `ScriptedDecision`, a verdict (`approve`, `reject`), or a bool."""
    name = _format_call("scripted", dict(answers))
    return _ScriptedOracle(name, {key: _require_answer(given, name) for key, given in answers.items()})


def policy(decide: Callable[[Request], ScriptedDecision | str | bool | None]) -> Oracle:
    """Asks a function of the request; it gives an `ScriptedDecision`, a verdict, a bool, or None where it has no answer."""
    return _PolicyOracle(_format_call("policy", _BareName(getattr(decide, "__name__", "function"))), decide)


def random(seed: int) -> Oracle:
    """Approves or rejects by chance; one seed always decides one call alike."""
    return _RandomOracle(_format_call("random", seed), seed)


def first_of(*oracles: Oracle) -> Oracle:
    """Asks one oracle after the other and takes the first answer."""
    return _FirstOfOracle(_format_call("first_of", *oracles), oracles)


def on(tool: str, then: Oracle, **arguments: Any) -> Oracle:
    """
    Lets *then* answer requests of matching tools with matching arguments, and has no answer to others.

    Arguments:
        tool: A pattern with `*` and `?`.
        arguments: By name: a pattern for text, or the value itself.
    """
    return _FilterOracle(_format_call("on", tool, then, **arguments), tool, arguments, then)


def create_oracle(name: str) -> Oracle:
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
            return random(_parse_seed(rest))
        case "allowlist":
            return allowlist(*rest.split(","))
    others = extensions.available_names("oracles")
    if word not in others:
        raise UnknownName("oracle", name, ["approve_all", "reject_all", "random:SEED", "allowlist:TOOL,TOOL", *others])
    oracle: Oracle = extensions.load("oracles", word)(rest)
    return oracle


def _parse_seed(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"the oracle random needs a number for its seed: random:7, not random:{text}")
    return int(text)


def _to_answer(given: Any, who: str) -> ScriptedDecision | None:
    match given:
        case None | ScriptedDecision():
            return given
        case bool():
            return ScriptedDecision(verdict="approve" if given else "reject")
        case "approve" | "reject" | "always" | "never":
            return ScriptedDecision(verdict=given)
    raise UsageError(f"{who} answered {given!r}; valid: an Answer, approve, reject, always, never, True, False, None")


def _require_answer(given: Any, who: str) -> ScriptedDecision:
    answer = _to_answer(given, who)
    if answer is None:
        raise UsageError(f"{who} holds None; leave the entry out where there is no answer")
    return answer


def _matches_pattern(value: Any, pattern: Any) -> bool:
    if isinstance(value, str) and isinstance(pattern, str):
        return fnmatchcase(value, pattern)
    return bool(value == pattern)


@dataclass(frozen=True, slots=True, repr=False)
class _BareName:
    """Prints as a bare name inside the call that makes an oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


def _format_call(function: str, *arguments: Any, **named: Any) -> str:
    given = [repr(argument) for argument in arguments if argument is not None]
    given += [f"{name}={value!r}" for name, value in named.items()]
    return f"{function}({', '.join(given)})"
