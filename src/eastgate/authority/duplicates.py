"""The same object twice: whether its copies agree, and the fields in which they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TypeAlias, cast

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.cluster import Gateway, Manifest, MeshGateway, Namespace, Pod, WorldObject, interpret, may_install
from eastgate.cluster.pods import Controller
from eastgate.reading.manifests import Document, Plain, read_text
from eastgate.reading.manifests.document import content_of

Path: TypeAlias = tuple[str | int, ...]

_MAX_PATHS = 100  # differing fields that are tried
_MAX_NAMED_FIELDS = 2


def difference(first: Document, second: Document) -> str | None:
    """Return the fields in which two documents of one object differ; None if they agree.

    A field that Eastgate does not read makes no difference. The fields are empty if they cannot be determined.
    """
    if dialects.unread(first) is not None or dialects.unread(second) is not None:
        same = _policy(first) == _policy(second)
    elif first.data is None or second.data is None:
        same = first.api_version == second.api_version and _policy(first) == _policy(second)
        if not same:
            return _named(islice(_paths(_policy(first), _policy(second)), _MAX_NAMED_FIELDS))
    else:
        return _difference_of_objects(first, second)
    return None if same else ""


def deciding(
    twice: Iterable[tuple[Document, Diagnostic]],
    objects: Iterable[WorldObject],
    policies: Iterable[dialects.Policy],
    reporter: Reporter,
) -> list[tuple[Document, Diagnostic]]:
    """Return the objects written twice that can change an answer. A Secret counts only if a policy reads Secrets.

    The errors about other objects are removed.
    """
    several = list(twice)
    if any(isinstance(each, Gateway | MeshGateway) for each in objects):
        return several
    if any(dialects.dialect_of(policy).reads_secrets for policy in policies):
        return several
    taken_back = {id(error) for document, error in several if (document.group, document.kind) == ("", "Secret")}
    reporter.diagnostics[:] = [each for each in reporter if id(each) not in taken_back]
    return [(document, error) for document, error in several if id(error) not in taken_back]


def agree(first: str, second: str) -> bool:
    """Return whether two texts, each of one object, agree. A text with errors agrees with none.

    Objects of a kind that decides nothing always agree.
    """
    one, other = (read_text("", text, positioned=dialects.reads, matters=dialects.matters) for text in (first, second))
    if one.reporter.errors or other.reporter.errors or len(one.documents) != len(other.documents):
        return False
    pairs = zip(one.documents, other.documents, strict=True)
    return all(not _matters(document) or difference(document, copy) is None for document, copy in pairs)


def _matters(document: Document) -> bool:
    return dialects.matters(document.api_version, document.kind)


def _difference_of_objects(first: Document, second: Document) -> str | None:
    declared, again = _declared(first, first.data), _declared(second, second.data)
    if may_install(first.api_version, first.kind) and None in (declared, again):
        return None  # at most one of them is about a mesh
    if declared is not None and declared == again:
        return None
    return _named(islice(_deciding(first, second, declared), _MAX_NAMED_FIELDS))


def _deciding(first: Document, second: Document, declared: object) -> Iterator[Path]:
    """Yield the fields that change the object if their value alone is replaced by that of the copy."""
    for path in islice(_paths(first.data, second.data), _MAX_PATHS):
        if _declared(first, _taking_over(first.data, second.data, path)) != declared:
            yield path


def _declared(document: Document, data: Plain) -> object:
    """Return the object that a document with this content declares, without the annotations that decide nothing.

    Often a second manifest of a namespace only adds such an annotation.
    """
    content = replace(document, data=cast("dict[str, Plain]", data))
    declared = interpret(cast("Manifest", content), Reporter(), document.default_namespace)
    match declared:
        case Namespace() | Pod():
            return replace(declared, annotations=of_meshes(declared.annotations))
        case Controller():
            template = declared.template
            return replace(declared, template=replace(template, annotations=of_meshes(template.annotations)))
    return declared


def of_meshes(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that meshes read."""
    return {key: value for key, value in annotations.items() if _is_of_mesh(key)}


def _is_of_mesh(key: str) -> bool:
    return key.partition("/")[0].endswith(_domains())


@cache
def _domains() -> tuple[str, ...]:
    """Return the domains of all policy APIs, whose annotations may decide."""
    return tuple({".".join(kind.group.split(".")[-2:]) for dialect in dialects.DIALECTS for kind in dialect.kinds})


def _policy(document: Document) -> Plain:
    """Return the content of a policy, with only the annotations that decide."""
    content = content_of(document)
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(metadata, dict):
        return content
    kept = {key: value for key, value in metadata.items() if key in ("name", "labels")}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        deciding = dialects.registered().deciding_annotations
        kept["annotations"] = {key: value for key, value in annotations.items() if key in deciding or _is_of_mesh(key)}
    if (document.group, document.kind) not in dialects.registered().selected_kinds:
        kept.pop("labels", None)
    return {**{key: value for key, value in content.items() if key != "status"}, "metadata": kept}


# Fields


def _paths(first: Plain, second: Plain, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the values in which two contents differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys((*first, *second)):
            if key in first and key in second:
                yield from _paths(first[key], second[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _paths(one, other, (*path, index))
    elif first != second or type(first) is not type(second):
        yield path


def _taking_over(first: Plain, second: Plain, path: Path) -> Plain:
    """Return a copy of a content in which one value is that of another content."""
    if not path:
        return second
    step, rest = path[0], path[1:]
    if isinstance(first, dict) and isinstance(second, dict) and isinstance(step, str):
        if step not in second:
            return {key: value for key, value in first.items() if key != step}
        return {**first, step: _taking_over(first.get(step), second[step], rest)}
    if isinstance(first, list) and isinstance(second, list) and isinstance(step, int):
        return [*first[:step], _taking_over(first[step], second[step], rest), *first[step + 1 :]]
    return deepcopy(second)


def _named(paths: Iterator[Path]) -> str:
    return " and ".join(f"`{_name(path)}`" for path in paths)


def _name(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
