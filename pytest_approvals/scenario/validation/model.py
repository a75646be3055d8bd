"""Validation of the model's scripts: replies and calls."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.contract.exceptions import MODEL_FAILURES
from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import CallOccurrence, find_tool, find_visible_tool, script_path
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedDecision, ScriptedReply, Tool, TurnStep
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.validation.tools import canonical_arguments, find_misfits, validate_arguments
from pytest_approvals.yaml_files import Diagnostic, KeyPath, with_opt_in_hint

FAILURE_STATUSES = (429, 500, 503, 529, 0)


def validate_model(index: ScenarioIndex) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the scripts and their calls."""
    for agent, script in index.scenario.agents.items():
        yield from _validate_agent(index, agent, script)
        yield from _validate_prompts(index, agent, script)
        for prompt, replies in {"": script.replies, **script.by_prompt}.items():
            for k, reply in enumerate(replies):
                path = (*script_path(agent, prompt, script), k)
                yield from _validate_reply(reply, path)
                yield from _validate_answer(index, agent, reply, path)
                for j, call in enumerate(reply.calls):
                    yield from _validate_call(index, agent, call, (*path, "calls", j))
    yield from _validate_distinct_arguments(index)


def _validate_agent(index: ScenarioIndex, agent: str, script: Script) -> Iterator[Diagnostic]:
    path: KeyPath = ("model",) if agent == MAIN else ("agents", agent)
    # An application's own graph may run agents that have scripts, and ask no model itself.
    is_idle = index.attached and agent == MAIN and len(index.scenario.agents) > 1
    if not script.replies and not any(script.by_prompt.values()) and not is_idle:
        yield Diagnostic(path, f"the model of {agent!r} has no reply")
    runners = [tool for tool in index.scenario.tools if tool.runs == agent]
    if agent != MAIN and not runners and not index.attached:
        yield Diagnostic(path, f"no tool runs the agent {agent!r}; a tool with `runs: {agent}` would")
    for tool in runners:
        if tool.agent == agent or _can_run(index, agent, tool.agent, frozenset()):
            yield Diagnostic(index.tool_path(tool), f"the agent {agent!r} runs itself through {tool.name!r}")


def _can_run(index: ScenarioIndex, agent: str, wanted: str, seen: frozenset[str]) -> bool:
    """Return whether running *agent* can run the agent *wanted*."""
    inner = {tool.runs for tool in index.scenario.tools if tool.agent == agent and tool.runs is not None} - seen
    return wanted in inner or any(_can_run(index, name, wanted, seen | inner) for name in sorted(inner))


def _validate_prompts(index: ScenarioIndex, agent: str, script: Script) -> Iterator[Diagnostic]:
    messages = _first_messages(index, agent)
    for prompt in script.by_prompt:
        if prompt not in messages:
            message = f"no conversation of {agent!r} begins with {prompt!r}{suggest_name(prompt, messages)}"
            if index.attached and agent == MAIN:
                message += (
                    f"; if {prompt!r} is another agent, add the replies of the agent that is run: "
                    f"model={{'main': [...], {prompt!r}: [...]}}"
                )
            yield Diagnostic(script_path(agent, prompt, script), message)


def _first_messages(index: ScenarioIndex, agent: str) -> list[str]:
    if agent == MAIN:
        sent = [step.text for step, _ in index.steps() if isinstance(step, TurnStep) and step.text is not None]
        return sent if index.scenario.caller is not None else [index.scenario.prompt]
    runners = {(tool.agent, tool.name) for tool in index.scenario.tools if tool.runs == agent}
    inputs = [call.call.arguments for call in index.calls if (call.agent, call.call.tool) in runners]
    inputs += [decision.arguments for decision, _ in index.decisions() if decision.arguments is not None]
    return [str(arguments["input"]) for arguments in inputs if not isinstance(arguments, str) and "input" in arguments]


def _validate_reply(reply: ScriptedReply, path: KeyPath) -> Iterator[Diagnostic]:
    has_content = reply.say is not None or bool(reply.calls) or reply.answer is not None
    yield from _validate_reasoning(reply, path, has_content=has_content)
    failure = reply.failure
    if failure is None:
        if not has_content:
            yield Diagnostic(path, "the reply is empty; a reply needs one of: say, calls, answer, fails")
        return
    if failure.status not in FAILURE_STATUSES or failure.how not in MODEL_FAILURES:
        *words, last = map(str, (*FAILURE_STATUSES[:-1], *MODEL_FAILURES))
        kind = failure.status if failure.how in MODEL_FAILURES else failure.how
        yield Diagnostic((*path, "fails"), f"a model fails with {', '.join(words)} or {last}, not {kind}")
    if failure.retry_after is not None and failure.status == 0:
        yield Diagnostic(
            (*path, "retry_after"), "a provider says so with a status; write `fails: 429`, or 500, 503, 529"
        )
    if failure.after_chunks is None and has_content:
        message = "a reply that fails holds neither text nor calls; `breaks_after: N` breaks its stream after N pieces"
        yield Diagnostic((*path, "fails"), message)
    if failure.after_chunks is not None and not has_content:
        yield Diagnostic((*path, "breaks_after"), "there is nothing to break in; give the reply text or calls")
    if failure.after_chunks is not None and failure.after_chunks < 0:
        yield Diagnostic(
            (*path, "breaks_after"), f"invalid number of pieces {failure.after_chunks}: must be at least 0"
        )


def _validate_reasoning(reply: ScriptedReply, path: KeyPath, *, has_content: bool) -> Iterator[Diagnostic]:
    if reply.redacted and not reply.has_reasoning:
        yield Diagnostic((*path, "redacted"), "`redacted` needs reasoning; write it as `thinks: TEXT`")
    if reply.thinks is not None and not has_content:
        yield Diagnostic((*path, "thinks"), "reasoning leads to something; give the reply text or calls, too")
    if reply.calls and reply.calls[0].thinks is not None and reply.say is None:
        message = "the reasoning before the first call belongs to the reply; write `thinks` beside `calls`"
        yield Diagnostic((*path, "calls", 0, "thinks"), message)


def _validate_answer(index: ScenarioIndex, agent: str, reply: ScriptedReply, path: KeyPath) -> Iterator[Diagnostic]:
    if reply.answer is None:
        if reply.invalid:
            yield Diagnostic((*path, "invalid"), "`invalid` needs an answer; a call has `invalid` of its own")
        return
    if agent != MAIN:
        yield Diagnostic((*path, "answer"), f"only the main agent gives a structured answer; {agent!r} says something")
        return
    if not index.scenario.answer:
        if not index.attached:
            yield Diagnostic(
                (*path, "answer"), "the scenario declares no answer; write its fields under `answer` at the top"
            )
        return
    answer_tool = Tool(name="the answer", parameters=index.scenario.answer)
    misfits = list(find_misfits(reply.answer, answer_tool, (*path, "answer")))
    if reply.invalid and not misfits:
        yield Diagnostic((*path, "invalid"), "the answer fits the fields under `answer` at the top")
    for misfit in () if reply.invalid else misfits:
        yield Diagnostic(misfit.path, with_opt_in_hint(misfit.message, "invalid"))


def _validate_call(index: ScenarioIndex, agent: str, call: Call, path: KeyPath) -> Iterator[Diagnostic]:
    if index.attached:
        return
    tool = find_tool(index.scenario, agent, call.tool)
    if tool is None:
        if not call.unknown_tool:
            yield Diagnostic(
                (*path, "tool"), with_opt_in_hint(describe_unknown_tool(index, agent, call.tool), "unknown_tool")
            )
        return
    if call.unknown_tool:
        message = f"the agent {agent!r} has a tool {call.tool!r}; leave out `unknown_tool: true`"
        yield Diagnostic((*path, "unknown_tool"), message)
    if call.id is None and tool.kind == "hosted_mcp":
        yield Diagnostic((*path, "id"), "a provider knows the calls that it executes by their ids; give this one an id")
    if isinstance(call.arguments, str):
        if call.invalid:
            yield Diagnostic(
                (*path, "invalid"), "arguments that are text are sent as they are; leave out `invalid: true`"
            )
    else:
        yield from validate_arguments(call.arguments, tool, (*path, "arguments"), invalid=call.invalid)


def describe_unknown_tool(index: ScenarioIndex, agent: str, name: str) -> str:
    """Return the message for an unknown tool of *agent*, with the tools that it has."""
    names = [tool.name for tool in index.scenario.tools if tool.agent == agent]
    return f"the agent {agent!r} has no tool {name!r}{suggest_name(name, names)}"


# --- arguments that would make calls look alike -----------------------------------------------------------------------


def _validate_distinct_arguments(index: ScenarioIndex) -> Iterator[Diagnostic]:
    # Executions are matched to calls by tool and arguments, so equal ones could not be told apart.
    if index.scenario.equal_arguments:
        return
    seen: dict[tuple[str, str, str], str] = {}
    for occurrence in index.calls:
        tool = find_tool(index.scenario, occurrence.agent, occurrence.call.tool)
        name = tool.visible_name if tool is not None else occurrence.call.tool
        key = (occurrence.opening, name, canonical_arguments(occurrence.call.arguments, tool))
        if key in seen:
            message = (
                f"{occurrence.label} and {seen[key]} call {name} with equal arguments, so their effects look alike"
            )
            hint = f"make them differ, or {_name_opt_in(index)} if that is meant"
            yield Diagnostic((*occurrence.path, "arguments"), f"{message}; {hint}")
        seen.setdefault(key, occurrence.label)
    yield from _validate_distinct_edits(
        index, {(tool, arguments): label for (_, tool, arguments), label in seen.items()}
    )


def _name_opt_in(index: ScenarioIndex) -> str:
    return "pass `equal_arguments=True`" if index.attached else "say `equal_arguments: true` at the top"


def _validate_distinct_edits(index: ScenarioIndex, seen: dict[tuple[str, str], str]) -> Iterator[Diagnostic]:
    for decision, path in index.decisions():
        occurrence = index.by_label.get(decision.label or "")
        if decision.verdict != "edit" or decision.arguments is None or occurrence is None:
            continue
        tool = find_edited_tool(index.scenario, occurrence, decision)
        name = tool.visible_name if tool is not None else decision.tool or occurrence.call.tool
        other = seen.get((name, canonical_arguments(decision.arguments, tool)))
        if other is not None and other != occurrence.label:
            message = f"the edit makes {occurrence.label} call {name} with the arguments of {other}"
            hint = f"so their effects look alike; {_name_opt_in(index)} if that is meant"
            yield Diagnostic((*path, str(decision.label)), f"{message}, {hint}")


def find_edited_tool(scenario: Scenario, occurrence: CallOccurrence, decision: ScriptedDecision) -> Tool | None:
    """Return the tool that an edited call executes: the edit's, by its visible name, or the call's own."""
    if decision.tool is not None:
        return find_visible_tool(scenario, occurrence.agent, decision.tool)
    return find_tool(scenario, occurrence.agent, occurrence.call.tool)
