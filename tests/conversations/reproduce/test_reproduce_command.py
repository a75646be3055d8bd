"""The command `reproduce`: from a stored conversation to a scenario that fails as it did."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.cli import main
from pytest_approvals.cli.conversations import write_native_script
from pytest_approvals.conversations.reproduce.draft import DraftReply, DraftTurn, ScenarioDraft
from pytest_approvals.conversations.reproduce.reproducer import FailingCheck, Reproduction
from pytest_approvals.conversations.reproduce.trials import TrialAgent
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.to_file import format_yaml

SMALL = """\
title: A call of refund is rejected, two messages follow
about: >
  Made from a stored conversation (meai). The check usable-after-refusal fails on meai==10.4, and holds on
  meai==robust.
tools:
  refund: {approval: always}
model:
  - calls: [{id: c1, tool: refund}]
  - say: I have not refunded it.
  - say: Done.
  - say: Done.
caller:
  - send: Please refund order 4711 to bob@example.org, ...
  - decide: {c1: reject}
  - send: Yes, look first.
  - send: And now?
reaches: {paused: 1, rejected: 1, finished: 3}
"""
"""The story of dotnet/extensions#7468, and nothing else."""

AGENTS = ("--agent", "meai==10.4", "--agent", "meai==robust")


def failing_on(agent: str, scenario: Scenario) -> set[str]:
    """The checks that fail on an agent in any variant of a scenario."""
    return set(TrialAgent(agent).find_failing_checks_of(scenario))


def test_a_paused_session_becomes_the_bug_that_it_has(
    paused_session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fails on 10.4, whose store made two copies of a call, holds where settlement goes by position."""
    target = tmp_path / "found" / "session.approval.yaml"
    code = main(["reproduce", str(paused_session), "-o", str(target), *AGENTS])

    assert 0 == code
    assert SMALL == target.read_text(encoding="utf-8")
    scenario = load_scenario(target, root=tmp_path)
    assert ({"usable-after-refusal"}, set()) == (
        failing_on("meai==10.4", scenario),
        failing_on("meai==robust", scenario),
    )
    told = capsys.readouterr().err.splitlines()
    symptom = "symptom: copies of a call disagree (flags-agree, message 2, content 0)"
    assert [symptom, "meai==10.4: usable-after-refusal fails", "meai==robust: nothing fails"] == told[:3]


def test_the_whole_story_is_kept_if_nothing_fails(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a scenario all the same, and the exit code says that it does not fail."""
    code = main(["reproduce", "--neighbours", "0", str(paused_session), "--agent", "meai==robust"])
    said = capsys.readouterr()

    assert (1, "no check fails") == (code, said.err.splitlines()[-2])
    assert "  - decide: {c1: {reject: not this month}}" in said.out.splitlines()


def test_what_is_shared_can_be_anonymous(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bug is the same, and nobody learns what it was about."""
    code = main(["reproduce", str(paused_session), "--anonymise", *AGENTS])
    said = capsys.readouterr()

    assert 0 == code
    assert "title: A call of refund is rejected, two messages follow" == said.out.splitlines()[0]
    assert [] == [secret for secret in ("4711", "bob@", "Rome", "flight", "look first") if secret in said.out]


def test_a_check_can_be_named(paused_session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another one than the first that fails; here it does not."""
    code = main(["reproduce", "--neighbours", "0", str(paused_session), "--check", "runs-at-most-once", *AGENTS])

    assert (1, "no check fails") == (code, capsys.readouterr().err.splitlines()[-2])


@pytest.mark.parametrize(
    ("content", "words", "complaint"),
    [
        (b"{", (), "history.json:1: truncated"),
        (b"\xff\xfe", (), "UTF-16"),
        (b"[" * 100_000, (), "nested"),
        (b'{"a": 1}', (), "unknown format"),
        (b'[{"role": "user", "contents": []}]', ("--conversation", "3"), "holds 1, so there is no number 3"),
        (b"[]", ("--check", "asked-onc"), "did you mean 'asked-once'?"),
        (b"[]", ("--format", "mea"), "did you mean 'meai'?"),
        (b"[]", ("--time-limit", "0"), "too small"),
    ],
)
def test_what_cannot_be_used_is_reported_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: tuple[str, ...], complaint: str
) -> None:
    """Exit code 2, nothing on standard output, no traceback."""
    path = tmp_path / "history.json"
    path.write_bytes(content)
    code = main(["reproduce", str(path), *words])
    said = capsys.readouterr()

    assert (2, "") == (code, said.out)
    assert said.err.startswith("pytest-approvals: ")
    assert complaint in said.err


def test_one_of_several_conversations_is_chosen(paused_session: Path, tmp_path: Path) -> None:
    """By its number in the file."""
    other = {"messages": [{"role": "user", "contents": [{"$type": "text", "text": "Hello"}]}]}
    lines = tmp_path / "many.jsonl"
    session = json.dumps(json.loads(paused_session.read_text()))
    lines.write_text(f"{json.dumps(other)}\n{session}\n", encoding="utf-8")
    target = tmp_path / "second.approval.yaml"

    assert 0 == main(["reproduce", str(lines), "--conversation", "2", "-o", str(target), *AGENTS])
    assert "A call of refund is rejected" in target.read_text(encoding="utf-8")


def test_a_document_is_written_in_the_order_of_its_keys() -> None:
    """Short things in a line, long ones in a block."""
    long = {f"parameter_{n}": "string" for n in range(9)}
    text = format_yaml({"title": "T", "tools": {"a": {"parameters": long}}, "reaches": {"paused": 1}})
    assert ["title: T", "tools:", "  a:", "    parameters:"] == text.splitlines()[:4]
    assert "reaches: {paused: 1}" == text.splitlines()[-1]


def pydantic_history() -> bytes:
    """The messages that Pydantic AI stores of a run in which one call was approved and one denied."""
    from pydantic_ai import (
        Agent,
        DeferredToolRequests,
        DeferredToolResults,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolDenied,
    )
    from pydantic_ai.models.function import FunctionModel

    calls = [ToolCallPart("refund", {"order": n}, tool_call_id=f"call_{n}") for n in (4711, 4712)]
    replies = iter([[TextPart("May I?"), *calls], [TextPart("One is refunded.")]])
    agent = Agent(
        FunctionModel(lambda messages, info: ModelResponse(parts=next(replies))),
        output_type=[str, DeferredToolRequests],
    )

    @agent.tool_plain(requires_approval=True)
    def refund(order: int) -> str:
        return f"refunded {order}"

    async def run() -> bytes:
        paused = await agent.run("Refund both orders.")
        answers = DeferredToolResults(approvals={"call_4711": True, "call_4712": ToolDenied("not this month")})
        return (
            await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
        ).all_messages_json()

    return asyncio.run(run())


def openai_state() -> bytes:
    """The state that the OpenAI Agents SDK stores of a run in which one call was decided about."""
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall

    set_tracing_disabled(True)

    class Once(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            call = ResponseFunctionToolCall(
                type="function_call", id="fc", call_id="call_4711", name="refund", arguments='{"order": 4711}'
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    def refund(order: int) -> str:
        return f"refunded {order}"

    async def run() -> bytes:
        agent = Agent(name="Clerk", model=Once(), tools=[function_tool(refund, needs_approval=True)])
        state = (await Runner.run(agent, "Refund order 4711.")).to_state()
        [asked] = state.get_interruptions()
        state.reject(asked, rejection_message="not this month")
        return state.to_string().encode()

    return asyncio.run(run())


@pytest.mark.parametrize("history", [pydantic_history, openai_state])
def test_histories_of_other_libraries_go_in_too(
    history: Callable[[], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What they tell of calls and decisions is enough to fail where two copies of a call are."""
    stored, target = tmp_path / "history.json", tmp_path / "history.approval.yaml"
    stored.write_bytes(history())

    assert 0 == main(["reproduce", str(stored), "-o", str(target), *AGENTS]), capsys.readouterr().err
    scenario = load_scenario(target, root=tmp_path)
    assert scenario.title.startswith("A call of refund is ")
    assert ({"usable-after-refusal"}, set()) == (
        failing_on("meai==10.4", scenario),
        failing_on("meai==robust", scenario),
    )


def test_gated_tools_are_named_for_a_format_without_decisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result then stands for an approval."""
    messages = [
        {"role": "user", "content": "Refund order 4711."},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "refund", "arguments": '{"order": 4711}'}}
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "refunded 4711"},
        {"role": "assistant", "content": "It is refunded."},
    ]  # fmt: skip
    stored = tmp_path / "chat.json"
    stored.write_text(json.dumps(messages), encoding="utf-8")

    assert 1 == main(["reproduce", "--neighbours", "0", str(stored), "--agent", "meai==10.4"])
    assert "decide" not in capsys.readouterr().out
    assert 0 == main(["reproduce", "--neighbours", "0", str(stored), "--gated", "refund", "--agent", "meai==10.4"])
    assert "  - decide: {c1: approve}" in capsys.readouterr().out.splitlines()
    assert 2 == main(["reproduce", "--neighbours", "0", str(stored), "--gated", "refnd", "--agent", "meai==10.4"])
    assert "did you mean 'refund'?" in capsys.readouterr().err


def test_what_even_the_reference_agent_cannot_play_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario is wrong then, and no agent: here nobody stored what the calls gave, nor what was said of it."""
    messages = [
        {"role": role, "contents": [content]}
        for n in range(5)
        for role, content in (
            ("user", {"$type": "text", "text": f"Look at {n}."}),
            ("assistant", {"$type": "functionCall", "callId": f"{n}", "name": "look", "arguments": {"at": n}}),
        )
    ]
    stored = tmp_path / "odd.json"
    stored.write_text(json.dumps(messages), encoding="utf-8")
    code = main(["reproduce", str(stored), "--agent", "meai"])

    assert (2, "") == (code, (said := capsys.readouterr()).out)
    assert "cannot replay the conversation: scenario-exercised fails even on the agent reference" in said.err


def test_an_agent_without_native_scripts_is_named(
    paused_session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario is written all the same, and the reason stands at the end."""
    scenario, script = tmp_path / "session.approval.yaml", tmp_path / "session.py"
    main(["reproduce", str(paused_session), "-o", str(scenario), "--native", str(script), *AGENTS])
    *_, written, reason = capsys.readouterr().err.splitlines()

    assert f"scenario: {scenario}" == written
    assert reason.startswith("no native script: Unknown agent 'meai' in native")
    assert scenario.exists()
    assert not script.exists()


def test_the_native_script_is_of_the_failing_release(
    stored: ScenarioDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the same story in the framework's own API."""
    turns = (*stored.turns[:2], DraftTurn(send="Thank you", replies=(DraftReply(say="Done."),)))
    failing = FailingCheck(agent=TrialAgent("reference"), check="run-ends", variant=None)
    found = Reproduction(
        draft=replace(stored, turns=turns, vary=()), origin="", failing_check=failing, failing=["pydantic_ai==2.9.1"]
    )
    write_native_script(found, str(tmp_path / "found.py"))

    script = (tmp_path / "found.py").read_text(encoding="utf-8")
    assert '# dependencies = ["pydantic-ai-slim==2.9.1"]' in script.splitlines()
    assert "refund" in script
    assert f"native script: {tmp_path / 'found.py'}" in capsys.readouterr().err


def test_what_fails_nowhere_has_no_native_script(
    paused_session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing that it could show."""
    main(
        [
            "reproduce",
            str(paused_session),
            "--agent",
            "meai==robust",
            "--neighbours",
            "0",
            "--native",
            str(tmp_path / "x.py"),
        ]
    )

    assert "no native script: nothing fails that it could show" == capsys.readouterr().err.splitlines()[-1]


CHANGED = {
    "answered": {"$type": "functionCall", "callId": "c1", "name": "pay", "arguments": {"amount": 9999}},
    "asked": {"$type": "functionCall", "callId": "c1", "name": "pay", "arguments": {"amount": 5}},
}


def write_changed_copy(folder: Path) -> str:
    """A session in which the answer holds another call than its request; returns the path of its file."""
    answer = {"$type": "toolApprovalResponse", "requestId": "r1", "approved": True, "toolCall": CHANGED["answered"]}
    messages = [
        {"role": "user", "contents": [{"$type": "text", "text": "Pay 5."}]},
        {
            "role": "assistant",
            "contents": [{"$type": "toolApprovalRequest", "requestId": "r1", "toolCall": CHANGED["asked"]}],
        },
        {"role": "user", "contents": [answer]},
        {"role": "assistant", "contents": [CHANGED["answered"]]},
        {"role": "tool", "contents": [{"$type": "functionResult", "callId": "c1", "result": "paid 9999"}]},
        {"role": "assistant", "contents": [{"$type": "text", "text": "Paid."}]},
    ]
    path = folder / "changed.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return str(path)


def test_an_answer_with_a_changed_copy_is_handed_in_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The call of the answer runs in place of the one that was asked about (microsoft/agent-framework#7111)."""
    code = main(["reproduce", write_changed_copy(tmp_path), "--agent", "meai==10.9", "--agent", "meai==robust"])
    said = capsys.readouterr()

    assert 0 == code
    assert "arguments-as-approved fails on meai==10.9" in said.err.splitlines()
    assert "  - decide: {c1: {verdict: approve, shows: {amount: 9999}}}" in said.out.splitlines()


def test_an_agent_that_is_handed_no_copy_plays_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pydantic AI takes the id of a call, and nothing else of a request."""
    code = main(["reproduce", write_changed_copy(tmp_path), "--agent", "pydantic_ai", "--neighbours", "0"])
    said = capsys.readouterr()

    assert 1 == code
    assert "pydantic_ai: nothing fails" in said.err.splitlines()
    assert "  - decide: {c1: approve}" in said.out.splitlines()
