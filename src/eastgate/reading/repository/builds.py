"""Builds the parts of environments: several at a time, and only those that the cache does not have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from eastgate.reading.manifests.files import Bounds
from eastgate.reading.manifests.objects import Matters
from eastgate.reading.repository.closure import FileCache
from eastgate.reading.repository.helm import build_chart, files_of_chart
from eastgate.reading.repository.kustomize import build_kustomization, files_of_kustomization
from eastgate.reading.repository.model import ChartRender, Environment, Files, KustomizeBuild, RepositoryOptions
from eastgate.reading.repository.running import Built, Workshop, bounds_of

if TYPE_CHECKING:
    from types import TracebackType

_MOST_AT_ONCE = 16

Buildable = KustomizeBuild | ChartRender
"""A part that a program builds."""


class Builds:
    """The builds of one run, each of which is started at once and has its result when it is asked for.

    With `takes`, what has only objects that it does not take is not built.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Buildable, Environment]],
        bounds: Bounds,
        takes: Matters | None = None,
    ) -> None:
        self._workshops: dict[tuple[str, str | None], Workshop] = {}
        self._bounds = bounds
        self._files = FileCache()
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_AT_ONCE), "build")
        self._results: dict[int, Future[Built]] = {}
        for part, environment in parts:
            workshop = self._workshop(environment)
            self._results[id(part)] = self._pool.submit(_build, part, workshop, environment.options, takes)

    def __enter__(self) -> Builds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        for workshop in self._workshops.values():
            workshop.cache.trim()

    def result(self, part: Buildable) -> Built:
        """Return what a part is when built. It is asked for once."""
        return self._results.pop(id(part)).result()

    def _workshop(self, environment: Environment) -> Workshop:
        root, helm, charts = environment.root, environment.options.helm, environment.charts
        key = root, helm
        if key not in self._workshops:
            self._workshops[key] = Workshop(bounds_of(root, self._bounds), self._files, helm, charts=charts)
        return self._workshops[key]


def files_of_environment(environment: Environment, bounds: Bounds) -> list[str]:
    """Return the files and folders that an environment is read from, also those that programs build it of."""
    limits = bounds_of(environment.root, bounds)
    workshop = Workshop(limits, FileCache(), charts=environment.charts, programs=False)
    found: dict[str, None] = {}
    for part in environment.parts:
        if isinstance(part, Files):
            found |= dict.fromkeys(part.paths)
        elif isinstance(part, KustomizeBuild):
            found |= dict.fromkeys([part.folder, *files_of_kustomization(part, workshop)])
        else:
            found |= dict.fromkeys([part.folder, *files_of_chart(part, workshop, environment.options)])
    return list(found)


def _build(part: Buildable, workshop: Workshop, options: RepositoryOptions, takes: Matters | None) -> Built:
    if isinstance(part, KustomizeBuild):
        return build_kustomization(part, workshop, takes)
    return build_chart(part, workshop, options)
