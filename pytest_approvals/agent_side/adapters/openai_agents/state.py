"""State that the caller keeps between turns, and the runs that a decision may still be about.

Without a session the caller keeps the input list of the next run. With one it keeps its name, because the history is in
the store. In both cases it keeps the agent to which the conversation was handed over, and each run that a decision may
still be about.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...contract import MAIN

if TYPE_CHECKING:
    from agents import Agent, RunState, SQLiteSession, ToolApprovalItem

    from .agents import AgentGraph


class SdkRun:
    """One run of the SDK: its result, and the state that is made of it when it is needed.

    The state is made to be decided about or to be stored, as a caller of the SDK makes it; the result of a run that is
    never used again stays a result.

    Args:
        agent: The agent with which the run began.
        result: The result of the run, if there is no state yet.
        state: The state of the run, if it was restored.
    """

    def __init__(self, agent: Agent[Any], *, result: Any = None, state: RunState[Any] | None = None) -> None:
        self.agent = agent
        self._result = result
        self._state = state

    @property
    def state(self) -> RunState[Any]:
        """The state of the run, the same one each time."""
        if self._state is None:
            self._state, self._result = self._result.to_state(), None
        assert self._state is not None
        return self._state

    @property
    def requests(self) -> list[ToolApprovalItem]:
        """The requests for which the run waits."""
        if self._state is not None:
            return self._state.get_interruptions()
        return list(self._result.interruptions)

    def release(self) -> None:
        """Make the state of a run that still waits and was never used again.

        The SDK keeps the paused runs of agent tools outside of the result while the process lives; releases from
        0.21 to 0.22 hand them to the state. A session that is over must not answer for another one.
        """
        if self._state is None and self.requests:
            self._state = self._result.to_state()


def read_text(result: Any) -> str | None:
    """Return the text next to the calls that wait, from the last response of *result*."""
    if not result.raw_responses:
        return None
    messages = [item for item in result.raw_responses[-1].output if item.type == "message"]
    return "".join(getattr(part, "text", "") for item in messages for part in item.content) or None


def read_output(result: Any) -> Any:
    """Return the final output; one of a user's own type as JSON values."""
    output = result.final_output
    if output is None or isinstance(output, (str, int, float, bool)):
        return output
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(output, fallback=str)


def read_failed_input(error: BaseException) -> list[Any] | None:
    """Return the input list that a failed run has reached, from the `run_data` of the SDK's own errors.

    None if the error has none, or if a call in it has no result: no model takes such a list.
    """
    data = getattr(error, "run_data", None)
    if data is None:
        return None
    before = [{"role": "user", "content": data.input}] if isinstance(data.input, str) else list(data.input)
    # The SDK refuses to convert an approval item, which no model is sent.
    items = [item.to_input_item() for item in data.new_items if item.type != "tool_approval_item"]
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    answered = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
    return before + items if called <= answered else None


class CallerState:
    """The caller's side of one conversation.

    Args:
        agent: The agent with which the conversation begins.
        uses_session: A session keeps the history.
        path: The database of the session, which is opened when it is first needed.
        name: The name of the session.
        own_session: A user's own session, in place of that one; its content is not saved here.

    Attributes:
        agent: The agent that has the conversation, `last_agent` of the newest result; the next run begins with it.
        runs: The runs, the newest last.
        unanswered: The input of a run that failed before it had a state, to be handed in again.
        unfinished: The newest run continues with the next message: it was resumed and failed, and only its state
            tells what was done; or it holds staged decisions.
        limit: The number of items of the history that a new run gets; None for all.
    """

    def __init__(self, agent: Agent[Any], *, uses_session: bool, path: str, name: str, own_session: Any = None) -> None:
        self.agent = agent
        self.runs: list[SdkRun] = []
        self.unanswered: Any = None
        self.unfinished = False
        self.limit: int | None = None
        self._ended: list[SdkRun] = []
        self._history: list[Any] = []
        self._result: Any = None
        self._uses_session = uses_session or own_session is not None
        self._own_session = own_session
        self._path = path
        self._name = name
        self._session: SQLiteSession | None = None

    @property
    def session(self) -> Any:
        """The session of all runs; None if the caller keeps the list."""
        if self._own_session is not None:
            return self._own_session
        if self._uses_session and self._session is None:
            from agents import SQLiteSession

            self._session = SQLiteSession(self._name, self._path)
        return self._session

    @property
    def history(self) -> list[Any]:
        """The input list of the next run, without its message."""
        if self._result is not None:
            self._history, self._result = self._result.to_input_list(), None
        return self._history

    def input_with(self, text: str) -> Any:
        """Return the input of a run that begins with *text*."""
        if self._uses_session:
            return text
        before = self.unanswered if self.unanswered is not None else self.history
        return [*before, {"role": "user", "content": text}]

    def note_begin(self, input: Any) -> None:
        """Remember the input of a run until it has succeeded; the session has stored a text by then."""
        self.unanswered = [] if isinstance(input, str) else input

    def note_end(self, result: Any, resumed: SdkRun | None) -> None:
        """Keep the result of a run that began with a message, or of one that was *resumed*."""
        self.unanswered, self.unfinished = None, False
        older = self.runs if resumed is not None or self._uses_session else []
        paused = [run for run in older if run is not resumed and run.requests]
        self.runs = [*paused, SdkRun(self.agent if resumed is None else resumed.agent, result=result)]
        # `runs` forgets what a newer run replaces, but `close` has to release that, too.
        self._ended.append(self.runs[-1])
        self.agent = result.last_agent
        if not self._uses_session:
            self._result = result

    def note_failure(self, error: BaseException, resumed: SdkRun | None) -> None:
        """Keep what the SDK's own errors tell about a failed run; others, and cancellations, tell nothing."""
        if self._uses_session:
            return
        reached = read_failed_input(error)
        if reached is not None:
            self._history, self._result = reached, None
            self.unanswered = reached if resumed is None else None
        elif resumed is not None:
            self.unfinished = not resumed.requests

    def waits(self) -> bool:
        """Return whether the newest run waits for decisions."""
        return bool(self.runs and self.runs[-1].requests)

    def make_newest(self, runs: list[SdkRun]) -> None:
        """Make *runs* the newest ones."""
        self.runs = [run for run in self.runs if not any(run is newest for newest in runs)] + runs

    async def dump(self, agents: AgentGraph, context: Any) -> str:
        """Return the state as text; the content of a store stays there."""
        written: dict[str, Any] = {
            "runs": [_name_guardrails(run.state.to_json(**_serializer_options(context))) for run in self.runs]
        }
        keys = [agents.key(agent) for agent in (self.agent, *(run.agent for run in self.runs))]
        if set(keys) != {MAIN}:
            written["agent"], *written["began_with"] = keys
        if self.unanswered is not None:
            written["unanswered"] = self.unanswered
        if self.unfinished:
            written["unfinished"] = True
        if not self._uses_session:
            written["history"] = self.history
        elif self._own_session is None:
            written |= {"session": self._name, "limit": self.limit}
            if self._path == _IN_MEMORY:
                written["items"] = await self.session.get_items()
        # The SDK writes a restored state with its keys in another order.
        return json.dumps(written, sort_keys=True)

    async def load(self, text: str, agents: AgentGraph, context: Any) -> None:
        """Restore what `dump` returned."""
        written = json.loads(text)
        self._history = written.get("history", [])
        self._name, self.limit = written.get("session", self._name), written.get("limit")
        if "items" in written:
            await self.session.add_items(written["items"])
        self.unanswered, self.unfinished = written.get("unanswered"), written.get("unfinished", False)
        self.agent = agents.agents[written.get("agent", MAIN)]
        began_with = written.get("began_with", [MAIN] * len(written["runs"]))
        self.runs = [
            await _restore_run(run, agents.agents[name], context)
            for run, name in zip(written["runs"], began_with, strict=True)
        ]

    def close(self) -> None:
        """Close the session, and release all runs."""
        for run in self._ended:
            run.release()
        self._ended, self.runs = [], []
        if self._session is not None:
            self._session.close()
            self._session = None


_IN_MEMORY = ":memory:"


async def _restore_run(written: Any, agent: Agent[Any], context: Any) -> SdkRun:
    from agents import RunState

    override = {} if context is None else {"context_override": context}
    return SdkRun(agent, state=await RunState.from_json(agent, written, **override))


def _name_guardrails(written: dict[str, Any]) -> dict[str, Any]:
    """Write the names that the SDK gives to guardrails without one when it restores a state."""
    for kind in ("input", "output"):
        for result in written.get(f"{kind}_guardrail_results") or ():
            guardrail = result["guardrail"]
            guardrail["name"] = guardrail["name"] or f"deserialized_{kind}_guardrail"
    return written


def _serializer_options(context: Any) -> dict[str, Any]:
    # A user's own context object is handed in again on load, as the guide says for what cannot be stored.
    return {} if context is None or isinstance(context, dict) else {"context_serializer": lambda _: {}}
