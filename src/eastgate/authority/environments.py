"""The environments in folders, and the choice among them.

Folders are searched for environments. A folder without environments is part of every environment, and so is every other
path: a file, standard input, a kustomization of `-k`, a cluster. Environments of one name in two folders are one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from eastgate.authority.duplicates import agree
from eastgate.authority.leaving_out import part_of
from eastgate.authority.reading import DocumentSource, ManifestError
from eastgate.basics.diagnostics import Code, Diagnostic, Reporter, did_you_mean
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import brief, dataclass
from eastgate.reading.manifests import Bounds, Kustomized
from eastgate.reading.manifests.files import STDIN

if TYPE_CHECKING:
    from eastgate.reading.repository import Environment, RepositoryOptions

NO_ENVIRONMENT = Code(
    "EG0402",
    "environment not found",
    "No environment of the folders that are read has this name. `eastgate get environments -f PATH` lists the names.",
)
SEVERAL_ENVIRONMENTS = Code(
    "EG0403",
    "several environments",
    "The folder deploys to several environments, and the question is about one. Choose it with "
    '`--environment NAME`, or in Python with `environment="NAME"`.',
)

Path = str | os.PathLike[str]
_MAX_NAMES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A set of paths that is read together, with environments in the place of their folders.

    `name` is None without environments: the paths are read as they are. `environments` are those found in the folders.
    """

    name: str | None
    paths: tuple[Path, ...]
    environments: tuple[Environment, ...] = ()

    def __repr__(self) -> str:
        return brief(self, self.name or "")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names by which the deployment can be chosen: its own, or those of the environments in it."""
        return (self.name,) if self.name is not None else tuple(each.name for each in self.environments)


def deployments(
    paths: Iterable[Path],
    bounds: Bounds,
    patterns: Sequence[str] = (),
    options: RepositoryOptions | None = None,
    reporter: Reporter | None = None,
) -> list[Deployment]:
    """Return the deployments that the paths hold. With patterns, return those that match.

    Errors in the files that declare environments go to `reporter`. Raises ManifestError if a pattern matches none.
    """
    given = tuple(paths)
    found = _find(given, bounds, options, Reporter() if reporter is None else reporter)
    several = [each for environments in found.values() if len(environments) > 1 for each in environments]
    if several:
        names = dict.fromkeys(environment.name for environment in several)
        return _sharing(chosen([_deployment(name, given, found) for name in names], patterns))
    whole = tuple(_whole(path, found) for path in given)
    only = Deployment(None, whole, tuple(each for environments in found.values() for each in environments))
    return chosen([only], patterns)


def chosen(found: Sequence[Deployment], patterns: Sequence[str]) -> list[Deployment]:
    """Return the deployments whose names match a pattern; all without patterns. Raises ManifestError."""
    if not patterns:
        return list(found)
    names = {deployment: deployment.names for deployment in found}
    matched = _matching(patterns, [name for each in names.values() for name in each])
    return [deployment for deployment in found if matched & {*names[deployment]}]


def _sharing(deployments: list[Deployment]) -> list[Deployment]:
    """Return several deployments that share the builds of their environments."""
    if len(deployments) == 1:
        return deployments  # files may have changed, and are read again
    from eastgate.reading.repository.builds import share

    shared = share([environment for each in deployments for environment in each.environments])
    return [
        Deployment(
            each.name,
            tuple(shared.get(id(path), path) for path in each.paths),
            tuple(shared[id(environment)] for environment in each.environments),
        )
        for each in deployments
    ]


def _deployment(name: str, paths: Sequence[Path], found: dict[Path, list[Environment]]) -> Deployment:
    """Return one of several deployments: the environments of this name, and the paths that belong to all."""
    read: list[Path] = []
    environments: list[Environment] = []
    for path in paths:
        there = found.get(path, [])
        named = [each for each in there if each.name == name] if len(there) > 1 else there
        read += named if len(there) > 1 else [_whole(path, found)]
        environments += named
    return Deployment(name, tuple(read), tuple(environments))


def only_deployment(
    paths: Iterable[Path],
    bounds: Bounds,
    patterns: Sequence[str] = (),
    options: RepositoryOptions | None = None,
    *,
    way_out: Callable[[str], str] = lambda name: f"choose one: --environment {name}",
) -> Deployment:
    """Return the only deployment that paths hold, or that the patterns match.

    Raises ManifestError if there are several, or none with such a name.
    """
    found = deployments(paths, bounds, patterns, options)
    if len(found) > 1:
        raise ManifestError([several_environments([each.name or "" for each in found], way_out)])
    return found[0]


def several_environments(names: Sequence[str], way_out: Callable[[str], str]) -> Diagnostic:
    """Return the diagnostic that lists the environments and asks the user to choose one."""
    shown = ", ".join(map(printable, names[:_MAX_NAMES]))
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    message = f"there are {len(names)} environments: {shown}{more}"
    return Diagnostic(SEVERAL_ENVIRONMENTS, message, None, way_out(printable(names[0])))


def _find(
    paths: Sequence[Path], bounds: Bounds, options: RepositoryOptions | None, reporter: Reporter
) -> dict[Path, list[Environment]]:
    """Return the environments of each path that is a folder."""
    folders = [path for path in paths if _is_folder(path)]
    if not folders:
        return {}
    from eastgate.reading.repository import Environment, RepositoryOptions, find_environments  # files have none

    found = {}
    for folder in folders:
        if not isinstance(folder, Environment):
            findings = Reporter()
            there = find_environments([folder], bounds, findings, options or RepositoryOptions(), agree)
            reporter.diagnostics += [finding for finding in findings if not finding.is_error]
            # A folder that is read as a whole reports its errors itself
            found[folder] = there if _is_its_folder(there) else [_without(each, findings.errors) for each in there]
    return found


def _without(environment: Environment, errors: Sequence[Diagnostic]) -> Environment:
    """Return an environment without those parts of its folder that cannot be read: they may belong to it."""
    if not errors:
        return environment
    return replace(environment, left_out=(*environment.left_out, *(part_of([error]) for error in errors)))


def _is_folder(path: Path) -> bool:
    return not isinstance(path, Kustomized | DocumentSource) and os.fspath(path) != STDIN and os.path.isdir(path)


def _whole(path: Path, found: dict[Path, list[Environment]]) -> Path:
    """Return the source to read for a path that holds one environment: the folder itself if that is the same."""
    environments = found.get(path, [])
    return path if len(environments) != 1 or _is_its_folder(environments) else environments[0]


def _is_its_folder(environments: Sequence[Environment]) -> bool:
    """Return whether a folder has one environment of manifests, and nothing beside it."""
    from eastgate.reading.repository import EntryKind

    only = environments[0] if len(environments) == 1 else None
    return only is not None and only.kind is EntryKind.FOLDER and not only.left_out and not only.undeployed.files


def _matching(patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """Return the names that match a pattern. Raises ManifestError for a pattern that matches no name."""
    matched: set[str] = set()
    errors = []
    for pattern in patterns:
        of_this = {pattern} & {*names} or {name for name in names if fnmatchcase(name, pattern)}
        if not of_this:
            errors.append(_not_there(pattern, names))
        matched |= of_this
    if errors:
        raise ManifestError(errors)
    return matched


def _not_there(pattern: str, names: Sequence[str]) -> Diagnostic:
    near = did_you_mean(pattern, names)
    shown = ", ".join(map(printable, names[:_MAX_NAMES])) + (", .." if len(names) > _MAX_NAMES else "")
    help_ = f"did you mean {near}?" if near else f"write {shown}" if names else "environments are those of folders"
    return Diagnostic(NO_ENVIRONMENT, f"there is no environment `{printable(pattern)}`", None, help_)
