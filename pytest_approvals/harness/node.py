"""
What JavaScript agents run on: node, in an environment that npm made.

The JavaScript of the agent's side is copied into the environment, because node looks for packages in the folders above
the file that imports them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.agent_side.facts import facts_of
from pytest_approvals.agent_side.wire import to_json

from .environments.copies import copied
from .environments.npm import find_node
from .runtimes import AGENT_SIDE, Command

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Agent

ENDINGS = (".mjs",)


def node_runtime(environment: Path, adapter: type[Agent], agent: str) -> Command:
    """
    Gives what starts the agents whose facts *adapter* holds, and which stand in `agents.mjs` beside it.

    Errors:
        AgentUnavailable: There is no node that can run them.
    """
    node = find_node(agent)
    home = Path(AGENT_SIDE)
    copy = copied(home, environment / "copies", ENDINGS)
    beside = Path(sys.modules[adapter.__module__].__file__ or "").parent.relative_to(home)
    facts = json.dumps(to_json(facts_of(adapter)))
    return Command(words=(node, str(copy / "javascript" / "main.mjs"), str(copy / beside), facts))
