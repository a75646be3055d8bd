"""The readers that are fuzzed, each with its specimens, and with what a command does with what was read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.errors import ApprovalsError

ReadInput = Callable[[bytes], bool]
"""Function that reads an input, and returns whether it is valid; it may raise an `ApprovalsError` instead of false."""

SPECIMENS = Path(__file__).parent / "specimens"
"""Folder with stored specimens, by reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader.

    Attributes:
        name: Its name, by which `--reader` selects it.
        open: Return the function that reads; it may use the folder that it is given.
        specimens: Return valid inputs.
        share: How many inputs it gets in proportion to the others: fast readers get more.
        about: What is read, and how far the input goes.
    """

    name: str
    open: Callable[[Path], ReadInput]
    specimens: Callable[[], Sequence[bytes]]
    share: int
    about: str


def read(read_input: ReadInput, data: bytes) -> bool:
    """Return whether *data* is valid; errors of this package mean that it is not."""
    try:
        return read_input(data)
    except ApprovalsError as error:
        # An error that cannot be shown is no better than a traceback.
        str(error).encode()
        return False


# --- files ------------------------------------------------------------------------------------------------------------


def _open_scenario(folder: Path) -> ReadInput:
    from pytest_approvals.agent_side.contract.metadata import get_facts
    from pytest_approvals.scenario.load import load_scenario
    from pytest_approvals.scenario.requirements import required_by_content
    from pytest_approvals.scenario.variants import plan_variants
    from pytest_approvals.simulation import ReferenceAgent

    path, facts = folder / "story.approval.yaml", get_facts(ReferenceAgent)

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        scenario = load_scenario(path, root=folder)
        required_by_content(scenario)
        # The plan of the variants takes ten times as long as all the rest, so that one input in four gets one.
        if len(data) % 4 == 0:
            plan_variants(scenario, facts)
        return True

    return read_input


def _open_journal(folder: Path) -> ReadInput:
    from pytest_approvals.errors.printable import format_message
    from pytest_approvals.journal.files import read_journals
    from pytest_approvals.reporting.judged_run import judge_run
    from pytest_approvals.reporting.report import dump_line
    from pytest_approvals.reporting.subject import Subject

    path = folder / "run.jsonl"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        for stored in read_journals(path):
            run = judge_run(stored.events, Subject.of(stored.header), strict=False)
            format_message(run.render(run.findings)).encode()
            run.transcript.render()
            for line in run.verdict_lines():
                dump_line(line).encode()
        return True

    return read_input


def _open_report(folder: Path) -> ReadInput:
    from pytest_approvals.reporting.files import read_report
    from pytest_approvals.reporting.html import render_html
    from pytest_approvals.reporting.markdown import render_markdown
    from pytest_approvals.reporting.report import merge_reports

    path = folder / "report.jsonl"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        report = merge_reports([read_report(path)])
        render_markdown(report).encode()
        render_html(report).encode()
        return True

    return read_input


def _open_waivers(folder: Path) -> ReadInput:
    from pytest_approvals.agents.waivers import CheckOutcome, load_waivers
    from pytest_approvals.checks import CHECKS

    path = folder / "agent.waivers.yaml"
    outcome = CheckOutcome(
        scenario="parallel/one", variant="json-held", check="decision-survives", failed=True, version="0.20.1"
    )

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        for waiver in load_waivers(path, CHECKS):
            waiver.covers(outcome)
        return True

    return read_input


def _open_known_bugs(folder: Path) -> ReadInput:
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.devtools.known_bugs import load_known_bugs

    path = folder / "bugs.yaml"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        return bool(load_known_bugs(path, CHECKS)) or True

    return read_input


def _open_stored_state(folder: Path) -> ReadInput:
    from pytest_approvals.runner.stored_state_agent import PausedState

    path = folder / "state.json"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        PausedState.read(path)
        return True

    return read_input


def _open_project_file(folder: Path) -> ReadInput:
    from pytest_approvals.scenario.catalogue import find_project_folders

    path = folder / "pyproject.toml"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        find_project_folders(folder)
        return True

    return read_input


def _open_case(folder: Path) -> ReadInput:
    from pytest_approvals.simulation.meai import read_case, read_json, run_case, write_json

    def read_input(data: bytes) -> bool:
        case = read_case(read_json(data))
        for note in case.notes:
            str(note)
        write_json(run_case(case)).encode()
        return True

    return read_input


# --- stored conversations ---------------------------------------------------------------------------------------------


def _open_history(folder: Path) -> ReadInput:
    from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
    from pytest_approvals.conversations.lint.linter import FORMATTERS, Linter
    from pytest_approvals.conversations.reproduce.anonymize import anonymize
    from pytest_approvals.conversations.reproduce.from_conversation import GENERATED_TEXTS, build_draft
    from pytest_approvals.conversations.reproduce.scenario_document import build_document
    from pytest_approvals.scenario.to_file import format_yaml

    path = folder / "conversation.json"

    def read_input(data: bytes) -> bool:
        path.write_bytes(data)
        valid = True
        for message in Linter([str(path)], gated=["p*"]):
            valid = valid and message.rule != "unreadable"
            for form in FORMATTERS.values():
                form(message).encode()
        # A draft takes as long as all the rest, so that one input in four becomes one.
        for stored in read_conversations([str(path)]) if len(data) % 4 == 0 else ():
            if isinstance(stored, LocatedConversation):
                draft = build_draft(stored.conversation, ())
                format_yaml(build_document(draft, about="A draft."))
                format_yaml(build_document(anonymize(draft, GENERATED_TEXTS)))
        return valid

    return read_input


# --- messages on the wire ---------------------------------------------------------------------------------------------


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def _open_request(protocol: str) -> Callable[[Path], ReadInput]:
    def open_reader(folder: Path) -> ReadInput:
        from pytest_approvals.agent_side.contract.exceptions import ModelRefused
        from pytest_approvals.agent_side.contract.types import Item, ModelCall, Reply
        from pytest_approvals.journal.events import ModelRequest
        from pytest_approvals.journal.files import Journal
        from pytest_approvals.protocols import create_codec
        from pytest_approvals.protocols.codec import ParsedRequest
        from pytest_approvals.protocols.endpoint import Endpoint
        from pytest_approvals.runner.journal_values import item_to_dict

        reply = Reply(say="Let me see.", calls=(ModelCall(id="c1", tool="pay", arguments={"amount": 5}),))
        journal = Journal()

        async def model(items: Sequence[Item], request: ParsedRequest) -> Reply:
            del journal.events[:]
            event = ModelRequest(m=1, conversation="main", agent="main", items=[item_to_dict(item) for item in items])
            journal.record(event)
            if request.violations:
                raise ModelRefused("; ".join(violation.text for violation in request.violations))
            return reply

        def read_input(data: bytes) -> bool:
            response = _run(Endpoint(create_codec(protocol), model).post(data))
            return bool(b"".join(response.pieces)) and response.status < 400

        return read_input

    return open_reader


def _open_recording(protocol: str) -> Callable[[Path], ReadInput]:
    def open_reader(folder: Path) -> ReadInput:
        from pytest_approvals.conversations.recording.capture import Recorder
        from pytest_approvals.protocols import create_codec

        whole, stream = _PATHS.get(protocol, (f"/v1{create_codec(protocol).path}",) * 2)

        def read_input(data: bytes) -> bool:
            sent, _, received = data.partition(b"\n")
            recorder = Recorder(folder / "recorded.approval.yaml", ["pay"])
            # The streams of Converse are binary, and begin with the length of a message.
            streamed = received.startswith((b"data:", b"event:", b"\0"))
            path = stream if streamed else whole
            recorder.record(path, sent, received, streamed=streamed, secrets=("blue-sky",))
            return not recorder.problems

        return read_input

    return open_reader


_PATHS = {
    "gemini": ("/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent"),
    "converse": ("/model/m/converse", "/model/m/converse-stream"),
}
"""By protocols that name the model in the path: where a whole response comes from, and where a stream."""


def _open_http(folder: Path) -> ReadInput:
    from pytest_approvals.protocols.http.server import HttpRequestReader, RequestTooLarge, RequestUnreadable

    def read_input(data: bytes) -> bool:
        half = len(data) // 2
        reader = HttpRequestReader(lambda: None)
        try:
            requests = [*reader.read(data[:half]), *reader.read(data[half:])]
        except (RequestTooLarge, RequestUnreadable):
            return False
        return bool(requests)

    return read_input


def _open_host_line(folder: Path) -> ReadInput:
    from pytest_approvals.agent_side.rpc import peer
    from pytest_approvals.agent_side.rpc.messages import CALLBACKS, COMMANDS, NOTICES, NOTICES_TO_AGENT
    from pytest_approvals.agent_side.rpc.remote_errors import RemoteFailure, to_exception
    from pytest_approvals.agent_side.rpc.serialization import SerializationError, from_json

    calls = {**COMMANDS, **CALLBACKS}
    notices = {**NOTICES, **NOTICES_TO_AGENT}
    answers = {kind for _, kind in calls.values()}

    def read_message(message: Any) -> bool:
        """Read a message of either side as the other one does."""
        if not isinstance(message, dict):
            return False
        if message.keys() == {"re", "ok"}:
            return sum(is_readable(kind, message["ok"]) for kind in answers) > 0
        if message.keys() == {"re", "err"}:
            return bool(str(to_exception(from_json(RemoteFailure, message["err"]))) or True)
        if not isinstance(message.get("m"), str) or not peer.is_call_or_notice(message):
            return False
        peer.is_wait_notice(message, 1)
        kind = calls[message["m"]][0] if message["m"] in calls else notices.get(message["m"])
        return kind is not None and is_readable(kind, message["p"])

    def is_readable(kind: type[Any], written: Any) -> bool:
        try:
            from_json(kind, written)
        except SerializationError as error:
            str(error)
            return False
        return True

    def read_input(data: bytes) -> bool:
        valid = True
        for line in data.splitlines():
            peer.format_excerpt(line)
            try:
                valid = read_message(peer.decode_message(line)) and valid
            except SerializationError:
                valid = False
        return valid

    return read_input


# --- specimens --------------------------------------------------------------------------------------------------------


def _stored(name: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for path in sorted((SPECIMENS / name).iterdir())]


def _stored_lines(name: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [line for text in _stored(name)() for line in text.splitlines(keepends=True)]


def _scenarios() -> Sequence[bytes]:
    """Return a small scenario of each family, and some larger ones."""
    from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder

    texts = sorted(
        (path.read_bytes() for path in find_scenarios([stock_folder()]).values()), key=lambda text: (len(text), text)
    )
    return [*texts[:60:3], *texts[60::12]]


_HTTP_REQUESTS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 13\r\n\r\n"
    b'{"model":"m"}'
    b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    b'4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n'
)
"""Two requests on one connection; not a file, because Git may change its line ends."""

_PLAYED = ("parallel/partial-answer", "decisions/", "nested/", "failures/", "hangups/", "identity/", "state/")
"""What the ids of the scenarios begin with whose runs are specimens: the smallest of each."""


def _record_runs(folder: Path) -> list[Path]:
    """Record runs of the reference agent."""
    from pytest_approvals.agent_side.contract.metadata import describe_adapter
    from pytest_approvals.journal.files import Journal
    from pytest_approvals.processes.agent_source import InProcessSource
    from pytest_approvals.runner.run import run_scenario
    from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
    from pytest_approvals.scenario.load import load_scenario
    from pytest_approvals.scenario.variants import plan_variants
    from pytest_approvals.simulation import ReferenceAgent

    paths = find_scenarios([stock_folder()])
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    journals = []
    for number, start in enumerate(_PLAYED):
        names = sorted(
            (name for name in paths if name.startswith(start)), key=lambda name: (paths[name].stat().st_size, name)
        )
        scenarios = (load_scenario(paths[name], root=stock_folder()) for name in names)
        scenario, variant = next(
            (scenario, variant)
            for scenario in scenarios
            for variant in plan_variants(scenario, source.facts)[:: 1 if number % 2 else -1]
            if variant.resume == "same"
        )
        journals.append(folder / f"{scenario.id.replace('/', '-')}.jsonl")
        asyncio.run(run_scenario(scenario, variant, source, journal=Journal(journals[-1])))
    return journals


def _with_folder(make: Callable[[Path], Iterable[bytes]]) -> Callable[[], Sequence[bytes]]:
    def specimens() -> Sequence[bytes]:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            return list(make(Path(folder)))

    return specimens


def _journals(folder: Path) -> Iterator[bytes]:
    """Yield journals of runs: most of them without the footer, which notices missing lines, and one file with two."""
    written = [path.read_bytes() for path in _record_runs(folder)]
    yield from map(_without_footer, written)
    yield written[0]
    yield written[0] + written[1]


def _without_footer(text: bytes) -> bytes:
    return b"".join(text.splitlines(keepends=True)[:-1])


def _reports(folder: Path) -> Iterator[bytes]:
    """Yield a report with a run, and one with lines of every kind.

    The footer holds a digest of all lines, so that some of the specimens have none.
    """
    from pytest_approvals.journal.files import read_journal
    from pytest_approvals.reporting import report as parts
    from pytest_approvals.reporting.files import write_report
    from pytest_approvals.reporting.judged_run import judge_run
    from pytest_approvals.reporting.subject import Subject

    stored = read_journal(_record_runs(folder)[0])
    run = judge_run(stored.events[:-3], Subject.of(stored.header), strict=False)
    header = parts.ReportHeader(
        package="0.1.0",
        python="3.12.1",
        agents=(parts.ReportedAgent(agent="reference", version="1.2"),),
        checks={line.check: parts.ReportedCheck(requirement="It holds.") for line in run.verdict_lines()},
        scenarios={stored.header.scenario: "A story"},
    )
    report = parts.Report(header=header, verdicts=run.verdict_lines()[:12])
    path = folder / "report.jsonl"
    write_report(path, report)
    yield _without_footer(path.read_bytes())
    report.transcripts = [
        parts.TranscriptLine(
            scenario=stored.header.scenario, agent="reference", variant="none-held", lines=("a", "  b")
        )
    ]
    report.not_applicable = [parts.NotApplicableLine(scenario="a/b", agent="reference", missing=("edit",))]
    report.stale = [parts.StaleLine(agent="reference", waiver="a.waivers.yaml:3: x")]
    report.absent = [parts.AbsentLine(agent="langgraph", why="it is not installed")]
    report.traits = [parts.TraitsLine(agent="reference", traits={"raising-tool": ("ask", "model")})]
    report.explored = [parts.ExploredLine(agent="reference", part="1/2", stories=9, found={"explored/a-1": "title: A"})]
    report.verdicts = report.verdicts[:2]
    write_report(path, report)
    yield path.read_bytes()
    yield _without_footer(path.read_bytes())


_PROTOCOLS = ("chat", "responses", "messages", "gemini", "converse")
_HISTORIES = (
    *(
        "meai",
        "agent_framework",
        "openai_agents",
        "chat",
        "responses",
        "messages",
        "langchain",
        "langgraph",
        "pydantic_ai",
        "google_adk",
        "strands",
        "spans",
    ),
    *("ai_sdk", "ai_sdk_ui"),
    *("claude_code", "opencode", "acp"),
)

_READERS = (
    Reader(
        name="scenario", open=_open_scenario, specimens=_scenarios, share=9,
        about="scenario files: loaded, variants planned",
    ),
    Reader(
        name="journal", open=_open_journal, specimens=_with_folder(_journals), share=5,
        about="journals: read, judged by all checks, printed as findings, transcript and report lines",
    ),
    Reader(
        name="report", open=_open_report, specimens=_with_folder(_reports), share=9,
        about="reports: read, merged, written as Markdown and HTML",
    ),
    Reader(name="waivers", open=_open_waivers, specimens=_stored("waivers"), share=5, about="files of waivers"),
    Reader(
        name="known-bugs", open=_open_known_bugs, specimens=_stored("known-bugs"), share=4, about="tables of known bugs"
    ),
    Reader(
        name="stored-state", open=_open_stored_state, specimens=_stored("stored-state"), share=4,
        about="stored states of older releases",
    ),
    Reader(
        name="project-file", open=_open_project_file, specimens=_stored("project-file"), share=3,
        about="`pyproject.toml`, for the scenario folders",
    ),
    Reader(
        name="case", open=_open_case, specimens=_stored("case"), share=3,
        about="cases for the simulation of Microsoft.Extensions.AI: read and played",
    ),
    *(
        Reader(
            name=f"history.{name}", open=_open_history, specimens=_stored(f"history.{name}"), share=2,
            about=f"stored conversations, `{name}`: linted, drafted as a scenario, anonymized",
        )
        for name in _HISTORIES
    ),
    *(
        Reader(
            name=f"request.{name}", open=_open_request(name), specimens=_stored(f"request.{name}"), share=12,
            about=f"requests to the model server, protocol `{name}`: checked, recorded, answered",
        )
        for name in _PROTOCOLS
    ),
    *(
        Reader(
            name=f"recording.{name}", open=_open_recording(name), specimens=_stored(f"recording.{name}"), share=1,
            about=f"recorded exchanges, protocol `{name}`: written as a scenario",
        )
        for name in _PROTOCOLS
    ),
    Reader(
        name="http", open=_open_http, specimens=lambda: [_HTTP_REQUESTS], share=14,
        about="bytes on a connection of the model server",
    ),
    Reader(
        name="host-line", open=_open_host_line, specimens=_stored_lines("host-line"), share=18,
        about="lines of the host protocol, from both sides",
    ),
)  # fmt: skip

READERS: Mapping[str, Reader] = {reader.name: reader for reader in _READERS}
"""All readers by name."""
