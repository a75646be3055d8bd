"""Agents of a blueprint: the options of the SDK, and the MCP server of its tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from tempfile import gettempdir
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server, tool

from ...contract import MAIN, Blueprint, Parameter, ToolSpec
from ...kit.context import current_world
from .model import SIDE_MODEL

SERVER = "tools"
"""The MCP server of the tools that are functions."""

QUIET: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # A script says what a model answers to each request, so the CLI does not repeat any.
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    # Tools that the model has to look for first would not be offered to the script.
    "ENABLE_TOOL_SEARCH": "false",
    "IS_SANDBOX": "1",
}
"""Environment variables of the CLI that keep it to the model and its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What the sessions of an agent share.

    Attributes:
        tools: Its tools.
        servers: Its MCP servers, as the SDK takes them.
        full_names: The names of its tools in the CLI, by those in the script.
        options: Options of the SDK, in addition.
    """

    tools: tuple[ToolSpec, ...]
    servers: Mapping[str, Any]
    full_names: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by their names in the CLI."""
        return {self.full_names[spec.name]: spec for spec in self.tools}

    def build_options(self, home: str, url: str, **more: Any) -> ClaudeAgentOptions:
        """Return the options of a client.

        Args:
            home: The folder in which the CLI keeps its files.
            url: The address of the model.
            **more: Options of the SDK, which come before all others.
        """
        variables = {
            **QUIET,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": SIDE_MODEL,
            "CLAUDE_CONFIG_DIR": f"{home}/.claude",
            "HOME": home,
            # What is not on this machine is asked for at the server of the model, which refuses it.
            **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), url),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1"),
        }
        chosen: dict[str, Any] = {
            "tools": [],
            "mcp_servers": dict(self.servers),
            "strict_mcp_config": True,
            "setting_sources": [],
            "system_prompt": "",
            "model": MAIN,
            "verbatim_prompts": True,
            "stderr": _ignore,
            **self.options,
            # The CLI tells the model if a session goes on in another folder, as it does for a state in another process.
            "cwd": gettempdir(),
            "env": {**variables, **self.options.get("env", {})},
            **more,
        }
        if "verbatim_prompts" not in {one.name for one in fields(ClaudeAgentOptions)}:
            # Older releases have no such option, and a script sends nothing that they would expand.
            del chosen["verbatim_prompts"]
        return ClaudeAgentOptions(**chosen)


def build_agent(blueprint: Blueprint) -> AgentParts:
    """Build the parts of a blueprint's agent."""
    functions = [spec for spec in blueprint.tools if spec.kind == "function"]
    servers: dict[str, Any] = {}
    if functions:
        servers[SERVER] = create_sdk_mcp_server(SERVER, tools=[_build_tool(spec) for spec in functions])
    for address in blueprint.servers:
        servers[address.name] = (
            {"type": "http", "url": address.url}
            if address.url
            else {"type": "stdio", "command": address.command[0], "args": list(address.command[1:])}
        )
    names = {spec.name: SERVER if spec.kind == "function" else spec.server for spec in blueprint.tools}
    full_names = {name: f"mcp__{server}__{name}" for name, server in names.items()}
    options: dict[str, Any] = {}
    if blueprint.limits.model_replies is not None:
        options["max_turns"] = blueprint.limits.model_replies
    if blueprint.answer:
        options["output_format"] = {"type": "json_schema", "schema": to_schema(blueprint.answer)}
    return AgentParts(tools=blueprint.tools, servers=servers, full_names=full_names, options=options)


def _build_tool(spec: ToolSpec) -> SdkMcpTool[Any]:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        value = await current_world().run(spec.name, arguments, None, agent=spec.agent)
        text = value if isinstance(value, str) else json.dumps(value)
        return {"content": [{"type": "text", "text": text}]}

    return tool(spec.name, spec.description, to_schema(spec.parameters))(run)


def to_schema(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields."""
    return {
        "type": "object",
        "properties": {
            name: {"type": one.type} if one.required else {"type": one.type, "default": one.default}
            for name, one in parameters.items()
        },
        "required": [name for name, one in parameters.items() if one.required],
    }


def _ignore(_: str) -> None:
    """Drop a line that the CLI writes to its standard error."""
