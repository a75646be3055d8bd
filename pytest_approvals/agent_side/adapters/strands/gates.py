"""Gates: each asks with an interrupt in one of the places that the framework offers.

All are the gate of the guide "Interrupts": calls of a tool that is trusted in `agent.state` are not asked about. For
others the user is asked, and the answer lets the call run or cancels it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from ...contract import Condition, ToolSpec, needs_approval_by_annotations
from ...kit.context import current_world
from .messages import ANSWER
from .requests import GateAnswer, build_question, read_answer

INTERRUPT_NAME = "approval"


async def must_ask(spec: ToolSpec, agent: Any, use: Mapping[str, Any]) -> bool:
    """Return whether the user must be asked about a call of a gated tool."""
    # Trust comes first: a condition that waits would hold up a call that nobody is asked about.
    if is_slow(spec) and not _is_trusted(spec, agent):
        return await current_world().gate_slowly(spec.name, use["input"], use["toolUseId"], agent=spec.agent)
    return must_ask_now(spec, agent, use)


def must_ask_now(spec: ToolSpec, agent: Any, use: Mapping[str, Any]) -> bool:
    """Answer as `must_ask` does, for conditions that wait for nothing."""
    if _is_trusted(spec, agent):
        return False
    if spec.by_annotations:
        said = agent.tool_registry.registry[use["name"]].tool_spec.get("annotations")
        return needs_approval_by_annotations(said)
    if isinstance(spec.approval, Condition):
        return current_world().gate(spec.name, use["input"], use["toolUseId"], agent=spec.agent)
    return True


def is_slow(spec: ToolSpec) -> bool:
    """Return whether the tool's condition waits for a signal."""
    return isinstance(spec.approval, Condition) and spec.approval.waits_for is not None


def _is_trusted(spec: ToolSpec, agent: Any) -> bool:
    return bool(agent.state.get(_trust_key(spec)) == "t")


def accept_answer(spec: ToolSpec, agent: Any, response: Any) -> GateAnswer:
    """Read a response, and remember if it trusts the tool."""
    answer = read_answer(response)
    if answer.trusted:
        agent.state.set(_trust_key(spec), "t")
    return answer


def _trust_key(spec: ToolSpec) -> str:
    return f"{spec.name}-approval"


def gated_tools(specs: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Return the gated tools by name."""
    return {spec.name: spec for spec in specs if spec.approval != "never"}


def ask_and_apply(event: BeforeToolCallEvent, spec: ToolSpec) -> None:
    """Ask before a call; then cancel it, or replace it by the edited call."""
    answer = accept_answer(
        spec, event.agent, event.interrupt(INTERRUPT_NAME, reason=build_question(spec, event.tool_use))
    )
    if answer.refusal is not None:
        event.cancel_tool = answer.refusal
        return
    if answer.input is not None:
        event.tool_use = edited_call(event.tool_use, answer)
    if answer.tool is not None:
        # The tool was looked up before hooks are asked, so another name alone need not change it.
        event.selected_tool = event.agent.tool_registry.registry.get(answer.tool)


def edited_call(use: Any, answer: GateAnswer) -> Any:
    """Return the edited call; the model's call in the history is unchanged."""
    return {**use, "input": dict(answer.input or {}), "name": answer.tool or use["name"]}


class ApprovalHook(HookProvider):
    """Hook that asks before a tool call.

    It is asynchronous only if necessary, because early releases have synchronous hooks only.
    """

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._gated = gated_tools(specs)

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """See `HookProvider.register_hooks`."""
        slow = any(is_slow(spec) for spec in self._gated.values())
        registry.add_callback(BeforeToolCallEvent, self.approve_slowly if slow else self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        """Ask about one call."""
        spec = self._gated.get(event.tool_use["name"])
        if spec is not None and must_ask_now(spec, event.agent, event.tool_use):
            ask_and_apply(event, spec)

    async def approve_slowly(self, event: BeforeToolCallEvent) -> None:
        """Ask about one call after its condition has answered."""
        spec = self._gated.get(event.tool_use["name"])
        if spec is not None and await must_ask(spec, event.agent, event.tool_use):
            ask_and_apply(event, spec)


def build_handler(specs: Iterable[ToolSpec]) -> Any:
    """Build an intervention handler that asks, and whose errors do not stop the agent."""
    from strands.interventions import InterventionHandler, Proceed

    gated = gated_tools(specs)

    class Approval(InterventionHandler):
        name = INTERRUPT_NAME
        on_error = "proceed"

        async def before_tool_call(self, event: BeforeToolCallEvent, **_: Any) -> Any:
            spec = gated.get(event.tool_use["name"])
            if spec is not None and await must_ask(spec, event.agent, event.tool_use):
                ask_and_apply(event, spec)
            return Proceed()

    return Approval()


def build_human_in_the_loop(specs: Iterable[ToolSpec]) -> Any:
    """Build the SDK's own intervention, whose classifier decides about conditional tools."""
    from strands.vended_interventions.hitl import HumanInTheLoop

    by_name = {spec.name: spec for spec in specs}
    # To the framework, a structured answer is a tool call like any other.
    allowed = [ANSWER, *(name for name, spec in by_name.items() if spec.approval == "never")]
    conditional = any(isinstance(spec.approval, Condition) or spec.by_annotations for spec in by_name.values())
    classifier = _build_classifier(by_name) if conditional else None
    return HumanInTheLoop(allowed_tools=allowed, enable_trust=True, classifier=classifier)


def _build_classifier(specs: Mapping[str, ToolSpec]) -> Callable[[BeforeToolCallEvent], Any]:
    from strands.vended_interventions.hitl.classifier import ClassifierResult

    async def classify(event: BeforeToolCallEvent) -> Any:
        spec = specs.get(event.tool_use["name"])
        needs_approval = spec is None or await must_ask(spec, event.agent, event.tool_use)
        return ClassifierResult(requires_human_in_the_loop=needs_approval)

    return classify


def build_middleware(specs: Iterable[ToolSpec]) -> Callable[[Any, Any], AsyncIterator[Any]]:
    """Build a handler of `ExecuteToolStage` that asks around the run of a tool."""
    from strands.types.events import ToolResultEvent

    gated = gated_tools(specs)

    async def approving(context: Any, next_fn: Any) -> AsyncIterator[Any]:
        spec = gated.get(context.tool_use["name"])
        if spec is not None and await must_ask(spec, context.agent, context.tool_use):
            interrupt = context.interrupt(INTERRUPT_NAME, reason=build_question(spec, context.tool_use))
            answer = accept_answer(spec, context.agent, interrupt.response)
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
