"""No spelling of a query bypasses a route that matches it: engine and proxy agree, at any placement."""

from __future__ import annotations

from random import Random

import pytest

from tests.attacks.placements import HOST, Attacked
from tests.attacks.policies import linkerd_route, linkerd_server
from tests.attacks.trying import compare
from tests.differential.asking import Http
from tests.differential.world import Manifest

_TABLE = [
    ("x", "", "allow"),
    ("x", "?a=x", "deny"),
    ("x", "?b=1&a=x&c=2", "deny"),
    ("x", "?%61=%78", "deny"),
    ("x", "?a=x&a=y", "deny"),
    ("x", "?a=y&a=x", "deny"),
    ("x", "?a=y&a=xx", "allow"),
    ("x", "?a=" + "&a=".join(map(str, range(200))) + "&a=x", "deny"),
    ("x y", "?a=x%20y", "deny"),
    ("x y", "?a=x+y", "deny"),
    ("x+y", "?a=x+y", "allow"),
    ("x+y", "?a=x%2By", "deny"),
    ("", "?a=", "deny"),
    ("", "?a", "deny"),
    ("", "?a=x", "allow"),
    ("", "?b", "allow"),
    ("x", "?a=x#y", "deny"),
    ("x", "?a=X", "allow"),
    ("x", "?A=x", "allow"),
    ("x", "?a=x;b=1", "allow"),
    ("x;b=1", "?a=x;b=1", "deny"),
    ("x", "?&&a=x", "deny"),
    ("x", "??a=x", "allow"),
    ("=x", "?a==x", "deny"),
    ("%zz", "?a=%zz", "deny"),
    ("é", "?a=%C3%A9", "deny"),
    ("é", "?a=%c3%a9", "deny"),
    ("\ufffd", "?a=%C3", "deny"),
    ("\ufffd\ufffd", "?a=%ED%A0", "deny"),
    ("a\nb", "?a=a%0Ab", "deny"),
]


def _all_but(*matches: Manifest) -> list[Manifest]:
    """Return policies that allow every request except those that match."""
    everything = {"path": {"type": "PathPrefix", "value": "/"}}
    return [
        *linkerd_server(),
        *linkerd_route("special", *matches, allowed=False),
        *linkerd_route("rest", everything, allowed=True),
    ]


def _special(*values: str, kind: str = "Exact") -> list[Manifest]:
    return _all_but(*({"queryParams": [{"name": "a", "value": value, "type": kind}]} for value in values))


def _asked(*queries: str) -> list[Http]:
    return [Http(target=f"/{query}", host=HOST) for query in queries]


def _agree(attacked: Attacked, expected: dict[str, str]) -> None:
    """Check that engine and proxy give the expected verdict for each query."""
    tries = _asked(*expected)
    assert {query: "deny" if attacked.denial(one) else "allow" for query, one in zip(expected, tries, strict=True)} == (
        expected
    )
    assert not list(compare(attacked, tries, lambda _: None))


@pytest.mark.parametrize("value", dict.fromkeys(row[0] for row in _TABLE))
def test_proxy_and_engine_read_the_same_query(attacked: Attacked, value: str) -> None:
    attacked.enforce(_special(value))
    _agree(attacked, {query: verdict for one, query, verdict in _TABLE if one == value})


def test_a_name_may_be_any_text(attacked: Attacked) -> None:
    names = ("a b", "", "é[]", "%41", 'q"\\')
    attacked.enforce(_all_but(*({"queryParams": [{"name": name, "value": "x"}]} for name in names)))
    denied = ("?a+b=x", "?a%20b=x", "?=x", "?%C3%A9%5B%5D=x", "?%2541=x", "?q%22%5C=x")
    allowed = ("?a%2Bb=x", "?x", "?%E9[]=x", "?%41=x", "?q=x")
    _agree(attacked, dict.fromkeys(denied, "deny") | dict.fromkeys(allowed, "allow"))


def test_an_expression_is_tried_on_each_value_alone(attacked: Attacked) -> None:
    attacked.enforce(_special("x.*y", "", kind="RegularExpression"))
    denied = ("?a=x1y", "?a=1&a=x1y", "?a", "?a=1&a", "?a=x+y")
    allowed = ("?a=x&a=y", "?a=x1&a=1y", "?a=1", "")
    _agree(attacked, dict.fromkeys(denied, "deny") | dict.fromkeys(allowed, "allow"))


def test_what_cannot_be_noted_is_refused(attacked: Attacked) -> None:
    attacked.enforce(_special("x.*", kind="RegularExpression"))
    tries = _asked("?" + "&".join(f"a={n}" for n in range(9)), "?a=%00", "?a=%02", "?a=1&a=x%03")
    assert {(verdict.status, verdict.arrived) for verdict in attacked.verdicts(tries)} == {(400, None)}


@pytest.mark.parametrize("values", [("x", "", "é", "€", "a"), ("\ufffd", "\ufffd\ufffd", "=", "+", " ")])
def test_generated_queries_are_read_alike(attacked: Attacked, values: tuple[str, ...]) -> None:
    """Draw values that some reader gets wrong: invalid UTF-8, incomplete escapes, syntax characters."""
    random = Random(7)  # noqa: S311 - it chooses what to test
    words = [
        *"a=&+%;x?/",
        "%",
        "%2",
        "%61",
        "%3D",
        "%26",
        "%E2%82%AC",
        "%E2%82",
        "%F0%9F%98%80",
        "%F0%9F",
        "%80",
        "%C0",
    ]
    words += ["%C3%A9", "%ED%A0%80", "%F4%90%80%80", "%FF", "%0a", "%41", "[]", "..", "%EF%BF%BD", "a=", "&a="]
    queries = ["?" + "".join(random.choices(words, k=random.randint(1, 9))) for _ in range(150)]
    attacked.enforce(_special(*values))
    assert not list(compare(attacked, _asked(*dict.fromkeys(queries)), lambda _: None))
