"""Build hook that packs the catalogue and the causes into the wheel; an editable installation reads the checkout."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hook that adds the scenarios to standard wheels, as one file, and the causes of each adapter as another one.

    Each start of pytest reads the list of all files of every distribution with a plugin; 700 scenarios and files of
    transcripts, and 200 causes, there would cost each of them more than the plugin does.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the scenarios and the causes to what is built.

        Args:
            version: `standard` or `editable`.
            build_data: What the builder will do; changed in place.
        """
        if version == "standard":
            root, archives = Path(self.root), Path(mkdtemp())
            packed = {root / "scenarios": "pytest_approvals/catalogue.zip"}
            for folder in root.glob("pytest_approvals/agent_side/adapters/*/causes"):
                packed[folder] = f"{folder.relative_to(root).as_posix()}.zip"
            for folder, target in packed.items():
                archive = archives / target.replace("/", "-")
                write_archive(folder, archive)
                build_data["force_include"][str(archive)] = target


def write_archive(folder: Path, archive: Path) -> None:
    """Write the files of *folder* into an archive, which is the same for the same files."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = ZipInfo(path.relative_to(folder).as_posix())
                entry.compress_type = ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                file.writestr(entry, path.read_bytes())
