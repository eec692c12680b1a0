"""A host is found under the right AuthConfig, and linked to the right one."""

from __future__ import annotations

import pytest

from eastgate.cluster.hosts import find_host, hosts_meaning
from tests.dialects.kuadrant.authconfigs.configs import authority, config, servers

MEANING = [
    ("a.b.com", ["a.b.com", "*.a.b.com", "*.b.com", "*.com", "*"]),
    ("*.b.com", ["*.b.com", "*.*.b.com", "*.com", "*"]),
    ("com", ["com", "*.com", "*"]),
    ("*", ["*", "*.*"]),
    (".b.com", [".b.com", "b.com", "*..b.com", "*.b.com", "*.com", "*"]),
    ("", ["", "*"]),
]


@pytest.mark.parametrize(("host", "meaning"), MEANING)
def test_a_host_is_meant_by_itself_and_by_wildcards_from_the_longest(host: str, meaning: list[str]) -> None:
    assert list(hosts_meaning(host)) == meaning


def test_a_host_of_very_many_labels_is_looked_up_by_the_last_ones() -> None:
    meaning = list(hosts_meaning("a." * 30_000 + "com"))
    assert len(meaning) < 200
    assert meaning[-3:] == ["*.a.com", "*.com", "*"]


# The known hosts, the host of a request, and the host under which it is found.
FOUND = [
    (["api.acme.com"], "api.acme.com", "api.acme.com"),
    (["api.acme.com"], "api.acme.com:80", "api.acme.com"),
    (["api.acme.com:80"], "api.acme.com:80", "api.acme.com:80"),
    (["api.acme.com:80"], "api.acme.com", None),
    (["api.acme.com", "*"], "api.acme.com:80", "*"),  # with its port it is found under the wildcard
    (["*.acme.com", "api.acme.com"], "x.api.acme.com", "*.acme.com"),
    (["*.acme.com"], "acme.com", "*.acme.com"),
    (["*.acme.com"], "evilacme.com", None),
    (["*.acme.com", "*.com"], "x.y.acme.com", "*.acme.com"),
    (["api.acme.com"], "API.acme.com", None),
    (["acme.com"], ".acme.com", "acme.com"),
    (["*.acme.com"], "x.acme.com.", None),
]


@pytest.mark.parametrize(("known", "host", "found"), FOUND)
def test_the_closest_known_host_is_found(known: list[str], host: str, found: str | None) -> None:
    assert find_host(host, known.__contains__) == found


def test_a_host_belongs_to_the_oldest_and_then_to_the_first_by_name() -> None:
    first = authority(config("n/b", "x.io", day=2), config("n/a", "x.io", day=3), config("m/z", "x.io"))
    assert servers(first, ["x.io"]) == {"x.io": "n/b"}
    named = authority(config("n/a", "x.io", day=2), config("m/z", "x.io", day=2))
    assert servers(named, ["x.io"]) == {"x.io": "m/z"}


def test_an_older_wildcard_takes_the_hosts_that_it_means() -> None:
    wide, narrow = config("n/wide", "*.io", day=1), config("n/narrow", "x.io", "*.x.io", "y.com", day=2)
    hosts = ["x.io", "a.x.io", "y.com", "io"]
    taken = {"x.io": "n/wide", "a.x.io": "n/wide", "y.com": "n/narrow", "io": "n/wide"}
    assert servers(authority(wide, narrow), hosts) == taken
    superseding = authority(wide, narrow, allowSupersedingHostSubsets=True)
    own = {"x.io": "n/narrow", "a.x.io": "n/narrow", "y.com": "n/narrow", "io": "n/wide"}
    assert servers(superseding, hosts) == own


def test_a_newer_wildcard_takes_nothing_that_is_linked() -> None:
    of = authority(config("n/wide", "*.io", day=2), config("n/narrow", "x.io", day=1))
    assert servers(of, ["x.io", "y.io", "a.x.io"]) == {"x.io": "n/narrow", "y.io": "n/wide", "a.x.io": "n/wide"}


def test_the_very_host_of_an_older_one_is_not_superseded() -> None:
    both = config("n/both", "*.io", "x.io", day=1), config("n/late", "x.io", "y.io", day=2)
    of = authority(*both, allowSupersedingHostSubsets=True)
    assert servers(of, ["x.io", "y.io", "z.io"]) == {"x.io": "n/both", "y.io": "n/late", "z.io": "n/both"}
