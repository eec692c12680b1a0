"""Converts documents to manifests."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from eastgate.authority.reading import Manifests, sort_reading
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import json_text
from eastgate.basics.records import brief, dataclass
from eastgate.cluster import World
from eastgate.convert import codes
from eastgate.convert.model import Item, Job, Manifest, Options, Written
from eastgate.convert.registry import KINDS, converters_to, pass_on
from eastgate.dialects import Policy
from eastgate.reading.manifests import Document, ReadResult
from eastgate.reading.manifests.heads import PrintableDumper
from eastgate.settings import Settings

# Renders manifests as readable text that is the same in each run.


class _Dumper(PrintableDumper):
    """A YAML dumper that indents lists under their key and writes no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - always indented
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - of any data
        return True


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """Return YAML documents with keys in insertion order."""
    return "---\n".join(
        yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120) for manifest in manifests
    )


def as_json(manifests: Sequence[Manifest]) -> str:
    """Return a List, as kubectl accepts it."""
    return json_text({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The manifests in the order of their sources, the losses, and the policies that were not converted.

    `passed_on` counts the manifests that had the target form before.
    """

    written: tuple[Written, ...]
    losses: tuple[Diagnostic, ...]
    kept: tuple[Document, ...]
    passed_on: int = 0

    def __repr__(self) -> str:
        return brief(self, f"written={len(self.written)} losses={len(self.losses)} kept={len(self.kept)}")

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was converted."""
        return len(self.written) == self.passed_on

    @property
    def manifests(self) -> list[Manifest]:
        """Return the manifests without their sources."""
        return [converted.manifest for converted in self.written]


def convert(
    reading: ReadResult, to: str, settings: Settings, options: Options | None = None
) -> tuple[Manifests, Conversion]:
    """Convert the policies that were read. If manifests have errors (see the first result), nothing is converted."""
    manifests = sort_reading(reading, settings)
    if manifests.reporter.errors:
        return manifests, Conversion((), (), ())
    items = _items(manifests.policies, reading.documents, settings.namespace)
    world = World.of(manifests.objects)
    return manifests, convert_policies(items, to, world, settings, options, order=reading.documents)


def convert_policies(
    items: Sequence[Item],
    to: str,
    world: World,
    settings: Settings,
    options: Options | None = None,
    *,
    order: Sequence[Document] | None = None,
) -> Conversion:
    """Convert policies. The results have the order of the documents of `order`, by default that of the policies."""
    job = Job(settings, world, options or Options(), items)
    passed_on = _run(items, to, job)
    documents = [item.document for item in items] if order is None else order
    places = {id(document): number for number, document in enumerate(documents)}
    return Conversion(
        tuple(sorted(job.written, key=lambda converted: places[id(converted.document)])),
        tuple(sorted(job.losses, key=_position)),
        tuple(sorted(job.kept, key=lambda document: places[id(document)])),
        passed_on,
    )


def _run(items: Sequence[Item], to: str, job: Job) -> int:
    """Convert policies, and return how many had the target form before."""
    kind = KINDS[to]
    own = [item for item in items if kind.is_own(item)]
    others = [item for item in items if not kind.is_own(item)]
    for item in own:
        for name in (item.document.kind, f"{item.document.kind}.{item.document.group}"):
            job.reserve(name, item.policy.ref.namespace or "default", item.document.name)
    pass_on(own, job)
    passed_on = len(job.written)
    converters = converters_to(to)
    for model, way in converters:
        if chosen := [item for item in others if isinstance(item.policy, model)]:
            way(chosen, job)
    models = tuple(model for model, _ in converters)
    for item in others:
        if not isinstance(item.policy, models):
            message = f"{item.policy.ref} cannot be converted to {to}"
            job.keep(item.document, codes.NO_CONVERSION, message, item.document.locate("kind"))
    return passed_on


def _items(policies: Sequence[Policy], documents: Sequence[Document], namespace: str) -> list[Item]:
    by_name = {(document.group, document.kind, document.home, document.name): document for document in documents}
    items = []
    for policy in policies:
        ref = policy.ref
        items.append(Item(policy, by_name[(ref.group, ref.kind, ref.namespace or namespace, ref.name)]))
    return items


def _position(loss: Diagnostic) -> tuple[str, int, int]:
    return (loss.span.file, loss.span.line, loss.span.column) if loss.span is not None else ("", 0, 0)
