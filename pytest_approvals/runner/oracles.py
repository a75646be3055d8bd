"""Approval oracles: answers to requests that no script answers.

Oracles are plain values: they compose, compare and print as the call that makes them. If an oracle has no answer, the
harness rejects (it fails closed) and records that.

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
        """Its name in the journal."""

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        """Return the answer to one request, or None; *label* is the scenario's name of the call."""


@dataclass(frozen=True, slots=True, repr=False)
class _Oracle:
    """Base of all oracles: the name and the repr are the call that makes the oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class _ConstantOracle(_Oracle):
    decision: ScriptedDecision

    def answer(self, request: Request, label: str | None) -> ScriptedDecision | None:
        return self.decision


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
        # Seeded by the call and not by the order of requests, so that every variant of a run decides alike.
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
        arguments = request.arguments if isinstance(request.arguments, Mapping) else {}
        return fnmatchcase(request.tool, self.tool) and all(
            name in arguments and _matches_pattern(arguments[name], pattern) for name, pattern in self.arguments.items()
        )


def approve_all() -> Oracle:
    """Approve every request."""
    return _ConstantOracle("approve_all()", ScriptedDecision())


def reject_all(reason: str | None = None) -> Oracle:
    """Reject every request."""
    return _ConstantOracle(_format_call("reject_all", reason), ScriptedDecision(verdict="reject", reason=reason))


def edit(**arguments: Any) -> Oracle:
    """Approve every request with these arguments in place of the model's."""
    return _ConstantOracle(_format_call("edit", **arguments), ScriptedDecision(verdict="edit", arguments=arguments))


def always() -> Oracle:
    """Approve every request together with all further calls of its tool."""
    return _ConstantOracle("always()", ScriptedDecision(verdict="always"))


def never(reason: str | None = None) -> Oracle:
    """Reject every request together with all further calls of its tool."""
    return _ConstantOracle(_format_call("never", reason), ScriptedDecision(verdict="never", reason=reason))


def allowlist(*tools: str, otherwise: Oracle | None = None) -> Oracle:
    """Approve requests of tools that match a pattern; reject the rest, or ask *otherwise*."""
    rest = otherwise or reject_all("not on the allowlist")
    name = _format_call("allowlist", *tools, **({"otherwise": rest} if otherwise else {}))
    return _FirstOfOracle(name, (*(_FilterOracle(tool, tool, {}, approve_all()) for tool in tools), rest))


def scripted(answers: Mapping[str, ScriptedDecision | str | bool]) -> Oracle:
    """Answer by the label of the call or else by the tool.

    Args:
        answers: For each, a decision, a verdict (`approve`, `reject`), or a bool.
    """
    name = _format_call("scripted", dict(answers))
    return _ScriptedOracle(name, {key: _require_answer(answer, name) for key, answer in answers.items()})


def policy(decide: Callable[[Request], ScriptedDecision | str | bool | None]) -> Oracle:
    """Ask a function of the request.

    Args:
        decide: Returns a decision, a verdict, a bool, or None if it has no answer.
    """
    return _PolicyOracle(_format_call("policy", _BareName(getattr(decide, "__name__", "function"))), decide)


def random(seed: int) -> Oracle:
    """Approve or reject at random; a seed always decides the same call alike."""
    return _RandomOracle(_format_call("random", seed), seed)


def first_of(*oracles: Oracle) -> Oracle:
    """Ask one oracle after the other and take the first answer."""
    return _FirstOfOracle(_format_call("first_of", *oracles), oracles)


def on(tool: str, then: Oracle, **arguments: Any) -> Oracle:
    """Let *then* answer requests of matching tools with matching arguments; have no answer to others.

    Args:
        tool: A pattern with `*` and `?`.
        then: Answers them.
        arguments: By name: a pattern for text, or the value itself.
    """
    return _FilterOracle(_format_call("on", tool, then, **arguments), tool, arguments, then)


def create_oracle(name: str) -> Oracle:
    """Return the oracle that a variant or a command line names.

    That is `approve_all`, `reject_all`, `random:SEED`, `allowlist:TOOL,TOOL`, or the name of a third-party oracle,
    which gets the text behind the colon.

    Raises:
        UnknownName: There is no such oracle.
        UsageError: The seed is invalid.
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
        raise UsageError(f"Invalid seed {text!r} of the oracle random: expected a number, as in random:7")
    return int(text)


def _to_answer(answer: Any, oracle: str) -> ScriptedDecision | None:
    match answer:
        case None | ScriptedDecision():
            return answer
        case bool():
            return ScriptedDecision(verdict="approve" if answer else "reject")
        case "approve" | "reject" | "always" | "never":
            return ScriptedDecision(verdict=answer)
    raise UsageError(
        f"Invalid answer {answer!r} of {oracle}: expected an Answer, approve, reject, always, never, a bool or None"
    )


def _require_answer(answer: Any, oracle: str) -> ScriptedDecision:
    decision = _to_answer(answer, oracle)
    if decision is None:
        raise UsageError(f"Invalid answer None in {oracle}: leave the entry out if there is no answer")
    return decision


def _matches_pattern(value: Any, pattern: Any) -> bool:
    if isinstance(value, str) and isinstance(pattern, str):
        return fnmatchcase(value, pattern)
    return bool(value == pattern)


@dataclass(frozen=True, slots=True, repr=False)
class _BareName:
    """Bare name inside the call that makes an oracle."""

    name: str

    def __repr__(self) -> str:
        return self.name


def _format_call(function: str, *arguments: Any, **named: Any) -> str:
    parts = [repr(argument) for argument in arguments if argument is not None]
    parts += [f"{name}={value!r}" for name, value in named.items()]
    return f"{function}({', '.join(parts)})"
