"""A run that a decision may still be about: its result, and the state that is made of it when somebody needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents import Agent, RunState, ToolApprovalItem


class Run:
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
