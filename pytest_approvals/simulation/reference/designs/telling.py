"""Legitimate designs: what the model is told about its calls."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract.types import (
    Item,
)
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
)


@design
class ResultsInCompletionOrder(ReferenceAgent):
    """The model gets the results of a reply in the order in which the calls ended."""

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().process_call(conversation, call, turn)
        if call.stage == "done":
            conversation.calls.remove(call)
            ended = sum(other.stage == "done" for other in conversation.calls)
            conversation.calls.insert(ended, call)


@design
class ResultsInOneMessage(ReferenceAgent):
    """All results of a reply are one message."""

    def deliver_results(self, conversation: ConversationState) -> None:
        start = len(conversation.items)
        super().deliver_results(conversation)
        delivered = conversation.items[start:]
        results = [item for item in delivered if item.kind == "result"]
        if results:
            first = results[0].message
            others = [item for item in delivered if item.kind != "result"]
            conversation.items[start:] = [
                *(replace(item, message=first) for item in results),
                *(replace(item, message=first + 1) for item in others),
            ]
            conversation.messages = first + (2 if others else 1)


@design
class ResultsAreJsonObjects(ReferenceAgent):
    """What the model is told about a call is the text of a JSON object."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps({"output": text}), turn)


@design
class ResultsAreTypedBlocks(ReferenceAgent):
    """What the model is told about a call is a list of content blocks, with letters beyond ASCII as they are."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps([{"type": "text", "text": text}], ensure_ascii=False), turn)


@design
class ResultsAreTidied(ReferenceAgent):
    """Results are told with plain line ends, without blanks around them, and with the time at which they came."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        came = datetime.now(UTC).isoformat(timespec="milliseconds")
        tidy = text.replace("\r\n", "\n").strip()
        super().finish_call(call, f"[{came}] {tidy}", turn)


@design
class RejectionsAreJsonObjects(ReferenceAgent):
    """A rejected call has a JSON object with a status and a message in place of a result."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, json.dumps({"status": "rejected", "message": text}), turn)


@design
class RejectionsAreShort(ReferenceAgent):
    """A rejected call has one word in place of a result, and the reason if there is one."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        _, _, reason = text.partition(" Reason: ")
        super().close_call(call, f"Denied: {reason}" if reason else "Denied.", turn)


@design
class EditsRewriteTheCall(ReferenceAgent):
    """After an edit the model sees the edited call as its own, without a note."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "an edit changes what an earlier turn has added"}

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, decision)
        call.note = None
        place = max(n for n, item in enumerate(conversation.items) if item.kind == "call" and item.id == call.id)
        conversation.items[place] = replace(conversation.items[place], tool=call.tool, arguments=call.arguments)


@design
class SystemMessageChanges(ReferenceAgent):
    """Each model request begins with a system message that says something else each time."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        text = f"You have seen {conversation.messages} messages."
        return [Item(kind="other", text=text, message=-1), *conversation.items]


@design
class LongResultsAreCut(ReferenceAgent):
    """Of a long result the model is told the beginning, and how much is left out."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if call.stage == "running" and len(text) > 400:
            text = f"{text[:200]}… [truncated, {len(text) - 200:,} characters omitted]"
        super().finish_call(call, text, turn)


@design
class ResultsAreXml(ReferenceAgent):
    """What the model is told about a call is the text of an XML element, with letters escaped."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, f"<result tool='{call.tool}'>{html.escape(text)}</result>", turn)


@design
class ResultsAreYaml(ReferenceAgent):
    """A result that is no text is told as YAML, and not as JSON."""

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        value = await super().run_body(conversation, call)
        return value if isinstance(value, str) else "\n".join(_format_yaml(value))


def _format_yaml(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            if isinstance(inner, Mapping | list) and inner:
                yield f"{name}:"
                yield from (f"  {line}" for line in _format_yaml(inner))
            else:
                yield f"{name}: {next(_format_yaml(inner))}"
    elif isinstance(value, list) and value:
        for inner in value:
            first, *rest = _format_yaml(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield json.dumps(value, ensure_ascii=False) if not isinstance(value, str) or not value.isalnum() else value


@design
class TextsAreGerman(ReferenceAgent):
    """What the agent says in place of a result is in another language."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        for english, german in _GERMAN.items():
            text = text.replace(english, german) if text.startswith(english) else text
        super().finish_call(call, text, turn)


_GERMAN = {
    "Not executed: the user rejected this call. Reason: ": "Der Benutzer hat diesen Aufruf abgelehnt. Grund: ",
    "Not executed: the user rejected this call.": "Der Benutzer hat diesen Aufruf abgelehnt.",
    "Not executed: the user sent a new message instead of approving this call.": (
        "Nicht ausgeführt: Der Benutzer hat statt einer Antwort eine Nachricht geschickt."
    ),
    "Not executed: the user cancelled this call.": "Nicht ausgeführt: Der Benutzer hat diesen Aufruf abgebrochen.",
    "Error: the call was cancelled while it ran; it may have had effects.": (
        "Fehler: Der Aufruf wurde unterbrochen; er kann etwas bewirkt haben."
    ),
    "Error: there is no tool": "Fehler: Es gibt kein Werkzeug",
    "Error: the arguments do not fit": "Fehler: Die Argumente passen nicht zu",
    "Error: ": "Fehler: ",
}


@design
class ResultsRepeatTheCall(ReferenceAgent):
    """A result begins with the call that ran, and says that it was approved if it was asked about."""

    def approve_call(self, call: CallState) -> None:
        super().approve_call(call)
        call.note = f"Approved by the user. {call.note or ''}".strip()

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if call.stage == "running":
            text = f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)}) -> {text}"
        else:
            call.note = None
        super().finish_call(call, text, turn)


@design
class RejectionsRepeatTheCall(ReferenceAgent):
    """A rejection begins with the call that did not run."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)}): {text}", turn)


@design
class ErrorsAreJsonObjects(ReferenceAgent):
    """The error of a tool is told as a JSON object with its type and message."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if text.startswith("Error: "):
            text = json.dumps({"ok": False, "error": {"message": text.removeprefix("Error: ")}})
        super().finish_call(call, text, turn)


@design
class RejectionsQuoteThePolicy(ReferenceAgent):
    """A rejected call is told with the name of its tool and the rule of a policy around the reason."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if text.startswith(feedback.rejection_text(None)):
            _, _, reason = text.partition(" Reason: ")
            rule = f"Policy 'human review' does not let {call.tool!r} run: a reviewer has declined the request."
            said = f" The reviewer wrote: {reason}" if reason else ""
            text = f"{rule}{said} Do not call {call.tool!r} again with the same arguments."
        super().close_call(call, text, turn)


@design
class LongResultsAreCutInTheMiddle(ReferenceAgent):
    """Of a long result the model is told the beginning and the end, and how much between them is left out."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if call.stage == "running" and len(text) > 400:
            text = f"{text[:150]}\n…{len(text) - 300} characters truncated…\n{text[-150:]}"
        super().finish_call(call, text, turn)


@design
class ResultsAreFencedOff(ReferenceAgent):
    """A result stands in marks that say that what is inside are data, and not instructions."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if call.stage == "running":
            text = f"<untrusted-content tool={call.tool!r}>\n{text}\n</untrusted-content>"
        super().finish_call(call, text, turn)


@design
class ErrorsHaveTheirTraceback(ReferenceAgent):
    """The error of a tool is told with the lines of a traceback around its text."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if call.stage == "running" and text.startswith("Error: "):
            lines = 'Traceback (most recent call last):\n  File "agent.py", line 81, in run_tool\nToolError: '
            text = f"{lines}{text.removeprefix('Error: ')}\n\nFix the error and try again."
        super().finish_call(call, text, turn)


@design
class EditsAreToldByTheUser(ReferenceAgent):
    """That a call was changed is told as a message of the user, behind the results of the reply."""

    def deliver_results(self, conversation: ConversationState) -> None:
        notes = [call.note.removesuffix(" Its result:") for call in conversation.calls if call.note and call.entered]
        for call in conversation.calls:
            if call.note and call.entered and call.result is not None:
                call.result = call.result.removeprefix(f"{call.note}\n")
        super().deliver_results(conversation)
        for note in notes:
            self.add_message(conversation, [Item(kind="user", text=note, message=conversation.messages)])


@design
class AgentsTellTheirWork(ReferenceAgent):
    """The result of a call that runs an agent is all that the agent did: its texts, its calls and their results."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        inner = call.inner
        if inner is not None and text == (inner.output or ""):
            lines = [line for item in inner.items for line in _tell_item(item)]
            text = "\n".join([*lines, f"answer: {text}"])
        super().finish_call(call, text, turn)


def _tell_item(item: Item) -> Iterator[str]:
    if item.kind == "call":
        yield f"called {item.tool}({json.dumps(item.arguments, ensure_ascii=False)})"
    elif item.kind in ("say", "result"):
        yield f"{item.kind}: {item.text}"
