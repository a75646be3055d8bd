"""Agents of a blueprint: the options of the SDK, the MCP server of its tools, and rules about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
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

SETTINGS = Path(".claude", "settings.local.json")
"""The settings of one user for a folder: where the CLI puts the rules that a user adds while it runs."""

Permissions = Mapping[str, list[str]]
"""The rules by their lists, `allow` and `ask`."""


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

    @property
    def folder(self) -> str:
        """The folder in which its sessions work, unless they are told another one.

        The CLI tells the model if a session goes on in another folder, as it does for a state in another process.
        """
        return gettempdir()

    def build_options(self, home: str, url: str, **more: Any) -> ClaudeAgentOptions:
        """Return the options of a client.

        Args:
            home: The folder in which the CLI keeps its files.
            url: The address of the model.
            **more: Options of the SDK, which come before all others; `env` adds to the variables.
        """
        variables = {
            **QUIET,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": SIDE_MODEL,
            "CLAUDE_CONFIG_DIR": find_config_folder(home),
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
            "cwd": self.folder,
            **more,
            "env": {**variables, **self.options.get("env", {}), **more.get("env", {})},
        }
        if "verbatim_prompts" not in {one.name for one in fields(ClaudeAgentOptions)}:
            # Older releases have no such option, and a script sends nothing that they would expand.
            del chosen["verbatim_prompts"]
        return ClaudeAgentOptions(**chosen)


class Project:
    """The folder in which an agent works, made when it is first asked for.

    All sessions of the agent work in it, as processes with one `cwd` do.

    Args:
        specs: The tools by their names in the CLI.

    Attributes:
        permissions: Their rules when the agent begins.
    """

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        self.permissions = build_permissions(specs)
        self._specs = specs
        self._folder: TemporaryDirectory[str] | None = None

    @property
    def path(self) -> str:
        """Its path."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="claude-project-", ignore_cleanup_errors=True)
            file = Path(self._folder.name, SETTINGS)
            file.parent.mkdir()
            file.write_text(json.dumps({"permissions": {"defaultMode": "default", **self.permissions}}))
        return self._folder.name

    def allows_server_of(self, full_name: str) -> bool:
        """Return whether a rule allows the whole server of a tool."""
        spec = self._specs.get(full_name)
        return spec is not None and spec.server is not None and _server_rule(spec.server) in self.permissions["allow"]

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def find_config_folder(home: str) -> str:
    """Return the folder in which the CLI keeps its transcripts, in the folder of its files."""
    return f"{home}/.claude"


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


def build_permissions(specs: Mapping[str, ToolSpec]) -> Permissions:
    """Return the rules for tools, by the lists of a settings file.

    The CLI asks about what no rule allows, so that gated functions need none, and an `ask` rule comes before one that
    allows. A server is allowed as a whole unless a tool of it has a condition: that is evaluated when the CLI asks,
    because rules of a settings file cannot speak of the arguments of MCP tools.
    """
    with_conditions = {spec.server for spec in specs.values() if not isinstance(spec.approval, str)}
    allow: dict[str, None] = {}
    ask: list[str] = []
    for full_name, spec in specs.items():
        if spec.server is not None and spec.server not in with_conditions:
            allow[_server_rule(spec.server)] = None
        elif spec.approval == "never":
            allow[full_name] = None
        if spec.server is not None and spec.approval == "always":
            ask.append(full_name)
    return {"allow": list(allow), "ask": ask}


def _server_rule(server: str) -> str:
    """Return the rule about all tools of a server."""
    return f"mcp__{server}"


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
