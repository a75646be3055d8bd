"""Nothing leaves for another machine while a scripted model is active."""

from __future__ import annotations

import pytest

WAYS = {
    "connect": "socket.create_connection(PLACE)",
    "connect_ex": "by(socket.socket(), 'connect_ex', PLACE)",
    "sendto": "by(socket.socket(type=socket.SOCK_DGRAM), 'sendto', b'x', PLACE)",
    "raw": "by(_socket.socket(), 'connect', PLACE)",
    "asyncio": "asyncio.run(asyncio.open_connection(*PLACE))",
    "thread": "in_a_thread(socket.create_connection, PLACE)",
    "httpx": "asyncio.run(importlib.import_module('httpx').AsyncClient().get('https://192.0.2.1'))",
    "httpx2": "importlib.import_module('httpx2').get('https://192.0.2.1')",
    "requests": "importlib.import_module('requests').get('https://192.0.2.1')",
}

TEST = """
import asyncio, contextlib, importlib, socket, threading, _socket

PLACE = ("192.0.2.1", 443)

def by(one, method, *args):
    try:
        getattr(one, method)(*args)
    finally:
        one.close()

def in_a_thread(function, *args):
    thread = threading.Thread(target=swallowing, args=(lambda: function(*args),))
    thread.start()
    thread.join()

def swallowing(function):
    with contextlib.suppress(Exception):
        return function()
"""


def text_of(body, fixture):
    return f"{TEST}\ndef test_it({fixture}):\n    {body}\n"


@pytest.mark.parametrize("way", WAYS)
def test_leak_fails_the_test(project, way):
    """Whatever connects, it is refused; the test fails at its end with the address, though nobody sees the error."""
    project.write("test_own.py", text_of(f"swallowing(lambda: {WAYS[way]})", "scripted_model"))
    result = project.run(agents="")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Network access to *192.0.2.1:443*was blocked.*--approvals-allow-host=192.0.2.1"])


@pytest.mark.parametrize("fixture", ["scripted_model", "approvals", "model_server"])
def test_every_fixture_of_a_model_guards(project, fixture):
    """A scripted model is active wherever a test can have one."""
    project.write("test_own.py", text_of(f"swallowing(lambda: {WAYS['connect']})", fixture))
    project.run(agents="").assert_outcomes(failed=1)


@pytest.mark.parametrize("call", ["getaddrinfo('model.invalid', 443)", "gethostbyname('model.invalid')"])
def test_look_up_is_a_leak(project, call):
    """Names are looked up by asking another machine; the host is named as the client named it."""
    project.write("test_own.py", text_of(f"swallowing(lambda: socket.{call})", "scripted_model"))
    result = project.run(agents="")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Network access to *model.invalid*was blocked.*--approvals-allow-host=model.invalid"])


def test_failure_of_its_own_stays(project):
    """A test that fails by itself says so, and the leak is named besides."""
    project.write("test_own.py", text_of(WAYS["connect"], "scripted_model"))
    result = project.run(agents="")
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*Network access to *192.0.2.1:443*was blocked.*"])
    result.stdout.fnmatch_lines(["E*192.0.2.1:443 is not on this machine, and a scripted model is active"])


HERE = """
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((host, 0), family=family) as server:
            socket.create_connection(server.getsockname()[:2]).close()
            server.accept()[0].close()
    socket.getaddrinfo("localhost", 80)
    socket.getaddrinfo(socket.gethostname(), None)
    with socket.socket(socket.AF_UNIX) as one:
        one.connect_ex("nowhere")
    asyncio.run(asyncio.sleep(0))
"""


def test_this_machine_is_no_leak(project):
    """The loopback, the own name and Unix sockets are reached as ever."""
    project.write("test_own.py", text_of(HERE.strip(), "scripted_model"))
    project.run(agents="").assert_outcomes(passed=1)


SENDS = f"swallowing(lambda: {WAYS['sendto']})"


def test_allowed_host(project):
    """A host that is allowed is reached, by an option or an ini entry; several have commas between them."""
    project.write("test_own.py", text_of(SENDS, "scripted_model"))
    project.run("--approvals-allow-host=db.invalid,192.0.2.1", agents="").assert_outcomes(passed=1)
    project.run("--approvals-allow-host=192.0.2.2", agents="").assert_outcomes(failed=1)
    project.ini("approvals_allow_host = 192.0.2.1")
    project.run(agents="").assert_outcomes(passed=1)


def test_database_of_native_stores_is_allowed(project, monkeypatch):
    """The server that the environment names for native stores may stand on another machine."""
    monkeypatch.setenv("PYTEST_APPROVALS_POSTGRES", "postgresql://me@192.0.2.1/tests")
    project.write("test_own.py", text_of(SENDS, "scripted_model"))
    project.run(agents="").assert_outcomes(passed=1)


def test_other_tests_are_left_alone(project):
    """A test without a scripted model reaches what it likes, also after one that has one."""
    project.write("test_own.py", f"{text_of('pass', 'scripted_model')}\ndef test_other():\n    {SENDS}\n")
    project.run(agents="").assert_outcomes(passed=2)


AGENT = """
import contextlib, os, socket
from pytest_approvals.simulation import ReferenceAgent

class Leaky(ReferenceAgent):
    name = "leaky"

    async def turn(self, *args, **kwargs):
        here = os.environ["TESTS_RUN_IN"] == str(os.getpid())
        if here == (os.environ["LEAKS_IN"] == "same"):
            with contextlib.suppress(OSError):
                socket.create_connection(("192.0.2.1", 443))
        return await super().turn(*args, **kwargs)
"""

CONFTEST = """
import os
from leaky import Leaky

os.environ["TESTS_RUN_IN"] = str(os.getpid())

def pytest_approvals_adapters():
    return {"leaky": {"": Leaky}}
"""


@pytest.mark.parametrize("where", ["same", "fresh", "cold"])
def test_leak_of_an_agent(project, where, monkeypatch):
    """What an agent asks in a scenario is guarded, here, in a forked process and in one of its own."""
    monkeypatch.setenv("PYTHONPATH", str(project.path))
    monkeypatch.setenv("LEAKS_IN", where)
    project.write("leaky.py", AGENT)
    project.write("conftest.py", CONFTEST)
    project.scenario()
    words = ("--approvals-serialize=json", "--approvals-strength=1", f"--approvals-resume={where}")
    result = project.run(*words, "--approvals-stream=off", agents="leaky", fresh=True)
    assert 0 < result.parseoutcomes()["failed"]
    result.stdout.fnmatch_lines(["*Network access to *192.0.2.1:443*was blocked.*"])


def test_clean_agent_in_processes(project):
    """An agent that keeps to its model passes in every process, so that the guard itself breaks nothing."""
    project.scenario()
    words = ("--approvals-serialize=json", "--approvals-resume=fresh", "--approvals-stream=off")
    outcomes = project.run(*words, fresh=True).parseoutcomes()
    assert {"passed"} == set(outcomes)
