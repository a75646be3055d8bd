"""Agent graph of a session: an `LlmAgent` for each agent of a blueprint, and a runner."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, cast

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.runners import Runner
from pydantic import BaseModel

from ...contract import MAIN, Blueprint, ToolSpec
from ...kit.probes import SharedAgents
from ...kit.tool_schema import build_fields_model
from .messages import ResultReader
from .model import ScriptedModel, build_provider_model
from .requests import RequestReader
from .tools import needs_confirmation, rejection_text, request_confirmation

APP_NAME = "approvals"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """Agents of a session.

    Attributes:
        build_runner: Builds the runner of the agent that the caller talks to, on a session service.
        reader: Reads their approval requests.
        results: Reads the results of their calls.
        service: The session service of an attached runner.
        options: Keyword arguments for `RunConfig`.
        earlier_turns: How many earlier messages an attached agent lets its model see; None for all.
    """

    build_runner: Callable[[Any], Any]
    reader: RequestReader
    results: ResultReader = field(default_factory=ResultReader)
    service: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    earlier_turns: int | None = None


ToolFactory = Callable[[ToolSpec], Any]
"""Builds the tool of a spec, gated in the flavour's way."""


def build_agents(blueprint: Blueprint, tool: ToolFactory, *, resumable: bool) -> AgentGraph:
    """Build the agents that *blueprint* describes."""
    builder = _AgentBuilder(blueprint, tool)
    answer = {"output_schema": build_fields_model("Answer", blueprint.answer)} if blueprint.answer else {}
    agent = builder.build(MAIN, blueprint.names.get(MAIN, MAIN), **answer)
    reader = RequestReader(names=builder.names, tools=blueprint.tools)
    limit = blueprint.limits.model_replies
    options = {} if limit is None else {"max_llm_calls": limit}
    return AgentGraph(build_runner=partial(build_runner, agent, resumable=resumable), reader=reader, options=options)


def build_runner(agent: Any, service: Any, *, resumable: bool) -> Any:
    """Build a runner of *agent* on a session service."""
    _fail_import_early("google.adk.agents.remote_a2a_agent", package="a2a")
    if not resumable:
        return Runner(app_name=APP_NAME, agent=agent, session_service=service)
    from google.adk.apps import App
    from google.adk.apps.app import ResumabilityConfig

    with warnings.catch_warnings():
        # The framework warns once per process that this is experimental, which who asks for it knows.
        warnings.simplefilter("ignore", UserWarning)
        resuming = ResumabilityConfig(is_resumable=True)
    app = App(name=APP_NAME, root_agent=agent, resumability_config=resuming)
    return Runner(app=app, session_service=service)


def _fail_import_early(module: str, *, package: str) -> None:
    """Let the import of a module that cannot be imported fail without reading it.

    The framework tries to import it in every run. If the optional package that it needs is not installed, that takes
    half the time of a run.
    """
    if find_spec(package) is None:
        sys.modules.setdefault(module, cast("Any", None))


class Input(BaseModel):
    """Input of an agent that a tool runs."""

    input: str


class _AgentBuilder:
    """Builder of the agents of one blueprint.

    The framework names the tool that runs an agent like the agent, so the agent gets the tool's name.

    Attributes:
        names: An agent's name in the scenario, by its present and its earlier names in the framework.
    """

    def __init__(self, blueprint: Blueprint, tool: ToolFactory) -> None:
        self._specs = blueprint.tools
        self._new_names = blueprint.names
        self._servers = blueprint.servers
        self._address = blueprint.model
        self._tool = tool
        self._handoff_targets: dict[str, Any] = {}
        # Stored events name the agent as it was called then.
        self.names: dict[str, str] = {re.sub(r"\W", "_", name): name for name in blueprint.names}

    def build(self, name: str, called: str, **options: Any) -> Any:
        """Build the agent *name*, which the framework calls *called*, and all below it."""
        own = [spec for spec in self._specs if spec.agent == name]
        # The framework refuses names of agents that are not identifiers.
        called = re.sub(r"\W", "_", called)
        self.names[called] = name
        delegates = [self._build_delegate(spec) for spec in own if spec.runs]
        # Releases with modes make a tool of each single-turn sub-agent; before, the tool was built by the user.
        has_modes = hasattr(LlmAgent, "model_fields") and "mode" in LlmAgent.model_fields
        tools = [self._tool(spec) for spec in own if not spec.runs and spec.kind == "function"]
        tools += self._build_server_tools(name, [spec for spec in own if spec.kind == "mcp"])
        return LlmAgent(
            name=called,
            model=self._build_model(name),
            tools=[*tools, *([] if has_modes else _wrap_as_tools(delegates))],
            sub_agents=[*(delegates if has_modes else ()), *self._build_handoff_targets(own)],
            before_tool_callback=_build_agent_gate(
                {spec.name: spec for spec in own if spec.runs and spec.approval != "never"}
            ),
            **options,
        )

    def _build_model(self, name: str) -> BaseLlm:
        return ScriptedModel(agent=name) if self._address is None else build_provider_model(name, self._address)

    def _build_delegate(self, spec: ToolSpec) -> Any:
        """Build the agent that calls of *spec* run: in one turn, in its caller's session."""
        mode = {"mode": "single_turn"} if "mode" in LlmAgent.model_fields else {}
        return self.build(str(spec.runs), spec.name, description=spec.description, input_schema=Input, **mode)

    def _build_handoff_targets(self, specs: list[ToolSpec]) -> list[Any]:
        """Build the agents that calls hand the conversation over to, each once."""
        agents: list[Any] = []
        for spec in specs:
            target = spec.hands_over_to
            if target and target != MAIN and target not in self._handoff_targets:
                # Before it is built: agents may hand over to each other, and an agent can have one parent only.
                self._handoff_targets[target] = None
                agents.append(self.build(target, self._new_names.get(target, target), description=spec.description))
        return agents

    def _build_server_tools(self, name: str, specs: list[ToolSpec]) -> list[Any]:
        if not specs:
            return []
        from .tools import build_toolsets

        return build_toolsets([address for address in self._servers if address.agent == name], specs)


def _wrap_as_tools(agents: list[Any]) -> list[Any]:
    from google.adk.tools.agent_tool import AgentTool

    return [AgentTool(agent) for agent in agents]


def _build_agent_gate(gated_specs: dict[str, ToolSpec]) -> Any:
    """Build the callback that asks before a tool that runs an agent.

    Such a tool has no option to be gated.
    """
    if not gated_specs:
        return None

    async def ask(tool: Any, args: dict[str, Any], tool_context: Any) -> Any:
        spec = gated_specs.get(tool.name)
        if spec is None:
            return None
        answer = tool_context.tool_confirmation
        if answer is None:
            return request_confirmation(tool_context) if await needs_confirmation(spec, args, tool_context) else None
        return None if answer.confirmed else {"error": rejection_text(answer.payload)}

    return ask
