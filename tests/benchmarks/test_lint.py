from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.cli import main

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

Tell = Callable[[str], None]
Json = dict[str, Any]

WORDS = "the invoice of March was checked by two people, and its number is on the list that came with the goods; "


def dotnet(number: int, length: int) -> Iterator[Json]:
    """Messages of a turn of Microsoft.Extensions.AI in which a call is approved; texts have some length."""
    call = {
        "$type": "functionCall",
        "name": "pay",
        "arguments": {"amount": number, "to": "ACME"},
        "callId": f"c{number}",
    }
    flagged = {**call, "informationalOnly": True}
    request_id = f"ficc_c{number}"
    said = WORDS * length
    yield {"role": "user", "contents": [{"$type": "text", "text": f"Pay invoice {number}. {said}"}]}
    asked = {"$type": "toolApprovalRequest", "toolCall": flagged, "requiresConfirmation": True, "requestId": request_id}
    yield {"role": "assistant", "messageId": f"m{number}", "contents": [asked]}
    answer = {"$type": "toolApprovalResponse", "approved": True, "toolCall": flagged, "requestId": request_id}
    yield {"role": "user", "contents": [answer]}
    yield {"role": "assistant", "messageId": f"m{number}", "contents": [flagged]}
    result = {"$type": "functionResult", "result": f"paid {number}; {said}", "callId": f"c{number}"}
    yield {"role": "tool", "contents": [result]}
    yield {"role": "assistant", "contents": [{"$type": "text", "text": f"Done. {said}"}]}


def chat(number: int, length: int) -> Iterator[Json]:
    """Messages of a turn of chat completions."""
    said = WORDS * length
    function = {"name": "pay", "arguments": json.dumps({"amount": number, "to": "ACME"})}
    yield {"role": "user", "content": f"Pay invoice {number}. {said}"}
    call = {"id": f"c{number}", "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": f"c{number}", "content": f"paid {number}; {said}"}
    yield {"role": "assistant", "content": f"Done. {said}"}


def conversations(turns: Callable[[int, int], Iterator[Json]], length: int, size: int) -> Iterator[str]:
    """Gives conversations of six turns each, until they have that many characters."""
    number = 0
    while size > 0:
        text = json.dumps([message for each in range(6) for message in turns(number + each, length)])
        number, size = number + 6, size - len(text)
        yield text


LINTS_AND_SAYS_ITS_PEAK = """
import sys
from pathlib import Path
from pytest_approvals.cli import main

assert main(["lint", sys.argv[1]]) == 0
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))
"""
"""The peak is that of the program alone: what `getrusage` says of a child begins with the memory of its parent."""


def cpu_time(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def parse_lines(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        for line in file:
            json.loads(line)


def parse_whole(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        json.load(file)


@pytest.mark.parametrize("turns", [dotnet, chat])
@pytest.mark.parametrize(("length", "about"), [(0, "short texts"), (4, "texts of 400 characters")])
@pytest.mark.parametrize("layout", ["lines", "list"])
def test_lint_takes_at_most_three_times_as_long_as_parsing(
    tmp_path: Path, tell: Tell, capsys: pytest.CaptureFixture[str], turns: Any, length: int, about: str, layout: str
) -> None:
    """Against the parser of the standard library, in one run; the least of interleaved rounds."""
    path, texts = tmp_path / "all.json", list(conversations(turns, length, 8_000_000))
    path.write_text("\n".join(texts) if layout == "lines" else f"[{','.join(texts)}]", encoding="utf-8")
    parse = parse_lines if layout == "lines" else parse_whole

    rounds = [(cpu_time(lambda: parse(path)), cpu_time(lambda: main(["lint", str(path)]))) for _ in range(7)]
    ratio = min(ours for _, ours in rounds) / min(plain for plain, _ in rounds)

    assert f"{len(texts)} conversations, 0 findings" in capsys.readouterr().out
    tell(f"lint of {turns.__name__}, {layout}, {about}: {ratio:.2f} x the time of parsing (target 3)")
    assert ratio <= 3


def test_memory_is_bounded_by_the_largest_conversation(tmp_path: Path, tell: Tell) -> None:
    """A list of 200 MB is linted in a process that never has more than 100 MB."""
    path = tmp_path / "all.json"
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for place, text in enumerate(conversations(dotnet, 100, 200_000_000)):
            file.write(f",{text}" if place else text)
        file.write("]")
    ran = subprocess.run(
        [sys.executable, "-c", LINTS_AND_SAYS_ITS_PEAK, str(path)], check=True, capture_output=True, text=True
    )
    peak = int(ran.stdout.split()[-1]) / 1024

    tell(f"lint of a list of {path.stat().st_size >> 20} MB: {peak:.0f} MB at most (target 100)")
    assert peak <= 100
