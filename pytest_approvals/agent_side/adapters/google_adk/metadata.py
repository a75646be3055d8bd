"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...kit.feature_detection import explain_missing_postgres, find_package_folder, has_source

ISSUES = "https://github.com/google/adk-python/issues"

POSTGRES = os.environ.get("PYTEST_APPROVALS_POSTGRES", "")
"""Address of a PostgreSQL server; empty if there is none. The option `postgres` takes precedence."""

STORES: Mapping[str, str] = {
    "sqlite": "`SqliteSessionService` on a file",
    "database": "`DatabaseSessionService` on a SQLite file",
    "postgres": "`DatabaseSessionService` on a PostgreSQL server",
}

_CONFIRMED = "an answer is `ToolConfirmation(confirmed, payload)`"

_FIRST_CALL = "of parallel calls only the first has a `Part.thought_signature`"

CAN_BE_ASKED = has_source("google.adk", "tools/mcp_tool/mcp_toolset.py", "elicitation_callback")
"""Whether a toolset takes an answer to what its server asks in the middle of a call."""

_ALL: Mapping[str, str] = {
    "sub_agent_renamed": "a tool that runs an agent has the agent's name, so that its calls would be of another tool",
    **({} if CAN_BE_ASKED else {"elicitation": "this release's `McpToolset` takes no `elicitation_callback`"}),
    "annotations": "`require_confirmation` is told the arguments of a call; `McpTool` hands no annotations on",
    "reasoning_between_calls": _FIRST_CALL,
    "message_with_answers": "`run_async` refuses a message that holds text and function responses with `ValueError`",
    "edit_tool": f"{_CONFIRMED}, and the tool that runs is the one of the call in the session",
    "always": f"{_CONFIRMED} about one call",
    "never": f"{_CONFIRMED} about one call",
    "stage": "an answer is the message of the run that it resumes: `run_async(new_message=...)`",
    "cancel": "nothing gives up a request; `rewind_async` takes the whole invocation back, with what its tools did",
    "tampered_request": "an answer holds the id of a request; nothing else of a request is handed over",
    "broken_arguments": "`FunctionCall.args` is a dictionary; a model class must give one",
    "hosted_mcp": "there is no request of a provider; `McpToolset` runs its tools itself",
    "limit_tool_calls": "`RunConfig` limits the calls of the model (`max_llm_calls`) only",
    **explain_missing_postgres("google.adk", POSTGRES, {"asyncpg": "asyncpg"}),
}

_NOT_RESUMABLE: Mapping[str, str] = {
    "go_on_without_answer": "`run_async` takes a message, or the id of an invocation of a resumable app",
}

_YES_OR_NO: Mapping[str, str] = {
    "edit": "`require_confirmation` reads `confirmed` only; the call runs with the arguments that the session has",
}

MISSING: Mapping[str, str] = {**_ALL, **_NOT_RESUMABLE, **_YES_OR_NO}
"""For flavours in which the framework asks."""

RESUMABLE_MISSING: Mapping[str, str] = {**_ALL, **_YES_OR_NO}
"""For the flavour whose invocations can be resumed."""

DYNAMIC_MISSING: Mapping[str, str] = {**_ALL, **_NOT_RESUMABLE}
"""For the flavour whose tools ask themselves and read the payload of the answer."""


_AS_TEXT = "a provider gets the inputs and the actions of other agents as a user's text"

_LACKS: Mapping[str, str] = {
    "nested": _AS_TEXT,
    "nested_parallel": _AS_TEXT,
    "nested_gate": _AS_TEXT,
    "hand_offs": _AS_TEXT,
}

_OPENAI_LACKS: Mapping[str, str] = {
    **_LACKS,
    "reasoning": "`OpenAILlm` reads and writes the fields of OpenAI's own messages, which have no `reasoning_content`",
}

_CLASSES = (
    ("gemini", "google.genai", "models/google_llm.py", "def api_client", _LACKS),
    ("chat", "openai", "integrations/openai/_openai_llm.py", "", _OPENAI_LACKS),
    ("chat", "litellm", "models/lite_llm.py", "", _LACKS),
    ("responses", "openai", "integrations/openai/_openai_responses_llm.py", "", _LACKS),
    ("messages", "anthropic", "models/anthropic_llm.py", "client: Optional", _LACKS),
)
"""Model classes: protocol, library, source file, the text that shows that it accepts a client, and what it lacks."""

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    protocol: lacks
    for protocol, library, file, text, lacks in _CLASSES
    if find_package_folder(library) is not None and has_source("google.adk", file, text)
}
"""Protocols of the model classes that this release has and whose libraries are installed."""

RECOVERY = (
    "a new process gets the session by its id; in a resumable app it runs the invocation again by its id "
    '(https://google.github.io/adk-docs/runtime/resume: "allows you to resume it after an unexpected interruption")'
)
"""How to go on after the process died."""
