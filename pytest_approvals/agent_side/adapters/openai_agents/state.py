"""A run that a decision may still be about: its result, and the state that is made of it when somebody needs one.

What a result of the SDK, or an error of a run, says to the caller.

What the caller keeps between turns.

Without a session: the input list of the next run. With one, its name, because the history is in the store. In both
cases the agent that the conversation was handed over to, and each run that a decision may still be about.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...contract import MAIN

if TYPE_CHECKING:
    from agents import Agent, RunState, SQLiteSession, ToolApprovalItem

    from .agents import AgentGraph


class SdkRun:
    """
    What is left of one run of the SDK.

    The state is made when it is first needed, to be decided about or to be stored, as a caller of the SDK makes it; the
    result of a run that nobody comes back to stays a result.

    Arguments:
        agent: The agent that the run began with.
        result, state: One of the two.
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
        """The requests that the run waits for."""
        if self._state is not None:
            return self._state.get_interruptions()
        return list(self._result.interruptions)

    def let_go(self) -> None:
        """
        Makes the state of a run that waits and that nobody came back to.

        The SDK keeps the paused runs of agent tools beside the result, for as long as the process lives; releases from
        0.21 to 0.22 give them up to the state. A session that is over must not answer for another one.
        """
        if self._state is None and self.requests:
            self._state = self._result.to_state()


def read_text(result: Any) -> str | None:
    """Gives what the model said beside the calls that wait, from the last response of *result*."""
    if not result.raw_responses:
        return None
    said = [item for item in result.raw_responses[-1].output if item.type == "message"]
    return "".join(getattr(part, "text", "") for item in said for part in item.content) or None


def read_output(result: Any) -> Any:
    """Gives the final output; one of a person's own type as JSON values."""
    output = result.final_output
    if output is None or isinstance(output, (str, int, float, bool)):
        return output
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(output, fallback=str)


def read_failed_input(error: BaseException) -> list[Any] | None:
    """
    Gives the input list that a failed run has come to, from the `run_data` of the SDK's own errors.

    None where the error has none, and where a call in it has no result: no model takes such a list.
    """
    data = getattr(error, "run_data", None)
    if data is None:
        return None
    given = [{"role": "user", "content": data.input}] if isinstance(data.input, str) else list(data.input)
    items = [item.to_input_item() for item in data.new_items if item.type != "tool_approval_item"]
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    answered = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
    return given + items if called <= answered else None


class CallerState:
    """
    The caller's side of one conversation.

    Arguments:
        agent: The agent that the conversation begins with.
        path, name: Where the session is, which is opened when it is first needed.
        given: A person's own session, in place of that one; what it holds is theirs to keep.

    Attributes:
        agent: The agent that has the conversation, `last_agent` of the newest result: the next run begins with it.
        runs: The runs, the newest last.
        unanswered: The input of a run that failed before it had a state, to be handed in again.
        unfinished: The newest run goes on with the next message: it was resumed and failed, and nothing but its state
            tells what was done; or it holds decisions that were staged.
        limit: How many items of the history a new run gets; None gives all.
    """

    def __init__(self, agent: Agent[Any], *, uses_session: bool, path: str, name: str, given: Any = None) -> None:
        self.agent = agent
        self.runs: list[SdkRun] = []
        self.unanswered: Any = None
        self.unfinished = False
        self.limit: int | None = None
        self._ended: list[SdkRun] = []
        self._history: list[Any] = []
        self._result: Any = None
        self._uses_session = uses_session or given is not None
        self._given = given
        self._path = path
        self._name = name
        self._session: SQLiteSession | None = None

    @property
    def session(self) -> Any:
        """The session that all runs are given; None where the caller keeps the list."""
        if self._given is not None:
            return self._given
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
        """Gives the input of a run that begins with *text*."""
        if self._uses_session:
            return text
        before = self.unanswered if self.unanswered is not None else self.history
        return [*before, {"role": "user", "content": text}]

    def begins(self, given: Any) -> None:
        """Remembers the input of a run until it has ended well; the session has stored a text by then."""
        self.unanswered = [] if isinstance(given, str) else given

    def ends(self, result: Any, resumed: SdkRun | None) -> None:
        """Takes the result of a run that began with a message, or of one that was *resumed*."""
        self.unanswered, self.unfinished = None, False
        kept = self.runs if resumed is not None or self._uses_session else []
        paused = [run for run in kept if run is not resumed and run.requests]
        self.runs = [*paused, SdkRun(self.agent if resumed is None else resumed.agent, result=result)]
        self._ended.append(self.runs[-1])
        self.agent = result.last_agent
        if not self._uses_session:
            self._result = result

    def fails(self, error: BaseException, resumed: SdkRun | None) -> None:
        """Takes what the SDK's own errors tell of a run that failed; others, and cancellations, tell nothing."""
        if self._uses_session:
            return
        done = read_failed_input(error)
        if done is not None:
            self._history, self._result = done, None
            self.unanswered = done if resumed is None else None
        elif resumed is not None:
            self.unfinished = not resumed.requests

    def waits(self) -> bool:
        """Says whether the newest run waits for decisions."""
        return bool(self.runs and self.runs[-1].requests)

    def take_up(self, runs: list[SdkRun]) -> None:
        """Makes *runs* the newest ones."""
        self.runs = [run for run in self.runs if not any(run is one for one in runs)] + runs

    async def dump(self, crew: AgentGraph, context: Any) -> str:
        """Gives all of it as text; with a store, what the store holds is left there."""
        written: dict[str, Any] = {"runs": [run.state.to_json(**_serializer_options(context)) for run in self.runs]}
        agents = [crew.key(one) for one in (self.agent, *(run.agent for run in self.runs))]
        if set(agents) != {MAIN}:
            written["agent"], *written["began_with"] = agents
        if self.unanswered is not None:
            written["unanswered"] = self.unanswered
        if self.unfinished:
            written["unfinished"] = True
        if not self._uses_session:
            written["history"] = self.history
        elif self._given is None:
            written |= {"session": self._name, "limit": self.limit}
            if self._path == _IN_MEMORY:
                written["items"] = await self.session.get_items()
        # A state that was taken up is written with its keys in another order.
        return json.dumps(written, sort_keys=True)

    async def load(self, text: str, crew: AgentGraph, context: Any) -> None:
        """Takes up what `dump` gave."""
        written = json.loads(text)
        self._history = written.get("history", [])
        self._name, self.limit = written.get("session", self._name), written.get("limit")
        if "items" in written:
            await self.session.add_items(written["items"])
        self.unanswered, self.unfinished = written.get("unanswered"), written.get("unfinished", False)
        self.agent = crew.agents[written.get("agent", MAIN)]
        began_with = written.get("began_with", [MAIN] * len(written["runs"]))
        self.runs = [
            await _restore_run(run, crew.agents[name], context)
            for run, name in zip(written["runs"], began_with, strict=True)
        ]

    def close(self) -> None:
        """Closes the session, and lets go of all runs."""
        for run in self._ended:
            run.let_go()
        self._ended, self.runs = [], []
        if self._session is not None:
            self._session.close()
            self._session = None


_IN_MEMORY = ":memory:"


async def _restore_run(written: Any, agent: Agent[Any], context: Any) -> SdkRun:
    from agents import RunState

    override = {} if context is None else {"context_override": context}
    return SdkRun(agent, state=await RunState.from_json(agent, written, **override))


def _serializer_options(context: Any) -> dict[str, Any]:
    # A person's own context object is handed in again on load, as the guide has it for what cannot be stored.
    return {} if context is None or isinstance(context, dict) else {"context_serializer": lambda _: {}}
