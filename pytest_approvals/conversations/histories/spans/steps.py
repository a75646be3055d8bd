"""Steps of a conversation: what one span says of it, the same for every instrumentation.

A step is a request to a model with its input and output, an execution of a tool, or a run of an agent, whose input and
output have what no model sees: approval requests and decisions.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from pytest_approvals.conversations.histories.conversation import ResultOutcome
from pytest_approvals.conversations.histories.spans.parts import (
    CallPart,
    DecisionPart,
    Part,
    RequestPart,
    ResultPart,
    TextPart,
    has_content,
    plain_result,
    read_parts,
    unflatten_messages,
)
from pytest_approvals.conversations.histories.spans.span import Span, parse_json
from pytest_approvals.protocols.text import text_of

StepKind = Literal["model", "tool", "agent", "other"]


class SpanStep(Struct):
    """What one span says.

    Attributes:
        keys: What other spans of the conversation have, too: its id, and the ids of calls that look random.
        outcome: Of a tool: None if it was not executed, `unknown` if nobody can tell.
        has_content: Messages, arguments or results were captured.
        problem: What is wrong with the span, for a notice.
    """

    kind: StepKind
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    source: str
    process: str
    keys: list[str] = field(default_factory=list)
    inputs: list[Part] = field(default_factory=list)
    outputs: list[Part] = field(default_factory=list)
    tool: str | None = None
    call_id: str | None = None
    arguments: Any = None
    result: Any = None
    outcome: ResultOutcome | None = None
    has_content: bool = False
    problem: str = ""


_OPERATIONS: dict[str, StepKind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    # Of OpenInference.
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "agent",
    # Of Langfuse.
    "GENERATION": "model",
    # Of OpenAI Agents.
    "generation": "model",
    "response": "model",
    "function": "tool",
    "agent": "agent",
    # Of LangSmith.
    "llm": "model",
    "tool": "tool",
    "chain": "agent",
}
_SESSION_NAMES = (
    "gen_ai.conversation.id",
    "session.id",
    "gcp.vertex.agent.session_id",
    "langfuse.session.id",
    "group_id",
)

_INPUTS = ("gen_ai.input.messages", "gcp.vertex.agent.llm_request", "gen_ai.prompt")
_OUTPUTS = ("gen_ai.output.messages", "gcp.vertex.agent.llm_response", "gen_ai.completion")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args", "input.value", "input")
_RESULTS = ("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "output.value", "output")

RANDOM_ID_LENGTH = 15
"""From this length on an id is taken for a random one, which two conversations do not share."""

_MERGED = "(merged"
"""How ADK names spans that repeat the results of several tools."""

_QUESTIONS = ("ApprovalRequired", "GraphInterrupt")
"""Exceptions with which a tool of Pydantic AI and of LangGraph asks for the approval of its call."""
_DEFERRAL = "CallDeferred"
"""The exception with which a tool of Pydantic AI leaves its call to the caller."""
_PYDANTIC_AI_PAUSE = "pydantic_ai.tool.deferral.name"
"""The attribute that names such an exception from version 5 on, where the span has no event of it."""

_STRANDS = "strands-agents"
_STRANDS_INTERRUPT = re.compile(r"'id': '(v1:before_tool_call:([^:']+):[^']+)'")
_OPENAI_AGENTS_RESULT = "FunctionToolResult("
"""How the output of a call that waits begins in OpenAI Agents before 0.21, where later releases write none."""
_OPENAI_AGENTS_REQUEST = "run_item=ToolApprovalItem("
_OPENAI_AGENTS_CALL_ID = re.compile(r"\bcall_id='([^']+)'")
_LANGGRAPH_INTERRUPT = re.compile(r"Interrupt\(value=(\{.*?\}), id='([0-9a-f]+)'", re.DOTALL)
_MAX_LITERAL = 100_000


def read_step(span: Span) -> SpanStep:
    """Return what a span says of its conversation."""
    attributes = span.attributes
    step = SpanStep(
        "other", span.trace_id, span.span_id, span.parent_id, span.name, span.start, span.source, span.process
    )
    step.kind = _find_kind(span)
    session = next((str(attributes[name]) for name in _SESSION_NAMES if attributes.get(name)), None)
    session = session or _langsmith_thread(span)
    if session is not None:
        step.keys.append(f"session:{session}")
    if span.is_cut:
        step.problem = "some of its attributes or events were dropped"
    if step.kind == "model":
        _read_model(span, step)
    elif step.kind == "tool":
        _read_tool(span, step)
    elif step.kind == "agent":
        _read_agent(span, step)
    step.has_content = step.has_content or has_content([*step.inputs, *step.outputs])
    parts = [*step.inputs, *step.outputs]
    ids = {part.id for part in parts if isinstance(part, CallPart)} | {step.call_id}
    ids |= {part.call_id for part in parts if isinstance(part, RequestPart | DecisionPart)}
    step.keys += sorted(f"call:{each}" for each in ids if each is not None and len(each) >= RANDOM_ID_LENGTH)
    return step


def _find_kind(span: Span) -> StepKind:
    attributes = span.attributes
    if span.source == "openai_agents":
        return _OPERATIONS.get(str(attributes.get("type")), "other")
    if span.source == "langsmith":
        return _OPERATIONS.get(str(attributes.get("run_type")), "other")
    if span.source == "langfuse":
        return _OPERATIONS.get(str(attributes.get("type")), "other")
    if attributes.get("gcp.vertex.agent.llm_request", "{}") != "{}":
        return "model"
    for name in ("gen_ai.operation.name", "openinference.span.kind"):
        if name in attributes:
            return _OPERATIONS.get(str(attributes[name]), "other")
    # Early releases of instrumentations name the operation of requests to a model only.
    return "tool" if "gen_ai.tool.name" in attributes and "gen_ai.tool.call.id" in attributes else "other"


def _langsmith_thread(span: Span) -> str | None:
    """Return the thread of a run, which its metadata names as the caller likes."""
    if span.source != "langsmith":
        return None
    extra = span.attributes.get("extra")
    metadata = extra.get("metadata") if type(extra) is dict else None
    names = ("thread_id", "session_id", "conversation_id")
    return next((str(metadata[name]) for name in names if metadata.get(name)), None) if type(metadata) is dict else None


# --- models ---


def _read_model(span: Span, step: SpanStep) -> None:
    attributes = span.attributes
    if span.source == "openai_agents":
        step.inputs = read_parts(attributes.get("input"))
        step.outputs = read_parts(attributes.get("output"), "assistant")
        return
    if span.source == "langsmith":
        step.inputs = read_parts(attributes.get("inputs"))
        step.outputs = _read_generations(attributes.get("outputs"))
        return
    if span.source == "langfuse":
        step.inputs = read_parts(attributes.get("input"))
        step.outputs = read_parts(attributes.get("output"), "assistant")
        return
    flattened = unflatten_messages(attributes, "llm.input_messages.")
    step.inputs = read_parts(flattened) if flattened else _read_messages(attributes, _INPUTS, "user", step)
    flattened = unflatten_messages(attributes, "llm.output_messages.")
    step.outputs = (
        read_parts(flattened, "assistant") if flattened else _read_messages(attributes, _OUTPUTS, "assistant", step)
    )
    events = [*_event_attributes(attributes.get("events")), *span.events]
    for name, event in events:
        _read_event(name, event, step)


def _event_attributes(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the events that Pydantic AI once kept in an attribute."""
    events = parse_json(value)
    for event in events if type(events) is list else ():
        if type(event) is dict:
            yield str(event.get("event.name")), event


def _read_event(name: str, event: Mapping[str, Any], step: SpanStep) -> None:
    """Read an event of one message, or of all of them."""
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    if name == "gen_ai.client.inference.operation.details":
        step.inputs += _read_messages(event, _INPUTS, "user", step)
        step.outputs += _read_messages(event, _OUTPUTS, "assistant", step)
    elif name == "gen_ai.choice":
        message = event.get("message")
        message = message if type(message) is dict else {"role": "assistant", "content": message}
        step.outputs += read_parts([message], "assistant")
    elif role in ("user", "assistant", "system", "tool"):
        content = event.get("content")
        # Strands writes the results of all tools into one event, without an id.
        role = "user" if role == "tool" and type(parse_json(content)) is list and "id" not in event else role
        step.inputs += read_parts([{**event, "role": role}], role)


def _read_messages(attributes: Mapping[str, Any], names: tuple[str, ...], role: str, step: SpanStep) -> list[Part]:
    for name in names:
        value = attributes.get(name)
        if type(value) is str and value[:1] in ("[", "{") and parse_json(value) is None:
            step.problem = f"{name} was cut off, so its messages cannot be read"
            return []
        if value is not None:
            value = parse_json(value) if type(value) is str else value
            value = value["content"] if type(value) is dict and type(value.get("content")) is dict else value
            return read_parts(value, role)
    return []


def _read_generations(outputs: Any) -> list[Part]:
    generations = outputs.get("generations") if type(outputs) is dict else None
    if type(generations) is list and generations and type(generations[0]) is list:
        generations = generations[0]
    if type(generations) is list:
        return [
            part for each in generations if type(each) is dict for part in read_parts(each.get("message"), "assistant")
        ]
    return read_parts(outputs, "assistant") if type(outputs) is dict else []


# --- tools ---


def _read_tool(span: Span, step: SpanStep) -> None:
    attributes = span.attributes
    if span.source == "langsmith":
        extra = attributes.get("extra")
        inputs, outputs = attributes.get("inputs"), attributes.get("outputs")
        output = outputs.get("output") if type(outputs) is dict else outputs
        attributes = {
            "tool.name": attributes.get("name"),
            "gen_ai.tool.call.id": extra.get("tool_call_id") if type(extra) is dict else None,
            "input": inputs,
            "output": output,
        }
    name = next((attributes[each] for each in ("gen_ai.tool.name", "tool.name", "name") if attributes.get(each)), None)
    step.tool = str(name or span.name.removeprefix("execute_tool "))
    if step.tool.startswith(_MERGED):
        step.kind = "other"
        return
    arguments = next((attributes[each] for each in _ARGUMENTS if attributes.get(each) is not None), None)
    result = next((attributes[each] for each in _RESULTS if attributes.get(each) is not None), None)
    for event, facts in span.events:
        if event == "gen_ai.tool.message" and arguments is None:
            arguments = facts.get("content")
        elif event == "gen_ai.choice" and result is None:
            result = facts.get("message")
        elif event == "gen_ai.client.inference.operation.details":
            parts = [*_read_messages(facts, _INPUTS, "tool", step), *_read_messages(facts, _OUTPUTS, "tool", step)]
            for part in parts:
                if isinstance(part, CallPart) and arguments is None:
                    arguments = part.arguments
                elif isinstance(part, ResultPart) and result is None:
                    result = part.value
    parsed = parse_json(arguments)
    # A tool with one parameter may be traced with its value alone.
    is_named = type(parsed) is dict and not (set(parsed) == {"input"} and type(parsed["input"]) is str)
    step.arguments = parsed if is_named else None
    call_id = attributes.get("gen_ai.tool.call.id") or attributes.get("tool_call.id") or _answered_call(result)
    step.call_id = str(call_id) if call_id else None
    step.has_content = arguments is not None or result is not None
    if type(result) is str and result.startswith(_OPENAI_AGENTS_RESULT) and span.source.endswith("openai_agents"):
        _read_waiting(result, step)
        return
    step.result = plain_result(result)
    step.outcome = _find_outcome(span, step, result)


def _read_waiting(result: str, step: SpanStep) -> None:
    """Read the object that stands for the result of a call that waits for its approval."""
    place = result.find(_OPENAI_AGENTS_REQUEST)
    found = _OPENAI_AGENTS_CALL_ID.search(result, place) if place >= 0 else None
    call_id = found[1] if found is not None else step.call_id
    if call_id is not None:
        step.outputs.append(RequestPart(call_id, call_id, step.tool, step.arguments))


def _answered_call(result: Any) -> Any:
    """Return the id of the call that a message of LangChain answers."""
    value = parse_json(result)
    value = value.get("data", value) if type(value) is dict else None
    return value.get("tool_call_id") if type(value) is dict else None


def _find_outcome(span: Span, step: SpanStep, result: Any) -> ResultOutcome | None:
    if span.source == "gcp.vertex.agent":
        value = parse_json(result)
        error = value.get("error") if type(value) is dict else None
        if type(error) is str and "requires confirmation" in error:
            step.outputs.append(RequestPart(step.call_id or step.span_id, step.call_id, step.tool, step.arguments))
            return None
        if type(error) is str and "is rejected" in error:
            return "denied"
        # The span of a call that waits looks like any other if its content is not captured.
        return "failed" if span.has_failed else "unknown" if result is None else "returned"
    if result is None and span.source.endswith("openai_agents") and not span.has_failed:
        # It traces calls that wait for approval, too, without an output.
        return None if step.has_content else "unknown"
    if _is_paused(span, step):
        return None
    if span.has_failed:
        return "failed"
    is_of_strands = _STRANDS in (span.attributes.get("gen_ai.provider.name"), span.attributes.get("gen_ai.system"))
    if is_of_strands and "gen_ai.tool.status" not in span.attributes:
        # An interrupt has ended it.
        step.outputs.append(RequestPart(step.call_id or step.span_id, step.call_id, step.tool, step.arguments))
        return None
    value = parse_json(result)
    status = (
        value.get("data", value).get("status")
        if type(value) is dict and type(value.get("data", value)) is dict
        else None
    )
    return "failed" if status == "error" else "returned"


def _is_paused(span: Span, step: SpanStep) -> bool:
    """Return whether an exception has stopped an execution to ask; add the request if it is about this call."""
    raised = [event for name, event in span.events if name == "exception"]
    names = {str(event.get("exception.type")).rpartition(".")[2] for event in raised}
    names.add(str(span.attributes.get(_PYDANTIC_AI_PAUSE)))
    # An agent inside of the tool asks about calls of its own.
    inside = [each for event in raised for each in _read_langgraph_interrupts(str(event.get("exception.message")))]
    if not inside and not names.isdisjoint(_QUESTIONS):
        step.outputs.append(RequestPart(step.call_id or step.span_id, step.call_id, step.tool, step.arguments))
    return not names.isdisjoint((*_QUESTIONS, _DEFERRAL))


# --- agents ---


def _read_agent(span: Span, step: SpanStep) -> None:
    attributes = span.attributes
    inputs, outputs = (
        SpanStep("agent", "", "", "", "", 0, "", ""),
        _read_messages(attributes, _OUTPUTS, "assistant", step),
    )
    step.inputs = _read_messages(attributes, _INPUTS, "user", step)
    if "pydantic_ai.all_messages" in attributes:
        outputs = read_parts(attributes["pydantic_ai.all_messages"])
    elif "all_messages_events" in attributes:
        outputs = read_parts(attributes["all_messages_events"])
    for name, event in span.events:
        _read_event(name, event, inputs)
        if name == "exception":
            outputs += _read_langgraph_interrupts(str(event.get("exception.message")))
    if span.source == "langsmith" and span.has_failed:
        outputs += _read_langgraph_interrupts(str(attributes.get("error")))
    if span.source == "langfuse":
        outputs += _read_langgraph_interrupts(str(attributes.get("statusMessage")))
    outputs += list(_read_pydantic_requests(attributes.get("final_result")))
    said = [part for part in inputs.outputs if isinstance(part, TextPart)]
    requests = [request for part in said for request in _read_strands_interrupts(part.text or "")]
    outputs += requests or inputs.outputs
    step.inputs += inputs.inputs
    step.outputs = outputs


def _read_pydantic_requests(value: Any) -> Iterator[Part]:
    """Yield what a run of Pydantic AI ended with: `DeferredToolRequests`."""
    result = parse_json(value)
    approvals = result.get("approvals") if type(result) is dict else None
    for call in approvals if type(approvals) is list else ():
        if type(call) is dict and call.get("part_kind") == "tool-call" and type(call.get("tool_call_id")) is str:
            yield RequestPart(call["tool_call_id"], call["tool_call_id"], str(call.get("tool_name")), call.get("args"))


def _read_strands_interrupts(text: str) -> list[Part]:
    """Return the requests in the list of interrupts with which a run of Strands ended."""
    return [RequestPart(found[1], found[2]) for found in _STRANDS_INTERRUPT.finditer(text)]


def _read_langgraph_interrupts(text: str) -> list[Part]:
    """Return the requests of `HumanInTheLoopMiddleware` in the text of a `GraphInterrupt`."""
    requests: list[Part] = []
    for found in _LANGGRAPH_INTERRUPT.finditer(text if len(text) <= _MAX_LITERAL else ""):
        try:
            # Literals only: nothing in the text is executed.
            value = ast.literal_eval(found[1])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        actions = value.get("action_requests") if type(value) is dict else None
        actions = [action for action in actions if type(action) is dict] if type(actions) is list else []
        for place, action in enumerate(actions):
            request_id = found[2] if len(actions) == 1 else f"{found[2]}#{place + 1}"
            requests.append(RequestPart(request_id, None, str(action.get("name")), action.get("args")))
    return requests


def format_result(value: Any) -> str:
    """Return a result as text, to compare it with another."""
    plain = plain_result(value)
    return plain if type(plain) is str else text_of(plain) or json.dumps(plain, sort_keys=True, default=str)
