"""Redacts secrets in a text, so that no excerpt shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, pairwise, takewhile

from eastgate.basics.regexes import regex

# Secrets must be recognised in unreadable texts too, so these patterns match lines and not values.
_SEPARATOR = regex(r"(?:---|\.\.\.)(?=\s|$)")
_SECRET = regex(r"""["']?\bkind["']?\s*:\s*(?:(?:[!&]\S*|[|>][-+\d]*)\s+)*["']?Secret(?:List)?(?![-\w./])""")
_SECRET_LIST = regex(r"""\bkind["']?\s*:\s*["']?SecretList\b""")
_LIST = regex(r"""[ ]*["']?(?:items|objects)["']?\s*:\s*\[?\s*$""")
_ITEM = regex(r"[ ]*(?:- |\{[ ]*$)")
_KIND = regex(r"""[ ]*(?:- )?["']?kind["']?\s*:""")
_CONTENT = regex(r"""["']?\b(?:metadata|data|stringData)["']?\s*:""")
_BRACE = regex("[{}]")
_FIELD = regex(r"""(?P<indent>\s*(?:-\s+)*)(?P<quote>["']?)(?P<name>[-\w./]+)(?P=quote)\s*:(?=\s|$)""")
_TEMPLATE = regex(r"(?:(?<=:\s)|\A\s)(\{\{).*?(\}\})?\s*$")

# Fields whose values may be shown. Keys are not secret, but a line that looks like a key may be part of a value.
_HELD = ("data", "stringData")
_DEEPEST = 2
_NOTE = ("metadata", "annotations", "*")
_PLAIN = r"""(?P<quote>["']?)(?:[-\w./]|\$\{\w+\})+(?P=quote),?"""  # ${NAME} is a variable of a template
_LABELS = r"\{[-\w./:, ]*\}"
_SHOWN = {
    ("apiVersion",): _PLAIN,
    ("kind",): _PLAIN,
    ("metadata",): rf"\{{(?:(?:name|namespace|labels):\s+(?:[-\w.]+|{_LABELS})(?:,\s+|(?=\}})))+\}}",
    ("metadata", "name"): _PLAIN,
    ("metadata", "namespace"): _PLAIN,
    ("metadata", "labels"): _LABELS,
    ("metadata", "labels", "*"): _PLAIN,
    ("metadata", "annotations", "*"): _PLAIN,
    ("type",): _PLAIN,
    ("immutable",): _PLAIN,
}


def without_secrets(lines: list[str]) -> list[str]:
    """Return the lines, with stars in each document that is a Secret or contains one."""
    if not any("Secret" in line for line in lines):
        return lines
    starts = [0, *(number for number, line in enumerate(lines) if number and _SEPARATOR.match(line)), len(lines)]
    shown: list[str] = []
    for start, end in pairwise(starts):
        document = lines[start:end]
        if not _has_secret(document):
            shown += document
            continue
        for item in _items(document):
            shown += _starred(item) if item is document or _has_secret(item) or _is_secret_list(document) else item
    return shown


def _items(document: list[str]) -> list[list[str]]:
    """Return the lines of a list, object by object, with the lines around it. If objects are unclear, all are one.

    A line that looks like the beginning of an object without a kind may belong to an unindented Secret. It stays with
    the lines above it.
    """
    first = next((at for at, line in enumerate(document) if _LIST.match(line)), None)
    if first is None:
        return [document]
    opening = next((match for line in document[first + 1 :] if (match := _ITEM.match(line))), None)
    if opening is None:
        return [document]
    starts = [at for at in range(first + 1, len(document)) if document[at].startswith(opening[0])]
    parts = [document[start:end] for start, end in pairwise([0, *starts, len(document)])]
    whole: list[list[str]] = [parts[0]]
    for part in parts[1:]:
        if any(_KIND.match(line) for line in part):
            whole.append(part)
        else:
            whole[-1] = whole[-1] + part
    return whole


def _is_secret_list(document: list[str]) -> bool:
    return any(_SECRET_LIST.search(line) for line in document)


def _has_secret(document: list[str]) -> bool:
    text = "\n".join(document)
    return any(not _is_reference(text, match) for match in _SECRET.finditer(text))


def _is_reference(text: str, match: re.Match[str]) -> bool:
    """Return whether this kind belongs to a reference, such as a listener's reference to its certificate."""
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    if before.lstrip().startswith("#"):
        return True
    if before.strip(" -?"):  # in one line with other text
        return _is_reference_in_braces(text, match)
    above = text[: match.start() - len(before)].splitlines()
    below = text[match.end() :].splitlines()[1:]
    around = [*_siblings(reversed(above), len(before)), *_siblings(below, len(before))]
    parent = next((line for line in reversed(above) if line.strip(" {[") and _depth(line) < len(before)), "")
    owner = _FIELD.match(parent)
    return owner is not None and owner["name"] != "items" and not any(_CONTENT.search(line) for line in around)


def _is_reference_in_braces(text: str, match: re.Match[str]) -> bool:
    start = max(text.rfind(brace, 0, match.start()) for brace in "{}")
    after = _BRACE.search(text, match.end())
    if start < 0 or text[start] != "{" or after is None or after[0] != "}":
        return False
    return not _CONTENT.search(text, start, after.start())


def _siblings(lines: Iterable[str], depth: int) -> Iterator[str]:
    return takewhile(lambda line: not line.strip() or _depth(line) >= depth, lines)


def _depth(line: str) -> int:
    """Return the indentation of the first word of a line."""
    return len(line) - len(line.lstrip(" -"))


def _starred(document: list[str]) -> list[str]:
    """Return a document with only the field names that every Secret has, its own name and its labels."""
    shown: list[str] = []
    around: list[tuple[int, str]] = []  # the outer fields of a line, and their indentation
    for line in document:
        marker, field_ = _SEPARATOR.match(line), _FIELD.match(line)
        end = marker.end() if marker else 0
        if field_ is not None:
            depth = len(field_["indent"])
            around = [*(outer for outer in around if outer[0] < depth), (depth, field_["name"])]
            path = tuple(dropwhile(lambda name: name == "items", (name for _, name in around)))
            end = _shown_until(line, field_.end(), path)
        shown.append(line[:end] + _stars(line[end:]))
    return shown


def _shown_until(line: str, value: int, path: tuple[str, ...]) -> int:
    """Return the length of the visible part of a field's line. `value` is the end of the field's name."""
    is_note = len(path) == len(_NOTE) and path[:2] in (("metadata", "labels"), _NOTE[:2])
    allowed = _SHOWN.get((*path[:2], "*") if is_note else path)
    if allowed is not None:
        return len(line) if re.compile(rf"\s+{allowed}\s*").fullmatch(line, value) else value
    if path[:1] == ("metadata",):
        return value if len(path) <= len(_NOTE) else 0
    return value if len(path) < _DEEPEST or (path[0] in _HELD and len(path) == _DEEPEST) else 0


def _stars(text: str) -> str:
    """Replace everything by stars, except the braces of a template: they are no part of the secret."""
    template = _TEMPLATE.search(text)
    braces = {index for part in (1, 2) for index in range(*template.span(part))} if template else set()
    return "".join(c if c.isspace() or index in braces else "*" for index, c in enumerate(text))


_QUOTED = regex(r"""(?P<quote>[`"])(?P<text>.*?)(?P=quote)""", re.DOTALL)


def without_quotes(sentence: str, shown: str) -> str:
    """Return a sentence about a line of a Secret. It quotes only the visible part of the line."""

    def masked(quoted: re.Match[str]) -> str:
        words = re.findall(r"[-\w]+", quoted["text"])
        visible = all(word in shown for word in words)
        return quoted[0] if visible else f"{quoted['quote']}***{quoted['quote']}"

    return _QUOTED.sub(masked, sentence)
