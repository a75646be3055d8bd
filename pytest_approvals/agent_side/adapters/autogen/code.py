"""
The flavour of the approvals that the framework has: the `approval_func` of `CodeExecutorAgent`.

A coder writes code and an executor runs it, as the documentation of `CodeExecutorAgent` has it for a team. Code has
neither call ids nor tools: a call is a line of code here, which names the tool, its arguments and, in a comment, the
id that the scenario gives it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ...contract import MAIN, Decision
from . import facts
from .session import HOPS, Question, Session


class CodeExecuting(Session):
    """A team of a coder and an executor, which asks an approval function before it runs code."""

    capabilities = facts.claimed(facts.CODE_MISSING)
    missing = facts.CODE_MISSING
    wire_rules = "none"
    hops = 10 * HOPS

    def _crew_of(self, blueprint: Any) -> Any:
        from .coding import CodingCrew

        return CodingCrew(self.world, blueprint, self.approve)

    async def approve(self, asked: Any) -> Any:
        """Asks a person about code: the `approval_func` of the executor."""
        from autogen_agentchat.agents import ApprovalResponse

        from .approval import ToolApprovalRequest
        from .coding import call_in

        call = call_in(asked.code)
        with self._work.entered(call.id, call.tool):
            crew: Any = self._crew
            if not await crew.gated(call):
                return ApprovalResponse(approved=True, reason="")
            request = ToolApprovalRequest(agent=MAIN, tool=call.tool, arguments=call.arguments, call_id=call.id)
            question = Question(request=request, answer=asyncio.Future())
            self._questions[request.request_id] = question
            try:
                with self._work.waiting():
                    return await question.answer
            finally:
                del self._questions[request.request_id]

    def _result(self, decision: Decision) -> Any:
        from autogen_agentchat.agents import ApprovalResponse

        return ApprovalResponse(approved=decision.verdict == "approve", reason=decision.reason or "")
