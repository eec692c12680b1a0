"""Selections end soon, with a result or with TooMuch."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.authorino.gjson import Selection, TooMuch, fill, is_template, path_problem, select
from tests.effort import effort_of


def _nested(depth: int) -> object:
    data: object = 1
    for _ in range(depth):
        data = [data]
    return data


def _shared(doublings: int) -> object:
    """Return a few objects that print as very many."""
    data: object = "x" * 1000
    for _ in range(doublings):
        data = [data, data]
    return data


WIDE = {"a": [{"b": at, "c": {"d": [at] * 5}} for at in range(10000)]}

BOMBS: dict[str, tuple[object, str]] = {
    "multipaths double": ([1], "|".join(["[@this,@this]"] * 290)),
    "escapes double": ('"', "|".join(["@tostr"] * 500)),
    "deep data printed": (_nested(100_000), "@this"),
    "deep data walked": (_nested(100_000), ".".join(["0"] * 2000)),
    "deep data flattened": (_nested(100_000), '@flatten:{"deep":true}'),
    "shared data printed": (_shared(40), "@this"),
    "shared data collected": (_shared(40), ".".join(["#"] * 90)),
    "queries nested": (_nested(90), "#(" * 1300 + ")" * 1300),
    "multipaths nested": (_nested(90), "[" * 2000 + "]" * 2000),
    "an expensive pattern": (["a" * 900_000], '#(%"' + "*aaaaaaaaaaaaaaaaaaaaaa?" * 150 + 'b")'),
    "a long path": ({}, "a" * 5000),
    "one document many times": (WIDE, "[" + ",".join(["@this"] * 600) + "]"),
    "a wide indent": (WIDE, '@pretty:{"indent":"' + " " * 3000 + '"}'),
    "an expanding replacement": ("a" * 100_000, '@replace:{"old":"","new":"' + "x" * 3000 + '"}'),
    "an endless number": ({"a": 10**5000}, "a"),
    "brackets in a string": ({"a": "[" * 100_000}, "a|" + ".".join(["#"] * 90)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_soon(bomb: str) -> None:
    document, path = BOMBS[bomb]

    def refuse() -> None:
        with pytest.raises(TooMuch):
            select(document, path)

    assert effort_of(refuse)[1] < 2_000


@pytest.mark.parametrize(
    ("document", "path", "text"),
    [
        ({"a" * 100_000: 1}, "*a" * 1500 + "b", ""),
        (WIDE, "a.#(b>9998)#.c.d|0.0", "9999"),
        ([1], "|".join(["@this"] * 680), "[1]"),
        ({"a": 1}, "!" + "9" * 4000, "9" * 4000),
        (_nested(90), ".".join(["0"] * 90), "1"),
    ],
)
def test_what_is_large_but_bounded_is_answered(document: object, path: str, text: str) -> None:
    assert select(document, path).text == text


@pytest.mark.parametrize("template", ["{@this}" * 9000, "{a.#(b>=0)#}" * 5000, "x" * 65537])
def test_placeholders_share_one_budget(template: str) -> None:
    with pytest.raises(TooMuch):
        fill(template, WIDE)


KEYS = st.sampled_from(["a", "b", "a.b", "", "*", "#", "é", '"', "\\", "|", "@this"])
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["[1,2]", '{"a":1}', "am9obg"]),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(KEYS | st.text(), children, max_size=4),
    max_leaves=20,
)
_SYNTAX = r"""
a b * ? # \ . . | 0 1 " ' : , ( ) [ ] { } #( )# #(a== == != < >= % !% ~true ~* ! !true !"x" !1 !{"a":[1]} @ .. \. \* é
@this @reverse @ugly @pretty @valid @flatten @join @keys @values @tostr @fromstr @group @strip
@case:upper @case:lower @base64:encode @base64:decode @extract @extract:{"sep":"a","pos":1} @extract:{"pos":9}
@replace:{"old":"a","new":"\""} @flatten:{"deep":true} @join:{"preserve":true} @pretty:{"width":3,"sortKeys":true}
[a,b] {a,"x":b} {"deep" :true}
"""
TOKENS = st.sampled_from(_SYNTAX.split())
PATHS = st.lists(TOKENS, max_size=14).map("".join) | st.lists(TOKENS, max_size=8).map(".".join) | st.text()


@given(document=DATA, path=PATHS)
def test_any_path_on_any_data_ends_well(document: object, path: str) -> None:
    try:
        selected = select(document, path)
    except TooMuch:
        return
    assert isinstance(selected, Selection)
    assert selected.exists or (selected.value is None and selected.text == "")
    selected.text.encode()
    assert len(selected.texts) <= len(selected.text) + 1


@given(document=DATA, template=PATHS | st.text(alphabet="{}\\a.@#"))
def test_any_template_ends_well(document: object, template: str) -> None:
    is_template(template)
    with contextlib.suppress(TooMuch):
        fill(template, document).encode()


@given(path=PATHS)
def test_any_path_can_be_asked_for_its_problem(path: str) -> None:
    problem = path_problem(path)
    assert problem is None or problem


@given(document=DATA)
def test_modifiers_that_undo_each_other(document: object) -> None:
    whole = select([document], "0.@this").text
    for path in ("0.@tostr|@fromstr", "0.@pretty|@ugly", "0.@reverse|@reverse", "[0].0"):
        assert select([document], path).text == whole
