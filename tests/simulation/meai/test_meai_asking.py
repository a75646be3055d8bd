"""When calls become requests for approval."""

from __future__ import annotations

from typing import Any


def test_one_gated_call_makes_requests_of_all_calls_of_the_answer(meai: Any) -> None:
    """All calls of one answer wait together, and the model is not called again."""
    reply = [meai.assistant(meai.call("a", "look", what="x"), meai.call("b"))]
    outcome = meai.play(meai.user("go"), model=[reply])
    assert ["assistant: ask call a, ask call b"] == meai.told(outcome["messages"])
    assert [] == outcome["invocations"]
    assert 1 == len(outcome["model_inputs"])


def test_a_request_tells_whether_its_own_tool_is_gated(meai: Any) -> None:
    """A free call that waits for a gated one needs no confirmation of its own, since 10.8."""
    reply = [meai.assistant(meai.call("a", "look", what="x"), meai.call("b"))]
    confirmed = {
        behaviour: [
            content["requiresConfirmation"]
            for content in meai.play(meai.user("go"), model=[reply], behaviour=behaviour)["messages"][0]["contents"]
        ]
        for behaviour in ("10.7", "10.9")
    }
    assert {"10.7": [True, True], "10.9": [False, True]} == confirmed


def test_the_id_of_a_request_is_made_of_the_call_id(meai: Any) -> None:
    """Until 10.3 the call id alone is the request id."""
    ids = {
        behaviour: meai.play(meai.user("go"), model=[[meai.assistant(meai.call("a"))]], behaviour=behaviour)
        for behaviour in ("10.2", "10.4")
    }
    found = {name: outcome["messages"][0]["contents"][0]["requestId"] for name, outcome in ids.items()}
    assert {"10.2": "a", "10.4": "ficc_a"} == found


def test_a_call_that_the_provider_ran_is_not_asked_about(meai: Any) -> None:
    """A call with its result in the same answer is flagged, and neither asked about nor run."""
    reply = [meai.assistant(meai.call("a"), meai.result("a", "done there"), "fine")]
    outcome = meai.play(meai.user("go"), model=[reply], behaviour="10.4")
    assert ["assistant: call a!, result a done there, fine"] == meai.told(outcome["messages"])


def test_before_flags_a_call_that_the_provider_ran_is_asked_about(meai: Any) -> None:
    """10.2 knows nothing of calls that are dealt with."""
    reply = [meai.assistant(meai.call("a", flagged=True), meai.result("a", "done there"))]
    outcome = meai.play(meai.user("go"), model=[reply], behaviour="10.2")
    assert ["assistant: ask call a!, result a done there"] == meai.told(outcome["messages"])


def test_the_clients_own_tools_are_gated_like_the_callers(meai: Any) -> None:
    """An additional tool that is gated asks."""
    own = {**meai.WIPE, "additional": True}
    outcome = meai.play(meai.user("go"), model=[[meai.assistant(meai.call("a"))]], tools=[own])
    assert ["assistant: ask call a"] == meai.told(outcome["messages"])


def test_the_callers_tool_beats_the_clients_own_of_that_name(meai: Any) -> None:
    """Of two tools with one name the caller's runs, in every release."""
    own = {"name": "look", "returns": "own", "additional": True}
    theirs = {"name": "look", "returns": "theirs"}
    model = [[meai.assistant(meai.call("a", "look"))], [meai.assistant("ok")]]
    results = {
        (behaviour, order[0]["returns"]): meai.told(
            meai.play(meai.user("go"), model=model, tools=order, behaviour=behaviour)["messages"]
        )[1]
        for behaviour in ("10.2", "10.9")
        for order in ([own, theirs], [theirs, own])
    }
    assert {"tool: result a theirs"} == set(results.values())


def test_a_request_over_an_mcp_call_passes_untouched(meai: Any) -> None:
    """What the provider asks is between the caller and the provider."""
    asked = meai.ask(meai.mcp(), "m1")
    outcome = meai.play(meai.user("go"), model=[[meai.assistant(asked)]])
    assert [meai.assistant(asked)] == outcome["messages"]


def test_an_ungated_call_next_to_an_mcp_request_runs(meai: Any) -> None:
    """A request over an MCP call gates nothing here, and the model is called again with it unanswered."""
    reply = [meai.assistant(meai.call("a", "look", what="x"), meai.ask(meai.mcp(), "m1"))]
    outcome = meai.play(meai.user("go"), model=[reply, [meai.assistant("ok")]])
    assert [
        "user: go",
        "assistant: call a!, ask mcpServerToolCall",
        "tool: result a saw x",
    ] == meai.told(outcome["model_inputs"][1])


def test_a_declared_tool_ends_the_loop_and_no_other_call_runs(meai: Any) -> None:
    """Calls of a tool that the caller runs go to the caller, with all other calls of the reply."""
    declared = {"name": "form", "declaration_only": True}
    reply = [meai.assistant(meai.call("a", "form"), meai.call("b", "look", what="x"))]
    outcome = meai.play(meai.user("go"), model=[reply], tools=[declared, meai.LOOK])
    assert ["assistant: call a, call b"] == meai.told(outcome["messages"])
    assert [] == outcome["invocations"]
