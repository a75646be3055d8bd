"""Each rule: what breaks it, and what does not."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.conversations.lint import RULES

USER, MODEL, TOOL = "user", "assistant", "tool"


@pytest.fixture
def whole(words):
    """A conversation in order: a call is asked about, approved and run."""
    return [
        (USER, words.text("Pay 5")),
        (MODEL, words.ask(words.call())),
        (USER, words.answer(words.call())),
        (MODEL, words.call()),
        (TOOL, words.result()),
        (MODEL, words.text("Done.")),
    ]


def test_a_conversation_in_order_has_no_finding(words, whole) -> None:
    """Nothing is found."""
    assert [] == words.found(*whole)


def test_an_open_request_at_the_end_is_reported_and_not_a_mistake(words, whole) -> None:
    """The conversation is paused."""
    (found,) = words.lint(words.messages(*whole[:2]))

    assert ("waits", False, "pay(amount=5) waits for a decision") == (found.rule, found.is_mistake, found.text)


def test_a_request_without_a_decision(words, whole) -> None:
    """The user says something else, and the request is still open: the next turn of .NET fails."""
    assert ["nothing-left-pending at message 1, content 0"] == words.found(
        *whole[:2], (USER, words.text("Hello?")), (MODEL, words.text("Hi."))
    )


def test_a_decision_without_a_request(words, whole) -> None:
    """Nobody asked."""
    found = words.found(whole[0], whole[2])

    assert ["invalid-decision-refused at message 1, content 0"] == found


def test_a_decision_about_another_request(words, whole) -> None:
    """The request that it names was never made; the one that was made waits."""
    found = words.found(*whole[:2], (USER, words.answer(words.call(), request_id="r9")))

    assert ["waits at message 1, content 0", "invalid-decision-refused at message 2, content 0"] == found


def test_a_decision_before_its_request(words, whole) -> None:
    """The order counts: .NET does not see it."""
    found = words.found(whole[0], whole[2], whole[1])

    assert ["invalid-decision-refused at message 1, content 0", "waits at message 2, content 0"] == found


def test_decisions_that_contradict_each_other(words, whole) -> None:
    """Both would be carried out."""
    both = (USER, words.answer(words.call()), words.answer(words.call(), approved=False))

    assert "contradiction-not-executed at message 2, content 1" in words.found(*whole[:2], both)


def test_a_repeated_decision(words, whole) -> None:
    """The call may run twice."""
    both = (USER, words.answer(words.call()), words.answer(words.call()))

    assert "settled-stays-settled at message 2, content 1" in words.found(*whole[:2], both)


def test_a_late_decision(words, whole) -> None:
    """The call has its result; deciding again changes nothing, or runs it again."""
    late = (USER, words.answer(words.call(), approved=False))

    assert ["settled-stays-settled at message 6, content 0"] == words.found(*whole, late)


def test_a_call_without_a_result(words) -> None:
    """The conversation continues; the provider refuses it."""
    found = words.found((USER, words.text("Pay 5")), (MODEL, words.call()), (USER, words.text("And?")))

    assert ["result-delivered-once at message 1, content 0"] == found


def test_a_call_at_the_end_is_reported(words) -> None:
    """It may run yet."""
    assert ["waits at message 1, content 0"] == words.found((USER, words.text("Pay 5")), (MODEL, words.call()))


def test_an_approved_call_that_waits_for_its_result_is_reported(words, whole) -> None:
    """The answer was stored, and the next turn has not begun."""
    assert ["waits at message 1, content 0"] == words.found(*whole[:3])


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "after"])
def test_a_text_with_the_decision_at_the_end_is_no_finding(words, whole, beside: bool) -> None:
    """The user decides and says something; the agent has not gone on yet, so the call may run."""
    *before, (role, decision) = whole[:3]
    said = words.text("And be quick")
    end = [(role, decision, said, said)] if beside else [(role, decision), (role, said)]

    assert ["waits at message 1, content 0"] == words.found(*before, *end)


def test_an_approved_call_without_a_result_is_lost_when_the_model_goes_on(words, whole) -> None:
    """The model answered what the user said beside the decision, and the call has no result."""
    said = (USER, words.text("And be quick"))
    found = words.found(*whole[:3], said, (MODEL, words.text("Yes.")))

    assert ["result-delivered-once at message 1, content 0"] == found


def test_an_approved_call_without_a_result_is_lost_when_the_user_writes_again(words, whole) -> None:
    """Between two messages of the user the agent went on, whatever came of it."""
    found = words.found(*whole[:3], (USER, words.text("And be quick")), (USER, words.text("Hello?")))

    assert ["result-delivered-once at message 1, content 0"] == found


def test_a_result_without_a_call(words, whole) -> None:
    """Nobody made the call."""
    assert ["result-matches-its-call at message 1, content 0"] == words.found(whole[0], (TOOL, words.result()))


def test_a_second_result(words, whole) -> None:
    """A call has one."""
    assert ["result-delivered-once at message 5, content 0"] == words.found(*whole[:5], (TOOL, words.result()))


def test_a_result_of_another_tool(words) -> None:
    """What the result says it is of, and what the call is of, differ."""
    history = [
        {
            "kind": "response",
            "parts": [{"part_kind": "tool-call", "tool_name": "pay", "args": {}, "tool_call_id": "c1"}],
        },
        {
            "kind": "request",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "read",
                    "content": "x",
                    "tool_call_id": "c1",
                    "outcome": "success",
                }
            ],
        },
    ]

    assert ["result-matches-its-call"] == [each.rule for each in words.lint(history)]


def test_arguments_that_changed_between_request_and_decision(words, whole) -> None:
    """What .NET runs is what the decision holds."""
    found = words.lint(words.messages(*whole[:2], (USER, words.answer(words.call(amount=500)))))

    assert [
        ("waits", "pay(amount=5) waits for its result"),
        (
            "arguments-as-approved",
            "the decision is about pay(amount=500), and the request shows pay(amount=5) (message 1, content 0)",
        ),
    ] == [(each.rule, each.text) for each in found]


def test_arguments_that_changed_between_decision_and_execution(words, whole) -> None:
    """What ran is not what was approved."""
    found = words.found(*whole[:3], (MODEL, words.call(amount=500)), *whole[4:])

    assert ["arguments-as-approved at message 3, content 0"] == found


def test_a_tool_that_changed_between_request_and_decision(words, whole) -> None:
    """Approved as one tool, decided as another."""
    found = words.found(*whole[:2], (USER, words.answer(words.call(tool="wipe"))))

    assert "arguments-as-approved at message 2, content 0" in found


def test_a_decision_that_holds_another_call(words, whole) -> None:
    """Same request, another call id."""
    found = words.found(*whole[:2], (USER, words.answer(words.call("c9"))))

    assert "arguments-as-approved at message 2, content 0" in found


def test_a_request_that_shows_another_call(words) -> None:
    """What the person saw is not what the model asked for."""
    shown = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": '{"amount": 5}'}
    made = {**shown, "arguments": '{"amount": 500}'}
    request = {"type": "function_approval_request", "id": "r1", "function_call": shown}
    found = words.lint([{"role": "assistant", "contents": [made, request]}])

    assert ["request-shows-the-call", "waits"] == [each.rule for each in found]


def test_two_open_requests_with_one_id(words, whole) -> None:
    """.NET fails with a duplicate key."""
    found = words.found(whole[0], (MODEL, words.ask(words.call()), words.ask(words.call("c2", amount=6))))

    assert "request-ids-unique at message 1, content 1" in found


def test_a_request_id_may_be_used_again_once_it_is_settled(words, whole) -> None:
    """Ids that are made of call ids come again when those do."""
    assert [] == words.found(*whole, *whole)


def test_two_open_calls_with_one_id(words) -> None:
    """Nobody can say which of them a result is for."""
    found = words.found((MODEL, words.call(), words.call(amount=6)), (TOOL, words.result(), words.result()))

    assert ["call-ids-unique at message 0, content 1"] == found


@pytest.mark.parametrize(("asked", "answered"), [(False, True), (True, False)])
def test_copies_whose_flags_differ(words, whole, asked, answered) -> None:
    """The bug of dotnet/extensions#7468: one copy of the call is flagged as dealt with, the other is not."""
    whole[1] = (MODEL, words.ask(words.call(flagged=asked)))
    whole[2] = (USER, words.answer(words.call(flagged=answered)))

    assert ["flags-agree at message 2, content 0"] == words.found(*whole)


def test_a_flag_without_a_decision(words, whole) -> None:
    """It is flagged as dealt with, and nobody decided."""
    found = words.found(whole[0], (MODEL, words.ask(words.call(flagged=True))))

    assert ["flags-agree at message 1, content 0"] == found


def test_a_result_without_a_decision(words, whole) -> None:
    """It was asked about, and it ran before anybody answered."""
    found = words.found(*whole[:2], *whole[3:])

    assert ["approval-before-execution at message 3, content 0"] == found


def test_a_request_that_only_waits_for_others_needs_no_decision(words, whole) -> None:
    """.NET holds back the calls next to a gated one; nobody has to answer about those."""
    whole[1] = (MODEL, words.ask(words.call(), confirm=False))

    assert [] == words.found(*whole[:2], *whole[3:])


def test_a_rejected_call_with_the_result_of_a_run(words) -> None:
    """A format that says how a result came about shows it."""
    tool = {"type": "tool-pay", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "paid"}
    document = [{"role": "assistant", "parts": [{**tool, "approval": {"id": "r1", "approved": False}}]}]

    assert ["rejected-never-runs"] == [each.rule for each in words.lint(document)]


def test_a_gated_call_without_an_approval(words) -> None:
    """The policy says that it must be asked about."""
    document = words.messages((MODEL, words.call()), (TOOL, words.result()))

    assert [] == words.lint(document)
    assert [] == words.lint(document, "wipe", "read*")
    assert ["approval-before-execution"] == [each.rule for each in words.lint(document, "p*")]


def test_a_gated_call_with_its_approval(words, whole) -> None:
    """It was asked about, and approved."""
    assert [] == words.lint(words.messages(*whole), "pay")


def test_a_gated_call_that_was_denied_has_not_run(words) -> None:
    """Its result is what the model was told in place of one."""
    tool = {"type": "tool-pay", "toolCallId": "c1", "state": "output-denied", "input": {}}

    assert [] == words.lint([{"role": "assistant", "parts": [tool]}], "pay")


def test_a_format_without_approvals_says_so(words) -> None:
    """Nobody can say who approved a call of plain chat messages; the finding tells that."""
    made = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    document = [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": "paid"},
    ]
    (found,) = words.lint(document, "pay")

    assert "; this format never tells who approved a call" in found.text


def test_a_session_that_keeps_a_settled_request(words, whole) -> None:
    """The state lists as open what the conversation has settled."""
    kept = [words.ask(words.call())]
    session = {
        "stateBag": {
            "InMemoryChatHistoryProvider": {"messages": words.messages(*whole)},
            "_pendingApprovalRequests": kept,
        }
    }
    (found,) = words.lint(session)

    assert ("settled-stays-settled", "stateBag._pendingApprovalRequests[0]") == (found.rule, found.where)


def test_a_session_may_keep_the_only_request(words) -> None:
    """If each service call is stored, the history has the bare call, and the request is next to it."""
    session = {
        "stateBag": {
            "InMemoryChatHistoryProvider": {
                "messages": words.messages((USER, words.text("Pay 5")), (MODEL, words.call()))
            },
            "_pendingApprovalRequests": [words.ask(words.call())],
        }
    }

    assert ["waits"] == [each.rule for each in words.lint(session)]


def test_what_a_service_keeps_is_not_missed(words, whole) -> None:
    """With a conversation id the requests are the service's; answers stand alone."""
    document = {
        "conversationId": "k",
        "stateBag": {"InMemoryChatHistoryProvider": {"messages": words.messages(whole[2])}},
    }

    assert [] == words.lint(document)


def test_an_unknown_type_is_reported(words) -> None:
    """It is no mistake; the nearest known one is named."""
    (found,) = words.lint(words.messages((MODEL, words.text("Hi."), {"$type": "functionCal"})))

    assert ("odd", "$type 'functionCal' is not known; did you mean 'functionCall'?") == (found.rule, found.text)


def test_a_known_type_that_no_approval_needs_is_not_told(words) -> None:
    """Reasoning, and requests of another kind than approvals."""
    asked = {"$type": "inputRequest", "requestId": "r1"}

    assert [] == words.lint(words.messages((MODEL, words.text("Hi."), asked, {"$type": "reasoning", "text": "Hm."})))


def test_a_hosted_call_is_found_under_the_id_of_its_report(words) -> None:
    """A provider reports an approved call under an id of its own."""
    made = {"$type": "mcpServerToolCall", "name": "search", "serverName": "docs", "arguments": {"q": "x"}}
    asked = {**made, "callId": "mcpr_1"}
    found = words.found(
        (MODEL, words.ask(asked, "mcpr_1")),
        (USER, words.answer(asked, request_id="mcpr_1")),
        (MODEL, {**made, "callId": "mcp_9"}, {"$type": "mcpServerToolResult", "outputs": [], "callId": "mcp_9"}),
        (MODEL, words.text("Found.")),
    )

    assert [] == found


def test_a_hosted_call_that_ran_without_a_decision(words) -> None:
    """The provider is sent each decision, so one that is missing was not made."""
    asked = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "search",
        "server_label": "docs",
        "arguments": "{}",
    }
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    ran = {**asked, "type": "mcp_call", "id": "mcp_9", "approval_request_id": "mcpr_1", "output": "found"}

    assert [] == words.lint([asked, answer, ran])
    assert ["approval-before-execution"] == [each.rule for each in words.lint([asked, ran])]


def test_rules_that_are_checks_have_their_names() -> None:
    """If the harness checks the same requirement, it has the same slug; the others are lint's own."""
    assert ["call-ids-unique", "flags-agree", "time-order"] == sorted(RULES.keys() - CHECKS.keys())


@pytest.mark.parametrize("calls", [1, 2])
def test_a_call_is_lost_when_the_model_says_something_in_a_later_message(words, calls: int) -> None:
    """A message of chat completions is a whole response, and what follows has the result."""
    called = [{"id": f"c{n}", "type": "function", "function": {"name": "pay", "arguments": "{}"}} for n in range(calls)]
    history = [{"role": "assistant", "tool_calls": called}, {"role": "assistant", "content": "Paid."}]

    assert ["result-delivered-once"] * calls == [finding.rule for finding in words.lint(history)]


def test_a_call_of_ag_ui_waits_though_a_text_of_its_response_follows(words) -> None:
    """Each text and each call is a message of its own there."""
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    history = [
        {"id": "m1", "role": "assistant", "toolCalls": [call]},
        {"id": "m2", "role": "assistant", "content": "May I?"},
    ]

    assert ["waits"] == [finding.rule for finding in words.lint(history)]


def test_calls_and_texts_of_one_response_may_be_messages_each(words) -> None:
    """Clients of agent servers keep one response as several messages; the results come after all of them."""
    call = {"type": "function", "function": {"name": "pay", "arguments": "{}"}}
    history = [
        {"role": "assistant", "content": "I pay both."},
        {"role": "assistant", "tool_calls": [call | {"id": "c1"}]},
        {"role": "assistant", "tool_calls": [call | {"id": "c2"}], "content": ""},
        {"role": "tool", "tool_call_id": "c1", "content": "paid"},
        {"role": "tool", "tool_call_id": "c2", "content": "paid"},
        {"role": "assistant", "content": "Both are paid."},
    ]

    assert [] == words.lint(history)


@pytest.mark.parametrize(
    ("approved", "told", "rules"),
    [
        (False, "paid 5", ["rejected-never-runs"]),
        (False, "Tool call invocation rejected. no money", []),
        (False, "Your payment was declined by Ann.", []),
        (True, "Error: Tool call invocation was rejected by user.", ["approved-runs"]),
        (True, "paid 5", []),
    ],
)
def test_a_result_that_contradicts_its_decision(words, whole, approved: bool, told: str, rules: list[str]) -> None:
    """The text of a refusal is the library's; what an application says in its own words may be one, too."""
    decision = (USER, words.answer(words.call(), approved=approved))
    conversation = [*whole[:2], decision, whole[3], (TOOL, words.result(value=told)), whole[5]]

    assert rules == [finding.rule for finding in words.lint(words.messages(*conversation))]
