"""
The pytest side: options, hooks, fixtures, and the collection of scenario files.

It is loaded in every pytest run of everybody who installed the package, so it imports nothing but its table of options;
whatever is needed to run something is imported where it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.plugin.options import SCENARIO_SUFFIX, add_options, is_configured

if TYPE_CHECKING:
    from pytest_approvals.plugin.approvals import Approvals
    from pytest_approvals.plugin.scripted_model import ScriptedModel
    from pytest_approvals.plugin.servers import ModelServer, ToolServer
    from pytest_approvals.plugin.session import ApprovalsSession
    from pytest_approvals.runner.oracles import Oracle

pytest.register_assert_rewrite("pytest_approvals.testing")

SESSION_KEY = pytest.StashKey["ApprovalsSession"]()
"""What the session's scenario items and people's own tests share; made when the first of them comes up."""

FINAL_CHECKS_KEY = pytest.StashKey[list[Callable[[], None]]]()
"""What judges a test whose own code has ended well, and may let it fail."""

_MARKER_HELP = "approvals(serialize=, stream=, oracle=, ...): how the runs of this test are made; see pytest_approvals"


def get_session(config: pytest.Config) -> ApprovalsSession:
    """
    Gives the bench of the session.

    Errors:
        pytest.UsageError: An option cannot be used.
    """
    if SESSION_KEY not in config.stash:
        from pytest_approvals.errors import ApprovalsError
        from pytest_approvals.plugin.session import ApprovalsSession

        try:
            config.stash[SESSION_KEY] = ApprovalsSession(config)
        except ApprovalsError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[SESSION_KEY]


# --- hooks ------------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_approvals.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER_HELP)
    config.pluginmanager.register(_ReportListener(config), "approvals-listener")
    if is_configured(config):
        get_session(config).prepare()
        get_session(config).aim()


def pytest_unconfigure(config: pytest.Config) -> None:
    if SESSION_KEY in config.stash:
        config.stash[SESSION_KEY].close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("approvals_chosen"):
        return None
    return collection_path not in get_session(config).on_the_way


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SCENARIO_SUFFIX):
        return None
    from pytest_approvals.plugin.collection import ScenarioCollector

    bench = get_session(parent.config)
    return ScenarioCollector.from_parent(parent, path=file_path, bench=bench)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("approvals"):
            _validate_marker(item, mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "serialize_mode" in metafunc.fixturenames:
        pinned = get_session(metafunc.config).settings.pinned.get("serialize")
        metafunc.parametrize("serialize_mode", pinned or ("none", "json"), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    result = yield
    for judge in item.stash.get(FINAL_CHECKS_KEY, ()):
        judge()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if SESSION_KEY in item.config.stash:
        item.config.stash[SESSION_KEY].annotate(item, report, call.excinfo)
    return report


def _validate_marker(item: pytest.Item, mark: pytest.Mark) -> None:
    from pytest_approvals.errors import UsageError
    from pytest_approvals.plugin.run_options import options_from_marker

    try:
        options_from_marker(mark)
    except UsageError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


class _ReportListener:
    """Hands what items report to the bench, also where the items run in the workers of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if getattr(report, "approvals", None) and not hasattr(self.config, "workerinput"):
            get_session(self.config).take_in(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if SESSION_KEY in self.config.stash and self.config.stash[SESSION_KEY].was_used:
            self.config.stash[SESSION_KEY].finish(session)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {}).get("approvals")
        if output is not None:
            get_session(self.config).results.take_collected(output)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if SESSION_KEY in self.config.stash and self.config.stash[SESSION_KEY].was_used:
            self.config.stash[SESSION_KEY].summarise(terminalreporter)


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def approvals_config() -> Mapping[str, Any]:
    """
    How the runs of all tests are made, where neither the test's call nor its marker says it: override it to say so.

    The keys are those of the marker `approvals`: `serialize`, `resume`, `history`, `stream`, `answer`, `chunking`,
    `oracle`, `agent`, `checks`, `seed`, `time_limit`.
    """
    return {}


@pytest.fixture
def approval_oracle() -> Oracle:
    """Who answers the approval requests of a test whose run names no oracle; override it to say who."""
    from pytest_approvals.runner.oracles import approve_all

    return approve_all()


@pytest.fixture
def serialize_mode(request: pytest.FixtureRequest) -> str:
    """What the state goes through between turns; a test that asks for it runs once with each mode."""
    return str(request.param)


@pytest.fixture
def _leak_guard(request: pytest.FixtureRequest) -> Generator[None]:
    """Lets nothing leave for another machine while a scripted model is active."""
    with get_session(request.config).guard.watch() as watch:
        request.node.stash.setdefault(FINAL_CHECKS_KEY, []).append(watch.raise_leaks)
        yield
    watch.raise_leaks()


@pytest.fixture
def scripted_model(
    request: pytest.FixtureRequest, approvals_config: Mapping[str, Any], _leak_guard: None
) -> ScriptedModel:
    """
    A script for the model, to be written line by line and handed to `approvals.run(model=...)`, or to the agent's own
    client.
    """
    from pytest_approvals.plugin.scripted_model import ScriptedModel

    model = ScriptedModel(request.node.nodeid)
    bench = get_session(request.config)
    request.node.stash.setdefault(FINAL_CHECKS_KEY, []).append(
        partial(model.judge, request.node, bench, approvals_config)
    )
    return model


@pytest.fixture
def model_server(scripted_model: ScriptedModel) -> Generator[ModelServer]:
    """The scripted model behind a server on the loopback, for agents in other processes and other languages."""
    from pytest_approvals.model_server.server import ScriptedModelServer
    from pytest_approvals.plugin.servers import ModelServer

    with ScriptedModelServer().running() as server:
        server.add(scripted_model.wire)
        yield ModelServer(server, scripted_model.wire)


@pytest.fixture
def mcp_server() -> Generator[Callable[..., ToolServer]]:
    """Serves tools as a real MCP server on the loopback: `mcp_server("bank", tool("pay", returns("paid")))`."""
    from pytest_approvals.plugin.servers import ToolServer
    from pytest_approvals.runner.mcp.servers import McpServers

    with McpServers() as servers:
        yield partial(ToolServer, servers)


# Importing the module `approvals` beside this one puts it in the place of a function of that name.
@pytest.fixture(name="approvals")
def _approvals_fixture(
    request: pytest.FixtureRequest, approvals_config: Mapping[str, Any], approval_oracle: Oracle, _leak_guard: None
) -> Approvals:
    """Runs a person's own agent on a scripted model, records it and judges it."""
    from pytest_approvals.plugin.approvals import Approvals

    return Approvals(get_session(request.config), request.node, approvals_config, approval_oracle)


@pytest.fixture
def transcript_snapshot(request: pytest.FixtureRequest) -> Any:
    """The stored transcript of this test, as a syrupy snapshot: `assert run == transcript_snapshot`."""
    from pytest_approvals.plugin.snapshot import TranscriptExtension

    return request.getfixturevalue("snapshot").use_extension(TranscriptExtension)
