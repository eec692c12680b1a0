"""Patches for objects that are read but not built: merges, and JSON patches of RFC 6902."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import compile_re2, regex
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.declarations import Declaration, mapping, text_of

_SELECTOR = regex(r"\s*([\w./-]+)\s*(==|=|!=)\s*([\w./-]*)\s*")
_EXISTS = regex(r"\s*(!?)\s*([\w./-]+)\s*")
_MAX_PATTERN_CHARS = 200  # length of a pattern for names


class _NoSuchPlaceError(Exception):
    pass


@dataclass(slots=True)
class Patch:
    """A patch: a partial object, or a list of operations; and its target, if it has a separate one."""

    value: Plain
    target: Mapping[str, Plain] | None = None

    @property
    def is_lost(self) -> bool:
        """Return whether the patch cannot be read, or has unsupported operations."""
        if not isinstance(self.value, list):
            return self.value is None
        return self.target is None or any(mapping(each).get("op") not in (*_OPERATIONS, "test") for each in self.value)

    def applies_to(self, declaration: Declaration) -> bool:
        """Return whether the patch applies to an object."""
        if self.target is None:
            own = mapping(self.value)
            names = mapping(own.get("metadata"))
            group, _, _ = text_of(own.get("apiVersion")).rpartition("/")
            wanted_here = (group, text_of(own.get("kind")), text_of(names.get("name")), text_of(names.get("namespace")))
            has = (declaration.group, declaration.kind, declaration.name, declaration.namespace)
            return wanted_here[:3] == has[:3] and (wanted_here[3] or "default") == (has[3] or "default")
        wanted = (
            ("kind", declaration.kind),
            ("name", declaration.name),
            ("group", declaration.group),
            ("version", text_of(declaration.data.get("apiVersion")).rpartition("/")[2]),
            ("namespace", declaration.namespace or "default"),
        )
        metadata = mapping(declaration.data.get("metadata"))
        return (
            all(_fits(self.target.get(key), value) for key, value in wanted)
            and _selects(text_of(self.target.get("labelSelector")), mapping(metadata.get("labels")))
            and _selects(text_of(self.target.get("annotationSelector")), mapping(metadata.get("annotations")))
        )


def _fits(pattern: Plain, value: str) -> bool:
    if not isinstance(pattern, str) or not pattern:
        return True
    if pattern.isalnum() or len(pattern) > _MAX_PATTERN_CHARS:
        return pattern == value
    compiled = compile_re2(pattern)  # Kustomize uses Go's regular expressions
    return not isinstance(compiled, str) and compiled.fullmatch(value) is not None


def _selects(selector: str, labels: Mapping[str, Plain]) -> bool:
    """Return whether labels match. A selector that is too complex matches, so that the patch is not lost."""
    for term in selector.split(",") if selector else ():
        equality, presence = _SELECTOR.fullmatch(term), _EXISTS.fullmatch(term)
        if equality is not None:
            if (labels.get(equality[1]) == equality[3]) is (equality[2] == "!="):
                return False
        elif presence is not None and (presence[2] in labels) is bool(presence[1]):
            return False
    return True


def apply(patch: Patch, declarations: Iterable[Declaration]) -> list[Declaration]:
    """Return declarations with the patch applied to those that it selects."""
    result = []
    for declaration in declarations:
        if not patch.is_lost and patch.applies_to(declaration):
            changed = patched(declaration.data, patch.value)
            if changed.get("$patch") == "delete":
                continue
            result.append(declaration.with_data(changed))
        else:
            result.append(declaration)
    return result


def patched(data: dict[str, Plain], patch: Plain) -> dict[str, Plain]:
    """Return an object with a patch. Its name stays, and operations that do not fit are skipped."""
    if isinstance(patch, list):
        return _operated(data, patch)
    changed = mapping(merged(data, patch))
    kept: dict[str, Plain] = {key: data[key] for key in ("apiVersion", "kind") if key in data}
    metadata, before = mapping(changed.get("metadata")), mapping(data.get("metadata"))
    names: dict[str, Plain] = {key: before[key] for key in ("name", "namespace") if key in before}
    return {**changed, **kept, "metadata": {**metadata, **names}}


def merged(value: Plain, patch: Plain) -> Plain:
    """Return a value merged with another: mappings by key, where null removes; other values are replaced."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, new in patch.items():
        if new is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), new)
    return result


def _operated(data: dict[str, Plain], operations: Iterable[Plain]) -> dict[str, Plain]:
    result: dict[str, Plain] = data
    for operation in operations:
        fields = mapping(operation)
        path = text_of(fields.get("path"))
        if fields.get("op") in _OPERATIONS and path.startswith("/"):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]
            try:
                result = mapping(_changed(result, steps, str(fields["op"]), fields.get("value")))
            except _NoSuchPlaceError:
                continue
    return result


_OPERATIONS: Final = ("add", "replace", "remove")


def _changed(value: Plain, steps: list[str], operation: str, new: Plain) -> Plain:
    """Return a value with one operation applied at a path."""
    step, *further = steps
    if isinstance(value, dict):
        if step not in value and (further or operation == "remove"):
            raise _NoSuchPlaceError
        rest = {key: item for key, item in value.items() if key != step}
        if not further and operation == "remove":
            return rest
        return {**rest, step: _changed(value[step], further, operation, new) if further else new}
    if not isinstance(value, list):
        raise _NoSuchPlaceError
    index = len(value) if step == "-" else int(step) if step.isdecimal() and len(step) < 9 else -1
    if not 0 <= index <= len(value) or (index == len(value) and (further or operation != "add")):
        raise _NoSuchPlaceError
    if further:
        return [*value[:index], _changed(value[index], further, operation, new), *value[index + 1 :]]
    if operation == "add":
        return [*value[:index], new, *value[index:]]
    return [*value[:index], *([new] if operation == "replace" else []), *value[index + 1 :]]
