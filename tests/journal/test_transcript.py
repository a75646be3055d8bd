from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import Condition, Parameter
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.events import Event, Header, ModelAnswer
from pytest_approvals.journal.normalization import TranscriptPassage, build_placeholder_replacer, sort_passages
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import (
    Call,
    LetOracleStep,
    RestoreStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent

ONE_OF_TWO = """
    tool delete(path: string) always
    tool read(path: string) never
    send Delete both
    model c1 delete(path=a); c2 delete(path=b); c3 read(path=c)
    run c3 -> C
    pause c1, c2
    save
    restore
    approve c1
    reject c2 keep b
    go
    run c1 -> deleted a
    tell c2 rejected
    model Done.
    finish Done.
"""


def cut_before(kind: type[Event], events: list[Event]) -> list[Event]:
    return [*takewhile(lambda event: not isinstance(event, kind), events)]


def lines(text: str) -> list[str]:
    return Transcript.of(parse_notation(text)).render().splitlines()


class TestTranscript:
    def test_it_is_made_to_be_read(self) -> None:
        """Turns, a line an event, and below them what became of each call."""
        assert """\
turn 1
  caller  sends "Delete both"
  model   is asked "Delete both"
  model   calls c1 delete(path="a")
  model   calls c2 delete(path="b")
  model   calls c3 read(path="c")
  tool    c3 read(path="c") starts
  tool    c3 returns "C"
  agent   pauses for c1, c2

turn 2
  caller  approves c1
  caller  rejects c2: keep b
  tool    c1 delete(path="a") starts
  tool    c1 returns "deleted a"
  model   is told c1: "deleted a"
  model   is told c2: "rejected"
  model   is told c3: "C"
  model   says "Done."
  agent   finishes with "Done."

end
  run     ends

calls
  c1 delete(path="a"): asked → approved → ran → told "deleted a"
  c2 delete(path="b"): asked → rejected: keep b → not run → told "rejected"
  c3 read(path="c"): not gated → ran → told "C"
""" == Transcript.of(parse_notation(ONE_OF_TWO)).render()

    def test_a_journal_that_was_cut_off_is_told_as_far_as_it_goes(self) -> None:
        """A transcript needs no end."""
        assert [
            "turn 1",
            '  caller  sends "Delete both"',
            '  model   is asked "Delete both"',
            "",
            "end",
        ] == Transcript.of(cut_before(ModelAnswer, parse_notation(ONE_OF_TWO))).render().splitlines()

    def test_an_empty_journal_has_a_transcript(self) -> None:
        """Nothing happened, and that can be said."""
        assert "end\n" == Transcript.of([]).render()

    def test_what_happens_between_turns_is_told_in_the_next(self) -> None:
        """Stagings, cancellations and rewinds are told at the beginning of the next turn, or at the end."""
        found = lines("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5)
            pause c1
            save before
            approve c1
            stage
            go
            run c1 -> paid
            model Done.
            finish Done.
            restore before
            cancel
        """)

        assert ["turn 2", "  caller  approves c1", "  caller  puts the decision into the state"] == found[6:9]
        assert [
            "end",
            "  store   rewound to 'before'",
            "  caller  gives up what is pending",
            "  run     ends",
        ] == found[16:20]

    def test_each_fork_has_its_calls(self) -> None:
        """After a rewind a call may have another fate; both are told."""
        found = lines("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5)
            pause c1
            save before
            approve c1
            go
            run c1 -> paid
            model Done.
            finish Done.
            restore before
            reject c1
            go
            tell c1 no
            model Fine.
            finish Fine.
        """)

        assert [
            "calls",
            '  c1 pay(amount=5): asked → approved → ran → told "paid"',
            "",
            "calls after going back (1)",
            '  c1 pay(amount=5): asked → rejected → not run → told "no"',
        ] == found[-5:]

    def test_sessions_are_told_apart(self) -> None:
        """Turns and calls of a second session say so."""
        found = lines("""
            tool pay(amount: integer) never
            send Pay
            model c1 pay(amount=5)
            run c1 -> paid
            model Done.
            finish Done.
            session b
            send Pay
            model c1 pay(amount=6)
            run c1 -> paid
            model Done.
            finish Done.
        """)

        assert ["turn 1", "turn 2 of session b", "end", "calls", "calls of session b"] == [
            line for line in found if line and not line.startswith(" ")
        ]

    def test_turns_at_the_same_time_say_so(self) -> None:
        """What two overlapping turns do is told in the turn that it belongs to."""
        found = lines("""
            tool pay(amount: integer) always
            send Pay
            model c1 pay(amount=5); c2 pay(amount=6)
            pause c1, c2
            approve c1
            go
            start c1
            approve c2
            go
            start c2
            returns c2 six
            2: pause c2
            returns c1 five
            finish Done.
        """)

        headings = [line for line in found if line.startswith("turn")]

        assert ["turn 1", "turn 2", "turn 3, while turn 2 runs"] == headings

    def test_a_policy_that_is_asked_again_is_told_once(self) -> None:
        """How often a framework asks its policy in a turn differs from variant to variant."""
        found = lines("""
            tool pay(amount: integer) when amount > 10
            send Pay
            model c1 pay(amount=5)
            gate c1 no
            gate c1 no
            run c1 -> paid
            model Done.
            finish Done.
        """)

        assert 1 == sum("the policy" in line for line in found)


class TestValue:
    def test_transcripts_are_equal_where_their_texts_are(self) -> None:
        """A transcript equals another with the same text, and can be parsed from it."""
        one = Transcript.of(parse_notation(ONE_OF_TWO))

        assert Transcript.parse(one.render()) == one
        assert {one} == {one, Transcript.parse(str(one))}
        assert one != one.render()

    def test_differences_are_lines_with_their_surroundings(self) -> None:
        """What differs between two transcripts is said line by line."""
        one, other = (
            Transcript.of(parse_notation(text)) for text in (ONE_OF_TWO, ONE_OF_TWO.replace("finish Done", "finish X"))
        )

        assert ['-  agent   finishes with "Done."', '+  agent   finishes with "X."'] == [
            line for line in one.differences(other) if line[0] in "+-"
        ]
        assert [] == one.differences(one)

    def test_its_repr_is_its_text(self) -> None:
        """In a failing comparison pytest shows the text, not the object."""
        one = Transcript.of(parse_notation(ONE_OF_TWO))

        assert one.render() == repr(one)


class TestMadeUpValues:
    def test_placeholders_stand_for_them(self) -> None:
        """No value of Faker reaches a transcript, quoted or not, in arguments, results and messages."""
        text = """
            tool mail(to: string) always
            send Write to Zoë "Z" O'Hara
            model c1 mail(to=Zoë "Z" O'Hara)
            pause c1
            reject c1 not to Zoë "Z" O'Hara
            go
            tell c1 no
            model Done.
            finish Done.
        """
        events = parse_notation(text)
        header: Any = events[0]
        assert isinstance(header, Header)
        header.fakes = {'Zoë "Z" O\'Hara': "<name 1>"}

        rendered = Transcript.of(events).render()

        assert "O'Hara" not in rendered
        assert 'calls c1 mail(to="<name 1>")' in rendered
        assert "rejects c1: not to <name 1>" in rendered

    def test_the_longest_value_goes_first(self) -> None:
        """A value that begins like another one is replaced as a whole."""
        assert "<b> <a>" == build_placeholder_replacer({"Ann": "<a>", "Ann Lee": "<b>"})("Ann Lee Ann")


class TestReadingOrder:
    def test_what_runs_at_the_same_time_is_told_call_by_call(self) -> None:
        """Executions that overlap are told one after the other, in the order in which the model made the calls."""
        overlapping = """
            tool read(path: string) never
            send Read
            model c1 read(path=a); c2 read(path=b)
            start c2
            start c1
            returns c1 A
            returns c2 B
            model Done.
            finish Done.
        """
        in_turn = """
            tool read(path: string) never
            send Read
            model c1 read(path=a); c2 read(path=b)
            run c1 -> A
            run c2 -> B
            model Done.
            finish Done.
        """

        assert lines(in_turn) == lines(overlapping)

    def test_questions_to_the_model_divide(self) -> None:
        """What comes before a question of the same conversation stays before it."""
        passages = [passage("b", 2), passage("a", 1), passage("asked"), passage("c", 1)]

        assert ["a", "b", "asked", "c"] == describe(passages)

    def test_nested_agents_are_told_one_after_the_other(self) -> None:
        """Two agents that run at the same time are told call by call, each in its own order."""
        passages = [
            passage("o2 asked", 2),
            passage("o1 asked", 1),
            passage("o2 tool", 2, 1),
            passage("o1 second tool", 1, 2),
            passage("o1 first tool", 1, 1),
            passage("o1 answers", 1),
            passage("o2 answers", 2),
        ]

        assert [
            "o1 asked",
            "o1 first tool",
            "o1 second tool",
            "o1 answers",
            "o2 asked",
            "o2 tool",
            "o2 answers",
        ] == describe(passages)


def passage(sentence: str, *place: int) -> TranscriptPassage:
    return TranscriptPassage(place=place, sentences=(sentence,))


def describe(passages: list[TranscriptPassage]) -> list[str]:
    return [sentence for each in sort_passages(passages) for sentence in each.sentences]


# --- the reference agent in all variants ------------------------------------------------------------------------------

PATH = {"path": Parameter()}


def call(label: str, path: str, tool: str = "delete", given: str | None = None) -> Call:
    return Call(label=label, id=given or label, tool=tool, arguments={"path": path})


def story(name: str, tools: tuple[Tool, ...], *replies: ScriptedReply, **more: Any) -> Scenario:
    return Scenario(id=f"tests/{name}", title=name, tools=tools, agents={"main": Script(replies=replies)}, **more)


DELETE = Tool(name="delete", parameters=PATH, approval="always", behaviours=(ToolBehaviour(returns="deleted {path}"),))
READ = Tool(name="read", parameters=PATH, behaviours=(ToolBehaviour(returns="text of {path}"),))
SECRET = Tool(name="secret", parameters=PATH, approval=Condition(argument="path", starts_with="secret"))
BREAK = Tool(name="break", parameters=PATH, approval="always", behaviours=(ToolBehaviour(raises="broken"),))
ASK = Tool(name="ask", runs="helper", parameters={"input": Parameter()})
HELPERS = Tool(name="wipe", parameters=PATH, approval="always", agent="helper")

GOING_BACK = "tests/going-back"

STORIES = [
    story(
        "one-of-two",
        (DELETE, READ),
        ScriptedReply(say="I will.", calls=(call("c1", "a"), call("c2", "b"), call("c3", "c", "read"))),
        ScriptedReply(say="Done."),
        caller=(
            TurnStep(text="Go"),
            TurnStep(answers=(ScriptedDecision(label="c2", verdict="reject", reason="no"),)),
            LetOracleStep(),
        ),
    ),
    story(
        "policies-and-errors",
        (SECRET, BREAK),
        ScriptedReply(calls=(call("c1", "plain", "secret"), call("c2", "secret", "secret"), call("c3", "x", "break"))),
        ScriptedReply(say="Done."),
    ),
    story(
        "an-id-comes-again",
        (DELETE,),
        ScriptedReply(calls=(call("c1", "a"),)),
        ScriptedReply(calls=(call("c1#2", "b", given="c1"),)),
        ScriptedReply(say="Done."),
    ),
    story(
        GOING_BACK.removeprefix("tests/"),
        (DELETE,),
        ScriptedReply(calls=(call("c1", "a"),)),
        ScriptedReply(say="Done."),
        caller=(
            TurnStep(text="Go"),
            SaveStep(name="before"),
            TurnStep(answers=(ScriptedDecision(label="c1"),)),
            RestoreStep(name="before"),
            TurnStep(answers=(ScriptedDecision(label="c1", verdict="reject"),)),
        ),
    ),
    Scenario(
        id="tests/nested",
        title="nested",
        tools=(ASK, HELPERS),
        agents={
            "main": Script(
                replies=(
                    ScriptedReply(
                        calls=(
                            Call(label="o1", id="o1", tool="ask", arguments={"input": "first"}),
                            Call(label="o2", id="o2", tool="ask", arguments={"input": "second"}),
                        )
                    ),
                    ScriptedReply(say="Done."),
                )
            ),
            "helper": Script(
                by_prompt={
                    "first": (ScriptedReply(calls=(call("c1", "a", "wipe"),)), ScriptedReply(say="one")),
                    "second": (ScriptedReply(calls=(call("c1", "b", "wipe"),)), ScriptedReply(say="two")),
                }
            ),
        },
    ),
]

VARIANTS = [
    Variant(serialize="copy"),
    Variant(serialize="json", source="restored"),
    Variant(serialize="json", source="rebuilt", stream=True),
    Variant(stream=True, chunking="split"),
    Variant(serialize="json", history="append", source="restored"),
    Variant(serialize="native.sqlite", source="restored"),
]


def played(scenario: Scenario, variant: Variant) -> list[Event]:
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    return asyncio.run(run_scenario(scenario, variant, source)).events


class TestVariants:
    @pytest.mark.parametrize(
        ("scenario", "variant"),
        [
            pytest.param(scenario, variant, id=f"{scenario.id}-{variant.id}")
            for scenario in STORIES
            for variant in VARIANTS
            # A durable store does not go back: it refuses the second decision.
            if not (scenario.id == GOING_BACK and variant.serialize.startswith("native."))
        ],
    )
    def test_a_correct_agent_has_one_transcript(self, scenario: Scenario, variant: Variant) -> None:
        """Every variant of a correct agent has the transcript of the base variant, and it tells of calls that ran."""
        base = Transcript.of(played(scenario, Variant()))

        assert base == Transcript.of(played(scenario, variant))
        assert " → ran" in base.render()
