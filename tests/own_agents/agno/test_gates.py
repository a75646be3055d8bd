"""Every way in which the documentation of Agno lets a person stand before a call, each as it writes it.

https://docs.agno.com/hitl/overview
"""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.tools import Toolkit, tool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, returns, say, send
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


def test_a_workflow_is_refused(approvals: Approvals) -> None:
    """Its agents can be tested one by one."""
    from agno.workflow import Step, Workflow

    def build(model: Any) -> Any:
        return Workflow(name="mail", steps=[Step(name="write", agent=mailer(model))])

    with pytest.raises(UsageError, match="a Workflow is not driven; hand over the agent or the team of one of its"):
        approvals.run(build, "Write", model=MAIL)
