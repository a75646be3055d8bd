"""The rules of the host protocol, each tried on processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.capabilities import CAPABILITIES
from pytest_approvals.agent_side.messages import VERSION, Welcome
from pytest_approvals.agent_side.wire import WireError, from_json
from pytest_approvals.protocols.rules import PROVIDERS

from .raw import Broken, RawHost
from .working import ends_while_it_works, keeps_sessions_apart, stops_a_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    Something that is wrong with a process.

    Attributes:
        name: The rule, or the scenario.
        requirement: What must hold.
        what: What was seen instead.
    """

    name: str
    requirement: str
    what: str

    def __str__(self) -> str:
        return f"{self.name}: {self.requirement}; {self.what}"


Try = Callable[[Sequence[str], str], None]
"""Tries a rule on a command for an agent; raises `Broken`."""

RULES: dict[str, tuple[str, Try]] = {}
"""Every rule by its name: the requirement, and what tries it."""


def _rule(requirement: str) -> Callable[[Try], Try]:
    def register(attempt: Try) -> Try:
        RULES[str(getattr(attempt, "__name__", "")).replace("_", "-")] = (requirement, attempt)
        return attempt

    return register


def judged(command: Sequence[str], agent: str) -> list[Finding]:
    """Lists the rules that a process breaks; where it does not even greet, nothing else is tried."""
    found: list[Finding] = []
    for name, (requirement, attempt) in RULES.items():
        try:
            attempt(command, agent)
        except Broken as broken:
            found.append(Finding(name=name, requirement=requirement, what=str(broken)))
            if name == next(iter(RULES)):
                break
    return found


@_rule("`hello` must be answered with the protocol's version and with facts that can be read")
def greets(command: Sequence[str], agent: str) -> None:
    """The first rule: without a greeting there is nothing else to try."""
    with RawHost(command) as host:
        welcome = _welcome(host, agent)
    if welcome.protocol != VERSION:
        raise Broken(f"it speaks protocol {welcome.protocol}; this is {VERSION}")
    facts = welcome.facts
    unknown = sorted((facts.capabilities | frozenset(facts.missing)) - _known(facts.stores))
    if unknown:
        raise Broken(f"there is no capability {', '.join(unknown)}")
    if facts.wire_rules not in PROVIDERS:
        raise Broken(f"`wire_rules` is {facts.wire_rules!r}; it must be one of {', '.join(PROVIDERS)}")


@_rule("a process that speaks another version of the protocol must refuse to go on")
def refuses_another_protocol(command: Sequence[str], agent: str) -> None:
    """An old process must not guess what a newer harness means."""
    with RawHost(command) as host:
        _refused(host, "hello", {"protocol": VERSION + 98, "process": 1, "agent": agent, "limit": 60.0})


@_rule("nothing may be done before `hello`")
def waits_for_hello(command: Sequence[str], agent: str) -> None:
    """The harness numbers processes in `hello`, and handles need that number."""
    with RawHost(command) as host:
        _refused(host, "build", {"session": 1, "blueprint": {}})


@_rule("a call of a method that does not exist must be answered with an error, or end the connection")
def refuses_unknown_methods(command: Sequence[str], agent: str) -> None:
    """Silence would leave the harness waiting."""
    with RawHost(command) as host:
        _welcome(host, agent)
        _refused(host, "dance", {})


@_rule("a call about a session that does not exist must be answered with an error")
def refuses_unknown_sessions(command: Sequence[str], agent: str) -> None:
    """Nothing of another session may be told."""
    with RawHost(command) as host:
        _welcome(host, agent)
        _refused(host, "pending", {"session": 77})


@_rule("a step whose capability is not claimed must be answered with the error `Unsupported`")
def says_what_it_cannot(command: Sequence[str], agent: str) -> None:
    """What cannot be expressed must not look like a failure of the framework, or as if it had been done."""
    with RawHost(command) as host:
        facts = _welcome(host, agent).facts
        _done(host, "build", {"session": 1, "blueprint": {}})
        for capability, (method, params) in _STEPS.items():
            if capability in facts.capabilities or (capability == "serialize.json" and facts.stores):
                continue
            answer = host.ask(method, {"session": 1, **params})
            if answer is None or answer.get("err", {}).get("of") != "Unsupported":
                raise Broken(f"`{method}` without the capability {capability} was answered with {answer}")


@_rule("when its standard input ends, the process must end")
def ends_with_its_harness(command: Sequence[str], agent: str) -> None:
    """Whoever runs tests must not collect processes."""
    with RawHost(command) as host:
        _welcome(host, agent)
        host.hang_up()
        if not host.ends():
            raise Broken("it is still there")


_rule("when its standard input ends while a tool runs, the process must end, too")(ends_while_it_works)
_rule("while a call of one session is open, calls of another session must be answered")(keeps_sessions_apart)
_rule("a call that is stopped must be answered with `Stopped`, and its session must stay usable")(stops_a_turn)

_STEPS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "stage": ("stage", {"decisions": []}),
    "cancel": ("cancel", {}),
    "trim": ("trim", {"keep": 1}),
    "serialize.json": ("dump", {}),
    "serialize.copy": ("copy_from", {"other": 1}),
    "sessions": ("another_session", {"new": 2}),
}


def _known(stores: Mapping[str, str]) -> frozenset[str]:
    return frozenset(CAPABILITIES) | {f"native.{name}" for name in stores}


def _welcome(host: RawHost, agent: str) -> Welcome:
    answer = _done(host, "hello", {"protocol": VERSION, "process": 1, "agent": agent, "limit": 60.0})
    try:
        return from_json(Welcome, answer)
    except WireError as mistake:
        raise Broken(f"its answer to `hello` cannot be read: {mistake}") from None


def _done(host: RawHost, method: str, params: dict[str, Any]) -> Any:
    answer = host.ask(method, params)
    if answer is None:
        raise Broken(f"`{method}` ended the connection")
    if "err" in answer:
        raise Broken(f"`{method}` was answered with the error {answer['err']}")
    return answer["ok"]


def _refused(host: RawHost, method: str, params: dict[str, Any]) -> None:
    answer = host.ask(method, params)
    if answer is not None and "ok" in answer:
        raise Broken(f"`{method}` was answered with {answer['ok']}")
