"""The scripted model of a person's test: its replies, how it is reached, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_approvals.errors import UsageError
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.scenario.build import call, calls, fails, say
from pytest_approvals.scenario.model import Call, ScriptedReply

if TYPE_CHECKING:
    from typing import Any

    import pytest

    from pytest_approvals.journal.history import Exchange
    from pytest_approvals.model_server.conversation import ServedConversation
    from pytest_approvals.plugin.run_result import RunResult
    from pytest_approvals.plugin.session import ApprovalsSession
    from pytest_approvals.scenario.build import FailureKind


class ScriptedModel(Sequence[ScriptedReply]):
    """
    A script, written line by line.

    Each method that writes adds a reply and gives the model, so that lines can be chained. `approvals.run(model=...)`
    plays them in the framework's own scripted model; `transport`, `mount` and the fixture `model_server` play them to
    the agent's own client, each reply once, whichever of the three is asked.

    Arguments:
        name: What its journal says that it is about: the id of the test.

    Attributes:
        runs: The runs that played it.
    """

    def __init__(self, name: str = "") -> None:
        self.runs: list[RunResult] = []
        self._name = name
        self._replies: list[ScriptedReply] = []

    # --- the script ---

    def calls(self, tool: str | Call, *others: Call, **arguments: Any) -> ScriptedModel:
        """Adds a reply that calls a tool, or several made by `call(...)`; see `pytest_approvals.calls`."""
        return self.replies(calls(tool, **arguments) if isinstance(tool, str) else calls(tool, *others, **arguments))

    def says(self, text: str) -> ScriptedModel:
        """Adds a reply of text."""
        return self.replies(say(text))

    def fails(self, how: FailureKind = 500, *, retry_after: float | None = None) -> ScriptedModel:
        """Adds a failure in place of a reply; see `pytest_approvals.fails`."""
        return self.replies(fails(how, retry_after=retry_after))

    def replies(self, *replies: ScriptedReply) -> ScriptedModel:
        """Adds replies made by `calls`, `say` and `fails`."""
        self._replies += replies
        return self

    call = staticmethod(call)

    # --- how it is reached ---

    @cached_property
    def wire(self) -> ServedConversation:
        """The model as an agent's own client reaches it, however it does."""
        from pytest_approvals.plugin.user_client import create_client_conversation

        return create_client_conversation(self._name, self._replies)

    def speaks(self, protocol: str = "any", **wishes: Any) -> ScriptedModel:
        """
        Says how it speaks to an agent's own client.

        Arguments:
            protocol: `chat`, `responses` or `messages`; `any` is the one that it is asked in first.
            wishes: `chunking`, how streamed replies are cut; `style`, how streams are written; `lenient`, to answer
                what the provider would refuse.

        Errors:
            UsageError: It was asked already, or something is wished for that does not exist.
        """
        from pytest_approvals.plugin.user_client import configure_conversation

        configure_conversation(self.wire, protocol=protocol, **wishes)
        return self

    def transport(self) -> Any:
        """
        Gives a transport to hand to a client of `httpx` or `httpx2`, sync or async:
        `OpenAI(http_client=httpx2.Client(transport=scripted_model.transport()), ...)`.
        """
        from pytest_approvals.protocols.transport import Transport

        return Transport(self.wire)

    def mount(self, router: Any, *bases: str) -> Any:
        """
        Adds routes to a router of respx, for a client that is left as it is.

        Arguments:
            router: `httpx2_mock` of pytest-httpx2 for clients made on `httpx2`, `respx_mock` for those made on `httpx`.
            bases: The addresses that clients take as their base, with the version: those of OpenAI and Anthropic where
                none is given.

        Returns:
            The route of respx.
        """
        from pytest_approvals.protocols.transport import mount_routes

        return mount_routes(router, self.wire, *bases)

    # --- what came of it ---

    @property
    def requests(self) -> list[Exchange]:
        """Everything that it was asked in its latest run, or else by clients, with what it answered."""
        if self.runs:
            return list(self.runs[-1].history.exchanges)
        if "wire" not in self.__dict__ or self.wire.play is None:
            raise UsageError("the scripted model was not asked yet: hand it to approvals.run(model=...) or to a client")

        return read_history(self.wire.events).exchanges

    def judge(self, item: pytest.Item, bench: ApprovalsSession, config: Mapping[str, Any]) -> None:
        """
        Judges what it was asked by a client of the agent's own, if it was; runs have been judged already.

        Errors:
            CheckFailed: That broke a requirement.
        """
        __tracebackhide__ = True
        if "wire" in self.__dict__:
            from pytest_approvals.plugin.user_client import judge_conversation

            judge_conversation(item, self.wire, bench, config)

    def __getitem__(self, place: Any) -> Any:
        return self._replies[place]

    def __len__(self) -> int:
        return len(self._replies)

    def __iter__(self) -> Iterator[ScriptedReply]:
        return iter(self._replies)
