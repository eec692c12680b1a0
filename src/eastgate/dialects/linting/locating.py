"""Search for the span of a value in a document, when a finding is reported.

Models do not store the position of each name: there are many, and few are needed. If a finding underlines a word of a
document, the document is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

from eastgate.basics.caching import SizedCache
from eastgate.basics.diagnostics import Reporter, did_you_mean
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.dialects.base import Policy
from eastgate.dialects.linting import codes
from eastgate.dialects.linting.findings import Finding
from eastgate.reading.manifests.document import Stretch
from eastgate.reading.manifests.json.nodes import read_json_nodes
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.text import DecodedText

# Suggestions for misspelt names, also among thousands: the comparison is slow, so only likely names are compared.


_MAX_COMPARED_NAMES = 300


def nearest_name(word: str, names: Collection[str]) -> str | None:
    """Return the name that was most likely meant, or None."""
    likely = sorted(names)
    if len(likely) > _MAX_COMPARED_NAMES:
        likely = [name for name in likely if abs(len(name) - len(word)) <= 2 and _is_alike(name, word)][
            :_MAX_COMPARED_NAMES
        ]
    close = did_you_mean(word, likely)
    if close is None and len(word) > 2:  # in a short name, one different letter makes another name
        close = next((name for name in likely if len(name) > 2 and is_one_slip(word, name)), None)
    return close


def _is_alike(name: str, word: str) -> bool:
    return name[:2] == word[:2] or name[-2:] == word[-2:]


def corrected_name(word: str, names: Collection[str]) -> str | None:
    """Return the name that a word misspells by one or two letters. `web-2` is not a misspelling of `web-1`."""
    close = nearest_name(word, names)
    if close is None or min(len(word), len(close)) < 4 or _letters(word) == _letters(close):
        return None
    return close if distance(word.casefold(), close.casefold()) <= (1 if len(close) < 6 else 2) else None


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def is_one_slip(word: str, other: str) -> bool:
    """Return whether the distance is 1. For most names a quick test rules it out."""
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    shorter = min(len(word), len(other))
    first = next((at for at in range(shorter) if word[at] != other[at]), shorter)
    rest, wanted = word[first:], other[first:]
    is_changed = rest[1:] == wanted[1:]
    is_moved = rest[1:] == wanted or rest == wanted[1:]
    return is_changed or is_moved or (rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:])


def distance(word: str, other: str) -> int:
    """Return how many letters must be changed, added, removed, or swapped with the next."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def list_some(names: Collection[str]) -> str:
    """Return a text with a few of the names."""
    ordered = sorted(names)
    return ", ".join(ordered[:5]) + (", .." if len(ordered) > 5 else "")


_ROOTS: SizedCache[Span, Node] = SizedCache(1 << 20)  # characters


@lru_cache(maxsize=4)
def _text(source: SourceText) -> DecodedText:
    return DecodedText(source, b"", {})


def root_of(document: Span) -> Node:
    """Return a document, read with positions. `document` is the span of the whole document."""
    whole = document.built or document
    return _ROOTS.get(whole, lambda: _read(whole))


def _read(document: Span) -> tuple[Node, int]:
    text = _text(document.source)
    # The text of a cluster object contains only this object; its span is computed on demand
    start, end = (0, len(document.source.text)) if document.source.is_object else text.extent(document)
    if document.source.text[start : start + 1] == "{":
        nodes = read_json_nodes(text, start, end, Reporter())
        if nodes:
            return nodes[0], end - start
    return Stretch(text, False, start, end).node(), end - start


def at(document: Span | None, *path: str | int) -> Span | None:
    """Return the span of the value at a path of keys and indices, or of the nearest value around it."""
    return root_of(document).nearest(*path).span if document is not None else None


def name_of(document: Span | None) -> Span | None:
    """Return the span of an object's name."""
    return at(document, "metadata", "name")


def annotation(document: Span | None, *names: str) -> Span | None:
    """Return the span of the first of these annotations anywhere in the object, or else of the object's name."""
    if document is None:
        return None
    span = next((node.span for key, node in _entries(root_of(document)) if key in names), None)
    return span or name_of(document)


def scalar(document: Span, within: Span | None, texts: Iterable[str | int], *, rule: Span | None = None) -> Span:
    """Return the span of the first of these values within a span of a document, or in its rule; else return `within`.

    `rule` is another place where the value may be written, because a rule names ports and callers in several lists.
    """
    wanted = list(texts)
    scalars = [node for node in _scalars(root_of(document)) if not isinstance(node.value, bool)]
    for span in (within, rule) if rule is not None else (within,):
        inside = _within(span) if span is not None else _anywhere
        nodes = [node for node in scalars if inside(node)]
        for text in wanted:
            for node in nodes:
                if node.value == text:
                    return node.span
    return within or document


def _anywhere(_node: Node) -> bool:
    return True


def _within(span: Span) -> Callable[[Node], bool]:
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    return lambda node: start <= (node.line, node.column) and (node.end_line, node.end_column) <= end


def _scalars(node: Node) -> Iterator[Node]:
    match node.value:
        case dict() as entries:
            for value in entries.values():
                yield from _scalars(value)
        case list() as items:
            for item in items:
                yield from _scalars(item)
        case _:
            yield node


def _entries(node: Node) -> Iterator[tuple[str, Node]]:
    match node.value:
        case dict() as entries:
            for key, value in entries.items():
                yield key, value
                yield from _entries(value)
        case list() as items:
            for item in items:
                yield from _entries(item)


# Undeclared targets: their spans, and suggestions


def missing_target(
    policy: Policy, span: Span | None, kind: str, namespace: str, name: str, declared: Iterable[str]
) -> Finding:
    """Return the finding about an undeclared target. `declared` are the keys of declared ones."""
    message = f"{policy.ref} targets {kind} {namespace}/{name}, which no manifest declares"
    help_ = _suggestion(namespace, name, declared) or f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, span, help_, (str(policy.ref),))


def target_span(policy: Policy, field: str, number: int, name: str = "") -> Span | None:
    """Return the span of a target's name in a field of the spec, or of its selector."""
    node = root_of(policy.span).nearest("spec").get(field)
    if node is None:
        return name_of(policy.span)
    target = node.nearest(number) if isinstance(node.value, list) else node
    return scalar(policy.span, target.span, [name]) if name else target.span


def _suggestion(namespace: str, name: str, declared: Iterable[str]) -> str | None:
    keys = list(declared)
    names = [key.partition("/")[2] for key in keys if key.startswith(f"{namespace}/")]
    close = nearest_name(name, names)
    if close:
        return f"did you mean {close}?"
    elsewhere = next((key for key in keys if key.endswith(f"/{name}")), None)
    return (
        f"there is one in another namespace, {elsewhere}: a policy must be in the namespace of its target"
        if elsewhere
        else None
    )
