"""Scripted model of a user's test: its replies, how clients reach it, and what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.build import call, calls, fails, say, scenario
from pytest_approvals.scenario.model import Call, Scenario, ScriptedReply

if TYPE_CHECKING:
    from typing import Any

    import pytest

    from pytest_approvals.journal.history import Exchange
    from pytest_approvals.model_server.conversation import ServedConversation
    from pytest_approvals.plugin.run_options import Chunking
    from pytest_approvals.plugin.run_result import RunResult
    from pytest_approvals.plugin.state import PluginState
    from pytest_approvals.scenario.build import FailureKind

CLIENT_AGENT = "own-agent"
"""What journals, reports and addresses call the agent of a test that has a client of its own."""


class ScriptedModel(Sequence[ScriptedReply]):
    """A script, written line by line.

    Each method that writes adds a reply and returns the model, so that lines can be chained. `approvals.run(model=...)`
    plays them in the framework's own scripted model. `transport`, `mount` and the fixture `model_server` play them to
    the agent's own client, each reply once, whichever of the three is asked.

    Args:
        name: What its journal is about: the id of the test.

    Attributes:
        runs: The runs that played it.
    """

    def __init__(self, name: str = "") -> None:
        self.runs: list[RunResult] = []
        self._name = name
        self._replies: list[ScriptedReply] = []

    # --- the script ---

    def calls(self, tool: str | Call, *others: Call, **arguments: Any) -> ScriptedModel:
        """Add a reply that calls a tool, or several made by `call(...)`; see `pytest_approvals.calls`."""
        return self.replies(calls(tool, **arguments) if isinstance(tool, str) else calls(tool, *others, **arguments))

    def says(self, text: str) -> ScriptedModel:
        """Add a reply of text."""
        return self.replies(say(text))

    def fails(self, how: FailureKind = 500, *, retry_after: float | None = None) -> ScriptedModel:
        """Add a failure in place of a reply; see `pytest_approvals.fails`."""
        return self.replies(fails(how, retry_after=retry_after))

    def replies(self, *replies: ScriptedReply) -> ScriptedModel:
        """Add replies made by `calls`, `say` and `fails`."""
        self._replies += replies
        return self

    call = staticmethod(call)

    # --- how clients reach it ---

    @cached_property
    def wire(self) -> ServedConversation:
        """The model as an agent's own client reaches it, however it does."""
        # The model server is imported only by tests that need it.
        from pytest_approvals.model_server.conversation import ANY_PROTOCOL, ConversationOptions, ServedConversation

        scenario_of_script = _growing_scenario(self._name, self._replies)
        return ServedConversation(CLIENT_AGENT, scenario_of_script, ConversationOptions(protocol=ANY_PROTOCOL))

    @property
    def was_asked(self) -> bool:
        """Whether a client has asked it."""
        return "wire" in self.__dict__ and self.wire.context is not None

    def speaks(
        self,
        protocol: str = "any",
        *,
        chunking: Chunking | None = None,
        style: str | None = None,
        lenient: bool | None = None,
    ) -> ScriptedModel:
        """Set how it speaks to an agent's own client.

        Args:
            protocol: `chat`, `responses` or `messages`; `any` is the one that it is asked in first.
            chunking: How streamed replies are cut.
            style: How streams are written.
            lenient: Answer what the provider would refuse.

        Raises:
            UsageError: It was asked already, or a value is invalid.
        """
        if self.wire.context is not None:
            raise UsageError("the scripted model was asked already; say how it speaks before a client is used")
        options = {"protocol": protocol, "chunking": chunking, "style": style, "lenient": lenient}
        changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        self.wire.options = replace(self.wire.options, **changes)
        return self

    def transport(self) -> Any:
        """Return a transport for a client of `httpx` or `httpx2`, sync or async.

        For example `OpenAI(http_client=httpx2.Client(transport=scripted_model.transport()), ...)`.
        """
        from pytest_approvals.protocols.transport import Transport

        return Transport(self.wire)

    def mount(self, router: Any, *bases: str) -> Any:
        """Add routes to a router of respx, for a client that is left as it is.

        Args:
            router: `httpx2_mock` of pytest-httpx2 for clients made on `httpx2`, `respx_mock` for those made on `httpx`.
            bases: The addresses that clients take as their base, with the version; by default those of OpenAI and
                Anthropic.

        Returns:
            The route of respx.
        """
        from pytest_approvals.protocols.transport import mount_routes

        return mount_routes(router, self.wire, *bases)

    # --- what it was asked ---

    @property
    def requests(self) -> list[Exchange]:
        """Everything that it was asked in its latest run, or else by clients, with what it answered."""
        if self.runs:
            return list(self.runs[-1].history.exchanges)
        if not self.was_asked:
            raise UsageError("the scripted model was not asked yet: hand it to approvals.run(model=...) or to a client")
        from pytest_approvals.journal.history_builder import read_history

        return read_history(self.wire.events).exchanges

    def judge(self, item: pytest.Item, state: PluginState, config: Mapping[str, Any]) -> None:
        """Judge what a client of the agent's own asked, if there was one; runs have been judged already.

        Args:
            item: The test.
            state: The state of the plugin.
            config: What the fixture `approvals_config` says.

        Raises:
            UsageError: It has replies, and nothing asked for one.
            CheckFailed: It broke a requirement, and the test does not collect verdicts.
        """
        __tracebackhide__ = True
        if not self.was_asked:
            if self._replies and not self.runs:
                raise UsageError(
                    "the scripted model has replies, and nobody asked for them: hand it to approvals.run(model=...) or "
                    "to a client by transport(), mount() or model_server"
                )
            return
        from pytest_approvals.plugin.run_options import resolve_options
        from pytest_approvals.runner.run import RecordedRun

        play = self.wire.context
        assert play is not None
        run = RecordedRun(scenario=play.scenario, variant=play.variant, agent=CLIENT_AGENT, journal=play.journal)
        judged = state.judge(item, run, ClientAgent(), is_user_run=True)
        if resolve_options(item, config, state.settings)["checks"] == "raise":
            judged.raise_findings()
        for warning in judged.warnings():
            item.warn(warning)

    def __getitem__(self, place: Any) -> Any:
        return self._replies[place]

    def __len__(self) -> int:
        return len(self._replies)

    def __iter__(self) -> Iterator[ScriptedReply]:
        return iter(self._replies)


class ClientAgent:
    """What the report says of an agent that reaches the scripted model by a client of its own."""

    name = CLIENT_AGENT
    facts = Facts()


def _growing_scenario(test: str, replies: Sequence[ScriptedReply]) -> Callable[[], Scenario]:
    """Return a function that builds the scenario of a script, anew only if the script has grown."""
    built: dict[int, Scenario] = {}

    def build() -> Scenario:
        # A script only grows, so its length tells; an unchanged one stays the same object, by which the server caches.
        if len(replies) not in built:
            built.clear()
            built[len(replies)] = scenario(id=test, title=test or "Own test", model=replies, attached=True)
        return built[len(replies)]

    return build
