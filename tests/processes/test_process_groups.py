"""Process groups end with this process, however it ends, and with the call that they were started for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import pytest_approvals
from pytest_approvals.processes.process_groups import run_group

pytestmark = pytest.mark.timeout(30)

NEVER_ENDS = "import threading; threading.Event().wait()"


def runs(pid: int) -> bool:
    """Return whether that process runs; one that waits for its parent to reap it does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() != "" and not done.stdout.startswith("Z")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does, within the time limit of the test."""
    while not condition():
        time.sleep(0.01)


def start_owner(code: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a process that runs *code*, and return it with the numbers that it prints first."""
    head = f"""
        import os, signal, subprocess, sys
        from pytest_approvals.processes.process_groups import orphan_killer, run_group
        def start():
            return subprocess.Popen([sys.executable, "-c", {NEVER_ENDS!r}], start_new_session=True).pid
    """
    path = os.environ | {"PYTHONPATH": str(Path(pytest_approvals.__file__).parents[1])}
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env=path,
    )
    assert owner.stdout is not None
    return owner, [int(word) for word in owner.stdout.readline().split()]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()", "os._exit(1)", "os.abort()"])
def test_a_group_is_killed_when_its_owner_ends(end: str) -> None:
    """However that ends, and though the group notices nothing; one that was removed is left alone."""
    owner, (killed, removed) = start_owner(f"""
        killed, removed = start(), start()
        for group in (killed, removed):
            orphan_killer.add(group, grace=0)
        orphan_killer.remove(removed)
        orphan_killer.remove(12345)
        print(killed, removed, flush=True)
        {end}
    """)
    with owner:
        owner.wait()

    wait_until(lambda: not runs(killed))
    assert runs(removed)
    os.kill(removed, signal.SIGKILL)


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()"])
def test_temporary_files_of_killed_groups_are_removed(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the groups have ended, however their owner ends."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    owner, (group, files) = start_owner(f"""
        temporary = orphan_killer.variables["TMPDIR"]
        open(os.path.join(temporary, "left"), "w").close()
        group = start()
        orphan_killer.add(group, grace=0)
        print(group, len(os.listdir(temporary)), flush=True)
        {end}
    """)
    with owner:
        owner.wait()

    assert 1 == files
    wait_until(lambda: not runs(group) and not list(tmp_path.iterdir()))


def test_without_a_folder_for_temporary_files_groups_are_killed_all_the_same(tmp_path: Path) -> None:
    """Agents that need none can run there."""
    owner, (group, told) = start_owner(f"""
        import tempfile
        tempfile.tempdir = {str(tmp_path / "missing")!r}
        told = "TMPDIR" in set(orphan_killer.variables)
        group = start()
        orphan_killer.add(group, grace=0)
        print(group, int(told), flush=True)
        sys.exit()
    """)
    with owner:
        owner.wait()

    assert 0 == told
    wait_until(lambda: not runs(group))


def test_a_group_has_time_to_end_by_itself() -> None:
    """Its grace; one that was stopped is continued first, so that it can."""
    owner, (patient, stopped) = start_owner("""
        patient = start()
        trap = "trap 'exit 0' TERM; kill -STOP $$; kill -TERM $$"
        stopped = subprocess.Popen(["/bin/sh", "-c", trap], start_new_session=True).pid
        os.waitpid(stopped, os.WUNTRACED)
        for group in (patient, stopped):
            orphan_killer.add(group, grace=600)
        print(patient, stopped, flush=True)
        os._exit(0)
    """)
    with owner:
        owner.wait()

    wait_until(lambda: not runs(stopped))
    assert runs(patient)
    os.kill(patient, signal.SIGKILL)


def test_a_program_ends_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    """With all that it has started."""
    script = f"sleep 1000 & echo $! $$ > {tmp_path}/pids.new; mv {tmp_path}/pids.new {tmp_path}/pids; wait"
    owner, _ = start_owner(f"""
        import threading
        def tell():
            while not orphan_killer._groups:
                pass
            print(flush=True)
        threading.Thread(target=tell, daemon=True).start()
        run_group(["/bin/sh", "-c", {script!r}], timeout=1000)
    """)
    with owner:
        wait_until((tmp_path / "pids").exists)
        owner.kill()

    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert 2 == len(pids)
    wait_until(lambda: not any(map(runs, pids)))


def test_a_program_that_takes_too_long_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    """Also with what holds its output open."""
    with pytest.raises(subprocess.TimeoutExpired):
        run_group(["/bin/sh", "-c", "sleep 1000 & echo $! > pid; wait"], folder=tmp_path, timeout=1.5)

    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not runs(child))


def test_a_program_returns_its_output_and_its_exit_code() -> None:
    """As text, whatever bytes it is."""
    done = run_group(["/bin/sh", "-c", r"printf 'caf\351'; echo no >&2; exit 3"], timeout=30)

    assert ("caf\ufffd", "no\n", 3) == (done.stdout, done.stderr, done.returncode)
