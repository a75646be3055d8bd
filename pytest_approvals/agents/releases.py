"""Releases of an agent: those that it simulates, or those of its distribution.

uv or npm finds the latter, in the registry that it is configured for. uv cannot list releases, but it names the newest
one that fits; the next one is the newest below that.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.environments.installers import INSTALL_TIMEOUT, find_uv, list_npm_versions
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.agents.spec import AgentSpec, is_in_range, parse_specifier
from pytest_approvals.errors import AgentUnavailable, UsageError

_COMPILED_LINE = re.compile(r"^[\w.-]+==([^\s;]+)", re.MULTILINE)


def find_releases(distribution: str, wanted: str, *, python: str = "", registry: str = PYPI.name) -> tuple[str, ...]:
    """Return the releases of a distribution in a range, the oldest first.

    Args:
        distribution: The distribution.
        wanted: A version specifier: `>=0.8`, `>=1.0,<2`, `~=1.4`. Pre-releases count if it names one.
        python: The version of Python that they must run on; empty for the one that runs this.
        registry: The name of its package registry; npm's releases run on any Python.

    Raises:
        UsageError: The specifier is invalid, or no release is in its range.
        AgentUnavailable: uv or npm is missing.
    """
    client, find = _RELEASE_FINDERS[registry]
    releases = tuple(sorted(find(distribution, parse_specifier(wanted), python), key=Version))
    if not releases:
        raise UsageError(f"no release of {distribution} fits {wanted!r}, as far as {client} can see")
    return releases


def _find_npm_releases(distribution: str, specifier: SpecifierSet, python: str) -> Iterator[str]:
    # npm allows any word in a pre-release; a version that Python cannot parse is in no range.
    for text in list_npm_versions(distribution):
        with suppress(InvalidVersion):
            if specifier.contains(Version(text)):
                yield text


def find_agent_releases(spec: AgentSpec, wanted: str | None, *, python: str = "") -> tuple[str, ...]:
    """Return the releases of an agent in a range, the oldest first.

    Args:
        spec: The agent; the release that it names does not matter.
        wanted: A version specifier; None for all releases of an agent that simulates them.
        python: As for `find_releases`.

    Raises:
        UsageError: The agent has no releases, or none in the range; or the specifier is missing.
        AgentUnavailable: uv or npm is missing.
    """
    adapter = get_adapter(AgentSpec(name=spec.name, flavour=spec.flavour))
    if adapter.framework is None:
        return _select_simulated_releases(
            spec, [release_class.release or "" for release_class in adapter.releases], wanted
        )
    if wanted is None:
        raise UsageError(f"Missing range of the releases of {adapter.framework}: expected --versions '>=1.0', say")
    return find_releases(adapter.framework, wanted, python=python, registry=adapter.registry)


def _select_simulated_releases(spec: AgentSpec, known: Sequence[str], wanted: str | None) -> tuple[str, ...]:
    if not known:
        raise UsageError(f"--agent: {spec.base!r} has no framework, so no releases")
    releases = tuple(
        known if wanted is None else (name for name in known if is_in_range(name, str(parse_specifier(wanted))))
    )
    if not releases:
        raise UsageError(f"no release of {spec.base} fits {wanted!r}; there are {', '.join(known)}")
    return releases


def _find_uv_releases(distribution: str, specifier: SpecifierSet, python: str) -> Iterator[str]:
    command = _build_uv_command(distribution, python, prereleases=bool(specifier.prereleases))
    newest = _find_newest(command, distribution, str(specifier))
    while newest is not None:
        yield newest
        # A specifier such as `<1.2b1` excludes 1.2 only by convention; uv must name something older, or this loops.
        older = _find_newest(command, distribution, f"{specifier},<{newest}".lstrip(","))
        newest = older if older is not None and Version(older) < Version(newest) else None


_RELEASE_FINDERS: dict[str, tuple[str, Callable[[str, SpecifierSet, str], Iterator[str]]]] = {
    PYPI.name: ("uv", _find_uv_releases),
    NPM.name: ("npm", _find_npm_releases),
}
"""The client that finds releases, by the registry, and how."""


def _build_uv_command(distribution: str, python: str, *, prereleases: bool) -> list[str]:
    command = [find_uv(distribution), "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate"]
    command += ["--python-version", python] if python else []
    return [*command, "--prerelease", "allow" if prereleases else "if-necessary", "-"]


def _find_newest(command: list[str], distribution: str, specifier: str) -> str | None:
    try:
        done = subprocess.run(
            command,
            input=f"{distribution}{specifier}\n",
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
            check=False,
            env={**os.environ, "UV_NO_PROGRESS": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentUnavailable(distribution, f"uv cannot be asked for its releases ({error})", "try again") from None
    match = _COMPILED_LINE.search(done.stdout)
    return match[1] if match else None
