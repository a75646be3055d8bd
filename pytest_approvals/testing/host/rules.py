"""Rules of the host protocol, each tested on processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES, IMPLIED
from pytest_approvals.agent_side.rpc.messages import PROTOCOL_VERSION, Welcome
from pytest_approvals.agent_side.rpc.serialization import SerializationError, from_json
from pytest_approvals.protocols.input_rules import PROVIDERS
from pytest_approvals.testing.host.in_flight import ends_while_it_works, keeps_sessions_apart, stops_a_turn
from pytest_approvals.testing.host.raw_client import RawHost, RuleBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """A rule that a process breaks, or a scenario that fails on it.

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


RuleCheck = Callable[[Sequence[str], str], None]
"""Tests a rule on a command for an agent; raises `RuleBroken`."""

RULES: dict[str, tuple[str, RuleCheck]] = {}
"""Every rule by its name: the requirement, and the function that tests it."""


def _rule(requirement: str) -> Callable[[RuleCheck], RuleCheck]:
    def register(attempt: RuleCheck) -> RuleCheck:
        RULES[str(getattr(attempt, "__name__", "")).replace("_", "-")] = (requirement, attempt)
        return attempt

    return register


def check_rules(command: Sequence[str], agent: str) -> list[HostFinding]:
    """Return the rules that a process breaks; if it does not even greet, nothing else is tested."""
    findings: list[HostFinding] = []
    for name, (requirement, attempt) in RULES.items():
        try:
            attempt(command, agent)
        except RuleBroken as broken:
            findings.append(HostFinding(name=name, requirement=requirement, what=str(broken)))
            # The first rule is the greeting.
            if name == next(iter(RULES)):
                break
    return findings


@_rule("`hello` must be answered with the protocol's version and with facts that can be read")
def greets(command: Sequence[str], agent: str) -> None:
    """Test the greeting; without it no other rule can be tested."""
    with RawHost(command) as host:
        welcome = _greet(host, agent)
    if welcome.protocol != PROTOCOL_VERSION:
        raise RuleBroken(f"it speaks protocol {welcome.protocol}; this is {PROTOCOL_VERSION}")
    facts = welcome.facts
    unknown = sorted((facts.capabilities | frozenset(facts.missing)) - _known_capabilities(facts.stores))
    if unknown:
        raise RuleBroken(f"there is no capability {', '.join(unknown)}")
    if facts.wire_rules not in PROVIDERS:
        raise RuleBroken(f"`wire_rules` is {facts.wire_rules!r}; it must be one of {', '.join(PROVIDERS)}")


@_rule("a process that speaks another version of the protocol must refuse to go on")
def refuses_another_protocol(command: Sequence[str], agent: str) -> None:
    """Test the version check: an old process must not guess what a newer harness means."""
    with RawHost(command) as host:
        _expect_refusal(host, "hello", {"protocol": PROTOCOL_VERSION + 98, "process": 1, "agent": agent, "limit": 60.0})


@_rule("nothing may be done before `hello`")
def waits_for_hello(command: Sequence[str], agent: str) -> None:
    """Test calls before `hello`, which numbers the process; handles need that number."""
    with RawHost(command) as host:
        _expect_refusal(host, "build", {"session": 1, "blueprint": {}})


@_rule("a call of a method that does not exist must be answered with an error, or end the connection")
def refuses_unknown_methods(command: Sequence[str], agent: str) -> None:
    """Test an unknown method; without a response the harness would wait."""
    with RawHost(command) as host:
        _greet(host, agent)
        _expect_refusal(host, "dance", {})


@_rule("a call about a session that does not exist must be answered with an error")
def refuses_unknown_sessions(command: Sequence[str], agent: str) -> None:
    """Test an unknown session; data of another session must not be returned."""
    with RawHost(command) as host:
        _greet(host, agent)
        _expect_refusal(host, "pending", {"session": 77})


@_rule("a step whose capability is not claimed must be answered with the error `Unsupported`")
def says_what_it_cannot(command: Sequence[str], agent: str) -> None:
    """Test steps without their capability, which must look neither like failures of the framework nor like success."""
    with RawHost(command) as host:
        facts = _greet(host, agent).facts
        _call_successfully(host, "build", {"session": 1, "blueprint": {}})
        for capability, (method, params) in _STEPS.items():
            if capability in facts.capabilities or (capability == "serialize.json" and facts.stores):
                continue
            answer = host.ask(method, {"session": 1, **params})
            if answer is None or answer.get("err", {}).get("of") != "Unsupported":
                raise RuleBroken(f"`{method}` without the capability {capability} was answered with {answer}")


@_rule("when its standard input ends, the process must end")
def ends_with_its_harness(command: Sequence[str], agent: str) -> None:
    """Test the end of standard input: processes must not outlive the tests."""
    with RawHost(command) as host:
        _greet(host, agent)
        host.hang_up()
        if not host.ends():
            raise RuleBroken("it is still there")


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


def _known_capabilities(stores: Mapping[str, str]) -> frozenset[str]:
    return frozenset((*CAPABILITIES, *IMPLIED)) | {f"native.{name}" for name in stores}


def _greet(host: RawHost, agent: str) -> Welcome:
    answer = _call_successfully(
        host, "hello", {"protocol": PROTOCOL_VERSION, "process": 1, "agent": agent, "limit": 60.0}
    )
    try:
        return from_json(Welcome, answer)
    except SerializationError as mistake:
        raise RuleBroken(f"its answer to `hello` cannot be read: {mistake}") from None


def _call_successfully(host: RawHost, method: str, params: dict[str, Any]) -> Any:
    answer = host.ask(method, params)
    if answer is None:
        raise RuleBroken(f"`{method}` ended the connection")
    if "err" in answer:
        raise RuleBroken(f"`{method}` was answered with the error {answer['err']}")
    return answer["ok"]


def _expect_refusal(host: RawHost, method: str, params: dict[str, Any]) -> None:
    answer = host.ask(method, params)
    if answer is not None and "ok" in answer:
        raise RuleBroken(f"`{method}` was answered with {answer['ok']}")
