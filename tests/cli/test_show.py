"""`pytest-approvals show`."""

from __future__ import annotations

SCENARIO = """\
title: A large payment waits
about: Small payments need no approval.
sources: [somebody/something#1]
tools:
  pay: {approval: {argument: amount, greater_than: 100}, parameters: {amount: integer, note: string?}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 500}}]
  - say: Paid.
caller:
  - send: Pay 500
  - decide: {c1: {reject: too much}}
"""

TOLD = """\
payments/large: A large payment waits
  Small payments need no approval.

  in       scenarios/payments/large.approval.yaml
  sources  somebody/something#1
  needs    conditional_approval, reject_reason

tools
  pay(amount: integer, note: string?): approval on a condition

on the reference agent

  turn 1
    caller  sends "Pay 500"
    model   is asked "Pay 500"
    model   calls c1 pay(amount=500)
    tool    c1 pay(amount=500, note=null): the policy wants approval
    agent   pauses for c1

  turn 2
    caller  rejects c1: too much
    model   is told c1: "Not executed: the user rejected this call. Reason: too much"
    model   says "Paid."
    agent   finishes with "Paid."

  end
    run     ends

  calls
    c1 pay(amount=500): asked → rejected: too much → not run → told {refusal}

variants
""".replace("{refusal}", '"Not executed: the user rejected this call. Reason: too much"')


def test_it_tells_the_whole_story(command_line) -> None:
    """Title, prose, sources, needs, tools, what happens, and in which variants agents run it."""
    command_line.write("scenarios/payments/large.approval.yaml", SCENARIO)
    said = command_line("show", "payments/large")

    assert 0 == said.code
    assert TOLD == said.out[: len(TOLD)]
    agents = [line.split()[0] for line in said.out[len(TOLD) :].splitlines()]
    assert "reference" == agents[0]
    assert {"openai_agents", "pydantic_ai"} <= set(agents)


def test_it_names_the_variants_of_an_agent(command_line) -> None:
    """The base variant comes first."""
    command_line.write("scenarios/payments/large.approval.yaml", SCENARIO)
    lines = command_line("show", "payments/large", "--agent", "reference").out.splitlines()

    assert "    none-held" == lines[lines.index("variants") + 2]


def test_it_says_what_an_agent_lacks(command_line) -> None:
    """Where a scenario does not apply, the missing capabilities are named."""
    command_line("new-adapter", "toy")
    command_line.write("scenarios/payments/large.approval.yaml", SCENARIO)
    said = command_line("show", "payments/large", "--agent", "toy")

    assert (
        "  toy                  not applicable: it lacks conditional_approval, reject_reason" in said.out.splitlines()
    )


def test_a_mistake_in_a_scenario_is_named(command_line) -> None:
    """File, line and the nearest word."""
    command_line.write("scenarios/payments/large.approval.yaml", SCENARIO.replace("tools:", "tool:"))
    said = command_line("show", "payments/large")

    assert (2, "") == (said.code, said.out)
    assert "large.approval.yaml:4: a scenario has no key 'tool'; did you mean 'tools'?" in said.err
