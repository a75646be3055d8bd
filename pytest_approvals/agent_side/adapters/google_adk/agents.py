"""The agents that a session runs: an `LlmAgent` for each agent of a blueprint, and the runner of the first one."""

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
from ...kit.tool_schema import build_fields_model
from .model import ScriptedModel, build_provider_model
from .requests import RequestReader
from .tools import needs_confirmation, rejection_text, request_confirmation

APP_NAME = "approvals"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    The agents of a session.

    Attributes:
        runner: Gives the runner of the agent that the caller talks to, on a session service.
        reading: How their requests are read.
        service: The session service of a person's own runner.
        options: Keyword arguments for `RunConfig`.
        release: Undoes what was done to a person's own agent.
        sessions: The driven sessions that use the crew, by identity.
    """

    runner: Callable[[Any], Any]
    reading: RequestReader
    service: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None
    sessions: set[int] = field(default_factory=set)

    def let_go(self, session: object) -> None:
        """Takes *session* from those that use the crew, and releases the agent when it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()


ToolFactory = Callable[[ToolSpec], Any]
"""Makes the tool of a spec, gated in the flavour's way."""


def build_agents(blueprint: Blueprint, tool: ToolFactory, *, resumable: bool) -> AgentGraph:
    """Makes the agents that *blueprint* describes."""
    crew = _AgentBuilder(blueprint, tool)
    answer = {"output_schema": build_fields_model("Answer", blueprint.answer)} if blueprint.answer else {}
    agent = crew.agent(MAIN, MAIN, **answer)
    reading = RequestReader(names=crew.names, tools=blueprint.tools)
    limit = blueprint.limits.model_replies
    options = {} if limit is None else {"max_llm_calls": limit}
    return AgentGraph(runner=partial(build_runner, agent, resumable=resumable), reading=reading, options=options)


def build_runner(agent: Any, service: Any, *, resumable: bool) -> Any:
    """Gives a runner of *agent* on a session service."""
    _fail_import_early("google.adk.agents.remote_a2a_agent", without="a2a")
    if not resumable:
        return Runner(app_name=APP_NAME, agent=agent, session_service=service)
    from google.adk.apps import App
    from google.adk.apps.app import ResumabilityConfig

    with warnings.catch_warnings():
        # The framework says once in each process that this is experimental, as the person who asks for it knows.
        warnings.simplefilter("ignore", UserWarning)
        resuming = ResumabilityConfig(is_resumable=True)
    app = App(name=APP_NAME, root_agent=agent, resumability_config=resuming)
    return Runner(app=app, session_service=service)


def _fail_import_early(module: str, *, without: str) -> None:
    """
    Lets the import of a module that cannot be imported fail without reading it.

    The framework tries to import it in every run. Where the optional package that it needs is not installed, that takes
    half of the time of a run.
    """
    if find_spec(without) is None:
        sys.modules.setdefault(module, cast("Any", None))


class Input(BaseModel):
    """What an agent is given that a tool runs."""

    input: str


class _AgentBuilder:
    """
    Agents in the making.

    The framework names the tool that runs an agent as it names the agent, so that the agent gets the tool's name.

    Attributes:
        names: By an agent's name in the framework: its name in the scenario.
    """

    def __init__(self, blueprint: Blueprint, tool: ToolFactory) -> None:
        self._specs = blueprint.tools
        self._servers = blueprint.servers
        self._address = blueprint.model
        self._tool = tool
        self._handed: dict[str, Any] = {}
        self.names: dict[str, str] = {}

    def agent(self, name: str, called: str, **more: Any) -> Any:
        """Makes the agent *name*, which the framework knows as *called*, with all below it."""
        own = [spec for spec in self._specs if spec.agent == name]
        called = re.sub(r"\W", "_", called)
        self.names[called] = name
        run = [self._run_by(spec) for spec in own if spec.runs]
        inline = hasattr(LlmAgent, "model_fields") and "mode" in LlmAgent.model_fields
        tools = [self._tool(spec) for spec in own if not spec.runs and spec.kind == "function"]
        tools += self._served(name, [spec for spec in own if spec.kind == "mcp"])
        return LlmAgent(
            name=called,
            model=self._model(name),
            tools=[*tools, *([] if inline else _wrap_as_tools(run))],
            sub_agents=[*(run if inline else ()), *self._handed_over(own)],
            before_tool_callback=_build_agent_gate(
                {spec.name: spec for spec in own if spec.runs and spec.approval != "never"}
            ),
            **more,
        )

    def _model(self, name: str) -> BaseLlm:
        return ScriptedModel(agent=name) if self._address is None else build_provider_model(name, self._address)

    def _run_by(self, spec: ToolSpec) -> Any:
        """Makes the agent that the calls of *spec* run: in one turn, and in the session of its caller."""
        more = {"mode": "single_turn"} if "mode" in LlmAgent.model_fields else {}
        return self.agent(str(spec.runs), spec.name, description=spec.description, input_schema=Input, **more)

    def _handed_over(self, specs: list[ToolSpec]) -> list[Any]:
        """Makes the agents that calls hand the conversation over to, each once."""
        found: list[Any] = []
        for spec in specs:
            target = spec.hands_over_to
            if target and target != MAIN and target not in self._handed:
                self._handed[target] = None
                found.append(self.agent(target, target, description=spec.description))
        return found

    def _served(self, name: str, specs: list[ToolSpec]) -> list[Any]:
        if not specs:
            return []
        from .tools import build_toolsets

        return build_toolsets([one for one in self._servers if one.agent == name], specs)


def _wrap_as_tools(agents: list[Any]) -> list[Any]:
    from google.adk.tools.agent_tool import AgentTool

    return [AgentTool(agent) for agent in agents]


def _build_agent_gate(gated: dict[str, ToolSpec]) -> Any:
    """Asks before a tool that runs an agent, which has no option to be gated."""
    if not gated:
        return None

    async def ask(tool: Any, args: dict[str, Any], tool_context: Any) -> Any:
        spec = gated.get(tool.name)
        if spec is None:
            return None
        answer = tool_context.tool_confirmation
        if answer is None:
            return (
                request_confirmation(tool_context)
                if await needs_confirmation(spec, args, tool_context)
                else None
            )
        return None if answer.confirmed else {"error": rejection_text(answer.payload)}

    return ask
