"""
The releases of an agent: those that it plays itself, or those of its distribution, as uv or npm finds them: whatever
registry it is set up for, no other client is needed.

uv lists nothing, but it names the newest release that fits; the next one is the newest below that.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.environments.installers import INSTALL_TIMEOUT, find_uv
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.versions import is_in_range
from pytest_approvals.errors import AgentUnavailable, UsageError

_COMPILED_LINE = re.compile(r"^[\w.-]+==([^\s;]+)", re.MULTILINE)


def find_releases(distribution: str, wanted: str, *, python: str = "", registry: str = PYPI.name) -> tuple[str, ...]:
    """
    Gives the releases of a distribution that fit a specifier, the oldest first.

    Arguments:
        wanted: A version specifier: `>=0.8`, `>=1.0,<2`, `~=1.4`. Pre-releases count where it names one.
        python: The version of Python that they must run on; empty: the one that runs this.
        registry: Where the distribution is installed from; npm's releases run on any Python.

    Errors:
        UsageError: *wanted* is no specifier, or no release fits it.
        AgentUnavailable: There is no uv, or no npm.
    """
    client, look = _RELEASE_FINDERS[registry]
    found = tuple(sorted(look(distribution, parse_specifier(wanted), python), key=Version))
    if not found:
        raise UsageError(f"no release of {distribution} fits {wanted!r}, as far as {client} can see")
    return found


def _find_npm_releases(distribution: str, specifier: SpecifierSet, python: str) -> Iterator[str]:
    """Gives those that fit; npm allows any word in a pre-release, and no specifier can speak of most of them."""
    for text in installers.list_npm_versions(distribution):
        with suppress(InvalidVersion):
            if specifier.contains(Version(text)):
                yield text


def find_agent_releases(spec: AgentSpec, wanted: str | None, *, python: str = "") -> tuple[str, ...]:
    """
    Gives the releases of an agent that fit a specifier, the oldest first.

    Arguments:
        spec: The agent; what release it names does not matter.
        wanted: A version specifier; None for all releases of an agent that plays them itself.
        python: As for `find_releases`.

    Errors:
        UsageError: The agent has no releases, or none fits; or nothing is wanted of a distribution's.
        AgentUnavailable: There is no uv.
    """
    adapter = get_adapter(AgentSpec(name=spec.name, flavour=spec.flavour))
    if adapter.framework is None:
        return _select_simulated_releases(spec, [each.release or "" for each in adapter.releases], wanted)
    if wanted is None:
        raise UsageError(f"say which releases of {adapter.framework}: --versions '>=1.0'")
    return find_releases(adapter.framework, wanted, python=python, registry=adapter.registry)


def _select_simulated_releases(spec: AgentSpec, known: Sequence[str], wanted: str | None) -> tuple[str, ...]:
    if not known:
        raise UsageError(f"--agent: {spec.base!r} has no framework, and so no releases")
    found = tuple(
        known if wanted is None else (name for name in known if is_in_range(name, str(parse_specifier(wanted))))
    )
    if not found:
        raise UsageError(f"no release of {spec.base} fits {wanted!r}; there are {', '.join(known)}")
    return found


def parse_specifier(text: str) -> SpecifierSet:
    """
    Reads a version specifier.

    Errors:
        UsageError: It is none.
    """
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise UsageError(f"{text!r} is no version specifier; write '>=0.8', '>=1.0,<2' or '==1.*'") from None


def _find_uv_releases(distribution: str, specifier: SpecifierSet, python: str) -> Iterator[str]:
    ask = _build_uv_command(distribution, python, prereleases=bool(specifier.prereleases))
    newest = _find_newest(ask, distribution, str(specifier))
    while newest is not None:
        yield newest
        # `<1.2b1` would leave out 1.2a1 only by convention; what uv names must be older, or the walk would not end.
        older = _find_newest(ask, distribution, f"{specifier},<{newest}".lstrip(","))
        newest = older if older is not None and Version(older) < Version(newest) else None


_RELEASE_FINDERS: dict[str, tuple[str, Callable[[str, SpecifierSet, str], Iterator[str]]]] = {
    PYPI.name: ("uv", _find_uv_releases),
    NPM.name: ("npm", _find_npm_releases),
}
"""Who is asked for releases, by the registry, and how."""


def _build_uv_command(distribution: str, python: str, *, prereleases: bool) -> list[str]:
    words = [find_uv(distribution), "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate"]
    words += ["--python-version", python] if python else []
    return [*words, "--prerelease", "allow" if prereleases else "if-necessary", "-"]


def _find_newest(ask: list[str], distribution: str, specifier: str) -> str | None:
    try:
        done = subprocess.run(
            ask,
            input=f"{distribution}{specifier}\n",
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
            check=False,
            env={**os.environ, "UV_NO_PROGRESS": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentUnavailable(distribution, f"uv cannot be asked for its releases ({error})", "try again") from None
    found = _COMPILED_LINE.search(done.stdout)
    return found[1] if found else None
