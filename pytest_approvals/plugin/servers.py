"""Servers of a user's test: the scripted model over HTTP, and tools over MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ToolRaised
from pytest_approvals.agent_side.contract.types import ElicitationAnswer
from pytest_approvals.errors import UsageError
from pytest_approvals.model_server.conversation import ServedConversation
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.runner.elicitations import Elicitations, OpenElicitation, build_question, complete
from pytest_approvals.runner.mcp.servers import McpServers, McpTool, build_manner
from pytest_approvals.runner.probe_tools import Signals, execute_behaviour
from pytest_approvals.scenario.model import Tool


class ToolServer:
    """A real MCP server on this machine, for an agent that connects to servers itself.

    Args:
        servers: The servers of the test.
        name: What the server is called.
        tools: Made by `pytest_approvals.tool`; successive executions of one do what its behaviours say, and all further
            ones what the last one says. Whether calls are gated is up to the agent.

    Attributes:
        url: For clients of streamable HTTP.
        command: For clients of stdio: the program to start, and its arguments.
        ran: Every execution, in order: the tool and its arguments.
        elicited: Every answer to a question of the server, in order: the tool, `accept`, `decline`, `cancel`, or
            `refuse` if the client did not ask, and the fields that were filled in.
    """

    def __init__(self, servers: McpServers, name: str, *tools: Tool) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.elicited: list[tuple[str, str, dict[str, Any]]] = []
        self._asking = Elicitations()
        address = servers.open(name, [self._offer(name, tool) for tool in tools])
        self.url = address.url
        self.command = address.command

    def _offer(self, server: str, tool: Tool) -> McpTool:
        if any(behaviour.waits_for is not None or behaviour.asks_again is not None for behaviour in tool.behaviours):
            reason = "waits or asks again, and a server of a test only returns or raises"
            raise UsageError(f"the tool {tool.name!r} of the server {server!r} {reason}")

        async def run(arguments: Mapping[str, Any]) -> Any:
            before = sum(name == tool.visible_name for name, _ in self.ran)
            # Noted before it runs, so that executions at the same time get a behaviour each.
            self.ran.append((tool.visible_name, dict(arguments)))
            behaviour = tool.behaviour_at(None, before)
            if behaviour.elicits is None:
                return await execute_behaviour(behaviour, arguments, Signals())
            question = build_question(behaviour, arguments)
            question.number = len(self.ran)
            self._asking.open(OpenElicitation(question=question, behaviour=behaviour, arguments=arguments))
            raise question

        async def resume(_: Mapping[str, Any], answer: ElicitationAnswer) -> Any:
            asked = self._asking.close(answer.execution)
            if asked is None:
                raise ToolRaised("nothing waits for this answer")
            self.elicited.append((tool.visible_name, answer.action, dict(answer.content or {})))
            return complete(asked, answer)

        return McpTool(
            name=tool.visible_name,
            run=run,
            resume=resume,
            parameters=tool.parameters,
            description=tool.description,
            manner=build_manner(tool),
        )


class ModelServer:
    """The scripted model of a test at an address of this machine.

    It is for agents in other processes and languages, and for clients that no transport can be handed to.

    Attributes:
        origin: `http://127.0.0.1:PORT`.
    """

    def __init__(self, server: ScriptedModelServer, conversation: ServedConversation) -> None:
        self.origin = str(server.addresses[0])
        self._name = conversation.name

    @property
    def anthropic_url(self) -> str:
        """What clients of Anthropic take as `base_url`."""
        return f"{self.origin}/{self._name}"

    @property
    def openai_url(self) -> str:
        """What clients of OpenAI take as `base_url`, for both of its protocols."""
        return f"{self.anthropic_url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables in which official clients look for an address and a key."""
        return {
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "ANTHROPIC_API_KEY": "none",
        }
