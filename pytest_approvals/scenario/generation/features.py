"""Features of stories: their names, which profile draws them, what they need of an agent, and how often pairs occur."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from typing import Any

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.contract.types import Condition, ElicitationAnswer
from pytest_approvals.errors import UnknownName
from pytest_approvals.scenario.dry_run import DryRun
from pytest_approvals.scenario.model import (
    Call,
    LeaveStep,
    LetOracleStep,
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
    TurnStep,
    all_replies,
    all_steps,
)
from pytest_approvals.scenario.requirements import required_by_content

PROFILES = ("realistic", "adversarial")
"""Profiles of drawn stories: what providers are known to send and callers to do; everything."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a story.

    Attributes:
        group: Part of the story: `model`, `tools`, `caller`, `values` or `frame`.
        source: Documentation of a provider or a framework, or a public issue that shows it in use; empty for a feature
            of the profile `adversarial` only.
        needs: Capabilities without which an agent cannot play it.
        saves: The story needs an agent whose state can be saved between turns.
    """

    group: str
    source: str
    needs: frozenset[str] = frozenset()
    saves: bool = False


def _feature(group: str, source: str = "", *needs: str, saves: bool = False) -> Feature:
    return Feature(group, source, frozenset(needs), saves)


_OPENAI_CALLS = "https://platform.openai.com/docs/guides/function-calling"
_OPENAI_STREAMS = "https://platform.openai.com/docs/guides/streaming-responses"
_OPENAI_ERRORS = "https://platform.openai.com/docs/guides/error-codes"
_OPENAI_ANSWERS = "https://platform.openai.com/docs/guides/structured-outputs"
_OPENAI_REASONING = "https://platform.openai.com/docs/guides/reasoning"
_OPENAI_SERVERS = "https://platform.openai.com/docs/guides/tools-connectors-mcp"
_ANTHROPIC_CALLS = "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
_ANTHROPIC_ERRORS = "https://docs.anthropic.com/en/api/errors"
_ANTHROPIC_THINKING = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
_AGENTS_APPROVALS = "https://openai.github.io/openai-agents-python/human_in_the_loop/"
_LANGGRAPH_APPROVALS = "https://docs.langchain.com/oss/python/langchain/human-in-the-loop"
_LANGGRAPH_STATE = "https://docs.langchain.com/oss/python/langgraph/persistence"
_LANGGRAPH_UPGRADES = "https://docs.langchain.com/oss/python/langgraph/backward-compatibility"
_MCP_TOOLS = "https://modelcontextprotocol.io/specification/2025-06-18/server/tools"
_MCP_ANNOTATIONS = "https://modelcontextprotocol.io/specification/2025-11-25/server/tools"
_MCP_ELICITATION = "https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation"
_JSON_NUMBERS = "https://datatracker.ietf.org/doc/html/rfc8259#section-6"
_ANTHROPIC_LIMITS = "https://docs.anthropic.com/en/api/rate-limits"
_ANTHROPIC_EDITOR = "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/text-editor-tool"
_VERCEL_UNKNOWN_TOOL = "https://ai-sdk.dev/docs/reference/ai-sdk-errors/ai-no-such-tool-error"
_VERCEL_INVALID_INPUT = "https://ai-sdk.dev/docs/reference/ai-sdk-errors/ai-invalid-tool-input-error"
_NORMAL_FORMS = "https://www.unicode.org/reports/tr15/"
_BIDIRECTIONAL = "https://www.unicode.org/reports/tr9/"
_EMOJI = "https://www.unicode.org/reports/tr51/"

_PARALLEL_AGENTS = ("nested", "parallel", "nested_parallel", "concurrent_tools")

FEATURES: dict[str, Feature] = {
    # the model's script
    "several_replies": _feature("model", _OPENAI_CALLS),
    "parallel": _feature("model", _OPENAI_CALLS, "parallel"),
    "text_with_calls": _feature("model", "microsoft/agent-framework#5189", "text_with_calls"),
    "equal_arguments": _feature("model", "pydantic/pydantic-ai#6241"),
    "invalid_arguments": _feature("model", _VERCEL_INVALID_INPUT),
    "broken_arguments": _feature("model", "openai/openai-agents-python#3863", "broken_arguments"),
    "unknown_tools": _feature("model", _VERCEL_UNKNOWN_TOOL, "unknown_tools"),
    "empty_arguments": _feature("model", "brave/brave-browser#56601", "broken_arguments"),
    "arguments_as_text": _feature("model", "openai/openai-agents-python#5077"),
    "repeated_ids": _feature("model", "openai/openai-agents-python#4257", "repeated_ids"),
    "missing_ids": _feature("model", "", "missing_ids"),
    "model_failure": _feature("model", _OPENAI_ERRORS, "model_failure"),
    "retry_after": _feature("model", _ANTHROPIC_LIMITS, "model_failure"),
    "connection_failure": _feature("model", "agno-agi/agno#10461", "model_failure"),
    "broken_stream": _feature("model", _ANTHROPIC_ERRORS, "model_failure", "broken_stream"),
    "slow_reply": _feature("model", _OPENAI_STREAMS),
    "structured_answer": _feature("model", _OPENAI_ANSWERS, "structured_answer"),
    "invalid_answer": _feature("model", "pydantic/pydantic-ai#6486", "structured_answer"),
    "answer_beside_calls": _feature("model", "pydantic/pydantic-ai#6486", "structured_answer"),
    "call_beside_hand_off": _feature("model", "openai/openai-agents-python#2151", "hand_offs", "parallel"),
    "equal_ids_in_agents": _feature("model", "mastra-ai/mastra#24733", *_PARALLEL_AGENTS),
    "script_by_message": _feature("model", _OPENAI_CALLS),
    "reasoning": _feature("model", _OPENAI_REASONING, "reasoning"),
    "reasoning_between_calls": _feature(
        "model", _ANTHROPIC_THINKING, "reasoning", "reasoning_between_calls", "parallel"
    ),
    "redacted_reasoning": _feature("model", _ANTHROPIC_THINKING, "reasoning", "redacted_reasoning"),
    # tools
    "free_tool": _feature("tools", _LANGGRAPH_APPROVALS),
    "several_tools": _feature("tools", _LANGGRAPH_APPROVALS),
    "optional_parameter": _feature("tools", _ANTHROPIC_CALLS),
    "default_parameter": _feature("tools", _ANTHROPIC_CALLS),
    "condition": _feature("tools", _AGENTS_APPROVALS, "conditional_approval"),
    "changing_condition": _feature("tools", "openai/openai-agents-js#1418", "conditional_approval"),
    "raising_conditions": _feature("tools", "", "conditional_approval", "raising_conditions"),
    "slow_conditions": _feature("tools", _AGENTS_APPROVALS, "conditional_approval", "slow_conditions"),
    "tool_errors": _feature("tools", _MCP_TOOLS, "tool_errors"),
    "non_text_results": _feature("tools", _MCP_TOOLS, "non_text_results"),
    "empty_result": _feature("tools", "letta-ai/letta#3269"),
    "successive_results": _feature("tools", "langchain-ai/langgraph#6663"),
    "result_per_call": _feature("tools", _OPENAI_CALLS),
    "asks_again": _feature("tools", _LANGGRAPH_APPROVALS, "asks_again"),
    "waits_for_signal": _feature("tools", "microsoft/agent-framework#4618", "concurrent_tools"),
    "waits_for_call": _feature("tools", "", "parallel", "concurrent_tools"),
    "mcp": _feature("tools", _MCP_TOOLS, "mcp"),
    "mcp_stdio": _feature("tools", _MCP_TOOLS, "mcp"),
    "hosted_mcp": _feature("tools", _OPENAI_SERVERS, "hosted_mcp"),
    "same_tool_name": _feature("tools", "openai/openai-agents-python#4256", "hosted_mcp"),
    "elicitation": _feature("tools", _MCP_ELICITATION, "mcp", "elicitation"),
    "elicitation_url": _feature("tools", _MCP_ELICITATION, "mcp", "elicitation_url"),
    "equal_questions": _feature("tools", "sandialabs/atlas-ui-3#295", "mcp", "elicitation"),
    "elicitation_in_agent": _feature("tools", "anthropics/claude-code#77039", "mcp", "elicitation", "nested"),
    "annotations": _feature("tools", _MCP_ANNOTATIONS, "mcp", "annotations"),
    "annotations_unsaid": _feature("tools", _MCP_ANNOTATIONS, "mcp", "annotations"),
    "annotations_in_agent": _feature("tools", _MCP_ANNOTATIONS, "mcp", "annotations", "nested"),
    "annotations_unread": _feature("tools", _MCP_ANNOTATIONS, "mcp"),
    "nested": _feature("tools", "langchain-ai/langgraph#7361", "nested"),
    "nested_gate": _feature("tools", "openai/openai-agents-python#4414", "nested", "nested_gate"),
    "nested_parallel": _feature("tools", "openai/openai-agents-python#5123", *_PARALLEL_AGENTS),
    "same_tool_in_agents": _feature("tools", "openai/openai-agents-python#5144", "nested", "always"),
    "nested_deep": _feature("tools", "openai/openai-agents-python#4414", "nested"),
    "gated_hand_off": _feature("tools", "", "hand_offs", "hand_off_gate"),
    "hand_offs": _feature("tools", "openai/openai-agents-python#2151", "hand_offs"),
    "held_back": _feature("tools", "vercel/ai#15947", "tools_change", saves=True),
    # what the caller does
    "oracle_only": _feature("caller", _AGENTS_APPROVALS),
    "oracle_step": _feature("caller", _AGENTS_APPROVALS),
    "several_turns": _feature("caller", "microsoft/agent-framework#5189"),
    "reject_reason": _feature("caller", "google/adk-python#7148", "reject_reason"),
    "edit": _feature("caller", "langchain-ai/langchain#33787", "edit"),
    "edited_object": _feature("caller", "cymoo/lovia#40", "edit"),
    "edit_tool": _feature("caller", _LANGGRAPH_APPROVALS, "edit", "edit_tool"),
    "invalid_edit": _feature("caller", "", "edit"),
    "unknown_edit_tool": _feature("caller", "", "edit", "edit_tool"),
    "always": _feature("caller", "openai/openai-agents-python#4429", "always"),
    "never": _feature("caller", _AGENTS_APPROVALS, "never"),
    "partial_answers": _feature("caller", "openai/openai-agents-js#1418", "parallel", "partial_answers"),
    "stage": _feature("caller", "vercel/ai#17033", "stage", "go_on_without_answer"),
    "stage_again": _feature("caller", "langchain-ai/langgraph#6663", "stage", "go_on_without_answer", "late_decision"),
    "save": _feature("caller", _LANGGRAPH_STATE, saves=True),
    "rewind": _feature("caller", "langchain-ai/langgraph#6663", "rewind", saves=True),
    "restart": _feature("caller", _LANGGRAPH_STATE, saves=True),
    "fresh": _feature("caller", _LANGGRAPH_STATE, "fresh", "serialize.json", saves=True),
    "tool_removed": _feature("caller", "vercel/ai#15947", "tools_change", saves=True),
    "parameters_changed": _feature("caller", "vercel/ai#15947", "tools_change", saves=True),
    "annotations_changed": _feature("caller", _MCP_ANNOTATIONS, "mcp", "annotations", "tools_change", saves=True),
    "main_renamed": _feature("caller", _LANGGRAPH_UPGRADES, "main_renamed", saves=True),
    "sub_agent_renamed": _feature("caller", _LANGGRAPH_UPGRADES, "nested", "sub_agent_renamed", saves=True),
    "hand_off_renamed": _feature("caller", _LANGGRAPH_UPGRADES, "hand_offs", "hand_off_renamed", saves=True),
    "cancel": _feature("caller", _LANGGRAPH_APPROVALS, "cancel"),
    "trim": _feature("caller", "langchain-ai/langchain#38352", "trim"),
    "rewrite": _feature("caller", "", "serialize.json", saves=True),
    "go_on_without_answer": _feature("caller", "agno-agi/agno#10461", "go_on_without_answer"),
    "message_while_pending": _feature("caller", "pydantic/pydantic-ai#6319", "message_while_pending"),
    "message_with_answers": _feature("caller", "dotnet/extensions#7617", "message_with_answers"),
    "hangs_up_at_model": _feature("caller", "charmbracelet/crush#529", "hang_up"),
    "hangs_up_in_tool": _feature("caller", "pydantic/pydantic-ai#7977", "hang_up"),
    "crashes": _feature("caller", "mastra-ai/mastra#20492", "crash", "fresh", saves=True),
    "malformed_verdict": _feature("caller", "", "malformed_verdict"),
    "malformed_address": _feature("caller", "", "malformed_address"),
    "unknown_request": _feature("caller", "", "unknown_request"),
    "unasked_decision": _feature("caller", "", "unknown_request"),
    "tampered_arguments": _feature("caller", "", "tampered_request"),
    "tampered_tool": _feature("caller", "", "tampered_request"),
    "contradiction": _feature("caller", "", "contradiction"),
    "repeated_decision": _feature("caller", "langchain-ai/langchain#40206", "repeated_decision"),
    "late_decision": _feature("caller", "google/adk-python#7151", "late_decision"),
    "decision_source": _feature("caller", _LANGGRAPH_STATE, "answer.rebuilt"),
    "sessions": _feature("caller", "openai/openai-agents-python#5123", "sessions"),
    "sessions_together": _feature("caller", "openai/openai-agents-python#5123", "sessions"),
    "simultaneous": _feature("caller", "microsoft/agent-framework#4618", "simultaneous"),
    "leave": _feature("caller", _AGENTS_APPROVALS),
    "elicitation_declined": _feature("caller", _MCP_ELICITATION, "mcp", "elicitation"),
    "elicitation_cancelled": _feature("caller", _MCP_ELICITATION, "mcp", "elicitation"),
    "elicitation_answer_changes": _feature("caller", "", "mcp", "elicitation"),
    # values
    "beyond_2_53": _feature("values", _JSON_NUMBERS, "large_integers"),
    "beyond_2_63": _feature("values", "", "large_integers"),
    "negative_number": _feature("values", _JSON_NUMBERS),
    "fraction": _feature("values", _JSON_NUMBERS),
    "decomposed_letters": _feature("values", _NORMAL_FORMS),
    "right_to_left": _feature("values", _BIDIRECTIONAL),
    "astral_letters": _feature("values", _EMOJI),
    "control_characters": _feature("values"),
    "quotes_and_braces": _feature("values", _ANTHROPIC_EDITOR),
    "long_text": _feature("values", _ANTHROPIC_EDITOR),
    "empty_text": _feature("values", _ANTHROPIC_EDITOR),
    "text_like_a_value": _feature("values", "agno-agi/agno#10459"),
    "true_beside_1": _feature("values"),
    "nested_object": _feature("values", _OPENAI_CALLS),
    "null": _feature("values", _OPENAI_ANSWERS),
    "array": _feature("values", _OPENAI_CALLS),
    # the frame
    "limit_model_replies": _feature("frame", _AGENTS_APPROVALS, "limit_model_replies"),
    "limit_tool_calls": _feature("frame", _AGENTS_APPROVALS, "limit_tool_calls"),
    "pinned_stream": _feature("frame", _OPENAI_STREAMS, "streaming"),
    "pinned_chunking": _feature("frame", _OPENAI_STREAMS, "streaming"),
    "pinned_store": _feature("frame", _LANGGRAPH_STATE, "serialize.json", "answer.rebuilt"),
    "varied": _feature("frame", _LANGGRAPH_STATE),
    "oracles": _feature("frame", _AGENTS_APPROVALS),
}
"""Every feature that can be drawn, by name. Those without a source are drawn in the profile `adversarial` only."""


def available_features(capabilities: frozenset[str] | None, profile: str) -> tuple[str, ...]:
    """Return the features that an agent with *capabilities* can play, in the order of the table.

    Args:
        capabilities: What the agent claims; None for everything.
        profile: A name in `PROFILES`.

    Raises:
        UnknownName: *profile* is none.
    """
    if profile not in PROFILES:
        raise UnknownName("profile", profile, PROFILES)
    return tuple(
        name
        for name, feature in FEATURES.items()
        if (feature.source or profile == "adversarial") and is_playable(feature, capabilities)
    )


def is_playable(feature: Feature, capabilities: frozenset[str] | None) -> bool:
    """Return whether an agent with *capabilities*, None for everything, can play a feature."""
    if capabilities is None:
        return True
    return feature.needs <= capabilities and (not feature.saves or can_save(capabilities))


def can_save(capabilities: frozenset[str]) -> bool:
    """Return whether the state of an agent can be saved between turns, and decided upon after."""
    return bool({"serialize.json", "serialize.copy"} & capabilities) and bool(
        {"answer.restored", "answer.rebuilt"} & capabilities
    )


# --- finding features -------------------------------------------------------------------------------------------------


@cache
def possible_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of features that one story can have, in alphabetical order."""
    return tuple(pair for pair in combinations(sorted(FEATURES), 2) if can_stand_together(*pair))


def list_pairs(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the pairs of features that a story has, each in alphabetical order."""
    return list(combinations(sorted(find_features(scenario)), 2))


def find_features(scenario: Scenario) -> frozenset[str]:
    """Return the features of a story, drawn or written by hand."""
    needs = required_by_content(scenario)
    # A killed process has a successor, too; a fresh one as a feature is a step of the caller.
    found = {name for name in needs - {"fresh"} if name in FEATURES}
    found.update(_by_replies(scenario), _by_tools(scenario), _by_steps(scenario), _by_frame(scenario))
    for value in _all_values(scenario):
        found.update(_by_value(value))
    found -= _JUDGED_BY_STEPS
    found.update(_by_dry_run(scenario))
    if _has_true_beside_1(scenario):
        found.add("true_beside_1")
    return frozenset(found)


_JUDGED_BY_STEPS = frozenset(
    {"unknown_request", "partial_answers", "message_while_pending", "repeated_decision", "late_decision"}
)
"""Capabilities that are concluded only where it is certain what is open; as features they are found at a guess."""


def feature_pairs(scenario: Scenario) -> frozenset[tuple[str, str]]:
    """Return the pairs of features that occur together in a story, each in alphabetical order."""
    return frozenset(combinations(sorted(find_features(scenario)), 2))


def _by_replies(scenario: Scenario) -> Iterator[str]:
    main = scenario.agents[MAIN]
    scripts = (main.replies, *main.by_prompt.values())
    if any(sum(bool(reply.calls) for reply in replies) > 1 for replies in scripts):
        yield "several_replies"
    if main.by_prompt:
        yield "script_by_message"
    if scenario.equal_arguments:
        yield "equal_arguments"
    for _, reply in all_replies(scenario):
        yield from _by_reply(reply)
    if _has_equal_ids_in_agents(scenario):
        yield "equal_ids_in_agents"
    handing = {tool.name for tool in scenario.tools if tool.hands_over_to is not None}
    called = [{call.tool for call in reply.calls} for _, reply in all_replies(scenario)]
    if any(names & handing and names - handing for names in called):
        yield "call_beside_hand_off"


def _has_equal_ids_in_agents(scenario: Scenario) -> bool:
    """Return whether calls of two agents, or of one for two prompts, have one id."""
    scripts = [script for name, script in scenario.agents.items() if name != MAIN]
    lists = [replies for script in scripts for replies in (script.replies, *script.by_prompt.values())]
    ids = [{call.id for reply in replies for call in reply.calls} for replies in lists]
    return any(one & other for one, other in combinations(ids, 2))


def _by_reply(reply: ScriptedReply) -> Iterator[str]:
    failure = reply.failure
    if failure is not None:
        if failure.after_chunks is not None:
            yield "broken_stream"
        elif failure.retry_after is not None:
            yield "retry_after"
        else:
            yield "model_failure" if failure.status else "connection_failure"
    if reply.takes:
        yield "slow_reply"
    if reply.answer is not None and reply.calls:
        yield "answer_beside_calls"
    if reply.invalid:
        yield "invalid_answer"
    for call in reply.calls:
        if call.invalid:
            as_text = isinstance(call.arguments, Mapping) and any(map(_is_like_a_value, call.arguments.values()))
            yield "arguments_as_text" if as_text else "invalid_arguments"
        if call.arguments == "":
            yield "empty_arguments"


def _by_tools(scenario: Scenario) -> Iterator[str]:
    if sum(tool.approval != "never" for tool in scenario.tools) > 1:
        yield "several_tools"
    visible = [(tool.agent, tool.visible_name) for tool in scenario.tools]
    if len(visible) > len(set(visible)):
        yield "same_tool_name"
    if any(one[1] == other[1] and one[0] != other[0] for one, other in combinations(visible, 2)):
        yield "same_tool_in_agents"
    for tool in scenario.tools:
        yield from _by_tool(tool, scenario)


def _by_tool(tool: Tool, scenario: Scenario) -> Iterator[str]:
    approval = tool.approval
    if approval == "never" and tool.kind == "function" and tool.runs is None and tool.hands_over_to is None:
        yield "free_tool"
    if isinstance(approval, Condition):
        if approval.answers:
            yield "changing_condition"
        elif approval.raises is None:
            yield "condition"
    for parameter in tool.parameters.values():
        if parameter.default is not None:
            yield "default_parameter"
        elif not parameter.required:
            yield "optional_parameter"
    if tool.kind == "mcp" and scenario.servers.get(tool.server or "") == "stdio":
        yield "mcp_stdio"
    yield from _by_annotations(tool)
    yield from _by_questions(tool, scenario)
    if tool.runs is not None and tool.agent != MAIN:
        yield "nested_deep"
    if tool.hands_over_to is not None and approval != "never":
        yield "gated_hand_off"
    if tool.per_call:
        yield "result_per_call"
    behaviours = tool.all_behaviours
    if len(tool.behaviours) > 1 and not any(behaviour.asks_again for behaviour in behaviours):
        yield "successive_results"
    for behaviour in behaviours:
        if behaviour.returns == "" and behaviour.raises is None and behaviour.asks_again is None:
            yield "empty_result"
        if behaviour.waits_for is not None:
            of_call = behaviour.waits_for.startswith(("started ", "ended "))
            yield "waits_for_call" if of_call else "waits_for_signal"


def _by_annotations(tool: Tool) -> Iterator[str]:
    if not tool.by_annotations:
        if tool.annotations:
            yield "annotations_unread"
        return
    if not {"readOnlyHint", "destructiveHint"} & set(tool.annotations):
        yield "annotations_unsaid"
    if tool.agent != MAIN:
        yield "annotations_in_agent"


def _by_questions(tool: Tool, scenario: Scenario) -> Iterator[str]:
    asked = [behaviour.elicits for behaviour in tool.all_behaviours if behaviour.elicits is not None]
    if asked and tool.agent != MAIN:
        yield "elicitation_in_agent"
    if any("{" not in question.message for question in asked):
        calls = [call for call in _all_calls(scenario) if call.tool in (tool.name, tool.key)]
        if len(calls) > 1:
            yield "equal_questions"


_STEP_FEATURES: dict[type, str] = {
    LetOracleStep: "oracle_step",
    SaveStep: "save",
    RestoreStep: "rewind",
    RewriteStep: "rewrite",
    LeaveStep: "leave",
}


def _by_steps(scenario: Scenario) -> Iterator[str]:
    if scenario.caller is None:
        yield "oracle_only"
        return
    steps = all_steps(scenario)
    texts = [step for step in steps if isinstance(step, TurnStep) and step.text is not None]
    if len([step for step in texts if step.session == texts[0].session]) > 1:
        yield "several_turns"
    for step in steps:
        yield from _by_step(step)
    yield from _by_elicitations(steps)
    for one, other in pairwise(steps):
        if isinstance(one, StageStep) and isinstance(other, StageStep) and one.session == other.session:
            yield "stage_again"


def _by_elicitations(steps: Sequence[Step]) -> Iterator[str]:
    """Yield what a story has because of what the caller answers to the questions of servers."""
    given: dict[tuple[str, str], list[ElicitationAnswer]] = {}
    for turn in steps:
        if isinstance(turn, TurnStep):
            for label, answer in turn.elicitations.items():
                given.setdefault((turn.session, label), []).append(answer)
    actions = {answer.action for answers in given.values() for answer in answers}
    if "decline" in actions:
        yield "elicitation_declined"
    if "cancel" in actions:
        yield "elicitation_cancelled"
    if any(one != other for answers in given.values() for one, other in pairwise(answers)):
        yield "elicitation_answer_changes"


def _by_step(step: Step) -> Iterator[str]:
    if type(step) in _STEP_FEATURES:
        yield _STEP_FEATURES[type(step)]
    match step:
        case RestartStep():
            yield from _by_restart(step)
        case TogetherStep(steps=steps):
            turns = [inner.session for inner in steps if isinstance(inner, TurnStep)]
            if len(set(turns)) > 1:
                yield "sessions_together"
        case TurnStep(hangs_up=str(place)):
            yield "hangs_up_at_model" if place == "model" else "hangs_up_in_tool"
        case TurnStep() if not replace(step, hangs_up=None, stops=None).is_plain:
            yield "crashes"
    if isinstance(step, (TurnStep, StageStep)):
        for decision in step.answers:
            yield from _by_decision(decision)


def _by_dry_run(scenario: Scenario) -> Iterator[str]:
    """Yield what a story has because of the requests that are open, as far as anybody can tell."""
    run = DryRun(scenario)
    for step in scenario.caller or ():
        for part in step.steps if isinstance(step, TogetherStep) else (step,):
            if isinstance(part, (TurnStep, StageStep)):
                yield from _by_open_requests(part, run)
        for _ in run.step(step):
            pass


def _by_open_requests(step: TurnStep | StageStep, run: DryRun) -> Iterator[str]:
    is_open, settled = run.open_labels(step.session), run.settled_labels(step.session)
    decided = [decision.label for decision in step.answers if decision.label is not None]
    if isinstance(step, TurnStep) and step.text is not None and not step.answers and is_open:
        yield "message_while_pending"
    if set(is_open) & set(decided) and set(is_open) - set(decided):
        yield "partial_answers"
    for label in decided:
        if label in settled:
            yield "repeated_decision" if is_open else "late_decision"
        elif label not in is_open and label in run.ungated_labels(step.session):
            yield "unasked_decision"
    if any(decision.unknown_id is not None for decision in step.answers):
        yield "unknown_request"


def _by_restart(step: RestartStep) -> Iterator[str]:
    yield "fresh" if step.fresh else "restart"
    if step.without:
        yield "tool_removed"
    if step.with_tools:
        yield "held_back"
    if step.parameters:
        yield "parameters_changed"
    if step.annotations:
        yield "annotations_changed"


def _by_decision(decision: ScriptedDecision) -> Iterator[str]:
    # What `required_by_content` says of a decision too coarsely.
    if decision.invalid:
        yield "invalid_edit"
    if decision.unknown_tool:
        yield "unknown_edit_tool"
    if decision.verdict == "edit" and any(isinstance(value, Mapping) for value in (decision.arguments or {}).values()):
        yield "edited_object"
    if decision.source is not None:
        yield "decision_source"
    if decision.unknown_id is None and decision.shows is not None:
        yield "tampered_arguments"
    if decision.unknown_id is None and decision.shows_tool is not None:
        yield "tampered_tool"


def _by_frame(scenario: Scenario) -> Iterator[str]:
    if scenario.only.get("stream") == (True,):
        yield "pinned_stream"
    if "chunking" in scenario.only:
        yield "pinned_chunking"
    if "serialize" in scenario.only:
        yield "pinned_store"
    if scenario.vary:
        yield "varied"
    if scenario.oracles:
        yield "oracles"


# --- values -----------------------------------------------------------------------------------------------------------


def _all_values(scenario: Scenario) -> Iterator[Any]:
    for call in _all_calls(scenario):
        yield from _flatten(call.arguments)
    for step in all_steps(scenario):
        if isinstance(step, (TurnStep, StageStep)):
            for decision in step.answers:
                yield from _flatten(decision.arguments or {})
        if isinstance(step, TurnStep):
            for answer in step.elicitations.values():
                yield from _flatten(answer.content or {})
    for tool in scenario.tools:
        for behaviour in tool.all_behaviours:
            yield from _flatten({"returns": behaviour.returns})


def _all_calls(scenario: Scenario) -> Iterator[Call]:
    for _, reply in all_replies(scenario):
        yield from reply.calls


def _flatten(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield a value and all values inside it; an object in another one is yielded as a marker of its own."""
    if isinstance(value, Mapping):
        if depth > 1:
            yield _NESTED
        for inner in value.values():
            yield from _flatten(inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        yield _ARRAY
        for inner in value:
            yield from _flatten(inner, depth + 1)
    else:
        yield value


_NESTED, _ARRAY = object(), object()


def _by_value(value: Any) -> Iterator[str]:
    if value is _NESTED:
        yield "nested_object"
    elif value is _ARRAY:
        yield "array"
    elif value is None:
        yield "null"
    elif isinstance(value, str):
        yield from _by_text(value)
    elif not isinstance(value, bool):
        if abs(value) >= 2**63:
            yield "beyond_2_63"
        elif abs(value) > 2**53:
            yield "beyond_2_53"
        if value < 0:
            yield "negative_number"
        if isinstance(value, float):
            yield "fraction"


def _is_like_a_value(value: Any) -> bool:
    """Return whether a value is a text that somebody could read as a number, as truth or as another value."""
    if not isinstance(value, str):
        return False
    if value.strip().lower() in ("yes", "no", "on", "off"):
        return True
    try:
        return value.lstrip("0").isdigit() or not isinstance(json.loads(value), (str, dict))
    except (ValueError, RecursionError):
        return False


def _by_text(text: str) -> Iterator[str]:
    if not text:
        yield "empty_text"
    if _is_like_a_value(text):
        yield "text_like_a_value"
    if len(text) >= 5000:
        yield "long_text"
    if any(letter in text for letter in '"\\<>'):
        yield "quotes_and_braces"
    if text.isascii() and text.isprintable():
        return
    if unicodedata.normalize("NFC", text) != text:
        yield "decomposed_letters"
    kinds = {unicodedata.bidirectional(letter) for letter in text}
    if kinds & {"R", "AL"}:
        yield "right_to_left"
    if max(text, default="") > "\uffff":
        yield "astral_letters"
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
        yield "control_characters"


def _has_true_beside_1(scenario: Scenario) -> bool:
    """Return whether a story has `true` in one place and the number 1 in another."""
    values = [value for value in _all_values(scenario) if isinstance(value, (bool, int))]
    return any(value is True for value in values) and any(value == 1 and value is not True for value in values)


# --- pairs ------------------------------------------------------------------------------------------------------------

_NEEDS_STEPS = frozenset({"held_back", "slow_conditions", "waits_for_signal"})


def can_stand_together(one: str, other: str) -> bool:
    """Return whether one story can have both features.

    A story without a caller has no steps; where a limit or a crash may keep a call from its end, no call waits for it;
    a process is killed only where one session lives in it.
    """
    pair = {one, other}
    if "oracle_only" in pair:
        return not any(FEATURES[name].group == "caller" or name in _NEEDS_STEPS for name in pair - {"oracle_only"})
    if "crashes" in pair and pair & {"sessions", "sessions_together"}:
        return False
    return not ("waits_for_call" in pair and pair & {"limit_model_replies", "limit_tool_calls", "crashes"})
