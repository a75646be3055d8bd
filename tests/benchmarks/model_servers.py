"""
The loopback server against other mock servers: the same client, the same machine, one run.

    python tests/benchmarks/model_servers.py [--write docs/loopback-server.md] [--seconds 2] [--rounds 3] [--only NAME]

Every server answers every message with the same text, over Chat Completions. What it is asked are conversations of an
assistant with instructions and two tools, none of which is like another: either only the first message of each, or each
with its history growing over eight requests, in which the assistant also calls a tool. The servers are measured in
turns, and the median of the rounds counts. Answers a second depend on what else the machine does, which is said beside
them; the processor time of an answer, which the kernel counts for the processes of the server, does so less. npm and uv
install what is missing, once, into the cache folder; a server that cannot be installed is left out, and the table says
so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from raw_client import Client, posted

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pytest-approvals" / "benchmarks"
BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
SAID = "Hello! How can I help you today?"
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
BROKEN = {"model": "m", "messages": [*HELLO["messages"], {"role": "tool", "tool_call_id": "c1", "content": "orphan"}]}
CONNECTIONS = 16
WAYS = tuple((stream, connections) for stream in (False, True) for connections in (1, CONNECTIONS))
KINDS = ("first messages", "growing history")
Way = tuple[str, bool, int]
STARTS = 3
TURNS = 8
DIFFERENT = {"first messages": 4000, "growing history": 500}
"""How many conversations there are before the first comes again."""

INSTRUCTIONS = (
    "You are the assistant of an accounting department. Look an invoice up before you answer a question about it, "
    "quote its number and its state, and never guess an amount. Ask before you pay anything. If something is unclear, "
    "ask one question at a time. Answer in the language of the message, in at most three sentences, without a greeting."
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        },
    }
    for name, description, properties in (
        ("look", "Look an invoice up in the books.", {"invoice": {"type": "string", "description": "Its number."}}),
        ("pay", "Pay an invoice.", {"invoice": {"type": "string"}, "amount": {"type": "number"}}),
    )
]


def conversation(number: int, *, stream: bool, turns: int = TURNS) -> Iterator[dict[str, Any]]:
    """Gives the bodies of one conversation, each with the history of those before."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": INSTRUCTIONS}]
    for turn in range(turns):
        invoice = number * turns + turn
        text = f"hello, this is question {turn} of customer {number}: what is the state of invoice {invoice}?"
        messages.append({"role": "user", "content": text})
        yield {"messages": list(messages), "model": "m", "stream": stream, "tools": TOOLS}
        if turn % 2:
            call_id, arguments = f"call_{number}_{turn}", json.dumps({"invoice": str(invoice)})
            call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append(
                {"role": "tool", "tool_call_id": call_id, "content": f"open since {turn} days, {number} euros"}
            )
        messages.append({"role": "assistant", "content": SAID})


def bodies_for(kind: str, *, stream: bool, connections: int) -> list[list[dict[str, Any]]]:
    """Gives what is asked on each connection."""
    turns = TURNS if kind == "growing history" else 1
    return [
        [
            body
            for number in range(at, DIFFERENT[kind], connections)
            for body in conversation(number, stream=stream, turns=turns)
        ]
        for at in range(connections)
    ]


@dataclass(frozen=True, kw_only=True)
class Server:
    """
    A server to measure.

    Attributes:
        package: What is installed, with its version: `npm:NAME@VERSION` or `pypi:NAME==VERSION`; empty for our own.
        command: Gives the command, from the folder of the package, that of the files, and a port.
        paths: What stands before `/v1`, for each connection in turn.
        files: What the server reads, by name.
    """

    name: str
    package: str = ""
    command: Callable[[Path, Path, int], list[str]]
    paths: tuple[str, ...] = ("",)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def urls(self) -> list[str]:
        return [f"{path}/v1/chat/completions" for path in self.paths]

    @property
    def url(self) -> str:
        return self.urls[0]


OWN = Server(
    name="pytest-approvals serve",
    command=lambda _, files, port: [
        *(sys.executable, "-m", "pytest_approvals.cli", "serve", *map(str, sorted(files.glob("*.yaml")))),
        *("--port", str(port), "--again"),
    ],
    # A script has one position, so that each client has a conversation of its own.
    paths=tuple(f"/hello{number}" for number in range(CONNECTIONS)),
    files={
        f"hello{number}.approval.yaml": (
            f"title: Hello\ntools: {{look: {{}}, pay: {{}}}}\nmodel: [{', '.join([f'{{say: {SAID}}}'] * TURNS)}]\n"
        )
        for number in range(CONNECTIONS)
    },
)
OTHERS = (
    Server(
        name="aimock",
        package="npm:@copilotkit/aimock@1.43.0",
        command=lambda home, files, port: [
            *(str(home / "node_modules/.bin/llmock"), "--port", str(port), "--fixtures", str(files / "hello.json")),
            *("--log-level", "silent", "--chunk-size", "100"),
        ],
        files={
            "hello.json": json.dumps({"fixtures": [{"match": {"userMessage": "hello"}, "response": {"content": SAID}}]})
        },
    ),
    Server(
        name="mock-llm (npm)",
        package="npm:@dwmkerr/mock-llm@0.1.29",
        command=lambda home, files, port: [
            *("env", f"PORT={port}", "sh", "-c", f'cd "{files}" && exec "{home}/node_modules/.bin/mock-llm"')
        ],
        files={"mock-llm.yaml": "streaming:\n  chunkSize: 100\n  chunkIntervalMs: 0\n"},
    ),
    Server(
        name="llmock (PyPI)",
        package="pypi:llmock==0.2.2",
        command=lambda home, _, port: [str(home / "bin/llmock"), "serve", "--port", str(port), "--log-level", "error"],
    ),
    Server(
        name="mockllm (PyPI)",
        package="pypi:mockllm==0.0.8",
        command=lambda home, files, port: [
            *(str(home / "bin/mockllm"), "start", "--responses", str(files / "hello.yml"), "--port", str(port))
        ],
        files={"hello.yml": f'responses:\n  "hello": "{SAID}"\ndefaults:\n  unknown_response: "{SAID}"\n'},
    ),
)


@dataclass(kw_only=True)
class Measured:
    """
    What was found out about a server: seconds to its first answer, answers a second by way, and what it refuses.

    Attributes:
        costs: Microseconds of processor time for an answer, where the kernel tells them.
        unknown: Seconds to the first answer where nothing was kept of an earlier start.
    """

    server: Server
    first: float
    rates: dict[Way, list[float]] = field(default_factory=dict)
    costs: dict[Way, list[float]] = field(default_factory=dict)
    broken: int = 0
    unknown: float = 0.0

    def rate(self, way: Way) -> float:
        return statistics.median(self.rates[way])

    def cost(self, way: Way) -> float:
        return statistics.median(self.costs[way]) if self.costs.get(way) else 0.0


class Running(NamedTuple):
    """
    A server that runs.

    Attributes:
        first: Seconds to its first answer.
        group: The number of the group of its processes.
    """

    port: int
    first: float
    group: int


class NotInstalled(Exception):
    """A server could not be installed, or does not answer."""


# --- servers ----------------------------------------------------------------------------------------------------------


def installed(server: Server) -> Path:
    """Gives the folder that a server's package is installed in."""
    registry, _, package = server.package.partition(":")
    home = CACHE / re.sub(r"\W+", "-", server.package).strip("-")
    if not registry or (home / "installed").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    uv = str(Path(sys.executable).with_name("uv"))
    commands = {
        "npm": [["npm", "install", "--silent", "--prefix", str(home), package]],
        "pypi": [
            [uv, "venv", "--quiet", "--allow-existing", str(home)],
            [uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), package],
        ],
    }
    for command in commands[registry]:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotInstalled(f"{command[0]}: {str(getattr(error, 'stderr', '') or error).strip()[-200:]}") from None
    (home / "installed").touch()
    return home


@contextmanager
def running(server: Server, home: Path, cache: str = "") -> Iterator[Running]:
    """
    Starts a server and gives what is known of it; ends it with all that it started.

    Arguments:
        cache: Where our own keeps what it read, in place of the usual folder.
    """
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in server.files.items():
            (Path(folder) / name).write_text(text)
        start = time.perf_counter()
        process = subprocess.Popen(
            server.command(home, Path(folder), port),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_environment() | ({"PYTEST_APPROVALS_CACHE": cache} if cache else {}),
        )
        try:
            yield Running(port, _answers(server, process, port) - start, process.pid)
        finally:
            os.killpg(process.pid, 15)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


def _environment() -> dict[str, str]:
    """Return the environment of a server: this one, in which Python keeps the byte code that an installation has."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _answers(server: Server, process: subprocess.Popen[bytes], port: int) -> float:
    limit = time.perf_counter() + 30
    while time.perf_counter() < limit and process.poll() is None:
        if posted(port, server.url, HELLO) == 200:
            return time.perf_counter()
        time.sleep(0.002)
    raise NotInstalled("it gives no answer")


def processor_time(group: int) -> float:
    """Gives the seconds of processor time that the processes of a group have used; 0 where the kernel does not say."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# --- measuring --------------------------------------------------------------------------------------------------------


def measured(servers: Sequence[Server], seconds: float, rounds: int) -> tuple[list[Measured], dict[str, str]]:
    """Measures all servers in turns; gives what was found, and why others were left out."""
    found: list[Measured] = []
    left_out: dict[str, str] = {}
    with ExitStack() as stack:
        started: list[Running] = []
        for server in servers:
            try:
                home = installed(server)
                first = statistics.median(_first_answers(server, home))
                unknown = statistics.median(_first_answers(server, home, anew=True)) if server is OWN else 0.0
                started.append(stack.enter_context(running(server, home)))
            except NotInstalled as error:
                left_out[server.name] = str(error)
                continue
            broken = posted(started[-1].port, server.url, BROKEN)
            found.append(Measured(server=server, first=first, broken=broken, unknown=unknown))
        for way in [(kind, *way) for _ in range(rounds) for kind in KINDS for way in WAYS]:
            for one, server in zip(found, started, strict=True):
                _measure(one, server, way, seconds)
    return found, left_out


def _measure(one: Measured, server: Running, way: Way, seconds: float) -> None:
    kind, stream, connections = way
    bodies = bodies_for(kind, stream=stream, connections=connections)
    client = Client(server.port, one.server.urls, bodies, connections)
    before = processor_time(server.group)
    one.rates.setdefault(way, []).append(client.rate(seconds))
    used = processor_time(server.group) - before
    if used and client.answers:
        one.costs.setdefault(way, []).append(used / client.answers * 1e6)


def _first_answers(server: Server, home: Path, *, anew: bool = False) -> Iterator[float]:
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as empty, running(server, home, empty if anew else "") as started:
            yield started.first


# --- telling ----------------------------------------------------------------------------------------------------------


def table(found: Sequence[Measured], left_out: dict[str, str], load: tuple[float, float], command: str) -> str:
    """Gives the numbers as they stand in the documentation."""
    columns = "JSON, 1 connection | 16 | SSE, 1 connection | 16"
    lines = [
        f"| server | bodies | {columns} | first answer after | to a result without call |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(one, kind) for kind in KINDS for one in found),
    ]
    own, others = found[0], found[1:]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} processors"
    busy = f"load average {load[0]:.1f} before and {load[1]:.1f} after"
    told = [
        (
            f"Answers a second, and microseconds of processor time for each; one client, {machine}, {busy}. "
            f"Made by `{command}`."
        )
    ]
    reached = bool(others)
    for kind in KINDS if others else ():
        ways = [(kind, *way) for way in WAYS]
        ratios = [own.rate(way) / max(other.rate(way) for other in others) for way in ways]
        priced = [other for other in others if other.costs and own.costs]
        cheaper = [min(other.cost(way) for other in priced) / own.cost(way) for way in ways] if priced else []
        reached = reached and min([*ratios, *cheaper]) >= 2
        told.append(
            f"Times the fastest other server, by column, {kind}: {_join(ratios, 2)} in answers a second"
            + (f", {_join(cheaper, 2)} in processor time" if cheaper else "")
            + "."
        )
    if others:
        told.append(f"The goal of twice that is {'reached' if reached else 'not reached'}.")
    told.append(
        f"The goal of a first answer within 0.25 s is {'reached' if own.first <= 0.25 else 'not reached'}; "
        f"a scenario that was never read before takes {own.unknown:.2f} s."
    )
    told += [f"Left out: {name} ({why})." for name, why in left_out.items()]
    return "\n".join([*lines, "", "\n".join(told)])


def _join(numbers: Sequence[float], digits: int) -> str:
    return ", ".join(f"{number:,.{digits}f}" for number in numbers)


def _row(one: Measured, kind: str) -> str:
    package = one.server.package.partition(":")[2]
    name = f"{one.server.name}, {package}" if package else f"**{one.server.name}**"
    rates = " | ".join(
        f"{one.rate((kind, *way)):,.0f}" + (f", {one.cost((kind, *way)):.0f} µs" if one.costs else "") for way in WAYS
    )
    return f"| {name} | {kind} | {rates} | {one.first:.2f} s | status {one.broken} |"


def write(page: Path, text: str) -> None:
    """Puts the table between the markers of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no place for the table: {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measures, prints the table, and writes it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each measurement takes (default: 2)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is made (default: 3)")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this one of the other servers")
    args = parser.parse_args()
    before = os.getloadavg()[0]
    others = [one for one in OTHERS if not args.only or one.name in args.only]
    found, left_out = measured([OWN, *others], args.seconds, args.rounds)
    if not found or found[0].server is not OWN:
        raise SystemExit(f"our own server does not start: {left_out.get(OWN.name)}")
    command = " ".join(["python", "tests/benchmarks/model_servers.py", *sys.argv[1:]])
    text = table(found, left_out, (before, os.getloadavg()[0]), command)
    print(text)
    if args.write:
        write(args.write, text)


if __name__ == "__main__":
    main()
