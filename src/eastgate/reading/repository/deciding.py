"""Parts of a kustomization that need no build, because they decide nothing: all of it, or the bodies of CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.objects import Matters
from eastgate.reading.manifests.templates import is_template
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.declarations import entries, mapping
from eastgate.reading.repository.written import DEFINITION, WrittenFile

GENERATED: Final = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}
"""The fields of generators, and the kinds that they generate."""
PLUGINS: Final = frozenset({"generators", "transformers", "validators"})
"""Fields of plugins, which may do anything."""
RESOURCES: Final = ("resources", "bases")
_OPAQUE = PLUGINS | {"replacements", "vars"}  # fields that may make any object, or change its kind
_SCHEMAS = PLUGINS | {"crds", "openapi"}  # fields that may read the schema in a CRD
_CHANGE_KIND = (b"allowKindChange", b"/kind", b"/apiVersion", b"local-config")

Values = Sequence[Mapping[str, Plain]]
"""The contents of the kustomizations of a build."""


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """A file that a kustomization includes: the field that names it, and the real path of the folder."""

    file: WrittenFile
    field: str
    folder: str


def count_unused(values: Values, closure: BuildFiles, taken: Sequence[IncludedFile], takes: Matters) -> int | None:
    """Return the number of objects of a build if all are unused; None if one may be used."""
    keys = {key for value in values for key in value}
    generated = {kind for key, kind in GENERATED.items() if key in keys}
    if keys & _OPAQUE or any(takes("v1", kind) for kind in generated):
        return None
    if any(word in file.content for file in closure.files.values() for word in _CHANGE_KIND):
        return None
    count = len(generated)
    for part in taken:
        types = part.file.types if part.field in RESOURCES else None
        if types is None or any(takes(*type_) or is_template(*type_) for type_ in types):
            return None
        count += len(types)
    return count


def short_definitions(values: Values, closure: BuildFiles) -> dict[str, bytes]:
    """Return the files with CRDs without their schemas, if no part of the build can read the schemas."""
    if any(not _SCHEMAS.isdisjoint(value) for value in values):
        return {}
    patched = [name.encode() for value in values for name in _patched_definitions(value)]
    return {
        path: file.short
        for path, file in closure.files.items()
        if file.short is not file.content
        and path not in closure.replaced
        and not any(name in file.content for name in patched)
    }


def _patched_definitions(kustomization: Mapping[str, Plain]) -> Iterator[str]:
    """Yield the names of CRDs that patches target, if the patches name one."""
    for key in ("patches", "patchesJson6902"):
        for entry in entries(kustomization.get(key)):
            target = mapping(mapping(entry).get("target"))
            name = target.get("name")
            if target.get("kind") == DEFINITION and isinstance(name, str):
                yield name
