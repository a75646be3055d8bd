"""Causes: what is behind the known failures of a framework, one record for each root cause.

They are in the folder of the adapter, in `causes/ID.yaml`; the waivers beside it refer to them by their ids:

    title: An approval of a run that went through JSON counts as a rejection
    class: bug                         # see CLASSES
    severity: lost-effect
    agent: agno                        # on which it is shown: NAME, or NAME.FLAVOUR
    releases: {seen: "3.1.10"}         # also `first-bad`, `last-good` and `fixed`, as far as they are known
    condition: The run is restored with `RunOutput.from_dict()` and not continued by its id.
    documentation: undocumented        # or `unread`, or {says: "A sentence.", source: https://…}
    searched: none                     # or {on: 2026-11-25, tracker: owner/name, queries: […], found: [https://…]}
    reported: [https://…]              # may be left out: threads about it, however they were found
    check: approved-runs               # that fails; or `status: warning`
    variant: {serialize: json}         # may be left out: the base variant
    sometimes: Two tasks race for it.  # may be left out: it shows in every run
    native: none                       # or `generated`, or {script: "…", good: "3.2.0"}
    story: …                           # a minimal scenario
    happens: …
    should: …

A native script shows the cause with the framework's public API only. One that is `generated` is made from the story
(see `scenario/native_scripts.py`). A record says what was not looked at yet: documentation that is `unread`, a tracker
that was not `searched`, and a script that is missing.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pytest_approvals.errors import ApprovalsError, CauseError, UnknownName

CauseClass = Literal["bug", "by-design", "documented-limit", "undocumented", "provider-only", "ours"]
"""Classes of causes:

* `bug`: it breaks what the documentation says, or what cannot be meant.
* `by-design`: the framework's authors mean it.
* `documented-limit`: its documentation says so.
* `undocumented`: nothing that was read says whether it is meant.
* `provider-only`: only what no known provider sends shows it.
* `ours`: it comes from the adapter or the harness.
"""

CLASSES: tuple[CauseClass, ...] = get_args(CauseClass)
STATUSES = ("fail", "warning", "harness-error")

_TEXTS = ("title", "class", "severity", "agent", "condition", "check", "story", "happens", "should")
_OPTIONAL = ("status", "variant", "sometimes", "reported")
_KEYS = (*_TEXTS, *_OPTIONAL, "releases", "documentation", "searched", "native")
_RELEASES = ("seen", "first-bad", "last-good", "fixed")
_URL = re.compile(r"https?://\S+")
_TITLE = re.compile(r"^title: .*$", re.MULTILINE)
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Releases of the framework; empty if they are not known.

    Attributes:
        seen: The newest one on which it was seen.
        first_bad: The first one that has it.
        last_good: The one before it.
        fixed: The first one without it again.
    """

    seen: str
    first_bad: str = ""
    last_good: str = ""
    fixed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documentation:
    """A sentence of the framework's documentation, and its address."""

    says: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSearch:
    """A search of a framework's issues.

    Attributes:
        on: The date.
        tracker: The repository.
        queries: The words that were searched for.
        found: The addresses of what is about it, or near to it.
    """

    on: str
    tracker: str
    queries: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeScript:
    """A script that shows a cause in the framework's own API.

    Attributes:
        source: Its text; empty if it is made from the story.
        good: A release on which it ends well; empty if none is known.
    """

    source: str = ""
    good: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One root cause of known failures.

    Attributes:
        documentation: The sentence that is about it; or that there is none; or that nobody looked.
        searched: None if nobody searched.
        reported: Addresses of the threads about it.
        native: None if there is no script.
        story: A scenario, as YAML.
        story_line: The line in which the scenario begins.
    """

    id: str
    title: str
    cause_class: CauseClass
    severity: str
    agent: str
    releases: Releases
    condition: str
    documentation: Documentation | Literal["undocumented", "unread"]
    searched: TrackerSearch | None
    reported: tuple[str, ...]
    check: str
    status: str
    variant: Mapping[str, str | bool]
    sometimes: str
    native: NativeScript | None
    story: str
    story_line: int
    happens: str
    should: str
    path: str

    @property
    def name(self) -> str:
        """The name of the agent without its flavour."""
        return self.agent.partition(".")[0]


CausePath: TypeAlias = Path | zipfile.Path
"""A folder of causes or a file in it: the wheel has the causes of an adapter in an archive."""


def get_cause_folder(waiver_file: Path) -> CausePath:
    """Return the folder with the causes that the waivers of a file refer to; it need not exist."""
    archive = waiver_file.parent / "causes.zip"
    return zipfile.Path(archive) if archive.is_file() else waiver_file.parent / "causes"


def list_cause_ids(folder: CausePath) -> tuple[str, ...]:
    """Return the ids of the causes of a folder, without reading them."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def read_cause_title(path: CausePath) -> str:
    """Return the title of a cause without reading its record; its id if the file has none."""
    from pytest_approvals.yaml_files import Diagnostic
    from pytest_approvals.yaml_files.document import parse_yaml

    try:
        line = _TITLE.search(path.read_text(encoding="utf-8"))
        return str(parse_yaml(line[0]).value["title"]) if line else path.stem
    except (OSError, UnicodeDecodeError, Diagnostic):
        return path.stem


def read_cause_story(path: CausePath) -> str:
    """Return the story of a cause without reading the rest of its record; empty if the file has none."""
    from pytest_approvals.yaml_files import Diagnostic
    from pytest_approvals.yaml_files.document import parse_yaml

    try:
        record = parse_yaml(path.read_text(encoding="utf-8")).value
    except (OSError, UnicodeDecodeError, Diagnostic):
        return ""
    story = record.get("story") if isinstance(record, dict) else None
    return story if isinstance(story, str) else ""


def load_causes(
    folder: CausePath, checks: Collection[str], severities: Collection[str], variants: Collection[str]
) -> tuple[Cause, ...]:
    """Load the causes of a folder, in the order of their ids; a missing folder has none.

    Args:
        folder: The folder.
        checks: The slugs of all checks.
        severities: The severities of checks.
        variants: The names of the dimensions of variants.

    Raises:
        CauseError: A file is invalid; file and line are named.
    """
    known = _KnownWords(checks, severities, variants)
    return tuple(_load_cause(folder / f"{cause_id}.yaml", known) for cause_id in list_cause_ids(folder))


@dataclass(frozen=True, slots=True)
class _KnownWords:
    """The words that other rooms define."""

    checks: Collection[str]
    severities: Collection[str]
    variants: Collection[str]


@dataclass(frozen=True, slots=True)
class _CauseFile:
    """A file with its lines, for error messages."""

    path: str
    lines: Mapping[str, int]

    def line(self, key: str) -> int:
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return self.lines.get(key, 1)

    def error(self, message: str, key: str = "") -> CauseError:
        return CauseError(self.path, self.line(key), message)

    def require_word(self, kind: str, word: object, known: Collection[str], key: str) -> str:
        if not isinstance(word, str) or word not in known:
            raise self.error(str(UnknownName(kind, str(word), known)), key)
        return str(word)

    def require_text(self, value: object, key: str) -> str:
        # An item of a list has the name of the list.
        name = re.sub(r"(\.\d+)+$", "", key).rpartition(".")[2]
        if not isinstance(value, str):
            raise self.error(f"Invalid {name}: expected text; put it into quotes", key)
        if not value.strip():
            raise self.error(f"Invalid {name}: expected a text that is not empty", key)
        return str(value)

    def require_keys(self, value: object, key: str, needed: Collection[str], optional: Collection[str] = ()) -> Any:
        names = [*needed, *optional]
        if not isinstance(value, dict):
            what = key or "cause"
            raise self.error(f"Invalid {what}: expected a mapping with {', '.join(needed)}", key)
        for name in value:
            if name not in names:
                what = f"key of `{key}`" if key else "key of a cause"
                raise self.error(str(UnknownName(what, name, names)), f"{key}.{name}" if key else name)
        for name in needed:
            if name not in value:
                raise self.error(f"Missing {f'{key}: ' if key else ''}{name}", key)
        return value

    def require_texts(self, value: object, key: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.error(f"Invalid {key.rpartition('.')[2]}: expected a list", key)
        return tuple(self.require_text(item, f"{key}.{index}") for index, item in enumerate(value))


def _load_cause(path: CausePath, known: _KnownWords) -> Cause:
    from pytest_approvals.yaml_files import Diagnostic, display_path
    from pytest_approvals.yaml_files.document import parse_yaml

    shown = display_path(Path(str(path)))
    try:
        document = parse_yaml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise CauseError(shown, None, f"invalid UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise CauseError(shown, None, f"cannot read file: {error.strerror}") from None
    except Diagnostic as diagnostic:
        raise CauseError(shown, diagnostic.line, diagnostic.message) from None
    file = _CauseFile(shown, document.lines)
    if not _ID.fullmatch(path.stem):
        raise CauseError(shown, None, f"Invalid name of a cause {path.stem!r}: expected kebab-case")
    return _parse_cause(path.stem, document.value, file, known)


def _parse_cause(cause_id: str, value: Any, file: _CauseFile, known: _KnownWords) -> Cause:
    entry = file.require_keys(
        value, "", [key for key in _KEYS if key not in _OPTIONAL], [key for key in _KEYS if key in _OPTIONAL]
    )
    texts = {key: file.require_text(entry[key], key) for key in _TEXTS}
    cause_class: Any = file.require_word("class of a cause", texts["class"], CLASSES, "class")
    documentation = _parse_documentation(entry["documentation"], file)
    if cause_class == "documented-limit" and not isinstance(documentation, Documentation):
        raise file.error("Invalid documentation: a documented limit needs {says: …, source: URL}", "documentation")
    return Cause(
        id=cause_id,
        title=texts["title"],
        cause_class=cause_class,
        severity=file.require_word("severity", texts["severity"], known.severities, "severity"),
        agent=_parse_agent(texts["agent"], file),
        releases=_parse_releases(entry["releases"], file),
        condition=texts["condition"].strip(),
        documentation=documentation,
        searched=_parse_search(entry["searched"], file),
        reported=_parse_addresses(entry.get("reported", []), "reported", file),
        check=file.require_word("check", texts["check"], known.checks, "check"),
        status=file.require_word("status", entry.get("status", "fail"), STATUSES, "status"),
        variant=_parse_variant(entry.get("variant", {}), file, known.variants),
        sometimes=file.require_text(entry["sometimes"], "sometimes").strip() if "sometimes" in entry else "",
        native=_parse_native(entry["native"], file),
        story=texts["story"],
        story_line=file.line("story") + 1,
        happens=texts["happens"].strip("\n"),
        should=texts["should"].strip("\n"),
        path=file.path,
    )


def _parse_agent(text: str, file: _CauseFile) -> str:
    from pytest_approvals.agents.adapters import get_adapter
    from pytest_approvals.agents.spec import AgentSpec

    try:
        spec = AgentSpec.parse(text)
        get_adapter(spec)
    except ApprovalsError as error:
        raise file.error(str(error), "agent") from None
    if str(spec) != spec.base:
        raise file.error(f"Invalid agent {text!r}: expected NAME or NAME.FLAVOUR; `releases` has the version", "agent")
    return text


def _parse_releases(value: Any, file: _CauseFile) -> Releases:
    entry = file.require_keys(value, "releases", _RELEASES[:1], _RELEASES[1:])
    texts = {key.replace("-", "_"): file.require_text(text, f"releases.{key}") for key, text in entry.items()}
    return Releases(**texts)


def _parse_documentation(value: Any, file: _CauseFile) -> Documentation | Literal["undocumented", "unread"]:
    if value == "undocumented":
        return "undocumented"
    if value == "unread":
        return "unread"
    if isinstance(value, str):
        words = ("undocumented", "unread")
        raise file.error(str(UnknownName("state of the documentation", value, words)), "documentation")
    entry = file.require_keys(value, "documentation", ("says", "source"))
    source = file.require_text(entry["source"], "documentation.source")
    if not _URL.fullmatch(source):
        raise file.error(f"Invalid source {source!r}: expected a URL", "documentation.source")
    return Documentation(says=file.require_text(entry["says"], "documentation.says").strip(), source=source)


def _parse_search(value: Any, file: _CauseFile) -> TrackerSearch | None:
    if value == "none":
        return None
    entry = file.require_keys(value, "searched", ("on", "tracker", "queries", "found"))
    on = file.require_text(entry["on"], "searched.on")
    try:
        date.fromisoformat(on)
    except ValueError:
        raise file.error(f"Invalid date {on!r}: expected YEAR-MONTH-DAY", "searched.on") from None
    queries = file.require_texts(entry["queries"], "searched.queries")
    if not queries:
        raise file.error("Invalid queries: expected the words that were searched for", "searched.queries")
    found = _parse_addresses(entry["found"], "searched.found", file)
    tracker = file.require_text(entry["tracker"], "searched.tracker")
    return TrackerSearch(on=on, tracker=tracker, queries=queries, found=found)


def _parse_addresses(value: Any, key: str, file: _CauseFile) -> tuple[str, ...]:
    addresses = file.require_texts(value, key)
    for index, address in enumerate(addresses):
        if not _URL.fullmatch(address):
            raise file.error(f"Invalid address {address!r}: expected a URL", f"{key}.{index}")
    return addresses


def _parse_variant(value: Any, file: _CauseFile, dimensions: Collection[str]) -> Mapping[str, str | bool]:
    if not isinstance(value, dict):
        raise file.error("Invalid variant: expected a mapping of dimensions", "variant")
    for name, given in value.items():
        file.require_word("dimension", name, dimensions, f"variant.{name}")
        if not isinstance(given, str | bool):
            raise file.error(f"Invalid {name}: expected a word, true or false", f"variant.{name}")
    return value


def _parse_native(value: Any, file: _CauseFile) -> NativeScript | None:
    if value == "none":
        return None
    if value == "generated":
        return NativeScript()
    if isinstance(value, str):
        raise file.error(str(UnknownName("native script", value, ("none", "generated"))), "native")
    entry = file.require_keys(value, "native", (), ("script", "good"))
    script = file.require_text(entry["script"], "native.script") if "script" in entry else ""
    good = file.require_text(entry["good"], "native.good") if "good" in entry else ""
    return NativeScript(source=script, good=good)
