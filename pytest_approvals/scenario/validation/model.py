"""Mistakes in the model's scripts."""

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


def validate_model(view: ScenarioIndex) -> Iterator[Diagnostic]:
    """Gives the mistakes of the scripts and of the calls in them."""
    for agent, script in view.scenario.agents.items():
        yield from _validate_agent(view, agent, script)
        yield from _validate_prompts(view, agent, script)
        for prompt, replies in {"": script.replies, **script.by_prompt}.items():
            for k, reply in enumerate(replies):
                path = (*script_path(agent, prompt, script), k)
                yield from _validate_reply(reply, path)
                yield from _validate_answer(view, agent, reply, path)
                for j, call in enumerate(reply.calls):
                    yield from _validate_call(view, agent, call, (*path, "calls", j))
    yield from _validate_distinct_arguments(view)


def _validate_agent(view: ScenarioIndex, agent: str, script: Script) -> Iterator[Diagnostic]:
    path: KeyPath = ("model",) if agent == MAIN else ("agents", agent)
    if not script.replies and not any(script.by_prompt.values()):
        yield Diagnostic(path, f"the model of {agent!r} has no reply")
    runners = [tool for tool in view.scenario.tools if tool.runs == agent]
    if agent != MAIN and not runners:
        yield Diagnostic(path, f"no tool runs the agent {agent!r}; a tool with `runs: {agent}` would")
    for tool in runners:
        if tool.agent == agent or _can_run(view, agent, tool.agent, frozenset()):
            yield Diagnostic(view.tool_path(tool), f"the agent {agent!r} runs itself through {tool.name!r}")


def _can_run(view: ScenarioIndex, agent: str, wanted: str, seen: frozenset[str]) -> bool:
    """Says whether running *agent* can run the agent *wanted*."""
    inner = {tool.runs for tool in view.scenario.tools if tool.agent == agent and tool.runs is not None} - seen
    return wanted in inner or any(_can_run(view, one, wanted, seen | inner) for one in sorted(inner))


def _validate_prompts(view: ScenarioIndex, agent: str, script: Script) -> Iterator[Diagnostic]:
    said = _first_messages(view, agent)
    for prompt in script.by_prompt:
        if prompt not in said:
            what = f"no conversation of {agent!r} begins with {prompt!r}{suggest_name(prompt, said)}"
            yield Diagnostic(script_path(agent, prompt, script), what)


def _first_messages(view: ScenarioIndex, agent: str) -> list[str]:
    if agent == MAIN:
        sent = [step.text for step, _ in view.steps() if isinstance(step, TurnStep) and step.text is not None]
        return sent if view.scenario.caller is not None else [view.scenario.prompt]
    runners = {(tool.agent, tool.name) for tool in view.scenario.tools if tool.runs == agent}
    given = [one.call.arguments for one in view.calls if (one.agent, one.call.tool) in runners]
    given += [answer.arguments for answer, _ in view.answers() if answer.arguments is not None]
    return [str(one["input"]) for one in given if not isinstance(one, str) and "input" in one]


def _validate_reply(reply: ScriptedReply, path: KeyPath) -> Iterator[Diagnostic]:
    holds = reply.say is not None or bool(reply.calls) or reply.answer is not None
    failure = reply.failure
    if failure is None:
        if not holds:
            yield Diagnostic(path, "the reply is empty; a reply needs one of: say, calls, answer, fails")
        return
    if failure.status not in FAILURE_STATUSES or failure.how not in MODEL_FAILURES:
        *words, last = map(str, (*FAILURE_STATUSES[:-1], *MODEL_FAILURES))
        what = failure.status if failure.how in MODEL_FAILURES else failure.how
        yield Diagnostic((*path, "fails"), f"a model fails with {', '.join(words)} or {last}, not {what}")
    if failure.retry_after is not None and failure.status == 0:
        yield Diagnostic(
            (*path, "retry_after"), "a provider says so with a status; write `fails: 429`, or 500, 503, 529"
        )
    if failure.after_chunks is None and holds:
        what = "a reply that fails holds neither text nor calls; `breaks_after: N` breaks its stream after N pieces"
        yield Diagnostic((*path, "fails"), what)
    if failure.after_chunks is not None and not holds:
        yield Diagnostic((*path, "breaks_after"), "there is nothing to break in; give the reply text or calls")
    if failure.after_chunks is not None and failure.after_chunks < 0:
        yield Diagnostic((*path, "breaks_after"), f"a stream cannot break after {failure.after_chunks} pieces")


def _validate_answer(view: ScenarioIndex, agent: str, reply: ScriptedReply, path: KeyPath) -> Iterator[Diagnostic]:
    if reply.answer is None:
        if reply.invalid:
            yield Diagnostic(
                (*path, "invalid"), "there is no answer that could be invalid; a call has `invalid` of its own"
            )
        return
    if agent != MAIN:
        yield Diagnostic((*path, "answer"), f"only the main agent gives a structured answer; {agent!r} says something")
        return
    if not view.scenario.answer:
        if not view.attached:
            yield Diagnostic(
                (*path, "answer"), "the scenario asks for none; write its fields under `answer` at the top"
            )
        return
    wanted = Tool(name="the answer", parameters=view.scenario.answer)
    wrong = list(find_misfits(reply.answer, wanted, (*path, "answer")))
    if reply.invalid and not wrong:
        yield Diagnostic((*path, "invalid"), "the answer fits the fields under `answer` at the top")
    for mistake in () if reply.invalid else wrong:
        yield Diagnostic(mistake.path, with_opt_in_hint(mistake.what, "invalid"))


def _validate_call(view: ScenarioIndex, agent: str, call: Call, path: KeyPath) -> Iterator[Diagnostic]:
    if view.attached:
        return
    tool = find_tool(view.scenario, agent, call.tool)
    if tool is None:
        if not call.unknown_tool:
            yield Diagnostic(
                (*path, "tool"), with_opt_in_hint(describe_unknown_tool(view, agent, call.tool), "unknown_tool")
            )
        return
    if call.unknown_tool:
        what = f"the agent {agent!r} has a tool {call.tool!r}; leave out `unknown_tool: true`"
        yield Diagnostic((*path, "unknown_tool"), what)
    if isinstance(call.arguments, str):
        if call.invalid:
            yield Diagnostic(
                (*path, "invalid"), "arguments that are text are sent as they are; leave out `invalid: true`"
            )
    else:
        yield from validate_arguments(call.arguments, tool, (*path, "arguments"), invalid=call.invalid)


def describe_unknown_tool(view: ScenarioIndex, agent: str, name: str) -> str:
    """Says that *agent* has no tool of that name, and which ones it has."""
    own = [tool.name for tool in view.scenario.tools if tool.agent == agent]
    return f"the agent {agent!r} has no tool {name!r}{suggest_name(name, own)}"


# --- arguments that would make calls look alike -----------------------------------------------------------------------


def _validate_distinct_arguments(view: ScenarioIndex) -> Iterator[Diagnostic]:
    if view.scenario.equal_arguments:
        return
    seen: dict[tuple[str, str, str], str] = {}
    for one in view.calls:
        tool = find_tool(view.scenario, one.agent, one.call.tool)
        name = tool.visible_name if tool is not None else one.call.tool
        key = (one.opening, name, canonical_arguments(one.call.arguments, tool))
        if key in seen:
            what = f"{one.label} and {seen[key]} call {name} with equal arguments, so their effects look alike"
            hint = "make them differ, or say `equal_arguments: true` at the top if that is meant"
            yield Diagnostic((*one.path, "arguments"), f"{what}; {hint}")
        seen.setdefault(key, one.label)
    yield from _validate_distinct_edits(
        view, {(tool, arguments): label for (_, tool, arguments), label in seen.items()}
    )


def _validate_distinct_edits(view: ScenarioIndex, seen: dict[tuple[str, str], str]) -> Iterator[Diagnostic]:
    for answer, path in view.answers():
        one = view.by_label.get(answer.label or "")
        if answer.verdict != "edit" or answer.arguments is None or one is None:
            continue
        tool = find_edited_tool(view.scenario, one, answer)
        name = tool.visible_name if tool is not None else answer.tool or one.call.tool
        other = seen.get((name, canonical_arguments(answer.arguments, tool)))
        if other is not None and other != one.label:
            what = f"the edit makes {one.label} call {name} with the arguments of {other}, so their effects look alike"
            yield Diagnostic(
                (*path, str(answer.label)), f"{what}; say `equal_arguments: true` at the top if that is meant"
            )


def find_edited_tool(scenario: Scenario, one: CallOccurrence, answer: ScriptedDecision) -> Tool | None:
    """Gives the tool that an edited call runs: another one by the name that the agent knows, or its own."""
    if answer.tool is not None:
        return find_visible_tool(scenario, one.agent, answer.tool)
    return find_tool(scenario, one.agent, one.call.tool)
