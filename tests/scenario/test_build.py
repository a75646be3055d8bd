"""Scenarios in Python are the scenarios that files hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import Condition, Limits, Parameter
from pytest_approvals.errors import ScenarioError, UsageError
from pytest_approvals.scenario import build
from pytest_approvals.scenario.build import call, calls, fails, fake, raises, returns, say, scenario, tool, when
from pytest_approvals.scenario.build_steps import (
    always,
    approve,
    cancel,
    decide,
    edit,
    go_on,
    leave,
    let_oracle,
    malformed,
    never,
    raw,
    reject,
    restart,
    restore,
    rewrite,
    save,
    send,
    signal,
    stage,
    together,
    trim,
    unknown,
)
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Call, Expect, Scenario, ScriptedFailure, ScriptedReply, ToolBehaviour

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")


def story(**more: Any) -> Scenario:
    """A scenario of one payment; *more* replaces its parts."""
    parts: dict[str, Any] = {"title": "A payment", "tools": [PAY], "model": [calls("pay", amount=5), say("Paid.")]}
    return scenario(**(parts | more))


FILE = """\
title: Everything at once
about: A story that uses most of the language.
sources: [owner/repository#5]
requires: [fresh]
tools:
  pay:
    approval: {argument: amount, greater_than: 100}
    parameters: {amount: integer, note: string?, currency: {type: string, default: EUR}}
    does: [{raises: the bank is closed}, {returns: "paid {amount}"}]
    calls: {c2: {waits_for: the bank opens, returns: late}}
  transfer: {called: pay_out, kind: mcp, server: bank, approval: always, asks_again: Really?, returns: done}
  close:
    {kind: mcp, server: bank, elicits: {message: Why?, form: {why: string, when: string?}}, returns: "closed: {why}"}
  open: {kind: mcp, server: bank, elicits: {message: Look, url: "https://bank.invalid"}, raises: no}
  ask: {runs: helper}
  helper/wipe: {approval: always, parameters: {path: string}, returns: "wiped {path}"}
agents:
  helper:
    model:
      Wipe it: [{calls: [{id: c1, tool: wipe, arguments: {path: {fake: file_name, as: doc}}}]}, {say: Wiped.}]
      otherwise: [{say: Nothing to do.}]
model:
  - say: Let me see.
    calls:
      - {id: c1, tool: pay, arguments: {amount: 500, note: "{{fake sentence as why}}"}}
      - {id: c2, tool: pay, arguments: {amount: 5}}
      - {id: c3, tool: ask, arguments: {input: Wipe it}}
  - fails: 429
  - calls:
      - {id: c1, tool: transfer, repeats: true}
      - {id: null, label: x1, tool: nothing, unknown_tool: true}
      - {id: c9, tool: pay, arguments: '{"amount": '}
      - {id: c4, tool: pay, arguments: {amount: much}, invalid: true}
  - say: Done with {{fake doc}}.
    breaks_after: 3
caller:
  - send: Pay everything
  - stage: {c1: approve}
  - decide: [{c1: reject}, {c1: {edit: {amount: 7}}}, {unknown: r9, reject: no}, {malformed: 5, verdict: always}]
  - send: Hurry up
    decide: {c3/c1: {never: keep it}}
    hangs_up: started c3/c1
  - together: [{decide: {c2: {verdict: approve, source: rebuilt}}}, {signal: the bank opens}]
  - {go_on: true, session: bob, hangs_up: model}
  - {decide: {c2: reject}, hangs_up: model}
  - save: here
  - restore: here
  - restart: {fresh: true, without: [pay], with: [transfer], parameters: {pay: {amount: integer, note: string?}},
              renamed: {main: cashier}}
  - trim: 3
  - rewrite: {old: a, new: b, where: hidden}
  - oracle: 2
  - decide: {c1#2: {raw: "yes"}}
  - decide: {c1: {verdict: always, shows: {amount: 1}}}
  - cancel: true
  - leave: true
reaches: {paused: 1}
expect: {runs: [c2], output: Done.}
limits: {model_replies: 9}
only: {serialize: [json, native.sqlite]}
vary: [history]
oracles: [reject_all]
held_back: [transfer]
servers: {bank: stdio}
options: {store: false}
"""


def twin() -> Scenario:
    """The same story, built."""
    return scenario(
        id="family/everything",
        title="Everything at once",
        about="A story that uses most of the language.",
        sources=["owner/repository#5"],
        requires=["fresh"],
        tools=[
            tool(
                "pay",
                raises("the bank is closed"),
                returns("paid {amount}"),
                approval=when("amount", greater_than=100.0),
                parameters={
                    "amount": "integer",
                    "note": "string?",
                    "currency": Parameter(required=False, default="EUR"),
                },
                per_call={"c2": returns("late", waits_for="the bank opens")},
            ),
            tool(
                "transfer",
                build.asks_again("Really?"),
                returns("done"),
                called="pay_out",
                kind="mcp",
                server="bank",
                approval="always",
            ),
            tool(
                "close",
                returns("closed: {why}", elicits=build.elicits("Why?", form={"why": "string", "when": "string?"})),
                kind="mcp",
                server="bank",
            ),
            tool(
                "open",
                build.raises("no", elicits=build.elicits("Look", url="https://bank.invalid")),
                kind="mcp",
                server="bank",
            ),
            tool("ask", runs="helper"),
            tool("wipe", returns("wiped {path}"), agent="helper", approval="always", parameters={"path": "string"}),
        ],
        agents={
            "helper": {
                "Wipe it": [calls("wipe", path=fake("file_name", named="doc")), say("Wiped.")],
                "otherwise": [say("Nothing to do.")],
            }
        },
        model=[
            calls(
                call("pay", amount=500, note="{{fake sentence as why}}"),
                call("pay", amount=5),
                call("ask", input="Wipe it"),
                say="Let me see.",
            ),
            fails(429),
            calls(
                call("transfer", id="c1", repeats=True),
                call("nothing", id=None, label="x1", unknown_tool=True),
                call("pay", '{"amount": ', id="c9"),
                call("pay", {"amount": "much"}, invalid=True),
            ),
            say("Done with {{fake doc}}.", breaks_after=3),
        ],
        caller=[
            "Pay everything",
            stage(approve("c1")),
            [
                reject("c1"),
                edit("c1", {"amount": 7}),
                unknown("r9", reject(reason="no")),
                malformed(5, always()),
            ],
            send("Hurry up", never("c3/c1", "keep it"), hangs_up="started c3/c1"),
            together(decide(approve("c2", source="rebuilt")), signal("the bank opens")),
            go_on(session="bob", hangs_up="model"),
            decide(reject("c2"), hangs_up="model"),
            save("here"),
            restore("here"),
            restart(
                fresh=True,
                without=["pay"],
                with_tools=["transfer"],
                parameters={"pay": {"amount": "integer", "note": "string?"}},
                renamed={"main": "cashier"},
            ),
            trim(3),
            rewrite("a", "b", where="hidden"),
            let_oracle(2),
            raw("c1#2", "yes"),
            replace(always("c1"), shows={"amount": 1}),
            cancel(),
            leave(),
        ],
        reaches={"paused": 1},
        expect=Expect(runs=("c2",), output="Done."),
        limits=Limits(model_replies=9),
        only={"serialize": ["json", "native.sqlite"]},
        vary=["history"],
        oracles=["reject_all"],
        held_back=["transfer"],
        servers={"bank": "stdio"},
        options={"store": False},
    )


def test_a_file_and_its_twin_in_python_are_equal() -> None:
    """Every scenario of a file can be built in Python, with an equal value."""
    loaded = parse_scenario(FILE, name="family/everything", path="everything.approval.yaml")

    assert replace(loaded, path=None, lines={}) == twin()


def test_calls_get_the_next_free_ids() -> None:
    """Calls without an id of their own are c1, c2, ... in the order of the script; ids in use are passed over."""
    built = story(model=[calls(call("pay", amount=1), call("pay", amount=2, id="c2"), call("pay", amount=3)), say("x")])

    assert ["c1", "c2", "c3"] == [one.id for one in built.agents["main"].replies[0].calls]


def test_the_id_of_a_built_scenario_comes_from_its_title() -> None:
    """Without an id, a scenario is called after its title."""
    assert "built/pay-5-now" == story(title="Pay 5, now!").id


@pytest.mark.parametrize(
    ("made", "reply"),
    [
        (calls("pay", amount=5), ScriptedReply(calls=(Call(label="", id="", tool="pay", arguments={"amount": 5}),))),
        (calls("pay", {"id": 5}), ScriptedReply(calls=(Call(label="", id="", tool="pay", arguments={"id": 5}),))),
        (calls("pay", "{"), ScriptedReply(calls=(Call(label="", id="", tool="pay", arguments="{"),))),
        (calls("note", say="hi"), ScriptedReply(calls=(Call(label="", id="", tool="note", arguments={"say": "hi"}),))),
        (
            calls(call("a"), call("b"), say="Both.", breaks_after=1),
            ScriptedReply(
                say="Both.",
                calls=(Call(label="", id="", tool="a"), Call(label="", id="", tool="b")),
                failure=ScriptedFailure(status=0, after_chunks=1),
            ),
        ),
        (fails(), ScriptedReply(failure=ScriptedFailure(status=500))),
        (fails("disconnect"), ScriptedReply(failure=ScriptedFailure(status=0))),
        (say("Hi."), ScriptedReply(say="Hi.")),
        (say("Hi.", thinks="Hm", redacted=True), ScriptedReply(thinks="Hm", redacted=True, say="Hi.")),
        (
            calls(call("a"), call("b", thinks="So"), thinks="Hm"),
            ScriptedReply(
                thinks="Hm",
                calls=(Call(label="", id="", tool="a"), Call(label="", id="", tool="b", thinks="So")),
            ),
        ),
    ],
)
def test_replies_read_like_what_they_are(made: ScriptedReply, reply: ScriptedReply) -> None:
    """`calls` with a tool makes one call, with calls several; `say` and `fails` make the rest."""
    assert reply == made


def test_conditions_are_made_by_name() -> None:
    """`when` makes what a file writes as a mapping."""
    assert Condition(answers=(True, False)) == when(answers=[True, False])


def test_a_tool_that_says_nothing_returns_ok() -> None:
    """Without behaviours, a tool returns `ok`."""
    assert (ToolBehaviour(returns="ok"),) == tool("look").behaviours


def test_a_mistake_in_a_built_scenario_is_named() -> None:
    """A built scenario is validated like a loaded one; errors name the scenario instead of a line."""
    with pytest.raises(ScenarioError) as refused:
        story(caller=["Pay", approve("c2")])

    assert "built/a-payment: the answer is about 'c2', a call that no script makes; valid: c1" == str(refused.value)


def test_a_made_up_value_that_cannot_be_made_is_named() -> None:
    """The mistake is the same as in a file."""
    with pytest.raises(ScenarioError, match=r"^built/a-payment: unknown Faker provider 'file_nam'; did you mean"):
        story(prompt="Pay for {{fake file_nam}}")


def test_an_attached_agent_has_tools_that_nobody_declared() -> None:
    """With *attached*, tools and arguments are not judged; labels still are."""
    built = story(attached=True, tools=[], caller=["Pay", edit("c1", {"sum": 7})])

    assert "c1" == built.agents["main"].replies[0].calls[0].label
    with pytest.raises(ScenarioError, match="a call that no script makes"):
        story(attached=True, tools=[], caller=["Pay", approve("c7")])


CONDITIONS = ("greater_than", "less_than", "equals", "starts_with", "one_of", "answers", "raises", "waits_for")


@pytest.mark.parametrize(
    ("build_it", "what"),
    [
        (
            lambda: call("pay", {"amount": 1}, amount=2),
            "call('pay') has arguments twice: as one value, and by name (amount)",
        ),
        (
            lambda: calls(say="x"),
            (
                "calls() takes a tool with its arguments, or several call(...), perhaps with say=, thinks=, redacted= "
                "or breaks_after="
            ),
        ),
        (
            lambda: calls(call("pay"), amount=5),
            (
                "calls() takes a tool with its arguments, or several call(...), perhaps with say=, thinks=, redacted= "
                "or breaks_after="
            ),
        ),
        (
            lambda: when("amount", more_than=5),
            f"Unknown argument of when(): more_than; valid: {', '.join(CONDITIONS)}",
        ),
        (
            lambda: story(model=["Paid."]),
            "Invalid reply 'Paid.': expected a result of calls(), say() or fails()",
        ),
        (
            lambda: story(caller=["Pay", 5]),
            "Invalid step 5: expected a text, a decision, a list of decisions or a step",
        ),
        (lambda: story(caller="Pay"), "Invalid caller 'Pay': expected a list of steps"),
        (lambda: story(expects=Expect()), "Unknown argument 'expects' of scenario(); did you mean 'expect'?"),
        (lambda: story(expect={"runs": []}), "Invalid value {'runs': []} of scenario(expect=...)"),
    ],
)
def test_what_cannot_be_built_is_refused(build_it: Callable[[], object], what: str) -> None:
    """A builder that is given something else than it takes says what it takes."""
    with pytest.raises(UsageError) as refused:
        build_it()

    assert what == str(refused.value)


def test_an_edit_takes_arguments_by_name() -> None:
    """As a call does; a mapping is for arguments with the names of its parameters."""
    assert edit("c1", {"amount": 7, "to": "bob"}) == edit("c1", amount=7, to="bob")
    assert {"tool": "saw"} == edit("c1", {"tool": "saw"}).arguments
    assert {} == edit("c1", {}).arguments


def test_an_edit_takes_arguments_once() -> None:
    """Neither none, which might mean the old ones, nor two sets."""
    with pytest.raises(UsageError) as none:
        edit("c1")
    with pytest.raises(UsageError) as both:
        edit("c1", {"amount": 7}, to="bob")

    assert "edit('c1') has no arguments; write edit('c1', amount=5) or edit('c1', {...})" == str(none.value)
    assert "edit('c1') has arguments by name and a mapping; write edit('c1', amount=5) or edit('c1', {...})" == str(
        both.value
    )


def test_a_turn_can_be_cut_off_by_a_crash() -> None:
    """The place is written beside the turn, as in a file."""
    steps = (send("Pay", crashes="model"), decide(approve("c1"), crashes="before c1"), go_on(crashes="outcome"))

    assert ("model", "before c1", "outcome") == tuple(step.crashes for step in steps)


@pytest.mark.parametrize("given", [{"does": ("paid",)}, {"per_call": {"c1": "paid"}}], ids=["does", "per_call"])
def test_a_tool_that_does_no_behaviour_is_refused(given: dict[str, Any]) -> None:
    """A text is not what the tool returns: `returns` says that."""
    with pytest.raises(UsageError) as refused:
        tool("pay", *given.get("does", ()), per_call=given.get("per_call"))

    assert (
        "Invalid behaviour 'paid' of the tool 'pay': expected one made by returns(), raises() or asks_again()"
        == str(refused.value)
    )
