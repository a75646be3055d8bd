"""
Working off the calls of a reply: look at each, ask where approval is needed, run what may run, tell the model.

Calls are worked on at the same time. What may run does not wait for what has to be asked; the model waits for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pytest_approvals.agent_side.failures import AsksAgain
from pytest_approvals.agent_side.neutral import Item, ToolSpec

from . import wording
from .arguments import Misfit, fitted
from .conversing import Conversing, Turn
from .refusals import LimitReached
from .state import Call, Conversation, detached


class Working(Conversing):
    """The layer that works."""

    async def go_on(self, conversation: Conversation, turn: Turn) -> bool:
        """
        Goes on with a conversation until it has an output or waits for decisions; says whether it has an output.

        Whatever is raised, what was done until then stays done, and a later turn goes on from there.
        """
        while True:
            if conversation.calls:
                await self.work_off(conversation, turn)
                if any(call.stage != "done" for call in conversation.calls):
                    return False
                self.tell(conversation)
            for text in conversation.inbox:
                self.hear(conversation, text)
            conversation.inbox = []
            if not conversation.asks_model:
                return True
            await self.ask_model(conversation, turn)

    async def work_off(self, conversation: Conversation, turn: Turn) -> None:
        """Works on all calls that can be worked on, at the same time; the first error is raised when all have ended."""
        todo = [call for call in conversation.calls if call.stage in ("new", "approved")]
        if len(todo) == 1:
            await self.work_on(conversation, todo[0], turn)
        elif todo:
            works = [self.work_on(conversation, call, turn) for call in todo]
            for ended in await asyncio.gather(*works, return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended

    async def work_on(self, conversation: Conversation, call: Call, turn: Turn) -> None:
        """Takes one call as far as it gets without a decision."""
        if call.stage == "new":
            await self.look_at(conversation, call, turn)
        if call.stage == "approved":
            await self.carry_out(conversation, call, turn)

    # --- may it run? --------------------------------------------------------------------------------------------------

    async def look_at(self, conversation: Conversation, call: Call, turn: Turn) -> None:
        """Looks at a new call, once: answers it where it cannot run, lets it run, or lets it wait for a decision."""
        if call.kind == "hosted_mcp":
            spec = self.spec_of(conversation, call)
        elif (spec := self.tool_for(conversation, call, turn)) is None:
            return None
        if not await self.needs_approval(conversation, call, spec):
            call.stage = "approved"
            return None
        call.stage = "waiting"
        return self.apply_standing(conversation, call, turn)

    def tool_for(self, conversation: Conversation, call: Call, turn: Turn) -> ToolSpec | None:
        """
        Gives the tool that takes a call as it is; without one the model is told why.

        A call is held against its tool when it comes and again before it runs: what was saved, and the tools, may be
        others by then.
        """
        spec = self.spec_of(conversation, call)
        if spec is None:
            self.finish(call, wording.unavailable(call.tool), turn)
            return None
        try:
            call.arguments = fitted(spec, call.arguments)
        except Misfit as error:
            self.finish(call, wording.misfit(call.tool, str(error)), turn)
            return None
        return spec

    async def needs_approval(self, conversation: Conversation, call: Call, spec: ToolSpec | None) -> bool:
        """Asks the policy whether a call needs approval; where it cannot answer, the call does."""
        if spec is None:
            return True
        if spec.approval == "always" or spec.approval == "never":
            return spec.approval == "always"
        try:
            if spec.approval.waits_for:
                return await self.world.gate_slowly(call.tool, call.arguments, call.id, agent=conversation.agent)
            return self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
        except Exception:
            return True

    def apply_standing(self, conversation: Conversation, call: Call, turn: Turn) -> None:
        """Lets what was decided for all calls like this one take effect; a question in the middle of a tool is none."""
        about = self.stands_for(conversation, call)
        standing = next((one for one in reversed(self.state.standing) if one.about == about), None)
        if standing is None or call.entered:
            return
        if standing.verdict == "never":
            self.refuse(call, wording.rejected(standing.reason), turn)
        else:
            self.approve(call)

    def stands_for(self, conversation: Conversation, call: Call) -> list[str | None]:
        """Says which calls a standing decision about this one is about: of the same agent, server and tool."""
        return [conversation.agent, call.server, call.tool]

    def approve(self, call: Call) -> None:
        """Lets a call run."""
        call.stage, call.request = "approved", None

    # --- running ------------------------------------------------------------------------------------------------------

    async def carry_out(self, conversation: Conversation, call: Call, turn: Turn) -> None:
        """Runs a call that may run, or has it run: by another agent, or by the provider."""
        if call.kind == "hosted_mcp":
            call.approved, call.stage = True, "done"
            return
        spec = self.tool_for(conversation, call, turn)
        if spec is None:
            return
        if spec.runs is not None:
            await self.run_agent(spec.runs, call, turn)
        elif spec.hands_over_to is not None:
            call.hands_over_to = spec.hands_over_to
            self.finish(call, wording.handed_over(spec.hands_over_to), turn)
        else:
            await self.run_tool(conversation, call, turn)

    async def run_tool(self, conversation: Conversation, call: Call, turn: Turn) -> None:
        """
        Runs a tool's body; it may ask for a second approval in its middle.

        One that is cancelled is not run again: nobody knows how far it got, and that is what the model is told.
        """
        self.count_execution(turn)
        call.entered = True
        try:
            value = await self.world.run(call.tool, detached(call.arguments), call.id, agent=conversation.agent)
        except AsksAgain:
            call.stage = "waiting"
        except asyncio.CancelledError:
            self.finish(call, wording.CUT_SHORT, turn)
            raise
        except Exception as error:
            self.finish(call, wording.failed(error), turn)
        else:
            self.finish(call, wording.returned(value), turn)

    async def run_agent(self, agent: str, call: Call, turn: Turn) -> None:
        """Runs another agent, or goes on with it where it stopped."""
        if call.inner is None:
            self.count_execution(turn)
            call.inner = Conversation(agent=agent)
            self.hear(call.inner, str(call.arguments.get("input", "")))
        if await self.go_on(call.inner, turn):
            self.finish(call, call.inner.output or "", turn)
            call.inner = None

    def count_execution(self, turn: Turn) -> None:
        """
        Counts an execution before it begins.

        Errors:
            LimitReached: The turn has had its executions.
        """
        limit = self.blueprint.limits.tool_calls
        if limit is not None and turn.executions >= limit:
            raise LimitReached("tool calls", limit)
        turn.executions += 1

    # --- telling ------------------------------------------------------------------------------------------------------

    def finish(self, call: Call, text: str, turn: Turn) -> None:
        """Ends a call with what the model is told about it."""
        call.result = f"{call.note}\n{text}" if call.note else text
        call.stage, call.request = "done", None
        if turn.stream:
            self.world.shown("result", id=call.id, text=call.result)

    def refuse(self, call: Call, text: str, turn: Turn) -> None:
        """Ends a call that must not run: the model is told, or for a hosted call the provider."""
        if call.kind == "hosted_mcp":
            call.approved = False
        self.finish(call, text, turn)

    def tell(self, conversation: Conversation) -> None:
        """Tells the model what came of its calls, in their order, decisions about hosted ones last."""
        for call in conversation.calls:
            if call.kind != "hosted_mcp":
                self.remember(conversation, [self.result_item(call, conversation.messages)])
        hosted = [call for call in conversation.calls if call.kind == "hosted_mcp"]
        self.remember(conversation, [self.response_item(call, conversation.messages) for call in hosted])
        conversation.agent = next(
            (call.hands_over_to for call in conversation.calls if call.hands_over_to), conversation.agent
        )
        conversation.calls = []
        conversation.asks_model = True

    def result_item(self, call: Call, message: int) -> Item:
        """Gives what the model reads as the result of its call."""
        return Item(kind="result", id=call.id, tool=call.tool, text=call.result, message=message)

    def response_item(self, call: Call, message: int) -> Item:
        """Gives what the provider is answered about a call that it wants to run."""
        return Item(kind="approval_response", id=call.id, approved=call.approved, text=call.result, message=message)


def waiting(conversation: Conversation) -> Iterator[tuple[Conversation, Call]]:
    """Goes through the calls that wait for a decision, in the order of the model's calls, nested agents' in place."""
    for call in conversation.calls:
        if call.stage == "waiting":
            yield conversation, call
        elif call.inner is not None:
            yield from waiting(call.inner)
