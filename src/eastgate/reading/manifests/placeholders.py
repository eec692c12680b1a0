"""Placeholders: values that a person or a tool must still fill in.

Some are placeholders in every place: `${DOMAIN}`, `{{ .Values.x }}`, `<your-namespace>`, `REPLACE_ME`. Others, such as
`SHOP_NAMESPACE`, count as placeholders only if the value is invalid.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Node, Plain

_WORD = r"[A-Za-z_][\w.-]*"
_VARIABLES = (
    rf"\$\{{\{{?[ ]*{_WORD}[ ]*(?::?[-=?+][^{{}}]*)?\}}?\}}|\{{\{{[^{{}}]*\}}\}}"
    r"|\$\{(?:#\w+|\w+(?:[:=^,/#%][^}\n]*)?)\}"  # the other expressions of Flux: ${NAME,,}, ${NAME:0:3}, ${#NAME}
)
_VARIABLE = regex(_VARIABLES)  # ${NAME}, ${NAME:=default}, ${{NAME}}, {{ .Values.name }}
_NAME = regex(r"[A-Za-z_][\w.]*")
_SURE = regex(
    _VARIABLES + r"|(?<![?P])<(?:[A-Z][A-Z0-9_ -]+|(?i:your|my|insert|enter|the|some)[-_ ][\w .-]{1,60}"
    r"|(?:app|domain|host|hostname|name|namespace|project|service|tenant)(?:[-_ ]\w+)?"
    r"|\w+[-_ ](?:name|namespace|domain))>"
    r"|ENC\[AES256_GCM,"  # values that SOPS has encrypted
    r"|(?<![\w-])(?i:replace[-_ ]?me|change[-_ ]?me|fill[-_ ]?me(?:[-_ ]?in)?)(?![\w-])"
)
_ENDS = "NAMESPACE|NAME|HOST|HOSTNAME|DOMAIN|IP|CIDR|PORT|URL|ADDRESS|ACCOUNT|PROJECT|CLUSTER|REGION|TAG|VERSION|HERE"
_LIKELY = regex(
    r"(?<=[a-z]-)[A-Z]{4,}(?![\w-])|%\[\d+\][dsv]|\$\([\w.-]+\)|\$[A-Z_][A-Z0-9_]*|%[A-Z_]+%|@[A-Z_]+@|__[A-Za-z_]+__"
    rf"|(?<![\w-])(?:[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)*[_-](?:{_ENDS})|(?i:your)[-_][\w-]+|TODO|FIXME|TBD|X{{3,}})(?![\w-])"
)
_SIGNS = (
    "${",
    "{{",
    "ENC[",
    "<",
    "REPLACE",
    "replace",
    "Replace",
    "CHANGE",
    "change",
    "Change",
    "FILL",
    "fill",
    "Fill",
)
_DESCRIBING = (
    "version",
    "chart",
    "revision",
    "commit",
    "build",
    "tag",
)  # ends of label keys that select nothing


def may_have_placeholder(text: str) -> bool:
    """Return whether a whole text may have a placeholder. This is a fast test that prefers True."""
    return any(sign in text for sign in _SIGNS)


def placeholder_in(text: str) -> str | None:
    """Return the placeholder in a text that is one in every place."""
    match = _SURE.search(text)
    return match.group() if match is not None else None


def variable_in(text: str) -> str | None:
    """Return a variable that a tool must still fill in."""
    match = _VARIABLE.search(text)
    return match.group() if match is not None else None


def names_of_variables(text: str) -> list[str]:
    """Return the names of the variables in a text: `DOMAIN` of `api.${DOMAIN:=example.com}`."""
    variables = (match.group() for match in _VARIABLE.finditer(text))
    names = ((name.group() if (name := _NAME.search(variable)) is not None else variable) for variable in variables)
    return list(dict.fromkeys(names))


def could_be(text: str, pattern: str) -> bool:
    """Return whether a text with variables could become this text; `*` is any text, too."""
    first, *others = _VARIABLE.sub("*", pattern).split("*")
    if not text.startswith(first):
        return False
    at = len(first)
    for part in others[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return (text[at:].endswith(others[-1])) if others else at == len(text)


def placeholder_in_wrong(text: str) -> str | None:
    """Return the likely placeholder in an invalid value."""
    match = _SURE.search(text) or _LIKELY.search(text)
    return match.group() if match is not None else None


def is_describing(label: str) -> bool:
    """Return whether a label with this key describes the build of a pod. No policy selects by such labels."""
    return label.lower().endswith(_DESCRIBING) and label != "version"  # policies do select by `version`


def strings_of(node: Node) -> Iterator[Node]:
    """Yield the strings in a value with positions."""
    if isinstance(node.value, str):
        yield node
    if isinstance(node.value, dict):
        for entry in node.value.values():
            yield from strings_of(entry)
    for item in node:
        yield from strings_of(item)


def find_path(value: Plain, text: str, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """Return the path of the first string that contains a text."""
    if isinstance(value, str):
        return path if text in value else None
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (find_path(entry, text, (*path, step)) for step, entry in entries)
    return next((each for each in found if each is not None), None)
