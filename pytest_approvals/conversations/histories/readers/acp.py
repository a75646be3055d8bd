"""Reader of recordings of the Agent Client Protocol: the JSON-RPC messages of client and agent, one on each line.

    {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId", "prompt": [...]}}
    {"direction": "in", "message": {"jsonrpc": "2.0", "method": "session/update", ...}}

A line may hold its message under any of `WRAPPERS`, as an object or as text. Which side has sent a message follows from
its method, and what a response answers from its id and its shape, so that no direction is needed.

A call is what the agent shows of it: it may ask before it shows the arguments, and show calls of one reply one by one.
What a prompt leaves open when it ends is judged there, since nothing else can happen to it.

Source: the schema of protocol version 1, and recordings of OpenCode 1.18 and of Claude Code behind its adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind, Verdict
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    expected_error,
    may_be_refusal,
    optional_objects,
    optional_text,
    require_object,
    require_text,
)
from pytest_approvals.conversations.histories.readers.claude_code import split_name
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.protocols.text import text_of

NAME = "acp"

NO_SESSION = "no session in this recording: expected messages such as session/prompt and session/update"

WRAPPERS = ("message", "data", "payload", "msg", "frame", "body", "raw", "json", "rpc", "line")
"""The fields of a line that may hold the message."""

_ENDED = ("completed", "failed")
_VERDICTS: Mapping[str, Verdict] = {
    "allow_once": "approve",
    "allow_always": "always",
    "reject_once": "reject",
    "reject_always": "never",
}
_ALLOWS = re.compile(r"allow|approve|proceed|accept|yes", re.IGNORECASE)
_REJECTS = re.compile(r"reject|deny|cancel|abort|no\b", re.IGNORECASE)
_TOOL_NAME = re.compile(r"[\w.:/-]+")
_TOLD_OF_REJECTION = re.compile(
    r"\W*(?:The user doesn't want to (?:proceed|take this action)"  # Claude Code
    r"|User refused permission to run tool"
    r"|Permission to use .* has been denied"
    r"|The user rejected permission"  # OpenCode
    r"|The user has specified a rule which prevents)",
    re.DOTALL,
)
_TOLD_OF_END = re.compile(r"\W*(?:Tool execution (?:was )?(?:aborted|interrupted)|Tool call interrupted)")


def matches(document: Any) -> bool | None:
    """Return whether it is of this format: a list of messages; None if it may be a part of one."""
    if type(document) is not list:
        return False
    messages = [message for message in map(_unwrap, document) if message is not None]
    if any(str(message.get("method")).startswith("session/") for message in messages):
        return True
    return None if messages and len(messages) == len(document) else False


def _is_line(line: Any) -> bool:
    return _unwrap(line) is not None


def _unwrap(line: Any) -> dict[str, Any] | None:
    """Return the message on a line; None if there is none."""
    if _is_message(line):
        return dict(line)
    for name in WRAPPERS if type(line) is dict else ():
        held = line.get(name)
        if type(held) is str and held.lstrip().startswith("{"):
            try:
                held = json.loads(held)
            except (ValueError, RecursionError):
                continue
        if _is_message(held):
            return dict(held)
    return None


def _is_message(value: Any) -> bool:
    if type(value) is not dict:
        return False
    if value.get("jsonrpc") == "2.0":
        return "method" in value or "id" in value
    # Some recorders leave the version out. Traces of proxies, which say the protocol, tell each message several times.
    is_call = type(value.get("method")) is str and "/" in value["method"] and type(value.get("params")) is dict
    return is_call and "protocol" not in value


def read(document: Any) -> StoredConversation:
    """Read the first session of a recording.

    Raises:
        HistoryError: Something has the wrong shape, or there is no session in it.
    """
    found = read_each(document)
    if not found:
        raise HistoryError(NO_SESSION)
    return found[0]


def read_each(document: Any) -> list[StoredConversation]:
    """Read the sessions of a recording.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    if type(document) is not list:
        raise HistoryError(expected_error("an array of messages", document))
    reader = _RecordingReader(len(document))
    for number, line in enumerate(document):
        message = _unwrap(line)
        if message is not None:
            with errors_within((number,)):
                reader.message(message, number)
    return reader.finish()


@dataclass(slots=True)
class _SentRequest:
    """A request that waits for its response, or a question that may be answered again.

    Attributes:
        options: Those that a question offers, by id.
    """

    method: str
    session: str | None
    call_id: str = ""
    request_id: str = ""
    options: Mapping[str, Verdict] = field(default_factory=dict)


class _RecordingReader:
    """Reader of the messages of all sessions.

    Args:
        length: The number of lines.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.sessions: dict[str, _SessionReader] = {}
        # Both sides number their requests for themselves.
        self.of_client: dict[Any, _SentRequest] = {}
        self.of_agent: dict[Any, _SentRequest] = {}
        # Sessions whose beginning is in the recording.
        self.begun: set[str] = set()
        self.prompted: _SessionReader | None = None
        # Some recorders keep one side only, or no responses.
        self.has_client = self.has_responses = False

    def finish(self) -> list[StoredConversation]:
        """Return the conversations of the sessions in which something was said."""
        found = [(name, each.builder.conversation) for name, each in self.sessions.items() if each.builder.entries]
        for number, (name, conversation) in enumerate(found):
            conversation.is_continuation = name not in self.begun
            conversation.shows_decisions = self.has_client and self.has_responses
            conversation.name = f"[session {name}]" if number else ""
        return [conversation for _, conversation in found]

    def message(self, message: dict[str, Any], number: int) -> None:
        """Read one message."""
        method = optional_text(message, "method")
        if method is None:
            self._response(message, number)
            return
        if method == "initialize":
            # Another process: what was asked before is never answered.
            self.of_client, self.of_agent = {}, {}
        self.has_client = self.has_client or not _is_of_agent(method)
        params = message["params"] if type(message.get("params")) is dict else {}
        with errors_within(("params",)):
            session = optional_text(params, "sessionId")
            request = _SentRequest(method, session)
            if session is not None:
                self._session_message(params, session, request, message.get("id"), number)
        if type(message.get("id")) in (int, str):
            sent = self.of_agent if _is_of_agent(method) else self.of_client
            sent[message["id"]] = request

    def _session_message(
        self, params: dict[str, Any], session: str, request: _SentRequest, number_of_request: Any, line: int
    ) -> None:
        reader = self._find_session(session)
        match request.method:
            case "session/prompt":
                self.prompted = reader
                reader.prompt(params, line)
            case "session/update":
                with errors_within(("update",)):
                    reader.update(require_object({"update": params.get("update")}, "update"), line)
            case "session/request_permission":
                request.request_id = str(number_of_request)
                request.options = _read_options(params)
                request.call_id = reader.ask(params, request.request_id, line)
            case "session/load" | "session/resume":
                self.begun.add(session)
                if request.method == "session/load":
                    reader.begin_load()

    def _find_session(self, session: str) -> _SessionReader:
        if session not in self.sessions:
            self.sessions[session] = _SessionReader(self.length)
        return self.sessions[session]

    def _response(self, message: dict[str, Any], number: int) -> None:
        key = message.get("id")
        if type(key) not in (int, str):
            return
        self.has_responses = True
        result = message["result"] if type(message.get("result")) is dict else {}
        asked = self.of_agent.get(key)
        # A prompt and a question may have the same number.
        if "stopReason" not in result and ("outcome" in result or (asked is not None and key not in self.of_client)):
            self._answer(asked, message, result, number)
            return
        sent = self.of_client.pop(key, None)
        if type(result.get("sessionId")) is str:
            self.begun.add(result["sessionId"])
        if sent is None or sent.session is None:
            return
        if sent.method == "session/prompt":
            stop = "error" if "error" in message else str(result.get("stopReason"))
            self.sessions[sent.session].end_prompt(stop, number)
            self._forget_questions(sent.session)
        elif sent.method == "session/load":
            self.sessions[sent.session].end_load(number)

    def _answer(self, asked: _SentRequest | None, message: dict[str, Any], result: dict[str, Any], number: int) -> None:
        if asked is None:
            # Nobody has asked, unless the recording began later.
            if self.prompted is not None:
                self.prompted.decide_unasked(str(message["id"]), number)
        elif asked.method == "session/request_permission" and asked.session is not None:
            verdict, reason = _read_answer(message, result, asked.options)
            self.sessions[asked.session].decide(asked, verdict, reason, number)

    def _forget_questions(self, session: str) -> None:
        """Take no answers any more to what a prompt asked that has ended."""
        self.of_agent = {key: each for key, each in self.of_agent.items() if each.session != session}


def _is_of_agent(method: str) -> bool:
    """Return whether the agent sends a method."""
    return method in ("session/update", "session/request_permission") or method.startswith(
        ("fs/", "terminal/", "elicitation/", "mcp/")
    )


def _read_options(params: dict[str, Any]) -> dict[str, Verdict]:
    options: dict[str, Verdict] = {}
    for option in optional_objects(params, "options"):
        name, kind = str(option.get("optionId")), option.get("kind")
        if type(kind) is str and kind in _VERDICTS:
            options[name] = _VERDICTS[kind]
            continue
        # A kind of the agent's own, or none.
        shown = f"{kind} {name} {option.get('name')}"
        options[name] = "reject" if _REJECTS.search(shown) else "approve" if _ALLOWS.search(shown) else "raw"
    return options


def _read_answer(
    message: dict[str, Any], result: dict[str, Any], options: Mapping[str, Verdict]
) -> tuple[Verdict, str | None]:
    """Return what a client has answered, and its words if they are none of the options."""
    outcome = result.get("outcome")
    # Some clients send it flat.
    held = outcome if type(outcome) is dict else result
    if held.get("outcome") == "cancelled":
        return "reject", "cancelled"
    chosen = held.get("optionId")
    if type(chosen) is str:
        return options.get(chosen, "raw"), None if chosen in options else chosen
    error = message.get("error")
    told = error.get("message") if type(error) is dict else None
    return "raw", told if type(told) is str else None


# --- one session ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _ShownCall:
    """A call, as far as the agent has shown it.

    Attributes:
        request: The question about it, the last one.
        decision: The answer to it.
        status: The last status.
        shows_nothing_yet: The question came before the arguments.
    """

    entry: CallEntry
    request: RequestEntry | None = None
    decision: DecisionEntry | None = None
    status: str = "pending"
    shows_nothing_yet: bool = False

    @property
    def is_open(self) -> bool:
        return self.status not in _ENDED

    @property
    def waits(self) -> bool:
        return self.request is not None and self.decision is None

    @property
    def text(self) -> str:
        return format_call(self.entry.tool, self.entry.arguments or {})


class _SessionReader:
    """Reader of one session.

    Args:
        length: The number of lines of the recording.
    """

    def __init__(self, length: int) -> None:
        self.builder = ConversationBuilder(NAME, has_whole_responses=False)
        self.builder.begin_section((), length)
        self.entries = self.builder.entries
        self.calls: dict[str, _ShownCall] = {}
        self.open: dict[str, _ShownCall] = {}
        self.is_prompted = False
        # A loaded session is replayed; what the recording has already is not taken twice.
        self.is_loading = self.skips_replay = False
        self.text: TextEntry | None = None
        self.text_id: Any = None
        # Where the calls of the last reply begin and end, as long as one of them is open.
        self.calls_at = self.calls_end = 0

    # --- the user ---

    def prompt(self, params: dict[str, Any], line: int) -> None:
        """Read a prompt."""
        self.is_prompted, self.text = True, None
        blocks = optional_objects(params, "prompt")
        self.entries.append(TextEntry(line, -1, "user", text_of(blocks) or ""))

    def begin_load(self) -> None:
        """Begin a replay."""
        self.is_loading, self.skips_replay, self.text = True, bool(self.entries), None

    def end_load(self, line: int) -> None:
        """End a replay, which shows no decisions."""
        if not self.skips_replay:
            self.builder.conversation.decided_from = line
            for call in list(self.open.values()):
                self._end_call(call, "failed")
                self.entries.append(ResultEntry(line, -1, call.entry.id, None, None, "interrupted"))
        self.is_loading = self.skips_replay = False
        self.text = None

    def end_prompt(self, stop: str, line: int) -> None:
        """Judge what a prompt leaves open."""
        self.is_prompted, self.text = False, None
        for call in list(self.open.values()):
            self._give_up(call, stop, line)

    def _end_call(self, call: _ShownCall, status: str) -> None:
        call.status = status
        self.open.pop(str(call.entry.id), None)

    def _give_up(self, call: _ShownCall, stop: str, line: int) -> None:
        outcome: ResultOutcome = "interrupted"
        if call.waits and stop == "cancelled" and call.request is not None:
            # Cancelling the prompt is the user's answer.
            call.decision = DecisionEntry(line, -1, call.request.id, "reject", "cancelled")
            self.entries.append(call.decision)
        elif call.decision is not None and call.decision.verdict in ("approve", "always") and stop == "end_turn":
            text = f"the prompt ended with {stop}, and {call.text}, which was approved, was never said to have ended"
            self.builder.add_note((line,), text, "result-delivered-once")
        elif call.decision is not None and call.decision.verdict in ("reject", "never"):
            # Some agents show nothing more of a call that was rejected.
            outcome = "denied"
        self._end_call(call, "failed")
        self.entries.append(ResultEntry(line, -1, call.entry.id, None, f"the prompt ended with {stop}", outcome))

    # --- the agent ---

    def update(self, update: dict[str, Any], line: int) -> None:
        """Read what the agent shows."""
        if self.skips_replay:
            return
        match optional_text(update, "sessionUpdate"):
            case "agent_message_chunk":
                self._say(update, "assistant", line)
            case "user_message_chunk":
                # During a prompt it is an echo.
                if not self.is_prompted:
                    self._say(update, "user", line)
            case "tool_call" | "tool_call_update" as kind:
                self._show_call(update, line, is_new=kind == "tool_call")
            case kind:
                self.entries.append(OpaqueEntry(line, -1, str(kind)))

    def _say(self, update: dict[str, Any], role: str, line: int) -> None:
        content = update["content"] if type(update.get("content")) is dict else {}
        text = text_of([content]) or ""
        said = self.text
        if said is not None and said.role == role and update.get("messageId") == self.text_id:
            said.text += text
            return
        self.text = TextEntry(line, -1, role, text)
        self.text_id = update.get("messageId")
        if role == "assistant" and self.open:
            # A reply that still goes on.
            self.entries.insert(self.calls_at, self.text)
            self.calls_at += 1
            self.calls_end += 1
        else:
            self.entries.append(self.text)

    def _show_call(self, update: dict[str, Any], line: int, *, is_new: bool) -> None:
        call_id = require_text(update, "toolCallId")
        call = self.calls.get(call_id)
        status = optional_text(update, "status")
        if call is None and not is_new and status in _ENDED:
            # The end of a call that the agent has never shown.
            self._add_result(call_id, status, update, line)
            return
        if call is None or (is_new and not call.is_open):
            if not is_new:
                text = f"call {quote(call_id)} is updated, and the agent has not shown it before"
                self.builder.add_note((line,), text)
            call = self._add_call(call_id, update, line)
        else:
            self._show_arguments(call, update, line)
        if status is not None:
            self._set_status(call, status, update, line)

    def _add_call(self, call_id: str, shown: dict[str, Any], line: int) -> _ShownCall:
        tool, kind, server = _read_tool(shown)
        # A model is asked again when all calls of its reply have ended: until then a call belongs to the same reply.
        if not self.open:
            self.calls_at = self.calls_end = len(self.entries)
        entry = CallEntry(line, -1, call_id, tool, _read_arguments(shown), kind, server)
        self.entries.insert(self.calls_end, entry)
        self.calls_end += 1
        self.text = None
        call = self.calls[call_id] = self.open[call_id] = _ShownCall(entry)
        return call

    def _show_arguments(self, call: _ShownCall, shown: dict[str, Any], line: int) -> None:
        arguments = _read_arguments(shown)
        if not arguments or arguments == call.entry.arguments:
            return
        if call.request is not None and not call.shows_nothing_yet:
            text = f"{call.text} is shown with other arguments after it was asked about: "
            self.builder.add_note((line,), text + format_call(call.entry.tool, arguments))
            return
        call.entry.arguments = arguments
        if call.request is not None:
            call.request.arguments, call.shows_nothing_yet = arguments, False

    def _set_status(self, call: _ShownCall, status: str, update: dict[str, Any], line: int) -> None:
        if not call.is_open:
            # The same end may be told again, with more of what the call has returned.
            if status != call.status:
                text = f"{call.text} is {status} after it has {call.status}"
                self.builder.add_note((line,), text, "result-delivered-once")
            return
        call.status = status
        if status in _ENDED:
            self._end_call(call, status)
            self._add_result(call.entry.id, status, update, line)

    def _add_result(self, call_id: str | None, status: str, update: dict[str, Any], line: int) -> None:
        text = _read_output(update)
        outcome: ResultOutcome = "returned" if status == "completed" else _read_failure(text, update)
        self.entries.append(ResultEntry(line, -1, call_id, None, text, outcome))

    # --- questions ---

    def ask(self, params: dict[str, Any], request_id: str, line: int) -> str:
        """Read a question; return the id of its call."""
        shown = params["toolCall"] if type(params.get("toolCall")) is dict else params
        call_id = optional_text(shown, "toolCallId") or f"request {request_id}"
        call = self.calls.get(call_id)
        if call is None:
            # Some agents show a call only when they ask about it.
            call = self._add_call(call_id, shown, line)
        if call.decision is not None and call.is_open:
            # A call may need two permissions, one after the other: it is the second answer that counts then.
            return call_id
        arguments = _read_arguments(shown)
        if _names_tool(shown) and _read_tool(shown)[0] != call.entry.tool:
            # A question about what the call needs besides, such as a folder outside of the project.
            arguments = None
        if not arguments:
            arguments, call.shows_nothing_yet = call.entry.arguments, not call.entry.arguments
        elif not call.entry.arguments and call.request is None:
            call.entry.arguments = arguments
        entry = call.entry
        call.request = RequestEntry(line, -1, request_id, call_id, entry.tool, arguments, entry.kind, entry.server)
        self.entries.append(call.request)
        return call_id

    def decide_unasked(self, request_id: str, line: int) -> None:
        """Read an answer to a question that nobody has asked."""
        self.entries.append(DecisionEntry(line, -1, request_id, "raw"))

    def decide(self, asked: _SentRequest, verdict: Verdict, reason: str | None, line: int) -> None:
        """Read an answer."""
        call = self.calls[asked.call_id]
        is_second = call.request is not None and call.request.id != asked.request_id
        if is_second and call.decision is not None:
            if verdict not in ("approve", "always"):
                call.decision.verdict, call.decision.reason, call.decision.message = verdict, reason, line
            return
        call.decision = DecisionEntry(line, -1, asked.request_id, verdict, reason)
        self.entries.append(call.decision)


def _names_tool(shown: dict[str, Any]) -> bool:
    return any(shown.get(name) for name in ("name", "title", "kind", "_meta"))


def _read_tool(shown: dict[str, Any]) -> tuple[str, Kind, str | None]:
    """Return the tool, the kind and the server of a call; the kind of a tool if its title is a description."""
    meta = shown["_meta"] if type(shown.get("_meta")) is dict else {}
    told = [shown.get("name"), *(each.get("toolName") for each in meta.values() if type(each) is dict)]
    named = next((name for name in told if type(name) is str and name), None)
    title = shown.get("title")
    if named is None and type(title) is str and _TOOL_NAME.fullmatch(title):
        named = title
    kind = shown.get("kind")
    return split_name(named or (kind if type(kind) is str and kind else "tool"))


def _read_arguments(shown: dict[str, Any]) -> Any:
    return shown.get("rawInput")


def _read_output(update: dict[str, Any]) -> str:
    """Return what a call has returned: the texts that are shown, else the raw output."""
    parts = update["content"] if type(update.get("content")) is list else []
    texts = [text_of([part["content"]]) for part in parts if type(part) is dict and type(part.get("content")) is dict]
    raw = update.get("rawOutput")
    if type(raw) is str:
        return raw
    return "\n".join(filter(None, texts)) or ("" if raw is None else json.dumps(raw))


def _read_failure(text: str, update: dict[str, Any]) -> ResultOutcome:
    raw = update.get("rawOutput")
    metadata = raw.get("metadata") if type(raw) is dict else None
    if _TOLD_OF_REJECTION.match(text):
        return "denied"
    if _TOLD_OF_END.match(text) or (type(metadata) is dict and metadata.get("interrupted") is True):
        return "interrupted"
    return "unknown" if may_be_refusal(text) else "failed"


READERS = {NAME: FormatReader(matches, read, read_each=read_each, is_line_of=_is_line, nothing_read=NO_SESSION)}
