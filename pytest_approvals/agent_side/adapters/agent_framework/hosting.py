"""Agents behind `ResponsesHostServer`, of `agent-framework-foundry-hosting`.

The server runs in this process, on its own files below one folder, and is reached as a client of the Responses API
would. A gated call comes to the client as an `mcp_approval_request`, and an `mcp_approval_response` in the next input
decides. A failed response cannot be continued: the client continues from the last one that did not fail, as clients
that raise on a failure do.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .metadata import CHAT_PROTOCOLS, ISSUES, PACKAGES, RESPONSES_PROTOCOLS

if TYPE_CHECKING:
    from .agents import AgentGraph
    from .hosting_client import ServerClient
    from .model import ClientFactory


class HostedSession(Agent):
    """A client that continues with `previous_response_id`; the model speaks Responses."""

    framework = metadata.HOSTING_FRAMEWORK
    wire_rules = "responses"
    issues = ISSUES
    stores = metadata.HOSTING_STORES
    packages = PACKAGES
    protocols = RESPONSES_PROTOCOLS
    missing = metadata.HOSTING_MISSING
    recovery = metadata.HOSTING_RECOVERY

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: HostedSession | None = None) -> None:
        super().__init__(world, blueprint)
        self._borrowed = shared_with is not None
        self._root: StateRoot = shared_with._root if shared_with else StateRoot(blueprint.directory)
        self._tools: tuple[ToolSpec, ...] = shared_with._tools if shared_with else blueprint.tools
        # After these two: connecting needs `_root`, and replaces `_tools` by those that an attached agent has.
        self._client: ServerClient = shared_with._client if shared_with else self._connect()
        self._last = ""

    def _connect(self) -> ServerClient:
        from .hosting_client import ServerClient

        return ServerClient(build_server(self._build_hosted(), self._root))

    def _build_hosted(self) -> Any:
        """Return what the server hosts."""
        agents = build_hosted_agents(self.blueprint, self._choose_client_factory())
        self._tools = agents.tools
        return agents.main

    def _choose_client_factory(self) -> ClientFactory:
        """Return what builds the scripted clients of its agents."""
        from .model import ResponsesClient

        return ResponsesClient

    def _position(self) -> dict[str, Any]:
        """Return the fields that name where the next response continues."""
        return {"previous_response_id": self._last} if self._last else {}

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .hosting_client import read_requests, read_text, read_value, write_input

        body = {"model": "scripted", "input": write_input(text, decisions), **self._position()}
        with use_world(self.world), self._root.use():
            response = await (self._client.stream(body, self._report_event) if stream else self._client.create(body))
        self._last = response["id"]
        output = response["output"]
        if requests := read_requests(output):
            return Paused(requests=requests, text=read_text(output) or None)
        return Finished(output=read_value(output) if self.blueprint.answer else read_text(output))

    def _report_event(self, kind: str, **values: Any) -> None:
        # A structured answer streams like text, but is not text.
        if kind != "text" or not self.blueprint.answer:
            self.world.shown(kind, **values)

    async def pending(self) -> Sequence[Request]:
        """Return the requests in the last response, which the server is asked for."""
        from .hosting_client import read_requests

        if not self._last:
            return ()
        with self._root.use():
            return read_requests((await self._client.get(self._last))["output"])

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return what the client keeps: where it continues."""
        self._needs_store()
        return json.dumps(self._saved_fields())

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._needs_store()
        self._restore_fields(json.loads(parts[-1]))

    def _saved_fields(self) -> dict[str, str]:
        return {"response": self._last}

    def _restore_fields(self, saved: dict[str, str]) -> None:
        self._last = saved["response"]

    def _needs_store(self) -> None:
        if not self.blueprint.serialize.startswith("native."):
            raise Unsupported("serialize.json", metadata.HOSTING_MISSING["serialize.json"])

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def close(self) -> None:
        """See `Agent.close`."""
        if not self._borrowed:
            self._root.close()


class HostedChatSession(HostedSession):
    """As `HostedSession`; the model speaks Chat Completions."""

    wire_rules = "chat"
    protocols = CHAT_PROTOCOLS
    missing = metadata.HOSTING_CHAT_MISSING
    # The server stores the same, whatever its model speaks: stories kill that of `hosted`.
    recovery = ""

    def _choose_client_factory(self) -> ClientFactory:
        from .model import ScriptedClient

        return ScriptedClient


class HostedConversationSession(HostedSession):
    """A client that continues with `conversation`."""

    missing = metadata.HOSTING_CONVERSATION_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: HostedSession | None = None) -> None:
        super().__init__(world, blueprint, shared_with=shared_with)
        # The form of the server's own ids: 50 characters, of which 18 are its partition key.
        self._conversation = f"conv_{uuid4().hex}{uuid4().hex[:18]}"

    def _position(self) -> dict[str, Any]:
        return {"conversation": self._conversation}

    def _saved_fields(self) -> dict[str, str]:
        return {**super()._saved_fields(), "conversation": self._conversation}

    def _restore_fields(self, saved: dict[str, str]) -> None:
        super()._restore_fields(saved)
        self._conversation = saved["conversation"]


class HostedWorkflowSession(HostedSession):
    """A client of an agent made of a workflow; the server gets a new one for each request."""

    missing = metadata.HOSTING_WORKFLOW_MISSING
    # To host a workflow as an agent is deprecated; stories kill that of `workflow`.
    recovery = ""

    def _build_hosted(self) -> Any:
        if self.blueprint.attachment is not None:
            raise Unsupported("attach", "hand the agent over to another flavour, or the workflow's agent")
        workflow = hosted_workflow_factory(self.blueprint, self._choose_client_factory())
        return workflow if takes_factories() else workflow()


def build_server(agent: Any, root: StateRoot) -> Any:
    """Build the server, which keeps its files below *root*.

    Args:
        agent: An agent, or a function that builds one for each request.
        root: The folder.
    """
    from agent_framework_foundry_hosting import ResponsesHostServer

    # Workflow agents are deprecated here, and the warning comes with a request; the flavour chose them knowingly.
    warnings.filterwarnings("ignore", message="Hosting WorkflowAgent ", category=DeprecationWarning)
    with root.use(), root.as_current_folder():
        # Telemetry would go to stdout.
        return ResponsesHostServer(agent, configure_observability=None)


def takes_factories() -> bool:
    """Return whether this release takes a function that builds an agent for each request."""
    import importlib.util

    return importlib.util.find_spec("agent_framework_foundry_hosting._agent_source") is not None


def build_hosted_agents(blueprint: Blueprint, client: ClientFactory) -> AgentGraph:
    """Build the agents that *blueprint* describes, without histories: the server has them."""
    from .agents import build_agents
    from .attach import attach_agents

    if blueprint.attachment is not None:
        return attach_agents(blueprint.attachment, client)
    return build_agents(blueprint, client=client, context_providers=None)


def hosted_workflow_factory(blueprint: Blueprint, client: ClientFactory) -> Callable[[], Any]:
    """Return a factory of agents made of a workflow whose only step is the main agent."""
    from agent_framework import WorkflowBuilder

    from .agents import build_agents

    def build() -> Any:
        main = build_agents(blueprint, client=client).main
        return WorkflowBuilder(name="hosted", start_executor=main).build().as_agent()

    return build


# --- files ----------------------------------------------------------------------------------------------------------

STATE_ROOT_VARIABLE = "AGENTSERVER_STATE_ROOT"


class StateRoot:
    """Folder below which servers keep their files.

    A server finds it in an environment variable, which the process has once: it is set while sessions use it, and
    restored when the last one has finished.

    Args:
        directory: Its path; if empty, a folder is created, and removed by `close`.
    """

    def __init__(self, directory: str = "") -> None:
        self._made = "" if directory else tempfile.mkdtemp(prefix="approvals-hosting-")
        self.path = directory or self._made

    @contextmanager
    def use(self) -> Iterator[None]:
        """Let servers use it in this context; concurrent turns may use it together."""
        _set_variable(self.path)
        try:
            yield
        finally:
            _restore_variable()

    @contextmanager
    def as_current_folder(self) -> Iterator[None]:
        """Make it the current folder; early servers read that once, on construction."""
        earlier = os.getcwd()
        os.chdir(self.path)
        try:
            yield
        finally:
            os.chdir(earlier)

    def close(self) -> None:
        """Remove it if it was created."""
        if self._made:
            shutil.rmtree(self._made, ignore_errors=True)


_EARLIER_VALUES: list[str | None] = []
"""Earlier values of the variable, one for each user."""


def _set_variable(path: str) -> None:
    _EARLIER_VALUES.append(os.environ.get(STATE_ROOT_VARIABLE))
    os.environ[STATE_ROOT_VARIABLE] = path


def _restore_variable() -> None:
    # The last user restores the value that the first one found, in whatever order they finish.
    if len(_EARLIER_VALUES) > 1:
        _EARLIER_VALUES.pop()
        return
    earlier = _EARLIER_VALUES.pop()
    if earlier is None:
        os.environ.pop(STATE_ROOT_VARIABLE, None)
    else:
        os.environ[STATE_ROOT_VARIABLE] = earlier
