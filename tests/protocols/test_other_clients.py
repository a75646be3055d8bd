"""The official clients of other releases, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

CLIENTS = {
    "openai==1.109.1": "test_openai_clients.py",
    "openai==2.54.0": "test_openai_clients.py",
    "openai==3.52.0": "test_openai_clients.py",
    "anthropic==0.125.0": "test_anthropic_clients.py",
    "anthropic==2.12.0": "test_anthropic_clients.py",
    "google-genai==2.34.0": "test_gemini_clients.py",
    "google-genai==3.6.1": "test_gemini_clients.py",
    "boto3==1.35.0": "test_converse_clients.py",
    "boto3==1.44.8": "test_converse_clients.py",
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", CLIENTS)
def test_release_takes_every_body(release):
    """The tests of the clients pass with that release."""
    uv = Path(sys.executable).with_name("uv")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = [str(uv), "run", "--isolated", "--no-project", "--python", python, "--with", release, "--with", "pytest"]
    # Not every client has a transport that could be replaced: one needs our server, and that its parser.
    place += ["--with", "httptools"]
    tests = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--import-mode=importlib", f"--rootdir={ROOT}"]
    ran = subprocess.run(
        [*place, "python", "-m", "pytest", *tests, str(HERE / CLIENTS[release])],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stdout.strip().splitlines()[-1:]
    assert (0, "passed") == (ran.returncode, "passed" if "passed" in "".join(last) else ran.stdout[-2000:] + ran.stderr)
