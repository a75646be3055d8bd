"""Reader of transcripts of Claude Code and the Claude Agent SDK: `projects/FOLDER/SESSION.jsonl`, entries on lines.

    {"type": "user" | "assistant", "uuid", "parentUuid", "sessionId", "message": {...}, "permissionDecision": {...}}
    {"type": "attachment", "attachment": {"type": "hook_deferred_tool", "toolUseID", "toolName", "toolInput"}}

Messages are those of Anthropic, and each block of a reply is an entry of its own. An entry with a result says who
decided about its call, in releases of Claude Code that store it. Changed arguments are not stored.

Entries are a tree: a rewound prompt leaves a branch behind, and the results of parallel calls are side branches of one
conversation. A sub-agent is a conversation of its own, in the same file or in one that is named after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
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
    discriminator_of,
    errors_within,
    expected_error,
    may_be_refusal,
    optional_text,
    require_object,
    require_text,
)
from pytest_approvals.errors import HistoryError
from pytest_approvals.protocols.text import text_of

NAME = "claude_code"

NO_MESSAGES = "no messages in this transcript: expected entries of type user or assistant"

_WITHOUT_SESSION = frozenset({"summary", "file-history-snapshot", "queue-operation", "progress"})
"""The types of entries that have no id of a session in some releases."""

_RECOGNIZED_BY = 8
"""How many entries of a transcript are looked at to recognize it."""

_MCP_NAME = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_INTERRUPTED_KINDS = ("interrupted", "cancelled")
_REQUEST_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]\s*$")

_TOLD_OF_USER = re.compile(r"The user doesn't want to (?:proceed with this tool use|take this action)")
_USER_SAID = re.compile(r"the user said:\s*(.*)", re.DOTALL)
_TOLD_OF_RULE = re.compile(
    r"Permission to use .* has been denied"
    r"|Claude requested permissions? to .*you haven't granted"
    r"|This command requires approval"
    r"|This Bash command contains multiple operations\. The following parts? requires? approval"
    r"|PreToolUse:\S* (?:hook error|\[)",
    re.DOTALL,
)
_TOLD_OF_END = re.compile(
    r"\[Tool call interrupted: |\[Request interrupted by user|\[Tool result missing |Interrupted by user\s*$"
)
"""What releases tell the model that do not mark a result as that of a refused or interrupted call."""


def matches(document: Any) -> bool | None:
    """Return whether it is of this format: a list of entries."""
    if type(document) is not list:
        return False
    return any(map(_is_entry, document[:_RECOGNIZED_BY]))


def _is_entry(entry: Any) -> bool:
    kind = discriminator_of(entry)
    if kind is None or "traceId" in entry or "trace_id" in entry:
        return False
    if kind in ("user", "assistant"):
        return type(entry.get("message")) is dict and ("sessionId" in entry or "uuid" in entry)
    return type(entry.get("sessionId")) is str or kind in _WITHOUT_SESSION


def read(document: Any) -> StoredConversation:
    """Read the first conversation of a transcript.

    Raises:
        HistoryError: Something has the wrong shape, or there is no conversation in it.
    """
    found = read_each(document)
    if not found:
        raise HistoryError(NO_MESSAGES)
    return found[0]


def read_each(document: Any) -> list[StoredConversation]:
    """Read the conversations of a transcript: of its sessions, of sub-agents, and of branches with calls.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    if type(document) is not list:
        raise HistoryError(expected_error("an array of entries", document))
    found = []
    for thread in _find_threads(document):
        reader = _ThreadReader(len(document))
        for node in thread.nodes:
            with errors_within((node.number,)):
                reader.entry(node.entry, node.number)
        conversation = reader.finish()
        has_calls = any(type(entry) in (CallEntry, ResultEntry) for entry in conversation.entries)
        # What a user has left by rewinding is of interest for its calls only.
        if has_calls or (conversation.entries and not thread.is_branch):
            conversation.name, conversation.is_continuation = thread.name, thread.is_branch
            found.append(conversation)
    return found


# --- the tree of entries ----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Node:
    """An entry of the tree.

    Attributes:
        root: The first node of its tree.
        branch: The number of its branch, the one with the last entry being 0; None while it is unknown.
    """

    number: int
    entry: dict[str, Any]
    parent: _Node | None
    root: _Node = field(init=False)
    branch: int | None = None

    def __post_init__(self) -> None:
        self.root = self if self.parent is None else self.parent.root

    @property
    def blocks(self) -> Iterator[dict[str, Any]]:
        """The blocks of its message."""
        message = self.entry.get("message")
        content = message.get("content") if type(message) is dict else None
        return (block for block in content if type(block) is dict) if type(content) is list else iter(())


@dataclass(frozen=True, slots=True)
class _Thread:
    """The nodes of one conversation, with what it is called in its file."""

    nodes: list[_Node]
    name: str
    is_branch: bool


def _find_threads(entries: Sequence[Any]) -> list[_Thread]:
    trees: dict[int, list[_Node]] = {}
    for node in _iter_nodes(entries):
        trees.setdefault(node.root.number, []).append(node)
    threads: list[_Thread] = []
    first = min(trees, default=0)
    for number, nodes in trees.items():
        branches: dict[int, list[_Node]] = {}
        _assign_branches(nodes)
        for node in nodes:
            branches.setdefault(node.branch or 0, []).append(node)
        name = _name_tree(nodes[0].entry, is_first=number == first)
        threads += [
            _Thread(part, f"{name}[branch {branch}]" if branch else name, bool(branch))
            for branch, part in sorted(branches.items())
        ]
    return threads


def _name_tree(entry: dict[str, Any], *, is_first: bool) -> str:
    agent, session = entry.get("agentId"), entry.get("sessionId")
    if _is_of_sub_agent(entry):
        return f"[agent {agent}]" if type(agent) is str and agent else "[agent]"
    return "" if is_first or type(session) is not str else f"[session {session}]"


def _is_of_sub_agent(entry: dict[str, Any]) -> bool:
    return entry.get("isSidechain") is True


def _iter_nodes(entries: Sequence[Any]) -> Iterator[_Node]:
    """Yield the entries that have a place in a tree, each linked to its parent.

    An entry whose parent is not in the file, as that of the first one after a compaction, follows the one before it in
    the same session.
    """
    known: dict[str, _Node] = {}
    latest: dict[Any, _Node] = {}
    for number, entry in enumerate(entries):
        if type(entry) is not dict:
            raise HistoryError(expected_error("an object", entry), at=(number,))
        if entry.get("type") not in ("user", "assistant") and "uuid" not in entry:
            continue
        uuid = entry.get("uuid")
        # A resumed process may write an entry once more.
        if type(uuid) is str and uuid in known:
            continue
        thread = (str(entry.get("sessionId")), _is_of_sub_agent(entry), str(entry.get("agentId")))
        parent = next((known[key] for key in _parent_ids(entry) if key in known), None)
        if parent is not None and _is_of_sub_agent(parent.entry) != _is_of_sub_agent(entry):
            parent = None
        # Without the id of the agent only its first entry tells where a sub-agent begins.
        begins = _is_of_sub_agent(entry) and "agentId" not in entry and entry.get("parentUuid") is None
        if parent is None and not begins:
            parent = latest.get(thread)
        node = latest[thread] = _Node(number, entry, parent)
        if type(uuid) is str:
            known[uuid] = node
        yield node


def _parent_ids(entry: dict[str, Any]) -> Iterator[str]:
    for name in ("parentUuid", "logicalParentUuid"):
        if type(entry.get(name)) is str:
            yield entry[name]


def _assign_branches(nodes: list[_Node]) -> None:
    """Give each node of a tree the number of its branch.

    A result and a request belong to the branch of their call, and all blocks of a reply to one branch, whatever their
    parents are.
    """
    count = 0
    for leaf in reversed(nodes):
        node: _Node | None = leaf
        while node is not None and node.branch is None:
            node.branch = count
            node = node.parent
        count += node is not leaf
    if count == 1:
        return
    replies: dict[Any, int] = {}
    for node in nodes:
        if (key := _reply_key(node.entry)) is not None:
            replies[key] = min(replies.get(key, count), node.branch or 0)
    calls: dict[str, int] = {}
    for node in nodes:
        node.branch = replies.get(_reply_key(node.entry), node.branch)
        for block in node.blocks:
            if block.get("type") == "tool_use" and type(call_id := block.get("id")) is str:
                calls[call_id] = min(calls.get(call_id, count), node.branch or 0)
    for node in nodes:
        told = next((block.get("tool_use_id") for block in node.blocks if block.get("type") == "tool_result"), None)
        attachment = node.entry.get("attachment")
        asked = attachment.get("toolUseID") if type(attachment) is dict else told
        node.branch = calls.get(asked, node.branch) if type(asked) is str else node.branch


def _reply_key(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Return what tells a reply of the model from all others; None if its entry does not say."""
    message = entry.get("message")
    reply = message.get("id") if entry.get("type") == "assistant" and type(message) is dict else None
    return (reply, str(entry.get("requestRef") or entry.get("requestId"))) if type(reply) is str else None


# --- one conversation -------------------------------------------------------------------------------------------------


class _ThreadReader:
    """Reader of the entries of one conversation.

    Args:
        length: The number of entries of the transcript.
    """

    def __init__(self, length: int) -> None:
        self.builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
        self.builder.begin_section((), length, contents=("message", "content"))
        self.entries = self.builder.entries
        self.calls: dict[str, CallEntry] = {}
        # Calls that wait for an answer, calls with a result, and tools with a standing approval.
        self.deferred: set[str] = set()
        self.settled: set[str] = set()
        self.standing: set[tuple[str, str | None]] = set()
        # The reply that is read, where its calls begin, and where it ends.
        self.reply: tuple[str, str] | None = None
        self.calls_at = self.end_at = 0

    def finish(self) -> StoredConversation:
        """Return the conversation."""
        return self.builder.conversation

    def entry(self, entry: dict[str, Any], number: int) -> None:
        """Read one entry."""
        match entry.get("type"):
            case "user":
                self._user(entry, number)
            case "assistant":
                self._assistant(entry, number)
            case "attachment":
                self._attachment(entry, number)
            case kind:
                self.entries.append(OpaqueEntry(number, -1, str(kind)))

    # --- the model ---

    def _assistant(self, entry: dict[str, Any], number: int) -> None:
        message = require_object(entry, "message")
        content = message.get("content")
        if entry.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            # Not what the model said.
            self.entries.append(OpaqueEntry(number, -1, "synthetic"))
            return
        key = _reply_key(entry)
        if key is None or key != self.reply:
            self.reply, self.calls_at, self.end_at = key, len(self.entries), len(self.entries)
        for place, block in self._iter_blocks(content):
            with errors_within(("message", "content", place)):
                read = self._read_block(block, number, place)
            # The result of a call may be written before the next block of the reply that made it.
            at = self.end_at if type(read) is not TextEntry else self.calls_at
            self.entries.insert(at, read)
            self.end_at += 1
            self.calls_at += type(read) is not CallEntry and at == self.calls_at
        if type(content) is str:
            self.entries.append(TextEntry(number, -1, "assistant", content))

    def _read_block(self, block: dict[str, Any], number: int, place: int) -> ConversationEntry:
        match block.get("type"):
            case "text":
                return TextEntry(number, place, "assistant", require_text(block, "text"))
            case "tool_use":
                tool, kind, server = split_name(require_text(block, "name"))
                call_id = require_text(block, "id")
                self.settled.discard(call_id)
                call = self.calls[call_id] = CallEntry(number, place, call_id, tool, block.get("input"), kind, server)
                return call
            case kind_name:
                return OpaqueEntry(number, place, str(kind_name))

    @staticmethod
    def _iter_blocks(content: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        if content is None or type(content) is str:
            return
        if type(content) is not list:
            raise HistoryError(expected_error("an array", content), at=("message", "content"))
        for place, block in enumerate(content):
            if type(block) is not dict:
                raise HistoryError(expected_error("an object", block), at=("message", "content", place))
            yield place, block

    # --- the user and the results ---

    def _user(self, entry: dict[str, Any], number: int) -> None:
        content = require_object(entry, "message").get("content")
        is_hidden = any(entry.get(name) is True for name in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"))
        role = "system" if is_hidden else "user"
        if type(content) is str:
            self._say(number, -1, role, content)
        blocks = list(self._iter_blocks(content))
        is_alone = sum(block.get("type") == "tool_result" for _, block in blocks) == 1
        for place, block in blocks:
            with errors_within(("message", "content", place)):
                match block.get("type"):
                    case "text":
                        self._say(number, place, role, require_text(block, "text"))
                    case "tool_result":
                        # What an entry says besides its message is about its only result.
                        self._result(entry if is_alone else {}, block, number, place)
                    case kind:
                        self.entries.append(OpaqueEntry(number, place, str(kind)))

    def _say(self, number: int, place: int, role: str, text: str) -> None:
        if _REQUEST_INTERRUPTED.match(text):
            self.entries.append(OpaqueEntry(number, place, "interruption"))
        else:
            self.entries.append(TextEntry(number, place, role, text))

    def _result(self, entry: dict[str, Any], block: dict[str, Any], number: int, place: int) -> None:
        call_id, text = require_text(block, "tool_use_id"), text_of(block.get("content"))
        outcome, reason = _read_outcome(entry, block, text)
        call = self.calls.get(call_id)
        verdict = self._read_verdict(entry, call, is_rejected=outcome == "denied" and reason is not None)
        if call is not None and verdict is not None:
            if call_id not in self.deferred and call_id not in self.settled:
                self._ask(call, number)
            reason = reason or None if verdict == "reject" else None
            self.entries.append(DecisionEntry(number, -1, call_id, verdict, reason))
        self.deferred.discard(call_id)
        self.settled.add(call_id)
        self.entries.append(ResultEntry(number, place, call_id, None, text, outcome))

    def _read_verdict(self, entry: dict[str, Any], call: CallEntry | None, *, is_rejected: bool) -> Any:
        """Return what somebody decided about a call; None if nobody did, as of a call that a rule allows."""
        if "permissionDecision" in entry:
            self.builder.conversation.shows_decisions = True
            decision = require_object(entry, "permissionDecision")
            source = optional_text(decision, "source") or ""
            if decision.get("decision") == "reject":
                return "reject" if source != "invalid_input" else None
            if decision.get("decision") != "accept" or call is None:
                return None
            tool = (call.tool, call.server)
            if source == "user_permanent":
                # Later calls of the tool say the same, and nobody was asked.
                is_new = tool not in self.standing
                self.standing.add(tool)
                return "always" if is_new else None
            return "approve" if source.startswith("user_") or source == "hook" else None
        return "reject" if entry.get("toolDenialKind") == "user-rejected" or is_rejected else None

    # --- requests ---

    def _attachment(self, entry: dict[str, Any], number: int) -> None:
        attachment = entry["attachment"] if type(entry.get("attachment")) is dict else {}
        kind = discriminator_of(attachment)
        call_id = attachment.get("toolUseID") if kind == "hook_deferred_tool" else None
        call = self.calls.get(call_id) if type(call_id) is str else None
        if call is None or call.id in self.deferred:
            # A resumed session defers a call that waits once more.
            self.entries.append(OpaqueEntry(number, -1, str(kind)))
            return
        with errors_within(("attachment",)):
            tool, _, server = split_name(require_text(attachment, "toolName"))
        self._ask(call, number, tool=tool, server=server, arguments=attachment.get("toolInput"))

    def _ask(self, call: CallEntry, number: int, **shown: Any) -> None:
        facts = {"tool": call.tool, "arguments": call.arguments, "server": call.server, **shown}
        assert call.id is not None
        self.deferred.add(call.id)
        self.entries.append(RequestEntry(number, -1, call.id, call.id, kind=call.kind, **facts))


def split_name(name: str) -> tuple[str, Kind, str | None]:
    """Return the tool, the kind and the server of a tool's name in Claude Code.

    >>> [split_name(name) for name in ("Bash", "mcp__bank__pay")]
    [('Bash', 'function', None), ('pay', 'mcp', 'bank')]
    """
    found = _MCP_NAME.fullmatch(name)
    return (name, "function", None) if found is None else (found[2], "mcp", found[1])


def _read_outcome(entry: dict[str, Any], block: dict[str, Any], text: str) -> tuple[ResultOutcome, str | None]:
    """Return the outcome of a result, and what a user said who rejected its call: None if nobody did."""
    kind = optional_text(entry, "toolDenialKind")
    is_of_user = block.get("is_error") is True and _TOLD_OF_USER.match(text) is not None
    said = _USER_SAID.search(text) if is_of_user else None
    reason = None if not is_of_user else said[1].strip() if said is not None else ""
    if kind is not None:
        # The text is that of the application which asked, if it is not the CLI's own.
        is_own = not is_of_user and discriminator_of(entry.get("permissionDecision"), "source") == "user_reject"
        return ("interrupted" if kind in _INTERRUPTED_KINDS else "denied"), text if is_own else reason
    if block.get("is_error") is not True:
        return "returned", None
    if is_of_user:
        return "denied", reason
    if _TOLD_OF_RULE.match(text):
        return "denied", None
    if _TOLD_OF_END.match(text):
        return "interrupted", None
    # An application refuses in words of its own.
    return ("unknown" if may_be_refusal(text) else "failed"), None


READERS = {NAME: FormatReader(matches, read, read_each=read_each, is_line_of=_is_entry, nothing_read=NO_MESSAGES)}
