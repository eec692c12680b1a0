"""Guesses the type of a text, without reading it as YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from eastgate.basics.regexes import regex

_HINT = regex(r"""[ ]*["']?([^\s"'#]+)""")
_HEADS = regex(r"""\b(apiVersion|kind)["']?\s*:\s*["']?([^\s"'#,{}\[\]]+)""")
_HIDING = regex(r"""\\[ux]|\b(?:apiVersion|kind)["']?\s*:\s*[*&!]""")
_MANIFEST = regex(r"""(?i)\bapi_?version\b|\bkind["']?\s*:|\\[ux]""")

# Any line at the left edge that is no comment, no entry of a list and no marker must be `key:` with a plain key.
_EDGE = regex(r"^(?![ #\n]|\Z|- |-$|---$)(?:([A-Za-z][\w-]*):(?=[ ]|$)(.*)|.*)$", re.MULTILINE)
_PLAIN = regex(r"[ ]+([A-Za-z0-9][\w./-]*)[ ]*")
_CONTINUED = regex(r"^(?:apiVersion|kind):.*\n[ \t\n]", re.MULTILINE)
_OTHER_BREAKS = regex("[\r\t\x85\u2028\u2029]")
_INDENTED = regex(r"(?:(?:[ ]*\#.*|[ ]*|---)\n)*+[ ]")  # the first line that says anything


def hint(chunk: str) -> tuple[str, str]:
    """Guess the type of a document. A wrong hint costs time and nothing else."""
    return _hint_of("apiVersion:", chunk), _hint_of("kind:", chunk)


def _hint_of(key: str, chunk: str) -> str:
    at = 0 if chunk.startswith(key) else chunk.find("\n" + key) + 1
    match = _HINT.match(chunk, at + len(key)) if at or chunk.startswith(key) else None
    return match.group(1) if match else ""


def types_in(chunk: str) -> Iterator[tuple[str, str]]:
    """Return every `apiVersion` in a document, with every `kind` in it."""
    values: dict[str, dict[str, None]] = {"apiVersion": {"": None}, "kind": {"": None}}
    for key, value in _HEADS.findall(chunk):
        values[key][value] = None
    return product(values["apiVersion"], values["kind"])


def hides_types(chunk: str) -> bool:
    """Return whether a document may have a type that `types_in` does not see: behind an escape, an alias or a tag."""
    return _HIDING.search(chunk) is not None


def may_be_manifest(text: str) -> bool:
    """Return whether an unreadable text has anything that every manifest has, or hides what it says."""
    return _MANIFEST.search(text.replace("\0", "")) is not None


def type_of(chunk: str) -> tuple[str, str] | None:
    """Return the `apiVersion` and the `kind` of a YAML document with nothing else at its top; None where that is
    unsure.

    A document of a type that is known here need not be read. So it must be proven: the keys of a mapping at the left
    edge all stand at the left edge. If the first of them does, each line there is a plain key, and none occurs twice,
    then no `kind` hides in quotes, in a merge or behind an escape. What has `items` is a list, whatever it says it is.
    """
    if _OTHER_BREAKS.search(chunk) or _CONTINUED.search(chunk) or _INDENTED.match(chunk):
        return None
    keys: dict[str, str] = {}
    for key, value in _EDGE.findall(chunk):
        if not key or key in keys:
            return None
        keys[key] = value
    api_version, kind = _PLAIN.fullmatch(keys.get("apiVersion", "")), _PLAIN.fullmatch(keys.get("kind", ""))
    if api_version is None or kind is None or kind[1].endswith("List") or "items" in keys:
        return None
    return api_version[1], kind[1]
