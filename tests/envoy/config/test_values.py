"""Notes about headers and query parameters, and comparisons with them."""

from __future__ import annotations

import pytest
from envoy.extensions.filters.http.lua.v3 import lua_pb2

from eastgate.envoy.config.values import each_key, field_key, marked, noted_values, single_keys, values_filter
from eastgate.envoy.plan import RequestField
from eastgate.ir import Known, Matcher, OneOf, Prefix, Present, Suffix
from eastgate.ir.attributes import Attribute, header, query

TEAM, ACCEPT, QUERY = header("x-team"), header("accept"), query("a/b=c")


def test_keys_tell_headers_from_parameters_and_have_no_slash_of_a_name() -> None:
    assert field_key(TEAM) == "eastgate.header.x-team"
    assert field_key(QUERY) == "eastgate.query.a%2Fb%3Dc"
    assert each_key(TEAM) == "eastgate.each.eastgate.header.x-team"
    assert single_keys(TEAM) == [f"{each_key(TEAM)}/{index}" for index in range(8)]


@pytest.mark.parametrize(
    ("matcher", "texts"),
    [
        (OneOf(frozenset({"b", "a"})), ["\x02a\x03", "\x02b\x03"]),
        (Prefix("a"), ["\x02a"]),
        (Suffix("a"), ["a\x03"]),
        (Present(), ["\x02"]),
    ],
)
def test_a_value_is_found_between_marks(matcher: Matcher, texts: list[str]) -> None:
    assert marked(matcher) == texts


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("eastgate.header.x-team=\x02red\x03\x03", {TEAM: "red"}),
        ("eastgate.header.x-team=\x02red\x03\x02blue\x03\x03", {TEAM: ("red", "blue")}),
        ("eastgate.header.x-team=\x03", {TEAM: None}),
        ("eastgate.header.x-team?\x03eastgate.query.a%2Fb%3Dc=\x02x\x03\x03", {QUERY: "x"}),
        ("something else", {}),
    ],
)
def test_what_is_noted_is_read_again_and_what_is_not_clear_is_unknown(
    text: str, values: dict[Attribute, Known]
) -> None:
    assert noted_values(text) == values


def _script(*fields: RequestField) -> str:
    config = values_filter(fields)
    assert isinstance(config, lua_pb2.Lua)
    return str(config.default_source_code.inline_string)


def test_each_field_is_an_entry_of_the_script() -> None:
    assert _script() == ""
    entries, _, script = _script(
        RequestField(TEAM), RequestField(ACCEPT), RequestField(QUERY, patterned=True)
    ).partition("\n}\n")
    assert entries.splitlines() == [
        "local FIELDS = {",
        r'  { name = "x\045team", key = "eastgate\046header\046x\045team", header = true },',
        r'  { name = "accept", key = "eastgate\046header\046accept", header = true, joint = "\044" },',
        r'  { name = "a\047b\061c", key = "eastgate\046query\046a\0372Fb\0373Dc", most = 8, '
        r'each = "eastgate\046each\046eastgate\046query\046a\0372Fb\0373Dc" },',
    ]
    assert "function envoy_on_request" in script
    assert r'name = "\195\169' in _script(RequestField(query("é")))
