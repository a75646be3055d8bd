"""
Which capabilities a scenario needs in a variant.

What the content shows by itself, besides what the scenario `requires`:

| capability | shown by |
|---|---|
| `streaming` | the variant streams |
| `go_on_without_answer` | `go_on`, where nothing was staged before it |
| `message_while_pending` | `send` while requests are open |
| `message_with_answers` | `send` and `decide` in one step |
| `partial_answers` | answers about some of the open requests |
| `reject_reason` | a rejection with a reason |
| `edit`, `edit_tool` | `edit`, with another `tool` |
| `always`, `never` | these verdicts |
| `stage`, `cancel`, `trim` | these steps |
| `hang_up` | `hangs_up` |
| `malformed_verdict`, `malformed_address` | `raw`, `malformed` |
| `unknown_request` | `unknown`, or an answer about a call that was made and needs no approval |
| `tampered_request` | `shows` or `shows_tool` in an answer about a call |
| `contradiction` | two answers about one call in one step |
| `repeated_decision`, `late_decision` | an answer about a settled call: while others are open, when none is |
| `simultaneous` | two turns of one session in one `together` |
| `parallel` | two calls in a reply |
| `text_with_calls` | text and calls in a reply |
| `repeated_ids`, `missing_ids` | `repeats: true`, `id: null` |
| `unknown_tools` | `unknown_tool: true` in a call |
| `broken_arguments` | arguments that are text |
| `model_failure` | `fails`; `breaks_after` where the variant does not stream |
| `broken_stream` | `breaks_after` where the variant streams |
| `tool_errors` | a tool that raises |
| `non_text_results` | a tool that returns something else than text |
| `concurrent_tools` | a tool that waits for another call of the same reply, or for a signal that comes later |
| `asks_again` | a tool that asks again |
| `nested` | a call that runs an agent |
| `nested_parallel` | two such calls in a reply |
| `nested_gate` | such a call that is gated |
| `hand_offs` | a call that hands over to an agent |
| `structured_answer` | an answer of the model |
| `conditional_approval`, `slow_conditions`, `raising_conditions` | a condition; one that waits, one that raises |
| `mcp`, `hosted_mcp` | tools of these kinds |
| `limit_model_replies`, `limit_tool_calls` | `limits` |
| `serialize.*`, `native.*`, `history.append` | the variant; for `SaveStep` without a serialize mode, `serialize.json` |
| `fresh` | the variant resumes in another process, or a restart is fresh |
| `serialize.json` | `rewrite` |
| `rewind` | `restore` |
| `tools_change` | a restart with or without some tools |
| `sessions` | steps of two sessions |
| `answer.restored`, `answer.rebuilt` | the variant's or an answer's source |
| `answer.held` | likewise, where the state is saved between turns |
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.dry_run import find_step_capabilities
from pytest_approvals.scenario.labels import find_tool, split_owner
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    Variant,
)
from pytest_approvals.scenario.vocabulary import ANY_STORE


def required_capabilities(scenario: Scenario, variant: Variant) -> frozenset[str]:
    """Gives the capabilities that an agent needs for *scenario* in *variant*."""
    return required_by_content(scenario) | required_by_variant(scenario, variant)


def required_by_content(scenario: Scenario) -> frozenset[str]:
    """Gives the capabilities that *scenario* needs in every variant."""
    return scenario.requires | frozenset(_by_content(scenario)) | find_step_capabilities(scenario)


def required_by_variant(scenario: Scenario, variant: Variant) -> frozenset[str]:
    """Gives the capabilities that *scenario* needs in *variant* besides those of its content."""
    return frozenset(_by_variant(scenario, variant))


def all_steps(scenario: Scenario) -> list[Step]:
    """Gives all steps of the caller, those that run at the same time one after the other."""
    return [
        inner
        for step in scenario.caller or ()
        for inner in ([step, *step.steps] if isinstance(step, TogetherStep) else [step])
    ]


def session_names(scenario: Scenario) -> frozenset[str]:
    """Gives the names of the sessions that the caller's steps belong to; the empty one where they name none."""
    return frozenset(getattr(step, "session", "") for step in all_steps(scenario) if hasattr(step, "session"))


def all_replies(scenario: Scenario) -> list[tuple[str, ScriptedReply]]:
    """Gives all replies of all scripts, each with its agent."""
    return [(agent, reply) for agent, script in scenario.agents.items() for reply in script.all_replies]


# --- the content ------------------------------------------------------------------------------------------------------


def _by_content(scenario: Scenario) -> Iterator[str]:
    for agent, reply in all_replies(scenario):
        yield from _by_reply(scenario, agent, reply)
    for tool in _called_tools(scenario):
        yield from _by_tool(tool)
    for step in all_steps(scenario):
        yield from _by_step(step)
    if len(session_names(scenario)) > 1:
        yield "sessions"
    if scenario.limits.model_replies is not None:
        yield "limit_model_replies"
    if scenario.limits.tool_calls is not None:
        yield "limit_tool_calls"


def _by_reply(scenario: Scenario, agent: str, reply: ScriptedReply) -> Iterator[str]:
    tools = [find_tool(scenario, agent, call.tool) for call in reply.calls]
    running = [tool for tool in tools if tool is not None and tool.runs is not None]
    if len(reply.calls) > 1:
        yield "parallel"
        yield from _by_waiting(scenario, reply)
    if reply.calls and reply.say is not None:
        yield "text_with_calls"
    if reply.failure is not None and reply.failure.after_chunks is None:
        yield "model_failure"
    if reply.answer is not None:
        yield "structured_answer"
    if any(tool is not None and tool.hands_over_to is not None for tool in tools):
        yield "hand_offs"
    if running:
        yield "nested"
    if len(running) > 1:
        yield "nested_parallel"
    if any(tool.approval != "never" for tool in running):
        yield "nested_gate"
    for call in reply.calls:
        yield from _by_call(call)


def _by_call(call: Call) -> Iterator[str]:
    if call.repeats:
        yield "repeated_ids"
    if call.id is None:
        yield "missing_ids"
    if call.unknown_tool:
        yield "unknown_tools"
    if isinstance(call.arguments, str):
        yield "broken_arguments"


def _by_waiting(scenario: Scenario, reply: ScriptedReply) -> Iterator[str]:
    """Calls of one reply must run at the same time where one waits for another, or for what comes meanwhile."""
    if any(behaviour.waits_for for tool in _called_tools(scenario, reply) for behaviour in _all_behaviours(tool)):
        yield "concurrent_tools"


def _called_tools(scenario: Scenario, reply: ScriptedReply | None = None) -> list[Tool]:
    """Gives the tools that the scripts (or one *reply*) call, and those that edits put in their place."""
    replies = all_replies(scenario)
    names = {split_owner(agent, call.tool) for agent, one in replies if reply in (None, one) for call in one.calls}
    edits = {answer.tool for answer in _all_decisions(scenario) if answer.tool is not None}
    return [tool for tool in scenario.tools if (tool.agent, tool.name) in names or tool.visible_name in edits]


def _all_behaviours(tool: Tool) -> Iterator[ToolBehaviour]:
    for several in (tool.behaviours, *tool.per_call.values()):
        yield from several


def _by_tool(tool: Tool) -> Iterator[str]:
    if tool.kind != "function":
        yield tool.kind
    if isinstance(tool.approval, Condition):
        yield "conditional_approval"
        if tool.approval.waits_for is not None:
            yield "slow_conditions"
        if tool.approval.raises is not None:
            yield "raising_conditions"
    for behaviour in _all_behaviours(tool):
        if behaviour.asks_again is not None:
            yield "asks_again"
        elif behaviour.raises is not None:
            yield "tool_errors"
        elif not isinstance(behaviour.returns, str):
            yield "non_text_results"


# --- the caller -------------------------------------------------------------------------------------------------------

_STEPS: dict[type, str] = {
    StageStep: "stage",
    CancelStep: "cancel",
    TrimStep: "trim",
    RestoreStep: "rewind",
    RewriteStep: "serialize.json",
}


def _all_decisions(scenario: Scenario) -> Iterator[ScriptedDecision]:
    for step in all_steps(scenario):
        if isinstance(step, (TurnStep, StageStep)):
            yield from step.answers


def _by_step(step: Step) -> Iterator[str]:
    if type(step) in _STEPS:
        yield _STEPS[type(step)]
    if isinstance(step, RestartStep):
        if step.fresh:
            yield "fresh"
        if step.without or step.with_tools or step.parameters:
            yield "tools_change"
    if isinstance(step, TurnStep) and step.hangs_up is not None:
        yield "hang_up"
    if isinstance(step, (TurnStep, StageStep)):
        for answer in step.answers:
            yield from _by_answer(answer)


def _by_answer(answer: ScriptedDecision) -> Iterator[str]:
    if answer.verdict in ("edit", "always", "never"):
        yield answer.verdict
    if answer.verdict == "raw":
        yield "malformed_verdict"
    if answer.reason is not None:
        yield "reject_reason"
    if answer.tool is not None:
        yield "edit_tool"
    if answer.malformed_address:
        yield "malformed_address"
    if answer.unknown_id is not None:
        yield "unknown_request"
    elif answer.shows is not None or answer.shows_tool is not None:
        yield "tampered_request"
    if answer.source in ("restored", "rebuilt"):
        yield f"answer.{answer.source}"


# --- the variant ------------------------------------------------------------------------------------------------------


def _by_variant(scenario: Scenario, variant: Variant) -> Iterator[str]:
    if variant.stream:
        yield "streaming"
    if any(reply.failure is not None and reply.failure.after_chunks is not None for _, reply in all_replies(scenario)):
        yield "broken_stream" if variant.stream else "model_failure"
    if variant.serialize.partition(".")[0] == ANY_STORE:
        yield variant.serialize
    elif variant.serialize != "none":
        yield f"serialize.{variant.serialize}"
    elif any(isinstance(step, SaveStep) for step in all_steps(scenario)):
        yield "serialize.json"
    if variant.history == "append":
        yield "history.append"
    if variant.resume != "same":
        yield "fresh"
    sources = {answer.source or variant.source for answer in _all_decisions(scenario)} | {variant.source}
    if "held" in sources and variant.serialize != "none":
        yield "answer.held"
    if variant.source != "held":
        yield f"answer.{variant.source}"
