"""Runs builds in copies of their input files, unless the cache has the output."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.files import Bounds, around
from eastgate.reading.manifests.rendering import ProgramOutput, find_kustomize, run
from eastgate.reading.repository.cache import BuildCache, key_of
from eastgate.reading.repository.closure import BuildFiles, FileCache, Paths
from eastgate.reading.repository.model import LeftOut
from eastgate.reading.repository.origins import BuiltText

_COPY = "files"


@dataclass(slots=True)
class Built:
    """The result of building a part of an environment. Without a text, the part is left out.

    `unused` is the number of its unused objects, if it was not built because all are unused.
    """

    text: BuiltText | None = None
    unused: int = 0
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, what: str, where: str, why: str, *, can_decide: bool = True, reason: str = "") -> None:
        """Add an omitted part."""
        self.left_out.append(LeftOut(what, where, why, can_decide, reason))


class BuildContext:
    """The shared parts of the builds of one run: programs, unless none may run, the cache, the input files.

    `charts` are the folders of the charts of the repository.
    """

    def __init__(
        self,
        bounds: tuple[Bounds, ...],
        files: FileCache,
        helm: str | None = None,
        *,
        charts: tuple[str, ...] = (),
        programs: bool = True,
    ) -> None:
        self.paths = Paths(bounds)
        self.files = files
        self.charts = charts
        self.cache = BuildCache.of_user() if programs else BuildCache(None)
        self.kustomize = find_kustomize() if programs else None
        self.helm = shutil.which(helm or "helm") if programs else None
        self._known: dict[str, ProgramOutput] = {}

    def output(
        self,
        closure: BuildFiles,
        command: Sequence[str],
        arguments: Sequence[str],
        variables: Mapping[str, str] | None = None,
    ) -> ProgramOutput:
        """Return the output of a program for a copy of these files, from the cache if it is there."""
        key = self.key(closure, command, arguments)
        output = self.cached(key)
        if output is None:
            output = self.run(closure, command, arguments, variables)
            self.keep(key, output)
        return output

    def key(self, closure: BuildFiles, command: Sequence[str], arguments: Sequence[str]) -> str:
        """Return the key of the output of a program, over all of its input."""
        return key_of([_identity(command[0]), *_encoded([*command[1:], *arguments]), b"", *closure.key()])

    def cached(self, key: str) -> ProgramOutput | None:
        """Return the cached output for a key."""
        known = self._known.pop(key, None)
        if known is not None:
            return known
        entry = self.cache.get(key)
        return None if entry is None else _unpacked(entry)

    def keep(self, key: str, output: ProgramOutput, *, soon: bool = False) -> None:
        """Keep the output of a program, if another run would give the same; `soon`: it will be requested in
        this run.
        """
        if soon:
            self._known[key] = output
        if output.is_final:
            self.cache.put(key, _packed(output))

    def run(
        self,
        closure: BuildFiles,
        command: Sequence[str],
        arguments: Sequence[str],
        variables: Mapping[str, str] | None = None,
    ) -> ProgramOutput:
        """Run a program on a copy of files. Arguments that begin with `//` are paths in the copy."""
        with tempfile.TemporaryDirectory(prefix="eastgate-") as folder:
            copy = os.path.join(os.path.realpath(folder), _COPY)
            closure.copy(copy)
            given = [os.path.join(copy, word[2:]) if word.startswith("//") else word for word in arguments]
            output = run([*command, *given], variables)
        if output.problem is None:
            return output
        problem = output.problem.replace(f"{copy}{os.sep}", "").replace(copy, ".").replace(folder, "..")
        return ProgramOutput(output.content, problem, output.is_final)


def bounds_of(root: str, bounds: Bounds) -> tuple[Bounds, ...]:
    """Return the bounds of the builds of an environment: the bounds of reading, and its repository."""
    return (bounds,) if bounds.folders is None else (bounds, around(os.path.join(root, "environment")))


def in_copy(path: str, closure: BuildFiles) -> str:
    """Return the argument for a path in the copy."""
    return "//" + os.path.relpath(path, closure.root())


def _identity(program: str) -> bytes:
    """Return a key that identifies a version of a program."""
    try:
        status = os.stat(program)
    except OSError:
        return os.fsencode(program)
    return os.fsencode(f"{program} {status.st_size} {status.st_mtime_ns} {status.st_ino}")


def _encoded(words: Sequence[str]) -> list[bytes]:
    return [os.fsencode(word) for word in words]


def _packed(output: ProgramOutput) -> bytes:
    return json.dumps(output.problem).encode() + b"\n" + output.content


def _unpacked(entry: bytes) -> ProgramOutput:
    head, _, content = entry.partition(b"\n")
    return ProgramOutput(content, json.loads(head))
