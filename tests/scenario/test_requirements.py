"""What a scenario needs an agent to be able to do."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.scenario import requirements
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content, required_capabilities

TOOLS = """
  pay: {approval: always, parameters: {amount: integer}}
  look: {parameters: {at: string?}}
  ask: {runs: helper}
  helper/wipe: {approval: always, parameters: {path: string}}
"""
ONE = "- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n  - say: Paid.\n  - say: Bye."
TWO = (
    "- calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 7}}]\n"
    "  - say: Paid.\n  - say: Bye."
)
PLAIN = Variant()


def story(model: str = ONE, caller: str = "", *, tools: str = "", more: str = "") -> Scenario:
    """A scenario of these replies, these steps (without the first message) and these further tools and keys."""
    steps = f"caller: [{{send: Pay}}, {caller}]\n" if caller else ""
    helper = "agents: {helper: {model: [{calls: [{id: c1, tool: wipe, arguments: {path: a}}]}, {say: Wiped.}]}}\n"
    text = f"title: A story\ntools:{TOOLS}{tools}\n{helper}model:\n  {model}\n{steps}{more}"
    return parse_scenario(text, name="family/story", path="story.approval.yaml")


def called(written: str, *, more: str = "") -> Scenario:
    """A scenario whose model calls a tool `new` in this writing."""
    return story("- calls: [{id: c1, tool: new}]\n  - say: Done.", tools=f"  new: {written}", more=more)


CONTENT: list[tuple[str, Scenario]] = [
    ("reasoning", story("- {thinks: Hm, say: Done.}")),
    ("reasoning_between_calls", story("- {say: So., calls: [{thinks: Hm, id: c1, tool: look}]}\n  - say: Done.")),
    ("redacted_reasoning", story("- {thinks: Hm, redacted: true, say: Done.}")),
    ("go_on_without_answer", story(caller="{go_on: true}")),
    ("message_while_pending", story(caller="{send: And now?}")),
    ("message_with_answers", story(caller="{send: Quick, decide: {c1: approve}}")),
    ("partial_answers", story(TWO, "{decide: {c2: approve}}, {decide: {c1: approve}}")),
    ("reject_reason", story(caller="{decide: {c1: {reject: too much}}}")),
    ("goes_on_after_rejection", story(caller="{decide: {c1: reject}}, {send: And now?}")),
    ("goes_on_after_rejection", story(caller="{stage: {c1: reject}}, {go_on: true}, {send: And now?}")),
    ("goes_on_after_rejection", story(caller="{decide: {c1: reject}}", more="expect: {output: Paid.}")),
    (
        "goes_on_after_rejection",
        story(ONE.replace("  - say: Paid.", "  - calls: [{id: c2, tool: look}]"), "{decide: {c1: never}}"),
    ),
    ("edit", story(caller="{decide: {c1: {edit: {amount: 6}}}}")),
    ("edit_tool", story(caller="{decide: {c1: {edit: {}, tool: look}}}")),
    ("always", story(caller="{decide: {c1: always}}")),
    ("never", story(caller="{decide: {c1: never}}")),
    ("stage", story(caller="{stage: {c1: approve}}, {go_on: true}")),
    ("cancel", story(caller="{cancel: true}")),
    ("trim", story(caller="{trim: 2}")),
    ("hang_up", story(caller="{decide: {c1: approve}, hangs_up: started c1}")),
    ("crash", story(caller="{decide: {c1: approve}, crashes: before c1}")),
    ("fresh", story(caller="{decide: {c1: approve}, crashes: before c1}")),
    ("stores_in_turns", story(caller="{decide: {c1: approve}, crashes: write}")),
    ("crash", story(caller="{decide: {c1: approve}, loses: write}")),
    ("fresh", story(caller="{decide: {c1: approve}, reads: stale}")),
    ("stores_in_turns", story(caller="{decide: {c1: approve}, fails_once: write}")),
    ("malformed_verdict", story(caller="{decide: {c1: {raw: 5}}}")),
    ("runs_beside_pending", story(TWO, "{decide: {c1: approve}, hangs_up: started c1}")),
    ("malformed_address", story(caller="{decide: [{malformed: 5, verdict: approve}]}")),
    ("unknown_request", story(caller="{decide: [{unknown: r9, verdict: approve}]}")),
    ("tampered_request", story(caller="{decide: {c1: {verdict: approve, shows: {amount: 1}}}}")),
    ("contradiction", story(caller="{decide: [{c1: approve}, {c1: reject}]}")),
    (
        "repeated_decision",
        story(TWO, "{decide: {c1: approve}}, {decide: {c1: approve}}"),
    ),
    ("late_decision", story(caller="{decide: {c1: approve}}, {decide: {c1: approve}}")),
    ("simultaneous", story(caller="{together: [{decide: {c1: approve}}, {decide: {c1: approve}}]}")),
    ("parallel", story(TWO)),
    ("text_with_calls", story("- say: Paying.\n    calls: [{id: c1, tool: pay, arguments: {amount: 5}}]")),
    (
        "repeated_ids",
        story(f"{ONE}\n  - calls: [{{id: c1, tool: pay, arguments: {{amount: 6}}, repeats: true}}]"),
    ),
    ("missing_ids", story("- calls: [{id: null, label: x1, tool: look}]")),
    ("unknown_tools", story("- calls: [{id: c1, tool: lok, unknown_tool: true}]")),
    ("broken_arguments", story("- calls: [{id: c1, tool: pay, arguments: '{'}]")),
    ("large_integers", story("- calls: [{id: c1, tool: pay, arguments: {amount: 9007199254740993}}]")),
    ("large_integers", story(caller="{decide: {c1: {edit: {amount: -9007199254740993}}}}")),
    ("large_integers", called("{returns: [{id: 9007199254740993}]}")),
    ("model_failure", story("- fails: 500")),
    ("tool_errors", called("{raises: gone}")),
    ("non_text_results", called("{returns: 5}")),
    (
        "concurrent_tools",
        story(
            "- calls: [{id: c1, tool: new}, {id: c2, tool: look}]",
            tools="  new: {waits_for: ended c2}",
        ),
    ),
    ("asks_again", called("{asks_again: Sure?}")),
    ("nested", story("- calls: [{id: o1, tool: ask, arguments: {input: Wipe}}]")),
    (
        "nested_parallel",
        story(
            "- calls: [{id: o1, tool: ask, arguments: {input: a}}, {id: o2, tool: ask, arguments: {input: b}}]",
            more="equal_arguments: true",
        ),
    ),
    (
        "nested_gate",
        story(
            "- calls: [{id: o1, tool: new, arguments: {input: a}}]",
            tools="  new: {approval: always, parameters: {input: string}, runs: helper}",
        ),
    ),
    ("hand_offs", called("{hands_over_to: clerk}")),
    ("hand_off_gate", called("{hands_over_to: clerk, approval: always}")),
    ("structured_answer", story("- answer: {total: 5}", more="answer: {total: integer}")),
    ("text_with_answer", story("- {say: It is 5., answer: {total: 5}}", more="answer: {total: integer}")),
    ("conditional_approval", called("{approval: {argument: at, equals: x}, parameters: {at: string?}}")),
    (
        "slow_conditions",
        called(
            "{approval: {answers: [true], waits_for: it}}",
            more="caller: [{together: [{send: Go}, {signal: it}]}]",
        ),
    ),
    ("raising_conditions", called("{approval: {raises: down}}")),
    ("mcp", called("{kind: mcp, server: s}")),
    ("annotations", called("{kind: mcp, server: s, approval: by_annotations}")),
    (
        "tools_change",
        story(tools="  new: {kind: mcp, server: s}", caller="{restart: {annotations: {new: {readOnlyHint: true}}}}"),
    ),
    ("elicitation", called("{kind: mcp, server: s, elicits: {message: How?, form: {how: string}}}")),
    ("elicitation_url", called("{kind: mcp, server: s, elicits: {message: Look, url: 'https://a.invalid'}}")),
    ("hosted_mcp", called("{kind: hosted_mcp, server: s}")),
    ("limit_model_replies", story(more="limits: {model_replies: 1}")),
    ("limit_tool_calls", story(more="limits: {tool_calls: 1}")),
    ("fresh", story(caller="{restart: {fresh: true}}")),
    ("rewind", story(caller="{save: here}, {decide: {c1: approve}}, {restore: here}")),
    ("tools_change", story(caller="{restart: {without: [look]}}")),
    ("tools_change", story(caller="{restart: {parameters: {pay: {amount: number}}}}")),
    ("main_renamed", story(caller="{restart: {renamed: {main: cashier}}}")),
    ("sub_agent_renamed", story(caller="{restart: {renamed: {helper: assistant}}}")),
    (
        "hand_off_renamed",
        story(tools="  to_clerk: {hands_over_to: clerk}", caller="{restart: {renamed: {clerk: cashier}}}"),
    ),
    ("sessions", story(caller="{send: Pay, session: bob}")),
    ("answer.restored", story(caller="{decide: {c1: {verdict: approve, source: restored}}}")),
    ("answer.rebuilt", story(caller="{decide: {c1: {verdict: approve, source: rebuilt}}}")),
    ("native.sqlite", story(more="requires: [native.sqlite]")),
]

BREAKING = story("- say: Half a word\n    breaks_after: 1")
VARIANTS: list[tuple[str, Scenario, Variant]] = [
    ("streaming", story(), Variant(stream=True)),
    ("changing_ids", story(), Variant(stream=True, chunking="changing_ids")),
    ("broken_stream", BREAKING, Variant(stream=True)),
    ("model_failure", BREAKING, PLAIN),
    ("serialize.copy", story(), Variant(serialize="copy", source="restored")),
    ("serialize.json", story(), Variant(serialize="json", source="restored")),
    ("serialize.json", story(caller="{save: here}"), PLAIN),
    ("native.sqlite", story(), Variant(serialize="native.sqlite", source="restored")),
    ("history.append", story(), Variant(serialize="json", history="append", source="restored")),
    ("goes_on_after_rejection", story(), Variant(oracle="reject_all")),
    ("fresh", story(), Variant(serialize="json", resume="fresh", source="restored")),
    ("fresh", story(), Variant(serialize="json", resume="cold", source="restored")),
    ("answer.restored", story(), Variant(serialize="json", source="restored")),
    ("answer.rebuilt", story(), Variant(source="rebuilt")),
    ("answer.held", story(), Variant(serialize="json", source="held")),
]


def test_a_plain_story_needs_nothing() -> None:
    """One call that is asked about and answered is what every agent can do."""
    assert frozenset() == required_capabilities(story(caller="{decide: {c1: approve}}"), PLAIN)


@pytest.mark.parametrize(("capability", "scenario"), CONTENT, ids=[name for name, _ in CONTENT])
def test_the_content_shows_what_it_needs(capability: str, scenario: Scenario) -> None:
    """What a story does is a capability, in every variant."""
    assert capability in required_by_content(scenario)


@pytest.mark.parametrize(("capability", "scenario", "variant"), VARIANTS)
def test_the_variant_shows_what_it_needs(capability: str, scenario: Scenario, variant: Variant) -> None:
    """Where the state goes, how a turn runs and what a decision is made from are capabilities."""
    assert capability in required_capabilities(scenario, variant)
    assert capability not in required_by_content(scenario)


def test_every_capability_is_shown_by_something() -> None:
    """No capability has to be required by hand."""
    shown = {name for name, _ in CONTENT} | {name for name, *_ in VARIANTS}

    assert set(CAPABILITIES) == shown - {"native.sqlite"}


def test_the_table_names_every_capability() -> None:
    """The docstring tells for each capability what shows it."""
    table = requirements.__doc__ or ""
    families = {"serialize": "`serialize.*`"}

    assert [] == [
        name
        for name in CAPABILITIES
        if f"`{name}`" not in table and families.get(name.partition(".")[0], name) not in table
    ]


@pytest.mark.parametrize(
    ("capability", "scenario"),
    [
        ("go_on_without_answer", story(caller="{stage: {c1: approve}}, {go_on: true}")),
        ("message_while_pending", story(caller="{decide: {c1: approve}}, {send: Thanks}")),
        ("partial_answers", story(TWO, "{decide: {c1: approve, c2: reject}}")),
        ("runs_beside_pending", story(TWO, "{decide: {c1: approve, c2: approve}, hangs_up: started c1}")),
        ("partial_answers", story(caller="{decide: [{unknown: r9, verdict: approve}]}")),
        ("repeated_decision", story(caller="{decide: {c1: approve}}, {decide: {c1: approve}}")),
        ("late_decision", story(TWO, "{decide: {c1: approve}}, {decide: {c1: approve}}")),
        ("late_decision", story(caller="{save: it}, {decide: {c1: approve}}, {restore: it}, {decide: {c1: approve}}")),
        ("unknown_request", story(caller="{decide: {c1: approve}}")),
        ("contradiction", story(TWO, "{decide: {c1: approve, c2: reject}}")),
        ("simultaneous", story(caller="{together: [{decide: {c1: approve}}, {send: Pay, session: bob}]}")),
        ("concurrent_tools", story("- calls: [{id: c1, tool: new}]", "{signal: it}", tools="  new: {waits_for: it}")),
        ("reject_reason", story(caller="{decide: {c1: reject}}")),
        ("goes_on_after_rejection", story(caller="{decide: {c1: reject}}")),
        ("goes_on_after_rejection", story(TWO, "{decide: {c1: approve, c2: reject}}, {send: And now?}")),
        ("goes_on_after_rejection", story(TWO, "{decide: {c1: reject}}, {decide: {c2: approve}}, {send: And now?}")),
        ("answer.held", story(caller="{decide: {c1: {verdict: approve, source: held}}}")),
        ("sessions", story(caller="{decide: {c1: approve}}")),
        ("tools_change", story(caller="{restart: true}")),
        ("tool_errors", story(tools="  unused: {raises: gone}")),
    ],
)
def test_what_only_looks_alike_is_not_needed(capability: str, scenario: Scenario) -> None:
    """A story is judged by what is open when a step comes, not by the step alone."""
    assert capability not in required_capabilities(scenario, PLAIN)


# --- what is open, followed on paper ----------------------------------------------------------------------------------


def test_an_answer_about_a_call_that_needs_none_is_about_an_unknown_request() -> None:
    """Approving what was never asked needs a request that was never given."""
    model = "- calls: [{id: c1, tool: look}, {id: c2, tool: pay, arguments: {amount: 5}}]"

    assert "unknown_request" in required_by_content(story(model, "{decide: {c1: approve}}"))


def test_a_second_approval_of_a_call_that_asks_again_is_no_repetition() -> None:
    """The call is open again after it has asked in its middle."""
    scenario = story(
        "- calls: [{id: c1, tool: new}]\n  - say: Done.",
        "{decide: {c1: approve}}, {decide: {c1: approve}}",
        tools="  new: {approval: always, asks_again: Sure?}",
    )

    assert {"asks_again"} == required_by_content(scenario)


def test_requests_of_nested_agents_are_open_together_with_those_of_the_main_one() -> None:
    """Answering only one of them is a partial answer."""
    model = (
        "- calls: [{id: o1, tool: ask, arguments: {input: Wipe}}, {id: c1, tool: pay, arguments: {amount: 5}}]\n"
        "  - say: Done."
    )
    partly = required_by_content(story(model, "{decide: {o1/c1: approve}}"))
    wholly = required_by_content(story(model, "{decide: {o1/c1: approve, c1: approve}}"))

    assert {"partial_answers"} == partly - wholly


def test_a_standing_approval_settles_later_calls() -> None:
    """After `always`, the next call of the tool is not open, so nothing is answered partly."""
    model = f"{ONE.replace('  - say: Paid.', '  - calls: [{id: c2, tool: pay, arguments: {amount: 6}}]')}"

    assert {"always"} == required_by_content(story(model, "{decide: {c1: always}}, {send: Thanks}"))


def test_nothing_is_concluded_after_a_failure() -> None:
    """What is open after a failed turn is each framework's own business."""
    model = "- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n  - fails: 500\n  - say: Paid."

    assert {"model_failure"} == required_by_content(story(model, "{decide: {c1: approve}}, {decide: {c1: approve}}"))


def test_the_oracle_settles_what_is_open() -> None:
    """After the oracle's rounds, a message is no message while something is pending."""
    assert frozenset() == required_by_content(story(caller="{oracle: true}, {send: Thanks}"))


def test_a_keyed_script_is_followed_from_its_first_message() -> None:
    """What is open depends on the list that the conversation plays."""
    model = "Pay: [{calls: [{id: c1, tool: pay, arguments: {amount: 5}}]}, {say: Paid.}]\n  otherwise: [{say: What?}]"

    assert {"message_while_pending"} == required_by_content(story(model, "{send: Hello?}"))


def test_a_gated_call_that_runs_an_agent_opens_what_that_agent_asks() -> None:
    """First the outer call is answered, then those inside; none of the answers is early, late or partial."""
    scenario = story(
        "- calls: [{id: o1, tool: hire, arguments: {input: Wipe}}]\n  - say: Done.",
        "{decide: {o1: approve}}, {decide: {o1/c1: approve}}",
        tools="  hire: {approval: always, runs: helper}",
    )

    assert {"nested", "nested_gate"} == required_by_content(scenario)


def test_a_call_that_asks_only_in_its_middle_is_open_then() -> None:
    """A tool that needs no approval to begin is open once it asks."""
    scenario = story(
        "- calls: [{id: c1, tool: new}]\n  - say: Done.", "{send: And?}", tools="  new: {asks_again: Sure?}"
    )

    assert {"asks_again", "message_while_pending"} == required_by_content(scenario)


def test_a_tool_that_is_held_back_asks_nothing() -> None:
    """A call of a tool that is not there yet opens no request."""
    scenario = story(
        "- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n  - say: Done.",
        "{send: And?}, {restart: {with: [pay]}}",
        more="held_back: [pay]",
    )

    assert {"tools_change"} == required_by_content(scenario)


def test_an_answer_before_anything_was_sent_is_about_nothing() -> None:
    """Nothing is open before the first message, so nothing is repeated or answered partly."""
    text = (
        f"title: Early\ntools: {{pay: {{approval: always, parameters: {{amount: integer}}}}}}\nmodel:\n  {ONE}\n"
        "caller: [{decide: {c1: approve}}, {send: Pay}]"
    )

    assert frozenset() == required_by_content(parse_scenario(text, name="a/b", path="a/b"))


def test_nothing_is_concluded_where_a_condition_changes_its_mind() -> None:
    """Whether such a call is asked about depends on how often the framework asks its policy."""
    scenario = story(
        "- calls: [{id: c1, tool: new}]\n  - say: Done.",
        "{send: And?}",
        tools="  new: {approval: {answers: [true, false]}}",
    )

    assert {"conditional_approval"} == required_by_content(scenario)


def test_nothing_is_concluded_where_arguments_are_broken() -> None:
    """Whether a call with broken arguments is asked about, or answered with an error, is the framework's choice."""
    scenario = story("- calls: [{id: c1, tool: pay, arguments: '{'}]\n  - say: Done.", "{send: And?}")

    assert {"broken_arguments"} == required_by_content(scenario)
