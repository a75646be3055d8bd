"""`pytest-approvals serve`: the scripted model on the loopback, for agents in any language."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import Parser

if TYPE_CHECKING:
    from pytest_approvals.loopback.conversation import Conversation
    from pytest_approvals.loopback.server import LoopbackServer
    from pytest_approvals.scenario.parts import Scenario


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="*", help="scenarios to play, each a conversation")
    parser.add_argument("--port", type=int, default=0, help="the port; a free one by default")
    parser.add_argument("--protocol", default="chat", help="chat, responses or messages")
    parser.add_argument("--chunking", default="whole", help="how streamed replies are cut")
    parser.add_argument("--style", default="plain", help="how streams are written")
    parser.add_argument("--lenient", action="store_true", help="answer what the provider would refuse")
    parser.add_argument("--again", action="store_true", help="begin anew with every first message, for load tests")
    parser.add_argument("--journals", metavar="FOLDER", type=Path, help="write a journal of each conversation there")


def execute(args: argparse.Namespace) -> int:
    """Prints an address for each scenario and serves until it is interrupted."""
    from pytest_approvals.loopback.server import LoopbackServer

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = LoopbackServer(_scenario, port=args.port)
    begun = [_begun(server, word, args) for word in args.scenarios]
    with server.running():
        print(f"serving on {' and '.join(map(str, server.addresses))}", flush=True)
        for conversation in begun:
            print(f"{conversation.scenario.id}  {server.url(conversation.name)}", flush=True)
        try:
            Event().wait()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    return 0


def _begun(server: LoopbackServer, word: str, args: argparse.Namespace) -> Conversation:
    from pytest_approvals.loopback.conversation import Wishes

    scenario = _scenario(word)
    name = scenario.id.replace("/", "-")
    if args.journals is not None:
        args.journals.mkdir(parents=True, exist_ok=True)
    wishes = Wishes(
        protocol=args.protocol,
        chunking=args.chunking,
        style=args.style,
        lenient=args.lenient,
        again=args.again,
        journal=args.journals and args.journals / f"{name}.jsonl",
    )
    return server.begin(scenario, wishes, name=name)


def _scenario(word: str) -> Scenario:
    """Gives the one scenario that *word* names."""
    from pytest_approvals.catalogues import chosen, project_folders, root_of
    from pytest_approvals.errors import UsageError
    from pytest_approvals.scenario.kept import kept_scenario

    found = list(chosen([word], Path.cwd()).values())
    if len(found) != 1:
        raise UsageError(f"{word!r} names {len(found)} scenarios; a conversation plays one")
    return kept_scenario(found[0], root=root_of(found[0], project_folders(Path.cwd())))
