"""Faults of elicitation: what MCP servers ask in the middle of calls, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import Elicits
from pytest_approvals.agent_side.contract.types import Blueprint, ElicitationAnswer
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.state import CallState, ConversationState


class ElicitationIsDeclinedUnasked(Fault):
    """A client that says that it can ask declines what a server asks, and asks nobody."""

    source = ("anthropics/claude-code#89858",)
    caught_by = "elicitation-shown"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        return ElicitationAnswer(action="decline")


class ElicitationIsShownTwice(Fault):
    """An accepted question of a server is shown once more, as when its handler runs again."""

    source = ("QwenLM/qwen-code#4405",)
    caught_by = "elicitation-shown"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        return await super().answer_elicitation(question) if answer.action == "accept" else answer


class RestoredAgentCannotBeAsked(Fault):
    """An agent that was restored connects to its servers without the handler of their questions."""

    source = ("agentfront/frontmcp#279", "cloudflare/agents#1903")
    caught_by = "elicitation-shown"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._restored = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._restored = True

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        if self._restored:
            return ElicitationAnswer(action="refuse", error="Elicitation not supported")
        return await super().answer_elicitation(question)


class ApprovalAnswersTheElicitation(Fault):
    """The approval of a call counts as the answer to what its server asks, with the form filled in by the client."""

    source = ("openai/codex-plugin-cc#641",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        fields: Mapping[str, Any] = (question.form or {}).get("properties", {})
        content = {name: "yes" for name, field in fields.items() if field["type"] == "string"}
        return ElicitationAnswer(action="accept", content=None if question.url is not None else content)


class EveryAnswerIsSentAsAccepted(Fault):
    """What the caller declines or cancels is sent to the server as accepted."""

    source = ("aaif-goose/goose#9024",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        return replace(await super().answer_elicitation(question), action="accept")


class CancellingIsSentAsDeclining(Fault):
    """What the caller cancels is sent to the server as declined."""

    source = ("aaif-goose/goose#9024",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        return replace(answer, action="decline") if answer.action == "cancel" else answer


class EmptyFieldsOfAFormAreDropped(Fault):
    """The fields of a form that are zero, false or empty do not reach the server."""

    source = ("mastra-ai/mastra#20627",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        content = {name: value for name, value in (answer.content or {}).items() if value}
        return replace(answer, content=content or None)


class AnswerOfAnotherCallIsSent(Fault):
    """One answer is kept for a client, so that the questions of a reply all get the one that was given first."""

    source = ("MCPJam/inspector#433",)
    caught_by = "elicitation-answered-as-given"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._first: ElicitationAnswer | None = None

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        self._first = self._first or answer
        return self._first


class DeclinedElicitationIsToldAsARejection(Fault):
    """The model is told that its call was rejected when the caller declined what its server asked."""

    source = ("openai/codex-plugin-cc#641",)
    caught_by = "result-matches-its-call"

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        value = await super().run_body(conversation, call)
        return feedback.rejection_text(None) if value == "not done: the caller declined" else value


class AcceptanceWithoutContentIsACancellation(Fault):
    """An answer that accepts without content reaches its server as a cancellation."""

    source = ("modelcontextprotocol/python-sdk#2986",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        return replace(answer, action="cancel") if answer.action == "accept" and not answer.content else answer


class DeclinedFormFailsTheCall(Fault):
    """The content of a form is validated when the caller declines or cancels, too, and the call fails."""

    source = ("modelcontextprotocol/go-sdk#758",)
    caught_by = "elicitation-answered-as-given"

    async def answer_elicitation(self, question: Elicits) -> ElicitationAnswer:
        answer = await super().answer_elicitation(question)
        if answer.action != "accept" and question.form:
            raise ValueError("the content does not fit")
        return answer
