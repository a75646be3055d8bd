"""Process groups that must not outlive this process: agents, and installers of environments.

An agent process ends by itself when its connection closes. That fails if it is stopped or hangs, and installers notice
nothing; so a small shell process waits for the end of this one and kills what is left. It works on every POSIX system,
after any kind of end.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EXIT_GRACE = 6
"""Seconds that agents have to end by themselves: a fork server first waits for those that it has forked."""

OWNER_VARIABLE = "PYTEST_APPROVALS_OWNER"
"""Environment variable by which processes are found that have left their group; it names the process to end with."""

# Groups are kept between spaces. At the end of its input, i.e. of this process, stopped groups are continued, so that
# they can end by themselves; a group that has ended in the meantime is left alone, because its number may be reused.
_SCRIPT = """
trap '' HUP INT TERM
groups=' '
while read -r verb group grace; do
    case $verb in
        add) groups="$groups$group:$grace " ;;
        remove) case $groups in *" $group:"*)
            rest=${groups#*" $group:"}
            groups="${groups%%" $group:"*} ${rest#* }"
        esac ;;
    esac
done
for entry in $groups; do kill -s CONT -- "-${entry%:*}"; done
waited=0
while [ "$groups" != ' ' ]; do
    left=' '
    for entry in $groups; do
        if [ "${entry#*:}" -le $waited ]; then kill -s KILL -- "-${entry%:*}"
        elif kill -s 0 -- "-${entry%:*}"; then left="$left$entry "
        fi
    done
    groups=$left
    if [ "$groups" != ' ' ]; then sleep 1; waited=$((waited + 1)); fi
done
# What has left its group can be found on Linux; again, because it may have started something in the meantime.
for pass in 1 2 3; do
    found=$(grep -ls -- "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || break
    for file in $found; do file=${file#/proc/}; kill -s KILL "${file%/environ}"; done
done
[ -z "$2" ] || rm -rf -- "$2"
"""


class OrphanKiller:
    """Process that kills the groups that are left when this process ends, and removes their files.

    It is started with the first group.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._groups: set[int] = set()
        self._token = ""
        self._temporary = ""

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of processes that end with this one even if they leave their group, on Linux.

        Their temporary files, which they cannot remove if they are killed, are removed after them.
        """
        self.start()
        return {OWNER_VARIABLE: self._token} | ({"TMPDIR": self._temporary} if self._temporary else {})

    def add(self, group: int, *, grace: int = EXIT_GRACE) -> None:
        """Kill *group* if it still runs *grace* seconds after the end of this process."""
        self.start()
        self._write(f"add {group} {grace}\n")
        self._groups.add(group)

    def remove(self, group: int) -> None:
        """Leave *group* alone: it has ended. Other groups are ignored."""
        if group in self._groups and self._owner == os.getpid():
            self._groups.discard(group)
            self._write(f"remove {group}\n")

    def close(self) -> None:
        """Let the process end, which kills the groups that are left; do nothing in a fork of this process."""
        if self._child is None or self._owner != os.getpid():
            return
        assert self._child.stdin is not None
        self._child.stdin.close()
        # It is not waited for, but `Popen` warns of that.
        self._child.returncode = 0
        self._child, self._owner = None, 0
        self._groups.clear()

    def start(self) -> None:
        """Start the process unless it runs, so that `add` takes no time."""
        if self._owner == os.getpid():
            return
        # A fork of this process has groups of its own.
        self._owner = os.getpid()
        self._groups = set()
        self._token = os.urandom(8).hex()
        self._temporary = ""
        # Where nothing can be written, temporary files are a matter of those that need some.
        with suppress(OSError):
            self._temporary = tempfile.mkdtemp(prefix="approvals-")
        try:
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", f"{OWNER_VARIABLE}={self._token}", self._temporary],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError:
            # Without a shell, agents still end by themselves unless they are stopped.
            self._child = None

    def _write(self, line: str) -> None:
        if self._child is not None and self._child.stdin is not None:
            with suppress(OSError):
                self._child.stdin.write(line.encode())


orphan_killer = OrphanKiller()
"""The one of this process; closed after the pools, which are created later."""
atexit.register(orphan_killer.close)


def run_group(
    command: list[str],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout: float,
    pass_fds: Collection[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a program in a group of its own that ends with this call, however the call ends, and with this process.

    Args:
        command: The program and its arguments.
        folder: The current folder; by default that of this process.
        variables: The environment variables; by default those of this process.
        timeout: Seconds until it is killed.
        pass_fds: Descriptors that it inherits.

    Raises:
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It took too long.
    """
    orphan_killer.start()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    ) as child:
        orphan_killer.add(child.pid, grace=0)
        try:
            stdout, stderr = child.communicate(timeout=timeout)
        finally:
            # What it has started ends, too; its number is its own until it is reaped.
            if child.returncode is None:
                _kill_group(child.pid)
            orphan_killer.remove(child.pid)
        return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


# --- processes that have left their group -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stray:
    """Process that has left the group of the one that started it; *started* tells it from a later one of its number."""

    pid: int
    started: str

    def kill(self) -> None:
        """Kill it if it still runs."""
        with suppress(OSError):
            if _read_stat(self.pid)[1] == self.started:
                os.kill(self.pid, signal.SIGKILL)


def find_strays(group: int) -> list[Stray]:
    """Return the descendants of the leader of a group that have left it, while it runs; none but on Linux."""
    found: list[Stray] = []
    below = [group]
    while below:
        # Processes end while they are looked at.
        with suppress(OSError):
            children = _list_children(below.pop())
            below += children
            for pid in children:
                with suppress(OSError):
                    in_group, started = _read_stat(pid)
                    found += [Stray(pid, started)] if in_group != group else []
    return found


def _list_children(pid: int) -> list[int]:
    tasks = f"/proc/{pid}/task"
    return [int(word) for thread in os.listdir(tasks) for word in Path(tasks, thread, "children").read_bytes().split()]


def _read_stat(pid: int) -> tuple[int, str]:
    """Return the group of a process, and when it was started."""
    # The name of the program, in parentheses, may contain anything.
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return int(fields[2]), fields[19]
