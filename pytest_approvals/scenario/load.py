"""Loader of scenario files.

A scenario file is called `NAME.approval.yaml`; its id is its path below the root without that suffix. Errors have the
form `file:line: message`, with the nearest valid word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.faker_values import fill_fake_values
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.validation import finalize
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup, build_scenario_error

if TYPE_CHECKING:
    from pytest_approvals.scenario.schema import ScenarioFile

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*")


def load_scenario(path: Path | str, *, root: Path | str) -> Scenario:
    """Load one scenario file.

    Args:
        path: The file.
        root: Folder that its id is relative to.

    Raises:
        ScenarioError: The file is unreadable or invalid.
    """
    path = Path(path)
    return parse_scenario(_read_text(path), name=_scenario_id(path, Path(root)), path=str(path))


def load_catalogue(folders: Iterable[Path | str]) -> list[Scenario]:
    """Load every scenario file below *folders*, in the order of their ids.

    Raises:
        ScenarioError: A folder is missing, a file is invalid, or two files have the same id.
    """
    scenarios: dict[str, Scenario] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ScenarioError(str(folder), None, "no such folder")
        for path in sorted(folder.rglob(f"*{SCENARIO_SUFFIX}")):
            scenario = load_scenario(path, root=folder)
            if scenario.id in scenarios:
                raise ScenarioError(
                    str(path), 1, f"duplicate id {scenario.id!r}, first in {scenarios[scenario.id].path}"
                )
            scenarios[scenario.id] = scenario
    return [scenarios[name] for name in sorted(scenarios)]


def parse_scenario(text: str, *, name: str, path: str) -> Scenario:
    """Parse a scenario from YAML text.

    Args:
        text: The text.
        name: Id of the scenario.
        path: Name of the text in errors.

    Raises:
        ScenarioError: The text is invalid.
    """
    from pytest_approvals.scenario.from_file import scenario_from_file
    from pytest_approvals.yaml_files.document import parse_yaml

    lines: Mapping[str, int] = {}
    try:
        document = parse_yaml(text)
        # Before the next steps, so that their errors have lines.
        lines = document.lines
        value, fakes = fill_fake_values(document.value, name)
        scenario = scenario_from_file(_validate_schema(value), name=name)
        return finalize(replace(scenario, fakes=fakes, path=path, lines=lines))
    except Diagnostic as diagnostic:
        raise build_scenario_error(path, [diagnostic], lines, text) from None
    except DiagnosticGroup as group:
        raise build_scenario_error(path, group.diagnostics, lines, text) from None


def _validate_schema(value: Any) -> ScenarioFile:
    # Imported late: a scenario from the cache needs no pydantic.
    from pydantic import ValidationError

    from pytest_approvals.scenario.schema import ScenarioFile
    from pytest_approvals.scenario.schema_base import translate_errors

    try:
        return ScenarioFile.model_validate(value)
    except ValidationError as error:
        raise DiagnosticGroup(translate_errors(error)) from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(str(path), None, "no such file") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), None, f"invalid UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ScenarioError(str(path), None, f"cannot read file: {error.strerror}") from None


def _scenario_id(path: Path, root: Path) -> str:
    if not path.name.endswith(SCENARIO_SUFFIX):
        raise ScenarioError(str(path), None, f"invalid file name: expected a name ending with {SCENARIO_SUFFIX}")
    try:
        below = path.resolve().relative_to(root.resolve())
    except ValueError:
        raise ScenarioError(str(path), None, f"the file is not below {root}") from None
    name = below.as_posix().removesuffix(SCENARIO_SUFFIX)
    if not _ID.fullmatch(name):
        raise ScenarioError(
            str(path), None, f"invalid id {name!r}: expected kebab-case (words of a-z and 0-9, joined by -)"
        )
    return name
