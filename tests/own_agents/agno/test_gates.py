"""Every way in which the documentation of Agno lets a person stand before a call, each as it writes it.

https://docs.agno.com/hitl/overview
"""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.team import Team
from agno.tools import Toolkit, tool
from agno.workflow import Step, Workflow
from agno.workflow.types import HumanReview, StepInput, StepOutput

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    call,
    calls,
    decide,
    edit,
    reject,
    reject_all,
    returns,
    say,
    send,
)
from pytest_approvals.errors import UsageError

sent: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@tool(requires_user_input=True, user_input_fields=["to_address"])
def send_email(subject: str, body: str, to_address: str) -> str:
    """Send an email.

    Args:
        subject (str): The subject of the email.
        body (str): The body of the email.
        to_address (str): The address to send the email to.
    """
    sent.append(to_address)
    return f"Sent email to {to_address} with subject {subject} and body {body}"


def mailer(model: Any) -> Agent:
    return Agent(model=model, tools=[send_email], telemetry=False)


MAIL = [calls("send_email", subject="Hi", body="Hello"), say("Sent.")]
WHOLE = {"subject": "Hi", "body": "Hello", "to_address": "ann@example.org"}


@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
@pytest.mark.parametrize("stream", [False, True])
def test_user_input(approvals: Approvals, stream: bool, serialize: Any) -> None:
    """What the person fills in is an edit of the call's arguments."""
    run = approvals.run(
        mailer, model=MAIL, caller=[send("Write"), edit("c1", WHOLE)], stream=stream, serialize=serialize
    )

    assert ["ann@example.org"] == sent
    assert "Sent." == run.output


def test_user_input_in_words_of_the_application(approvals: Approvals) -> None:
    """The values that the application fills in can be said once, as what it means by an approval."""
    filled = {"to_address": "ann@example.org"}
    approvals.run(mailer, "Write", model=MAIL, oracle=approve_all(), answers={"approve": filled})

    assert ["ann@example.org"] == sent


@tool(external_execution=True)
def execute_shell_command(command: str) -> str:
    """Execute a shell command.

    Args:
        command (str): The shell command to execute.
    """
    sent.append(command)
    return f"ran {command}"


class Shell(Toolkit):
    def __init__(self) -> None:
        super().__init__(name="shell", tools=[self.list_dir], external_execution_required_tools=["list_dir"])

    def list_dir(self, directory: str) -> str:
        """Lists the contents of a directory."""
        sent.append(directory)
        return f"a file in {directory}"


def operator(model: Any) -> Agent:
    return Agent(model=model, tools=[execute_shell_command, Shell()], telemetry=False)


LS = [calls("execute_shell_command", command="ls"), say("Ran it.")]


@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
@pytest.mark.parametrize("stream", [False, True])
def test_external_execution(approvals: Approvals, stream: bool, serialize: Any) -> None:
    """An approval lets the application execute the tool's own body, and hand over the result."""
    run = approvals.run(operator, "List", model=LS, oracle=approve_all(), stream=stream, serialize=serialize)

    assert ["ls"] == sent
    assert ["ran ls"] == [one.result for one in run.calls["execute_shell_command"].executions]


def test_external_execution_that_is_refused(approvals: Approvals) -> None:
    """The application does not execute it, and hands over the reason in place of the result."""
    run = approvals.run(operator, "List", model=LS, oracle=reject_all("not here"))

    assert [] == sent
    assert "not here" in str(run.transcript)


def test_external_execution_by_a_stub(approvals: Approvals) -> None:
    """Its result can be said by the test."""
    run = approvals.run(
        operator, "List", model=LS, oracle=approve_all(), tools={"execute_shell_command": returns("a.txt")}
    )

    assert [] == sent
    assert ["a.txt"] == [one.result for one in run.calls["execute_shell_command"].executions]


def test_external_execution_of_a_toolkit(approvals: Approvals) -> None:
    """`external_execution_required_tools` names them."""
    model = [calls("list_dir", directory="docs"), say("One file.")]
    approvals.run(operator, model=model, caller=[send("List"), approve("c1")])

    assert ["docs"] == sent


class Transfers(Toolkit):
    def __init__(self) -> None:
        super().__init__(
            name="transfers", tools=[self.transfer, self.balance], requires_confirmation_tools=["transfer"]
        )

    def transfer(self, amount: int) -> str:
        """Transfers an amount."""
        sent.append(str(amount))
        return f"transferred {amount}"

    async def balance(self) -> int:
        """Returns the balance."""
        return 7


def test_toolkit_with_confirmation(approvals: Approvals) -> None:
    """Only the named tools of a toolkit are asked about."""
    model = [calls("balance"), calls("transfer", amount=5), calls("transfer", amount=6), say("Done.")]
    run = approvals.run(
        lambda model: Agent(model=model, tools=[Transfers()], telemetry=False),
        model=model,
        caller=[send("Pay"), approve("c2"), reject("c3")],
        gated={"transfer"},
    )

    assert ["5"] == sent
    assert ["transfer", "transfer"] == [request.tool for request in run.requests]


def build_audited(model: Any) -> Agent:
    from agno.approval import approval

    @approval
    @tool(requires_confirmation=True)
    def delete_user_data(user: str) -> str:
        """Deletes all data of a user."""
        sent.append(user)
        return f"deleted {user}"

    return Agent(model=model, tools=[delete_user_data], db=InMemoryDb(), telemetry=False)


@pytest.mark.parametrize("decide", [approve, reject])
def test_approval_decorator(approvals: Approvals, decide: Any) -> None:
    """`@approval` keeps a record of a confirmation."""
    model = [calls("delete_user_data", user="ann"), say("Done.")]
    approvals.run(build_audited, model=model, caller=[send("Delete"), decide("c1")])

    assert sent == (["ann"] if decide is approve else [])


def build_asking(model: Any) -> Agent:
    from agno.tools.user_control_flow import UserControlFlowTools

    return Agent(model=model, tools=[UserControlFlowTools()], telemetry=False)


def test_user_control_flow(approvals: Approvals) -> None:
    """The model asks for input by itself, with a tool of the framework."""
    field = {"field_name": "to", "field_type": "str", "field_description": "The address"}
    run = approvals.run(
        build_asking,
        "Write",
        model=[calls("get_user_input", user_input_fields=[field]), say("Got it.")],
        oracle=approve_all(),
        answers={"approve": {"to": "ann@example.org"}},
    )

    assert "Got it." == run.output


def build_choosing(model: Any) -> Agent:
    from agno.tools.user_feedback import UserFeedbackTools

    return Agent(model=model, tools=[UserFeedbackTools()], telemetry=False)


def test_user_feedback(approvals: Approvals) -> None:
    """The model lets the person choose among options."""
    question = {
        "question": "Which colour?",
        "header": "Colour",
        "options": [{"label": "red", "description": ""}, {"label": "blue", "description": ""}],
    }
    run = approvals.run(
        build_choosing,
        "Paint",
        model=[calls("ask_user", questions=[question]), say("Red it is.")],
        oracle=approve_all(),
        answers={"approve": {"Which colour?": ["red"]}},
    )

    assert "Red it is." == run.output


def test_an_approval_without_the_input_is_refused(approvals: Approvals) -> None:
    """The message says how to give it."""
    with pytest.raises(UsageError, match=r"the agent asks for values: write edit\(...\) with all arguments"):
        approvals.run(mailer, "Write", model=MAIL, oracle=approve_all())


# --- workflows, after https://docs.agno.com/examples/workflows/human-in-the-loop/executor-hitl/agent-confirmation


@tool(requires_confirmation=True)
def deploy(version: str) -> str:
    """Deploys a version."""
    sent.append(version)
    return f"deployed {version}"


def summarize(step_input: StepInput) -> StepOutput:
    return StepOutput(content=f"summary of {step_input.previous_step_content}")


def of_steps(model: Any) -> Workflow:
    checker, deployer = Agent(name="Checker", model=model), Agent(name="Deployer", model=model, tools=[deploy])
    steps = [Step(name="check", agent=checker), Step(name="deploy", agent=deployer)]
    return Workflow(name="release", steps=[*steps, Step(name="end", executor=summarize)])


def of_plain_agents(model: Any) -> Workflow:
    return Workflow(name="release", steps=[Agent(name="Deployer", model=model, tools=[deploy]), summarize])


def of_team(model: Any) -> Workflow:
    team = Team(name="Desk", members=[Agent(name="Deployer", model=model, tools=[deploy])], model=model)
    return Workflow(name="release", steps=[Step(name="deploy", team=team)])


DEPLOYMENT = [calls("deploy", version="2"), say("Over.")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("oracle", [approve_all(), reject_all("no")])
def test_workflow(approvals: Approvals, oracle: Any, stream: bool) -> None:
    """A workflow pauses where the agent of a step does, and goes on with its later steps."""
    model = {"main": [say("Fine.")], "deployer": DEPLOYMENT}
    run = approvals.run(of_steps, "Release 2", model=model, oracle=oracle, gated={"deploy"}, stream=stream)

    assert sent == (["2"] if oracle.name == "approve_all()" else [])
    assert "summary of Over." == run.output
    assert ["deploy"] == [request.tool for request in run.requests]


def test_workflow_of_plain_agents(approvals: Approvals) -> None:
    """An agent may be a step by itself; each of its calls has its answer."""
    both = calls(call("deploy", version="2"), call("deploy", version="3"))
    caller = [send("Release"), decide(approve("c1"), reject("c2"))]
    approvals.run(of_plain_agents, model=[both, say("Over.")], caller=caller)

    assert ["2"] == sent


def test_workflow_with_a_team(approvals: Approvals) -> None:
    """Requests of the members of a team surface, too."""
    order = calls("delegate_task_to_member", member_id="deployer", task="Deploy 2")
    approvals.run(of_team, "Go", model={"main": [order, say("Done.")], "deployer": DEPLOYMENT}, oracle=approve_all())

    assert ["2"] == sent


def test_a_workflow_keeps_its_state(approvals: Approvals) -> None:
    """It is continued with its output, as it is."""
    with pytest.raises(UsageError, match="a workflow is continued with its output, which is kept as it is"):
        approvals.run(of_plain_agents, "Go", model=DEPLOYMENT, serialize="copy")


def test_a_step_that_asks_by_itself_is_refused(approvals: Approvals) -> None:
    """There is no call that a decision could be about."""

    def build(model: Any) -> Workflow:
        review = HumanReview(requires_confirmation=True)
        return Workflow(name="release", steps=[Step(name="write", agent=mailer(model), human_review=review)])

    with pytest.raises(UsageError, match="the step 'write' asks by itself, and not about a call of a tool"):
        approvals.run(build, "Go", model=[say("Done.")])


def test_a_workflow_without_agents_is_refused(approvals: Approvals) -> None:
    """No model would be asked."""
    with pytest.raises(UsageError, match="no step of the workflow runs an agent or a team"):
        approvals.run(lambda model: Workflow(name="release", steps=[summarize]), "Go", model=[say("Done.")])


def give_tools(*, gated: bool = True) -> Any:
    async def give(session_state: dict[str, Any]) -> list[Any]:
        @tool(requires_confirmation=gated)
        def wipe(disk: str) -> str:
            """Wipes a disk."""
            session_state["wiped"] = disk
            return f"{disk} is empty"

        return [wipe]

    return give


@pytest.mark.parametrize("stream", [False, True])
def test_tools_that_a_function_gives(approvals: Approvals, stream: bool) -> None:
    """They are known when the agent runs, and can be gated by name."""
    both = calls(call("wipe", disk="a"), call("wipe", disk="b"))
    run = approvals.run(
        lambda model: Agent(model=model, tools=give_tools(), telemetry=False),
        model=[both, say("One.")],
        gated={"wipe"},
        caller=[send("Wipe"), decide(reject("c1"), approve("c2"))],
        stream=stream,
    )

    assert [[], ["b is empty"]] == [[one.result for one in made.executions] for made in run.calls["wipe"].made]


def test_a_forgotten_gate_of_such_a_tool_is_found(approvals: Approvals) -> None:
    """By the name in the test."""
    with pytest.raises(CheckFailed, match="approval-before-execution"):
        approvals.run(
            lambda model: Agent(model=model, tools=give_tools(gated=False), telemetry=False),
            "Wipe",
            model=[calls("wipe", disk="a"), say("Done.")],
            gated={"wipe"},
        )
