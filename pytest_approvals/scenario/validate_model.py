"""Mistakes in the model's scripts."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.failures import BREAKS
from pytest_approvals.errors import nearest
from pytest_approvals.scenario.labels import Occurrence, script_path, tool_of, visible_tool
from pytest_approvals.scenario.mistakes import Mistake, Path, unless_meant
from pytest_approvals.scenario.parts import Answer, Call, Reply, Scenario, Script, Tool, Turn
from pytest_approvals.scenario.validate_arguments import comparable, judged, misfits
from pytest_approvals.scenario.view import View

STATUSES = (429, 500, 503, 529, 0)


def model_mistakes(view: View) -> Iterator[Mistake]:
    """Gives the mistakes of the scripts and of the calls in them."""
    for agent, script in view.scenario.agents.items():
        yield from _agent(view, agent, script)
        yield from _openings(view, agent, script)
        for prompt, replies in {"": script.replies, **script.by_prompt}.items():
            for k, reply in enumerate(replies):
                path = (*script_path(agent, prompt, script), k)
                yield from _reply(reply, path)
                yield from _answer(view, agent, reply, path)
                for j, call in enumerate(reply.calls):
                    yield from _call(view, agent, call, (*path, "calls", j))
    yield from _equal_arguments(view)


def _agent(view: View, agent: str, script: Script) -> Iterator[Mistake]:
    path: Path = ("model",) if agent == MAIN else ("agents", agent)
    if not script.replies and not any(script.by_prompt.values()):
        yield Mistake(path, f"the model of {agent!r} has no reply")
    runners = [tool for tool in view.scenario.tools if tool.runs == agent]
    if agent != MAIN and not runners:
        yield Mistake(path, f"no tool runs the agent {agent!r}; a tool with `runs: {agent}` would")
    for tool in runners:
        if tool.agent == agent or _reaches(view, agent, tool.agent, frozenset()):
            yield Mistake(view.tool_path(tool), f"the agent {agent!r} runs itself through {tool.name!r}")


def _reaches(view: View, agent: str, wanted: str, seen: frozenset[str]) -> bool:
    """Says whether running *agent* can run the agent *wanted*."""
    inner = {tool.runs for tool in view.scenario.tools if tool.agent == agent and tool.runs is not None} - seen
    return wanted in inner or any(_reaches(view, one, wanted, seen | inner) for one in sorted(inner))


def _openings(view: View, agent: str, script: Script) -> Iterator[Mistake]:
    said = _first_messages(view, agent)
    for prompt in script.by_prompt:
        if prompt not in said:
            what = f"no conversation of {agent!r} begins with {prompt!r}{nearest(prompt, said)}"
            yield Mistake(script_path(agent, prompt, script), what)


def _first_messages(view: View, agent: str) -> list[str]:
    if agent == MAIN:
        sent = [step.text for step, _ in view.steps() if isinstance(step, Turn) and step.text is not None]
        return sent if view.scenario.caller is not None else [view.scenario.prompt]
    runners = {(tool.agent, tool.name) for tool in view.scenario.tools if tool.runs == agent}
    given = [one.call.arguments for one in view.calls if (one.agent, one.call.tool) in runners]
    given += [answer.arguments for answer, _ in view.answers() if answer.arguments is not None]
    return [str(one["input"]) for one in given if not isinstance(one, str) and "input" in one]


def _reply(reply: Reply, path: Path) -> Iterator[Mistake]:
    holds = reply.say is not None or bool(reply.calls) or reply.answer is not None
    failure = reply.failure
    if failure is None:
        if not holds:
            yield Mistake(path, "the reply is empty; a reply needs one of: say, calls, answer, fails")
        return
    if failure.status not in STATUSES or failure.how not in BREAKS:
        *words, last = map(str, (*STATUSES[:-1], *BREAKS))
        what = failure.status if failure.how in BREAKS else failure.how
        yield Mistake((*path, "fails"), f"a model fails with {', '.join(words)} or {last}, not {what}")
    if failure.retry_after is not None and failure.status == 0:
        yield Mistake((*path, "retry_after"), "a provider says so with a status; write `fails: 429`, or 500, 503, 529")
    if failure.after_chunks is None and holds:
        what = "a reply that fails holds neither text nor calls; `breaks_after: N` breaks its stream after N pieces"
        yield Mistake((*path, "fails"), what)
    if failure.after_chunks is not None and not holds:
        yield Mistake((*path, "breaks_after"), "there is nothing to break in; give the reply text or calls")
    if failure.after_chunks is not None and failure.after_chunks < 0:
        yield Mistake((*path, "breaks_after"), f"a stream cannot break after {failure.after_chunks} pieces")


def _answer(view: View, agent: str, reply: Reply, path: Path) -> Iterator[Mistake]:
    if reply.answer is None:
        if reply.invalid:
            yield Mistake(
                (*path, "invalid"), "there is no answer that could be invalid; a call has `invalid` of its own"
            )
        return
    if agent != MAIN:
        yield Mistake((*path, "answer"), f"only the main agent gives a structured answer; {agent!r} says something")
        return
    if not view.scenario.answer:
        if not view.attached:
            yield Mistake((*path, "answer"), "the scenario asks for none; write its fields under `answer` at the top")
        return
    wanted = Tool(name="the answer", parameters=view.scenario.answer)
    wrong = list(misfits(reply.answer, wanted, (*path, "answer")))
    if reply.invalid and not wrong:
        yield Mistake((*path, "invalid"), "the answer fits the fields under `answer` at the top")
    for mistake in () if reply.invalid else wrong:
        yield Mistake(mistake.path, unless_meant(mistake.what, "invalid"))


def _call(view: View, agent: str, call: Call, path: Path) -> Iterator[Mistake]:
    if view.attached:
        return
    tool = tool_of(view.scenario, agent, call.tool)
    if tool is None:
        if not call.unknown_tool:
            yield Mistake((*path, "tool"), unless_meant(no_such_tool(view, agent, call.tool), "unknown_tool"))
        return
    if call.unknown_tool:
        what = f"the agent {agent!r} has a tool {call.tool!r}; leave out `unknown_tool: true`"
        yield Mistake((*path, "unknown_tool"), what)
    if isinstance(call.arguments, str):
        if call.invalid:
            yield Mistake((*path, "invalid"), "arguments that are text are sent as they are; leave out `invalid: true`")
    else:
        yield from judged(call.arguments, tool, (*path, "arguments"), invalid=call.invalid)


def no_such_tool(view: View, agent: str, name: str) -> str:
    """Says that *agent* has no tool of that name, and which ones it has."""
    own = [tool.name for tool in view.scenario.tools if tool.agent == agent]
    return f"the agent {agent!r} has no tool {name!r}{nearest(name, own)}"


# --- arguments that would make calls look alike -----------------------------------------------------------------------


def _equal_arguments(view: View) -> Iterator[Mistake]:
    if view.scenario.equal_arguments:
        return
    seen: dict[tuple[str, str, str], str] = {}
    for one in view.calls:
        tool = tool_of(view.scenario, one.agent, one.call.tool)
        name = tool.visible_name if tool is not None else one.call.tool
        key = (one.opening, name, comparable(one.call.arguments, tool))
        if key in seen:
            what = f"{one.label} and {seen[key]} call {name} with equal arguments, so their effects look alike"
            hint = "make them differ, or say `equal_arguments: true` at the top if that is meant"
            yield Mistake((*one.path, "arguments"), f"{what}; {hint}")
        seen.setdefault(key, one.label)
    yield from _equal_edits(view, {(tool, arguments): label for (_, tool, arguments), label in seen.items()})


def _equal_edits(view: View, seen: dict[tuple[str, str], str]) -> Iterator[Mistake]:
    for answer, path in view.answers():
        one = view.by_label.get(answer.label or "")
        if answer.verdict != "edit" or answer.arguments is None or one is None:
            continue
        tool = edited_tool(view.scenario, one, answer)
        name = tool.visible_name if tool is not None else answer.tool or one.call.tool
        other = seen.get((name, comparable(answer.arguments, tool)))
        if other is not None and other != one.label:
            what = f"the edit makes {one.label} call {name} with the arguments of {other}, so their effects look alike"
            yield Mistake(
                (*path, str(answer.label)), f"{what}; say `equal_arguments: true` at the top if that is meant"
            )


def edited_tool(scenario: Scenario, one: Occurrence, answer: Answer) -> Tool | None:
    """Gives the tool that an edited call runs: another one by the name that the agent knows, or its own."""
    if answer.tool is not None:
        return visible_tool(scenario, one.agent, answer.tool)
    return tool_of(scenario, one.agent, one.call.tool)
