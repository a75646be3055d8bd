"""Every test of the conformance kit fails on an adapter that breaks what it is about."""

from __future__ import annotations

import pytest

from pytest_approvals.testing import AdapterTests

BROKEN = {
    "test_its_facts_are_complete": "wire_rules = 'telepathy'",
    "test_missing_capabilities_have_reasons": """
        stores = {}
        capabilities = frozenset(ReferenceAgent.capabilities) - {"trim", "native.sqlite"}
        missing = {"trim": " "}
    """,
    "test_a_reply_without_calls_ends_the_turn": """
        async def turn(self, text, decisions, *, stream):
            await super().turn(text, decisions, stream=stream)
            return Finished(output="something else")
    """,
    "test_an_ungated_call_runs_and_its_result_is_sent": """
        def __init__(self, world, blueprint):
            super().__init__(world, blueprint)
            run = world.run

            async def twice(*given, **named):
                await run(*given, **named)
                return await run(*given, **named)

            world.run = twice
    """,
    "test_a_gated_call_pauses_before_it_runs": """
        def __init__(self, world, blueprint):
            tools = tuple(replace(one, approval="never") for one in blueprint.tools)
            super().__init__(world, replace(blueprint, tools=tools))
    """,
    "test_what_surfaced_is_pending": """
        async def pending(self):
            return ()
    """,
    "test_an_approved_call_runs_with_its_arguments": """
        async def turn(self, text, decisions, *, stream):
            changed = [replace(one, verdict="edit", arguments={"path": "other"}) for one in decisions]
            return await super().turn(text, changed, stream=stream)
    """,
    "test_a_rejected_call_does_not_run": """
        async def turn(self, text, decisions, *, stream):
            changed = [replace(one, verdict="approve") for one in decisions]
            return await super().turn(text, changed, stream=stream)
    """,
    "test_a_condition_is_asked": """
        def __init__(self, world, blueprint):
            tools = tuple(replace(one, approval="always") for one in blueprint.tools)
            super().__init__(world, replace(blueprint, tools=tools))
    """,
    "test_parallel_calls_surface_together": """
        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, decisions, stream=stream)
            return Paused(requests=outcome.requests[:1]) if isinstance(outcome, Paused) else outcome
    """,
    "test_a_failing_tool_is_reported_or_fails_the_turn": """
        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, decisions, stream=stream)
            self.world.inputs.append(())
            return outcome
    """,
    "test_a_failing_model_fails_the_turn": """
        async def turn(self, text, decisions, *, stream):
            try:
                return await super().turn(text, decisions, stream=stream)
            except Exception:
                return Finished(output="all is well")
    """,
    "test_a_stream_ends_like_a_plain_turn": """
        async def turn(self, text, decisions, *, stream):
            return await super().turn(text, decisions, stream=False)
    """,
    "test_a_saved_state_is_restored": """
        async def load(self, parts):
            pass
    """,
    "test_every_store_keeps_the_state": """
        async def load(self, parts):
            pass
    """,
    "test_a_finished_state_can_be_saved": """
        async def load(self, parts):
            pass
    """,
    "test_a_copy_goes_its_own_way": """
        async def copy_from(self, other):
            self.state = other.state
    """,
    "test_a_request_rebuilt_from_json_can_be_answered": """
        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, [one for one in decisions if one.request.handle], stream=stream)
            return outcome
    """,
    "test_sessions_on_one_agent_are_apart": """
        async def another_session(self, world):
            return self
    """,
    "test_it_refuses_steps_without_their_capability": """
        capabilities = frozenset(ReferenceAgent.capabilities) - {"cancel"}
        missing = {"cancel": "nobody knows how"}
    """,
    "test_it_has_the_tools_of_its_blueprint": """
        def tools(self):
            return ()
    """,
    "test_a_story_is_the_same_over_a_protocol": """
        protocols = {"chat": {}}

        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, decisions, stream=stream)
            return outcome if self.blueprint.model is None else Finished(output="all is well")
    """,
    "test_it_can_be_closed_twice": """
        async def close(self):
            assert not getattr(self, "closed", False)
            self.closed = True
            await super().close()
    """,
    "test_it_prints_nothing": """
        async def turn(self, text, decisions, *, stream):
            print("a turn begins")
            return await super().turn(text, decisions, stream=stream)
    """,
    "test_importing_it_imports_no_framework": "packages = ('json',); framework = 'json'; issues = 'https://e.org'",
}


def source(body: str) -> str:
    """Return a test module with an adapter that is broken so."""
    lines = [line.strip("\n") for line in body.splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    inside = "\n".join("    " + line[indent:] for line in lines)
    return (
        "from dataclasses import replace\n"
        "from pytest_approvals.adapter import Finished, Paused\n"
        "from pytest_approvals.simulation import ReferenceAgent\n"
        "from pytest_approvals.testing import AdapterTests\n\n"
        f"class Broken(ReferenceAgent):\n{inside}\n\n"
        "class TestBroken(AdapterTests):\n    adapter = Broken\n"
    )


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_adapter_is_caught(pytester: pytest.Pytester, name: str) -> None:
    """The test that is about what is broken fails."""
    pytester.makepyfile(test_broken=source(BROKEN[name]))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = default\n")
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", name)

    assert result.parseoutcomes().get("failed", 0) >= 1, result.stdout.str()


def test_every_test_of_the_kit_is_tried() -> None:
    """None of them is left without an adapter that it catches."""
    assert {name for name in dir(AdapterTests) if name.startswith("test_")} == set(BROKEN)
