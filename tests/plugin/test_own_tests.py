"""A person's own tests of a person's own agent."""

from __future__ import annotations

import agents
import pydantic_ai
import pytest

__all__ = ["agents", "pydantic_ai"]

PYDANTIC_AI = """
from pydantic_ai import Agent, DeferredToolRequests, RunContext

class Deps:
    def __init__(self):
        self.refunded, self.mails = [], []

def build_support_agent(model):
    agent = Agent(model, deps_type=Deps, output_type=[str, DeferredToolRequests])

    @agent.tool(requires_approval=True)
    def refund(ctx: RunContext[Deps], order: int) -> str:
        ctx.deps.refunded.append(order)
        return "refunded"

    @agent.tool
    def send_mail(ctx: RunContext[Deps], text: str) -> str:
        ctx.deps.mails.append(text)
        return "sent"

    return agent

def build_careless_agent(model):
    agent = Agent(model, deps_type=Deps)

    @agent.tool
    def refund(ctx: RunContext[Deps], order: int) -> str:
        ctx.deps.refunded.append(order)
        return "refunded"

    return agent

def options():
    return {"deps": Deps()}
"""

OPENAI_AGENTS = """
from agents import Agent, function_tool

class Deps:
    refunded, mails = [], []

def options():
    Deps.refunded, Deps.mails = [], []
    return {"context": Deps}

def build_support_agent(model):
    @function_tool(needs_approval=True)
    def refund(order: int) -> str:
        '''Refunds an order.'''
        Deps.refunded.append(order)
        return "refunded"

    @function_tool
    def send_mail(text: str) -> str:
        '''Sends a mail.'''
        Deps.mails.append(text)
        return "sent"

    return Agent(name="support", model=model, tools=[refund, send_mail])

def build_careless_agent(model):
    @function_tool
    def refund(order: int) -> str:
        '''Refunds an order.'''
        Deps.refunded.append(order)
        return "refunded"

    return Agent(name="support", model=model, tools=[refund])
"""

FRAMEWORKS = {"pydantic_ai": PYDANTIC_AI, "openai_agents": OPENAI_AGENTS}

REJECTED = """
from pytest_approvals import calls, reject_all, returns, say
from support import build_support_agent, options

def test_refund_waits_for_approval(approvals, transcript_snapshot):
    run = approvals.run(
        build_support_agent,
        "Refund order 42",
        model=[calls("refund", order=42), say("Refunded.")],
        gated={"refund"},
        tools={"send_mail": returns("ok")},
        run_options=options(),
        oracle=reject_all("over the limit"),
        serialize="json",
    )
    assert run.calls["refund"].executions == []
    assert [asked.entry["arguments"] for asked in run.requests] == [{"order": 42}]
    assert run.output == "Refunded."
    assert run == transcript_snapshot
"""

TRANSCRIPT = """\
turn 1
  caller  sends "Refund order 42"
  model   is asked "Refund order 42"
  model   calls c1 refund(order=42)
  agent   pauses for c1

turn 2
  caller  rejects c1: over the limit
  model   is told c1: "over the limit"
  model   says "Refunded."
  agent   finishes with "Refunded."

end
  run     ends

calls
  c1 refund(order=42): asked → rejected: over the limit → not run → told "over the limit"
"""


@pytest.fixture(params=sorted(FRAMEWORKS))
def support(project, request: pytest.FixtureRequest):
    """A project with a support agent of each framework."""
    project.write("support.py", FRAMEWORKS[request.param])
    project.write("conftest.py", "import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).parent))")
    project.ini("filterwarnings = default")
    project.name = request.param
    return project


def test_the_example_of_the_documentation_works(support) -> None:
    """The run is judged, its calls can be looked at, and its transcript is stored and compared."""
    path = support.write("test_support.py", REJECTED)
    missing = support.run(path.name, agents="")
    stored = support.run(path.name, "--snapshot-update", agents="")
    compared = support.run(path.name, agents="")

    missing.assert_outcomes(failed=1)
    stored.assert_outcomes(passed=1)
    compared.assert_outcomes(passed=1)
    (transcript,) = (support.path / "__snapshots__" / "test_support").iterdir()
    assert TRANSCRIPT == transcript.read_text()


def test_a_fixture_snapshot_of_the_project_is_left_alone(support) -> None:
    """`transcript_snapshot` stores a transcript, whatever the project's own `snapshot` is."""
    support.write(
        "conftest.py",
        """
        import pytest

        @pytest.fixture
        def snapshot():
            return "a snapshot of the database"
        """,
    )
    path = support.write(
        "test_support.py",
        REJECTED + '\n\ndef test_own(snapshot):\n    assert "a snapshot of the database" == snapshot\n',
    )
    stored = support.run(path.name, "--snapshot-update", agents="")

    stored.assert_outcomes(passed=2)
    (transcript,) = (support.path / "__snapshots__" / "test_support").iterdir()
    assert TRANSCRIPT == transcript.read_text()


def test_transcript_snapshot_without_syrupy_says_what_to_do(support) -> None:
    """Switched off, syrupy's plugin has no place for what is stored."""
    path = support.write("test_support.py", "def test_it(transcript_snapshot):\n    pass\n")
    result = support.run(path.name, "-p", "no:syrupy", agents="")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["E *UsageError: transcript_snapshot needs the plugin of syrupy; remove `-p no:syrupy`"]
    )


def test_a_forgotten_gate_is_found(support) -> None:
    """A tool that must wait, and that the framework does not mark, runs at once: `CheckFailed` is raised there."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import calls, say
        from support import build_careless_agent, options

        def test_refund_waits(approvals):
            approvals.run(
                build_careless_agent,
                model=[calls("refund", order=42), say("Refunded.")],
                gated={"refund"},
                run_options=options(),
            )
        """,
    )
    result = support.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *.CheckFailed: approval-before-execution: a call that needs approval must not run before *",
            f"E *test_support.py::test_refund_waits * {support.name} * * none, held",
            "E *rerun  pytest test_support.py::test_refund_waits",
            "*- approvals transcript -*",
        ]
    )


def test_a_failed_comparison_shows_what_ran_and_the_transcript(support) -> None:
    """Each execution takes one line; the transcript comes below, and `print(run)` is the same text."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import approve_all, calls, say
        from support import build_support_agent, options

        def test_refund_does_not_run(approvals):
            run = approvals.run(
                build_support_agent,
                "Refund",
                model=[calls("refund", order=42), say("Refunded.")],
                gated={"refund"},
                run_options=options(),
                oracle=approve_all(),
            )
            print(run)
            assert run.calls["refund"].executions == []
        """,
    )
    result = support.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *assert [[]<execution o*>] == [[]]",
            "E *Left contains one more item: <execution of c1 refund(order=42): returned 'refunded'>",
            "*- Captured stdout call -*",
            "turn 1",
            '  caller  sends "Refund"',
            "*- approvals transcript -*",
            "turn 1",
            '  caller  sends "Refund"',
        ]
    )


@pytest.mark.parametrize("plugin", ["asyncio", "anyio"])
def test_asynchronous_tests_work(support, plugin: str) -> None:
    """`arun` runs in the loop of the test, under pytest-asyncio and under anyio; `run` works there, too."""
    marker = "pytest.mark.asyncio" if plugin == "asyncio" else "pytest.mark.anyio"
    support.write(
        "test_support.py",
        f"""
        import asyncio, pytest
        from pytest_approvals import calls, say
        from support import build_support_agent, options

        MODEL = [calls("refund", order=42), say("Refunded.")]

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @{marker}
        async def test_awaited(approvals):
            loop = asyncio.get_running_loop()
            run = await approvals.arun(build_support_agent, model=MODEL, run_options=options())
            assert [one.result for one in run.calls["refund"].executions] == ["refunded"]
            assert asyncio.get_running_loop() is loop

        @{marker}
        async def test_not_awaited(approvals):
            run = approvals.run(build_support_agent, model=MODEL, run_options=options())
            assert [one.result for one in run.calls["refund"].executions] == ["refunded"]

        def test_without_a_loop(approvals):
            run = approvals.run(build_support_agent, model=MODEL, run_options=options())
            assert [one.result for one in run.calls["refund"].executions] == ["refunded"]
        """,
    )
    other = "anyio" if plugin == "asyncio" else "asyncio"
    result = support.run("-p", f"no:{other}", "--strict-markers", agents="")

    result.assert_outcomes(passed=3)


def test_tools_that_are_no_stubs_run_for_real(support) -> None:
    """A stub does what the test says; every other tool does what it does."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import calls, returns, say
        from support import Deps, build_support_agent, options

        MODEL = [calls("send_mail", text="hello"), say("Sent.")]

        def test_real(approvals):
            given = options()
            run = approvals.run(build_support_agent, model=MODEL, run_options=given)
            assert [one.result for one in run.calls["send_mail"].executions] == ["sent"]
            assert next(iter(given.values())).mails == ["hello"]

        def test_stub(approvals):
            given = options()
            run = approvals.run(build_support_agent, model=MODEL, run_options=given, tools={"send_mail": returns("no")})
            assert [one.result for one in run.calls["send_mail"].executions] == ["no"]
            assert next(iter(given.values())).mails == []
        """,
    )

    support.run(agents="").assert_outcomes(passed=2)


def test_the_scripted_model_can_be_asked_what_it_was_asked(support) -> None:
    """The fixture is written line by line, and knows its requests afterwards."""
    support.write(
        "test_support.py",
        """
        from support import build_support_agent, options

        def test_requests(approvals, scripted_model):
            scripted_model.calls("refund", order=42).says("Refunded.")
            approvals.run(build_support_agent, "Refund order 42", model=scripted_model, run_options=options())
            first, second = scripted_model.requests
            assert first.items[0]["text"] == "Refund order 42"
            assert second.items[-1]["kind"] == "result"
        """,
    )

    support.run(agents="").assert_outcomes(passed=1)


def test_an_agent_that_fails_for_another_reason_is_raised(support) -> None:
    """A turn that nobody let fail is an error of the test, not a run without calls."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import calls, say
        from support import build_support_agent, options

        MODEL = [calls("refund", order=42), say("Refunded.")]
        WRONG = {"no_such_option": 1}

        def test_raised(approvals):
            approvals.run(build_support_agent, model=MODEL, run_options=options() | WRONG)

        def test_collected(approvals):
            run = approvals.run(build_support_agent, model=MODEL, run_options=options() | WRONG, checks="collect")
            assert run.failure[0] == "TypeError"
        """,
    )
    result = support.run(agents="")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [f"E *.AgentFailed: the last turn of {support.name} failed with TypeError: *no_such_option*"]
    )


def test_a_decision_about_a_call_that_is_not_asked_about_names_those_that_are(support):
    """Who counts the calls wrongly is told how they are called."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import approve, calls, say, send
        from support import build_support_agent, options

        def test_refund(approvals):
            replies = [calls("send_mail", text="Hello"), calls("refund", order=42), say("Refunded.")]
            caller = [send("Refund 42"), approve("c1")]
            approvals.run(build_support_agent, model=replies, run_options=options(), caller=caller)
        """,
    )
    result = support.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *the test decides about c1; what is asked about is c2"])


def test_what_is_collected_is_not_warned_of(support):
    """A warning is an error in many projects."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import calls, reject, say, send
        from support import build_support_agent, options

        def test_refund(approvals):
            replies = [calls("refund", order=42), say("Refunded.")]
            caller = [send("Refund 42"), send("Never mind")]
            run = approvals.run(
                build_support_agent, model=replies, run_options=options(), caller=caller, checks="collect", gated=[]
            )
            assert [] != [verdict for verdict in run.verdicts if verdict.status == "warning"]
        """,
    )
    support.run("-W", "error", agents="").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("gated={'refnd'}", "Unknown tool 'refnd' in gated= for *; did you mean 'refund'?"),
        ("gated='refund'", "gated= is a set of names: gated={'refund'}"),
        (
            "tools={'send_male': returns('ok')}",
            "Unknown tool 'send_male' in tools= for *; did you mean 'send_mail'?",
        ),
        (
            "tools={'send_mail': 'ok'}",
            "tools={'send_mail': ...} takes what returns(), raises() or asks_again() make, not 'ok'",
        ),
        ("serialise='json'", "Approvals.run() got an unexpected keyword argument 'serialise'"),
        ("serialize='jsn'", "Unknown serialize 'jsn' in approvals.run; did you mean 'json'?"),
        ("stream='yes'", "Unknown stream 'yes' in approvals.run; valid: False, True"),
        ("checks='rise'", "Unknown checks 'rise' in approvals.run; did you mean 'raise'?"),
        ("time_limit=0", "Invalid time_limit 0 in approvals.run: expected a positive number of seconds"),
        ("agent='pydantic'", "Unknown agent 'pydantic'; did you mean 'pydantic_ai'?"),
        ("oracle='approve'", "Unknown oracle 'approve'; did you mean 'approve_all'?"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(support, arguments: str, error: str) -> None:
    """With the nearest word that can be."""
    support.write(
        "test_support.py",
        f"""
        from pytest_approvals import calls, returns, say
        from support import build_support_agent, options

        def test_it(approvals):
            model = [calls("refund", order=42), say("Refunded.")]
            approvals.run(build_support_agent, model=model, run_options=options(), {arguments})
        """,
    )
    result = support.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *: {error.replace('[', '[[]')}"])


def test_what_is_no_agent_is_refused(project) -> None:
    """Neither an object of a framework nor a factory."""
    project.write(
        "test_it.py",
        """
        from pytest_approvals import say

        def test_it(approvals):
            approvals.run(42, model=[say("Done.")])
        """,
    )

    project.run(agents="").stdout.fnmatch_lines(
        ["E *: an object of builtins.int is neither an agent of a known framework nor a factory of one"]
    )


def test_settings_come_from_the_marker_and_the_fixture(support) -> None:
    """The call counts more than the marker, the marker more than the fixture, the fixture more than the options."""
    support.write(
        "test_support.py",
        """
        import pytest
        from pytest_approvals import calls, say, reject_all
        from support import build_support_agent, options

        MODEL = [calls("refund", order=42), say("Refunded.")]

        @pytest.fixture(scope="session")
        def approvals_config():
            return {"serialize": "json", "seed": 3}

        @pytest.fixture
        def approval_oracle():
            return reject_all("no")

        def variant(approvals, **wishes):
            run = approvals.run(build_support_agent, model=MODEL, run_options=options(), **wishes)
            assert run.calls["refund"].executions == []
            return run.events[0].variant["serialize"], run.events[0].variant["source"], run.events[0].seed

        def test_fixture(approvals):
            assert variant(approvals) == ("json", "restored", 3)

        @pytest.mark.approvals(serialize="none", seed=5)
        def test_marker(approvals):
            assert variant(approvals) == ("none", "held", 5)

        @pytest.mark.approvals(serialize="none")
        def test_call(approvals):
            assert variant(approvals, serialize="json", answer="rebuilt") == ("json", "rebuilt", 3)
        """,
    )

    support.run("--approvals-serialize=none", "--approvals-seed=9", agents="").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        (
            "serialise='json'",
            "test_it.py::test_it: Unknown setting 'serialise' in the marker approvals; did you mean 'serialize'?",
        ),
        ("'json'", "test_it.py::test_it: the marker approvals takes settings by name, and not 'json'"),
    ],
)
def test_a_marker_that_cannot_be_used_is_refused(project, marker: str, error: str) -> None:
    """At once, before any test runs."""
    project.write(
        "test_it.py",
        f"""
        import pytest

        @pytest.mark.approvals({marker})
        def test_it(): pass
        """,
    )
    result = project.run(agents="")

    assert 4 == result.ret
    result.stderr.fnmatch_lines([f"ERROR: {error}"])


def test_a_test_can_run_in_several_modes(support) -> None:
    """The fixture `serialize_mode` runs a test once with each; an option says with which."""
    support.write(
        "test_support.py",
        """
        from pytest_approvals import calls, say
        from support import build_support_agent, options

        def test_it(approvals, serialize_mode):
            model = [calls("refund", order=42), say("Refunded.")]
            run = approvals.run(build_support_agent, model=model, run_options=options(), serialize=serialize_mode)
            assert run.events[0].variant["serialize"] == serialize_mode
        """,
    )

    assert ["test_support.py::test_it[none]", "test_support.py::test_it[json]"] == support.items(agents="")
    assert ["test_support.py::test_it[json]"] == support.items("--approvals-serialize=json", agents="")
    support.run(agents="").assert_outcomes(passed=2)
