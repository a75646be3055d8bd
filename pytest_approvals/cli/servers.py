"""Commands that serve until they are interrupted: `serve` and `record`."""

from __future__ import annotations

import argparse
import gc
import signal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import CommandParser

if TYPE_CHECKING:
    from pytest_approvals.model_server.conversation import ServedConversation
    from pytest_approvals.model_server.server import ScriptedModelServer
    from pytest_approvals.scenario.model import Scenario


_GARBAGE_OF_REQUESTS = 20_000
"""How many objects are made between two searches for garbage while requests are served."""


def add_serve_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="*", help="scenarios to play, each a conversation")
    parser.add_argument("--port", type=int, default=0, help="the port; a free one by default")
    parser.add_argument("--protocol", default="chat", help="chat, responses, messages, gemini, converse or any")
    parser.add_argument("--chunking", default="whole", help="how streamed replies are cut")
    parser.add_argument("--style", default="plain", help="how streams are written")
    parser.add_argument("--lenient", action="store_true", help="answer what the provider would refuse")
    parser.add_argument("--again", action="store_true", help="begin anew with every first message, for load tests")
    parser.add_argument("--journals", metavar="FOLDER", type=Path, help="write a journal of each conversation there")


def execute_serve(args: argparse.Namespace) -> int:
    """Print an address for each scenario and serve until interrupted."""
    # What is loaded stays, so that searching it for garbage only delays the first answer.
    gc.disable()
    try:
        from pytest_approvals.model_server.server import ScriptedModelServer
        from pytest_approvals.scenario.catalogue import find_project_folders

        # Whoever started it may end it by SIGTERM; as an interrupt, that stops the server in order, too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = ScriptedModelServer(_load_single_scenario, port=args.port)
        folders = find_project_folders(Path.cwd())
        begun = [_begin_conversation(server, _load_single_scenario(word, folders), args) for word in args.scenarios]
    finally:
        gc.enable()
    # Nothing of what was loaded until now ever becomes garbage, and a request leaves little that only the collector
    # frees.
    gc.freeze()
    gc.set_threshold(_GARBAGE_OF_REQUESTS)
    with server.running():
        # Whoever has read an address may end the server while the next line is printed.
        try:
            print(f"serving on {' and '.join(map(str, server.addresses))}", flush=True)
            for conversation in begun:
                print(f"{conversation.scenario.id}  {server.url(conversation.name)}", flush=True)
            Event().wait()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    return 0


def _begin_conversation(
    server: ScriptedModelServer, scenario: Scenario, args: argparse.Namespace
) -> ServedConversation:
    from pytest_approvals.journal.files import journal_file_name
    from pytest_approvals.model_server.conversation import ConversationOptions

    name = scenario.id.replace("/", "-")
    if args.journals is not None:
        args.journals.mkdir(parents=True, exist_ok=True)
    wishes = ConversationOptions(
        protocol=args.protocol,
        chunking=args.chunking,
        style=args.style,
        lenient=args.lenient,
        again=args.again,
        journal=args.journals and args.journals / journal_file_name(scenario.id),
    )
    return server.begin(scenario, wishes, name=name)


def _load_single_scenario(word: str, folders: tuple[Path, ...] | None = None) -> Scenario:
    """Return the one scenario that *word* names.

    Args:
        word: As in `select_scenarios`.
        folders: The scenario folders of the project; searched for if left out.
    """
    from pytest_approvals.errors import UsageError
    from pytest_approvals.scenario.catalogue import find_project_folders, find_root, select_scenarios
    from pytest_approvals.scenario.scenario_cache import load_cached_scenario

    here = Path.cwd()
    folders = find_project_folders(here) if folders is None else folders
    paths = list(select_scenarios([word], here, folders=folders).values())
    if len(paths) != 1:
        raise UsageError(f"{word!r} names {len(paths)} scenarios; a conversation plays one")
    return load_cached_scenario(paths[0], root=find_root(paths[0], folders))


def add_record_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--upstream", metavar="URL", required=True, help="the base address that clients take for the provider"
    )
    parser.add_argument("--out", metavar="FILE", default="recorded", help="the scenario file (default: recorded)")
    parser.add_argument("--gated", metavar="TOOL", action="append", default=[], help="its calls need approval")
    parser.add_argument("--port", type=int, default=0, help="the port; a free one by default")


def execute_record(args: argparse.Namespace) -> int:
    """Forward requests until interrupted, and print what was written."""
    from pytest_approvals.conversations.recording.capture import Recorder
    from pytest_approvals.conversations.recording.proxy import RecordingProxy
    from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    path = Path(args.out)
    recorder = Recorder(
        path if path.name.endswith(SCENARIO_SUFFIX) else path.with_name(path.name + SCENARIO_SUFFIX), args.gated
    )
    with RecordingProxy(args.upstream, recorder, port=args.port).running() as passing:
        try:
            print(f"recording; clients take {passing.url} in place of {args.upstream}", flush=True)
            Event().wait()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    for written in recorder.written:
        print(f"wrote {written}")
    for why in recorder.problems:
        print(f"not recorded: {why}")
    return 0
