"""Files in the form of a kubelet: versions in separate folders, behind a symbolic link that is replaced atomically."""

from __future__ import annotations

import itertools
from pathlib import Path

_VERSIONS = itertools.count()


def write_volume(folder: Path, files: dict[str, str]) -> None:
    """Write or replace all files of a volume."""
    folder.mkdir(parents=True, exist_ok=True)
    version = folder / f"..version-{next(_VERSIONS)}"
    version.mkdir()
    for name, text in files.items():
        (version / name).write_text(text, encoding="utf-8")
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data", name))
    link = folder / "..data_tmp"
    link.symlink_to(version.name)
    link.replace(folder / "..data")
