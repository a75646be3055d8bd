"""Capabilities that a scenario needs in a variant.

Implied by the content, in addition to what the scenario `requires`:

| capability | implied by |
|---|---|
| `streaming` | the variant streams |
| `go_on_without_answer` | `go_on`, if nothing was staged before it |
| `message_while_pending` | `send` while requests are open |
| `message_with_answers` | `send` and `decide` in one step |
| `partial_answers` | answers about some of the open requests |
| `runs_beside_pending` | such an answer, if the turn is cut off in its call; answers about a call and in its sibling |
| `reject_reason` | a rejection with a reason |
| `goes_on_after_rejection` | an oracle that rejects; what follows, or is expected of, a turn that only rejects |
| `edit`, `edit_tool` | `edit`, with another `tool` |
| `always`, `never` | these verdicts |
| `stage`, `cancel`, `trim` | these steps |
| `hang_up` | `hangs_up` |
| `crash`, `fresh` | `crashes`, `disk_full`, `fails_once`, `loses`, `reads` |
| `stores_in_turns` | `crashes: write`, `disk_full`, `fails_once` |
| `fresh` | `stops` |
| `malformed_verdict`, `malformed_address` | `raw`, `malformed` |
| `unknown_request` | `unknown`, or an answer about a call that was made and needs no approval |
| `tampered_request` | `shows` or `shows_tool` in an answer about a call |
| `contradiction` | two answers about one call in one step |
| `repeated_decision`, `late_decision` | an answer about a settled call: while others are open, when none is |
| `simultaneous` | two turns of one session in one `together` |
| `parallel` | two calls in a reply |
| `text_with_calls` | text and calls in a reply |
| `reasoning` | `thinks` |
| `reasoning_between_calls` | `thinks` in a call |
| `redacted_reasoning` | `redacted: true` |
| `repeated_ids`, `missing_ids` | `repeats: true`, `id: null` |
| `changing_ids` | the chunking of that name |
| `unknown_tools` | `unknown_tool: true` in a call |
| `broken_arguments` | arguments that are text |
| `large_integers` | an integer beyond 2**53 in arguments, edits or results |
| `model_failure` | `fails`; `breaks_after` if the variant does not stream |
| `broken_stream` | `breaks_after` if the variant streams |
| `tool_errors` | a tool that raises |
| `non_text_results` | a tool that returns something else than text |
| `concurrent_tools` | a tool that waits for another call of the same reply, or for a signal that comes later |
| `asks_again` | a tool that asks again |
| `nested` | a call that runs an agent |
| `nested_parallel` | two such calls in a reply |
| `nested_gate` | such a call that is gated |
| `hand_offs` | a call that hands over to an agent |
| `hand_off_gate` | such a call that is gated |
| `structured_answer`, `text_with_answer` | an answer of the model; with text next to it |
| `conditional_approval`, `slow_conditions`, `raising_conditions` | a condition; one that waits, one that raises |
| `mcp`, `hosted_mcp` | tools of these kinds |
| `annotations` | a tool whose gate is what the application decides by annotations |
| `elicitation`, `elicitation_url` | a tool that elicits; one with an address |
| `limit_model_replies`, `limit_tool_calls` | `limits` |
| `serialize.*`, `native.*`, `history.append` | the variant; for `SaveStep` without a serialize mode, `serialize.json` |
| `fresh` | the variant resumes in another process, or a restart is fresh |
| `serialize.json` | `rewrite` |
| `rewind` | `restore` |
| `stores_requests` | a durable store, if a step saves the state, or builds the agent anew, while a request is open |
| `tools_change` | a restart with or without some tools, or with other parameters of one |
| `main_renamed`, `sub_agent_renamed`, `hand_off_renamed` | a restart with another name of such an agent |
| `sessions` | steps of two sessions |
| `answer.restored`, `answer.rebuilt` | the variant's or an answer's source |
| `answer.held` | the same source, if the state is saved between turns |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import MAIN, Condition
from pytest_approvals.scenario.dry_run import find_step_capabilities, keeps_requests
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
    Tool,
    TrimStep,
    TurnStep,
    Variant,
    all_decisions,
    all_replies,
    all_steps,
    is_cut_write,
    session_names,
)
from pytest_approvals.scenario.vocabulary import ANY_STORE


def required_capabilities(scenario: Scenario, variant: Variant) -> frozenset[str]:
    """Return the capabilities that an agent needs for *scenario* in *variant*."""
    return required_by_content(scenario) | VariantRequirements(scenario).of(variant)


def required_by_content(scenario: Scenario) -> frozenset[str]:
    """Return the capabilities that *scenario* needs in every variant."""
    return scenario.requires | frozenset(_by_content(scenario)) | find_step_capabilities(scenario)


# --- the content ------------------------------------------------------------------------------------------------------


def _by_content(scenario: Scenario) -> Iterator[str]:
    for agent, reply in all_replies(scenario):
        yield from _by_reply(scenario, agent, reply)
    for tool in _called_tools(scenario):
        yield from _by_tool(tool)
    for step in all_steps(scenario):
        yield from _by_step(scenario, step)
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
    if reply.has_reasoning:
        yield "reasoning"
    if any(call.thinks is not None for call in reply.calls):
        yield "reasoning_between_calls"
    if reply.redacted:
        yield "redacted_reasoning"
    if reply.failure is not None and reply.failure.after_chunks is None:
        yield "model_failure"
    if reply.answer is not None:
        yield "structured_answer"
        if reply.say is not None:
            yield "text_with_answer"
    if any(tool is not None and tool.hands_over_to is not None for tool in tools):
        yield "hand_offs"
    if any(tool is not None and tool.hands_over_to is not None and tool.approval != "never" for tool in tools):
        yield "hand_off_gate"
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
    if _has_large_integer(call.arguments):
        yield "large_integers"


def _has_large_integer(value: Any) -> bool:
    """Whether there is an integer in a JSON value for which JSON promises no more than a double.

    The source is RFC 8259, section 6: implementations agree on the integers up to 2**53 - 1.
    """
    if isinstance(value, Mapping):
        return any(map(_has_large_integer, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_large_integer, value))
    return isinstance(value, int) and abs(value) > 2**53


def _by_waiting(scenario: Scenario, reply: ScriptedReply) -> Iterator[str]:
    """Yield what calls of one reply need that wait for each other or for a later signal."""
    if any(behaviour.waits_for for tool in _called_tools(scenario, reply) for behaviour in tool.all_behaviours):
        yield "concurrent_tools"


def _called_tools(scenario: Scenario, reply: ScriptedReply | None = None) -> list[Tool]:
    """Return the tools that the scripts (or one *reply*) call, and those that edits substitute."""
    replies = all_replies(scenario)
    names = {
        split_owner(agent, call.tool) for agent, other in replies if reply in (None, other) for call in other.calls
    }
    # An edit can bring its tool to any call, so the tools of edits count for every reply.
    edits = {decision.tool for decision in all_decisions(scenario) if decision.tool is not None}
    return [tool for tool in scenario.tools if (tool.agent, tool.name) in names or tool.visible_name in edits]


def _by_tool(tool: Tool) -> Iterator[str]:
    if tool.kind != "function":
        yield tool.kind
    if isinstance(tool.approval, Condition):
        yield "conditional_approval"
        if tool.approval.waits_for is not None:
            yield "slow_conditions"
        if tool.approval.raises is not None:
            yield "raising_conditions"
    if tool.by_annotations:
        yield "annotations"
    for behaviour in tool.all_behaviours:
        if behaviour.elicits is not None:
            yield "elicitation" if behaviour.elicits.url is None else "elicitation_url"
        if behaviour.asks_again is not None:
            yield "asks_again"
        elif behaviour.raises is not None:
            yield "tool_errors"
        elif not isinstance(behaviour.returns, str):
            yield "non_text_results"
            if _has_large_integer(behaviour.returns):
                yield "large_integers"


# --- the caller -------------------------------------------------------------------------------------------------------

_STEP_CAPABILITIES: dict[type, str] = {
    StageStep: "stage",
    CancelStep: "cancel",
    TrimStep: "trim",
    RestoreStep: "rewind",
    RewriteStep: "serialize.json",
}


def _by_step(scenario: Scenario, step: Step) -> Iterator[str]:
    if type(step) in _STEP_CAPABILITIES:
        yield _STEP_CAPABILITIES[type(step)]
    if isinstance(step, RestartStep):
        if step.fresh:
            yield "fresh"
        if step.without or step.with_tools or step.parameters or step.annotations:
            yield "tools_change"
        for agent in step.renamed:
            yield from _by_new_name(scenario, agent)
    if isinstance(step, TurnStep) and step.hangs_up is not None:
        yield "hang_up"
    if isinstance(step, TurnStep) and not replace(step, hangs_up=None, stops=None).is_plain:
        yield from ("crash", "fresh")
        if step.disk_full or step.fails_once or (step.crashes and is_cut_write(step.crashes)):
            yield "stores_in_turns"
    if isinstance(step, TurnStep) and step.stops is not None:
        yield "fresh"
    if isinstance(step, (TurnStep, StageStep)):
        for decision in step.answers:
            yield from _by_decision(decision)


def _by_new_name(scenario: Scenario, agent: str) -> Iterator[str]:
    if agent == MAIN:
        yield "main_renamed"
    if any(tool.runs == agent for tool in scenario.tools):
        yield "sub_agent_renamed"
    if agent != MAIN and any(tool.hands_over_to == agent for tool in scenario.tools):
        yield "hand_off_renamed"


def _by_decision(decision: ScriptedDecision) -> Iterator[str]:
    if decision.verdict in ("edit", "always", "never"):
        yield decision.verdict
    if decision.verdict == "raw":
        yield "malformed_verdict"
    if decision.reason is not None:
        yield "reject_reason"
    if decision.tool is not None:
        yield "edit_tool"
    if _has_large_integer(decision.arguments):
        yield "large_integers"
    if decision.malformed_address:
        yield "malformed_address"
    if decision.unknown_id is not None:
        yield "unknown_request"
    elif decision.shows is not None or decision.shows_tool is not None:
        yield "tampered_request"
    if decision.source in ("restored", "rebuilt"):
        yield f"answer.{decision.source}"


# --- the variant ------------------------------------------------------------------------------------------------------


_APPROVING = ("script", "approve_all", "edit(")
"""How the names of the oracles begin that reject nothing."""


class VariantRequirements:
    """Capabilities that a scenario needs in a variant in addition to those of its content.

    What the scenario decides is read once: a matrix has hundreds of variants.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._breaks_streams = any(
            reply.failure is not None and reply.failure.after_chunks is not None for _, reply in all_replies(scenario)
        )
        self._saves = any(isinstance(step, SaveStep) for step in all_steps(scenario))
        sources = {decision.source for decision in all_decisions(scenario)}
        self._decides_from_held = "held" in sources
        self._keeps_requests = keeps_requests(scenario)

    def of(self, variant: Variant) -> frozenset[str]:
        """Return the capabilities for a variant."""
        return frozenset(self._by_variant(variant))

    def _by_variant(self, variant: Variant) -> Iterator[str]:
        if variant.stream:
            yield "streaming"
        if variant.chunking == "changing_ids":
            yield "changing_ids"
        if self._breaks_streams:
            yield "broken_stream" if variant.stream else "model_failure"
        if variant.serialize.partition(".")[0] == ANY_STORE:
            yield variant.serialize
            if self._keeps_requests:
                yield "stores_requests"
        elif variant.serialize != "none":
            yield f"serialize.{variant.serialize}"
        elif self._saves:
            yield "serialize.json"
        if not variant.oracle.startswith(_APPROVING):
            yield "goes_on_after_rejection"
        if variant.history == "append":
            yield "history.append"
        if variant.resume != "same":
            yield "fresh"
        if variant.serialize != "none" and (variant.source == "held" or self._decides_from_held):
            yield "answer.held"
        if variant.source != "held":
            yield f"answer.{variant.source}"
