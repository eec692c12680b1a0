"""All values of headers and query parameters, where RBAC can compare them.

Envoy's own inputs see the values of a header as one text, and of a query parameter the first value only. A Lua filter
notes all of them in filter state (`values.lua`): in one text, with marks around each value, in which a comparison looks
for a part; and, since an expression could match across marks, one by one where a policy has an expression.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from urllib.parse import quote, unquote

from envoy.config.core.v3 import base_pb2
from envoy.extensions.filters.http.lua.v3 import lua_pb2
from google.protobuf.message import Message

from eastgate.policy import Known, Matcher, OneOf, Prefix, Present, Suffix
from eastgate.policy.attributes import Attribute, header, query
from eastgate.policy.matchers import known
from eastgate.targets.envoy import Field, joint_of

__all__ = ["ALL_KEY", "CLEAR", "each_key", "field_key", "marked", "noted_values", "noting", "single_keys"]

ALL_KEY = "eastgate.values"  # what is noted of all fields, for whoever decides again while a request is open
CLEAR = "="  # what is noted begins so, unless values could not be told apart
_START, _STOP = "\x02", "\x03"  # no header has them, and a query that has them is not clear
_VALUE = re.compile(f"{_START}([^{_START}{_STOP}]*){_STOP}")
_FIELD = re.compile(
    rf"eastgate\.(?P<kind>header|query)\.(?P<name>[^=?]*)(?:\?|=(?P<values>(?:{_VALUE.pattern})*)){_STOP}"
)
_MOST = 8  # values of one name that an expression is tried on


def field_key(attribute: Attribute) -> str:
    """The filter state that holds all values."""
    return f"eastgate.{'header' if attribute.is_header else 'query'}.{quote(attribute.key, safe='')}"


def each_key(attribute: Attribute) -> str:
    """The filter state that tells whether the values are noted one by one as well, for expressions."""
    return f"eastgate.each.{field_key(attribute)}"


def single_keys(attribute: Attribute) -> list[str]:
    """The filter states that hold one value each. No other key is one of these: names have their slashes encoded."""
    return [f"{each_key(attribute)}/{index}" for index in range(_MOST)]


def marked(matcher: Matcher) -> list[str]:
    """What all values as one text contain where ANY value is in the matcher: ANY of these."""
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
    """Read what was noted of all fields. Values that could not be told apart are not in it: they are unknown."""
    found: dict[Attribute, Known] = {}
    place = 0
    while (field := _FIELD.match(text, place)) is not None:
        place = field.end()
        if field["values"] is not None:
            attribute = (header if field["kind"] == "header" else query)(unquote(field["name"]))
            found[attribute] = known(_VALUE.findall(field["values"]))
    return found


def noting(fields: tuple[Field, ...]) -> Message:
    """The filter that notes them; one that does nothing where there are none."""
    found = lua_pb2.Lua()
    if fields:
        entries = ",\n".join(f"  {{ {_entry(field)} }}" for field in fields)
        script = f"local FIELDS = {{\n{entries},\n}}\n\n{_script()}"
        found.default_source_code.CopyFrom(base_pb2.DataSource(inline_string=script))
    message: Message = found
    return message


def _entry(field: Field) -> str:
    attribute = field.attribute
    told = {"name": _literal(attribute.key), "key": _literal(field_key(attribute))}
    if attribute.is_header:
        told["header"] = "true"
    joint = joint_of(attribute)
    if joint is not None:
        told["joint"] = _literal(joint)
    if field.patterned:
        told |= {"most": str(_MOST), "each": _literal(each_key(attribute))}
    return ", ".join(f"{name} = {value}" for name, value in told.items())


def _literal(text: str) -> str:
    """A string of Lua. Whatever is no plain character is written as a number."""
    plain = (chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03d}" for byte in text.encode())
    return '"' + "".join(plain) + '"'


@cache
def _script() -> str:
    return files("eastgate.xds").joinpath("values.lua").read_text("utf-8")
