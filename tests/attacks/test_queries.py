"""Ways to write a query so that a proxy reads another one than the engine does."""

from __future__ import annotations

from random import Random

import pytest

from eastgate.mesh.calls import make_calls
from eastgate.questions import Question
from tests.faults.linkerd import only_for_bob
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP

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


async def _agree(mesh: Running, query: str, verdict: str | None = None) -> None:
    [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", f"/{query}"))
    assert verdict in (None, made.decision.verdict), query
    assert made.agrees, (query, made.called, made.seen)


def _special(*values: str, kind: str = "Exact") -> list[dict[str, object]]:
    return [{"queryParams": [{"name": "a", "value": value, "type": kind}]} for value in values]


@pytest.mark.parametrize("value", dict.fromkeys(row[0] for row in _TABLE))
async def test_proxy_and_engine_read_the_same_query(value: str) -> None:
    async with running(*only_for_bob(*_special(value))) as mesh:
        for query, verdict in (row[1:] for row in _TABLE if row[0] == value):
            await _agree(mesh, query, verdict)


async def test_a_name_may_be_any_text() -> None:
    matches = [{"queryParams": [{"name": name, "value": "x"}]} for name in ("a b", "", "é[]", "%41", 'q"\\')]
    async with running(*only_for_bob(*matches)) as mesh:
        for query in ("?a+b=x", "?a%20b=x", "?=x", "?%C3%A9%5B%5D=x", "?%2541=x", "?q%22%5C=x"):
            await _agree(mesh, query, "deny")
        for query in ("?a%2Bb=x", "?x", "?%E9[]=x", "?%41=x", "?q=x"):
            await _agree(mesh, query, "allow")


async def test_an_expression_is_tried_on_each_value_alone() -> None:
    async with running(*only_for_bob(*_special("x.*y", "", kind="RegularExpression"))) as mesh:
        for query in ("?a=x1y", "?a=1&a=x1y", "?a", "?a=1&a", "?a=x+y"):
            await _agree(mesh, query, "deny")
        for query in ("?a=x&a=y", "?a=x1&a=1y", "?a=1", ""):
            await _agree(mesh, query, "allow")


@pytest.mark.parametrize("query", ["&".join(f"a={n}" for n in range(9)), "a=%00", "a=%02", "a=1&a=x%03"])
async def test_what_cannot_be_noted_is_refused(query: str) -> None:
    async with running(*only_for_bob(*_special("x.*", kind="RegularExpression"))) as mesh:
        [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", f"/?{query}"))
        assert made.called.status == 400
        assert made.seen is not None
        assert made.seen.who == "unclear-values"


@pytest.mark.parametrize("values", [("x", "", "é", "€", "a"), ("\ufffd", "\ufffd\ufffd", "=", "+", " ")])
async def test_generated_queries_are_read_alike(values: tuple[str, ...]) -> None:
    """Values that some reader gets wrong: bytes that are no UTF-8, halves of escapes, signs of the syntax."""
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
    async with running(*only_for_bob(*_special(*values))) as mesh:
        for query in queries:
            await _agree(mesh, query)
