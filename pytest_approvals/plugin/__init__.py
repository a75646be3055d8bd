"""Pytest plugin: options, hooks, fixtures, and the collection of scenario files.

It is loaded in every pytest run of everybody who installed the package, so it imports nothing but its table of options.
Everything that is needed to run something is imported where it is first needed.

No module of this room has the name of a fixture: importing the module would put it in the place of the fixture.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.plugin.options import SCENARIO_SUFFIX, add_options, is_configured

if TYPE_CHECKING:
    from pytest_approvals.plugin.model_script import ScriptedModel
    from pytest_approvals.plugin.servers import ModelServer, ToolServer
    from pytest_approvals.plugin.state import PluginState
    from pytest_approvals.plugin.user_runs import Approvals
    from pytest_approvals.runner.oracles import Oracle

STATE_KEY = pytest.StashKey["PluginState"]()
"""What the scenario items and the users' tests of a session share; made when the first of them comes up."""

FINAL_CHECKS_KEY = pytest.StashKey[list[Callable[[], None]]]()
"""Functions that judge a test after its own code has passed, and may let it fail."""

_MARKER_HELP = "approvals(serialize=, stream=, oracle=, ...): how the runs of this test are made; see pytest_approvals"


def get_state(config: pytest.Config) -> PluginState:
    """Return the state of the plugin in a session.

    Raises:
        pytest.UsageError: An option is invalid.
    """
    if STATE_KEY not in config.stash:
        from pytest_approvals.errors import ApprovalsError
        from pytest_approvals.plugin.state import PluginState

        try:
            config.stash[STATE_KEY] = PluginState(config)
        except ApprovalsError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[STATE_KEY]


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
        get_state(config).build_environments()
        get_state(config).set_collection_args()


def pytest_unconfigure(config: pytest.Config) -> None:
    if STATE_KEY in config.stash:
        config.stash[STATE_KEY].close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("approvals_chosen"):
        return None
    # False, unlike None, overrules norecursedirs and the virtualenv check, which can hide the built-in catalogue.
    return collection_path not in get_state(config).paths_to_chosen


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SCENARIO_SUFFIX):
        return None
    from pytest_approvals.errors.printable import escape_value
    from pytest_approvals.plugin.items import ScenarioCollector

    root = parent.config.rootpath
    shown = (file_path.relative_to(root) if file_path.is_relative_to(root) else file_path).as_posix()
    # pytest prints ids of nodes as they are.
    nodeid, name = escape_value(shown), escape_value(file_path.name)
    names: dict[str, Any] = {} if nodeid == shown else {"name": name, "nodeid": nodeid}
    return ScenarioCollector.from_parent(parent, path=file_path, state=get_state(parent.config), **names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if STATE_KEY in config.stash and (shard := config.stash[STATE_KEY].settings.shard) is not None:
        from pytest_approvals.plugin.items import list_other_shards
        from pytest_approvals.plugin.settings import read_times

        file = config.stash[STATE_KEY].settings.times
        others = list_other_shards(items, *shard, {} if file is None else read_times(file))
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]
    for item in items:
        for mark in item.iter_markers("approvals"):
            _validate_marker(item, mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "serialize_mode" in metafunc.fixturenames and not _sets_own_mode(metafunc):
        pinned = get_state(metafunc.config).settings.pinned.get("serialize")
        metafunc.parametrize("serialize_mode", pinned or ("none", "json"), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    result = yield
    for judge in item.stash.get(FINAL_CHECKS_KEY, ()):
        judge()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    if session.testsfailed and session.items and STATE_KEY in session.config.stash:
        from pytest_approvals.plugin.items import INVALID_SCENARIOS

        # A mistake in one scenario says nothing about the others: they run, and the session fails all the same.
        if session.testsfailed == session.stash.get(INVALID_SCENARIOS, 0):
            session.config.option.continue_on_collection_errors = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STATE_KEY in item.config.stash:
        item.config.stash[STATE_KEY].annotate(item, report, call.excinfo)
    return report


# Innermost, because pytest's own wrapper sets the filters of the project.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    # As an error, a warning of any plugin (syrupy misses the reports of workers) would leave this hook as a traceback,
    # keep other plugins from ending the session, and make the exit code of an interrupt 1.
    with warnings.catch_warnings():
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            warnings.simplefilter("default")
        return (yield)


def _sets_own_mode(metafunc: pytest.Metafunc) -> bool:
    """Return whether a project has a fixture `serialize_mode` of its own, or a test is parametrized with modes."""
    if any("serialize_mode" in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize")):
        return True
    # Private, and without it a fixture of the project's own is called once with each mode, as ours is.
    return len(getattr(metafunc, "_arg2fixturedefs", {}).get("serialize_mode", ())) > 1


def _validate_marker(item: pytest.Item, mark: pytest.Mark) -> None:
    from pytest_approvals.errors import UsageError
    from pytest_approvals.plugin.run_options import options_from_marker

    try:
        options_from_marker(mark)
    except UsageError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


class _ReportListener:
    """Collects what items report, also if the items run in the workers of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if STATE_KEY not in self.config.stash or hasattr(self.config, "workerinput") or self.config.option.collectonly:
            return
        state = self.config.stash[STATE_KEY]
        if state.settings.report is not None:
            from pytest_approvals.errors import ReportError
            from pytest_approvals.plugin.session_finish import begin_report

            try:
                begin_report(state)
            except ReportError as error:
                raise pytest.UsageError(str(error)) from None

    # First, so that a verdict is in the report before a terminal shows it.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A worker's reports go on to the controller, where they are heard again.
        if getattr(report, "approvals", None) and not hasattr(self.config, "workerinput"):
            from pytest_approvals.plugin.session_finish import collect_report

            collect_report(get_state(self.config), report)

    # First, because junitxml writes its file in this hook, and the failures reported here belong into it.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if STATE_KEY not in self.config.stash:
            return
        state = self.config.stash[STATE_KEY]
        if leaks := state.describe_late_leaks():
            from pytest_approvals.plugin.session_finish import report_late_leaks

            report_late_leaks(session, leaks)
        if state.was_used:
            from pytest_approvals.plugin.session_finish import finish_session

            finish_session(state, session)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        # A worker that crashed has no output, and has not reported what it ran.
        if error and STATE_KEY in self.config.stash:
            get_state(self.config).results.complete = False
        output = getattr(node, "workeroutput", {}).get("approvals")
        if output is not None:
            from pytest_approvals.plugin.snapshot_updates import load_told

            get_state(self.config).results.load_collection(output)
            load_told(self.config, node.workeroutput.get("approvals_told", ()))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if STATE_KEY in self.config.stash and self.config.stash[STATE_KEY].was_used:
            from pytest_approvals.plugin.session_finish import print_summary

            print_summary(self.config.stash[STATE_KEY], terminalreporter)


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def approvals_config() -> Mapping[str, Any]:
    """Options of the runs of all tests, unless the test's call or marker says otherwise; override it to set them.

    The keys are those of the marker `approvals`: `serialize`, `resume`, `history`, `stream`, `sync`, `answer`,
    `chunking`, `oracle`, `agent`, `checks`, `seed`, `time_limit`.
    """
    return {}


@pytest.fixture
def approval_oracle() -> Oracle:
    """Oracle that answers the approval requests of a test whose run names none; override it to set another one."""
    from pytest_approvals.runner.oracles import approve_all

    return approve_all()


@pytest.fixture
def serialize_mode(request: pytest.FixtureRequest) -> str:
    """Serialize mode of the runs of a test, which runs once with `none` and once with `json`; a mode is never ignored.

    `--approvals-serialize` names other modes, and so does `@pytest.mark.parametrize("serialize_mode", [...])`. A mode
    that the agent cannot do is skipped.
    """
    if "approvals" not in request.fixturenames:
        from pytest_approvals.errors import UsageError

        raise UsageError("the fixture serialize_mode has no effect without the fixture approvals, whose runs it sets")
    return str(getattr(request, "param", "none"))


@pytest.fixture
def _leak_guard(request: pytest.FixtureRequest) -> Generator[None]:
    """Block connections to other machines while a scripted model is active."""
    with get_state(request.config).guard.watch(request.node.nodeid) as watch:
        request.node.stash.setdefault(FINAL_CHECKS_KEY, []).append(watch.raise_leaks)
        yield
    # For finalizers, and for a test that failed by itself, after which the final checks do not run.
    watch.raise_leaks()


@pytest.fixture
def scripted_model(
    request: pytest.FixtureRequest, approvals_config: Mapping[str, Any], _leak_guard: None
) -> ScriptedModel:
    """Script for the model, written line by line, for `approvals.run(model=...)` or for the agent's own client."""
    from pytest_approvals.plugin.model_script import ScriptedModel

    model = ScriptedModel(request.node.nodeid)
    judge = partial(model.judge, request.node, get_state(request.config), approvals_config)
    request.node.stash.setdefault(FINAL_CHECKS_KEY, []).append(judge)
    return model


@pytest.fixture
def model_server(scripted_model: ScriptedModel) -> Generator[ModelServer]:
    """Scripted model behind a server on the loopback, for agents in other processes and other languages."""
    from pytest_approvals.model_server.server import ScriptedModelServer
    from pytest_approvals.plugin.servers import ModelServer

    with ScriptedModelServer().running() as server:
        server.add(scripted_model.wire)
        yield ModelServer(server, scripted_model.wire)


@pytest.fixture
def mcp_server() -> Generator[Callable[..., ToolServer]]:
    """Serve tools as a real MCP server on the loopback: `mcp_server("bank", tool("pay", returns("paid")))`."""
    from pytest_approvals.plugin.servers import ToolServer
    from pytest_approvals.runner.mcp.servers import McpServers

    with McpServers() as servers:
        yield partial(ToolServer, servers)


@pytest.fixture
def approvals(
    request: pytest.FixtureRequest, approvals_config: Mapping[str, Any], approval_oracle: Oracle, _leak_guard: None
) -> Approvals:
    """Run a user's own agent on a scripted model, record it and judge it."""
    from pytest_approvals.plugin.user_runs import Approvals

    mode = request.getfixturevalue("serialize_mode") if "serialize_mode" in request.fixturenames else None
    made = Approvals(get_state(request.config), request.node, approvals_config, approval_oracle, mode)
    request.node.stash.setdefault(FINAL_CHECKS_KEY, []).append(made.require_mode)
    return made


@pytest.fixture
def transcript_snapshot(request: pytest.FixtureRequest) -> Any:
    """Return the stored transcript of this test as a syrupy snapshot: `assert run == transcript_snapshot`."""
    from pytest_approvals.plugin.snapshot import make_test_snapshot

    return make_test_snapshot(request.node)
