"""Finds the paths of the authorization JSON that an expression can read, before it is evaluated.

Unknown values must not decide, and secret values must not be shown. Both are paths in the document. If an expression
may read such a path, it is treated as if it does. A selector that is more than names with dots counts as reading
everything below the names at its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from eastgate.basics.regexes import regex

Path: TypeAlias = tuple[str, ...]

NAMES: Final = "*"
"""In a path: every name without a leading colon. Pseudo-headers such as `:path` have one."""

PATH_OF_REQUEST: Final[Mapping[Path, str]] = dict.fromkeys(
    (
        ("request", "path"),
        ("request", "url_path"),
        ("request", "headers", ":path"),
        ("request", "grpc"),
        ("context", "request", "http", "path"),
        ("context", "request", "http", "headers", ":path"),
    ),
    "the path",
)
"""The paths in the document that contain the request path or parts of it, without its query."""

_NAME = regex(r"([\w:/-]+)(?:[.|]|$)", re.ASCII)
_INPUT = regex(r"(?<![\w.])input((?:\.[A-Za-z_]\w*|\[\"[^\"\\]*\"\])*)", re.ASCII)
_INPUT_KEY = regex(r"\.(\w+)|\[\"([^\"\\]*)\"\]", re.ASCII)


@lru_cache(maxsize=4096)
def lead(selector: str) -> Path:
    """Return the names at the start of a selector, up to the first component of another kind."""
    return tuple(_names(selector))


def _names(selector: str) -> Iterator[str]:
    at = 0
    while at < len(selector) and (name := _NAME.match(selector, at)):
        yield name[1]
        at = name.end()


@lru_cache(maxsize=4096)
def is_plain(selector: str) -> bool:
    """Return whether a selector consists of names only, so that it can never fail."""
    return sum(map(len, lead(selector))) + len(lead(selector)) - 1 == len(selector)


@lru_cache(maxsize=4096)
def selected_mentions(text: str) -> tuple[Path, ...]:
    """Return the paths at the start of a selector, or of the selectors in a template."""
    from eastgate.dialects.kuadrant.authorino.gjson.templates import is_template  # its imports are slow

    return template_mentions(text) if is_template(text) else (lead(text),)


@lru_cache(maxsize=4096)
def template_mentions(template: str) -> tuple[Path, ...]:
    """Return the paths at the start of the selectors in a template. Escaped braces count too, which is safe."""
    mentions: list[Path] = []
    depth = start = 0
    for at, character in enumerate(template):
        if character == "{":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                mentions.append(lead(template[start:at]))
    return (*mentions, ()) if depth or "\\" in template else tuple(mentions)


@lru_cache(maxsize=256)
def rego_mentions(module: str) -> tuple[Path, ...]:
    """Return the paths under `input` in the text of a Rego module. `input` by itself means everything."""
    return tuple(
        tuple(key[1] or key[2] for key in _INPUT_KEY.finditer(reference[1])) for reference in _INPUT.finditer(module)
    )


def cel_mentions(text: str, *, at_gateway: bool = False) -> Iterable[Path]:
    """Return the paths that a CEL expression can read.

    An expression that cannot be parsed counts as reading everything.
    """
    from eastgate.dialects.cel import GATEWAY_ROOTS, CelProblem, compile_document_cel  # its imports are slow

    expression = compile_document_cel(text, GATEWAY_ROOTS) if at_gateway else compile_document_cel(text)
    return ((),) if isinstance(expression, CelProblem) else expression.mentions


def touched(mentions: Iterable[Path], paths: Mapping[Path, str]) -> str | None:
    """Return the name of the first path that is inside, or around, a mentioned path."""
    if not paths:
        return None
    for mention in mentions:
        for path, name in paths.items():
            if all(map(_meets, mention, path)):
                return name
    return None


def _meets(mentioned: str, path: str) -> bool:
    return mentioned == path or (path == NAMES and not mentioned.startswith(":"))


def prune(document: Mapping[str, object], mentions: Iterable[Path]) -> dict[str, object]:
    """Return only the mentioned parts of a document, each at its path."""
    kept: dict[str, object] = {}
    for mention in sorted(set(mentions)):
        if not mention:
            return dict(document)
        source: Mapping[str, object] = document
        target = kept
        for at, key in enumerate(mention):
            if key not in source:
                break
            value = source[key]
            if at == len(mention) - 1 or not isinstance(value, Mapping):
                target[key] = value
                break
            if target.get(key) is value:
                break  # the whole value is there already
            inner = target.setdefault(key, {})
            if not isinstance(inner, dict):
                break
            source, target = value, inner
    return kept
