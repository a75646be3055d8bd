"""State that a caller keeps between two runs, and its serialization.

A paused run leaves nothing behind but its result: the caller keeps the message history and, because the messages do not
show what kind of answer a call needs nor the metadata it was deferred with, the `DeferredToolRequests` next to it. Each
is written with the framework's own type adapter. Staged answers are kept as `DeferredToolResults`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai import messages as framework
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

REQUESTS_ADAPTER: TypeAdapter[DeferredToolRequests] = TypeAdapter(DeferredToolRequests)
RESULTS_ADAPTER: TypeAdapter[DeferredToolResults] = TypeAdapter(DeferredToolResults)


@dataclass(slots=True, kw_only=True)
class State:
    """The state that a caller keeps.

    Attributes:
        messages: The history.
        requests: What the last run paused for.
        results: Answers that were staged.
        since: The index of the first message that the last step added; those before are as they were saved.
    """

    messages: list[ModelMessage] = field(default_factory=list)
    requests: DeferredToolRequests | None = None
    results: DeferredToolResults | None = None
    since: int = 0


def dump_state(state: State, *, append: bool) -> str:
    """Return *state* as text; with *append* only the messages that the last step added."""
    since = state.since if append else 0
    parts = {
        "since": since,
        "messages": ModelMessagesTypeAdapter.dump_json(state.messages[since:]).decode(),
        "requests": state.requests and REQUESTS_ADAPTER.dump_json(state.requests).decode(),
        "results": state.results and RESULTS_ADAPTER.dump_json(state.results).decode(),
    }
    return json.dumps(parts)


def load_state(parts: Sequence[str]) -> State:
    """Return the state that `dump_state` wrote, in one text or in several that each add to the ones before.

    Raises:
        ValueError: A text is not what `dump_state` writes, or holds what this release does not know.
    """
    state = State()
    for part in map(_read_part, parts):
        state.since = part["since"]
        state.messages = [*state.messages[: state.since], *ModelMessagesTypeAdapter.validate_json(part["messages"])]
        state.requests = part["requests"] and REQUESTS_ADAPTER.validate_json(part["requests"])
        state.results = part["results"] and RESULTS_ADAPTER.validate_json(part["results"])
    return state


def _read_part(text: str) -> dict[str, Any]:
    try:
        part = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"the kept state is no JSON ({error}): nothing was kept, or only half of it was written; restore the state "
            "that was kept before"
        ) from None
    if not isinstance(part, dict) or not part.keys() >= _PARTS:
        raise ValueError(
            f"the kept state lacks {', '.join(sorted(_PARTS))}: it is of another application, or of another version of "
            "this one; restore it there"
        )
    return part


_PARTS = {"since", "messages", "requests", "results"}


# --- after a run ------------------------------------------------------------------------------------------------------


def update_state(before: State, result: Any, *, append: bool) -> State:
    """Return the state after a run that ended; with *append* the earlier messages stay as they were kept."""
    new = result.new_messages()
    messages = [*before.messages, *new] if append else result.all_messages()
    output = result.output
    return State(
        messages=messages,
        requests=output if isinstance(output, DeferredToolRequests) else None,
        since=len(messages) - len(new),
    )


def update_state_after_failure(
    before: State,
    captured: Sequence[ModelMessage],
    *,
    asked: DeferredToolRequests | None,
    append: bool,
    cancelled: bool = False,
) -> State:
    """Return the state after a run that failed: the messages that `capture_run_messages` holds.

    That is how the framework documents it ("Recovering a failed run's messages").

    A response that broke off is discarded, which the documentation leaves to the application ("Message History After
    Cancellation"): going on then asks the model again. A run that added nothing, because it was refused, leaves what
    was there before. Staged answers count as handed over in any case.

    Args:
        before: The state before the run.
        captured: What `capture_run_messages` holds.
        asked: The requests that the caller knows; those whose calls still have no result stay open.
        append: The earlier messages stay as they were kept.
        cancelled: The caller disconnected. Then the request that says that tools were interrupted is kept, even if it
            is empty, and with it the framework closes their calls; after an exception a user may be asked about them
            again.
    """
    # A run repairs its history before it adds to it, so the index counts in the repaired one.
    start = len(_repair_history(before.messages))
    added = list(captured[start:])
    while added and isinstance(added[-1], framework.ModelResponse) and _is_interrupted(added[-1]):
        added.pop()
    closed = cancelled and any(_is_interrupted(message) for message in added)
    if not closed and not any(message.parts for message in added):
        return replace(before, results=None)
    earlier = before.messages if append else captured[:start]
    messages = [*earlier, *added]
    requests = None if closed else _select_open_requests(asked, messages)
    return State(messages=messages, requests=requests, since=len(earlier))


def _is_interrupted(message: ModelMessage) -> bool:
    return getattr(message, "state", "complete") == "interrupted"


def _repair_history(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return the history as a run repairs it before adding to it; releases without repair leave it unchanged."""
    repair = getattr(framework, "repair_messages", None)
    return repair(messages, repair_last_response=False) if repair else messages


def _select_open_requests(
    requests: DeferredToolRequests | None, messages: Sequence[ModelMessage]
) -> DeferredToolRequests | None:
    """Return the requests whose calls are unanswered in the last response; a later call may have the same id."""
    if requests is None:
        return None
    called: dict[str, framework.ToolCallPart] = {}
    for message in messages:
        if isinstance(message, framework.ModelResponse):
            calls = (part for part in message.parts if isinstance(part, framework.ToolCallPart))
            called = {call.tool_call_id: call for call in calls}
        else:
            for part in message.parts:
                called.pop(getattr(part, "tool_call_id", ""), None)
    approvals = [call for call in requests.approvals if _is_same_call(call, called.get(call.tool_call_id))]
    return replace(requests, approvals=approvals) if approvals else None


def _is_same_call(asked: framework.ToolCallPart, made: framework.ToolCallPart | None) -> bool:
    return made is not None and (asked.tool_name, asked.args) == (made.tool_name, made.args)


# --- between runs -----------------------------------------------------------------------------------------------------


def close_open_calls(state: State) -> State:
    """Return the state with every open call closed."""
    return State(messages=framework.repair_messages(state.messages))


async def trim_state(state: State, keep: int) -> State:
    """Return the state as a store loads it again with only the last *keep* messages."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import InMemoryConversationStore

    store = InMemoryConversationStore()
    whole = Conversation(messages=state.messages, deferred_tool_requests=state.requests)
    await store.save(whole)
    window = await store.load(whole.conversation_id, limit=keep)
    assert window is not None
    return State(messages=window.messages, requests=window.deferred_tool_requests, results=state.results)
