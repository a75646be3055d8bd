"""Waivers: known failures of one framework, each with its reason and its issue.

They are in the folder of the adapter, in `NAME.waivers.yaml`, as a list:

    - scenario: parallel/*                  # an id, or a pattern with * and ?; or `scenarios:`, a list of them
      check: decision-survives              # or `checks:`, a list
      call: c2 *                            # may be left out: every call that the check can fail for
      actual: "*a new agent*"               # may be left out: whatever was seen
      variant: json-*-held                  # may be left out: every variant
      flavour: chat                         # or `flavours:`; may be left out: every flavour
      version: ">=0.20,<0.25"               # may be left out: every version
      sometimes: Two threads race for it.   # may be left out: it fails in every run
      reason: The restored state has new agent objects, so that a decision on a held item is lost.
      issue: https://github.com/owner/repository/issues/1

In place of `issue`, `cause: ID` refers to a record in `causes/ID.yaml` beside the file (see `causes.py`), whose title
is the reason if there is no other. An entry with lists stands for one waiver of each check in each scenario and
flavour. A pattern that every scenario fits is refused for a check whose failure is an effect, since what it hides
could be anything. A waiver is stale if all that it covers ran without the failure, unless it says why the failure
occurs only `sometimes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import UnknownName, UsageError, WaiverError

if TYPE_CHECKING:
    from pytest_approvals.agents.causes import CausePath

_LISTS = {"scenario": "scenarios", "check": "checks", "flavour": "flavours"}
"""The keys that may have a list instead, and the name of the list."""

_REQUIRED_LISTS = ("scenario", "check")
_TEXTS = ("call", "actual", "variant", "version", "sometimes", "reason", "issue", "cause")
_KEYS = (*_LISTS, *_LISTS.values(), *_TEXTS)
_LINE_LENGTH = 118
_EVERY_SCENARIO = re.compile(r"[*?/]+")
_ISSUE = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One known failure.

    Attributes:
        scenario: The id of a scenario, or a pattern.
        call: The call of the verdict as findings show it, or a pattern.
        actual: What the verdict says was seen, or a pattern.
        variant: The id of a variant, or a pattern.
        flavour: The flavour of the adapter, or a pattern; None for every flavour.
        version: Version specifiers of the framework; empty for every version.
        sometimes: Why a run can end without the failure; empty if it cannot.
        issue: An address, or the page of the cause.
        cause: The id of its record; empty if there is none.
        path, line: The place in its file.
    """

    scenario: str
    check: str
    reason: str
    issue: str
    call: str = "*"
    actual: str = "*"
    variant: str = "*"
    flavour: str | None = None
    version: str = ""
    sometimes: str = ""
    cause: str = ""
    path: str = ""
    line: int = 0

    def covers(self, outcome: CheckOutcome) -> bool:
        """Return whether it applies to *outcome*, failed or not."""
        return self._concerns(outcome) and (
            not outcome.failed or (fnmatchcase(outcome.call, self.call) and fnmatchcase(outcome.actual, self.actual))
        )

    def _concerns(self, outcome: CheckOutcome) -> bool:
        return (
            self.check == outcome.check
            and fnmatchcase(outcome.scenario, self.scenario)
            and fnmatchcase(outcome.variant, self.variant)
            and (self.flavour is None or fnmatchcase(outcome.flavour, self.flavour))
            and _matches_version(self.version, outcome.version)
        )

    def __str__(self) -> str:
        where = f"{self.scenario} [{self.variant}]" if self.variant != "*" else self.scenario
        return f"{self.path}:{self.line}: {self.check} on {where}: {self.reason} ({self.issue})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """Outcome of one check on one run; if *failed*, it needs a waiver.

    Attributes:
        call, actual: Those of the verdict; empty where it has none.
    """

    scenario: str
    variant: str
    check: str
    failed: bool
    flavour: str = ""
    version: str | None = None
    call: str = ""
    actual: str = ""


def get_waiver_file(name: str) -> Path:
    """Return the path of the waivers of the adapter called *name*; the file need not exist."""
    from pytest_approvals.agents.adapters import get_adapter_folder

    return get_adapter_folder(name) / f"{name}.waivers.yaml"


def load_waivers(
    path: Path, checks: Collection[str], effects: Mapping[str, str] = MappingProxyType({})
) -> tuple[Waiver, ...]:
    """Load a file of waivers; a missing one holds none.

    Args:
        path: The file.
        checks: The slugs of all checks.
        effects: The severities of those checks whose failure is an effect, which must not be waived in every scenario.

    Raises:
        WaiverError: The file is invalid; file and line are named.
    """
    from pytest_approvals.agents.causes import get_cause_folder
    from pytest_approvals.yaml_files import Diagnostic, display_path
    from pytest_approvals.yaml_files.document import parse_yaml

    if not path.exists():
        return ()
    shown = display_path(path)
    causes = get_cause_folder(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise WaiverError(shown, None, f"invalid UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise WaiverError(shown, None, f"cannot read file: {error.strerror}") from None
    if not _strip_comments(text):
        return ()
    try:
        document = parse_yaml(text)
    except Diagnostic as diagnostic:
        raise WaiverError(shown, diagnostic.line, diagnostic.message) from None
    if not isinstance(document.value, list):
        raise WaiverError(shown, 1, "Invalid file: expected a list of waivers")
    return tuple(
        waiver
        for index, entry in enumerate(document.value)
        for waiver in _parse_entry(entry, _WaiverLocation(shown, index, document.lines, causes), checks, effects)
    )


def find_waiver(outcome: CheckOutcome, waivers: Iterable[Waiver]) -> Waiver | None:
    """Return the first waiver that covers a failed outcome; None for one that did not fail."""
    return next((waiver for waiver in waivers if waiver.covers(outcome)), None) if outcome.failed else None


def find_stale_waivers(
    waivers: Iterable[Waiver], outcomes: Sequence[CheckOutcome], complete: Collection[str], known: Collection[str]
) -> tuple[Waiver, ...]:
    """Return the waivers whose failure did not occur although all that they cover ran.

    Those that say `sometimes` are never stale.

    Args:
        waivers: The waivers of one agent.
        outcomes: The outcomes of all its runs.
        complete: The ids of the scenarios that ran in all their variants.
        known: The ids of all scenarios.
    """
    expected = [waiver for waiver in waivers if not waiver.sometimes]
    return tuple(waiver for waiver in expected if _is_stale(waiver, outcomes, complete, known))


def _is_stale(
    waiver: Waiver, outcomes: Sequence[CheckOutcome], complete: Collection[str], known: Collection[str]
) -> bool:
    if any(fnmatchcase(scenario, waiver.scenario) and scenario not in complete for scenario in known):
        return False
    covered = [outcome for outcome in outcomes if waiver.covers(outcome)]
    return bool(covered) and not any(outcome.failed for outcome in covered)


def rewrite_waivers(text: str, stale: Iterable[Waiver], new: Iterable[CheckOutcome]) -> str:
    """Return the text of a file of waivers without the *stale* and with the *new* ones.

    There is one new waiver for each check and scenario. Comments stay; a new waiver has no reason yet, so that loading
    the file fails.
    """
    lines = text.splitlines()
    by_line: dict[int, list[Waiver]] = {}
    for waiver in stale:
        by_line.setdefault(waiver.line, []).append(waiver)
    entries = _find_entries(text) if by_line else {}
    # From the end, so that the line numbers of earlier waivers stay valid.
    for line in sorted(by_line, reverse=True):
        end = _find_entry_end(lines, line)
        lines[line - 1 : end] = _format_remaining(lines[line - 1 : end], entries[line], by_line[line])
    return "\n".join([*lines, *_format_new_entries(new)]) + "\n"


def _find_entries(text: str) -> dict[int, dict[str, Any]]:
    from pytest_approvals.yaml_files.document import parse_yaml

    document = parse_yaml(text)
    return {document.lines[str(index)]: entry for index, entry in enumerate(document.value)}


def _format_remaining(lines: Sequence[str], entry: Mapping[str, Any], stale: Iterable[Waiver]) -> list[str]:
    """Return the lines of an entry without what is stale of it: none, or as many entries as it takes."""
    gone = {(waiver.flavour, waiver.scenario, waiver.check) for waiver in stale}
    rest = _drop_keys(lines, {*_LISTS, *_LISTS.values()})
    by_left: dict[_Left, list[str | None]] = {}
    for flavour in _list_names(entry, "flavour"):
        by_left.setdefault(_list_remaining(entry, flavour, gone), []).append(flavour)
    remaining: list[str] = []
    for groups, flavours in by_left.items():
        named = [flavour for flavour in flavours if flavour is not None]
        also = ["  " + _format_names("flavour", named)] if named else []
        for checks, scenarios in groups:
            remaining += ["- " + _format_names("scenario", scenarios), "  " + _format_names("check", checks)]
            remaining += [*also, *rest]
    return remaining


_Left = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""Checks and scenarios that are left of an entry: those that have the same checks stand together."""


def _list_remaining(
    entry: Mapping[str, Any], flavour: str | None, gone: Collection[tuple[str | None, str, str]]
) -> _Left:
    """Return what is left of an entry in a flavour."""
    by_checks: dict[tuple[str, ...], list[str]] = {}
    for scenario in _list_names(entry, "scenario"):
        left = tuple(check for check in _list_names(entry, "check") if (flavour, scenario, check) not in gone)
        if left:
            by_checks.setdefault(left, []).append(scenario)
    return tuple((checks, tuple(scenarios)) for checks, scenarios in by_checks.items())


def _list_names(entry: Mapping[str, Any], key: str) -> list[Any]:
    """Return the names of an entry for a key that may have a list; [None] if there is neither."""
    return [entry[key]] if key in entry else list(entry.get(_LISTS[key], [None]))


def _drop_keys(lines: Sequence[str], keys: Collection[str]) -> list[str]:
    """Return the lines of an entry without those of some keys, and without the dash."""
    kept: list[str] = []
    keeps = True
    for line in ("  " + lines[0].removeprefix("-").lstrip(), *lines[1:]):
        key = re.match(r"  (\w+):", line)
        keeps = key[1] not in keys if key else keeps
        kept += [line] if keeps else []
    return kept


def _format_names(key: str, names: Sequence[str]) -> str:
    written = [name if re.fullmatch(r"[\w./-][\w./?*-]*", name) else json.dumps(name) for name in names]
    if len(written) == 1:
        return f"{key}: {written[0]}"
    line = f"{_LISTS[key]}: [{', '.join(written)}]"
    return line if len(line) < _LINE_LENGTH else "\n".join([f"{_LISTS[key]}:", *(f"    - {name}" for name in written)])


def _format_new_entries(new: Iterable[CheckOutcome]) -> list[str]:
    groups: dict[tuple[str, str, str, str | None], set[str]] = {}
    for outcome in new:
        key = (outcome.scenario, outcome.check, outcome.flavour, outcome.version)
        groups.setdefault(key, set()).add(outcome.variant)
    entries = []
    for (scenario, check, flavour, version), variants in sorted(groups.items(), key=lambda item: str(item[0])):
        entries += [f"- scenario: {scenario}", f"  check: {check}"]
        # Several variants share one waiver, which then covers every variant.
        entries += [f"  variant: {variant}" for variant in variants if len(variants) == 1]
        entries += [f"  flavour: {flavour}"] if flavour else []
        entries += [f'  version: ">={version}"'] if version else []
        entries += ['  reason: ""', '  issue: ""']
    return entries


def _find_entry_end(lines: Sequence[str], start: int) -> int:
    """Return the last line of the entry that starts in line *start*, without comments below."""
    end = start
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith("-") or (line and not line[0].isspace() and not line.startswith("#")):
            break
        if line.strip() and not line.startswith("#"):
            end = number
    return end


@dataclass(frozen=True, slots=True)
class _WaiverLocation:
    """Place of one entry, for error messages."""

    path: str
    index: int
    lines: Mapping[str, int]
    causes: CausePath

    def line(self, key: str = "") -> int:
        return self.lines.get(f"{self.index}.{key}", self.lines[str(self.index)])

    def error(self, message: str, key: str = "") -> WaiverError:
        return WaiverError(self.path, self.line(key), message)


def _parse_entry(
    entry: Any, place: _WaiverLocation, checks: Collection[str], effects: Mapping[str, str]
) -> list[Waiver]:
    if not isinstance(entry, dict):
        raise place.error("Invalid waiver: expected a mapping with scenario, check, reason and issue")
    for key, value in entry.items():
        if key not in _KEYS:
            raise place.error(str(UnknownName("key of a waiver", key, _KEYS)), key)
        if key in _LISTS.values():
            _validate_list(key, value, place)
        elif not isinstance(value, str):
            raise place.error(f"Invalid {key}: expected text; put it into quotes", key)
    for key, several in _LISTS.items():
        if key in entry and several in entry:
            raise place.error(f"Invalid {several}: there is a {key}, too; keep one of the two", several)
        if key in _REQUIRED_LISTS and key not in entry and several not in entry:
            raise place.error(f"Missing {key}")
    _validate_origin(entry, place)
    for key in (*_LISTS, *_TEXTS):
        if key in entry and key not in ("version", "flavour") and not entry[key].strip():
            raise place.error(f"Invalid {key}: expected a text that is not empty", key)
    for check in _list_names(entry, "check"):
        if check not in checks:
            raise place.error(str(UnknownName("check", check, checks)), "check" if "check" in entry else "checks")
    _validate_width(entry, place, effects)
    _validate_specifier(entry.get("version", ""), place)
    others = {key: str(entry[key]) for key in _TEXTS if key in entry} | _describe_origin(entry, place)
    return [
        Waiver(
            scenario=str(scenario),
            check=str(check),
            flavour=None if flavour is None else str(flavour),
            **others,
            path=place.path,
            line=place.line(),
        )
        for flavour in _list_names(entry, "flavour")
        for scenario in _list_names(entry, "scenario")
        for check in _list_names(entry, "check")
    ]


def _validate_origin(entry: Mapping[str, Any], place: _WaiverLocation) -> None:
    """Require a cause, or an issue with a reason."""
    if "cause" in entry and "issue" in entry:
        raise place.error("Invalid issue: there is a cause, too; keep one of the two", "issue")
    for key in () if "cause" in entry else ("reason", "issue"):
        if key not in entry:
            raise place.error(f"Missing {key}")


def _describe_origin(entry: Mapping[str, Any], place: _WaiverLocation) -> dict[str, str]:
    """Return reason and issue of an entry."""
    from pytest_approvals.agents.causes import list_cause_ids, read_cause_title

    if "cause" not in entry:
        if not _ISSUE.fullmatch(entry["issue"]):
            raise place.error("Invalid issue: expected a URL; `cause: ID` refers to a record beside the file", "issue")
        return {}
    known = list_cause_ids(place.causes)
    cause = entry["cause"]
    if cause not in known:
        raise place.error(str(UnknownName("cause", cause, known)), "cause")
    reason = entry["reason"] if "reason" in entry else read_cause_title(place.causes / f"{cause}.yaml")
    return {"reason": str(reason), "issue": f"docs/findings/{cause}.md"}


def _validate_width(entry: Mapping[str, Any], place: _WaiverLocation, effects: Mapping[str, str]) -> None:
    """Refuse to waive an effect in every scenario."""
    wide = [scenario for scenario in _list_names(entry, "scenario") if _EVERY_SCENARIO.fullmatch(scenario)]
    grave = [check for check in _list_names(entry, "check") if check in effects]
    if wide and grave:
        key = "scenario" if "scenario" in entry else "scenarios"
        raise place.error(
            f"Invalid {key} {wide[0]!r}: a failure of {grave[0]} has the severity {effects[grave[0]]} and must not be "
            "waived everywhere; list where it occurs: `scenarios: [FAMILY/NAME, …]`",
            key,
        )


def _validate_list(key: str, value: Any, place: _WaiverLocation) -> None:
    # The default flavour is called "".
    empty = key == "flavours"
    texts = isinstance(value, list) and all(isinstance(name, str) and (empty or name.strip()) for name in value)
    if not texts or not value:
        raise place.error(f"Invalid {key}: expected a list of texts that are not empty", key)
    twice = [name for index, name in enumerate(value) if name in value[:index]]
    if twice:
        raise place.error(f"Invalid {key}: {twice[0]} is there twice", key)


def _validate_specifier(text: str, place: _WaiverLocation) -> None:
    from pytest_approvals.agents.spec import parse_specifier

    try:
        parse_specifier(text)
    except UsageError as error:
        raise place.error(str(error), "version") from None


def _matches_version(specifiers: str, version: str | None) -> bool:
    from pytest_approvals.agents.spec import is_in_range

    return not specifiers or (version is not None and is_in_range(version, specifiers))


def _strip_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
