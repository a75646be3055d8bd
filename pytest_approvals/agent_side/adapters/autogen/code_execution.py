"""Team of a coder and an executor, and the code that they exchange.

Code has neither call ids nor tools: a call is a line of code here, which names the tool, its arguments and, in a
comment, the id that the scenario gives it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.conditions import FunctionalTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from autogen_core.model_context import UnboundedChatCompletionContext
from pydantic import BaseModel

from ...contract import MAIN, Blueprint, Item, ModelCall, Reply, ToolRaised, ToolSpec
from ...contract.agent import World
from .model import ScriptedClient

EXECUTOR = "executor"

_LINE = re.compile(r"^(\w+)\(\*\*(.*)\)  # (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"\n*```python\n.*?\n```", re.DOTALL)


def write_code_line(call: ModelCall) -> str:
    """Return a call as code."""
    return f"{call.tool}(**{call.arguments!r})  # {call.id}"


def read_call(code: str) -> ModelCall:
    """Return the call in a block of code."""
    match = _LINE.search(code)
    assert match is not None, f"this is not the code of a call: {code}"
    return ModelCall(id=match[3], tool=match[1], arguments=ast.literal_eval(match[2]))


class CodingClient(ScriptedClient):
    """Scripted model of the coder, whose calls are code."""

    def _to_create_result(self, reply: Reply, offered: Sequence[str]) -> Any:
        return super()._to_create_result(Reply(say=_write_code(reply)), offered)

    def _to_items(self, messages: Sequence[Any]) -> list[Item]:
        return list(to_items(messages))


def _write_code(reply: Reply) -> str:
    blocks = [f"```python\n{write_code_line(call)}\n```" for call in reply.calls]
    return "\n\n".join([*([reply.say] if reply.say else []), *blocks])


def to_items(messages: Iterable[Any]) -> Iterator[Item]:
    """Return the model input: code is a call, and the executor's text is its result."""
    open_call: ModelCall | None = None
    for number, message in enumerate(messages):
        text = str(message.content)
        if message.type == "UserMessage" and message.source == EXECUTOR and open_call is not None:
            yield Item(kind="result", id=open_call.id, tool=open_call.tool, text=text, message=number)
        elif message.type == "UserMessage":
            yield Item(kind="user", text=text, message=number)
        else:
            if spoken_text := _BLOCK.sub("", text):
                yield Item(kind="say", text=spoken_text, message=number)
            open_call = read_call(text) if _LINE.search(text) else None
            if open_call is not None:
                arguments = dict(open_call.arguments) if not isinstance(open_call.arguments, str) else {}
                yield Item(kind="call", id=open_call.id, tool=open_call.tool, arguments=arguments, message=number)


class ScenarioExecutor(CodeExecutor):
    """Executor that runs code in the world."""

    component_config_schema = BaseModel

    def __init__(self, world: World, specs: Sequence[ToolSpec]) -> None:
        self._world = world
        self._known = {spec.name for spec in specs}

    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult:
        """See `CodeExecutor.execute_code_blocks`."""
        # A message of the coder has one block: the scenarios for this flavour have no parallel calls.
        call = read_call(code_blocks[0].code)
        assert not isinstance(call.arguments, str)
        try:
            value = await self._world.run(call.tool, call.arguments, call.id)
        except ToolRaised as raised:
            return CodeResult(exit_code=1, output=str(raised))
        return CodeResult(exit_code=0, output=value if isinstance(value, str) else json.dumps(value))

    async def start(self) -> None:
        """See `CodeExecutor.start`."""

    async def stop(self) -> None:
        """See `CodeExecutor.stop`."""

    async def restart(self) -> None:
        """See `CodeExecutor.restart`."""


class CodingTeam:
    """The team; has the interface of `AgentGraph`.

    Args:
        approve: The approval function of the executor.
    """

    speakers: Sequence[str] = (MAIN,)
    continues = True

    def __init__(self, world: World, blueprint: Blueprint, approve: Callable[[Any], Awaitable[Any]]) -> None:
        self._world = world
        self._specs = {spec.name: spec for spec in blueprint.tools}
        self._approve = approve
        self._context = UnboundedChatCompletionContext()
        self._team: Any = None
        self.options: dict[str, Any] = {}

    async def is_gated(self, call: ModelCall) -> bool:
        """Return whether the user must be asked about a call."""
        spec = self._specs[call.tool]
        if isinstance(spec.approval, str):
            return spec.approval == "always"
        return await self._world.gate_slowly(call.tool, call.arguments, call.id)

    def get_main(self, *, stream: bool) -> Any:
        """Return the team."""
        if self._team is None:
            self._team = self._build_team(stream)
        return self._team

    def _build_team(self, stream: bool) -> Any:
        model = CodingClient(self._world, MAIN)
        coder = AssistantAgent(
            MAIN,
            model,
            system_message=None,
            model_context=self._context,
            model_client_stream=stream,
        )
        executor = CodeExecutorAgent(
            EXECUTOR,
            ScenarioExecutor(self._world, list(self._specs.values())),
            approval_func=self._approve,
            sources=[MAIN],
        )
        return SelectorGroupChat(
            [coder, executor],
            model,
            selector_func=_select_speaker,
            allow_repeated_speaker=True,
            termination_condition=FunctionalTermination(_is_answered),
        )

    def get_context(self, name: str) -> Any:
        """Return the conversation of the coder."""
        return self._context

    def get_workbenches(self, name: str, *, stream: bool) -> Sequence[Any]:
        """Return nothing: a coder has no workbenches."""
        return ()

    async def calls_reaching_tools(self, calls: Sequence[Any], benches: Sequence[Any]) -> list[tuple[str, str]]:
        """Return nothing: a coder calls no tools."""
        return []

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that code can call."""
        return tuple(self._specs.values())

    def earlier_turns(self) -> int | None:
        """Return None: the model is told of all earlier messages."""
        return None

    def trim(self, name: str, keep: int) -> None:
        """Trim nothing."""

    async def close(self) -> None:
        """Close nothing."""


def _is_answered(messages: Sequence[Any]) -> bool:
    """Return whether the coder has written a message without code."""
    last = messages[-1] if messages else None
    return getattr(last, "source", None) == MAIN and "```" not in str(getattr(last, "content", ""))


def _select_speaker(messages: Sequence[Any]) -> str:
    """Return the executor after code, and the coder after everything else."""
    last = messages[-1]
    return EXECUTOR if last.source == MAIN and "```" in str(last.content) else MAIN
