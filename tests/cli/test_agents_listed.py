"""`pytest-approvals agents`: a line for each flavour, and all about one."""

from __future__ import annotations

import re
from typing import Any

from pytest_approvals.agents.pins import get_pinned_release


def test_a_framework_that_is_not_here_is_listed_with_the_release_of_its_environment(command_line: Any) -> None:
    """Nothing has to be installed for it."""
    release = re.escape(str(get_pinned_release("autogen-agentchat")))

    listed = command_line("agents").out

    assert re.search(
        rf"^autogen\.swarm +in an environment: autogen-agentchat {release} +\d+ capabilities$", listed, re.MULTILINE
    )


def test_the_columns_are_as_wide_as_what_stands_in_them(command_line: Any) -> None:
    """The states of all agents begin in one column, however long a name is."""
    lines = command_line("agents").out.splitlines()

    assert 1 == len({line.index("in an environment: ") for line in lines if "in an environment: " in line})


def test_the_releases_that_an_agent_plays_are_told(command_line: Any) -> None:
    """They are its versions, and nothing has to be installed for them."""
    lines = command_line("agents", "meai").out.splitlines()

    assert ["meai: ready", "  plays its releases: 10.2, 10.4, 10.6, 10.7, 10.9, robust"] == [lines[0], lines[2]]


def test_traits_are_observed_on_request(command_line) -> None:
    """The catalogue runs on the agent, and what it chose where good agents differ is listed with its meaning."""
    said = command_line("agents", "reference", "--traits")

    assert 0 == said.code
    assert "    unknown-request: refused. A decision about an unknown request is `refused`, or `ignored`.\n" in said.out


def test_traits_are_mentioned_where_they_are_not_observed(command_line) -> None:
    """Observing them takes runs, so the command that makes them is named."""
    printed = command_line("agents", "reference.chat").out

    assert "  traits: pytest-approvals agents reference.chat --traits observes its design choices\n" in printed


def test_traits_need_an_agent(command_line) -> None:
    """Nobody waits for runs on all agents by mistake."""
    said = command_line("agents", "--traits")

    assert (2, "pytest-approvals: --traits: name the agents: pytest-approvals agents SPEC --traits\n") == (
        said.code,
        said.err,
    )


def test_what_an_agent_lacks_for_want_of_something_else_has_its_reason(command_line) -> None:
    """No adapter lists these by name: one follows from what it does not say, and the other one from that."""
    printed = command_line("agents", "acp").out

    assert [
        "    crash: the adapter does not say how its framework goes on after the process died",
        "    stores_in_turns: no process is killed that writes to a store",
    ] == re.findall(r"^    (?:crash|stores_in_turns): .*$", printed, re.MULTILINE)
