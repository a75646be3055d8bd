"""Tools, middleware and providers as the samples of the Agent Framework write them, beside a gate.

https://github.com/microsoft/agent-framework/tree/main/python/samples/02-agents
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import pytest
from agent_framework import (
    Agent,
    ChatContext,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    Message,
    SlidingWindowStrategy,
    chat_middleware,
    function_middleware,
    tool,
)
from pydantic import BaseModel, Field

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    call,
    calls,
    decide,
    reject,
    say,
    send,
)

done: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


class Kind(Enum):
    BOOK = "book"
    GAME = "game"


class Item(BaseModel):
    sku: str
    kind: Kind = Kind.BOOK


class Bill(BaseModel):
    amount: Annotated[int, Field(description="How much", ge=1)]
    to: str = "bob"


@tool(approval_mode="always_require")
async def buy(item: Annotated[Item, "What"], notes: list[str] | None = None) -> Item:
    """Buys an item."""
    # The framework hands models over as dictionaries.
    bought = Item.model_validate(item)
    done.append(("buy", bought.sku))
    return bought


@tool(name="pay_bill", schema=Bill, approval_mode="always_require")
def pay(amount: int, to: str = "bob") -> dict[str, Any]:
    """Pays a bill."""
    done.append(("pay", amount, to))
    return {"paid": amount}


@tool(result_parser=lambda value: f"<{value}>")
def look(sku: str, ctx: FunctionInvocationContext) -> int:
    """Looks at an item."""
    return len(sku)


def picture(sku: str) -> list[Content]:
    """Shows an item."""
    return [Content.from_text("a picture"), Content.from_uri("https://example.org/a.png", media_type="image/png")]


def build(client: Any, **options: Any) -> Agent:
    return Agent(client=client, name="shop", tools=[buy, pay, look, picture], **options)


GATES = {"buy", "pay_bill"}
BUY = calls("buy", item={"sku": "s"})


@pytest.mark.parametrize("stream", [False, True])
def test_all_kinds_of_tools(approvals: Approvals, serialize_mode: str, stream: bool) -> None:
    """Each call runs once, whatever its arguments and its result are made of."""
    approvals.run(
        build,
        "Go",
        model=[calls("picture", sku="a"), calls("look", sku="d"), BUY, calls("pay_bill", amount=3), say("Done.")],
        gated=GATES,
        oracle=approve_all(),
        stream=stream,
    )

    assert [("buy", "s"), ("pay", 3, "bob")] == done


@pytest.mark.parametrize("stream", [False, True])
def test_each_call_has_its_own_answer(approvals: Approvals, serialize_mode: str, stream: bool) -> None:
    """Of two calls of one tool, too."""
    both = calls(call("pay_bill", amount=2), call("pay_bill", amount=4, to="ann"), call("buy", item={"sku": "s"}))
    approvals.run(
        build,
        model=[both, say("Done.")],
        gated=GATES,
        caller=[send("Go"), decide(reject("c1"), approve("c2"), reject("c3"))],
        stream=stream,
    )

    assert [("pay", 4, "ann")] == done


class Memory(ContextProvider):
    def __init__(self) -> None:
        super().__init__("memory")

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        context.extend_messages(self, [Message("user", ["The user is called Ann."])])


@chat_middleware
async def redact(context: ChatContext, call_next: Any) -> None:
    context.messages = [
        Message(message.role, [Content.from_text(message.text.replace("ann@example.org", "[mail]"))])
        if message.role == "user" and message.text
        else message
        for message in context.messages
    ]
    await call_next()


SETTINGS: list[dict[str, Any]] = [
    {"compaction_strategy": SlidingWindowStrategy(keep_last_groups=2)},
    {"context_providers": [Memory()]},
    {"middleware": [redact]},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: next(iter(settings)))
def test_settings_that_change_what_the_model_is_told(
    approvals: Approvals, settings: dict[str, Any], stream: bool
) -> None:
    """What an application leaves out of earlier turns, adds, or says in other words, is its own choice."""
    approvals.run(
        lambda client: build(client, **settings),
        model=[say("A."), say("B."), BUY, say("Done.")],
        gated=GATES,
        caller=[send("First"), send("Second"), send("Buy for ann@example.org"), approve("c1")],
        stream=stream,
    )

    assert [("buy", "s")] == done


def test_a_middleware_that_tries_again(approvals: Approvals) -> None:
    """An approved call that raised may run again in its turn if the application asks for it."""

    @function_middleware
    async def retry(context: FunctionInvocationContext, call_next: Any) -> None:
        try:
            await call_next()
        except ConnectionError:
            await call_next()

    @tool(approval_mode="always_require")
    def connect(host: str) -> str:
        """Connects."""
        done.append((host,))
        if len(done) == 1:
            raise ConnectionError(host)
        return "connected"

    run = approvals.run(
        lambda client: Agent(client=client, tools=[connect], middleware=[retry]),
        "Connect",
        model=[calls("connect", host="a"), say("Done.")],
        gated={"connect"},
        oracle=approve_all(),
    )

    assert ["raised", "returned"] == [execution.how for execution in run.calls["connect"].executions]


def test_a_middleware_that_repeats_what_has_succeeded_is_found(approvals: Approvals) -> None:
    """A second run after a success is a second effect."""

    @function_middleware
    async def repeat(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        await call_next()

    with pytest.raises(CheckFailed, match="runs-at-most-once"):
        approvals.run(
            lambda client: build(client, middleware=[repeat]),
            "Buy",
            model=[BUY, say("Done.")],
            gated=GATES,
            oracle=approve_all(),
        )


def test_a_middleware_that_completes_a_call(approvals: Approvals) -> None:
    """Of a call that nobody has to approve, an application may change the arguments."""

    @function_middleware
    async def fix(context: FunctionInvocationContext, call_next: Any) -> None:
        context.arguments = {"sku": "fixed"}
        await call_next()

    run = approvals.run(
        lambda client: build(client, middleware=[fix]),
        "Look",
        model=[calls("look", sku="s"), say("Done.")],
        gated=GATES,
    )

    assert {"sku": "fixed"} == run.calls["look"].executions[0].arguments
