"""One session: a client's conversation with a server, and the flavours of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ....contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported, World
from ....current import recorded_by
from ..facts import ISSUES, OF_CHAT, OF_RESPONSES, PACKAGES, claimed
from . import facts
from .root import Root

if TYPE_CHECKING:
    from ..crew import ClientOf
    from .client import Client


class Hosted(Agent):
    """A client that goes on with `previous_response_id`, of an agent whose model is reached with Responses."""

    framework = facts.FRAMEWORK
    wire_rules = "responses"
    issues = ISSUES
    stores = facts.STORES
    packages = PACKAGES
    protocols = OF_RESPONSES
    capabilities = claimed(facts.MISSING, facts.STORES)
    missing = facts.MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Hosted | None = None) -> None:
        super().__init__(world, blueprint)
        self._borrowed = beside is not None
        self._root: Root = beside._root if beside else Root(blueprint.directory)
        self._tools: tuple[ToolSpec, ...] = beside._tools if beside else blueprint.tools
        self._client: Client = beside._client if beside else self._connected()
        self._last = ""

    def _connected(self) -> Client:
        from .client import Client
        from .server import keeps_files, made_server

        if self.blueprint.serialize.startswith("native.") and not keeps_files():
            raise Unsupported(self.blueprint.serialize, "this release keeps requests and responses in memory")
        return Client(made_server(self._hosted(), self._root))

    def _hosted(self) -> Any:
        """What the server hosts."""
        from .crew import hosted_crew

        crew = hosted_crew(self.blueprint, self._chat_client())
        self._tools = crew.tools
        return crew.main

    def _chat_client(self) -> ClientOf:
        """What makes the chat clients of its agents."""
        from ..responses import ResponsesClient

        return ResponsesClient

    def _place(self) -> dict[str, Any]:
        """Where the next response goes on from."""
        return {"previous_response_id": self._last} if self._last else {}

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .items import given, requests_in, text_in, value_in

        body = {"model": "scripted", "input": given(text, decisions), **self._place()}
        with recorded_by(self.world), self._root.used():
            response = await (self._client.stream(body, self._shown) if stream else self._client.create(body))
        self._last = response["id"]
        output = response["output"]
        if requests := requests_in(output):
            return Paused(requests=requests, text=text_in(output) or None)
        return Finished(output=value_in(output) if self.blueprint.answer else text_in(output))

    def _shown(self, what: str, **told: Any) -> None:
        # A structured answer comes as a text, and is none.
        if what != "text" or not self.blueprint.answer:
            self.world.shown(what, **told)

    async def pending(self) -> Sequence[Request]:
        """Gives the requests in the last response, which the server is asked for."""
        from .items import requests_in

        if not self._last:
            return ()
        with self._root.used():
            return requests_in((await self._client.get(self._last))["output"])

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
            raise Unsupported("serialize.json", facts.MISSING["serialize.json"])

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


class HostedChat(Hosted):
    """As `Hosted`, of an agent whose model is reached with Chat Completions."""

    wire_rules = "chat"
    protocols = OF_CHAT
    capabilities = claimed(facts.CHAT_MISSING, facts.STORES)
    missing = facts.CHAT_MISSING

    def _chat_client(self) -> ClientOf:
        from ..model import ScriptedClient

        return ScriptedClient


class HostedConversation(Hosted):
    """A client that goes on with `conversation`."""

    capabilities = claimed(facts.CONVERSATION_MISSING, facts.STORES)
    missing = facts.CONVERSATION_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Hosted | None = None) -> None:
        super().__init__(world, blueprint, beside=beside)
        self._conversation = f"conv_{uuid4().hex}{uuid4().hex[:18]}"

    def _place(self) -> dict[str, Any]:
        return {"conversation": self._conversation}

    def _kept(self) -> dict[str, str]:
        return {**super()._kept(), "conversation": self._conversation}

    def _keep(self, kept: dict[str, str]) -> None:
        super()._keep(kept)
        self._conversation = kept["conversation"]


class HostedWorkflow(Hosted):
    """An agent made of a workflow, of which the server gets a new one for each request."""

    capabilities = claimed(facts.WORKFLOW_MISSING, facts.STORES)
    missing = facts.WORKFLOW_MISSING

    def _hosted(self) -> Any:
        from .crew import hosted_workflow
        from .server import takes_factories

        if self.blueprint.attachment is not None:
            raise Unsupported("attach", "hand the agent over to another flavour, or the workflow's agent")
        workflow = hosted_workflow(self.blueprint, self._chat_client())
        return workflow if takes_factories() else workflow()
