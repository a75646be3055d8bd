"""What a test asks for by a fixture, its marker or the call takes effect, or the test fails."""

from __future__ import annotations

import pydantic_ai
import pytest

__all__ = ["pydantic_ai"]

SHOP = """
from pydantic_ai import Agent, DeferredToolRequests
from pytest_approvals import calls, say

MODEL = [calls("refund", order=42), say("Refunded.")]

def build(model):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def refund(order: int) -> str:
        return "refunded"

    return agent
"""


@pytest.fixture
def shop(project):
    """A project with an agent, which imports the file of the agent from its own folder."""
    project.write("shop.py", SHOP)
    project.write("conftest.py", "import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).parent))")
    return project


OPTIONS = [
    {"serialize": "none"},
    {"serialize": "copy"},
    {"serialize": "json"},
    {"serialize": "json", "history": "append"},
    {"serialize": "json", "answer": "held"},
    {"serialize": "json", "answer": "restored"},
    {"answer": "held"},
    {"answer": "rebuilt"},
    {"stream": False},
    {"stream": True},
    {"stream": True, "chunking": "tokens"},
    {"stream": True, "chunking": "split"},
    {"seed": 7},
    {"oracle": "reject_all"},
    {"oracle": "approve_all"},
]


@pytest.mark.parametrize("place", ["call", "marker", "config"])
def test_every_option_is_in_the_journal(shop, place: str) -> None:
    """Whatever the call, the marker or the fixture `approvals_config` says, the journal says, too."""
    shop.write(
        "test_it.py",
        f"""
        import pytest
        from shop import MODEL, build

        OPTIONS, PLACE = {OPTIONS!r}, {place!r}

        def require(run, options):
            said = dict(options)
            asked = said.pop("oracle", None)
            header = run.events[0]
            found = header.variant | {{"answer": header.variant["source"], "seed": header.seed}}
            assert said == {{name: found[name] for name in said}}
            assert (asked == "reject_all") == (run.calls["refund"].executions == [])

        for number, options in enumerate(OPTIONS):
            if PLACE == "call":
                def test(approvals, options=options):
                    require(approvals.run(build, model=MODEL, **options), options)
            elif PLACE == "marker":
                @pytest.mark.approvals(**options)
                def test(approvals, options=options):
                    require(approvals.run(build, model=MODEL), options)
            else:
                class test:
                    @pytest.fixture(scope="class")
                    def approvals_config(self, options=options):
                        return options
                    def test(self, approvals, options=options):
                        require(approvals.run(build, model=MODEL), options)
                test.__name__ = f"Test{{number}}"
            globals()[f"Test{{number}}" if PLACE == "config" else f"test_{{number}}"] = test
        del test
        """,
    )

    shop.run(agents="").assert_outcomes(passed=len(OPTIONS))


def test_an_agent_without_synchronous_methods_of_its_own_refuses_the_option(shop) -> None:
    """It would have no effect, and the message says for which frameworks it has one."""
    shop.write(
        "test_it.py",
        """
        from shop import MODEL, build

        def test_it(approvals):
            approvals.run(build, model=MODEL, sync=True)
        """,
    )
    result = shop.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("E  *UsageError: sync=True has no effect for pydantic_ai, *(it is for langgraph)")


def test_arguments_that_the_run_gives_itself_are_refused(shop) -> None:
    """They would have no effect, as a history that the run replaces by its own."""
    shop.write(
        "test_it.py",
        """
        from shop import MODEL, build

        def test_it(approvals):
            approvals.run(build, model=MODEL, run_options={"message_history": []})
        """,
    )
    result = shop.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("E  *UsageError: Invalid run_options: 'message_history' is given by the run itself, *")


def test_the_mode_of_the_fixture_is_in_the_journal(shop) -> None:
    """A test that uses `serialize_mode` runs in each mode without saying it again, in any order of its fixtures."""
    shop.write(
        "test_it.py",
        """
        import pytest
        from shop import MODEL, build

        def test_before(serialize_mode, approvals):
            run = approvals.run(build, model=MODEL)
            assert run.events[0].variant["serialize"] == serialize_mode

        def test_after(approvals, serialize_mode):
            run = approvals.run(build, model=MODEL)
            assert run.events[0].variant["serialize"] == serialize_mode

        def test_beside_another_run(approvals, serialize_mode):
            approvals.run(build, model=MODEL, serialize="copy")
            run = approvals.run(build, model=MODEL)
            assert run.events[0].variant["serialize"] == serialize_mode

        @pytest.mark.parametrize("serialize_mode", ["copy"])
        def test_own_modes(approvals, serialize_mode):
            run = approvals.run(build, model=MODEL)
            assert run.events[0].variant["serialize"] == serialize_mode == "copy"

        class TestOwnFixture:
            @pytest.fixture
            def serialize_mode(self):
                return "json"

            def test_it(self, approvals, serialize_mode):
                assert approvals.run(build, model=MODEL).events[0].variant["serialize"] == "json"
        """,
    )

    shop.run(agents="").assert_outcomes(passed=8)
    shop.run("--approvals-serialize=copy", "-k", "before", agents="").assert_outcomes(passed=1)


def test_a_mode_without_a_run_fails(shop) -> None:
    """It is said by the marker or the call in another way, or no run of the fixture is made at all."""
    shop.write(
        "test_it.py",
        """
        import pytest
        from shop import MODEL, build

        def test_call(approvals, serialize_mode):
            approvals.run(build, model=MODEL, serialize="copy")

        @pytest.mark.approvals(serialize="copy")
        def test_marker(approvals, serialize_mode):
            approvals.run(build, model=MODEL)

        def test_no_run(approvals, serialize_mode):
            pass

        def test_no_fixture(serialize_mode):
            pass
        """,
    )
    result = shop.run(agents="")

    result.assert_outcomes(failed=6, errors=2)
    result.stdout.fnmatch_lines(
        [
            "E *UsageError: the fixture serialize_mode has no effect without the fixture approvals, whose runs it sets",
            "E *UsageError: the test asks for serialize='json' by the fixture *, but its runs had 'copy'; *",
            "E *UsageError: the test asks for serialize='none' by the fixture *, but it made no run; *",
        ]
    )


def test_a_mode_that_the_agent_cannot_do(shop) -> None:
    """It is skipped if the fixture says it, and refused with the modes that there are if the test asks for it."""
    shop.write(
        "test_it.py",
        """
        from shop import MODEL, build

        def test_fixture(approvals, serialize_mode):
            approvals.run(build, model=MODEL)

        def test_call(approvals):
            approvals.run(build, model=MODEL, serialize="native.sqlite")

        def test_needs_a_save(approvals, serialize_mode):
            run = approvals.run(build, model=MODEL, history="append")
            assert run.events[0].variant["history"] == "append"
        """,
    )
    skipped = shop.run("-rs", "--approvals-serialize=native.sqlite", "-k", "fixture", agents="")
    result = shop.run("-k", "not fixture", "-rs", agents="")

    cannot = "pydantic_ai cannot do serialize='native.sqlite', which {} asks for; it can do none, copy, json"
    skipped.assert_outcomes(skipped=1, deselected=2)
    skipped.stdout.fnmatch_lines([f"SKIPPED * {cannot.format('the fixture serialize_mode')}"])
    result.assert_outcomes(failed=1, skipped=1, passed=1, deselected=2)
    result.stdout.fnmatch_lines([f"E *UsageError: {cannot.format('approvals.run')}", "SKIPPED *history='append'*"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("resume='fresh'", "resume='fresh' in approvals.run has no effect with serialize='none'; *`json`*"),
        ("history='append'", "history='append' in approvals.run has no effect with serialize='none'; *`json`"),
        ("answer='restored'", "answer='restored' in approvals.run has no effect with serialize='none'; *"),
        ("chunking='tokens'", "chunking='tokens' in approvals.run has no effect with stream=False; *"),
        ("oracle=approve_all", "Invalid oracle <function approve_all *>*: expected an oracle; call it: approve_all()"),
        ("oracle=5", "Invalid oracle 5 in approvals.run: expected an oracle, such as approve_all() or *"),
    ],
    ids=["resume", "history", "answer", "chunking", "uncalled-oracle", "no-oracle"],
)
def test_an_option_without_effect_is_refused(shop, arguments: str, error: str) -> None:
    """With the option that it needs."""
    shop.write(
        "test_it.py",
        f"""
        from pytest_approvals import approve_all
        from shop import MODEL, build

        def test_it(approvals):
            approvals.run(build, model=MODEL, {arguments})
        """,
    )

    shop.run(agents="").stdout.fnmatch_lines([f"E *UsageError: {error}"])


def test_what_is_said_for_all_tests_gives_way(shop) -> None:
    """What the call says stands, and an option of `approvals_config` that has no effect beside it is not taken."""
    shop.write(
        "test_it.py",
        """
        import pytest
        from shop import MODEL, build

        @pytest.fixture(scope="session")
        def approvals_config():
            return {"serialize": "json", "history": "append"}

        def test_it(approvals):
            said = approvals.run(build, model=MODEL).events[0].variant
            assert ("json", "append") == (said["serialize"], said["history"])
            said = approvals.run(build, model=MODEL, serialize="none").events[0].variant
            assert ("none", "whole") == (said["serialize"], said["history"])
        """,
    )

    shop.run(agents="").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ("None", "Invalid oracle None in the fixture approval_oracle: expected an oracle, such as *"),
        ("'aprove_all'", "Unknown oracle 'aprove_all'; did you mean 'approve_all'?"),
    ],
    ids=["none", "misspelled"],
)
def test_an_own_oracle_that_is_none_is_refused(shop, returned: str, error: str) -> None:
    """The fixture `approval_oracle` may be overridden with an oracle or its name, and with nothing else."""
    shop.write(
        "test_it.py",
        f"""
        import pytest
        from shop import MODEL, build

        @pytest.fixture
        def approval_oracle():
            return {returned}

        def test_it(approvals):
            approvals.run(build, model=MODEL)
        """,
    )

    shop.run(agents="").stdout.fnmatch_lines([f"E *: {error}"])
