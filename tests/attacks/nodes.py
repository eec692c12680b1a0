"""Manifests in which one node is replaced by another: a null, a list, a mapping, a number, a text, a flag."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import ManifestError, Manifests, sort_documents
from eastgate.authority.sources.documents import document_of, relevant
from eastgate.authority.sources.needs import NeedIndex
from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.reports.lint import lint
from eastgate.reports.tables import read_tables
from eastgate.settings import Settings

__all__ = ["REPLACEMENTS", "UNREAD", "WORLDS", "Place", "World", "outcomes", "places", "replaced", "worlds_in"]

_ROOT = Path(__file__).parent.parent.parent
WORLDS = [
    *sorted((_ROOT / "conformance").rglob("*.yaml")),
    *sorted((_ROOT / "examples").rglob("*.test.yaml")),
]
"""The files with valid manifests and questions about them."""

REPLACEMENTS: tuple[Any, ...] = (
    *(None, True, 7, -1.5, "", "text", "*", "10.0.0.0/8"),
    *([], [None], ["text"], [7], [{}], [[]], {}, {"text": "text"}, {"text": None}, {"name": 7}),
)

_UNREAD: tuple[Any, ...] = (
    ("v1", "Pod", {"serviceAccountName": "web"}),
    (
        "k8s.cni.cncf.io/v1beta1",
        "MultiNetworkPolicy",
        {
            "podSelector": {"matchLabels": {"app": "web"}},
            "policyTypes": ["Ingress"],
            "ingress": [{}],
        },
    ),
    ("cilium.io/v2", "CiliumNetworkPolicy", {"endpointSelector": {"matchLabels": {"app": "web"}}, "ingress": [{}]}),
    (
        "networking.k8s.aws/v1alpha1",
        "ClusterNetworkPolicy",
        {
            "priority": 1,
            "subject": {
                "pods": {
                    "namespaceSelector": {},
                    "podSelector": {
                        "matchExpressions": [
                            {"key": "app", "operator": "In", "values": ["web"]},
                        ]
                    },
                }
            },
        },
    ),
    ("extensions.istio.io/v1", "WasmPlugin", {"selector": {"matchLabels": {"app": "web"}}}),
    ("networking.istio.io/v1", "EnvoyFilter", {"workloadSelector": {"labels": {"app": "web"}}}),
    (
        "gateway.kgateway.dev/v1alpha1",
        "TrafficPolicy",
        {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web", "namespace": "shop"},
                {"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}},
            ]
        },
    ),
    ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", {"targetRef": {"kind": "Gateway", "name": "web"}}),
    ("policies.example/v1", "SomePolicy", {"targetRef": {"kind": "Gateway", "name": "web"}}),
)

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class World:
    """The objects of a decision table, its settings, and a few of its questions."""

    name: str
    settings: Settings
    objects: list[Any]
    questions: tuple[Question, ...]


UNREAD: Final = World(
    "objects of kinds that are not read",
    Settings(),
    [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
        for version, kind, spec in _UNREAD
    ],
    (Question.of("sa:shop/web", "pod:shop/web"),),
)


@cache
def worlds_in(path: Path) -> list[World]:
    """Return the worlds of a file."""
    worlds = []
    for table in read_tables([path], Settings())[0]:
        written = table.objects.plain() if table.objects is not None else []
        assert isinstance(written, list)
        objects = [*written, *(document for file in table.manifests for document in _documents(Path(file)))]
        questions = tuple(case.question for case in (*table.cases[:2], *table.cases[-1:]))
        if objects:
            worlds.append(World(f"{path.relative_to(_ROOT)}: {table.name}", table.settings, objects, questions))
    return worlds


@cache
def _documents(path: Path) -> list[Any]:
    import yaml

    files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    return [json.loads(json.dumps(document, default=str)) for document in documents if isinstance(document, dict)]


def places(value: object, above: Place = ()) -> Iterator[Place]:
    """Yield the places of all nodes in a manifest."""
    yield above
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from places(entry, (*above, key))


def replaced(value: Any, place: Place, by: object) -> Any:
    """Return a manifest with the node at a place replaced."""
    if not place:
        return by
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], tuple(rest), by)}
    return [replaced(entry, tuple(rest), by) if number == key else entry for number, entry in enumerate(value)]


def outcomes(world: World, number: int, changed: Any) -> list[str]:
    """Read the manifest from a file and from a cluster, lint it and ask questions. Return all codes and messages."""
    objects = [changed if index == number else each for index, each in enumerate(world.objects)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1)
    reading = read_text("world.json", text, positioned=reads, namespace=world.settings.namespace)
    results = _decide(world, sort_documents(reading.documents, world.settings, reading.reporter, reading.twice))
    if _is_an_object(changed):
        served = [relevant(each) for each in objects if _is_an_object(each)]
        needs = NeedIndex(world.settings)
        for each in served:
            needs.put(each)
        documents = [document_of(each, world.settings.namespace) for each in served]
        results += _decide(world, sort_documents(documents, world.settings, Reporter()))
    return results


def _is_an_object(value: Any) -> bool:
    """Return whether an API server could have this object."""
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return False
    texts = (value.get("apiVersion"), value.get("kind"), value["metadata"].get("name"))
    namespace = value["metadata"].get("namespace")
    return all(isinstance(text, str) and text for text in texts) and isinstance(namespace, str | None)


def _decide(world: World, manifests: Manifests) -> list[str]:
    try:
        authority = Authority(manifests, world.settings, strict=False)
    except ManifestError as error:
        return [diagnostic.code.id for diagnostic in error.diagnostics]
    results = [finding.code.id for finding in lint(authority)]
    for question in world.questions:
        try:
            results.append(str(authority.decide(question).verdict))
        except QuestionError as error:
            results.append(str(error))
    return results
