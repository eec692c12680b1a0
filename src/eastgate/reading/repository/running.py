"""Runs builds in copies of the files that they read, unless the cache has what comes out of these."""

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
    """What a part of an environment is when built. Without a text, nothing of it is.

    `unused` is the number of objects that nothing takes, for which it was not built.
    """

    text: BuiltText | None = None
    unused: int = 0
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, what: str, where: str, why: str, *, can_decide: bool = True, reason: str = "") -> None:
        """Add something that is left out."""
        self.left_out.append(LeftOut(what, where, why, can_decide, reason))


class Workshop:
    """What the builds of one run share: programs, unless none is to run, the cache, the files that they read.

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
        """Return what a program writes when it runs on a copy of a closure, from the cache if it is there."""
        key = self.key(closure, command, arguments)
        output = self.cached(key)
        if output is None:
            output = self.run(closure, command, arguments, variables)
            self.keep(key, output)
        return output

    def key(self, closure: BuildFiles, command: Sequence[str], arguments: Sequence[str]) -> str:
        """Return the key of what a program writes, over all that it reads."""
        return key_of([_identity(command[0]), *_encoded([*command[1:], *arguments]), b"", *closure.key()])

    def cached(self, key: str) -> ProgramOutput | None:
        """Return what is known of a key."""
        known = self._known.pop(key, None)
        if known is not None:
            return known
        entry = self.cache.get(key)
        return None if entry is None else _unpacked(entry)

    def keep(self, key: str, output: ProgramOutput, *, soon: bool = False) -> None:
        """Keep what a program wrote, if it would be the same again; `soon`: it is asked for in this run."""
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
        """Run a program on a copy of a closure. Of its arguments, those that begin with `//` are paths in the copy."""
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
    """Return the bounds of what an environment of a folder is built from: those of reading, and its repository."""
    return (bounds,) if bounds.folders is None else (bounds, around(os.path.join(root, "environment")))


def in_copy(path: str, closure: BuildFiles) -> str:
    """Return the argument that stands for a path of a closure."""
    return "//" + os.path.relpath(path, closure.root())


def _identity(program: str) -> bytes:
    """Return what tells a version of a program from others."""
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
