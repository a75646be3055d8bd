"""`pytest-approvals keep-state`: what a release saves while it is paused, to be taken up by newer ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_approvals.agents import AgentSpec
from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import ApprovalsError, UsageError

if TYPE_CHECKING:
    from pytest_approvals.harness.sources import AgentSource
    from pytest_approvals.scenario.parts import Scenario


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="ids, families, patterns, files or folders")
    parser.add_argument("--agent", required=True, metavar="NAME==VERSION", help="the agent in the release that saves")
    parser.add_argument("--with", dest="requirements", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--serialize", default="json", metavar="MODE", help="json (default) or native.NAME")
    parser.epilog = "The states are stored beside the scenarios; newer releases take them up in variants of their own."


def execute(args: argparse.Namespace) -> int:
    """Stores a state for each scenario in which the agent pauses; gives 1 where it does not."""
    from pytest_approvals.agent_side.failures import Unsupported
    from pytest_approvals.catalogues import chosen
    from pytest_approvals.recall.suspects import Suspect
    from pytest_approvals.recall.table import Release
    from pytest_approvals.scenario.load import load_scenario

    spec = AgentSpec.parse(args.agent)
    if not spec.version:
        raise UsageError(f"--agent: {args.agent!r} names no release; write {spec.base}==VERSION")
    source = Suspect(Release(spec=spec, requirements=tuple(args.requirements)), {}, 10.0).source
    failed = 0
    for name, file in chosen(args.scenarios, Path.cwd()).items():
        scenario = load_scenario(file, root=file.parents[name.count("/")])
        try:
            print(f"{name}: {kept(scenario, spec, args.serialize, source)}")
        except Unsupported as lack:
            print(f"{name}: not applicable, {spec} lacks {lack}")
        except ApprovalsError as error:
            print(f"{name}: {error}")
            failed += 1
    return int(bool(failed))


def kept(scenario: Scenario, spec: AgentSpec, serialize: str, source: AgentSource) -> Path:
    """
    Stores what the agent saves in a scenario, and says where.

    Errors:
        Unsupported: The agent cannot play it, or cannot save what it keeps.
        UsageError: It does not pause there.
    """
    from pytest_approvals.agent_side.failures import Unsupported
    from pytest_approvals.harness.takeover import paused_state
    from pytest_approvals.pytest_side.waiting import lasting_loop
    from pytest_approvals.scenario.requirements import required_by_content
    from pytest_approvals.scenario.states import state_path

    missing = {*required_by_content(scenario), _needed(serialize)} - source.facts.capabilities
    if missing:
        raise Unsupported(", ".join(sorted(missing)), source.facts.missing.get(min(missing), ""))
    with TemporaryDirectory() as folder:
        state = lasting_loop().wait_for(paused_state(scenario, serialize, source, spec.base, folder))
    path = state_path(scenario, spec.base, spec.version or "", serialize)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(state.text(), encoding="utf-8")
    return path


def _needed(serialize: str) -> str:
    return serialize if serialize.startswith("native.") else f"serialize.{serialize}"
