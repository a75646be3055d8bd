"""The protocol as it is described: the page, the schema and what is really sent agree."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import toy_agent
from toy_world import BLUEPRINT, ToyWorld, pays, says

from pytest_approvals.agent_side.contract import Attachment, Blueprint, Decision, Elicits, ModelDown
from pytest_approvals.agent_side.rpc.line_transport import LineTransport
from pytest_approvals.agent_side.rpc.messages import CALLBACKS, COMMANDS, NOTICES, NOTICES_TO_AGENT
from pytest_approvals.agent_side.rpc.peer import RpcPeer
from pytest_approvals.devtools.pages.host_protocol import build_protocol_schema
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
SCHEMA = json.loads((DOCS / "host-protocol.schema.json").read_text(encoding="utf-8"))


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


class Traffic:
    """The lines between this process and others, as they passed, with the side that they went to."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def validate(self) -> None:
        called: dict[tuple[str, int], str] = {}
        for to, message in self.lines:
            validator(f"to-{to}").validate(message)
            if "id" in message:
                called[to, message["id"]] = message["m"]
            if "ok" in message:
                caller = "agent" if to == "harness" else "harness"
                validator(f"answer-to-{called.pop((caller, message['re']))}").validate(message)

    @property
    def methods(self) -> set[str]:
        return {message["m"] for _, message in self.lines if "m" in message}


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    """Listens at the harness' end."""
    heard = Traffic()
    send, take = LineTransport.send, RpcPeer._handle_message

    def sent(self: LineTransport, line: bytes) -> None:
        heard.lines.append(("agent", json.loads(line)))
        send(self, line)

    def taken(self: RpcPeer, message: Any) -> str | None:
        heard.lines.append(("harness", message))
        return take(self, message)

    monkeypatch.setattr(LineTransport, "send", sent)
    monkeypatch.setattr(RpcPeer, "_handle_message", taken)
    return heard


def test_the_schema_in_the_docs_is_the_one_that_is_lived_by() -> None:
    """It is made from the tables of the code."""
    assert build_protocol_schema() == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_everything_that_is_sent_fits_the_schema(traffic: Traffic, pool: ProcessPool) -> None:
    """Each call, answer, error and notice of a life that has all of them but `gated`, which Python need not send."""
    asyncio.run(everything(pool))
    traffic.validate()

    assert {*COMMANDS, *CALLBACKS, *NOTICES, *NOTICES_TO_AGENT} - {"gated"} == traffic.methods
    assert 60 < len(traffic.lines)


async def waits_a_little(amount: int) -> str:
    await asyncio.sleep(0)
    return "paid"


async def everything(pool: ProcessPool) -> None:
    process = await pool.start_fresh("toy_agent:Toy")
    world = ToyWorld(pays(5, 6), says("Done."), pays(50, tool="ask"), ModelDown(500), pay=waits_a_little)
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=True)
    await agent.stage([Decision(request=paused.requests[0], verdict="approve")])
    await agent.turn(None, [Decision(request=paused.requests[1], verdict="reject", reason="no")], stream=False)
    other = await agent.another_session(world)
    await other.load([await agent.dump()])
    await other.copy_from(agent)
    await other.turn("Ask.", (), stream=False)
    await other.cancel()
    await other.trim(1)
    with pytest.raises(ModelDown):
        await other.turn("Go on.", (), stream=False)
    await agent.pending()
    await other.close()
    await agent.close()
    await own_tool_that_is_stopped(pool)
    await tool_that_elicits(pool)


async def tool_that_elicits(pool: ProcessPool) -> None:
    world = ToyWorld(pays(5), says("Done."), pay=asks_for_an_account)
    agent = await RemoteAgent.build(await pool.start_fresh("toy_agent:Toy"), world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    await agent.turn(None, [Decision(request=paused.requests[0], verdict="approve")], stream=False)
    assert "elicit Which account?" in world.log
    assert "accept {'account': 'savings'} for 7" == world.inputs[-1][-1].text
    await agent.close()


async def asks_for_an_account(amount: int) -> str:
    question = Elicits("Which account?", {"type": "object", "properties": {"account": {"type": "string"}}})
    question.number = 7
    raise question


async def own_tool_that_is_stopped(pool: ProcessPool) -> None:
    world = ToyWorld(pays(99, tool="sell"))
    blueprint = Blueprint(attachment=Attachment(subject=toy_agent.own_tool))
    agent = await RemoteAgent.build(await pool.start_fresh("toy_agent:Attached"), world, blueprint)
    turn = asyncio.ensure_future(agent.turn("Sell.", (), stream=False))
    await world.something_shown.wait()
    turn.cancel()
    await asyncio.wait([turn])
    await agent.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("to-harness", {"id": 1, "m": "order_pizza", "p": {}}),
        ("to-harness", {"id": 1, "m": "turn", "p": {"session": 1}}),
        ("to-agent", {"id": 1, "m": "turn", "p": {"session": "one"}}),
        ("to-agent", {"id": 1, "m": "turn", "p": {"session": 1, "texts": "Go."}}),
        ("to-agent", {"m": "shown", "p": {"session": 1, "what": "text"}}),
        ("to-agent", {"id": 1, "m": "close", "p": {"session": 1}, "blocks": True}),
        ("to-agent", {"re": 1, "ok": {}, "err": {"type": "E", "message": ""}}),
        ("answer-to-pending", {"re": 1, "ok": {"requests": [{"id": "c1"}]}}),
    ],
)
def test_what_must_not_be_sent_does_not_fit(name: str, message: dict[str, Any]) -> None:
    """The schema is as strict as the code."""
    assert not validator(name).is_valid(message)


def example() -> list[tuple[str, dict[str, Any]]]:
    page = (DOCS / "host-protocol.md").read_text(encoding="utf-8").splitlines()
    return [(line[4], json.loads(line[6:])) for line in page if line.startswith(("    > ", "    < "))]


def test_the_example_of_the_page_fits_the_schema() -> None:
    """Line by line."""
    for side, message in example():
        validator("to-agent" if side == ">" else "to-harness").validate(message)


def test_the_example_of_the_page_is_what_happens() -> None:
    """A process that was written from the page does what the page says."""
    command = [sys.executable, str(HERE / "other_language.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for side, message in example():
            if side == ">":
                child.stdin.write(json.dumps(message) + "\n")
                child.stdin.flush()
                continue
            said = json.loads(child.stdout.readline())
            if "pid" in said.get("ok", {}):
                said["ok"]["pid"] = 4711
            assert message == said


@pytest.mark.parametrize("table", [COMMANDS, CALLBACKS], ids=["commands", "callbacks"])
def test_the_page_names_all_methods_with_all_their_parameters(table: dict[str, tuple[Any, Any]]) -> None:
    """And all fields of their answers."""
    rows = rows_of_the_page()

    for method, (asked, answered) in table.items():
        parameters, answer = rows[method]
        for field in asked.__dataclass_fields__:
            assert f"`{field}`" in parameters, method
        for field in answered.__dataclass_fields__:
            assert f"`{field}`" in answer, method


def test_the_page_names_all_notices() -> None:
    """With all that they carry."""
    rows = rows_of_the_page()

    for notice, notice_type in (NOTICES | NOTICES_TO_AGENT).items():
        for field in notice_type.__dataclass_fields__:
            assert f"`{field}`" in rows[notice][1], notice


def rows_of_the_page() -> dict[str, list[str]]:
    page = (DOCS / "host-protocol.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in page if line.startswith("| `")]
    return {name.strip(" `"): cells for name, *cells in rows}
