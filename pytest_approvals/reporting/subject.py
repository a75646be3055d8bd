"""Subject of a verdict: a scenario on an agent in a variant, its text, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from typing import Any

from pytest_approvals.agents.adapters import is_release_simulation
from pytest_approvals.journal.events import Header
from pytest_approvals.scenario.model import Variant

ALL_VARIANTS = "*"
"""Variant of a verdict on all variants of a scenario together."""

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
    """One scenario on one agent in one variant.

    Attributes:
        agent: The agent as it was named: `openai_agents==0.24.0`.
        version: The version of its framework.
        where: Where it ran if not in this environment: `environment`, `checkout`.
        variant: The id of the variant; `ALL_VARIANTS` for all together.
        mode: The variant in words: `json, streaming, held`.
        rerun: The command that repeats the run.
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
        """Return what a journal is about.

        Args:
            header: The header of the journal.
            rerun: The command that repeats the run; by default one of this package.
            more: Further words of the default command.
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
    """Return the text for an agent with its version and location.

    >>> format_agent("openai_agents==0.24.0", "0.24.0", "environment"), format_agent("reference", None)
    ('openai_agents 0.24.0 (environment)', 'reference')
    """
    name = agent.partition("==")[0].partition("@")[0]
    return " ".join(part for part in (name, version, f"({where})" if where else "") if part)


def agent_location(agent: str) -> str:
    """Return where an agent ran, by its name; nothing for one of this environment.

    >>> [agent_location(agent) for agent in ("langgraph", "langgraph==1.2", "langgraph@../langgraph", "meai==10.4")]
    ['', 'environment', 'checkout', '']
    """
    if "==" in agent:
        return "" if is_release_simulation(agent) else "environment"
    return "checkout" if "@" in agent else ""


def format_mode(variant: Variant) -> str:
    """Return a variant in words.

    The words are the serialize mode, whether replies are streamed, what decisions are made from, and everything that
    differs from the base variant.

    >>> format_mode(Variant(serialize="json", stream=True)), format_mode(Variant(resume="fresh", oracle="reject_all"))
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
    """Return the command that runs a scenario on an agent again, in one variant or in all.

    Args:
        scenario: The id of the scenario.
        agent: The agent as it was named.
        variant: The variant; None for all.
        more: Further words that decide which agent runs.

    >>> format_rerun_command("basics/pay", "reference", Variant(serialize="json", resume="fresh"))
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
