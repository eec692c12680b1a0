"""The simplest kind of repository: each of its folders is an environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Bounds
from eastgate.reading.repository import EntryKind, Environment, Files, LeftOut, RepositoryOptions


def one_for_each_folder(
    paths: Iterable[str | os.PathLike[str]],
    _bounds: Bounds,
    _reporter: Reporter,
    _options: RepositoryOptions,
    *_alike: object,
) -> list[Environment]:
    """Find an environment in each folder of a path, as the real function does for overlays."""
    return [environment for path in paths for environment in _environments(Path(path))]


def _environments(root: Path) -> Iterator[Environment]:
    folders = sorted(path for path in root.iterdir() if path.is_dir()) or [root]
    for folder in folders:
        files = tuple(str(path) for path in sorted(folder.glob("*.yaml")))
        missing = (LeftOut("chart redis", str(folder), "it needs the network"),) if (folder / "redis").exists() else ()
        yield Environment(folder.name, EntryKind.FOLDER, str(root), str(folder), (Files(files),), None, missing)
