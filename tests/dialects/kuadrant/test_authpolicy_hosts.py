"""Hosts with wildcards: the hosts inside of them, and the requests that they match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.hosts import host_problem, is_inside, matches, nearest, selects
from eastgate.engine.reference import holds
from eastgate.ir import ALWAYS, Known, Predicate, Request
from eastgate.ir.attributes import HOST, SNI, Attribute

# Inner, outer, and whether it is inside: Kuadrant's own table, and the additions of the ruling.
INSIDE = [
    ("foo.com", "foo.com", True),
    ("foo.com", "bar.com", False),
    ("*.com", "foo.com", False),
    ("foo.com", "*.com", True),
    ("*.foo.com", "foo.com", False),
    ("foo.com", "*.foo.com", False),
    ("*", "*.com", False),
    ("*.com", "*", True),
    ("*.com", "*.org", False),
    ("*.foo.com", "*.bar.foo.com", False),
    ("*.foo.com", "*.baz.foo.com", False),
    ("", "", True),
    ("", "foo.com", False),
    ("*.foo.*.com", "*.foo.*.com", True),
    # by whole labels
    ("evilfoo.com", "*.foo.com", False),
    ("*.evilfoo.com", "*.foo.com", False),
    ("a.foo.com", "*.foo.com", True),
    ("a.b.foo.com", "*.foo.com", True),
    ("*.b.foo.com", "*.foo.com", True),
    ("*.foo.com", "*.foo.com", True),
    ("foo.com.evil.org", "*.foo.com", False),
    ("*", "*", True),
    ("foo.com", "*", True),
    ("*", "foo.com", False),
]


@pytest.mark.parametrize(("inner", "outer", "expected"), INSIDE)
def test_a_host_is_inside_another_by_whole_labels(inner: str, outer: str, expected: bool) -> None:
    assert is_inside(inner, outer) is expected


def judged(predicate: Predicate, host: Known = None, sni: Known = None) -> bool:
    values: dict[Attribute, Known] = {HOST: host, SNI: sni}
    return holds(predicate, Request(values))


@pytest.mark.parametrize(
    ("written", "host", "expected"),
    [
        ("foo.com", "foo.com", True),
        ("foo.com", "a.foo.com", False),
        ("*.foo.com", "a.foo.com", True),
        ("*.foo.com", "a.b.foo.com", True),
        ("*.foo.com", "foo.com", False),
        ("*.foo.com", "evilfoo.com", False),
        ("*", "anything", True),
        ("*", None, True),
        ("foo.com", None, False),
        ("*.foo.com", None, False),
    ],
)
def test_a_host_means_requests(written: str, host: str | None, expected: bool) -> None:
    assert judged(matches(written), host) is expected


labels = st.lists(st.sampled_from(["a", "foo", "evilfoo", "com"]), min_size=1, max_size=4).map(".".join)
written_hosts = st.one_of(labels, labels.map("*.{}".format), st.just("*"))


@given(written_hosts, written_hosts, labels)
def test_what_the_inner_host_means_the_outer_one_means_too(inner: str, outer: str, host: str) -> None:
    if is_inside(inner, outer) and judged(matches(inner), host):
        assert judged(matches(outer), host)


@pytest.mark.parametrize(
    ("host", "sni", "expected"),
    [
        ("a.foo.com", None, True),
        ("other.org", "a.foo.com", True),
        ("bar.com", "other.org", True),
        ("other.org", "bar.com", True),
        ("other.org", "other.org", False),
        (None, None, False),
    ],
)
def test_a_rule_selects_by_header_or_by_handshake(host: str | None, sni: str | None, expected: bool) -> None:
    assert judged(selects(["*.foo.com", "bar.com"]), host, sni) is expected


def test_any_host_asks_nothing() -> None:
    assert selects(["a.com", "*"]) == ALWAYS
    assert matches("*") == ALWAYS


SCHEMES = [["*"], ["*.com", "b.org"], ["*.foo.com"], ["a.foo.com"]]


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("a.foo.com", 3),
        ("b.foo.com", 2),
        ("a.a.foo.com", 2),
        ("foo.com", 1),
        ("b.org", 1),
        ("a.org", 0),
        ("org", 0),
    ],
)
def test_the_nearest_host_is_chosen_and_no_other(host: str, place: int) -> None:
    every = [one for hosts in SCHEMES for one in hosts]
    chosen = [judged(nearest(hosts, every), host) for hosts in SCHEMES]
    assert chosen == [one == place for one in range(len(SCHEMES))]


@given(st.lists(written_hosts, min_size=1, max_size=5, unique=True), labels)
def test_of_all_schemes_at_most_one_is_nearest(every: list[str], host: str) -> None:
    chosen = [one for one in every if judged(nearest([one], every), host)]
    assert len(chosen) == (1 if any(judged(matches(one), host) for one in every) else 0)


@pytest.mark.parametrize("host", ["*", "a", "a.b.c", "*.a", "*.a-b.c", "10.0.0.1", "x1.y2"])
def test_a_host_may_be_written(host: str) -> None:
    assert host_problem(host) is None


@pytest.mark.parametrize(
    ("host", "said", "way_out"),
    [
        ("", "it is empty", None),
        ("A.com", "it has upper-case letters", "write a.com"),
        ("a.com:80", "it has a port", "write a.com"),
        ("https://A.com:443/x", "it is a URL", "write a.com"),
        ("a.com/x", "it has a path", "write a.com"),
        ("a.com.", "it ends with a dot", "write a.com"),
        ("*a.com", "`*` is allowed for its first labels only", None),
        ("a.*.com", "`*` is allowed for its first labels only", None),
        ("*.*.com", "`*` is allowed for its first labels only", None),
        ("a..com", "it is not a DNS name", None),
        ("a_b.com", "it is not a DNS name", None),
        ("a.com\n", "it is not a DNS name", None),
    ],
)
def test_what_is_no_host_is_told_why(host: str, said: str, way_out: str | None) -> None:
    assert host_problem(host) == (said, way_out or "write a name such as www.example.com or *.example.com")
