"""What failures say, and journals with values that the notation cannot write."""

from __future__ import annotations

from dataclasses import replace

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.events import Event, Header, ModelAnswer, TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation


def list_actual(slug: str, events: list[Event]) -> list[str | None]:
    """Return what a check says happened, for each of its verdicts that is no pass."""
    return [verdict.actual for verdict in CHECKS[slug].judge(read_history(events)) if verdict.status != "pass"]


def test_a_repetition_says_why_the_first_run_does_not_count() -> None:
    """What a full disk lost was not stored; it neither raised nor was cancelled."""
    events = parse_notation("""
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        full
        run c1 -> paid 5
        fail OSError: no space left
        restore a:
        go
        run c1 -> paid 5
        done
    """)

    assert ["it runs again after it was not stored, and was not approved again"] == list_actual(
        "runs-at-most-once", events
    )


def test_a_changed_report_is_quoted() -> None:
    """The next input has other words for what the provider reported of its own call."""
    events = parse_notation("""
        tool search(query) never hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        hosted c1 -> found cats
        model Found.
        untell c1
        tell c1 found dogs
        finish Found.
        send And now?
        done
    """)

    assert ["'found dogs' as its result"] == list_actual("result-delivered-once", events)


def test_an_empty_text_about_a_cancelled_call_is_named() -> None:
    """A model that is told an empty text does not learn of the cancellation."""
    events = parse_notation("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1
        send Is it paid?
        done
    """)

    assert ["the model is told an empty text"] == list_actual("cancelled-calls-told", events)


def test_a_blank_text_for_no_arguments_is_no_fraction() -> None:
    """Some models send it in place of an empty object, and the tool takes its defaults."""
    events = parse_notation("""
        tool list(limit: integer = 5) never
        send List
        model c1 list()
        run c1 list() -> text
        done
    """)
    blank = [
        replace(event, calls=[{**call, "arguments": " "} for call in event.calls])
        if isinstance(event, ModelAnswer)
        else event
        for event in events
    ]

    assert [] == list_actual("arguments-as-approved", blank)


def test_only_a_listed_tool_has_a_kind() -> None:
    """The agent learns of a tool that it does not list only when that asks, and shows it as a function."""
    events = parse_notation("""
        tool pay(amount: integer) always mcp bank
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        end left: c1
    """)
    shown = [
        replace(event, requests=[{**entry, "kind": "function", "server": None} for entry in event.requests])
        if isinstance(event, TurnEnd)
        else event
        for event in events[:-1]
    ]
    unlisted = [
        replace(event, tools={name: tool | {"unlisted": True} for name, tool in event.tools.items()})
        if isinstance(event, Header)
        else event
        for event in shown
    ]

    assert ["one of kind function"] == list_actual("request-shows-the-call", shown)
    assert [] == list_actual("request-shows-the-call", unlisted)
