"""Real Istio as an oracle: istiod's code configures real Envoys, which answer the questions of decision tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.istio.ambient import AmbientPlacement, waypoints
from tests.istio.authorizers import Authorizers
from tests.istio.callers import endpoint_slices, proxy_of_caller
from tests.istio.client import Client, Reply
from tests.istio.cluster import Addresses, Cluster, complete
from tests.istio.envoy import Envoy, EnvoyFailed, cluster_on_loopback
from tests.istio.identities import TestCa
from tests.istio.istiod import Istiod
from tests.istio.judging import Answer, judge, together, unanswerable, unprotected
from tests.istio.listeners import Config, authorizer_clusters, with_own_clusters
from tests.istio.placing import Placed, Steps
from tests.istio.protocols import detect_protocols
from tests.istio.proxies import ProxyPlacement
from tests.istio.questions import Destination, Unanswerable, destination_of, request_of
from tests.istio.tables import DecisionTable, Manifest

_MOST_TABLES = 40  # tables in one Envoy


@dataclass
class Answers:
    """Istio's answers to a table: an answer for each case, and the policies that it rejects, with the reasons."""

    table: DecisionTable
    cases: list[Answer]
    rejections: dict[str, list[str]]


@dataclass
class _Asked:
    """A table during its processing by the oracle."""

    table: DecisionTable
    answers: list[Answer | None]
    rejections: dict[str, list[str]] = field(default_factory=dict)
    placed: Placed = field(default_factory=Placed)


class Oracle:
    """Answers tables. Needs its own network namespace, in which every address is local."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = TestCa(folder)
        self._client = Client(self._ca)
        self._addresses = Addresses()
        self._istiod = Istiod(folder)
        self._ambient_istiod = Istiod(folder, ambient=True)
        self._authorizers = Authorizers()

    def __enter__(self) -> Self:
        self._authorizers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._istiod.stop()
        self._ambient_istiod.stop()
        self._authorizers.__exit__(kind, error, trace)

    def answer(self, tables: Iterable[DecisionTable]) -> Iterator[Answers]:
        """Answer tables, many of them with one Envoy, in any order."""
        batch: list[_Asked] = []
        taken: set[tuple[str, int]] = set()
        folder = self._new_folder()
        for table in tables:
            asked = self._configure(table, folder)
            if batch and (len(batch) == _MOST_TABLES or taken & asked.placed.listeners.keys()):
                yield from self._ask(batch, folder)
                batch, taken, folder = [], set(), self._new_folder()
                asked = self._configure(table, folder)
            batch.append(asked)
            taken |= asked.placed.listeners.keys()
        yield from self._ask(batch, folder)

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder, prefix="envoy-"))

    def _configure(self, table: DecisionTable, folder: Path) -> _Asked:
        """Ask istiod for the proxies in the questions of a table."""
        cluster = complete(table, self._addresses)
        answers: list[Answer | None] = [None] * len(table.cases)
        destinations: dict[int, Destination] = {}
        for number, case in enumerate(table.cases):
            try:
                destination = destination_of(case, cluster)
                if destination.kind == "none":
                    answers[number] = unprotected()
                else:
                    destinations[number] = destination
            except Unanswerable as why:
                answers[number] = unanswerable(str(why))
        of_bytes = [number for number in destinations if request_of(table.cases[number], cluster) is None]
        detect_protocols([destinations[number] for number in of_bytes], cluster)
        asked = _Asked(table, answers)
        called = {number: each for number, each in destinations.items() if each.kind == "ambient"}
        callers = [proxy_of_caller(table.cases[number], cluster) for number in called]
        configured = self._ask_istiod(cluster, destinations.values(), [each for each in callers if each is not None])
        asked.rejections = configured["rejections"]
        if "error" in configured:
            asked.answers = [each or unanswerable(f"istiod: {configured['error']}") for each in answers]
            return asked
        proxies = ProxyPlacement(cluster, configured, self._ca, folder)
        ambient = AmbientPlacement(cluster, configured, self._ca, folder)
        for number, destination in destinations.items():
            placement = ambient if destination.kind == "ambient" else proxies
            try:
                asked.placed.steps[number] = placement.place(asked.placed, table.cases[number], destination)
            except Unanswerable as why:
                answers[number] = unanswerable(str(why))
        return asked

    def _ask_istiod(
        self, cluster: Cluster, destinations: Iterable[Destination], callers: Sequence[Manifest]
    ) -> dict[str, Any]:
        kinds = {pod: each.kind for each in destinations for pod in each.pods}
        proxies = {pod: kind for pod, kind in kinds.items() if kind != "ambient"}
        is_ambient = "ambient" in kinds.values()
        if is_ambient:
            proxies |= dict.fromkeys(waypoints(cluster), "waypoint")
        istiod = self._ambient_istiod if is_ambient else self._istiod
        wanted = [cluster.proxy(cluster.pods[pod], kind) for pod, kind in proxies.items()]
        if callers:
            cluster.objects += endpoint_slices(cluster)
        return istiod.ask(cluster.question(wanted, callers=callers, ambient=is_ambient))

    def _ask(self, batch: Sequence[_Asked], folder: Path) -> Iterator[Answers]:
        """Ask one Envoy all questions. If it does not start, ask for each table separately."""
        listeners: list[Config] = []
        clusters: list[Config] = []
        for number, asked in enumerate(batch):
            own = with_own_clusters(list(asked.placed.listeners.values()), prefix=f"{number}|")
            listeners += own
            clusters += self._clusters(own, asked.table)
        try:
            with Envoy(folder, listeners, clusters) as envoy:
                passed = [{case: self._pass(steps) for case, steps in each.placed.steps.items()} for each in batch]
                callers = {
                    each.local
                    for cases in passed
                    for points in cases.values()
                    for each in points
                    if isinstance(each, Reply)
                }
                records = envoy.records(callers)
        except EnvoyFailed as error:
            yield from self._ask_alone(batch, error)
            return
        for asked, cases in zip(batch, passed, strict=True):
            for case, points in cases.items():
                asked.answers[case] = together([_judged(point, records) for point in points])
        yield from map(_finished, batch)

    def _pass(self, steps: Steps) -> list[Reply | Answer]:
        """Pass all enforcement points of a question, in order."""
        return [*map(self._client.send, steps.calls), *steps.answers]

    def _ask_alone(self, batch: Sequence[_Asked], error: EnvoyFailed) -> Iterator[Answers]:
        if len(batch) == 1:
            batch[0].answers = [each or unanswerable(f"Envoy: {error}") for each in batch[0].answers]
            yield _finished(batch[0])
            return
        for asked in batch:
            folder = self._new_folder()
            yield from self._ask([self._configure(asked.table, folder)], folder)

    def _clusters(self, listeners: list[Config], table: DecisionTable) -> Iterator[Config]:
        for name, by_grpc in authorizer_clusters(listeners).items():
            port = self._authorizers.port(_verdict(name, table), by_grpc=by_grpc)
            yield cluster_on_loopback(name, port, by_grpc=by_grpc)


def _verdict(cluster: str, table: DecisionTable) -> str:
    """Return the answer that an authorizer must give. Its cluster is named number|outbound|PORT||HOST."""
    parts = cluster.split("|")
    if len(parts) != 5:
        return "error"
    port, host = parts[2], parts[4]
    short = ".".join(host.split(".")[:2])
    given: dict[str, Any] = {**table.external_auth}
    return str(given.get(f"{short}:{port}") or given.get(f"{host}:{port}") or "error")


def _judged(point: Reply | Answer, records: Mapping[str, list[Config]]) -> Answer:
    return judge(point, records.get(point.local, ())) if isinstance(point, Reply) else point


def _finished(asked: _Asked) -> Answers:
    cases = [each or unanswerable("it was not asked") for each in asked.answers]
    return Answers(asked.table, cases, asked.rejections)
