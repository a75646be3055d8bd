"""Replies of the model in a drawn story, and the calls in them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pytest_approvals.agent_side.contract import MAIN
from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.generation.choices import NEEDS_REQUESTS, chance, pick
from pytest_approvals.scenario.generation.draft import EDGE_TYPES, WORDS, StoryDraft, can_run, is_called_plainly
from pytest_approvals.scenario.model import Call, Script, ScriptedFailure, ScriptedReply


def draw_replies(draft: StoryDraft) -> list[ScriptedReply]:
    """Return the replies of the main agent's model; those of other agents are kept in the draft."""
    groups = _group(draft, _draw_calls(draft))
    if "nested_parallel" in draft.features:
        groups.append(_draw_delegations(draft, 2))
    elif {"nested", "nested_gate", "nested_deep"} & draft.features:
        groups.append(_draw_delegations(draft, 1))
    if "waits_for_call" in draft.features:
        groups.append(_draw_waiting_calls(draft))
    if "to_clerk" in draft.tools:
        groups.append([*_draw_companion(draft), draft.draw_call(draft.tools["to_clerk"], prefix="t")])
        groups.append([draft.draw_call(draft.tools["clerk/settle"])])
    if "result_per_call" in draft.features:
        _draw_result_per_call(draft, groups)
    replies: list[ScriptedReply] = []
    for number, group in enumerate(groups):
        text = "Let me see." if draft.takes("text_with_calls") else None
        replies.append(ScriptedReply(say=text, calls=tuple(group)))
        handed_over = any(call.tool == "to_clerk" for call in group)
        if number < len(groups) - 1 and not handed_over and chance(draft.choices, 30):
            replies.append(draft.draw_last_word("Anything else?"))
    if "answer_beside_calls" in draft.features:
        beside = next((k for k, reply in enumerate(replies) if reply.calls and reply.say is None), 0)
        replies[beside] = replace(replies[beside], answer={"total": "much"}, invalid=True)
    elif "invalid_answer" in draft.features:
        replies.append(ScriptedReply(answer={"total": "much"}, invalid=True))
    replies.append(draft.draw_last_word("Done."))
    if "slow_reply" in draft.features:
        place = draft.choices.below(len(replies))
        replies[place] = replace(replies[place], takes=0.01)
    return _add_failures(draft, replies)


def _draw_companion(draft: StoryDraft) -> list[Call]:
    """Return a gated call to stand beside a hand-over, if the story has one there."""
    if "call_beside_hand_off" not in draft.features:
        return []
    usable = [tool for tool in draft.tools.values() if is_called_plainly(tool) and tool.parameters]
    gated = [tool for tool in usable if tool.approval == "always"]
    return [draft.draw_call(pick(draft.choices, gated))] if gated else []


def _draw_result_per_call(draft: StoryDraft, groups: list[list[Call]]) -> None:
    ids = [call.id for group in groups for call in group]
    own = [
        call
        for group in groups
        for call in group
        if call.id is not None and ids.count(call.id) == 1 and _is_called_plainly_by(draft, call)
    ]
    if own:
        call = pick(draft.choices, own)
        tool = draft.tools[call.tool]
        behaviours = (replace(tool.behaviours[-1], waits_for=None, raises=None, returns="a result of its own"),)
        draft.tools[tool.key] = replace(tool, per_call={**tool.per_call, str(call.id): behaviours})


def _is_called_plainly_by(draft: StoryDraft, call: Call) -> bool:
    tool = draft.tools.get(call.tool)
    return tool is not None and is_called_plainly(tool) and call.id not in tool.per_call


def _draw_calls(draft: StoryDraft) -> list[Call]:
    usable = [tool for tool in draft.tools.values() if is_called_plainly(tool)]
    rest = 1 + draft.choices.below(2) if "several_replies" in draft.features else draft.choices.below(2)
    if "parallel" in draft.features or "partial_answers" in draft.features or "repeated_decision" in draft.features:
        rest = max(rest, 2 - len(usable))
    calls = [draft.draw_call(tool) for tool in usable]
    gated = [tool for tool in usable if tool.approval != "never"]
    rest = max(rest, (len(draft.features & NEEDS_REQUESTS) + 1) // 2 - len(gated))
    # Two calls without arguments would be equal.
    distinct = [tool for tool in gated if tool.parameters]
    certain = [tool for tool in distinct if tool.approval == "always"] or distinct or gated
    calls += [draft.draw_call(pick(draft.choices, certain)) for _ in range(rest)]
    for edge in [name for name in draft.edges if name in draft.due]:
        kind = EDGE_TYPES.get(edge, "string")
        fitting = [tool for tool in usable if any(parameter.type == kind for parameter in tool.parameters.values())]
        if edge in draft.due and fitting:
            calls.append(draft.draw_call(fitting[0]))
    if "equal_questions" in draft.features:
        calls.append(draft.draw_call(draft.tools["open_account"]))
    if "annotations_changed" in draft.features:
        calls += [draft.draw_call(tool) for tool in usable if tool.by_annotations]
    if {"broken_arguments", "invalid_arguments"} & set(draft.due):
        calls.append(draft.draw_call(next(tool for tool in gated if tool.kind == "function" and tool.parameters)))
    if "equal_arguments" in draft.features:
        # Calls without arguments are equal, too.
        bare = [call for call in calls if call.tool == "restart_server"]
        twin = pick(draft.choices, bare or calls)
        draft.ids += 1
        number = f"mcpr_{draft.ids}" if (twin.id or "").startswith("mcpr_") else f"c{draft.ids}"
        calls.append(replace(twin, id=number))
    if "unknown_tools" in draft.features:
        draft.ids += 1
        arguments = {"it": draft.next_number()}
        calls.append(Call(label="", id=f"c{draft.ids}", tool="no_such_tool", arguments=arguments, unknown_tool=True))
    if "repeated_ids" in draft.features:
        again = pick(draft.choices, [call for call in calls if call.id is not None])
        tool = draft.tools.get(again.tool)
        if tool is not None:
            calls.append(replace(again, arguments=draft.draw_arguments(tool), repeats=True, invalid=False))
    if "missing_ids" in draft.features:
        place = draft.choices.below(len(calls))
        others = [call.id for k, call in enumerate(calls) if k != place]
        tool = draft.tools.get(calls[place].tool)
        # A provider knows the calls that it executes by their ids.
        is_hosted = tool is not None and tool.kind == "hosted_mcp"
        if calls[place].id not in others and not calls[place].repeats and not is_hosted:
            calls[place] = replace(calls[place], id=None, label=f"x{place + 1}")
    return calls


def _group(draft: StoryDraft, calls: list[Call]) -> list[list[Call]]:
    """Return the calls of each reply."""
    # The first two calls are gated, so that two requests can be open at once.
    calls = sorted(calls, key=partial(_rate_uncertainty, draft))
    groups: list[list[Call]] = [[calls[0]]]
    several = bool({"parallel", "partial_answers", "repeated_decision"} & draft.features)
    several = several and draft.allows("parallel")
    for call in calls[1:]:
        twins = [group for group in groups if any(call.id == other.id for other in group)] if call.repeats else []
        joins = several and (len(groups[0]) < 2 or chance(draft.choices, 50))
        if twins and draft.allows("parallel") and chance(draft.choices, 50):
            twins[-1].append(call)
        elif joins and len(groups[-1]) < 4:
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _rate_uncertainty(draft: StoryDraft, call: Call) -> int:
    """Return 0 for a call that surely needs approval, 1 for one that may, 2 for one that does not."""
    tool = draft.tools.get(call.tool)
    if tool is None or tool.approval == "never":
        return 2
    is_odd = call.invalid or call.repeats or isinstance(call.arguments, str)
    return 1 if is_odd or isinstance(tool.approval, Condition) else 0


def _draw_delegations(draft: StoryDraft, count: int) -> list[Call]:
    draft.ids += 1
    first = draft.ids
    draft.ids += count - 1
    scripts: dict[str, tuple[ScriptedReply, ...]] = {}
    calls = []
    tool = draft.tools[f"helper/{draft.inner}"]
    for number in range(count):
        prompt = f"Wire for {WORDS[(draft.next_number() - 1) % len(WORDS)]}"
        own = 1 if "equal_ids_in_agents" in draft.features else number + 1
        inner = Call(label="", id=f"h{own}", tool=tool.name, arguments=draft.draw_arguments(tool))
        replies = [ScriptedReply(calls=(inner,)), ScriptedReply(say="Wired.")]
        if chance(draft.choices, 20):
            more = Call(label="", id=f"k{own}", tool=tool.name, arguments=draft.draw_arguments(tool))
            replies.insert(1, ScriptedReply(calls=(more,)))
        if "elicitation_in_agent" in draft.features and (number == 0 or chance(draft.choices, 60)):
            asking = draft.tools["helper/ask_bank"]
            ask = Call(label="", id=f"b{own}", tool=asking.name, arguments=draft.draw_arguments(asking))
            if draft.allows("parallel") and chance(draft.choices, 40):
                replies[0] = ScriptedReply(calls=(inner, ask))
            else:
                replies.insert(draft.choices.below(2), ScriptedReply(calls=(ask,)))
        annotated = [each for each in draft.tools.values() if each.agent == "helper" and each.by_annotations]
        if annotated and (number == 0 or chance(draft.choices, 60)):
            arguments = draft.draw_arguments(annotated[0])
            read = Call(label="", id=f"a{own}", tool=annotated[0].name, arguments=arguments)
            replies.insert(draft.choices.below(2), ScriptedReply(calls=(read,)))
        if number == 0 and "nested_deep" in draft.features:
            replies.insert(draft.choices.below(2), ScriptedReply(calls=(_draw_inner_delegation(draft),)))
        if number == 0 and "model_failure" in draft.features and chance(draft.choices, 50):
            failure = ScriptedFailure(status=pick(draft.choices, (500, 429, 503, 529)))
            replies.insert(draft.choices.below(len(replies)), ScriptedReply(failure=failure))
        scripts[prompt] = tuple(replies)
        calls.append(Call(label="", id=f"o{first + number}", tool="ask_helper", arguments={"input": prompt}))
    if count == 1:
        draft.agents["helper"] = Script(replies=next(iter(scripts.values())))
    else:
        draft.agents["helper"] = Script(by_prompt=scripts)
    return calls


def _draw_inner_delegation(draft: StoryDraft) -> Call:
    """Return a call by which the agent that a tool runs asks another one."""
    sign = Call(label="", id="s1", tool="sign", arguments=draft.draw_arguments(draft.tools["expert/sign"]))
    draft.agents["expert"] = Script(replies=(ScriptedReply(calls=(sign,)), ScriptedReply(say="Signed.")))
    return Call(label="", id="e1", tool="ask_expert", arguments={"input": "Sign it"})


def _draw_waiting_calls(draft: StoryDraft) -> list[Call]:
    """Return two calls of a free tool, one of which waits for the other one."""
    tool = next(tool for tool in draft.tools.values() if tool.agent == MAIN and tool.approval == "never")
    first, second = draft.draw_call(tool), draft.draw_call(tool)
    waiting, awaited = (second, first) if chance(draft.choices, 50) else (first, second)
    # A call that does not fit never runs, so that the other one would wait for ever.
    if not can_run(awaited) and can_run(waiting):
        waiting, awaited = awaited, waiting
    elif not can_run(awaited):
        fitting = replace(awaited, arguments=draft.draw_arguments(tool), invalid=False)
        first, second = (fitting, waiting) if awaited is first else (waiting, fitting)
        awaited = fitting
    word = pick(draft.choices, ("started", "ended"))
    behaviour = replace(tool.behaviours[0], waits_for=f"{word} {awaited.id}")
    per_call = {**tool.per_call, str(waiting.id): (behaviour,)}
    draft.tools[tool.key] = replace(tool, per_call=per_call)
    return [first, second]


def _add_failures(draft: StoryDraft, replies: list[ScriptedReply]) -> list[ScriptedReply]:
    failures = []
    if "model_failure" in draft.features:
        failures.append(ScriptedFailure(status=pick(draft.choices, (500, 429, 503, 529))))
    if "retry_after" in draft.features:
        failures.append(ScriptedFailure(status=429, retry_after=pick(draft.choices, (0.0, 0.01))))
    if "connection_failure" in draft.features:
        how = pick(draft.choices, ("disconnect", "timeout", "truncated", "garbled"))
        failures.append(ScriptedFailure(status=0, how=how))
    for failure in failures:
        replies.insert(draft.choices.below(len(replies) + 1), ScriptedReply(failure=failure))
    if "broken_stream" in draft.features:
        whole = [k for k, reply in enumerate(replies) if reply.failure is None]
        place = pick(draft.choices, whole)
        how = pick(draft.choices, ("disconnect", "truncated", "garbled"))
        status = pick(draft.choices, (0, 0, 529)) if how == "disconnect" else 0
        broken = ScriptedFailure(status=status, how=how, after_chunks=draft.choices.below(4))
        replies[place] = replace(replies[place], failure=broken)
    return replies
