"""Bugs of applications with agents of Agno, planted in agents that are right without them: each is found.

A tool's body cannot ask in this framework, so that it cannot act before it asks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from agno.agent import Agent
from agno.compression.manager import CompressionManager
from agno.db.in_memory import InMemoryDb
from agno.team import Team
from agno.tools import Toolkit
from agno.tools import tool as as_tool

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject, reject_all, say, send
from pytest_approvals.errors import RequirementWarning

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


def build(model: Any, gated: bool = True, **more: Any) -> Agent:
    tool = as_tool(requires_confirmation=gated)(refund)
    return Agent(model=model, tools=[tool], telemetry=False, **more)


def build_with_toolkit(model: Any) -> Agent:
    """The toolkit gates a tool that it does not have; the framework logs a warning."""
    toolkit = Toolkit(name="orders", tools=[refund], requires_confirmation_tools=["refunds"])
    return Agent(model=model, tools=[toolkit], telemetry=False)


def build_team(model: Any, gated: bool = True) -> Team:
    desk = Agent(id="desk", role="Refunds orders.", model=model, tools=[as_tool(requires_confirmation=gated)(refund)])
    return Team(name="shop", model=model, members=[desk])


def build_asking_another(model: Any) -> Agent:
    """Its tool runs another agent, whose tool is not gated."""
    desk = Agent(id="desk", model=model, tools=[refund], telemetry=False)

    async def ask_desk(task: str) -> str:
        return str((await desk.arun(task)).content)

    return Agent(model=model, tools=[ask_desk], telemetry=False)


async def call_twice(function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """A hook that retries what has succeeded."""
    await function_call(**arguments)
    return await function_call(**arguments)


async def change_order(function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """A hook that changes what was approved."""
    arguments["order"] = 43
    return await function_call(**arguments)


class Optimist(CompressionManager):
    """A compressor that is content with everything."""

    async def ashould_compress(self, *_: Any, **__: Any) -> bool:
        return True

    async def acompress(self, messages: list[Any], *_: Any, **__: Any) -> None:
        for message in messages:
            if message.role == "tool":
                message.compressed_content = "ok"


class ForgetfulDb(InMemoryDb):
    """A database that gives the newest message of each run back."""

    def get_session(self, *arguments: Any, **more: Any) -> Any:
        session: Any = super().get_session(*arguments, **more)
        for run in session.runs if session is not None else ():
            run.messages = run.messages[-1:]
        return session


REFUND = [calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("delegate_task_to_member", member_id="desk", task="Refund 42"), say("Done.")],
    "desk": [calls("refund", order=42), say("Refunded.")],
}
GATED: dict[str, Any] = {"gated": {"refund"}}
APPROVED: dict[str, Any] = {"model": REFUND, "oracle": approve_all()}
REJECTED: dict[str, Any] = {"model": REFUND, "oracle": reject_all()}

UNAPPROVED = "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision"
FOUND = {
    "forgotten-gate": (partial(build, gated=False), APPROVED | GATED, UNAPPROVED, [42]),
    "misspelled-gate": (build_with_toolkit, APPROVED | GATED, UNAPPROVED, [42]),
    "forgotten-gate-of-a-member": (
        partial(build_team, gated=False),
        APPROVED | GATED | {"model": DELEGATED},
        f"{UNAPPROVED}.*c1/desk calls c1/c2 ",
        [42],
    ),
    "runs-after-a-rejection": (
        build,
        REJECTED | {"answers": {"reject": True}},
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "runs-after-a-rejection-in-a-member": (
        build_team,
        REJECTED | {"model": DELEGATED, "answers": {"reject": True}},
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok": (
        partial(build, compression_manager=Optimist()),
        REJECTED,
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped": (
        partial(build, db=ForgetfulDb()),
        APPROVED,
        "caller-messages-kept: .*expected  all messages\n +actual    'Refund' is not in the model's input",
        [42],
    ),
    "other-arguments-than-approved": (
        partial(build, tool_hooks=[change_order]),
        APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\n +actual    refund\(order=43\)",
        [43],
    ),
    "double-effect": (
        partial(build, tool_hooks=[call_twice]),
        APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


@pytest.mark.parametrize(("built", "model"), [(build, REFUND), (build_team, DELEGATED)], ids=["agent", "team"])
def test_the_agents_are_right_without_the_bugs(approvals: Approvals, built: Any, model: Any) -> None:
    """Approved and rejected, no check has anything to say."""
    approvals.run(built, "Refund", model=model, oracle=approve_all(), **GATED)
    approvals.run(built, "Refund", model=model, oracle=reject_all(), **GATED)

    assert [42] == done


def test_what_a_tool_returned_may_be_compressed(approvals: Approvals) -> None:
    """How much of it is left is up to the compressor."""
    approvals.run(partial(build, compression_manager=Optimist()), "Refund", **APPROVED)

    assert [42] == done


@pytest.mark.parametrize(("built", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, built: Any, options: dict[str, Any], message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(built, "Refund", **options)

    assert effects == done


def build_forgetful(model: Any) -> Agent:
    """Build an agent that remembers, in a database that is made anew for each message."""
    agent = build(model, add_history_to_context=True)
    run = agent.arun

    def arun(*inputs: Any, **options: Any) -> Any:
        agent.db = InMemoryDb()
        return run(*inputs, **options)

    agent.arun = arun  # type: ignore[method-assign]
    return agent


def test_a_conversation_without_its_history_is_found(approvals: Approvals) -> None:
    """What the agent's own settings keep in the history has to be there."""
    model, caller = [say("Which order?"), say("I forgot.")], [send("Refund"), send("This one")]
    with pytest.raises(CheckFailed, match="(?s)^caller-messages-kept: .*actual    'Refund' is not in the model's"):
        approvals.run(build_forgetful, model=model, caller=caller)


@pytest.mark.parametrize(
    ("history", "error", "actual"),
    [(False, RequirementWarning, "the model is asked again"), (True, CheckFailed, "the model is told 'refunded 42'")],
    ids=["no history", "history"],
)
def test_an_answer_that_comes_twice_is_found(
    approvals: Approvals, history: bool, error: type[Exception], actual: str
) -> None:
    """The framework asks its model once more, with the run in the history of itself if it adds one."""
    caller = [send("Refund"), approve("c1"), approve("c1")]
    with pytest.raises(error, match=f"(?s)settled-stays-settled: .*actual    {actual}"):
        approvals.run(partial(build, add_history_to_context=history), model=[*REFUND, say("Again.")], caller=caller)

    assert [42] == done


def test_another_answer_to_what_was_answered_is_refused(approvals: Approvals) -> None:
    """The refusal is an outcome of the run."""
    run = approvals.run(build, model=REFUND, caller=[send("Refund"), approve("c1"), reject("c1")])

    assert run.turns[-1].refused
    assert [42] == done


def test_a_forgotten_gate_of_an_agent_in_a_body_is_found(approvals: Approvals) -> None:
    """What `gated` names may be a tool of an agent that the body of a tool runs, if that agent has its own script."""
    model = {
        "main": [calls("ask_desk", task="Refund 42"), say("Done.")],
        "desk": [calls("refund", order=42), say("Refunded.")],
    }
    with pytest.raises(CheckFailed, match="approval-before-execution"):
        approvals.run(build_asking_another, "Refund", model=model, **GATED)

    assert [42] == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects, also those of members."""
    found = notes(
        """
        from agno.agent import Agent
        from agno.team import Team
        from pytest_approvals import calls, say

        def refund(order: int) -> str:
            return "refunded"

        def look_up(order: int) -> str:
            return "seen"

        def delete_account(name: str) -> str:
            return "deleted"

        def build(model):
            desk = Agent(id="desk", role="Refunds orders.", model=model, tools=[refund, look_up])
            return Team(name="shop", model=model, members=[desk], tools=[delete_account])

        def test_it(approvals):
            approvals.run(build, model=[say("Done.")])
        """
    )

    assert ["delete_account, refund"] == found


def test_drawn_stories_find_a_double_effect(approvals: Approvals) -> None:
    """Of the agent without the bug they find nothing; with it, the smallest one is a call that is approved."""
    approvals.explore(build, stories=10, **GATED)
    done.clear()

    with pytest.raises(CheckFailed, match="^runs-at-most-once: ") as caught:
        approvals.explore(partial(build, tool_hooks=[call_twice]), stories=20, **GATED)

    assert [0, 0] == done[-2:]
    assert "calls('refund', {'order': 0})" in caught.value.__notes__[-1]
