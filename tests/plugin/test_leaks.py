"""Nothing leaves for another machine while a scripted model is active."""

from __future__ import annotations

import re
import urllib.request

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


ROUNDABOUT = """
import contextlib, multiprocessing, os, shutil, socket, subprocess, sys, threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

CONNECTS = "import socket; socket.create_connection(('192.0.2.1', %d))"
OPENS = "import urllib.request; urllib.request.urlopen('https://%s')"

@contextlib.contextmanager
def proxy():
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
        def log_message(self, *args):
            pass
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()

def run(*words, **env):
    subprocess.run([sys.executable, *words], stderr=subprocess.DEVNULL, env=env or None)

@pytest.mark.parametrize("client", ["httpx", "requests", "urllib.request"])
def test_proxy_of_the_environment(scripted_model, monkeypatch, client):
    module = pytest.importorskip(client)
    with proxy() as url, contextlib.suppress(Exception):
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("http_proxy", url)
        # The opener that an earlier test made knows no proxy, and a later one must not get that of this test.
        monkeypatch.setattr(urllib.request, "_opener", None)
        getattr(module, "get", None or urllib.request.urlopen)("http://environment.invalid")

def test_proxy_of_the_client(scripted_model):
    with proxy() as url, contextlib.suppress(OSError):
        urllib.request.build_opener(urllib.request.ProxyHandler({"http": url})).open("http://handler.invalid")

def test_child(scripted_model):
    run("-c", CONNECTS % 1)

def test_child_with_an_environment_of_its_own(scripted_model):
    run("-c", CONNECTS % 2, NOTHING="1")

def test_child_of_a_child(scripted_model):
    run("-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CONNECTS % 3!r}])")

def test_program_that_heeds_proxies(scripted_model):
    run("-I", "-c", OPENS % "program.invalid")

def node(script, **env):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    subprocess.run([shutil.which("node"), "-e", script], stderr=subprocess.DEVNULL, env=env or None)

def test_node(scripted_model):
    node("fetch('http://node.invalid').catch(() => {})")

def test_node_with_an_environment_of_its_own(scripted_model):
    node("require('net').connect(10, '192.0.2.1').on('error', () => {})", NODE_OPTIONS="--no-warnings")

def test_node_of_a_shell(scripted_model):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    os.system('''node -e "require('net').connect(11, '192.0.2.1').on('error', () => {})" 2>/dev/null''')

def test_node_on_this_machine(scripted_model):
    with proxy() as url:
        node(f"fetch({url!r}).then((answer) => process.exit(answer.status === 200 ? 0 : 1))")

def test_spawned(scripted_model):
    process = multiprocessing.get_context("spawn").Process(target=socket.create_connection, args=(("192.0.2.1", 4),))
    process.start()
    process.join()

def test_fork(scripted_model):
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            socket.create_connection(("192.0.2.1", 5))
        os._exit(0)
    os.wait()

def test_name_of_an_address(scripted_model):
    with contextlib.suppress(OSError):
        socket.getnameinfo(("192.0.2.6", 80), 0)

def test_local(scripted_model):
    with proxy() as url:
        urllib.request.build_opener().open(url).close()
        run("-c", f"import urllib.request; urllib.request.urlopen({url!r})")

goes_on, again = threading.Event(), threading.Event()

def late(event, port):
    event.wait()
    with contextlib.suppress(OSError):
        socket.create_connection(("192.0.2.1", port), timeout=1)

first, second = (threading.Thread(target=late, args=args) for args in ((goes_on, 7), (again, 8)))
pool = ThreadPoolExecutor(1)

def test_starts_threads(scripted_model):
    first.start()
    second.start()
    pool.submit(int).result()

def test_is_not_to_blame(scripted_model):
    goes_on.set()
    first.join()

def test_without_a_model():
    again.set()
    second.join()
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        pool.submit(one.sendto, b"x", ("192.0.2.1", 9)).result()
"""


def test_roundabout_ways_are_leaks(project):
    """Proxies on this machine, other processes, forks and threads that outlive their test lead to other machines, too.

    Each test that does so fails and names the host, and what a thread does after its test names that test.
    """
    project.write("test_own.py", ROUNDABOUT)
    result = project.run("--tb=line", agents="")
    pattern = re.compile(r"(?:E .*)?Network access to (?:127\.0\.0\.1:\d+ )?(.*) was blocked")
    places = [match[1] for line in result.outlines if (match := pattern.match(line))]

    assert [
        *["(the proxy of http_proxy)"] * 3,
        "handler.invalid",
        "192.0.2.1:1",
        "192.0.2.1:2",
        "192.0.2.1:3",
        "program.invalid:443",
        "node.invalid:80",
        "192.0.2.1:10",
        "192.0.2.1:11",
        "192.0.2.1:4",
        "192.0.2.1:5",
        "192.0.2.6",
        "192.0.2.1:7 (by a thread that test_own.py::test_starts_threads started)",
        "192.0.2.1:8 (by a thread that test_own.py::test_starts_threads started)",
    ] == places
    result.assert_outcomes(failed=16, passed=4)


# Attempts that wait for nothing: a connection that is begun and given up, or a datagram.
UNSEEN = """
import asyncio, ctypes, importlib, os, shutil, socket, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

BEGINS = "import socket; one = socket.socket(); one.setblocking(False); one.connect_ex(('192.0.2.1', 9))"
CURL = ("--silent", "--max-time", "0.1", "http://192.0.2.1")

def program(name):
    return shutil.which(name) or pytest.skip(f"needs {name}")

def test_ctypes(scripted_model):
    with socket.socket() as one:
        one.setblocking(False)
        address = (2).to_bytes(2, sys.byteorder) + (9).to_bytes(2, "big") + socket.inet_aton("192.0.2.1") + bytes(8)
        ctypes.CDLL(None).connect(one.fileno(), address, len(address))

@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_python_that_heeds_no_variables(scripted_model, flag):
    assert 0 == subprocess.run([sys.executable, flag, "-c", BEGINS]).returncode

def test_curl_without_proxies(scripted_model):
    subprocess.run([program("curl"), "--noproxy", "*", *CURL])

def test_socket_of_bash(scripted_model):
    subprocess.run([program("timeout"), "0.1", program("bash"), "-c", "exec 3<>/dev/tcp/192.0.2.1/9"])

def test_curl_of_the_system(scripted_model):
    os.system(" ".join([program("curl"), *CURL]))

def test_curl_that_is_spawned(scripted_model):
    os.waitpid(os.posix_spawn(program("curl"), ["curl", *CURL], os.environ), 0)

def test_curl_in_place_of_a_fork(scripted_model):
    path = program("curl")
    if os.fork() == 0:
        os.execv(path, ["curl", *CURL])
    os.wait()

def test_datagram_of_node(scripted_model):
    script = "const one = require('dgram').createSocket('udp4'); one.send('x', 9, '192.0.2.1', () => one.close())"
    subprocess.run([program("node"), "-e", script])

def test_look_up_of_node(scripted_model):
    script = "require('dns').lookup('node.invalid', () => {})"
    subprocess.run([program("node"), "-e", script])

@pytest.mark.parametrize("client", ["httpx", "aiohttp"])
def test_local_proxy_in_code(scripted_model, client):
    module = pytest.importorskip(client)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    async def ask():
        async with module.ClientSession() as session, session.get("http://code.invalid", proxy=url):
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}"
        if client == "httpx":
            with module.Client(proxy=url) as one:
                assert 204 == one.get("http://code.invalid").status_code
        else:
            asyncio.run(ask())

def test_datagram_of_uvloop(scripted_model):
    uvloop = pytest.importorskip("uvloop")

    async def send():
        # Bound and not connected, so that only `sendto` names an address.
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        transport.sendto(b"x", ("192.0.2.1", 9))
        transport.close()

    asyncio.run(send()) if not hasattr(uvloop, "run") else uvloop.run(send())

@pytest.fixture(scope="session")
def server_of_the_session():
    script = f"import sys; sys.stdin.readline(); {BEGINS}"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        yield process

def test_process_from_before_the_test(server_of_the_session, scripted_model):
    server_of_the_session.communicate(b"go")
"""


def test_what_the_page_says_is_not_seen_is_not_seen(project):
    """Each case that docs/testing-your-agent.md lists, as far as it can be tried here, passes without a word."""
    project.write("test_own.py", UNSEEN)
    result = project.run("--tb=short", agents="")
    outcomes = result.parseoutcomes()

    assert {"passed", "skipped"} >= {*outcomes} - {"warning", "warnings"}
    assert 7 <= outcomes["passed"]


def test_clients_ask_the_model_directly_where_a_proxy_is_set(project, monkeypatch):
    """A proxy on this machine would be asked for the scripted model, too, which is no leak and need not fail."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    # An opener remembers the proxies of the moment in which it was made.
    monkeypatch.setattr(urllib.request, "_opener", None)
    body = """
    def answer():
        with server.accept()[0] as one:
            one.sendall(b"HTTP/1.0 204 Fine\\r\\n\\r\\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        importlib.import_module("urllib.request").urlopen(f"http://127.0.0.1:{server.getsockname()[1]}").close()
        thread.join()
"""
    project.write("test_own.py", text_of(body.strip(), "scripted_model"))
    project.run(agents="").assert_outcomes(passed=1)
