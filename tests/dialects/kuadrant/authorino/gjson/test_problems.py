"""Problems of a path are reported before the path is used."""

from __future__ import annotations

import pytest

from eastgate.dialects.kuadrant.authorino.gjson import path_problem


@pytest.mark.parametrize(
    "path",
    [
        "auth.identity.sub",
        r"auth.identity.metadata.annotations.authorino\.kuadrant\.io/name",
        "children.#",
        "friends.#.first",
        'friends.#(last=="Murphy")#.first',
        "friends.#(nets.#(==fb))#|0",
        'friends.#[last="Murphy"].first',
        "vals.#(b==~true)#.a",
        '{name.first,age,"the_murphys":friends.#(last="Murphy")#.first}',
        '{name.first,"company":!"Happysoft","employed":!true}',
        'a.@extract:{"sep":" ","pos":1}|@case:upper',
        'a.@replace:{"old":"x","new":"y"}',
        "a.@base64:decode|@fromstr|exp",
        'a.@pretty:{"sortKeys":true,"indent":"\\t","width":20}',
        r"a.\@type",
        "a.*.b?",
        "!true",
        "a.@this",
    ],
)
def test_nothing_is_said_against_a_good_path(path: str) -> None:
    assert path_problem(path) is None


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "the path is empty"),
        ("a" * 4097, "the path has 4097 characters, at most 4096 are allowed"),
        ("..#", '".." is for JSON Lines, and a document is a single value'),
        ("a\\", "a backslash at the end escapes nothing"),
        ("a.@revers", "there is no modifier @revers; did you mean @reverse?"),
        ("a.@type.b", 'there is no modifier @type; write "\\@type" for a key of that name'),
        ('a.#(b=="c"', 'the query "#(b=="c"" is not closed'),
        ('a.#(b=="c)', 'the query "#(b=="c)" is not closed'),
        ("a.#(b)x", 'expected "." or "|" after a query, not "x"'),
        ("a.#(b=~maybe)", '"~maybe" is none of ~true ~false'),
        ("a.#(b!c)", '"#(b!c)" has no operator; the operators are == != < <= > >= % !%'),
        ("a.#(@revers)", "there is no modifier @revers; did you mean @reverse?"),
        ("{a,b", 'the multipath "{a,b" is not closed'),
        ("{a,}", 'the multipath "{a,}" has an empty part'),
        ("[a]b", 'expected "." or "|" after a multipath, not "b"'),
        ("[a,@upper]", 'there is no modifier @upper; write "\\@upper" for a key of that name'),
        ("!maybe", '"!maybe" is not a literal; write "\\!" for a key that starts with "!"'),
        ("!{a}", 'the literal "{a}" is not valid JSON'),
        ("a.@case:title", '@case takes upper or lower, not "title"'),
        ("a.@case", '@case takes upper or lower, not ""'),
        ("a.@case:upper.b", '@case takes upper or lower, not "upper.b"; what follows begins with "|"'),
        ("a.@base64:x", '@base64 takes encode or decode, not "x"'),
        ("a.@extract:1", "@extract takes an object"),
        ("a.@extract:{pos:1}", 'the argument of @extract is not valid JSON: "{pos:1}"'),
        ('a.@extract:{"pos":-1}', '"pos" of @extract counts from 0'),
        ('a.@extract:{"pos":"1"}', '"pos" of @extract must be a whole number'),
        ('a.@extract:{"position":1}', '@extract knows no "position", only sep, pos'),
        ('a.@extract:{"pos":1}b', 'expected "." or "|" after @extract, not "b"'),
        ("a.@replace", '@replace takes {"old":...,"new":...}'),
        ('a.@replace:{"new":"x"}', '@replace takes {"old":...,"new":...}'),
        ("a.@dig:b", 'there is no modifier @dig; write "\\@dig" for a key of that name'),
        ("a.#(b==~null)", '"~null" is none of ~true ~false'),
        ("a.#(" * 60 + "b" + ")" * 60, "the path is nested deeper than 50 levels"),
    ],
)
def test_a_bad_path_is_explained(path: str, problem: str) -> None:
    assert path_problem(path) == problem
