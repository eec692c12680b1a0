"""Builds the parts of environments: several at a time, and only those that are not in the cache."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from eastgate.reading.manifests.files import Bounds
from eastgate.reading.manifests.objects import Matters
from eastgate.reading.repository.batches import batches_of, build_batch
from eastgate.reading.repository.closure import BuildTooLargeError, FileCache
from eastgate.reading.repository.helm import build_chart, files_of_chart
from eastgate.reading.repository.kustomize import KustomizationBuild
from eastgate.reading.repository.model import ChartRender, Environment, Files, KustomizeBuild
from eastgate.reading.repository.running import BuildContext, Built, bounds_of

_MAX_CONCURRENT_PROGRAMS = 16

Buildable = KustomizeBuild | ChartRender
"""A part that a program builds."""


class Builds:
    """The builds of one run. The programs run in parallel. Each result is made when it is requested.

    With `takes`, a part whose objects are all unused is not built.
    """

    def __init__(
        self, parts: Sequence[tuple[Buildable, Environment]], bounds: Bounds, takes: Matters | None = None
    ) -> None:
        self.bounds = bounds
        self.takes = takes
        self._parts = parts  # kept, because the builds are identified by `id`
        self._files = FileCache()
        self._contexts: dict[tuple[str, str | None], BuildContext] = {}
        self._results: dict[int, Callable[[], Built]] = {}
        self._run()

    def result(self, part: Buildable, environment: Environment) -> Built:
        """Return the result of a part. It is kept for its first reader."""
        made = self._results.pop(id(part), None)
        if made is not None:
            return made()
        return Builds([(part, environment)], self.bounds, self.takes).result(part, environment)

    def _run(self) -> None:
        pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_CONCURRENT_PROGRAMS), "build")
        try:
            builds: dict[BuildContext, list[KustomizationBuild]] = {}
            for part, environment in self._parts:
                context = self._context(environment)
                if isinstance(part, ChartRender):
                    future = pool.submit(build_chart, part, context, environment.options)
                    self._results[id(part)] = future.result
                else:
                    build = KustomizationBuild(part, context, self.takes)
                    self._results[id(part)] = build.finish
                    if build.prepare():
                        builds.setdefault(context, []).append(build)
            for context, waiting in builds.items():
                list(pool.map(partial(build_batch, context=context), batches_of(waiting)))
                list(pool.map(KustomizationBuild.run, waiting))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        pool.shutdown()
        for context in self._contexts.values():
            context.cache.trim()

    def _context(self, environment: Environment) -> BuildContext:
        root, helm = environment.root, environment.options.helm
        if (root, helm) not in self._contexts:
            bounds = bounds_of(root, self.bounds)
            self._contexts[root, helm] = BuildContext(bounds, self._files, helm, charts=environment.charts)
        return self._contexts[root, helm]


class SharedBuilds:
    """The builds of several environments. All of them run when the first environment is read.

    Files must not change meanwhile: this is for one run of a command.
    """

    def __init__(self) -> None:
        self.environments: list[Environment] = []
        self._builds: Builds | None = None

    def of(self, bounds: Bounds, takes: Matters | None) -> Builds:
        """Return the builds of all environments."""
        if self._builds is None or (self._builds.bounds, self._builds.takes) != (bounds, takes):
            parts = [(part, each) for each in self.environments for part in each.parts if not isinstance(part, Files)]
            self._builds = Builds(parts, bounds, takes)
        return self._builds


def share(environments: Iterable[Environment]) -> dict[int, Environment]:
    """Return environments whose builds run together, by the `id` of each given environment."""
    shared = SharedBuilds()
    sharing = {id(environment): replace(environment, shared=shared) for environment in environments}
    shared.environments += sharing.values()
    return sharing


def builds_of(parts: Sequence[tuple[Buildable, Environment]], bounds: Bounds, takes: Matters | None) -> Builds:
    """Return the builds of some parts, together with those of other environments if they are read too."""
    shared = {id(environment.shared): environment.shared for _, environment in parts}
    only = shared.popitem()[1] if len(shared) == 1 else None
    return only.of(bounds, takes) if only is not None else Builds(parts, bounds, takes)


def files_of_environment(environment: Environment, bounds: Bounds) -> list[str]:
    """Return the files and folders of an environment, including those that programs read."""
    limits = bounds_of(environment.root, bounds)
    context = BuildContext(limits, FileCache(), charts=environment.charts, programs=False)
    found: dict[str, None] = {}
    for part in environment.parts:
        if isinstance(part, Files):
            found |= dict.fromkeys(part.paths)
        elif isinstance(part, KustomizeBuild):
            found |= dict.fromkeys([part.folder, *_files_of_kustomization(part, context)])
        else:
            found |= dict.fromkeys([part.folder, *files_of_chart(part, context, environment.options)])
    return list(found)


def _files_of_kustomization(part: KustomizeBuild, context: BuildContext) -> list[str]:
    """Return the files that a kustomization is built from, and the folders of its charts."""
    build = KustomizationBuild(part, context)
    with contextlib.suppress(BuildTooLargeError):
        build.collect()
    return [*(file.name for file in build.closure.files.values()), *build.charts]
