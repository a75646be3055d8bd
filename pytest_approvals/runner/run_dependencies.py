"""Dependencies of a run: what could change its course, as digests.

A run depends on its scenario, its variant, the agent with all distributions beside it, the code of this package that
plays it, the options, and, where the agent or its framework is no installed distribution, the files that it loaded.
Its verdicts depend on the code of the checks, too.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from operator import is_
from pathlib import Path
from typing import Any

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.extensions import EXTENSION_KINDS, list_installed
from pytest_approvals.processes.agent_source import AgentSource, find_launcher
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.stored_states import stored_state_path

PACKAGE = Path(__file__).parents[1]

JUDGING_CODE = ("checks", "reporting")
"""The folders of this package that a verdict depends on and a run does not."""

UNRELATED_CODE = ("campaigns", "cli", "conversations", "devtools", "testing")
"""The folders of this package that neither a run nor its verdicts depend on."""

_ADAPTERS = ("agent_side", "adapters")
_NOT_PLAYED = ("waivers.yaml", "native.toml")
_SIMULATIONS = ("reference", "meai")
_DATA_FOLDERS = ("__pycache__", "scenarios")
_METADATA_SUFFIXES = (".dist-info", ".egg-info")
_IGNORED_CHECKOUT_FOLDERS = frozenset({"__pycache__", "node_modules", ".venv", "venv", "dist", "build"})


def digest(*parts: Any) -> str:
    """Return a digest of values that JSON can hold.

    >>> digest("a", 1) == digest("a", 1), digest("a", "1") == digest("a", 1)
    (True, False)
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def digest_run(
    scenario: Scenario, variant: Variant, source: AgentSource, spec: AgentSpec, options: Mapping[str, Any]
) -> str | None:
    """Return the digest of what a run depends on; None if that cannot be known.

    Args:
        scenario: The scenario; it was loaded from a file.
        variant: The variant.
        source: Builds the agent.
        spec: Names the agent.
        options: The options that the run depends on.
    """
    agent = digest_agent(source, spec)
    if agent is None or scenario.path is None:
        return None
    state = stored_state_path(scenario, spec.base, variant.saved_by, variant.serialize) if variant.saved_by else None
    files = [digest_file(path) for path in (Path(scenario.path), *([state] if state else []))]
    fields = {name: getattr(variant, name) for name in variant.__slots__}
    return digest(agent, scenario.id, files, fields, dict(options))


_AGENT_DIGESTS: dict[int, tuple[AgentSource, str | None]] = {}


def digest_agent(source: AgentSource, spec: AgentSpec) -> str | None:
    """Return the digest of an agent: its code, its framework, and everything installed beside them.

    It is computed once for a source. None if the folder of a checkout cannot be read.
    """
    if id(source) not in _AGENT_DIGESTS:
        # The source is kept, so that no other one gets its id.
        _AGENT_DIGESTS[id(source)] = (source, _digest_agent(source, spec))
    return _AGENT_DIGESTS[id(source)][1]


def _digest_agent(source: AgentSource, spec: AgentSpec) -> str | None:
    facts = source.facts
    about = {name: _describe(getattr(facts, name)) for name in type(facts).__dataclass_fields__}
    launcher = find_launcher(source)
    environment = launcher.environment if launcher is not None else ""
    installed = list_installed_in(Path(environment)) if environment else list_installed_here()
    try:
        checkout = digest_checkout(Path(spec.checkout)) if spec.checkout else ""
    except OSError:
        return None
    try:
        inputs = [[name, digest_file(Path(name))] for name in get_adapter(spec).inputs]
    except OSError:
        return None
    code = digest_playing_code(spec.name)
    return digest(str(spec), source.name, about, code, repr(launcher), installed, checkout, inputs, _describe_here())


def _describe(value: Any) -> str:
    """Return the text of a value; that of equal sets is the same in every process."""
    if isinstance(value, frozenset):
        return repr(sorted(value))
    return repr(sorted(value.items())) if isinstance(value, Mapping) else repr(value)


def digest_here() -> str:
    """Return the digest of this Python, and of all that is installed for it."""
    return digest(list_installed_here(), _describe_here())


def digest_environments(folders: Iterable[str]) -> str:
    """Return the digest of what is installed in environments."""
    return digest([[folder, list_installed_in(Path(folder))] for folder in folders])


def _describe_here() -> list[str]:
    return [platform.python_implementation(), platform.python_version(), sys.platform, platform.machine()]


# --- code of this package ---------------------------------------------------------------------------------------------


@cache
def digest_playing_code(adapter: str) -> str:
    """Return the digest of the code that plays runs on the agents of an adapter."""
    return digest_files(PACKAGE, list_playing_code(adapter))


@cache
def digest_judging_code() -> str:
    """Return the digest of the code that judges runs."""
    return digest_files(PACKAGE, list_judging_code())


def digest_package() -> str:
    """Return the digest of all files of this package."""
    return digest_folder(PACKAGE)


def digest_folder(folder: Path) -> str:
    """Return the digest of all files in a folder, but for what Python has compiled."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return digest([str(folder), digest_files(folder, paths)])


def list_playing_code(adapter: str, package: Path = PACKAGE) -> list[Path]:
    """Return the files of this package that the runs on the agents of an adapter depend on."""
    return [path for path in _iterate_files(package) if _plays_runs(path.relative_to(package).parts, adapter)]


def _plays_runs(parts: tuple[str, ...], adapter: str) -> bool:
    if parts[0] in (*JUDGING_CODE, *UNRELATED_CODE):
        return False
    # A module beside the folders of the adapters belongs to all of them, waivers and native scripts to no run at all.
    if parts[:2] == _ADAPTERS and ((len(parts) > 3 and parts[2] != adapter) or parts[-1].endswith(_NOT_PLAYED)):
        return False
    return parts[0] != "simulation" or adapter in _SIMULATIONS


def list_judging_code(package: Path = PACKAGE) -> list[Path]:
    """Return the files of this package that verdicts depend on and runs do not."""
    return [path for path in _iterate_files(package) if path.relative_to(package).parts[0] in JUDGING_CODE]


def _iterate_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in _DATA_FOLDERS:
                yield from _iterate_files(path)
        elif path.is_file():
            yield path


def digest_files(folder: Path, paths: Iterable[Path]) -> str:
    """Return the digest of files: their places below a folder, and their contents."""
    return digest([[path.relative_to(folder).as_posix(), digest_file(path)] for path in paths])


def digest_file(path: Path) -> str:
    """Return the digest of the content of a file, or of its absence."""
    try:
        about = path.stat()
        return _digest_content(str(path), about.st_mtime_ns, about.st_size)
    except OSError:
        return "absent"


@lru_cache(maxsize=100_000)
def _digest_content(path: str, _modified: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- what is installed ------------------------------------------------------------------------------------------------


@cache
def list_installed_here() -> list[str]:
    """Return the names and versions of all distributions that this process can import, and what they offer to us.

    One that is being developed may offer more after it was installed again, under an equal version.
    """
    # By the names of their folders: parsing the metadata of a hundred distributions takes a fifth of a second.
    places = filter(Path.is_dir, (Path(place or ".") for place in dict.fromkeys(sys.path)))
    found = {path.name for place in places for path in place.iterdir() if path.name.endswith(_METADATA_SUFFIXES)}
    offered = (f"{kind} {each}" for kind in EXTENSION_KINDS for each in list_installed(kind).items())
    return [*sorted(found), *sorted(offered)]


@cache
def list_installed_in(environment: Path) -> list[str]:
    """Return what is installed in an environment: its Python distributions, or the digest of its npm packages."""
    lock = environment / "node_modules" / ".package-lock.json"
    distributions_there = (path.name for path in environment.glob("lib/python*/site-packages/*.dist-info"))
    return [*sorted(distributions_there), digest_file(lock)]


def digest_checkout(folder: Path) -> str:
    """Return the digest of the files of a checkout, but for those that are hidden, built or installed.

    Raises:
        OSError: A folder cannot be read.
    """
    return digest_files(folder, _iterate_checkout(folder))


def _iterate_checkout(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _IGNORED_CHECKOUT_FOLDERS:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _iterate_checkout(path)
        elif path.is_file():
            yield path


# --- files that are no part of a distribution -------------------------------------------------------------------------

_INSTALLED_FOLDERS = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def list_local_files() -> dict[str, str]:
    """Return the digests of the files of all imported modules that are neither installed nor part of this package.

    These are an adapter in a project, a framework that is installed from a checkout, and what they import.
    """
    return {file: digest_file(Path(file)) for file in _find_local_files()}


_LOCAL_FILES: tuple[list[Any], list[str]] = ([], [])
"""The modules that were imported when the local files were last looked for, and these files."""


def _find_local_files() -> list[str]:
    global _LOCAL_FILES
    modules = list(sys.modules.values())
    known, files = _LOCAL_FILES
    # Most runs import nothing new, and asking thousands of modules for their files would cost more than some runs.
    if len(modules) != len(known) or not all(map(is_, modules, known)):
        files = _select_local_files(getattr(module, "__file__", None) for module in modules)
        _LOCAL_FILES = (modules, files)
    return files


def _select_local_files(files: Iterable[Any]) -> list[str]:
    installed = (str(PACKAGE), *_INSTALLED_FOLDERS)
    return sorted({file for file in files if isinstance(file, str) and not file.startswith(installed)})


def are_unchanged(files: Mapping[str, str]) -> bool:
    """Return whether files still have the contents of these digests."""
    return all(digest_file(Path(path)) == content for path, content in files.items())
