"""
A harness of its own, for tests of its end: leaves agents in some state, prints their numbers, and continues on command.

`python harness_script.py STATE END`: STATE is `idle`, `spins`, `stopped`, `daemons` or `warming`;
END is `stays`, `returns` or `raises`.
"""

# ruff: noqa: T201 -- what it prints is read by the test

import asyncio
import os
import signal
import sys

from toy_world import BLUEPRINT, ToyWorld

from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent

STATE, END = sys.argv[1:]


async def main() -> None:
    pool = ProcessPool()
    if STATE == "warming":
        warm = pool.warm_up("toy_hangs:Toy")
        print(warm._child.pid, flush=True)
        starting = asyncio.ensure_future(pool.start_fresh("toy_hangs:Toy"))
        await asyncio.sleep(0)
        assert not starting.done()
    else:
        await leave_agents(pool)
    if END == "stays":
        await asyncio.Event().wait()
    if END == "raises":
        raise KeyboardInterrupt


async def leave_agents(pool: ProcessPool) -> None:
    name = "LeavesADaemon" if STATE == "daemons" else "Spins"
    agents = [
        await RemoteAgent.build(await start(f"toy_broken:{name}"), ToyWorld(), BLUEPRINT)
        for start in (pool.start_fresh, pool.start_cold)
    ]
    warm = next(iter(pool._warm.values()))
    turns = [asyncio.ensure_future(agent.turn("Go.", (), stream=False)) for agent in agents] if STATE == "spins" else []
    for agent in agents if not turns else ():
        await agent.pending()
    await asyncio.sleep(0)
    if STATE == "stopped":
        for pid in (warm._child.pid, *(agent.host.pid for agent in agents)):
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
    daemons = []
    if STATE == "daemons":
        daemons = [(await agent.turn("Go.", (), stream=False)).output for agent in agents]
    print(os.getpgid(warm._child.pid), *(agent.host.pid for agent in agents), *daemons, flush=True)


asyncio.run(main())
