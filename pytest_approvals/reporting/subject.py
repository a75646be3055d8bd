"""What a verdict is about: a scenario on an agent in a variant, how that is said, and how it is run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from typing import Any

from pytest_approvals.agents.adapters import is_release_simulation
from pytest_approvals.journal.events import Header
from pytest_approvals.scenario.model import Variant

ALL_VARIANTS = "*"
"""Stands for the variant where a verdict is about all variants of a scenario together."""

_BASE = Variant()
_OPTIONS = {
    "serialize": "--serialize",
    "resume": "--resume",
    "history": "--history",
    "stream": "--stream",
    "source": "--answer",
    "oracle": "--oracle",
    "chunking": "--chunking",
    "protocol": "--protocol",
}
_ALWAYS_SHOWN = ("serialize", "stream", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """
    One scenario on one agent in one variant.

    Attributes:
        agent: As it was named: `openai_agents==0.24.0`.
        version: Of its framework.
        where: Where it ran, in a word or two, if not in this environment: `environment`, `checkout`.
        variant: Its id; `ALL_VARIANTS` for all together.
        mode: The variant in words: `json, streaming, held`.
        rerun: The command that shows it again.
    """

    scenario: str
    agent: str
    version: str | None = None
    where: str = ""
    variant: str = ALL_VARIANTS
    mode: str = "all variants"
    rerun: str = ""

    @classmethod
    def of(cls, header: Header, rerun: str = "", more: Iterable[str] = ()) -> Subject:
        """
        Says what a journal is about.

        Arguments:
            rerun: Stands for a command of this package's own, which else has the words *more*.
        """
        variant = Variant(**{name: header.variant[name] for name in Variant.__slots__ if name in header.variant})
        return cls(
            scenario=header.scenario,
            agent=header.agent,
            version=header.version,
            where=agent_location(header.agent),
            variant=variant.id,
            mode=format_mode(variant),
            rerun=rerun or format_rerun_command(header.scenario, header.agent, variant, more),
        )

    @property
    def agent_label(self) -> str:
        """The agent in words: `openai_agents 0.24.0 (environment)`."""
        return format_agent(self.agent, self.version, self.where)


def format_agent(agent: str, version: str | None, where: str = "") -> str:
    """
    Says an agent with its version and place.

    >>> agent_said("openai_agents==0.24.0", "0.24.0", "environment"), agent_said("reference", None)
    ('openai_agents 0.24.0 (environment)', 'reference')
    """
    name = agent.partition("==")[0].partition("@")[0]
    return " ".join(part for part in (name, version, f"({where})" if where else "") if part)


def agent_location(agent: str) -> str:
    """
    Says where an agent ran, by the way it was named; nothing for one of this environment.

    >>> [place_of(agent) for agent in ("langgraph", "langgraph==1.2", "langgraph@../langgraph", "meai==10.4")]
    ['', 'environment', 'checkout', '']
    """
    if "==" in agent:
        return "" if is_release_simulation(agent) else "environment"
    return "checkout" if "@" in agent else ""


def format_mode(variant: Variant) -> str:
    """
    Says a variant in words: what its state goes through, how a reply comes, what a decision is made from, and whatever
    differs from the base variant.

    >>> mode_of(Variant(serialize="json", stream=True)), mode_of(Variant(resume="fresh", oracle="reject_all"))
    ('json, streaming, held', 'none, fresh process, held, oracle reject_all')
    """
    words = [variant.serialize]
    if variant.resume != _BASE.resume:
        words.append(f"{variant.resume} process")
    if variant.history != _BASE.history:
        words.append(f"history {variant.history}")
    if variant.stream:
        words.append("streaming" if variant.chunking == _BASE.chunking else f"streaming {variant.chunking}")
    words.append(variant.source)
    if variant.oracle != _BASE.oracle:
        words.append(f"oracle {variant.oracle}")
    if variant.protocol != _BASE.protocol:
        words.append(variant.protocol)
    return ", ".join(words)


def format_rerun_command(scenario: str, agent: str, variant: Variant | None = None, more: Iterable[str] = ()) -> str:
    """
    Gives the command that runs a scenario on an agent again, in one variant or in all.

    Arguments:
        more: Further words: what else decided which agent ran.

    >>> rerun_command("basics/pay", "reference", Variant(serialize="json", resume="fresh"))
    'pytest-approvals run basics/pay --agent reference --serialize json --resume fresh --stream off --answer held'
    """
    words = ["pytest-approvals", "run", scenario, "--agent", agent]
    for name, option in _OPTIONS.items() if variant is not None else ():
        value = getattr(variant, name)
        if name in _ALWAYS_SHOWN or value != getattr(_BASE, name):
            words += [option, _format_option_value(value)]
    return " ".join(quote(word) for word in [*words, *more])


def _format_option_value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
