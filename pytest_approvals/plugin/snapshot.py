"""Stored transcripts: an extension of syrupy, and its use by the items of scenario files.

A user's test compares with the fixture `transcript_snapshot`, a snapshot of syrupy with `TranscriptExtension`; its
transcript is stored where syrupy puts single files, next to the test.

An item of a scenario file calls

    assert_transcript(item, transcript, transcript_name(agent, scenario, variant), write=variant is the plainest one)

once it has run. The transcripts of a scenario are stored in one file, `__snapshots__/SCENARIO.transcripts` next to the
scenario file: that of `AGENT`, or of `AGENT-ORACLE` if an oracle decides; every variant asserts the same transcript,
and only one of them writes it. If a store or a provider's protocol makes a known difference, its variants have a
transcript of their own, whose name ends with the store, the protocol or both; it begins as a heading of the file, with
nothing below it. All of syrupy's options work. A variant that tells another story than the one that an update writes
fails at the end of that session, as `snapshot_updates.py` says.

A transcript counts as unused if no item can use it: its scenario is gone, or the collector of its scenario has a method
`transcripts()`, which returns the names that the items of each agent of this session can have, and its name is not
among them. Those of agents that take no part in a session are left alone.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.data import Snapshot, SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from pytest_approvals.errors import TranscriptError, TranscriptMismatch, UsageError
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.journal.transcript_file import format_transcripts, parse_transcripts
from pytest_approvals.plugin.snapshot_updates import Told, note_told, show_file
from pytest_approvals.scenario.model import RestoreStep, Scenario, TogetherStep, Variant, crash_places, rolls_back

if TYPE_CHECKING:
    from syrupy.types import SerializedData, SnapshotIndex

SUFFIX = "transcripts"
"""Suffix of the files of scenarios."""


class TranscriptExtension(SingleFileSnapshotExtension):
    """Stores transcripts for syrupy, one a file; takes a `Transcript`, or anything that has a `transcript`."""

    file_extension = "transcript"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> SerializedData:
        """Return the text of a transcript.

        Raises:
            TypeError: *data* has no transcript.
        """
        transcript = data if isinstance(data, Transcript) else getattr(data, "transcript", None)
        if not isinstance(transcript, Transcript):
            raise TypeError(f"a transcript or a run was expected, not {type(data).__name__}")
        return transcript.render()


class ScenarioTranscripts(AbstractSyrupyExtension):
    """Stores the transcripts of scenario files: a file a scenario, which `transcript_file` describes."""

    file_extension = SUFFIX

    def serialize(self, data: Any, **_: Any) -> SerializedData:
        """Return the text of a transcript."""
        return Transcript.render(data)

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        """Return the name of the file of an item's scenario, without its suffix."""
        return _scenario_stem(Path(test_location.filepath))

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """Return the name under which the item stores its transcript."""
        return str(test_location.testname)

    def discover_snapshots(
        self, *, test_location: PyTestLocation, ignore_extensions: list[str] | None = None
    ) -> SnapshotCollections:
        """Find the transcripts next to a scenario that nothing can use any more."""
        collections = SnapshotCollections()
        # syrupy also asks with the locations of other tests, and, under pytest-xdist, of items without a session.
        if isinstance(test_location, _ScenarioLocation):
            scenarios = _scenario_collectors(test_location.item.session)
            for path in Path(self.dirname(test_location=test_location)).glob(f"*.{SUFFIX}"):
                stale = [name for name in _list_names(path) if _is_stale(path, name, scenarios)]
                if stale:
                    collections.add(_collect(str(path), dict.fromkeys(stale)))
        return collections

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        """Return all transcripts of a file."""
        found = _read(Path(snapshot_location))
        return _collect(snapshot_location, {name: transcript.render() for name, transcript in found.items()})

    def read_snapshot_data_from_location(
        self, *, snapshot_location: str, snapshot_name: str, session_id: str
    ) -> SerializedData | None:
        """Return the text of a stored transcript, or None if there is none."""
        found = _read(Path(snapshot_location)).get(snapshot_name)
        return None if found is None else found.render()

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: SnapshotCollection, **_: Any) -> None:
        """Store transcripts beside those that the file has already."""
        new = {each.name: Transcript.parse(str(each.data)) for each in snapshot_collection}
        _change(Path(snapshot_collection.location), lambda stored: {**stored, **new})

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        """Remove transcripts from a file, and the file with the last one."""
        _change(
            Path(snapshot_location),
            lambda stored: {name: each for name, each in stored.items() if name not in snapshot_names},
        )


def _collect(location: str, texts: Mapping[str, SerializedData | None]) -> SnapshotCollection:
    collection = SnapshotCollection(location=location)
    for name, text in texts.items():
        collection.add(Snapshot(name=name, data=text))
    return collection


# --- the files --------------------------------------------------------------------------------------------------------


def _read(path: Path) -> Mapping[str, Transcript]:
    """Return the transcripts of a file by their names; none if there is no file.

    Raises:
        TranscriptError: It is damaged.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return {}
    return _parse(path, (state.st_mtime_ns, state.st_ino, state.st_size))


@lru_cache(maxsize=32)
def _parse(path: Path, state: tuple[int, int, int]) -> Mapping[str, Transcript]:
    # One item after the other compares with the same file.
    try:
        # With the line ends as they are: a text of a run may have others.
        return parse_transcripts(path.read_bytes().decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise TranscriptError(str(path), None, f"invalid UTF-8: {error.reason} at byte {error.start}") from None


def _list_names(path: Path) -> list[str]:
    """Return the names of the transcripts of a file; none if it is damaged, which the item that reads it tells."""
    try:
        return list(_read(path))
    except TranscriptError:
        return []


def _change(path: Path, change: Callable[[Mapping[str, Transcript]], Mapping[str, Transcript]]) -> None:
    """Change the transcripts of a file, one process after the other."""
    # It imports pydantic, which takes longer than a run does.
    from pytest_approvals.reporting.files import replace_file

    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        changed = change(_read(path))
        if changed:
            replace_file(path, format_transcripts(changed).encode("utf-8"))
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(folder)


class _ScenarioLocation(PyTestLocation):
    """The location of the transcript of an item: under a name of its own."""

    def __init__(self, item: pytest.Item, name: str) -> None:
        facts = {
            "item": item,
            "filepath": str(item.path.absolute()),
            "modulename": _scenario_stem(item.path),
            "methodname": name,
            "nodename": name,
            "testname": name,
        }
        # The base is a frozen dataclass, and its own initialisation would take the names from the item.
        for field, value in facts.items():
            object.__setattr__(self, field, value)

    def matches_snapshot_name(self, snapshot_name: str) -> bool:
        """Return whether a snapshot is the one of this item."""
        # That of the base compares only up to the first character that no identifier has, such as a hyphen.
        return bool(snapshot_name == self.testname)

    def matches_snapshot_location(self, snapshot_location: str) -> bool:
        """Return whether a file is the one of this item."""
        return Path(snapshot_location).stem == _scenario_stem(Path(self.filepath))


def transcript_name(agent: str, scenario: Scenario, variant: Variant) -> str:
    """Return the name under which the transcript of a run is stored.

    It is the same for all variants with the same oracle. Only if a scenario goes back to an older save, takes two turns
    at the same time, or kills the process in a turn, it matters who keeps the state: a live agent or a store may know
    of both turns, and of a turn that was cut off; a caller with copies cannot. Then a live agent and a store have a
    transcript each of their own.
    """
    words = [agent]
    if variant.oracle != Variant().oracle:
        words.append(re.sub(r"[^a-z0-9]+", "-", variant.oracle.lower()).strip("-"))
    if _depends_on_keeper(scenario):
        words += {"none": ["live"], "native": ["store"]}.get(variant.serialize.partition(".")[0], [])
    return "-".join(words)


def special_transcript_names(name: str, stores: Sequence[str], protocols: Sequence[str]) -> Iterator[str]:
    """Yield the names that transcripts of stores and protocols can have whose runs differ from the one called *name*.

    Those that fit fewer runs stand first.
    """
    yield from (f"{name}-{store}-{protocol}" for store in stores for protocol in protocols)
    yield from (f"{name}-{word}" for word in (*protocols, *stores))


def _depends_on_keeper(scenario: Scenario) -> bool:
    steps = scenario.caller or ()
    return any(isinstance(step, (TogetherStep, RestoreStep)) for step in steps) or bool(
        crash_places(scenario) or rolls_back(scenario)
    )


def assert_transcript(
    item: pytest.Item,
    transcript: Transcript,
    name: str,
    *,
    write: bool,
    remedy: str = "update with --snapshot-update",
) -> None:
    """Assert that a transcript is the stored one, or store it, as syrupy's options say.

    While snapshots are being updated, only the item with *write* asserts, because the others could compare the new
    transcript with the old one; theirs are kept for `find_left_out`. If none is stored, only that item fails. Without
    syrupy's plugin nothing is asserted.

    Args:
        item: The item of a scenario file; its path is that file.
        transcript: The transcript of its run.
        name: The name that `transcript_name` returns.
        write: Whether the item runs the plainest variant with that name.
        remedy: What to do if the transcript differs and is right.

    Raises:
        TranscriptMismatch: It differs from the stored one, or none is stored.
    """
    session = getattr(item.config, "_syrupy", None)
    if session is None:
        return
    updates = _read_updates(item.config)
    is_updating = any(updates.values())
    if is_updating:
        stored = _read(_transcript_file(item.path)).get(name)
        is_stored = write and (updates["update_snapshots"] or stored is None)
        note_told(
            item.config,
            Told(
                file=show_file(_transcript_file(item.path), item.config.rootpath),
                name=name,
                nodeid=item.nodeid,
                text=str(transcript),
                left=str(transcript) if is_stored else None if stored is None else str(stored),
                is_stored=is_stored,
                remedy=remedy,
            ),
        )
    if not write and (is_updating or not is_transcript_stored(item, name)):
        return
    hide_from_other_extensions(item.config)
    snapshot = SnapshotAssertion(
        session=session,
        extension_class=ScenarioTranscripts,
        test_location=_ScenarioLocation(item, name),
        **updates,
    )
    if not snapshot == transcript:
        raise _mismatch_error(snapshot, transcript, item.config.rootpath, remedy)


def make_test_snapshot(item: pytest.Item) -> SnapshotAssertion:
    """Return the stored transcript of a user's test, whatever fixture `snapshot` its project has.

    Raises:
        UsageError: The plugin of syrupy is not active.
    """
    session = getattr(item.config, "_syrupy", None)
    if session is None:
        raise UsageError("transcript_snapshot needs the plugin of syrupy; remove `-p no:syrupy`")
    return SnapshotAssertion(
        session=session,
        extension_class=TranscriptExtension,
        test_location=PyTestLocation(item),
        **_read_updates(item.config),
    )


def _read_updates(config: pytest.Config) -> dict[str, Any]:
    """Return what syrupy's options say about writing."""
    options = config.option
    updates: dict[str, Any] = {"update_snapshots": bool(options.update_snapshots)}
    # Only newer releases of syrupy know this option.
    if hasattr(options, "update_new_snapshots_only"):
        updates["update_new_snapshots_only"] = bool(options.update_new_snapshots_only)
    return updates


def is_transcript_stored(item: pytest.Item, name: str) -> bool:
    """Return whether the item of a scenario file has a stored transcript of that name."""
    return name in _read(_transcript_file(item.path))


def is_updating_snapshots(config: pytest.Config) -> bool:
    """Return whether this session stores transcripts."""
    options = config.option
    return any(getattr(options, name, False) for name in ("update_snapshots", "update_new_snapshots_only"))


def hide_from_other_extensions(config: pytest.Config) -> None:
    """Hide transcripts from other extensions of syrupy, which would report them as unused.

    Call it when the first scenario file is collected. It does nothing if syrupy's plugin is not active.
    """
    session = getattr(config, "_syrupy", None)
    ignored = list(getattr(config.option, "ignore_file_extensions", None) or ())
    if session is not None and SUFFIX not in ignored:
        # syrupy's session has a copy from its start, and its report reads the option.
        config.option.ignore_file_extensions = [*ignored, SUFFIX]
        session.ignore_file_extensions = [*ignored, SUFFIX]


def _mismatch_error(snapshot: SnapshotAssertion, transcript: Transcript, root: Path, remedy: str) -> TranscriptMismatch:
    result = snapshot.executions[0]
    where = show_file(Path(result.snapshot_location), root)
    name = result.snapshot_name
    if result.recalled_data is None:
        return TranscriptMismatch(name, where, None)
    stored = Transcript.parse(str(result.recalled_data))
    return TranscriptMismatch(name, where, stored.differences(transcript), remedy)


@cache
def _transcript_file(scenario: Path) -> Path:
    # Each variant of a scenario asks for it, some of them several times.
    return (
        scenario.absolute().parent / str(ScenarioTranscripts.snapshot_dirname) / f"{_scenario_stem(scenario)}.{SUFFIX}"
    )


# --- which transcripts nothing can use any more -----------------------------------------------------------------------


def _scenario_stem(scenario: Path) -> str:
    return scenario.name.partition(".")[0]


def _scenario_collectors(session: pytest.Session) -> dict[Path, Any]:
    """Return the collectors of the scenario files that have items in this session, by path."""
    parents = (item.parent for item in session.items)
    return {parent.path: parent for parent in parents if parent is not None and hasattr(parent, "transcripts")}


def _is_stale(path: Path, name: str, scenarios: Mapping[Path, Any]) -> bool:
    """Return whether a stored transcript has lost its scenario, or its scenario has no item for it."""
    scenario = path.parent.parent / f"{path.stem}.approval.yaml"
    if not scenario.exists():
        return True
    collector = scenarios.get(scenario)
    # Names of agents have no hyphen; the oracle, the store or the protocol follows the first one.
    names = collector.transcripts().get(name.partition("-")[0]) if collector is not None else None
    return names is not None and name not in names
