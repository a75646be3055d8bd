"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...kit.clients import list_installed_protocols
from ...kit.feature_detection import explain_missing_postgres, find_missing_imports

ISSUES = "https://github.com/agno-agi/agno/issues"

POSTGRES = os.environ.get("PYTEST_APPROVALS_POSTGRES", "")
"""Address of a PostgreSQL server; empty if there is none. The option `postgres` takes precedence."""

STORES: Mapping[str, str] = {
    "sqlite": "`SqliteDb` on a file",
    "async_sqlite": "`AsyncSqliteDb` on a file",
    "postgres": "`PostgresDb` on a server",
}

_GATE = "`requires_confirmation` is a mark of the tool, true or false; nothing asks about a call"

_OUTPUT = "`as_tool` is for servers; a body that runs an agent gets the output of its paused run, and nothing surfaces"

_CALL = "a team takes the decision from the requirement that is handed in, and the call from its own run"


_ABSENT = find_missing_imports("agno", "tools/mcp/mcp.py", ("mcp", "fastmcp"))

_ALL: Mapping[str, str] = {
    "reasoning_between_calls": "a message has one `reasoning_content`, which precedes its calls",
    **({"mcp": f"`MCPTools` needs {' and '.join(_ABSENT)}, and that is not installed here"} if _ABSENT else {}),
    "always": "a requirement is about one call; nothing approves further ones",
    "never": "a requirement is about one call; nothing rejects further ones",
    "stage": "a decision goes in with the call that continues the run",
    "concurrent_tools": "a continued run runs the confirmed calls one after the other",
    "asks_again": "the body of a tool cannot pause the run that it is in",
    "hand_offs": "an agent has no hand-offs; the leader of a team is asked first in every turn, in mode `route`, too",
    "conditional_approval": _GATE,
    "slow_conditions": _GATE,
    "raising_conditions": _GATE,
    "annotations": "`MCPTools` reads no annotations of the tools that it lists",
    "elicitation": "`MCPTools` makes its client without a handler of elicitations, and takes none",
    "hosted_mcp": "calls that the provider runs are no functions of the framework, which gates nothing else",
    "limit_model_replies": "an agent counts tool calls (`tool_call_limit`), not replies of its model",
    **explain_missing_postgres("agno", POSTGRES, {"psycopg": "pytest-approvals[postgres]"}),
}

AGENT_MISSING: Mapping[str, str] = {
    **_ALL,
    "nested": _OUTPUT,
    "nested_parallel": _OUTPUT,
    "nested_gate": _OUTPUT,
}
"""For the flavour that runs one agent."""

TEAM_MISSING: Mapping[str, str] = {
    **_ALL,
    "edit": _CALL,
    "edit_tool": _CALL,
    "nested_gate": "the leader's tool `delegate_task_to_member` is made by the team, and takes no marks",
}
"""For the flavour that runs a team."""


_OBJECT = "`Claude` takes the arguments from the final message of Anthropic's client, which makes an object of them"

_RENAMED = "`OpenAIChat` gives calls whose ids are not OpenAI's other ids in each request, by their place in it"

_UNSENT = "`OpenAIChat` reads `reasoning_content`, and does not send it back"

_UNKNOWN = "`OpenAIResponses` sends reasoning back of models with names of OpenAI's that reason; ours are the agents'"

PROTOCOLS: Mapping[str, Mapping[str, str]] = list_installed_protocols(
    chat={"reasoning": _UNSENT, "repeated_ids": _RENAMED, "trim": _RENAMED},
    responses={"reasoning": _UNKNOWN},
    messages={"broken_arguments": _OBJECT},
)
"""Protocols of its own model classes, and what each lacks."""

_DELEGATES = "a leader has one tool for all members, `delegate_task_to_member`; a provider knows no other word for it"

TEAM_PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    name: {**lacks, "nested": _DELEGATES, "nested_parallel": _DELEGATES} for name, lacks in PROTOCOLS.items()
}
"""The same for a team."""

RECOVERY = (
    "a new process continues the run by its id, as the database has it (https://docs.agno.com/basics/hitl/overview: "
    '"The continue_run method continues with the state of the agent at the time of the pause.")'
)
"""How to go on after the process died."""
