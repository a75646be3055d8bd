from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import pytest

from pytest_approvals.agent_side.contract.types import Decision, Outcome, Parameter
from pytest_approvals.journal.events import CallerStuck, DecisionMade, ModelAnswer, StepSkipped, ToolStart, TurnEnd
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.runner import caller
from pytest_approvals.runner.oracles import first_of, reject_all, scripted
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedFailure,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

JSON = Variant(serialize="json", source="restored")
SEND = TurnStep(text="Go ahead.")
DONE = ScriptedReply(say="Done.")


def pays(*amounts: int, first: int = 1) -> ScriptedReply:
    calls = (
        Call(label=f"c{number}", id=f"c{number}", tool="pay", arguments={"amount": amount})
        for number, amount in enumerate(amounts, first)
    )
    return ScriptedReply(calls=tuple(calls))


class OneTurnAtATime(ReferenceAgent):
    """An agent whose turns wait for each other."""

    lock = asyncio.Lock()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        async with self.lock:
            return await super().turn(text, decisions, stream=stream)


def ran(run: RecordedRun) -> list[Any]:
    return [event.arguments["amount"] for event in run.events if isinstance(event, ToolStart)]


def outcomes(run: RecordedRun) -> list[str]:
    return [event.outcome for event in run.events if isinstance(event, TurnEnd)]


class WithoutReasons(ReferenceAgent):
    """Takes a rejection, and no reason with it."""

    capabilities = ReferenceAgent.capabilities - {"reject_reason"}
    missing: ClassVar[Mapping[str, str]] = {**ReferenceAgent.missing, "reject_reason": "a decision is a boolean"}


def decided(run: RecordedRun) -> list[tuple[str | None, str, str]]:
    return [(event.label, event.verdict, event.oracle) for event in run.events if isinstance(event, DecisionMade)]


class TestDecisions:
    def test_without_a_script_the_oracle_answers(self, story: Story, played: Played) -> None:
        """A story without a caller sends its prompt and lets the oracle answer until the end."""
        run = played(story(), oracle=reject_all("no"))

        assert [("c1", "reject", "reject_all('no')")] == decided(run)
        assert [] == ran(run)

    def test_an_oracle_gives_no_reason_to_an_agent_that_takes_none(self, story: Story, played: Played) -> None:
        """What is left of its answer is the rejection."""
        run = played(story(), oracle=reject_all("no"), agent=WithoutReasons)

        assert [("reject", None)] == [(one.verdict, one.reason) for one in run.events if isinstance(one, DecisionMade)]

    def test_an_oracle_without_an_answer_rejects(self, story: Story, played: Played) -> None:
        """A missing answer is a rejection, and the journal says that it was missing."""
        run = played(story(), oracle=scripted({}))

        (decision,) = [event for event in run.events if isinstance(event, DecisionMade)]
        assert ("reject", True) == (decision.verdict, decision.missing)

    def test_each_answer_goes_to_its_call(self, story: Story, played: Played) -> None:
        """A script's answers reach the calls that they name, in any order."""
        answers = (ScriptedDecision(label="c2"), ScriptedDecision(label="c1", verdict="reject"))
        run = played(story(pays(1, 2), DONE, caller=(SEND, TurnStep(answers=answers))))

        assert [2] == ran(run)

    def test_what_the_script_leaves_open_the_oracle_answers(self, story: Story, played: Played) -> None:
        """After the script, the oracle answers what is still pending."""
        run = played(story(pays(1, 2), DONE, caller=(SEND, TurnStep(answers=(ScriptedDecision(label="c2"),)))))

        assert [("c2", "approve", "script"), ("c1", "approve", "approve_all()")] == decided(run)

    def test_a_caller_who_left_answers_nothing(self, story: Story, played: Played) -> None:
        """After `leave`, nobody answers, and the run ends with the request pending."""
        run = played(story(caller=(SEND, LeaveStep())))

        end = run.events[-1].to_dict()
        assert ("left", ["c1"]) == (end["how"], [request["label"] for request in end["pending"]])

    def test_an_answer_to_a_call_that_never_surfaced_is_skipped(self, story: Story, played: Played) -> None:
        """An answer that cannot be addressed is recorded as skipped, and its step is not sent as an empty turn."""
        run = played(story(caller=(TurnStep(text="hi", session=""), TurnStep(answers=(ScriptedDecision(label="c9"),)))))

        (skipped,) = [event for event in run.events if isinstance(event, StepSkipped)]
        assert ("c9", "no request about this call has surfaced") == (skipped.label, skipped.why)
        assert ["paused", "finished"] == outcomes(run)

    def test_a_call_that_was_never_asked_can_be_approved(self, story: Story, played: Played) -> None:
        """An answer about a call that needs no approval is handed over as a forged request."""
        looks = ScriptedReply(calls=(Call(label="c1", id="c1", tool="look", arguments={"what": "x"}),))
        run = played(
            story(looks, pays(1, first=2), DONE, caller=(SEND, TurnStep(answers=(ScriptedDecision(label="c1"),))))
        )

        assert [(None, "c1")] == [(event.q, event.id) for event in run.events if isinstance(event, DecisionMade)][:1]
        assert ["paused", "failed", "finished"] == outcomes(run)

    def test_an_unknown_request_can_be_named(self, story: Story, played: Played) -> None:
        """A decision can name a request id that was never given."""
        run = played(story(caller=(SEND, TurnStep(answers=(ScriptedDecision(unknown_id="nope"),)))))

        assert ["paused", "failed", "finished"] == outcomes(run)
        assert [5] == ran(run)

    def test_a_malformed_address_is_handed_over_verbatim(self, story: Story, played: Played) -> None:
        """A value in place of a request is recorded and refused by the reference agent."""
        run = played(story(caller=(SEND, TurnStep(answers=(ScriptedDecision(malformed_address=True, address=[]),)))))

        assert {"address": []} == next(event.raw for event in run.events if isinstance(event, DecisionMade))
        assert ["paused", "failed", "finished"] == outcomes(run)

    def test_the_oracle_gives_up_when_nothing_moves(self, story: Story, played: Played) -> None:
        """Requests that stay after every answer are reported as stuck, not answered forever."""
        malformed = first_of(scripted({"c1": ScriptedDecision(verdict="raw", raw="yes")}))
        run = played(story(), oracle=malformed)

        assert [3] == [event.rounds for event in run.events if isinstance(event, CallerStuck)]

    def test_a_story_may_begin_with_a_signal(self, story: Story, played: Played) -> None:
        """What waits for it later does not wait, and the journal begins as any other."""
        run = played(story(caller=(SignalStep(name="bell"), SEND)))

        assert ["header", "agent.start", "caller.signal"] == [event.kind for event in run.events[:3]]


class TestState:
    def test_a_rewound_session_tells_its_story_again(self, story: Story, played: Played) -> None:
        """After a rewind the model says again what it said then, and the call may be decided otherwise."""
        caller = (SEND, SaveStep(name="asked"), TurnStep(answers=(ScriptedDecision(label="c1", verdict="reject"),)))
        caller += (RestoreStep(name="asked"), TurnStep(answers=(ScriptedDecision(label="c1"),)))
        run = played(story(caller=caller), JSON)

        assert ["Done.", "Done."] == [event.say for event in run.events if isinstance(event, ModelAnswer) if event.say]
        assert [5] == ran(run)

    def test_staged_decisions_survive_a_save(self, story: Story, played: Played) -> None:
        """A decision that was staged and saved takes effect when the session continues."""
        run = played(story(caller=(SEND, StageStep(answers=(ScriptedDecision(label="c1"),)), TurnStep())), JSON)

        assert [5] == ran(run)
        assert ["paused", "finished"] == outcomes(run)

    @pytest.mark.parametrize("variant", [Variant(), JSON], ids=["live", "json"])
    def test_the_oracle_leaves_staged_decisions_alone(self, story: Story, played: Played, variant: Variant) -> None:
        """What was put into the state is not decided again; the next turn takes it."""
        staged = StageStep(answers=(ScriptedDecision(label="c1", verdict="reject"),))
        run = played(story(caller=(SEND, staged)), variant)

        assert ["reject"] == [event.verdict for event in run.events if isinstance(event, DecisionMade)]
        assert ["paused", "finished"] == outcomes(run)

    @pytest.mark.parametrize("variant", [Variant(), JSON], ids=["live", "json"])
    def test_the_oracle_answers_what_is_not_staged(self, story: Story, played: Played, variant: Variant) -> None:
        """Of two requests, one is answered in the state and the other one by the oracle, together in one turn."""
        staged = StageStep(answers=(ScriptedDecision(label="c1", verdict="reject"),))
        run = played(story(pays(5, 6), DONE, caller=(SEND, staged)), variant)

        assert ["c1", "c2"] == [event.label for event in run.events if isinstance(event, DecisionMade)]
        assert [6] == ran(run)

    def test_a_tool_can_be_gone_after_a_restart(self, story: Story, played: Played) -> None:
        """A restart without a tool builds an agent that does not have it."""
        run = played(
            story(caller=(SEND, RestartStep(without=("pay",)), TurnStep(answers=(ScriptedDecision(label="c1"),)))), JSON
        )

        assert [] == ran(run)

    def test_held_back_tools_come_with_a_restart(self, story: Story, played: Played) -> None:
        """A tool that is held back is there only after the restart that brings it."""
        caller = (SEND, RestartStep(with_tools=("look",)), TurnStep(answers=(ScriptedDecision(label="c1"),)))
        run = played(story(caller=caller, held_back=("look",)), JSON)

        starts = [event.to_dict()["tools"] for event in run.events if event.kind == "agent.start"]
        assert [["pay"], ["pay", "look"]] == starts

    def test_a_tool_can_take_something_else_after_a_restart(self, story: Story, played: Played) -> None:
        """A restart with other parameters builds an agent with them, and the journal says so from then on."""
        others = {"pay": {"amount": Parameter(type="integer"), "to": Parameter()}}
        run = played(
            story(caller=(SEND, RestartStep(parameters=others), TurnStep(answers=(ScriptedDecision(label="c1"),)))),
            JSON,
        )

        starts = [event.to_dict().get("parameters") for event in run.events if event.kind == "agent.start"]
        assert [None, {"amount", "to"}] == [one and set(one["pay"]) for one in starts[:2]]
        assert [] == ran(run)

    def test_an_agent_can_have_another_name_after_a_restart(self, story: Story, played: Played) -> None:
        """A restart with other names builds an agent with them, and the journal says so until they are taken back."""
        run = played(
            story(
                caller=(
                    SEND,
                    RestartStep(renamed={"main": "cashier"}),
                    TurnStep(answers=(ScriptedDecision(label="c1", verdict="approve"),)),
                    RestartStep(renamed={"main": "main"}),
                    TurnStep(text="Thank you"),
                )
            ),
            JSON,
        )

        starts = [event.to_dict().get("renamed") for event in run.events if event.kind == "agent.start"]
        # The run ends with an agent that only lists what is pending.
        assert [None, {"main": "cashier"}, None] == starts[:3]
        assert [5] == ran(run)

    def test_what_is_pending_can_be_given_up(self, story: Story, played: Played) -> None:
        """After `cancel` nothing is pending."""
        run = played(story(caller=(SEND, CancelStep(), TurnStep(text="And now?"))), JSON)

        assert [] == ran(run)
        assert ["paused", "finished"] == outcomes(run)

    def test_a_history_can_be_trimmed_while_a_request_is_pending(self, story: Story, played: Played) -> None:
        """Trimming leaves a pending request answerable."""
        run = played(story(caller=(SEND, TrimStep(keep=1), TurnStep(answers=(ScriptedDecision(label="c1"),)))), JSON)

        assert [5] == ran(run)

    @pytest.mark.parametrize(("where", "amounts"), [("every", [7]), ("shown", [7]), ("hidden", [5])])
    def test_what_was_saved_can_be_changed(
        self, story: Story, played: Played, where: Literal["every", "shown", "hidden"], amounts: list[int]
    ) -> None:
        """The latest save says something else when it is restored: where a user sees it, or only elsewhere."""
        rewrite = RewriteStep(old='"amount": 5', new='"amount": 7', where=where)
        run = played(
            story(caller=(SEND, rewrite, TurnStep(answers=(ScriptedDecision(label="c1"),)), LeaveStep())), JSON
        )

        assert amounts == ran(run)

    def test_what_was_saved_can_be_changed_after_it_was_restored(self, story: Story, played: Played) -> None:
        """An agent that has only been restarted does not go on with what was saved before the change."""
        rewrite = RewriteStep(old='"amount": 5', new='"amount": 7')
        approve = TurnStep(answers=(ScriptedDecision(label="c1"),))
        run = played(story(caller=(SEND, RestartStep(), rewrite, approve, LeaveStep())), JSON)

        assert [7] == ran(run)
        assert [] == find_violations(run.events)

    def test_going_back_the_caller_holds_what_was_shown_then(self, story: Story, played: Played) -> None:
        """A call that asked again has two requests, and the first one is open where it was saved."""
        plain = story()
        tools = tuple(replace(tool, behaviours=(ToolBehaviour(asks_again="Really?"),)) for tool in plain.tools)
        approve = TurnStep(answers=(ScriptedDecision(label="c1"),))
        caller = (SEND, SaveStep(name="first"), approve, RestoreStep(name="first"), approve, LeaveStep())
        run = played(replace(plain, tools=tools, caller=caller), Variant(serialize="json", source="held"))

        assert ["paused", "paused", "paused"] == outcomes(run)

    def test_what_was_not_saved_cannot_be_changed(self, story: Story, played: Played) -> None:
        """If the state is not text, or does not say so, the step is skipped, and the journal says why."""
        caller = (SEND, RewriteStep(old="nowhere", new="somewhere"), LeaveStep())
        runs = [played(story(caller=caller)), played(story(caller=caller), JSON)]

        assert 2 * [["nothing that was saved says 'nowhere'"]] == [
            [event.why for event in run.events if isinstance(event, StepSkipped)] for run in runs
        ]

    def test_sessions_are_told_apart(self, story: Story, played: Played) -> None:
        """Two sessions play the same script, each from its start, and decisions reach their own."""
        caller: tuple[Step, ...] = (TurnStep(text="one"), TurnStep(text="two", session="b"))
        caller += (TurnStep(answers=(ScriptedDecision(label="c1", verdict="reject"),), session="b"), LetOracleStep())
        run = played(story(caller=caller))

        assert [""] == [event.session for event in run.events if isinstance(event, ToolStart)]
        assert ["", "b", "b", ""] == [event.session for event in run.events if isinstance(event, TurnEnd)]


class TestTogether:
    def test_turns_overlap_where_a_tool_holds_the_first(self, story: Story, played: Played) -> None:
        """The second of two turns begins while the first is held in a tool, and a signal lets both end."""
        waits = Tool(
            name="pay",
            parameters={"amount": Parameter(type="integer")},
            approval="always",
            behaviours=(ToolBehaviour(waits_for="go"),),
        )
        both = (
            TurnStep(answers=(ScriptedDecision(label="c1"),)),
            TurnStep(text="b", session="b"),
            SignalStep(name="go"),
        )
        run = played(story(caller=(SEND, TogetherStep(steps=both)), tools=(waits,)))

        turns = [f"{event.kind} {event.to_dict()['turn']}" for event in run.events if event.kind.startswith("turn.")]
        assert ["turn.start 2", "turn.start 3", "turn.end 3", "turn.end 2"] == turns[2:6]

    def test_a_turn_that_waits_for_another_one_does_not_hold_the_signal_back(
        self, monkeypatch: pytest.MonkeyPatch, story: Story, played: Played
    ) -> None:
        """An agent that takes one turn after the other is right to: the signal is sent, and both turns end."""
        monkeypatch.setattr(caller, "QUEUE_TIMEOUT", 0.1)
        waits = Tool(
            name="pay",
            parameters={"amount": Parameter(type="integer")},
            approval="always",
            behaviours=(ToolBehaviour(waits_for="go"),),
        )
        answer = TurnStep(answers=(ScriptedDecision(label="c1"),))
        both = (answer, TurnStep(text="And now?"), SignalStep(name="go"))
        replies = (pays(5), DONE, DONE)

        run = played(story(*replies, caller=(SEND, TogetherStep(steps=both)), tools=(waits,)), agent=OneTurnAtATime)

        assert ["paused", "finished", "finished"] == outcomes(run)

    def test_two_answers_at_once_run_on_two_copies(self, story: Story, played: Played) -> None:
        """If the state is saved between turns, two turns at the same time restore the same save."""
        both = (TurnStep(answers=(ScriptedDecision(label="c1"),)), TurnStep(answers=(ScriptedDecision(label="c1"),)))
        run = played(story(caller=(SEND, TogetherStep(steps=both))), JSON)

        names = [event.to_dict()["name"] for event in run.events if event.kind == "store.restore"]
        assert ["save-1", "save-1"] == names[:2]
        assert [5, 5] == ran(run)


class TestModel:
    def test_a_failure_is_recorded_and_the_next_reply_waits(self, story: Story, played: Played) -> None:
        """A model that fails spends that reply; going on gets the next one."""
        run = played(story(ScriptedReply(failure=ScriptedFailure(status=500)), DONE, caller=(SEND, TurnStep())))

        assert ["failed", "finished"] == outcomes(run)

    def test_a_stream_breaks_after_its_chunks(self, story: Story, played: Played) -> None:
        """A reply that breaks shows its first pieces, and its calls were never made."""
        broken = ScriptedReply(say="Let me", calls=pays(9).calls, failure=ScriptedFailure(status=0, after_chunks=1))
        run = played(story(broken, pays(5), DONE, caller=(SEND, TurnStep())), Variant(stream=True))

        assert [1] == [event.to_dict()["shown"] for event in run.events if event.kind == "model.failure"]
        assert [5] == ran(run)

    @pytest.mark.parametrize("verdict", ["approve", "reject"])
    def test_the_provider_runs_what_was_approved(self, story: Story, played: Played, verdict: Any) -> None:
        """A hosted call runs at the provider, once it was approved, and nowhere else."""
        search = Tool(name="search", parameters={"q": Parameter()}, approval="always", kind="hosted_mcp", server="web")
        asks = ScriptedReply(calls=(Call(label="m1", id="m1", tool="search", arguments={"q": "x"}),))
        run = played(
            story(
                asks,
                DONE,
                tools=(search,),
                caller=(SEND, TurnStep(answers=(ScriptedDecision(label="m1", verdict=verdict),))),
            )
        )

        expected = ["provider"] if verdict == "approve" else []
        assert expected == [event.by for event in run.events if isinstance(event, ToolStart)]
        assert "Done." == run.output

    def test_the_provider_runs_nothing_without_an_object(self, story: Story, played: Played) -> None:
        """Arguments that are no JSON object are an error of the call, not a call without arguments."""
        search = Tool(name="search", parameters={"q": Parameter()}, approval="always", kind="hosted_mcp", server="web")
        asks = ScriptedReply(calls=(Call(label="m1", id="m1", tool="search", arguments="nonsense"),))
        run = played(
            story(asks, DONE, tools=(search,), caller=(SEND, TurnStep(answers=(ScriptedDecision(label="m1"),))))
        )

        assert [] == [event for event in run.events if isinstance(event, ToolStart)]
        reported = [hosted for event in run.events if isinstance(event, ModelAnswer) for hosted in event.hosted]
        assert ["the arguments are no JSON object"] == [hosted["error"] for hosted in reported]

    def test_an_ungated_hosted_call_runs_with_its_reply(self, story: Story, played: Played) -> None:
        """A hosted call that needs no approval is run by the provider before the reply is given."""
        search = Tool(name="search", parameters={"q": Parameter()}, kind="hosted_mcp", server="web")
        asks = ScriptedReply(say="Found it.", calls=(Call(label="m1", id="m1", tool="search", arguments={"q": "x"}),))
        run = played(story(asks, tools=(search,)))

        assert ["provider"] == [event.by for event in run.events if isinstance(event, ToolStart)]

    def test_sub_agents_play_their_own_scripts(self, story: Story, played: Played) -> None:
        """Two conversations with one agent are separate, and their calls are labelled by the calls that run them."""
        asks = {"input": Parameter()}
        delegate = Tool(name="delegate", parameters=asks, runs="helper")
        pay = Tool(name="pay", parameters={"amount": Parameter(type="integer")}, approval="always", agent="helper")
        outer = tuple(
            Call(label=f"o{n}", id=f"o{n}", tool="delegate", arguments={"input": f"task {n}"}) for n in (1, 2)
        )
        scripts = {
            "main": Script(replies=(ScriptedReply(calls=outer), DONE)),
            "helper": Script(by_prompt={f"task {n}": (pays(n), ScriptedReply(say=f"Helped {n}.")) for n in (1, 2)}),
        }
        run = played(story(agents=scripts, tools=(delegate, pay)))

        assert ["o1/c1", "o2/c1"] == sorted(str(label) for label, *_ in decided(run))
        assert [1, 2] == sorted(
            run_of for run_of in (e.arguments.get("amount") for e in run.events if isinstance(e, ToolStart)) if run_of
        )
        assert "Done." == run.output
