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

from pytest_approvals.pytest_side.options import SUFFIX, add_options, is_configured

if TYPE_CHECKING:
    from pytest_approvals.harness.oracles import Oracle
    from pytest_approvals.pytest_side.approvals import Approvals
    from pytest_approvals.pytest_side.bench import Bench
    from pytest_approvals.pytest_side.scripted import ScriptedModel
    from pytest_approvals.pytest_side.tool_server import ToolServer
    from pytest_approvals.pytest_side.wire import ModelServer

pytest.register_assert_rewrite("pytest_approvals.testing")

BENCH = pytest.StashKey["Bench"]()
"""What the session's scenario items and people's own tests share; made when the first of them comes up."""

AT_END = pytest.StashKey[list[Callable[[], None]]]()
"""What judges a test whose own code has ended well, and may let it fail."""

_MARKER = "approvals(serialize=, stream=, oracle=, ...): how the runs of this test are made; see pytest_approvals"


def bench_of(config: pytest.Config) -> Bench:
    """
    Gives the bench of the session.

    Errors:
        pytest.UsageError: An option cannot be used.
    """
    if BENCH not in config.stash:
        from pytest_approvals.errors import ApprovalsError
        from pytest_approvals.pytest_side.bench import Bench

        try:
            config.stash[BENCH] = Bench(config)
        except ApprovalsError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[BENCH]


# --- hooks ------------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_approvals import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.pluginmanager.register(_Listener(config), "approvals-listener")
    if is_configured(config):
        bench_of(config).prepare()
        bench_of(config).aim()


def pytest_unconfigure(config: pytest.Config) -> None:
    if BENCH in config.stash:
        config.stash[BENCH].close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("approvals_chosen"):
        return None
    return collection_path not in bench_of(config).on_the_way


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SUFFIX):
        return None
    from pytest_approvals.pytest_side.items import ScenarioFile

    bench = bench_of(parent.config)
    return ScenarioFile.from_parent(parent, path=file_path, bench=bench)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("approvals"):
            _judge_marker(item, mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "serialize_mode" in metafunc.fixturenames:
        pinned = bench_of(metafunc.config).settings.pinned.get("serialize")
        metafunc.parametrize("serialize_mode", pinned or ("none", "json"), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    result = yield
    for judge in item.stash.get(AT_END, ()):
        judge()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if BENCH in item.config.stash:
        item.config.stash[BENCH].annotate(item, report, call.excinfo)
    return report


def _judge_marker(item: pytest.Item, mark: pytest.Mark) -> None:
    from pytest_approvals.errors import UsageError
    from pytest_approvals.pytest_side.wishes import marked

    try:
        marked(mark)
    except UsageError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


class _Listener:
    """Hands what items report to the bench, also where the items run in the workers of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if getattr(report, "approvals", None) and not hasattr(self.config, "workerinput"):
            bench_of(self.config).take_in(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if BENCH in self.config.stash and self.config.stash[BENCH].was_used:
            self.config.stash[BENCH].finish(session)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {}).get("approvals")
        if output is not None:
            bench_of(self.config).results.take_collected(output)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if BENCH in self.config.stash and self.config.stash[BENCH].was_used:
            self.config.stash[BENCH].summarise(terminalreporter)


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
    from pytest_approvals.harness.oracles import approve_all

    return approve_all()


@pytest.fixture
def serialize_mode(request: pytest.FixtureRequest) -> str:
    """What the state goes through between turns; a test that asks for it runs once with each mode."""
    return str(request.param)


@pytest.fixture
def _leak_guard(request: pytest.FixtureRequest) -> Generator[None]:
    """Lets nothing leave for another machine while a scripted model is active."""
    with bench_of(request.config).guard.watch() as watch:
        request.node.stash.setdefault(AT_END, []).append(watch.raise_leaks)
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
    from pytest_approvals.pytest_side.scripted import ScriptedModel

    model = ScriptedModel(request.node.nodeid)
    bench = bench_of(request.config)
    request.node.stash.setdefault(AT_END, []).append(partial(model.judge, request.node, bench, approvals_config))
    return model


@pytest.fixture
def model_server(scripted_model: ScriptedModel) -> Generator[ModelServer]:
    """The scripted model behind a server on the loopback, for agents in other processes and other languages."""
    from pytest_approvals.loopback.server import LoopbackServer
    from pytest_approvals.pytest_side.wire import ModelServer

    with LoopbackServer().running() as server:
        server.add(scripted_model.wire)
        yield ModelServer(server, scripted_model.wire)


@pytest.fixture
def mcp_server() -> Generator[Callable[..., ToolServer]]:
    """Serves tools as a real MCP server on the loopback: `mcp_server("bank", tool("pay", returns("paid")))`."""
    from pytest_approvals.mcp_servers.serving import McpServers
    from pytest_approvals.pytest_side.tool_server import ToolServer

    with McpServers() as servers:
        yield partial(ToolServer, servers)


@pytest.fixture
def approvals(
    request: pytest.FixtureRequest, approvals_config: Mapping[str, Any], approval_oracle: Oracle, _leak_guard: None
) -> Approvals:
    """Runs a person's own agent on a scripted model, records it and judges it."""
    from pytest_approvals.pytest_side.approvals import Approvals

    return Approvals(bench_of(request.config), request.node, approvals_config, approval_oracle)


@pytest.fixture
def transcript_snapshot(request: pytest.FixtureRequest) -> Any:
    """The stored transcript of this test, as a syrupy snapshot: `assert run == transcript_snapshot`."""
    from pytest_approvals.snapshot import TranscriptExtension

    return request.getfixturevalue("snapshot").use_extension(TranscriptExtension)
