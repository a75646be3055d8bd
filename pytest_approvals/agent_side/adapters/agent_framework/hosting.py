"""The folder below which servers keep their files.

A server finds it in the environment, which a process has one of: it is set while sessions use it, and put back when the
last one lets go.

One session: a client's conversation with a server, and the flavours of it.

The server in front of an agent, or of a factory of agents.

What a server hosts.
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
from .metadata import CHAT_PROTOCOLS, ISSUES, PACKAGES, RESPONSES_PROTOCOLS, claimed

if TYPE_CHECKING:
    from .agents import AgentGraph
    from .hosting_client import ServerClient
    from .model import ClientFactory


STATE_ROOT_VARIABLE = "AGENTSERVER_STATE_ROOT"


class StateRoot:
    """
    One such folder.

    Arguments:
        directory: Where it is; where it is empty, a folder is made, and removed again by `close`.
    """

    def __init__(self, directory: str = "") -> None:
        self._made = "" if directory else tempfile.mkdtemp(prefix="approvals-hosting-")
        self.path = directory or self._made

    @contextmanager
    def used(self) -> Iterator[None]:
        """Lets servers use it for what is inside; turns at the same time may use it together."""
        _set_variable(self.path)
        try:
            yield
        finally:
            _restore_variable()

    @contextmanager
    def as_current_folder(self) -> Iterator[None]:
        """Makes it the current folder; early servers take that for their place, once, when they are built."""
        before = os.getcwd()
        os.chdir(self.path)
        try:
            yield
        finally:
            os.chdir(before)

    def close(self) -> None:
        """Removes it, where it was made."""
        if self._made:
            shutil.rmtree(self._made, ignore_errors=True)


_EARLIER_VALUES: list[str | None] = []
"""What the environment said before, once for each user."""


def _set_variable(path: str) -> None:
    _EARLIER_VALUES.append(os.environ.get(STATE_ROOT_VARIABLE))
    os.environ[STATE_ROOT_VARIABLE] = path


def _restore_variable() -> None:
    # The last one to leave puts back what the first one found, in whatever order they leave.
    if len(_EARLIER_VALUES) > 1:
        _EARLIER_VALUES.pop()
        return
    before = _EARLIER_VALUES.pop()
    if before is None:
        os.environ.pop(STATE_ROOT_VARIABLE, None)
    else:
        os.environ[STATE_ROOT_VARIABLE] = before


class HostedSession(Agent):
    """A client that goes on with `previous_response_id`, of an agent whose model is reached with Responses."""

    framework = metadata.HOSTING_FRAMEWORK
    wire_rules = "responses"
    issues = ISSUES
    stores = metadata.HOSTING_STORES
    packages = PACKAGES
    protocols = RESPONSES_PROTOCOLS
    capabilities = claimed(metadata.HOSTING_MISSING, metadata.HOSTING_STORES)
    missing = metadata.HOSTING_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: HostedSession | None = None) -> None:
        super().__init__(world, blueprint)
        self._borrowed = beside is not None
        self._root: StateRoot = beside._root if beside else StateRoot(blueprint.directory)
        self._tools: tuple[ToolSpec, ...] = beside._tools if beside else blueprint.tools
        self._client: ServerClient = beside._client if beside else self._connected()
        self._last = ""

    def _connected(self) -> ServerClient:
        from .hosting_client import ServerClient

        if self.blueprint.serialize.startswith("native.") and not keeps_files():
            raise Unsupported(self.blueprint.serialize, "this release keeps requests and responses in memory")
        return ServerClient(build_server(self._hosted(), self._root))

    def _hosted(self) -> Any:
        """What the server hosts."""

        crew = build_hosted_agents(self.blueprint, self._chat_client())
        self._tools = crew.tools
        return crew.main

    def _chat_client(self) -> ClientFactory:
        """What makes the chat clients of its agents."""
        from .model import ResponsesClient

        return ResponsesClient

    def _place(self) -> dict[str, Any]:
        """Where the next response goes on from."""
        return {"previous_response_id": self._last} if self._last else {}

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .hosting_client import read_requests, read_text, read_value, write_input

        body = {"model": "scripted", "input": write_input(text, decisions), **self._place()}
        with use_world(self.world), self._root.used():
            response = await (self._client.stream(body, self._shown) if stream else self._client.create(body))
        self._last = response["id"]
        output = response["output"]
        if requests := read_requests(output):
            return Paused(requests=requests, text=read_text(output) or None)
        return Finished(output=read_value(output) if self.blueprint.answer else read_text(output))

    def _shown(self, what: str, **told: Any) -> None:
        # A structured answer comes as a text, and is none.
        if what != "text" or not self.blueprint.answer:
            self.world.shown(what, **told)

    async def pending(self) -> Sequence[Request]:
        """Gives the requests in the last response, which the server is asked for."""
        from .hosting_client import read_requests

        if not self._last:
            return ()
        with self._root.used():
            return read_requests((await self._client.get(self._last))["output"])

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Gives what the client keeps: where it goes on."""
        self._needs_store()
        return json.dumps(self._kept())

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._needs_store()
        self._keep(json.loads(parts[-1]))

    def _kept(self) -> dict[str, str]:
        return {"response": self._last}

    def _keep(self, kept: dict[str, str]) -> None:
        self._last = kept["response"]

    def _needs_store(self) -> None:
        if not self.blueprint.serialize.startswith("native."):
            raise Unsupported("serialize.json", metadata.HOSTING_MISSING["serialize.json"])

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def close(self) -> None:
        """See `Agent.close`."""
        if not self._borrowed:
            self._root.close()


class HostedChatSession(HostedSession):
    """As `HostedSession`, of an agent whose model is reached with Chat Completions."""

    wire_rules = "chat"
    protocols = CHAT_PROTOCOLS
    capabilities = claimed(metadata.HOSTING_CHAT_MISSING, metadata.HOSTING_STORES)
    missing = metadata.HOSTING_CHAT_MISSING

    def _chat_client(self) -> ClientFactory:
        from .model import ScriptedClient

        return ScriptedClient


class HostedConversationSession(HostedSession):
    """A client that goes on with `conversation`."""

    capabilities = claimed(metadata.HOSTING_CONVERSATION_MISSING, metadata.HOSTING_STORES)
    missing = metadata.HOSTING_CONVERSATION_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: HostedSession | None = None) -> None:
        super().__init__(world, blueprint, beside=beside)
        self._conversation = f"conv_{uuid4().hex}{uuid4().hex[:18]}"

    def _place(self) -> dict[str, Any]:
        return {"conversation": self._conversation}

    def _kept(self) -> dict[str, str]:
        return {**super()._kept(), "conversation": self._conversation}

    def _keep(self, kept: dict[str, str]) -> None:
        super()._keep(kept)
        self._conversation = kept["conversation"]


class HostedWorkflowSession(HostedSession):
    """An agent made of a workflow, of which the server gets a new one for each request."""

    capabilities = claimed(metadata.HOSTING_WORKFLOW_MISSING, metadata.HOSTING_STORES)
    missing = metadata.HOSTING_WORKFLOW_MISSING

    def _hosted(self) -> Any:
        if self.blueprint.attachment is not None:
            raise Unsupported("attach", "hand the agent over to another flavour, or the workflow's agent")
        workflow = hosted_workflow_factory(self.blueprint, self._chat_client())
        return workflow if takes_factories() else workflow()


def build_server(agent: Any, root: StateRoot) -> Any:
    """
    Makes the server, which keeps what it has to keep below *root*.

    Arguments:
        agent: An agent, or a function that makes one for each request.
    """
    from agent_framework_foundry_hosting import ResponsesHostServer

    # That agents made of workflows are deprecated here is no news to whoever chose them; it is said with a request.
    warnings.filterwarnings("ignore", message="Hosting WorkflowAgent ", category=DeprecationWarning)
    with root.used(), root.as_current_folder():
        # Telemetry would be written to stdout.
        return ResponsesHostServer(agent, configure_observability=None)


def keeps_files() -> bool:
    """Says whether this release keeps all it has in files; early ones keep requests and responses in memory."""
    import agent_framework_foundry_hosting as hosting

    return hasattr(hosting, "AgentSessionStoreProvider")


def takes_factories() -> bool:
    """Says whether this release takes a function that makes an agent for each request."""
    import importlib.util

    return importlib.util.find_spec("agent_framework_foundry_hosting._agent_source") is not None


def build_hosted_agents(blueprint: Blueprint, client: ClientFactory) -> AgentGraph:
    """Makes the agents that *blueprint* describes, without a history of their own: the server has it."""
    from .agents import build_agents
    from .attach import attach_agents

    if blueprint.attachment is not None:
        return attach_agents(blueprint.attachment, client)
    return build_agents(blueprint, client=client, context_providers=None)


def hosted_workflow_factory(blueprint: Blueprint, client: ClientFactory) -> Callable[[], Any]:
    """Gives what makes an agent of a workflow whose only step is the main agent."""
    from agent_framework import WorkflowBuilder

    from .agents import build_agents

    def made() -> Any:
        main = build_agents(blueprint, client=client).main
        return WorkflowBuilder(name="hosted", start_executor=main).build().as_agent()

    return made
