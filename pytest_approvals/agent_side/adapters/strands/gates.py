"""
The gates: each asks with an interrupt in one of the places where the framework has them.

All are the gate of the guide "Interrupts": a tool that is trusted in `agent.state` is let through, else a person is
asked, and the answer lets the call run or cancels it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from ...contract import Condition, ToolSpec
from ...kit.context import current_world
from .messages import ANSWER
from .requests import GateAnswer, build_question, read_answer

INTERRUPT_NAME = "approval"


async def must_ask(spec: ToolSpec, agent: Any, use: Mapping[str, Any]) -> bool:
    """Says whether a person has to be asked about a call of a gated tool."""
    if is_slow(spec) and not _is_trusted(spec, agent):
        return await current_world().gate_slowly(spec.name, use["input"], use["toolUseId"], agent=spec.agent)
    return must_ask_now(spec, agent, use)


def must_ask_now(spec: ToolSpec, agent: Any, use: Mapping[str, Any]) -> bool:
    """Answers as `must_ask` does, where nothing has to be waited for."""
    if _is_trusted(spec, agent):
        return False
    if isinstance(spec.approval, Condition):
        return current_world().gate(spec.name, use["input"], use["toolUseId"], agent=spec.agent)
    return True


def is_slow(spec: ToolSpec) -> bool:
    """Says whether the tool's condition has to be waited for."""
    return isinstance(spec.approval, Condition) and spec.approval.waits_for is not None


def _is_trusted(spec: ToolSpec, agent: Any) -> bool:
    return bool(agent.state.get(_trust_key(spec)) == "t")


def accept_answer(spec: ToolSpec, agent: Any, response: Any) -> GateAnswer:
    """Reads a response, and remembers where it trusts the tool."""
    answer = read_answer(response)
    if answer.trusted:
        agent.state.set(_trust_key(spec), "t")
    return answer


def _trust_key(spec: ToolSpec) -> str:
    return f"{spec.name}-approval"


def gated_tools(specs: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Gives the gated tools by name."""
    return {spec.name: spec for spec in specs if spec.approval != "never"}


def ask_and_apply(event: BeforeToolCallEvent, spec: ToolSpec) -> None:
    """Asks before a call, and cancels it or puts in its place what the person wrote."""
    answer = accept_answer(
        spec, event.agent, event.interrupt(INTERRUPT_NAME, reason=build_question(spec, event.tool_use))
    )
    if answer.refusal is not None:
        event.cancel_tool = answer.refusal
        return
    if answer.input is not None:
        event.tool_use = edited_call(event.tool_use, answer)
    if answer.tool is not None:
        event.selected_tool = event.agent.tool_registry.registry.get(answer.tool)


def edited_call(use: Any, answer: GateAnswer) -> Any:
    """Gives the call as the person wants it; that of the model stays in the history as it is."""
    return {**use, "input": dict(answer.input or {}), "name": answer.tool or use["name"]}


class ApprovalHook(HookProvider):
    """Asks in a hook before the tool call; it is asynchronous only where it has to be, as early releases have it."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._gated = gated_tools(specs)

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """See `HookProvider.register_hooks`."""
        slow = any(is_slow(spec) for spec in self._gated.values())
        registry.add_callback(BeforeToolCallEvent, self.approve_slowly if slow else self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        """Asks about one call."""
        spec = self._gated.get(event.tool_use["name"])
        if spec is not None and must_ask_now(spec, event.agent, event.tool_use):
            ask_and_apply(event, spec)

    async def approve_slowly(self, event: BeforeToolCallEvent) -> None:
        """Asks about one call when its condition has answered."""
        spec = self._gated.get(event.tool_use["name"])
        if spec is not None and await must_ask(spec, event.agent, event.tool_use):
            ask_and_apply(event, spec)


def build_handler(specs: Iterable[ToolSpec]) -> Any:
    """Gives an intervention handler that asks by itself, and whose errors do not stop the agent."""
    from strands.interventions import InterventionHandler, Proceed

    guarded = gated_tools(specs)

    class Approval(InterventionHandler):
        name = INTERRUPT_NAME
        on_error = "proceed"

        async def before_tool_call(self, event: BeforeToolCallEvent, **_: Any) -> Any:
            spec = guarded.get(event.tool_use["name"])
            if spec is not None and await must_ask(spec, event.agent, event.tool_use):
                ask_and_apply(event, spec)
            return Proceed()

    return Approval()


def build_human_in_the_loop(specs: Iterable[ToolSpec]) -> Any:
    """Gives the SDK's own intervention; its classifier is asked about conditional tools."""
    from strands.vended_interventions.hitl import HumanInTheLoop

    every = {spec.name: spec for spec in specs}
    free = [ANSWER, *(name for name, spec in every.items() if spec.approval == "never")]
    conditional = any(isinstance(spec.approval, Condition) for spec in every.values())
    classifier = _build_classifier(every) if conditional else None
    return HumanInTheLoop(allowed_tools=free, enable_trust=True, classifier=classifier)


def _build_classifier(specs: Mapping[str, ToolSpec]) -> Callable[[BeforeToolCallEvent], Any]:
    from strands.vended_interventions.hitl.classifier import ClassifierResult

    async def classify(event: BeforeToolCallEvent) -> Any:
        spec = specs.get(event.tool_use["name"])
        needs = spec is None or await must_ask(spec, event.agent, event.tool_use)
        return ClassifierResult(requires_human_in_the_loop=needs)

    return classify


def build_middleware(specs: Iterable[ToolSpec]) -> Callable[[Any, Any], AsyncIterator[Any]]:
    """Gives a handler of `ExecuteToolStage` that asks around the run of a tool."""
    from strands.types.events import ToolResultEvent

    guarded = gated_tools(specs)

    async def approving(context: Any, next_fn: Any) -> AsyncIterator[Any]:
        spec = guarded.get(context.tool_use["name"])
        if spec is not None and await must_ask(spec, context.agent, context.tool_use):
            given = context.interrupt(INTERRUPT_NAME, reason=build_question(spec, context.tool_use))
            answer = accept_answer(spec, context.agent, given.response)
            if answer.refusal is not None:
                yield ToolResultEvent(_refusal_result(context.tool_use, answer.refusal))
                return
            context = _apply_edit(context, answer)
        async for event in next_fn(context):
            yield event

    return approving


def _refusal_result(use: Mapping[str, Any], refusal: str) -> dict[str, Any]:
    return {"toolUseId": use["toolUseId"], "status": "error", "content": [{"text": refusal}]}


def _apply_edit(context: Any, answer: GateAnswer) -> Any:
    if answer.input is None:
        return context
    use = edited_call(context.tool_use, answer)
    return context.replace(tool_use=use, tool=context.agent.tool_registry.registry.get(use["name"]))
