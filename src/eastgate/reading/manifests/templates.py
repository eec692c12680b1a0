"""OpenShift Templates: lists of objects with parameters. Parameters with a value are filled in.

A parameter without a value, or one that OpenShift generates, stays a placeholder: `${NAME}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Node, NoNumberError, Scalar, resolve

_GROUP = "template.openshift.io"
_WHOLE = regex(r"\$\{\{([a-zA-Z0-9_]+)\}\}")
_PART = regex(r"\$\{([a-zA-Z0-9_]+)\}")


def is_template(api_version: str, kind: str) -> bool:
    """Return whether objects of this type are Templates. Before OpenShift 3.6 they had no group."""
    return kind == "Template" and (api_version == "v1" or api_version.partition("/")[0] == _GROUP)


def objects_of(template: Node) -> Iterator[Node]:
    """Yield the objects of a Template. Parameters with a value are filled in."""
    values = dict(_values(template))
    objects = template.get("objects")
    for node in objects if objects is not None else ():
        yield _filled(node, values)


def _values(template: Node) -> Iterator[tuple[str, str]]:
    for parameter in template.get("parameters") or ():
        name, value = parameter.get("name"), parameter.get("value")
        if name is None or value is None or not isinstance(name.value, str) or isinstance(value.value, dict | list):
            continue
        if value.value is not None:
            yield name.value, value.value if isinstance(value.value, str) else str(value.value).lower()


def _filled(node: Node, values: Mapping[str, str]) -> Node:
    match node.value:
        case dict() as entries:
            return _like(node, {_text(key, values): _filled(entry, values) for key, entry in entries.items()})
        case list() as items:
            return _like(node, [_filled(item, values) for item in items])
        case str() as text if "${" in text:
            return _like(node, _scalar(text, values))
    return node


def _scalar(text: str, values: Mapping[str, str]) -> Scalar:
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return _text(text, values)
    value = values.get(whole[1])
    try:
        return text if value is None else resolve(value)
    except NoNumberError:
        return value


def _text(text: str, values: Mapping[str, str]) -> str:
    return _PART.sub(lambda match: values.get(match[1], match[0]), text)


def _like(node: Node, value: dict[str, Node] | list[Node] | Scalar) -> Node:
    return Node(value, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)
