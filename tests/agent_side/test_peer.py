"""Two ends of a connection, both in this process."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.exceptions import ToolRaised
from pytest_approvals.agent_side.rpc.peer import CallTimeout, ConnectionEnded, RpcPeer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

Answer = Callable[[Any], Awaitable[Any]]


class End:
    """One end; what it is told goes into its log."""

    def __init__(self, connection: socket.socket, **methods: Answer) -> None:
        self.log: list[str] = []
        self.methods = methods
        self.connection = connection
        self.channel = RpcPeer(connection.fileno(), connection.fileno(), self, stop_limit=0.2)

    async def answer(self, method: str, params: Any) -> Any:
        self.log.append(method)
        return await self.methods[method](params)

    def notice(self, method: str, params: Any) -> None:
        self.log.append(f"{method} {params}")

    def call_timed_out(self, late: CallTimeout) -> None:
        self.log.append(str(late))

    def connection_ended(self, why: str | None) -> None:
        self.log.append(f"ended: {why}")


@asynccontextmanager
async def ends(**methods: Answer) -> AsyncIterator[tuple[End, End]]:
    """A connection: the first end calls, the second one has *methods*."""
    left, right = socket.socketpair()
    with left, right:
        here, there = End(left), End(right, **methods)
        yield here, there
        here.channel.close(None, tell=False)
        there.channel.close(None, tell=False)


async def same(params: Any) -> Any:
    return params


async def never(params: Any) -> Any:
    await asyncio.Event().wait()


async def test_messages_take_effect_in_the_order_in_which_they_were_sent() -> None:
    """Whether they are calls, notices or answers, also if they arrive at once."""
    async with ends(a=same, b=same) as (here, there):
        first = asyncio.ensure_future(here.channel.call("a", 1, limit=5))
        await asyncio.sleep(0)
        here.channel.notify("x", 1)
        second = asyncio.ensure_future(here.channel.call("b", 2, limit=5))
        await asyncio.sleep(0)
        here.channel.notify("y", 2)
        assert [1, 2] == await asyncio.gather(first, second)

        assert ["a", "x 1", "b", "y 2"] == there.log


async def test_order_holds_on_a_loop_that_starts_tasks_at_once() -> None:
    """As loops may be told to from Python 3.12 on."""
    loop = asyncio.get_running_loop()
    if not hasattr(asyncio, "eager_task_factory"):
        pytest.skip("this Python has no eager tasks")
    loop.set_task_factory(asyncio.eager_task_factory)
    async with ends(a=same) as (here, there):
        here.channel.notify("x", 1)
        assert 1 == await here.channel.call("a", 1, limit=5)
        assert ["x 1", "a"] == there.log


async def test_calls_are_answered_in_any_order() -> None:
    """Each gets its own answer."""
    gates = [asyncio.Event() for _ in range(3)]

    async def later(number: int) -> int:
        await gates[number].wait()
        if number:
            gates[number - 1].set()
        return number * 10

    async with ends(later=later) as (here, _):
        calls = [asyncio.ensure_future(here.channel.call("later", number, limit=5)) for number in range(3)]
        gates[2].set()
        assert [0, 10, 20] == await asyncio.gather(*calls)


async def test_a_call_that_takes_too_long_is_overdue() -> None:
    """An answer that comes later is nobody's business."""
    answer = asyncio.Event()

    async def late(params: Any) -> str:
        await answer.wait()
        return "late"

    async with ends(late=late, same=same) as (here, _):
        with pytest.raises(CallTimeout, match=r"no answer to `late` within 0\.05 s"):
            await here.channel.call("late", None, limit=0.05)
        answer.set()
        assert 5 == await here.channel.call("same", 5, limit=5)
        assert [] == here.log


async def test_who_stops_a_call_waits_until_it_is_over() -> None:
    """What the other side does when it is stopped is done before."""
    began, log = asyncio.Event(), []

    async def held(params: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("let go")

    async with ends(held=held) as (here, _):
        call = asyncio.ensure_future(here.channel.call("held", None, limit=5))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ["let go"] == log


async def test_who_stops_a_call_that_clings_is_not_kept_waiting() -> None:
    """It learns that the other side is call_timed_out."""
    began = asyncio.Event()

    async def clings(params: Any) -> None:
        began.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if params == "enough":
                    raise
                params = "enough"

    async with ends(clings=clings) as (here, _):
        call = asyncio.ensure_future(here.channel.call("clings", None, limit=5))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ["no answer to `stop clings` within 0.2 s"] == here.log


async def test_a_call_that_ends_just_when_it_is_stopped_is_over() -> None:
    """The answer and the wish to stop cross each other."""
    async with ends(same=same) as (here, _):
        for steps in range(8):
            call = asyncio.ensure_future(here.channel.call("same", 1, limit=5))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
        assert 2 == await here.channel.call("same", 2, limit=5)
        assert [] == here.log


async def test_open_calls_fail_when_the_other_side_goes() -> None:
    """At once, and every later one, too."""
    async with ends(never=never) as (here, there):
        call = asyncio.ensure_future(here.channel.call("never", None, limit=5))
        while not there.log:  # noqa: ASYNC110 -- until it has arrived
            await asyncio.sleep(0)
        there.channel.close(None, tell=False)
        there.connection.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionEnded, match="the other side is gone"):
            await call
        with pytest.raises(ConnectionEnded):
            await here.channel.call("same", None, limit=5)
        assert ["ended: None"] == here.log


async def test_work_is_cancelled_when_the_other_side_goes() -> None:
    """There is nobody left who wants it."""
    cancelled = asyncio.Event()

    async def held(params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with ends(held=held) as (here, there):
        asyncio.ensure_future(here.channel.call("held", None, limit=5)).add_done_callback(lambda done: done.exception())
        while not there.log:  # noqa: ASYNC110 -- until it has arrived
            await asyncio.sleep(0)
        here.connection.shutdown(socket.SHUT_WR)
        await cancelled.wait()


async def test_a_call_that_blocks_gets_its_answer_past_all_others() -> None:
    """Messages that arrive in between are handled afterwards, in order."""
    left, right = socket.socketpair()
    with left, right:
        here = End(left, later=same)

        def other_side() -> None:
            first = os.read(right.fileno(), 1000)
            assert b'{"id":1,"m":"gate","p":{"x":1}}\n' == first
            os.write(right.fileno(), b'{"m":"before","p":1}\n{"id":1,"m":"later","p":2}\n{"re":')
            os.write(right.fileno(), b'1,"ok":true}\n{"m":"after","p":3}\n')

        thread = threading.Thread(target=other_side)
        thread.start()
        assert True is here.channel.call_and_block("gate", {"x": 1}, limit=5)
        assert [] == here.log
        thread.join()
        for _ in range(5):
            await asyncio.sleep(0)
        assert ["before 1", "later", "after 3"] == here.log
        here.channel.close(None, tell=False)


async def test_a_call_that_blocks_has_a_time_limit() -> None:
    """And the end of the connection ends it, too."""
    left, right = socket.socketpair()
    with left, right:
        here = End(left)
        with pytest.raises(CallTimeout):
            here.channel.call_and_block("gate", {}, limit=0.05)
        right.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionEnded):
            here.channel.call_and_block("gate", {}, limit=5)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ["ended: None"] == here.log


async def both_ends(method: Answer) -> tuple[list[str], Any]:
    """What happens while one end in a thread of its own has *method*, and the end here calls it at once."""
    left, right = socket.socketpair()
    began = threading.Event()
    log: list[str] = []

    async def other_side() -> None:
        there = End(right, method=method)
        began.set()
        while not any(line.startswith("ended") for line in there.log):  # noqa: ASYNC110 -- until it is over
            await asyncio.sleep(0)

    with left, right:
        here = End(left)
        thread = threading.Thread(target=lambda: asyncio.run(other_side()), daemon=True)
        thread.start()
        began.wait()
        asyncio.get_running_loop().call_soon(log.append, "something else")
        try:
            answer = await here.channel.call_at_once("method", 5, limit=5)
            log.append("the answer")
        finally:
            left.shutdown(socket.SHUT_WR)
            thread.join()
            here.channel.close(None, tell=False)
        await asyncio.sleep(0)
    return log, answer


async def test_what_does_not_wait_is_answered_at_once() -> None:
    """Nothing else happens here in between, as if both were one process."""
    assert (["the answer", "something else"], 5) == await both_ends(same)


async def test_what_waits_lets_other_things_happen() -> None:
    """The answer comes as to any other call."""

    async def waits(params: Any) -> Any:
        await asyncio.sleep(0)
        return params

    assert (["something else", "the answer"], 5) == await both_ends(waits)


async def test_a_failure_that_does_not_wait_is_raised_at_once() -> None:
    """With the type that it has."""

    async def fails(params: Any) -> Any:
        raise ToolRaised("no money")

    with pytest.raises(ToolRaised, match="no money"):
        await both_ends(fails)


async def test_answers_that_lead_to_one_another_come_together() -> None:
    """Who learns of the first one finds the other one there, too."""
    done = asyncio.Event()

    async def second(params: Any) -> str:
        await done.wait()
        return "second"

    async def first(params: Any) -> str:
        done.set()
        return "first"

    left, right = socket.socketpair()
    with left, right:
        there = End(right, first=first, second=second)
        left.send(b'{"id":1,"m":"second","p":{}}\n')
        while not there.log:  # noqa: ASYNC110 -- until it has arrived
            await asyncio.sleep(0)
        left.send(b'{"id":2,"m":"first","p":{}}\n')
        left.setblocking(False)
        said = await asyncio.get_running_loop().sock_recv(left, 1000)
        assert b'{"re":2,"ok":"first"}\n{"re":1,"ok":"second"}\n' == said
        there.channel.close(None, tell=False)


async def test_other_threads_can_call_and_notify() -> None:
    """Frameworks ask synchronous policies in threads."""
    async with ends(gate=same) as (here, there):

        def policy() -> Any:
            here.channel.notify("shown", 1)
            return here.channel.call_and_block("gate", {"needed": True}, limit=5)

        assert {"needed": True} == await asyncio.to_thread(policy)
        assert ["shown 1", "gate"] == there.log


async def test_long_lines_go_both_ways_at_once() -> None:
    """Neither side waits for the other one to read first."""
    text = "x" * 3_000_000
    async with ends(same=same) as (here, there):
        there.methods["same"], here.methods["same"] = same, same
        echoed = await asyncio.gather(
            here.channel.call("same", text, limit=10), there.channel.call("same", text, limit=10)
        )
        assert [text, text] == echoed


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[]", "it sent a line that is not a message: []"),
        (b"\xff", "it sent a line that is not a message: \\xff"),
        (b"", "it sent a line that is not a message: "),
        (b'{"id":1,"m":"a"}', 'it sent a line that is not a message: {"id":1,"m":"a"}'),
        (b'{"id":1,"m":5,"p":{}}', 'it sent a line that is not a message: {"id":1,"m":5,"p":{}}'),
        (b'{"id":"1","m":"a","p":{}}', 'it called with an id that is not a new number: {"id":"1","m":"a","p":{}}'),
        (b'{"re":5,"ok":1}', 'it answered a call that is not open: {"re":5,"ok":1}'),
        (b'{"re":[],"ok":1}', 'it answered a call that is not open: {"re":[],"ok":1}'),
        (
            b'{"id":1,"m":"a","p":1,"blocks":0}',
            'it sent a line that is not a message: {"id":1,"m":"a","p":1,"blocks":0}',
        ),
        (b'{"m":"waits","p":{"call":[]}}', 'it sent invalid parameters of `waits`: {"m":"waits","p":{"call":[]}}'),
        (b'{"m":"stop","p":{"call":[]}}', 'it sent invalid parameters of `stop`: {"m":"stop","p":{"call":[]}}'),
        (b"[" * 100_000, f"it sent a line that is not a message: {'[' * 200}... (100000 bytes)"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_nonsense_ends_the_connection(line: bytes, why: str) -> None:
    """And is quoted."""
    left, right = socket.socketpair()
    with left, right:
        here = End(left)
        os.write(right.fileno(), line + b"\n")
        while not here.log:  # noqa: ASYNC110 -- until it has arrived
            await asyncio.sleep(0)
        assert [f"ended: {why}"] == here.log


async def test_a_number_that_is_still_open_cannot_be_used_again() -> None:
    """Its answer would be ambiguous."""
    left, right = socket.socketpair()
    with left, right:
        here = End(left, never=never)
        os.write(right.fileno(), b'{"id":1,"m":"never","p":{}}\n' * 2)
        while len(here.log) < 1:  # noqa: ASYNC110 -- until it has arrived
            await asyncio.sleep(0)
        assert "it called with an id that is not a new number" in here.log[0]
