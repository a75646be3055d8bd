"""The adapter of an agent that plays its model's replies as they come; it knows one gated call at a time."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.adapter import (
    CAPABILITIES,
    Agent,
    Blueprint,
    Decision,
    Finished,
    Item,
    ModelCall,
    Outcome,
    Paused,
    Request,
    World,
)

CAN = frozenset({"answer.held", "answer.rebuilt", "reject_reason"})
CANNOT = {name: "an example stays small" for name in CAPABILITIES if name not in CAN}


class Echo(Agent):
    """One conversation, kept in a list."""

    wire_rules = "chat"
    capabilities = CAN
    missing = CANNOT

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.items: list[Item] = []
        self.waiting: ModelCall | None = None

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None:
            self.add(kind="user", text=text)
        for decision in decisions:
            await self.settle(decision)
        return await self.go_on()

    async def pending(self) -> Sequence[Request]:
        return [self.request(self.waiting)] if self.waiting is not None else []

    async def settle(self, decision: Decision) -> None:
        """Runs the waiting call, or tells the model that it may not run."""
        call, self.waiting = self.waiting, None
        if call is None or decision.request is None or decision.request.id != call.id:
            raise ValueError("nothing waits for this decision")
        if decision.verdict == "approve":
            await self.run(call)
        else:
            self.add(kind="result", id=call.id, tool=call.tool, text=f"rejected: {decision.reason or 'no reason'}")

    async def go_on(self) -> Outcome:
        """Asks the model until it calls a gated tool, or none."""
        gated = {tool.name for tool in self.blueprint.tools if tool.approval == "always"}
        while True:
            reply = await self.world.model(self.items, tools=[tool.name for tool in self.blueprint.tools])
            if reply.say is not None:
                self.add(kind="say", text=reply.say)
            if not reply.calls:
                return Finished(output=reply.say)
            (call,) = reply.calls
            self.add(kind="call", id=call.id, tool=call.tool, arguments=call.arguments)
            if call.tool in gated:
                self.waiting = call
                return Paused(requests=(self.request(call),))
            await self.run(call)

    async def run(self, call: ModelCall) -> None:
        """Runs a call, and keeps what it returned for the model."""
        assert not isinstance(call.arguments, str)
        result = await self.world.run(call.tool, call.arguments, call.id)
        self.add(kind="result", id=call.id, tool=call.tool, text=str(result))

    def request(self, call: ModelCall) -> Request:
        """Shows a call to a person."""
        return Request(id=call.id or "", call_id=call.id, tool=call.tool, arguments=call.arguments)

    def add(self, **facts: object) -> None:
        """Adds a message to the conversation."""
        self.items.append(Item(message=len(self.items), **facts))  # type: ignore[arg-type]


FLAVOURS = {"": Echo}
