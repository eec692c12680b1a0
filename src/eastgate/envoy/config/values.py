"""Makes all values of headers and query parameters visible to RBAC.

Envoy's own inputs have the values of a header as one text, and only the first value of a query parameter. A Lua filter
notes all values in filter state (`values.lua`). The notes are one text with marks around each value, and a comparison
searches a part of it. An expression could match across marks, so for policies with an expression the values are also
noted one by one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from urllib.parse import quote, unquote

from envoy.config.core.v3 import base_pb2
from envoy.extensions.filters.http.lua.v3 import lua_pb2
from google.protobuf.message import Message

from eastgate.basics.regexes import regex
from eastgate.envoy.plan import RequestField, joint_of
from eastgate.ir import Known, Matcher, OneOf, Prefix, Present, Suffix
from eastgate.ir.attributes import Attribute, header, query
from eastgate.ir.matchers import known

ALL_KEY = "eastgate.values"  # the noted values of all fields, to decide a request again while it is open
CLEAR = "="  # prefix of unambiguous notes
_START, _STOP = "\x02", "\x03"  # no header has them, and a query that has them is ambiguous
_VALUE = regex(f"{_START}([^{_START}{_STOP}]*){_STOP}")
_FIELD = regex(rf"eastgate\.(?P<kind>header|query)\.(?P<name>[^=?]*)(?:\?|=(?P<values>(?:{_VALUE.pattern})*)){_STOP}")
_MAX_VALUES = 8  # values of one name that an expression is tried on


def field_key(attribute: Attribute) -> str:
    """Return the filter state key that holds all values."""
    return f"eastgate.{'header' if attribute.is_header else 'query'}.{quote(attribute.key, safe='')}"


def each_key(attribute: Attribute) -> str:
    """Return the filter state key that tells whether the values are also noted one by one, for expressions."""
    return f"eastgate.each.{field_key(attribute)}"


def single_keys(attribute: Attribute) -> list[str]:
    """Return the filter state keys that hold one value each. They are unique: slashes in names are encoded."""
    return [f"{each_key(attribute)}/{index}" for index in range(_MAX_VALUES)]


def marked(matcher: Matcher) -> list[str]:
    """Return marked texts: if ANY of them is in the joined values, ANY value meets the matcher."""
    match matcher:
        case OneOf(values):
            return [f"{_START}{value}{_STOP}" for value in sorted(values, key=str)]
        case Prefix(text):
            return [f"{_START}{text}"]
        case Suffix(text):
            return [f"{text}{_STOP}"]
        case Present():
            return [_START]
        case _:
            raise AssertionError(f"a plan has no such matcher: {matcher}")


def noted_values(text: str) -> dict[Attribute, Known]:
    """Parse the notes of all fields. Ambiguous values are left out: they are unknown."""
    values: dict[Attribute, Known] = {}
    position = 0
    while (field := _FIELD.match(text, position)) is not None:
        position = field.end()
        if field["values"] is not None:
            attribute = (header if field["kind"] == "header" else query)(unquote(field["name"]))
            values[attribute] = known(_VALUE.findall(field["values"]))
    return values


def values_filter(fields: tuple[RequestField, ...]) -> Message:
    """Build the filter that notes these fields. Without fields, it does nothing."""
    config = lua_pb2.Lua()
    if fields:
        entries = ",\n".join(f"  {{ {_entry(field)} }}" for field in fields)
        script = f"local FIELDS = {{\n{entries},\n}}\n\n{_script()}"
        config.default_source_code.CopyFrom(base_pb2.DataSource(inline_string=script))
    message: Message = config
    return message


def _entry(field: RequestField) -> str:
    attribute = field.attribute
    entry = {"name": literal(attribute.key), "key": literal(field_key(attribute))}
    if attribute.is_header:
        entry["header"] = "true"
    joint = joint_of(attribute)
    if joint is not None:
        entry["joint"] = literal(joint)
    if field.patterned:
        entry |= {"most": str(_MAX_VALUES), "each": literal(each_key(attribute))}
    return ", ".join(f"{name} = {value}" for name, value in entry.items())


def literal(text: str) -> str:
    """Return a Lua string: anything but a letter or digit is escaped by its number."""
    plain = (chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03d}" for byte in text.encode())
    return '"' + "".join(plain) + '"'


@cache
def _script() -> str:
    return files("eastgate.envoy.config").joinpath("values.lua").read_text("utf-8")
