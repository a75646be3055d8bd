"""What the tests of all adapters share: stories that are played on the adapter whose folder a test is in."""

from __future__ import annotations

import asyncio
import os
import pwd
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_approvals import Scenario, calls, returns, say, tool
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Reply
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.adapters import get_adapter, is_installed
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.launch import create_environment_source, resolve_recipe
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.devtools.pages.traits import format_traits, observe_agent
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.processes.remote_agents import SharedProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld
from tests.postgres_server import PostgresServer, running_postgres

pytest.register_assert_rewrite("tests.agent_side.adapters.postgres_stories")

ROOT = Path(__file__).parents[3]
APART = [file.stem for file in sorted((ROOT / "requirements" / "adapters").glob("*.txt"))]
"""The adapters whose frameworks have an environment of their own, where `tools/adapter_tests.py` runs their tests."""

collect_ignore = [name for name in APART if not is_installed(get_adapter(AgentSpec.parse(name)))]


def pytest_report_header() -> str:
    """Say what is not collected, where somebody names a folder whose tests need another environment."""
    return f"adapters tested elsewhere, by tools/adapter_tests.py: {', '.join(collect_ignore) or 'none'}"


PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
LOOK = tool("look", returns("saw {what}"), parameters={"what": "string"})


@dataclass(frozen=True)
class Played:
    """What a run on the adapter left in its journal."""

    run: RecordedRun

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        written = [event.to_dict() for event in self.run.events]
        return [event for event in written if event["event"] in kinds]

    @property
    def outcomes(self) -> list[str]:
        """How each turn ended; for a failed one, the type of its error."""
        return [one["error"][0] if "error" in one else one["outcome"] for one in self.events("turn.end")]

    @property
    def requests(self) -> list[list[str]]:
        """The labels of what surfaced, by turn."""
        return [[request["label"] for request in one["requests"]] for one in self.events("turn.end")]

    @property
    def ran(self) -> list[tuple[str, Any]]:
        """Every execution, in the order in which they began."""
        return [(one["tool"], one["arguments"]) for one in self.events("tool.start")]

    @property
    def inputs(self) -> list[list[str]]:
        """Every input of the model, an element a line."""
        return [[_line(item) for item in one["items"]] for one in self.events("model.request")]

    @property
    def told(self) -> dict[str, str]:
        """The results in the last input of the model, by call id."""
        last = self.events("model.request")[-1]["items"]
        return {item["id"]: item["text"] for item in last if item["kind"] == "result"}

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What the stream showed."""
        return self.events("caller.shown")

    @property
    def pending(self) -> list[str]:
        """The labels of what is pending at the end."""
        return [request["label"] for request in self.events("run.end")[0]["pending"]]


def _line(item: dict[str, Any]) -> str:
    said = item.get("text", item.get("arguments"))
    return " ".join(str(part) for part in (item["kind"], item.get("id"), said) if part is not None)


@pytest.fixture
def flavours(request: pytest.FixtureRequest) -> Mapping[str, type[Agent]]:
    """The flavours of the adapter."""
    found: Mapping[str, type[Agent]] = import_module(
        f"pytest_approvals.agent_side.adapters.{request.path.parent.name}"
    ).FLAVOURS
    return found


@pytest.fixture
def play(request: pytest.FixtureRequest, flavours: Mapping[str, type[Agent]]) -> Callable[..., Played]:
    """Plays a story on the adapter: replies first, then what else a scenario and a variant have; or a file's *text*."""

    def played(
        *replies: Any,
        tools: Iterable[Any] = (PAY, LOOK),
        flavour: str = "",
        attach: Attachment | None = None,
        variant: Variant | None = None,
        seconds: float = 20,
        text: str = "",
        **parts: Any,
    ) -> Played:
        model = replies or (calls("pay", amount=5), say("Done."))
        if text:
            story = parse_scenario(f"title: A story\n{text}", name="a-story", path="a-story.approval.yaml")
        else:
            story = Scenario(title="A story", model=list(model), tools=list(tools), **parts)
        adapter = flavours[flavour]
        source = InProcessSource(
            name=request.path.parent.name, adapter=adapter, facts=describe_adapter(adapter), attachment=attach
        )
        return Played(asyncio.run(run_scenario(story, variant or Variant(), source, limit=RunLimits(seconds=seconds))))

    return played


@pytest.fixture
def play_elsewhere() -> Callable[..., Played]:
    """Plays a story on an agent of JavaScript, in the environment of its release."""
    if not installers.is_npm_available():
        pytest.skip("Node is not on this machine")

    def played(
        agent: str,
        *replies: Any,
        tools: Iterable[Any] = (PAY, LOOK),
        variant: Variant | None = None,
        seconds: float = 20,
        **parts: Any,
    ) -> Played:
        source = _start_elsewhere(agent)
        story = Scenario(title="A story", model=list(replies), tools=list(tools), **parts)
        run = run_scenario(story, variant or Variant(), source, limit=RunLimits(seconds=seconds))
        return Played(get_session_loop().run(run))

    return played


@pytest.fixture
def prepare_environment() -> Callable[[str], Path]:
    """Makes the environment of the release of an agent, so that a run needs no network for it; returns its package."""

    def prepare(agent: str) -> Path:
        if get_adapter(AgentSpec.parse(agent)).registry == NPM.name and not installers.is_npm_available():
            pytest.skip("Node is not on this machine")
        where = _start_elsewhere(agent).facts.where
        assert where is not None
        return Path(where)

    return prepare


@pytest.fixture
def start_elsewhere() -> Callable[[str], SharedProcessSource]:
    """Starts an agent of JavaScript in the environment of its release."""
    if not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    return _start_elsewhere


@cache
def _start_elsewhere(agent: str) -> SharedProcessSource:
    """Return the agent in the environment of its release; its process runs until the session of tests ends."""
    spec = AgentSpec.parse(agent)
    recipe = resolve_recipe(spec)
    assert recipe is not None
    source = create_environment_source(spec, recipe, progress=lambda line: None)
    get_session_loop().run(source.fetch_facts())
    return source


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the session of tests."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database, which is removed after the test."""
    name = f"approvals_{uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
def read_only_postgres(postgres_server: PostgresServer, postgres: str) -> str:
    """The address of an empty database in which nothing can be written."""
    database = postgres.rpartition("/")[2]
    change = f"ALTER DATABASE {database} SET default_transaction_read_only = on"
    postgres_server.run("psql", "--dbname", postgres, "--command", change)
    return postgres


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder in which nothing can be written by this process, also if it is that of root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            # Root may write everywhere; with another effective user the kernel asks for permissions.
            os.seteuid(pwd.getpwnam("nobody").pw_uid)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)


@pytest.fixture
def observed_traits(request: pytest.FixtureRequest) -> str:
    """The list of traits that the adapter shows, as `python -m pytest_approvals.devtools.pages.traits` writes it."""
    name = request.path.parent.name
    if get_adapter(AgentSpec.parse(name)).registry == NPM.name and not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    return format_traits(name, observe_agent(name))


@pytest.fixture
def page_of_agents() -> str:
    """The text of `docs/agents.md`."""
    return (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


class AttachedWorld(FakeWorld):
    """A world that runs the bodies of a user's own tools."""

    def __init__(self, *replies: Reply | Exception, results: dict[str, Any] | None = None) -> None:
        super().__init__(replies, (), results)
        self.real: list[str] = []

    def gate(self, tool: str, arguments: Any, call_id: Any, *, agent: str = "main") -> bool:
        """Every call of a tool that the test gates needs approval."""
        return True

    async def run(self, tool: str, arguments: Any, call_id: Any, *, agent: str = "main", real: Any = None) -> Any:
        self.ran.append((tool, dict(arguments)))
        if real is None:
            return self.results[tool]
        self.real.append(tool)
        return await real()


@pytest.fixture
def attach(tmp_path: Path, flavours: Mapping[str, type[Agent]]) -> Iterator[Callable[..., AdapterSession]]:
    """Attaches a person's agent, or factory of one, to a world of its own."""
    begun: list[AdapterSession] = []

    def story(
        subject: Any,
        *replies: Reply | Exception,
        flavour: str = "",
        results: dict[str, Any] | None = None,
        serialize: str = "none",
        **more: Any,
    ) -> AdapterSession:
        attachment = Attachment(subject=subject, stubs=frozenset(results or ()), **more)
        blueprint = Blueprint(attachment=attachment, serialize=serialize, directory=str(tmp_path))
        begun.append(AdapterSession(flavours[flavour], blueprint, AttachedWorld(*replies, results=results)))
        return begun[-1]

    yield story
    for one in begun:
        one.end()
