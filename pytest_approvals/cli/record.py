"""`pytest-approvals record`: what passes between a client and a provider becomes scenarios."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from threading import Event

from pytest_approvals.cli.parser import Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "--upstream", metavar="URL", required=True, help="the base address that clients take for the provider"
    )
    parser.add_argument("--out", metavar="FILE", default="recorded", help="the scenario file (default: recorded)")
    parser.add_argument("--gated", metavar="TOOL", action="append", default=[], help="its calls need approval")
    parser.add_argument("--port", type=int, default=0, help="the port; a free one by default")


def execute(args: argparse.Namespace) -> int:
    """Passes requests on until it is interrupted, and says what was written."""
    from pytest_approvals.recording.passing import Passing
    from pytest_approvals.recording.recorder import ENDING, Recorder

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    path = Path(args.out)
    recorder = Recorder(path if path.name.endswith(ENDING) else path.with_name(path.name + ENDING), args.gated)
    with Passing(args.upstream, recorder, port=args.port).running() as passing:
        print(f"recording; clients take {passing.url} in place of {args.upstream}", flush=True)
        try:
            Event().wait()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    for written in recorder.written:
        print(f"wrote {written}")
    for why in recorder.passed_over:
        print(f"not recorded: {why}")
    return 0
